//! Blanton and Allman, "On Making TCP More Robust to Packet Reordering" (CCR 2002; one of P3's differentiators,
//! §II-A): each fast retransmit that a D-SACK proves false raises DupThresh.
//!
//! By one; or, with `ba-average`, to the average of what it is and what would have been needed; or, with `ba-ewma`, to
//! an exponentially weighted moving average of what was needed. A timeout brings it back to 3. It is at most what the
//! window can bring, and while it is above 3 each duplicate ACK below it is answered with a new segment (their
//! extension of Limited Transmit).
//!
//! Until the first D-SACK this is `three-dupacks`, which takes its place if there is no SACK, and so no D-SACK. They
//! also restore the window after a false fast retransmit, by slow start up to what it was: here that is the answer
//! `dsack` to another question, to be named beside this one.
//!
//! Choice: the gain of the moving average is 1/4, which the paper leaves as a parameter.

use super::reordering::{Reordering, within_window};
use super::three_dupacks::judge;
use super::{Detect, Verdict};
use crate::profile::knobs::DupThreshStep;
use crate::recovery::{Ack, Departure, View};

const GAIN: f64 = 0.25;

#[derive(Debug, Default)]
pub struct BlantonAllman {
    reordering: Reordering,
    /// Where it is not the ordinary one.
    raised: Option<f64>,
}

impl BlantonAllman {
    fn raise(&mut self, view: &View<'_>, needed: u32) {
        let dup_thresh = self.raised.unwrap_or_else(|| f64::from(view.knobs.dup_thresh));
        let needed = f64::from(needed);
        self.raised = Some(match view.knobs.dup_thresh_step {
            DupThreshStep::One => dup_thresh + 1.0,
            DupThreshStep::Average => (dup_thresh + needed) / 2.0,
            DupThreshStep::Ewma => dup_thresh + GAIN * (needed - dup_thresh),
        });
    }

    fn threshold(&self, view: &View<'_>) -> u32 {
        within_window(view, self.raised.map_or(0, |raised| raised.round() as u32))
    }
}

impl Detect for BlantonAllman {
    fn name(&self) -> &'static str {
        "blanton-allman"
    }

    fn needs_sack(&self) -> bool {
        true
    }

    fn mistakes_reordering(&self) -> bool {
        false
    }

    fn on_sent(&mut self, _view: &View<'_>, departure: &Departure) {
        self.reordering.on_sent(departure);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        if let Some(needed) = self.reordering.on_ack(view, ack).in_vain {
            self.raise(view, needed);
        }
        judge(view, ack, self.threshold(view))
    }

    fn on_timeout(&mut self, _view: &View<'_>) {
        self.raised = None;
    }

    fn keeps_flowing(&self) -> bool {
        self.raised.is_some()
    }

    fn answered_dupacks(&self, view: &View<'_>) -> Option<u32> {
        self.keeps_flowing().then(|| self.threshold(view) - 1)
    }

    fn dup_thresh(&self, view: &View<'_>) -> u32 {
        self.threshold(view)
    }
}

#[cfg(test)]
mod tests;
