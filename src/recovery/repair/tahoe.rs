//! Tahoe (Jacobson 1988; P0 §2.2): a fast retransmit goes back to the first unacknowledged segment and
//! slow-starts, exactly as a timeout does but without the wait.
//!
//! Nothing that a later cumulative ACK covers is sent again: the pass jumps ahead with SND.UNA.

use super::{Entry, Repair, RepairStep};
use crate::recovery::{Ack, View};

/// Tahoe (Jacobson 1988; P0 §2.2).
#[derive(Debug, Default)]
pub(crate) struct Tahoe;

impl Repair for Tahoe {
    fn name(&self) -> &'static str {
        "tahoe"
    }

    fn on_loss(&mut self, _view: &View<'_>) -> Entry {
        Entry::Restart
    }

    fn keeps_dupacks_at_timeout(&self, view: &View<'_>) -> bool {
        view.knobs.dupacks_survive_timeout
    }

    fn on_recovery_ack(&mut self, _view: &View<'_>, ack: &Ack) -> RepairStep {
        // Tahoe has no fast recovery of its own. After a loss on the radio it does as Reno does.
        if ack.advances() {
            RepairStep::Exit
        } else if ack.duplicate {
            RepairStep::Inflate(1.0)
        } else {
            RepairStep::Wait
        }
    }
}
