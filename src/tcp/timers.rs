//! What happens when nothing happens: the timers of a connection.

use airwire::time::Instant;

use super::connection::Connection;
use super::socket::{Ended, State};
use super::variables::{AckDue, Tail};
use crate::recovery::engine::TimerRule;

impl Connection {
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match (self.timers.next(), self.recovery.deadline()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    pub(crate) fn handle_deadline(&mut self, now: Instant) {
        let due = |timer: &mut Option<Instant>| timer.take_if(|at| *at <= now).is_some();
        if due(&mut self.timers.linger) {
            self.end(None);
            return;
        }
        if due(&mut self.timers.delayed_ack) && self.rcv.ack == AckDue::Delayed {
            self.rcv.ack = AckDue::Now;
            // No data came that the ACK could have travelled with (Linux 6.18, tcp_delack_timer_handler()).
            self.rcv.interactive = false;
        }
        if due(&mut self.timers.cork) && (self.options.cork || self.snd.tail == Tail::Waits) {
            // One partial segment may leave, as if it were the end; the connection stays corked.
            self.snd.small_once = true;
            self.snd.tail = Tail::End;
        }
        // Before the retransmission timer: what a detector finds may put that off.
        if self.recovery.deadline().is_some_and(|at| at <= now) {
            let (recovery, mut path) = self.recovery_and_path(now);
            if recovery.on_deadline(&mut path) == TimerRule::Restart {
                self.restart_rto(now);
            }
        }
        if due(&mut self.timers.rto) {
            match self.recovery.waits_until(now) {
                // If the detector finds nothing then, it is this timer's turn at once.
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
        match self.state {
            State::SynSent | State::SynReceived => {
                self.syn_was_lost = true;
                if self.rtt.backoff() >= self.profile.syn_retries {
                    self.end(Some(self.timed_out()));
                    return;
                }
                self.rtt.back_off();
                self.pending.syn = true;
            }
            _ if self.flight.is_empty() => return,
            _ => {
                // RFC 9293 §3.8.6.1: a peer that answers with a closed window is alive, however long that lasts.
                let closed = self.snd.wnd == 0;
                let in_vain = match closed {
                    true => self.timers.probes_sent,
                    false => self.recovery.congestion().timeouts_in_row.saturating_sub(self.timers.refused),
                };
                if in_vain >= self.profile.retries {
                    self.end(Some(self.timed_out()));
                    return;
                }
                if closed {
                    self.timers.probes_sent += 1;
                    self.timers.refused += 1;
                }
                self.timed = None;
                let (recovery, mut path) = self.recovery_and_path(now);
                recovery.on_timeout(&mut path);
            }
        }
        self.restart_rto(now);
    }

    fn timed_out(&self) -> Ended {
        self.soft_error.map_or(Ended::TimedOut, Ended::Unreachable)
    }

    pub(super) fn restart_rto(&mut self, now: Instant) {
        let floor = self.recovery.timer_floor().unwrap_or_default();
        let deadline = now + self.rtt.rto().get().max(floor);
        self.timers.rto = Some(self.rtt.style().align(deadline));
    }

    /// The window is closed and nothing is in flight: only a probe will learn that it has opened.
    pub(super) fn start_persist(&mut self, now: Instant) {
        if self.timers.persist.is_none() {
            let base = self.rtt.rto().get().max(self.profile.persist_min);
            let wait = base * (1 << self.timers.persist_backoff.min(20));
            self.timers.persist = Some(now + wait.min(self.profile.persist_max));
        }
    }

    pub(super) fn stop_persist(&mut self) {
        self.timers.persist = None;
        self.timers.persist_backoff = 0;
    }

    fn on_persist(&mut self, now: Instant) {
        if !self.waits_for_window() {
            // The last probe was accepted, and it was all there was.
            self.stop_persist();
            return;
        }
        if self.snd.wnd > 0 {
            // §3.8.6.2.1 (4): the override timeout. What fits the window leaves now, however little it is.
            self.snd.small_once = true;
            return;
        }
        // RFC 9293 §3.8.6.1: as long as the peer answers, probing goes on for ever.
        if self.timers.probes_sent >= self.profile.retries {
            self.end(Some(self.timed_out()));
            return;
        }
        self.timers.persist_backoff += 1;
        self.pending.window_probe = true;
        self.start_persist(now);
    }

    /// Any acceptable segment proves the peer alive.
    pub(super) fn heard_from_peer(&mut self, now: Instant) {
        self.timers.probes_sent = 0;
        // Linux 6.18: MSG_MORE holds a segment back in its own call (tcp_push()) and no longer when an ACK comes
        // (tcp_data_snd_check()).
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
        // While data is outstanding the retransmission timer watches the peer.
        if !self.flight.is_empty() {
            self.timers.keepalive = Some(now + keepalive.idle);
            return;
        }
        if self.timers.probes_sent >= keepalive.probes {
            self.pending.reset = true;
            self.ended = Some(self.timed_out());
            return;
        }
        self.pending.keepalive = true;
        self.timers.keepalive = Some(now + keepalive.interval);
    }
}
