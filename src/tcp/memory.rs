//! A connection's use of the memory budget: which segments it stores, how much window and send buffer it
//! offers, and what it prunes.
//!
//! The RFCs do not require this, but they permit it: a receiver may drop data for which it has no room, and
//! even out-of-order data that it has reported by SACK (RFC 2018 §8). The window's right edge never moves
//! back (RFC 9293 §3.8.6).

use super::connection::Connection;
use crate::memory::RESERVE;

impl Connection {
    /// Returns true if `len` bytes at `offset` can be stored. Out-of-order data with higher offsets is given
    /// up if necessary.
    pub(super) fn admits(&mut self, offset: u64, len: usize) -> bool {
        let in_order = offset <= self.rcv.buffer.next();
        let admitted = match in_order {
            true => self.has_memory_in_order(len),
            false => !self.charge.budget().is_pressed() && self.has_range_for(offset),
        };
        if !admitted {
            self.charge.budget().note_refused();
        }
        admitted
    }

    /// Makes room for in-order data by pruning out-of-order data, because only the former can be read at
    /// once.
    fn has_memory_in_order(&mut self, len: usize) -> bool {
        let growth = self.rcv.buffer.growth(len);
        if self.charge.budget().has(growth) {
            return true;
        }
        self.prune(growth);
        self.rcv.buffer.readable() + len <= RESERVE || self.charge.budget().has(growth)
    }

    fn has_range_for(&mut self, offset: u64) -> bool {
        let Some(pruned) = self.rcv.buffer.make_room_for_range(offset) else { return false };
        self.note_pruned(pruned);
        true
    }

    /// Gives up out-of-order data, highest offset first, until `enough` bytes of memory are free or none is
    /// left.
    pub(crate) fn prune(&mut self, enough: usize) {
        let pruned = self.rcv.buffer.prune(enough);
        self.note_pruned(pruned);
        self.account();
    }

    fn note_pruned(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.charge.budget().note_pruned(bytes);
        let ranges = self.rcv.buffer.out_of_order();
        let next = self.rcv.buffer.next();
        let end = ranges.last().map_or(next, |last| last.end);
        if let Some(linux) = &mut self.rcv.linux {
            linux.on_pruned(end);
        }
    }

    /// Returns the free space from RCV.NXT on and the buffer size in bytes, both reduced when memory is
    /// short.
    pub(super) fn room_to_offer(&self) -> (u64, u64) {
        let (room, limit) = (self.rcv.buffer.window(), self.rcv.buffer.limit());
        let (room, limit) = match self.charge.budget().share() {
            None => (room, limit),
            Some(share) => (room.min(share.saturating_sub(self.rcv.buffer.readable())), limit.min(share)),
        };
        (room as u64, limit as u64)
    }

    /// Returns an upper bound for windows that are derived from segment memory.
    pub(super) fn tuned_room(&self) -> u64 {
        let share = self.charge.budget().share();
        share.map_or(u64::MAX, |share| share.saturating_sub(self.rcv.buffer.readable()) as u64)
    }

    /// Returns the free space for data to send, reduced when memory is short.
    pub(super) fn room_to_write(&self) -> usize {
        let (free, budget) = (self.snd.buffer.free(), self.charge.budget());
        let Some(share) = budget.share() else { return free };
        let len = self.snd.buffer.len();
        let within = free.min(share.saturating_sub(len));
        match budget.has(self.snd.buffer.growth(within)) {
            true => within,
            false => within.min(self.snd.buffer.spare().max(RESERVE.saturating_sub(len))),
        }
    }

    /// Returns the maximum number of segments in flight. It is proportional to the send buffer, which bounds
    /// the work that a peer can cause and the state per segment even if the peer offers a tiny MSS
    /// (CVE-2019-11478, CVE-2019-11479). Segments of at least 512 bytes never reach this limit, nor do
    /// smaller ones that our own side asked for.
    pub(super) fn most_in_flight(&self) -> usize {
        // The timestamps option takes space in each segment.
        let text = |own: u16| own.saturating_sub(12).clamp(8, 512);
        let own = self.options.max_seg.or(self.profile.mss).map_or(512, text);
        (self.options.send_buffer / usize::from(own)).max(1024)
    }

    /// Updates the host's budget after a change.
    #[inline]
    pub(crate) fn account(&mut self) {
        if !self.charge.budget().is_limited() {
            return;
        }
        let sending = self.snd.buffer.cost() + self.flight.cost();
        let receiving = self.rcv.buffer.cost() + self.rcv.linux.as_ref().map_or(0, |linux| linux.cost());
        self.charge.set(sending + receiving, self.rcv.buffer.cost_out_of_order());
    }

    /// Returns the bytes of memory that out-of-order data takes.
    pub(crate) fn memory_out_of_order(&self) -> usize {
        self.charge.held_out_of_order()
    }
}
