//! PIE: Pan, Natarajan, Baker, White, RFC 8033. A packet is dropped as it arrives, with a probability that follows
//! the delay of the queue.
//!
//! Of the optional parts it has ECN (§5.1), derandomisation (§5.4) and the limits to changes of the probability
//! (§5.5): those that Linux has. The delay is that of the packet that left last, by its time of arrival, so §5.2 (the
//! rate of departure) has nothing to do; §5.3 (active and inactive PIE) is left out, as it is there.
//!
//! Choice: 1 - 1/64 for 0.98 in the decay of the probability, which §4.2 allows.
//! Deviation: the burst allowance shrinks with each departure by the time since the one before, as in Linux, and not by
//! T_UPDATE at each update. It ends up to one T_UPDATE earlier or later.
//! Deviation: §4.1 lets everything pass while the delay *before* the last update was low. Here it is, as in Linux, that
//! of the packet that left last.

use airwire::time::{Duration, Instant};

use super::config::PieConfig;
use super::draws::Draws;
use super::{Tally, Verdict};

/// §4.2, end: above it the probability rises faster.
const LONG_DELAY: Duration = Duration::from_millis(250);
/// §5.5: by no more at once…
const LARGEST_STEP: f64 = 0.02;
/// §5.5: …from this probability on.
const STEPS_FROM: f64 = 0.1;
/// §5.4: no drop before the probabilities since the last one make so much,
const AT_LEAST: f64 = 0.85;
/// and one in any case when they make so much.
const AT_MOST: f64 = 8.5;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pie {
    drop_prob: f64,
    accu_prob: f64,
    /// Of the packet that left last; zero if nothing waited behind it.
    qdelay: Duration,
    qdelay_old: Duration,
    burst_allowance: Duration,
    /// `None`: none since the burst allowance was restored.
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

    /// A packet arrives that there is room for (§4.1, §5.1).
    pub(super) fn arrive(
        &mut self,
        config: &PieConfig,
        now: Instant,
        tally: &Tally,
        draws: &mut Draws,
    ) -> Verdict {
        self.catch_up(config, now, tally);
        if !self.drops_early(config, tally, draws) {
            Verdict::Pass
        } else if self.drop_prob <= config.mark_ecnth.value() {
            Verdict::Signal
        } else {
            Verdict::Drop
        }
    }

    fn drops_early(&mut self, config: &PieConfig, tally: &Tally, draws: &mut Draws) -> bool {
        if !self.burst_allowance.is_zero()
            || self.qdelay < half(config.target) && self.drop_prob < 0.2
            || tally.bytes < 2 * config.mtu.as_bytes()
        {
            return false;
        }
        self.accu_prob = if self.drop_prob == 0.0 { 0.0 } else { self.accu_prob + self.drop_prob };
        if self.accu_prob < AT_LEAST {
            return false;
        }
        if self.accu_prob >= AT_MOST {
            return true;
        }
        let drops = draws.unit() < self.drop_prob;
        if drops {
            self.accu_prob = 0.0;
        }
        drops
    }

    /// A packet was dropped as it arrived, for whatever reason.
    pub(super) fn dropped(&mut self) {
        self.accu_prob = 0.0;
    }

    /// A packet leaves that has waited; `tally` has what waits behind it.
    pub(super) fn depart(&mut self, now: Instant, waited: Duration, tally: &Tally) {
        self.qdelay = if tally.bytes == 0 { Duration::ZERO } else { waited };
        let passed = self.last_departure.map_or(Duration::ZERO, |last| now.saturating_since(last));
        self.last_departure = Some(now);
        self.burst_allowance = self.burst_allowance.saturating_sub(passed);
    }

    /// Does the updates that are due by `now`. Between arrivals and departures nothing changes what they see, so they
    /// can all be done by the next of these: no timer has to run for them. `tally`: since the last call.
    pub(super) fn catch_up(&mut self, config: &PieConfig, now: Instant, tally: &Tally) {
        while self.next_update <= now {
            let before = self.clone();
            self.update(config, tally.bytes);
            if *self == before {
                // Neither would any further one change anything.
                let left = now.saturating_since(self.next_update).as_nanos() / config.t_update.as_nanos();
                self.next_update += config.t_update.saturating_mul(left);
            }
            self.next_update += config.t_update;
        }
    }

    /// §4.2 and §4.4.
    fn update(&mut self, config: &PieConfig, waiting: u64) {
        let (qdelay, qdelay_old) = (self.qdelay.as_secs_f64(), self.qdelay_old.as_secs_f64());
        let step =
            config.alpha * (qdelay - config.target.as_secs_f64()) + config.beta * (qdelay - qdelay_old);
        let mut step = step / gentler(self.drop_prob);
        if step > LARGEST_STEP && self.drop_prob >= STEPS_FROM {
            step = LARGEST_STEP;
        }
        if self.qdelay > LONG_DELAY {
            step += LARGEST_STEP;
        }
        self.drop_prob = (self.drop_prob + step).clamp(0.0, 1.0);
        // A packet or two that wait while the delay is zero say nothing.
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

    /// The next update comes a whole T_UPDATE after the change.
    pub(super) fn reconfigure(&mut self, config: &PieConfig, now: Instant) {
        self.next_update = now + config.t_update;
        self.burst_allowance = self.burst_allowance.min(config.max_burst);
    }
}

/// §4.2: by how much changes are smaller while the probability is small.
fn gentler(drop_prob: f64) -> f64 {
    let steps = [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
    steps.into_iter().find(|(below, _)| drop_prob < *below).map_or(1.0, |(_, divisor)| divisor)
}

fn half(time: Duration) -> Duration {
    Duration::from_nanos(time.as_nanos() / 2)
}
