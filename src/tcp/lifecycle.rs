//! The state of a connection, why it ended, and the segments and timers that belong to neither half.

use airwire::time::{Duration, Instant};

use super::icmp::Unreachable;
use super::socket::{Ended, SocketOptions, State};
use crate::profile::Profile;

/// The parts of a connection that belong to neither half.
#[derive(Debug)]
pub(super) struct Lifecycle {
    state: State,
    /// True if the peer opened the connection.
    is_passive: bool,
    ended: Option<Ended>,
    /// A soft ICMP error, reported if the connection then times out (RFC 5461).
    soft_error: Option<Unreachable>,
    /// True after the application has closed.
    is_orphaned: bool,
    /// True in FIN-WAIT-2 and later, after Linux has replaced the socket by a few values (tcp_time_wait()).
    is_released: bool,
    pending: Pending,
    /// The end of TIME-WAIT, or of FIN-WAIT-2 after the application has closed.
    linger: Option<Instant>,
    keepalive: Option<Instant>,
}

/// Segments to send besides data and ordinary ACKs, one for each flag.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Pending {
    syn: bool,
    reset: bool,
    keepalive: bool,
    /// The ACK that is due is sent before any data.
    lone_ack: bool,
}

impl Lifecycle {
    pub(super) fn new(state: State) -> Self {
        Self {
            state,
            is_passive: state == State::SynReceived,
            ended: None,
            soft_error: None,
            is_orphaned: false,
            is_released: false,
            pending: Pending::default(),
            linger: None,
            keepalive: None,
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    pub(super) fn is_passive(&self) -> bool {
        self.is_passive
    }

    /// Changes the state and returns the previous one.
    pub(super) fn enter(&mut self, state: State) -> State {
        std::mem::replace(&mut self.state, state)
    }

    /// Enters TIME-WAIT, or restarts it, and returns the previous state.
    pub(super) fn enter_time_wait(&mut self, now: Instant, profile: &Profile) -> State {
        (self.linger, self.keepalive) = (Some(now + profile.timers.time_wait), None);
        self.enter(State::TimeWait)
    }

    /// Ends the connection and returns the previous state.
    pub(super) fn end(&mut self, why: Option<Ended>) -> State {
        self.ended = self.ended.or(why);
        (self.linger, self.keepalive, self.pending) = (None, None, Pending::default());
        self.enter(State::Closed)
    }

    /// Schedules a RST, which ends the connection.
    pub(super) fn reset(&mut self, why: Ended) {
        self.pending.reset = true;
        self.ended = Some(why);
    }

    /// Returns the reason why the connection ended, unless both sides closed it.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Returns the reason for the end of a connection that has timed out.
    pub(super) fn timed_out(&self) -> Ended {
        self.soft_error.map_or(Ended::TimedOut, Ended::Unreachable)
    }

    pub(super) fn soft_error(&self) -> Option<Unreachable> {
        self.soft_error
    }

    pub(super) fn note_soft_error(&mut self, why: Unreachable) {
        self.soft_error = Some(why);
    }

    pub(super) fn take_soft_error(&mut self) -> Option<Unreachable> {
        self.soft_error.take()
    }

    /// Records that the application has closed.
    pub(super) fn orphan(&mut self) {
        self.is_orphaned = true;
    }

    pub(super) fn is_orphaned(&self) -> bool {
        self.is_orphaned
    }

    /// Records that Linux releases the socket. Returns false if the socket was released before.
    pub(super) fn release(&mut self) -> bool {
        !std::mem::replace(&mut self.is_released, true)
    }

    pub(super) fn is_released(&self) -> bool {
        self.is_released
    }

    /// Limits the time in FIN-WAIT-2 after the application has closed (TCP_LINGER2).
    pub(super) fn limit_fin_wait_2(&mut self, now: Instant, profile: &Profile, options: &SocketOptions) {
        self.linger = Some(now + options.linger2.unwrap_or(profile.timers.time_wait));
    }

    pub(super) fn send_syn(&mut self) {
        self.pending.syn = true;
    }

    pub(super) fn on_syn_sent(&mut self) {
        self.pending.syn = false;
    }

    pub(super) fn syn_is_due(&self) -> bool {
        self.pending.syn
    }

    pub(super) fn reset_is_due(&self) -> bool {
        self.pending.reset
    }

    /// Sends the ACK that is due before any data, if `alone`.
    pub(super) fn send_lone_ack(&mut self, alone: bool) {
        self.pending.lone_ack = alone;
    }

    pub(super) fn take_lone_ack(&mut self) -> bool {
        std::mem::take(&mut self.pending.lone_ack)
    }

    /// Returns true if a segment besides data and ordinary ACKs is to be sent.
    pub(super) fn has_pending(&self) -> bool {
        self.pending != Pending::default()
    }

    pub(super) fn take_keepalive(&mut self) -> bool {
        std::mem::take(&mut self.pending.keepalive)
    }

    /// Starts the keep-alive timer, if the option is set.
    pub(super) fn start_keepalive(&mut self, now: Instant, options: &SocketOptions) {
        if let Some(keepalive) = options.keepalive
            && self.state.is_synchronized()
            && self.state != State::TimeWait
        {
            self.keepalive = Some(now + keepalive.idle);
        }
    }

    /// Applies a change of SO_KEEPALIVE.
    pub(super) fn restart_keepalive(&mut self, now: Instant, options: &SocketOptions) {
        self.keepalive = None;
        self.start_keepalive(now, options);
    }

    /// Handles the keep-alive timer (RFC 9293 §3.8.4), after `probes` without an answer. `is_idle` is true if
    /// no data is outstanding.
    pub(super) fn on_keepalive(&mut self, now: Instant, options: &SocketOptions, is_idle: bool, probes: u32) {
        let Some(keepalive) = options.keepalive else { return };
        // While data is outstanding, the retransmission timer monitors the peer.
        if !is_idle {
            self.keepalive = Some(now + keepalive.idle);
            return;
        }
        let silent: Duration = keepalive.idle + keepalive.interval * u64::from(probes);
        let gives_up = match options.patience().user_timeout {
            Some(limit) => probes > 0 && silent >= limit,
            None => probes >= keepalive.probes,
        };
        if gives_up {
            self.reset(self.timed_out());
            return;
        }
        self.pending.keepalive = true;
        self.keepalive = Some(now + keepalive.interval);
    }

    /// Returns the deadline of TIME-WAIT or FIN-WAIT-2.
    pub(super) fn linger_deadline(&self) -> Option<Instant> {
        self.linger
    }

    pub(super) fn keepalive_deadline(&self) -> Option<Instant> {
        self.keepalive
    }

    pub(super) fn take_due_linger(&mut self, now: Instant) -> bool {
        take_due(&mut self.linger, now)
    }

    pub(super) fn take_due_keepalive(&mut self, now: Instant) -> bool {
        take_due(&mut self.keepalive, now)
    }
}

/// Stops a timer if it has expired. Returns true if the timer was stopped.
pub(super) fn take_due(timer: &mut Option<Instant>, now: Instant) -> bool {
    timer.take_if(|at| *at <= now).is_some()
}
