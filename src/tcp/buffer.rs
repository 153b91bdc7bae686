//! The two byte queues of a connection, addressed by stream offset and bounded.

use std::collections::VecDeque;
use std::ops::Range;

use crate::ranges::RangeSet;

/// What the application wrote and the peer has not acknowledged yet.
#[derive(Clone, Debug)]
pub(super) struct SendBuffer {
    data: VecDeque<u8>,
    /// Offset of the first octet in `data`.
    start: u64,
    limit: usize,
}

impl SendBuffer {
    pub(super) fn new(start: u64, limit: usize) -> Self {
        Self { data: VecDeque::new(), start, limit }
    }

    pub(super) fn free(&self) -> usize {
        self.limit.saturating_sub(self.data.len())
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    pub(super) fn end(&self) -> u64 {
        self.start + self.data.len() as u64
    }

    pub(super) fn len(&self) -> usize {
        self.data.len()
    }

    /// Takes as much of `bytes` as there is room for.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.free());
        self.data.extend(&bytes[..taken]);
        taken
    }

    /// The octets of `range`, in one or two pieces.
    pub(super) fn slices(&self, range: Range<u64>) -> (&[u8], &[u8]) {
        let from = (range.start.saturating_sub(self.start) as usize).min(self.data.len());
        let to = (range.end.saturating_sub(self.start) as usize).clamp(from, self.data.len());
        let (head, tail) = self.data.as_slices();
        let split = head.len();
        if to <= split {
            (&head[from..to], &[])
        } else if from >= split {
            (&tail[from - split..to - split], &[])
        } else {
            (&head[from..], &tail[..to - split])
        }
    }

    /// Everything below `offset` has been acknowledged.
    pub(super) fn release_below(&mut self, offset: u64) {
        let gone = (offset.saturating_sub(self.start) as usize).min(self.data.len());
        self.data.drain(..gone);
        self.start += gone as u64;
    }

    /// An idle connection owns no buffer.
    pub(super) fn shrink_if_empty(&mut self) {
        if self.data.is_empty() && self.data.capacity() > 0 {
            self.data = VecDeque::new();
        }
    }
}

/// What arrived and the application has not read yet, with holes (RFC 9293 §3.4: any segment inside the
/// window is worth keeping).
#[derive(Clone, Debug)]
pub(super) struct RecvBuffer {
    data: VecDeque<u8>,
    /// Offset of the first unread octet.
    start: u64,
    /// RCV.NXT, data octets only.
    next: u64,
    /// Ranges beyond `next` that have arrived.
    out_of_order: RangeSet,
    limit: usize,
}

/// A peer that sends every second octet must not cost us a range per octet.
const MAX_RANGES: usize = 4096;

impl RecvBuffer {
    pub(super) fn new(start: u64, limit: usize) -> Self {
        Self { data: VecDeque::new(), start, next: start, out_of_order: RangeSet::new(), limit }
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
        (self.next - self.start) as usize
    }

    /// Room for octets from RCV.NXT on, holes included.
    pub(super) fn window(&self) -> usize {
        self.limit.saturating_sub(self.readable())
    }

    pub(super) fn out_of_order(&self) -> &RangeSet {
        &self.out_of_order
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
        if from == self.next && self.out_of_order.is_empty() && self.data.len() == self.readable() {
            self.data.extend(bytes);
            self.next = end;
            return end - from;
        }
        if self.out_of_order.len() >= MAX_RANGES && from > self.next {
            return 0;
        }
        let (from_at, end_at) = ((from - self.start) as usize, (end - self.start) as usize);
        if self.data.len() < end_at {
            self.data.resize(end_at, 0);
        }
        // Where data overlaps, the first copy stays: a later one must not change what was acknowledged.
        let start = self.start;
        let data = &mut self.data;
        self.out_of_order.insert_with(from..end, |fresh| {
            let at = (fresh.start - start) as usize;
            let source = &bytes[at - from_at..][..(fresh.end - fresh.start) as usize];
            copy_into(data, at, source);
        });
        let before = self.next;
        if let Some(first) = self.out_of_order.first().filter(|r| r.start <= before).cloned() {
            self.next = first.end;
            self.out_of_order.remove_below(first.end);
        }
        self.next - before
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
        self.start += count as u64;
        // An idle connection owns no buffer; a small one is kept for interactive use.
        if self.data.is_empty() && self.data.capacity() > 512 {
            self.data = VecDeque::new();
        }
    }

    /// The stream has ended or broken: what is beyond RCV.NXT will never be read.
    pub(super) fn drop_out_of_order(&mut self) {
        self.data.truncate(self.readable());
        self.out_of_order.clear();
    }
}

fn copy_into(data: &mut VecDeque<u8>, at: usize, source: &[u8]) {
    let (head, tail) = data.as_mut_slices();
    if at >= head.len() {
        let at = at - head.len();
        tail[at..at + source.len()].copy_from_slice(source);
    } else {
        let first = source.len().min(head.len() - at);
        head[at..at + first].copy_from_slice(&source[..first]);
        tail[..source.len() - first].copy_from_slice(&source[first..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn send_buffer_slices_survive_the_wrap_of_the_ring() {
        let mut buffer = SendBuffer::new(1, 10);
        let mut written = 0_u8;
        let mut acked = 1_u64;
        for round in 0..50_u64 {
            while buffer.free() > 0 {
                assert_eq!(buffer.write(&[written]), 1);
                written = written.wrapping_add(1);
            }
            let range = acked..acked + 4;
            let (a, b) = buffer.slices(range.clone());
            let joined: Vec<u8> = a.iter().chain(b).copied().collect();
            let expected: Vec<u8> = range.map(|offset| (offset - 1) as u8).collect();
            assert_eq!(joined, expected, "round {round}");
            acked += 3;
            buffer.release_below(acked);
        }
    }
}
