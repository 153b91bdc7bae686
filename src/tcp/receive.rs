//! The receiving side: incoming data, ACK policy, SACK blocks and the advertised window.

pub(super) mod linux;
pub(super) mod linux_steps;

use airwire::options::SackBlocks;
use airwire::segment::{Ecn, Flags, Segment};
use airwire::time::{Duration, Instant};

use super::connection::Connection;
use super::socket::State;
use super::variables::AckDue;
use crate::profile::{AckRules, WindowUpdate};

/// An advertised window, as the header field and as offsets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advertisement {
    pub(super) field: u16,
    /// The right edge as the peer computes it from the field.
    pub(super) edge: u64,
    /// The intended right edge, which is less than one unit of the window scale below `edge`.
    pub(super) promised: u64,
}

impl Connection {
    /// Returns RCV.NXT as an offset. It includes the peer's FIN once all data before it has arrived.
    pub(super) fn rcv_nxt(&self) -> u64 {
        let next = self.rcv.buffer.next();
        next + u64::from(self.rcv.fin.is_some_and(|fin| next >= fin))
    }

    /// Stores the segment's data, which starts at `offset`, and decides when to acknowledge it.
    pub(super) fn take_data(&mut self, now: Instant, segment: &Segment<'_>, offset: u64) {
        let end = offset + segment.payload.len() as u64;
        let held_any = self.has_holes();
        let predicted = offset == self.rcv.buffer.next() && !held_any;
        if self.rcv.linux.is_some() && !(predicted && self.state == State::Established) {
            // tcp_data_queue() clears a D-SACK that no ACK has reported yet, except on the fast path.
            self.rcv.dsack = None;
        }
        if segment.payload.is_empty() {
            self.note_duplicate(segment);
        }
        if segment.flags.contains(Flags::FIN) && self.rcv.fin.is_none() {
            // Ignore a FIN beyond the window, which the peer will retransmit, and one below data that has
            // arrived.
            let held = self.rcv.buffer.out_of_order().last().map_or(0, |range| range.end);
            let next = self.rcv_nxt();
            if (next..=self.rcv.adv.max(next)).contains(&end) && end >= held {
                self.rcv.fin = Some(end);
            }
        }
        if segment.payload.is_empty() {
            if segment.flags.contains(Flags::FIN) {
                self.ack_news();
                self.remember_block(offset, segment.seq_len());
            }
            return;
        }
        let payload = self.clip(segment.payload, offset);
        let next = self.rcv.buffer.next();
        if payload.is_empty() {
            // All of it lies beyond the FIN.
            self.rcv.ack = AckDue::Now;
            return;
        }
        if offset + payload.len() as u64 <= next {
            // All of it was received before.
            self.note_duplicate(segment);
            self.ack_news();
            self.rcv.ack = AckDue::Now;
            return;
        }
        let len = payload.len() as u64;
        self.rcv.mss_seen = self.rcv.mss_seen.max(payload.len() as u32);
        let had_holes = !self.rcv.buffer.out_of_order().is_empty();
        let repeated = self.overlap_with_held(offset, offset + payload.len() as u64);
        let stored = self.admits(offset, payload.len());
        let moved = if stored { self.rcv.buffer.insert(offset, payload, self.rcv.adv) } else { 0 };
        self.statistics.bytes_received += moved;
        if let Some(repeated) = repeated {
            self.statistics.duplicate_segments_in += 1;
            self.rcv.dsack = self.profile.dsack.then(|| Box::new(repeated));
        }
        if repeated.is_none()
            && let (Some(alarm), Some(timestamps)) = (&mut self.rcv.alarm, segment.options.timestamps)
        {
            alarm.on_segment(offset, next, timestamps.val);
        }
        if offset > next {
            self.statistics.out_of_order_segments_in += 1;
            self.remember_block(offset, segment.seq_len());
        }
        if moved == 0 && offset <= next && self.rcv.linux.is_some() {
            // The buffer had no room for the data.
            self.enter_quick_ack(u32::MAX);
            self.rcv.ack = AckDue::Now;
            return;
        }
        self.show_linux(now, segment, (offset, next), len, repeated);
        if let AckRules::Linux(_) = self.profile.ack.rules {
            if held_any && !self.has_holes() {
                self.ack_at_once();
            }
            return;
        }
        // RFC 5681 §4.2: out-of-order segments, and those that fill a hole, are acknowledged at once.
        if offset > next || had_holes || offset < next || !stored {
            self.rcv.ack = AckDue::Now;
            return;
        }
        self.delay_ack(now);
    }

    /// Returns true if data is missing below data that has arrived.
    fn has_holes(&self) -> bool {
        !self.rcv.buffer.out_of_order().is_empty() || self.early_fin().is_some()
    }

    /// Returns the part of `payload` below the FIN.
    fn clip<'a>(&self, payload: &'a [u8], offset: u64) -> &'a [u8] {
        let Some(fin) = self.rcv.fin else { return payload };
        let room = fin.saturating_sub(offset) as usize;
        &payload[..payload.len().min(room)]
    }

    /// Schedules an ACK that is not urgent (RFC 9293 §3.8.6.3).
    fn delay_ack(&mut self, now: Instant) {
        let policy = self.profile.ack;
        let unacknowledged = self.rcv_nxt() - self.rcv.last_ack_sent;
        let full = unacknowledged > u64::from(policy.every.max(1) - 1) * u64::from(self.rcv.mss_seen);
        if policy.delay.is_zero() || full {
            self.rcv.ack = AckDue::Now;
        } else if self.rcv.ack == AckDue::No {
            self.start_delayed_ack(now, policy.delay);
        }
    }

    /// Acknowledges quickly after the first CE mark, and after a retransmission, which is not ECN-capable:
    /// such a sender has little in flight (Linux 6.18, tcp_data_ecn_check()).
    pub(super) fn hasten_ecn_acks(&mut self, segment: &Segment<'_>) {
        if segment.payload.is_empty() {
            return;
        }
        let capable = segment.ecn != Ecn::NotEct;
        let first_mark = segment.ecn == Ecn::Ce && !self.rcv.echo_ce;
        if first_mark || (!capable && self.rcv.ect_seen) {
            self.enter_quick_ack(2);
        }
        self.rcv.ect_seen |= capable;
    }

    fn start_delayed_ack(&mut self, now: Instant, delay: Duration) {
        self.rcv.ack = AckDue::Delayed;
        self.timers.delayed_ack = Some(now + delay);
    }

    /// Schedules the ACK of the peer's FIN. Linux delays it, because data or a FIN from the application may
    /// carry it.
    pub(super) fn ack_fin(&mut self) {
        match (&mut self.rcv.linux, self.profile.ack.rules) {
            (Some(linux), AckRules::Linux(_)) => linux.acks.on_fin(),
            _ => self.rcv.ack = AckDue::Now,
        }
    }

    /// Records duplicate data for a D-SACK block (RFC 2883 §4).
    pub(super) fn note_duplicate(&mut self, segment: &Segment<'_>) {
        if segment.seq_len() == 0 || segment.flags.contains(Flags::SYN) {
            return;
        }
        let next = self.rcv_nxt();
        let Some(start) = segment.seq.offset(self.rcv.irs, next).filter(|start| *start < next) else {
            return;
        };
        self.statistics.duplicate_segments_in += 1;
        // An ACK was lost, or the sender retransmits from an earlier offset.
        self.enter_quick_ack(u32::MAX);
        let end = match self.profile.sack_counts_fin {
            true => (start + segment.seq_len()).min(next),
            false => (start + segment.payload.len() as u64).min(self.rcv.buffer.next()),
        };
        if self.profile.dsack && end > start {
            self.rcv.dsack = Some(Box::new((start, end)));
        }
    }

    /// Returns the part of `start..end` that was received before, in or out of order.
    fn overlap_with_held(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let next = self.rcv.buffer.next();
        if start < next {
            return Some((start, end.min(next)));
        }
        let held = self.rcv.buffer.out_of_order().first_overlap(start..end)?;
        Some((held.start, held.end))
    }

    /// Returns the out-of-order block that contains `offset`. The peer's FIN counts as one byte, if the
    /// profile says so.
    fn held_around(&self, offset: u64) -> Option<(u64, u64)> {
        let ranges = self.rcv.buffer.out_of_order();
        let fin = self.early_fin().filter(|_| self.profile.sack_counts_fin);
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

    /// Returns the offset of the peer's FIN while data before it is missing.
    fn early_fin(&self) -> Option<u64> {
        self.rcv.fin.filter(|fin| *fin > self.rcv.buffer.next())
    }

    /// Records the block that contains the segment just received, ahead of earlier blocks (RFC 2018 §4).
    fn remember_block(&mut self, offset: u64, len: u64) {
        if self.rcv.linux.is_some() {
            self.remember_segment(offset, offset + len);
            return;
        }
        let Some((start, end)) = self.held_around(offset) else { return };
        let mut recent = [Some(start), None, None, None];
        let known = self.rcv.recent.as_deref().copied().unwrap_or_default();
        let earlier = known.into_iter().flatten().filter(|known| !(start..end).contains(known));
        for (slot, known) in recent[1..].iter_mut().zip(earlier) {
            *slot = Some(known);
        }
        self.rcv.recent = Some(Box::new(recent));
    }

    /// Clears the recorded blocks once nothing is missing.
    pub(super) fn forget_blocks(&mut self) {
        if self.rcv.recent.is_some() && !self.has_holes() {
            self.rcv.recent = None;
        }
    }

    /// Returns true if the next ACK reports a hole or a duplicate.
    pub(super) fn has_blocks_to_report(&self) -> bool {
        let held = match self.profile.sack_counts_fin {
            true => self.has_holes(),
            false => !self.rcv.buffer.out_of_order().is_empty(),
        };
        self.negotiated.sack() && (self.rcv.dsack.is_some() || held)
    }

    /// Returns the SACK option of the next ACK: a D-SACK block if one is due, then the most recent blocks.
    pub(super) fn blocks_to_report(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if !self.has_blocks_to_report() {
            return blocks;
        }
        let seq = |offset| self.rcv.irs.at(offset);
        if let Some((left, right)) = self.rcv.dsack.as_deref().copied() {
            blocks.push(seq(left), seq(right));
        }
        if let Some(linux) = &self.rcv.linux {
            for (start, end) in linux.sacks_to_tell() {
                blocks.push(seq(*start), seq(*end));
            }
            return blocks;
        }
        if let Some((left, _)) = self.rcv.dsack.as_deref().copied() {
            // RFC 2883 §4.2: a duplicate above the ACK is followed by the block that contains it.
            if let Some((start, end)) = self.held_around(left) {
                blocks.push(seq(start), seq(end));
            }
        }
        let recent = self.rcv.recent.as_deref().copied().unwrap_or_default();
        let mut last = None;
        for (start, end) in recent.iter().flatten().filter_map(|offset| self.held_around(*offset)) {
            let repeated = blocks.as_slice().iter().skip(1).any(|(left, _)| *left == seq(start));
            if !repeated && last != Some(start) {
                blocks.push(seq(start), seq(end));
                last = Some(start);
            }
        }
        blocks
    }

    /// Returns the window field of the next segment and the right edge that it advertises.
    pub(super) fn window_to_advertise(&mut self, scale: u8) -> Advertisement {
        if self.tunes_window() { self.offer_tuned(scale) } else { self.plain_window(scale) }
    }

    fn plain_window(&self, scale: u8) -> Advertisement {
        let next = self.rcv_nxt();
        let promised = self.rcv.promised.saturating_sub(next);
        let (room, limit) = self.room_to_offer();
        // The right edge never moves back, and advances only by a worthwhile amount.
        let worthwhile = match self.profile.window_update {
            WindowUpdate::Doubled | WindowUpdate::Tuned(_) => {
                let least = u64::from(self.negotiated.advertised_mss(&self.profile, &self.options))
                    .min(limit / 2)
                    .max(1);
                room >= promised + least || room >= limit
            }
            WindowUpdate::QuarterBuffer => room >= promised && (room >= limit / 4 || room >= self.max_seg()),
        };
        let wanted = if worthwhile { room } else { promised };
        let unit = 1_u64 << scale;
        // Rounding must not shrink the advertised window. It must not enlarge it each time either: the edge
        // would creep forward with every ACK, and the window would never close (RFC 7323 §2.4).
        let rounded_up = |bytes: u64| (bytes + unit - 1) >> scale;
        let units = match (self.profile.window_update, wanted >> scale) {
            // A buffer smaller than one unit must not keep the window closed.
            (WindowUpdate::QuarterBuffer, _) | (_, 0) => rounded_up(wanted),
            (_, whole) => whole.max(rounded_up(promised)),
        };
        let units = units.min(65_535);
        Advertisement {
            field: units as u16,
            edge: next + units * unit,
            promised: next + wanted.min(units * unit),
        }
    }

    /// Sends a window update if a read has widened the window enough to justify a separate ACK.
    pub(super) fn consider_window_update(&mut self) {
        if self.rcv.linux.is_some() {
            self.ack_read();
        }
        if self.tunes_window() || !self.state.may_receive_data() || self.rcv.fin.is_some() {
            return;
        }
        let update = match self.profile.window_update {
            WindowUpdate::Doubled | WindowUpdate::Tuned(_) => {
                let promised = self.rcv.promised.saturating_sub(self.rcv_nxt());
                let offered = self.plain_window(self.negotiated.rcv_scale()).promised - self.rcv_nxt();
                offered > promised && offered >= 2 * promised
            }
            // A pending delayed ACK will announce the window.
            WindowUpdate::QuarterBuffer => self.rcv.ack != AckDue::Delayed && self.has_opened_a_quarter(),
        };
        if update {
            self.rcv.ack = AckDue::Now;
        }
    }

    /// FreeBSD 13, tcp_output(): standalone window updates.
    fn has_opened_a_quarter(&self) -> bool {
        let (limit, scale) = (self.rcv.buffer.limit() as u64, self.negotiated.rcv_scale());
        let largest = 65_535 << scale;
        let recwin = (self.rcv.buffer.window() as u64).min(largest);
        let oldwin = self.rcv.adv.saturating_sub(self.rcv_nxt());
        let adv = recwin.saturating_sub(oldwin);
        let enough = adv >= limit / 4 || recwin <= limit / 8 || limit <= 8 * self.max_seg() || adv >= largest;
        // The window must change by at least one unit of the scale.
        oldwin >> scale < recwin >> scale && (adv >= 2 * self.max_seg() && enough || 2 * adv >= limit)
    }
}
