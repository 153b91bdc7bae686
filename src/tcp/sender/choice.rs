//! The choice of the segment that is sent next, and the record of segments that were sent.

use airwire::segment::{Ecn, Flags};
use airwire::time::{Duration, Instant};

use super::mtu_search::NextSegment;
use super::pacer::Pacer;
use super::{MoreData, Sender};
use crate::flight::SegmentState;
use crate::profile::recovery::RackDialect;
use crate::profile::{Nagle, RtoEvents, WindowProbe};
use crate::recovery::{Transmission, TransmissionKind};
use crate::tcp::context::Context;
use crate::tcp::statistics::Statistics;

/// Maximum time that a corked partial segment is delayed (tcp(7), TCP_CORK).
const CORK: Duration = Duration::from_millis(200);

/// A segment with data or a FIN that may be sent now.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Choice {
    pub(in crate::tcp) start: u64,
    end: u64,
    kind: TransmissionKind,
    is_window_probe: bool,
}

impl Choice {
    pub(in crate::tcp) fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    pub(in crate::tcp) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn is_new(&self) -> bool {
        self.kind == TransmissionKind::New
    }
}

/// A zero-window probe.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Probe {
    pub(in crate::tcp) start: u64,
    pub(in crate::tcp) data_end: u64,
    pub(in crate::tcp) flags: Flags,
}

impl Sender {
    /// Chooses the next segment with data or a FIN. `may_send` is false in a state that sends no new data.
    /// `reports_blocks` is true if the next ACK has SACK blocks.
    pub(in crate::tcp) fn choose(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
        (may_send, reports_blocks): (bool, bool),
    ) -> Option<Choice> {
        let choice = self.choose_data(cx, statistics, now, (may_send, reports_blocks));
        self.keeps_sack_len = choice.is_some_and(|choice| choice.kind == TransmissionKind::New)
            && cx.profile.sending.sack_on_data;
        if choice.is_none() && self.recovery.has_new_usage() {
            let (recovery, mut path) = self.recovery_and_path(now);
            recovery.on_burst_sent(&mut path);
        }
        choice
    }

    fn choose_data(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
        (may_send, reports_blocks): (bool, bool),
    ) -> Option<Choice> {
        let is_early = cx.is_open_early();
        if !may_send && (is_early || self.flight.is_empty()) {
            return None;
        }
        let is_due = self.pacer().is_none_or(|pacer| pacer.permits(now));
        if !is_due && !self.is_within_burst() {
            return None;
        }
        // Until its acknowledgment, only the SYN,ACK is retransmitted.
        if !is_due || is_early {
            return self.choose_new(cx, statistics, now, reports_blocks);
        }
        if let Some(choice) = self.choose_retransmission(cx, now) {
            return Some(choice);
        }
        if let Some(choice) = self.choose_new(cx, statistics, now, reports_blocks) {
            return Some(choice);
        }
        if self.flight.is_empty() || !self.recovery.may_resend_without_new_data() {
            return None;
        }
        let (recovery, mut path) = self.recovery_and_path(now);
        let (start, kind) = recovery.next_resend_without_new_data(&mut path)?;
        self.fit_to_smss(cx, start, kind)
    }

    fn choose_retransmission(&mut self, cx: &Context, now: Instant) -> Option<Choice> {
        if self.flight.is_empty() || !self.recovery.may_resend(&self.flight) {
            return None;
        }
        let (recovery, mut path) = self.recovery_and_path(now);
        let (start, kind) = recovery.next_resend(&mut path)?;
        self.fit_to_smss(cx, start, kind)
    }

    /// Returns the segment at `start` for retransmission. The segment is cut to the current SMSS, or merged
    /// with the following segments in some profiles.
    fn fit_to_smss(&mut self, cx: &Context, start: u64, kind: TransmissionKind) -> Option<Choice> {
        // RFC 9293 §3.8.6 (SHLD-16): after the peer has shrunk its window, data beyond the window is not
        // retransmitted, except for the first segment.
        if start >= self.flight.una() + self.wnd && start > self.flight.una() {
            return None;
        }
        let segment = self.flight.segment_at(start)?;
        let (start, mut end) = (segment.start, segment.end);
        let smss = self.resendable(cx, start);
        if end - start > smss + 1 || (end - start > smss && self.fin != Some(end - 1)) {
            end = start + smss;
            self.flight.split(start, end);
        } else if cx.profile.sending.merges_retransmissions {
            end = self.merge_with_next(start, end);
        }
        Some(Choice { start, end, kind, is_window_probe: false })
    }

    /// Returns the longest retransmission at `start`. Linux limits it to the peer's window, unless that is closed
    /// (__tcp_retransmit_skb()).
    fn resendable(&self, cx: &Context, start: u64) -> u64 {
        let (smss, edge) = (self.current_smss(), self.flight.una() + self.wnd);
        let fits_window = cx.profile.sending.merges_retransmissions && start < edge;
        if fits_window { smss.min(edge - start) } else { smss }
    }

    /// Merges the segment `start..end` with the following ones that fit into SMSS and into the peer's window.
    /// Returns the end of the result.
    fn merge_with_next(&mut self, start: u64, mut end: u64) -> u64 {
        let (text_end, edge) = (self.buffer.end(), self.flight.una() + self.wnd);
        let sent_text_end = text_end.min(self.flight.max());
        let limit = start + self.current_smss();
        while end < limit
            && !self.buffer.ends_record(end)
            && let Some(next) = self.flight.segment_at(end)
            && next.state != SegmentState::Sacked
        {
            let (next_end, next_text_end) = (next.end, next.end.min(text_end));
            // A buffer of several segments stays unchanged.
            let is_long = self.starts_buffer(end) && self.buffer_end(end).min(sent_text_end) > next_text_end;
            if is_long || next_text_end > limit || next_end > edge {
                break;
            }
            self.flight.merge(start);
            self.merge_buffers(end, next_text_end);
            end = next_end;
        }
        end
    }

    #[inline]
    fn choose_new(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
        reports_blocks: bool,
    ) -> Option<Choice> {
        self.raise_pmtu(cx, now);
        let fin_due = self.fin_to_send(cx);
        let has_new = match fin_due {
            Some(fin) => self.flight.max() <= fin,
            None => self.flight.max() < self.buffer.end(),
        };
        if !has_new {
            return None;
        }
        self.choose_unsent(cx, statistics, now, (fin_due, reports_blocks))
    }

    /// Chooses a segment of the data and FIN that were never sent, if the windows and Nagle permit one.
    // Inlined, it would make every poll of a host that has nothing to send more expensive.
    #[inline(never)]
    fn choose_unsent(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
        (fin_due, reports_blocks): (Option<u64>, bool),
    ) -> Option<Choice> {
        let start = self.flight.max();
        let data_end = self.buffer.end();
        let edge = self.flight.una() + self.wnd;
        // A segment does not extend beyond the end of a record.
        let unsent = self.buffer.record_end(start) - start;
        let usable = edge.saturating_sub(start).min(unsent);
        let next = self.next_segment(cx, now, (start, edge, unsent), reports_blocks);
        let smss = self.current_smss();
        let buffer_end = self.end_of_buffer_to_send(cx, now, start, edge);
        let len = match next {
            NextSegment::Ordinary => usable.min(smss).min(buffer_end - start),
            NextSegment::Probe(data) => data,
            NextSegment::ProbeLater => return None,
        };
        if usable < smss && usable < unsent && cx.profile.sending.keeps_pushes {
            let length = self.growth_limit(now, start, edge);
            self.grow_waiting_buffer(start, length);
        }
        let last = fin_due == Some(start + len);
        // The end of a record is not delayed, because no data can be added (Linux 6.18,
        // tcp_write_xmit(), delays only the last buffer in the queue).
        let is_complete = (len == unsent || start + len == buffer_end) && start + len < data_end;
        // A FIN has a sequence number, which must be in the window.
        let fin = last && start + len < edge;
        if len == 0 && !fin {
            if self.flight.is_empty() {
                self.start_persist(cx, now);
            }
            return None;
        }
        let is_window_probe = self.may_send_partial && len < unsent && cx.profile.persist.restarted_by_acks;
        if !last && !is_complete && len < smss && !self.small_segment_may_be_sent(cx, now, len, unsent) {
            return None;
        }
        if self.flight_is_full(cx) {
            return None;
        }
        let (recovery, path) = self.recovery_and_path(now);
        let may_send = recovery.may_send_new(&path, len.max(u64::from(fin)));
        // A tail loss probe is not deferred (tcp_send_loss_probe()).
        let may_defer =
            cx.profile.sending.defers && next == NextSegment::Ordinary && !self.recovery.is_probing();
        if !may_send || (may_defer && self.defers(cx, now, start, edge, unsent)) {
            return None;
        }
        if next != NextSegment::Ordinary {
            self.begin_mtu_probe(cx, statistics, now, (start, len));
        }
        self.stop_persist();
        self.cork = None;
        self.may_send_partial = false;
        let end = start + len + u64::from(fin);
        if is_window_probe {
            self.push_buffer(end);
        }
        Some(Choice { start, end, kind: TransmissionKind::New, is_window_probe })
    }

    /// Nagle and the sender's side of silly-window avoidance (RFC 9293 §3.7.4, §3.8.6.2.1).
    fn small_segment_may_be_sent(&mut self, cx: &Context, now: Instant, len: u64, unsent: u64) -> bool {
        let idle = self.flight.is_empty();
        if len < unsent {
            // The window cuts the segment short, not the application.
            if len * 2 >= self.max_wnd {
                return true;
            }
            let fits = 2 * (self.current_smss() + len) <= self.max_wnd;
            if cx.profile.sending.fills_window
                && fits
                && self.is_rest_of_burst(cx, now)
                && self.nagle_allows(cx, idle)
            {
                return true;
            }
            if !idle {
                return false;
            }
            let is_overdue = std::mem::take(&mut self.may_send_partial);
            if !is_overdue {
                self.start_persist(cx, now);
            }
            return is_overdue;
        }
        // RFC 8985 §7.3: a probe preferably carries new data.
        if self.pushed || self.recovery.is_probing() {
            return true;
        }
        if self.is_corked(cx) {
            if self.cork.is_none() {
                self.cork = Some(now + CORK);
            }
            return std::mem::take(&mut self.may_send_partial);
        }
        self.nagle_allows(cx, idle)
    }

    /// Returns true if a partial segment is delayed until the application writes more data.
    pub(super) fn is_corked(&self, cx: &Context) -> bool {
        cx.options.cork || self.more_data == MoreData::Expected
    }

    /// Returns true if a small segment is delayed while data is in flight.
    pub(super) fn holds_small_segments(&self, cx: &Context) -> bool {
        !self.pushed && (self.is_corked(cx) || !self.nagle_allows(cx, false))
    }

    fn nagle_allows(&self, cx: &Context, idle: bool) -> bool {
        match cx.profile.sending.nagle {
            _ if cx.options.nodelay => true,
            Nagle::Off => true,
            Nagle::Classic => idle,
            Nagle::Minshall => self.small_end <= self.flight.una(),
        }
    }

    /// Returns true if the next segment belongs to the burst of the last one. In a sender without bursts, the
    /// last segment must be full-sized and sent at this instant.
    fn is_rest_of_burst(&self, cx: &Context, now: Instant) -> bool {
        if cx.profile.sending.defers {
            return self.is_within_burst();
        }
        let last = self.flight.iter().next_back();
        last.is_some_and(|last| last.last_sent == now && last.len() >= self.current_smss())
    }

    /// Returns the end of the data of a chosen segment, its flags and its ECN field.
    pub(in crate::tcp) fn header_fields(
        &mut self,
        cx: &Context,
        now: Instant,
        choice: &Choice,
    ) -> (u64, Flags, Ecn) {
        let Choice { start, end, kind, .. } = *choice;
        let data_end = end.min(self.buffer.end());
        let mut flags = Flags::ACK;
        if self.fin == Some(end - 1) {
            flags = flags.with(Flags::FIN);
        }
        let pushes = match data_end == self.buffer.end() {
            true => self.more_data == MoreData::None,
            false => self.buffer.ends_record(data_end) || self.is_pushed(data_end),
        };
        let ends_burst = match kind {
            _ if !cx.profile.sending.keeps_pushes => false,
            TransmissionKind::New => self.ends_burst(start, data_end),
            _ => self.ends_resent_burst(now, start, end),
        };
        if (pushes || ends_burst) && data_end > start {
            flags = flags.with(Flags::PSH);
        }
        // RFC 3168: never on a retransmission (§6.1.5) or without data (§6.1.4).
        if !cx.negotiated.ecn() || kind != TransmissionKind::New || data_end <= start {
            return (data_end, flags, Ecn::NotEct);
        }
        if self.recovery.take_cwr() {
            flags = flags.with(Flags::CWR);
        }
        (data_end, flags, Ecn::Ect0)
    }

    /// Records that a chosen segment, whose data ends at `data_end`, was sent.
    pub(in crate::tcp) fn on_sent(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
        choice: &Choice,
        data_end: u64,
    ) {
        let Choice { start, end, kind, .. } = *choice;
        let tsval = cx.negotiated.ts_now(&cx.profile, now);
        if kind == TransmissionKind::New {
            if self.rtt.style().times_one_segment() && self.timed.is_none() {
                self.timed = Some(Box::new((end, now)));
            }
            if end - start < self.current_smss() {
                self.small_end = end;
            }
            self.flight.on_new(end, now, tsval);
            if self.is_mtu_probe(end) {
                self.flight.set_probes_mtu(end, true);
            }
        } else {
            self.abandon_mtu_probe();
            statistics.bytes_resent += data_end - start;
            // Karn: retransmitting the timed segment makes its timing ambiguous, and a loss distorts it.
            let ambiguous =
                !self.rtt.style().times_copies() && self.timed.as_ref().is_some_and(|timed| timed.0 == end);
            if ambiguous || matches!(kind, TransmissionKind::FastRetransmit | TransmissionKind::Timeout) {
                self.timed = None;
            }
            let is_linux = cx.profile.recovery.dialects.rack == RackDialect::Linux;
            if kind == TransmissionKind::Probe && is_linux {
                self.flight.on_probe_resent(start, now, tsval);
            } else if self.recovery.is_outside_pass(start) {
                self.flight.on_resent_outside_pass(start, now, tsval);
            } else {
                self.flight.on_resent(start, now, tsval);
            }
        }
        self.last_sent = now;
        statistics.data_segments_out += 1;
        let transmission = Transmission { start, end, kind, tsval, is_window_probe: choice.is_window_probe };
        let (recovery, mut path) = self.recovery_and_path(now);
        recovery.on_sent(&mut path, &transmission);
        self.pace(now, data_end - start);
        if self.rto.is_none() || self.restarts_rto(cx, now, start, kind) {
            self.restart_rto(now);
        }
    }

    /// Records that segments were sent that follow `first`, have its length, and are chosen for the same reasons:
    /// as many as the windows permit, but not more than `max`, and not the last data. Returns their number.
    pub(in crate::tcp) fn send_more(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
        first: &Choice,
        max: usize,
    ) -> usize {
        let len = first.end - first.start;
        let may_follow = first.is_new() && len == self.current_smss() && self.chooses_by_windows(cx);
        let edge = self.flight.una() + self.wnd;
        let mut count = 0;
        while may_follow && count < max {
            let (start, end) = (self.flight.max(), self.flight.max() + len);
            if end > edge || end >= self.buffer.end() || self.flight_is_full(cx) {
                break;
            }
            let (recovery, path) = self.recovery_and_path(now);
            if recovery.may_resend(path.flight) || !recovery.may_send_new(&path, len) {
                break;
            }
            self.on_sent(cx, statistics, now, &Choice { start, end, ..*first }, end);
            count += 1;
        }
        count
    }

    /// Returns true if only the windows and the available data decide when a full-sized segment is sent.
    fn chooses_by_windows(&mut self, cx: &Context) -> bool {
        let rules = &cx.profile.sending;
        let is_plain = !rules.keeps_pushes && !rules.defers && !rules.sack_on_data;
        is_plain
            && !cx.is_open_early()
            && self.mtu_search.is_none()
            && !self.buffer.has_records()
            && self.pacer().is_none()
    }

    /// Returns true if this retransmission restarts the timer: it is the first outstanding segment, and the
    /// timer must not expire before its ACK can arrive (Linux, tcp_xmit_retransmit_queue()).
    fn restarts_rto(&self, cx: &Context, now: Instant, start: u64, kind: TransmissionKind) -> bool {
        cx.profile.timers.rto_events == RtoEvents::Linux
            && kind != TransmissionKind::New
            && start == self.flight.una()
            && self.recovery.waits_until(now).is_none()
    }

    /// Charges `bytes` of sent data to the pacer, which delays the next segment.
    #[inline]
    fn pace(&mut self, now: Instant, bytes: u64) {
        if self.pacer().is_none() {
            return;
        }
        let (recovery, path) = self.recovery_and_path(now);
        let rate = recovery.pacing_rate(&path);
        if let (Some(pacer), Some(rate)) = (self.pacer(), rate) {
            pacer.on_sent(bytes, rate);
        }
    }

    #[inline]
    pub(super) fn pacer(&mut self) -> Option<&mut Pacer> {
        self.spacing.as_mut()?.pacer.as_mut()
    }

    /// Returns true if data or a FIN is unacknowledged, sent or not.
    pub(super) fn has_unacknowledged(&self) -> bool {
        let una = self.flight.una();
        una < self.buffer.end() || self.fin.is_some_and(|fin| una <= fin)
    }

    /// Returns the zero-window probe that is to be sent now, and records it (RFC 9293 §3.8.6.1).
    pub(in crate::tcp) fn take_window_probe(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
    ) -> Option<Probe> {
        let is_due = std::mem::take(&mut self.window_probe_is_due);
        if !is_due || self.wnd > 0 || !self.has_unacknowledged() {
            return None;
        }
        self.probes_sent += 1;
        statistics.window_probes += 1;
        let una = self.flight.una();
        if cx.profile.persist.probe == WindowProbe::OldSequence {
            let at = una.saturating_sub(1);
            return Some(Probe { start: at, data_end: at, flags: Flags::ACK });
        }
        let end = self.flight.head().map_or(una + 1, |head| head.end.min(una + 1));
        let tsval = cx.negotiated.ts_now(&cx.profile, now);
        if self.flight.is_empty() {
            self.flight.on_new(end, now, tsval);
        } else {
            self.flight.split(una, end);
            self.flight.on_resent(una, now, tsval);
        }
        let data_end = end.min(self.buffer.end());
        let flags = if data_end < end { Flags::ACK.with(Flags::FIN) } else { Flags::ACK };
        Some(Probe { start: una, data_end, flags })
    }

    /// Returns the offset of an ACK without data.
    pub(in crate::tcp) fn bare_seq(&self, cx: &Context) -> u64 {
        let (max, edge) = (self.flight.max(), self.flight.una() + self.wnd);
        let unit = if cx.negotiated.scaling() { 1 << cx.negotiated.rcv_scale() } else { 1 };
        if cx.profile.sending.bounds_bare_seq && max >= edge + unit { edge } else { max }
    }

    /// Returns the offset of a RST, which must lie within the peer's window.
    pub(in crate::tcp) fn reset_at(&self, cx: &Context) -> u64 {
        if cx.profile.sending.bounds_bare_seq {
            return self.bare_seq(cx);
        }
        self.flight.max().min(self.flight.una() + self.wnd.max(1))
    }
}
