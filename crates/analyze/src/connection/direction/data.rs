//! Processes packets of the data's sender. A packet is new, late, a copy, a probe or a retransmission.

use std::ops::Range;

use aircaptures::packet::Packet;
use airwire::segment::Flags;

use super::acks::MAX_UNCAPTURED;
use super::anomalies::Retransmission;
use super::congestion::Congestion;
use super::flight::Segment;
use super::limits::PeriodEnd;
use super::recovery::{Recovery, RecoveryStart};
use super::retransmission_cause::{RetransmissionCause, Trigger};
use super::round_trips::Sent;
use super::series::Counted;
use super::{DirectionAnalysis, InitialFlight, PacketContext, outages};
use crate::compact::CompactOption;
use crate::connection::clock_order::REORDERED_WITHIN;
use crate::trace::{Fate, Idle, Proof, Sending, SentSegment};

/// Number of consecutive packets outside the known window after which the known window is assumed to be
/// wrong.
const MAX_STRAYS: u8 = 8;

/// Bytes by which a packet may exceed the known window.
pub(super) const WINDOW_TOLERANCE: u64 = 1 << 20;
/// Timestamp clock ticks by which the echo in an ACK may be older than a segment that it covers, because a
/// delayed ACK echoes the first of two segments.
const DELAYED_ACK: i32 = 50;
/// Nanoseconds for which the network may delay a copy. A later packet may be a retransmission of a sender
/// that uses the same identification for all packets.
const MAX_COPY_DELAY: i64 = 500_000_000;
/// Nanoseconds. The timer for an unanswered SYN or SYN-ACK is not shorter.
const MIN_SYN_TIMEOUT: i64 = 900_000_000;
/// Nanoseconds. Timers for zero-window probes are not shorter.
const MIN_PROBE_DELAY: i64 = 100_000_000;
/// Flags that window probes and keep-alives do not have.
const NOT_IN_PROBES: Flags = Flags::FIN.with(Flags::SYN).with(Flags::PSH);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketKind {
    New,
    /// Sent before packets that passed the capture point earlier.
    Late,
    /// Duplicated by the network.
    Copy,
    WindowProbe,
    KeepAlive,
    Retransmission {
        /// Whether the capture does not contain an earlier copy.
        original_missing: bool,
    },
}

impl DirectionAnalysis {
    /// Processes a packet of the data's sender.
    pub(in crate::connection) fn process_data_packet(&mut self, context: &PacketContext, packet: &Packet) {
        let period_end = self.process_segment(context, packet);
        self.ack_is_answered = true;
        self.account_time(context, period_end);
    }

    fn process_segment(&mut self, context: &PacketContext, packet: &Packet) -> PeriodEnd {
        self.count_marks(packet);
        let syn = packet.flags.contains(Flags::SYN);
        let is_first_syn = syn && !self.numbering.syn_seen;
        if syn {
            self.begin_with_syn(packet.seq, packet.options.mss);
        } else if !packet.flags.contains(Flags::RST) {
            // The sequence number of an RST is copied from the ACK number of another packet.
            self.begin(packet.seq);
        }
        let Some(start) = self.offset(packet.seq).filter(|start| self.is_plausible(*start, packet)) else {
            return PeriodEnd::Other;
        };
        let range = start..start + packet.seq_len();
        if range.is_empty() {
            self.count_probe_without_data(packet, start);
            self.record_uncaptured(packet, start);
            return PeriodEnd::Other;
        }
        self.count_payload(context.at, packet.len);
        if packet.flags.contains(Flags::FIN) {
            self.numbering.fin = CompactOption::offset(range.end);
            if range.end <= self.una() && !self.numbering.fin_acked {
                // An ACK for the FIN that is earlier in the capture was counted as an ACK for data.
                self.numbering.fin_acked = true;
                self.counts.acked_bytes = self.counts.acked_bytes.saturating_sub(1);
            }
        }
        let kind = if is_first_syn && range.end <= self.una() {
            self.record_syn_after_ack(context);
            PacketKind::Late
        } else {
            self.kind(context, packet, &range)
        };
        let (observed, sent_before) = (range.clone(), self.flight.max);
        let is_retransmission = matches!(kind, PacketKind::Retransmission { .. });
        let first = if is_retransmission { self.flight.first_overlapping(&range) } else { None };
        let cause = is_retransmission.then(|| {
            if syn {
                RetransmissionCause::AFTER_TIMEOUT
            } else {
                self.retransmission_cause(context, &range, first)
            }
        });
        let timer_expired = cause.is_some_and(|cause| cause.starts == Some(RecoveryStart::Timeout));
        let index = self.record_segment(context, packet, &range, kind, cause);
        if timer_expired && let Some(trace) = &mut self.trace {
            trace.idle.push(Idle { from: context.at - context.silence, to: context.at });
        }
        self.count_kind(kind, syn, &range);
        if cause.is_some() && !syn && context.sender_reply_delay >= outages::MIN_REMOTE {
            let silence = context.silence;
            if silence >= outages::MIN_SILENCE.max(4 * context.round_trip.unwrap_or(0)) {
                self.anomalies.get_or_default().outages.add(context.at, silence, packet.number);
            }
        }
        match cause {
            Some(cause) if !syn => {
                self.observe_loss(context, packet, &range, first);
                self.process_retransmission(packet, &range, first, cause, index);
            }
            _ if kind == PacketKind::New || kind == PacketKind::Late && range.end > self.flight.max => {
                self.process_new_data(context, packet, &range);
            }
            _ => {}
        }
        if !matches!(kind, PacketKind::Copy | PacketKind::KeepAlive) {
            self.put_in_flight(context, packet, range, kind);
        }
        if kind == PacketKind::New {
            self.detect_min_rtt_probe(context, packet.len);
        }
        self.observe_data(
            context,
            packet,
            &Sent { range: observed, is_new: kind == PacketKind::New, sent_before },
        );
        self.ip_ids.learn(packet.ip_id);
        if timer_expired { PeriodEnd::TimerExpired } else { PeriodEnd::Other }
    }

    fn count_payload(&mut self, at: i64, len: u32) {
        if len > 0 {
            self.counts.data_packets += 1;
            self.counts.sent_bytes += u64::from(len);
            self.series.add(at, Counted::Sent, u64::from(len));
            self.limits.start(at);
            self.sizes.longest = self.sizes.longest.max(len);
        }
    }

    fn count_kind(&mut self, kind: PacketKind, syn: bool, range: &Range<u64>) {
        if kind == PacketKind::New {
            return;
        }
        let una = self.una();
        let anomalies = self.anomalies.get_or_default();
        let (retransmissions, arrivals) = (&mut anomalies.retransmissions, &mut anomalies.arrivals);
        match kind {
            PacketKind::New => {}
            PacketKind::Retransmission { .. } if syn => retransmissions.syns += 1,
            PacketKind::Retransmission { original_missing: true } => retransmissions.lost_before_capture += 1,
            PacketKind::Retransmission { original_missing: false } | PacketKind::Copy => {
                arrivals.duplicate += 1;
            }
            PacketKind::Late => {
                arrivals.out_of_order += 1;
                anomalies.remove_captured(&(range.start..range.end.min(una.max(range.start))));
            }
            PacketKind::WindowProbe => retransmissions.window_probes += 1,
            PacketKind::KeepAlive => retransmissions.keep_alives += 1,
        }
    }

    /// Returns whether the packet may belong to this connection. Garbage and packets of other connections on
    /// the same ports must not move the window.
    fn is_plausible(&mut self, start: u64, packet: &Packet) -> bool {
        let within = match (self.room(), self.window.edge()) {
            (Some(_), Some(edge)) => start <= edge.max(self.flight.max) + WINDOW_TOLERANCE,
            _ => true,
        };
        // A retransmission is not further back than the largest window in use.
        let oldest = self.flight.lowest().saturating_sub(MAX_UNCAPTURED.max(u64::from(self.window.max())));
        let within = within && start + packet.seq_len() >= oldest;
        let strays = &mut self.numbering.strays;
        *strays = if within { 0 } else { *strays + 1 };
        if *strays == MAX_STRAYS {
            self.start_over(start);
            return true;
        }
        within && !packet.flags.contains(Flags::RST)
    }

    /// Discards the state, because it is invalid after the capture has missed many packets.
    fn start_over(&mut self, at: u64) {
        self.flight = Default::default();
        self.flight.begin(at);
        (self.recovery, self.dupacks, self.numbering.strays) = (Recovery::None, 0, 0);
        self.window.forget_edge();
        if let Some(anomalies) = self.anomalies.get_mut() {
            anomalies.recent.clear();
        }
    }

    /// Counts a probe without data. Linux sends probes with an old sequence number and without data.
    fn count_probe_without_data(&mut self, packet: &Packet, start: u64) {
        let known = self.flight.una().is_some() && !packet.flags.contains(Flags::RST);
        if known && start + 1 == self.una() {
            if self.window.is_closed() {
                self.anomalies.get_or_default().retransmissions.window_probes += 1;
            } else if start + 1 == self.flight.max {
                self.anomalies.get_or_default().retransmissions.keep_alives += 1;
            }
        }
    }

    /// Records that the sender has sent everything up to `start`, even if the capture does not contain it.
    fn record_uncaptured(&mut self, packet: &Packet, start: u64) {
        let limit = self.flight.max + WINDOW_TOLERANCE;
        if !packet.flags.contains(Flags::RST) && (self.flight.max + 1..=limit).contains(&start) {
            self.flight.reach(start);
        }
    }

    /// If the packet was sent before its ACK, although the ACK is earlier in the capture, returns the time
    /// since the ACK. Captures do not always keep the order between the directions, and the directions may
    /// have different clocks. The ACK may cover only the first part of the packet.
    fn time_since_its_ack(
        &self,
        context: &PacketContext,
        packet: &Packet,
        range: &Range<u64>,
    ) -> Option<i64> {
        let una = self.una();
        if range.start >= una || self.flight.first_overlapping(&(una..range.end.max(una))).is_some() {
            return None;
        }
        let acked = range.start..range.end.min(una);
        let missed = self.anomalies.get()?.uncaptured_covering(&acked)?;
        let tsval = packet.options.timestamps.map(|timestamps| timestamps.val);
        let later = tsval.zip(missed.echo).map(|(tsval, echo)| tsval.wrapping_sub(echo) as i32);
        // If the capture does not contain any later data either, it has probably not missed an earlier copy.
        let in_order = missed.end == self.flight.max;
        let at_once = context.at - missed.at <= REORDERED_WITHIN;
        let is_earlier = later.is_some_and(|later| later <= 0)
            || (at_once || in_order) && later.is_none_or(|later| later <= DELAYED_ACK);
        is_earlier.then(|| if missed.is_exact { context.at - missed.at } else { 0 })
    }

    /// Records that the ACK for the SYN is earlier in the capture than the SYN.
    fn record_syn_after_ack(&mut self, context: &PacketContext) {
        let Some(acked_at) = self.ack_times.last.as_time() else { return };
        let after_ack = &mut self.anomalies.get_or_default().after_ack;
        // A retransmitted SYN would follow much later. Otherwise this is sufficient evidence.
        if context.at - acked_at < MIN_SYN_TIMEOUT {
            after_ack.prove(context.at - acked_at);
        }
    }

    fn kind(&mut self, context: &PacketContext, packet: &Packet, range: &Range<u64>) -> PacketKind {
        let una = self.una();
        let closed = self.window.is_closed();
        let is_probe = packet.len <= 1 && !packet.flags.intersects(NOT_IN_PROBES);
        if is_probe && range.end == una && una == self.flight.max {
            return if closed { PacketKind::WindowProbe } else { PacketKind::KeepAlive };
        }
        // A zero-window probe is sent when a timer expires (RFC 9293 §3.8.6.1). A full segment that directly
        // follows another packet is data from a sender that ignores the closed window, or has not learned
        // about it yet.
        let by_timer = packet.len == 1 || context.silence >= MIN_PROBE_DELAY;
        if closed && packet.len > 0 && by_timer && range.start == una && self.window.edge() == Some(una) {
            return PacketKind::WindowProbe;
        }
        if range.start >= self.flight.max {
            return PacketKind::New;
        }
        if let Some(since) = self.time_since_its_ack(context, packet, range) {
            self.anomalies.get_or_default().after_ack.add(since, 1);
            return PacketKind::Late;
        }
        let tsval = packet.options.timestamps.map_or(0, |timestamps| timestamps.val);
        let (mut in_flight, mut only_probed, mut is_copy) = (false, true, false);
        for segment in self.flight.overlapping(range) {
            in_flight = true;
            only_probed &= segment.probe;
            is_copy |= packet.ip_id.is_some_and(|id| id != 0)
                && context.at - segment.last_at <= MAX_COPY_DELAY
                && segment.ip_id == packet.ip_id
                && segment.last_tsval == tsval
                && (segment.start, segment.end) == (range.start, range.end);
        }
        if is_copy {
            PacketKind::Copy
        } else if in_flight && only_probed {
            // The data was sent before as a window probe, for which the receiver did not have space.
            PacketKind::New
        } else if in_flight || range.start < una {
            PacketKind::Retransmission { original_missing: false }
        } else if self.is_late(context, packet, range) {
            PacketKind::Late
        } else {
            PacketKind::Retransmission { original_missing: true }
        }
    }

    /// Returns whether a packet that fills a hole was reordered. Otherwise it is a retransmission of a packet
    /// that was lost before the capture point. Timestamps or IP identifications decide it. Without them, a
    /// packet that arrives at least a round trip later is a retransmission.
    fn is_late(&self, context: &PacketContext, packet: &Packet, range: &Range<u64>) -> bool {
        let Some(newest) = self.flight.newest() else { return false };
        let tsval = packet.options.timestamps.map(|timestamps| timestamps.val);
        match tsval.map(|tsval| tsval.wrapping_sub(newest.first_tsval) as i32) {
            Some(later) if later > 0 => return false,
            Some(later) if later < 0 => return true,
            _ => {}
        }
        if let Some(is_before) = self.ip_ids.is_before(packet.ip_id, newest.ip_id) {
            return is_before;
        }
        let above = self.flight.first_overlapping(&(range.end..u64::MAX));
        let since = context.at - above.unwrap_or(*newest).first_at;
        let asked_for = range.start <= self.una() && self.dupacks >= 3;
        if asked_for && since >= context.sender_reply_delay {
            return false;
        }
        since < context.round_trip.unwrap_or(0).max(REORDERED_WITHIN)
    }

    fn process_retransmission(
        &mut self,
        packet: &Packet,
        range: &Range<u64>,
        first: Option<Segment>,
        cause: RetransmissionCause,
        index: usize,
    ) {
        self.learn_from_retransmission(range, first, cause);
        let counts = &mut self.anomalies.get_or_default().retransmissions;
        counts.packets += 1;
        counts.bytes += u64::from(packet.len);
        match cause.trigger {
            Trigger::Fast => counts.fast += 1,
            Trigger::Timeout => counts.timeout += 1,
            Trigger::Tail => counts.tail += 1,
            Trigger::Unexplained => counts.unexplained += 1,
        }
        match cause.starts {
            None => {}
            Some(RecoveryStart::FastRetransmit) => self.start_fast_recovery(),
            Some(RecoveryStart::Timeout) => self.start_timeout_recovery(range.start),
        }
        if let Recovery::Fast { partial, .. } = &mut self.recovery {
            *partial = false;
        }
        let earlier_pass = self.anomalies.get().map_or(0, |anomalies| anomalies.timeout_proofs.pass);
        let is_repair =
            self.recovery.is_after_timeout() && first.is_none_or(|segment| segment.pass >= earlier_pass);
        let retransmission = Retransmission {
            range: range.clone(),
            tsval: packet.options.timestamps.map(|timestamps| timestamps.val),
            starts: cause.starts,
            is_spurious: false,
            is_repair,
            index,
        };
        let recent = self.anomalies.get_or_default().remember(retransmission);
        // The order of data and ACKs proves nothing if their clocks may differ.
        let has_order = self.anomalies.get().is_none_or(|anomalies| anomalies.after_ack.is_empty());
        if range.end <= self.una() && has_order {
            self.mark_spurious(recent, Proof::Acked);
        }
    }

    fn start_fast_recovery(&mut self) {
        let has_room = self.room().is_some_and(|room| room >= u64::from(self.path_segment()));
        let window = self.rounds.window();
        let anomalies = self.anomalies.get_or_default();
        anomalies.retransmissions.fast_retransmits += 1;
        if self.dupacks >= 3 && self.recovery == Recovery::None && !self.sent_on_dupacks {
            anomalies.sender.no_limited_transmit += u32::from(has_room);
        }
        anomalies.congestion.lost(window, anomalies.retransmissions.spurious.packets);
        let after_timeout = self.recovery.is_after_timeout();
        self.recovery = Recovery::Fast { recover: self.flight.max, partial: false, after_timeout };
        self.rounds.reduced(self.flight_bytes());
    }

    /// Starts the recovery after a timeout, which begins at the offset `start`.
    fn start_timeout_recovery(&mut self, start: u64) {
        // A packet may contain several segments.
        let outstanding = self.flight.pass_next.saturating_sub(self.una().max(self.flight.lowest()));
        let outstanding_segments = outstanding.div_ceil(u64::from(self.path_segment())) as u32;
        let heard_at = self.ack_times.last;
        let anomalies = self.anomalies.get_or_default();
        anomalies.outages.timed_out(heard_at);
        anomalies.timeout(start, self.flight.pass);
        let counts = &mut anomalies.retransmissions;
        counts.timeouts += 1;
        counts.timeouts_by_dupacks[(self.dupacks as usize).min(3)] += 1;
        let segments = outstanding_segments.max(self.flight.outstanding_segments());
        let failed = self.dupacks > 0 && self.dupacks + 1 == segments;
        counts.failed_dupack += u64::from(failed);
        anomalies.congestion.interrupted();
        self.recovery = Recovery::AfterTimeout { recover: self.flight.max };
        self.flight.rewind(start);
        self.dupacks = 0;
        self.rounds.reduced(self.flight_bytes());
    }

    /// Records the conclusions from the retransmission about the sender. Call this function before the state
    /// is updated.
    fn learn_from_retransmission(
        &mut self,
        range: &Range<u64>,
        first: Option<Segment>,
        cause: RetransmissionCause,
    ) {
        let with_sack = self.flight.has_any_sacked();
        let in_pass = first.is_some_and(|segment| segment.times > 1 && segment.pass == self.flight.pass);
        let evidence = &mut self.anomalies.get_or_default().sender;
        if with_sack && in_pass && cause.trigger == Trigger::Fast {
            evidence.repeated_retransmissions += 1;
        }
        match (self.recovery, cause.starts) {
            (Recovery::Fast { partial: true, .. }, Some(_)) => evidence.reno += 1,
            (Recovery::Fast { partial, after_timeout: false, .. }, None)
                if first.is_none_or(|segment| segment.times <= 1) =>
            {
                if range.start > self.flight.una().unwrap_or(0) {
                    let count = if with_sack { &mut evidence.sack } else { &mut evidence.tahoe };
                    *count += 1;
                } else if partial && !with_sack && self.dupacks < 3 {
                    evidence.newreno += 1;
                }
            }
            (Recovery::AfterTimeout { .. }, None) => {
                let next = self.flight.pass_next;
                if with_sack {
                    evidence.go_back_n += u32::from(self.flight.has_sacked(range));
                    let skipped = range.start > next && self.flight.has_sacked(&(next..range.start));
                    evidence.skipped_sacked += u32::from(skipped);
                } else {
                    evidence.go_back_n += u32::from(range.start == next);
                }
            }
            _ => {}
        }
    }

    fn process_new_data(&mut self, context: &PacketContext, packet: &Packet, range: &Range<u64>) {
        if self.dupacks > 0 && self.recovery == Recovery::None {
            self.sent_on_dupacks = true;
            let limited = self.dupacks <= 2
                && self.may_be_prompted_by_ack(context)
                && !packet.flags.contains(Flags::FIN);
            self.anomalies.get_or_default().sender.limited_transmit += u32::from(limited);
        }
        if self.recovery != Recovery::None && self.flight.pass_next < range.start {
            let skipped = self.flight.pass_next..range.start;
            self.anomalies.get_or_default().sender.skipped_sacked +=
                u32::from(self.flight.has_sacked(&skipped));
        }
        if packet.len > 0 {
            self.sizes.add(packet.len, packet.flags);
            let InitialFlight { bytes, segments, is_complete, echoing } = &mut self.initial_flight;
            if !*is_complete {
                (*bytes, *segments) = (bytes.saturating_add(packet.len), segments.saturating_add(1));
            }
            let echo = packet.options.timestamps.map(|timestamps| timestamps.ecr);
            let echoes_syn = echo.is_some() && echo == context.peer_syn_tsval;
            *echoing = echoing.saturating_add(echoes_syn.into());
        }
    }

    /// Records a new segment that is sent while little data is in flight, as in BBR's ProbeRTT.
    fn detect_min_rtt_probe(&mut self, context: &PacketContext, len: u32) {
        let segment = self.path_segment();
        if len < segment || self.recovery != Recovery::None {
            return;
        }
        let (flight, round_trip) = (self.flight_bytes(), self.rtt.min().unwrap_or(0));
        let Some(window) = self.rounds.window() else { return };
        // Most connections never reach this state and do not need the memory.
        if self.anomalies.get().is_some() || Congestion::may_probe(flight, window, segment) {
            let congestion = &mut self.anomalies.get_or_default().congestion;
            congestion.sent(context.at, flight, window, segment, round_trip);
        }
    }

    fn put_in_flight(
        &mut self,
        context: &PacketContext,
        packet: &Packet,
        range: Range<u64>,
        kind: PacketKind,
    ) {
        let tsval = packet.options.timestamps.map_or(0, |timestamps| timestamps.val);
        let pass = self.flight.pass;
        let probe = kind == PacketKind::WindowProbe;
        for segment in self.flight.overlapping(&range) {
            if segment.probe {
                (segment.probe, segment.first_at, segment.first_tsval, segment.times) =
                    (probe, context.at, tsval, 0);
            }
            segment.times += 1;
            (segment.last_at, segment.last_tsval) = (context.at, tsval);
            (segment.pass, segment.ip_id) = (pass, packet.ip_id);
        }
        self.flight.pass_next = self.flight.pass_next.max(range.end);
        let start = range.start.max(self.una());
        if start < range.end {
            self.flight.insert(Segment {
                start,
                end: range.end,
                first_at: context.at,
                last_at: context.at,
                first_tsval: tsval,
                last_tsval: tsval,
                // An earlier copy was lost before the capture point.
                times: if kind == (PacketKind::Retransmission { original_missing: true }) { 2 } else { 1 },
                pass,
                ip_id: packet.ip_id,
                sacked: false,
                probe,
            });
        }
    }

    fn record_segment(
        &mut self,
        context: &PacketContext,
        packet: &Packet,
        range: &Range<u64>,
        kind: PacketKind,
        cause: Option<RetransmissionCause>,
    ) -> usize {
        if self.trace.is_none() {
            return 0;
        }
        let sending = match (kind, cause.map(|cause| cause.trigger)) {
            (PacketKind::WindowProbe | PacketKind::KeepAlive, _) => Sending::Probe,
            (_, Some(Trigger::Fast)) => Sending::Fast,
            (_, Some(Trigger::Timeout)) => Sending::Timeout,
            (_, Some(Trigger::Tail)) => Sending::Tail,
            (_, Some(Trigger::Unexplained)) => Sending::Unexplained,
            (_, None) => Sending::New,
        };
        let again = u32::from(self.flight.first_overlapping(range).is_some());
        self.record(SentSegment {
            at: context.at,
            number: packet.number,
            start: self.numbering.shown(range.start),
            end: self.numbering.shown(range.end),
            sending,
            dupacks: self.dupacks,
            in_flight: self.flight.outstanding_segments().saturating_sub(again),
            fate: Fate::Unknown,
        })
    }
}
