//! Reno (RFC 5681 §3.2): fast recovery lasts until the first new ACK.
//!
//! A second loss in the same window begins a second episode and halves the window again. Reno leaves recovery
//! at the first new ACK, even at a partial one. Therefore it needs timeouts where NewReno does not (Pan et
//! al. 2004, Fig. 7).

use super::{Entry, Repair, RepairStep, beyond_recover, until_new_ack};
use crate::recovery::{Ack, Entered, View};

#[derive(Debug, Default)]
pub(crate) struct Reno;

impl Repair for Reno {
    fn may_enter(&self, view: &View<'_>) -> bool {
        !view.rules.fast_recovery.careful_reno && view.cc.last_entry == Some(Entered::ByLossDetection)
            || beyond_recover(view)
    }

    fn on_loss(&mut self, view: &View<'_>) -> Entry {
        // Step 3: the duplicate ACKs, normally three, show how many segments have left the network.
        Entry::Recover { inflation: f64::from(view.cc.dupacks()) }
    }

    fn on_recovery_ack(&mut self, _view: &View<'_>, ack: &Ack) -> RepairStep {
        until_new_ack(ack)
    }
}
