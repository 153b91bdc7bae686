//! Verdicts on paired comparisons of two senders, derived from the 95 % confidence interval.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::statistics::{Mean, gains, half_width};

/// Largest half-width of an interval that supports "no difference", as a fraction of the
/// reference's mean.
pub const ALIKE: f64 = 0.05;
/// Factor by which intervals are widened when results are tested repeatedly.
///
/// Testing after every round and stopping at the first interval that excludes zero eventually finds
/// a "difference" between identical senders. So tests happen only after some rounds ([`is_look`])
/// and with wider intervals. All tests together then find a difference for at most one in twenty
/// pairs of identical senders.
const WIDER: f64 = 1.5;
/// If more runs than this are needed, no number is reported.
const MOST_RUNS: usize = 10_000;

/// The comparison of two senders over paired runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The difference as a fraction of the reference's mean, with the interval of the paired
    /// differences. `None` if no pairs exist or the reference's mean is zero.
    pub gain: Option<Mean>,
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
    /// The interval contains zero, and its half-width is at most [`ALIKE`].
    NoDifference,
    /// The interval contains zero, and its half-width exceeds [`ALIKE`].
    NotEnough {
        /// Estimated number of further pairs needed for a verdict, if the spread stays the same.
        /// `None` if no estimate is possible.
        more: Option<usize>,
    },
}

impl Comparison {
    /// Compares `with` to `without`, whose samples with the same index form a pair.
    pub fn of(with: &[f64], without: &[f64]) -> Self {
        let gains = gains(with, without);
        let gain = Mean::of(&gains);
        let verdict = match gain {
            Some(Mean { mean, half_width: Some(half), .. }) => match () {
                () if mean - half > 0.0 => Verdict::Better,
                () if mean + half < 0.0 => Verdict::Worse,
                () if half <= ALIKE => Verdict::NoDifference,
                () => Verdict::NotEnough { more: more(&gains, mean) },
            },
            _ => Verdict::NotEnough { more: None },
        };
        Self { gain, verdict }
    }

    /// Returns whether the runs so far are enough, provided that this was tested only after each
    /// [`is_look`].
    pub fn is_decided(&self) -> bool {
        let Some(Mean { mean, half_width: Some(half), .. }) = self.gain else { return false };
        let wide = WIDER * half;
        mean.abs() > wide || wide <= ALIKE
    }

    /// Formats the comparison as a sentence: `better than newreno: +26.1 ± 8.0 % in 10 pairs`.
    /// `what` and `than` are the names of the two senders.
    pub fn sentence(&self, what: &str, than: &str) -> String {
        let said = match self.verdict {
            Verdict::Better => format!("{what} is better than {than}"),
            Verdict::Worse => format!("{what} is worse than {than}"),
            Verdict::NoDifference => format!("no difference between {what} and {than}"),
            Verdict::NotEnough { .. } => format!("undecided between {what} and {than}"),
        };
        let pairs = |pairs| if pairs == 1 { "1 pair".to_owned() } else { format!("{pairs} pairs") };
        let gain = match self.gain {
            Some(Mean { mean, half_width: Some(half), samples }) => {
                format!(": {:+.1} ± {:.1} % in {}", 100.0 * mean, 100.0 * half, pairs(samples))
            }
            Some(Mean { mean, samples, .. }) => format!(": {:+.1} % in {}", 100.0 * mean, pairs(samples)),
            None => ": no pairs to compare".to_owned(),
        };
        let more = match self.verdict {
            Verdict::NotEnough { more: Some(1) } => "; about 1 more pair is needed".to_owned(),
            Verdict::NotEnough { more: Some(more) } => format!("; about {more} more pairs are needed"),
            _ => String::new(),
        };
        format!("{said}{gain}{more}")
    }
}

/// Returns whether to test the results after this number of runs. The first test is after 5 runs,
/// and each further test after half as many runs again.
pub fn is_look(runs: usize) -> bool {
    std::iter::successors(Some(5), |look| Some(look * 3 / 2)).take_while(|look| *look <= runs).last()
        == Some(runs)
}

/// Estimates how many more samples are needed until the interval excludes zero or is narrow enough,
/// if mean and spread stay the same.
fn more(samples: &[f64], mean: f64) -> Option<usize> {
    let enough = |count: usize| half_width(samples, count).is_some_and(|half| half <= mean.abs().max(ALIKE));
    (samples.len() + 1..=MOST_RUNS).find(|count| enough(*count)).map(|count| count - samples.len())
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

    #[test]
    fn verdict_is_tested_at_geometrically_spaced_counts() {
        let looks: Vec<_> = (0..=50).filter(|runs| is_look(*runs)).collect();
        assert_eq!(looks, [5, 7, 10, 15, 22, 33, 49]);
    }

    /// Identical senders whose runs have a standard deviation of a third of the mean.
    #[test]
    fn false_positive_rate_is_at_most_five_percent() {
        let mut chance = Stream::new(1, "verdict");
        let mut normal = || (0..12).map(|_| chance.unit()).sum::<f64>() - 6.0;
        let mut runs = |_| 1.0 + normal() / 3.0;
        let told_apart = (0..4000).filter(|_| {
            let (ones, others): (Vec<f64>, Vec<f64>) =
                ((0..100).map(&mut runs).collect(), (0..100).map(&mut runs).collect());
            // Only the last test computes the verdict: `Comparison::of` also estimates how many
            // more runs are needed, which is slow.
            let is_decided = |runs: &usize| {
                let gain = Mean::of(&gains(&ones[..*runs], &others[..*runs]));
                Comparison { gain, verdict: Verdict::NotEnough { more: None } }.is_decided()
            };
            let decided = (0..=100).filter(|runs| is_look(*runs)).find(is_decided);
            let comparison = decided.map(|runs| Comparison::of(&ones[..runs], &others[..runs]));
            comparison.is_some_and(|it| matches!(it.verdict, Verdict::Better | Verdict::Worse))
        });
        let told_apart = told_apart.count() as f64 / 4000.0;
        assert!((0.02..=0.05).contains(&told_apart), "{told_apart}");
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
