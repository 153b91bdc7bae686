//! RR-TCP (Zhang, Karp, Floyd, Peterson, "RR-TCP: A Reordering-Robust TCP with DSACK", ICNP 2003; Lai et al.
//! 2013, §II-A). Adapts DupThresh to the reordering on the path.
//!
//! Each segment that was overtaken and arrived yields a reordering length: the DupThresh with which it would
//! not have been declared lost. If the segment was retransmitted, only a D-SACK proves that it was not lost.
//! DupThresh is the length that the share FA of all lengths does not exceed (the false-fast-retransmit
//! avoidance ratio, `fa-ratio`, 90 %). It is at least 3 and at most the number of duplicate ACKs that the
//! window can produce. While it is above 3, each duplicate ACK releases a new segment, up to one window (the
//! paper's extended Limited Transmit).
//!
//! Until the first D-SACK, the detector behaves like `three-dupacks`, because shorter lengths do not raise
//! the threshold. Without SACK there are no D-SACKs, and `three-dupacks` replaces it. Only `dsack` or `eifel`
//! restores the window after a spurious fast retransmission.
//!
//! Choice: The paper adapts FA by weighing the costs of timeouts, idle time and spurious retransmissions.
//! Here, a timeout that three duplicate ACKs would have avoided lowers FA by 10 points, and each spurious
//! retransmission raises it by one. So a timeout costs about as much as ten spurious retransmissions.
//!
//! Choice: The last 256 lengths count (1000 in the paper).

use std::collections::VecDeque;

use super::reordering::{Reordering, within_window};
use super::three_dupacks::judge;
use super::{Detect, Traits, Verdict};
use crate::recovery::parameter::{Arguments, Parameter};
use crate::recovery::{Ack, Transmission, View};

/// Number of reordering lengths to remember.
const LENGTHS: usize = 256;
/// Points (percent) by which a timeout lowers FA, and by which a spurious retransmission raises it again.
const TIMEOUT: f64 = 10.0;
const FALSE_RETRANSMIT: f64 = 1.0;

pub(crate) const FA_RATIO: Parameter = Parameter::number(
    "fa-ratio",
    (10.0, 100.0, "%"),
    "rr: share of reordered segments that are not to be retransmitted (90)",
    "Zhang et al. 2003",
);

#[derive(Debug)]
pub(crate) struct Rr {
    /// Share of reordered segments that must not be retransmitted, in percent.
    fa_ratio: f64,
    reordering: Reordering,
    /// Reordering lengths, newest first.
    lengths: VecDeque<u32>,
    /// Points by which timeouts have lowered FA.
    lowered_by: f64,
    /// The length that the share FA of all lengths does not exceed.
    length: u32,
}

impl Rr {
    pub(crate) fn new(arguments: &Arguments<'_>) -> Self {
        Self {
            fa_ratio: arguments.number(&FA_RATIO).unwrap_or(90.0),
            reordering: Reordering::default(),
            lengths: VecDeque::new(),
            lowered_by: 0.0,
            length: 0,
        }
    }

    fn learn(&mut self, length: u32) {
        self.lengths.truncate(LENGTHS - 1);
        self.lengths.push_front(length);
        self.update();
    }

    fn update(&mut self) {
        let fa = (self.fa_ratio - self.lowered_by).clamp(0.0, 100.0) / 100.0;
        let mut sorted = Vec::from_iter(self.lengths.iter().copied());
        sorted.sort_unstable();
        let index = (fa * sorted.len() as f64).ceil() as usize;
        self.length = sorted.get(index.saturating_sub(1)).copied().unwrap_or(0);
    }

    /// Returns whether the detector waits for more duplicate ACKs than the default detector.
    fn is_patient(&self) -> bool {
        self.length > 3
    }

    fn threshold(&self, view: &View<'_>) -> u32 {
        within_window(view, self.length)
    }
}

impl Detect for Rr {
    fn traits(&self) -> Traits {
        let keeps_flowing = self.is_patient();
        Traits { mistakes_reordering: false, keeps_flowing, ..Traits::default() }
    }

    fn on_sent(&mut self, _view: &View<'_>, transmission: &Transmission) {
        self.reordering.on_sent(transmission);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        let overtaken = self.reordering.on_ack(view, ack);
        if let Some(length) = overtaken.in_time {
            self.learn(length);
        }
        if let Some(length) = overtaken.in_vain {
            self.lowered_by = (self.lowered_by - FALSE_RETRANSMIT).max(0.0);
            self.learn(length);
        }
        judge(view, ack, self.threshold(view))
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        if view.cc.dupacks() >= view.rules.detection.dup_thresh {
            self.lowered_by = (self.lowered_by + TIMEOUT).min(self.fa_ratio);
            self.update();
        }
    }

    fn answered_dupacks(&self, view: &View<'_>) -> Option<u32> {
        self.is_patient().then(|| self.threshold(view) - 1)
    }

    fn dup_thresh(&self, view: &View<'_>) -> u32 {
        self.threshold(view)
    }
}

#[cfg(test)]
mod tests;
