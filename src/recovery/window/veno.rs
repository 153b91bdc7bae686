//! TCP Veno (Fu, Liew: *TCP Veno: TCP Enhancement for Transmission over Wireless Access Networks*, IEEE JSAC
//! 21 (2003), §III): the backlog in the bottleneck's queue, estimated as in Vegas, distinguishes random loss
//! from congestion. A random loss takes less from Reno's window.
//!
//! N = (cwnd/BaseRTT − cwnd/RTT) · BaseRTT. With N ≥ β = 3 the path is full: every other ACK opens the
//! window, and a loss halves it. Below β, a loss found by duplicate ACKs counts as random and takes a fifth.
//! After a timeout the window behaves like Reno's (§III B).
//!
//! BaseRTT is reset at each loss (§III A), to adapt to other traffic and other routes. RTT is smoothed with a
//! gain of 1/8.
//!
//! - Choice: without a BaseRTT the window behaves like Reno's.
//! - Choice: an ECN echo is congestion.
//! - Choice: a factor (option `beta`) above 4/5 replaces both factors.
//!
//! The receiver needs no special support.

use airwire::time::Duration;

use super::{Aimd, Loss, LossKind, Reduction, Window};
use crate::recovery::{Ack, View};

/// Minimum backlog of a congested path, in segments.
const BETA: f64 = 3.0;
/// Share of the window that is left after a random loss.
const RANDOM_LOSS: f64 = 4.0 / 5.0;

#[derive(Debug, Default)]
pub(crate) struct Veno {
    aimd: Aimd,
    base_rtt: Option<Duration>,
    /// Smoothed round-trip time, in seconds.
    rtt: Option<f64>,
    /// On a full path: the last ACK did not open the window, so the next one may.
    skip: bool,
}

impl Veno {
    /// Returns N, in segments.
    fn backlog(&self, view: &View<'_>) -> Option<f64> {
        let (base_rtt, rtt) = (self.base_rtt?.as_secs_f64(), self.rtt?);
        Some((view.cc.cwnd * (1.0 - base_rtt / rtt)).max(0.0))
    }
}

impl Window for Veno {
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
        let random = loss.kind == LossKind::Detected && self.backlog(view).is_some_and(|n| n < BETA);
        self.base_rtt = None;
        let beta = if random { RANDOM_LOSS.max(view.rules.decrease.beta) } else { view.rules.decrease.beta };
        self.aimd.decrease(view, loss, beta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::testing::{BareSender, RTT};

    /// Returns a sender with a window of 20 segments, which were acknowledged after `rtt` milliseconds. The
    /// minimum round-trip time was 100 ms.
    fn sender(rtt: u64) -> BareSender {
        let mut sender = BareSender::new("veno").under_way(20.0, 10.0, RTT);
        sender.wait(RTT).ack(1);
        // 100 ms have already passed since the remaining segments of the first window were sent.
        sender.wait(Duration::from_millis(rtt - 100));
        for segment in 2..=20 {
            sender.ack(segment);
        }
        sender
    }

    #[test]
    fn loss_with_short_queue_reduces_by_fifth() {
        // RTT → 110 ms after 19 samples: N = 20 · (1 − 100 / 109.2) = 1.7 at most.
        let mut sender = sender(110);
        let flight = sender.flight.outstanding().segments as f64;
        sender.dupacks(3);
        assert_eq!(sender.cc().ssthresh, 0.8 * flight);
    }

    #[test]
    fn loss_with_long_queue_halves_window() {
        // RTT = 200 − 100 · (7/8)^19 = 192 ms: N = 20 · (1 − 100 / 192) = 9.6.
        let mut sender = sender(200);
        let flight = sender.flight.outstanding().segments as f64;
        sender.dupacks(3);
        assert_eq!(sender.cc().ssthresh, 0.5 * flight);
    }

    #[test]
    fn long_queue_halves_window_growth() {
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
        // A window of ACKs adds one segment, a little less because cwnd grows in the meantime. On a full path
        // it adds half of that.
        let (short, full) = (grown(110), grown(200));
        assert!((0.95..=1.0).contains(&short), "{short}");
        assert!((0.48..=0.5).contains(&full), "{full}");
    }

    #[test]
    fn slow_start_ignores_queue() {
        let mut sender = sender(200);
        sender.recovery.put_window(20.0, 100.0);
        sender.send();
        sender.ack(21);
        sender.ack(22);
        assert_eq!(sender.cc().cwnd, 22.0);
    }

    #[test]
    fn loss_resets_base_rtt() {
        let mut sender = sender(110);
        sender.dupacks(3);
        sender.wait(Duration::from_millis(200)).ack_all();
        // The ACK covers a retransmission and yields no sample, so BaseRTT is unknown: a second loss halves
        // the window.
        sender.recovery.put_window(20.0, 10.0);
        sender.send();
        sender.wait(Duration::from_millis(110)).dupacks(3);
        assert_eq!(sender.cc().ssthresh, 10.0);
    }

    #[test]
    fn timeout_response_matches_reno() {
        let mut sender = sender(110);
        let flight = sender.flight.outstanding().segments as f64;
        sender.timeout();
        assert_eq!(sender.window(), (1.0, 0.5 * flight));
    }
}
