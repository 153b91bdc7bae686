//! How late packets left in real time: the time when one was written, minus the time for which the machine had set it.

use std::fmt;
use std::str::FromStr;

use airwire::time::Duration;
use airwire::units::typed_time;
use hdrhistogram::Histogram;

/// The lateness of every packet that left a machine at a deadline. A packet that leaves at the instant of its arrival
/// has none.
#[derive(Clone, Debug)]
pub struct Lateness(Histogram<u64>);

impl Default for Lateness {
    fn default() -> Self {
        const MINUTE: u64 = 60_000_000_000;
        // Three digits up to a minute. What is later counts as a minute.
        Self(Histogram::new_with_bounds(1, MINUTE, 3).expect("these bounds are within the histogram's own"))
    }
}

impl Lateness {
    /// One packet left so late. More than a minute counts as a minute.
    pub fn record(&mut self, late: Duration) {
        self.0.saturating_record(late.as_nanos());
    }

    /// How many packets were recorded.
    pub fn packets(&self) -> u64 {
        self.0.len()
    }

    /// The lateness that so many per cent of the packets did not exceed. `None` if there were no packets.
    pub fn at(&self, percentile: f64) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_nanos(self.0.value_at_percentile(percentile)))
    }

    /// The distribution, in nanoseconds.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }
}

/// A bound on the lateness, as text `p99=300us` or `max=2ms`. `max` is the 100th percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    percentile: f64,
    at_most: Duration,
}

impl Limit {
    /// The lateness at its percentile, if that is more than it allows. `None`: it was kept.
    pub fn missed_by(&self, lateness: &Lateness) -> Option<Duration> {
        lateness.at(self.percentile).filter(|late| *late > self.at_most)
    }
}

/// The text, which is not a [`Limit`].
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
    fn a_limit_is_missed_by_the_percentile_that_it_names_and_by_no_other() {
        let mut lateness = Lateness::default();
        for _ in 0..95 {
            lateness.record(Duration::from_micros(10));
        }
        for _ in 0..5 {
            lateness.record(Duration::from_micros(400));
        }
        let missed = |limit: &str| limit.parse::<Limit>().unwrap().missed_by(&lateness).is_some();
        assert!(!missed("p50=50us") && !missed("p90=50us"));
        assert!(missed("p99=300us") && missed("max=300us") && !missed("max=1ms"));
        assert_eq!(lateness.packets(), 100);
    }

    #[test]
    fn a_bare_number_is_seconds() {
        assert_eq!("p99=0.001".parse::<Limit>(), "p99=1ms".parse());
    }

    #[test]
    fn who_had_no_deadlines_misses_no_limit() {
        assert_eq!("max=0ns".parse::<Limit>().unwrap().missed_by(&Lateness::default()), None);
    }

    #[test]
    fn what_is_not_a_limit_is_refused_with_an_example() {
        for text in ["", "300us", "p99", "p99=soon", "p101=1ms", "mean=1ms"] {
            assert!(text.parse::<Limit>().unwrap_err().to_string().contains("p99=300us"), "{text}");
        }
    }
}
