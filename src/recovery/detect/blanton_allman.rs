//! Blanton and Allman, "On Making TCP More Robust to Packet Reordering" (CCR 2002; Lai et al. 2013,
//! §II-A). Each fast retransmission that a D-SACK proves spurious raises DupThresh.
//!
//! By default, DupThresh rises by one. With `ba-average` it becomes the average of its current value and the
//! value that would have been needed. With `ba-ewma` it is an exponentially weighted moving average of the
//! needed values. A timeout resets it to 3. It never exceeds the number of duplicate ACKs that the window can
//! produce. While it is raised, each duplicate ACK below it releases a new segment (the paper's extension of
//! Limited Transmit).
//!
//! Until the first D-SACK, the detector behaves like `three-dupacks`. Without SACK there are no D-SACKs, and
//! `three-dupacks` replaces it. After a spurious fast retransmission, the paper also restores the window by
//! slow start up to its old value. Here, the undo algorithm `dsack` does this, if the recipe names it.
//!
//! Choice: The gain of the moving average is 1/4. The paper leaves it as a parameter.

use super::reordering::{Reordering, within_window};
use super::three_dupacks::judge;
use super::{Detect, Traits, Verdict};
use crate::recovery::parameter::{Arguments, Parameter};
use crate::recovery::{Ack, Transmission, View};

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

/// How a spurious fast retransmission raises DupThresh.
#[derive(Clone, Copy, Debug)]
enum Raise {
    ByOne,
    /// Half way to the value that was needed.
    Average,
    /// A quarter of the way to the value that was needed.
    Ewma,
}

#[derive(Debug)]
pub(crate) struct BlantonAllman {
    raise: Raise,
    reordering: Reordering,
    /// DupThresh after a spurious fast retransmission. `None` while the default applies.
    raised: Option<f64>,
}

impl BlantonAllman {
    pub(crate) fn new(arguments: &Arguments<'_>) -> Self {
        let raise = if arguments.has(&AVERAGE) {
            Raise::Average
        } else if arguments.has(&EWMA) {
            Raise::Ewma
        } else {
            Raise::ByOne
        };
        Self { raise, reordering: Reordering::default(), raised: None }
    }

    fn learn(&mut self, view: &View<'_>, needed: u32) {
        let dup_thresh = self.raised.unwrap_or_else(|| f64::from(view.rules.detection.dup_thresh));
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
    fn traits(&self) -> Traits {
        Traits { mistakes_reordering: false, keeps_flowing: self.raised.is_some(), ..Traits::default() }
    }

    fn on_sent(&mut self, _view: &View<'_>, transmission: &Transmission) {
        self.reordering.on_sent(transmission);
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
