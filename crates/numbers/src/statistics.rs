//! Means of repeated runs, and how far they may be off; what one sender has over another.
//!
//! Comparisons are of pairs: samples with the same index come from runs that met the same chances. A gain is the mean
//! of paired differences over the mean of what is compared with, which is the ratio of the two means less one. The mean
//! of each pair's own ratio would let the runs count most in which the other did worst, could have another sign
//! than the mean difference, and does not exist where the other got nothing.

use serde::{Deserialize, Serialize};

/// A mean and half the width of its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The arithmetic mean.
    pub mean: f64,
    /// `None`: there is one sample, which says nothing about the spread.
    pub half_width: Option<f64>,
    /// How many there were.
    pub samples: usize,
}

impl Mean {
    /// `None` if there are no samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let (mean, n) = (average(samples)?, samples.len());
        Some(Self { mean, half_width: half_width(samples, n), samples: n })
    }
}

/// Half the width that the 95 % interval of `count` samples has that scatter as these do. `None`: one sample says
/// nothing about the spread.
pub(crate) fn half_width(samples: &[f64], count: usize) -> Option<f64> {
    let (mean, n) = (average(samples)?, samples.len());
    (n > 1 && count > 1).then(|| {
        let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        t_975(count - 1) * (variance / count as f64).sqrt()
    })
}

/// The middle one, or the mean of the middle two. `None` if there are no samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some((low + high) / 2.0)
}

/// `median (least to most)`, as benches print it; `-` if there are no samples.
pub fn spread(samples: &[f64]) -> String {
    let Some(median) = median(samples) else { return "-".to_owned() };
    let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
    let most = samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{median:.2} ({least:.2} to {most:.2})")
}

/// The arithmetic mean. `None` if there are no samples.
pub fn average(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// `more − less`, pair by pair.
pub fn differences(more: &[f64], less: &[f64]) -> Vec<f64> {
    more.iter().zip(less).map(|(more, less)| more - less).collect()
}

/// What `with` has over `without`, pair by pair, as a share of the mean without. The mean of these is the gain, their
/// interval that of the paired differences. Empty if that mean is zero: there is no share of nothing.
pub fn gains(with: &[f64], without: &[f64]) -> Vec<f64> {
    match average(without) {
        Some(base) if base != 0.0 => differences(with, without).into_iter().map(|more| more / base).collect(),
        _ => Vec::new(),
    }
}

/// The same as a ratio: one more than the gain.
pub fn ratios(over: &[f64], under: &[f64]) -> Vec<f64> {
    gains(over, under).into_iter().map(|gain| 1.0 + gain).collect()
}

/// The quantile 0.975 of Student's distribution.
fn t_975(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    match degrees {
        0 => f64::INFINITY,
        1..=30 => TABLE[degrees - 1],
        // Cornish–Fisher; below 1e-3 off from 30 on.
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
    fn of_nothing_and_of_one_little_is_known() {
        assert_eq!(Mean::of(&[]), None);
        let one = Mean::of(&[3.0]).unwrap();
        assert_eq!((one.mean, one.half_width), (3.0, None));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[9.0, 1.0, 4.0]), Some(4.0));
        assert_eq!(median(&[9.0, 1.0, 4.0, 5.0]), Some(4.5));
    }

    /// By hand: the variance of 3, 4, 5, 6, 7 is 2.5, the standard error sqrt(2.5 / 5).
    #[test]
    fn the_interval_is_students() {
        let mean = Mean::of(&[3.0, 4.0, 5.0, 6.0, 7.0]).unwrap();
        assert_eq!(mean.mean, 5.0);
        assert!((mean.half_width.unwrap() - 2.776 * 0.5_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_gain_is_a_ratio_of_means() {
        assert_eq!(gains(&[110.0, 130.0], &[90.0, 110.0]), [0.2, 0.2]);
        // Each pair's own ratio would be 2 and 0.5, and their mean above 1.
        assert_eq!(average(&ratios(&[20.0, 10.0], &[10.0, 20.0])), Some(1.0));
        assert_eq!(average(&gains(&[5.0, 10.0], &[0.0, 10.0])), Some(0.5), "once it got nothing");
        assert!(gains(&[5.0], &[0.0]).is_empty(), "there is nothing to compare with");
    }

    #[test]
    fn the_quantiles_go_on_where_the_table_ends() {
        assert!((t_975(31) - 2.0395).abs() < 1e-3);
        assert!((t_975(60) - 2.0003).abs() < 1e-3);
        assert!((t_975(100_000) - 1.960).abs() < 1e-3);
    }

    #[test]
    fn a_spread_is_the_median_with_the_least_and_the_most() {
        assert_eq!(spread(&[1.0, -2.0, 3.0, 1.5, 2.0]), "1.50 (-2.00 to 3.00)");
        assert_eq!(spread(&[]), "-");
    }
}
