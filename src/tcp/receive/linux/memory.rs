//! What segments cost that wait to be read or for a hole to be filled: `sk_rmem_alloc`.

use std::collections::VecDeque;

/// A segment that is held.
#[derive(Clone, Copy, Debug)]
struct Held {
    start: u64,
    end: u64,
    truesize: u64,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// By their first octet.
    held: VecDeque<Held>,
    used: u64,
}

/// A list that grew in a burst is given back; a short one stays.
const KEEP: usize = 4;
/// A peer that sends single octets must not make the list long: then one stands for several.
const MOST: usize = 8192;

impl Memory {
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Octets that the list itself takes.
    pub(super) fn cost(&self) -> usize {
        self.held.capacity() * size_of::<Held>()
    }

    pub(super) fn hold(&mut self, start: u64, end: u64, truesize: u32) {
        let full = self.held.len() >= MOST;
        let at = match self.held.back() {
            Some(last) if last.start > start => self.held.partition_point(|held| held.start <= start),
            _ => self.held.len(),
        };
        self.used += u64::from(truesize);
        match self.held.get_mut(at.saturating_sub(1)).filter(|_| full) {
            Some(before) => {
                before.end = before.end.max(end);
                before.truesize += u64::from(truesize);
            }
            None => self.held.insert(at, Held { start, end, truesize: truesize.into() }),
        }
    }

    /// Segments from `offset` on are gone: they were given up.
    pub(super) fn drop_from(&mut self, offset: u64) {
        while let Some(last) = self.held.back().filter(|last| last.start >= offset) {
            self.used -= last.truesize;
            self.held.pop_back();
        }
    }

    /// The first segment that ends at or below `copied` is gone; returns its end.
    pub(super) fn release_one(&mut self, copied: u64) -> Option<u64> {
        let first = self.held.front().copied().filter(|first| first.end <= copied)?;
        self.held.pop_front();
        self.used -= first.truesize;
        if self.held.is_empty() && self.held.capacity() > KEEP {
            self.held = VecDeque::new();
        }
        Some(first.end)
    }
}

/// Of the structure that describes a segment, and of what stands behind its octets.
const SK_BUFF: u32 = 256;
const SHARED_INFO: u32 = 320;
/// What a driver leaves free before a packet (NET_SKB_PAD).
const PAD: u32 = 64;
/// Small packets have a cache of their own (skbuff_small_head).
const SMALL_HEAD: u32 = 576;

/// What a packet costs that comes from a TUN device, in one piece (tun_alloc_skb(), kmalloc_reserve()).
///
/// Choice: other drivers allocate otherwise; those that this receiver is compared with are behind TUN devices.
pub(super) fn truesize(packet: u32) -> u32 {
    let head = (PAD + packet).next_multiple_of(64) + SHARED_INFO;
    let allocated = if head <= SMALL_HEAD { SMALL_HEAD } else { head.next_power_of_two() };
    allocated + SK_BUFF
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_segment_takes_a_half_more_than_its_text() {
        assert_eq!(truesize(1500), 2304);
        assert_eq!(truesize(100), 832);
        assert_eq!(truesize(576), 1280);
    }

    #[test]
    fn what_was_read_is_free_whatever_the_order_it_came_in() {
        let mut memory = Memory::default();
        memory.hold(1, 101, 10);
        memory.hold(301, 401, 30);
        memory.hold(201, 301, 20);
        assert_eq!(memory.used(), 60);
        assert_eq!(memory.release_one(301), Some(101));
        assert_eq!(memory.release_one(301), Some(301));
        assert_eq!(memory.release_one(301), None);
        assert_eq!(memory.used(), 30);
        memory.drop_from(301);
        assert_eq!(memory.used(), 0);
    }
}
