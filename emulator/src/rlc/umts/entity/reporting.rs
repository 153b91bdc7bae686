//! STATUS transmission (§9.7.2): what triggers a status report, and what delays it (Timer_Status_Prohibit and
//! Timer_Status_Periodic: §9.5 f, g; Timer_EPC: earlier releases only).

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};

use crate::rlc::umts::config::ReceiverConfig;
use crate::rlc::umts::pdu::Status;

/// The direction that the entity receives: how many PDUs it can carry per TTI. The EPC mechanism counts VR(EP) down by
/// that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The TTI's length.
    pub tti: Duration,
    /// The most PDUs in a TTI; 0 counts as 1.
    pub blocks: u16,
}

pub(super) struct Reporting {
    config: ReceiverConfig,
    incoming: Incoming,
    state: State,
    /// A report was triggered while it was prohibited, or while the parts of another were being sent. §9.7.2: one
    /// report follows, however many were triggered.
    delayed: bool,
    timer_status_periodic: Option<Instant>,
    epc: Option<Epc>,
}

/// §9.5 f: from the trigger of an acknowledgement status report until Timer_Status_Prohibit expires, acknowledgement is
/// prohibited.
enum State {
    Allowed,
    /// Triggered, and delayed: what comes until then is reported with it.
    Waiting {
        until: Instant,
    },
    /// Triggered. It is written when a block is there for it, so that it is up to date.
    Due,
    /// Written. These of its STATUS PDUs have not been submitted.
    Underway(VecDeque<Status>),
    /// Timer_Status_Prohibit runs.
    Prohibited {
        until: Instant,
    },
}

/// The EPC mechanism waits for retransmissions.
struct Epc {
    /// When VR(EP) is 0: all that was reported missing should have come.
    at: Instant,
    /// VR(H) at the time of the report.
    asked_below: u64,
}

impl Reporting {
    pub(super) fn new(config: ReceiverConfig, incoming: Incoming, now: Instant) -> Self {
        Self {
            incoming,
            state: State::Allowed,
            delayed: false,
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

    /// §11.4.3, §11.4.4: of these timers Timer_Status_Periodic alone runs on.
    pub(super) fn reset(&mut self) {
        self.state = State::Allowed;
        self.delayed = false;
        self.epc = None;
    }

    /// Re-establishment.
    ///
    /// Deviation: §9.7.7 lets Timer_Status_Periodic run on; here it starts anew.
    pub(super) fn restart(&mut self, now: Instant) {
        self.timer_status_periodic = self.config.timer_status_periodic.map(|period| now + period);
    }

    /// §9.7.2: a poll, a missing PDU, Timer_Status_Periodic or EPC asks for a report.
    pub(super) fn trigger(&mut self, now: Instant) {
        match self.state {
            State::Allowed => self.state = self.triggered(now),
            State::Waiting { .. } | State::Due => {}
            State::Underway(_) | State::Prohibited { .. } => self.delayed = true,
        }
    }

    fn triggered(&self, now: Instant) -> State {
        let delay = self.config.status_delay.filter(|delay| !delay.is_zero());
        delay.map_or(State::Due, |delay| State::Waiting { until: now + delay })
    }

    pub(super) fn is_due(&self) -> bool {
        matches!(self.state, State::Due)
    }

    /// STATUS PDUs of a written report that have not been submitted.
    pub(super) fn underway(&self) -> usize {
        match &self.state {
            State::Underway(parts) => parts.len(),
            State::Allowed | State::Waiting { .. } | State::Due | State::Prohibited { .. } => 0,
        }
    }

    /// The report that was due is written, as `parts`. It reports `missing` PDUs below `vr_h`. Timer_EPC starts at
    /// `starts` if there are any.
    pub(super) fn begin(&mut self, parts: Vec<Status>, missing: u64, vr_h: u64, starts: Instant) {
        self.state = State::Underway(parts.into());
        self.epc = self.config.timer_epc.filter(|_| missing > 0).map(|timer| {
            // VR(EP) := the number of negatively acknowledged PDUs. When Timer_EPC, the round trip, has expired, each
            // TTI counts it down by the PDUs that it can carry. Choice: that is the most that a TTI can carry, and not
            // what the transport format of each TTI received says. A TTI with fewer PDUs is one whose sender has no
            // more to send, so that retransmissions, which go first, are not behind it; and where nothing is
            // transmitted at all there is no format to count by, but the report must not wait for ever.
            let ttis = missing.div_ceil(u64::from(self.incoming.blocks.max(1)));
            Epc { at: starts + timer + self.incoming.tti * ttis, asked_below: vr_h }
        });
    }

    /// The next STATUS PDU of a written report. §9.5 f: Timer_Status_Prohibit starts with the last one, at `starts`.
    pub(super) fn next_part(&mut self, starts: Instant) -> Option<Status> {
        let State::Underway(parts) = &mut self.state else { return None };
        let part = parts.pop_front();
        if parts.is_empty() {
            match self.config.prohibits() {
                Some(time) => self.state = State::Prohibited { until: starts + time },
                None => self.allow(starts),
            }
        }
        part
    }

    /// §9.7.2: acknowledgement is no longer prohibited, and a delayed report is due.
    fn allow(&mut self, now: Instant) {
        self.state = if std::mem::take(&mut self.delayed) { self.triggered(now) } else { State::Allowed };
    }

    /// Timer_Status_Prohibit, Timer_Status_Periodic (§9.5 f, g), and the end of EPC: if a PDU that was reported
    /// missing is still missing, another report is triggered. Everything below `vr_r` was received.
    pub(super) fn handle_deadline(&mut self, now: Instant, vr_r: u64) {
        match self.state {
            State::Waiting { until } if until <= now => self.state = State::Due,
            State::Prohibited { until } if until <= now => self.allow(now),
            _ => {}
        }
        if let Some(at) = self.timer_status_periodic.filter(|at| *at <= now) {
            self.timer_status_periodic = self.config.timer_status_periodic.map(|period| at + period);
            self.trigger(now);
        }
        if let Some(Epc { asked_below, .. }) = self.epc.take_if(|epc| epc.at <= now)
            && vr_r < asked_below
        {
            self.trigger(now);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let state = match self.state {
            // Also if no report is delayed: the next trigger must find it expired.
            State::Prohibited { until } | State::Waiting { until } => Some(until),
            _ => None,
        };
        [state, self.timer_status_periodic, self.epc.as_ref().map(|epc| epc.at)].into_iter().flatten().min()
    }
}
