//! When a claim holds: one rule for all papers and figures.
//!
//! What is judged is always a mean over seeds with its interval, most often of paired differences, and never the mean
//! alone. A sentence says one of a few things about it: that something is *better* (or worse), *similar*, *slightly* or
//! *considerably* more, that it *grows*, or that it is a *number*. There is one function here for each, and each word
//! has one threshold.
//!
//! A figure that leaves a claim undecided is run with twice as many seeds, three times at most
//! ([`Figure::decide`](crate::Figure::decide)). Whoever looks four times finds an effect where there is none more often
//! than whoever looks once, so what decides is an interval [`WIDER`] than the one that is printed: over all looks
//! together it has 95 %.

use airtcp_numbers::statistics::{Mean, gains};
use serde::{Deserialize, Serialize};

/// Whether a claim holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judged {
    /// Yes, by the interval.
    Holds,
    /// No, by the interval.
    DoesNotHold,
    /// The interval is too wide to tell.
    Undecided,
}

/// So many times as wide is the interval that decides: P. C. Pocock's constant for four looks, 2.361, over that for one,
/// 1.960 (Biometrika 64, 1977).
pub const WIDER: f64 = 1.205;

/// Less than this is no difference to speak of.
pub const TIE: f64 = 0.01;
/// "similar", "little difference", "almost the same", "trivial", "comparable": not more than this, either way.
pub const SIMILAR: f64 = 0.1;
/// "slightly", "a little", "somewhat": more than nothing and not more than this.
pub const SLIGHTLY: f64 = 0.1;
/// "considerable", "significant", "much", "obvious", "dramatic", "relatively long": at least this.
pub const CONSIDERABLY: f64 = 0.2;

/// The interval that decides. `None`: of one sample nothing is known.
fn interval(mean: &Mean) -> Option<(f64, f64)> {
    let width = WIDER * mean.half_width?;
    (mean.mean.is_finite() && width.is_finite()).then_some((mean.mean - width, mean.mean + width))
}

impl Judged {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::Undecided => "undecided",
        }
    }

    /// Whether the value lies between these bounds.
    pub fn between(mean: &Mean, low: f64, high: f64) -> Self {
        match interval(mean) {
            Some((from, to)) if from >= low && to <= high => Self::Holds,
            Some((from, to)) if to < low || from > high => Self::DoesNotHold,
            _ => Self::Undecided,
        }
    }

    /// "better", "higher", "outperforms": `gain` is what it has more, as a share of what it is compared with. A
    /// difference of which no more than [`TIE`] is possible is none.
    pub fn better(gain: &Mean) -> Self {
        match interval(gain) {
            Some((from, _)) if from > 0.0 => Self::Holds,
            Some((from, to)) if to < 0.0 || (from >= -TIE && to <= TIE) => Self::DoesNotHold,
            _ => Self::Undecided,
        }
    }

    /// Whether there is more than none, for what has no scale to compare it with (counts, times).
    pub fn above_zero(mean: &Mean) -> Self {
        match interval(mean) {
            Some((from, _)) if from > 0.0 => Self::Holds,
            // An effect that is exactly nothing in every run is no effect.
            Some((_, to)) if to <= 0.0 => Self::DoesNotHold,
            _ => Self::Undecided,
        }
    }

    /// "similar", "little difference".
    pub fn similar(gain: &Mean) -> Self {
        Self::between(gain, -SIMILAR, SIMILAR)
    }

    /// "slightly better".
    pub fn slightly(gain: &Mean) -> Self {
        match interval(gain) {
            Some((from, to)) if from > 0.0 && to <= SLIGHTLY => Self::Holds,
            Some((from, to)) if to <= 0.0 || from > SLIGHTLY => Self::DoesNotHold,
            _ => Self::Undecided,
        }
    }

    /// "considerably", "significantly better".
    pub fn considerably(gain: &Mean) -> Self {
        Self::between(gain, CONSIDERABLY, f64::INFINITY)
    }

    /// A number of the paper, which ran it once. `one_run` is how far one run of the paper's length may be off
    /// ([`one_run`], [`one_run_gain`]): the number is met if the interval overlaps that. With an interval that is wider
    /// than that everything would be met.
    pub fn number(ours: &Mean, paper: f64, one_run: f64) -> Self {
        match interval(ours) {
            Some((from, to)) if to < paper - one_run || from > paper + one_run => Self::DoesNotHold,
            Some((from, to)) if (to - from) / 2.0 <= one_run => Self::Holds,
            _ => Self::Undecided,
        }
    }

    /// A sentence that says several things holds if they all do.
    pub fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        let parts: Vec<_> = parts.into_iter().collect();
        if parts.contains(&Self::DoesNotHold) {
            Self::DoesNotHold
        } else if parts.contains(&Self::Undecided) || parts.is_empty() {
            Self::Undecided
        } else {
            Self::Holds
        }
    }
}

/// What `more` has over `less` "in most cases": at each point as a share of the mean of `less` there, averaged over the
/// points, seed by seed. Both are by point, then by seed.
pub fn pooled_gains(more: &[Vec<f64>], less: &[Vec<f64>]) -> Vec<f64> {
    let points: Vec<_> = more.iter().zip(less).map(|(more, less)| gains(more, less)).collect();
    across(&points)
}

/// Each seed's average over several points, so that an interval of the whole can be given.
pub fn across(points: &[Vec<f64>]) -> Vec<f64> {
    let seeds = points.iter().map(Vec::len).min().unwrap_or(0);
    let average = |seed: usize| points.iter().map(|point| point[seed]).sum::<f64>() / points.len() as f64;
    (0..seeds).map(average).collect()
}

/// "the more …, the more …": by how much the value grows from the first point to the last, by a straight line through
/// the points in their order, as a share of the mean over all; seed by seed.
pub fn trends(points: &[Vec<f64>]) -> Vec<f64> {
    let seeds = points.iter().map(Vec::len).min().unwrap_or(0);
    let all: Vec<f64> = points.iter().flatten().copied().collect();
    let base = all.iter().sum::<f64>() / all.len() as f64;
    let middle = (points.len() as f64 - 1.0) / 2.0;
    let squares: f64 = (0..points.len()).map(|at| (at as f64 - middle).powi(2)).sum();
    let slope = |seed: usize| {
        let products = points.iter().enumerate().map(|(at, point)| (at as f64 - middle) * point[seed]);
        products.sum::<f64>() / squares
    };
    (0..seeds).map(|seed| slope(seed) * (points.len() as f64 - 1.0) / base).collect()
}

/// The mean of counts of something rare, such as timeouts in a transfer, with the interval that one run more gives it in
/// which it happens, `once`: none in so many runs is not none ever, as an interval without width would have it.
pub fn rare(counts: &[f64], once: f64) -> Mean {
    let half_width = Mean::of(&with_one_more(counts, once)).and_then(|more| more.half_width);
    let mean = Mean::of(counts).map_or(f64::NAN, |seen| seen.mean);
    Mean { mean, half_width, samples: counts.len() }
}

/// The counts that such an interval is reckoned from.
pub fn with_one_more(counts: &[f64], once: f64) -> Vec<f64> {
    counts.iter().copied().chain([once]).collect()
}

/// The standard deviation of a single run.
pub fn deviation(samples: &[f64]) -> f64 {
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    let squares: f64 = samples.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (samples.len().max(2) - 1) as f64).sqrt()
}

/// How far one run may be off: 95 % of them are within this of the mean.
pub fn one_run(samples: &[f64]) -> f64 {
    1.96 * deviation(samples)
}

/// How far a gain may be off that is made of one run with and another one without, as a share.
pub fn one_run_gain(with: &[f64], without: &[f64]) -> f64 {
    let base = without.iter().sum::<f64>() / without.len() as f64;
    one_run(with).hypot(one_run(without)) / base
}

#[cfg(test)]
mod tests {
    use super::*;

    use Judged::{DoesNotHold, Holds, Undecided};

    /// A mean whose deciding interval has this half width.
    fn of(mean: f64, half_width: f64) -> Mean {
        Mean { mean, half_width: Some(half_width / WIDER), samples: 30 }
    }

    #[test]
    fn an_interval_that_holds_zero_decides_nothing_unless_it_is_narrow() {
        assert_eq!(Judged::better(&of(0.05, 0.04)), Holds);
        assert_eq!(Judged::better(&of(-0.05, 0.04)), DoesNotHold);
        assert_eq!(Judged::better(&of(0.03, 0.04)), Undecided);
        assert_eq!(Judged::better(&of(0.002, 0.005)), DoesNotHold, "a tie");
        assert_eq!(Judged::better(&of(0.005, 0.004)), Holds, "little, but sure");
        assert_eq!(Judged::better(&Mean { mean: 1.0, half_width: None, samples: 1 }), Undecided);
        assert_eq!(Judged::better(&Mean { mean: f64::NAN, half_width: Some(0.1), samples: 3 }), Undecided);
    }

    #[test]
    fn counts_need_more_than_none() {
        assert_eq!(Judged::above_zero(&of(5.0, 4.0)), Holds);
        assert_eq!(Judged::above_zero(&of(3.0, 4.0)), Undecided);
        assert_eq!(Judged::above_zero(&of(0.0, 0.0)), DoesNotHold);
    }

    #[test]
    fn each_word_has_one_threshold() {
        assert_eq!(Judged::similar(&of(-0.05, 0.04)), Holds);
        assert_eq!(Judged::similar(&of(-0.15, 0.04)), DoesNotHold);
        assert_eq!(Judged::similar(&of(-0.1, 0.04)), Undecided);
        assert_eq!(Judged::slightly(&of(0.05, 0.04)), Holds);
        assert_eq!(Judged::slightly(&of(0.2, 0.04)), DoesNotHold);
        assert_eq!(Judged::slightly(&of(-0.05, 0.04)), DoesNotHold);
        assert_eq!(Judged::slightly(&of(0.03, 0.04)), Undecided);
        assert_eq!(Judged::considerably(&of(0.35, 0.1)), Holds);
        assert_eq!(Judged::considerably(&of(0.1, 0.09)), DoesNotHold);
        assert_eq!(Judged::considerably(&of(0.25, 0.1)), Undecided);
    }

    #[test]
    fn a_number_is_met_within_what_one_run_scatters() {
        assert_eq!(Judged::number(&of(17.0, 1.0), 19.0, 3.0), Holds);
        assert_eq!(Judged::number(&of(14.0, 1.0), 19.0, 3.0), DoesNotHold);
        assert_eq!(
            Judged::number(&of(19.0, 4.0), 19.0, 3.0),
            Undecided,
            "too few seeds to say that it is met"
        );
        assert_eq!(Judged::number(&of(9.0, 4.0), 19.0, 3.0), DoesNotHold, "but enough to say that it is not");
    }

    #[test]
    fn a_sentence_holds_if_all_that_it_says_does() {
        for (parts, whole) in [
            (&[Holds, Holds][..], Holds),
            (&[Holds, DoesNotHold, Undecided], DoesNotHold),
            (&[Holds, Undecided], Undecided),
            (&[], Undecided),
        ] {
            assert_eq!(Judged::all(parts.iter().copied()), whole, "{parts:?}");
        }
    }

    #[test]
    fn most_cases_are_pooled_as_shares() {
        // +10 % at one point and −20 % at another that is ten times as large.
        let (more, less) = ([vec![110.0, 110.0], vec![800.0, 800.0]], [vec![100.0; 2], vec![1000.0; 2]]);
        let pooled = pooled_gains(&more, &less);
        assert!(pooled.iter().all(|gain| (gain + 0.05).abs() < 1e-12), "{pooled:?}");
    }

    #[test]
    fn a_trend_is_from_the_first_point_to_the_last() {
        let points = [vec![9.0, 8.0], vec![10.0, 10.0], vec![11.0, 12.0]];
        assert_eq!(trends(&points), [0.2, 0.4]);
    }

    #[test]
    fn none_in_ten_runs_is_not_none_ever() {
        let none = rare(&[0.0; 10], 1.0);
        assert_eq!(none.mean, 0.0, "the mean is of what was seen");
        // Eleven runs with a single one: the deviation is 1/√11, so the standard error 1/11; times Student's t, 2.228.
        assert!((none.half_width.unwrap() - 2.228 / 11.0).abs() < 1e-4, "{none:?}");
        assert_eq!(Judged::above_zero(&none), Undecided);
        assert_eq!(Judged::above_zero(&rare(&[1.0; 10], 1.0)), Holds);
    }

    #[test]
    fn one_run_scatters_as_the_samples_do() {
        assert!((deviation(&[1.0, 3.0]) - 2.0_f64.sqrt()).abs() < 1e-12);
        let off = one_run_gain(&[110.0, 130.0], &[90.0, 110.0]);
        assert!((off - 1.96 * 20.0 / 100.0).abs() < 1e-12, "{off}");
    }
}
