//! Properties of every window, for any behaviour of the peer.

use airwire::rng::Stream;
use airwire::time::Duration;

use crate::profile::Profile;
use crate::recovery::testing::BareSender;
use crate::recovery::{Ack, Handshake, What};

/// Windows controlled by a model, which may change them even when they are not in use.
const BY_MODEL: [&str; 2] = ["bbr", "bbr3"];

const WINDOWS: [&str; 11] = [
    "aimd",
    "rebate",
    "rebate+tax=0.9+tax-scale=10",
    "rebate+beta=0.95",
    "westwood",
    "veno",
    "veno+beta=0.95",
    "jtcp",
    "tcp-fit",
    "vegas-window",
    "cubic",
];

/// Runs a sender with a peer that acknowledges, repeats and claims arbitrary things, at arbitrary times.
fn run_with_arbitrary_peer(recipe: &str, profile: Profile, seed: u64) {
    let mut random = Stream::new(seed, recipe);
    let handshake = Handshake { timestamps: true, sack: true, ..Handshake::default() };
    let mut sender = BareSender::with(recipe, profile, &handshake);
    sender.recovery.start_trace();
    sender.send();
    for _ in 0..400 {
        let (una, max) = (sender.una(), sender.last());
        let claims = Ack {
            loss_report: random.chance(0.2).then(|| random.unit()),
            reordered: random.chance(0.2).then(|| random.below(65_536) as u16),
            dsack: random.chance(0.2).then(|| (una * 1000, una * 1000 + random.below(5000))),
            ecr: random.chance(0.5).then(|| random.below(1 << 32) as u32),
            rtt: random.chance(0.3).then(|| Duration::from_nanos(random.below(1 << 40))),
            ..Ack::default()
        };
        let ahead = 1 + random.below((max - una).max(1));
        match random.below(10) {
            0 => drop(sender.receive(claims, max, &[])),
            1..=3 => drop(sender.receive(claims, una + ahead, &[])),
            4 => drop(sender.dupacks(random.below(300) as u32)),
            5 if max > una + 1 => {
                drop(sender.receive(claims, una, &[una + 2..una + 2 + ahead.min(max - una - 1)]))
            }
            6 if sender.rto.is_some() && !sender.flight.is_empty() => drop(sender.timeout()),
            7 => sender.rwnd = 1 + random.below(200),
            8 => drop(sender.wait(Duration::from_nanos(random.below(1 << 34)))),
            9 if random.chance(0.1) => drop(sender.wait(Duration::from_secs(100_000))),
            _ => drop(sender.receive(Ack { ece: true, ..claims }, una, &[])),
        }
        for decision in sender.trace() {
            if let What::Window { cwnd, ssthresh, .. } = decision.what {
                let sane = (1.0..1e12).contains(&cwnd) && ssthresh >= 2.0 && !ssthresh.is_nan();
                assert!(sane, "{recipe}, seed {seed}: {decision:?}");
            }
        }
    }
}

fn check_every_window(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        for window in WINDOWS {
            run_with_arbitrary_peer(&format!("newreno+{window}"), Profile::default(), seed);
            run_with_arbitrary_peer(&format!("sack+{window}"), Profile::linux(), seed);
        }
        for window in BY_MODEL {
            run_with_arbitrary_peer(window, Profile::default(), seed);
            run_with_arbitrary_peer(window, Profile::linux(), seed);
        }
    }
}

#[test]
fn arbitrary_peer_keeps_window_valid() {
    check_every_window(0..6);
}

#[test]
#[ignore = "nightly: ten times as many seeds"]
fn arbitrary_peer_keeps_window_valid_with_more_seeds() {
    check_every_window(0..60);
}

#[test]
fn unused_window_does_not_grow() {
    for window in WINDOWS {
        let rtt = Duration::from_millis(100);
        let mut sender = BareSender::new(window).under_way(20.0, 10.0, rtt);
        // From here on the application writes one segment per round trip.
        sender.wait(rtt).ack(20);
        sender.written = sender.last();
        for _ in 0..3 {
            sender.wait(rtt).ack_all();
        }
        let before = sender.cc().cwnd;
        for _ in 0..200 {
            sender.written += 1;
            sender.send();
            sender.wait(rtt).ack_all();
        }
        assert!(sender.cc().cwnd <= before, "{window}: {} from {before}", sender.cc().cwnd);
    }
}
