//! TCP Veno (Fu, Liew: *TCP Veno: TCP Enhancement for Transmission over Wireless Access Networks*, IEEE JSAC
//! 21 (2003), §III): Vegas's estimate of the backlog in the bottleneck's queue tells random loss from congestion,
//! and Reno's window takes less back when the loss was random.
//!
//! N = (cwnd/BaseRTT − cwnd/RTT) · BaseRTT. With N ≥ β = 3 the path is full: every other ACK opens the window, and
//! a loss halves it. Below β a loss found by duplicate ACKs is taken for random, and costs a fifth. After a timeout the
//! window does as Reno's (§III B).
//!
//! BaseRTT is forgotten at each loss (§III A), so that other traffic and other routes are noticed. RTT is smoothed
//! with a gain of 1/8.
//!
//! Choice: without a BaseRTT nothing is known, and the window is Reno's. An ECN echo is congestion. A factor
//! (option `beta`) above 4/5 replaces both factors. It needs nothing from the receiver.

use airwire::time::Duration;

use super::{Aimd, Loss, LossKind, Reduction, Window};
use crate::recovery::{Ack, View};

/// With this backlog or more the path is congested, in segments.
const BETA: f64 = 3.0;
/// What a random loss leaves of the window.
const RANDOM_LOSS: f64 = 4.0 / 5.0;

/// TCP Veno (Fu and Liew 2003; P3 §II).
#[derive(Debug, Default)]
pub(crate) struct Veno {
    aimd: Aimd,
    base_rtt: Option<Duration>,
    /// Smoothed round-trip time, in seconds.
    rtt: Option<f64>,
    /// With a full path, the last ACK opened nothing, and the next one may.
    skip: bool,
}

impl Veno {
    /// N, in segments.
    fn backlog(&self, view: &View<'_>) -> Option<f64> {
        let (base_rtt, rtt) = (self.base_rtt?.as_secs_f64(), self.rtt?);
        Some((view.cc.cwnd * (1.0 - base_rtt / rtt)).max(0.0))
    }
}

impl Window for Veno {
    fn name(&self) -> &'static str {
        "veno"
    }

    fn observe(&mut self, _view: &View<'_>, ack: &Ack) {
        let Some(sample) = ack.rtt.filter(|rtt| !rtt.is_zero()) else { return };
        self.base_rtt = Some(self.base_rtt.map_or(sample, |base| base.min(sample)));
        let sample = sample.as_secs_f64();
        self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt + (sample - rtt) / 8.0));
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64> {
        let full = !view.in_slow_start() && self.backlog(view).is_some_and(|n| n >= BETA);
        if ack.advances() && full {
            self.skip = !self.skip;
            if self.skip {
                return None;
            }
        }
        self.aimd.on_ack(view, ack)
    }

    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction {
        let random = loss.kind == LossKind::Duplicates && self.backlog(view).is_some_and(|n| n < BETA);
        self.base_rtt = None;
        let beta = if random { RANDOM_LOSS.max(view.knobs.beta) } else { view.knobs.beta };
        self.aimd.decrease(view, loss, beta)
    }

    fn on_exit(&mut self, view: &View<'_>) -> f64 {
        self.aimd.on_exit(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::testing::BareSender;

    /// A window of 20 segments, of which 20 are acknowledged after `rtt`, when the shortest round trip was 100 ms.
    fn sender(rtt: u64) -> BareSender {
        let mut sender = BareSender::new("veno").under_way(20.0, 10.0, Duration::from_millis(100));
        sender.wait(Duration::from_millis(100)).ack(1);
        // The segments that follow are 100 ms old already when they leave the first window.
        sender.wait(Duration::from_millis(rtt - 100));
        for segment in 2..=20 {
            sender.ack(segment);
        }
        sender
    }

    #[test]
    fn a_loss_while_the_queue_is_short_costs_a_fifth() {
        // RTT → 110 ms after 19 samples: N = 20 · (1 − 100 / 109.2) = 1.7 at the most.
        let mut sender = sender(110);
        let flight = sender.flight.outstanding().segments as f64;
        sender.dupacks(3);
        assert_eq!(sender.cc().ssthresh, 0.8 * flight);
    }

    #[test]
    fn a_loss_while_the_queue_is_long_costs_half() {
        // RTT = 200 − 100 · (7/8)^19 = 192 ms: N = 20 · (1 − 100 / 192) = 9.6.
        let mut sender = sender(200);
        let flight = sender.flight.outstanding().segments as f64;
        sender.dupacks(3);
        assert_eq!(sender.cc().ssthresh, 0.5 * flight);
    }

    #[test]
    fn a_full_path_is_probed_half_as_fast() {
        let grown = |rtt| {
            let mut sender = sender(rtt);
            sender.recovery.put_window(20.0, 10.0);
            sender.wait(Duration::from_millis(rtt));
            let before = sender.cc().cwnd;
            for segment in 21..=40 {
                sender.ack(segment);
            }
            sender.cc().cwnd - before
        };
        // A window of ACKs is one segment, a little less because cwnd grows under way; then half of it.
        let (short, full) = (grown(110), grown(200));
        assert!((0.95..=1.0).contains(&short), "{short}");
        assert!((0.48..=0.5).contains(&full), "{full}");
    }

    #[test]
    fn slow_start_is_not_slowed_down() {
        let mut sender = sender(200);
        sender.recovery.put_window(20.0, 100.0);
        sender.send();
        sender.ack(21);
        sender.ack(22);
        assert_eq!(sender.cc().cwnd, 22.0);
    }

    #[test]
    fn the_shortest_round_trip_is_forgotten_at_a_loss() {
        let mut sender = sender(110);
        sender.dupacks(3);
        let recover = sender.flight.max() / 1000;
        sender.wait(Duration::from_millis(200)).ack(recover);
        // Nothing was sent only once, so there is no sample: a second loss finds nothing known, and halves.
        sender.recovery.put_window(20.0, 10.0);
        sender.send();
        sender.wait(Duration::from_millis(110)).dupacks(3);
        assert_eq!(sender.cc().ssthresh, 10.0);
    }

    #[test]
    fn a_timeout_is_renos() {
        let mut sender = sender(110);
        let flight = sender.flight.outstanding().segments as f64;
        sender.timeout();
        assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), (1.0, 0.5 * flight));
    }
}
