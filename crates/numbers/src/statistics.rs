//! Means of repeated runs with confidence intervals, and gains of one sender over another.
//!
//! Comparisons are paired: samples with the same index come from runs with the same seed. A gain is
//! the mean of the paired differences divided by the reference's mean, which equals the ratio of
//! the two means minus one. The mean of each pair's own ratio is not used. It gives the most weight
//! to the runs in which the reference did worst, its sign can differ from the sign of the mean
//! difference, and it is undefined where the reference got nothing.

use serde::{Deserialize, Serialize};

/// A mean and half the width of its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The arithmetic mean.
    pub mean: f64,
    /// Half the width of the interval. `None` if there is only one sample, which says nothing about
    /// the spread.
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
        t_975(count - 1) * (variance / count as f64).sqrt()
    })
}

/// Returns the median: the middle sample, or the mean of the middle two. `None` if `samples` is
/// empty.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some((low + high) / 2.0)
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
fn t_975(degrees: usize) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

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
