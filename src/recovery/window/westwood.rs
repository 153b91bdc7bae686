//! TCP Westwood (Casetti, Gerla, Mascolo, Sanadidi, Wang: *TCP Westwood: End-to-End Congestion Control for
//! Wired/Wireless Networks*, Wireless Networks 8 (2002), §2 and §3): the rate at which ACKs return measures
//! the bandwidth of the connection. After a loss, the window is set to fill exactly that bandwidth.
//!
//! Growth is the same as in [`Aimd`]. `BWE` is filtered from one sample per ACK. The coefficients of the filter
//! depend on the time Δ between two samples (Mascolo, Casetti, Gerla, Sanadidi, Wang: *TCP Westwood: Bandwidth
//! Estimation for Enhanced Transport over Wireless Links*, MobiCom 2001, §2.2):
//!
//! > α = (2τ − Δ) / (2τ + Δ), BWE ← α·BWE + (1 − α)·(b_k + b_(k−1)) / 2.
//!
//! This is Tustin's transform of the low-pass filter τ·BWE' + BWE = b. The filter follows its input only with
//! at least two samples per τ (Nyquist). Therefore each time τ/m without an ACK, m ≥ 2, adds a virtual sample
//! of zero. With Δ = τ/10, the filter has the constant coefficients of the published procedure, 19/21 and
//! 1/21. `westwood-constant` selects these.
//!
//! ACKs are counted by the procedure `AckedCount`, so that a cumulative ACK does not count segments again
//! that earlier duplicate ACKs have counted.
//!
//! - Choice: τ = 500 ms and m = 2. After samples of zero, the next sample is still the acknowledged amount
//!   divided by the time since the last ACK. The last step of the filter covers the time since the last zero.
//! - Choice: the filter begins with its first sample. If it began with zero, the first loss of a connection
//!   would be expensive.
//! - Choice: ACKs that arrive at the same time are one sample.
//! - Choice: without a sample or a round-trip time, the reduction is the same as in AIMD. This also applies
//!   to an ECN echo, which a router sends when its queue grows.
//!
//! The receiver needs no special support.

use airwire::time::{Duration, Instant};

use super::aimd::exit_window;
use super::{Aimd, Loss, LossKind, Reduction, Window};
use crate::recovery::parameter::{Arguments, Parameter};
use crate::recovery::{Ack, View};

pub(crate) const TAU: Parameter = Parameter::number(
    "westwood-tau",
    (1.0, 60_000.0, "ms"),
    "westwood: time constant of the bandwidth filter (500)",
    "Mascolo et al. 2001, §2.2",
);

pub(crate) const CONSTANT: Parameter = Parameter::word(
    "westwood-constant",
    TAU.subject,
    "westwood: constant coefficients of the bandwidth filter, 19/21 and 1/21",
    "Casetti et al. 2002, §2",
);

/// m: minimum number of samples per τ.
const M: f64 = 2.0;

#[derive(Debug, Default)]
pub(crate) struct Westwood {
    aimd: Aimd,
    bandwidth: Bandwidth,
    rtt_min: Option<Duration>,
    /// cwnd after the last reduction. ssthresh may be larger.
    reduced_to: Option<f64>,
}

/// The filter that computes BWE from the samples.
#[derive(Debug, Clone, Copy)]
enum Filter {
    /// The coefficients of the procedure, 19/21 and 1/21.
    Constant,
    /// Coefficients that depend on the time between samples, with the time constant τ in seconds.
    TimeVarying { tau: f64 },
}

impl Default for Filter {
    fn default() -> Self {
        Self::TimeVarying { tau: 0.5 }
    }
}

#[derive(Debug, Default)]
struct Bandwidth {
    filter: Filter,
    /// `BWE`, in segments per second.
    bwe: Option<f64>,
    /// b_(k-1).
    last_sample: f64,
    /// t_(k-1).
    last_at: Option<Instant>,
    /// Segments acknowledged at the same moment, after the sample was taken.
    waiting: f64,
    /// Segments that duplicate ACKs have already counted.
    accounted_for: f64,
}

impl Westwood {
    pub(crate) fn new(arguments: &Arguments<'_>) -> Self {
        let filter = match arguments.number(&TAU) {
            _ if arguments.has(&CONSTANT) => Filter::Constant,
            Some(tau) => Filter::TimeVarying { tau: tau / 1e3 },
            None => Filter::default(),
        };
        Self { bandwidth: Bandwidth { filter, ..Bandwidth::default() }, ..Self::default() }
    }
}

impl Filter {
    /// Returns BWE after a sample that comes `time` seconds after the last one.
    fn follow(self, bwe: f64, last: f64, sample: f64, time: f64) -> f64 {
        let Self::TimeVarying { tau } = self else { return 19.0 / 21.0 * bwe + (sample + last) / 21.0 };
        let alpha = |time: f64| (2.0 * tau - time) / (2.0 * tau + time);
        let step = |bwe: f64, last: f64, sample: f64, alpha: f64| {
            alpha * bwe + (1.0 - alpha) * (sample + last) / 2.0
        };
        let due = tau / M;
        let missing = ((time / due).ceil() - 1.0).max(0.0);
        let rest = time - missing * due;
        let (bwe, last) = match missing > 0.0 {
            // Only the first sample of zero follows a nonzero one.
            true => (step(bwe, last, 0.0, alpha(due)) * alpha(due).powf(missing - 1.0), 0.0),
            false => (bwe, last),
        };
        step(bwe, last, sample, alpha(rest))
    }
}

impl Bandwidth {
    fn on_ack(&mut self, now: Instant, acked: f64) {
        let acked = self.acked_count(acked) + self.waiting;
        let Some(last_at) = self.last_at else {
            self.last_at = Some(now);
            return;
        };
        let time = (now - last_at).as_secs_f64();
        if time <= 0.0 {
            self.waiting = acked;
            return;
        }
        let sample = acked / time;
        self.bwe = match self.bwe {
            Some(bwe) => Some(self.filter.follow(bwe, self.last_sample, sample, time)),
            None => Some(sample),
        };
        (self.last_sample, self.last_at, self.waiting) = (sample, Some(now), 0.0);
    }

    /// `AckedCount` (§3): a duplicate ACK counts for one segment that has arrived.
    fn acked_count(&mut self, cumul_ack: f64) -> f64 {
        if cumul_ack <= 0.0 {
            self.accounted_for += 1.0;
            1.0
        } else if cumul_ack <= 1.0 {
            cumul_ack
        } else if self.accounted_for >= cumul_ack {
            self.accounted_for -= cumul_ack;
            1.0
        } else {
            cumul_ack - std::mem::take(&mut self.accounted_for)
        }
    }
}

impl Window for Westwood {
    fn observe(&mut self, view: &View<'_>, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        }
        if ack.advances() || ack.duplicate {
            self.bandwidth.on_ack(view.now, view.segments(ack.acked));
        }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64> {
        self.aimd.on_ack(view, ack)
    }

    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction {
        let estimate = self.bandwidth.bwe.zip(self.rtt_min).filter(|_| loss.kind != LossKind::EcnEcho);
        let reduction = match estimate {
            Some((bwe, rtt_min)) => {
                let Reduction { cwnd, ssthresh } = self.aimd.reduce_to(view, bwe * rtt_min.as_secs_f64());
                Reduction { cwnd: cwnd.min(view.cc.cwnd), ssthresh }
            }
            None => self.aimd.on_loss(view, loss),
        };
        self.reduced_to = (loss.kind == LossKind::Detected).then_some(reduction.cwnd);
        reduction
    }

    fn on_exit(&mut self, view: &View<'_>) -> f64 {
        exit_window(view, self.reduced_to.map_or(view.cc.ssthresh, |cwnd| cwnd.min(view.cc.ssthresh)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::testing::{BareSender, RTT};

    #[test]
    fn filter_uses_published_coefficients() {
        let mut bandwidth = Bandwidth { filter: Filter::Constant, ..Bandwidth::default() };
        let at = Instant::from_millis;
        bandwidth.on_ack(at(0), 2.0);
        assert_eq!(bandwidth.bwe, None, "one ACK does not yield a rate");
        bandwidth.on_ack(at(100), 2.0);
        assert_eq!(bandwidth.bwe, Some(20.0));
        bandwidth.on_ack(at(120), 1.0);
        // b = 1 / 0.02 = 50; 19/21 · 20 + (50 + 20) / 21 = 450 / 21.
        assert!((bandwidth.bwe.unwrap() - 450.0 / 21.0).abs() < 1e-9);
        bandwidth.on_ack(at(120), 2.0);
        assert!((bandwidth.bwe.unwrap() - 450.0 / 21.0).abs() < 1e-9, "no time has passed");
        bandwidth.on_ack(at(170), 1.0);
        // b = (2 + 1) / 0.05 = 60; 19/21 · 450/21 + (60 + 50) / 21 = 24.62585.
        assert!((bandwidth.bwe.unwrap() - 24.62585).abs() < 1e-5);
    }

    #[test]
    fn time_varying_filter_matches_manual_calculation() {
        let filter = Filter::TimeVarying { tau: 0.5 };
        let close = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9, "{value}");
        // Δ = τ/10: the coefficients of the procedure.
        close(filter.follow(20.0, 20.0, 50.0, 0.05), 450.0 / 21.0);
        // Δ = 0.1: α = 0.9 / 1.1.
        close(filter.follow(20.0, 20.0, 50.0, 0.1), (0.9 * 20.0 + 0.2 * 35.0) / 1.1);
        // Δ = 0.6: samples of zero after 0.25 and 0.5 s, each with α = 0.6: 0.6 · 20 + 0.4 · 10 = 16,
        // 0.6 · 16 = 9.6; then Δ = 0.1, after a sample of zero.
        close(filter.follow(20.0, 20.0, 50.0, 0.6), (0.9 * 9.6 + 0.2 * 25.0) / 1.1);
        // After exactly τ/m, no sample is missing.
        close(filter.follow(20.0, 20.0, 50.0, 0.25), 0.6 * 20.0 + 0.4 * 35.0);
    }

    /// Compares the filter with the exact low-pass filter. With samples of 100 per second from time zero on,
    /// that yields 100·(1 − e^(−t/τ)).
    #[test]
    fn time_varying_filter_is_independent_of_sample_rate() {
        let filter = Filter::TimeVarying { tau: 0.5 };
        for steps in [5, 50, 500] {
            let time = 1.0 / f64::from(steps);
            let bwe = (0..steps).fold(0.0, |bwe, _| filter.follow(bwe, 100.0, 100.0, time));
            let exact = 100.0 * (1.0 - (-1.0 / 0.5_f64).exp());
            assert!((bwe / exact - 1.0).abs() < 0.02, "{steps} samples: {bwe}, exactly {exact}");
        }
        // Without an ACK for a second: 100·e^(−t/τ), before the sample that ends the pause.
        let decayed = filter.follow(100.0, 0.0, 0.0, 1.0);
        assert!((decayed / (100.0 * (-1.0 / 0.5_f64).exp()) - 1.0).abs() < 0.05, "{decayed}");
    }

    #[test]
    fn silence_lowers_time_varying_estimate() {
        let ssthresh = |recipe| {
            let mut sender = paced(recipe);
            sender.wait(Duration::from_secs(3)).dupacks(3);
            sender.cc().ssthresh
        };
        assert!(ssthresh("westwood") < 0.5 * ssthresh("westwood+westwood-constant"));
        assert_eq!(ssthresh("westwood"), ssthresh("westwood+westwood-tau=500ms"));
    }

    #[test]
    fn cumulative_ack_excludes_segments_counted_by_dupacks() {
        let mut bandwidth = Bandwidth::default();
        let counted: Vec<f64> =
            [2.0, 0.0, 0.0, 0.0, 6.0, 1.0].map(|acked| bandwidth.acked_count(acked)).into();
        assert_eq!(counted, [2.0, 1.0, 1.0, 1.0, 3.0, 1.0]);
        // There are more duplicate ACKs than the next ACK covers: the rest counts against a later one.
        let counted: Vec<f64> = [0.0, 0.0, 0.0, 2.0, 3.0].map(|acked| bandwidth.acked_count(acked)).into();
        assert_eq!(counted, [1.0, 1.0, 1.0, 1.0, 2.0]);
        // A partial ACK of one segment in between counts in full.
        assert_eq!(bandwidth.acked_count(0.0) + bandwidth.acked_count(1.0), 2.0);
    }

    /// Returns a sender with a window of 20, whose segments are acknowledged one per 10 ms, or 100 per
    /// second.
    fn paced(recipe: &str) -> BareSender {
        let mut sender = BareSender::new(recipe).under_way(20.0, 10.0, RTT);
        sender.wait(RTT);
        for segment in 1..=40 {
            sender.wait(Duration::from_millis(10)).ack(segment);
        }
        sender
    }

    #[test]
    fn loss_sets_window_to_bandwidth_times_min_rtt() {
        let mut sender = paced("westwood");
        assert!(sender.cc().cwnd > 20.0, "{}", sender.cc().cwnd);
        for _ in 0..3 {
            sender.wait(Duration::from_millis(10)).dupacks(1);
        }
        // 100 segments per second times 110 ms, the round-trip time of the first segment acknowledged. Half
        // of the window would be 10.7.
        assert!((sender.cc().ssthresh - 11.0).abs() < 1e-6, "{}", sender.cc().ssthresh);
        assert_eq!(sender.cc().cwnd, sender.cc().ssthresh);
    }

    #[test]
    fn timeout_sets_ssthresh_from_bandwidth_estimate() {
        let mut sender = paced("westwood");
        sender.timeout();
        assert_eq!(sender.cc().cwnd, 1.0);
        assert!((sender.cc().ssthresh - 11.0).abs() < 1e-6, "{}", sender.cc().ssthresh);
    }

    #[test]
    fn loss_keeps_window_below_bandwidth_estimate() {
        let mut sender = paced("westwood");
        sender.recovery.put_window(8.0, 4.0);
        for _ in 0..3 {
            sender.wait(Duration::from_millis(10)).dupacks(1);
        }
        assert_eq!(sender.cc().cwnd, 8.0);
        assert!((sender.cc().ssthresh - 11.0).abs() < 1e-6);
        sender.wait(RTT).ack_all();
        assert!(sender.cc().cwnd <= 8.0, "{} after recovery", sender.cc().cwnd);
    }

    #[test]
    fn loss_without_estimate_matches_aimd() {
        let mut sender = BareSender::new("westwood").under_way(10.0, 8.0, RTT);
        sender.wait(RTT).dupacks(3);
        assert_eq!(sender.window(), (5.0, 5.0));
    }

    #[test]
    fn duplicate_ack_flood_keeps_window_finite() {
        let mut sender = paced("westwood");
        sender.dupacks(10_000);
        sender.wait(Duration::from_nanos(1)).dupacks(10_000);
        sender.wait(RTT).ack_all();
        sender.timeout();
        let cc = sender.cc();
        assert!(
            cc.cwnd >= 1.0 && cc.cwnd.is_finite() && cc.ssthresh >= 2.0 && cc.ssthresh.is_finite(),
            "{cc:?}"
        );
    }
}
