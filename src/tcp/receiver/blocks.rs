//! SACK and D-SACK blocks (RFC 2018, RFC 2883).

use airwire::options::SackBlocks;
use airwire::segment::{Flags, Segment};

use super::{Dsack, Receiver};
use crate::profile::Profile;
use crate::tcp::context::Context;
use crate::tcp::negotiated::Negotiated;
use crate::tcp::statistics::Statistics;

/// The blocks that the latest segments belong to, most recent first. Data that extends or joins blocks moves
/// them to the front.
pub(super) type RecentBlocks = [Option<(u64, u64)>; 4];

impl Receiver {
    /// Records a segment with duplicate data for the D-SACK block of the next ACK (RFC 2883 §4).
    pub(in crate::tcp) fn note_duplicate(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        segment: &Segment<'_>,
    ) {
        if segment.seq_len() == 0 || segment.flags.contains(Flags::SYN) {
            return;
        }
        let next = self.nxt();
        let Some(start) = self.signed_offset_of(segment).filter(|start| *start < next as i64) else { return };
        statistics.duplicate_segments_in += 1;
        // The peer retransmits: an ACK was lost, or the retransmission is spurious.
        self.policy.enter_quick_ack_mode(&cx.profile, u32::MAX);
        let end = match cx.profile.acks.sack_counts_fin {
            true => (start + segment.seq_len() as i64).min(next as i64),
            false => (start + segment.payload.len() as i64).min(self.buffer.next() as i64),
        };
        if cx.profile.acks.dsack && end > start {
            self.dsack = Some(Dsack::new((start as u64, end as u64)));
        }
    }

    /// Returns the offset of a segment in the peer's stream. Linux also reports a segment below the SYN as a
    /// duplicate (tcp_send_dupack()), so the offset may be negative in its profile.
    fn signed_offset_of(&self, segment: &Segment<'_>) -> Option<i64> {
        let distance = segment.seq.0.wrapping_sub(self.nxt_seq().0) as i32;
        let offset = self.nxt() as i64 + i64::from(distance);
        (offset >= 0 || self.policy.is_linux()).then_some(offset)
    }

    /// Returns the part of `start..end` that was received before, in or out of order.
    pub(super) fn overlap_with_held(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let next = self.buffer.next();
        if start < next {
            return Some((start, end.min(next)));
        }
        let held = self.buffer.out_of_order().first_overlap(start..end)?;
        Some((held.start, held.end))
    }

    /// Returns the out-of-order block that contains `offset`. In some profiles, the peer's FIN counts as one
    /// byte.
    fn held_around(&self, profile: &Profile, offset: u64) -> Option<(u64, u64)> {
        let ranges = self.buffer.out_of_order();
        let fin = self.early_fin().filter(|_| profile.acks.sack_counts_fin);
        match ranges.containing(offset) {
            Some(range) if fin == Some(range.end) => Some((range.start, range.end + 1)),
            Some(range) => Some((range.start, range.end)),
            None if fin == Some(offset) => {
                let before = ranges.last().filter(|range| range.end == offset);
                Some((before.map_or(offset, |range| range.start), offset + 1))
            }
            None => None,
        }
    }

    /// Records the block that contains the segment just received, ahead of earlier blocks (RFC 2018 §4).
    pub(super) fn remember_block(&mut self, profile: &Profile, offset: u64) {
        // Data beyond the window, or without room in the buffer, is not held.
        let Some((start, end)) = self.held_around(profile, offset) else { return };
        let mut recent = [Some((start, end)), None, None, None];
        let before = self.recent.as_deref().copied().unwrap_or_default();
        let others =
            before.into_iter().filter(|block| block.is_some_and(|(at, _)| !(start..end).contains(&at)));
        for (slot, block) in recent[1..].iter_mut().zip(others) {
            *slot = block;
        }
        **self.recent.get_or_insert_default() = recent;
    }

    /// Updates the recorded blocks after out-of-order data was dropped.
    pub(super) fn shorten_blocks(&mut self) {
        let (ranges, fin) = (self.buffer.out_of_order(), self.early_fin());
        let shortened = |(start, end): (u64, u64)| match ranges.containing(start) {
            // The peer's FIN is not dropped.
            Some(range) if fin == Some(range.end) => Some((start, end)),
            Some(range) => Some((start, range.end)),
            None => Some((start, end)).filter(|_| fin == Some(start)),
        };
        let recent = self.recent.as_deref().map(|recent| recent.map(|block| block.and_then(shortened)));
        self.recent = recent.map(Box::new);
    }

    /// Clears the recorded blocks once nothing is missing.
    pub(super) fn clear_blocks(&mut self) {
        if self.recent.is_some() && !self.has_holes() {
            self.recent = None;
        }
    }

    /// Returns true if the next ACK reports a hole or a duplicate.
    pub(in crate::tcp) fn has_blocks_to_report(&self, profile: &Profile, negotiated: &Negotiated) -> bool {
        let held = match self.policy.blocks() {
            Some(blocks) => !blocks.is_empty(),
            None if profile.acks.sack_counts_fin => self.has_holes(),
            None => self.holds_out_of_order(),
        };
        negotiated.sack() && (self.dsack().is_some() || held)
    }

    /// Returns the end of the right-most block of Linux's receiver.
    pub(super) fn last_block_end(&self, negotiated: &Negotiated) -> Option<u64> {
        let blocks = self.policy.blocks().filter(|_| negotiated.sack() && self.has_holes())?;
        blocks.iter().map(|(_, end)| *end).max()
    }

    /// Returns the length of the SACK option of a segment with data, if the profile puts it there.
    pub(in crate::tcp) fn sack_len_on_data(&self, cx: &Context) -> u64 {
        if !cx.profile.sending.sack_on_data || !self.has_blocks_to_report(&cx.profile, &cx.negotiated) {
            return 0;
        }
        let fit = if cx.negotiated.timestamps() { 3 } else { 4 };
        4 + 8 * self.blocks_to_report(&cx.profile).as_slice().len().min(fit) as u64
    }

    /// Returns the SACK option of the next ACK, which [has blocks to report](Self::has_blocks_to_report): a
    /// D-SACK block if one is due, then the most recent blocks.
    pub(in crate::tcp) fn blocks_to_report(&self, profile: &Profile) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let seq = |offset| self.irs.at(offset);
        let dsack = self.dsack();
        if let Some((left, right)) = dsack {
            blocks.push(seq(left), seq(right));
        }
        if let Some(sacks) = self.policy.blocks() {
            sacks.iter().for_each(|(start, end)| blocks.push(seq(*start), seq(*end)));
            return blocks;
        }
        // RFC 2883 §4 rule (4): a duplicate above the ACK is followed by the block that contains it.
        if let Some((start, end)) = dsack.and_then(|(left, _)| self.held_around(profile, left)) {
            blocks.push(seq(start), seq(end));
        }
        let around_duplicate = blocks.as_slice().get(1).map(|(left, _)| *left);
        // The data of a block at or below RCV.NXT is no longer out of order.
        let next = self.buffer.next();
        for (start, end) in self.recent.iter().flat_map(|recent| recent.iter().flatten()) {
            if *start > next && around_duplicate != Some(seq(*start)) {
                blocks.push(seq(*start), seq(*end));
            }
        }
        blocks
    }
}
