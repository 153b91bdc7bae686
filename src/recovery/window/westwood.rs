//! TCP Westwood (Casetti, Gerla, Mascolo, Sanadidi, Wang: *TCP Westwood: End-to-End Congestion Control for
//! Wired/Wireless Networks*, Wireless Networks 8 (2002), §2 and §3): the rate at which ACKs come back is the
//! bandwidth that the connection has, and after a loss the window is what fills that bandwidth, and no more.
//!
//! Growth is [`Aimd`]'s. `BWE` is filtered from one sample per ACK with the coefficients of the published procedure, 19/21
//! and 1/21. `westwood-tau` takes the filter itself, whose coefficients depend on the time Δ between two samples
//! (Mascolo, Casetti, Gerla, Sanadidi, Wang: *TCP Westwood: Bandwidth Estimation for Enhanced Transport over Wireless
//! Links*, MobiCom 2001, §2.2): α = (2τ − Δ) / (2τ + Δ), BWE ← α·BWE + (1 − α)·(b_k + b_(k−1)) / 2. That is Tustin's
//! transform of the low-pass filter τ·BWE' + BWE = b. It follows its input only if there are samples at least twice in τ
//! (Nyquist), so after each τ/m without an ACK, m ≥ 2, comes a virtual sample of zero. The procedure's coefficients are
//! those of Δ = τ/10.
//!
//! ACKs are counted as in the procedure `AckedCount`, so that a cumulative ACK does not count again what duplicate ACKs
//! before it have counted.
//!
//! Choice: m = 2. After zero samples the next one still is what was acknowledged over the time since the last ACK, and
//! the filter takes its last step over the time since the last zero.
//!
//! Choice: the filter begins with its first sample, not with zero, which would make the first loss of a
//! connection expensive. ACKs that arrive at the same moment are one sample. Without a sample, or without a
//! round-trip time, the reduction is AIMD's; so it is for an ECN echo, which a router sends when its queue
//! grows. It needs nothing from the receiver.

use airwire::time::{Duration, Instant};

use super::aimd::exit_window;
use super::{Aimd, Loss, LossKind, Reduction, Window};
use crate::recovery::parameter::{Given, Parameter};
use crate::recovery::{Ack, View};

pub(crate) const TAU: Parameter = Parameter::number(
    "westwood-tau",
    (1.0, 60_000.0, "ms"),
    "westwood: time constant of a filter that depends on the time between ACKs",
    "Mascolo et al. 2001, §2.2",
);

/// m: so often a sample is due in τ.
const M: f64 = 2.0;

/// TCP Westwood (Casetti et al. 2002; P3 §II).
#[derive(Debug)]
pub(crate) struct Westwood {
    aimd: Aimd,
    bandwidth: Bandwidth,
    rtt_min: Option<Duration>,
    /// cwnd after the last reduction, which ssthresh may exceed.
    reduced_to: f64,
}

/// How BWE follows its samples.
#[derive(Debug, Default, Clone, Copy)]
enum Filter {
    /// The procedure's: 19/21 and 1/21.
    #[default]
    Constant,
    /// By the time between samples, with the time constant τ in seconds.
    TimeVarying { tau: f64 },
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
    /// Segments acknowledged at that very moment, after the sample was taken.
    waiting: f64,
    /// Segments that duplicate ACKs have counted already.
    accounted_for: f64,
}

impl Default for Westwood {
    fn default() -> Self {
        Self {
            aimd: Aimd::default(),
            bandwidth: Bandwidth::default(),
            rtt_min: None,
            reduced_to: f64::INFINITY,
        }
    }
}

impl Westwood {
    pub(crate) fn new(given: &Given<'_>) -> Self {
        let tau = given.number(&TAU);
        let filter = tau.map_or(Filter::Constant, |tau| Filter::TimeVarying { tau: tau / 1e3 });
        Self { bandwidth: Bandwidth { filter, ..Bandwidth::default() }, ..Self::default() }
    }
}

impl Filter {
    /// BWE after a sample, `time` seconds after the last one.
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
            // Only the first sample of zero follows one that is not.
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

    /// `AckedCount` (§3): a duplicate ACK is one segment that has arrived.
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
    fn name(&self) -> &'static str {
        "westwood"
    }

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
        self.reduced_to = if loss.kind == LossKind::Duplicates { reduction.cwnd } else { f64::INFINITY };
        reduction
    }

    fn on_exit(&mut self, view: &View<'_>) -> f64 {
        exit_window(view, view.cc.ssthresh.min(self.reduced_to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::testing::BareSender;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn the_filter_has_the_published_coefficients() {
        let mut bandwidth = Bandwidth::default();
        let at = Instant::from_millis;
        bandwidth.on_ack(at(0), 2.0);
        assert_eq!(bandwidth.bwe, None, "one ACK is no rate");
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
    fn the_time_varying_filter_by_hand() {
        let filter = Filter::TimeVarying { tau: 0.5 };
        let close = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9, "{value}");
        // Δ = τ/10: the procedure's coefficients.
        close(filter.follow(20.0, 20.0, 50.0, 0.05), 450.0 / 21.0);
        // Δ = 0.1: α = 0.9 / 1.1.
        close(filter.follow(20.0, 20.0, 50.0, 0.1), (0.9 * 20.0 + 0.2 * 35.0) / 1.1);
        // Δ = 0.6: samples of zero after 0.25 and 0.5 s, each with α = 0.6: 0.6 · 20 + 0.4 · 10 = 16, 0.6 · 16 = 9.6;
        // then Δ = 0.1, after a sample of zero.
        close(filter.follow(20.0, 20.0, 50.0, 0.6), (0.9 * 9.6 + 0.2 * 25.0) / 1.1);
        // After τ/m exactly nothing is missing.
        close(filter.follow(20.0, 20.0, 50.0, 0.25), 0.6 * 20.0 + 0.4 * 35.0);
    }

    /// The low-pass filter itself, with samples of 100 a second from time zero on: 100·(1 − e^(−t/τ)).
    #[test]
    fn the_time_varying_filter_is_a_low_pass_filter_however_often_it_is_sampled() {
        let filter = Filter::TimeVarying { tau: 0.5 };
        for steps in [5, 50, 500] {
            let time = 1.0 / f64::from(steps);
            let bwe = (0..steps).fold(0.0, |bwe, _| filter.follow(bwe, 100.0, 100.0, time));
            let exact = 100.0 * (1.0 - (-1.0 / 0.5_f64).exp());
            assert!((bwe / exact - 1.0).abs() < 0.02, "{steps} samples: {bwe}, exactly {exact}");
        }
        // Nothing comes for a second: 100·e^(−t/τ), before the sample that ends it.
        let decayed = filter.follow(100.0, 0.0, 0.0, 1.0);
        assert!((decayed / (100.0 * (-1.0 / 0.5_f64).exp()) - 1.0).abs() < 0.05, "{decayed}");
    }

    #[test]
    fn a_sender_that_heard_nothing_for_long_has_little_bandwidth_by_the_clock() {
        let ssthresh = |recipe| {
            let mut sender = paced(recipe);
            sender.wait(Duration::from_secs(3)).dupacks(3);
            sender.cc().ssthresh
        };
        assert!(ssthresh("westwood+westwood-tau=500ms") < 0.5 * ssthresh("westwood"));
    }

    #[test]
    fn a_cumulative_ack_does_not_count_again_what_duplicate_acks_have_counted() {
        let mut bandwidth = Bandwidth::default();
        let counted: Vec<f64> =
            [2.0, 0.0, 0.0, 0.0, 6.0, 1.0].map(|acked| bandwidth.acked_count(acked)).into();
        assert_eq!(counted, [2.0, 1.0, 1.0, 1.0, 3.0, 1.0]);
        // More duplicates than the ACK then covers: the rest waits for the next.
        let counted: Vec<f64> = [0.0, 0.0, 0.0, 2.0, 3.0].map(|acked| bandwidth.acked_count(acked)).into();
        assert_eq!(counted, [1.0, 1.0, 1.0, 1.0, 2.0]);
        // A partial ACK in between, of one segment, is counted as it is.
        assert_eq!(bandwidth.acked_count(0.0) + bandwidth.acked_count(1.0), 2.0);
    }

    /// A window of 20, of which one segment in 10 ms is acknowledged: 100 per second.
    fn paced(recipe: &str) -> BareSender {
        let mut sender = BareSender::new(recipe).under_way(20.0, 10.0, RTT);
        sender.wait(RTT);
        for segment in 1..=40 {
            sender.wait(Duration::from_millis(10)).ack(segment);
        }
        sender
    }

    #[test]
    fn after_a_loss_the_window_is_bandwidth_times_the_shortest_round_trip() {
        let mut sender = paced("westwood");
        assert!(sender.cc().cwnd > 20.0, "{}", sender.cc().cwnd);
        for _ in 0..3 {
            sender.wait(Duration::from_millis(10)).dupacks(1);
        }
        // 100 segments per second in 110 ms, the round trip of the first segment acknowledged: half would be 10.7.
        assert!((sender.cc().ssthresh - 11.0).abs() < 1e-6, "{}", sender.cc().ssthresh);
        assert_eq!(sender.cc().cwnd, sender.cc().ssthresh);
    }

    #[test]
    fn after_a_timeout_it_starts_over_towards_the_same_threshold() {
        let mut sender = paced("westwood");
        sender.timeout();
        assert_eq!(sender.cc().cwnd, 1.0);
        assert!((sender.cc().ssthresh - 11.0).abs() < 1e-6, "{}", sender.cc().ssthresh);
    }

    #[test]
    fn a_window_that_is_smaller_than_the_bandwidth_allows_stays_as_it_is() {
        let mut sender = paced("westwood");
        sender.recovery.put_window(8.0, 4.0);
        for _ in 0..3 {
            sender.wait(Duration::from_millis(10)).dupacks(1);
        }
        assert_eq!(sender.cc().cwnd, 8.0);
        assert!((sender.cc().ssthresh - 11.0).abs() < 1e-6);
        let recover = sender.flight.max() / 1000;
        sender.wait(RTT).ack(recover);
        assert!(sender.cc().cwnd <= 8.0, "{} after recovery", sender.cc().cwnd);
    }

    #[test]
    fn without_an_estimate_it_is_aimd() {
        let mut sender = BareSender::new("westwood").under_way(10.0, 8.0, RTT);
        sender.wait(RTT).dupacks(3);
        assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), (5.0, 5.0));
    }

    #[test]
    fn a_flood_of_duplicate_acks_leaves_finite_numbers() {
        let mut sender = paced("westwood");
        sender.dupacks(10_000);
        sender.wait(Duration::from_nanos(1)).dupacks(10_000);
        let recover = sender.flight.max() / 1000;
        sender.wait(RTT).ack(recover);
        sender.timeout();
        let cc = sender.cc();
        assert!(
            cc.cwnd >= 1.0 && cc.cwnd.is_finite() && cc.ssthresh >= 2.0 && cc.ssthresh.is_finite(),
            "{cc:?}"
        );
    }
}
