//! Queueing delay: distributions of delays, and one-way delays from timestamps.

/// The narrowest distinguished delay in nanoseconds.
const SHORTEST: f64 = 250_000.0;
/// Bins of the distribution. Each bin is √2 times as wide as the previous one, so the last one begins at 190
/// s.
const BINS: usize = 40;

/// How long the delay had which value. Quantiles have an error of at most 20 %.
#[derive(Clone, Debug)]
pub(super) struct DelayTimes {
    /// Microseconds with a delay in each bin.
    times: [u32; BINS],
    total: u64,
}

impl Default for DelayTimes {
    fn default() -> Self {
        Self { times: [0; BINS], total: 0 }
    }
}

impl DelayTimes {
    /// Adds a period of `lasted` nanoseconds with this delay.
    pub(super) fn add(&mut self, delay: i64, lasted: i64) {
        let octaves = (delay as f64 / SHORTEST).max(0.5).log2();
        let bin = (2.0 * octaves + 1.0).max(0.0) as usize;
        let micros = u32::try_from(lasted.max(0) / 1000).unwrap_or(u32::MAX);
        let time = &mut self.times[bin.min(BINS - 1)];
        self.total += u64::from(micros.min(u32::MAX - *time));
        *time = time.saturating_add(micros);
    }

    /// Returns the delay in seconds that is not exceeded for this share of the time.
    pub(super) fn quantile(&self, share: f64) -> Option<f64> {
        let below = (share * self.total as f64) as u64;
        let mut passed = 0;
        let bin = self.times.iter().position(|time| {
            passed += u64::from(*time);
            passed > below
        })?;
        if bin == 0 {
            return Some(0.0);
        }
        // The middle of the bin.
        Some(SHORTEST / 1e9 * 2f64.powf((bin as f64 - 0.5) / 2.0))
    }
}

/// Periods of timestamp clocks in nanoseconds. Linux, BSD and Windows use the first one; new versions of Linux
/// also the last one.
const TICKS: [f64; 4] = [1e6, 4e6, 1e7, 1e3];
/// Time in nanoseconds after which the assumed period is accepted, if it explains the times.
const ACCEPTED_AFTER: i64 = 1_000_000_000;
/// Relative deviation at which it is accepted.
const ACCEPTED_DEVIATION: f64 = 0.3;
/// Time in nanoseconds after which the nearest period is chosen. Few queues and outages last longer.
const CHOSEN_AFTER: i64 = 4_000_000_000;
/// Maximum ratio between the measured period and the chosen one.
const CHOSEN_RATIO: f64 = 1.2;
/// Time in nanoseconds after which the drift between two clocks (100 ppm) exceeds 30 ms.
const MAX_AGE: i64 = 300_000_000_000;

/// The delay of one end's packets to the capture point, relative to the shortest one. It is computed from
/// their timestamps (RFC 7323 §4).
#[derive(Clone, Debug, Default)]
pub(super) struct OneWayDelay {
    first: Option<(u32, i64)>,
    tick: f64,
    is_checked: bool,
    min: i64,
}

impl OneWayDelay {
    /// Returns the state with the same minimum, or without one if the clocks may soon have drifted too far.
    pub(super) fn continued(&self, at: i64) -> Self {
        let is_old = self.first.is_some_and(|(_, began)| at - began > MAX_AGE / 2);
        if is_old { Self::default() } else { self.clone() }
    }

    /// Returns whether any packet had a timestamp.
    pub(super) fn is_known(&self) -> bool {
        self.first.is_some()
    }

    /// Processes a packet. Returns its delay above the minimum in nanoseconds.
    pub(super) fn add(&mut self, tsval: u32, at: i64) -> Option<i64> {
        let Some((first, began)) = self.first else {
            (self.first, self.tick, self.min) = (Some((tsval, at)), TICKS[0], 0);
            return Some(0);
        };
        let (ticks, passed) = (tsval.wrapping_sub(first), at - began);
        if ticks > u32::MAX / 2 || passed > MAX_AGE {
            return None;
        }
        if !self.is_checked && passed > ACCEPTED_AFTER {
            let measured = passed as f64 / f64::from(ticks.max(1));
            let deviation = (1.0 - self.tick / measured).abs();
            let ratio = |tick: f64| (measured / tick).max(tick / measured);
            let nearest = TICKS.into_iter().min_by(|a, b| ratio(*a).total_cmp(&ratio(*b)))?;
            // A growing queue delays the timestamps, too.
            let is_near = ratio(nearest) <= CHOSEN_RATIO;
            self.is_checked = deviation <= ACCEPTED_DEVIATION || passed > CHOSEN_AFTER && is_near;
            if deviation > ACCEPTED_DEVIATION && self.is_checked && nearest != self.tick {
                (self.first, self.tick, self.min) = (Some((tsval, at)), nearest, 0);
                return Some(0);
            }
        }
        let delay = passed - (f64::from(ticks) * self.tick) as i64;
        self.min = self.min.min(delay);
        Some(delay - self.min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_fifth() {
        let mut times = DelayTimes::default();
        for ms in 1..=1000 {
            times.add(ms * 1_000_000, 1_000_000);
        }
        for (share, expected) in [(0.1, 0.1), (0.5, 0.5), (0.9, 0.9)] {
            let found = times.quantile(share).unwrap();
            assert!((found / expected - 1.0_f64).abs() < 0.2, "{found} for {expected}");
        }
        assert_eq!(DelayTimes::default().quantile(0.5), None);
    }

    #[test]
    fn one_way_delay_is_relative_to_the_shortest() {
        for (tick, per_tick) in [(1_000_000, 1), (10_000_000, 1), (1_000, 1)] {
            let mut delay = OneWayDelay::default();
            let mut found = None;
            for n in 0..700 {
                let sent = n * 10_000_000;
                // A queue of 50 ms at the end.
                let at = sent + if n >= 600 { 50_000_000 } else { 0 };
                found = delay.add((sent / tick * per_tick) as u32, at);
            }
            let found = found.unwrap();
            assert!((found - 50_000_000).abs() <= tick, "{found} with a tick of {tick}");
        }
    }

    #[test]
    fn growing_queue_is_not_a_slow_timestamp_clock() {
        let mut delay = OneWayDelay::default();
        let mut found = None;
        for n in 0..300 {
            let sent = n * 20_000_000;
            // The queue grows by two seconds per second of the sender.
            let at = sent + (sent * 2).min(6_000_000_000);
            found = delay.add((sent / 1_000_000) as u32, at);
        }
        assert_eq!(found, Some(6_000_000_000));
    }
}
