//! Timers of the sender: retransmission, zero-window probing, and the thresholds R1 and R2.

use airwire::time::{Duration, Instant, earlier};

use super::pacer::Pacer;
use super::{MoreData, Sender};
use crate::flight::SegmentState;
use crate::profile::{RtoEvents, UserTimeoutFrom, jiffies};
use crate::recovery::engine::TimerRule;
use crate::tcp::context::Context;
use crate::tcp::lifecycle::take_due;
use crate::tcp::socket::{Patience, State, Threshold, Unanswered};
use crate::tcp::statistics::Statistics;

/// A period without an answer. It ends when SND.UNA moves past `una`.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnansweredPeriod {
    /// SND.UNA at the first timeout.
    una: u64,
    pub(super) since: Instant,
    r1_reached: bool,
}

/// The action that a timeout requires of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) enum Timeout {
    Nothing,
    /// The SYN or SYN,ACK must be sent again.
    SendSyn,
    /// R2 is reached: the connection ends.
    GiveUp,
}

impl Sender {
    /// Returns the earliest deadline, except for the user timeout.
    pub(in crate::tcp) fn deadline(&self, cx: &Context) -> Option<Instant> {
        let paced = self.spacing.as_ref().and_then(|spacing| spacing.pacer.as_ref()?.deadline());
        let timers = [self.persist, self.cork, paced, self.detection_deadline(cx), self.resend_deadline()];
        timers.into_iter().fold(self.rto, earlier)
    }

    pub(in crate::tcp) fn rto_deadline(&self) -> Option<Instant> {
        self.rto
    }

    pub(in crate::tcp) fn persist_deadline(&self) -> Option<Instant> {
        self.persist
    }

    pub(in crate::tcp) fn cork_deadline(&self) -> Option<Instant> {
        self.cork
    }

    /// Returns the deadline of the loss detectors. They wait until our SYN,ACK is acknowledged (Linux,
    /// tcp_schedule_loss_probe()).
    pub(in crate::tcp) fn detection_deadline(&self, cx: &Context) -> Option<Instant> {
        self.recovery.deadline().filter(|_| !cx.is_open_early())
    }

    /// Handles all timers except the retransmission and the persist timer.
    pub(in crate::tcp) fn handle_deadline(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
    ) {
        if take_due(&mut self.cork, now) && self.is_corked(cx) {
            // One partial segment may be sent. The connection stays corked.
            self.may_send_partial = true;
            self.more_data = MoreData::None;
        }
        if let Some(pacer) = self.pacer() {
            pacer.on_deadline(now);
        }
        self.on_resend_deadline(cx.state(), now);
        // Before the retransmission timer, because the detector's result may postpone it.
        if self.detection_deadline(cx).is_some_and(|at| at <= now) {
            let (recovery, mut path) = self.recovery_and_path(now);
            let rule = recovery.on_deadline(&mut path);
            self.note_lost_mtu_probe(statistics);
            self.apply_timer_rule(now, rule);
        }
    }

    /// Returns true if the retransmission timer has expired, unless it waits for the detector.
    pub(in crate::tcp) fn take_due_rto(&mut self, cx: &Context, now: Instant) -> bool {
        if !take_due(&mut self.rto, now) {
            return false;
        }
        // If the detector finds no loss at that time, this timer expires immediately afterwards.
        self.rto = self.recovery.waits_until(now).filter(|_| !cx.is_open_early());
        self.rto.is_none()
    }

    /// Makes the first timeout of a SYN expire at once, after TCP_TIMEOUT_MIN of Linux.
    pub(in crate::tcp) fn hasten_first_timeout(&mut self, now: Instant) {
        const TIMEOUT_MIN: u64 = 2;
        if self.syn_timeouts == 0 && self.rto.is_some() {
            self.rto = Some(jiffies::timer(jiffies::ticks(now) + TIMEOUT_MIN));
        }
    }

    /// RFC 6298 (5.4) to (5.6).
    pub(in crate::tcp) fn on_rto(&mut self, cx: &Context, now: Instant) -> Timeout {
        let timeout = match cx.state() {
            State::SynSent | State::SynReceived => {
                if self.is_r2_reached(cx, now, self.timeouts_in_row(cx.state())) {
                    return Timeout::GiveUp;
                }
                self.syn_timeouts = self.syn_timeouts.saturating_add(1);
                let is_linear = cx.state() == State::SynSent
                    && self.syn_timeouts <= cx.profile.handshake.syn_linear_timeouts;
                if !is_linear && !self.reduce_early_window(cx, now) {
                    self.rtt.back_off();
                }
                Timeout::SendSyn
            }
            _ if self.flight.is_empty() => return Timeout::Nothing,
            _ => {
                // RFC 9293 §3.8.6.1: the connection stays open as long as the peer answers, even with a
                // closed window.
                let closed = self.wnd == 0;
                let unanswered = match closed {
                    true => self.probes_sent,
                    false => {
                        self.recovery.congestion().timeouts_in_row.saturating_sub(self.closed_window_timeouts)
                    }
                };
                if self.is_r2_reached(cx, now, unanswered) {
                    return Timeout::GiveUp;
                }
                if closed {
                    self.probes_sent += 1;
                    self.closed_window_timeouts += 1;
                } else {
                    self.suspect_black_hole(cx, now);
                }
                self.timed = None;
                // RFC 2018 §5: the first segment is retransmitted after a timeout, even if it was SACKed.
                if self.flight.head().is_some_and(|head| head.state == SegmentState::Sacked) {
                    self.forget_sacks(now);
                }
                // No ACK has arrived for a whole timeout, so the retransmission is not paced.
                if let Some(pacer) = self.pacer() {
                    *pacer = Pacer::new(now);
                }
                let (recovery, mut path) = self.recovery_and_path(now);
                recovery.on_timeout(&mut path);
                Timeout::Nothing
            }
        };
        self.restart_rto(now);
        timeout
    }

    /// Reacts to a timeout of the SYN,ACK after data was sent: regular TCP would have begun with a smaller
    /// window (Linux, tcp_fastopen_synack_timer()). Returns true if the window was reduced, which also backs
    /// off the timer.
    fn reduce_early_window(&mut self, cx: &Context, now: Instant) -> bool {
        if !cx.is_open_early() || self.syn_timeouts != 2 || self.flight.is_empty() {
            return false;
        }
        let (recovery, mut path) = self.recovery_and_path(now);
        recovery.on_timeout(&mut path);
        true
    }

    /// Returns the number of timeouts in a row.
    pub(in crate::tcp) fn timeouts_in_row(&self, state: State) -> u32 {
        match state {
            State::SynSent | State::SynReceived => self.syn_timeouts.into(),
            _ => self.recovery.congestion().timeouts_in_row,
        }
    }

    /// Returns R2 for this state (RFC 9293 §3.8.3).
    fn r2(cx: &Context) -> Threshold {
        let Patience { r2, syn_r2, .. } = cx.options.patience();
        let profile = &cx.profile;
        let of_syn = |retransmissions| Threshold { retransmissions, time: profile.handshake.min_syn_time };
        let (asked_for, usual) = match cx.state() {
            State::SynSent => (syn_r2, of_syn(profile.handshake.syn_retries)),
            State::SynReceived => {
                let retries = profile.handshake.syn_ack_retries.unwrap_or(profile.handshake.syn_retries);
                // The application may already use the connection (Linux, tcp_fastopen_synack_timer()).
                (syn_r2, of_syn(retries.saturating_add(cx.is_open_early().into())))
            }
            _ => (r2, Threshold::retransmissions(profile.timers.retries)),
        };
        let threshold = asked_for.unwrap_or(usual);
        if cx.state() != State::SynSent || threshold.retransmissions == 0 {
            return threshold;
        }
        let linear = profile.handshake.syn_linear_timeouts.into();
        Threshold { retransmissions: threshold.retransmissions.saturating_add(linear), ..threshold }
    }

    /// Returns true if R2 is reached: a segment or probe timed out after `retransmissions` that were not
    /// answered. Also records whether R1 is reached.
    fn is_r2_reached(&mut self, cx: &Context, now: Instant, retransmissions: u32) -> bool {
        let closed = self.wnd == 0 && cx.state().is_synchronized();
        let patience = cx.options.patience();
        if closed && retransmissions == 0 && patience.user_timeout.is_none() {
            // The peer answered the last probe.
            self.unanswered = None;
        }
        let unanswered_since = self.note_unanswered(now);
        let since = match self.oldest_sent(cx) {
            Some((_, first_sent)) if !closed => first_sent,
            _ => unanswered_since,
        };
        let usual = Threshold::retransmissions(cx.profile.timers.reported_retries);
        if patience.r1.unwrap_or(usual).is_reached(retransmissions, since, now)
            && let Some(period) = &mut self.unanswered
        {
            period.r1_reached = true;
        }
        Self::r2(cx).is_reached(retransmissions, since, now)
    }

    /// Returns the start of the period in which nothing was answered. It starts now if there is none yet.
    fn note_unanswered(&mut self, now: Instant) -> Instant {
        let una = self.flight.una();
        match &self.unanswered {
            Some(known) if known.una == una => known.since,
            _ => {
                self.unanswered = Some(Box::new(UnansweredPeriod { una, since: now, r1_reached: false }));
                now
            }
        }
    }

    pub(super) fn unanswered_period(&self) -> Option<&UnansweredPeriod> {
        self.unanswered.as_deref().filter(|known| known.una == self.flight.una())
    }

    /// See [`Connection::unanswered`](crate::tcp::Connection::unanswered).
    pub(in crate::tcp) fn unanswered(&self, cx: &Context) -> Option<Unanswered> {
        let since = self.unanswered_period().filter(|period| period.r1_reached)?.since;
        let retransmissions = match cx.state() {
            State::SynSent | State::SynReceived => self.syn_timeouts.into(),
            _ => self.recovery.congestion().timeouts_in_row.max(self.probes_sent),
        };
        Some(Unanswered { retransmissions, since, error: cx.lifecycle.soft_error() })
    }

    /// Returns when TCP_USER_TIMEOUT expires, unless something is acknowledged before.
    #[inline]
    pub(in crate::tcp) fn user_deadline(&self, cx: &Context) -> Option<Instant> {
        self.deadline_after(cx, cx.options.patience.as_ref()?.user_timeout?)
    }

    fn deadline_after(&self, cx: &Context, limit: Duration) -> Option<Instant> {
        let unanswered = self.unanswered_period().map(|period| period.since);
        let from_first = cx.profile.timers.user_timeout_from == UserTimeoutFrom::Transmission;
        let since = match self.oldest_sent(cx) {
            // The data in flight may be a probe that was sent after waiting for the window.
            Some((_, first_sent)) if from_first || !cx.state().is_synchronized() => {
                unanswered.map_or(first_sent, |since| since.min(first_sent))
            }
            Some(_) => unanswered?,
            None => self.persist.and(unanswered)?,
        };
        Some(since + limit)
    }

    fn apply_timer_rule(&mut self, now: Instant, rule: TimerRule) {
        match rule {
            TimerRule::Keep => {}
            TimerRule::Restart => self.restart_rto(now),
            TimerRule::RestartSinceTransmission => self.restart_rto_since_transmission(now),
        }
    }

    /// Restarts the timer, counted from the transmission of the first outstanding segment.
    pub(super) fn restart_rto_since_transmission(&mut self, now: Instant) {
        self.restart_rto(self.flight.head().map_or(now, |head| head.last_sent));
        // After a late ACK, the next segment's timeout may have passed.
        self.rto = self.rto.max(Some(now));
    }

    pub(in crate::tcp) fn restart_rto(&mut self, now: Instant) {
        let floor = self.recovery.timer_floor().unwrap_or_default();
        let deadline = now + self.rtt.rto().get().max(floor);
        self.rto = Some(self.rtt.style().align(deadline));
    }

    /// Starts the persist timer. The window delays data and nothing is in flight, so only a probe can show
    /// that the window has opened.
    ///
    /// The timer waits for an RTO. In Linux, an ACK or a probe restarts it with the backoff of data timeouts
    /// (tcp_check_probe_timer(), tcp_probe0_when()).
    pub(super) fn start_persist(&mut self, cx: &Context, now: Instant) {
        self.start_persist_backed_off(cx, now, 0);
    }

    fn restart_persist(&mut self, cx: &Context, now: Instant) {
        // Linux counts the timeouts of data and of probes together (icsk_backoff).
        let of_data = match cx.profile.timers.rto_events {
            RtoEvents::Linux => self.rtt.backoff(),
            RtoEvents::Rfc6298 => 0,
        };
        self.start_persist_backed_off(cx, now, of_data);
    }

    fn start_persist_backed_off(&mut self, cx: &Context, now: Instant, of_data: u32) {
        if self.persist.is_none() {
            let from_first = cx.profile.timers.user_timeout_from == UserTimeoutFrom::Transmission;
            if from_first && cx.options.patience().user_timeout.is_some() {
                self.note_unanswered(now);
            }
            let base: Duration = self.rtt.rto().get().max(cx.profile.persist.min);
            let wait = base * (1 << (self.persist_backoff + of_data).min(20));
            self.persist = Some(now + wait.min(cx.profile.persist.max));
        }
    }

    /// Postpones the next probe after an ACK has confirmed that the window holds data back.
    pub(in crate::tcp) fn postpone_probe(&mut self, cx: &Context, now: Instant) {
        if cx.profile.persist.restarted_by_acks && self.persist.take().is_some() {
            self.restart_persist(cx, now);
        }
    }

    pub(super) fn stop_persist(&mut self) {
        self.persist = None;
        self.persist_backoff = 0;
    }

    /// Handles the persist timer. Returns true if R2 is reached.
    pub(in crate::tcp) fn handle_persist(&mut self, cx: &Context, now: Instant) -> bool {
        if !take_due(&mut self.persist, now) {
            return false;
        }
        if !self.has_unacknowledged() {
            // The peer has accepted the last probe and all other data.
            self.stop_persist();
            return false;
        }
        if self.wnd > 0 {
            // RFC 9293 §3.8.6.2.1 (4): the override timeout. Send now as much as fits into the window.
            self.may_send_partial = true;
            return false;
        }
        // RFC 9293 §3.8.6.1: probing continues as long as the peer answers.
        if self.is_r2_reached(cx, now, self.probes_sent) {
            return true;
        }
        self.persist_backoff += 1;
        self.window_probe_is_due = true;
        self.restart_persist(cx, now);
        false
    }
}
