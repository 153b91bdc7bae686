//! RED (Floyd, Jacobson: "Random Early Detection Gateways for Congestion Avoidance", 1993). It marks or drops
//! packets on arrival, depending on the average length of the queue. `gentle` is Floyd's recommendation of
//! 2000.
//!
//! This is the "efficient" algorithm of the paper's Fig. 17. One random number for each mark determines the
//! number of packets until the next one, which is uniform between 1 and 1/p_b (Section VII, method 2).
//!
//! Choice: while the transmitter is idle, the average decays in steps of the paper's s, "a typical
//! transmission time for a small packet". Here s is the time that the previous transmission took.
//! Choice: ECN-capable packets are marked even if the average is above `max`, as in the paper and in Linux.
//! RFC 3168 §7 allows routers to drop them.

use airwire::time::{Duration, Instant};

use super::config::RedConfig;
use super::{QueueCounters, RandomNumbers, Verdict};
use crate::maths::pow;

/// The state, with the paper's names.
#[derive(Clone, Debug, Default)]
pub(super) struct Red {
    avg: f64,
    /// Packets since the last mark. `None`: the average is outside the thresholds (-1 in the paper).
    count: Option<u64>,
    /// R of Fig. 17, uniform in [0, 1).
    r: f64,
    /// q_time: the time at which the transmitter became idle.
    idle_since: Option<Instant>,
    last_departure: Option<Instant>,
    /// s: the time that the previous transmission took.
    transmission: Option<Duration>,
}

impl Red {
    pub(super) fn avg(&self) -> f64 {
        self.avg
    }

    /// Decides about an arriving packet. `counters` describes the queue without this packet.
    pub(super) fn arrive(
        &mut self,
        config: &RedConfig,
        now: Instant,
        counters: &QueueCounters,
        random: &mut RandomNumbers,
    ) -> Verdict {
        self.average(config, now, config.min.of(counters));
        let Some(p_b) = self.p_b(config) else {
            self.count = None;
            return Verdict::Pass;
        };
        if p_b >= 1.0 {
            self.count = None;
            return Verdict::Signal;
        }
        match self.count.map(|count| count + 1) {
            Some(count) if count as f64 * p_b >= self.r => {
                self.count = Some(0);
                self.r = random.unit();
                Verdict::Signal
            }
            Some(count) => {
                self.count = Some(count);
                Verdict::Pass
            }
            None => {
                self.count = Some(0);
                self.r = random.unit();
                Verdict::Pass
            }
        }
    }

    /// Updates avg (Section IV).
    fn average(&mut self, config: &RedConfig, now: Instant, waiting: f64) {
        let weight = config.weight.value();
        match self.idle_since.take() {
            Some(since) => {
                let s = self.transmission.filter(|s| !s.is_zero());
                if let Some(s) = s.filter(|_| weight < 1.0) {
                    let m = now.saturating_since(since).as_nanos() as f64 / s.as_nanos() as f64;
                    self.avg *= pow(1.0 - weight, m);
                }
            }
            None => self.avg += weight * (waiting - self.avg),
        }
    }

    /// Returns p_b (Section IV), or `None` if the average is below `min`.
    fn p_b(&self, config: &RedConfig) -> Option<f64> {
        let (min, max, max_p) = (config.min.value(), config.max.value(), config.max_p.value());
        let above = self.avg - max;
        if self.avg < min {
            None
        } else if above < 0.0 {
            Some(max_p * (self.avg - min) / (max - min))
        } else if config.gentle && above < max {
            Some(max_p + (1.0 - max_p) * above / max)
        } else {
            Some(1.0)
        }
    }

    /// Records that the transmitter takes a packet (`took`), or that it finds none and becomes idle.
    pub(super) fn depart(&mut self, now: Instant, took: bool) {
        if let Some(last) = self.last_departure.take() {
            self.transmission =
                Some(now.saturating_since(last)).filter(|time| !time.is_zero()).or(self.transmission);
        }
        if took {
            self.last_departure = Some(now);
        } else if self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
    }
}
