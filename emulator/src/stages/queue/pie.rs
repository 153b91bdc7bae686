//! PIE (Pan, Natarajan, Baker, White; RFC 8033). It drops packets on arrival, with a probability that depends
//! on the queueing delay.
//!
//! The implementation has the same optional parts as Linux: ECN (§5.1), de-randomization (§5.4) and the
//! limits to changes of the probability (§5.5). The queueing delay is measured by timestamps, as the waiting
//! time of the packet that left last, so the departure rate (§5.2) is not needed. Active and inactive PIE
//! (§5.3) is left out, as in Linux.
//!
//! Choice: the probability decays by the factor 1 - 1/64 instead of 0.98, which §4.2 allows.
//! Deviation: the burst allowance shrinks at each departure by the time since the previous one, as in Linux,
//! and not by T_UPDATE at each update. It ends up to one T_UPDATE earlier or later.
//! Deviation: §4.1 lets all packets pass if the delay *before* the last update was low. Here, as in Linux,
//! the delay of the packet that left last counts.

use airwire::time::{Duration, Instant};

use super::config::PieConfig;
use super::{QueueCounters, RandomNumbers, Verdict};

/// §4.2, end: above this delay the probability rises faster.
const LONG_DELAY: Duration = Duration::from_millis(250);
/// §5.5: maximum increase of the probability per update…
const MAX_INCREASE: f64 = 0.02;
/// §5.5: …from this probability on.
const INCREASE_LIMITED_FROM: f64 = 0.1;
/// §5.4: no packet is dropped until the probabilities accumulated since the last drop reach this value…
const MIN_ACCU_PROB: f64 = 0.85;
/// §5.4: …and one is dropped in any case when they reach this value.
const MAX_ACCU_PROB: f64 = 8.5;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pie {
    drop_prob: f64,
    accu_prob: f64,
    /// Waiting time of the packet that left last. Zero if it left the queue empty.
    qdelay: Duration,
    qdelay_old: Duration,
    burst_allowance: Duration,
    /// Time of the last departure. `None`: no departure since the burst allowance was restored.
    last_departure: Option<Instant>,
    next_update: Instant,
}

impl Pie {
    pub(super) fn new(config: &PieConfig, now: Instant) -> Self {
        Self {
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay: Duration::ZERO,
            qdelay_old: Duration::ZERO,
            burst_allowance: config.max_burst,
            last_departure: None,
            next_update: now + config.t_update,
        }
    }

    pub(super) fn drop_prob(&self) -> f64 {
        self.drop_prob
    }

    /// Decides about an arriving packet for which there is room (§4.1, §5.1).
    pub(super) fn arrive(
        &mut self,
        config: &PieConfig,
        now: Instant,
        counters: &QueueCounters,
        random: &mut RandomNumbers,
    ) -> Verdict {
        self.catch_up(config, now, counters);
        if !self.drops_early(config, counters, random) {
            Verdict::Pass
        } else if self.drop_prob <= config.mark_ecnth.value() {
            Verdict::Signal
        } else {
            Verdict::Drop
        }
    }

    fn drops_early(
        &mut self,
        config: &PieConfig,
        counters: &QueueCounters,
        random: &mut RandomNumbers,
    ) -> bool {
        if !self.burst_allowance.is_zero()
            || self.qdelay < half(config.target) && self.drop_prob < 0.2
            || counters.bytes < 2 * config.mtu.as_bytes()
        {
            return false;
        }
        self.accu_prob = if self.drop_prob == 0.0 { 0.0 } else { self.accu_prob + self.drop_prob };
        if self.accu_prob < MIN_ACCU_PROB {
            return false;
        }
        if self.accu_prob >= MAX_ACCU_PROB {
            return true;
        }
        let drops = random.unit() < self.drop_prob;
        if drops {
            self.accu_prob = 0.0;
        }
        drops
    }

    /// Records that an arriving packet was dropped, for any reason.
    pub(super) fn dropped(&mut self) {
        self.accu_prob = 0.0;
    }

    /// Records that a packet left the queue. `counters` describes the queue without this packet.
    pub(super) fn depart(&mut self, now: Instant, waited: Duration, counters: &QueueCounters) {
        self.qdelay = if counters.bytes == 0 { Duration::ZERO } else { waited };
        let passed = self.last_departure.map_or(Duration::ZERO, |last| now.saturating_since(last));
        self.last_departure = Some(now);
        self.burst_allowance = self.burst_allowance.saturating_sub(passed);
    }

    /// Performs the updates that are due by `now`. Their inputs change only at arrivals and departures, so
    /// the next arrival or departure can perform all updates, and no timer is needed. `counters` must
    /// describe the queue since the last call.
    pub(super) fn catch_up(&mut self, config: &PieConfig, now: Instant, counters: &QueueCounters) {
        while self.next_update <= now {
            let before = self.clone();
            self.update(config, counters.bytes);
            if *self == before {
                // Further updates would not change anything either, so skip them.
                let skipped = now.saturating_since(self.next_update).as_nanos() / config.t_update.as_nanos();
                self.next_update += config.t_update.saturating_mul(skipped);
            }
            self.next_update += config.t_update;
        }
    }

    /// Updates the probability (§4.2) and the burst allowance (§4.4).
    fn update(&mut self, config: &PieConfig, waiting: u64) {
        let (qdelay, qdelay_old) = (self.qdelay.as_secs_f64(), self.qdelay_old.as_secs_f64());
        let step =
            config.alpha * (qdelay - config.target.as_secs_f64()) + config.beta * (qdelay - qdelay_old);
        let mut step = step / step_divisor(self.drop_prob);
        if step > MAX_INCREASE && self.drop_prob >= INCREASE_LIMITED_FROM {
            step = MAX_INCREASE;
        }
        if self.qdelay > LONG_DELAY {
            step += MAX_INCREASE;
        }
        self.drop_prob = (self.drop_prob + step).clamp(0.0, 1.0);
        // While packets wait, a delay of zero only describes an earlier departure, so the probability does
        // not decay.
        if self.qdelay.is_zero() && self.qdelay_old.is_zero() && waiting == 0 {
            self.drop_prob -= self.drop_prob / 64.0;
        }
        let low = half(config.target);
        if self.qdelay < low && self.qdelay_old < low && self.drop_prob == 0.0 {
            self.burst_allowance = config.max_burst;
            self.last_departure = None;
            self.accu_prob = 0.0;
        }
        self.qdelay_old = self.qdelay;
    }

    /// Takes over new settings. The next update follows after a whole T_UPDATE.
    pub(super) fn reconfigure(&mut self, config: &PieConfig, now: Instant) {
        self.next_update = now + config.t_update;
        self.burst_allowance = self.burst_allowance.min(config.max_burst);
    }
}

/// Returns the divisor that makes changes smaller while the probability is small (§4.2).
fn step_divisor(drop_prob: f64) -> f64 {
    let steps = [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
    steps.into_iter().find(|(below, _)| drop_prob < *below).map_or(1.0, |(_, divisor)| divisor)
}

fn half(time: Duration) -> Duration {
    Duration::from_nanos(time.as_nanos() / 2)
}
