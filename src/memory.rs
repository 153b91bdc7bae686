//! A limit on the memory that all connections of a host use for receive data, out-of-order data and send
//! data.
//!
//! The effect depends on the part of the limit that is in use:
//!
//! * Up to ¾: nothing. Each connection has the buffer sizes of its options.
//! * Above ¾: out-of-order data is pruned down to ⅝ and no more is stored. The largest holders are pruned
//!   first, each from its highest offset. Windows and send buffers shrink as less memory is left.
//! * Above 31/32: SYNs are not answered.
//! * All: in-order data is accepted only up to [`RESERVE`] bytes per connection.
//!
//! No connection is closed because memory is short. Each one keeps at least [`RESERVE`] bytes in each
//! direction, so usage can exceed the limit by that amount per connection and direction.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that a connection may hold in each direction even if no memory is left, as in Linux (the first value
/// of tcp_rmem).
pub const RESERVE: usize = 4096;

/// Capacities of the memory that is kept for the next receive buffer, in bytes. The budget does not count it.
const SPARE: RangeInclusive<usize> = 16 << 10..=1 << 20;

/// When memory is short, a connection may hold 1/`SHARE` of the free memory in each direction.
const SHARE: usize = 64;

/// Memory that the data of a host's connections uses, in bytes, and the effects of a shortage. It is counted
/// only if a limit is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUse {
    /// The limit. `None`: no limit is set.
    pub limit: Option<usize>,
    /// Bytes in use now.
    pub used: usize,
    /// Bytes of `used` that are out-of-order data.
    pub out_of_order: usize,
    /// Peak of `used`.
    pub peak: usize,
    /// Bytes of out-of-order data that were pruned.
    pub pruned: u64,
    /// Segments that were not stored.
    pub refused_segments: u64,
    /// SYNs that were not answered.
    pub refused_connections: u64,
    /// True if SYNs are currently not answered.
    pub full: bool,
}

/// The memory budget of a host. Each connection accounts for its data through a [`Charge`].
#[derive(Debug)]
pub(crate) struct Budget {
    limit: AtomicUsize,
    used: AtomicUsize,
    out_of_order: AtomicUsize,
    peak: AtomicUsize,
    pruned: AtomicU64,
    refused_segments: AtomicU64,
    refused_connections: AtomicU64,
    /// Memory of a receive buffer that was read completely. Without it, a busy connection would allocate, fill and
    /// free new pages in each turn, because idle ones must not keep memory.
    spare: Mutex<VecDeque<u8>>,
}

impl Budget {
    /// Creates a budget without a limit, stored as `usize::MAX`.
    pub(crate) fn unlimited() -> Arc<Self> {
        Arc::new(Self {
            limit: AtomicUsize::new(usize::MAX),
            used: AtomicUsize::new(0),
            out_of_order: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            pruned: AtomicU64::new(0),
            refused_segments: AtomicU64::new(0),
            refused_connections: AtomicU64::new(0),
            spare: Mutex::default(),
        })
    }

    /// Keeps the memory of an empty buffer for the next one that grows, or frees it.
    pub(crate) fn recycle(&self, memory: VecDeque<u8>) {
        if !SPARE.contains(&memory.capacity()) || self.is_pressed() {
            return;
        }
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.capacity() > spare.capacity() {
            *spare = memory;
        }
    }

    /// Takes the memory that was kept, if it has more than `capacity` bytes and fits into the limit.
    pub(crate) fn take_spare(&self, capacity: usize) -> Option<VecDeque<u8>> {
        if capacity < *SPARE.start() || self.is_pressed() {
            return None;
        }
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let is_suitable = spare.capacity() > capacity && self.has(spare.capacity());
        is_suitable.then(|| std::mem::take(&mut *spare))
    }

    pub(crate) fn set_limit(&self, octets: usize) {
        self.limit.store(octets, Relaxed);
    }

    /// Returns true if a limit is set.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.limit() < usize::MAX
    }

    #[inline]
    fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    #[inline]
    fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    fn left(&self) -> usize {
        self.limit().saturating_sub(self.used())
    }

    /// Returns true if more than three quarters of the limit are in use.
    #[inline]
    pub(crate) fn is_pressed(&self) -> bool {
        let limit = self.limit();
        self.used() > limit - limit / 4
    }

    /// Returns true if so little is left that new connections are refused in favour of open ones.
    pub(crate) fn is_full(&self) -> bool {
        self.left() < self.limit() / 32
    }

    /// Returns true if `octets` more bytes fit.
    #[inline]
    pub(crate) fn has(&self, octets: usize) -> bool {
        octets == 0 || octets <= self.left()
    }

    /// Returns the number of bytes that a connection may hold in each direction. `None`: memory is not short.
    #[inline]
    pub(crate) fn share(&self) -> Option<usize> {
        self.is_pressed().then(|| (self.left() / SHARE).max(RESERVE))
    }

    /// Returns the bytes of out-of-order data to free, to make room for more urgent data.
    #[inline]
    pub(crate) fn to_prune(&self) -> usize {
        if !self.is_pressed() || self.out_of_order.load(Relaxed) == 0 {
            return 0;
        }
        let limit = self.limit();
        self.used().saturating_sub(limit / 2 + limit / 8)
    }

    pub(crate) fn note_pruned(&self, octets: u64) {
        self.pruned.fetch_add(octets, Relaxed);
    }

    pub(crate) fn note_refused(&self) {
        self.refused_segments.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_refused_connection(&self) {
        self.refused_connections.fetch_add(1, Relaxed);
    }

    pub(crate) fn report(&self) -> MemoryUse {
        MemoryUse {
            limit: self.is_limited().then(|| self.limit()),
            used: self.used(),
            out_of_order: self.out_of_order.load(Relaxed),
            peak: self.peak.load(Relaxed),
            pruned: self.pruned.load(Relaxed),
            refused_segments: self.refused_segments.load(Relaxed),
            refused_connections: self.refused_connections.load(Relaxed),
            full: self.is_limited() && self.is_full(),
        }
    }
}

/// The part of the budget that one connection uses. Dropping it returns the bytes to the budget.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    // `u32` keeps the connection small. Buffers never reach 4 GiB.
    held: u32,
    out_of_order: u32,
}

impl Charge {
    pub(crate) fn of(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), held: 0, out_of_order: 0 }
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    pub(crate) fn held_out_of_order(&self) -> usize {
        self.out_of_order as usize
    }

    /// Sets the number of bytes held now, and the number of out-of-order bytes among these.
    #[inline]
    pub(crate) fn set(&mut self, held: usize, out_of_order: usize) {
        let size = |octets| u32::try_from(octets).unwrap_or(u32::MAX);
        let (held, out_of_order) = (size(held), size(out_of_order));
        if held != self.held {
            let used = replace_part(&self.budget.used, self.held, held);
            if used > self.budget.peak.load(Relaxed) {
                self.budget.peak.store(used, Relaxed);
            }
        }
        if out_of_order != self.out_of_order {
            replace_part(&self.budget.out_of_order, self.out_of_order, out_of_order);
        }
        (self.held, self.out_of_order) = (held, out_of_order);
    }
}

/// Replaces one connection's part of `sum` and returns the new sum. All users of a budget belong to one host
/// and change it under exclusive access. A load and a store are therefore enough, and cheaper than a
/// read-modify-write.
#[inline]
fn replace_part(sum: &AtomicUsize, from: u32, to: u32) -> usize {
    let sum_now = sum.load(Relaxed) - from as usize + to as usize;
    sum.store(sum_now, Relaxed);
    sum_now
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_charge_returns_memory_to_budget() {
        let budget = Budget::unlimited();
        let (mut first, mut second) = (Charge::of(&budget), Charge::of(&budget));
        first.set(1000, 400);
        second.set(500, 0);
        first.set(800, 100);
        assert_eq!((budget.used(), budget.report().out_of_order, budget.report().peak), (1300, 100, 1500));
        drop(first);
        assert_eq!((budget.used(), budget.report().out_of_order), (500, 0));
        drop(second);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn memory_is_recycled_unless_it_is_short() {
        let budget = Budget::unlimited();
        let memory = |kib: usize| VecDeque::with_capacity(kib << 10);
        budget.recycle(memory(8));
        budget.recycle(memory(2048));
        assert!(budget.take_spare(16 << 10).is_none(), "too small or too large");
        budget.recycle(memory(64));
        budget.recycle(memory(32));
        assert!(budget.take_spare(64 << 10).is_none(), "not larger than the buffer");
        assert!(budget.take_spare(8 << 10).is_none(), "a small buffer grows by itself");
        assert_eq!(budget.take_spare(16 << 10).unwrap().capacity(), 64 << 10);
        assert!(budget.take_spare(16 << 10).is_none(), "taken");

        budget.set_limit(64 << 20);
        let mut charge = Charge::of(&budget);
        budget.recycle(memory(64));
        charge.set(60 << 20, 0);
        assert!(budget.take_spare(16 << 10).is_none(), "memory is short");
        budget.recycle(memory(128));
        charge.set(0, 0);
        assert_eq!(budget.take_spare(16 << 10).unwrap().capacity(), 64 << 10, "nothing was kept meanwhile");
    }

    #[test]
    fn share_shrinks_as_budget_fills() {
        let budget = Budget::unlimited();
        let mut charge = Charge::of(&budget);
        charge.set(1 << 30, 1 << 30);
        assert_eq!((budget.share(), budget.to_prune()), (None, 0), "no limit is set");
        budget.set_limit(64 << 20);
        charge.set(48 << 20, 1 << 20);
        assert_eq!((budget.share(), budget.to_prune()), (None, 0));
        charge.set((48 << 20) + 1, 1 << 20);
        assert_eq!(budget.share(), Some((16 << 20) / SHARE - 1));
        assert_eq!(budget.to_prune(), (8 << 20) + 1);
        assert!(!budget.is_full());
        charge.set((62 << 20) + 1, 0);
        assert!(budget.is_full() && budget.has((2 << 20) - 1) && !budget.has(2 << 20));
        charge.set(100 << 20, 0);
        assert_eq!((budget.share(), budget.to_prune()), (Some(RESERVE), 0));
        assert!(!budget.has(1) && budget.has(0));
    }
}
