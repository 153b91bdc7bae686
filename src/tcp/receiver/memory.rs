//! The effect of the host's memory budget on the receiver: which segments are stored, how large the window
//! is, and which data is pruned.
//!
//! The RFCs permit this: a receiver may drop data for which it has no room, and even out-of-order data that
//! it has reported by SACK (RFC 2018 §8). The window's right edge never moves back (RFC 9293 §3.8.6).

use super::Receiver;
use crate::memory::{Budget, Charge, RESERVE};
use crate::rtt::RttEstimator;
use crate::tcp::statistics::Statistics;

/// Values outside of the receiver that storing data changes or reads.
pub(in crate::tcp) struct Storing<'a> {
    pub(in crate::tcp) statistics: &'a mut Statistics,
    pub(in crate::tcp) charge: &'a mut Charge,
    /// Bytes of memory that the sender uses.
    pub(in crate::tcp) sender_memory: usize,
    /// The sender's estimator.
    pub(in crate::tcp) rtt: &'a RttEstimator,
}

impl Receiver {
    /// Returns true if `len` bytes at `offset` can be stored. If necessary, this drops out-of-order data with
    /// higher offsets.
    pub(super) fn admits(&mut self, storing: &mut Storing<'_>, offset: u64, len: usize) -> bool {
        let in_order = offset <= self.buffer.next();
        let admitted = match in_order {
            true => self.has_memory_in_order(storing, len),
            false => {
                let budget = storing.charge.budget();
                !budget.is_pressed() && self.has_range_for(budget, offset)
            }
        };
        if !admitted {
            storing.charge.budget().note_refused();
        }
        admitted
    }

    /// Makes room for in-order data by pruning out-of-order data, because the application can read in-order
    /// data at once.
    fn has_memory_in_order(&mut self, storing: &mut Storing<'_>, len: usize) -> bool {
        let growth = self.buffer.growth(len);
        if storing.charge.budget().has(growth) {
            return true;
        }
        self.prune(storing.charge.budget(), growth);
        self.account(storing.charge, storing.sender_memory);
        self.buffer.readable() + len <= RESERVE || storing.charge.budget().has(growth)
    }

    fn has_range_for(&mut self, budget: &Budget, offset: u64) -> bool {
        let Some(pruned) = self.buffer.make_room_for_range(offset) else { return false };
        self.note_pruned(budget, pruned);
        true
    }

    /// Drops out-of-order data, highest offset first, until `enough` bytes of memory are free or none is
    /// left.
    pub(in crate::tcp) fn prune(&mut self, budget: &Budget, enough: usize) {
        let pruned = self.buffer.prune(enough);
        self.note_pruned(budget, pruned);
    }

    fn note_pruned(&mut self, budget: &Budget, bytes: u64) {
        if bytes == 0 {
            return;
        }
        budget.note_pruned(bytes);
        self.shorten_blocks();
        self.policy.on_pruned(self.buffer.next() + self.buffer.out_of_order_span());
    }

    /// Updates the connection's charge. `sender_memory` is the memory that the sender uses, in bytes.
    #[inline]
    pub(in crate::tcp) fn account(&self, charge: &mut Charge, sender_memory: usize) {
        if charge.budget().is_limited() {
            charge.set(
                sender_memory + self.buffer.cost() + self.policy.cost(),
                self.buffer.cost_out_of_order(),
            );
        }
    }

    /// Returns the free space from RCV.NXT on and the buffer size in bytes, both reduced when memory is
    /// short.
    pub(super) fn room_to_offer(&self, budget: &Budget) -> (u64, u64) {
        let (room, limit) = (self.buffer.window(), self.buffer.limit());
        let (room, limit) = match budget.share() {
            None => (room, limit),
            Some(share) => (room.min(share.saturating_sub(self.buffer.readable())), limit.min(share)),
        };
        (room as u64, limit as u64)
    }

    /// Returns an upper bound for windows that are derived from segment memory.
    pub(super) fn tuned_room(&self, budget: &Budget) -> u64 {
        budget.share().map_or(u64::MAX, |share| share.saturating_sub(self.buffer.readable()) as u64)
    }
}
