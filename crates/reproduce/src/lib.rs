//! Reproduces the experiments of five papers about TCP over radio links in virtual time. Each figure repeats the runs
//! of a figure or table of a paper with several seeds. The result has a verdict on each of the paper's claims.
//!
//! ```
//! use airtcp_reproduce::{Effort, figures};
//!
//! let figure = figures().into_iter().find(|figure| figure.id == "p2-fig13").expect("the figure exists");
//! let finding = figure.run(&Effort::new(1))?;
//! for claim in &finding.claims {
//!     println!("{}: {}", claim.verdict_name(), claim.sentence);
//! }
//! assert_eq!(finding.claims.len(), 3);
//! # Ok::<(), airtcp_sim::world::WorldError>(())
//! ```
//!
//! [`figures`] lists all figures. [`Figure::run`] returns a [`Finding`]: tables, the claims of the paper with verdicts,
//! and the choices for details that the paper does not state. A few of these details are chosen to match numbers of
//! the paper, for example the timer tick of [`pan2004`]; their choices say so. A claim that does not hold is reported,
//! with the reason if it is known.
//!
//! Each paper has a module, named after its first author and year. The submodule `setting` contains the set-up of the
//! paper, and `choices.md` its choices for details that the paper leaves open.
//! `ranking` compares recipes from the whole catalogue on paths of each paper.

#![warn(missing_docs)]

mod central;
pub mod chandra2003;
pub mod chart;
mod choices;
mod effort;
mod finding;
mod grid;
pub mod inamura2009;
pub mod judge;
pub mod lai2013;
pub mod ni2002;
pub mod pan2004;
mod playground;
mod ranking;
pub mod reading;
mod runs;

use airtcp_sim::world::WorldError;
pub use central::Central;
pub use choices::{Scope, Shared};
pub use effort::{Effort, Missing, Watcher};
pub(crate) use effort::{named, unnamed};
pub(crate) use finding::{At, Found, cell, claim, column, found, mean};
pub use finding::{Claim, Counts, Finding, Table, listed, shown};
pub use judge::Judged;
pub use playground::PlaygroundSetup;
use reading::Design;
pub use reading::{Factor, Reading, ReadingVerdict, Verdict};
pub use runs::Runs;

/// The paper of a figure. [`Paper::reference`] has authors and titles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Pan, Mark, Shen: segment-in-flight estimation.
    Pan2004,
    /// Ni, Turletti, Fu: hybrid paths, and attribution of losses.
    Ni2002,
    /// Inamura, Miyake, Okada: W-CDMA.
    Inamura2009,
    /// Lai, Leung, Li: AIMD with a tax rebate.
    Lai2013,
    /// Chandra, Harris, Shenoy: E-TCP.
    Chandra2003,
    /// All five papers together, for the ranking.
    Every,
}

impl Paper {
    /// The five papers, without `Every`.
    pub const ALL: [Self; 5] =
        [Self::Pan2004, Self::Ni2002, Self::Inamura2009, Self::Lai2013, Self::Chandra2003];

    /// Authors, year and title.
    pub const fn reference(self) -> &'static str {
        match self {
            Self::Pan2004 => {
                "J. Pan, J. W. Mark, X. Shen, 2004: TCP performance with segment-in-flight estimation algorithm over wireless links"
            }
            Self::Ni2002 => {
                "Q. Ni, T. Turletti, W. Fu, 2002: Simulation-based analysis of TCP behavior over hybrid wireless & wired networks"
            }
            Self::Inamura2009 => {
                "H. Inamura, M. Miyake, K. Okada, 2009: Mitigations in TCP performance for jitter and loss in W-CDMA networks"
            }
            Self::Lai2013 => {
                "C. Lai, K.-C. Leung, V. O. K. Li, 2013: Design and analysis of TCP AIMD in wireless networks"
            }
            Self::Chandra2003 => {
                "D. Chandra, R. J. Harris, N. Shenoy, 2003: TCP performance for future IP-based wireless networks"
            }
            Self::Every => "Ranking of recipes",
        }
    }

    /// The name of the page with its figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pan2004 => "pan2004",
            Self::Ni2002 => "ni2002",
            Self::Inamura2009 => "inamura2009",
            Self::Lai2013 => "lai2013",
            Self::Chandra2003 => "chandra2003",
            Self::Every => "ranking",
        }
    }

    /// The details that the paper leaves open, each with values that agree with its text.
    pub fn factors(self) -> &'static [Factor] {
        match self {
            Self::Pan2004 => &pan2004::FACTORS,
            Self::Ni2002 => &ni2002::FACTORS,
            Self::Inamura2009 => &inamura2009::FACTORS,
            Self::Lai2013 => &lai2013::FACTORS,
            Self::Chandra2003 => &chandra2003::FACTORS,
            Self::Every => &[],
        }
    }

    /// All readings of the paper except the chosen one.
    pub fn readings(self) -> Vec<Reading> {
        // The runs of this paper are long.
        let design = if self == Self::Lai2013 { Design::OneAtATime } else { Design::Product };
        Reading::others(self.factors(), design)
    }

    /// The first author and the year.
    pub const fn cited(self) -> &'static str {
        match self {
            Self::Pan2004 => "Pan et al. 2004",
            Self::Ni2002 => "Ni et al. 2002",
            Self::Inamura2009 => "Inamura et al. 2009",
            Self::Lai2013 => "Lai et al. 2013",
            Self::Chandra2003 => "Chandra et al. 2003",
            Self::Every => "all five papers",
        }
    }
}

/// The runs of a figure. An error is a fault of the program and not a claim that does not hold.
type Reproduce = fn(&Effort) -> Result<Finding, WorldError>;

/// One figure, table or passage with numbers.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The name on the command line, such as `p0-fig11a`.
    pub id: &'static str,
    /// The paper of the figure.
    pub paper: Paper,
    /// The title of the figure.
    pub title: &'static str,
    /// How its number of runs depends on the seeds.
    pub seeds: Seeds,
    run: Reproduce,
    /// Details for which the figure sets its own values. Readings with other values do not apply to the
    /// figure.
    fixed: &'static [&'static str],
}

/// How the number of runs of a figure depends on the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// The same number of runs for each seed.
    Each,
    /// The same, with at most this number of seeds, because the runs are long.
    UpTo(u32),
    /// A search, which chooses the number of seeds of each step.
    Search,
    /// One run, because nothing is random.
    One,
}

/// All figures, paper by paper. The ranking is last.
pub fn figures() -> Vec<Figure> {
    [
        pan2004::FIGURES,
        ni2002::FIGURES,
        inamura2009::FIGURES,
        lai2013::FIGURES,
        chandra2003::FIGURES,
        ranking::FIGURES,
    ]
    .concat()
}

impl Figure {
    const fn new(paper: Paper, id: &'static str, title: &'static str, run: Reproduce) -> Self {
        Self { id, paper, title, seeds: Seeds::Each, run, fixed: &[] }
    }

    /// Declares that nothing in the figure is random.
    const fn once(self) -> Self {
        Self { seeds: Seeds::One, ..self }
    }

    /// Names details for which the figure sets its own values.
    const fn fixing(self, fixed: &'static [&'static str]) -> Self {
        Self { fixed, ..self }
    }

    /// Executes all runs of the figure on all cores.
    pub fn run(&self, effort: &Effort) -> Result<Finding, WorldError> {
        let mut finding = (self.run)(effort)?;
        if finding.choices.is_empty() {
            finding.choices = self.paper.own_choices(self.id);
        }
        finding.claims.iter_mut().for_each(|claim| claim.once = self.seeds == Seeds::One);
        Ok(finding)
    }

    /// The readings of the paper that apply to the figure.
    pub fn readings(&self) -> Vec<Reading> {
        let mut readings = self.paper.readings();
        readings.retain(|reading| self.fixed.iter().all(|detail| reading.value(detail).is_none()));
        readings
    }

    /// Also judges the claims of `finding` in the other readings of the paper. Each reading starts with a
    /// quarter of the seeds of `effort`, and the number doubles while a claim is undecided, but not beyond
    /// the seeds of `effort`.
    pub fn judge_readings(&self, finding: &mut Finding, effort: &Effort) -> Result<(), WorldError> {
        if finding.claims.iter().all(|claim| claim.counts != Counts::Yes) {
            return Ok(());
        }
        for reading in self.readings() {
            let few = effort.with_reading(reading.clone()).with_seeds(effort.seeds.div_ceil(4));
            let (other, _) = self.decide(few, effort.seeds, |_, _| {})?;
            for claim in &mut finding.claims {
                if let Some(other) = other.claims.iter().find(|other| other.sentence == claim.sentence) {
                    claim.add_reading(&reading, other);
                }
            }
        }
        Ok(())
    }

    /// Runs the first seed, to measure how long it takes. For a search, this is only a sample, because its number of
    /// runs does not grow in proportion to the seeds.
    pub fn run_first_seed(&self, effort: &Effort) -> Result<(), WorldError> {
        match self.seeds {
            Seeds::Each | Seeds::UpTo(_) | Seeds::One => self.run(effort).map(drop),
            Seeds::Search => ranking::sample(effort),
        }
    }

    /// The approximate number of remaining runs for `seeds` seeds, if [`Figure::run_first_seed`] took `first` runs.
    pub fn remaining_runs(&self, first: u64, seeds: u32) -> u64 {
        match self.seeds {
            Seeds::Each => first * u64::from(seeds - 1),
            Seeds::UpTo(most) => first * u64::from(seeds.min(most) - 1),
            Seeds::Search => ranking::forecast(seeds),
            Seeds::One => 0,
        }
    }

    /// Runs the figure with the seeds of `effort`. While a claim that counts is undecided, it runs again with twice
    /// the number of seeds, up to `most`. `report_undecided` receives the number of seeds and of undecided claims after
    /// each time. Returns the last finding and its number of seeds.
    pub fn decide(
        &self,
        mut effort: Effort,
        most: u32,
        mut report_undecided: impl FnMut(u32, usize),
    ) -> Result<(Finding, u32), WorldError> {
        loop {
            let finding = self.run(&effort)?;
            let undecided = |claim: &&Claim| claim.counts == Counts::Yes && claim.judged == Judged::Undecided;
            let undecided = finding.claims.iter().filter(undecided).count();
            report_undecided(effort.seeds, undecided);
            if undecided == 0 || effort.seeds >= most || self.seeds == Seeds::One {
                return Ok((finding, effort.seeds));
            }
            let more = effort.seeds.saturating_mul(2).min(most);
            effort = effort.with_seeds(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(id: &str) -> Figure {
        figures().into_iter().find(|figure| figure.id == id).expect("a figure with this id exists")
    }

    #[test]
    fn remaining_runs_depend_on_figure_and_seeds() {
        assert_eq!(figure("p0-fig11a").remaining_runs(10, 30), 290);
        let sensitivity = figure("p3-sensitivity");
        assert_eq!(sensitivity.remaining_runs(10, 5), 40);
        assert_eq!(sensitivity.remaining_runs(10, 30), sensitivity.remaining_runs(10, 10));
        // The search uses at least two seeds.
        let ranking = figure("ranking");
        assert_eq!(ranking.remaining_runs(22, 2), ranking.remaining_runs(44, 2));
        assert!(ranking.remaining_runs(22, 1) < ranking.remaining_runs(22, 2));
        assert!(
            ranking.remaining_runs(22, 20) < 10 * ranking.remaining_runs(22, 2),
            "its runs do not grow in proportion to the seeds"
        );
    }
}
