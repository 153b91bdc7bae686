//! What arrives at a connection, addressed by stream offset and bounded.

use std::collections::VecDeque;

use super::reassembly::{OutOfOrder, most_ranges};
use crate::ranges::RangeSet;

/// What arrived and the application has not read yet, with holes (RFC 9293 §3.4: any segment inside the
/// window is worth keeping).
#[derive(Clone, Debug)]
pub(super) struct RecvBuffer {
    /// In order and unread.
    data: VecDeque<u8>,
    /// RCV.NXT, data octets only.
    next: u64,
    /// What has arrived beyond `next`. In a box, because it is rare.
    held: Option<Box<OutOfOrder>>,
    limit: usize,
}

impl RecvBuffer {
    pub(super) fn new(start: u64, limit: usize) -> Self {
        Self { data: VecDeque::new(), next: start, held: None, limit }
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Octets in order and unread.
    pub(super) fn readable(&self) -> usize {
        self.data.len()
    }

    /// Room for octets from RCV.NXT on, holes included.
    pub(super) fn window(&self) -> usize {
        self.limit.saturating_sub(self.readable())
    }

    /// Ranges beyond RCV.NXT that have arrived.
    pub(super) fn out_of_order(&self) -> &RangeSet {
        static NONE: RangeSet = RangeSet::new();
        self.held.as_ref().map_or(&NONE, |held| held.ranges())
    }

    /// Octets of memory, all in all.
    pub(super) fn cost(&self) -> usize {
        self.data.capacity() + self.cost_out_of_order()
    }

    /// How many octets of memory `len` octets in order would take.
    pub(super) fn growth(&self, len: usize) -> usize {
        growth(&self.data, len)
    }

    /// The part of them that what is out of order takes.
    pub(super) fn cost_out_of_order(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.cost())
    }

    /// Stores `bytes`, which begin at `offset`. What lies below RCV.NXT or beyond `edge`, the window that the
    /// peer was told, is left out; returns how far RCV.NXT moved.
    pub(super) fn insert(&mut self, offset: u64, bytes: &[u8], edge: u64) -> u64 {
        let end = (offset + bytes.len() as u64).min(edge);
        let from = offset.max(self.next);
        if from >= end {
            return 0;
        }
        let bytes = &bytes[(from - offset) as usize..(end - offset) as usize];
        if from > self.next {
            self.held.get_or_insert_default().insert(from, bytes);
            return 0;
        }
        let before = self.next;
        let Some(held) = &mut self.held else {
            self.data.extend(bytes);
            self.next = end;
            return end - before;
        };
        self.next = held.join(before, bytes, &mut self.data);
        self.held.take_if(|held| held.ranges().is_empty());
        self.next - before
    }

    /// Another range at `offset` would be one too many; what will be read last makes room, unless that is this one. Returns
    /// how many octets are given up, or `None` if there is no room.
    pub(super) fn make_room_for_range(&mut self, offset: u64) -> Option<u64> {
        let most = most_ranges(self.limit);
        let Some(held) = self.held.as_mut().filter(|held| held.ranges().len() >= most) else {
            return Some(0);
        };
        held.ranges().last().is_some_and(|last| offset < last.start).then(|| held.prune_last_range())
    }

    /// Gives up what is out of order, the last of it first, until that has freed `enough`. Returns how many octets of data that
    /// were.
    pub(super) fn prune(&mut self, enough: usize) -> u64 {
        let octets = self.held.as_mut().map_or(0, |held| held.prune(enough));
        self.held.take_if(|held| held.ranges().is_empty());
        octets
    }

    pub(super) fn peek(&self, out: &mut [u8]) -> usize {
        let count = out.len().min(self.readable());
        let (head, tail) = self.data.as_slices();
        let first = count.min(head.len());
        out[..first].copy_from_slice(&head[..first]);
        out[first..count].copy_from_slice(&tail[..count - first]);
        count
    }

    pub(super) fn read(&mut self, out: &mut [u8]) -> usize {
        let count = self.peek(out);
        self.discard(count);
        count
    }

    /// Drops the first `count` readable octets.
    pub(super) fn discard(&mut self, count: usize) {
        self.data.drain(..count);
        // An idle connection owns no buffer; a small one is kept for interactive use.
        if self.data.is_empty() && self.data.capacity() > 512 {
            self.data = VecDeque::new();
        }
        give_back(&mut self.data);
    }

    /// The stream has ended or broken: what is beyond RCV.NXT will never be read.
    pub(super) fn drop_out_of_order(&mut self) {
        self.held = None;
    }
}

/// A queue that grows is doubled.
fn growth(queue: &VecDeque<u8>, len: usize) -> usize {
    let capacity = queue.capacity();
    if queue.len() + len <= capacity { 0 } else { capacity.max(queue.len() + len - capacity) }
}

/// Of what a burst has needed, a queue that has become short keeps a part only.
fn give_back(queue: &mut VecDeque<u8>) {
    const WORTHWHILE: usize = 256 << 10;
    if queue.capacity() >= WORTHWHILE && queue.len() < queue.capacity() / 8 {
        queue.shrink_to(queue.capacity() / 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::reassembly::OVERHEAD;

    #[test]
    fn the_stream_comes_out_whole_from_any_order_and_overlap() {
        let stream: Vec<u8> = (0..200_u8).collect();
        let mut x = 12345_u64;
        let mut random = |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % n
        };
        for _ in 0..300 {
            let mut buffer = RecvBuffer::new(1, 64);
            let mut read: Vec<u8> = vec![];
            while read.len() < stream.len() {
                let base = read.len() as u64;
                let from = (base + random(80)).saturating_sub(10).min(199);
                let to = (from + 1 + random(20)).min(200);
                let before = buffer.next();
                let moved = buffer.insert(1 + from, &stream[from as usize..to as usize], 1 + base + 64);
                assert_eq!(buffer.next(), before + moved);
                assert!(buffer.window() <= 64);
                let mut out = [0; 7];
                let n = buffer.read(&mut out);
                read.extend(&out[..n]);
            }
            assert_eq!(read, stream);
        }
    }

    #[test]
    fn overlapping_copies_never_change_what_was_stored_first() {
        let mut buffer = RecvBuffer::new(1, 100);
        buffer.insert(5, b"EFGH", 101);
        buffer.insert(3, b"cdefghij", 101);
        buffer.insert(1, b"ab", 101);
        let mut out = [0; 20];
        let n = buffer.read(&mut out);
        assert_eq!(&out[..n], b"abcdEFGHij");
    }

    #[test]
    fn memory_is_given_back_when_a_burst_is_over() {
        let mut buffer = RecvBuffer::new(1, 4 << 20);
        let burst = vec![1; 1 << 20];
        buffer.insert(1, &burst, 1 + (4 << 20));
        assert!(buffer.cost() >= 1 << 20);
        buffer.discard((1 << 20) - 1000);
        assert!(buffer.cost() < 300 << 10, "{} octets for 1000", buffer.cost());
        buffer.discard(1000);
        assert_eq!(buffer.cost(), 0);
    }

    #[test]
    fn a_range_too_many_takes_the_place_of_a_later_one() {
        let mut buffer = RecvBuffer::new(1, 100 * OVERHEAD);
        let edge = 1 + 100 * OVERHEAD as u64;
        for n in 0..100 {
            assert_eq!(buffer.make_room_for_range(1000 + 2 * n), Some(0));
            buffer.insert(1000 + 2 * n, b"x", edge);
        }
        assert_eq!(buffer.make_room_for_range(2000), None, "it would be read last");
        assert_eq!(buffer.make_room_for_range(500), Some(1));
        buffer.insert(500, b"x", edge);
        assert_eq!(buffer.out_of_order().len(), 100);
        assert_eq!(buffer.out_of_order().last(), Some(&(1196..1197)));
    }
}
