//! Linux's out-of-order queue: which segments are dropped as duplicates, which D-SACK blocks report them, and what
//! becomes of a FIN after a hole.
//!
//! The queue holds buffers of one or several segments, which may overlap. A FIN counts as one byte of its buffer. It
//! disappears if a longer segment replaces the buffer, or if in-order data covers it. Short data after the FIN may
//! share its buffer, and is then acknowledged with it.

use super::memory::HeldSegment;

type Block = (u64, u64);

/// Maximum number of buffers. A peer that sends single bytes cannot make the queue longer.
const MAX_LEN: usize = 8192;

#[derive(Debug, Default)]
pub(super) struct OutOfOrder {
    /// Sorted by start offset, which no two buffers have in common.
    buffers: Vec<HeldSegment>,
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
        self.buffers.last().map(|last| last.end)
    }

    pub(super) fn has_fin(&self) -> bool {
        self.buffers.iter().any(|buffer| buffer.fin.is_some())
    }

    /// Adds a segment (tcp_data_queue_ofo()). The buffers that it replaces are added to `freed`.
    pub(super) fn place(&mut self, segment: HeldSegment, freed: &mut Vec<HeldSegment>) -> Placed {
        let mut dsack = None;
        let mut at = self.buffers.partition_point(|buffer| buffer.start <= segment.start);
        if let Some(before) = self.buffers[..at].last_mut() {
            if before.coalesce(&segment) {
                return Placed { is_new: true, ..Placed::default() };
            }
            if segment.end <= before.end {
                let dsack = Some((segment.start, segment.end));
                return Placed { dsack, ..Placed::default() };
            }
            if segment.start == before.start {
                extend(&mut dsack, (before.start, before.end));
                at -= 1;
                freed.push(self.buffers.remove(at));
            } else if segment.start < before.end {
                dsack = Some((segment.start, before.end));
            }
        }
        if self.buffers.len() >= MAX_LEN {
            return Placed::default();
        }
        let covered = self.buffers[at..].iter().take_while(|buffer| buffer.end <= segment.end).count();
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
        let first = self.buffers.first().filter(|first| first.start <= advance.rcv_nxt)?;
        if first.start < duplicate_below {
            extend(&mut advance.dsack, (first.start, first.end.min(duplicate_below)));
        }
        let first = self.buffers.remove(0);
        self.free_if_empty();
        Some(first)
    }

    /// Removes the last buffer if it starts at or above `offset`. Otherwise it ends at `offset` at most.
    pub(super) fn drop_last(&mut self, offset: u64) -> Option<HeldSegment> {
        let dropped = self.buffers.pop_if(|last| last.start >= offset);
        if let Some(last) = self.buffers.last_mut().filter(|last| dropped.is_none() && last.end > offset) {
            last.end = offset;
            last.fin.take_if(|fin| *fin >= offset);
        }
        self.free_if_empty();
        dropped
    }

    fn free_if_empty(&mut self) {
        if self.buffers.is_empty() {
            self.buffers = Vec::new();
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
