//! Vegas as a judge (Brakmo and Peterson 1994; Ni et al. 2002, §3.2). Estimates how many segments of the
//! window wait in queues.
//!
//! Each RTT sample gives f = BaseRTT·(W/BaseRTT − W/RTT): the expected throughput minus the actual
//! throughput, times BaseRTT, the smallest RTT of the connection. If f > β, segments queue up and Vegas would
//! shrink the window, so a loss counts as congestion. If f < α, Vegas would grow the window, and a loss is
//! attributed to the radio link.
//!
//! Choice: α = 1 and β = 3 segments, as in the SIGCOMM paper. Between them Vegas keeps its window, and the
//! judge keeps its last verdict. Before the first sample, every loss counts as congestion.
//!
//! Choice: BaseRTT is measured on data segments only. A SYN is short, and on a slow link it has a smaller RTT
//! than any data segment.
//!
//! For the definition of W, see [`sample`](super::sample). A queue of fewer than α segments is invisible to
//! the judge. It errs in that case, and when other flows fill and drain the queue (Ni et al. 2002, §4.2.2).
//! The RTT includes the receiver's ACK delay, which Ni et al. 2002 leave out (§3.1). The window algorithm of
//! the same name is `vegas-window`.

use airwire::Cause;

use super::Attribute;
use super::sample::Monitor;
use crate::recovery::{Ack, View};

/// Thresholds in segments.
const ALPHA: f64 = 1.0;
const BETA: f64 = 3.0;

#[derive(Debug, Default)]
pub(crate) struct Vegas {
    monitor: Monitor,
    base_rtt: Option<f64>,
    judgement: Option<(Cause, &'static str)>,
}

impl Attribute for Vegas {
    fn on_sent(&mut self, view: &View<'_>) {
        self.monitor.on_sent(view);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) {
        let Some(sample) = self.monitor.on_ack(view, ack) else { return };
        let base_rtt = self.base_rtt.map_or(sample.rtt, |base_rtt| base_rtt.min(sample.rtt));
        self.base_rtt = Some(base_rtt);
        let f = base_rtt * (sample.w / base_rtt - sample.throughput());
        if f > BETA {
            self.judgement = Some((Cause::Congestion, "f > beta: the window builds a queue"));
        } else if f < ALPHA {
            self.judgement = Some((Cause::Radio, "f < alpha: no queue"));
        }
    }

    fn cause(&mut self, _view: &View<'_>, _lost: u64) -> Option<(Cause, &'static str)> {
        self.judgement.or(Some((Cause::Congestion, "no round-trip time measured yet")))
    }
}

#[cfg(test)]
mod tests {
    use airwire::time::Duration;

    use super::*;
    use crate::recovery::attribute::tests::{judged, ms};
    use crate::recovery::testing::BareSender;

    /// BaseRTT is 100 ms: segment 1 took that long under a window of ten segments.
    fn sender() -> BareSender {
        let mut sender = BareSender::new("reno+vegas").under_way(10.0, 8.0, ms(100));
        assert_eq!(sender.wait(ms(100)).ack(1), "11");
        sender
    }

    #[test]
    fn loss_is_radio_below_alpha_congestion_above_beta() {
        // f = 10·(1 − 100/RTT). Segments 1 and 2 were sent together.
        let after = |rtt: u64| {
            let mut sender = sender();
            sender.wait(ms(rtt - 100)).ack(2);
            judged(&mut sender)
        };
        assert_eq!(after(100), Cause::Radio, "f = 0");
        assert_eq!(after(111), Cause::Radio, "f = 0.99");
        assert_eq!(after(142), Cause::Radio, "f = 2.96: the verdict at segment 1 holds");
        assert_eq!(after(143), Cause::Congestion, "f = 3.007");
    }

    #[test]
    fn last_verdict_holds_between_alpha_and_beta() {
        let mut sender = sender();
        // Segments 2 to 10: f = 10·(1 − 100/150) = 3.3. Segments 12 to 20 are sent.
        sender.wait(ms(50)).ack(10);
        // Segment 11 was sent 50 ms earlier, so its RTT is 125 ms and f = 2.
        sender.wait(ms(75)).ack(11);
        assert_eq!(judged(&mut sender), Cause::Congestion);
    }

    #[test]
    fn verdict_returns_to_radio_when_queue_empties() {
        let mut sender = sender();
        sender.wait(ms(50)).ack(10);
        // RTT = 105 ms, f = 0.48.
        sender.wait(ms(55)).ack(11);
        assert_eq!(judged(&mut sender), Cause::Radio);
    }

    #[test]
    fn unused_window_is_replaced_by_flight_size() {
        let mut sender = BareSender::new("reno+vegas");
        sender.written = 6;
        let mut sender = sender.under_way(10.0, 8.0, ms(100));
        sender.wait(ms(100)).ack(1);
        // W = 6, so f = 6·(1 − 100/180) = 2.7. With W = 10 it would be 4.4.
        sender.wait(ms(80)).ack(2);
        assert_eq!(judged(&mut sender), Cause::Radio);
    }

    #[test]
    fn zero_rtt_does_not_divide_by_zero() {
        let mut sender = BareSender::new("reno+vegas").under_way(10.0, 8.0, Duration::from_nanos(1));
        sender.ack(3);
        assert_eq!(judged(&mut sender), Cause::Radio);
    }
}
