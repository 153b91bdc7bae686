use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use airlink::capture::Tap;
use airlink::path::FIXED;
use airlink::scenario::Scenario;
use airwire::segment::{self, Flags};

use super::*;
use crate::world::{HostSpec, World, WorldConfig};

/// Counts data segments, and the data segments with PSH.
#[derive(Clone, Default)]
struct Seen {
    text: Arc<AtomicU64>,
    pushed: Arc<AtomicU64>,
}

impl Tap for Seen {
    fn packet(&mut self, _at: Instant, packet: &[u8]) {
        let segment = segment::parse(packet).unwrap();
        if segment.dst.port() < 1000 && !segment.payload.is_empty() {
            self.text.fetch_add(1, Relaxed);
            self.pushed.fetch_add(u64::from(segment.flags.contains(Flags::PSH)), Relaxed);
        }
    }
}

/// A segment with PSH is the last one of the data that the application has written, except in a profile that
/// keeps pushes: it also sets PSH after half a window and at the end of bursts.
#[test]
fn sender_is_never_limited_by_application() {
    let scenario = "schema = 1\n\
        [[stage]]\nkind = \"link\"\nboth = { rate = \"2Mbit\", delay = \"40ms\", queue = { packets = 30 } }\n\
        [[stage]]\nkind = \"loss\"\nboth = { model = \"uniform\", per = \"2%\" }\n";
    let recipes = [
        "tahoe",
        "reno",
        "newreno",
        "sack",
        "sack+rack",
        "sack+pr",
        "sack+dcr",
        "sack+frto+eifel",
        "cubic+sack+prr",
        "linux",
        "reno-linux",
        "bbr-linux",
        "bbr3+sack",
        "westwood",
        "vegas-window",
        "sack+pacing",
        "receiver-window",
        "newreno+fast-timeout",
        "newreno+sifest+limited-transmit",
        "newreno+iw10+mss=536",
    ];
    for recipe in recipes {
        for (profile, receive_buffer) in
            [(Profile::default(), 60_000), (Profile::linux(), 60_000), (Profile::ns2(), 8_000)]
        {
            let seen = Seen::default();
            let keeps_pushes = profile.sending.keeps_pushes;
            let mut world = World::new(WorldConfig {
                scenario: Scenario::parse(scenario, "scenario").unwrap(),
                seed: 1,
                fixed: HostSpec { profile, recipe: recipe.parse().unwrap() },
                mobile: HostSpec::receiver(),
                flows: vec![Flow { receive_buffer: Some(receive_buffer), ..Flow::down(Length::Endless) }],
            })
            .unwrap();
            world.tap(FIXED, seen.clone());
            world.run_until(Instant::from_secs(15)).unwrap();
            let (text, pushed) = (seen.text.load(Relaxed), seen.pushed.load(Relaxed));
            assert!(text > 50, "{recipe}: only {text} segments");
            if !keeps_pushes {
                assert_eq!(pushed, 0, "{recipe}: segments with PSH, of {text}");
            }
        }
    }
}

/// Only a few segments of unsent data are buffered, even after the window has been large.
#[test]
fn unsent_data_buffer_stays_small() {
    let scenario = "schema = 1\n\
        [[stage]]\nkind = \"link\"\nboth = { rate = \"2Mbit\", delay = \"40ms\", queue = { packets = 30 } }\n";
    let mut world = World::one_flow(scenario, "newreno", 10_000_000, 1).unwrap();
    let mut most = 0;
    for second in 1..30 {
        world.run_until(Instant::from_secs(second)).unwrap();
        let sender = world.sender(0).unwrap();
        assert!(sender.unacknowledged() > 20_000, "{} at {second} s", sender.unacknowledged());
        most = most.max(sender.unsent() as u64 / sender.smss());
    }
    assert!(most <= 2 + MIN_WRITE_SEGMENTS + 2, "{most} segments");
}

#[test]
fn only_unwatched_packets_on_path_that_ignores_bytes_are_abbreviated() {
    let link = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"2Mbit\", delay = \"5ms\" }\n";
    let corrupt = "[[stage]]\nkind = \"corrupt\"\ndown.chance = \"0.01%\"\n";
    let list = "[[stage]]\nkind = \"loss\"\ndown = { model = \"list\", drop = [\"segment 3\"] }\n";
    let abbreviates = |scenario: &str, watch| {
        let mut world = World::new(WorldConfig {
            scenario: Scenario::parse(scenario, "scenario").unwrap(),
            seed: 1,
            fixed: HostSpec::sender("newreno".parse().unwrap()),
            mobile: HostSpec::receiver(),
            flows: vec![Flow { watch, ..Flow::down(Length::Octets(50_000)) }],
        })
        .unwrap();
        assert!(world.run_to_end(Duration::from_secs(60)).unwrap());
        world.abbreviates
    };
    assert!(abbreviates(link, Watch::Results));
    assert!(!abbreviates(link, Watch::Decisions));
    assert!(!abbreviates(&format!("{link}{corrupt}"), Watch::Results));
    assert!(!abbreviates(&format!("{link}{list}"), Watch::Results));
}

#[test]
fn streams_of_flows_do_not_overlap() {
    let mut starts: Vec<_> = [0, 1, 2, 999_999]
        .into_iter()
        .flat_map(|index| Direction::BOTH.map(|direction| first_position(direction, index)))
        .collect();
    starts.sort_unstable();
    assert!(starts.is_sorted_by(|a, b| b - a >= 1 << MAX_LENGTH_BITS), "{starts:?}");
}
