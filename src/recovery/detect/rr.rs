//! RR-TCP (Zhang, Karp, Floyd, Peterson, "RR-TCP: A Reordering-Robust TCP with DSACK", ICNP 2003; one of P3's
//! differentiators, §II-A): DupThresh follows the reordering that the path has shown.
//!
//! Each segment that was overtaken and arrived gives a length: the DupThresh with which it would not have been taken
//! for lost. If it was sent again, only a D-SACK proves that it was not lost. DupThresh is the length that the share FA
//! of them does not exceed (the false-fast-retransmit avoidance ratio, `fa-ratio`, 90 %), at least 3, and at most as
//! many duplicate ACKs as the window can bring. While it is above 3, each duplicate ACK is answered with a new segment
//! (the paper's extended Limited Transmit), at most a window of them.
//!
//! Until the first D-SACK this is `three-dupacks`: shorter lengths do not raise the threshold. Without SACK there is
//! no D-SACK, and `three-dupacks` takes its place. What a false fast retransmit has cost the window comes back only
//! with `dsack` or `eifel`.
//!
//! Choice: the paper moves FA by weighing the cost of timeouts, idle time and false retransmits. Here a timeout that
//! three duplicate ACKs would have avoided takes 10 points off it, and each false retransmit gives one back: a
//! timeout costs about as much as ten false retransmits.
//! Choice: the last 256 lengths count (the paper: 1000).

use std::collections::VecDeque;

use super::reordering::{Reordering, within_window};
use super::three_dupacks::judge;
use super::{Detect, Traits, Verdict};
use crate::recovery::parameter::{Given, Parameter};
use crate::recovery::{Ack, Departure, View};

/// This many lengths are remembered.
const LENGTHS: usize = 256;
/// What one of them takes off FA or gives back, in points (percent).
const TIMEOUT: f64 = 10.0;
const FALSE_RETRANSMIT: f64 = 1.0;

pub(crate) const FA_RATIO: Parameter = Parameter::number(
    "fa-ratio",
    (10.0, 100.0, "%"),
    "rr: share of reordered segments that are not to be retransmitted (90)",
    "Zhang et al. 2003",
);

/// RR-TCP (Zhang et al. 2003): DupThresh follows the reordering that the path has shown.
#[derive(Debug)]
pub(crate) struct Rr {
    /// The share of reordered segments that is not to be sent again, in percent.
    fa_ratio: f64,
    reordering: Reordering,
    /// The newest first.
    lengths: VecDeque<u32>,
    /// What timeouts have taken off FA, in points.
    off: f64,
    /// The length at FA.
    length: u32,
}

impl Rr {
    pub(crate) fn new(given: &Given<'_>) -> Self {
        Self {
            fa_ratio: given.number(&FA_RATIO).unwrap_or(90.0),
            reordering: Reordering::default(),
            lengths: VecDeque::new(),
            off: 0.0,
            length: 0,
        }
    }

    fn learn(&mut self, length: u32) {
        self.lengths.truncate(LENGTHS - 1);
        self.lengths.push_front(length);
        self.update();
    }

    fn update(&mut self) {
        let fa = (self.fa_ratio - self.off).clamp(0.0, 100.0) / 100.0;
        let mut sorted = Vec::from_iter(self.lengths.iter().copied());
        sorted.sort_unstable();
        let index = (fa * sorted.len() as f64).ceil() as usize;
        self.length = sorted.get(index.saturating_sub(1)).copied().unwrap_or(0);
    }

    /// It waits for more duplicate ACKs than the ordinary detector.
    fn is_patient(&self) -> bool {
        self.length > 3
    }

    fn threshold(&self, view: &View<'_>) -> u32 {
        within_window(view, self.length)
    }
}

impl Detect for Rr {
    fn name(&self) -> &'static str {
        "rr"
    }

    fn traits(&self) -> Traits {
        let keeps_flowing = self.is_patient();
        Traits { needs_sack: true, mistakes_reordering: false, keeps_flowing, ..Traits::default() }
    }

    fn on_sent(&mut self, _view: &View<'_>, departure: &Departure) {
        self.reordering.on_sent(departure);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        let overtaken = self.reordering.on_ack(view, ack);
        if let Some(length) = overtaken.in_time {
            self.learn(length);
        }
        if let Some(length) = overtaken.in_vain {
            self.off = (self.off - FALSE_RETRANSMIT).max(0.0);
            self.learn(length);
        }
        judge(view, ack, self.threshold(view))
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        if view.cc.dupacks() >= view.knobs.dup_thresh {
            self.off = (self.off + TIMEOUT).min(self.fa_ratio);
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
