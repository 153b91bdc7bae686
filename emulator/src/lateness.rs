//! Lateness of packets in real time: the time of the write minus the departure time that the machine had set.

use std::fmt;
use std::str::FromStr;

use airwire::time::Duration;
use airwire::units::typed_time;
use hdrhistogram::Histogram;

/// Lateness of every packet that left a machine at a deadline. Packets that leave at the instant of their
/// arrival are not counted.
#[derive(Clone, Debug)]
pub struct Lateness(Histogram<u64>);

impl Default for Lateness {
    fn default() -> Self {
        const MINUTE: u64 = 60_000_000_000;
        // Three significant digits up to one minute. Larger values count as one minute.
        Self(Histogram::new_with_bounds(1, MINUTE, 3).expect("these bounds are within the histogram's own"))
    }
}

impl Lateness {
    /// Records the lateness of one packet. More than a minute counts as a minute.
    pub fn record(&mut self, late: Duration) {
        self.0.saturating_record(late.as_nanos());
    }

    /// Number of recorded packets.
    pub fn packets(&self) -> u64 {
        self.0.len()
    }

    /// The lateness that this percentage of the packets did not exceed. `None`: no packets were recorded.
    pub fn at(&self, percentile: f64) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_nanos(self.0.value_at_percentile(percentile)))
    }

    /// The distribution, in nanoseconds.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }
}

/// A bound on the lateness, written `p99=300us` or `max=2ms`. `max` is the 100th percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    percentile: f64,
    at_most: Duration,
}

impl Limit {
    /// Returns the lateness at the percentile if it exceeds the bound. `None`: the bound was met.
    pub fn exceeded_by(&self, lateness: &Lateness) -> Option<Duration> {
        lateness.at(self.percentile).filter(|late| *late > self.at_most)
    }
}

/// Error for a text that is not a [`Limit`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a lateness bound: write for example p99=300us, p50=50us or max=2ms")]
pub struct LimitError(String);

impl FromStr for Limit {
    type Err = LimitError;
    fn from_str(text: &str) -> Result<Self, LimitError> {
        let error = || LimitError(text.to_owned());
        let (name, value) = text.split_once('=').ok_or_else(error)?;
        let percentile = match name {
            "max" => 100.0,
            _ => {
                let percentile = name.strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
                percentile.filter(|percentile| (0.0..=100.0).contains(percentile)).ok_or_else(error)?
            }
        };
        Ok(Self { percentile, at_most: typed_time(value).map_err(|_| error())? })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{} at most {}", self.percentile, self.at_most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_checks_only_named_percentile() {
        let mut lateness = Lateness::default();
        for _ in 0..95 {
            lateness.record(Duration::from_micros(10));
        }
        for _ in 0..5 {
            lateness.record(Duration::from_micros(400));
        }
        let is_exceeded = |limit: &str| limit.parse::<Limit>().unwrap().exceeded_by(&lateness).is_some();
        assert!(!is_exceeded("p50=50us") && !is_exceeded("p90=50us"));
        assert!(is_exceeded("p99=300us") && is_exceeded("max=300us") && !is_exceeded("max=1ms"));
        assert_eq!(lateness.packets(), 100);
    }

    #[test]
    fn number_without_unit_is_seconds() {
        assert_eq!("p99=0.001".parse::<Limit>(), "p99=1ms".parse());
    }

    #[test]
    fn run_without_deadlines_meets_all_limits() {
        assert_eq!("max=0ns".parse::<Limit>().unwrap().exceeded_by(&Lateness::default()), None);
    }

    #[test]
    fn invalid_limit_error_shows_example() {
        for text in ["", "300us", "p99", "p99=soon", "p101=1ms", "mean=1ms"] {
            assert!(text.parse::<Limit>().unwrap_err().to_string().contains("p99=300us"), "{text}");
        }
    }
}
