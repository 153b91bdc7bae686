//! Tahoe (Jacobson 1988; Pan et al. 2004, §2.2): after a fast retransmission, the sender continues in slow
//! start from the first unacknowledged segment, as after a timeout but without the delay.
//!
//! The pass over the window skips segments that later cumulative ACKs cover, because it moves forward with
//! SND.UNA.

use super::{Entry, Repair, RepairStep, until_new_ack};
use crate::recovery::{Ack, View};

#[derive(Debug, Default)]
pub(crate) struct Tahoe;

impl Repair for Tahoe {
    fn on_loss(&mut self, _view: &View<'_>) -> Entry {
        Entry::Restart
    }

    fn on_recovery_ack(&mut self, _view: &View<'_>, ack: &Ack) -> RepairStep {
        // Tahoe enters fast recovery only after a loss on the radio link, and then behaves like Reno.
        until_new_ack(ack)
    }
}
