//! Explicit congestion notification (RFC 3168): the queues mark the packets of an ECN sender instead of
//! dropping them.

use std::sync::{Arc, Mutex};

use airlink::capture::Tap;
use airlink::packet::Direction;
use airlink::path::{FIXED, MOBILE};
use airlink::scenario::Scenario;
use airlink::stage::DropReason;
use airtcp_sim::world::{Flow, HostSpec, Length, World, WorldConfig};
use airwire::segment::{self, Ecn, Flags};
use airwire::time::{Duration, Instant};

const ROUND_TRIP: Duration = Duration::from_millis(40);

fn scenario(queue: &str) -> String {
    format!(
        "schema = 1\n[[stage]]\nkind = \"link\"\nname = \"wire\"\ndown = {{ rate = \"5Mbit\", delay = \"20ms\", queue = \
         {{ {queue} }} }}\nup = {{ rate = \"5Mbit\", delay = \"20ms\" }}\n"
    )
}

/// The congestion information of a TCP segment, captured at one end of the path.
#[derive(Clone, Copy)]
struct TappedSegment {
    at: Instant,
    data: bool,
    ecn: Ecn,
    flags: Flags,
}

#[derive(Clone, Default)]
struct SegmentLog(Arc<Mutex<Vec<TappedSegment>>>);

impl Tap for SegmentLog {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        let segment = segment::parse(packet).expect("the checksum is valid even if the packet is marked");
        let data = !segment.payload.is_empty();
        self.0.lock().unwrap().push(TappedSegment { at, data, ecn: segment.ecn, flags: segment.flags });
    }
}

impl SegmentLog {
    fn all(&self) -> Vec<TappedSegment> {
        self.0.lock().unwrap().clone()
    }
}

/// Sends 3 MB down. Returns the world, and the segments captured at both ends.
fn send(queue: &str, recipe: &str) -> (World, Vec<TappedSegment>, Vec<TappedSegment>) {
    let sender = || HostSpec::sender(recipe.parse().unwrap());
    let scenario = Scenario::parse(&scenario(queue), "test").unwrap();
    let flows = vec![Flow::down(Length::Octets(3_000_000))];
    let mut world =
        World::new(WorldConfig { scenario, seed: 1, fixed: sender(), mobile: sender(), flows }).unwrap();
    let (fixed, mobile) = (SegmentLog::default(), SegmentLog::default());
    world.tap(FIXED, fixed.clone());
    world.tap(MOBILE, mobile.clone());
    assert!(world.run_to_end(Duration::from_secs(600)).unwrap(), "{queue} {recipe}");
    assert_eq!(world.result(0).delivered, 3_000_000);
    (world, fixed.all(), mobile.all())
}

const QUEUES: [&str; 4] = [
    "discipline = \"codel\", ecn = true",
    "discipline = \"fq-codel\"",
    // In slow start, PIE's probability reaches the range in which PIE drops.
    "discipline = \"pie\", ecn = true, mark_ecnth = \"100%\"",
    "discipline = \"red\", ecn = true, max_p = \"10%\", weight = 0.02",
];

#[test]
fn ecn_sender_reduces_once_per_rtt_without_loss() {
    for queue in QUEUES {
        for recipe in ["newreno+ecn", "sack+ecn"] {
            let (mut world, fixed, mobile) = send(queue, recipe);
            let counters = world.result(0).counters;
            let totals = &world.totals()[Direction::Down];
            assert_eq!(totals.dropped.iter().sum::<u64>(), 0, "{queue} {recipe}");
            assert_eq!((counters.resent(), counters.timeouts), (0, 0), "{queue} {recipe}");
            let marked =
                mobile.iter().filter(|segment| segment.data && segment.ecn == Ecn::Ce).count() as u64;
            let stats = world.path().stats();
            assert_eq!(stats["wire"]["down"]["queue"]["marked"], marked, "{queue} {recipe}: {stats}");
            assert!(marked > 2, "{queue} {recipe}: {marked} marked");
            assert!(fixed.iter().all(|segment| segment.ecn != Ecn::Ce), "only the queue marks");
            // CWR signals exactly the reductions that the sender makes, at most one per round trip.
            let reduced_at: Vec<Instant> = fixed
                .iter()
                .filter(|segment| segment.data && segment.flags.contains(Flags::CWR))
                .map(|segment| segment.at)
                .collect();
            assert_eq!(reduced_at.len() as u64, counters.window_reductions, "{queue} {recipe}");
            assert!(reduced_at.len() > 1, "{queue} {recipe}: {reduced_at:?}");
            // Each reduction responds to a new mark, not to the repeated echo of an earlier one.
            assert!(
                reduced_at.len() as u64 <= marked,
                "{queue} {recipe}: {} for {marked} marks",
                reduced_at.len()
            );
            assert!(
                reduced_at.windows(2).all(|pair| pair[1] - pair[0] >= ROUND_TRIP),
                "{queue} {recipe}: {reduced_at:?}"
            );
            // The receiver repeats ECE until it receives CWR.
            let echoes =
                fixed.iter().filter(|segment| !segment.data && segment.flags.contains(Flags::ECE)).count();
            assert!(echoes > reduced_at.len(), "{queue} {recipe}: {echoes}");
        }
    }
}

#[test]
fn non_ecn_sender_gets_drops_instead_of_marks() {
    for queue in QUEUES {
        let (world, _, mobile) = send(queue, "sack");
        let totals = &world.totals()[Direction::Down];
        assert!(totals.dropped_for(DropReason::Aqm) > 0, "{queue}");
        assert_eq!(totals.dropped_for(DropReason::QueueFull), 0, "{queue}");
        assert!(mobile.iter().all(|segment| segment.ecn == Ecn::NotEct), "{queue}");
        assert!(world.result(0).counters.resent() > 0, "{queue}");
    }
}
