//! Incoming text and the FIN: storing them, and scheduling their ACK.

use airwire::segment::{Ecn, Flags, Segment};
use airwire::time::{Duration, Instant};

use super::linux::{AckDelay, AckState, Acks};
use super::policy::Arrival;
use super::reassembly::max_ranges;
use super::{AckDue, Dsack, Receiver, Storing};
use crate::profile::{AckRules, Profile};
use crate::tcp::context::Context;
use crate::tcp::statistics::Statistics;

/// The effect of storing text.
struct Stored {
    /// False if memory was short.
    is_admitted: bool,
    /// How far RCV.NXT moved.
    moved: u64,
    /// The part of the text that was received before.
    repeated: Option<(u64, u64)>,
}

impl Receiver {
    /// Stores the segment's text, which starts at `offset`, and schedules its ACK.
    pub(in crate::tcp) fn process_text(
        &mut self,
        cx: &Context,
        storing: &mut Storing<'_>,
        now: Instant,
        segment: &Segment<'_>,
        offset: u64,
    ) {
        let had_holes = self.has_holes();
        if self.policy.is_linux() && self.apply_linux_rules(cx, storing, now, segment, offset) {
            return;
        }
        if segment.payload.is_empty() {
            self.process_without_text(cx, storing.statistics, segment, offset);
            return;
        }
        self.record_fin(&cx.profile, segment, offset);
        let text = self.below_fin(segment.payload, offset);
        let next = self.buffer.next();
        if text.is_empty() {
            // All text lies above the FIN.
            self.ack = AckDue::Now;
            return;
        }
        if offset + text.len() as u64 <= next {
            // All text was received before.
            self.note_duplicate(cx, storing.statistics, segment);
            self.schedule_ack(&cx.profile, Acks::schedule);
            self.ack = AckDue::Now;
            return;
        }
        let had_text_above = self.holds_out_of_order();
        let stored = self.store_text(cx, storing, segment, (offset, text));
        if self.policy.is_linux() {
            if stored.moved == 0 && offset <= next {
                // The buffer had no room for the text.
                self.policy.enter_quick_ack_mode(&cx.profile, u32::MAX);
                self.ack = AckDue::Now;
                return;
            }
            let arrival = Arrival {
                offset,
                next,
                len: text.len() as u64,
                repeated: stored.repeated,
                span: self.buffer.out_of_order_span(),
                is_held: self.buffer.out_of_order().containing(offset).is_some(),
                reached: self.buffer.next(),
                rto: storing.rto,
            };
            self.policy.on_data(cx, now, segment, &arrival);
        }
        if let AckRules::Linux(_) = cx.profile.acks.policy.rules {
            if had_holes && !self.has_holes() {
                self.schedule_ack(&cx.profile, Acks::schedule_now);
            }
            return;
        }
        // RFC 5681 §4.2: out-of-order segments, and those that fill a hole, are acknowledged at once.
        if offset != next || had_text_above || !stored.is_admitted {
            self.ack = AckDue::Now;
            return;
        }
        self.delay_ack(&cx.profile, now);
    }

    /// Applies the rules of Linux that precede the common ones. Returns true if they complete the processing
    /// of the segment.
    fn apply_linux_rules(
        &mut self,
        cx: &Context,
        storing: &mut Storing<'_>,
        now: Instant,
        segment: &Segment<'_>,
        offset: u64,
    ) -> bool {
        if !self.on_fast_path {
            // tcp_data_queue() clears a D-SACK that no ACK has reported yet, except on the fast path.
            self.dsack.take_if(|dsack| !dsack.is_sent);
        }
        self.process_beyond_end(cx, storing, now, segment, offset)
            || self.process_early_fin(cx, segment, offset)
    }

    /// Processes a segment without text, which may be a FIN.
    fn process_without_text(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        segment: &Segment<'_>,
        offset: u64,
    ) {
        self.note_duplicate(cx, statistics, segment);
        if !segment.flags.contains(Flags::FIN) {
            return;
        }
        let repeats_early_fin = self.policy.is_linux() && self.early_fin() == Some(offset);
        self.record_fin(&cx.profile, segment, offset);
        if repeats_early_fin && cx.profile.acks.dsack {
            self.dsack = Some(Dsack::new((offset, offset + 1)));
        }
        self.schedule_ack(&cx.profile, Acks::schedule);
        self.remember_block(&cx.profile, offset, segment.seq_len());
    }

    /// Records the segment's FIN. A FIN beyond the window is ignored, because the peer will retransmit it. A
    /// FIN below data that has arrived is also ignored.
    fn record_fin(&mut self, profile: &Profile, segment: &Segment<'_>, offset: u64) {
        if !segment.flags.contains(Flags::FIN) || self.fin.is_some() {
            return;
        }
        let fin = offset + segment.payload.len() as u64;
        let held_to = self.buffer.out_of_order().last().map_or(0, |range| range.end);
        let next = self.nxt();
        if (next..=self.edge_of_acceptance(profile).max(next)).contains(&fin) && fin >= held_to {
            self.fin = Some(fin);
        }
    }

    /// Stores text that is at least partly new, and records its SACK and D-SACK blocks.
    fn store_text(
        &mut self,
        cx: &Context,
        storing: &mut Storing<'_>,
        segment: &Segment<'_>,
        (offset, text): (u64, &[u8]),
    ) -> Stored {
        let next = self.buffer.next();
        self.mss_seen = self.mss_seen.max(text.len() as u32);
        let repeated = self.overlap_with_held(offset, offset + text.len() as u64);
        let is_admitted = self.admits(storing, offset, text.len());
        let edge = self.edge_of_acceptance(&cx.profile);
        let moved = if is_admitted { self.buffer.insert(offset, text, edge) } else { 0 };
        storing.statistics.bytes_received += moved;
        if let Some(repeated) = repeated {
            storing.statistics.duplicate_segments_in += 1;
            self.dsack = cx.profile.acks.dsack.then(|| Dsack::new(repeated));
        } else if let (Some(alarm), Some(timestamps)) = (&mut self.alarm, segment.options.timestamps) {
            alarm.on_segment(offset, next, timestamps.val);
        }
        if offset > next {
            storing.statistics.out_of_order_segments_in += 1;
            self.remember_block(&cx.profile, offset, segment.seq_len());
        }
        Stored { is_admitted, moved, repeated }
    }

    /// Processes a segment that begins beyond the window, or after a FIN that is itself out of order. Returns
    /// false if it is neither.
    ///
    /// Linux holds text after such a FIN and reports it by SACK. It drops the text when RCV.NXT reaches the
    /// FIN (tcp_fin()), so here only the ranges are stored.
    fn process_beyond_end(
        &mut self,
        cx: &Context,
        storing: &mut Storing<'_>,
        now: Instant,
        segment: &Segment<'_>,
        offset: u64,
    ) -> bool {
        let end = offset + segment.seq_len();
        if self.starts_beyond_window(offset) {
            self.policy.enter_quick_ack_mode(&cx.profile, u32::MAX);
            self.schedule_ack(&cx.profile, Acks::schedule);
            return true;
        }
        if self.early_fin().is_none_or(|fin| offset <= fin) {
            return false;
        }
        let ranges = self.after_fin.get_or_insert_default();
        let repeated = ranges.first_overlap(offset..end);
        if ranges.len() < max_ranges(self.buffer.limit()) {
            ranges.insert(offset..end);
        }
        if let Some(repeated) = repeated.as_ref().filter(|_| cx.profile.acks.dsack) {
            self.dsack = Some(Dsack::new((repeated.start, repeated.end)));
        }
        storing.statistics.out_of_order_segments_in += 1;
        let next = self.buffer.next();
        let span = self.after_fin.as_ref().and_then(|ranges| ranges.last()).map_or(0, |last| last.end - next);
        let repeated = repeated.map(|range| (range.start, range.end));
        let len = segment.payload.len() as u64;
        let arrival =
            Arrival { offset, next, len, repeated, span, is_held: true, reached: next, rto: storing.rto };
        self.policy.on_data(cx, now, segment, &arrival);
        self.schedule_ack(&cx.profile, Acks::schedule);
        if self.policy.add_block(offset, end) {
            self.ack = AckDue::Now;
        }
        true
    }

    /// Processes a segment that overlaps a FIN that is itself out of order. Returns true if the segment is
    /// only a FIN, at a sequence number where text has arrived.
    fn process_early_fin(&mut self, cx: &Context, segment: &Segment<'_>, offset: u64) -> bool {
        let (next, end) = (self.buffer.next(), offset + segment.seq_len());
        // tcp_ofo_queue() drops a FIN whose sequence number in-order text covers.
        let covered = self.early_fin().filter(|fin| offset <= next && *fin < end);
        if let Some(fin) = covered.filter(|_| !segment.flags.contains(Flags::FIN)) {
            (self.fin, self.after_fin) = (None, None);
            self.policy.on_pruned(end);
            self.dsack = cx.profile.acks.dsack.then(|| Dsack::new((fin, fin + 1)));
        }
        // tcp_data_queue_ofo(): all of the segment has arrived before.
        let held = self.buffer.out_of_order().containing(offset).is_some_and(|held| end <= held.end);
        if !segment.flags.contains(Flags::FIN) || !segment.payload.is_empty() || !held {
            return false;
        }
        self.dsack = cx.profile.acks.dsack.then(|| Dsack::new((offset, end)));
        self.schedule_ack(&cx.profile, Acks::schedule);
        self.remember_block(&cx.profile, offset, segment.seq_len());
        true
    }

    /// Drops the out-of-order text above an in-order FIN (tcp_fin() of Linux).
    pub(in crate::tcp) fn drop_above_fin(&mut self, segment: &Segment<'_>, offset: u64) {
        let (next, end) = (self.buffer.next(), offset + segment.payload.len() as u64);
        let is_in_order = offset <= next && next <= end && segment.flags.contains(Flags::FIN);
        if self.policy.is_linux() && is_in_order && self.fin.is_none() && self.holds_out_of_order() {
            self.buffer.drop_out_of_order();
            self.policy.on_pruned(end);
        }
    }

    /// Returns the edge up to which text is stored. Linux stores all of a segment that begins in the window
    /// (tcp_data_queue()). The sequence check has already limited the length of such segments.
    fn edge_of_acceptance(&self, profile: &Profile) -> u64 {
        let stores_whole = profile.validation.accepts_unacknowledged && self.wnd() > 0;
        if stores_whole { u64::MAX } else { self.adv }
    }

    /// Returns true if data is missing below data or a FIN that has arrived.
    pub(super) fn has_holes(&self) -> bool {
        self.holds_out_of_order() || self.early_fin().is_some()
    }

    /// Returns the part of `text`, which starts at `offset`, that lies below the FIN.
    fn below_fin<'a>(&self, text: &'a [u8], offset: u64) -> &'a [u8] {
        let Some(fin) = self.fin else { return text };
        let len = fin.saturating_sub(offset) as usize;
        &text[..text.len().min(len)]
    }

    /// Schedules an ACK. By the rules of Linux, `schedule` records it; by the plain rules, it is sent now.
    pub(super) fn schedule_ack(&mut self, profile: &Profile, schedule: fn(&mut Acks)) {
        match self.policy.acks(profile) {
            Some(acks) => schedule(acks),
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

    /// Decides when the scheduled ACK is sent, after the segment has been processed. `srtt` is the sender's
    /// smoothed round-trip time.
    pub(in crate::tcp) fn decide_ack(
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
        let state = AckState {
            now,
            rcv_nxt: nxt,
            unacked: nxt - self.last_ack_sent,
            has_holes: self.has_holes(),
            sack: cx.negotiated.sack(),
            srtt: srtt.map(Duration::as_nanos),
            timer: self.delayed_ack,
        };
        // tcp_ecn_accept_cwr(): a sender that has just reduced its window may have room for one segment only.
        let reduced = cx.negotiated.ecn() && segment.flags.contains(Flags::CWR) && segment.seq_len() > 0;
        match self.policy.delay_of_ack(&cx.profile, &state, reduced, self.adv) {
            Some(AckDelay::None) => self.ack = AckDue::Now,
            Some(AckDelay::Until(at)) => (self.ack, self.delayed_ack) = (AckDue::Delayed, Some(at)),
            None => {}
        }
    }

    /// Enters quick-ACK mode after the first CE mark, and after a retransmission, which is not ECN-capable:
    /// the sender then has little in flight (Linux 6.18, tcp_data_ecn_check()).
    pub(super) fn quicken_ecn_acks(&mut self, profile: &Profile, segment: &Segment<'_>) {
        if segment.payload.is_empty() {
            return;
        }
        let capable = segment.ecn != Ecn::NotEct;
        let first_mark = segment.ecn == Ecn::Ce && !self.echo_ce;
        if first_mark || (!capable && self.ect_seen) {
            self.policy.enter_quick_ack_mode(profile, 2);
        }
        self.ect_seen |= capable;
    }
}
