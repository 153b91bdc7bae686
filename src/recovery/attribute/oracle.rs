//! The ideal differentiator (P3 §II-B 2): it "can fully and promptly differentiate among congestive loss, non-congestive
//! loss, and packet reordering", because it is told ([`Truth`]). It is no algorithm but a bound for algorithms: what a
//! sender would have whose only error is not to know the future. In virtual time only.
//!
//! One drop explains one detection. A segment that is taken for lost and was not dropped since it was last found lost
//! has come out of order: that is no sign of congestion either.
//!
//! Choice: at a timeout the truth about the first segment outstanding counts. The paper's rate adaptation (1) has no
//! timeouts.
//!
//! As long as nobody has begun to tell, every loss is a sign of congestion.

use airwire::Cause;

use super::Attribute;
use crate::recovery::{Ack, Truth, View};

/// The ideal differentiator (P3 §II-B 2).
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    is_told: bool,
    /// Beginning, end and cause of what was dropped, the latest last.
    dropped: Vec<(u64, u64, Cause)>,
}

impl Attribute for Oracle {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn on_truth(&mut self, truth: Truth) {
        match truth {
            Truth::Begins => self.is_told = true,
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
        if !self.is_told {
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
        self.is_told
    }
}

#[cfg(test)]
mod tests {
    use airwire::time::Duration;

    use super::*;
    use crate::recovery::testing::BareSender;

    const RTT: Duration = Duration::from_millis(100);

    fn lost(segment: u64, cause: Cause) -> Truth {
        Truth::Lost { offset: (segment - 1) * 1000, len: 1000, cause }
    }

    /// A window of ten, of which the first is found lost.
    fn after(truths: &[Truth]) -> BareSender {
        let mut sender = BareSender::new("newreno+oracle").under_way(10.0, 8.0, RTT);
        truths.iter().for_each(|truth| sender.recovery.tell(*truth));
        sender.wait(RTT).dupacks(3);
        sender
    }

    #[test]
    fn the_radio_costs_nothing_and_a_queue_costs_half() {
        assert_eq!(after(&[Truth::Begins, lost(1, Cause::Radio)]).cc().cwnd, 10.0);
        assert_eq!(after(&[Truth::Begins, lost(1, Cause::Congestion)]).cc().ssthresh, 5.0);
    }

    #[test]
    fn what_has_only_come_out_of_order_costs_nothing() {
        let sender = after(&[Truth::Begins, lost(7, Cause::Congestion)]);
        assert_eq!(sender.recovery.counters().window_reductions, 0);
    }

    #[test]
    fn a_further_hole_that_a_queue_has_made_costs_half() {
        let mut sender = after(&[Truth::Begins, lost(1, Cause::Radio), lost(4, Cause::Congestion)]);
        assert_eq!(sender.recovery.counters().window_reductions, 0);
        sender.wait(RTT).ack(3);
        assert_eq!(sender.recovery.counters().window_reductions, 1);
    }

    #[test]
    fn while_nobody_tells_every_loss_is_congestion() {
        assert_eq!(after(&[]).cc().ssthresh, 5.0);
    }

    #[test]
    fn a_timeout_for_what_the_radio_lost_keeps_the_threshold() {
        for (cause, ssthresh) in [(Cause::Radio, 8.0), (Cause::Congestion, 5.0)] {
            let mut sender = BareSender::new("newreno+oracle").under_way(10.0, 8.0, RTT);
            [Truth::Begins, lost(1, cause)].into_iter().for_each(|truth| sender.recovery.tell(truth));
            sender.timeout();
            assert_eq!(sender.cc().ssthresh, ssthresh, "{cause:?}");
        }
    }
}
