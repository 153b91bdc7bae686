//! Means of repeated runs with confidence intervals, and gains of one sender over another.
//!
//! Comparisons are paired: samples with the same index belong to runs with the same seed. A gain is the mean
//! of the paired differences divided by the reference's mean, which equals the ratio of the two means minus
//! one. The mean of the pairs' ratios is not used: it gives the most weight to the runs in which the
//! reference did worst. It can have another sign than the mean difference, and is undefined if a sample of
//! the reference is zero.

use airwire::rng::Stream;
use serde::{Deserialize, Serialize};

/// A mean and half the width of its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The arithmetic mean.
    pub mean: f64,
    /// Half the width of the interval. `None` for a single sample, whose spread is unknown.
    pub half_width: Option<f64>,
    /// Number of samples.
    pub samples: usize,
}

impl Mean {
    /// Computes the mean of `samples`. Returns `None` if `samples` is empty.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let (mean, n) = (average(samples)?, samples.len());
        Some(Self { mean, half_width: half_width(samples, n), samples: n })
    }
}

/// Returns half the width of the 95 % interval that `count` samples with the same spread as
/// `samples` would have. `None` if there are fewer than two samples.
pub(crate) fn half_width(samples: &[f64], count: usize) -> Option<f64> {
    let (mean, n) = (average(samples)?, samples.len());
    (n > 1 && count > 1).then(|| {
        let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        let half = t_975(count - 1) * (variance / count as f64).sqrt();
        // The mean of equal samples may have a rounding error, which is not a spread.
        if half > 1e-12 * mean.abs() { half } else { 0.0 }
    })
}

/// Returns the median: the middle sample, or the mean of the middle two. `None` if `samples` is
/// empty.
pub fn median(samples: &[f64]) -> Option<f64> {
    if samples.is_empty() {
        return None;
    }
    // The bootstrap calls this for each resample, so the samples are not sorted.
    let mut samples = samples.to_vec();
    let (half, is_even) = (samples.len() / 2, samples.len().is_multiple_of(2));
    let (lower, high, _) = samples.select_nth_unstable_by(half, f64::total_cmp);
    let low = lower.iter().copied().max_by(f64::total_cmp).filter(|_| is_even).unwrap_or(*high);
    Some((low + *high) / 2.0)
}

/// Returns the quantile `p`, from 0 to 1: linear interpolation between the two nearest samples. `None`
/// if `samples` is empty.
pub fn quantile(samples: &[f64], p: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, p)
}

fn quantile_of_sorted(sorted: &[f64], p: f64) -> Option<f64> {
    let position = p * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    Some(low + position.fract() * (high - low))
}

/// A median with its 95 % interval and the quartiles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Median {
    /// The median.
    pub median: f64,
    /// The 95 % interval of the median, from the bootstrap. `None` if there are fewer than
    /// [`FEWEST_RESAMPLED`] samples.
    pub interval: Option<(f64, f64)>,
    /// The first and the third quartile.
    pub quartiles: (f64, f64),
}

/// Fewest samples for a bootstrap interval. With fewer, the interval covers the median too rarely.
pub const FEWEST_RESAMPLED: usize = 6;
/// Number of resamples. More resamples change the interval by less than its own uncertainty.
const RESAMPLES: usize = 2000;

impl Median {
    /// Computes the median of `samples`. Returns `None` if `samples` is empty. The resamples are drawn
    /// from a fixed seed, so that the same samples always give the same interval.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let quartiles = (quantile(samples, 0.25)?, quantile(samples, 0.75)?);
        let interval = (samples.len() >= FEWEST_RESAMPLED).then(|| {
            let mut draws = Stream::new(1, "bootstrap");
            let mut draw =
                || samples[((draws.unit() * samples.len() as f64) as usize).min(samples.len() - 1)];
            let mut medians: Vec<f64> = (0..RESAMPLES)
                .filter_map(|_| median(&samples.iter().map(|_| draw()).collect::<Vec<_>>()))
                .collect();
            medians.sort_by(f64::total_cmp);
            Some((quantile_of_sorted(&medians, 0.025)?, quantile_of_sorted(&medians, 0.975)?))
        });
        Some(Self { median: median(samples)?, interval: interval.flatten(), quartiles })
    }
}

/// Formats samples as `median (least to most)`, as benches print it; `-` if `samples` is empty.
pub fn spread(samples: &[f64]) -> String {
    let Some(median) = median(samples) else { return "-".to_owned() };
    let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
    let most = samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{median:.2} ({least:.2} to {most:.2})")
}

/// Returns the arithmetic mean. `None` if `samples` is empty.
pub fn average(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// Returns `more − less` for each pair.
pub fn differences(more: &[f64], less: &[f64]) -> Vec<f64> {
    more.iter().zip(less).map(|(more, less)| more - less).collect()
}

/// Returns the difference `with − without` of each pair as a fraction of the mean of `without`. The
/// mean of these values is the gain, and their interval is the interval of the paired differences.
/// Empty if the mean of `without` is zero.
pub fn gains(with: &[f64], without: &[f64]) -> Vec<f64> {
    match average(without) {
        Some(base) if base != 0.0 => differences(with, without).into_iter().map(|more| more / base).collect(),
        _ => Vec::new(),
    }
}

/// Returns one plus the [gain](gains) of each pair.
pub fn ratios(over: &[f64], under: &[f64]) -> Vec<f64> {
    gains(over, under).into_iter().map(|gain| 1.0 + gain).collect()
}

/// The 0.975 quantile of Student's t distribution.
pub(crate) fn t_975(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    match degrees {
        0 => f64::INFINITY,
        1..=30 => TABLE[degrees - 1],
        // Cornish–Fisher expansion; the error is below 1e-3 for more than 30 degrees of freedom.
        _ => {
            let (z, n): (f64, f64) = (1.959_964, degrees as f64);
            z + (z.powi(3) + z) / (4.0 * n) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
        }
    }
}

/// Returns the two-sided p value of a t statistic: the probability of one at least as far from zero without
/// any difference (Abramowitz and Stegun, 26.7.3 and 26.7.4).
pub(crate) fn p_value(t: f64, degrees: usize) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    let angle = (t.abs() / (degrees as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    // The terms have the powers 1, 3, 5, … (odd degrees) or 0, 2, 4, … (even degrees) of the cosine.
    let first = degrees % 2;
    let (mut term, mut sum) = (if first == 1 { cosine } else { 1.0 }, 0.0);
    for power in (first..degrees.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= cosine.powi(2) * (power as f64 + 1.0) / (power as f64 + 2.0);
    }
    let within = match first {
        1 => (angle + sine * sum) * std::f64::consts::FRAC_2_PI,
        _ => sine * sum,
    };
    (1.0 - within).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quantiles of [`t_975`] have a p value of 5 %, by definition.
    #[test]
    fn p_value_agrees_with_t_quantiles() {
        for degrees in 1..=60 {
            let p = p_value(t_975(degrees), degrees);
            assert!((p - 0.05).abs() < 2e-4, "{degrees} degrees: {p}");
        }
        assert_eq!(p_value(0.0, 4), 1.0);
        assert_eq!(p_value(f64::INFINITY, 4), 0.0);
        // Student's t with one degree of freedom is the Cauchy distribution.
        assert!((p_value(1.0, 1) - 0.5).abs() < 1e-12);
        // The distribution function of two degrees is known: 1 − t / √(2 + t²).
        assert!((p_value(-3.0, 2) - (1.0 - 3.0 / 11.0_f64.sqrt())).abs() < 1e-12);
    }

    #[test]
    fn quantiles_interpolate_between_samples() {
        assert_eq!(quantile(&[], 0.5), None);
        let samples = [4.0, 1.0, 3.0, 2.0];
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(|p| quantile(&samples, p)), [1.0, 1.75, 2.5, 4.0].map(Some));
    }

    #[test]
    fn median_needs_six_samples_for_interval() {
        assert_eq!(Median::of(&[]), None);
        let five = Median::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((five.median, five.interval, five.quartiles), (3.0, None, (2.0, 4.0)));
        let same = Median::of(&[7.0; 6]).unwrap();
        assert_eq!(same.interval, Some((7.0, 7.0)));
        let bimodal = [0.5, 0.55, 0.6, 0.5, 0.55, 2.2, 2.3, 0.52];
        assert_eq!(Median::of(&bimodal), Median::of(&bimodal), "the same samples give the same interval");
    }

    /// 400 sets of ten skewed samples from an exponential distribution, whose median is ln 2: about 95 %
    /// of the intervals contain it.
    #[test]
    fn bootstrap_interval_covers_median() {
        let mut chance = Stream::new(7, "coverage");
        let mut covered = 0;
        for _ in 0..400 {
            let samples: Vec<f64> = (0..10).map(|_| -(1.0 - chance.unit()).ln()).collect();
            let (low, high) = Median::of(&samples).unwrap().interval.unwrap();
            covered += usize::from((low..=high).contains(&std::f64::consts::LN_2));
        }
        assert!((360..=396).contains(&covered), "{covered} of 400");
    }

    #[test]
    fn mean_of_single_value_has_no_interval() {
        assert_eq!(Mean::of(&[]), None);
        let one = Mean::of(&[3.0]).unwrap();
        assert_eq!((one.mean, one.half_width), (3.0, None));
    }

    #[test]
    fn median_of_even_count_averages_middle_values() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[9.0, 1.0, 4.0]), Some(4.0));
        assert_eq!(median(&[9.0, 1.0, 4.0, 5.0]), Some(4.5));
    }

    #[test]
    fn equal_samples_have_no_spread() {
        let tenths = Mean::of(&[0.1; 3]).unwrap();
        assert!(tenths.mean != 0.1, "the test needs a mean with a rounding error");
        assert_eq!(tenths.half_width, Some(0.0));
    }

    /// Calculated by hand: the variance of 3, 4, 5, 6, 7 is 2.5, so the standard error is sqrt(2.5
    /// / 5).
    #[test]
    fn interval_uses_student_t_distribution() {
        let mean = Mean::of(&[3.0, 4.0, 5.0, 6.0, 7.0]).unwrap();
        assert_eq!(mean.mean, 5.0);
        assert!((mean.half_width.unwrap() - 2.776 * 0.5_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn gain_is_ratio_of_means() {
        assert_eq!(gains(&[110.0, 130.0], &[90.0, 110.0]), [0.2, 0.2]);
        // The mean of the two pairs' own ratios, 2 and 0.5, would be above 1.
        assert_eq!(average(&ratios(&[20.0, 10.0], &[10.0, 20.0])), Some(1.0));
        assert_eq!(
            average(&gains(&[5.0, 10.0], &[0.0, 10.0])),
            Some(0.5),
            "the reference of one pair is zero"
        );
        assert!(gains(&[5.0], &[0.0]).is_empty(), "the mean reference is zero");
    }

    #[test]
    fn t_quantiles_continue_beyond_table() {
        assert!((t_975(31) - 2.0395).abs() < 1e-3);
        assert!((t_975(60) - 2.0003).abs() < 1e-3);
        assert!((t_975(100_000) - 1.960).abs() < 1e-3);
    }

    #[test]
    fn spread_shows_median_minimum_and_maximum() {
        assert_eq!(spread(&[1.0, -2.0, 3.0, 1.5, 2.0]), "1.50 (-2.00 to 3.00)");
        assert_eq!(spread(&[]), "-");
    }
}
