//! The Polling function (§9.7.1): the triggers of polls, and the timers that delay, repeat and prohibit them
//! (Timer_Poll, Timer_Poll_Prohibit and Timer_Poll_Periodic: §9.5 a, b, e).

use airwire::time::{Instant, earlier};

use crate::rlc::umts::config::PollConfig;

pub(super) struct Polling {
    config: PollConfig,
    /// VT(PDU) (§9.4 f): number of AMD PDUs transmitted since this counter last triggered a poll.
    vt_pdu: u16,
    /// VT(SDU) (§9.4 g): number of SDUs begun since this counter last triggered a poll.
    vt_sdu: u16,
    /// Whether a poll has been triggered but not sent: it is prohibited, or waits for an AMD PDU to carry it.
    /// Several triggers cause one poll (§9.5 b).
    triggered: bool,
    timer_poll: Option<Instant>,
    /// VT(S) after the last poll was submitted: x in §9.5 a.
    polled_vt_s: u64,
    timer_poll_prohibit: Option<Instant>,
    timer_poll_periodic: Option<Instant>,
}

impl Polling {
    pub(super) fn new(config: PollConfig, now: Instant) -> Self {
        Self {
            config,
            vt_pdu: 0,
            vt_sdu: 0,
            triggered: false,
            timer_poll: None,
            polled_vt_s: 0,
            timer_poll_prohibit: None,
            timer_poll_periodic: config.timer_poll_periodic.map(|period| now + period),
        }
    }

    /// Applies new settings (§9.7.9). Running timers continue, but Timer_Poll_Periodic restarts if its period
    /// has changed. A timer that is no longer configured stops.
    pub(super) fn reconfigure(&mut self, now: Instant, config: PollConfig) {
        if config.timer_poll_periodic != self.config.timer_poll_periodic {
            self.timer_poll_periodic = config.timer_poll_periodic.map(|period| now + period);
        }
        self.timer_poll = self.timer_poll.filter(|_| config.timer_poll.is_some());
        self.timer_poll_prohibit = self.timer_poll_prohibit.filter(|_| config.timer_poll_prohibit.is_some());
        self.config = config;
    }

    /// Resets the state variables and the timers, except Timer_Poll_Periodic (§11.4.3, §11.4.4). (Early
    /// releases also stopped this timer, which could cause a deadlock.)
    pub(super) fn reset(&mut self) {
        self.vt_pdu = 0;
        self.vt_sdu = 0;
        self.triggered = false;
        self.timer_poll = None;
        self.polled_vt_s = 0;
        self.timer_poll_prohibit = None;
    }

    /// Restarts Timer_Poll_Periodic at a re-establishment.
    ///
    /// Deviation: §9.7.7 requires the timer to continue.
    pub(super) fn restart(&mut self, now: Instant) {
        self.timer_poll_periodic = self.config.timer_poll_periodic.map(|period| now + period);
    }

    /// §9.7.1, trigger 4, "Every Poll_PDU PDU": counts a new or retransmitted AMD PDU. Returns `true` if VT(PDU)
    /// reaches Poll_PDU.
    pub(super) fn count_pdu(&mut self) -> bool {
        count(&mut self.vt_pdu, self.config.poll_pdu)
    }

    /// §9.7.1, trigger 5, "Every Poll_SDU SDU": counts an SDU whose first segment is sent for the first time. Returns
    /// `true` if VT(SDU) reaches Poll_SDU. The AMD PDU with the last segment of this SDU then carries the
    /// poll.
    pub(super) fn count_sdu(&mut self) -> bool {
        count(&mut self.vt_sdu, self.config.poll_sdu)
    }

    /// §9.7.1, trigger 6, "Window based" (§9.6 d): whether J ≥ Poll_Window, where J = ((4096 + VT(S) + 1 − VT(A)) mod
    /// 4096) / VT(WS) · 100, with VT(S) before the AMD PDU is submitted.
    pub(super) fn is_window_trigger(&self, vt_a: u64, vt_s: u64, vt_ws: u16) -> bool {
        self.config.poll_window.is_some_and(|percent| {
            let used = (vt_s + 1 - vt_a) % 4096;
            used * 100 >= u64::from(percent) * u64::from(vt_ws)
        })
    }

    pub(super) fn trigger(&mut self) {
        self.triggered = true;
    }

    /// Cancels a triggered poll. §9.7.1: the Polling function is not initiated if no AMD PDU is to be
    /// transmitted and all AMD PDUs are acknowledged.
    pub(super) fn cancel(&mut self) {
        self.triggered = false;
    }

    /// Whether a poll has been triggered and is not prohibited.
    pub(super) fn is_due(&self) -> bool {
        self.triggered && self.timer_poll_prohibit.is_none()
    }

    /// Handles the submission of an AMD PDU or a POLL super-field. Returns `true` if it polls (§11.3.2.1.1). If
    /// so, Timer_Poll and Timer_Poll_Prohibit start at `starts`. `vt_s` is VT(S) after the submission.
    pub(super) fn take(&mut self, starts: Instant, vt_s: u64) -> bool {
        if !self.is_due() {
            return false;
        }
        self.triggered = false;
        self.polled_vt_s = vt_s;
        self.timer_poll = self.config.timer_poll.map(|time| starts + time);
        self.timer_poll_prohibit = self.config.timer_poll_prohibit.map(|time| starts + time);
        true
    }

    /// §9.5 a: Timer_Poll stops when positive acknowledgements for all AMD PDUs up to x − 1 have been received.
    pub(super) fn handle_vt_a(&mut self, vt_a: u64) {
        if vt_a >= self.polled_vt_s {
            self.timer_poll = None;
        }
    }

    /// §9.5 a: Timer_Poll stops when a negative acknowledgement for the AMD PDU x − 1 has been received.
    pub(super) fn handle_nack(&mut self, sn: u64) {
        if sn + 1 == self.polled_vt_s {
            self.timer_poll = None;
        }
    }

    /// §9.7.1, triggers 3, "Poll timer", and 7, "Timer based". Trigger 7 applies only if AMD PDUs remain to
    /// be transmitted or acknowledged (`has_data`). Returns `true` if Timer_Poll has expired.
    pub(super) fn handle_deadline(&mut self, now: Instant, has_data: bool) -> bool {
        self.timer_poll_prohibit = self.timer_poll_prohibit.filter(|at| *at > now);
        if let Some(at) = self.timer_poll_periodic.filter(|at| *at <= now) {
            self.timer_poll_periodic = self.config.timer_poll_periodic.map(|period| at + period);
            self.triggered |= has_data;
        }
        let expired = self.timer_poll.is_some_and(|at| at <= now);
        if expired {
            self.timer_poll = None;
            self.triggered = true;
        }
        expired
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        earlier(self.timer_poll, earlier(self.timer_poll_prohibit, self.timer_poll_periodic))
    }
}

/// Increments a counter. At the limit, resets it to 0 and returns `true`. Without a limit, the trigger is not
/// configured.
fn count(counter: &mut u16, limit: Option<u16>) -> bool {
    let Some(limit) = limit else { return false };
    *counter += 1;
    let reached = *counter >= limit;
    if reached {
        *counter = 0;
    }
    reached
}
