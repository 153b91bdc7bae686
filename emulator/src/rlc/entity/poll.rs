//! When the sender asks for a status report, and what holds the question back (§9.7.1, §9.5 a–c).

use airwire::time::Instant;

use crate::rlc::config::PollConfig;

pub(super) struct Polling {
    config: PollConfig,
    /// VT(PDU): AMD PDUs since the last poll that it made.
    vt_pdu: u16,
    /// VT(SDU): SDUs begun since the last poll that it made.
    vt_sdu: u16,
    /// A poll was triggered and has not gone out: Timer_Poll_Prohibit forbids it, or it needs a PDU to ride on.
    due: bool,
    timer_poll: Option<Instant>,
    /// VT(S) after the last poll: the report has to tell about everything below.
    asked_below: u64,
    timer_poll_prohibit: Option<Instant>,
    timer_poll_periodic: Option<Instant>,
}

impl Polling {
    pub(super) fn new(config: PollConfig, now: Instant) -> Self {
        Self {
            config,
            vt_pdu: 0,
            vt_sdu: 0,
            due: false,
            timer_poll: None,
            asked_below: 0,
            timer_poll_prohibit: None,
            timer_poll_periodic: config.timer_poll_periodic.map(|period| now + period),
        }
    }

    /// New settings. Timers that run go on as they are; one that is now without a value ends.
    pub(super) fn reconfigure(&mut self, now: Instant, config: PollConfig) {
        if config.timer_poll_periodic != self.config.timer_poll_periodic {
            self.timer_poll_periodic = config.timer_poll_periodic.map(|period| now + period);
        }
        self.timer_poll = self.timer_poll.filter(|_| config.timer_poll.is_some());
        self.timer_poll_prohibit = self.timer_poll_prohibit.filter(|_| config.timer_poll_prohibit.is_some());
        self.config = config;
    }

    /// A RESET: everything starts anew, but Timer_Poll_Periodic runs on (§11.4.3); stopping it was a deadlock of
    /// early releases.
    pub(super) fn reset(&mut self) {
        self.vt_pdu = 0;
        self.vt_sdu = 0;
        self.due = false;
        self.timer_poll = None;
        self.asked_below = 0;
        self.timer_poll_prohibit = None;
    }

    /// Re-establishment: the periodic timer too starts anew.
    pub(super) fn restart(&mut self, now: Instant) {
        self.timer_poll_periodic = self.config.timer_poll_periodic.map(|period| now + period);
    }

    /// An AMD PDU is transmitted. Whether that makes it the Poll_PDU-th one.
    pub(super) fn pdu_counts(&mut self) -> bool {
        count(&mut self.vt_pdu, self.config.poll_pdu)
    }

    /// An SDU is begun. Whether that makes it the Poll_SDU-th one: then the PDU with its last segment polls.
    pub(super) fn sdu_counts(&mut self) -> bool {
        count(&mut self.vt_sdu, self.config.poll_sdu)
    }

    /// The window-based trigger; `vt_s` before the PDU is submitted.
    pub(super) fn window_triggers(&self, vt_a: u64, vt_s: u64, vt_ws: u16) -> bool {
        self.config.poll_window.is_some_and(|percent| {
            let used = (vt_s + 1 - vt_a) % 4096;
            used * 100 >= u64::from(percent) * u64::from(vt_ws)
        })
    }

    pub(super) fn trigger(&mut self) {
        self.due = true;
    }

    /// Nothing is unacknowledged: there is nothing to ask about.
    pub(super) fn forget(&mut self) {
        self.due = false;
    }

    /// A poll may go out now, and wants to.
    pub(super) fn wants_to_go(&self) -> bool {
        self.due && self.timer_poll_prohibit.is_none()
    }

    /// A PDU (or a POLL SUFI) goes out. Whether it polls; then the timers start at `starts`. `vt_s`: after it.
    pub(super) fn goes(&mut self, starts: Instant, vt_s: u64) -> bool {
        if !self.wants_to_go() {
            return false;
        }
        self.due = false;
        self.asked_below = vt_s;
        self.timer_poll = self.config.timer_poll.map(|time| starts + time);
        self.timer_poll_prohibit = self.config.timer_poll_prohibit.map(|time| starts + time);
        true
    }

    /// All below `vt_a` are acknowledged.
    pub(super) fn acknowledged(&mut self, vt_a: u64) {
        if vt_a >= self.asked_below {
            self.timer_poll = None;
        }
    }

    pub(super) fn negatively_acknowledged(&mut self, sn: u64) {
        if sn + 1 == self.asked_below {
            self.timer_poll = None;
        }
    }

    /// `anything`: PDUs wait to be transmitted or to be acknowledged. Returns whether Timer_Poll was what expired.
    pub(super) fn handle_deadline(&mut self, now: Instant, anything: bool) -> bool {
        self.timer_poll_prohibit = self.timer_poll_prohibit.filter(|at| *at > now);
        if let Some(at) = self.timer_poll_periodic.filter(|at| *at <= now) {
            self.timer_poll_periodic = self.config.timer_poll_periodic.map(|period| at + period);
            self.due |= anything;
        }
        let expired = self.timer_poll.is_some_and(|at| at <= now);
        if expired {
            self.timer_poll = None;
            self.due = true;
        }
        expired
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        [self.timer_poll, self.timer_poll_prohibit, self.timer_poll_periodic].into_iter().flatten().min()
    }
}

fn count(counter: &mut u16, limit: Option<u16>) -> bool {
    let Some(limit) = limit else { return false };
    *counter += 1;
    let reached = *counter >= limit;
    if reached {
        *counter = 0;
    }
    reached
}
