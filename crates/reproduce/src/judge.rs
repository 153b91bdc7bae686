//! The rule that decides whether a claim holds. It is the same for all papers and figures.
//!
//! The input is always a mean over seeds with its interval, usually of paired differences, and never the mean alone.
//! A sentence claims that something is *better* (or worse), *similar*, *slightly* or *considerably* more, that it
//! *grows*, or that it is a *number*. There is one function for each of these words, with one threshold.
//!
//! A figure with an undecided claim runs again with twice the number of seeds, up to three times
//! ([`Figure::decide`](crate::Figure::decide)). Four tests find an effect by chance more often than one test. So the
//! deciding interval is [`WIDER`] times as wide as the printed one. Over all four tests together, its confidence is
//! 95 %.

use airtcp_numbers::statistics::{Mean, gains};
use serde::{Deserialize, Serialize};

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judged {
    /// The interval confirms the claim.
    Holds,
    /// The interval contradicts the claim.
    DoesNotHold,
    /// The interval is too wide for a decision.
    Undecided,
    /// The paper's number varies between repetitions, and an effect of zero would also meet it.
    NotTestable,
}

/// Width of the deciding interval relative to the printed one: P. C. Pocock's constant for four looks, 2.361, divided
/// by the constant for one look, 1.960 (Biometrika 64, 1977).
pub const WIDER: f64 = 1.205;

/// A difference below this counts as no difference.
pub const TIE: f64 = 0.01;
/// "similar", "little difference", "almost the same", "trivial", "comparable": at most this, in either direction.
pub const SIMILAR: f64 = 0.1;
/// "slightly", "a little", "somewhat": more than zero and at most this.
pub const SLIGHTLY: f64 = 0.1;
/// "considerable", "significant", "much", "obvious", "dramatic", "relatively long": at least this.
pub const CONSIDERABLY: f64 = 0.2;

/// The interval that decides. `None` if there is only one sample.
fn interval(mean: &Mean) -> Option<(f64, f64)> {
    let width = WIDER * mean.half_width?;
    (mean.mean.is_finite() && width.is_finite()).then_some((mean.mean - width, mean.mean + width))
}

impl Judged {
    /// All verdicts.
    pub const ALL: [Self; 4] = [Self::Holds, Self::DoesNotHold, Self::Undecided, Self::NotTestable];

    /// The verdict in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::Undecided => "undecided",
            Self::NotTestable => "not testable",
        }
    }

    /// Whether the value is between `low` and `high`.
    pub fn between(mean: &Mean, low: f64, high: f64) -> Self {
        match interval(mean) {
            Some((from, to)) if from >= low && to <= high => Self::Holds,
            Some((from, to)) if to < low || from > high => Self::DoesNotHold,
            _ => Self::Undecided,
        }
    }

    /// "better", "higher", "outperforms". `gain` is a share of the reference. If the whole interval is within
    /// ±[`TIE`] and contains zero, the claim does not hold.
    pub fn better(gain: &Mean) -> Self {
        match interval(gain) {
            Some((from, _)) if from > 0.0 => Self::Holds,
            Some((from, to)) if to < 0.0 || (from >= -TIE && to <= TIE) => Self::DoesNotHold,
            _ => Self::Undecided,
        }
    }

    /// Whether a count or a time is above zero. Such a value has no reference to be equal to.
    pub fn above_zero(mean: &Mean) -> Self {
        match interval(mean) {
            Some((from, _)) if from > 0.0 => Self::Holds,
            // This includes an effect that is exactly zero in every run.
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

    /// Whether a number of the paper is met. `tolerance` is the deviation of the paper's result, which is a mean over
    /// the paper's repetitions ([`of_repetitions`]). The number is met if the interval overlaps the paper's number ±
    /// `tolerance`. If the interval is wider than that, the claim is undecided, because almost any number would be met.
    pub fn number(ours: &Mean, paper: f64, tolerance: f64) -> Self {
        match interval(ours) {
            Some((from, to)) if to < paper - tolerance || from > paper + tolerance => Self::DoesNotHold,
            Some((from, to)) if (to - from) / 2.0 <= tolerance => Self::Holds,
            _ => Self::Undecided,
        }
    }

    /// Like [`Self::number`], for a gain or another effect. If an effect of zero would also meet the number, the claim
    /// is not testable.
    pub fn effect(ours: &Mean, paper: f64, tolerance: f64) -> Self {
        if paper.abs() <= tolerance { Self::NotTestable } else { Self::number(ours, paper, tolerance) }
    }

    /// The verdict on a sentence with several claims. It holds if they all hold. Claims that are not testable do not
    /// count if there are others.
    pub fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        let all: Vec<_> = parts.into_iter().collect();
        let parts: Vec<_> = all.iter().copied().filter(|part| *part != Self::NotTestable).collect();
        if parts.is_empty() && !all.is_empty() {
            Self::NotTestable
        } else if parts.contains(&Self::DoesNotHold) {
            Self::DoesNotHold
        } else if parts.contains(&Self::Undecided) || parts.is_empty() {
            Self::Undecided
        } else {
            Self::Holds
        }
    }
}

/// The gain of `more` over `less` "in most cases": the average of the gains at all points, per seed. The gain at a
/// point is a share of the mean of `less` there. Both inputs are by point, then by seed.
pub fn pooled_gains(more: &[Vec<f64>], less: &[Vec<f64>]) -> Vec<f64> {
    let points: Vec<_> = more.iter().zip(less).map(|(more, less)| gains(more, less)).collect();
    across(&points)
}

/// The average over several points, per seed. This gives one interval for all points together.
pub fn across(points: &[Vec<f64>]) -> Vec<f64> {
    let seeds = points.iter().map(Vec::len).min().unwrap_or(0);
    let average = |seed: usize| points.iter().map(|point| point[seed]).sum::<f64>() / points.len() as f64;
    (0..seeds).map(average).collect()
}

/// "the more …, the more …": the growth from the first to the last point, per seed, as a share of the mean over all
/// points. It is measured along a straight line fitted to the points in their order.
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

/// The mean of counts of a rare event, such as timeouts in a transfer. Its interval includes one additional run with
/// the count `once`. Without this run, the interval of zero observations would have no width, as if the event could
/// never happen.
pub fn rare(counts: &[f64], once: f64) -> Mean {
    let half_width = Mean::of(&with_one_more(counts, once)).and_then(|more| more.half_width);
    let mean = Mean::of(counts).map_or(f64::NAN, |seen| seen.mean);
    Mean { mean, half_width, samples: counts.len() }
}

/// The counts from which [`rare`] calculates its interval.
pub fn with_one_more(counts: &[f64], once: f64) -> Vec<f64> {
    counts.iter().copied().chain([once]).collect()
}

/// The standard deviation of a single run.
pub fn deviation(samples: &[f64]) -> f64 {
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    let squares: f64 = samples.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (samples.len().max(2) - 1) as f64).sqrt()
}

/// The deviation of a mean over `repetitions` runs: 95 % of such means are within this distance of the true mean.
pub fn of_repetitions(samples: &[f64], repetitions: u32) -> f64 {
    1.96 * deviation(samples) / f64::from(repetitions).sqrt()
}

/// The deviation of a gain between two means over `repetitions` runs, as a share.
pub fn gain_of_repetitions(with: &[f64], without: &[f64], repetitions: u32) -> f64 {
    let base = without.iter().sum::<f64>() / without.len() as f64;
    of_repetitions(with, repetitions).hypot(of_repetitions(without, repetitions)) / base
}

#[cfg(test)]
mod tests {
    use super::*;

    use Judged::{DoesNotHold, Holds, NotTestable, Undecided};

    /// A mean whose deciding interval has this half width.
    fn mean_with_width(mean: f64, half_width: f64) -> Mean {
        Mean { mean, half_width: Some(half_width / WIDER), samples: 30 }
    }

    #[test]
    fn interval_containing_zero_is_undecided_unless_narrow() {
        assert_eq!(Judged::better(&mean_with_width(0.05, 0.04)), Holds);
        assert_eq!(Judged::better(&mean_with_width(-0.05, 0.04)), DoesNotHold);
        assert_eq!(Judged::better(&mean_with_width(0.03, 0.04)), Undecided);
        assert_eq!(Judged::better(&mean_with_width(0.002, 0.005)), DoesNotHold, "a tie");
        assert_eq!(Judged::better(&mean_with_width(0.005, 0.004)), Holds, "small, but certain");
        assert_eq!(Judged::better(&Mean { mean: 1.0, half_width: None, samples: 1 }), Undecided);
        assert_eq!(Judged::better(&Mean { mean: f64::NAN, half_width: Some(0.1), samples: 3 }), Undecided);
    }

    #[test]
    fn above_zero_requires_interval_above_zero() {
        assert_eq!(Judged::above_zero(&mean_with_width(5.0, 4.0)), Holds);
        assert_eq!(Judged::above_zero(&mean_with_width(3.0, 4.0)), Undecided);
        assert_eq!(Judged::above_zero(&mean_with_width(0.0, 0.0)), DoesNotHold);
    }

    #[test]
    fn comparison_words_have_fixed_thresholds() {
        assert_eq!(Judged::similar(&mean_with_width(-0.05, 0.04)), Holds);
        assert_eq!(Judged::similar(&mean_with_width(-0.15, 0.04)), DoesNotHold);
        assert_eq!(Judged::similar(&mean_with_width(-0.1, 0.04)), Undecided);
        assert_eq!(Judged::slightly(&mean_with_width(0.05, 0.04)), Holds);
        assert_eq!(Judged::slightly(&mean_with_width(0.2, 0.04)), DoesNotHold);
        assert_eq!(Judged::slightly(&mean_with_width(-0.05, 0.04)), DoesNotHold);
        assert_eq!(Judged::slightly(&mean_with_width(0.03, 0.04)), Undecided);
        assert_eq!(Judged::considerably(&mean_with_width(0.35, 0.1)), Holds);
        assert_eq!(Judged::considerably(&mean_with_width(0.1, 0.09)), DoesNotHold);
        assert_eq!(Judged::considerably(&mean_with_width(0.25, 0.1)), Undecided);
    }

    #[test]
    fn effect_within_tolerance_of_zero_is_not_testable() {
        assert_eq!(Judged::effect(&mean_with_width(0.4, 0.05), 0.21, 0.74), NotTestable);
        assert_eq!(Judged::effect(&mean_with_width(0.4, 0.05), 0.21, 0.1), DoesNotHold);
        assert_eq!(Judged::effect(&mean_with_width(-0.2, 0.05), -0.21, 0.1), Holds);
    }

    #[test]
    fn number_is_met_within_tolerance() {
        assert_eq!(Judged::number(&mean_with_width(17.0, 1.0), 19.0, 3.0), Holds);
        assert_eq!(Judged::number(&mean_with_width(14.0, 1.0), 19.0, 3.0), DoesNotHold);
        assert_eq!(
            Judged::number(&mean_with_width(19.0, 4.0), 19.0, 3.0),
            Undecided,
            "too few seeds to say that it is met"
        );
        assert_eq!(
            Judged::number(&mean_with_width(9.0, 4.0), 19.0, 3.0),
            DoesNotHold,
            "enough seeds to say that it is not met"
        );
    }

    #[test]
    fn sentence_holds_only_if_all_parts_hold() {
        for (parts, whole) in [
            (&[Holds, Holds][..], Holds),
            (&[Holds, DoesNotHold, Undecided], DoesNotHold),
            (&[Holds, Undecided], Undecided),
            (&[Holds, NotTestable], Holds),
            (&[NotTestable, NotTestable], NotTestable),
            (&[], Undecided),
        ] {
            assert_eq!(Judged::all(parts.iter().copied()), whole, "{parts:?}");
        }
    }

    #[test]
    fn pooled_gains_average_relative_gains() {
        // +10 % at one point, and −20 % at another one with values ten times as large.
        let (more, less) = ([vec![110.0, 110.0], vec![800.0, 800.0]], [vec![100.0; 2], vec![1000.0; 2]]);
        let pooled = pooled_gains(&more, &less);
        assert!(pooled.iter().all(|gain| (gain + 0.05).abs() < 1e-12), "{pooled:?}");
    }

    #[test]
    fn trend_compares_first_and_last_point() {
        let points = [vec![9.0, 8.0], vec![10.0, 10.0], vec![11.0, 12.0]];
        assert_eq!(trends(&points), [0.2, 0.4]);
    }

    #[test]
    fn absence_in_ten_runs_is_undecided() {
        let none = rare(&[0.0; 10], 1.0);
        assert_eq!(none.mean, 0.0, "the mean does not include the additional run");
        // Eleven runs with one event: the deviation is 1/√11, the standard error 1/11, and Student's t is 2.228.
        assert!((none.half_width.unwrap() - 2.228 / 11.0).abs() < 1e-4, "{none:?}");
        assert_eq!(Judged::above_zero(&none), Undecided);
        assert_eq!(Judged::above_zero(&rare(&[1.0; 10], 1.0)), Holds);
    }

    #[test]
    fn more_repetitions_deviate_less() {
        assert!((deviation(&[1.0, 3.0]) - 2.0_f64.sqrt()).abs() < 1e-12);
        for (repetitions, expected) in [(1, 1.96 * 20.0 / 100.0), (4, 1.96 * 10.0 / 100.0)] {
            let off = gain_of_repetitions(&[110.0, 130.0], &[90.0, 110.0], repetitions);
            assert!((off - expected).abs() < 1e-12, "{off}");
        }
    }
}
