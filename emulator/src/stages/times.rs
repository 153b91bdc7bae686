//! Times in a scenario: moments, and intervals of the same length.

use airwire::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::settings::Invalid;

/// Moments at which something happens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// Times since the start of the run, in ascending order.
    pub at: Vec<Duration>,
    /// Period after which all times repeat. By default they do not repeat.
    pub every: Option<Duration>,
}

/// Intervals of the same length, such as outages. An interval includes its start and excludes its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intervals {
    /// Start of each interval, relative to the start of the run, in ascending order.
    pub at: Vec<Duration>,
    /// Length of each interval.
    pub lasts: Duration,
    /// Period after which all intervals repeat. By default they do not repeat.
    pub every: Option<Duration>,
}

impl Times {
    /// Checks the times. `what` is the name of the event in errors, such as "handover".
    pub fn validate(&self, what: &str) -> Result<(), Invalid> {
        let (Some(first), Some(last)) = (self.at.first(), self.at.last()) else {
            let message =
                format!("no {what} in the list: write the time of each, such as `at = [\"10s\", \"25s\"]`");
            return Err(Invalid::new("at", message));
        };
        if let Some(pair) = self.at.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Invalid::new(
                "at",
                format!(
                    "the {what} at {} is not before the next one at {}: write the times in ascending order",
                    pair[0], pair[1]
                ),
            ));
        }
        let all = *last - *first;
        if self.every.is_some_and(|every| every <= all) {
            return Err(Invalid::new(
                "every",
                format!("must be longer than {all}, the time from the first {what} to the last"),
            ));
        }
        Ok(())
    }

    /// Returns the number of moments up to and including `now`.
    pub fn until(&self, now: Instant) -> u64 {
        let Some((periods, offset)) = position_in_period(&self.at, self.every, now) else { return 0 };
        periods * self.at.len() as u64 + count_begun(&self.at, offset) as u64
    }

    /// Returns the first moment after `now`.
    pub fn after(&self, now: Instant) -> Option<Instant> {
        let first = *self.at.first()?;
        let Some((periods, offset)) = position_in_period(&self.at, self.every, now) else {
            return Some(Instant::ZERO + first);
        };
        match (self.at.get(count_begun(&self.at, offset)), self.every) {
            (Some(next), every) => Some(Instant::ZERO + *next + every.unwrap_or_default() * periods),
            (None, Some(every)) => Some(Instant::ZERO + first + every * (periods + 1)),
            (None, None) => None,
        }
    }
}

impl Intervals {
    /// Checks the intervals. `what` is their name in errors, such as "outage".
    pub fn validate(&self, what: &str) -> Result<(), Invalid> {
        let (Some(first), Some(last)) = (self.at.first(), self.at.last()) else {
            let message =
                format!("no {what} in the list: write when each begins, such as `at = [\"10s\", \"25s\"]`");
            return Err(Invalid::new("at", message));
        };
        if self.lasts.is_zero() {
            return Err(Invalid::new("lasts", "must be above 0: write for example \"500ms\""));
        }
        for pair in self.at.windows(2) {
            if pair[0] + self.lasts > pair[1] {
                return Err(Invalid::new(
                    "at",
                    format!(
                        "the {what} at {} is not over when the next one begins at {}: write the times in ascending order, \
                         at least {} (`lasts`) apart",
                        pair[0], pair[1], self.lasts
                    ),
                ));
            }
        }
        let period = *last + self.lasts - *first;
        if self.every.is_some_and(|every| every < period) {
            return Err(Invalid::new(
                "every",
                format!(
                    "must be at least {period}, the time from the start of the first {what} to the end of the last"
                ),
            ));
        }
        Ok(())
    }

    /// Returns the end of the interval that contains `now`.
    pub fn end(&self, now: Instant) -> Option<Instant> {
        let (periods, offset) = position_in_period(&self.at, self.every, now)?;
        // At least the first interval has begun, so the index is valid.
        let begins = self.at[count_begun(&self.at, offset) - 1] + self.every.unwrap_or_default() * periods;
        let end = Instant::ZERO + begins + self.lasts;
        (now < end).then_some(end)
    }
}

/// Returns the number of complete periods and the time since the start of the current one. `None`: the first
/// moment has not come yet.
fn position_in_period(at: &[Duration], every: Option<Duration>, now: Instant) -> Option<(u64, Duration)> {
    let first = at.first().map(|first| Instant::ZERO + *first).filter(|first| *first <= now)?;
    let passed = now - first;
    Some(match every {
        Some(every) => {
            let periods = passed.as_nanos() / every.as_nanos();
            (periods, Duration::from_nanos(passed.as_nanos() - periods * every.as_nanos()))
        }
        None => (0, passed),
    })
}

/// Returns the number of elements of `at` that are at most `offset` after the first one.
fn count_begun(at: &[Duration], offset: Duration) -> usize {
    at.partition_point(|time| *time - at[0] <= offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(at: &[u64]) -> Vec<Duration> {
        at.iter().map(|at| Duration::from_secs(*at)).collect()
    }

    #[test]
    fn moments_are_counted_from_their_instant() {
        let once = Times { at: seconds(&[10, 25]), every: None };
        let until = |times: &Times, at| times.until(Instant::from_millis(at));
        let counts = [0, 9_999, 10_000, 24_999, 25_000, 900_000].map(|at| until(&once, at));
        assert_eq!(counts, [0, 0, 1, 1, 2, 2]);
        let again = Times { every: Some(Duration::from_secs(30)), ..once };
        let counts = [9_999, 10_000, 25_000, 39_999, 40_000, 55_000, 70_000].map(|at| until(&again, at));
        assert_eq!(counts, [0, 1, 2, 2, 3, 4, 5]);
    }

    #[test]
    fn next_moment_is_when_count_increases() {
        for every in [None, Some(Duration::from_secs(30)), Some(Duration::from_secs(16))] {
            let times = Times { at: seconds(&[10, 12, 25]), every };
            for second in 0..100 {
                let now = Instant::from_secs(second);
                let counted = (second + 1..200)
                    .find(|later| times.until(Instant::from_secs(*later)) > times.until(now));
                assert_eq!(times.after(now), counted.map(Instant::from_secs), "{every:?} at {second} s");
            }
        }
    }

    #[test]
    fn spell_lasts_from_start_for_its_length() {
        let intervals = Intervals {
            at: seconds(&[10, 25]),
            lasts: Duration::from_secs(5),
            every: Some(Duration::from_secs(30)),
        };
        let end = |at| intervals.end(Instant::from_millis(at));
        let secs = |at| Some(Instant::from_secs(at));
        let ends = [9_999, 10_000, 14_999, 15_000, 25_000, 29_999, 30_000, 40_000, 59_999, 60_000].map(end);
        assert_eq!(
            ends,
            [None, secs(15), secs(15), None, secs(30), secs(30), None, secs(45), secs(60), None]
        );
    }

    #[test]
    fn invalid_times_error_names_key() {
        let refused = |at: &[u64], every: Option<u64>| {
            let times = Times { at: seconds(at), every: every.map(Duration::from_secs) };
            times.validate("handover").map_err(|invalid| invalid.key)
        };
        assert_eq!(refused(&[], None), Err("at".to_owned()));
        assert_eq!(refused(&[5, 5], None), Err("at".to_owned()));
        assert_eq!(refused(&[5, 15], Some(10)), Err("every".to_owned()));
        assert_eq!(refused(&[5], Some(0)), Err("every".to_owned()));
        assert_eq!(refused(&[5, 15], Some(11)), Ok(()));
    }
}
