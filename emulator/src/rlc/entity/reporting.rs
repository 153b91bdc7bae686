//! When the receiver reports, and what holds the report back: TSP, periodic reports and EPC (§9.7.2, §9.5 d, f, g).

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};

use crate::rlc::config::ReceiverConfig;
use crate::rlc::pdu::Status;

/// How many PDUs the peer can send per TTI: what VR(EP) is counted down by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    pub tti: Duration,
    pub blocks: u16,
}

pub(super) struct Reporting {
    config: ReceiverConfig,
    incoming: Incoming,
    state: State,
    /// Triggered while prohibited, or in the middle of a report: one report afterwards, whatever the number of
    /// triggers.
    delayed: bool,
    timer_status_periodic: Option<Instant>,
    epc: Option<Epc>,
}

/// Acknowledgement is prohibited from the trigger of a report until Timer_Status_Prohibit expires.
enum State {
    Allowed,
    /// Triggered. It is put together when there is a block for it, so it is as new as can be.
    Due,
    /// The parts of a report that does not fit one PDU, and of which some have gone.
    Underway(VecDeque<Status>),
    Prohibited {
        until: Instant,
    },
}

struct Epc {
    /// When all that was asked for should have come.
    at: Instant,
    /// VR(H) of that report: it asked for what was missing below.
    asked_below: u64,
}

impl Reporting {
    pub(super) fn new(config: ReceiverConfig, incoming: Incoming, now: Instant) -> Self {
        Self {
            config,
            incoming,
            state: State::Allowed,
            delayed: false,
            timer_status_periodic: config.timer_status_periodic.map(|period| now + period),
            epc: None,
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
        if config.timer_status_prohibit.is_none() && matches!(self.state, State::Prohibited { .. }) {
            self.allow();
        }
        self.epc = self.epc.take().filter(|_| config.timer_epc.is_some());
        self.config = config;
    }

    /// A RESET: Timer_Status_Periodic alone runs on (§11.4.3).
    pub(super) fn reset(&mut self) {
        self.state = State::Allowed;
        self.delayed = false;
        self.epc = None;
    }

    /// Re-establishment: the periodic timer too starts anew.
    pub(super) fn restart(&mut self, now: Instant) {
        self.timer_status_periodic = self.config.timer_status_periodic.map(|period| now + period);
    }

    pub(super) fn trigger(&mut self) {
        match self.state {
            State::Allowed => self.state = State::Due,
            State::Due => {}
            State::Underway(_) | State::Prohibited { .. } => self.delayed = true,
        }
    }

    pub(super) fn is_due(&self) -> bool {
        matches!(self.state, State::Due)
    }

    /// What is left of a report that has begun, in STATUS PDUs.
    pub(super) fn underway(&self) -> usize {
        match &self.state {
            State::Underway(parts) => parts.len(),
            State::Allowed | State::Due | State::Prohibited { .. } => 0,
        }
    }

    /// The report that was due is this. `missing` PDUs below `vr_h` are asked for.
    pub(super) fn begin(&mut self, parts: Vec<Status>, missing: u64, vr_h: u64, starts: Instant) {
        self.state = State::Underway(parts.into());
        self.epc = self.config.timer_epc.filter(|_| missing > 0).map(|timer| {
            // Timer_EPC covers the round trip; then VR(EP) is counted down by what a TTI carries.
            let ttis = missing.div_ceil(u64::from(self.incoming.blocks.max(1)));
            Epc { at: starts + timer + self.incoming.tti * ttis, asked_below: vr_h }
        });
    }

    /// The next part. With the last one Timer_Status_Prohibit starts, at `starts`.
    pub(super) fn next_part(&mut self, starts: Instant) -> Option<Status> {
        let State::Underway(parts) = &mut self.state else { return None };
        let part = parts.pop_front();
        if parts.is_empty() {
            match self.config.timer_status_prohibit {
                Some(time) => self.state = State::Prohibited { until: starts + time },
                None => self.allow(),
            }
        }
        part
    }

    fn allow(&mut self) {
        self.state = if std::mem::take(&mut self.delayed) { State::Due } else { State::Allowed };
    }

    /// Everything below `vr_r` was received.
    pub(super) fn handle_deadline(&mut self, now: Instant, vr_r: u64) {
        if matches!(self.state, State::Prohibited { until } if until <= now) {
            self.allow();
        }
        if let Some(at) = self.timer_status_periodic.filter(|at| *at <= now) {
            self.timer_status_periodic = self.config.timer_status_periodic.map(|period| at + period);
            self.trigger();
        }
        if let Some(Epc { asked_below, .. }) = self.epc.take_if(|epc| epc.at <= now)
            && vr_r < asked_below
        {
            self.trigger();
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let prohibit = match self.state {
            // Without a delayed report nothing happens at its end, but then a trigger must find it over.
            State::Prohibited { until } => Some(until),
            _ => None,
        };
        [prohibit, self.timer_status_periodic, self.epc.as_ref().map(|epc| epc.at)]
            .into_iter()
            .flatten()
            .min()
    }
}
