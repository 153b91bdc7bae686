//! Recording of flows: follows their packets through the path, and notes them at the sender's
//! device.

use std::collections::BTreeMap;
use std::fmt::Write;

use airlink::packet::{Direction, PacketId, PerDirection};
use airlink::path::Path;
use airlink::stage::{Event, Incident, RadioPdu, Record, Why};
use airtcp::recovery::{Decision, Truth};
use airwire::segment::{self, Flags, Segment};
use airwire::seq::Seq;
use airwire::time::Instant;

use super::truth::{Dropped, Losses};

/// Level of detail recorded for a flow. Each level includes the ones before it. Lower levels are
/// faster, and the lowest costs nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Watch {
    /// The result and its counters.
    Results,
    /// Also the sender's decisions, and the causes of packet losses.
    Decisions,
    /// Also every packet at the sender's device.
    Packets,
}

/// A packet seen at the sender's device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sighting {
    /// Time of sending or arrival.
    pub at: Instant,
    /// The packet.
    pub seen: Seen,
}

/// The kind of a packet. Offsets are counted as in the decision trace: the SYN is at 0, the first
/// byte at 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
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

/// The fate of a packet of the hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is still in the path.
    Inside,
    /// It left the path at the other end.
    Left,
    /// It was dropped.
    Dropped(Why),
}

/// The fates of the hosts' packets, numbered by direction, so that runs can be compared packet by
/// packet.
#[derive(Default)]
struct Fates {
    of: PerDirection<Vec<Fate>>,
    inside: BTreeMap<PacketId, usize>,
}

impl Fates {
    fn take(&mut self, record: &Record) {
        let fates = &mut self.of[record.direction];
        let fate = match record.event {
            // Packets of a traffic source enter at its stage and are not counted.
            Event::Entered { .. } if record.stage.is_none() => {
                self.inside.insert(record.packet, fates.len());
                return fates.push(Fate::Inside);
            }
            Event::Left => Fate::Left,
            Event::Dropped { why } => Fate::Dropped(why),
            _ => return,
        };
        if let Some(number) = self.inside.remove(&record.packet) {
            fates[number] = fate;
        }
    }
}

/// The content of a packet of a flow. Offsets are counted as in [`Seen`].
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
    pub why: Option<Why>,
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
    /// The original of a group of copies that stages have made. `None` if the packet was not
    /// copied.
    copied: Option<PacketId>,
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
    is_told: bool,
    iss: Option<Seq>,
    /// One past the highest offset sent.
    max: u64,
    /// Number of retransmissions, by the start offset of the segment.
    resent: BTreeMap<u64, u32>,
    losses: Losses,
    sightings: Vec<Sighting>,
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
    fates: Option<Fates>,
    /// New losses of flows whose recipes use ground truth.
    news: Vec<(usize, Truth)>,
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
    /// Creates a watcher. `told` contains for each flow whether its recipe uses ground truth.
    pub(super) fn new(told: Vec<bool>, packets: bool) -> Self {
        let flows = told.into_iter().map(|is_told| Watched { is_told, ..Watched::default() }).collect();
        let fates = packets.then(Fates::default);
        Self {
            flows,
            leaving: None,
            inside: BTreeMap::new(),
            copies: BTreeMap::new(),
            fates,
            news: Vec::new(),
            observer: None,
        }
    }

    pub(super) fn observe(&mut self, observer: Box<dyn Observer + Send>) {
        self.observer = Some(observer);
    }

    pub(super) fn tells(&self, flow: usize) -> bool {
        self.flows[flow].is_told
    }

    /// Returns the losses to report since the last call.
    pub(super) fn take_news(&mut self) -> Vec<(usize, Truth)> {
        std::mem::take(&mut self.news)
    }

    pub(super) fn fates(&self, direction: Direction) -> &[Fate] {
        self.fates.as_ref().map_or(&[], |fates| &fates.of[direction])
    }

    pub(super) fn losses(&self, flow: usize) -> &Losses {
        &self.flows[flow].losses
    }

    pub(super) fn sightings(&self, flow: usize) -> &[Sighting] {
        &self.flows[flow].sightings
    }

    /// Returns the approximate memory of everything recorded, in bytes.
    pub(super) fn memory(&self) -> usize {
        let of_flow = |watched: &Watched| {
            size_of_val(watched.losses.as_slice())
                + watched.sightings.len() * size_of::<Sighting>()
                + watched.resent.len() * size_of::<(u64, u32)>()
        };
        let fates = |Fates { of, .. }: &Fates| (of.down.len() + of.up.len()) * size_of::<Fate>();
        self.flows.iter().map(of_flow).sum::<usize>() + self.fates.as_ref().map_or(0, fates)
    }

    /// Records that the sender of `flow` is about to pass `packet` to the path.
    pub(super) fn leaving(&mut self, now: Instant, flow: usize, watch: Watch, packet: &[u8]) {
        let is_followed = watch > Watch::Results || self.flows[flow].is_told;
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
        self.leaving = Some(Transit { flow, sent: now, content, is_damaged: false, copied: None });
        if watch == Watch::Packets {
            watched.sightings.push(Sighting { at: now, seen: Seen::Sent { offset, len, copy } });
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
            Transit { flow, sent: now, content, is_damaged: false, copied: None }
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
            if let Some(fates) = &mut self.fates {
                fates.take(&record);
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
        let Some(original) = self.inside.get_mut(&of) else { return };
        let first = *original.copied.get_or_insert(of);
        let copies = self.copies.entry(first).or_insert(Copies { inside: 1, has_arrived: false });
        copies.inside += 1;
        let transit = *original;
        self.inside.insert(copy, transit);
    }

    /// Handles the end of a packet's way through the path. `why` is the reason of a drop; `None`
    /// means that the packet left the path.
    fn ended(&mut self, record: &Record, why: Option<Why>) {
        let Some(transit) = self.inside.remove(&record.packet) else { return };
        // The receiver drops a damaged packet when it verifies the checksum, as if the channel had
        // lost it.
        let why = why.or_else(|| transit.is_damaged.then_some(Why::Loss));
        let Transit { flow, sent, content, .. } = transit;
        if let Some(observer) = &mut self.observer {
            observer.passed(&Passage { flow, content, sent, ended: record.at, why, stage: record.stage });
        }
        if let Some(first) = transit.copied
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
        if let Some(cause) = why.cause().filter(|_| watched.is_told) {
            self.news.push((flow, Truth::Lost { offset, len, cause }));
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
        watched.sightings.push(Sighting { at: now, seen: Seen::Ack { ack, duplicate, sacked } });
    }
}

fn segment(packet: &[u8]) -> Option<Segment<'_>> {
    segment::parse(packet).ok()
}

/// Formats one line per event. Events at the same instant are ordered: sent, arrived, dropped,
/// decided.
pub(super) fn time_sequence(sightings: &[Sighting], losses: &Losses, decisions: &[Decision]) -> String {
    let mut lines: Vec<(Instant, String)> = Vec::new();
    for Sighting { at, seen } in sightings {
        let line = match seen {
            Seen::Sent { offset, len, copy: 1 } => format!("sent    {offset}+{len}"),
            Seen::Sent { offset, len, copy } => format!("resent  {offset}+{len} (copy {copy})"),
            Seen::Ack { ack, duplicate, sacked } => {
                let kind = if *duplicate { "dupack " } else { "ack    " };
                sacked
                    .iter()
                    .fold(format!("{kind} {ack}"), |line, (left, right)| format!("{line} [{left},{right})"))
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

    fn losses_over(stages: &str) -> Vec<(u64, Why)> {
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
            assert!(!losses.is_empty() && losses.iter().all(|(_, why)| *why == Why::Loss), "{losses:?}");
        }
        // A checksum does not detect bit errors that cancel out. They are found here because the
        // sent data is known.
        let passing = "[[stage]]\nkind = \"corrupt\"\ndown = { chance = \"10%\", checksum = \"passes\", where = \"payload\" }\n";
        let mut world = world_over(passing);
        assert!(matches!(world.run_to_end(Duration::from_secs(60)), Err(WorldError::Stream { .. })));
        assert!(world.losses(0).as_slice().is_empty());
    }

    #[test]
    fn packet_fates_are_recorded_by_number() {
        let mut world = World::one_flow(PATH, "newreno", 50_000, 1).unwrap();
        assert!(world.run_to_end(Duration::from_secs(60)).unwrap());
        let dropped = |direction| {
            let fates = world.fates(direction).iter().zip(1..);
            let dropped = fates.filter(|(fate, _)| **fate == Fate::Dropped(Why::Listed));
            dropped.map(|(_, number)| number).collect::<Vec<u32>>()
        };
        assert_eq!((dropped(Direction::Down), dropped(Direction::Up)), (vec![5, 9], vec![3]));
        let totals = world.totals();
        let entered = [totals.down.entered, totals.up.entered];
        assert_eq!([Direction::Down, Direction::Up].map(|way| world.fates(way).len() as u64), entered);
        let left = world.fates(Direction::Down).iter().filter(|fate| **fate == Fate::Left).count();
        assert_eq!(left as u64, totals.down.left);
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
        assert_eq!(acks.iter().filter(|ack| ack.why == Some(Why::Listed)).count(), 1);
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
