//! A live connection under attack by forged packets.

use airtcp_testkit::attack::attack;
use airtcp_testkit::calls;
use airtcp_testkit::exchange::{Exchange, Faults};
use airtcp_testkit::hostile::ForgeryScope;
use airtcp_testkit::pair::{Impairments, Peer};
use airwire::rng::Stream;
use airwire::time::Duration;

use crate::common::{PROFILES, VARIANTS, pair, path, plan, seeds};

#[test]
fn every_variant_survives_forged_packets() {
    for recipe in VARIANTS {
        for profile in PROFILES {
            for seed in seeds(2, 12) {
                let what = format!("{recipe} {profile} seed {seed}");
                let mut draw = Stream::new(seed, &what);
                let path = Impairments { loss: draw.unit() * 0.05, ..path(5 + draw.below(40)) };
                let pair = pair(seed, recipe, profile, path);
                let mut exchange = Exchange::new(pair, plan(profile, [400_000, 100_000])).unwrap();
                attack(&mut draw, &mut exchange, ForgeryScope::Survivable, 400)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                exchange
                    .complete(Duration::from_secs(3600))
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
            }
        }
    }
}

#[test]
fn forged_packets_never_break_connection_invariants() {
    for recipe in VARIANTS {
        for profile in PROFILES {
            for seed in seeds(5, 30) {
                let what = format!("{recipe} {profile} seed {seed}");
                let mut draw = Stream::new(seed, &what);
                let pair = pair(seed, recipe, profile, path(5 + draw.below(40)));
                let mut plan = plan(profile, [400_000, 100_000]);
                plan.faults = Faults::Close;
                let mut exchange = Exchange::new(pair, plan).unwrap();
                attack(&mut draw, &mut exchange, ForgeryScope::Any, 300)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
            }
        }
    }
}

#[test]
fn challenge_acks_are_throttled() {
    let pair = pair(1, "newreno", "default", path(1));
    let mut exchange = Exchange::new(pair, plan("default", [10, 10])).unwrap();
    while !exchange.is_synchronized() {
        exchange.step().unwrap();
    }
    let mut draw = Stream::new(1, "resets");
    let mut replies = 0;
    let packets: Vec<Vec<u8>> = (0..20_000)
        .filter_map(|_| exchange.eavesdropper.forge(&mut draw, Peer::Right, ForgeryScope::Survivable))
        .filter(|packet| packet.len() == 52 && packet[33] & 0x04 != 0)
        .collect();
    assert!(packets.len() > 1000, "only {} resets", packets.len());
    for packet in &packets {
        replies += exchange.inject(Peer::Left, packet);
    }
    assert_eq!(replies, 1, "challenge ACKs within one instant");
    exchange.complete(Duration::from_secs(100)).unwrap();
}

/// After any sequence of user calls, packets and time steps, no connection remains.
#[test]
fn random_calls_and_packets_leave_no_connection() {
    for seed in seeds(500, 3000) {
        let mut draw = Stream::new(seed, "calls");
        let calls = 20 + draw.below(300) as u32;
        calls::run(&mut draw, calls).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
