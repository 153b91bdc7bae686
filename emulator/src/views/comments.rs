//! A pcapng file with the packets at all points of a path. A comment on each packet gives its outcome.
//!
//! The outcome of a packet is not known when it enters. Therefore all entries after the oldest packet inside the
//! path are held back.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::path::Path as FilePath;
use std::time::SystemTime;

use airwire::time::{Duration, Instant};

use super::RunInfo;
use super::pcapng::{PacketDirection, PathPacket, Writer, wall};
use crate::output::{Output, OutputError};
use crate::packet::{Direction, PacketId};
use crate::stage::{Event, Mark, RadioPdu, Record};

/// Upper bound on the bytes held back. Beyond it, the oldest packets are written as `fate=inside`.
const MAX_HELD_BACK: usize = 64 << 20;

pub(super) struct CommentedCapture {
    output: Output,
    writer: Writer,
    zero: u64,
    stages: Vec<String>,
    /// Interface numbers of the points declared so far: the two ends, then stages in the order of their first
    /// drops.
    interfaces: BTreeMap<Point, u32>,
    /// Entries that are held back.
    entries: VecDeque<Entry>,
    /// Number of entries written before `entries`.
    first: u64,
    held_back: usize,
    inside: BTreeMap<PacketId, Inside>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    Fixed,
    Mobile,
    Stage(usize),
}

struct Entry {
    at: Instant,
    packet: PacketId,
    point: Point,
    direction: PacketDirection,
    bytes: Box<[u8]>,
    /// `None`: the packet is still inside.
    comment: Option<String>,
}

/// A packet whose outcome is not known.
#[derive(Default)]
struct Inside {
    /// Number of the packet's entry, counted from the start of the run.
    entry: u64,
    /// Whether a traffic source sent the packet, not a host.
    background: bool,
    entered: Instant,
    queued: Duration,
    /// Local retransmissions of the whole packet.
    resent: u32,
    copy_of: Option<PacketId>,
    /// Number of packets that overtook it.
    overtaken: u64,
    flipped_bits: usize,
    /// Whether a checksum reveals the flipped bits.
    checksum_fails: bool,
    /// Length before the truncation.
    original_length: Option<usize>,
    /// The stage whose queue set CE.
    congested: Option<usize>,
    radio: Vec<Radio>,
}

/// Transmission of a packet on one radio link.
struct Radio {
    stage: usize,
    /// Sequence numbers of the first and last PDU that carried bytes of the packet.
    first: u32,
    last: u32,
    sent: u32,
    resent: u32,
    lost: u32,
}

impl CommentedCapture {
    pub(super) fn create(path: &FilePath, run: &RunInfo) -> Result<Self, OutputError> {
        let zero = run.wall_zero.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut capture = Self {
            output: Output::create_private(path)?,
            writer: Writer::default(),
            zero: zero.as_nanos() as u64,
            stages: run.stages.clone(),
            interfaces: BTreeMap::new(),
            entries: VecDeque::new(),
            first: 0,
            held_back: 0,
            inside: BTreeMap::new(),
        };
        capture.writer.section_header(concat!("airlink ", env!("CARGO_PKG_VERSION")));
        capture.interface(Point::Fixed);
        capture.interface(Point::Mobile);
        // Write at once, so that even a run without packets leaves a valid file.
        capture.write_out()?;
        Ok(capture)
    }

    pub(super) fn pdu(&mut self, pdu: &RadioPdu) {
        // Control PDUs do not carry packets.
        let Some(sn) = pdu.sequence_number() else { return };
        for packet in &pdu.packets {
            let Some(inside) = self.inside.get_mut(packet) else { continue };
            let radio = match inside.radio.iter_mut().position(|radio| radio.stage == pdu.stage) {
                Some(index) => &mut inside.radio[index],
                None => {
                    let (stage, sent, resent, lost) = (pdu.stage, 0, 0, 0);
                    inside.radio.push(Radio { stage, first: sn, last: sn, sent, resent, lost });
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
                let entry = self.first + self.entries.len() as u64;
                let background = record.stage.is_some();
                let inside = Inside { entry, background, entered: record.at, ..Inside::default() };
                self.inside.insert(id, inside);
                let point = record.stage.map_or_else(|| end(record.direction.reversed()), Point::Stage);
                self.hold(&record, point, PacketDirection::Inbound, None);
            }
            Event::Sent { waited } => self.update(id, |inside| inside.queued += waited),
            Event::Resent { .. } => self.update(id, |inside| inside.resent += 1),
            Event::Overtaken { packets } => self.update(id, |inside| inside.overtaken += packets),
            Event::Copied { of } => {
                let background = self.inside.get(&of).is_some_and(|original| original.background);
                self.update(id, |inside| {
                    inside.background = background;
                    inside.copy_of = Some(of);
                });
            }
            Event::Corrupted { bits, found } => self.update(id, |inside| {
                inside.flipped_bits += bits.len();
                inside.checksum_fails |= found;
            }),
            Event::Truncated { from, .. } => self.update(id, |inside| {
                inside.original_length.get_or_insert(from);
            }),
            Event::Dropped { why } => {
                let stage = record.stage.unwrap_or_default();
                let outcome = format!(
                    "fate=dropped at={} why={} cause={}",
                    self.stages[stage],
                    why.name(),
                    why.cause_name()
                );
                self.end(&record, Point::Stage(stage), &outcome);
            }
            Event::Left => {
                let point = record.stage.map_or_else(|| end(record.direction), Point::Stage);
                self.end(&record, point, "fate=delivered");
            }
            Event::Marked { mark: Mark::Congestion } => {
                self.update(id, |inside| inside.congested = record.stage);
            }
            Event::Queued { .. } | Event::Held { .. } | Event::Marked { .. } => {}
        }
        self.write_known(MAX_HELD_BACK)
    }

    fn update(&mut self, packet: PacketId, change: impl FnOnce(&mut Inside)) {
        if let Some(inside) = self.inside.get_mut(&packet) {
            change(inside);
        }
    }

    /// Bytes of the packets that are held back.
    #[cfg(test)]
    pub(super) fn held_back(&self) -> usize {
        self.held_back
    }

    /// Writes the remaining entries. Packets still inside get `fate=inside`.
    pub(super) fn finish(mut self) -> Result<(), OutputError> {
        self.write_known(0)?;
        self.output.flush()
    }

    /// Adds the known outcome of a packet as a comment to its entry and to the place where it ended.
    fn end(&mut self, record: &Record, point: Point, outcome: &str) {
        let id = record.packet;
        let mut comment = format!("packet={} {outcome}", id.0);
        if let Some(inside) = self.inside.remove(&id) {
            self.describe(&mut comment, record.at, &inside);
            let entry = inside.entry.checked_sub(self.first).map(|index| index as usize);
            if let Some(entry) = entry.and_then(|index| self.entries.get_mut(index)) {
                entry.comment = Some(comment.clone());
            }
        }
        let direction =
            if record.event == Event::Left { PacketDirection::Outbound } else { PacketDirection::Inbound };
        self.hold(record, point, direction, Some(comment));
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
        if let Some(of) = inside.copy_of {
            let _ = write!(comment, " copy-of={}", of.0);
        }
        if inside.overtaken > 0 {
            let _ = write!(comment, " overtaken={}", inside.overtaken);
        }
        if inside.flipped_bits > 0 {
            let checksum = if inside.checksum_fails { "fails" } else { "passes" };
            let _ = write!(comment, " corrupted={} checksum={checksum}", inside.flipped_bits);
        }
        if let Some(from) = inside.original_length {
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

    fn hold(&mut self, record: &Record, point: Point, direction: PacketDirection, comment: Option<String>) {
        let bytes = record.bytes.clone().unwrap_or_default();
        self.held_back += bytes.len();
        self.entries.push_back(Entry {
            at: record.at,
            packet: record.packet,
            point,
            direction,
            bytes,
            comment,
        });
    }

    /// Writes entries from the front that have a comment. If more than `limit` bytes wait, or if `limit` is
    /// 0, entries without a comment are also written.
    fn write_known(&mut self, limit: usize) -> Result<(), OutputError> {
        while let Some(front) = self.entries.front() {
            if front.comment.is_none() && self.held_back <= limit && limit > 0 {
                break;
            }
            let front = self.entries.pop_front().expect("there is a front");
            self.first += 1;
            self.held_back -= front.bytes.len();
            let interface = self.interface(front.point);
            let comment = front.comment.unwrap_or_else(|| format!("packet={} fate=inside", front.packet.0));
            self.writer.packet(&PathPacket {
                interface,
                wall: wall(self.zero, front.at),
                bytes: &front.bytes,
                direction: front.direction,
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
