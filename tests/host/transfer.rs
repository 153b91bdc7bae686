//! Byte streams between two hosts arrive unchanged over lossless and bad paths.

use airtcp_testkit::exchange::{Exchange, ExchangeSpec};
use airtcp_testkit::pair::Impairments;
use airtcp_testkit::sample::sample;
use airwire::rng::Stream;
use airwire::time::Duration;

use crate::common::{PROFILES, START, VARIANTS, pair, plan, run};

/// Runs a transfer in both directions and checks every byte. Returns the time it took.
fn transfer(
    seed: u64,
    recipe: &str,
    profile: &str,
    path: Impairments,
    bytes: [u64; 2],
    buffers: usize,
) -> Duration {
    let what = format!("seed {seed} {recipe} {profile} {path:?}");
    let mut plan = plan(profile, bytes);
    plan.options.send_buffer = buffers;
    plan.options.recv_buffer = Some(buffers);
    // With a small buffer, the reader is also slow.
    plan.read_at_most = if buffers < 1 << 20 { 700 + seed as usize * 75 } else { buffers };
    let mut exchange = Exchange::new(pair(seed, recipe, profile, path), plan).unwrap();
    exchange.complete(Duration::from_secs(100_000)).unwrap_or_else(|error| panic!("{what}: {error}"));
    let end = exchange.pair.now;
    exchange.close_all().unwrap_or_else(|error| panic!("{what}: {error}"));
    end - START
}

#[test]
fn every_variant_transfers_over_lossless_path() {
    for recipe in VARIANTS {
        for profile in PROFILES {
            let path = Impairments::lossless(Duration::from_millis(20));
            let took = transfer(7, recipe, profile, path, [300_000, 10_000], 1 << 20);
            assert!(took < Duration::from_secs(2), "{recipe} {profile} took {took}");
        }
    }
}

#[test]
fn stream_arrives_exact_despite_all_impairments() {
    for seed in 0..40 {
        let mut rng = Stream::new(seed, "scenario");
        let path = Impairments {
            loss: rng.unit() * 0.15,
            duplicate: rng.unit() * 0.1,
            reorder: rng.unit() * 0.3,
            reorder_by: Duration::from_millis(rng.below(80)),
            truncate: rng.unit() * 0.02,
            corrupt: rng.unit() * 0.02,
            per_byte: Duration::from_nanos(rng.below(8000)),
            delay: Duration::from_millis(rng.below(60)),
            queue: 5 + rng.below(50) as usize,
            longest: None,
        };
        let recipe = VARIANTS[rng.below(VARIANTS.len() as u64) as usize];
        let profile = PROFILES[rng.below(3) as usize];
        let buffers = 1000 + rng.below(100_000) as usize;
        transfer(seed, recipe, profile, path, [60_000, 20_000], buffers);
    }
}

#[test]
fn time_based_senders_survive_bad_paths() {
    let recipes = [
        "sack+pr",
        "newreno+pr",
        "reno+pr",
        "tahoe+pr",
        "sack+pr+prr",
        "sack+rack",
        "sack+prr",
        "sack+rack+prr",
        "sack+rack+prr+frto",
        "sack+pr+frto+limited-transmit",
        "sack+rack+loss-retransmission",
        "newreno+pr+receiver-window",
        "sack+rack+prr+receiver-window",
    ];
    for (number, recipe) in recipes.into_iter().enumerate() {
        for seed in sample(recipe, 0..12_u64, 4) {
            let path = Impairments {
                loss: 0.02 * (seed % 4) as f64,
                duplicate: 0.02 * (seed % 3) as f64,
                reorder: 0.1 * (seed % 3) as f64,
                reorder_by: Duration::from_millis([30, 400, 3000][(seed % 3) as usize]),
                delay: Duration::from_millis(40),
                per_byte: Duration::from_micros(4),
                queue: [6, 60][(seed % 2) as usize],
                ..Impairments::default()
            };
            let what = format!("{recipe}, seed {seed}");
            let plan = ExchangeSpec { read_at_most: 100_000, ..plan("default", [200_000, 20_000]) };
            let pair = pair(100 * number as u64 + seed, recipe, "default", path);
            run(&what, pair, plan, Duration::from_secs(3600));
        }
    }
}
