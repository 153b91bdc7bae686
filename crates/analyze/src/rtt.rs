//! RTT and delay statistics in little memory.

use hdrhistogram::Histogram;

use crate::compact::{ALLOCATOR_OVERHEAD, heap_of_vec};
use crate::connection::findings::RttFindings;

/// Maximum number of samples stored individually. More samples are stored in a histogram of a few kilobytes.
const MAX_EXACT: usize = 64;

/// Maximum number of samples stored without [`Many`], which is then computed on demand. Most connections do
/// not have more samples.
const MAX_FEW: usize = 3;

/// The method by which a sample was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measured {
    /// A segment that was sent once, and its ACK (Karn's algorithm).
    BySegment,
    ByTimestamp,
}

#[derive(Clone, Debug)]
pub(crate) enum Rtt {
    Few { samples: [i64; MAX_FEW], count: u8, by_timestamps: u8 },
    Many(Box<Many>),
}

impl Default for Rtt {
    fn default() -> Self {
        Self::Few { samples: [0; MAX_FEW], count: 0, by_timestamps: 0 }
    }
}

impl Rtt {
    pub(crate) fn add(&mut self, ns: i64, measured: Measured) {
        let ns = ns.max(0);
        match self {
            Self::Few { samples, count, by_timestamps } if usize::from(*count) < MAX_FEW => {
                samples[usize::from(*count)] = ns;
                *count += 1;
                *by_timestamps += u8::from(measured == Measured::ByTimestamp);
            }
            Self::Few { .. } => {
                let mut many = self.computed();
                many.add(ns, measured);
                *self = Self::Many(Box::new(many));
            }
            Self::Many(many) => many.add(ns, measured),
        }
    }

    /// Returns statistics that begin now. The minimum remains as a sample, and so does the estimate of the timer.
    pub(crate) fn continued(&self) -> Self {
        let Some(min) = self.min() else { return Self::default() };
        let Many { srtt, rttvar, .. } = match self {
            Self::Few { .. } => self.computed(),
            Self::Many(many) => Many { srtt: many.srtt, rttvar: many.rttvar, ..Many::default() },
        };
        let (samples, sum, exact) = (1, min as f64, vec![min]);
        let many = Many { samples, min, max: min, sum, srtt, rttvar, exact, ..Many::default() };
        Self::Many(Box::new(many))
    }

    pub(crate) fn min(&self) -> Option<i64> {
        match self {
            Self::Few { samples, count, .. } => samples[..usize::from(*count)].iter().min().copied(),
            Self::Many(many) => Some(many.min),
        }
    }

    /// Returns the shortest plausible retransmission timeout of the sender.
    pub(crate) fn timeout(&self) -> i64 {
        match self {
            Self::Few { .. } => self.computed().timeout(),
            Self::Many(many) => many.timeout(),
        }
    }

    pub(crate) fn findings(&self) -> RttFindings {
        match self {
            Self::Few { .. } => self.computed().findings(),
            Self::Many(many) => many.findings(),
        }
    }

    /// Returns the heap memory in bytes.
    pub(crate) fn heap(&self) -> usize {
        match self {
            Self::Few { .. } => 0,
            Self::Many(many) => many.heap(),
        }
    }

    /// Computes the statistics of a few samples.
    fn computed(&self) -> Many {
        let mut many = Many::default();
        if let Self::Few { samples, count, by_timestamps } = self {
            samples[..usize::from(*count)].iter().for_each(|ns| many.add(*ns, Measured::BySegment));
            many.by_timestamps = u64::from(*by_timestamps);
        }
        many
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Many {
    samples: u64,
    by_timestamps: u64,
    min: i64,
    max: i64,
    sum: f64,
    /// Estimates as in RFC 6298 §2, in nanoseconds. They approximate the sender's timer.
    srtt: f64,
    rttvar: f64,
    /// All samples, if there are few.
    exact: Vec<i64>,
    /// All samples, if there are many: in microseconds, with two significant digits.
    histogram: Option<Box<Histogram<u32>>>,
}

impl Many {
    fn add(&mut self, ns: i64, measured: Measured) {
        let sample = ns as f64;
        if self.samples == 0 {
            (self.min, self.max, self.srtt, self.rttvar) = (ns, ns, sample, sample / 2.0);
        } else {
            (self.min, self.max) = (self.min.min(ns), self.max.max(ns));
            self.rttvar += ((self.srtt - sample).abs() - self.rttvar) / 4.0;
            self.srtt += (sample - self.srtt) / 8.0;
        }
        self.samples += 1;
        self.by_timestamps += u64::from(measured == Measured::ByTimestamp);
        self.sum += sample;
        if self.histogram.is_none() && self.exact.len() < MAX_EXACT {
            self.exact.push(ns);
            return;
        }
        let histogram = self.histogram.get_or_insert_with(|| {
            let mut histogram = Histogram::new(2).expect("two digits are allowed");
            std::mem::take(&mut self.exact).into_iter().for_each(|ns| record(&mut histogram, ns));
            Box::new(histogram)
        });
        record(histogram, ns);
    }

    fn timeout(&self) -> i64 {
        const MIN_VARIATION: f64 = 200e6;
        (self.srtt + (4.0 * self.rttvar).max(MIN_VARIATION)) as i64
    }

    fn heap(&self) -> usize {
        let counts = self.histogram.as_deref().map_or(0, |histogram| {
            size_of::<Histogram<u32>>() + heap_of_vec::<u32>(histogram.distinct_values())
        });
        size_of::<Self>() + ALLOCATOR_OVERHEAD + heap_of_vec::<i64>(self.exact.capacity()) + counts
    }

    fn findings(&self) -> RttFindings {
        if self.samples == 0 {
            return RttFindings::default();
        }
        let seconds = |ns: i64| Some(ns as f64 / 1e9);
        let mean = self.sum / self.samples as f64;
        let (quantiles, deviation) = match &self.histogram {
            None => {
                let mut sorted = self.exact.clone();
                sorted.sort_unstable();
                // The nearest-rank method.
                let rank = |q: f64| (q * sorted.len() as f64).ceil().max(1.0) as usize - 1;
                let sum: f64 = sorted.iter().map(|ns| (*ns as f64 - mean).abs()).sum();
                ([0.5, 0.9, 0.99].map(|q| sorted[rank(q)]), sum / sorted.len() as f64)
            }
            Some(histogram) => {
                let of = |value: u64| (value as i64 * 1000).clamp(self.min, self.max);
                let sum: f64 = histogram
                    .iter_recorded()
                    .map(|step| {
                        let value = histogram.median_equivalent(step.value_iterated_to());
                        step.count_at_value() as f64 * (value as f64 * 1000.0 - mean).abs()
                    })
                    .sum();
                let quantile = |q: f64| of(histogram.median_equivalent(histogram.value_at_quantile(q)));
                ([0.5, 0.9, 0.99].map(quantile), sum / histogram.len() as f64)
            }
        };
        RttFindings {
            samples: self.samples,
            by_timestamps: self.by_timestamps,
            min_seconds: seconds(self.min),
            mean_seconds: Some(mean / 1e9),
            median_seconds: seconds(quantiles[0]),
            p90_seconds: seconds(quantiles[1]),
            p99_seconds: seconds(quantiles[2]),
            max_seconds: seconds(self.max),
            mean_deviation_seconds: Some(deviation / 1e9),
            resolution_seconds: None,
        }
    }
}

/// Records a sample. The limit of an hour bounds the histogram, which grows with its largest value.
fn record(histogram: &mut Histogram<u32>, ns: i64) {
    const HOUR: u64 = 3_600_000_000;
    histogram.record((ns.unsigned_abs() / 1000).min(HOUR)).expect("the histogram is resizable");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtt_statistics_are_within_one_percent() {
        for count in [50_i64, 1000] {
            let mut rtt = Rtt::default();
            for i in 1..=count {
                rtt.add(i * 1_000_000, Measured::BySegment);
            }
            let findings = rtt.findings();
            let near = |found: Option<f64>, expected: f64| {
                let found = found.unwrap();
                assert!((found / expected - 1.0).abs() < 0.01, "{count}: {found} for {expected}");
            };
            let n = count as f64 / 1000.0;
            near(findings.min_seconds, 0.001);
            near(findings.mean_seconds, n / 2.0 + 0.0005);
            near(findings.median_seconds, n / 2.0);
            near(findings.p90_seconds, n * 0.9);
            near(findings.p99_seconds, (n * 0.99 * 1000.0).ceil() / 1000.0);
            near(findings.max_seconds, n);
            near(findings.mean_deviation_seconds, n / 4.0);
        }
    }

    #[test]
    fn rtt_findings_are_empty_without_samples() {
        assert_eq!(Rtt::default().findings(), RttFindings::default());
    }
}
