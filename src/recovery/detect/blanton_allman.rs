//! Blanton and Allman, "On Making TCP More Robust to Packet Reordering" (CCR 2002; one of P3's differentiators,
//! §II-A): each fast retransmit that a D-SACK proves false raises DupThresh.
//!
//! It rises by one; or, with `ba-average`, to the average of what it is and what would have been needed; or, with
//! `ba-ewma`, to an exponentially weighted moving average of what was needed. A timeout brings it back to 3. It is at
//! most as many duplicate ACKs as the window can bring, and while it is above 3 each duplicate ACK below it is answered
//! with a new segment (their extension of Limited Transmit).
//!
//! Until the first D-SACK this is `three-dupacks`. If there is no SACK, and so no D-SACK, `three-dupacks` takes its
//! place. The paper also restores the window after a false fast retransmit, by slow start up to what it was: here that
//! is the answer `dsack` to another question, to be named beside this one.
//!
//! Choice: the gain of the moving average is 1/4, which the paper leaves as a parameter.

use super::reordering::{Reordering, within_window};
use super::three_dupacks::judge;
use super::{Detect, Traits, Verdict};
use crate::recovery::parameter::{Given, Parameter};
use crate::recovery::{Ack, Departure, View};

pub(crate) const AVERAGE: Parameter = Parameter::word(
    "ba-average",
    "step of the threshold",
    "blanton-allman: DupThresh moves half way to the value that was needed",
    "Blanton and Allman 2002",
);

pub(crate) const EWMA: Parameter = Parameter::word(
    "ba-ewma",
    "step of the threshold",
    "blanton-allman: DupThresh moves a quarter of the way",
    "Blanton and Allman 2002",
);

const GAIN: f64 = 0.25;

/// How a false fast retransmit raises DupThresh.
#[derive(Clone, Copy, Debug)]
enum Raise {
    ByOne,
    /// Half the way to what would have been needed.
    Average,
    /// A quarter of the way.
    Ewma,
}

/// Blanton and Allman 2002: DupThresh rises with each false fast retransmit.
#[derive(Debug)]
pub(crate) struct BlantonAllman {
    raise: Raise,
    reordering: Reordering,
    /// DupThresh, where it is not the ordinary one.
    raised: Option<f64>,
}

impl BlantonAllman {
    pub(crate) fn new(given: &Given<'_>) -> Self {
        let raise = if given.has(&AVERAGE) {
            Raise::Average
        } else if given.has(&EWMA) {
            Raise::Ewma
        } else {
            Raise::ByOne
        };
        Self { raise, reordering: Reordering::default(), raised: None }
    }

    fn learn(&mut self, view: &View<'_>, needed: u32) {
        let dup_thresh = self.raised.unwrap_or_else(|| f64::from(view.knobs.dup_thresh));
        let needed = f64::from(needed);
        self.raised = Some(match self.raise {
            Raise::ByOne => dup_thresh + 1.0,
            Raise::Average => (dup_thresh + needed) / 2.0,
            Raise::Ewma => dup_thresh + GAIN * (needed - dup_thresh),
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

    fn traits(&self) -> Traits {
        Traits {
            needs_sack: true,
            mistakes_reordering: false,
            keeps_flowing: self.raised.is_some(),
            ..Traits::default()
        }
    }

    fn on_sent(&mut self, _view: &View<'_>, departure: &Departure) {
        self.reordering.on_sent(departure);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        if let Some(needed) = self.reordering.on_ack(view, ack).in_vain {
            self.learn(view, needed);
        }
        judge(view, ack, self.threshold(view))
    }

    fn on_timeout(&mut self, _view: &View<'_>) {
        self.raised = None;
    }

    fn answered_dupacks(&self, view: &View<'_>) -> Option<u32> {
        self.raised.is_some().then(|| self.threshold(view) - 1)
    }

    fn dup_thresh(&self, view: &View<'_>) -> u32 {
        self.threshold(view)
    }
}

#[cfg(test)]
mod tests;
