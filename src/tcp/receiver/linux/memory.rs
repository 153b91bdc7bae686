//! Memory cost of segments that wait to be read, or wait for a hole to be filled: `sk_rmem_alloc`.

use std::collections::VecDeque;

/// A segment in memory.
#[derive(Clone, Copy, Debug)]
struct HeldSegment {
    start: u64,
    end: u64,
    truesize: u64,
    /// Free space after the segment in its buffer.
    tailroom: u64,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Sorted by start offset.
    held: VecDeque<HeldSegment>,
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

    /// Returns the bytes of memory that the list takes.
    pub(super) fn cost(&self) -> usize {
        self.held.capacity() * size_of::<HeldSegment>()
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

    /// Holds a segment. A short one moves into the free space after its predecessor, and costs nothing
    /// (tcp_try_coalesce()).
    pub(super) fn hold(&mut self, start: u64, end: u64, buffer: Buffer) {
        let Buffer { truesize, tailroom } = buffer;
        let full = self.held.len() >= MAX_LEN;
        let at = match self.held.back() {
            Some(last) if last.start > start => self.held.partition_point(|held| held.start <= start),
            _ => self.held.len(),
        };
        self.reserve.reserve(truesize.into());
        let before = self.held.get_mut(at.saturating_sub(1));
        if let Some(before) = before.filter(|before| before.end == start && end - start <= before.tailroom) {
            before.tailroom -= end - start;
            before.end = end;
            return;
        }
        self.used += u64::from(truesize);
        self.reserve.take(truesize.into());
        match self.held.get_mut(at.saturating_sub(1)).filter(|_| full) {
            Some(before) => {
                before.end = before.end.max(end);
                before.truesize += u64::from(truesize);
            }
            None => {
                let held = HeldSegment { start, end, truesize: truesize.into(), tailroom: tailroom.into() };
                self.held.insert(at, held);
            }
        }
    }

    /// Removes segments at or above `offset`, which were pruned.
    pub(super) fn drop_from(&mut self, offset: u64) {
        while let Some(last) = self.held.back().filter(|last| last.start >= offset) {
            self.used -= last.truesize;
            self.reserve.release(last.truesize);
            self.held.pop_back();
        }
    }

    /// Removes the first segment if it ends at or below `copied_seq`, and returns its end.
    pub(super) fn release_one(&mut self, copied_seq: u64) -> Option<u64> {
        let first = self.held.front().copied().filter(|first| first.end <= copied_seq)?;
        self.held.pop_front();
        self.used -= first.truesize;
        self.reserve.release(first.truesize);
        if self.held.is_empty() && self.held.capacity() > MAX_EMPTY {
            self.held = VecDeque::new();
        }
        Some(first.end)
    }
}

/// Sizes of struct sk_buff, and of struct skb_shared_info after the data.
const SK_BUFF: u32 = 256;
const SHARED_INFO: u32 = 320;
/// Space that a driver leaves before a packet (NET_SKB_PAD).
const PAD: u32 = 64;
/// Buffer size of the cache for small packets (skbuff_small_head).
const SMALL_HEAD: u32 = 576;

/// The memory of a packet: its cost, and the free space after the data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    pub(super) truesize: u32,
    pub(super) tailroom: u32,
}

impl Buffer {
    /// Returns the memory of a packet from a TUN device, in one piece (tun_alloc_skb(), kmalloc_reserve()).
    ///
    /// Other drivers allocate differently, but the receivers that this one is compared with are behind TUN
    /// devices.
    pub(super) fn of_packet(packet: u32) -> Self {
        let head = (PAD + packet).next_multiple_of(64) + SHARED_INFO;
        let allocated = if head <= SMALL_HEAD { SMALL_HEAD } else { head.next_power_of_two() };
        Self { truesize: allocated + SK_BUFF, tailroom: allocated - SHARED_INFO - PAD - packet }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(truesize: u32) -> Buffer {
        Buffer { truesize, tailroom: 0 }
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
        memory.hold(501, 1001, Buffer::of_packet(540));
        memory.hold(1001, 1101, Buffer::of_packet(140));
        assert_eq!(memory.used(), 1280);
        memory.hold(1101, 1102, Buffer::of_packet(41));
        assert_eq!(memory.used(), 1280 + 832, "100 bytes were free");
        assert_eq!((memory.release_one(1101), memory.used()), (Some(1101), 832));
    }

    #[test]
    fn packets_fit_into_pages_reserved_before() {
        let mut memory = Memory::default();
        assert!(!memory.has_reserved(41, 0), "nothing is reserved");
        memory.hold(1, 101, Buffer::of_packet(152));
        // A page less 832 bytes for the packet leaves 3264. A write of one byte takes 833.
        assert!(memory.has_reserved(1452, 0) && memory.has_reserved(1452, 833));
        memory.set_queued(833);
        memory.hold(101, 1501, Buffer::of_packet(1452));
        assert!(!memory.has_reserved(53, 833), "127 bytes are left");
        assert_eq!(memory.release_one(1501), Some(101));
        assert!(memory.has_reserved(53, 833), "the application has read the first packet");
    }

    #[test]
    fn only_list_of_a_burst_is_freed() {
        let mut memory = Memory::default();
        memory.hold(1, 2, of(10));
        assert_eq!(memory.release_one(2), Some(2));
        assert!(memory.cost() > 0, "a short list is kept for the next segment");
        for at in 1..=100 {
            memory.hold(at, at + 1, of(10));
        }
        for at in 1..=100 {
            assert_eq!((memory.used(), memory.release_one(101)), (10 * (101 - at), Some(at + 1)));
        }
        assert_eq!((memory.used(), memory.cost()), (0, 0));
    }

    #[test]
    fn read_segments_free_memory_regardless_of_arrival_order() {
        let mut memory = Memory::default();
        memory.hold(1, 101, of(10));
        memory.hold(301, 401, of(30));
        memory.hold(201, 301, of(20));
        assert_eq!(memory.used(), 60);
        assert_eq!(memory.release_one(301), Some(101));
        assert_eq!(memory.release_one(301), Some(301));
        assert_eq!(memory.release_one(301), None);
        assert_eq!(memory.used(), 30);
        memory.drop_from(301);
        assert_eq!(memory.used(), 0);
    }
}
