//! Incoming data and the FIN: storing them, and scheduling their ACK.

use airwire::segment::{Ecn, Flags, Segment};
use airwire::time::{Duration, Instant};

use super::linux::{Acks, Moment, Waiting};
use super::policy::Arrival;
use super::reassembly::most_ranges;
use super::{AckDue, Receiver, Storing};
use crate::profile::{AckRules, Profile};
use crate::tcp::context::Context;
use crate::tcp::socket::State;

impl Receiver {
    /// Stores the segment's data, which starts at `offset`, and decides when to acknowledge it.
    pub(in crate::tcp) fn take_data(
        &mut self,
        cx: &Context,
        storing: &mut Storing<'_>,
        now: Instant,
        segment: &Segment<'_>,
        offset: u64,
    ) {
        let end = offset + segment.payload.len() as u64;
        let held_any = self.has_holes();
        let predicted = offset == self.buffer.next() && !held_any;
        if self.policy.is_linux() && !(predicted && cx.state() == State::Established) {
            // tcp_data_queue() clears a D-SACK that no ACK has reported yet, except on the fast path.
            self.dsack = None;
        }
        if self.policy.is_linux() && self.take_beyond_end(cx, storing, now, segment, offset) {
            return;
        }
        if self.policy.is_linux() && self.settle_early_fin(cx, segment, offset) {
            return;
        }
        if segment.payload.is_empty() {
            self.note_duplicate(cx, storing.statistics, segment);
        }
        let repeats_early_fin = self.policy.is_linux() && self.early_fin() == Some(end);
        if segment.flags.contains(Flags::FIN) && self.fin.is_none() {
            // Ignore a FIN beyond the window, which the peer will retransmit, and one below data that has
            // arrived.
            let held = self.buffer.out_of_order().last().map_or(0, |range| range.end);
            let next = self.nxt();
            if (next..=self.edge_of_acceptance(&cx.profile).max(next)).contains(&end) && end >= held {
                self.fin = Some(end);
            }
        }
        if segment.payload.is_empty() {
            if segment.flags.contains(Flags::FIN) {
                if repeats_early_fin && cx.profile.acks.dsack {
                    self.dsack = Some(Box::new((offset, end + 1)));
                }
                self.owe_ack(&cx.profile, Acks::owe);
                self.remember_block(&cx.profile, offset, segment.seq_len());
            }
            return;
        }
        let payload = self.clip(segment.payload, offset);
        let next = self.buffer.next();
        if payload.is_empty() {
            // All of it lies beyond the FIN.
            self.ack = AckDue::Now;
            return;
        }
        if offset + payload.len() as u64 <= next {
            // All of it was received before.
            self.note_duplicate(cx, storing.statistics, segment);
            self.owe_ack(&cx.profile, Acks::owe);
            self.ack = AckDue::Now;
            return;
        }
        let len = payload.len() as u64;
        self.mss_seen = self.mss_seen.max(payload.len() as u32);
        let had_holes = self.holds_out_of_order();
        let repeated = self.overlap_with_held(offset, offset + len);
        let stored = self.admits(storing, offset, payload.len());
        let edge = self.edge_of_acceptance(&cx.profile);
        let moved = if stored { self.buffer.insert(offset, payload, edge) } else { 0 };
        storing.statistics.bytes_received += moved;
        if let Some(repeated) = repeated {
            storing.statistics.duplicate_segments_in += 1;
            self.dsack = cx.profile.acks.dsack.then(|| Box::new(repeated));
        } else if let (Some(alarm), Some(timestamps)) = (&mut self.alarm, segment.options.timestamps) {
            alarm.on_segment(offset, next, timestamps.val);
        }
        if offset > next {
            storing.statistics.out_of_order_segments_in += 1;
            self.remember_block(&cx.profile, offset, segment.seq_len());
        }
        if moved == 0 && offset <= next && self.policy.is_linux() {
            // The buffer had no room for the data.
            self.policy.quicken(&cx.profile, u32::MAX);
            self.ack = AckDue::Now;
            return;
        }
        if self.policy.is_linux() {
            let arrival = Arrival {
                offset,
                next,
                len,
                repeated,
                span: self.buffer.out_of_order_span(),
                is_held: self.buffer.out_of_order().containing(offset).is_some(),
                reached: self.buffer.next(),
                rto: storing.rto,
            };
            self.policy.on_data(cx, now, segment, &arrival);
        }
        if let AckRules::Linux(_) = cx.profile.acks.policy.rules {
            if held_any && !self.has_holes() {
                self.owe_ack(&cx.profile, Acks::owe_at_once);
            }
            return;
        }
        // RFC 5681 §4.2: out-of-order segments, and those that fill a hole, are acknowledged at once.
        if offset > next || had_holes || offset < next || !stored {
            self.ack = AckDue::Now;
            return;
        }
        self.delay_ack(&cx.profile, now);
    }

    /// Processes a segment of Linux's receiver that begins beyond the window, or after a FIN that has arrived
    /// early. Returns false if it is neither.
    ///
    /// Linux keeps data after an early FIN and reports it by SACK. It drops the data when the FIN's turn comes
    /// (tcp_fin()), so here only its ranges are kept.
    fn take_beyond_end(
        &mut self,
        cx: &Context,
        storing: &mut Storing<'_>,
        now: Instant,
        segment: &Segment<'_>,
        offset: u64,
    ) -> bool {
        let end = offset + segment.seq_len();
        if self.starts_beyond_window(offset) {
            self.policy.quicken(&cx.profile, u32::MAX);
            self.owe_ack(&cx.profile, Acks::owe);
            return true;
        }
        if self.early_fin().is_none_or(|fin| offset <= fin) {
            return false;
        }
        let ranges = self.after_fin.get_or_insert_default();
        let repeated = ranges.first_overlap(offset..end);
        if ranges.len() < most_ranges(self.buffer.limit()) {
            ranges.insert(offset..end);
        }
        if let Some(repeated) = repeated.as_ref().filter(|_| cx.profile.acks.dsack) {
            self.dsack = Some(Box::new((repeated.start, repeated.end)));
        }
        storing.statistics.out_of_order_segments_in += 1;
        let next = self.buffer.next();
        let span = self.after_fin.as_ref().and_then(|ranges| ranges.last()).map_or(0, |last| last.end - next);
        let repeated = repeated.map(|range| (range.start, range.end));
        let len = segment.payload.len() as u64;
        let arrival =
            Arrival { offset, next, len, repeated, span, is_held: true, reached: next, rto: storing.rto };
        self.policy.on_data(cx, now, segment, &arrival);
        self.owe_ack(&cx.profile, Acks::owe);
        if self.policy.add_block(offset, end) {
            self.ack = AckDue::Now;
        }
        true
    }

    /// Applies the rules of Linux for a FIN that shares its sequence number with data. Returns true if the
    /// segment is a FIN that data has replaced.
    fn settle_early_fin(&mut self, cx: &Context, segment: &Segment<'_>, offset: u64) -> bool {
        let (next, end) = (self.buffer.next(), offset + segment.seq_len());
        // tcp_ofo_queue() drops a FIN whose number data in order has covered.
        let covered = self.early_fin().filter(|fin| offset <= next && *fin < end);
        if let Some(fin) = covered.filter(|_| !segment.flags.contains(Flags::FIN)) {
            (self.fin, self.after_fin) = (None, None);
            self.policy.on_pruned(end);
            self.dsack = cx.profile.acks.dsack.then(|| Box::new((fin, fin + 1)));
        }
        // tcp_data_queue_ofo(): all of it has arrived.
        let held = self.buffer.out_of_order().containing(offset).is_some_and(|held| end <= held.end);
        if !segment.flags.contains(Flags::FIN) || !segment.payload.is_empty() || !held {
            return false;
        }
        self.dsack = cx.profile.acks.dsack.then(|| Box::new((offset, end)));
        self.owe_ack(&cx.profile, Acks::owe);
        self.remember_block(&cx.profile, offset, segment.seq_len());
        true
    }

    /// Drops the data above the FIN of a segment in order (tcp_fin() of Linux).
    pub(in crate::tcp) fn drop_above_fin(&mut self, segment: &Segment<'_>, offset: u64) {
        let (next, end) = (self.buffer.next(), offset + segment.payload.len() as u64);
        let is_in_order = offset <= next && next <= end && segment.flags.contains(Flags::FIN);
        if self.policy.is_linux() && is_in_order && self.fin.is_none() && self.holds_out_of_order() {
            self.buffer.drop_out_of_order();
            self.policy.on_pruned(end);
        }
    }

    /// Returns the end of the data that is accepted. Linux takes a segment whole if it begins in the window
    /// (tcp_data_queue()). The first step limits these segments.
    fn edge_of_acceptance(&self, profile: &Profile) -> u64 {
        let takes_whole = profile.validation.accepts_unacknowledged && self.wnd() > 0;
        if takes_whole { u64::MAX } else { self.adv }
    }

    /// Returns true if data is missing below data that has arrived.
    pub(super) fn has_holes(&self) -> bool {
        self.holds_out_of_order() || self.early_fin().is_some()
    }

    /// Returns the part of `payload` below the FIN.
    fn clip<'a>(&self, payload: &'a [u8], offset: u64) -> &'a [u8] {
        let Some(fin) = self.fin else { return payload };
        let room = fin.saturating_sub(offset) as usize;
        &payload[..payload.len().min(room)]
    }

    /// Schedules an ACK: the policy decides when, or it leaves now.
    pub(super) fn owe_ack(&mut self, profile: &Profile, owe: fn(&mut Acks)) {
        match self.policy.acks(profile) {
            Some(acks) => owe(acks),
            None => self.ack = AckDue::Now,
        }
    }

    /// Schedules an ACK that is not urgent (RFC 9293 §3.8.6.3).
    fn delay_ack(&mut self, profile: &Profile, now: Instant) {
        let policy = profile.acks.policy;
        let unacknowledged = self.nxt() - self.last_ack_sent;
        let full = unacknowledged > u64::from(policy.every.max(1) - 1) * u64::from(self.mss_seen);
        if policy.delay.is_zero() || full {
            self.ack = AckDue::Now;
        } else if self.ack == AckDue::No {
            self.ack = AckDue::Delayed;
            self.delayed_ack = Some(now + policy.delay);
        }
    }

    /// Decides about the ACK once the segment has been processed. `srtt` is the sender's smoothed round-trip
    /// time.
    pub(in crate::tcp) fn settle_ack(
        &mut self,
        cx: &Context,
        now: Instant,
        segment: &Segment<'_>,
        srtt: Option<Duration>,
    ) {
        if self.ack == AckDue::Now {
            return;
        }
        let nxt = self.nxt();
        let moment = Moment {
            now,
            rcv_nxt: nxt,
            unacked: nxt - self.last_ack_sent,
            holes: self.has_holes(),
            sack: cx.negotiated.sack(),
            srtt: srtt.map(Duration::as_nanos),
            running: self.delayed_ack,
        };
        // tcp_ecn_accept_cwr(): a sender that has just reduced its window may have room for one segment only.
        let reduced = cx.negotiated.ecn() && segment.flags.contains(Flags::CWR) && segment.seq_len() > 0;
        match self.policy.settle(&cx.profile, &moment, reduced, self.adv) {
            Some(Waiting::Not) => self.ack = AckDue::Now,
            Some(Waiting::Until(at)) => (self.ack, self.delayed_ack) = (AckDue::Delayed, Some(at)),
            None => {}
        }
    }

    /// Acknowledges quickly after the first CE mark, and after a retransmission, which is not ECN-capable:
    /// such a sender has little in flight (Linux 6.18, tcp_data_ecn_check()).
    pub(super) fn hasten_ecn_acks(&mut self, profile: &Profile, segment: &Segment<'_>) {
        if segment.payload.is_empty() {
            return;
        }
        let capable = segment.ecn != Ecn::NotEct;
        let first_mark = segment.ecn == Ecn::Ce && !self.echo_ce;
        if first_mark || (!capable && self.ect_seen) {
            self.policy.quicken(profile, 2);
        }
        self.ect_seen |= capable;
    }
}
