//! The number format of a metric's statistics.

use airtcp_numbers::statistics::Mean;
use airtcp_numbers::verdict::percent_digits;
use airtcp_sim::sweep::against::Against;
use airtcp_sim::sweep::metric::{Metric, Unit};
use airtcp_sim::sweep::summary::Values;

/// The number format for one metric: one unit for all numbers, and enough decimal places to show the smallest
/// mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    factor: f64,
    pub(crate) sign: &'static str,
    places: usize,
}

/// Maximum number of decimal places. Smaller numbers are negligible compared with the largest one.
const MOST_PLACES: usize = 9;

impl Scale {
    pub(crate) fn of<'a>(metric: &Metric, values: impl Iterator<Item = &'a Values>) -> Self {
        let means: Vec<f64> =
            values.map(|values| values.mean.mean.abs()).filter(|mean| *mean > 0.0).collect();
        let most = means.iter().copied().fold(0.0, f64::max);
        let least = means.iter().copied().fold(most, f64::min);
        let prefixes: &[(f64, &str)] = match metric.unit() {
            Unit::BitPerSecond => &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")],
            Unit::Octets => &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB")],
            Unit::Seconds | Unit::Number | Unit::None => &[],
        };
        let fits = prefixes.iter().find(|(factor, _)| most >= *factor).copied();
        let (factor, sign) = fits.unwrap_or_else(|| (1.0, metric.unit().symbol()));
        // Show four digits of the largest mean, and two of the smallest.
        let places = match most / factor {
            size if size >= 1000.0 => 0,
            size if size >= 100.0 => 1,
            size if size >= 10.0 => 2,
            _ => 3,
        };
        let first_digit = if least > 0.0 { (least / factor).log10().floor() as i32 } else { 0 };
        let for_the_least = usize::try_from(1 - first_digit).unwrap_or_default();
        Self { factor, sign, places: places.max(for_the_least.min(MOST_PLACES)) }
    }

    fn number(&self, number: f64) -> String {
        format!("{:.*}", self.places, number / self.factor)
    }

    pub(crate) fn mean(&self, values: Option<&Values>, runs: usize) -> String {
        let Some(Values { mean: Mean { mean, half_width, samples }, .. }) = values else {
            return "-".to_owned();
        };
        let width = half_width.map(|width| format!(" ± {}", self.number(width))).unwrap_or_default();
        let fewer = if *samples < runs { format!(" ({samples})") } else { String::new() };
        format!("{}{width}{fewer}", self.number(*mean))
    }

    pub(crate) fn median(&self, values: Option<&Values>) -> String {
        values.map_or_else(|| "-".to_owned(), |values| self.number(values.median.median))
    }

    /// Formats the 95 % interval of the median. It is empty if there are too few runs.
    pub(crate) fn median_interval(&self, values: Option<&Values>) -> String {
        values.and_then(|values| values.median.interval).map_or_else(String::new, |it| self.range(it))
    }

    pub(crate) fn quartiles(&self, values: Option<&Values>) -> String {
        values.map_or_else(|| "-".to_owned(), |values| self.range(values.median.quartiles))
    }

    fn range(&self, (low, high): (f64, f64)) -> String {
        format!("{} to {}", self.number(low), self.number(high))
    }

    /// Formats the difference, the gain and the verdict.
    pub(crate) fn beside(&self, beside: Option<&Against>) -> [String; 3] {
        let Some(beside) = beside else { return [const { String::new() }; 3] };
        let signed = |Mean { mean, half_width, .. }: Mean, factor: f64, places: usize, unit: &str| {
            let half = half_width.map(|half| format!(" ± {:.places$}{unit}", half / factor));
            format!("{:+.places$}{unit}{}", mean / factor, half.unwrap_or_default())
        };
        let gain = beside.comparison.gain.map(|gain| signed(gain, 0.01, percent_digits(gain), " %"));
        [
            signed(beside.difference, self.factor, self.places, ""),
            gain.unwrap_or_else(|| "-".to_owned()),
            beside.verdict(),
        ]
    }
}

/// A line for results that do not depend on the seed. `None` if some do, or if there is only one seed.
pub(crate) fn seeds_change_nothing<'a>(all: impl IntoIterator<Item = &'a Values>) -> Option<&'static str> {
    let mut all = all.into_iter().peekable();
    let has_some = all.peek().is_some();
    let is_constant = |values: &Values| values.mean.half_width == Some(0.0);
    (has_some && all.all(is_constant))
        .then_some("all seeds give the same results: nothing here is random, so one seed is enough")
}

#[cfg(test)]
mod tests {
    use airtcp_numbers::statistics::Median;

    use super::*;

    fn values(mean: f64, half_width: Option<f64>, samples: usize) -> Values {
        let median = Median { median: mean, interval: None, quartiles: (mean, mean) };
        Values { mean: Mean { mean, half_width, samples }, median, against: None }
    }

    fn scale(metric: &str, mean: f64) -> Scale {
        Scale::of(&metric.parse().unwrap(), [values(mean, None, 1)].iter())
    }

    #[test]
    fn metric_numbers_use_suitable_unit_and_digits() {
        for (metric, mean, expected) in [
            ("goodput", 123_456.7, "123.5 kbit/s"),
            ("goodput", 98_765_432.0, "98.77 Mbit/s"),
            ("goodput", 12.0, "12.00 bit/s"),
            ("took", 0.25, "0.250 s"),
            ("delivered", 200_000.0, "200.0 kB"),
            ("timeouts", 1234.5, "1234 "),
            ("jain", 0.9, "0.900 "),
        ] {
            let scale = scale(metric, mean);
            assert_eq!(format!("{} {}", scale.number(mean), scale.sign), expected, "{metric}");
        }
    }

    #[test]
    fn smallest_mean_keeps_readable_digits() {
        let metric = "goodput".parse().unwrap();
        let of = |means: &[f64]| {
            let values: Vec<Values> = means.iter().map(|mean| values(*mean, None, 1)).collect();
            let scale = Scale::of(&metric, values.iter());
            means.iter().map(|mean| format!("{} {}", scale.number(*mean), scale.sign)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[18_000.0, 912_000_000.0]), ["0.018 Mbit/s", "912.000 Mbit/s"]);
        assert_eq!(of(&[18_000.0, 9.5e9]), ["0.000018 Gbit/s", "9.500000 Gbit/s"]);
        assert_eq!(of(&[0.0, 98_765_432.0]), ["0.00 Mbit/s", "98.77 Mbit/s"]);
    }

    #[test]
    fn results_without_randomness_are_noticed() {
        let changes_nothing = |all: &[Values]| seeds_change_nothing(all).is_some();
        let (same, other) = (values(3.0, Some(0.0), 5), values(3.0, Some(0.1), 5));
        assert!(changes_nothing(&[same, same]));
        assert!(!changes_nothing(&[same, other]));
        assert!(!changes_nothing(&[values(3.0, None, 1)]), "one seed shows no spread");
        assert!(!changes_nothing(&[]));
    }

    #[test]
    fn median_interval_and_quartiles_show_both_ends() {
        let (scale, runs) = (scale("took", 12.0), [10.0, 11.0, 12.0, 13.0, 14.0, 30.0]);
        let of = |runs: &[f64]| {
            let median = Median::of(runs).unwrap();
            let values = Values { median, ..values(12.0, None, runs.len()) };
            [scale.median_interval(Some(&values)), scale.quartiles(Some(&values))]
        };
        assert_eq!(of(&runs), ["10.50 to 22.00", "11.25 to 13.75"]);
        assert_eq!(of(&runs[1..]), ["", "12.00 to 14.00"]);
    }

    #[test]
    fn mean_shows_run_count_if_runs_are_missing() {
        let scale = scale("took", 12.0);
        assert_eq!(scale.mean(Some(&values(12.345, Some(0.5), 28)), 30), "12.35 ± 0.50 (28)");
        assert_eq!(scale.mean(Some(&values(0.5, None, 1)), 1), "0.50");
        assert_eq!(scale.mean(None, 30), "-");
    }
}
