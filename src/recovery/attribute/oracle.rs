//! The ideal differentiator (Lai et al. 2013, §II-B 2), which "can fully and promptly differentiate among
//! congestive loss, non-congestive loss, and packet reordering". It reads the ground truth ([`Truth`]), so it
//! is an upper bound for attribution algorithms and not an algorithm itself. It works only in virtual time.
//!
//! One drop explains one detected loss. If a segment is declared lost but was not dropped since it was last
//! declared lost, it was only reordered. This is not a sign of congestion either.
//!
//! Choice: At a timeout, the ground truth about the first outstanding segment decides. The paper's rate
//! adaptation (1) has no timeouts.
//!
//! Until ground truth is available, every loss is a sign of congestion.

use airwire::Cause;

use super::Attribute;
use crate::recovery::{Ack, Truth, View};

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    has_truth: bool,
    /// Start, end and cause of each dropped segment, oldest first.
    dropped: Vec<(u64, u64, Cause)>,
}

impl Attribute for Oracle {
    fn on_truth(&mut self, truth: Truth) {
        match truth {
            Truth::Begins => self.has_truth = true,
            Truth::Lost { offset, len, cause } => self.dropped.push((offset, offset + len, cause)),
        }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) {
        if ack.advances() {
            let una = view.flight.una();
            self.dropped.retain(|(_, end, _)| *end > una);
        }
    }

    fn cause(&mut self, _view: &View<'_>, lost: u64) -> Option<(Cause, &'static str)> {
        if !self.has_truth {
            return Some((Cause::Congestion, "no ground truth available"));
        }
        let covers = |(start, end, _): &(u64, u64, Cause)| (*start..*end).contains(&lost);
        let latest = self.dropped.iter().rfind(|dropped| covers(dropped)).map(|(.., cause)| *cause);
        self.dropped.retain(|dropped| !covers(dropped));
        Some(match latest {
            Some(Cause::Congestion) => (Cause::Congestion, "dropped by a queue"),
            Some(Cause::Radio) => (Cause::Radio, "lost on the radio link"),
            None => (Cause::Radio, "it was not lost"),
        })
    }

    fn judges_timeouts(&self) -> bool {
        self.has_truth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::testing::{BareSender, RTT};

    fn lost(segment: u64, cause: Cause) -> Truth {
        Truth::Lost { offset: (segment - 1) * 1000, len: 1000, cause }
    }

    /// A window of ten segments, the first of which is declared lost.
    fn sender_after_loss(truths: &[Truth]) -> BareSender {
        let mut sender = BareSender::new("newreno+oracle").under_way(10.0, 8.0, RTT);
        truths.iter().for_each(|truth| sender.recovery.on_truth(*truth));
        sender.wait(RTT).dupacks(3);
        sender
    }

    #[test]
    fn only_congestion_loss_halves_window() {
        assert_eq!(sender_after_loss(&[Truth::Begins, lost(1, Cause::Radio)]).cc().cwnd, 10.0);
        assert_eq!(sender_after_loss(&[Truth::Begins, lost(1, Cause::Congestion)]).cc().ssthresh, 5.0);
    }

    #[test]
    fn reordering_does_not_reduce_window() {
        let sender = sender_after_loss(&[Truth::Begins, lost(7, Cause::Congestion)]);
        assert_eq!(sender.counters().window_reductions, 0);
    }

    #[test]
    fn congestion_at_second_hole_reduces_window() {
        let mut sender =
            sender_after_loss(&[Truth::Begins, lost(1, Cause::Radio), lost(4, Cause::Congestion)]);
        assert_eq!(sender.counters().window_reductions, 0);
        sender.wait(RTT).ack(3);
        assert_eq!(sender.counters().window_reductions, 1);
    }

    #[test]
    fn loss_without_ground_truth_is_congestion() {
        assert_eq!(sender_after_loss(&[]).cc().ssthresh, 5.0);
    }

    #[test]
    fn timeout_after_radio_loss_keeps_ssthresh() {
        for (cause, ssthresh) in [(Cause::Radio, 8.0), (Cause::Congestion, 5.0)] {
            let mut sender = BareSender::new("newreno+oracle").under_way(10.0, 8.0, RTT);
            [Truth::Begins, lost(1, cause)].into_iter().for_each(|truth| sender.recovery.on_truth(truth));
            sender.timeout();
            assert_eq!(sender.cc().ssthresh, ssthresh, "{cause:?}");
        }
    }
}
