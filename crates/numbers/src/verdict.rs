//! What pairs of runs say of one sender beside another, in a word that the interval carries.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::statistics::{Mean, gains, half_width};

/// Two senders whose difference is certain to be smaller than this share are alike.
pub const ALIKE: f64 = 0.05;
/// Whoever looks again and again until something is decided would in the end see a difference by chance. So it is looked at
/// seldom ([`is_look`]), and with intervals so much wider that in all looks together not more than one of twenty pairs of
/// equal senders is told apart.
const WIDER: f64 = 1.5;
/// Who would need more runs than this is not told how many.
const MOST_RUNS: usize = 10_000;

/// One sender beside another that met the same chances, run by run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What it has more, as a share of the other's mean, with the interval of the paired differences. `None`: there is
    /// no pair, or the other has nothing.
    pub gain: Option<Mean>,
    /// The word for it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What the 95 % interval of the paired differences says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// It lies above zero.
    Better,
    /// It lies below zero.
    Worse,
    /// It contains zero, and half of it is at most [`ALIKE`].
    NoDifference,
    /// It contains zero, and is wider than that.
    NotEnough {
        /// So many more pairs would about be enough, if they scatter as these do. `None`: that cannot be said.
        more: Option<usize>,
    },
}

impl Comparison {
    /// Of `with` over `without`, where the same index means the same chances.
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

    /// Whether no more runs are needed, if they were looked at after each [`is_look`].
    pub fn is_decided(&self) -> bool {
        let Some(Mean { mean, half_width: Some(half), .. }) = self.gain else { return false };
        let wide = WIDER * half;
        mean.abs() > wide || wide <= ALIKE
    }

    /// `better than newreno: +26.1 ± 8.0 % in 10 pairs`. `what` and `than` are the names of the two.
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

/// After so many runs it is looked at whether they are enough: 5, and then always half as many again.
pub fn is_look(runs: usize) -> bool {
    std::iter::successors(Some(5), |look| Some(look * 3 / 2)).take_while(|look| *look <= runs).last()
        == Some(runs)
}

/// How many more samples it takes until the interval leaves out zero or is narrow, if mean and spread stay.
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
    fn the_interval_decides_and_not_the_mean() {
        assert_eq!(verdict(&[120.0, 121.0, 119.0, 122.0, 118.0]), Verdict::Better);
        assert_eq!(verdict(&[80.0, 81.0, 79.0, 82.0, 78.0]), Verdict::Worse);
        assert_eq!(verdict(&[101.0, 99.0, 102.0, 98.0, 100.0]), Verdict::NoDifference);
        assert!(matches!(verdict(&[220.0, 60.0, 140.0, 90.0, 110.0]), Verdict::NotEnough { more: Some(_) }));
        assert_eq!(verdict(&[100.0; 5]), Verdict::NoDifference, "runs that are the same to the octet");
    }

    #[test]
    fn it_is_looked_at_seldom() {
        let looks: Vec<_> = (0..=50).filter(|runs| is_look(*runs)).collect();
        assert_eq!(looks, [5, 7, 10, 15, 22, 33, 49]);
    }

    /// Equal senders whose runs scatter by a third.
    #[test]
    fn chance_decides_for_one_of_twenty_at_most() {
        let mut chance = Stream::new(1, "verdict");
        let mut normal = || (0..12).map(|_| chance.unit()).sum::<f64>() - 6.0;
        let mut runs = |_| 1.0 + normal() / 3.0;
        let told_apart = (0..4000).filter(|_| {
            let (ones, others): (Vec<f64>, Vec<f64>) =
                ((0..100).map(&mut runs).collect(), (0..100).map(&mut runs).collect());
            // Only the last look computes the verdict: `Comparison::of` also estimates how many more runs are needed, which is slow.
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
    fn one_pair_and_none_say_nothing() {
        assert_eq!(verdict(&[300.0]), Verdict::NotEnough { more: None });
        assert_eq!(verdict(&[]), Verdict::NotEnough { more: None });
        assert_eq!(
            Comparison::of(&[1.0, 2.0], &[0.0, 0.0]).gain,
            None,
            "more than nothing is no share of it"
        );
    }

    /// Differences of -10 and 30 % in turn: their mean stays 10 %, and their standard deviation about 20 %. 1.96 · 20 / √n
    /// is 10 at n = 15.4; Student's t for so few degrees makes it a little more.
    #[test]
    fn as_many_more_as_student_says() {
        let with = [90.0, 130.0, 90.0, 130.0];
        let Verdict::NotEnough { more: Some(more) } = verdict(&with) else { panic!("{:?}", verdict(&with)) };
        assert!((16..=24).contains(&(more + with.len())), "{more}");
        // With a spread that stays, so many are just enough.
        let enough: Vec<f64> = with.iter().copied().cycle().take(more + with.len() + 2).collect();
        let base = vec![100.0; enough.len()];
        assert_eq!(Comparison::of(&enough, &base).verdict, Verdict::Better);
        // Nobody waits for a mean of nothing with a spread of everything.
        assert_eq!(verdict(&[1e9, -1e9, 1e9, -1e9]), Verdict::NotEnough { more: None });
    }

    #[test]
    fn it_is_said_in_a_sentence_and_kept_flat() {
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
