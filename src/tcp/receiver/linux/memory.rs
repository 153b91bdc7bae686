//! Segments that wait to be read, or wait for a hole to be filled, and their memory cost: `sk_rmem_alloc`.

use std::collections::VecDeque;

use super::buffer::{Buffer, HeldSegment};
use super::out_of_order::{Advance, OutOfOrder, Placed};

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The receive queue, in the order of arrival.
    received: VecDeque<HeldSegment>,
    out_of_order: OutOfOrder,
    used: u64,
    reserve: Reserve,
}

/// Memory that a socket has reserved in whole pages and does not use: `sk_forward_alloc`. Data takes the fast path
/// only if it fits (tcp_rcv_established()). Sizes of 32 bits, as in the kernel, keep an idle connection small.
#[derive(Clone, Copy, Debug, Default)]
struct Reserve {
    free: u32,
    /// Memory of unacknowledged data, as last reported (`sk_wmem_queued`).
    queued: u32,
}

impl Reserve {
    const PAGE: u64 = 4096;

    /// Reserves pages until `size` fits (__sk_mem_schedule()).
    fn reserve(&mut self, size: u64) {
        let missing = size.saturating_sub(self.free.into()).next_multiple_of(Self::PAGE);
        self.free = saturated(u64::from(self.free) + missing);
    }

    /// Uses memory that was reserved (sk_mem_charge()).
    fn take(&mut self, size: u64) {
        self.free = self.free.saturating_sub(saturated(size));
    }

    /// Frees memory, and returns whole pages (sk_mem_uncharge()).
    fn release(&mut self, size: u64) {
        self.free = saturated((u64::from(self.free) + size) % Self::PAGE);
    }

    /// Updates the memory of unacknowledged data.
    fn set_queued(&mut self, queued: u64) {
        let before = u64::from(self.queued);
        if queued < before {
            self.release(before - queued);
        } else {
            self.reserve(queued - before);
            self.take(queued - before);
        }
        self.queued = saturated(queued);
    }
}

fn saturated(size: u64) -> u32 {
    size.try_into().unwrap_or(u32::MAX)
}

/// Maximum capacity of an empty list. A list that grew larger in a burst is freed.
const MAX_EMPTY: usize = 4;
/// Maximum length of the list. Beyond it several segments share an entry, so that a peer that sends single
/// bytes cannot make it long.
const MAX_LEN: usize = 8192;

impl Memory {
    /// Returns the memory cost of all segments.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Returns the bytes of memory that the lists take.
    pub(super) fn cost(&self) -> usize {
        (self.received.capacity() + self.out_of_order.capacity()) * size_of::<HeldSegment>()
    }

    /// Returns the out-of-order queue.
    pub(super) fn out_of_order(&self) -> &OutOfOrder {
        &self.out_of_order
    }

    /// Returns true if a packet fits into the reserved memory. `queued` is the memory of unacknowledged data.
    pub(super) fn has_reserved(&self, packet: u32, queued: u64) -> bool {
        let mut reserve = self.reserve;
        reserve.set_queued(queued);
        Buffer::of_packet(packet).truesize <= reserve.free
    }

    /// Updates the memory of unacknowledged data.
    pub(super) fn set_queued(&mut self, queued: u64) {
        self.reserve.set_queued(queued);
    }

    /// Appends a segment to the receive queue (tcp_queue_rcv()). A short one moves into the free space after its
    /// predecessor, and costs nothing.
    pub(super) fn receive(&mut self, segment: HeldSegment) {
        self.reserve.reserve(segment.truesize.into());
        if self.received.back_mut().is_some_and(|last| last.coalesce(&segment, false)) {
            return;
        }
        self.take(&segment);
        self.push_received(segment);
    }

    fn push_received(&mut self, segment: HeldSegment) {
        let is_full = self.received.len() >= MAX_LEN;
        match self.received.back_mut().filter(|_| is_full) {
            Some(last) => {
                last.end = segment.end;
                last.truesize = last.truesize.saturating_add(segment.truesize);
            }
            None => self.received.push_back(segment),
        }
    }

    /// Adds a segment to the out-of-order queue.
    pub(super) fn place(&mut self, segment: HeldSegment) -> Placed {
        let mut freed = Vec::new();
        let placed = self.out_of_order.place(segment, &mut freed);
        self.reserve.reserve(segment.truesize.into());
        freed.iter().for_each(|dropped| self.free(dropped));
        if placed.is_stored {
            self.take(&segment);
        }
        placed
    }

    /// Moves the segments that RCV.NXT has reached to the receive queue (tcp_ofo_queue()). `dsack` is the duplicate
    /// that the next ACK reports.
    pub(super) fn advance(&mut self, rcv_nxt: u64, dsack: Option<(u64, u64)>) -> Advance {
        let mut result = Advance { rcv_nxt, fin: None, dsack };
        while result.fin.is_none()
            && let Some(segment) = self.out_of_order.take_first(&mut result, rcv_nxt)
        {
            let is_old = segment.end <= result.rcv_nxt;
            if is_old || self.received.back_mut().is_some_and(|last| last.coalesce(&segment, false)) {
                self.free(&segment);
            } else {
                self.push_received(segment);
            }
            if !is_old {
                (result.rcv_nxt, result.fin) = (segment.end, segment.fin);
            }
        }
        if result.fin.is_some() {
            self.drop_from(0);
        }
        result
    }

    fn take(&mut self, segment: &HeldSegment) {
        self.used += u64::from(segment.truesize);
        self.reserve.take(segment.truesize.into());
    }

    fn free(&mut self, segment: &HeldSegment) {
        self.used -= u64::from(segment.truesize);
        self.reserve.release(segment.truesize.into());
    }

    /// Removes out-of-order data at or above `offset`.
    pub(super) fn drop_from(&mut self, offset: u64) {
        while let Some(dropped) = self.out_of_order.drop_last(offset) {
            self.free(&dropped);
        }
    }

    /// Removes the first segment if it ends at or below `copied_seq`, and returns its end.
    pub(super) fn release_one(&mut self, copied_seq: u64) -> Option<u64> {
        let first = self.received.front().copied().filter(|first| first.end <= copied_seq)?;
        self.received.pop_front();
        self.free(&first);
        if self.received.is_empty() && self.received.capacity() > MAX_EMPTY {
            self.received = VecDeque::new();
        }
        Some(first.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(start: u64, end: u64, truesize: u32) -> HeldSegment {
        HeldSegment::new(start, end, None, Buffer { truesize, tailroom: 0 })
    }

    fn packet(start: u64, end: u64, headers: u32) -> HeldSegment {
        HeldSegment::new(start, end, None, Buffer::of_packet(headers + (end - start) as u32))
    }

    #[test]
    fn truesize_follows_kernel_allocation_sizes() {
        let buffer = |packet| (Buffer::of_packet(packet).truesize, Buffer::of_packet(packet).tailroom);
        assert_eq!((buffer(1500), buffer(100), buffer(576)), ((2304, 164), (832, 92), (1280, 64)));
    }

    #[test]
    fn short_segment_fills_space_after_its_predecessor() {
        let mut memory = Memory::default();
        // 500 bytes of data in a packet of 540.
        memory.receive(packet(501, 1001, 40));
        memory.receive(packet(1001, 1101, 40));
        assert_eq!(memory.used(), 1280);
        memory.receive(packet(1101, 1102, 40));
        assert_eq!(memory.used(), 1280 + 832, "100 bytes were free");
        assert_eq!((memory.release_one(1101), memory.used()), (Some(1101), 832));
    }

    #[test]
    fn packets_fit_into_pages_reserved_before() {
        let mut memory = Memory::default();
        assert!(!memory.has_reserved(41, 0), "nothing is reserved");
        memory.receive(packet(1, 101, 52));
        // A page less 832 bytes for the packet leaves 3264. A write of one byte takes 833.
        assert!(memory.has_reserved(1452, 0) && memory.has_reserved(1452, 833));
        memory.set_queued(833);
        memory.receive(packet(101, 1501, 52));
        assert!(!memory.has_reserved(53, 833), "127 bytes are left");
        assert_eq!(memory.release_one(1501), Some(101));
        assert!(memory.has_reserved(53, 833), "the application has read the first packet");
    }

    #[test]
    fn only_list_of_a_burst_is_freed() {
        let mut memory = Memory::default();
        memory.receive(of(1, 2, 10));
        assert_eq!(memory.release_one(2), Some(2));
        assert!(memory.cost() > 0, "a short list is kept for the next segment");
        for at in 1..=100 {
            memory.receive(of(at, at + 1, 10));
        }
        for at in 1..=100 {
            assert_eq!((memory.used(), memory.release_one(101)), (10 * (101 - at), Some(at + 1)));
        }
        assert_eq!((memory.used(), memory.cost()), (0, 0));
    }

    #[test]
    fn segments_out_of_order_are_read_in_order() {
        let mut memory = Memory::default();
        memory.receive(of(1, 101, 10));
        memory.place(of(301, 401, 30));
        memory.place(of(501, 601, 50));
        assert_eq!(memory.used(), 90);
        memory.receive(of(101, 301, 20));
        assert_eq!(memory.advance(301, None).rcv_nxt, 401);
        memory.drop_from(501);
        assert_eq!(memory.used(), 60);
        assert_eq!(memory.release_one(301), Some(101));
        assert_eq!(memory.release_one(301), Some(301));
        assert_eq!(memory.release_one(301), None);
        assert_eq!(memory.release_one(401), Some(401));
        assert_eq!(memory.used(), 0);
    }
}
