//! A pcapng file with all points of a path, in which a comment on each packet gives its fate.
//!
//! The fate of a packet is not known when it enters. Therefore all entries after the oldest packet still
//! inside are held back.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::path::Path as FilePath;
use std::time::SystemTime;

use airwire::time::{Duration, Instant};

use super::RunInfo;
use super::pcapng::{PathPacket, Way, Writer, wall};
use crate::output::{Output, OutputError};
use crate::packet::{Direction, PacketId};
use crate::stage::{Event, Mark, RadioPdu, Record};

/// Upper bound on the bytes held back. Beyond it, the oldest packets are written as `fate=inside`.
const HELD_BACK: usize = 64 << 20;

pub(super) struct Notes {
    output: Output,
    writer: Writer,
    zero: u64,
    stages: Vec<String>,
    /// Interface numbers of the points declared so far: the two ends, then stages in the order of their first
    /// drops.
    interfaces: BTreeMap<Point, u32>,
    waiting: VecDeque<Waiting>,
    /// Number of entries before `waiting` since the start of the run.
    first: u64,
    waiting_bytes: usize,
    inside: BTreeMap<PacketId, Inside>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    Fixed,
    Mobile,
    Stage(usize),
}

struct Waiting {
    at: Instant,
    packet: PacketId,
    point: Point,
    way: Way,
    bytes: Box<[u8]>,
    /// `None`: the packet is still inside.
    comment: Option<String>,
}

/// A packet whose fate is not known yet.
struct Inside {
    /// Number of its entry, counted from the start of the run.
    entry: u64,
    /// Whether it came from a traffic source, not from a host.
    background: bool,
    entered: Instant,
    queued: Duration,
    /// Local retransmissions of the whole packet.
    resent: u32,
    impaired: Impaired,
    /// The stage whose queue set CE.
    congested: Option<usize>,
    radio: Vec<Radio>,
}

/// Changes to a packet by stages that forward it.
#[derive(Default)]
struct Impaired {
    copy_of: Option<PacketId>,
    /// Number of packets that overtook it.
    overtaken: u64,
    /// Number of flipped bits.
    bits: usize,
    /// Whether a checksum reveals the flipped bits.
    found: bool,
    /// Length before it was truncated.
    cut_from: Option<usize>,
}

/// Transmission of a packet on one radio link.
struct Radio {
    stage: usize,
    /// Sequence numbers of the first and last PDU that carried bytes of the packet.
    first: u16,
    last: u16,
    sent: u32,
    resent: u32,
    lost: u32,
}

impl Notes {
    pub(super) fn create(path: &FilePath, run: &RunInfo) -> Result<Self, OutputError> {
        let zero = run.wall_zero.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut notes = Self {
            output: Output::create_private(path)?,
            writer: Writer::default(),
            zero: zero.as_nanos() as u64,
            stages: run.stages.clone(),
            interfaces: BTreeMap::new(),
            waiting: VecDeque::new(),
            first: 0,
            waiting_bytes: 0,
            inside: BTreeMap::new(),
        };
        notes.writer.section_header(concat!("airlink ", env!("CARGO_PKG_VERSION")));
        notes.interface(Point::Fixed);
        notes.interface(Point::Mobile);
        // Write at once, so that even a run without packets leaves a valid file.
        notes.write_out()?;
        Ok(notes)
    }

    pub(super) fn pdu(&mut self, pdu: &RadioPdu) {
        // Control PDUs do not carry packets.
        let Some(sn) = sequence_number(&pdu.bytes) else { return };
        for packet in &pdu.packets {
            let Some(inside) = self.inside.get_mut(packet) else { continue };
            let radio = match inside.radio.iter_mut().position(|radio| radio.stage == pdu.stage) {
                Some(index) => &mut inside.radio[index],
                None => {
                    inside.radio.push(Radio {
                        stage: pdu.stage,
                        first: sn,
                        last: sn,
                        sent: 0,
                        resent: 0,
                        lost: 0,
                    });
                    inside.radio.last_mut().expect("pushed just now")
                }
            };
            radio.sent += 1;
            radio.lost += u32::from(pdu.lost);
            if pdu.transmission > 1 {
                radio.resent += 1;
            } else {
                radio.last = sn;
            }
        }
    }

    pub(super) fn record(&mut self, record: Record) -> Result<(), OutputError> {
        let id = record.packet;
        match record.event {
            Event::Entered { .. } => {
                let entry = self.first + self.waiting.len() as u64;
                let inside = Inside {
                    entry,
                    background: record.stage.is_some(),
                    entered: record.at,
                    queued: Duration::ZERO,
                    resent: 0,
                    impaired: Impaired::default(),
                    congested: None,
                    radio: Vec::new(),
                };
                self.inside.insert(id, inside);
                let point = record.stage.map_or_else(|| end(record.direction.reversed()), Point::Stage);
                self.hold(&record, point, Way::Inbound, None);
            }
            Event::Sent { waited } => {
                if let Some(inside) = self.inside.get_mut(&id) {
                    inside.queued += waited;
                }
            }
            Event::Resent { .. } => {
                if let Some(inside) = self.inside.get_mut(&id) {
                    inside.resent += 1;
                }
            }
            Event::Overtaken { packets } => self.impaired(id, |it| it.overtaken += packets),
            Event::Copied { of } => {
                let background = self.inside.get(&of).is_some_and(|original| original.background);
                if let Some(inside) = self.inside.get_mut(&id) {
                    inside.background = background;
                    inside.impaired.copy_of = Some(of);
                }
            }
            Event::Corrupted { bits, found } => self.impaired(id, |it| {
                it.bits += bits.len();
                it.found |= found;
            }),
            Event::Truncated { from, .. } => self.impaired(id, |it| {
                it.cut_from.get_or_insert(from);
            }),
            Event::Dropped { why } => {
                let stage = record.stage.unwrap_or_default();
                let fate = format!(
                    "fate=dropped at={} why={} cause={}",
                    self.stages[stage],
                    why.name(),
                    why.cause_name()
                );
                self.end(&record, Point::Stage(stage), &fate);
            }
            Event::Left => {
                let point = record.stage.map_or_else(|| end(record.direction), Point::Stage);
                self.end(&record, point, "fate=delivered");
            }
            Event::Marked { mark: Mark::Congestion } => {
                if let Some(inside) = self.inside.get_mut(&id) {
                    inside.congested = record.stage;
                }
            }
            Event::Queued { .. } | Event::Held { .. } | Event::Marked { .. } => {}
        }
        self.write_known(HELD_BACK)
    }

    fn impaired(&mut self, packet: PacketId, how: impl FnOnce(&mut Impaired)) {
        if let Some(inside) = self.inside.get_mut(&packet) {
            how(&mut inside.impaired);
        }
    }

    /// Bytes of the packets that are held back.
    #[cfg(test)]
    pub(super) fn held_back(&self) -> usize {
        self.waiting_bytes
    }

    /// Writes the remaining entries. Packets still inside get `fate=inside`.
    pub(super) fn finish(mut self) -> Result<(), OutputError> {
        self.write_known(0)?;
        self.output.flush()
    }

    /// Notes the known fate of a packet at its entry and at the place where it ended.
    fn end(&mut self, record: &Record, point: Point, fate: &str) {
        let id = record.packet;
        let mut comment = format!("packet={} {fate}", id.0);
        if let Some(inside) = self.inside.remove(&id) {
            self.describe(&mut comment, record.at, &inside);
            let entry = inside.entry.checked_sub(self.first).map(|index| index as usize);
            if let Some(entry) = entry.and_then(|index| self.waiting.get_mut(index)) {
                entry.comment = Some(comment.clone());
            }
        }
        let way = if record.event == Event::Left { Way::Outbound } else { Way::Inbound };
        self.hold(record, point, way, Some(comment));
    }

    fn describe(&self, comment: &mut String, at: Instant, inside: &Inside) {
        // Writing into a string cannot fail.
        let _ = write!(comment, " after={}", at - inside.entered);
        if !inside.queued.is_zero() {
            let _ = write!(comment, " queued={}", inside.queued);
        }
        if inside.resent > 0 {
            let _ = write!(comment, " resent={}", inside.resent);
        }
        let Impaired { copy_of, overtaken, bits, found, cut_from } = inside.impaired;
        if let Some(of) = copy_of {
            let _ = write!(comment, " copy-of={}", of.0);
        }
        if overtaken > 0 {
            let _ = write!(comment, " overtaken={overtaken}");
        }
        if bits > 0 {
            let _ = write!(comment, " corrupted={bits} checksum={}", if found { "fails" } else { "passes" });
        }
        if let Some(from) = cut_from {
            let _ = write!(comment, " truncated-from={from}");
        }
        if let Some(stage) = inside.congested {
            let _ = write!(comment, " ce={}", self.stages[stage]);
        }
        if inside.background {
            comment.push_str(" origin=background");
        }
        for radio in &inside.radio {
            let _ = write!(
                comment,
                " {}: pdus={}..{} sent={} resent={} lost={}",
                self.stages[radio.stage], radio.first, radio.last, radio.sent, radio.resent, radio.lost
            );
        }
    }

    fn hold(&mut self, record: &Record, point: Point, way: Way, comment: Option<String>) {
        let bytes = record.bytes.clone().unwrap_or_default();
        self.waiting_bytes += bytes.len();
        self.waiting.push_back(Waiting { at: record.at, packet: record.packet, point, way, bytes, comment });
    }

    /// Writes entries from the front that have a comment. If more than `limit` bytes wait, or if `limit` is
    /// 0, entries without a comment are written as well.
    fn write_known(&mut self, limit: usize) -> Result<(), OutputError> {
        while let Some(front) = self.waiting.front() {
            if front.comment.is_none() && self.waiting_bytes <= limit && limit > 0 {
                break;
            }
            let front = self.waiting.pop_front().expect("there is a front");
            self.first += 1;
            self.waiting_bytes -= front.bytes.len();
            let interface = self.interface(front.point);
            let comment = front.comment.unwrap_or_else(|| format!("packet={} fate=inside", front.packet.0));
            self.writer.packet(&PathPacket {
                interface,
                wall: wall(self.zero, front.at),
                bytes: &front.bytes,
                way: front.way,
                comment: &comment,
            });
            self.write_out()?;
        }
        Ok(())
    }

    fn write_out(&mut self) -> Result<(), OutputError> {
        self.output.write(&self.writer.buffer)?;
        self.writer.buffer.clear();
        Ok(())
    }

    /// Interface number of a point. The interface is declared when the point first occurs.
    fn interface(&mut self, point: Point) -> u32 {
        let next = self.interfaces.len() as u32;
        *self.interfaces.entry(point).or_insert_with(|| {
            self.writer.interface(match point {
                Point::Fixed => "fixed",
                Point::Mobile => "mobile",
                Point::Stage(stage) => &self.stages[stage],
            });
            next
        })
    }
}

/// The end at which packets of this direction leave.
fn end(direction: Direction) -> Point {
    match direction {
        Direction::Down => Point::Mobile,
        Direction::Up => Point::Fixed,
    }
}

/// The "Sequence Number" of an AMD PDU (TS 25.322 §9.2.1.4): 12 bits after D/C = 1. `None`: a control PDU,
/// with D/C = 0.
fn sequence_number(pdu: &[u8]) -> Option<u16> {
    let &[first, second, ..] = pdu else { return None };
    (first & 0x80 != 0).then_some(u16::from(first & 0x7f) << 5 | u16::from(second) >> 3)
}
