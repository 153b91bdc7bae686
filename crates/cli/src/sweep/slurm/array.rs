//! Which parts of a plan become jobs.

use std::fmt;

use super::super::ranges::{Ranges, ranges};

/// A job for each part of a plan that has something to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array {
    /// Into how many parts the plan is cut: every part has each so-manieth run.
    pub(super) of: usize,
    /// The parts that have something to do, from 1.
    parts: Vec<usize>,
    /// What the fullest of them costs.
    pub(super) fullest: f64,
}

impl Array {
    /// More numbers than this beside the one that is wanted are not tried.
    const AROUND: usize = 16;
    /// So much more than their mean the fullest part may have.
    const EVEN: f64 = 1.05;

    /// At most `tasks` jobs for these runs, each with its cost, none with a number above `most`.
    ///
    /// What is missing may be every eighth run, and costs may repeat with an axis. A number of parts beside the one that is wanted
    /// can be much more even; all that matters is how full the fullest is.
    pub(super) fn choose(
        runs: impl Iterator<Item = (usize, f64)> + Clone,
        tasks: usize,
        most: usize,
    ) -> Self {
        let whole: f64 = runs.clone().map(|(_, cost)| cost).sum();
        let cut = |of: usize| {
            let mut costs = vec![None; of];
            for (run, cost) in runs.clone() {
                *costs[run % of].get_or_insert(0.0) += cost;
            }
            let parts = (0..of).filter(|part| costs[*part].is_some()).map(|part| part + 1).collect();
            let fullest = costs.iter().flatten().fold(0.0, |most: f64, cost| most.max(*cost));
            Self { of, parts, fullest }
        };
        let mut best = cut(tasks);
        let around = (1..=Self::AROUND).flat_map(|by| [tasks.checked_add(by), tasks.checked_sub(by)]);
        for of in around.flatten().filter(|of| (1..=most).contains(of)) {
            if best.fullest <= Self::EVEN * whole / tasks as f64 {
                break;
            }
            let other = cut(of);
            if other.tasks() <= tasks && other.fullest < best.fullest {
                best = other;
            }
        }
        best
    }

    pub(super) fn tasks(&self) -> usize {
        self.parts.len()
    }
}

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Ranges(&ranges(self.parts.iter().copied())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(runs: &[(usize, f64)], tasks: usize, most: usize) -> Array {
        Array::choose(runs.iter().copied(), tasks, most)
    }

    #[test]
    fn all_runs_of_a_sweep_are_cut_as_asked() {
        let runs: Vec<_> = (0..12).map(|run| (run, 2.0)).collect();
        let array = choose(&runs, 3, 1000);
        assert_eq!((array.of, array.to_string().as_str(), array.fullest), (3, "1-3", 8.0));
        assert_eq!(choose(&runs, 12, 1000).to_string(), "1-12");
        // Seven parts have two of twelve runs at most; six have, too, but seven were wanted.
        assert_eq!(choose(&runs, 7, 1000).of, 7);
    }

    #[test]
    fn what_one_part_has_left_is_cut_anew() {
        // The third of eight jobs was lost: 3, 11, 19, …
        let runs: Vec<_> = (0..80).filter(|run| run % 8 == 2).map(|run| (run, 1.0)).collect();
        assert_eq!(choose(&runs, 1, 1000).to_string(), "1");
        let array = choose(&runs, 5, 1000);
        assert_eq!((array.of, array.tasks(), array.fullest), (5, 5, 2.0));
        // Eight parts would be one job with all ten runs.
        let array = choose(&runs, 8, 1000);
        assert!(array.tasks() <= 8 && array.fullest <= 2.0, "{array:?}");
        // Nobody has the numbers for more parts.
        assert!(choose(&runs, 8, 8).of <= 8);
    }

    #[test]
    fn parts_without_a_run_are_no_jobs() {
        let array = choose(&[(1, 1.0), (2, 1.0), (5, 1.0)], 3, 1000);
        let parts = |array: &Array| array.parts.clone();
        assert!([1, 2, 5].iter().all(|run| parts(&array).contains(&(run % array.of + 1))), "{array:?}");
        assert_eq!(array.tasks(), 3);
        assert_eq!(array.fullest, 1.0);
    }

    #[test]
    fn a_dear_value_of_an_axis_is_spread() {
        // The last axis has four values, and one of them costs ten times as much.
        let runs: Vec<_> = (0..400).map(|run| (run, if run % 4 == 0 { 10.0 } else { 1.0 })).collect();
        let array = choose(&runs, 4, 1000);
        assert!(array.of != 4 && array.tasks() <= 4, "{array:?}");
        assert!(array.fullest < 500.0, "{array:?}");
    }
}
