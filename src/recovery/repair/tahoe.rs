//! Tahoe (Jacobson 1988; Pan et al. 2004, §2.2): a fast retransmission goes back to the first unacknowledged
//! segment and slow-starts, as after a timeout but without the delay.
//!
//! The pass over the window skips segments that later cumulative ACKs cover, because it moves forward with
//! SND.UNA.

use super::{Entry, Repair, RepairStep};
use crate::recovery::{Ack, View};

/// Tahoe (Jacobson 1988; Pan et al. 2004, §2.2).
#[derive(Debug, Default)]
pub(crate) struct Tahoe;

impl Repair for Tahoe {
    fn on_loss(&mut self, _view: &View<'_>) -> Entry {
        Entry::Restart
    }

    fn on_recovery_ack(&mut self, _view: &View<'_>, ack: &Ack) -> RepairStep {
        // Tahoe has no fast recovery of its own. After a loss on the radio link it behaves like Reno.
        if ack.advances() {
            RepairStep::Exit { inflates: false }
        } else if ack.duplicate {
            RepairStep::Inflate(1.0)
        } else {
            RepairStep::Wait
        }
    }
}
