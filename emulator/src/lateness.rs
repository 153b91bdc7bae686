//! How well real time was kept: when packets left, against when they ought to have left.

use std::fmt;
use std::str::FromStr;

use airwire::time::Duration;
use hdrhistogram::Histogram;

/// Of every packet that left at a deadline. One that left at the instant of its arrival cannot have been late.
#[derive(Clone, Debug)]
pub struct Lateness(Histogram<u64>);

impl Default for Lateness {
    fn default() -> Self {
        const MINUTE: u64 = 60_000_000_000;
        // Three digits of everything up to a minute: beyond that nobody asks how late exactly.
        Self(Histogram::new_with_bounds(1, MINUTE, 3).expect("these bounds are within the histogram's own"))
    }
}

impl Lateness {
    pub fn record(&mut self, late: Duration) {
        self.0.saturating_record(late.as_nanos());
    }

    pub fn packets(&self) -> u64 {
        self.0.len()
    }

    /// `None` if no packet left at a deadline.
    pub fn at(&self, percentile: f64) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_nanos(self.0.value_at_percentile(percentile)))
    }

    /// Of nanoseconds.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }
}

/// A bound that a run must keep: `p99=300us`, `max=2ms`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    percentile: f64,
    at_most: Duration,
}

impl Limit {
    /// The lateness that broke it.
    pub fn missed_by(&self, lateness: &Lateness) -> Option<Duration> {
        lateness.at(self.percentile).filter(|late| *late > self.at_most)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a bound on the lateness: write for example p99=300us, p50=50us or max=2ms")]
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
        Ok(Self { percentile, at_most: value.parse().map_err(|_| error())? })
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
    fn who_had_no_deadlines_misses_no_limit() {
        assert_eq!("max=0ns".parse::<Limit>().unwrap().missed_by(&Lateness::default()), None);
    }

    #[test]
    fn what_is_not_a_limit_is_refused_with_an_example() {
        for text in ["", "300us", "p99", "p99=300", "p101=1ms", "mean=1ms"] {
            assert!(text.parse::<Limit>().unwrap_err().to_string().contains("p99=300us"), "{text}");
        }
    }
}
