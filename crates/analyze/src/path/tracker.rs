//! Tracks the packets of one sender from the capture where they enter to the capture where they leave.
//!
//! A packet is identified by its sequence numbers, timestamps and IP identification. Retransmissions with
//! identical values are distinguished by their order: an observed packet is matched to the first of them that
//! has not been overtaken by a later packet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;

use aircaptures::packet::Packet;
use airtcp::ranges::RangeSet;
use airwire::Cause;
use airwire::direction::Direction;
use airwire::segment::Flags;
use airwire::seq::Seq;

use super::Records;
use super::findings::{FlowFindings, Transit};
use super::ground_truth::{DropReason, Observed};
use crate::connection::findings::RttFindings;
use crate::fingerprint::fingerprint;
use crate::rtt::{Measured, Rtt};
use crate::trace::{Fate, Loss, Proof};

/// Nanoseconds after which an unmatched packet counts as lost. Queueing delays are shorter.
const LOST_AFTER: i64 = 60_000_000_000;
/// Nanoseconds by which a packet's arrival may seem to precede its transmission, because capture clocks
/// differ slightly.
const MAX_EARLY: i64 = 1_000_000_000;
/// Maximum number of packets remembered. It exceeds any realistic number of packets in transit.
const MAX_OPEN: usize = 1 << 16;
/// Number of recent packets among which copies are searched. Copies that the path makes follow closely.
const RECENT: usize = 64;
/// Maximum number of holes in the arrived data. Senders repair holes; beyond the limit, the oldest are
/// forgotten.
const MAX_HOLES: usize = 1 << 12;
/// Offset of the first captured sequence number. The space below it is for retransmissions of earlier data.
const BASE: u64 = 1 << 24;

/// Returns a fingerprint that is equal at all captures. Base stations write into the reserved flags, and
/// routers into the ECN field.
pub(super) fn key(packet: &Packet) -> u64 {
    fingerprint(packet, packet.flags.without(Flags::RESERVED))
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// Nanoseconds by the clock of the first capture.
    pub(super) at: i64,
    pub(super) all_began: i64,
}

/// A packet in transit.
#[derive(Debug)]
struct TransitPacket {
    key: u64,
    frame: u64,
    at: i64,
    /// The times when the packet passed each capture point in its direction. Index 0 is the sender's end.
    seen_at: Vec<Option<i64>>,
    range: Range<u64>,
    /// Whether all data of the packet had entered before.
    is_retransmission: bool,
    /// Whether all captures were in progress when the packet entered, so that they show its fate.
    fate_is_captured: bool,
    /// The number of the packet in airlink's events.
    event: Option<u64>,
}

/// A packet that has passed a later capture point, but not yet the capture point at its sender's end.
#[derive(Clone, Copy, Debug)]
struct Early {
    key: u64,
    position: usize,
    at: i64,
    is_data: bool,
}

#[derive(Debug)]
pub(super) struct FlowTracker {
    direction: Direction,
    captures: usize,
    base: Option<Seq>,
    max: u64,
    sent: RangeSet,
    arrived: RangeSet,
    /// The index of the next packet that enters.
    next: u64,
    open: BTreeMap<u64, TransitPacket>,
    by_key: BTreeSet<(u64, u64)>,
    early: VecDeque<Early>,
    recent: VecDeque<(u64, usize)>,
    /// The newest packet matched at each position in this direction.
    newest: Vec<Option<u64>>,
    longest: Vec<i64>,
    delay: Vec<Rtt>,
    end_to_end: Rtt,
    matched: u64,
    bytes: u64,
    data: Transit,
    acks: Transit,
    retransmitted: u64,
    spurious: u64,
    /// Packets that arrived before they were sent, by position in this direction.
    negative_delays: Vec<u64>,
}

impl FlowTracker {
    pub(super) fn new(direction: Direction, captures: usize) -> Self {
        let transit = || Transit { lost_between: vec![0; captures - 1], ..Transit::default() };
        Self {
            direction,
            captures,
            base: None,
            max: BASE,
            sent: RangeSet::default(),
            arrived: RangeSet::default(),
            next: 0,
            open: BTreeMap::new(),
            by_key: BTreeSet::new(),
            early: VecDeque::new(),
            recent: VecDeque::new(),
            newest: vec![None; captures],
            longest: vec![0; captures],
            delay: std::iter::repeat_with(Rtt::default).take(captures).collect(),
            end_to_end: Rtt::default(),
            matched: 0,
            bytes: 0,
            data: transit(),
            acks: transit(),
            retransmitted: 0,
            spurious: 0,
            negative_delays: vec![0; captures],
        }
    }

    /// Processes a packet. Packets of all captures are passed in chronological order.
    pub(super) fn process(&mut self, now: Now, capture: usize, packet: &Packet, records: &mut Records) {
        let position = super::position(self.direction, capture, self.captures);
        if position == 0 {
            self.process_entering(now, packet, records);
        } else {
            self.process_later(now.at, position, packet, records);
        }
        self.remove_old(now.at, records);
    }

    fn process_entering(&mut self, now: Now, packet: &Packet, records: &mut Records) {
        let key = key(packet);
        let range = self.range(packet);
        let is_data = !range.is_empty();
        // A keep-alive or zero-window probe has one byte, and does not repair a loss.
        let repairs = range.end - range.start > 1 || packet.flags.intersects(Flags::SYN.with(Flags::FIN));
        let is_retransmission = is_data && repairs && self.sent.contains_range(&range);
        if is_data {
            self.sent.insert(range.clone());
            self.bound_memory();
        }
        let transit = if is_data { &mut self.data } else { &mut self.acks };
        transit.entered += 1;
        self.bytes += u64::from(packet.len);
        self.retransmitted += u64::from(is_retransmission);
        let truth = records.truth.as_mut();
        let event = truth.and_then(|truth| truth.packets.find(self.direction, now.at, packet));
        let mut seen_at = vec![None; self.captures];
        seen_at[0] = Some(now.at);
        let fate_is_captured = now.at >= now.all_began;
        let sent = TransitPacket {
            key,
            frame: packet.number,
            at: now.at,
            seen_at,
            range,
            is_retransmission,
            fate_is_captured,
            event,
        };
        let index = self.next;
        self.next += 1;
        self.open.insert(index, sent);
        self.by_key.insert((key, index));
        for position in 1..self.captures {
            let known = self.early.iter().position(|early| (early.key, early.position) == (key, position));
            if let Some(early) = known.and_then(|index| self.early.remove(index)) {
                self.negative_delays[position] += u64::from(early.at < now.at);
                self.record_seen(index, position, early.at);
                if position + 1 == self.captures {
                    self.record_arrival(index, records);
                }
            }
        }
    }

    fn range(&mut self, packet: &Packet) -> Range<u64> {
        let syn = packet.flags.contains(Flags::SYN);
        let first = Seq(packet.seq.0.wrapping_sub(BASE as u32));
        let base = *self.base.get_or_insert(first);
        let mut start = packet.seq.offset(base, self.max);
        // A SYN with a distant number starts another connection on the same ports.
        if syn && start.is_none_or(|start| start.abs_diff(self.max) > 1 << 20) {
            (self.base, self.max, start) = (Some(first), BASE, Some(BASE));
            self.sent.clear();
            self.arrived.clear();
        }
        let start = start.unwrap_or(self.max);
        let end = start + packet.seq_len();
        self.max = self.max.max(end);
        start..end
    }

    fn process_later(&mut self, at: i64, position: usize, packet: &Packet, records: &mut Records) {
        let key = key(packet);
        let unseen = |index: &u64| {
            self.open.get(index).is_some_and(|sent: &TransitPacket| sent.seen_at[position].is_none())
        };
        let same = |from: u64, to: u64| self.by_key.range((key, from)..=(key, to)).map(|(_, index)| *index);
        let newest = self.newest[position];
        let ahead = same(newest.map_or(0, |newest| newest + 1), u64::MAX).find(unseen);
        let index = ahead.or_else(|| same(0, newest?).rfind(unseen));
        let is_data = packet.seq_len() > 0;
        match index {
            Some(index) => {
                self.record_seen(index, position, at);
                if position + 1 == self.captures {
                    self.record_arrival(index, records);
                }
            }
            None if self.recent.contains(&(key, position)) => {
                let transit = if is_data { &mut self.data } else { &mut self.acks };
                transit.duplicated += u64::from(position + 1 == self.captures);
            }
            None => self.early.push_back(Early { key, position, at, is_data }),
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((key, position));
    }

    fn record_seen(&mut self, index: u64, position: usize, at: i64) {
        let Some(sent) = self.open.get_mut(&index) else { return };
        let is_first = sent.seen_at[1..].iter().all(Option::is_none);
        self.matched += u64::from(is_first);
        sent.seen_at[position] = Some(at);
        self.longest[position] = self.longest[position].max(at - sent.at);
        if let Some(before) = sent.seen_at[position - 1] {
            self.delay[position].add(at - before, Measured::BySegment);
        }
        let transit = if sent.range.is_empty() { &mut self.acks } else { &mut self.data };
        if position + 1 == self.captures {
            self.end_to_end.add(at - sent.at, Measured::BySegment);
            transit.reordered += u64::from(self.newest[position].is_some_and(|newest| newest > index));
        }
        self.newest[position] = self.newest[position].max(Some(index));
    }

    /// Records that the packet has reached the other end.
    fn record_arrival(&mut self, index: u64, records: &mut Records) {
        let Some(sent) = self.open.remove(&index) else { return };
        self.by_key.remove(&(sent.key, index));
        let transit = if sent.range.is_empty() { &mut self.acks } else { &mut self.data };
        transit.arrived += 1;
        transit.missed += sent.seen_at.iter().filter(|at| at.is_none()).count() as u64;
        let spurious = sent.is_retransmission && self.arrived.contains_range(&sent.range);
        self.spurious += u64::from(spurious);
        if !sent.range.is_empty() {
            self.arrived.insert(sent.range.clone());
        }
        if self.direction == Direction::Down {
            let at = sent.seen_at[self.captures - 1].unwrap_or(sent.at);
            let proof = Proof::Arrival;
            records
                .fates
                .insert(sent.frame, if spurious { Fate::Spurious { proof } } else { Fate::Arrived { at } });
        }
        records.compare(sent.event, Observed::Arrived);
    }

    fn bound_memory(&mut self) {
        for ranges in [&mut self.sent, &mut self.arrived] {
            if ranges.len() > MAX_HOLES
                && let Some(first) = ranges.first().cloned()
            {
                ranges.remove_below(first.end);
            }
        }
    }

    fn remove_old(&mut self, now: i64, records: &mut Records) {
        while let Some(early) = self.early.front().filter(|early| now - early.at > MAX_EARLY).copied() {
            self.early.pop_front();
            self.count_unmatched(early);
        }
        while let Some((index, sent)) = self.open.first_key_value() {
            if now - sent.at <= LOST_AFTER && self.open.len() <= MAX_OPEN {
                break;
            }
            let index = *index;
            self.record_missing(index, None, records);
        }
    }

    fn count_unmatched(&mut self, early: Early) {
        // Only packets at the other end count. A packet that was in transit when the capture at its sender's
        // end began also appears in the captures between the ends.
        let transit = if early.is_data { &mut self.data } else { &mut self.acks };
        transit.unmatched_arrivals += u64::from(early.position + 1 == self.captures);
    }

    /// Records that the packet is lost. With `ends`, it is lost only if the captures extend far enough to
    /// show it.
    fn record_missing(&mut self, index: u64, ends: Option<&[i64]>, records: &mut Records) {
        let Some(sent) = self.open.remove(&index) else { return };
        self.by_key.remove(&(sent.key, index));
        let reached = sent.seen_at.iter().rposition(Option::is_some).unwrap_or(0);
        // Every capture in which the packet could still have appeared must extend far enough.
        let known = (reached + 1..self.captures).all(|position| {
            let overtaken = self.newest[position].is_some_and(|newest| newest > index);
            let capture = super::position(self.direction, position, self.captures);
            overtaken || ends.is_none_or(|ends| ends[capture] >= sent.at + self.longest[position])
        });
        let transit = if sent.range.is_empty() { &mut self.acks } else { &mut self.data };
        transit.missed += sent.seen_at[..reached].iter().filter(|at| at.is_none()).count() as u64;
        // If no packet of the flow was matched, a device translates the addresses, or the receiver is located
        // before the next capture point.
        if !sent.fate_is_captured || !known || self.matched == 0 {
            transit.undetermined += 1;
            records.compare(sent.event, Observed::Undetermined);
            return;
        }
        let gap = super::gap(self.direction, reached + 1, self.captures);
        transit.lost += 1;
        transit.lost_between[gap] += 1;
        let loss = match records.compare(sent.event, Observed::Lost { gap }) {
            Some(DropReason::Loss(cause)) => {
                match cause {
                    Cause::Congestion => transit.lost_by_congestion += 1,
                    Cause::Radio => transit.lost_by_radio += 1,
                }
                Loss::Airlink(cause)
            }
            reason => {
                transit.refused += u64::from(reason == Some(DropReason::Refused));
                Loss::Between { before: gap + 1 }
            }
        };
        if self.direction == Direction::Down {
            records.fates.insert(sent.frame, Fate::Lost(loss));
        }
    }

    /// Finishes the flow. `ends` contains the time of each capture's last packet. Adds to `early` the number
    /// of packets that each capture contains before they were sent.
    pub(super) fn finish(
        mut self,
        from: SocketAddr,
        to: SocketAddr,
        ends: &[i64],
        records: &mut Records,
        early: &mut [u64],
    ) -> FlowFindings {
        while let Some((index, _)) = self.open.first_key_value() {
            let index = *index;
            self.record_missing(index, Some(ends), records);
        }
        while let Some(early) = self.early.pop_front() {
            self.count_unmatched(early);
        }
        let of = |position: usize| super::position(self.direction, position, self.captures);
        for (position, count) in self.negative_delays.iter().enumerate() {
            early[of(position)] += count;
        }
        let mut delay_between = vec![RttFindings::default(); self.captures - 1];
        for (position, delay) in self.delay.iter().enumerate().skip(1) {
            delay_between[super::gap(self.direction, position, self.captures)] = delay.findings();
        }
        FlowFindings {
            from,
            to,
            enters_at: of(0),
            matched: self.matched,
            bytes: self.bytes,
            data: self.data,
            acks: self.acks,
            retransmitted: self.retransmitted,
            spurious: self.spurious,
            delay: self.end_to_end.findings(),
            delay_between,
        }
    }
}
