//! The receive buffer, addressed by stream offset and limited in size.

use std::collections::VecDeque;

use airwire::text::{Known, Text};

use super::reassembly::{OutOfOrder, max_ranges};
use super::stored_text::StoredText;
use crate::memory::Budget;
use crate::ranges::RangeSet;

/// Capacity from which memory that a burst needed is released before the application has read everything.
const LARGE: usize = 256 << 10;

/// Data that arrived and that the application has not read, including data after holes (RFC 9293 §3.4
/// recommends keeping any segment in the window).
#[derive(Clone, Debug)]
pub(super) struct RecvBuffer {
    /// In-order unread data.
    data: StoredText,
    /// RCV.NXT, counting only data bytes.
    next: u64,
    /// Data received above `next`. Boxed because it is rare.
    held: Option<Box<OutOfOrder>>,
    limit: usize,
}

impl RecvBuffer {
    pub(super) fn new(start: u64, limit: usize) -> Self {
        Self { data: StoredText::default(), next: start, held: None, limit }
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

    /// Returns the number of in-order unread bytes.
    pub(super) fn readable(&self) -> usize {
        self.data.len()
    }

    /// Returns the free space from RCV.NXT on, including holes.
    pub(super) fn window(&self) -> usize {
        self.limit.saturating_sub(self.readable())
    }

    /// Returns the ranges received above RCV.NXT.
    pub(super) fn out_of_order(&self) -> &RangeSet {
        static NONE: RangeSet = RangeSet::new();
        self.held.as_ref().map_or(&NONE, |held| held.ranges())
    }

    /// Returns the distance from RCV.NXT to the end of the out-of-order data.
    pub(super) fn out_of_order_span(&self) -> u64 {
        self.out_of_order().last().map_or(0, |last| last.end - self.next)
    }

    /// Returns the total memory use in bytes.
    pub(super) fn cost(&self) -> usize {
        self.data.memory() + self.cost_out_of_order()
    }

    /// Returns the bytes of memory that `len` more in-order bytes would take.
    pub(super) fn growth(&self, len: usize) -> usize {
        growth(&self.data, len)
    }

    /// Moves the data to memory that another buffer no longer needs, if it must grow for `len` more bytes.
    #[inline]
    pub(super) fn reuse_memory(&mut self, len: usize, budget: &Budget) {
        if let StoredText::Bytes(bytes) = &mut self.data
            && bytes.len() + len > bytes.capacity()
            && let Some(mut spare) = budget.take_spare(bytes.capacity())
        {
            spare.append(bytes);
            *bytes = spare;
        }
    }

    /// Returns the part of [`Self::cost`] that out-of-order data takes.
    pub(super) fn cost_out_of_order(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.cost())
    }

    /// Stores `text`, which starts at `offset`. Data below RCV.NXT or above `edge`, the advertised window's
    /// edge, is ignored. Returns how far RCV.NXT moved.
    pub(super) fn insert(&mut self, offset: u64, text: Text<'_>, edge: u64) -> u64 {
        let end = (offset + text.len() as u64).min(edge);
        let from = offset.max(self.next);
        if from >= end {
            return 0;
        }
        let text = text.slice((from - offset) as usize..(end - offset) as usize);
        if from > self.next {
            self.held.get_or_insert_default().insert(from, text);
            return 0;
        }
        let before = self.next;
        let Some(held) = &mut self.held else {
            self.data.append(text);
            self.next = end;
            return end - before;
        };
        self.next = held.append_in_order(before, text, &mut self.data);
        self.held.take_if(|held| held.ranges().is_empty());
        self.next - before
    }

    /// Makes room for another range at `offset`. At the maximum number of ranges, this drops the last range,
    /// unless the new one would be last. Returns the number of bytes dropped. `None`: the new range does not
    /// fit.
    pub(super) fn make_room_for_range(&mut self, offset: u64) -> Option<u64> {
        let most = max_ranges(self.limit);
        let Some(held) = self.held.as_mut().filter(|held| held.ranges().len() >= most) else {
            return Some(0);
        };
        held.ranges().last().is_some_and(|last| offset < last.start).then(|| held.prune_last_range())
    }

    /// Drops out-of-order data, highest offset first, until `enough` bytes of memory are free. Returns the
    /// number of data bytes dropped.
    pub(super) fn prune(&mut self, enough: usize) -> u64 {
        let bytes = self.held.as_mut().map_or(0, |held| held.prune(enough));
        self.held.take_if(|held| held.ranges().is_empty());
        bytes
    }

    pub(super) fn peek(&self, out: &mut [u8]) -> usize {
        self.data.copy_to(out)
    }

    /// Removes up to `max` readable bytes, if they are one part of the known stream.
    pub(super) fn read_known(&mut self, max: usize) -> Option<Known> {
        let StoredText::Known(known) = &mut self.data else { return None };
        let count = known.len().min(max);
        let read = known.slice(0..count);
        *known = known.slice(count..known.len());
        (count > 0).then_some(read)
    }

    pub(super) fn read(&mut self, out: &mut [u8], budget: &Budget) -> usize {
        if self.data.is_empty() {
            return 0;
        }
        let count = self.peek(out);
        self.discard(count, budget);
        count
    }

    /// Removes the first `count` readable bytes.
    pub(super) fn discard(&mut self, count: usize, budget: &Budget) {
        self.data.discard(count);
        let StoredText::Bytes(bytes) = &mut self.data else { return };
        // An idle connection keeps at most a small buffer.
        if bytes.is_empty() && bytes.capacity() > 512 {
            budget.recycle(std::mem::take(bytes));
        }
        if bytes.capacity() >= LARGE && bytes.len() < bytes.capacity() / 8 {
            let mut smaller = VecDeque::with_capacity(bytes.capacity() / 4);
            smaller.append(bytes);
            budget.recycle(std::mem::replace(bytes, smaller));
        }
    }

    /// Drops out-of-order data at or above `offset`, because the stream ends there.
    pub(super) fn drop_from(&mut self, offset: u64) {
        self.held.take_if(|held| {
            held.drop_from(offset);
            held.ranges().is_empty()
        });
    }
}

/// Returns the bytes by which the allocated memory would grow. It at least doubles when it grows.
fn growth(data: &StoredText, len: usize) -> usize {
    let capacity = data.memory();
    if data.len() + len <= capacity { 0 } else { capacity.max(data.len() + len - capacity) }
}

#[cfg(test)]
mod tests {
    use airwire::rng::Stream;

    use super::*;
    use crate::tcp::receiver::reassembly::OVERHEAD;

    #[test]
    fn reordered_and_overlapping_segments_form_the_stream() {
        let stream: Vec<u8> = (0..200_u8).collect();
        let mut random = Stream::new(1, "receive buffer");
        for _ in 0..300 {
            let mut buffer = RecvBuffer::new(1, 64);
            let mut read: Vec<u8> = vec![];
            while read.len() < stream.len() {
                let base = read.len() as u64;
                let from = (base + random.below(80)).saturating_sub(10).min(199);
                let to = (from + 1 + random.below(20)).min(200);
                let before = buffer.next();
                let moved =
                    buffer.insert(1 + from, Text::Bytes(&stream[from as usize..to as usize]), 1 + base + 64);
                assert_eq!(buffer.next(), before + moved);
                assert!(buffer.window() <= 64, "{} bytes free", buffer.window());
                let mut out = [0; 7];
                let n = buffer.read(&mut out, &Budget::unlimited());
                read.extend(&out[..n]);
            }
            assert_eq!(read, stream);
        }
    }

    #[test]
    fn overlap_keeps_first_received_bytes() {
        let mut buffer = RecvBuffer::new(1, 100);
        buffer.insert(5, Text::Bytes(b"EFGH"), 101);
        buffer.insert(3, Text::Bytes(b"cdefghij"), 101);
        buffer.insert(1, Text::Bytes(b"ab"), 101);
        let mut out = [0; 20];
        let n = buffer.read(&mut out, &Budget::unlimited());
        assert_eq!(&out[..n], b"abcdEFGHij");
    }

    #[test]
    fn memory_of_read_buffer_serves_next_one() {
        let budget = Budget::unlimited();
        let fill = |buffer: &mut RecvBuffer| {
            for offset in (1..100_000).step_by(1000) {
                buffer.reuse_memory(1000, &budget);
                buffer.insert(offset, Text::Bytes(&[7; 1000]), 1 << 20);
            }
        };
        let (mut first, mut second) = (RecvBuffer::new(1, 1 << 20), RecvBuffer::new(1, 1 << 20));
        fill(&mut first);
        let memory = first.cost();
        assert_eq!(first.read(&mut [0; 100_000], &budget), 100_000);
        assert_eq!(first.cost(), 0);
        fill(&mut second);
        assert_eq!(second.cost(), memory);
        assert!(budget.take_spare(16 << 10).is_none(), "the second buffer has the memory of the first one");
        let mut read = [0; 100_000];
        second.read(&mut read, &budget);
        assert_eq!(read, [7; 100_000]);
    }

    #[test]
    fn buffer_frees_memory_after_burst() {
        let mut buffer = RecvBuffer::new(1, 4 << 20);
        let burst = vec![1; 1 << 20];
        buffer.insert(1, Text::Bytes(&burst), 1 + (4 << 20));
        assert!(buffer.cost() >= 1 << 20);
        buffer.discard((1 << 20) - 1000, &Budget::unlimited());
        assert!(buffer.cost() < 300 << 10, "{} bytes allocated for 1000", buffer.cost());
        buffer.discard(1000, &Budget::unlimited());
        assert_eq!(buffer.cost(), 0);
    }

    #[test]
    fn new_range_replaces_higher_range_when_full() {
        let mut buffer = RecvBuffer::new(1, 100 * OVERHEAD);
        let edge = 1 + 100 * OVERHEAD as u64;
        for n in 0..100 {
            assert_eq!(buffer.make_room_for_range(1000 + 2 * n), Some(0));
            buffer.insert(1000 + 2 * n, Text::Bytes(b"x"), edge);
        }
        assert_eq!(buffer.make_room_for_range(2000), None, "a range above all others is refused");
        assert_eq!(buffer.make_room_for_range(500), Some(1));
        buffer.insert(500, Text::Bytes(b"x"), edge);
        assert_eq!(buffer.out_of_order().len(), 100);
        assert_eq!(buffer.out_of_order().last(), Some(&(1196..1197)));
    }
}
