//! STATUS reporting (36.322 §5.2.3, 38.322 §5.3.4): when a receiving side sends a STATUS PDU.

use std::collections::BTreeSet;

use airwire::time::{Duration, Instant};

#[derive(Debug)]
pub(in crate::rlc) struct StatusReporting {
    t_status_prohibit: Duration,
    is_triggered: bool,
    /// Sequence numbers of PDUs whose poll must not be answered yet.
    delayed_polls: BTreeSet<u64>,
    /// End of t-StatusProhibit, if it is running.
    prohibited_until: Option<Instant>,
}

impl StatusReporting {
    pub(in crate::rlc) fn new(t_status_prohibit: Duration) -> Self {
        Self {
            t_status_prohibit,
            is_triggered: false,
            delayed_polls: BTreeSet::new(),
            prohibited_until: None,
        }
    }

    pub(in crate::rlc) fn trigger(&mut self) {
        self.is_triggered = true;
    }

    /// Handles the poll in the PDU x with this sequence number. "If the AMD PDU is to be discarded …; or if x
    /// < RX_Highest_Status or x >= RX_Next + AM_Window_Size: trigger a STATUS report; else: delay triggering
    /// the STATUS report until x < RX_Highest_Status or x >= RX_Next + AM_Window_Size." In LTE, the variables
    /// are VR(MS) and VR(MR). A PDU above the window is discarded, so [`update`](Self::update) does not have
    /// to test the upper bound.
    pub(in crate::rlc) fn handle_poll(&mut self, sn: u64, is_discarded: bool) {
        if is_discarded {
            self.is_triggered = true;
        } else {
            self.delayed_polls.insert(sn);
        }
    }

    /// Triggers a report if a delayed poll is below `highest_status`, which is RX_Highest_Status or VR(MS).
    pub(in crate::rlc) fn update(&mut self, highest_status: u64) {
        while self.delayed_polls.first().is_some_and(|sn| *sn < highest_status) {
            self.delayed_polls.pop_first();
            self.is_triggered = true;
        }
    }

    pub(in crate::rlc) fn is_due(&self) -> bool {
        self.is_triggered && self.prohibited_until.is_none()
    }

    /// Handles the submission of a STATUS PDU, which starts t-StatusProhibit.
    pub(in crate::rlc) fn submit(&mut self, now: Instant) {
        self.is_triggered = false;
        self.prohibited_until =
            Some(now + self.t_status_prohibit).filter(|_| !self.t_status_prohibit.is_zero());
    }

    pub(in crate::rlc) fn handle_deadline(&mut self, now: Instant) {
        self.prohibited_until = self.prohibited_until.filter(|at| *at > now);
    }

    pub(in crate::rlc) fn next_deadline(&self) -> Option<Instant> {
        self.prohibited_until
    }
}
