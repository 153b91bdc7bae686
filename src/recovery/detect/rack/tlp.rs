//! The tail loss probe (RFC 8985 §7). The last segment has no successor whose SACK could reveal its loss.
//!
//! Choice: A probe is sent after 10 ms at the earliest, as in the first draft of TLP. Linux adds 2 ms to two round
//! trips instead, and counts ticks (tcp_schedule_loss_probe()).
//!
//! Choice: If the probe repairs a loss (§7.4.2, case 2), the window is reduced from the FlightSize when the
//! probe was sent.

use airwire::time::{Duration, Instant};

use super::TIMEOUT_MIN;
use crate::profile::jiffies;
use crate::profile::recovery::RackDialect;
use crate::recovery::detect::{MAX_ACK_DELAY, MIN_PATIENCE};
use crate::recovery::{Ack, RecoveryState, View};

/// Probe timeout before the first RTT sample.
const FIRST_PTO: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Tlp {
    dialect: RackDialect,
    probe: Probe,
    /// Time at which a probe is due.
    pto: Option<Instant>,
    /// Expiry of the retransmission timer, TCP_RTO_expiration(). It follows the connection's restarts of the
    /// timer.
    rto_expiration: Option<Instant>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Probe {
    #[default]
    None,
    /// A probe must be sent next.
    Wanted,
    /// A probe was sent: TLP.end_seq is set.
    Sent {
        end_seq: u64,
        /// FlightSize when the probe was sent, if it was a retransmission (TLP.is_retrans). `None` if it was
        /// new data.
        retransmitted_flight: Option<f64>,
    },
}

impl Tlp {
    pub(super) fn new(dialect: RackDialect) -> Self {
        Self { dialect, probe: Probe::None, pto: None, rto_expiration: None }
    }

    pub(super) fn pto(&self) -> Option<Instant> {
        self.pto
    }

    /// Returns whether the outstanding probe ends at `end`.
    pub(super) fn is_probed(&self, end: u64) -> bool {
        matches!(self.probe, Probe::Sent { end_seq, .. } if end_seq == end)
    }

    /// Ends the episode of a probe, because the peer has received it twice.
    pub(super) fn end_probe(&mut self) {
        self.probe = Probe::None;
    }

    /// Cancels the probe, because loss recovery begins.
    pub(super) fn cancel(&mut self) {
        *self = Self::new(self.dialect);
    }

    pub(super) fn on_sent(&mut self, view: &View<'_>, new: bool) {
        let rto_expiration = view.now + view.rtt.rto().get();
        if self.probe == Probe::Wanted {
            let retransmitted_flight = (!new).then(|| view.flight_size());
            self.probe = Probe::Sent { end_seq: view.flight.max(), retransmitted_flight };
            self.rto_expiration = Some(rto_expiration);
            return;
        }
        if view.flight.len() == 1 {
            self.rto_expiration = Some(rto_expiration);
        }
        if new {
            self.schedule(view, self.rto_expiration(view));
        }
    }

    /// Returns the FlightSize when the probe was sent, if this ACK shows that the probe repaired a loss.
    pub(super) fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64> {
        if self.probe == Probe::Wanted {
            self.probe = Probe::None;
        }
        let repaired = self.detect_loss(view, ack);
        if ack.advances() {
            self.rto_expiration = Some(view.now + view.rtt.rto().get());
            self.schedule(view, self.rto_expiration);
        } else if !self.may_schedule(view) {
            self.pto = None;
        }
        repaired
    }

    /// Returns whether a probe is due. If so, it must be sent next.
    pub(super) fn is_due(&mut self, view: &View<'_>) -> bool {
        let is_due = self.pto.take_if(|pto| *pto <= view.now).is_some();
        if !is_due || self.probe != Probe::None || !self.may_schedule(view) {
            return false;
        }
        self.probe = Probe::Wanted;
        true
    }

    fn rto_expiration(&self, view: &View<'_>) -> Option<Instant> {
        match self.dialect {
            RackDialect::Rfc8985 => self.rto_expiration,
            // tcp_rto_delta_us()
            RackDialect::Linux => view.flight.head().map(|head| head.last_sent + view.rtt.rto().get()),
        }
    }

    /// Checks the conditions for scheduling a probe (§7.2).
    fn may_schedule(&self, view: &View<'_>) -> bool {
        let is_free = match self.dialect {
            RackDialect::Rfc8985 => self.probe == Probe::None,
            RackDialect::Linux => self.probe != Probe::Wanted,
        };
        is_free
            && !view.flight.is_empty()
            && view.flight.sacked().segments == 0
            && matches!(view.cc.state(), RecoveryState::Open | RecoveryState::Cwr)
    }

    /// Schedules a probe (§7.2, TLP_calc_PTO()).
    fn schedule(&mut self, view: &View<'_>, rto_expiration: Option<Instant>) {
        self.pto = None;
        if !self.may_schedule(view) {
            return;
        }
        let waits_for_ack = view.flight.len() == 1;
        let mut wait = match (view.rtt.srtt(), self.dialect) {
            (None, _) => FIRST_PTO,
            (Some(srtt), RackDialect::Rfc8985) => (srtt * 2).max(MIN_PATIENCE),
            (Some(srtt), RackDialect::Linux) if waits_for_ack => srtt * 2,
            (Some(srtt), RackDialect::Linux) => srtt * 2 + TIMEOUT_MIN,
        };
        if waits_for_ack && view.rtt.srtt().is_some() {
            wait += MAX_ACK_DELAY;
        }
        let pto = match self.dialect {
            RackDialect::Rfc8985 => view.now + wait,
            RackDialect::Linux => jiffies::timer(jiffies::ticks(view.now) + jiffies::ticks_in(wait)),
        };
        self.pto = Some(rto_expiration.map_or(pto, |rto| pto.min(rto.max(view.now))));
    }

    /// Checks whether the probe repaired a loss (§7.4.2, TLP_process_ack()).
    fn detect_loss(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64> {
        let Probe::Sent { end_seq, retransmitted_flight } = self.probe else { return None };
        let una = view.flight.una();
        if una < end_seq {
            return None;
        }
        let Some(flight) = retransmitted_flight else {
            self.probe = Probe::None;
            return None;
        };
        // Case 1: the original and the probe have arrived.
        if ack.dsack.is_some_and(|(_, right)| right == end_seq) {
            self.probe = Probe::None;
            return None;
        }
        // Case 2: only the original or only the probe has arrived. Otherwise, the receiver would have
        // reported the duplicate by now.
        if una > end_seq {
            self.probe = Probe::None;
            return Some(flight);
        }
        // Case 3: a receiver without D-SACK answers a duplicate segment with a duplicate ACK that carries no
        // SACK information.
        if ack.repeats && ack.newly_sacked.bytes == 0 && ack.dsack.is_none() {
            self.probe = Probe::None;
        }
        None
    }
}
