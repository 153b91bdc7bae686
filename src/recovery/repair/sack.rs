//! SACK-based recovery (RFC 6675): the scoreboard shows the lost segments, and `pipe` limits the data in
//! flight.

use super::{Entry, Repair, RepairStep};
use crate::flight::Amount;
use crate::profile::recovery::{PartialAckDeflation, PartialAckTimer};
use crate::recovery::parameter::{Arguments, Parameter};
use crate::recovery::{Ack, RecoveryState, Transmission, TransmissionKind, View};

pub(crate) const NO_RESCUE: Parameter = Parameter::word(
    "no-rescue",
    "rescue retransmission",
    "sack: no rescue retransmission of the highest segment",
    "RFC 6675 §4 NextSeg rule 4",
);

#[derive(Debug, Default)]
pub(crate) struct Sack {
    rescue_rule: RescueRule,
    /// HighRxt: one past the highest offset retransmitted in this recovery.
    high_rxt: u64,
    /// RescueRxt: the rescue retransmission of this recovery was sent. Only one is allowed (NextSeg rule 4).
    rescued: bool,
    /// The last choice of rule 4. The window may still delay it.
    rescue: Option<u64>,
    seen_partial: bool,
}

/// Whether NextSeg rule 4, a SHOULD, applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum RescueRule {
    #[default]
    On,
    Off,
}

impl Sack {
    pub(crate) fn new(arguments: &Arguments<'_>) -> Self {
        let rescue_rule = if arguments.has(&NO_RESCUE) { RescueRule::Off } else { RescueRule::On };
        Self { rescue_rule, ..Self::default() }
    }
}

impl Repair for Sack {
    fn may_enter(&self, view: &View<'_>) -> bool {
        // §5.1: after a timeout, no new episode begins before RecoveryPoint is acknowledged.
        view.cc.recover.is_none_or(|recover| view.flight.una() >= recover)
    }

    fn on_loss(&mut self, view: &View<'_>) -> Entry {
        // §5 step 4: recovery begins with a retransmission of the first segment, which then sets HighRxt.
        self.high_rxt = view.flight.una();
        self.rescued = false;
        self.seen_partial = false;
        Entry::Recover { inflation: 0.0 }
    }

    fn on_recovery_ack(&mut self, view: &View<'_>, ack: &Ack) -> RepairStep {
        if !ack.advances() {
            return RepairStep::Wait;
        }
        // §5 step A: a cumulative ACK beyond RecoveryPoint ends the loss recovery.
        if view.cc.recover.is_none_or(|recover| view.flight.una() >= recover) {
            return RepairStep::Exit { inflates: false };
        }
        // §5 step C sends the retransmissions. The timer restarts according to RFC 6582 §3.2 step 3.
        let first = !std::mem::replace(&mut self.seen_partial, true);
        RepairStep::Partial {
            resend_head: false,
            deflation: PartialAckDeflation::All,
            restart_timer: first
                || view.rules.fast_recovery.partial_ack_timer == PartialAckTimer::SlowButSteady,
        }
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        // §5.1: a timeout terminates the loss recovery, and so also its rescue retransmission.
        self.high_rxt = view.flight.una();
        self.rescued = true;
    }

    fn on_sent(&mut self, _view: &View<'_>, transmission: &Transmission) {
        if self.rescue.take_if(|start| *start == transmission.start).is_some() {
            // Rule 4: HighRxt must not be updated.
            self.rescued = true;
        } else if transmission.kind != TransmissionKind::New {
            self.high_rxt = self.high_rxt.max(transmission.end);
        }
    }

    fn in_flight(&self, view: &View<'_>) -> Amount {
        match view.cc.state() {
            // §5 step 3.3: with Limited Transmit, `pipe` counts against the window. Without it, FlightSize
            // does (RFC 5681).
            RecoveryState::Open | RecoveryState::Cwr
                if !view.rules.detection.limited_transmit && !view.flight.has_rewound() =>
            {
                view.flight.outstanding()
            }
            _ => view.flight.pipe(),
        }
    }

    /// NextSeg() rule 1: the lowest segment that is lost and not yet retransmitted.
    fn next(&mut self, view: &View<'_>) -> Option<u64> {
        self.rescue = None;
        view.flight.first_lost().map(|s| s.start)
    }

    fn next_without_new_data(&mut self, view: &View<'_>) -> Option<u64> {
        if view.cc.state() != RecoveryState::Recovery {
            return None;
        }
        let (una, recover) = (view.flight.una(), view.cc.recover?);
        // Rule 3: a segment that is not known to be lost, below the highest SACKed one.
        let highest_sacked = view.flight.sacked_ranges().last().map_or(una, |r| r.end);
        if self.high_rxt < highest_sacked
            && let Some(segment) = view.flight.first_unsacked_from(self.high_rxt.max(una))
            && segment.end <= highest_sacked
        {
            return Some(segment.start);
        }
        // Rule 4: once per recovery, the highest segment in flight, if it is below RecoveryPoint.
        if self.rescue_rule == RescueRule::On && !self.rescued && una < recover {
            let last = view.flight.last_in_flight()?;
            if last.end <= recover {
                self.rescue = Some(last.start);
                return self.rescue;
            }
        }
        None
    }
}
