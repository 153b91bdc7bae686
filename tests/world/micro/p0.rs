//! P0 §3.3: what happens to a sender over a radio link that loses in clusters, and what sifest makes of it (§4).
//!
//! The path of §3.1 without the voice: 128 kbit/s of radio, so 34.5 ms for a segment of 512 octets, and a round trip
//! of 110 ms without a queue. The paper's runs lose at random; here exactly what the figures show lost.

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

/// A receiver window of 8 kB, 16 segments; and in both profiles a connection begins with one.
fn run(profile: &Profile, recipe: &str, drop: &[&str]) -> Sequence {
    let recipe = if profile.name == "ns2" || recipe.contains("liw") {
        recipe.to_owned()
    } else {
        format!("{recipe}+iw=1")
    };
    Run {
        profile: profile.clone(),
        recipe: &recipe,
        scenario: losing(drop),
        mss: 512,
        segments: 60,
        rwnd: 16,
    }
    .go()
}

fn profiles() -> [Profile; 2] {
    [Profile::ns2(), Profile::default()]
}

#[test]
fn figure_7_two_losses_in_one_window() {
    // The paper's #613 and #614 of a window of six: here 6 and 7, when five ACKs have opened cwnd to six.
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
        // Reno: the paper's #619, by inflation (3 + 4 > 6), then one duplicate ACK, which is too few: a timeout.
        assert!(reno.sent(12, 1) < reno.sent(7, 2), "{name}\n{reno}");
        assert_eq!(reno.acked(6).map(|row| row.cwnd >= 3.0), Some(true), "{name}\n{reno}");
        assert_eq!(reno.counters.timeouts_by_dupacks, [0, 1, 0, 0], "{name}\n{reno}");
        assert_eq!(reno.timeouts().first().copied(), reno.sent(7, 2), "{name}\n{reno}");
        // Tahoe slow-starts at once, and its second segment is the second loss.
        assert_eq!(tahoe.resent().get(..2), Some(&[6, 7][..]), "{name}\n{tahoe}");
        assert_eq!(tahoe.sent(7, 2), tahoe.acked(6).map(|row| row.at), "{name}\n{tahoe}");
        // NewReno sends it for the partial ACK, SACK needs no ACK in between.
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
fn figure_8_a_tiny_window() {
    for profile in profiles() {
        for repair in ["tahoe", "reno", "newreno", "sack"] {
            let context = format!("{} {repair}", profile.name);
            // Two segments in the path, the first of them is lost.
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
            // The wait for the timer is what it saves: at least a second, less the round trip that both need.
            assert!(
                with.acked(3).unwrap().at + 0.8 < without.acked(3).unwrap().at,
                "{context}\n{with}\n{without}"
            );
        }
    }
}

#[test]
fn a_receiver_that_has_little_room_and_a_transfer_that_ends() {
    for profile in profiles() {
        let run = |recipe, segments, rwnd, drop| {
            let profile = profile.clone();
            Run { profile, recipe, scenario: losing(&[drop]), mss: 512, segments, rwnd }.go()
        };
        // P0 §4.1: a window of two segments. Limited Transmit has no room for a segment that could help.
        for (recipe, timeouts) in [("newreno", 1), ("newreno+limited-transmit", 1), ("newreno+sifest", 0)] {
            let s = run(recipe, 30, 2, "segment 20");
            assert_eq!(s.counters.timeouts, timeouts, "{} {recipe}\n{s}", profile.name);
        }
        // The last but one. Here nothing is left to be sent.
        for (recipe, timeouts) in [("newreno", 1), ("newreno+limited-transmit", 1), ("newreno+sifest", 0)] {
            let s = run(recipe, 30, 16, "segment 29");
            assert_eq!(s.counters.timeouts, timeouts, "{} {recipe}\n{s}", profile.name);
        }
    }
}

/// Segment 18 is lost, and each time that it is sent again but the fourth.
const FIGURE_9: [&str; 4] = [
    "segment 18",
    "segment 18 retransmission 1",
    "segment 18 retransmission 2",
    "segment 18 retransmission 3",
];

#[test]
fn figure_9_the_resent_segment_is_lost() {
    for profile in profiles() {
        // Tahoe sends nothing that could report the loss, and here the receiver's window keeps the others from it.
        for recipe in ["tahoe", "reno", "newreno", "sack", "tahoe+sifest", "newreno+sifest"] {
            let context = format!("{} {recipe}", profile.name);
            let s = run(&profile, recipe, &FIGURE_9);
            let resent = [2, 3, 4, 5].map(|copy| s.sent(18, copy).unwrap());
            assert_eq!(s.counters.timeouts, 3, "{context}\n{s}");
            assert_eq!(s.timeouts(), resent[1..], "{context}\n{s}");
            // The paper's 0.7, 1.4 and 2.8 s; here the timer is never shorter than a second.
            let waits = [resent[1] - resent[0], resent[2] - resent[1], resent[3] - resent[2]];
            for (wait, expected) in waits.into_iter().zip([1.0, 2.0, 4.0]) {
                assert!((wait - expected).abs() < 0.02, "{context} {waits:?}\n{s}");
            }
        }
    }
}

#[test]
fn figure_9_with_sifest_where_there_are_duplicate_acks() {
    for profile in profiles() {
        // Two segments at each restart (P0 §4.2): the second reports that the first was lost, a round trip later.
        // A receiver with more room: new segments report it.
        for (recipe, rwnd) in
            [("tahoe+sifest+liw", 16), ("reno+sifest", 64), ("newreno+sifest", 64), ("sack+sifest", 64)]
        {
            let context = format!("{} {recipe}", profile.name);
            let s = Run {
                profile: profile.clone(),
                recipe,
                scenario: losing(&FIGURE_9),
                mss: 512,
                segments: 120,
                rwnd,
            }
            .go();
            assert_eq!((s.counters.timeouts, s.counters.resent_again), (0, 3), "{context}\n{s}");
            // Each time for a duplicate ACK, and one that cannot be of what left before.
            for copy in 3..=5 {
                let (before, at) = (s.sent(18, copy - 1).unwrap(), s.sent(18, copy).unwrap());
                let dupack =
                    s.rows.iter().any(|row| row.at == at && matches!(row.event, Event::Dupack { .. }));
                assert!(dupack, "{context}\n{s}");
                let dropped = s.row(Event::Dropped { segment: 18, copy: copy - 1 }).unwrap().at;
                assert!(before < dropped && dropped < at, "{context}: copy {copy}\n{s}");
            }
            // RFC 5681 §4.3: every time it is a new sign.
            assert_eq!(s.counters.window_reductions, 4, "{context}\n{s}");
            assert_eq!(s.acked(18).map(|row| row.ssthresh), Some(2.0), "{context}\n{s}");
        }
    }
}

/// P0's own radio (x, y by preset) for 100 s: what became of it, over some seeds.
fn hundred_seconds(preset: &str, recipe: &str) -> (u64, Counters) {
    let host = |profile: Profile| Profile { mss: Some(512), ..profile };
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
fn figure_12_half_of_the_timeouts_become_fast_retransmits() {
    for repair in ["tahoe", "reno", "newreno", "sack"] {
        let (acked, without) = hundred_seconds("sifest-resent", repair);
        let (more, with) = hundred_seconds("sifest-resent", &format!("{repair}+sifest"));
        let context = format!("{repair}: {acked} {without:?}\n{more} {with:?}");
        // P0 Fig. 11a has 19 % (Tahoe) and 27 % (Reno).
        assert!(more as f64 > 1.1 * acked as f64, "{context}");
        assert!(with.timeouts as f64 <= 0.6 * without.timeouts as f64, "{context}");
        assert!(with.fast_retransmits > without.fast_retransmits, "{context}");
        // Fig. 10: most timeouts could have been avoided, and now hardly any.
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
fn over_a_queue_that_overflows_sifest_is_quiet() {
    // Nothing but congestion, with windows of up to a hundred segments: what sifest finds is what the others find.
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
