//! `airtcp demo`: scenes in which one mechanism makes the difference.
//!
//! Every scene runs with many seeds in virtual time, and once over TUN devices to this machine's kernel. The
//! sentences below a scene (`claim`) are supported by the intervals of the simulated runs.
//!
//! * `scenes` defines the paths, the senders and the claims about them.
//! * `seeds` performs the runs in virtual time and chooses the seed of the real transfers.
//! * `claim` turns a claim into a sentence if it holds.
//! * `show` formats a scene's tables for a terminal and for a page.

mod claim;
mod scenes;
mod seeds;
mod show;
#[cfg(test)]
mod tests;

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use airlink::scenario::Scenario;
use airtcp::profile::ProfileName;
use airtcp_numbers::statistics::Mean;
use airtcp_numbers::verdict::{Comparison, MARGIN};
use serde::{Deserialize, Serialize};

use super::LabError;
use super::experiment::{self, Experiment, create_empty_directory, write_json};
use super::receiver::Receiver;
use super::sender::{self, RetransmissionCounts, Sender};
use super::testbed::{ExtraFiles, Tools};
use super::transfer::Outcome;
use super::workload::Workload;
pub use claim::Sentence;
pub use scenes::{SCENES, Scene};

/// The file with a scene's results, next to the lab's files of the real transfers.
const FILE: &str = "scene.json";

/// Number of seeds from which the seed of the real transfers is chosen. It is small so that the choice takes
/// little time.
const CANDIDATES: u64 = 20;

/// Upper bound on the duration of a transfer over TUN devices.
const LIMIT: Duration = Duration::from_secs(120);

/// The profile of all recipes, the same as the kernel sender's.
const PROFILE: ProfileName = ProfileName::Linux;

/// The settings of a demo.
#[derive(Clone, Debug)]
pub struct Demo {
    /// The output directory, with one directory per scene. It is created, and must be empty.
    pub directory: PathBuf,
    /// The seeds of the runs in virtual time. The real transfers use one seed.
    pub seeds: RangeInclusive<u64>,
    /// The command line that repeats the demo.
    pub command: String,
}

/// The progress of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Number of finished transfers over TUN devices, and their total.
    RealTime(usize, usize),
    /// Number of finished runs of a scene in virtual time, and their total.
    VirtualTime(usize, usize),
}

/// The results of a scene.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SceneResult {
    /// The name on the command line.
    pub name: String,
    /// The event on the path.
    pub title: String,
    /// Bytes per transfer.
    pub bytes: u64,
    /// The profile of the recipes.
    pub profile: String,
    /// Number of runs per sender in virtual time.
    pub seeds: usize,
    /// The reference.
    pub against: String,
    /// One row per sender.
    pub rows: Vec<Row>,
    /// The claims that the runs support.
    pub sentences: Vec<Sentence>,
    /// The claims that the runs do not support.
    pub left_out: Vec<Sentence>,
}

/// The results of one sender in a scene.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The sender, as on the command line.
    pub sender: String,
    /// The recipe that models a kernel sender in virtual time.
    pub modelled_by: Option<String>,
    /// The runs with all seeds in virtual time.
    pub in_virtual_time: SceneMeans,
    /// The comparison of the goodput in virtual time with the first sender. `None` for the first sender.
    pub against: Option<Comparison>,
    /// The share of virtual-time runs that were slower than the real transfer. `None` if the real transfer
    /// failed or is invalid.
    pub faster_than: Option<f64>,
    /// A sentence for each part of the recipe that needs information which no run in virtual time provided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// The transfer over TUN devices.
    pub real: Outcome,
}

/// Means over all seeds. Retransmissions and timeouts are the sender's own counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SceneMeans {
    /// Goodput from the first SYN to the last ACK.
    pub kbit_per_s: Mean,
    /// Retransmitted segments.
    pub resent: Mean,
    /// Expiries of the retransmission timer.
    pub timeouts: Mean,
}

/// Returns the scene of this name.
///
/// # Errors
///
/// Returns an error that lists the scenes if the name is unknown.
pub fn find(name: &str) -> Result<&'static Scene, String> {
    let names = || SCENES.iter().map(|scene| scene.name).collect::<Vec<_>>().join(", ");
    SCENES
        .iter()
        .find(|scene| scene.name == name)
        .ok_or_else(|| format!("unknown scene `{name}`; the scenes are {}", names()))
}

/// Plays each of these scenes once. Calls `observe` with the progress, and `show` with the results of each
/// scene.
///
/// # Errors
///
/// Returns an error if the directory is not usable, or if the lab cannot run a transfer. The directories of
/// incomplete scenes are then removed, so that the same command can be repeated.
pub fn play(
    tools: &Tools,
    demo: &Demo,
    scenes: &[&Scene],
    observe: impl Fn(Progress) + Sync,
    show: impl FnMut(&SceneResult),
) -> Result<Vec<SceneResult>, LabError> {
    let is_new = !demo.directory.exists();
    create_empty_directory(&demo.directory)?;
    let results = play_all(tools, demo, scenes, observe, show);
    if results.is_err() {
        // Errors are ignored here, because the first error is the one to report.
        for scene in scenes {
            let directory = demo.directory.join(scene.directory());
            if !directory.join(FILE).is_file() {
                let _ = fs::remove_dir_all(directory);
            }
        }
        if is_new {
            // Fails if there are complete scenes.
            let _ = fs::remove_dir(&demo.directory);
        }
    }
    results
}

/// The real transfers of all scenes run in parallel, each on its own path, because they spend most of the
/// time waiting.
fn play_all(
    tools: &Tools,
    demo: &Demo,
    scenes: &[&Scene],
    observe: impl Fn(Progress) + Sync,
    mut show: impl FnMut(&SceneResult),
) -> Result<Vec<SceneResult>, LabError> {
    let all = scenes.iter().map(|scene| scene.senders.len()).sum();
    observe(Progress::RealTime(0, all));
    let done = Mutex::new(0);
    let transfers = thread::scope(|scope| {
        let threads = scenes.iter().map(|scene| {
            let count_transfer = || {
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                *done += 1;
                observe(Progress::RealTime(*done, all));
            };
            scope.spawn(move || run_in_real_time(tools, demo, scene, count_transfer))
        });
        let threads: Vec<_> = threads.collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>, LabError>>()
    })?;
    let run_in_virtual_time = |(scene, transfers): (&&Scene, Vec<Outcome>)| {
        let (scenario, senders) = scene.resolve();
        let runs = seeds::run(&scenario, scene.bytes, &senders, demo.seeds.clone(), &|done, all| {
            observe(Progress::VirtualTime(done, all));
        })?;
        let result = SceneResult::of(scene, &senders, &runs, transfers);
        write_json(&demo.directory.join(scene.directory()).join(FILE), &result)?;
        show(&result);
        Ok(result)
    };
    scenes.iter().zip(transfers).map(run_in_virtual_time).collect()
}

/// Runs one transfer of each sender over TUN devices, with a seed that is typical in virtual time.
fn run_in_real_time(
    tools: &Tools,
    demo: &Demo,
    scene: &Scene,
    count_transfer: impl Fn(),
) -> Result<Vec<Outcome>, LabError> {
    let (scenario, senders) = scene.resolve();
    let first = *demo.seeds.start();
    let candidates = first..=(*demo.seeds.end()).min(first.saturating_add(CANDIDATES - 1));
    let runs = seeds::run(&scenario, scene.bytes, &senders, candidates, &|_, _| {})?;
    let seed = first + seeds::typical(&runs) as u64;
    let experiment = Experiment {
        scenario,
        jobs: senders.len(),
        senders,
        against: 0,
        receiver: Receiver::find("linux", Path::new(""))?,
        rounds: 1,
        margin: MARGIN,
        until_decided: false,
        workload: Workload::plain(scene.bytes),
        seed,
        wait: Duration::from_nanos(seeds::begin(seed).as_nanos()),
        limit: LIMIT,
        keep: ExtraFiles { events: true, radio: false },
        directory: demo.directory.join(scene.directory()),
        command: demo.command.clone(),
    };
    Ok(experiment::run(tools, &experiment, |_| count_transfer())?.transfers)
}

/// Reads the results of a scene from its directory. `None` if the directory does not belong to a scene.
pub(crate) fn read(directory: &Path) -> Option<SceneResult> {
    serde_json::from_str(&airfiles::read_result(directory.join(FILE)).ok()?).ok()
}

impl Scene {
    /// The name of the scene's directory. It starts with the number, so that directories sort in the order of
    /// the scenes.
    pub fn directory(&self) -> String {
        format!("{}-{}", self.number(), self.name)
    }

    /// The number of the scene, from 1.
    pub fn number(&self) -> usize {
        SCENES.iter().position(|other| other.name == self.name).map_or(0, |index| index + 1)
    }

    /// Parses the scenario and the senders. A test calls this function for every scene.
    fn resolve(&self) -> (Scenario, Vec<Sender>) {
        let scenario = Scenario::parse(self.scenario, self.name).expect("a scene's scenario is right");
        let typed: Vec<_> =
            self.senders.iter().map(|text| text.parse().expect("a scene's sender is right")).collect();
        let senders = sender::resolve(&typed, Some(PROFILE)).expect("a scene's senders are different");
        (scenario, senders)
    }
}

impl Row {
    /// The sender in virtual time. If a recipe models a kernel sender, the text names both.
    fn virtual_name(&self) -> String {
        match &self.modelled_by {
            Some(recipe) => format!("{recipe} (for {})", self.sender),
            None => self.sender.clone(),
        }
    }

    /// The sender's counts in the real transfer. `None` if they are missing or the transfer does not count.
    fn real_counts(&self) -> Option<&RetransmissionCounts> {
        self.real.repair.as_ref().filter(|_| self.real.counts())
    }
}

impl SceneResult {
    fn of(scene: &Scene, senders: &[Sender], runs: &[seeds::Runs], transfers: Vec<Outcome>) -> Self {
        let rows =
            senders.iter().zip(runs).zip(transfers).enumerate().map(|(index, ((sender, own), real))| {
                let counts = real.counts();
                let slower = own.kbit_per_s.iter().filter(|goodput| **goodput < real.kbit_per_s).count();
                Row {
                    sender: sender.name.clone(),
                    modelled_by: seeds::model_recipe(&sender.kind),
                    in_virtual_time: own.means(),
                    against: (index > 0).then(|| Comparison::of(&own.kbit_per_s, &runs[0].kbit_per_s)),
                    notices: own.notices.clone().unwrap_or_default(),
                    faster_than: counts.then(|| slower as f64 / own.kbit_per_s.len() as f64),
                    real,
                }
            });
        let rows: Vec<Row> = rows.collect();
        let (sentences, left_out) =
            scene.claims.iter().map(|claim| claim.check(&rows, runs)).partition(|sentence| sentence.holds);
        Self {
            name: scene.name.to_owned(),
            title: scene.title.to_owned(),
            bytes: scene.bytes,
            profile: PROFILE.to_string(),
            seeds: runs.first().map_or(0, |runs| runs.kbit_per_s.len()),
            against: senders.first().map_or_else(String::new, |first| first.name.clone()),
            rows,
            sentences,
            left_out,
        }
    }

    /// Invalid transfers over TUN devices, and the reasons.
    pub fn invalid(&self) -> impl Iterator<Item = (&str, &str)> {
        let exact = self.rows.iter().filter(|row| row.real.failure.is_none());
        exact.filter_map(|row| Some((row.sender.as_str(), row.real.invalid.as_deref()?)))
    }

    /// The notices of the runs in virtual time.
    pub fn notices(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rows
            .iter()
            .flat_map(|row| row.notices.iter().map(|notice| (row.sender.as_str(), notice.as_str())))
    }

    /// Failed transfers over TUN devices, and the reasons.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rows.iter().filter_map(|row| Some((row.sender.as_str(), row.real.failure.as_deref()?)))
    }
}
