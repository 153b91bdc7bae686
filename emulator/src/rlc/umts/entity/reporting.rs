//! STATUS transmission (§9.7.2): the triggers of status reports, and the timers that delay and repeat them
//! (Timer_Status_Prohibit and Timer_Status_Periodic: §9.5 f, g; Timer_EPC: earlier releases only).

use std::collections::VecDeque;

use airwire::time::{Duration, Instant, earlier};

use crate::rlc::umts::config::ReceiverConfig;
use crate::rlc::umts::pdu::Status;

/// Capacity of the direction in which the entity receives. The EPC mechanism decrements VR(EP) by the number
/// of PDUs that a TTI can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Length of a TTI.
    pub tti: Duration,
    /// Maximum number of PDUs in a TTI. 0 is treated as 1.
    pub blocks: u16,
}

pub(super) struct Reporting {
    config: ReceiverConfig,
    incoming: Incoming,
    state: State,
    /// Whether a report was triggered while it was prohibited, or while parts of another report were being
    /// sent. §9.7.2: a single report follows, regardless of the number of triggers.
    triggered_again: bool,
    timer_status_periodic: Option<Instant>,
    epc: Option<Epc>,
}

/// State of the acknowledgement reports. §9.5 f: acknowledgement is prohibited from the trigger of an
/// acknowledgement status report until Timer_Status_Prohibit expires.
enum State {
    Allowed,
    /// Triggered and delayed. The report covers everything that arrives until then.
    Delayed {
        until: Instant,
    },
    /// Triggered. The report is written when a block is available, so that its content is up to date.
    Due,
    /// Written. These STATUS PDUs of the report have not been submitted.
    Sending(VecDeque<Status>),
    /// Timer_Status_Prohibit is running.
    Prohibited {
        until: Instant,
    },
}

/// State of the EPC mechanism while it waits for retransmissions.
struct Epc {
    /// Time at which VR(EP) reaches 0. All PDUs that were reported missing should have arrived by then.
    at: Instant,
    /// VR(H) at the time of the report.
    vr_h: u64,
}

impl Reporting {
    pub(super) fn new(config: ReceiverConfig, incoming: Incoming, now: Instant) -> Self {
        Self {
            incoming,
            state: State::Allowed,
            triggered_again: false,
            timer_status_periodic: config.timer_status_periodic.map(|period| now + period),
            epc: None,
            config,
        }
    }

    pub(super) fn config(&self) -> &ReceiverConfig {
        &self.config
    }

    pub(super) fn reconfigure(&mut self, now: Instant, config: ReceiverConfig, incoming: Incoming) {
        self.incoming = incoming;
        if config.timer_status_periodic != self.config.timer_status_periodic {
            self.timer_status_periodic = config.timer_status_periodic.map(|period| now + period);
        }
        if config.prohibits().is_none() && matches!(self.state, State::Prohibited { .. }) {
            self.allow(now);
        }
        self.epc = self.epc.take().filter(|_| config.timer_epc.is_some());
        self.config = config;
    }

    /// Resets the state (§11.4.3, §11.4.4). Only Timer_Status_Periodic continues to run.
    pub(super) fn reset(&mut self) {
        self.state = State::Allowed;
        self.triggered_again = false;
        self.epc = None;
    }

    /// Restarts Timer_Status_Periodic at a re-establishment.
    ///
    /// Deviation: §9.7.7 requires the timer to continue.
    pub(super) fn restart(&mut self, now: Instant) {
        self.timer_status_periodic = self.config.timer_status_periodic.map(|period| now + period);
    }

    /// Triggers a report (§9.7.2), because of a poll, a missing PDU, Timer_Status_Periodic or EPC.
    pub(super) fn trigger(&mut self, now: Instant) {
        match self.state {
            State::Allowed => self.state = self.state_after_trigger(now),
            State::Delayed { .. } | State::Due => {}
            State::Sending(_) | State::Prohibited { .. } => self.triggered_again = true,
        }
    }

    fn state_after_trigger(&self, now: Instant) -> State {
        let delay = self.config.status_delay.filter(|delay| !delay.is_zero());
        delay.map_or(State::Due, |delay| State::Delayed { until: now + delay })
    }

    pub(super) fn is_due(&self) -> bool {
        matches!(self.state, State::Due)
    }

    /// Number of STATUS PDUs of a written report that have not been submitted.
    pub(super) fn parts_left(&self) -> usize {
        match &self.state {
            State::Sending(parts) => parts.len(),
            State::Allowed | State::Delayed { .. } | State::Due | State::Prohibited { .. } => 0,
        }
    }

    /// Starts the transmission of the report that was due, as `parts`. It lists `missing` PDUs below VR(H).
    /// If there are any, Timer_EPC starts at `starts`.
    pub(super) fn begin(&mut self, parts: Vec<Status>, missing: u64, vr_h: u64, starts: Instant) {
        self.state = State::Sending(parts.into());
        self.epc = self.config.timer_epc.filter(|_| missing > 0).map(|timer| {
            // VR(EP) := number of negatively acknowledged PDUs. After Timer_EPC (the round-trip time) has
            // expired, VR(EP) is decremented in each TTI by the number of PDUs that the TTI can carry.
            // Choice: this number is the maximum for a TTI, not the one in the transport format of a received
            // TTI. A TTI with fewer PDUs means that the sender has nothing more to send. Retransmissions are
            // sent first, so no retransmission follows. If nothing is transmitted at all, no transport format
            // can be counted, but the report must not wait forever.
            let ttis = missing.div_ceil(u64::from(self.incoming.blocks.max(1)));
            Epc { at: starts + timer + self.incoming.tti * ttis, vr_h }
        });
    }

    /// Returns the next STATUS PDU of a written report. §9.5 f: Timer_Status_Prohibit starts with the last
    /// one, at `starts`.
    pub(super) fn next_part(&mut self, starts: Instant) -> Option<Status> {
        let State::Sending(parts) = &mut self.state else { return None };
        let part = parts.pop_front();
        if parts.is_empty() {
            match self.config.prohibits() {
                Some(time) => self.state = State::Prohibited { until: starts + time },
                None => self.allow(starts),
            }
        }
        part
    }

    /// Ends the prohibition of acknowledgement. A delayed report becomes due (§9.7.2).
    fn allow(&mut self, now: Instant) {
        self.state = if std::mem::take(&mut self.triggered_again) {
            self.state_after_trigger(now)
        } else {
            State::Allowed
        };
    }

    /// Handles expiries of Timer_Status_Prohibit and Timer_Status_Periodic (§9.5 f, g), and the end of EPC:
    /// if a PDU that was reported missing is still missing, another report is triggered. All PDUs below
    /// `vr_r` have been received.
    pub(super) fn handle_deadline(&mut self, now: Instant, vr_r: u64) {
        match self.state {
            State::Delayed { until } if until <= now => self.state = State::Due,
            State::Prohibited { until } if until <= now => self.allow(now),
            _ => {}
        }
        if let Some(at) = self.timer_status_periodic.filter(|at| *at <= now) {
            self.timer_status_periodic = self.config.timer_status_periodic.map(|period| at + period);
            self.trigger(now);
        }
        if let Some(Epc { vr_h, .. }) = self.epc.take_if(|epc| epc.at <= now)
            && vr_r < vr_h
        {
            self.trigger(now);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let state = match self.state {
            // Set even if no report is delayed, so that the next trigger finds the timer expired.
            State::Prohibited { until } | State::Delayed { until } => Some(until),
            _ => None,
        };
        earlier(state, earlier(self.timer_status_periodic, self.epc.as_ref().map(|epc| epc.at)))
    }
}
