//! Reno (RFC 5681 §3.2): fast recovery until the first new ACK.
//!
//! A second loss in the same window is a second event and halves again: leaving recovery at the first new
//! ACK, whatever it covers, is what makes Reno wait for timeouts where NewReno does not (P0 Fig. 7).

use super::{Entry, Repair, Step, beyond_recover};
use crate::recovery::{Ack, Entered, View};

#[derive(Debug, Default)]
pub struct Reno;

impl Repair for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn may_enter(&self, view: &View<'_>) -> bool {
        !view.knobs.careful_reno && view.cc.last_entry == Some(Entered::ByDuplicates) || beyond_recover(view)
    }

    fn on_loss(&mut self, view: &View<'_>) -> Entry {
        // Step 3: three segments have left the network (or as many as there were duplicate ACKs).
        Entry::Recover { inflation: f64::from(view.cc.dupacks) }
    }

    fn on_recovery_ack(&mut self, _view: &View<'_>, ack: &Ack) -> Step {
        match () {
            () if ack.advances() => Step::Exit,
            () if ack.duplicate => Step::Inflate(1.0),
            () => Step::Wait,
        }
    }
}
