//! Explicit congestion notification (RFC 3168) over queues that mark: who offers it sees CE, and loses nothing.

use std::sync::{Arc, Mutex};

use airlink::capture::Tap;
use airlink::packet::Direction;
use airlink::path::{FIXED, MOBILE};
use airlink::scenario::Scenario;
use airlink::stage::Why;
use airtcp_sim::world::{Flow, HostSpec, Length, World, WorldConfig};
use airwire::segment::{Ecn, Flags, parse_ip, parse_tcp};
use airwire::time::{Duration, Instant};

const ROUND_TRIP: Duration = Duration::from_millis(40);

fn scenario(queue: &str) -> String {
    format!(
        "schema = 1\n[[stage]]\nkind = \"link\"\nname = \"wire\"\ndown = {{ rate = \"5Mbit\", delay = \"20ms\", queue = \
         {{ {queue} }} }}\nup = {{ rate = \"5Mbit\", delay = \"20ms\" }}\n"
    )
}

/// What TCP segments at one end of the path said of congestion.
#[derive(Clone, Copy)]
struct Said {
    at: Instant,
    data: bool,
    ecn: Ecn,
    flags: Flags,
}

#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Said>>>);

impl Tap for Heard {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        let ip = parse_ip(packet).expect("its checksum is right, also of a marked one");
        let segment = parse_tcp(&ip).unwrap();
        let data = !segment.payload.is_empty();
        self.0.lock().unwrap().push(Said { at, data, ecn: ip.ecn, flags: segment.flags });
    }
}

impl Heard {
    fn all(&self) -> Vec<Said> {
        self.0.lock().unwrap().clone()
    }
}

/// Sends 3 MB down. What was heard at both ends, and the world.
fn send(queue: &str, recipe: &str) -> (World, Vec<Said>, Vec<Said>) {
    let sender = || HostSpec::sender(recipe.parse().unwrap());
    let scenario = Scenario::parse(&scenario(queue), "test").unwrap();
    let flows = vec![Flow::down(Length::Octets(3_000_000))];
    let mut world =
        World::new(WorldConfig { scenario, seed: 1, fixed: sender(), mobile: sender(), flows }).unwrap();
    let (fixed, mobile) = (Heard::default(), Heard::default());
    world.tap(FIXED, fixed.clone());
    world.tap(MOBILE, mobile.clone());
    assert!(world.run_to_end(Duration::from_secs(600)).unwrap(), "{queue} {recipe}");
    assert_eq!(world.result(0).delivered, 3_000_000);
    (world, fixed.all(), mobile.all())
}

const QUEUES: [&str; 4] = [
    "discipline = \"codel\", ecn = true",
    "discipline = \"fq-codel\"",
    // Slow start takes the probability to where PIE drops.
    "discipline = \"pie\", ecn = true, mark_ecnth = \"100%\"",
    "discipline = \"red\", ecn = true, max_p = \"10%\", weight = 0.02",
];

#[test]
fn a_sender_that_offers_ecn_slows_down_once_a_round_trip_and_loses_nothing() {
    for queue in QUEUES {
        for recipe in ["newreno+ecn", "sack+ecn"] {
            let (mut world, fixed, mobile) = send(queue, recipe);
            let counters = world.result(0).counters;
            let totals = &world.totals()[Direction::Down];
            assert_eq!(totals.dropped.iter().sum::<u64>(), 0, "{queue} {recipe}");
            assert_eq!((counters.resent(), counters.timeouts), (0, 0), "{queue} {recipe}");
            let marked = mobile.iter().filter(|said| said.data && said.ecn == Ecn::Ce).count() as u64;
            let stats = world.path().stats();
            assert_eq!(stats["wire"]["down"]["queue"]["marked"], marked, "{queue} {recipe}: {stats}");
            assert!(marked > 2, "{queue} {recipe}: {marked} marked");
            assert!(fixed.iter().all(|said| said.ecn != Ecn::Ce), "only the queue marks");
            // What it says with CWR, and what it does, is the same; and no more than once in a round trip.
            let slowed: Vec<Instant> = fixed
                .iter()
                .filter(|said| said.data && said.flags.contains(Flags::CWR))
                .map(|said| said.at)
                .collect();
            assert_eq!(slowed.len() as u64, counters.window_reductions, "{queue} {recipe}");
            assert!(slowed.len() > 1, "{queue} {recipe}: {slowed:?}");
            // Each of them is for a mark of its own, and none for the echo of one that it has heeded.
            assert!(slowed.len() as u64 <= marked, "{queue} {recipe}: {} for {marked} marks", slowed.len());
            assert!(
                slowed.windows(2).all(|pair| pair[1] - pair[0] >= ROUND_TRIP),
                "{queue} {recipe}: {slowed:?}"
            );
            // The receiver repeats it until it hears that.
            let echoes = fixed.iter().filter(|said| !said.data && said.flags.contains(Flags::ECE)).count();
            assert!(echoes > slowed.len(), "{queue} {recipe}: {echoes}");
        }
    }
}

#[test]
fn a_sender_that_does_not_offer_it_has_its_packets_dropped() {
    for queue in QUEUES {
        let (world, _, mobile) = send(queue, "sack");
        let totals = &world.totals()[Direction::Down];
        assert!(totals.dropped_for(Why::Aqm) > 0, "{queue}");
        assert_eq!(totals.dropped_for(Why::QueueFull), 0, "{queue}");
        assert!(mobile.iter().all(|said| said.ecn == Ecn::NotEct), "{queue}");
        assert!(world.result(0).counters.resent() > 0, "{queue}");
    }
}
