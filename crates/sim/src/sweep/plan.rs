//! All runs of a sweep in a fixed order. The last axis varies fastest; the runs of a point with
//! different seeds are adjacent. All points have the same seeds, so the runs of two points with the
//! same seed form a pair.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use airfiles::{PathSource, limits};
use airlink::scenario::{Scenario, ScenarioError};
use airtcp::recovery::inputs::merged;
use sha2::{Digest, Sha256};

use super::file::{Assignment, Axis, File, FileError, Target};
use super::labels::Labels;
use super::metric::Metric;
use super::setup::{Key, Setup};
use crate::run::{self, Report};
use crate::world::WorldError;

/// All runs of a sweep.
pub struct Plan {
    /// Description from the sweep file, possibly empty.
    pub description: String,
    /// Every combination of the axis values.
    pub points: Vec<Point>,
    /// The seeds. Each point is run once with each seed.
    pub seeds: Vec<u64>,
    /// The metrics that a summary shows.
    pub metrics: Vec<Metric>,
    /// Hash, as 16 hexadecimal digits, of everything that the results depend on except the program.
    pub hash: String,
}

/// A combination of axis values.
pub struct Point {
    /// The names of the axes, in the order of the file, with the values of this point.
    pub labels: Labels,
    /// The run, without its seed.
    pub setup: Setup,
    /// Hash, as 16 hexadecimal digits, of everything that a result depends on except the seed and
    /// the program. It does not include the labels or the position in the plan.
    pub content_hash: String,
    scenario: Scenario,
}

/// A run of a plan.
#[derive(Clone, Copy)]
pub struct Planned<'a> {
    /// Number of the run in the plan, from 0.
    pub index: usize,
    /// The point to run.
    pub point: &'a Point,
    /// The seed.
    pub seed: u64,
}

/// Error when a plan is read.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: std::io::Error,
    },
    /// The file is not a valid sweep.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Maximum number of points. All points are built and checked before the first run, so they must
/// fit into memory.
const MAX_POINTS: usize = 100_000;

impl Plan {
    /// Reads a sweep file. Paths of scenarios are relative to the file.
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let text = airfiles::read_text(path, PathSource::User, limits::WRITTEN_BY_HAND)
            .map_err(|error| PlanError::Read { path: path.to_owned(), error })?;
        let directory = path.parent().unwrap_or_else(|| Path::new(""));
        Ok(Self::parse(&text, &path.display().to_string(), directory)?)
    }

    /// Parses a sweep from text. `name` identifies it in errors, and paths of scenarios are
    /// relative to `directory`.
    pub fn parse(text: &str, name: &str, directory: &Path) -> Result<Self, FileError> {
        let file = File::parse(text, name)?;
        let wrong = |line, message| FileError { file: name.to_owned(), line, message };
        let count = file.axes.iter().try_fold(1_usize, |count, axis| count.checked_mul(axis.steps.len()));
        let Some(count) = count.filter(|count| *count <= MAX_POINTS) else {
            return Err(wrong(None, format!("the axes have more than {MAX_POINTS} points; split the sweep")));
        };
        check_disjoint(&file.axes).map_err(|(line, message)| wrong(Some(line), message))?;
        let points = (0..count)
            .map(|index| Point::build(&file, index, directory).map_err(|(line, text)| wrong(line, text)))
            .collect::<Result<Vec<_>, _>>()?;
        let hash = hash(&points, &file.seeds);
        let metrics = if file.metrics.is_empty() { Metric::defaults() } else { file.metrics };
        Ok(Self { description: file.description, points, seeds: file.seeds, metrics, hash })
    }

    /// Returns the number of runs: points times seeds.
    pub fn runs(&self) -> usize {
        self.points.len() * self.seeds.len()
    }

    /// Returns a warning for each part of a recipe whose information cannot arrive, with the number
    /// of points.
    pub fn notices(&self) -> Vec<String> {
        let of = |point: &Point| point.setup.notices(&point.scenario);
        let notices: Vec<_> = self.points.iter().map(of).collect();
        merged(notices.iter().map(Vec::as_slice), "points")
    }

    /// Returns the run with this number.
    ///
    /// # Panics
    /// If the number is not less than [`Self::runs`].
    pub fn run(&self, index: usize) -> Planned<'_> {
        let (point, seed) = (index / self.seeds.len(), index % self.seeds.len());
        Planned { index, point: &self.points[point], seed: self.seeds[seed] }
    }
}

impl Planned<'_> {
    /// Returns the command line of `airtcp sim` that repeats the run.
    pub fn command(&self) -> String {
        self.point.setup.command(self.seed)
    }

    /// Executes the run to its end.
    pub fn execute(&self) -> Result<Report, WorldError> {
        run::run(&self.point.setup.run(self.point.scenario.clone(), self.seed))
    }
}

/// Checks that no two axes set the same option or setting.
fn check_disjoint(axes: &[Axis]) -> Result<(), (usize, String)> {
    for (index, axis) in axes.iter().enumerate() {
        let targets = |axis: &Axis| -> Vec<Target> {
            axis.steps.iter().flat_map(|step| &step.assignments).map(|one| one.target.clone()).collect()
        };
        let own = targets(axis);
        if let Some(other) =
            axes[..index].iter().find(|other| targets(other).iter().any(|target| own.contains(target)))
        {
            return Err((
                axis.line,
                format!("the axes `{}` and `{}` set the same option", other.name, axis.name),
            ));
        }
    }
    Ok(())
}

impl Point {
    fn build(file: &File, index: usize, directory: &Path) -> Result<Self, (Option<usize>, String)> {
        let mut labels = Vec::new();
        let mut assignments: Vec<&Assignment> = file.fixed.iter().collect();
        let mut rest = index;
        // The last axis varies fastest.
        for axis in file.axes.iter().rev() {
            let step = &axis.steps[rest % axis.steps.len()];
            rest /= axis.steps.len();
            labels.push((axis.name.clone(), step.label.clone()));
            // Axis values override fixed ones.
            assignments.retain(|old| step.assignments.iter().all(|new| new.target != old.target));
            assignments.extend(&step.assignments);
        }
        labels.reverse();
        let mut setup = Setup::new("");
        let mut scenario_line = None;
        for Assignment { target, values, line } in &assignments {
            match target {
                Target::Option(key) => {
                    if *key == Key::Scenario {
                        scenario_line = Some(*line);
                    }
                    setup.assign(*key, values).map_err(|message| (Some(*line), one_line(&message)))?;
                }
                Target::Setting(name) => setup.settings.push((name.clone(), values.join(" "))),
            }
        }
        if scenario_line.is_none() {
            let message = "`scenario` is missing; set it in [fixed] or in [axes]".to_owned();
            return Err((None, message));
        }
        // Each setting is applied separately, so that an error names its line.
        let settings = std::mem::take(&mut setup.settings);
        let mut scenario = setup
            .scenario(directory, PathSource::File)
            .map_err(|error| (scenario_line, first_problem(&error)))?;
        let lines = assignments.iter().filter(|one| matches!(one.target, Target::Setting(_)));
        for ((name, value), Assignment { line, .. }) in settings.iter().zip(lines) {
            scenario.edit(name, value).map_err(|error| (Some(*line), first_problem(&error)))?;
        }
        setup.settings = settings;
        setup.check().map_err(|message| (None, message))?;
        let content_hash = short_hash(Sha256::new().chain_update(setup.canonical(&scenario)));
        Ok(Self { labels: Labels(labels), setup, content_hash, scenario })
    }
}

/// Formats the first problem of a scenario on one line.
fn first_problem(error: &ScenarioError) -> String {
    let Some(problem) = error.problems().first() else { return one_line(&error.to_string()) };
    let place = match &problem.position {
        Some(position) if position.file.ends_with(".toml") => {
            format!("{}:{}: ", position.file, position.line)
        }
        _ => String::new(),
    };
    let help = problem.help.as_ref().map(|help| format!(": {help}")).unwrap_or_default();
    one_line(&format!("{place}{}{help}", problem.message))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn hash(points: &[Point], seeds: &[u64]) -> String {
    let mut hasher = Sha256::new();
    for point in points {
        hasher.update(point.setup.canonical_command());
        hasher.update([0]);
        // The command contains only the scenario's name; the content of a preset or file may
        // change.
        hasher.update(point.scenario.to_toml());
        hasher.update([0]);
    }
    for seed in seeds {
        hasher.update(seed.to_le_bytes());
    }
    short_hash(hasher)
}

fn short_hash(hasher: Sha256) -> String {
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A shard of a plan: `3/8` is the third of eight, and contains every eighth run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Shard {
    /// Number of shards.
    pub of: usize,
    /// Number of this shard, from 1.
    pub number: usize,
}

impl Shard {
    /// The whole plan as a single shard.
    pub const ALL: Self = Self { number: 1, of: 1 };

    /// Returns whether the run with this number belongs to the shard.
    pub fn has(&self, run: usize) -> bool {
        run % self.of == self.number - 1
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a shard; use I/N, for example 3/8");
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let shard =
            Self { number: number.parse().map_err(|_| wrong())?, of: of.parse().map_err(|_| wrong())? };
        match shard {
            Self { of: 0, .. } => Err(wrong()),
            Self { number, of } if !(1..=of).contains(&number) => {
                Err(format!("shard {text} is out of range; the first number is from 1 to {of}"))
            }
            shard => Ok(shard),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "schema = 1\nseeds = 2\n[fixed]\nscenario = \"sifest-random\"\nbytes = \"20k\"\n";

    fn plan(text: &str) -> Result<Plan, FileError> {
        Plan::parse(text, "s.toml", Path::new(""))
    }

    fn problem(text: &str) -> String {
        plan(text).err().expect("this plan must be rejected").to_string()
    }

    #[test]
    fn seeds_vary_fastest_then_last_axis() {
        let plan = plan(&format!("{HEAD}[axes]\nrecipe = [\"reno\", \"sack\"]\nflows = [1, 2]\n")).unwrap();
        assert_eq!(plan.runs(), 8);
        let shown: Vec<_> = (0..8)
            .map(|index| {
                let Planned { point, seed, .. } = plan.run(index);
                format!("{} {} {seed}", point.labels.0[0].1, point.labels.0[1].1)
            })
            .collect();
        assert_eq!(shown[..4], ["reno 1 1", "reno 1 2", "reno 2 1", "reno 2 2"]);
        assert_eq!(shown[4..], ["sack 1 1", "sack 1 2", "sack 2 1", "sack 2 2"]);
    }

    #[test]
    fn axis_can_remove_stage() {
        let plan = plan(&format!("{HEAD}[axes]\nvoice.remove = [true, false]\n")).unwrap();
        let stages: Vec<_> = plan.points.iter().map(|point| point.scenario.stages.len()).collect();
        assert_eq!(stages, [4, 5]);
        assert!(plan.run(0).command().contains(" --set voice.remove=true "), "{}", plan.run(0).command());
    }

    #[test]
    fn run_is_shown_as_command_line() {
        let axes = "radio-errors.down.good = [0.02]\nrecipe = [[\"reno\", \"sack+iw=4\"]]";
        let plan = plan(&format!("{HEAD}[axes]\n{axes}\n")).unwrap();
        assert_eq!(
            plan.run(1).command(),
            "airtcp sim --scenario sifest-random --set radio-errors.down.good=0.02 --seed 2 --recipe reno --recipe \
             sack+iw=4 --bytes 20000"
        );
    }

    #[test]
    fn invalid_axis_values_are_rejected_when_planning() {
        for (axes, words) in [
            ("recipe = [\"reno\", \"renoo\"]", "s.toml:7: unknown algorithm `renoo`: did you mean `reno`?"),
            ("flows = [0]", "s.toml:7: `0` is not a number above zero"),
            ("direction = [\"left\"]", "s.toml:7: `left` is not a direction"),
            ("receiver-profile = [\"solaris\"]", "s.toml:7: unknown profile `solaris`"),
            ("wirre.down.rate = [\"1kbit\"]", "s.toml:7: unknown stage `wirre`"),
            (
                "case = [{ name = \"a\", scenario = \"sifest-randon\" }]",
                "s.toml:7: there is no preset or file named",
            ),
            ("bytes = [\"ten\"]", "s.toml:7: `ten` is not a size"),
            (
                "flows = [1]\ncase = [{ name = \"a\", flows = 2 }]",
                "s.toml:8: the axes `flows` and `case` set",
            ),
        ] {
            let problem = problem(&format!("{HEAD}[axes]\n{axes}\n"));
            assert!(problem.starts_with(words), "{problem}");
            assert_eq!(problem.lines().count(), 1, "{problem}");
        }
        let problem = problem("schema = 1\nseeds = 1\n");
        assert_eq!(problem, "s.toml: `scenario` is missing; set it in [fixed] or in [axes]");
    }

    #[test]
    fn points_without_information_for_their_recipe_are_counted() {
        let plan = plan(&format!("{HEAD}[axes]\nrecipe = [\"reno\", \"etcp\"]\nflows = [1, 2]\n")).unwrap();
        let notices = plan.notices();
        let [notice] = notices.as_slice() else { panic!("{notices:?}") };
        assert!(notice.starts_with("etcp: transit-marks: no transit marks will arrive"), "{notice}");
        assert!(notice.ends_with(" (2 of 4 points)"), "{notice}");
    }

    #[test]
    fn plan_hash_depends_on_runs_not_description() {
        let hash = |text: &str| plan(text).unwrap().hash;
        let one = hash(HEAD);
        assert_eq!(one, hash(&format!("description = \"x\"\nmetrics = [\"jain\"]\n{HEAD}")));
        assert_ne!(one, hash(&HEAD.replace("seeds = 2", "seeds = [2, 1]")));
        assert_ne!(one, hash(&HEAD.replace("20k", "21k")));
        assert_ne!(one, hash(&HEAD.replace("sifest-random", "sifest-heavy")));
    }

    #[test]
    fn point_identity_depends_on_content_not_notation() {
        let hashes = |text: &str| -> Vec<String> {
            plan(text).unwrap().points.into_iter().map(|point| point.content_hash).collect()
        };
        let one = hashes(&format!("{HEAD}[axes]\nrecipe = [\"newreno\", \"sack\"]\n"));
        assert_ne!(one[0], one[1]);
        // The hash does not depend on the position in the plan, the seeds, an axis with the default
        // value, or the spelling.
        let more = hashes(&format!(
            "{}[axes]\nflows = [1, 2]\nrecipe = [\"sack\", \"tahoe\", \"newreno\"]\n",
            HEAD.replace("seeds = 2", "seeds = [7]").replace("20k", "20000")
        ));
        assert_eq!([&more[2], &more[0]], [&one[0], &one[1]]);
        assert!(
            more[3..].iter().all(|content_hash| !one.contains(content_hash)),
            "another number of flows is another point"
        );
        assert_eq!(hashes(HEAD)[0], one[0], "the default recipe is newreno");
        assert_eq!(hashes(&format!("{HEAD}for = \"1h\"\n"))[0], one[0], "1 h is the default limit");
        for (here, there) in [("20k", "21k"), ("sifest-random", "sifest-heavy")] {
            assert_ne!(hashes(&HEAD.replace(here, there))[0], one[0], "{there}");
        }
    }

    #[test]
    fn every_run_is_in_exactly_one_shard() {
        let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].map(|text| text.parse().unwrap()).into();
        for run in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(run)).count(), 1);
        }
        for (text, words) in [("4/3", "from 1 to 3"), ("0/3", "from 1 to 3"), ("1/0", "I/N"), ("3", "I/N")] {
            assert!(text.parse::<Shard>().unwrap_err().contains(words), "{text}");
        }
    }
}
