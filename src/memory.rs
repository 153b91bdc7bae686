//! One ceiling for what all connections of a host hold: data to be read, data out of order, and data to be sent.
//!
//! | used of the limit | what happens |
//! |---|---|
//! | up to ¾ | nothing: a connection has the buffers of its own options |
//! | above ¾ | data out of order is given up, the largest holders first and of each the last octets first, down to ⅝; none is taken; windows and send buffers get smaller the less is left |
//! | above 31/32 | SYNs are not answered |
//! | all | data in order is taken only up to [`RESERVE`] octets for each connection |
//!
//! No connection is ended for it, and each of them goes on, with at least [`RESERVE`] octets in each direction: so many may
//! come on top of the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What a connection may hold in each direction even if nothing is left, as in Linux (the first number of tcp_rmem).
pub const RESERVE: usize = 4096;

/// When memory is short, a connection may have this part of what is left, in each direction.
const SHARE: usize = 64;

/// Memory that the data of a host's connections take, in octets, and what was done because it was short. It is counted only if
/// there is a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUse {
    /// `None`: there is no limit.
    pub limit: Option<usize>,
    /// In use now.
    pub used: usize,
    /// The part of it that is data out of order.
    pub out_of_order: usize,
    /// Most that was in use at once.
    pub most: usize,
    /// Octets of data out of order that were given up.
    pub pruned: u64,
    /// Segments that were not stored.
    pub refused_segments: u64,
    /// SYNs that were not answered.
    pub refused_connections: u64,
    /// None is answered now.
    pub full: bool,
}

/// The budget of a host. Its connections count in it what they hold: each has a [`Charge`].
#[derive(Debug)]
pub(crate) struct Budget {
    limit: AtomicUsize,
    used: AtomicUsize,
    out_of_order: AtomicUsize,
    most: AtomicUsize,
    pruned: AtomicU64,
    refused_segments: AtomicU64,
    refused_connections: AtomicU64,
}

impl Budget {
    /// Without a limit, which is `usize::MAX`.
    pub(crate) fn unlimited() -> Arc<Self> {
        Arc::new(Self {
            limit: AtomicUsize::new(usize::MAX),
            used: AtomicUsize::new(0),
            out_of_order: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            pruned: AtomicU64::new(0),
            refused_segments: AtomicU64::new(0),
            refused_connections: AtomicU64::new(0),
        })
    }

    pub(crate) fn set_limit(&self, octets: usize) {
        self.limit.store(octets, Relaxed);
    }

    /// Somebody wants to know.
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

    /// More than three quarters are in use.
    #[inline]
    pub(crate) fn is_pressed(&self) -> bool {
        let limit = self.limit();
        self.used() > limit - limit / 4
    }

    /// Hardly anything is left: what is open already comes first.
    pub(crate) fn is_full(&self) -> bool {
        self.left() < self.limit() / 32
    }

    /// So many octets fit.
    #[inline]
    pub(crate) fn has(&self, octets: usize) -> bool {
        octets == 0 || octets <= self.left()
    }

    /// What a connection may hold in each direction. `None`: memory is not short.
    #[inline]
    pub(crate) fn share(&self) -> Option<usize> {
        self.is_pressed().then(|| (self.left() / SHARE).max(RESERVE))
    }

    /// Data out of order stands in the way of what is more urgent: how many octets are to be freed.
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
            most: self.most.load(Relaxed),
            pruned: self.pruned.load(Relaxed),
            refused_segments: self.refused_segments.load(Relaxed),
            refused_connections: self.refused_connections.load(Relaxed),
            full: self.is_limited() && self.is_full(),
        }
    }
}

/// What one connection holds of the budget. It is given back when the connection goes.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    // A connection is to be small, and none has buffers as long as that.
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

    /// It holds so much now, and so much of that out of order.
    #[inline]
    pub(crate) fn set(&mut self, held: usize, out_of_order: usize) {
        let size = |octets| u32::try_from(octets).unwrap_or(u32::MAX);
        let (held, out_of_order) = (size(held), size(out_of_order));
        if held != self.held {
            let used = moved(&self.budget.used, self.held, held);
            if used > self.budget.most.load(Relaxed) {
                self.budget.most.store(used, Relaxed);
            }
        }
        if out_of_order != self.out_of_order {
            moved(&self.budget.out_of_order, self.out_of_order, out_of_order);
        }
        (self.held, self.out_of_order) = (held, out_of_order);
    }
}

/// A part of `sum` has changed; returns the sum. All that add to it are behind one host, and whoever changes that has it alone: it
/// need not be done in one step, which costs more.
#[inline]
fn moved(sum: &AtomicUsize, from: u32, to: u32) -> usize {
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
    fn what_is_held_is_given_back_with_the_connection() {
        let budget = Budget::unlimited();
        let (mut first, mut second) = (Charge::of(&budget), Charge::of(&budget));
        first.set(1000, 400);
        second.set(500, 0);
        first.set(800, 100);
        assert_eq!((budget.used(), budget.report().out_of_order, budget.report().most), (1300, 100, 1500));
        drop(first);
        assert_eq!((budget.used(), budget.report().out_of_order), (500, 0));
        drop(second);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_less_is_left_the_less_a_connection_may_have() {
        let budget = Budget::unlimited();
        let mut charge = Charge::of(&budget);
        charge.set(1 << 30, 1 << 30);
        assert_eq!((budget.share(), budget.to_prune()), (None, 0), "nobody has set a limit");
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
