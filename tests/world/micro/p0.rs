//! P0 §3.3 and §4: a sender over a radio link with clustered losses, with and without `sifest`.
//!
//! The path of §3.1 without voice traffic: the radio link has 128 kbit/s, so a segment of 512 bytes takes
//! 34.5 ms, and the round trip is 110 ms without a queue. The paper's runs have random losses. Here,
//! the path loses exactly the packets that its figures show as lost.

use airlink::scenario::Scenario;
use airtcp::profile::Profile;
use airtcp::recovery::Counters;
use airtcp_sim::world::{Flow, HostSpec, Length, World, WorldConfig};
use airwire::time::{Duration, Instant};

use super::sequence::{Event, Run, Sequence};

const PATH: &str = r#"
schema = 1
[[stage]]
kind = "link"
name = "wired"
both = { rate = "1Mbit", delay = "10ms" }
[[stage]]
kind = "link"
name = "radio"
both = { rate = "128kbit", delay = "25ms" }
"#;

fn losing(drop: &[&str]) -> String {
    format!("{PATH}[[stage]]\nkind = \"loss\"\ndown = {{ model = \"list\", drop = {drop:?} }}\n")
}

/// Runs a transfer with a receive window of 8 kB (16 segments). In both profiles, the initial window is one
/// segment.
fn run(profile: &Profile, recipe: &str, drop: &[&str]) -> Sequence {
    let recipe = if profile.name == "ns2" || recipe.contains("liw") {
        recipe.to_owned()
    } else {
        format!("{recipe}+iw=1")
    };
    let (profile, scenario) = (profile.clone(), losing(drop));
    Run { profile, recipe: &recipe, scenario, mss: 512, segments: 60, rwnd: 16 }.sequence()
}

fn profiles() -> [Profile; 2] {
    [Profile::ns2(), Profile::default()]
}

#[test]
fn figure_7_reno_times_out_after_two_losses() {
    // Segments 6 and 7 correspond to the paper's #613 and #614: five ACKs have increased cwnd to six.
    for profile in profiles() {
        let [tahoe, reno, newreno, sack] =
            ["tahoe", "reno", "newreno", "sack"].map(|recipe| run(&profile, recipe, &["segments 6-7"]));
        let name = profile.name;
        for s in [&tahoe, &reno, &newreno, &sack] {
            let third =
                s.row(Event::Dupack { n: 3, edge: 0 }).or_else(|| s.row(Event::Dupack { n: 3, edge: 10 }));
            assert_eq!(third.map(|row| row.at), s.sent(6, 2), "{name}: the third duplicate ACK\n{s}");
            assert_eq!(third.map(|row| row.ssthresh), Some(3.0), "{name}\n{s}");
            assert_eq!(s.resent().first(), Some(&6), "{name}\n{s}");
        }
        // Reno sends the paper's #619 by inflation (3 + 4 > 6), then gets one duplicate ACK, which is too
        // few: timeout.
        assert!(reno.sent(12, 1) < reno.sent(7, 2), "{name}\n{reno}");
        assert_eq!(reno.acked(6).map(|row| row.cwnd >= 3.0), Some(true), "{name}\n{reno}");
        assert_eq!(reno.counters.timeouts_by_dupacks, [0, 1, 0, 0], "{name}\n{reno}");
        assert_eq!(reno.timeouts().first().copied(), reno.sent(7, 2), "{name}\n{reno}");
        // Tahoe enters slow start at once, and its second segment is the second loss.
        assert_eq!(tahoe.resent().get(..2), Some(&[6, 7][..]), "{name}\n{tahoe}");
        assert_eq!(tahoe.sent(7, 2), tahoe.acked(6).map(|row| row.at), "{name}\n{tahoe}");
        // NewReno retransmits it after the partial ACK. SACK needs no ACK in between.
        assert_eq!(newreno.resent(), [6, 7], "{name}\n{newreno}");
        assert_eq!(newreno.sent(7, 2), newreno.acked(6).map(|row| row.at), "{name}\n{newreno}");
        assert_eq!(sack.resent(), [6, 7], "{name}\n{sack}");
        assert!(sack.sent(7, 2) <= sack.acked(6).map(|row| row.at), "{name}\n{sack}");
        let done = |s: &Sequence| s.acked(60).unwrap().at;
        assert_eq!([&tahoe, &newreno, &sack].map(|s| s.counters.timeouts), [0, 0, 0], "{name}");
        // "If multiple packet losses are consecutive, Tahoe usually outperforms Reno."
        assert!(done(&tahoe) + 0.5 < done(&reno), "{name}\n{tahoe}\n{reno}");
        assert!(done(&sack) <= done(&newreno) && done(&newreno) < done(&reno), "{name}\n{newreno}\n{sack}");
    }
}

#[test]
fn figure_8_sifest_avoids_timeout_with_tiny_window() {
    for profile in profiles() {
        for repair in ["tahoe", "reno", "newreno", "sack"] {
            let context = format!("{} {repair}", profile.name);
            // Two segments are in flight, and the first one is lost.
            let without = run(&profile, repair, &["segment 2"]);
            assert_eq!(without.timeouts().first().copied(), without.sent(2, 2), "{context}\n{without}");
            assert_eq!(without.counters.timeouts_by_dupacks, [0, 1, 0, 0], "{context}\n{without}");
            assert_eq!(without.counters.failed_dupack, 1, "{context}\n{without}");
            assert_eq!(without.counters.fast_retransmits, 0, "{context}\n{without}");

            let with = run(&profile, &format!("{repair}+sifest"), &["segment 2"]);
            let first = with.rows.iter().find(|row| matches!(row.event, Event::Dupack { n: 1, .. })).unwrap();
            assert_eq!(with.sent(2, 2), Some(first.at), "{context}\n{with}");
            assert_eq!(with.counters.timeouts, 0, "{context}\n{with}");
            assert_eq!(with.counters.fast_retransmits, 1, "{context}\n{with}");
            // `sifest` saves the wait for the timer: at least a second, minus the round trip that both need.
            assert!(
                with.acked(3).unwrap().at + 0.8 < without.acked(3).unwrap().at,
                "{context}\n{with}\n{without}"
            );
        }
    }
}

#[test]
fn sifest_avoids_timeouts_limited_transmit_cannot() {
    for profile in profiles() {
        let run = |recipe, segments, rwnd, drop| {
            let profile = profile.clone();
            Run { profile, recipe, scenario: losing(&[drop]), mss: 512, segments, rwnd }.sequence()
        };
        // P0 §4.1: with a window of two segments, Limited Transmit has no room for a segment that would help.
        // Then the second-to-last segment is lost, and the sender has no further data.
        for (rwnd, drop) in [(2, "segment 20"), (16, "segment 29")] {
            for (recipe, timeouts) in [("newreno", 1), ("newreno+limited-transmit", 1), ("newreno+sifest", 0)]
            {
                let s = run(recipe, 30, rwnd, drop);
                assert_eq!(s.counters.timeouts, timeouts, "{} {recipe}, {drop}\n{s}", profile.name);
            }
        }
    }
}

/// Segment 18 and its first three retransmissions are lost.
const FIGURE_9: [&str; 4] = [
    "segment 18",
    "segment 18 retransmission 1",
    "segment 18 retransmission 2",
    "segment 18 retransmission 3",
];

#[test]
fn figure_9_lost_retransmissions_cause_repeated_timeouts() {
    for profile in profiles() {
        // Tahoe sends no further segment that could report the loss. The other senders are limited by the
        // receive window.
        for recipe in ["tahoe", "reno", "newreno", "sack", "tahoe+sifest", "newreno+sifest"] {
            let context = format!("{} {recipe}", profile.name);
            let s = run(&profile, recipe, &FIGURE_9);
            let resent = [2, 3, 4, 5].map(|copy| s.sent(18, copy).unwrap());
            assert_eq!(s.counters.timeouts, 3, "{context}\n{s}");
            assert_eq!(s.timeouts(), resent[1..], "{context}\n{s}");
            // The paper has 0.7, 1.4 and 2.8 s. Here the timer is never shorter than a second.
            let waits = [resent[1] - resent[0], resent[2] - resent[1], resent[3] - resent[2]];
            for (wait, expected) in waits.into_iter().zip([1.0, 2.0, 4.0]) {
                assert!((wait - expected).abs() < 0.02, "{context} {waits:?}\n{s}");
            }
        }
    }
}

#[test]
fn figure_9_sifest_detects_lost_retransmissions() {
    for profile in profiles() {
        // With two segments per restart (P0 §4.2), the second one reports the loss of the first after a round
        // trip. With a larger receive window, new segments report it.
        for (recipe, rwnd) in
            [("tahoe+sifest+liw", 16), ("reno+sifest", 64), ("newreno+sifest", 64), ("sack+sifest", 64)]
        {
            let context = format!("{} {recipe}", profile.name);
            let (profile, scenario) = (profile.clone(), losing(&FIGURE_9));
            let s = Run { profile, recipe, scenario, mss: 512, segments: 120, rwnd }.sequence();
            assert_eq!((s.counters.timeouts, s.counters.lost_retransmissions), (0, 3), "{context}\n{s}");
            // Each retransmission follows a duplicate ACK that segments sent before the loss cannot have
            // caused.
            for copy in 3..=5 {
                let (before, at) = (s.sent(18, copy - 1).unwrap(), s.sent(18, copy).unwrap());
                let dupack =
                    s.rows.iter().any(|row| row.at == at && matches!(row.event, Event::Dupack { .. }));
                assert!(dupack, "{context}\n{s}");
                let dropped = s.row(Event::Dropped { segment: 18, copy: copy - 1 }).unwrap().at;
                assert!(before < dropped && dropped < at, "{context}: copy {copy}\n{s}");
            }
            // Each loss is a new congestion indication (RFC 5681 §4.3).
            assert_eq!(s.counters.window_reductions, 4, "{context}\n{s}");
            assert_eq!(s.acked(18).map(|row| row.ssthresh), Some(2.0), "{context}\n{s}");
        }
    }
}

/// Returns the packets acknowledged over P0's radio link (x, y of the preset) within 100 s, and the counters,
/// summed over five seeds.
fn hundred_seconds(preset: &str, recipe: &str) -> (u64, Counters) {
    let host = |profile: Profile| profile.with(|it| it.handshake.mss = Some(512));
    let mut sum = (0, Counters::default());
    for seed in 1..=5 {
        let flow = Flow { receive_buffer: Some(8192), ..Flow::down(Length::Endless) };
        let mut world = World::new(WorldConfig {
            scenario: Scenario::load(preset).unwrap(),
            seed,
            fixed: HostSpec { profile: host(Profile::ns2()), recipe: recipe.parse().unwrap() },
            mobile: HostSpec { profile: host(HostSpec::receiver().profile), ..HostSpec::receiver() },
            flows: vec![flow],
        })
        .unwrap();
        world.run_until(Instant::from_secs(100)).unwrap();
        let result = world.result(0);
        sum.0 += result.statistics.bytes_acked / 512;
        sum.1.timeouts += result.counters.timeouts;
        sum.1.failed_dupack += result.counters.failed_dupack;
        sum.1.fast_retransmits += result.counters.fast_retransmits;
    }
    sum
}

#[test]
fn figure_12_sifest_replaces_timeouts_by_fast_retransmits() {
    for repair in ["tahoe", "reno", "newreno", "sack"] {
        let (acked, without) = hundred_seconds("sifest-resent", repair);
        let (more, with) = hundred_seconds("sifest-resent", &format!("{repair}+sifest"));
        let context = format!("{repair}: {acked} {without:?}\n{more} {with:?}");
        // P0 Fig. 11a shows 19 % (Tahoe) and 27 % (Reno).
        assert!(more as f64 > 1.1 * acked as f64, "{context}");
        assert!(with.timeouts as f64 <= 0.6 * without.timeouts as f64, "{context}");
        assert!(with.fast_retransmits > without.fast_retransmits, "{context}");
        // Fig. 10: most timeouts were avoidable, and now hardly any are.
        assert!(u64::from(without.failed_dupack) * 2 > without.timeouts, "{context}");
        assert!(u64::from(with.failed_dupack) * 3 < with.timeouts, "{context}");
        // "When the error rate is comparatively low, the difference is quite trivial."
        let (few, _) = hundred_seconds("sifest-clustered", repair);
        let (fewer, _) = hundred_seconds("sifest-clustered", &format!("{repair}+sifest"));
        let gain = fewer as f64 / few as f64;
        assert!((0.97..1.08).contains(&gain), "{repair}: {few} {fewer}");
    }
}

#[test]
fn sifest_stays_passive_on_queue_overflow() {
    // The only losses are queue drops, with windows of up to a hundred segments. `sifest` must not detect
    // additional losses.
    for packets in [5, 10, 20, 50, 100] {
        for repair in ["reno", "newreno"] {
            let run = |recipe: &str| {
                let scenario = PATH.replace("128kbit", "2Mbit").replace(
                    "delay = \"25ms\"",
                    &format!("delay = \"50ms\", queue = {{ packets = {packets} }}"),
                );
                let mut world = World::one_flow(&scenario, recipe, 2_000_000, 1).unwrap();
                assert!(world.run_to_end(Duration::from_secs(600)).unwrap());
                (world.result(0).counters, world.result(0).took(), world.time_sequence(0))
            };
            let (without, with) = (run(repair), run(&format!("{repair}+sifest")));
            assert_eq!((&with.0, with.1), (&without.0, without.1), "{repair}, {packets} packets\n{}", with.2);
        }
    }
}
