//! Recording of flows: follows their packets through the path, and notes them at the sender's
//! device.

use std::collections::BTreeMap;
use std::fmt::Write;

use airlink::packet::{Direction, PacketId, PerDirection};
use airlink::path::Path;
use airlink::stage::{DropReason, Event, Incident, RadioPdu, Record};
use airtcp::recovery::{Decision, Truth};
use airwire::segment::{self, Flags, Segment};
use airwire::seq::Seq;
use airwire::time::Instant;

use super::truth::{Dropped, Losses};

/// Level of detail recorded for a flow. Each level includes all lower levels. Lower levels are
/// faster, and the lowest costs nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Watch {
    /// The result and its counters.
    #[default]
    Results,
    /// Also the sender's decisions, and the causes of packet losses.
    Decisions,
    /// Also every packet at the sender's device.
    Packets,
}

/// A packet at the sender's device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DevicePacket {
    /// Time of sending or arrival.
    pub at: Instant,
    /// Kind and content of the packet.
    pub kind: PacketKind,
}

/// The kind of a packet. Offsets are counted as in the decision trace: the SYN is at 0, the first
/// byte at 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// The sender sent data, a SYN or a FIN.
    Sent {
        /// Start offset.
        offset: u64,
        /// Length in sequence space.
        len: u64,
        /// Number of the transmission; 1 is the first, and higher numbers are retransmissions.
        copy: u32,
    },
    /// An ACK arrived.
    Ack {
        /// The next offset that the receiver expects.
        ack: u64,
        /// Whether the sender counted it as a duplicate ACK.
        duplicate: bool,
        /// SACK blocks as (left, right), in the order of the option. Blocks outside the sent data
        /// are left out.
        sacked: Vec<(u64, u64)>,
    },
}

/// The outcome of a packet in the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathOutcome {
    /// The packet is still in the path.
    InPath,
    /// The packet left the path at the other end.
    Arrived,
    /// A stage dropped the packet.
    Dropped(DropReason),
}

/// The outcomes of the hosts' packets, by direction and number. They allow a comparison of two runs
/// packet by packet.
#[derive(Default)]
struct Outcomes {
    of: PerDirection<Vec<PathOutcome>>,
    inside: BTreeMap<PacketId, usize>,
}

impl Outcomes {
    fn take(&mut self, record: &Record) {
        let outcomes = &mut self.of[record.direction];
        let outcome = match record.event {
            // Packets of a traffic source enter at its stage and are not counted.
            Event::Entered { .. } if record.stage.is_none() => {
                self.inside.insert(record.packet, outcomes.len());
                return outcomes.push(PathOutcome::InPath);
            }
            Event::Left => PathOutcome::Arrived,
            Event::Dropped { why } => PathOutcome::Dropped(why),
            _ => return,
        };
        if let Some(number) = self.inside.remove(&record.packet) {
            outcomes[number] = outcome;
        }
    }
}

/// The content of a packet of a flow. Offsets are counted as in [`PacketKind`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Data, a SYN or a FIN of the sender.
    Data {
        /// Start offset.
        offset: u64,
        /// Length in sequence space.
        len: u64,
        /// Number of the transmission; 1 is the first, and higher numbers are retransmissions.
        copy: u32,
    },
    /// An ACK of the receiver.
    Ack {
        /// The next offset that the receiver expects.
        ack: u64,
    },
}

/// A packet of a flow that has arrived at the other host or was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// Index of the flow.
    pub flow: usize,
    /// The content of the packet.
    pub content: Content,
    /// Time at which the packet left its host.
    pub sent: Instant,
    /// Time at which it arrived or was dropped.
    pub ended: Instant,
    /// Reason of the drop. `None` if the packet arrived undamaged.
    pub why: Option<DropReason>,
    /// Index of the stage that dropped the packet. `None` if it arrived, even if the receiver
    /// discarded it because it was damaged.
    pub stage: Option<usize>,
}

/// A packet in the path.
#[derive(Clone, Copy, Debug)]
struct Transit {
    flow: usize,
    sent: Instant,
    content: Content,
    /// Whether the receiver will find it damaged.
    is_damaged: bool,
    /// The original of which stages have made this packet or copies. `None` if no stage has copied
    /// the packet.
    original: Option<PacketId>,
}

/// The state of a packet and its copies. The data is lost only if no copy arrives.
#[derive(Clone, Copy, Debug)]
struct Copies {
    inside: u32,
    has_arrived: bool,
}

#[derive(Default)]
struct Watched {
    /// Whether the sender's recipe uses ground truth.
    uses_truth: bool,
    iss: Option<Seq>,
    /// One past the highest offset sent.
    max: u64,
    /// Number of retransmissions, by the start offset of the segment.
    resent: BTreeMap<u64, u32>,
    losses: Losses,
    device_packets: Vec<DevicePacket>,
}

impl Watched {
    /// Returns the offset that a packet of the receiver acknowledges.
    fn acked_by(&self, segment: &Segment<'_>) -> Option<u64> {
        segment.ack.offset(self.iss?, self.max).filter(|_| segment.flags.contains(Flags::ACK))
    }
}

pub(super) struct Watcher {
    flows: Vec<Watched>,
    /// The packet that is about to enter the path.
    leaving: Option<Transit>,
    inside: BTreeMap<PacketId, Transit>,
    copies: BTreeMap<PacketId, Copies>,
    /// `None` if no flow is watched for its packets.
    outcomes: Option<Outcomes>,
    /// New losses of flows whose recipes use ground truth.
    new_losses: Vec<(usize, Truth)>,
    observer: Option<Box<dyn Observer + Send>>,
}

/// Receives incidents at the path's stages, the PDUs of its radio links, and the packets of watched
/// flows.
pub trait Observer {
    /// Called for an incident that concerns a stage rather than a packet.
    fn incident(&mut self, _incident: &Incident) {}
    /// Called when a PDU is transmitted, whether or not it arrives.
    fn pdu(&mut self, _pdu: &RadioPdu) {}
    /// Called when a packet of a watched flow has arrived or was dropped.
    fn passed(&mut self, _passage: &Passage) {}
}

impl Watcher {
    /// Creates a watcher. `uses_truth` contains for each flow whether its recipe uses ground truth.
    pub(super) fn new(uses_truth: Vec<bool>, packets: bool) -> Self {
        let flows =
            uses_truth.into_iter().map(|uses_truth| Watched { uses_truth, ..Watched::default() }).collect();
        let outcomes = packets.then(Outcomes::default);
        Self {
            flows,
            leaving: None,
            inside: BTreeMap::new(),
            copies: BTreeMap::new(),
            outcomes,
            new_losses: Vec::new(),
            observer: None,
        }
    }

    pub(super) fn observe(&mut self, observer: Box<dyn Observer + Send>) {
        self.observer = Some(observer);
    }

    pub(super) fn uses_truth(&self, flow: usize) -> bool {
        self.flows[flow].uses_truth
    }

    /// Removes and returns the new losses of senders that use ground truth.
    pub(super) fn take_new_losses(&mut self) -> Vec<(usize, Truth)> {
        std::mem::take(&mut self.new_losses)
    }

    pub(super) fn outcomes(&self, direction: Direction) -> &[PathOutcome] {
        self.outcomes.as_ref().map_or(&[], |outcomes| &outcomes.of[direction])
    }

    pub(super) fn losses(&self, flow: usize) -> &Losses {
        &self.flows[flow].losses
    }

    pub(super) fn device_packets(&self, flow: usize) -> &[DevicePacket] {
        &self.flows[flow].device_packets
    }

    /// Returns the approximate memory of everything recorded, in bytes.
    pub(super) fn memory(&self) -> usize {
        let of_flow = |watched: &Watched| {
            size_of_val(watched.losses.as_slice())
                + watched.device_packets.len() * size_of::<DevicePacket>()
                + watched.resent.len() * size_of::<(u64, u32)>()
        };
        let outcomes =
            |Outcomes { of, .. }: &Outcomes| (of.down.len() + of.up.len()) * size_of::<PathOutcome>();
        self.flows.iter().map(of_flow).sum::<usize>() + self.outcomes.as_ref().map_or(0, outcomes)
    }

    /// Records that the sender of `flow` is about to pass `packet` to the path.
    pub(super) fn leaving(&mut self, now: Instant, flow: usize, watch: Watch, packet: &[u8]) {
        let is_followed = watch > Watch::Results || self.flows[flow].uses_truth;
        let Some(segment) = segment(packet).filter(|segment| is_followed && segment.seq_len() > 0) else {
            return;
        };
        let watched = &mut self.flows[flow];
        if segment.flags.contains(Flags::SYN) {
            watched.iss = Some(segment.seq);
        }
        let Some(offset) = watched.iss.and_then(|iss| segment.seq.offset(iss, watched.max)) else { return };
        let len = segment.seq_len();
        let mut copy = 1;
        if offset < watched.max {
            let resent = watched.resent.entry(offset).or_default();
            *resent += 1;
            copy += *resent;
        }
        watched.max = watched.max.max(offset + len);
        let content = Content::Data { offset, len, copy };
        self.leaving = Some(Transit { flow, sent: now, content, is_damaged: false, original: None });
        if watch == Watch::Packets {
            watched
                .device_packets
                .push(DevicePacket { at: now, kind: PacketKind::Sent { offset, len, copy } });
        }
    }

    /// Records that the receiver of `flow` is about to pass `packet` to the path.
    pub(super) fn acknowledging(&mut self, now: Instant, flow: usize, packet: &[u8]) {
        if self.observer.is_none() {
            return;
        }
        let ack = segment(packet).and_then(|segment| self.flows[flow].acked_by(&segment));
        self.leaving = ack.map(|ack| {
            let content = Content::Ack { ack };
            Transit { flow, sent: now, content, is_damaged: false, original: None }
        });
    }

    /// Processes new records. The first one belongs to the packet that was last passed to the path.
    pub(super) fn entered(&mut self, path: &mut Path) {
        let records = self.records(path);
        if let (Some(transit), Some(first)) = (self.leaving.take(), records.first()) {
            self.inside.insert(first.packet, transit);
        }
        self.take(records);
    }

    /// Processes new records.
    pub(super) fn follow(&mut self, path: &mut Path) {
        let records = self.records(path);
        self.take(records);
    }

    /// Takes the new records. Also takes the incidents, which would otherwise accumulate in memory.
    fn records(&mut self, path: &mut Path) -> Vec<Record> {
        let incidents = path.take_incidents();
        if let Some(observer) = &mut self.observer {
            incidents.iter().for_each(|incident| observer.incident(incident));
            path.take_pdus().iter().for_each(|pdu| observer.pdu(pdu));
        }
        path.take_records()
    }

    fn take(&mut self, records: Vec<Record>) {
        for record in records {
            if let Some(outcomes) = &mut self.outcomes {
                outcomes.take(&record);
            }
            match record.event {
                Event::Copied { of } => self.copied(of, record.packet),
                Event::Corrupted { found: true, .. } | Event::Truncated { .. } => {
                    if let Some(transit) = self.inside.get_mut(&record.packet) {
                        transit.is_damaged = true;
                    }
                }
                Event::Dropped { why } => self.ended(&record, Some(why)),
                Event::Left => self.ended(&record, None),
                _ => {}
            }
        }
    }

    fn copied(&mut self, of: PacketId, copy: PacketId) {
        let Some(packet) = self.inside.get_mut(&of) else { return };
        let first = *packet.original.get_or_insert(of);
        let copies = self.copies.entry(first).or_insert(Copies { inside: 1, has_arrived: false });
        copies.inside += 1;
        let transit = *packet;
        self.inside.insert(copy, transit);
    }

    /// Handles a packet that was dropped for the reason `why`, or has left the path if `why` is
    /// `None`.
    fn ended(&mut self, record: &Record, why: Option<DropReason>) {
        let Some(transit) = self.inside.remove(&record.packet) else { return };
        // The receiver drops a damaged packet because of its checksum. This counts as a loss on the
        // channel.
        let why = why.or_else(|| transit.is_damaged.then_some(DropReason::Loss));
        let Transit { flow, sent, content, .. } = transit;
        if let Some(observer) = &mut self.observer {
            observer.passed(&Passage { flow, content, sent, ended: record.at, why, stage: record.stage });
        }
        if let Some(first) = transit.original
            && let Some(copies) = self.copies.get_mut(&first)
        {
            copies.inside -= 1;
            copies.has_arrived |= why.is_none();
            let Copies { inside, has_arrived } = *copies;
            if inside == 0 {
                self.copies.remove(&first);
            }
            if inside > 0 || has_arrived {
                return;
            }
        }
        let (Some(why), Content::Data { offset, len, copy }) = (why, content) else { return };
        let watched = &mut self.flows[flow];
        if let Some(cause) = why.cause().filter(|_| watched.uses_truth) {
            self.new_losses.push((flow, Truth::Lost { offset, len, cause }));
        }
        watched.losses.push(Dropped { at: record.at, sent, offset, len, copy, why, stage: record.stage });
    }

    /// Records that the sender of `flow` has processed `packet`.
    pub(super) fn acknowledged(&mut self, now: Instant, flow: usize, packet: &[u8], duplicate: bool) {
        let watched = &mut self.flows[flow];
        let (Some(segment), Some(iss)) = (segment(packet), watched.iss) else { return };
        let Some(ack) = watched.acked_by(&segment) else { return };
        let offset = |seq: Seq| seq.offset(iss, watched.max);
        let blocks = segment.options.sack.as_slice().iter();
        let sacked = blocks.filter_map(|(left, right)| Some((offset(*left)?, offset(*right)?))).collect();
        watched
            .device_packets
            .push(DevicePacket { at: now, kind: PacketKind::Ack { ack, duplicate, sacked } });
    }
}

fn segment(packet: &[u8]) -> Option<Segment<'_>> {
    segment::parse(packet).ok()
}

/// Formats one line per event. Events at the same instant are ordered: sent, arrived, dropped,
/// decided.
pub(super) fn time_sequence(
    device_packets: &[DevicePacket],
    losses: &Losses,
    decisions: &[Decision],
) -> String {
    let mut lines: Vec<(Instant, String)> = Vec::new();
    for DevicePacket { at, kind } in device_packets {
        let line = match kind {
            PacketKind::Sent { offset, len, copy: 1 } => format!("sent    {offset}+{len}"),
            PacketKind::Sent { offset, len, copy } => format!("resent  {offset}+{len} (copy {copy})"),
            PacketKind::Ack { ack, duplicate, sacked } => {
                let name = if *duplicate { "dupack " } else { "ack    " };
                sacked
                    .iter()
                    .fold(format!("{name} {ack}"), |line, (left, right)| format!("{line} [{left},{right})"))
            }
        };
        lines.push((*at, line));
    }
    for Dropped { at, offset, len, copy, why, .. } in losses.as_slice() {
        lines.push((*at, format!("dropped {offset}+{len} (copy {copy}): {}", why.name())));
    }
    for Decision { at, by, what, why, .. } in decisions {
        lines.push((*at, format!("    {by}: {what:?} ({why})")));
    }
    lines.sort_by_key(|(at, _)| *at);
    lines.into_iter().fold(String::new(), |mut text, (at, line)| {
        writeln!(text, "{:>12.6} {line}", at.as_secs_f64()).expect("a String takes everything");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use airwire::time::Duration;

    use super::*;
    use crate::world::{World, WorldError};

    const PATH: &str = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"1Mbit\", delay = \"20ms\" }\n\
                        [[stage]]\nkind = \"loss\"\ndown = { model = \"list\", drop = [\"packet 5\", \"packet 9\"] }\n\
                        up = { model = \"list\", drop = [\"packet 3\"] }\n";

    #[test]
    fn oracle_distinguishes_radio_loss_from_queue_drop() {
        let counters = |path: &str| {
            let mut world = World::one_flow(path, "newreno+oracle", 200_000, 1).unwrap();
            assert!(world.run_to_end(Duration::from_secs(60)).unwrap());
            world.result(0).counters
        };
        let radio = counters(PATH);
        assert!(radio.attributed_to_radio > 0, "{radio:?}");
        assert_eq!(radio.window_reductions, 0);
        let queue = counters(
            "schema = 1\n[[stage]]\nkind = \"link\"\n\
             both = { rate = \"1Mbit\", delay = \"20ms\", queue = { packets = 5 } }\n",
        );
        assert!(queue.window_reductions > 0, "{queue:?}");
        assert_eq!(queue.attributed_to_radio, 0);
    }

    /// Creates a flow over a wired link followed by these stages.
    fn world_over(stages: &str) -> World {
        let path = format!(
            "schema = 1\n[[stage]]\nkind = \"link\"\nboth = {{ rate = \"1Mbit\", delay = \"20ms\" }}\n{stages}"
        );
        World::one_flow(&path, "newreno", 30_000, 1).unwrap()
    }

    fn losses_over(stages: &str) -> Vec<(u64, DropReason)> {
        let mut world = world_over(stages);
        assert!(world.run_to_end(Duration::from_secs(60)).unwrap());
        world.losses(0).as_slice().iter().map(|dropped| (dropped.offset, dropped.why)).collect()
    }

    #[test]
    fn duplicated_segment_is_lost_with_last_copy() {
        let twice = "[[stage]]\nkind = \"duplicate\"\ndown = { chance = 1 }\n";
        let drops = |which: &str| {
            format!("[[stage]]\nkind = \"loss\"\ndown = {{ model = \"list\", drop = [{which}] }}\n")
        };
        assert_eq!(losses_over(twice), []);
        // The two packets of the handshake in this direction are duplicated too, so the first data
        // segment is packet 5.
        let of = |which: &str| losses_over(&format!("{twice}{}", drops(which)));
        assert_eq!(of("\"packet 5\""), []);
        assert_eq!(of("\"packet 6\""), []);
        assert_eq!(of("\"packets 5-6\"").len(), 1);
        assert_eq!(of("\"packets 5-6\""), losses_over(&drops("\"packet 3\"")));
    }

    #[test]
    fn corrupted_segments_count_as_radio_loss() {
        for stage in ["kind = \"corrupt\"", "kind = \"truncate\""] {
            let losses = losses_over(&format!("[[stage]]\n{stage}\ndown.chance = \"10%\"\n"));
            assert!(
                !losses.is_empty() && losses.iter().all(|(_, why)| *why == DropReason::Loss),
                "{losses:?}"
            );
        }
        // A checksum does not detect bit errors that cancel out. They are found here because the
        // sent data is known.
        let passing = "[[stage]]\nkind = \"corrupt\"\ndown = { chance = \"10%\", checksum = \"passes\", where = \"payload\" }\n";
        let mut world = world_over(passing);
        assert!(matches!(world.run_to_end(Duration::from_secs(60)), Err(WorldError::Stream { .. })));
        assert!(world.losses(0).as_slice().is_empty());
    }

    #[test]
    fn packet_outcomes_are_recorded_by_number() {
        let mut world = World::one_flow(PATH, "newreno", 50_000, 1).unwrap();
        assert!(world.run_to_end(Duration::from_secs(60)).unwrap());
        let dropped = |direction| {
            let outcomes = world.outcomes(direction).iter().zip(1..);
            let dropped =
                outcomes.filter(|(outcome, _)| **outcome == PathOutcome::Dropped(DropReason::Listed));
            dropped.map(|(_, number)| number).collect::<Vec<u32>>()
        };
        assert_eq!((dropped(Direction::Down), dropped(Direction::Up)), (vec![5, 9], vec![3]));
        let totals = world.totals();
        let entered = [totals.down.entered, totals.up.entered];
        assert_eq!(
            [Direction::Down, Direction::Up].map(|direction| world.outcomes(direction).len() as u64),
            entered
        );
        let arrived = world
            .outcomes(Direction::Down)
            .iter()
            .filter(|outcome| **outcome == PathOutcome::Arrived)
            .count();
        assert_eq!(arrived as u64, totals.down.left);
    }

    #[derive(Clone, Default)]
    struct Passages(Arc<Mutex<Vec<Passage>>>);

    impl Observer for Passages {
        fn passed(&mut self, passage: &Passage) {
            self.0.lock().unwrap().push(*passage);
        }
    }

    #[test]
    fn observer_sees_each_packet_arrive_or_drop() {
        let mut world = World::one_flow(PATH, "newreno", 50_000, 1).unwrap();
        let passages = Passages::default();
        world.observe(passages.clone());
        assert!(world.run_to_end(Duration::from_secs(60)).unwrap());
        let passages = passages.0.lock().unwrap().clone();
        let is_ack = |passage: &&Passage| matches!(passage.content, Content::Ack { .. });
        let acks: Vec<_> = passages.iter().filter(is_ack).collect();
        assert_eq!(acks.len() as u64, world.totals().up.left + 1);
        assert_eq!(acks.iter().filter(|ack| ack.why == Some(DropReason::Listed)).count(), 1);
        let losses = passages.iter().filter_map(|passage| {
            let Passage { content: Content::Data { offset, len, copy }, sent, .. } = *passage else {
                return None;
            };
            let (at, stage) = (passage.ended, passage.stage);
            passage.why.map(|why| Dropped { at, sent, offset, len, copy, why, stage })
        });
        assert_eq!(losses.collect::<Vec<_>>(), world.losses(0).as_slice());
        let arrived = passages.iter().filter(|passage| passage.why.is_none());
        let transit: Vec<_> = arrived.map(|passage| passage.ended.saturating_since(passage.sent)).collect();
        assert!(transit.iter().all(|time| *time > Duration::from_millis(20)), "{transit:?}");
    }
}
