//! Verdicts on paired comparisons of two senders, derived from the 95 % confidence interval.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::statistics::{Mean, gains, half_width, p_value, t_975};

/// Largest difference, as a fraction of the reference's mean, that counts as no difference unless the
/// user sets another margin.
pub const MARGIN: f64 = 0.05;
/// Largest probability of finding a difference between identical senders.
const ALPHA: f64 = 0.05;
/// Factor by which intervals are widened when results are tested repeatedly.
///
/// Testing after every round and stopping at the first interval that excludes zero eventually finds
/// a "difference" between identical senders. So tests happen only after some rounds ([`is_test_point`])
/// and with wider intervals. All tests together then find a difference for at most one in twenty
/// pairs of identical senders.
const WIDENING: f64 = 1.5;
/// If more runs than this are needed, no number is reported.
const MAX_RUNS: usize = 10_000;

/// The comparison of two senders over paired runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The difference as a fraction of the reference's mean, with the interval of the paired
    /// differences. `None` if no pairs exist or the reference's mean is zero.
    pub gain: Option<Mean>,
    /// The p value of the difference (paired t test, two-sided), corrected for the number of senders after
    /// [`correct`]. `None` if there are fewer than two pairs.
    #[serde(default)]
    pub p: Option<f64>,
    /// The verdict on `gain`.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// The conclusion from the 95 % interval of the paired differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval lies above zero.
    Better,
    /// The interval lies below zero.
    Worse,
    /// The interval contains zero and lies within the margin of equivalence.
    NoDifference,
    /// The interval contains zero, and reaches beyond the margin.
    NotEnough {
        /// Estimated number of further pairs needed for a verdict, if the spread stays the same.
        /// `None` if no estimate is possible.
        more: Option<usize>,
    },
}

impl Comparison {
    /// Compares `with` to `without`, whose samples with the same index form a pair, with the usual
    /// [`MARGIN`].
    pub fn of(with: &[f64], without: &[f64]) -> Self {
        Self::within(MARGIN, with, without)
    }

    /// Compares `with` to `without`. Differences up to `margin`, a fraction of the reference's mean,
    /// count as no difference.
    pub fn within(margin: f64, with: &[f64], without: &[f64]) -> Self {
        let gains = gains(with, without);
        let gain = Mean::of(&gains);
        let Some(Mean { mean, half_width: Some(half), .. }) = gain else {
            return Self { gain, p: None, verdict: Verdict::NotEnough { more: None } };
        };
        let verdict = match () {
            () if mean - half > 0.0 => Verdict::Better,
            () if mean + half < 0.0 => Verdict::Worse,
            () if mean.abs() + half <= margin => Verdict::NoDifference,
            () => Verdict::NotEnough { more: missing_pairs(&gains, mean, margin) },
        };
        Self { gain, p: gain.and_then(p_of), verdict }
    }

    /// Whether the runs so far are enough, provided that this is tested only at each [`is_test_point`].
    pub fn is_decided(&self, margin: f64) -> bool {
        let Some(Mean { mean, half_width: Some(half), .. }) = self.gain else { return false };
        let wide = WIDENING * half;
        mean.abs() > wide || mean.abs() + wide <= margin
    }

    /// Formats the comparison as a sentence: `better than newreno: +26.1 ± 8.0 % in 10 pairs`.
    /// `what` and `than` are the names of the two senders.
    pub fn sentence(&self, what: &str, than: &str) -> String {
        let verdict = match self.verdict {
            Verdict::Better => format!("{what} is better than {than}"),
            Verdict::Worse => format!("{what} is worse than {than}"),
            Verdict::NoDifference => format!("no difference between {what} and {than}"),
            Verdict::NotEnough { .. } => format!("undecided between {what} and {than}"),
        };
        let pairs = |pairs| if pairs == 1 { "1 pair".to_owned() } else { format!("{pairs} pairs") };
        let gain = match self.gain {
            Some(gain @ Mean { half_width: Some(0.0), samples, .. }) => {
                format!(": {} in each of {}", in_percent(gain), pairs(samples))
            }
            Some(gain) => format!(": {} in {}", in_percent(gain), pairs(gain.samples)),
            None => ": no pairs to compare".to_owned(),
        };
        let more = match self.verdict {
            Verdict::NotEnough { more: Some(1) } => "; about 1 more pair is needed".to_owned(),
            Verdict::NotEnough { more: Some(more) } => format!("; about {more} more pairs are needed"),
            _ => String::new(),
        };
        format!("{verdict}{gain}{more}")
    }
}

/// Returns the p value of a mean difference (paired t test, two-sided). `None`: fewer than two pairs.
pub fn p_of(difference: Mean) -> Option<f64> {
    let Mean { mean, half_width, samples } = difference;
    let error = half_width? / t_975(samples - 1);
    // Identical runs have no spread: their mean difference is exactly zero.
    Some(if mean == 0.0 { 1.0 } else { p_value(mean / error, samples - 1) })
}

/// Formats a gain in percent, with enough decimal places to show the half-width: `+26.1 ± 8.0 %`,
/// `+0.031 ± 0.012 %`. A difference of exactly zero is `0 %`.
fn in_percent(gain: Mean) -> String {
    let (mean, digits) = (100.0 * gain.mean, percent_digits(gain));
    match gain.half_width {
        Some(half) if half > 0.0 => format!("{mean:+.digits$} ± {:.digits$} %", 100.0 * half),
        _ if mean == 0.0 => "0 %".to_owned(),
        _ => format!("{mean:+.digits$} %"),
    }
}

/// Returns the number of decimal places for a gain in percent: one, or as many as a verdict on a small
/// gain needs, so that no gain is shown as `+0.0 % ± 0.0 %` and called better.
pub fn percent_digits(gain: Mean) -> usize {
    let (mean, half) = (100.0 * gain.mean.abs(), 100.0 * gain.half_width.unwrap_or_default());
    let excludes_zero = mean > half;
    match if excludes_zero && half > 0.0 { half } else { mean } {
        small if excludes_zero && small < 0.05 => (1.0 - small.log10().floor()).min(6.0) as usize,
        _ => 1,
    }
}

/// Corrects the comparisons of one table for their number (Holm–Bonferroni): each p value becomes the
/// adjusted one, and a sender whose adjusted p value exceeds 5 % is undecided, even if its own interval
/// excludes zero. The probability of any wrong "better" or "worse" in the table is then at most 5 %.
pub fn correct(comparisons: &mut [&mut Comparison]) {
    let mut order: Vec<usize> = (0..comparisons.len()).filter(|at| comparisons[*at].p.is_some()).collect();
    order
        .sort_by(|a, b| f64::total_cmp(&comparisons[*a].p.unwrap_or(1.0), &comparisons[*b].p.unwrap_or(1.0)));
    let (all, mut adjusted) = (order.len(), 0.0_f64);
    for (rank, at) in order.into_iter().enumerate() {
        let comparison = &mut *comparisons[at];
        adjusted = adjusted.max(((all - rank) as f64 * comparison.p.unwrap_or(1.0)).min(1.0));
        comparison.p = Some(adjusted);
        if adjusted > ALPHA && matches!(comparison.verdict, Verdict::Better | Verdict::Worse) {
            comparison.verdict = Verdict::NotEnough { more: None };
        }
    }
}

/// Whether to test the results after this number of runs. The first test is after 5 runs, and the number of runs
/// grows by half until each further test.
pub fn is_test_point(runs: usize) -> bool {
    std::iter::successors(Some(5), |point| Some(point * 3 / 2)).take_while(|point| *point <= runs).last()
        == Some(runs)
}

/// Estimates how many more samples are needed until the interval excludes zero or lies within the
/// margin, if mean and spread stay the same.
fn missing_pairs(samples: &[f64], mean: f64, margin: f64) -> Option<usize> {
    let needed = mean.abs().max(margin - mean.abs());
    let enough = |count: usize| half_width(samples, count).is_some_and(|half| half <= needed);
    (samples.len() + 1..=MAX_RUNS).find(|count| enough(*count)).map(|count| count - samples.len())
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Better => f.write_str("better"),
            Self::Worse => f.write_str("worse"),
            Self::NoDifference => f.write_str("no difference"),
            Self::NotEnough { more: Some(more) } => write!(f, "undecided: about {more} more"),
            Self::NotEnough { more: None } => f.write_str("undecided"),
        }
    }
}

#[cfg(test)]
mod tests {
    use airwire::rng::Stream;

    use super::*;

    const BASE: [f64; 5] = [100.0; 5];

    fn verdict(with: &[f64]) -> Verdict {
        Comparison::of(with, &BASE[..with.len()]).verdict
    }

    #[test]
    fn verdict_follows_interval_rather_than_mean() {
        assert_eq!(verdict(&[120.0, 121.0, 119.0, 122.0, 118.0]), Verdict::Better);
        assert_eq!(verdict(&[80.0, 81.0, 79.0, 82.0, 78.0]), Verdict::Worse);
        assert_eq!(verdict(&[101.0, 99.0, 102.0, 98.0, 100.0]), Verdict::NoDifference);
        assert!(matches!(verdict(&[220.0, 60.0, 140.0, 90.0, 110.0]), Verdict::NotEnough { more: Some(_) }));
        assert_eq!(verdict(&[100.0; 5]), Verdict::NoDifference, "identical runs");
    }

    /// A test of equivalence: the whole interval has to lie within the margin.
    #[test]
    fn no_difference_needs_interval_within_margin() {
        let with = [104.0, 96.0, 107.0, 99.0, 106.0];
        let of = |margin| Comparison::within(margin, &with, &BASE);
        let Mean { mean, half_width, .. } = of(0.05).gain.unwrap();
        let half = half_width.unwrap();
        assert!(mean > 0.02 && mean - half < 0.0 && (0.05..0.10).contains(&(mean + half)), "{mean} ± {half}");
        assert!(matches!(of(0.05).verdict, Verdict::NotEnough { more: Some(_) }));
        assert_eq!(of(0.10).verdict, Verdict::NoDifference);
    }

    #[test]
    fn small_differences_are_shown_with_enough_digits() {
        let shown = |mean, half_width| in_percent(Mean { mean, half_width, samples: 5 });
        assert_eq!(shown(0.261, Some(0.08)), "+26.1 ± 8.0 %");
        assert_eq!(shown(0.000_31, Some(0.000_12)), "+0.031 ± 0.012 %");
        assert_eq!(shown(0.0, Some(0.0)), "0 %");
        assert_eq!(shown(-0.2, Some(0.0)), "-20.0 %");
        let same = Comparison::of(&BASE, &BASE);
        assert_eq!(same.sentence("a", "b"), "no difference between a and b: 0 % in each of 5 pairs");
    }

    /// p values by hand: 0.01, 0.03 and 0.02 become 3 · 0.01, 2 · 0.02, and 0.04 again, because an
    /// adjusted value is at least as large as the previous one.
    #[test]
    fn holm_correction_is_monotonic_and_limits_verdicts() {
        let with = |p| Comparison { gain: None, p, verdict: Verdict::Better };
        let corrected = |all: &[Option<f64>]| {
            let mut all: Vec<_> = all.iter().map(|p| with(*p)).collect();
            correct(&mut all.iter_mut().collect::<Vec<_>>());
            all.iter().map(|it| (it.p, it.verdict == Verdict::Better)).collect::<Vec<_>>()
        };
        let close = |found: &[(Option<f64>, bool)], expected: &[(f64, bool)]| {
            let mut pairs = found.iter().zip(expected);
            pairs.all(|((p, better), (q, expected))| (p.unwrap() - q).abs() < 1e-12 && better == expected)
        };
        let found = corrected(&[Some(0.01), Some(0.03), Some(0.02)]);
        assert!(close(&found, &[(0.03, true), (0.04, true), (0.04, true)]), "{found:?}");
        let found = corrected(&[Some(0.04), Some(0.03)]);
        assert!(close(&found, &[(0.06, false), (0.06, false)]), "{found:?}");
        assert_eq!(corrected(&[Some(0.04), None]), [(Some(0.04), true), (None, true)]);
    }

    /// Twenty senders equal to the reference, in ten rounds: without correction, about one sender appears
    /// better or worse in most tables.
    #[test]
    fn correction_limits_false_differences_per_table() {
        let mut chance = Stream::new(3, "holm");
        let mut runs = || -> Vec<f64> {
            (0..10).map(|_| 10.0 + (0..12).map(|_| chance.unit()).sum::<f64>() - 6.0).collect()
        };
        let is_wrong = |it: &Comparison| matches!(it.verdict, Verdict::Better | Verdict::Worse);
        let (mut before, mut after) = (0, 0);
        for _ in 0..200 {
            let reference = runs();
            let mut table: Vec<_> = (0..20).map(|_| Comparison::within(1.0, &runs(), &reference)).collect();
            before += usize::from(table.iter().any(is_wrong));
            correct(&mut table.iter_mut().collect::<Vec<_>>());
            after += usize::from(table.iter().any(is_wrong));
        }
        assert!(before > 80 && after <= 16, "{before} and {after} of 200 tables");
    }

    #[test]
    fn verdict_is_tested_at_geometrically_spaced_counts() {
        let test_points: Vec<_> = (0..=50).filter(|runs| is_test_point(*runs)).collect();
        assert_eq!(test_points, [5, 7, 10, 15, 22, 33, 49]);
    }

    /// Identical senders whose runs have a standard deviation of a third of the mean.
    #[test]
    fn false_positive_rate_is_at_most_five_percent() {
        let mut chance = Stream::new(1, "verdict");
        let mut normal = || (0..12).map(|_| chance.unit()).sum::<f64>() - 6.0;
        let mut runs = |_| 1.0 + normal() / 3.0;
        let found_different = (0..4000).filter(|_| {
            let (ones, others): (Vec<f64>, Vec<f64>) =
                ((0..100).map(&mut runs).collect(), (0..100).map(&mut runs).collect());
            // Only the last test computes the verdict: `Comparison::of` also estimates how many
            // more runs are needed, which is slow.
            let is_decided = |runs: &usize| {
                let gain = Mean::of(&gains(&ones[..*runs], &others[..*runs]));
                Comparison { gain, p: None, verdict: Verdict::NotEnough { more: None } }.is_decided(MARGIN)
            };
            let decided = (0..=100).filter(|runs| is_test_point(*runs)).find(is_decided);
            let comparison = decided.map(|runs| Comparison::of(&ones[..runs], &others[..runs]));
            comparison.is_some_and(|it| matches!(it.verdict, Verdict::Better | Verdict::Worse))
        });
        let found_different = found_different.count() as f64 / 4000.0;
        assert!((0.02..=0.05).contains(&found_different), "{found_different}");
    }

    #[test]
    fn single_pair_gives_no_verdict() {
        assert_eq!(verdict(&[300.0]), Verdict::NotEnough { more: None });
        assert_eq!(verdict(&[]), Verdict::NotEnough { more: None });
        assert_eq!(Comparison::of(&[1.0, 2.0], &[0.0, 0.0]).gain, None, "a gain over zero is undefined");
    }

    /// Differences alternate between −10 % and 30 %: their mean stays 10 %, and their standard
    /// deviation is about 20 %. 1.96 · 20 / √n is 10 at n = 15.4; Student's t with few degrees of
    /// freedom needs slightly more.
    #[test]
    fn missing_pairs_are_estimated_with_student_t() {
        let with = [90.0, 130.0, 90.0, 130.0];
        let Verdict::NotEnough { more: Some(more) } = verdict(&with) else { panic!("{:?}", verdict(&with)) };
        assert!((16..=24).contains(&(more + with.len())), "{more}");
        // With a constant spread, the estimated number of pairs is just enough.
        let enough: Vec<f64> = with.iter().copied().cycle().take(more + with.len() + 2).collect();
        let base = vec![100.0; enough.len()];
        assert_eq!(Comparison::of(&enough, &base).verdict, Verdict::Better);
        // A mean near zero with a huge spread yields no estimate.
        assert_eq!(verdict(&[1e9, -1e9, 1e9, -1e9]), Verdict::NotEnough { more: None });
    }

    #[test]
    fn comparison_prints_sentence_and_serializes_flat() {
        let sure = Comparison::of(&[120.0, 121.0, 119.0, 122.0, 118.0], &BASE);
        assert_eq!(
            sure.sentence("newreno+eifel", "newreno"),
            "newreno+eifel is better than newreno: +20.0 ± 2.0 % in 5 pairs"
        );
        let one = Comparison::of(&[300.0], &[100.0]);
        assert_eq!(one.sentence("a", "b"), "undecided between a and b: +200.0 % in 1 pair");
        let json = serde_json::to_value(Comparison::of(&[90.0, 130.0, 90.0, 130.0], &BASE[..4])).unwrap();
        assert_eq!(json["verdict"], "not-enough");
        assert!(json["more"].is_u64() && json["gain"]["half_width"].is_f64(), "{json}");
    }
}
