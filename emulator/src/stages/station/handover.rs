//! When the mobile moves to another base station.

use airwire::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::settings::Invalid;

/// The mobile moves to a base station that has not seen its connections. What stands between it and that station, and
/// the time in which nothing gets through, are other stages: an `outage` at the same times is the usual one.
///
/// Choice: the paper leaves "handoff" for later (§V). Here the new station is told nothing by the old one, and the old
/// one, should the mobile come back, has forgotten it, as a base station forgets whoever leaves its cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandoverConfig {
    /// When it moves, since the start, in ascending order.
    pub at: Vec<Duration>,
    /// All of it begins again after this time, for ever. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
}

impl HandoverConfig {
    pub(super) fn validate(&self) -> Result<(), Invalid> {
        let (Some(first), Some(last)) = (self.at.first(), self.at.last()) else {
            return Err(Invalid::new(
                "at",
                "no handover: write when the mobile moves, such as `at = [\"10s\", \"25s\"]`",
            ));
        };
        if let Some(pair) = self.at.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Invalid::new(
                "at",
                format!(
                    "the handover at {} does not come before the one at {}: write them in ascending order",
                    pair[0], pair[1]
                ),
            ));
        }
        let all = *last - *first;
        if self.every.is_some_and(|every| every <= all) {
            return Err(Invalid::new(
                "every",
                format!("there are {all} from the first handover to the last: write a longer time"),
            ));
        }
        Ok(())
    }

    /// How many there are up to and including `now`.
    pub(super) fn until(&self, now: Instant) -> u64 {
        let Some(first) = self.at.first().filter(|first| Instant::ZERO + **first <= now) else { return 0 };
        let passed = now - (Instant::ZERO + *first);
        let (laps, into) = match self.every {
            Some(every) => {
                let laps = passed.as_nanos() / every.as_nanos();
                (laps, Duration::from_nanos(passed.as_nanos() - laps * every.as_nanos()))
            }
            None => (0, passed),
        };
        let begun = self.at.partition_point(|at| *at - *first <= into);
        laps * self.at.len() as u64 + begun as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(at: &[u64]) -> Vec<Duration> {
        at.iter().map(|at| Duration::from_secs(*at)).collect()
    }

    #[test]
    fn handovers_are_counted_from_their_own_instant_on() {
        let once = HandoverConfig { at: seconds(&[10, 25]), every: None };
        let until = |config: &HandoverConfig, at| config.until(Instant::from_millis(at));
        let counts = [0, 9_999, 10_000, 24_999, 25_000, 900_000].map(|at| until(&once, at));
        assert_eq!(counts, [0, 0, 1, 1, 2, 2]);
        let again = HandoverConfig { every: Some(Duration::from_secs(30)), ..once };
        let counts = [9_999, 10_000, 25_000, 39_999, 40_000, 55_000, 70_000].map(|at| until(&again, at));
        assert_eq!(counts, [0, 1, 2, 2, 3, 4, 5]);
    }

    #[test]
    fn times_that_make_no_sense_are_refused_with_what_would() {
        let refused = |at: &[u64], every: Option<u64>| {
            let config = HandoverConfig { at: seconds(at), every: every.map(Duration::from_secs) };
            config.validate().map_err(|invalid| invalid.key)
        };
        assert_eq!(refused(&[], None), Err("at".to_owned()));
        assert_eq!(refused(&[5, 5], None), Err("at".to_owned()));
        assert_eq!(refused(&[5, 15], Some(10)), Err("every".to_owned()));
        assert_eq!(refused(&[5], Some(0)), Err("every".to_owned()));
        assert_eq!(refused(&[5, 15], Some(11)), Ok(()));
    }
}
