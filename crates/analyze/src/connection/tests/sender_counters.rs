//! Compares captures of senders in virtual time with the senders' own counters.

use std::cell::RefCell;

use aircaptures::packet::{Packet, Timestamp};
use airtcp_sim::world::{FlowResult, World};
use airtcp_testkit::sample::size;
use airwire::segment::{self, Flags};
use airwire::time::Instant;

use crate::connection::findings::*;
use crate::connection::{Connection, Ended, Keep};
use crate::test_support::{LATE, Recording, run_flow, scenario};

fn analyze(recording: &Recording) -> Ended {
    let mut packets =
        recording.iter().zip(1..).map(|((at, bytes), number)| packet(number, *at, bytes)).peekable();
    let mut connection = Connection::new(packets.peek().unwrap(), Keep::Trace);
    packets.for_each(|packet| connection.process(&packet));
    connection.finish(0)
}

fn packet(number: u64, at: Instant, bytes: &[u8]) -> Packet {
    let segment = segment::parse(bytes).unwrap();
    Packet {
        number,
        at: Timestamp(at.as_nanos() as i64),
        seq: segment.seq,
        ack: segment.flags.contains(Flags::ACK).then_some(segment.ack),
        flags: segment.flags,
        window: segment.window,
        ecn: segment.ecn,
        len: segment.payload.len() as u32,
        ip_id: Some(u16::from_be_bytes([bytes[4], bytes[5]])),
        options: segment.options,
        ..crate::test_support::packet(segment.src, segment.dst)
    }
}

pub(super) struct Both {
    pub(super) sender: Ended,
    receiver: Recording,
    pub(super) truth: FlowResult,
    /// Number of lost data packets. `lost_copies` is the number of retransmissions among them.
    lost: u64,
    lost_copies: u64,
    world: RefCell<World>,
}

pub(super) fn run(scenario: &str, recipe: &str, bytes: u64, seed: u64) -> Both {
    let (world, [fixed, mobile]) = run_flow(scenario, recipe, bytes, seed);
    let losses = world.losses(0).as_slice();
    let lost_copies = losses.iter().filter(|dropped| dropped.copy > 1).count() as u64;
    Both {
        sender: analyze(&fixed),
        receiver: mobile,
        truth: world.result(0),
        lost: losses.len() as u64,
        lost_copies,
        world: RefCell::new(world),
    }
}

impl Both {
    /// Returns the time sequence of the transfer, for failure messages.
    fn text(&self) -> String {
        self.world.borrow_mut().time_sequence(0)
    }
}

const LOSSY: &str = scenario!(
    r#"rate = "2Mbit", delay = "50ms", queue = { packets = 30 }"#,
    "kind = \"loss\"\ndown = { model = \"uniform\", per = \"3%\" }"
);

pub(super) fn retransmissions(ended: &Ended) -> &Retransmissions {
    &ended.findings.directions[0].retransmissions
}

#[test]
fn retransmissions_and_timeouts_match_sender_counters() {
    let recipes = [
        "tahoe",
        "reno",
        "newreno",
        "newreno+no-timestamps",
        "newreno+limited-transmit",
        "newreno+sifest",
        "newreno+fast-timeout",
        "sack",
        "sack+sifest+liw",
        "sack+prr",
        "sack+eifel",
        "sack+cubic",
    ];
    for (recipe, seed) in recipes.iter().flat_map(|recipe| (1..=size(2, 4)).map(move |seed| (recipe, seed))) {
        let run = run(LOSSY, recipe, 1_000_000, seed);
        let (truth, found) = (&run.truth.counters, retransmissions(&run.sender));
        let who = || format!("{recipe} {seed}: {truth:?}\n{found:?}\n{}", run.text());
        assert_eq!(run.sender.findings.capture_at, CapturePoint::End { end: 0 }, "{}", who());
        assert_eq!(found.packets, truth.resent(), "{}", who());
        assert_eq!(found.bytes, run.truth.statistics.bytes_resent, "{}", who());
        assert_eq!(found.timeouts, truth.timeouts, "{}", who());
        assert_eq!(found.timeouts_by_dupacks, truth.timeouts_by_dupacks.map(u64::from), "{}", who());
        assert_eq!(found.spurious.timeouts, truth.spurious_timeouts, "{}", who());
        assert_eq!(run.sender.findings.directions[0].acked_bytes, 1_000_000, "{}", who());
        // A capture does not show whether sifest's second copy is a separate event.
        assert!(found.fast_retransmits.abs_diff(truth.fast_retransmits) <= 1, "{}", who());
        // Tahoe treats a fast retransmit as a restart: less data is outstanding in the pass, and its
        // retransmissions are attributed to the timer.
        if *recipe != "tahoe" {
            assert_eq!(found.failed_dupack, u64::from(truth.failed_dupack), "{}", who());
            // If a fast recovery begins during a restart, a segment may be attributed to either.
            assert!(found.timeout.abs_diff(truth.resent_timeout) <= 2, "{}", who());
            // sifest may detect the loss of the next segment at an ACK for new data. The capture does not
            // show this.
            assert!(found.unexplained <= u64::from(recipe.contains("sifest")), "{}", who());
        }
    }
}

#[test]
fn partial_ack_handling_and_limited_transmit_are_inferred() {
    for (recipe, partial_acks) in [
        ("tahoe", PartialAcks::Tahoe),
        ("reno", PartialAcks::Reno),
        ("newreno", PartialAcks::NewReno),
        ("sack", PartialAcks::Sack),
    ] {
        for (options, window, limited) in
            [("+no-limited-transmit", 10, Evidence::No), ("+limited-transmit+liw", 2, Evidence::Yes)]
        {
            let sender = run(LOSSY, &format!("{recipe}{options}"), 2_000_000, 1).sender;
            let sender = &sender.findings.directions[0].sender;
            assert_eq!(sender.partial_acks, partial_acks, "{recipe}");
            assert_eq!(sender.initial_window_segments, Some(window), "{recipe}{options}");
            assert_eq!(sender.limited_transmit, limited, "{recipe}{options}");
            assert_eq!(sender.longest_segment_bytes, 1448);
        }
    }
}

#[test]
fn spurious_timeout_is_proven_from_capture() {
    for recipe in ["newreno+eifel", "sack+eifel", "newreno", "sack+dsack", "sack+frto"] {
        let run = run(LATE, recipe, 1_000_000, 1);
        let found = retransmissions(&run.sender);
        let who = || format!("{recipe}: {:?}\n{found:?}\n{}", run.truth.counters, run.text());
        assert_eq!(found.packets, run.truth.counters.resent(), "{}", who());
        assert_eq!(found.timeouts, run.truth.counters.timeouts, "{}", who());
        assert!(found.spurious.timeouts > 0 && found.spurious.packets <= found.packets, "{}", who());
    }
}

#[test]
fn receiver_capture_agrees_with_sender_capture() {
    for recipe in ["newreno", "sack"] {
        let run = run(LOSSY, recipe, 1_000_000, 1);
        let receiver = analyze(&run.receiver);
        let [at_sender, at_receiver] = [&run.sender, &receiver].map(|ended| &ended.findings.directions[0]);
        assert_eq!(receiver.findings.capture_at, CapturePoint::End { end: 1 });
        assert_eq!(at_receiver.rtt_of, RttOf::ReceiverDelay);
        assert_eq!((at_receiver.acked_bytes, at_receiver.acked_unseen_bytes), (1_000_000, 0));
        assert_eq!(at_receiver.arrivals.out_of_order, 0, "{recipe}: nothing is reordered on this path");
        let lost = run.lost;
        assert_eq!(at_receiver.data_packets + lost, at_sender.data_packets, "{recipe}");
        let again = [at_sender, at_receiver].map(|direction| &direction.retransmissions);
        // Every loss is a hole in this capture until its retransmission arrives. Losses after the last
        // captured segment are invisible. Lost retransmissions never arrive.
        let (arrived, holes) = (again[0].packets - run.lost_copies, run.lost - run.lost_copies);
        assert!((arrived - 3..=arrived).contains(&again[1].packets), "{recipe}: {again:?}");
        assert!((holes - 3..=holes).contains(&again[1].lost_before_capture), "{recipe}: {again:?}");
    }
}

#[test]
fn receiver_capture_names_same_congestion_control() {
    const FEW_LOSSES: &str = scenario!(
        r#"rate = "4Mbit", delay = "20ms", queue = { packets = 20 }"#,
        "kind = \"loss\"\ndown = { model = \"uniform\", per = \"0.3%\" }"
    );
    for recipe in ["sack", "sack+cubic"] {
        let run = run(FEW_LOSSES, recipe, 8_000_000, 1);
        let receiver = analyze(&run.receiver);
        let [at_sender, at_receiver] = [&run.sender, &receiver].map(|ended| {
            let found = &ended.findings.directions[0].sender.congestion_control;
            (found.name, found.or.clone(), found.evidence.clone())
        });
        assert!(at_sender.0.is_some(), "{recipe}: {at_sender:?}");
        assert_eq!((at_receiver.0, &at_receiver.1), (at_sender.0, &at_sender.1), "{at_receiver:?}");
    }
}
