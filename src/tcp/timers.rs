//! The timers of a connection.

use airwire::time::{Duration, Instant};

use super::connection::Connection;
use super::pacer::Pacer;
use super::socket::{Ended, Patience, State, Threshold, Unanswered};
use super::variables::{AckDue, Tail, UnansweredPeriod, earlier};
use crate::flight::Fate;
use crate::profile::UserTimeoutFrom;
use crate::recovery::engine::TimerRule;

impl Connection {
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let spacing = self.snd.spacing.as_ref();
        let paced = spacing.and_then(|spacing| spacing.pacer.as_ref()?.deadline());
        let timers = earlier(self.timers.next(), paced);
        let detection = self.detection_deadline();
        earlier(earlier(timers, detection), earlier(self.resend_deadline(), self.user_deadline()))
    }

    /// Returns the deadline of the loss detectors. They wait until our SYN,ACK is acknowledged (Linux,
    /// tcp_schedule_loss_probe()).
    pub(super) fn detection_deadline(&self) -> Option<Instant> {
        self.recovery.deadline().filter(|_| !self.is_open_early())
    }

    pub(crate) fn handle_deadline(&mut self, now: Instant) {
        let due = |timer: &mut Option<Instant>| timer.take_if(|at| *at <= now).is_some();
        if due(&mut self.timers.linger) {
            self.end(None);
            return;
        }
        // RFC 9293 §3.10.8: USER TIMEOUT.
        if self.user_deadline().is_some_and(|at| at <= now) {
            self.give_up();
            return;
        }
        if due(&mut self.timers.delayed_ack) && self.rcv.ack == AckDue::Delayed {
            self.rcv.ack = AckDue::Now;
            let rto = self.rtt.rto().get().as_nanos();
            if let Some(linux) = &mut self.rcv.linux {
                linux.on_ack_timer(rto);
            }
        }
        if due(&mut self.timers.cork) && (self.options.cork || self.snd.tail == Tail::Waits) {
            // One partial segment may be sent as if no data followed; the connection stays corked.
            self.snd.small_once = true;
            self.snd.tail = Tail::End;
        }
        if let Some(pacer) = self.pacer() {
            pacer.on_deadline(now);
        }
        self.on_resend_deadline(now);
        // Before the retransmission timer, because the detector's result may postpone it.
        if self.detection_deadline().is_some_and(|at| at <= now) {
            let (recovery, mut path) = self.recovery_and_path(now);
            let rule = recovery.on_deadline(&mut path);
            self.note_lost_mtu_probe();
            if rule == TimerRule::Restart {
                self.restart_rto(now);
            }
        }
        if due(&mut self.timers.rto) {
            match self.recovery.waits_until(now).filter(|_| !self.is_open_early()) {
                // If the detector finds nothing at that time, this timer expires immediately afterwards.
                Some(at) => self.timers.rto = Some(at),
                None => self.on_rto(now),
            }
        }
        if due(&mut self.timers.persist) {
            self.on_persist(now);
        }
        if due(&mut self.timers.keepalive) {
            self.on_keepalive(now);
        }
    }

    /// RFC 6298 (5.4) to (5.6).
    fn on_rto(&mut self, now: Instant) {
        self.suspect_blocked_fast_open();
        match self.state {
            State::SynSent | State::SynReceived => {
                self.syn_timeouts = self.syn_timeouts.saturating_add(1);
                if self.is_r2_reached(now, self.rtt.backoff()) {
                    self.give_up();
                    return;
                }
                if !self.reduce_early_window(now) {
                    self.rtt.back_off();
                }
                self.pending.syn = true;
            }
            _ if self.flight.is_empty() => return,
            _ => {
                // RFC 9293 §3.8.6.1: a peer that answers with a closed window is alive, however long the
                // window stays closed.
                let closed = self.snd.wnd == 0;
                let unanswered_period = match closed {
                    true => self.timers.probes_sent,
                    false => self.recovery.congestion().timeouts_in_row.saturating_sub(self.timers.refused),
                };
                if self.is_r2_reached(now, unanswered_period) {
                    self.give_up();
                    return;
                }
                if closed {
                    self.timers.probes_sent += 1;
                    self.timers.refused += 1;
                } else {
                    self.suspect_black_hole(now);
                }
                self.timed = None;
                // RFC 2018 §8: the first segment timed out, so it is missing whatever SACK reported.
                if self.flight.head().is_some_and(|head| head.fate == Fate::Sacked) {
                    self.forget_sacks(now);
                }
                // Nothing arrived for a whole timeout, so the retransmission need not be paced.
                if let Some(pacer) = self.pacer() {
                    *pacer = Pacer::new(now);
                }
                let (recovery, mut path) = self.recovery_and_path(now);
                recovery.on_timeout(&mut path);
            }
        }
        self.restart_rto(now);
    }

    fn give_up(&mut self) {
        self.suspect_blocked_fast_open_at_end();
        self.end(Some(self.timed_out()));
    }

    fn timed_out(&self) -> Ended {
        self.soft_error.map_or(Ended::TimedOut, Ended::Unreachable)
    }

    fn patience(&self) -> Patience {
        self.options.patience.as_deref().copied().unwrap_or_default()
    }

    /// Returns R2 for this state (RFC 9293 §3.8.3).
    fn r2(&self) -> Threshold {
        let Patience { r2, syn_r2, .. } = self.patience();
        let profile = &self.profile;
        let of_syn = |retransmissions| Threshold { retransmissions, time: profile.syn_time };
        let (asked_for, usual) = match self.state {
            State::SynSent => (syn_r2, of_syn(profile.syn_retries)),
            State::SynReceived => {
                let retries = profile.syn_ack_retries.unwrap_or(profile.syn_retries);
                // The application may already use the connection (Linux, tcp_fastopen_synack_timer()).
                (syn_r2, of_syn(retries.saturating_add(self.is_open_early().into())))
            }
            _ => (r2, Threshold::retransmissions(profile.retries)),
        };
        asked_for.unwrap_or(usual)
    }

    /// Returns true if R2 is reached: a segment or probe timed out after `retransmissions` that were not
    /// answered. Also records whether R1 is reached.
    fn is_r2_reached(&mut self, now: Instant, retransmissions: u32) -> bool {
        let closed = self.snd.wnd == 0 && self.state.is_synchronized();
        if closed && retransmissions == 0 && self.patience().user_timeout.is_none() {
            // The peer answered the last probe.
            self.timers.unanswered_period = None;
        }
        let unanswered_since = self.note_unanswered(now);
        let since = match self.oldest_sent() {
            Some((_, first_sent)) if !closed => first_sent,
            _ => unanswered_since,
        };
        let usual = Threshold::retransmissions(self.profile.retries_told);
        if self.patience().r1.unwrap_or(usual).is_reached(retransmissions, since, now)
            && let Some(unanswered_period) = &mut self.timers.unanswered_period
        {
            unanswered_period.r1_reached = true;
        }
        self.r2().is_reached(retransmissions, since, now)
    }

    /// Returns the start of the period in which nothing was answered. It starts now if there is none yet.
    fn note_unanswered(&mut self, now: Instant) -> Instant {
        let una = self.flight.una();
        match &self.timers.unanswered_period {
            Some(known) if known.una == una => known.since,
            _ => {
                self.timers.unanswered_period =
                    Some(Box::new(UnansweredPeriod { una, since: now, r1_reached: false }));
                now
            }
        }
    }

    pub(super) fn unanswered_period(&self) -> Option<&UnansweredPeriod> {
        self.timers.unanswered_period.as_deref().filter(|known| known.una == self.flight.una())
    }

    /// Returns `Some` once R1 is reached, until the peer acknowledges something (RFC 9293 §3.8.3 (e)).
    pub fn unanswered(&self) -> Option<Unanswered> {
        let UnansweredPeriod { since, .. } =
            *self.unanswered_period().filter(|unanswered_period| unanswered_period.r1_reached)?;
        let retransmissions = match self.state {
            State::SynSent | State::SynReceived => self.rtt.backoff(),
            _ => self.recovery.congestion().timeouts_in_row.max(self.timers.probes_sent),
        };
        Some(Unanswered { retransmissions, since, error: self.soft_error })
    }

    /// Returns when TCP_USER_TIMEOUT expires, unless something is acknowledged before.
    pub(super) fn user_deadline(&self) -> Option<Instant> {
        let limit = self.options.patience.as_ref()?.user_timeout?;
        let unanswered_period = self.unanswered_period().map(|unanswered_period| unanswered_period.since);
        let from_first = self.profile.user_timeout_from == UserTimeoutFrom::Transmission;
        let since = match self.oldest_sent() {
            // The data in flight may be a probe that was sent after waiting for the window.
            Some((_, first_sent)) if from_first || !self.state.is_synchronized() => {
                unanswered_period.map_or(first_sent, |since| since.min(first_sent))
            }
            Some(_) => unanswered_period?,
            None => self.timers.persist.and(unanswered_period)?,
        };
        Some(since + limit)
    }

    pub(super) fn restart_rto(&mut self, now: Instant) {
        let floor = self.recovery.timer_floor().unwrap_or_default();
        let deadline = now + self.rtt.rto().get().max(floor);
        self.timers.rto = Some(self.rtt.style().align(deadline));
    }

    /// Starts the persist timer: the window holds data back and nothing is in flight, so only a probe can
    /// discover that a closed window has opened.
    pub(super) fn start_persist(&mut self, now: Instant) {
        if self.timers.persist.is_none() {
            let from_first = self.profile.user_timeout_from == UserTimeoutFrom::Transmission;
            if from_first && self.patience().user_timeout.is_some() {
                self.note_unanswered(now);
            }
            let base = self.rtt.rto().get().max(self.profile.persist_min);
            let wait = base * (1 << self.timers.persist_backoff.min(20));
            self.timers.persist = Some(now + wait.min(self.profile.persist_max));
        }
    }

    /// Postpones the next probe after an ACK has confirmed that the window is closed.
    pub(super) fn restart_persist(&mut self, now: Instant) {
        if self.timers.persist.take().is_some() {
            self.start_persist(now);
        }
    }

    pub(super) fn stop_persist(&mut self) {
        self.timers.persist = None;
        self.timers.persist_backoff = 0;
    }

    fn on_persist(&mut self, now: Instant) {
        if !self.waits_for_window() {
            // The last probe was accepted, and no other data is left.
            self.stop_persist();
            return;
        }
        if self.snd.wnd > 0 {
            // §3.8.6.2.1 (4): the override timeout. Send now as much as fits into the window.
            self.snd.small_once = true;
            return;
        }
        // RFC 9293 §3.8.6.1: probing continues as long as the peer answers.
        if self.is_r2_reached(now, self.timers.probes_sent) {
            self.give_up();
            return;
        }
        self.timers.persist_backoff += 1;
        self.pending.window_probe = true;
        self.start_persist(now);
    }

    /// Records an acceptable segment, which proves that the peer is alive.
    pub(super) fn heard_from_peer(&mut self, now: Instant) {
        self.timers.probes_sent = 0;
        // Linux 6.18: MSG_MORE holds a segment back in its own call (tcp_push()), but no longer once an ACK
        // arrives (tcp_data_snd_check()).
        if self.snd.tail == Tail::Waits {
            self.snd.tail = Tail::Overdue;
        }
        self.start_keepalive(now);
    }

    pub(super) fn start_keepalive(&mut self, now: Instant) {
        if let Some(keepalive) = self.options.keepalive
            && self.state.is_synchronized()
            && self.state != State::TimeWait
        {
            self.timers.keepalive = Some(now + keepalive.idle);
        }
    }

    fn on_keepalive(&mut self, now: Instant) {
        let Some(keepalive) = self.options.keepalive else { return };
        // While data is outstanding, the retransmission timer monitors the peer.
        if !self.flight.is_empty() {
            self.timers.keepalive = Some(now + keepalive.idle);
            return;
        }
        let probes = self.timers.probes_sent;
        let silent: Duration = keepalive.idle + keepalive.interval * u64::from(probes);
        let given_up = match self.patience().user_timeout {
            Some(limit) => probes > 0 && silent >= limit,
            None => probes >= keepalive.probes,
        };
        if given_up {
            self.pending.reset = true;
            self.ended = Some(self.timed_out());
            return;
        }
        self.pending.keepalive = true;
        self.timers.keepalive = Some(now + keepalive.interval);
    }
}
