//! Times that a scenario lists: moments, and spells of the same length.

use airwire::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::settings::Invalid;

/// Moments at which something happens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// When, since the start, in ascending order.
    pub at: Vec<Duration>,
    /// All of it begins again after this time, for ever. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
}

/// Spells, such as outages. Each begins at its time, and is over just when its length has passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spells {
    /// When each begins, since the start, in ascending order.
    pub at: Vec<Duration>,
    /// How long each of them is.
    pub lasts: Duration,
    /// All of them begin again after this time, for ever. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
}

impl Times {
    /// `what` happens at them, such as "handover".
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

    /// How many there are up to and including `now`.
    pub fn until(&self, now: Instant) -> u64 {
        let Some((laps, into)) = lap(&self.at, self.every, now) else { return 0 };
        laps * self.at.len() as u64 + begun(&self.at, into) as u64
    }

    /// The first one later than `now`.
    pub fn after(&self, now: Instant) -> Option<Instant> {
        let first = *self.at.first()?;
        let Some((laps, into)) = lap(&self.at, self.every, now) else { return Some(Instant::ZERO + first) };
        match (self.at.get(begun(&self.at, into)), self.every) {
            (Some(next), every) => Some(Instant::ZERO + *next + every.unwrap_or_default() * laps),
            (None, Some(every)) => Some(Instant::ZERO + first + every * (laps + 1)),
            (None, None) => None,
        }
    }
}

impl Spells {
    /// `what` they are, such as "outage".
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

    /// When the one ends that `now` is in.
    pub fn end(&self, now: Instant) -> Option<Instant> {
        let (laps, into) = lap(&self.at, self.every, now)?;
        // The first of them has begun.
        let begins = self.at[begun(&self.at, into) - 1] + self.every.unwrap_or_default() * laps;
        let end = Instant::ZERO + begins + self.lasts;
        (now < end).then_some(end)
    }
}

/// How often all of `at` has begun again, and how long the last time ago. `None`: the first has not come yet.
fn lap(at: &[Duration], every: Option<Duration>, now: Instant) -> Option<(u64, Duration)> {
    let first = at.first().map(|first| Instant::ZERO + *first).filter(|first| *first <= now)?;
    let passed = now - first;
    Some(match every {
        Some(every) => {
            let laps = passed.as_nanos() / every.as_nanos();
            (laps, Duration::from_nanos(passed.as_nanos() - laps * every.as_nanos()))
        }
        None => (0, passed),
    })
}

/// How many of `at` have come when so much time has passed since the first.
fn begun(at: &[Duration], into: Duration) -> usize {
    at.partition_point(|time| *time - at[0] <= into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(at: &[u64]) -> Vec<Duration> {
        at.iter().map(|at| Duration::from_secs(*at)).collect()
    }

    #[test]
    fn moments_are_counted_from_their_own_instant_on() {
        let once = Times { at: seconds(&[10, 25]), every: None };
        let until = |times: &Times, at| times.until(Instant::from_millis(at));
        let counts = [0, 9_999, 10_000, 24_999, 25_000, 900_000].map(|at| until(&once, at));
        assert_eq!(counts, [0, 0, 1, 1, 2, 2]);
        let again = Times { every: Some(Duration::from_secs(30)), ..once };
        let counts = [9_999, 10_000, 25_000, 39_999, 40_000, 55_000, 70_000].map(|at| until(&again, at));
        assert_eq!(counts, [0, 1, 2, 2, 3, 4, 5]);
    }

    #[test]
    fn the_next_moment_is_the_one_with_which_the_count_grows() {
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
    fn a_spell_begins_at_its_time_and_is_over_when_its_length_has_passed() {
        let spells = Spells {
            at: seconds(&[10, 25]),
            lasts: Duration::from_secs(5),
            every: Some(Duration::from_secs(30)),
        };
        let end = |at| spells.end(Instant::from_millis(at));
        let secs = |at| Some(Instant::from_secs(at));
        let ends = [9_999, 10_000, 14_999, 15_000, 25_000, 29_999, 30_000, 40_000, 59_999, 60_000].map(end);
        assert_eq!(
            ends,
            [None, secs(15), secs(15), None, secs(30), secs(30), None, secs(45), secs(60), None]
        );
    }

    #[test]
    fn times_that_make_no_sense_are_refused_with_what_would() {
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
