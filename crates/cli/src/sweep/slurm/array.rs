//! Divides the missing runs of a plan into jobs.

use std::fmt;

use super::super::ranges::{Ranges, ranges};

/// The parts of a plan that contain missing runs. Each part is a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array {
    /// Number of parts. The run with index `i` belongs to part `i % of + 1`.
    pub(super) of: usize,
    /// Numbers of the parts that contain missing runs, from 1.
    parts: Vec<usize>,
    /// Cost of the most expensive part.
    pub(super) fullest: f64,
}

impl Array {
    /// Maximum deviation from the requested number of parts.
    const AROUND: usize = 16;
    /// The search stops if the most expensive part costs at most this many times the mean.
    const EVEN: f64 = 1.05;

    /// Chooses at most `tasks` jobs for these runs, each with its cost. No job has a number above `most`.
    ///
    /// The missing runs may be every eighth run, and the cost may repeat with the values of an axis. A number
    /// of parts close to the requested one can then be much more balanced. The best division is the one whose
    /// most expensive part costs least.
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
    fn array_splits_runs_into_requested_parts() {
        let runs: Vec<_> = (0..12).map(|run| (run, 2.0)).collect();
        let array = choose(&runs, 3, 1000);
        assert_eq!((array.of, array.to_string().as_str(), array.fullest), (3, "1-3", 8.0));
        assert_eq!(choose(&runs, 12, 1000).to_string(), "1-12");
        // With six parts and with seven, no part has more than two of the twelve runs. Seven were requested.
        assert_eq!(choose(&runs, 7, 1000).of, 7);
    }

    #[test]
    fn runs_left_by_one_part_are_split_again() {
        // The third of eight jobs failed: runs 2, 10, 18, …
        let runs: Vec<_> = (0..80).filter(|run| run % 8 == 2).map(|run| (run, 1.0)).collect();
        assert_eq!(choose(&runs, 1, 1000).to_string(), "1");
        let array = choose(&runs, 5, 1000);
        assert_eq!((array.of, array.tasks(), array.fullest), (5, 5, 2.0));
        // Eight parts would be one job with all ten runs.
        let array = choose(&runs, 8, 1000);
        assert!(array.tasks() <= 8 && array.fullest <= 2.0, "{array:?}");
        // Larger job numbers are not allowed.
        assert!(choose(&runs, 8, 8).of <= 8);
    }

    #[test]
    fn parts_without_runs_are_not_submitted() {
        let array = choose(&[(1, 1.0), (2, 1.0), (5, 1.0)], 3, 1000);
        let parts = |array: &Array| array.parts.clone();
        assert!([1, 2, 5].iter().all(|run| parts(&array).contains(&(run % array.of + 1))), "{array:?}");
        assert_eq!(array.tasks(), 3);
        assert_eq!(array.fullest, 1.0);
    }

    #[test]
    fn expensive_axis_value_is_spread_over_jobs() {
        // The last axis has four values, and one of them costs ten times as much.
        let runs: Vec<_> = (0..400).map(|run| (run, if run % 4 == 0 { 10.0 } else { 1.0 })).collect();
        let array = choose(&runs, 4, 1000);
        assert!(array.of != 4 && array.tasks() <= 4, "{array:?}");
        assert!(array.fullest < 500.0, "{array:?}");
    }
}
