//! The packets that RLC holds in one direction. Each packet is settled exactly once: it is delivered or
//! dropped.
//!
//! The two ends of RLC may disagree about a delivery: the receiver may have reassembled a packet that the
//! sender discards because its acknowledgement was lost. The ledger knows both ends and follows the receiver.

use std::collections::VecDeque;

use airwire::time::Instant;

use crate::packet::Packet;
use crate::stage::DropReason;
use crate::stages::queue::Bounds;

#[derive(Default)]
pub(crate) struct Ledger {
    bounds: Bounds,
    /// Packet number `first` + i is at index i. `None` if it has been settled.
    entries: VecDeque<Option<Entry>>,
    first: u64,
    held: usize,
    /// Number of the first packet whose transmission has not begun.
    next_to_begin: u64,
    waiting_packets: usize,
    waiting_bytes: u64,
}

struct Entry {
    packet: Packet,
    since: Instant,
}

/// The reason to refuse a packet as an SDU of at most `max` bytes.
pub(crate) fn refusal(length: usize, max: usize) -> Option<DropReason> {
    match length {
        0 => Some(DropReason::Malformed),
        _ if length > max => Some(DropReason::TooLong),
        _ => None,
    }
}

impl Ledger {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Sets the bounds for packets that arrive from now on.
    pub(crate) fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// Number of packets that are not settled.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Number of packets whose transmission has not begun, and their bytes.
    pub(crate) fn waiting(&self) -> (usize, u64) {
        (self.waiting_packets, self.waiting_bytes)
    }

    pub(crate) fn has_room_for(&self, octets: usize) -> bool {
        self.bounds.have_room(self.waiting_packets, self.waiting_bytes, octets)
    }

    /// Adds a packet and returns its number. Numbers ascend from 0.
    pub(crate) fn submit(&mut self, now: Instant, packet: Packet) -> u64 {
        self.waiting_packets += 1;
        self.waiting_bytes += packet.len() as u64;
        self.held += 1;
        self.entries.push_back(Some(Entry { packet, since: now }));
        self.next_number() - 1
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first)?).ok()
    }

    pub(crate) fn packet(&self, number: u64) -> Option<&Packet> {
        self.entries.get(self.index(number)?)?.as_ref().map(|entry| &entry.packet)
    }

    /// Records that the transmission of this packet has begun, and of all packets before it. Calls `begun`
    /// with each packet whose transmission had not begun before, and the time since which it has waited.
    pub(crate) fn begin_through(&mut self, number: u64, mut begun: impl FnMut(&Packet, Instant)) {
        while self.next_to_begin <= number {
            let entry = self.index(self.next_to_begin).and_then(|index| self.entries.get(index)?.as_ref());
            if let Some(entry) = entry {
                self.waiting_packets -= 1;
                self.waiting_bytes -= entry.packet.len() as u64;
                begun(&entry.packet, entry.since);
            }
            self.next_to_begin += 1;
        }
    }

    /// Makes all unsettled packets wait again, even if they exceed the bounds. A packet whose transmission
    /// had begun waits since `now`. Calls `requeue` for each packet in order, with its number, the time since
    /// which it waits, and its bytes.
    pub(crate) fn requeue_all(&mut self, now: Instant, mut requeue: impl FnMut(u64, Instant, &[u8])) {
        let begun = self.next_to_begin;
        self.next_to_begin = self.first;
        (self.waiting_packets, self.waiting_bytes) = (0, 0);
        for (number, entry) in (self.first..).zip(&mut self.entries) {
            let Some(Entry { packet, since }) = entry else { continue };
            if number < begun {
                *since = now;
            }
            self.waiting_packets += 1;
            self.waiting_bytes += packet.len() as u64;
            requeue(number, *since, &packet.bytes);
        }
    }

    /// Numbers of the packets that are not settled, in ascending order.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = u64> {
        (self.first..).zip(&self.entries).filter_map(|(number, entry)| entry.as_ref().map(|_| number))
    }

    /// Settles a packet that the receiver has reassembled: the earliest unsettled packet with this content
    /// whose transmission has begun.
    pub(crate) fn deliver(&mut self, octets: &[u8]) -> Option<Packet> {
        let begun = self.next_to_begin.saturating_sub(self.first) as usize;
        let same = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.packet.bytes == octets);
        let index = self.entries.iter().take(begun).position(same)?;
        self.settle(self.first + index as u64)
    }

    /// Whether the transmission of this packet has begun.
    pub(crate) fn has_begun(&self, number: u64) -> bool {
        number < self.next_to_begin
    }

    /// Number of the next packet.
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Removes the packet with this number. `None` if it was settled before.
    pub(crate) fn settle(&mut self, number: u64) -> Option<Packet> {
        Some(self.take(number)?.1)
    }

    /// Removes the packet with this number, and returns it with the time since which it has waited.
    pub(crate) fn take(&mut self, number: u64) -> Option<(Instant, Packet)> {
        let index = self.index(number)?;
        let Entry { packet, since } = self.entries.get_mut(index)?.take()?;
        self.held -= 1;
        if number >= self.next_to_begin {
            self.waiting_packets -= 1;
            self.waiting_bytes -= packet.len() as u64;
        }
        while self.entries.pop_front_if(|entry| entry.is_none()).is_some() {
            self.first += 1;
        }
        Some((since, packet))
    }
}

#[cfg(test)]
mod tests {
    use airwire::units::Size;

    use super::*;
    use crate::packet::{Content, Direction, Origin, PacketId};

    fn packet(id: u64, bytes: &[u8]) -> Packet {
        let (direction, origin) = (Direction::Down, Origin::Host);
        Packet::from(Content {
            id: PacketId(id),
            direction,
            origin,
            entered: Instant::ZERO,
            bytes: bytes.to_vec(),
        })
    }

    fn ledger_of(packets: &[&[u8]]) -> Ledger {
        let mut ledger = Ledger::default();
        for (id, bytes) in packets.iter().enumerate() {
            assert_eq!(ledger.submit(Instant::ZERO, packet(id as u64, bytes)), id as u64);
        }
        ledger
    }

    #[test]
    fn empty_and_longer_packets_are_refused() {
        let reasons = [0, 1, 9_000, 9_001].map(|length| refusal(length, 9_000));
        assert_eq!(reasons, [Some(DropReason::Malformed), None, None, Some(DropReason::TooLong)]);
    }

    #[test]
    fn packet_settles_only_once() {
        let mut ledger = ledger_of(&[b"one", b"two"]);
        ledger.begin_through(1, |_, _| {});
        assert_eq!(ledger.deliver(b"two").unwrap().id, PacketId(1));
        assert_eq!(ledger.settle(1), None);
        assert_eq!(ledger.settle(0).unwrap().id, PacketId(0));
        assert_eq!(ledger.settle(0), None);
        assert_eq!(ledger.held(), 0);
    }

    #[test]
    fn delivery_settles_earliest_transmitted_equal_packet() {
        let mut ledger = ledger_of(&[b"ack", b"ack"]);
        assert_eq!(ledger.deliver(b"ack"), None);
        ledger.begin_through(0, |_, _| {});
        assert_eq!(ledger.deliver(b"ack").unwrap().id, PacketId(0));
        assert_eq!(ledger.deliver(b"ack"), None);
    }

    #[test]
    fn only_untransmitted_packets_fill_queue() {
        let bounds = Bounds { packets: Some(2), bytes: Some(Size::bytes(10)) };
        let mut ledger = Ledger::new(bounds);
        ledger.submit(Instant::ZERO, packet(0, &[0; 4]));
        assert!(ledger.has_room_for(6) && !ledger.has_room_for(7));
        ledger.submit(Instant::ZERO, packet(1, &[1; 4]));
        assert!(!ledger.has_room_for(1));
        let mut begun = Vec::new();
        ledger.begin_through(0, |packet, _| begun.push(packet.id));
        assert_eq!(begun, [PacketId(0)]);
        assert!(ledger.has_room_for(6));
        assert_eq!((ledger.waiting(), ledger.held()), ((1, 4), 2));
        // Discarded before its transmission began.
        ledger.settle(1);
        ledger.begin_through(5, |packet, _| panic!("{packet:?}"));
        assert_eq!((ledger.waiting(), ledger.held()), ((0, 0), 1));
    }
}
