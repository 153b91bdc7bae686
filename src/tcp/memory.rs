//! What a connection does about memory: whether a segment is stored, how much is offered and taken, what is given up.
//!
//! The RFCs ask for none of this, and permit it: a receiver may drop what it has no room for, and data out of order even after
//! it has reported it (RFC 2018 §8). The right edge of its window stays where it is (RFC 9293 §3.8.6).

use super::connection::Connection;
use crate::memory::RESERVE;

impl Connection {
    /// Whether `len` octets that begin at `offset` can be stored. What will be read last makes room.
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

    /// What can be read at once is worth more than what cannot.
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

    /// Gives up data that is out of order, the last of it first, until that has freed `enough` octets of memory or there is none.
    pub(crate) fn prune(&mut self, enough: usize) {
        let pruned = self.rcv.buffer.prune(enough);
        self.note_pruned(pruned);
        self.account();
    }

    fn note_pruned(&mut self, octets: u64) {
        if octets == 0 {
            return;
        }
        self.charge.budget().note_pruned(octets);
        let ranges = self.rcv.buffer.out_of_order();
        let next = self.rcv.buffer.next();
        let end = ranges.last().map_or(next, |last| last.end);
        if let Some(linux) = &mut self.rcv.linux {
            linux.on_pruned(end);
        }
    }

    /// Room for octets from RCV.NXT on, and the size of the buffer: less where memory is short.
    pub(super) fn room_to_offer(&self) -> (u64, u64) {
        let (room, limit) = (self.rcv.buffer.window(), self.rcv.buffer.limit());
        let (room, limit) = match self.charge.budget().share() {
            None => (room, limit),
            Some(share) => (room.min(share.saturating_sub(self.rcv.buffer.readable())), limit.min(share)),
        };
        (room as u64, limit as u64)
    }

    /// The most that a window may be which the memory of segments decides.
    pub(super) fn tuned_room(&self) -> u64 {
        let share = self.charge.budget().share();
        share.map_or(u64::MAX, |share| share.saturating_sub(self.rcv.buffer.readable()) as u64)
    }

    /// Room for octets to be sent: less where memory is short.
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

    /// Segments that may be in flight at once. What a peer can make us look through, and what is remembered of each segment, is
    /// in proportion to the send buffer however small a segment the peer offers to take (CVE-2019-11478, CVE-2019-11479): segments
    /// of 512 octets or more never come to this, nor those that are smaller because our side asks for it.
    pub(super) fn most_in_flight(&self) -> usize {
        // The option of timestamps takes a place in each segment.
        let text = |own: u16| own.saturating_sub(12).clamp(8, 512);
        let own = self.options.max_seg.or(self.profile.mss).map_or(512, text);
        (self.options.send_buffer / usize::from(own)).max(1024)
    }

    /// Something may have changed: the host's budget learns of it.
    #[inline]
    pub(crate) fn account(&mut self) {
        if !self.charge.budget().is_limited() {
            return;
        }
        let sending = self.snd.buffer.cost() + self.flight.cost();
        let receiving = self.rcv.buffer.cost() + self.rcv.linux.as_ref().map_or(0, |linux| linux.cost());
        self.charge.set(sending + receiving, self.rcv.buffer.cost_out_of_order());
    }

    /// Octets of memory that its data out of order take.
    pub(crate) fn memory_out_of_order(&self) -> usize {
        self.charge.held_out_of_order()
    }
}
