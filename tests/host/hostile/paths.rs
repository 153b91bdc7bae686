//! Well-behaved hosts on bad paths: any window and segment size, sequence numbers that wrap, and every way to
//! open and close a connection.

use airtcp_testkit::exchange::{Exchange, Opening};
use airtcp_testkit::pair::{Impairments, Pair, Peer};
use airwire::rng::Stream;
use airwire::segment;
use airwire::time::{Duration, Instant};

use crate::common::{
    PROFILES, VARIANTS, pair, path, plan, profile as profile_of, recipe as recipe_of, run, seeds,
};

fn bad_path(rng: &mut Stream) -> Impairments {
    Impairments {
        loss: rng.unit() * 0.15,
        duplicate: rng.unit() * 0.1,
        reorder: rng.unit() * 0.3,
        // Sometimes long enough to look like a loss or a delay spike.
        reorder_by: Duration::from_millis(if rng.chance(0.3) { 3000 } else { 80 }),
        truncate: rng.unit() * 0.02,
        corrupt: rng.unit() * 0.02,
        per_byte: Duration::from_nanos(rng.below(8000)),
        delay: Duration::from_millis(rng.below(60)),
        queue: 5 + rng.below(50) as usize,
        longest: None,
    }
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Windows from one byte to many segments, tiny segments, slow readers, and both ways of opening.
#[test]
fn any_window_and_segment_size_carries_both_streams() {
    for seed in seeds(40, 150) {
        let mut rng = Stream::new(seed, "sizes");
        let recipe = VARIANTS[rng.below(VARIANTS.len() as u64) as usize];
        let profile = PROFILES[rng.below(3) as usize];
        let mut plan = plan(profile, [1 + rng.below(30_000), rng.below(10_000)]);
        plan.opening = if rng.chance(0.3) { Opening::Simultaneous } else { Opening::Passive };
        let windows = [1, 2, 10, 88, 536, 1460, 5000, 65_535, 70_000, 1 << 20];
        let window = windows[rng.below(10) as usize];
        plan.options.recv_buffer = Some(window);
        plan.options.send_buffer = [1, 100, 5000, 1 << 20][rng.below(4) as usize];
        plan.options.max_seg = [None, Some(88), Some(536), Some(1000)][rng.below(4) as usize];
        plan.options.nodelay = rng.chance(0.5);
        plan.read_at_most = 1 + rng.below(5000) as usize;
        plan.read_every = Duration::from_millis([0, 1, 50, 700][rng.below(4) as usize]);
        // Such a transfer needs about one round trip per byte, so it must be short.
        if window < 100 || plan.options.send_buffer < 100 || plan.read_at_most < 100 {
            plan.bytes = [1 + rng.below(60), rng.below(40)];
        }
        let path = if rng.chance(0.5) { bad_path(&mut rng) } else { path(rng.below(50)) };
        plan.eager = rng.chance(0.5);
        let what = format!("seed {seed} {recipe} {profile} {plan:?} {path:?}");
        run(&what, pair(seed, recipe, profile, path), plan, DAY);
    }
}

/// A reader that reads once per hour. The window closes and opens again.
#[test]
fn connection_survives_hour_of_closed_window() {
    for recipe in VARIANTS {
        for profile in PROFILES {
            let mut plan = plan(profile, [300_000, 1000]);
            plan.options.recv_buffer = Some(100_000);
            plan.read_at_most = 100_000;
            plan.read_every = Duration::from_secs(3600);
            let what = format!("{recipe} {profile}");
            let exchange = run(&what, pair(1, recipe, profile, path(10)), plan, DAY);
            assert!(
                exchange.pair.now > Instant::from_secs(3600),
                "{what}: the slow reader did not close the window"
            );
        }
    }
}

/// Loss in one direction only: ACKs or data.
#[test]
fn transfer_survives_heavy_loss_in_one_direction() {
    for (seed, side) in seeds(8, 20).flat_map(|seed| [(seed, Peer::Left), (seed, Peer::Right)]) {
        let mut rng = Stream::new(seed, "one direction");
        let recipe = VARIANTS[rng.below(VARIANTS.len() as u64) as usize];
        let profile = PROFILES[rng.below(3) as usize];
        // The handshake may take any number of retries, because the test is about the data transfer.
        let patient = profile_of(profile).with(|it| it.handshake.syn_retries = 100);
        let recipe_of = recipe_of(recipe);
        let mut pair = Pair::new(seed, (&recipe_of, &recipe_of), (&patient, &patient), path(20));
        pair.lossy = Some((side, 0.4));
        run(&format!("seed {seed} {side:?} {recipe} {profile}"), pair, plan(profile, [100_000, 0]), DAY);
    }
}

/// One side closes at once and continues to read a long stream.
#[test]
fn half_closed_connection_carries_long_stream() {
    for recipe in VARIANTS {
        for profile in PROFILES {
            let path = Impairments { loss: 0.02, ..path(10) };
            let what = format!("{recipe} {profile}");
            run(&what, pair(3, recipe, profile, path), plan(profile, [0, 500_000]), DAY);
        }
    }
}

#[test]
fn simultaneous_open_and_close_survive_loss() {
    for seed in seeds(300, 300) {
        let mut rng = Stream::new(seed, "simultaneous");
        let recipe = VARIANTS[rng.below(VARIANTS.len() as u64) as usize];
        let profile = PROFILES[rng.below(3) as usize];
        let path = Impairments { loss: 0.3, ..path(10) };
        let mut plan = plan(profile, [rng.below(3), rng.below(3)]);
        plan.opening = Opening::Simultaneous;
        plan.eager = rng.chance(0.5);
        run(&format!("seed {seed} {recipe} {profile}"), pair(seed, recipe, profile, path), plan, DAY);
    }
}

/// Both applications write their whole streams and shut down while the SYNs are in flight or lost (RFC 9293
/// §3.9.1.4).
#[test]
fn data_and_fin_queued_before_handshake_arrive() {
    for seed in seeds(60, 200) {
        let mut rng = Stream::new(seed, "eager");
        let recipe = VARIANTS[rng.below(VARIANTS.len() as u64) as usize];
        let profile = PROFILES[rng.below(3) as usize];
        let path = Impairments { loss: 0.2, ..path(rng.below(50)) };
        let mut octets = || [0, 1, 1000, 50_000][rng.below(4) as usize];
        let mut plan = plan(profile, [octets(), octets()]);
        plan.opening = if rng.chance(0.5) { Opening::Simultaneous } else { Opening::Passive };
        plan.eager = true;
        run(
            &format!("seed {seed} {recipe} {profile} {plan:?}"),
            pair(seed, recipe, profile, path),
            plan,
            DAY,
        );
    }
}

/// Returns the initial sequence number of `side` in the exchange that `make` starts.
fn initial_number(side: Peer, make: impl Fn() -> Exchange) -> u32 {
    let mut exchange = make();
    exchange.pair.tap = Some(Vec::new());
    loop {
        assert!(exchange.pair.step(), "no SYN");
        for (_, from, packet) in exchange.pair.tap.iter().flatten() {
            if *from == side {
                return segment::parse(packet).unwrap().seq.0;
            }
        }
    }
}

/// Initial sequence numbers follow a 4 µs clock (RFC 6528), so the start time determines them.
#[test]
fn streams_survive_sequence_number_wrap() {
    for (recipe, profile) in VARIANTS.iter().flat_map(|r| PROFILES.map(|p| (*r, p))) {
        for (side, wrap) in [Peer::Left, Peer::Right].into_iter().flat_map(|s| [(s, 1 << 31), (s, 0)]) {
            let octets = [100_000, 100_000];
            let path =
                Impairments { loss: 0.01, reorder: 0.02, reorder_by: Duration::from_millis(30), ..path(10) };
            let start = |at: Instant| {
                let mut pair: Pair = pair(5, recipe, profile, path.clone());
                pair.now = at;
                Exchange::new(pair, plan(profile, octets)).unwrap()
            };
            let begin = Instant::from_secs(10);
            let wanted = u32::wrapping_sub(wrap, 60_000);
            let ticks = wanted.wrapping_sub(initial_number(side, || start(begin)));
            let at = begin + Duration::from_micros(4) * u64::from(ticks);
            let isn = initial_number(side, || start(at));
            assert!(wanted.wrapping_sub(isn) < 10_000, "{isn} is not just below {wanted}");
            let mut exchange = start(at);
            let what = format!("{recipe} {profile} {side:?} {wrap:#x}");
            exchange.complete(DAY).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
}

/// Sequence numbers wrap completely, because the stream is longer than 2^32 bytes. No packets are lost.
#[test]
#[ignore = "nightly: a minute in an optimised build"]
fn stream_longer_than_4_gib_arrives_exact() {
    let mut plan = plan("default", [(1 << 32) + 5_000_000, 0]);
    plan.read_at_most = 1 << 20;
    let path = Impairments { per_byte: Duration::ZERO, ..path(1) };
    run("4 GiB", pair(1, "newreno", "default", path), plan, DAY);
}
