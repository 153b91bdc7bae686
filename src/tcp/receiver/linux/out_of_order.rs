//! Linux's out-of-order queue: which segments are dropped as duplicates, which D-SACK blocks report them, and what
//! becomes of a FIN after a hole.
//!
//! The queue holds buffers of one or several segments, which may overlap. A FIN counts as one byte of its buffer. It
//! disappears if a longer segment replaces the buffer, or if in-order data covers it. Short data after the FIN may
//! share its buffer, and is then acknowledged with it.

use std::collections::VecDeque;

use super::buffer::HeldSegment;

type Block = (u64, u64);

/// Maximum number of buffers. A full queue accepts only data that follows one of its buffers.
const MAX_LEN: usize = 8192;

#[derive(Debug, Default)]
pub(super) struct OutOfOrder {
    /// Sorted by start offset, which no two buffers have in common.
    buffers: VecDeque<HeldSegment>,
}

/// The result of adding a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::tcp::receiver) struct Placed {
    /// The part of the segment that was received before.
    pub(in crate::tcp::receiver) dsack: Option<Block>,
    /// True if part of the segment is new.
    pub(in crate::tcp::receiver) is_new: bool,
    /// True if the segment has a buffer of its own.
    pub(super) is_stored: bool,
}

impl Placed {
    /// Returns true if the queue is full, so that the segment was dropped.
    pub(in crate::tcp::receiver) fn is_refused(&self) -> bool {
        !self.is_new && self.dsack.is_none()
    }
}

/// The result of moving RCV.NXT over the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp::receiver) struct Advance {
    pub(in crate::tcp::receiver) rcv_nxt: u64,
    /// Offset of a FIN that RCV.NXT has reached.
    pub(in crate::tcp::receiver) fin: Option<u64>,
    /// The duplicate that the next ACK reports.
    pub(in crate::tcp::receiver) dsack: Option<Block>,
}

impl OutOfOrder {
    pub(super) fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    pub(super) fn capacity(&self) -> usize {
        self.buffers.capacity()
    }

    /// Returns the end of the last buffer.
    pub(super) fn end(&self) -> Option<u64> {
        self.buffers.back().map(|last| last.end)
    }

    pub(super) fn has_fin(&self) -> bool {
        self.buffers.iter().any(|buffer| buffer.fin.is_some())
    }

    /// Adds a segment (tcp_data_queue_ofo()). The buffers that it replaces are added to `freed`.
    pub(super) fn place(&mut self, segment: HeldSegment, freed: &mut Vec<HeldSegment>) -> Placed {
        let mut dsack = None;
        let mut at = self.buffers.partition_point(|buffer| buffer.start <= segment.start);
        let is_full = self.buffers.len() >= MAX_LEN;
        if let Some(before) = at.checked_sub(1).and_then(|before| self.buffers.get_mut(before)) {
            if before.coalesce(&segment, is_full) {
                return Placed { is_new: true, ..Placed::default() };
            }
            if segment.end <= before.end {
                let dsack = Some((segment.start, segment.end));
                return Placed { dsack, ..Placed::default() };
            }
            if segment.start == before.start {
                // The loop below removes this buffer.
                at -= 1;
            } else if segment.start < before.end {
                dsack = Some((segment.start, before.end));
            }
        }
        if is_full {
            return Placed::default();
        }
        let covered = self.buffers.range(at..).take_while(|buffer| buffer.end <= segment.end).count();
        for buffer in self.buffers.drain(at..at + covered) {
            extend(&mut dsack, (buffer.start, buffer.end));
            freed.push(buffer);
        }
        if let Some(after) = self.buffers.get(at).filter(|after| after.start < segment.end) {
            extend(&mut dsack, (after.start, segment.end));
        }
        self.buffers.insert(at, segment);
        Placed { dsack, is_new: true, is_stored: true }
    }

    /// Removes the first buffer if RCV.NXT has reached it, and reports the part below `duplicate_below`, which
    /// was received twice.
    pub(super) fn take_first(&mut self, advance: &mut Advance, duplicate_below: u64) -> Option<HeldSegment> {
        let first = self.buffers.pop_front_if(|first| first.start <= advance.rcv_nxt)?;
        if first.start < duplicate_below {
            extend(&mut advance.dsack, (first.start, first.end.min(duplicate_below)));
        }
        self.free_if_empty();
        Some(first)
    }

    /// Removes the last buffer if it starts at or above `offset`. Otherwise it ends at `offset` at most.
    pub(super) fn drop_last(&mut self, offset: u64) -> Option<HeldSegment> {
        let dropped = self.buffers.pop_back_if(|last| last.start >= offset);
        if let Some(last) = self.buffers.back_mut().filter(|last| dropped.is_none() && last.end > offset) {
            last.end = offset;
            last.fin.take_if(|fin| *fin >= offset);
        }
        self.free_if_empty();
        dropped
    }

    fn free_if_empty(&mut self) {
        if self.buffers.is_empty() {
            self.buffers = VecDeque::new();
        }
    }
}

/// Extends the duplicate that is reported by an adjacent one, or reports the first one (tcp_dsack_extend()).
fn extend(dsack: &mut Option<Block>, (start, end): Block) {
    match dsack {
        None => *dsack = Some((start, end)),
        Some(known) if start <= known.1 && known.0 <= end => {
            *known = (known.0.min(start), known.1.max(end));
        }
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::receiver::linux::buffer::Buffer;

    /// Space after a segment of 1000 bytes is too small for another one.
    fn segment(start: u64, end: u64) -> HeldSegment {
        HeldSegment::new(start, end, None, Buffer::of_packet(1040))
    }

    fn with_fin(start: u64, fin: u64) -> HeldSegment {
        HeldSegment::new(start, fin + 1, Some(fin), Buffer::of_packet(1040))
    }

    fn queue(segments: &[HeldSegment]) -> OutOfOrder {
        let mut queue = OutOfOrder::default();
        for segment in segments {
            assert!(queue.place(*segment, &mut Vec::new()).is_stored);
        }
        queue
    }

    #[test]
    fn longer_segment_replaces_buffers_and_reports_them() {
        let mut queue = queue(&[segment(2000, 3000), segment(3000, 4000), segment(6000, 7000)]);
        let mut freed = Vec::new();
        let placed = queue.place(segment(2000, 5000), &mut freed);
        assert_eq!(placed, Placed { dsack: Some((2000, 4000)), is_new: true, is_stored: true });
        assert_eq!(freed, [segment(2000, 3000), segment(3000, 4000)]);
        assert_eq!(queue.buffers, [segment(2000, 5000), segment(6000, 7000)]);
    }

    #[test]
    fn fin_disappears_with_the_buffer_that_holds_it() {
        let mut queue = queue(&[with_fin(3000, 3000)]);
        assert!(queue.has_fin());
        assert_eq!(queue.place(segment(3000, 4000), &mut Vec::new()).dsack, Some((3000, 3001)));
        assert!(!queue.has_fin());
    }

    #[test]
    fn buffers_leave_in_order_until_the_next_hole() {
        let mut queue = queue(&[segment(6000, 7000), segment(3000, 4000), segment(2000, 3000)]);
        let mut advance = Advance { rcv_nxt: 2500, fin: None, dsack: None };
        let mut left = Vec::new();
        while let Some(first) = queue.take_first(&mut advance, 2500) {
            advance.rcv_nxt = first.end;
            left.push(first);
        }
        assert_eq!(left, [segment(2000, 3000), segment(3000, 4000)]);
        assert_eq!((advance.rcv_nxt, advance.dsack), (4000, Some((2000, 2500))));
    }

    #[test]
    fn full_queue_accepts_only_data_after_a_buffer() {
        let segments: Vec<_> =
            (1..=MAX_LEN as u64).map(|number| segment(2000 * number, 2000 * number + 1000)).collect();
        let mut queue = queue(&segments);
        assert!(queue.place(segment(3000, 3500), &mut Vec::new()).is_new);
        assert!(queue.place(segment(3600, 3700), &mut Vec::new()).is_refused());
        assert!(!queue.place(segment(2000, 2500), &mut Vec::new()).is_refused(), "it is a duplicate");
        assert_eq!(queue.buffers.len(), MAX_LEN);
    }
}
