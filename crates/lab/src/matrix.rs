//! Tests every combination of receiver, recipe and kind of path: all bytes must arrive.
//!
//! A data file lists the known failures with their reasons. A failure that is not listed counts as wrong. A
//! listed combination that passes also counts as wrong.

mod report;

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use airlink::scenario::Scenario;
pub use report::{Cell, Report};
use serde::{Deserialize, Serialize};

use super::LabError;
use super::experiment::{Versions, create_empty_directory, file_name, in_parallel, write_json};
use super::kernel_differences;
use super::receiver::Receiver;
use super::sender::Sender;
use super::testbed::{ExtraFiles, Tools};
use super::transfer::{self, Outcome, Transfer};
use super::workload::Workload;

const SCHEMA_VERSION: u32 = 1;

/// A kind of path: a built-in scenario.
#[derive(Debug, PartialEq, Eq)]
pub struct PathKind {
    /// The name on the command line.
    pub name: &'static str,
    text: &'static str,
}

/// All kinds of path.
pub const KINDS: &[PathKind] = &[
    PathKind { name: "lossless", text: include_str!("scenarios/lossless.toml") },
    PathKind { name: "loss", text: include_str!("scenarios/loss.toml") },
    PathKind { name: "burst", text: include_str!("scenarios/burst.toml") },
    PathKind { name: "reordering", text: include_str!("scenarios/reordering.toml") },
    PathKind { name: "wcdma", text: include_str!("scenarios/wcdma.toml") },
];

/// The base recipes, and at least one of each family from the papers.
pub const RECIPES: &[&str] = &[
    "tahoe",
    "reno",
    "newreno",
    "sack",
    "newreno+sifest+liw",
    "sack+sifest+liw",
    "newreno+vegas",
    "newreno+vegas-window",
    "newreno+eifel",
    "sack+frto+dsack",
    "newreno+fast-timeout+loss-retransmission",
    "newreno+rebate",
    "newreno+pr+rebate",
    "sack+blanton-allman",
    "newreno+westwood",
    "etcp",
    "sack+cubic+rack+prr",
    "sack+rack+bbr",
    "sack+rack+bbr3",
];

/// The stacks that `interop/receivers/setup.sh` can build.
pub const STACKS: &[&str] = &[
    "uml",
    "uml-5.10",
    "uml-6.12",
    "uml-7",
    "qemu",
    "gvisor",
    "lwip",
    "lwip-sack",
    "smoltcp",
    "slirp",
    "passt",
];

/// The combinations that run in a few minutes for every change. A missing receiver is an error there.
pub mod quick {
    /// The receivers.
    pub const RECEIVERS: &[&str] = &["linux", "uml", "gvisor", "lwip", "lwip-sack", "smoltcp"];
    /// One recipe of each family.
    pub const RECIPES: &[&str] = &[
        "newreno",
        "sack+sifest+liw",
        "newreno+fast-timeout+loss-retransmission",
        "newreno+pr+rebate",
        "etcp",
    ];
}

/// The known failures: the content of `interop/expected.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownFailures {
    #[serde(default)]
    deviation: Vec<KnownFailure>,
}

/// A known failure. Without a receiver, recipe or scenario, it applies to all receivers, recipes or
/// scenarios.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownFailure {
    receiver: Option<String>,
    recipe: Option<String>,
    scenario: Option<String>,
    /// The failure depends on which packets are lost, so a pass is acceptable too.
    #[serde(default)]
    sometimes: bool,
    reason: String,
}

impl KnownFailures {
    /// Parses the list of known failures. Errors name `file`.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not valid.
    pub fn parse(text: &str, file: &str) -> Result<Self, LabError> {
        toml::from_str(text).map_err(|error| LabError::Environment(format!("{file}: {error}")))
    }

    fn of(&self, receiver: &str, sender: &Sender, scenario: &str) -> Option<&KnownFailure> {
        let fits = |name: &Option<String>, value: &str| name.as_ref().is_none_or(|name| name == value);
        self.deviation.iter().find(|failure| {
            fits(&failure.receiver, receiver)
                && failure.recipe.as_ref().is_none_or(|name| sender.matches(name))
                && fits(&failure.scenario, scenario)
        })
    }
}

/// The plan of a matrix: every combination is run.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The receivers. Those that were not found are reported as skipped.
    pub receivers: Vec<RequestedReceiver>,
    /// The senders: recipes or kernel senders.
    pub senders: Vec<Sender>,
    /// The kinds of path.
    pub kinds: Vec<&'static PathKind>,
    /// Bytes per transfer.
    pub bytes: u64,
    /// The seed of every path.
    pub seed: u64,
    /// Time limit. A transfer that takes longer has failed.
    pub limit: Duration,
    /// Number of transfers in parallel, each on its own path.
    pub jobs: usize,
    /// The directory for `matrix.json` and the files of wrong transfers. It is created, and must be empty or
    /// contain a part of this matrix; in that case the rest is run.
    pub directory: PathBuf,
    /// The known failures.
    pub expected: KnownFailures,
    /// The command line that repeats the matrix.
    pub command: String,
}

/// A requested receiver.
#[derive(Clone, Debug)]
pub struct RequestedReceiver {
    /// The name as typed.
    pub name: String,
    /// The receiver, or the reason why it is missing.
    pub found: Result<Receiver, String>,
}

/// The verdict on one combination.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict", content = "why")]
pub enum CellVerdict {
    /// Exactly the sent bytes arrived.
    Passed,
    /// The transfer failed for this reason.
    Failed(String),
    /// The transfer failed, and the failure is known for this reason.
    FailedAsExpected(String),
    /// The transfer passed although it is known to fail for this reason.
    PassedUnexpectedly(String),
    /// The receiver is missing for this reason.
    Skipped(String),
}

impl CellVerdict {
    fn of(outcome: &Outcome, expected: Option<&KnownFailure>) -> Self {
        match (&outcome.failure, expected) {
            (None, None | Some(KnownFailure { sometimes: true, .. })) => Self::Passed,
            (None, Some(deviation)) => Self::PassedUnexpectedly(deviation.reason.clone()),
            (Some(why), None) => Self::Failed(why.clone()),
            (Some(_), Some(deviation)) => Self::FailedAsExpected(deviation.reason.clone()),
        }
    }

    /// Returns true if the result is unexpected, which makes the whole matrix fail.
    pub fn is_wrong(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::PassedUnexpectedly(_))
    }
}

/// The progress after a combination.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Number of known cells, including this one and the cells of earlier runs.
    pub done: usize,
    /// Total number of cells.
    pub all: usize,
    /// The new cell.
    pub cell: &'a Cell,
    /// Estimated remaining time, from the mean speed so far.
    pub remaining: Duration,
}

/// Runs every combination, calls `observe` after each one, and keeps `matrix.json` up to date. Only
/// combinations with an unexpected result keep their directory.
///
/// # Errors
///
/// Returns an error if the directory is not usable, or if further transfers would also fail.
pub fn run(
    tools: &Tools,
    matrix: &Matrix,
    mut observe: impl FnMut(&Progress<'_>),
) -> Result<Report, LabError> {
    let combinations = matrix.combinations();
    let mut known = matrix.read_previous(&combinations)?;
    let files = matrix.write_scenarios()?;
    let missing: Vec<usize> = (0..combinations.len()).filter(|index| !known.contains_key(index)).collect();
    let workload = Workload::plain(matrix.bytes);
    let versions = Versions::of(tools, "see `receivers`");
    let start = Instant::now();
    let mut finished = 0;
    matrix.save(&known, combinations.len(), &versions)?;
    in_parallel(
        matrix.jobs,
        missing.len(),
        |index| {
            let Combination { kind, receiver: requested, sender } = combinations[missing[index]];
            let scenario = matrix.kinds[kind].name.to_owned();
            let (recipe, profile) = (sender.name.clone(), sender.profile());
            let receiver = requested.name.clone();
            let found = match &requested.found {
                Ok(found) => found,
                Err(why) => {
                    let verdict = CellVerdict::Skipped(why.clone());
                    return Ok(Cell { receiver, recipe, profile, scenario, verdict, outcome: None });
                }
            };
            let directory = matrix.directory.join(file_name(&format!("{scenario}-{receiver}-{recipe}")));
            // If an earlier run was stopped, an incomplete transfer may remain.
            transfer::recreate_directory(&directory)?;
            let plan = Transfer {
                scenario: &files[kind],
                seed: matrix.seed,
                sender,
                receiver: found,
                workload: &workload,
                wait: Duration::ZERO,
                limit: matrix.limit,
                directory: &directory,
                keep: ExtraFiles::default(),
            };
            let outcome = transfer::run(tools, &plan)?;
            let verdict = CellVerdict::of(&outcome, matrix.expected.of(&receiver, sender, &scenario));
            // Keep only the files of unexpected results, because a matrix is large.
            if !verdict.is_wrong() {
                fs::remove_dir_all(&directory).map_err(LabError::file(&directory))?;
            }
            Ok(Cell { receiver, recipe, profile, scenario, verdict, outcome: Some(outcome) })
        },
        |index, cell: Cell| {
            finished += 1;
            known.insert(missing[index], cell);
            matrix.save(&known, combinations.len(), &versions)?;
            let remaining =
                start.elapsed().mul_f64((missing.len() - finished) as f64 / f64::from(finished as u32));
            let cell = &known[&missing[index]];
            observe(&Progress { done: known.len(), all: combinations.len(), cell, remaining });
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(matrix.report(&known, combinations.len(), &versions))
}

#[derive(Clone, Copy)]
struct Combination<'a> {
    /// Index into the matrix's kinds of path.
    kind: usize,
    receiver: &'a RequestedReceiver,
    sender: &'a Sender,
}

/// Known cells by the index of their combination.
type Known = BTreeMap<usize, Cell>;

impl Matrix {
    fn combinations(&self) -> Vec<Combination<'_>> {
        let mut combinations = Vec::new();
        for kind in 0..self.kinds.len() {
            for receiver in &self.receivers {
                combinations.extend(self.senders.iter().map(|sender| Combination { kind, receiver, sender }));
            }
        }
        combinations
    }

    /// Reads the results of an earlier run that was stopped. Otherwise creates the directory, which must be
    /// empty.
    fn read_previous(&self, combinations: &[Combination<'_>]) -> Result<Known, LabError> {
        let Some(report) = Report::read(&self.directory)? else {
            create_empty_directory(&self.directory)?;
            return Ok(Known::new());
        };
        let taken = |reason: String| LabError::Taken {
            directory: self.directory.clone(),
            why: format!(
                "the directory has another matrix: {reason}. Choose another directory with --output"
            ),
        };
        if report.bytes != Some(self.bytes) || report.seed != Some(self.seed) {
            return Err(taken("its transfers have another size or seed".to_owned()));
        }
        let mut known = Known::new();
        for mut cell in report.cells {
            let index = combinations.iter().position(|&Combination { kind, receiver, sender }| {
                cell.is_of(self.kinds[kind].name, &receiver.name, sender)
            });
            let Some(index) = index else {
                let Cell { scenario, receiver, recipe, .. } = cell;
                return Err(taken(format!("it includes {scenario}, {receiver}, {recipe}")));
            };
            // A missing receiver may be available now, and the known failures may have changed.
            let Some(outcome) = &cell.outcome else { continue };
            let expected = self.expected.of(&cell.receiver, combinations[index].sender, &cell.scenario);
            cell.verdict = CellVerdict::of(outcome, expected);
            known.insert(index, cell);
        }
        Ok(known)
    }

    /// Writes the scenario of each kind of path. Returns the files.
    fn write_scenarios(&self) -> Result<Vec<String>, LabError> {
        let files = self.kinds.iter().map(|kind| {
            let path = self.directory.join(format!("{}.toml", kind.name));
            let scenario = Scenario::parse(kind.text, kind.name)
                .map_err(|error| LabError::Environment(error.to_string()))?;
            airfiles::write(&path, scenario.to_toml()).map_err(LabError::file(&path))?;
            Ok(path.to_string_lossy().into_owned())
        });
        files.collect()
    }

    fn report(&self, known: &Known, asked: usize, versions: &Versions) -> Report {
        let version = |RequestedReceiver { name, found }: &RequestedReceiver| match found {
            Ok(receiver) => (name.clone(), receiver.version()),
            Err(why) => (name.clone(), format!("skipped: {why}")),
        };
        Report {
            schema_version: SCHEMA_VERSION,
            command: self.command.clone(),
            versions: versions.clone(),
            bytes: Some(self.bytes),
            seed: Some(self.seed),
            asked,
            receivers: self.receivers.iter().map(version).collect(),
            cells: known.values().cloned().collect(),
            kernel_differences: kernel_differences::line(&self.senders, kernel_differences::paces_by_queue()),
        }
    }

    fn save(&self, known: &Known, asked: usize, versions: &Versions) -> Result<(), LabError> {
        write_json(&self.directory.join("matrix.json"), &self.report(known, asked, versions))
    }
}

#[cfg(test)]
mod tests {
    use airtcp::recovery::Recipe;

    use super::*;
    use crate::sender::resolve;

    #[test]
    fn built_in_scenarios_and_recipes_parse() {
        for kind in KINDS {
            Scenario::parse(kind.text, kind.name).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        }
        for recipe in RECIPES.iter().chain(quick::RECIPES) {
            recipe.parse::<Recipe>().unwrap_or_else(|error| panic!("{recipe}: {error}"));
        }
    }

    #[test]
    fn deviation_applies_only_to_named_receiver_and_scenario() {
        let text = "[[deviation]]\nreceiver = \"passt\"\nscenario = \"burst\"\nreason = \"because\"";
        let expected = KnownFailures::parse(text, "test").unwrap();
        let sack = &resolve(&["sack".parse().unwrap()], None).unwrap()[0];
        let reason = |receiver, scenario| Some(expected.of(receiver, sack, scenario)?.reason.as_str());
        assert_eq!(reason("passt", "burst"), Some("because"));
        assert_eq!(reason("passt", "loss"), None);
        assert_eq!(reason("lwip", "burst"), None);
        assert!(KnownFailures::parse("[[deviation]]\nreciever = \"x\"\nreason = \"\"", "test").is_err());
    }

    #[test]
    fn unexpected_success_is_wrong_like_unexpected_failure() {
        let outcome =
            |failure: Option<&str>| Outcome { failure: failure.map(str::to_owned), ..Outcome::default() };
        let deviation = |sometimes| {
            let text = format!("[[deviation]]\nsometimes = {sometimes}\nreason = \"known\"");
            KnownFailures::parse(&text, "test").unwrap()
        };
        let [always, sometimes] = [false, true].map(deviation);
        let sender = &resolve(&["reno".parse().unwrap()], None).unwrap()[0];
        let is_wrong = |failure, expected: Option<&KnownFailures>| {
            CellVerdict::of(&outcome(failure), expected.and_then(|expected| expected.of("a", sender, "c")))
                .is_wrong()
        };
        assert!(!is_wrong(None, None) && is_wrong(Some("broken"), None));
        assert!(is_wrong(None, Some(&always)) && !is_wrong(Some("broken"), Some(&always)));
        assert!(!is_wrong(None, Some(&sometimes)) && !is_wrong(Some("broken"), Some(&sometimes)));
    }
}
