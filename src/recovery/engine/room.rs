//! Decides what may be sent now: a retransmission or new data.

use super::*;
use crate::flight::Sent;

impl Recovery {
    /// Returns false if [`Self::next_resend`] finds no segment.
    // Called before every transmission. Nearly always there is nothing to retransmit, which this inlined part
    // detects without asking the repair.
    #[inline]
    pub(crate) fn may_resend(&self, flight: &Flight) -> bool {
        let in_recovery = self.cc.state() == RecoveryState::Recovery;
        self.pending.is_some() || in_recovery || flight.has_old_to_send()
    }

    /// Returns the start of the segment to retransmit now, and why it is sent. `None` if there is none, or no
    /// room.
    pub(crate) fn next_resend(&mut self, path: &mut Path<'_>) -> Option<(u64, TransmissionKind)> {
        if !self.may_resend(path.flight) {
            return None;
        }
        self.event(path).choose_resend()
    }

    /// Returns false if [`Self::next_resend_without_new_data`] finds no segment.
    #[inline]
    pub(crate) fn may_resend_without_new_data(&self) -> bool {
        self.is_probing() || self.timeout_is_undecided() || self.cc.state() == RecoveryState::Recovery
    }

    /// Returns the segment to retransmit when no new data can be sent (RFC 6675 NextSeg rules 3 and 4).
    pub(crate) fn next_resend_without_new_data(
        &mut self,
        path: &mut Path<'_>,
    ) -> Option<(u64, TransmissionKind)> {
        self.event(path).choose_resend_without_new_data()
    }

    /// Returns whether the retransmission at `start` was decided separately. It then does not advance an
    /// unfinished go-back-N pass (ns-2).
    pub(crate) fn is_outside_pass(&self, start: u64) -> bool {
        match self.pending {
            Some(Pending::Resend { start: decided, kind: TransmissionKind::Recovery }) => {
                decided == start && self.profile.recovery.fast_recovery.continues_pass
            }
            _ => false,
        }
    }

    /// Returns whether the congestion window permits `len` bytes of new data.
    pub(crate) fn may_send_new(&self, path: &Path<'_>, len: u64) -> bool {
        // RFC 5681 §3.1: a window of less than one segment must not stop a sender that has no data
        // outstanding.
        let room = || path.flight.is_empty() || self.has_room(path, len);
        self.is_probing() || (self.allowance.burst != Some(0) && !self.is_paused(path) && room())
    }

    /// Returns whether the sender has a pacing rate.
    pub(crate) fn paces(&self) -> bool {
        let rules = &self.profile.recovery;
        rules.transmission.pacing.is_some() || rules.transmission.max_rate.is_some() || self.samples_rates()
    }

    /// Returns the current pacing rate, in bytes of payload per second. `None` if only the window limits the
    /// sender.
    pub(crate) fn pacing_rate(&self, path: &Path<'_>) -> Option<f64> {
        let rules = &self.profile.recovery;
        let rate = self.own_rate(path).or_else(|| self.rate_of_window(path, rules.transmission.pacing?));
        rate.or(rules.transmission.max_rate)
    }

    /// Returns the pacing rate of the window answer, in bytes of payload per second.
    pub(crate) fn own_rate(&self, path: &Path<'_>) -> Option<f64> {
        self.answers.window.pacing_rate(&self.view(path)).map(|rate| self.at_most(rate))
    }

    /// Returns the rate that `pacing` defines in windows per round trip, converted to bytes of payload per
    /// second. `None` before the first RTT sample.
    pub(crate) fn rate_of_window(&self, path: &Path<'_>, pacing: Pacing) -> Option<f64> {
        let view = self.view(path);
        let srtt = view.rtt.srtt().filter(|srtt| !srtt.is_zero())?;
        let Congestion { cwnd, ssthresh, .. } = *view.cc;
        let ratio = if cwnd < ssthresh / 2.0 { pacing.slow_start } else { pacing.congestion_avoidance };
        let window = cwnd.max(view.segments(view.flight.outstanding())) * view.smss as f64;
        Some(self.at_most(ratio * window / srtt.as_secs_f64()))
    }

    fn at_most(&self, rate: f64) -> f64 {
        self.profile.recovery.transmission.max_rate.map_or(rate, |max| rate.min(max))
    }

    /// Returns the room in the congestion window, in bytes.
    pub(crate) fn room_for_new(&self, path: &Path<'_>) -> u64 {
        let view = self.view(path);
        let in_flight = self.in_flight(&view);
        let extra = self.cc.inflation() + f64::from(self.limited_transmit_allowance(&view));
        let room = match self.profile.recovery.accounting {
            Accounting::Bytes => (self.cc.cwnd + extra) * path.smss as f64 + 0.5 - in_flight.bytes as f64,
            Accounting::Segments => {
                (self.cc.whole_segments() + extra - in_flight.segments as f64) * path.smss as f64
            }
        };
        room.max(0.0) as u64
    }

    /// Returns whether room for new data can appear without an ACK, when a timer other than the
    /// retransmission timer fires.
    pub(crate) fn makes_room_by_clock(&self) -> bool {
        let traits = self.answers.detect.traits();
        self.answers.detect.row().marks_segments
            || traits.keeps_flowing
            || self.samples_rates()
            || self.paces()
            || self.deadline().is_some()
    }

    /// Returns whether missing segments are being retransmitted.
    pub(crate) const fn is_repairing(&self) -> bool {
        matches!(self.cc.episode, Episode::Recovery(_) | Episode::Loss(_))
    }

    /// Returns whether the meaning of the last timeout, spurious or not, is still unknown (RFC 5682).
    pub(crate) fn timeout_is_undecided(&self) -> bool {
        self.cc.episode.is_undecided()
    }

    /// Records that the window limits the sender although it is not quite full.
    pub(crate) fn note_full_window(&mut self, path: &Path<'_>) {
        self.cc.peak_flight = self.view(path).segments(path.flight.outstanding());
        self.cc.cwnd_limited = true;
        self.cc.usage_seq = path.flight.max();
    }

    /// Returns whether a tail loss probe is to be sent (RFC 8985 §7.3).
    pub(crate) const fn is_probing(&self) -> bool {
        matches!(self.pending, Some(Pending::Probe(_)))
    }

    pub(super) fn is_paused(&self, path: &Path<'_>) -> bool {
        self.cc.episode.paused_until().is_some_and(|until| path.now < until)
    }

    /// Returns the amount that counts against the window: `pipe` while a detector delays its verdict,
    /// otherwise the repair's count. A model's window always applies to `pipe` (C.inflight,
    /// draft-ietf-ccwg-bbr-06 §2.4).
    pub(super) fn in_flight(&self, view: &View<'_>) -> Amount {
        match view.cc.episode.kept() {
            Some(kept) => self.in_flight_with_unattributed(view, kept),
            None => self.in_path(view),
        }
    }

    /// Returns the amount in flight plus the holes that wait for attribution. Congestion may have caused
    /// them, so new segments must not replace them.
    fn in_flight_with_unattributed(&self, view: &View<'_>, kept: &KeptWindow) -> Amount {
        let mut in_flight = self.in_path(view);
        let waits = |hole: &Sent| kept.attributed_hole != Some(hole.start);
        if !view.flight.has_rewound() && view.flight.first_lost().is_some_and(waits) {
            let waiting = view.flight.lost_and_not_resent();
            in_flight.bytes += waiting.bytes;
            in_flight.segments += waiting.segments;
        }
        in_flight
    }

    #[inline]
    fn in_path(&self, view: &View<'_>) -> Amount {
        let waits = view.flight.pipe() != view.flight.outstanding()
            && matches!(self.cc.state(), RecoveryState::Open | RecoveryState::Cwr)
            && (self.answers.detect.traits().keeps_flowing || self.samples_rates())
            && self.answers.has_scoreboard();
        if let Some(sacked_out) = self.emulated_sacks().filter(|_| view.cc.state() == RecoveryState::Recovery)
        {
            let Amount { bytes, segments } = view.flight.pipe();
            return Amount {
                bytes: bytes.saturating_sub(sacked_out * view.smss),
                segments: segments.saturating_sub(sacked_out),
            };
        }
        if waits {
            return view.flight.pipe();
        }
        let mut in_flight = self.answers.repair.in_flight(view);
        // After a timeout too, duplicate ACKs of new data lower the amount (tcp_process_loss()).
        if let Some(sacked_out) = self.emulated_sacks().filter(|_| view.cc.state() == RecoveryState::Loss) {
            in_flight.bytes = in_flight.bytes.saturating_sub(sacked_out * view.smss);
            in_flight.segments = in_flight.segments.saturating_sub(sacked_out);
        }
        in_flight
    }

    fn has_room(&self, path: &Path<'_>, len: u64) -> bool {
        let view = self.view(path);
        let in_flight = self.in_flight(&view);
        let extra = self.cc.inflation() + f64::from(self.limited_transmit_allowance(&view));
        match self.profile.recovery.accounting {
            // Half a byte of slack, because cwnd is a floating-point number of segments.
            Accounting::Bytes => {
                (in_flight.bytes + len) as f64 <= (self.cc.cwnd + extra) * path.smss as f64 + 0.5
            }
            Accounting::Segments => (in_flight.segments + 1) as f64 <= self.cc.whole_segments() + extra,
        }
    }

    /// Returns the number of segments beyond the window that duplicate ACKs may release: one for each of the
    /// first ones (RFC 3042), or more if the detector requests it (RFC 4653).
    fn limited_transmit_allowance(&self, view: &View<'_>) -> u32 {
        let room = self.cc.disorder.room;
        if room == 0
            || self.cc.state() == RecoveryState::Recovery
            || self.answers.repair.row().repair.limited_transmit_by_sack
        {
            return 0;
        }
        if matches!(self.cc.state(), RecoveryState::Open | RecoveryState::Cwr)
            && let Some(answered) = self.answers.detect.answered_dupacks(view)
        {
            return room.min(answered);
        }
        let rules = &self.profile.recovery;
        let after_timeout = self.cc.state() == RecoveryState::Loss;
        let on = rules.detection.limited_transmit
            && (!after_timeout || rules.detection.limited_transmit_after_timeout);
        let below = self.cc.dupacks() < self.answers.detect.dup_thresh(view);
        if on && below { room } else { 0 }
    }
}

impl Event<'_, '_> {
    #[inline(never)]
    fn choose_resend(&mut self) -> Option<(u64, TransmissionKind)> {
        if self.is_paused(self.path) || self.allowance.data == AllowedData::New {
            return None;
        }
        if let Some(Pending::Resend { start, kind }) = self.pending {
            if start >= self.path.flight.una() {
                return Some((start, kind));
            }
            self.pending = None;
        }
        if self.allowance.burst == Some(0) || self.path.flight.is_empty() {
            return None;
        }
        let start = self.ask(|answers, view| answers.repair.next(view))?;
        // A go-back-N pass retransmits everything, lost or not.
        let may_resend = self.path.flight.has_rewound() || self.may_repair(start);
        may_resend.then_some(start).and_then(|start| self.if_window_permits(start))
    }

    fn choose_resend_without_new_data(&mut self) -> Option<(u64, TransmissionKind)> {
        if self.is_probing() {
            return self.path.flight.iter().next_back().map(|last| (last.start, TransmissionKind::Probe));
        }
        if self.cc.episode.is_undecided() {
            let verdict = self.ask(|answers, view| answers.timeout.on_no_new_data(view));
            self.apply_timeout_verdict(verdict);
            return self.sender.next_resend(self.path);
        }
        if self.cc.state() != RecoveryState::Recovery
            || self.allowance.data == AllowedData::New
            || self.allowance.burst == Some(0)
            || self.is_paused(self.path)
            || self.answers.detect.row().marks_segments
        {
            return None;
        }
        // The loss of an MTU probe is not a reason to suspect the loss of other segments.
        if self.cc.episode.kept().is_some_and(|kept| kept.for_mtu_probe) {
            return None;
        }
        let start = self.ask(|answers, view| answers.repair.next_without_new_data(view))?;
        self.may_repair(start).then_some(start).and_then(|start| self.if_window_permits(start))
    }

    fn if_window_permits(&self, start: u64) -> Option<(u64, TransmissionKind)> {
        // A FIN takes no room in the network, and after an ICMP "too big" the segment is split before
        // transmission.
        let len = self.path.flight.segment_at(start)?.len().min(self.path.smss);
        let kind = match self.cc.episode {
            Episode::Loss(
                Restart::FastRetransmit { first: true } | Restart::Collapse { first: true, .. },
            ) => TransmissionKind::FastRetransmit,
            Episode::Loss(_) => TransmissionKind::Timeout,
            Episode::Open(_) | Episode::Cwr | Episode::Recovery(_) => TransmissionKind::Recovery,
        };
        self.has_room(self.path, len).then_some((start, kind))
    }
}
