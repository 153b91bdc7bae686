//! Every receiver, every recipe, every kind of path: does each octet arrive?
//!
//! What is known to fail stands in a data file, with the reason. A failure that does not stand there is wrong, and so
//! is one that stands there and passes.

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
use super::experiment::{Versions, file_name, in_parallel, make_empty, write_json};
use super::likeness;
use super::receiver::Receiver;
use super::sender::Sender;
use super::testbed::{Keep, Tools};
use super::transfer::{self, Outcome, Transfer};
use super::workload::Workload;

const SCHEMA_VERSION: u32 = 1;

/// A kind of path: a scenario that is built in.
#[derive(Debug, PartialEq, Eq)]
pub struct PathKind {
    /// As it is typed.
    pub name: &'static str,
    text: &'static str,
}

/// All of them.
pub const KINDS: &[PathKind] = &[
    PathKind { name: "lossless", text: include_str!("scenarios/lossless.toml") },
    PathKind { name: "loss", text: include_str!("scenarios/loss.toml") },
    PathKind { name: "burst", text: include_str!("scenarios/burst.toml") },
    PathKind { name: "reordering", text: include_str!("scenarios/reordering.toml") },
    PathKind { name: "wcdma", text: include_str!("scenarios/wcdma.toml") },
];

/// The base recipes, and one or more of each family of the papers.
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

/// What is run in a few minutes on every change. A receiver that is missing there is an error.
pub mod quick {
    /// Who receives.
    pub const RECEIVERS: &[&str] = &["linux", "uml", "gvisor", "lwip", "lwip-sack", "smoltcp"];
    /// One of each family.
    pub const RECIPES: &[&str] = &[
        "newreno",
        "sack+sifest+liw",
        "newreno+fast-timeout+loss-retransmission",
        "newreno+pr+rebate",
        "etcp",
    ];
}

/// What is known to fail: the content of `interop/expected.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    #[serde(default)]
    deviation: Vec<Deviation>,
}

/// Where no receiver, recipe or scenario is named, it is about all of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Deviation {
    receiver: Option<String>,
    recipe: Option<String>,
    scenario: Option<String>,
    /// It depends on which packets are lost: that it passes is no news.
    #[serde(default)]
    sometimes: bool,
    reason: String,
}

impl Expected {
    /// `file` is named in errors.
    pub fn parse(text: &str, file: &str) -> Result<Self, LabError> {
        toml::from_str(text).map_err(|error| LabError::Environment(format!("{file}: {error}")))
    }

    fn of(&self, receiver: &str, sender: &Sender, scenario: &str) -> Option<&Deviation> {
        let fits = |name: &Option<String>, value: &str| name.as_ref().is_none_or(|name| name == value);
        let mut about = self.deviation.iter().filter(|deviation| {
            fits(&deviation.receiver, receiver)
                && deviation.recipe.as_ref().is_none_or(|name| sender.is(name))
                && fits(&deviation.scenario, scenario)
        });
        about.next()
    }
}

/// What is to be run: every combination.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// Those that could not be found are reported as skipped.
    pub receivers: Vec<Wanted>,
    /// Recipes, or the kernel's own senders.
    pub senders: Vec<Sender>,
    /// Kinds of path.
    pub kinds: Vec<&'static PathKind>,
    /// Octets of a transfer.
    pub bytes: u64,
    /// Of every path.
    pub seed: u64,
    /// A transfer that takes longer has failed.
    pub limit: Duration,
    /// Transfers at a time, each on a path of its own.
    pub jobs: usize,
    /// For `matrix.json`, and what is kept of transfers that went wrong. It is made, and must be empty or hold a part of
    /// this matrix: then the rest is made.
    pub directory: PathBuf,
    /// What is known to fail.
    pub expected: Expected,
    /// The command line that repeats it.
    pub command: String,
}

/// A receiver that was asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// As it was typed.
    pub name: String,
    /// The receiver, or why there is none.
    pub found: Result<Receiver, String>,
}

/// What a transfer says about its combination.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict", content = "why")]
pub enum Verdict {
    /// Every octet arrived and nothing else.
    Passed,
    /// Why.
    Failed(String),
    /// It is known to fail, for this reason.
    FailedAsExpected(String),
    /// It passed, although it is known to fail, for this reason.
    PassedUnexpectedly(String),
    /// There is no such receiver here, for this reason.
    Skipped(String),
}

impl Verdict {
    fn of(outcome: &Outcome, expected: Option<&Deviation>) -> Self {
        match (&outcome.failure, expected) {
            (None, None | Some(Deviation { sometimes: true, .. })) => Self::Passed,
            (None, Some(deviation)) => Self::PassedUnexpectedly(deviation.reason.clone()),
            (Some(why), None) => Self::Failed(why.clone()),
            (Some(_), Some(deviation)) => Self::FailedAsExpected(deviation.reason.clone()),
        }
    }

    /// Not as expected: it makes the whole matrix fail.
    pub fn is_wrong(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::PassedUnexpectedly(_))
    }
}

/// One more cell is known.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Cells that are known, with this one and those of an earlier run.
    pub done: usize,
    /// Cells in all.
    pub all: usize,
    /// This one.
    pub cell: &'a Cell,
    /// How long the others will take, at the mean speed so far.
    pub left: Duration,
}

/// Runs every combination, tells `observe` of each, and keeps `matrix.json` up to date. Only what went wrong keeps its
/// directory.
pub fn run(
    tools: &Tools,
    matrix: &Matrix,
    mut observe: impl FnMut(&Progress<'_>),
) -> Result<Report, LabError> {
    let places = matrix.places();
    let mut known = matrix.kept(&places)?;
    let files = matrix.write_scenarios()?;
    let missing: Vec<usize> = (0..places.len()).filter(|index| !known.contains_key(index)).collect();
    let workload = Workload::plain(matrix.bytes);
    let versions = Versions::of(tools, "see `receivers`");
    let start = Instant::now();
    let mut made = 0;
    matrix.save(&known, places.len(), &versions)?;
    in_parallel(
        matrix.jobs,
        missing.len(),
        |index| {
            let Place { kind, wanted, sender } = places[missing[index]];
            let scenario = matrix.kinds[kind].name.to_owned();
            let (recipe, profile) = (sender.name.clone(), sender.profile());
            let receiver = wanted.name.clone();
            let found = match &wanted.found {
                Ok(found) => found,
                Err(why) => {
                    let verdict = Verdict::Skipped(why.clone());
                    return Ok(Cell { receiver, recipe, profile, scenario, verdict, outcome: None });
                }
            };
            let directory = matrix.directory.join(file_name(&format!("{scenario}-{receiver}-{recipe}")));
            // Half of a transfer is there if the matrix was stopped in it.
            let _ = fs::remove_dir_all(&directory);
            fs::create_dir(&directory).map_err(LabError::file(&directory))?;
            let plan = Transfer {
                scenario: &files[kind],
                seed: matrix.seed,
                sender,
                receiver: found,
                workload: &workload,
                wait: Duration::ZERO,
                limit: matrix.limit,
                directory: &directory,
                keep: Keep::default(),
            };
            let outcome = transfer::run(tools, &plan)?;
            let verdict = Verdict::of(&outcome, matrix.expected.of(&receiver, sender, &scenario));
            if !verdict.is_wrong() {
                // A matrix is large; what went wrong is kept.
                fs::remove_dir_all(&directory).map_err(LabError::file(&directory))?;
            }
            Ok(Cell { receiver, recipe, profile, scenario, verdict, outcome: Some(outcome) })
        },
        |index, cell: Cell| {
            made += 1;
            known.insert(missing[index], cell);
            matrix.save(&known, places.len(), &versions)?;
            let left = start.elapsed().mul_f64((missing.len() - made) as f64 / f64::from(made as u32));
            let cell = &known[&missing[index]];
            observe(&Progress { done: known.len(), all: places.len(), cell, left });
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(matrix.report(&known, places.len(), &versions))
}

/// A combination.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// Of the matrix's kinds of path.
    kind: usize,
    wanted: &'a Wanted,
    sender: &'a Sender,
}

/// Cells by the number of their place.
type Known = BTreeMap<usize, Cell>;

impl Matrix {
    fn places(&self) -> Vec<Place<'_>> {
        let mut places = Vec::new();
        for kind in 0..self.kinds.len() {
            for wanted in &self.receivers {
                places.extend(self.senders.iter().map(|sender| Place { kind, wanted, sender }));
            }
        }
        places
    }

    /// What an earlier run that was stopped has in the directory; otherwise it is made, and must be empty.
    fn kept(&self, places: &[Place<'_>]) -> Result<Known, LabError> {
        let Some(report) = Report::read(&self.directory)? else {
            make_empty(&self.directory)?;
            return Ok(Known::new());
        };
        let another = |what: String| LabError::Taken {
            directory: self.directory.clone(),
            why: format!("the directory has another matrix: {what}. Choose another directory with --output"),
        };
        if report.bytes != Some(self.bytes) || report.seed != Some(self.seed) {
            return Err(another("its transfers have another size or seed".to_owned()));
        }
        let mut known = Known::new();
        for mut cell in report.cells {
            let place = places.iter().position(|&Place { kind, wanted, sender }| {
                cell.is_of(self.kinds[kind].name, &wanted.name, sender)
            });
            let Some(index) = place else {
                let Cell { scenario, receiver, recipe, .. } = cell;
                return Err(another(format!("it includes {scenario}, {receiver}, {recipe}")));
            };
            // A receiver that was missing may be there now, and more or less may be expected.
            let Some(outcome) = &cell.outcome else { continue };
            cell.verdict =
                Verdict::of(outcome, self.expected.of(&cell.receiver, places[index].sender, &cell.scenario));
            known.insert(index, cell);
        }
        Ok(known)
    }

    /// Where each kind of path stands.
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
        let version = |wanted: &Wanted| match &wanted.found {
            Ok(receiver) => (wanted.name.clone(), receiver.version()),
            Err(why) => (wanted.name.clone(), format!("skipped: {why}")),
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
            unlike_the_kernel: likeness::line(&self.senders, likeness::paces_by_queue()),
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
    fn the_built_in_scenarios_and_recipes_are_good() {
        for kind in KINDS {
            Scenario::parse(kind.text, kind.name).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        }
        for recipe in RECIPES.iter().chain(quick::RECIPES) {
            recipe.parse::<Recipe>().unwrap_or_else(|error| panic!("{recipe}: {error}"));
        }
    }

    #[test]
    fn a_deviation_is_about_what_it_names() {
        let text = "[[deviation]]\nreceiver = \"passt\"\nscenario = \"burst\"\nreason = \"because\"";
        let expected = Expected::parse(text, "test").unwrap();
        let sack = &resolve(&["sack".parse().unwrap()], None).unwrap()[0];
        let reason = |receiver, scenario| Some(expected.of(receiver, sack, scenario)?.reason.as_str());
        assert_eq!(reason("passt", "burst"), Some("because"));
        assert_eq!(reason("passt", "loss"), None);
        assert_eq!(reason("lwip", "burst"), None);
        assert!(Expected::parse("[[deviation]]\nreciever = \"x\"\nreason = \"\"", "test").is_err());
    }

    #[test]
    fn what_works_although_it_should_not_is_as_wrong_as_the_opposite() {
        let outcome =
            |failure: Option<&str>| Outcome { failure: failure.map(str::to_owned), ..Outcome::default() };
        let deviation = |sometimes| {
            let text = format!("[[deviation]]\nsometimes = {sometimes}\nreason = \"known\"");
            Expected::parse(&text, "test").unwrap()
        };
        let [always, sometimes] = [false, true].map(deviation);
        let sender = &resolve(&["reno".parse().unwrap()], None).unwrap()[0];
        let is_wrong = |failure, expected: Option<&Expected>| {
            Verdict::of(&outcome(failure), expected.and_then(|expected| expected.of("a", sender, "c")))
                .is_wrong()
        };
        assert!(!is_wrong(None, None) && is_wrong(Some("broken"), None));
        assert!(is_wrong(None, Some(&always)) && !is_wrong(Some("broken"), Some(&always)));
        assert!(!is_wrong(None, Some(&sometimes)) && !is_wrong(Some("broken"), Some(&sometimes)));
    }
}
