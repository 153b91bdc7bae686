//! Incoming text and the FIN: storing them, and scheduling their ACK.

use airwire::segment::{Ecn, Flags, Segment};
use airwire::text::Text;
use airwire::time::{Duration, Instant};

use super::linux::{AckDelay, AckState, Acks};
use super::{AckDue, Dsack, Receiver, Storing};
use crate::profile::{AckRules, Profile};
use crate::rtt::RttEstimator;
use crate::tcp::context::Context;
use crate::tcp::statistics::Statistics;

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
        if self.policy.is_linux() {
            self.queue_segment(cx, storing, now, segment, offset);
            return;
        }
        if segment.payload.is_empty() {
            self.process_without_text(cx, storing.statistics, segment, offset);
            return;
        }
        self.record_fin(segment, offset);
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
            self.ack = AckDue::Now;
            return;
        }
        let had_text_above = self.holds_out_of_order();
        let is_admitted = self.store_text(cx, storing, segment, (offset, text));
        self.acknowledge_text(cx, now, offset != next || had_text_above || !is_admitted);
    }

    /// RFC 5681 §4.2: out-of-order segments, and those that fill a hole, are acknowledged at once.
    fn acknowledge_text(&mut self, cx: &Context, now: Instant, is_urgent: bool) {
        match is_urgent {
            true => self.ack = AckDue::Now,
            false => self.delay_ack(&cx.profile, now),
        }
    }

    /// Processes a segment with text, a FIN or both as Linux does (tcp_data_queue()).
    fn queue_segment(
        &mut self,
        cx: &Context,
        storing: &mut Storing<'_>,
        now: Instant,
        segment: &Segment<'_>,
        offset: u64,
    ) {
        if !self.on_fast_path {
            // tcp_data_queue() clears a D-SACK that no ACK has reported yet, except on the fast path.
            self.dsack.take_if(|dsack| !dsack.is_sent);
        }
        let (next, end) = (self.buffer.next(), offset + segment.seq_len());
        let is_refused = offset <= next && self.wnd() == 0 && !segment.payload.is_empty();
        if end <= next || is_refused || self.starts_beyond_window(offset) {
            self.note_duplicate(cx, storing.statistics, segment);
            self.policy.enter_quick_ack_mode(&cx.profile, u32::MAX);
            self.schedule_ack(&cx.profile, Acks::schedule);
            return;
        }
        let had_text_above = self.has_holes();
        if !self.admits(storing, offset, segment.payload.len()) {
            self.policy.enter_quick_ack_mode(&cx.profile, u32::MAX);
            self.ack = AckDue::Now;
            return;
        }
        self.mss_seen = self.mss_seen.max(segment.payload.len() as u32);
        let dsack = match offset > next {
            true => self.place(cx, storing.statistics, segment, (offset, next)),
            false => self.append(cx, storing, now, segment, (offset, next)),
        };
        if let Some(dsack) = dsack {
            storing.statistics.duplicate_segments_in += 1;
            self.dsack = cx.profile.acks.dsack.then(|| Dsack::new(dsack));
        }
        if cx.profile.acks.policy.rules == AckRules::Plain {
            self.acknowledge_text(cx, now, offset != next || had_text_above);
        }
    }

    /// Stores an out-of-order segment, and returns the part that was received before. `next` is RCV.NXT.
    fn place(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        segment: &Segment<'_>,
        (offset, next): (u64, u64),
    ) -> Option<(u64, u64)> {
        let placed = self.policy.on_out_of_order(cx, segment, (offset, next))?;
        if placed.is_refused() {
            // A SACK block would promise data that was dropped.
            return None;
        }
        if placed.is_new {
            self.buffer.insert(offset, segment.payload, u64::MAX);
        }
        statistics.out_of_order_segments_in += 1;
        if self.policy.add_block(offset, offset + segment.seq_len()) {
            self.ack = AckDue::Now;
        }
        placed.dsack
    }

    /// Appends an in-order segment, and the stored data that follows it. Returns the part that was received before.
    fn append(
        &mut self,
        cx: &Context,
        storing: &mut Storing<'_>,
        now: Instant,
        segment: &Segment<'_>,
        (offset, next): (u64, u64),
    ) -> Option<(u64, u64)> {
        let advance = self.policy.on_in_order(cx, now, segment, (offset, next), storing.rtt)?;
        if let Some(fin) = advance.fin {
            self.buffer.drop_from(fin);
        }
        storing.statistics.bytes_received +=
            self.buffer.insert(offset, segment.payload, advance.fin.unwrap_or(u64::MAX));
        if let Some(fin) = advance.fin.filter(|fin| *fin == self.buffer.next()) {
            // Data that shares the buffer of the FIN is acknowledged with it.
            self.fin_len = (advance.rcv_nxt - fin) as u32;
            self.fin = Some(fin);
        }
        advance.dsack
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
        self.record_fin(segment, offset);
        self.ack = AckDue::Now;
        self.remember_block(&cx.profile, offset);
    }

    /// Records the segment's FIN. A FIN beyond the window is ignored, because the peer will retransmit it. A
    /// FIN below data that has arrived is also ignored.
    fn record_fin(&mut self, segment: &Segment<'_>, offset: u64) {
        if !segment.flags.contains(Flags::FIN) || self.fin.is_some() {
            return;
        }
        let fin = offset + segment.payload.len() as u64;
        let held_to = self.buffer.out_of_order().last().map_or(0, |range| range.end);
        let next = self.nxt();
        if (next..=self.adv.max(next)).contains(&fin) && fin >= held_to {
            self.fin = Some(fin);
        }
    }

    /// Stores text that is at least partly new, and records its SACK and D-SACK blocks. Returns false if memory was
    /// short.
    fn store_text(
        &mut self,
        cx: &Context,
        storing: &mut Storing<'_>,
        segment: &Segment<'_>,
        (offset, text): (u64, Text<'_>),
    ) -> bool {
        let next = self.buffer.next();
        self.mss_seen = self.mss_seen.max(text.len() as u32);
        let repeated = self.overlap_with_held(offset, offset + text.len() as u64);
        let is_admitted = self.admits(storing, offset, text.len());
        if is_admitted {
            if offset <= next {
                self.buffer.reuse_memory(text.len(), storing.charge.budget());
            }
            storing.statistics.bytes_received += self.buffer.insert(offset, text, self.adv);
        }
        if let Some(repeated) = repeated {
            storing.statistics.duplicate_segments_in += 1;
            self.dsack = cx.profile.acks.dsack.then(|| Dsack::new(repeated));
        } else if let (Some(alarm), Some(timestamps)) = (&mut self.alarm, segment.options.timestamps) {
            alarm.on_segment(offset, next, timestamps.val);
        }
        if offset > next {
            storing.statistics.out_of_order_segments_in += 1;
            self.remember_block(&cx.profile, offset);
        }
        is_admitted
    }

    /// Returns true if data is missing below data or a FIN that has arrived.
    pub(in crate::tcp) fn has_holes(&self) -> bool {
        self.holds_out_of_order() || self.early_fin().is_some() || self.policy.has_out_of_order()
    }

    /// Returns the part of `text`, which starts at `offset`, that lies below the FIN.
    fn below_fin<'a>(&self, text: Text<'a>, offset: u64) -> Text<'a> {
        let Some(fin) = self.fin else { return text };
        let len = fin.saturating_sub(offset) as usize;
        text.slice(0..text.len().min(len))
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

    /// Decides when the scheduled ACK is sent, after the segment has been processed. `rtt` is the sender's
    /// estimator.
    pub(in crate::tcp) fn decide_ack(
        &mut self,
        cx: &Context,
        now: Instant,
        segment: &Segment<'_>,
        rtt: &RttEstimator,
    ) {
        if self.ack == AckDue::Now || !self.policy.is_linux() {
            return;
        }
        let nxt = self.nxt();
        let state = AckState {
            now,
            rcv_nxt: nxt,
            unacked: nxt - self.last_ack_sent,
            has_holes: self.has_holes(),
            sack: cx.negotiated.sack(),
            srtt: rtt.srtt().map(Duration::as_nanos),
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
