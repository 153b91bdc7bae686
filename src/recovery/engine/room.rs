//! What may leave now: a copy of something sent before, or something new.

use super::*;
use crate::flight::Sent;

impl Recovery {
    /// Where the segment begins that is to be sent again now, and why it leaves. `None`: there is none, or no room.
    // Asked before every departure, and nearly always there is none: that much is seen without asking anybody.
    #[inline]
    pub(crate) fn next_resend(&mut self, path: &Path<'_>) -> Option<(u64, Transmission)> {
        let in_recovery = self.cc.phase() == Phase::Recovery;
        if self.order.is_none() && !in_recovery && !path.flight.has_old_to_send() {
            return None;
        }
        self.choose_resend(path)
    }

    #[inline(never)]
    fn choose_resend(&mut self, path: &Path<'_>) -> Option<(u64, Transmission)> {
        if self.is_held(path) || self.leaves == Leaves::New {
            return None;
        }
        if let Some(Order::Resend { start, kind }) = self.order {
            if start >= path.flight.una() {
                return Some((start, kind));
            }
            self.order = None;
        }
        if self.turn.burst == Some(0) || path.flight.is_empty() {
            return None;
        }
        let view = view_of(&self.cc, &self.profile, path);
        let start = self.answers.repair.next(&view)?;
        // A pass over the window sends everything again, lost or not.
        let may_leave = path.flight.has_rewound() || self.may_repair(path, start);
        may_leave.then_some(start).and_then(|start| self.offer(path, start))
    }

    /// The same when nothing new can be sent (RFC 6675 NextSeg rules 3 and 4).
    pub(crate) fn next_resend_without_new_data(
        &mut self,
        path: &mut Path<'_>,
    ) -> Option<(u64, Transmission)> {
        if self.is_probing() {
            return path.flight.iter().next_back().map(|last| (last.start, Transmission::Probe));
        }
        if self.timeout_is_undecided() {
            let afterwards = self.answers.timeout.on_nothing_new(&view_of(&self.cc, &self.profile, path));
            self.apply_afterwards(path, afterwards);
            return self.next_resend(path);
        }
        if self.cc.phase() != Phase::Recovery || self.turn.burst == Some(0) || self.is_held(path) {
            return None;
        }
        if self.leaves == Leaves::New || self.answers.detect.traits().judges_each_segment {
            return None;
        }
        let view = view_of(&self.cc, &self.profile, path);
        let start = self.answers.repair.next_without_new_data(&view)?;
        self.may_repair(path, start).then_some(start).and_then(|start| self.offer(path, start))
    }

    fn offer(&self, path: &Path<'_>, start: u64) -> Option<(u64, Transmission)> {
        // A FIN takes no room in the network, and after an ICMP "too big" the segment is cut before it leaves.
        let len = path.flight.segment_at(start)?.len().min(path.smss);
        let kind = match self.cc.episode {
            Episode::Restarted(
                Restart::FastRetransmit { first: true } | Restart::Collapse { first: true, .. },
            ) => Transmission::FastRetransmit,
            Episode::Restarted(_) => Transmission::Timeout,
            Episode::Open(_) | Episode::Reduced | Episode::Recovery(_) => Transmission::Recovery,
        };
        self.has_room(path, len).then_some((start, kind))
    }

    /// The copy at `start` was decided on by itself, and a pass over the window that is not finished goes on as if it had
    /// not left (ns-2).
    pub(crate) fn leaves_apart_from_pass(&self, start: u64) -> bool {
        match &self.order {
            Some(Order::Resend { start: ordered, kind: Transmission::Recovery }) => {
                *ordered == start && self.profile.recovery.keep_pass_in_recovery
            }
            _ => false,
        }
    }

    /// May `len` octets of new data leave, as far as the congestion window goes?
    pub(crate) fn may_send_new(&self, path: &Path<'_>, len: u64) -> bool {
        // A window of less than one segment must not stop a connection that waits for nothing (RFC 5681 §3.1).
        let room = || path.flight.is_empty() || self.has_room(path, len);
        self.is_probing() || (self.turn.burst != Some(0) && !self.is_held(path) && room())
    }

    /// Whether this sender gives a rate.
    pub(crate) fn paces(&self) -> bool {
        let knobs = &self.profile.recovery;
        knobs.pacing.is_some() || knobs.max_rate.is_some() || self.answers.window.paces()
    }

    /// How fast segments may leave now, in octets of text a second. `None`: as fast as the window lets them.
    pub(crate) fn pacing_rate(&self, path: &Path<'_>) -> Option<f64> {
        let knobs = &self.profile.recovery;
        let rate = self.own_rate(path).or_else(|| self.rate_of_window(path, knobs.pacing?));
        rate.or(knobs.max_rate)
    }

    /// The rate that the window's answer gives, in octets of text a second.
    pub(crate) fn own_rate(&self, path: &Path<'_>) -> Option<f64> {
        self.answers
            .window
            .pacing_rate(&view_of(&self.cc, &self.profile, path))
            .map(|rate| self.at_most(rate))
    }

    /// So many windows a round trip, in octets of text a second. `None`: no round trip is known.
    pub(crate) fn rate_of_window(&self, path: &Path<'_>, pacing: Pacing) -> Option<f64> {
        let view = view_of(&self.cc, &self.profile, path);
        let srtt = view.rtt.srtt().filter(|srtt| !srtt.is_zero())?;
        let Congestion { cwnd, ssthresh, .. } = *view.cc;
        let ratio = if cwnd < ssthresh / 2.0 { pacing.slow_start } else { pacing.congestion_avoidance };
        let window = cwnd.max(view.segments(view.flight.outstanding())) * view.smss as f64;
        Some(self.at_most(ratio * window / srtt.as_secs_f64()))
    }

    fn at_most(&self, rate: f64) -> f64 {
        self.profile.recovery.max_rate.map_or(rate, |max| rate.min(max))
    }

    /// Octets for which the congestion window has room.
    pub(crate) fn room_for_new(&self, path: &Path<'_>) -> u64 {
        let view = view_of(&self.cc, &self.profile, path);
        let in_flight = self.in_flight(&view);
        let extra = self.cc.inflation() + f64::from(self.limited_transmit_allowance(&view));
        let room = match self.profile.recovery.accounting {
            Accounting::Bytes => (self.cc.cwnd + extra) * path.smss as f64 + 0.5 - in_flight.bytes as f64,
            Accounting::Segments => {
                (self.cc.cwnd.floor() + extra - in_flight.segments as f64) * path.smss as f64
            }
        };
        room.max(0.0) as u64
    }

    /// Room for new data may come without an ACK, when a timer finds something lost. The retransmission timer makes none.
    pub(crate) fn makes_room_by_clock(&self) -> bool {
        let traits = self.answers.detect.traits();
        traits.judges_each_segment
            || traits.keeps_flowing
            || self.samples_rates()
            || self.paces()
            || self.deadline().is_some()
    }

    /// What is missing is being sent again.
    pub(crate) const fn is_repairing(&self) -> bool {
        matches!(self.cc.episode, Episode::Recovery(_) | Episode::Restarted(_))
    }

    /// The window limits, though it is not quite full.
    pub(crate) fn note_full_window(&mut self, path: &Path<'_>) {
        let outstanding = view_of(&self.cc, &self.profile, path).segments(path.flight.outstanding());
        self.cc.peak_flight = outstanding;
        self.cc.cwnd_limited = true;
        self.cc.usage_seq = path.flight.max();
    }

    /// A probe of the tail is to leave (RFC 8985 §7.3).
    pub(crate) const fn is_probing(&self) -> bool {
        matches!(self.order, Some(Order::Probe(_)))
    }

    fn is_held(&self, path: &Path<'_>) -> bool {
        self.cc.episode.held_until().is_some_and(|until| path.now < until)
    }

    /// What counts against the window: as the repair says or, while a patient detector waits, `pipe`. A model's window is
    /// one of `pipe` always (C.inflight, draft-ietf-ccwg-bbr-06 §2.4).
    pub(super) fn in_flight(&self, view: &View<'_>) -> Amount {
        match view.cc.episode.kept() {
            Some(kept) => self.in_flight_beside(view, kept),
            None => self.in_path(view),
        }
    }

    /// Holes that wait for a judgement count as well. They may turn out to be congestion: no new segments take their
    /// place.
    fn in_flight_beside(&self, view: &View<'_>, kept: &Kept) -> Amount {
        let mut in_flight = self.in_path(view);
        let waits = |hole: &Sent| kept.judged != Some(hole.start);
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
            && matches!(self.cc.phase(), Phase::Open | Phase::Reduced)
            && (self.answers.detect.traits().keeps_flowing || self.samples_rates())
            && self.answers.repair.has_scoreboard();
        if waits { view.flight.pipe() } else { self.answers.repair.in_flight(view) }
    }

    fn has_room(&self, path: &Path<'_>, len: u64) -> bool {
        let view = view_of(&self.cc, &self.profile, path);
        let in_flight = self.in_flight(&view);
        let extra = self.cc.inflation() + f64::from(self.limited_transmit_allowance(&view));
        match self.profile.recovery.accounting {
            // Half an octet of slack: cwnd is kept in segments, in floating point.
            Accounting::Bytes => {
                (in_flight.bytes + len) as f64 <= (self.cc.cwnd + extra) * path.smss as f64 + 0.5
            }
            Accounting::Segments => (in_flight.segments + 1) as f64 <= self.cc.cwnd.floor() + extra,
        }
    }

    /// How many segments beyond the window duplicate ACKs may release: one for each of the first (RFC 3042), or more if
    /// the detector wants it (RFC 4653).
    fn limited_transmit_allowance(&self, view: &View<'_>) -> u32 {
        let room = self.cc.disorder.room;
        if room == 0
            || self.cc.phase() == Phase::Recovery
            || !self.answers.repair.limited_transmit_by_dupacks()
        {
            return 0;
        }
        if matches!(self.cc.phase(), Phase::Open | Phase::Reduced)
            && let Some(answered) = self.answers.detect.answered_dupacks(view)
        {
            return room.min(answered);
        }
        let knobs = &self.profile.recovery;
        let after_timeout = self.cc.phase() == Phase::Restarted;
        let on = knobs.limited_transmit && (!after_timeout || knobs.limited_transmit_after_timeout);
        let below = self.cc.dupacks() < self.answers.detect.dup_thresh(view);
        if on && below { room } else { 0 }
    }
}
