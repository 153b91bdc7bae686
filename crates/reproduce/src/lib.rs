//! Runs the experiments of five papers again, in virtual time: every figure and table that has numbers or a curve, with
//! our results beside the papers'.
//!
//! Begin with [`figures`], which lists them all. A [`Figure`] is a function that runs what the paper ran, with paired
//! seeds, and returns a [`Finding`]: tables, the claims of the paper and whether they hold here, and the details that
//! had to be chosen because the paper does not state them. Nothing is fitted: a claim that does not hold is reported,
//! with the reason if it was found.
//!
//! [`p0`] to [`p4`] are one paper each; the module `setting` in each is what the paper ran its senders on. `ranking`
//! compares the whole catalogue on paths of each paper.

pub mod chart;
mod choices;
mod effort;
mod finding;
pub mod judge;
pub mod p0;
pub mod p1;
pub mod p2;
pub mod p3;
pub mod p4;
mod ranking;

use airtcp_sim::world::WorldError;
pub use choices::{By, Shared};
pub use effort::{Effort, Watcher};
pub use finding::{Claim, Counts, Finding, Table, listed, shown};
pub(crate) use finding::{cell, mean};
pub use judge::Judged;

/// The paper that a figure is from; [`Paper::reference`] has authors and titles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Pan, Mark, Shen: segment-in-flight estimation.
    P0,
    /// Ni, Turletti, Fu: hybrid paths, and judges of loss causes.
    P1,
    /// Inamura, Miyake, Okada: W-CDMA.
    P2,
    /// Lai, Leung, Li: AIMD with a tax rebate.
    P3,
    /// Chandra, Harris, Shenoy: E-TCP.
    P4,
    /// All five together: the ranking.
    Every,
}

impl Paper {
    /// The papers themselves, without `Every`.
    pub const ALL: [Self; 5] = [Self::P0, Self::P1, Self::P2, Self::P3, Self::P4];

    /// Authors, year and title.
    pub const fn reference(self) -> &'static str {
        match self {
            Self::P0 => {
                "J. Pan, J. W. Mark, X. Shen, 2004: TCP performance with segment-in-flight estimation algorithm over wireless links"
            }
            Self::P1 => {
                "Q. Ni, T. Turletti, W. Fu, 2002: Simulation-based analysis of TCP behavior over hybrid wireless & wired networks"
            }
            Self::P2 => {
                "H. Inamura, M. Miyake, K. Okada, 2009: Mitigations in TCP performance for jitter and loss in W-CDMA networks"
            }
            Self::P3 => {
                "C. Lai, K.-C. Leung, V. O. K. Li, 2013: Design and analysis of TCP AIMD in wireless networks"
            }
            Self::P4 => {
                "D. Chandra, R. J. Harris, N. Shenoy, 2003: TCP performance for future IP-based wireless networks"
            }
            Self::Every => "What wins",
        }
    }

    /// The first author and the year.
    pub const fn cited(self) -> &'static str {
        match self {
            Self::P0 => "Pan et al. 2004",
            Self::P1 => "Ni et al. 2002",
            Self::P2 => "Inamura et al. 2009",
            Self::P3 => "Lai et al. 2013",
            Self::P4 => "Chandra et al. 2003",
            Self::Every => "all five",
        }
    }
}

/// One figure, table or passage with numbers.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The name that a person types, such as `p0-fig11a`.
    pub id: &'static str,
    /// The paper that has it.
    pub paper: Paper,
    /// What it shows.
    pub title: &'static str,
    /// Makes all of its runs, on all cores. An error is a fault of the program, not a claim that fails.
    pub run: fn(&Effort) -> Result<Finding, WorldError>,
    /// What more seeds mean for it.
    pub seeds: Seeds,
}

/// What more seeds mean for a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// As many runs for each.
    Each,
    /// The same, but never more seeds than these: its runs are long.
    UpTo(u32),
    /// It searches, and decides by itself how many seeds each step has.
    Search,
}

/// All of them, paper by paper, the ranking last.
pub fn figures() -> Vec<Figure> {
    [p0::FIGURES, p1::FIGURES, p2::FIGURES, p3::FIGURES, p4::FIGURES, ranking::FIGURES].concat()
}

impl Figure {
    /// Runs the first seed of it, to see how long it takes. Of a search that is a sample: it makes as many runs with one
    /// seed as with twenty.
    pub fn look(&self, effort: &Effort) -> Result<(), WorldError> {
        match self.seeds {
            Seeds::Each | Seeds::UpTo(_) => (self.run)(effort).map(drop),
            Seeds::Search => ranking::sample(effort),
        }
    }

    /// How many runs so many seeds take beside the `first` that [`Figure::look`] made, about.
    pub fn further(&self, first: u64, seeds: u32) -> u64 {
        match self.seeds {
            Seeds::Each => first * u64::from(seeds - 1),
            Seeds::UpTo(most) => first * u64::from(seeds.min(most) - 1),
            Seeds::Search => ranking::forecast(seeds),
        }
    }

    /// Runs it with the seeds of `effort`, and again with twice as many for as long as a claim that counts is undecided,
    /// until the next time would take more than `most`. `looked` is told, after each time, how many seeds there were and
    /// how many claims are undecided. Returns the last finding and its seeds.
    pub fn decide(
        &self,
        mut effort: Effort,
        most: u32,
        mut looked: impl FnMut(u32, usize),
    ) -> Result<(Finding, u32), WorldError> {
        loop {
            let finding = (self.run)(&effort)?;
            let undecided = |claim: &&Claim| claim.counts == Counts::Yes && claim.judged == Judged::Undecided;
            let undecided = finding.claims.iter().filter(undecided).count();
            looked(effort.seeds, undecided);
            let more = effort.seeds.saturating_mul(2);
            if undecided == 0 || more > most {
                return Ok((finding, effort.seeds));
            }
            effort = effort.with(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(id: &str) -> Figure {
        figures().into_iter().find(|figure| figure.id == id).expect("there is such a figure")
    }

    #[test]
    fn more_seeds_are_as_many_more_runs_as_a_figure_makes_of_them() {
        assert_eq!(figure("p0-fig11a").further(10, 30), 290);
        let sensitivity = figure("p3-sensitivity");
        assert_eq!(sensitivity.further(10, 5), 40);
        assert_eq!(sensitivity.further(10, 30), sensitivity.further(10, 10));
        // The search has two seeds at least.
        let ranking = figure("ranking");
        assert_eq!(ranking.further(22, 2), ranking.further(44, 2));
        assert!(ranking.further(22, 1) < ranking.further(22, 2));
        assert!(ranking.further(22, 20) < 10 * ranking.further(22, 2), "it does not grow as the seeds do");
    }
}
