//! Runs the same transfer with every sender, in several rounds. Each round has one transfer per sender, so
//! that other load on the machine affects all senders alike. The transfers of a round share a seed, so they
//! meet the same path.

mod report;

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use airlink::scenario::Scenario;
use airtcp_sim::file;
use airtcp_sim::inputs;
pub use report::{Report, Versions};
use serde::Serialize;

use super::LabError;
use super::kernel_differences;
use super::receiver::Receiver;
use super::sender::{Kind, Sender};
use super::summary;
use super::testbed::{ExtraFiles, Tools};
use super::transfer::{self, Outcome, Transfer};
use super::workload::Workload;

const SCHEMA_VERSION: u32 = 1;

/// The plan of an experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The path.
    pub scenario: Scenario,
    /// The senders. Each one sends once per round, in this order.
    pub senders: Vec<Sender>,
    /// Index of the reference.
    pub against: usize,
    /// The receiver of all transfers.
    pub receiver: Receiver,
    /// Number of transfers per sender.
    pub rounds: u32,
    /// Differences from the reference up to this fraction of its mean count as no difference.
    pub margin: f64,
    /// Stops earlier if the comparison is decided for every sender.
    pub until_decided: bool,
    /// The properties of every transfer.
    pub workload: Workload,
    /// The seed of the first round. It increases by one per round.
    pub seed: u64,
    /// Time from the start of the path to the start of the senders. If they are not ready by then, they start
    /// as soon as possible. The time matters because outages of the path have fixed times.
    pub wait: Duration,
    /// Time limit. A transfer that takes longer has failed.
    pub limit: Duration,
    /// Number of transfers in parallel, each on its own path.
    pub jobs: usize,
    /// The files to keep in addition to captures and logs.
    pub keep: ExtraFiles,
    /// The output directory. It is created, and must be empty or contain rounds of this experiment; in that
    /// case the experiment continues after these rounds.
    pub directory: PathBuf,
    /// The command line that repeats the experiment.
    pub command: String,
}

/// The progress after a transfer.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Number of finished transfers, including this one.
    pub done: usize,
    /// Total number of transfers.
    pub all: usize,
    /// The result of this transfer.
    pub outcome: &'a Outcome,
    /// Estimated remaining time, from the mean time of a transfer so far, repetitions included.
    pub remaining: Duration,
    /// Advice to use `--jobs 1`, given once: transfers in parallel disturb each other.
    pub is_crowded: bool,
}

/// Number of repeated or invalid transfers after which the machine counts as overloaded by parallel
/// transfers, if they are also at least a quarter of all transfers.
const MIN_DISTURBED: usize = 3;

/// The time of the transfers, and the number of disturbed ones.
#[derive(Debug, Default)]
struct Pace {
    transfers: u32,
    spent: Duration,
    disturbed: usize,
}

impl Pace {
    fn count(&mut self, outcome: &Outcome, spent: Duration) {
        self.transfers += 1;
        self.spent += spent;
        self.disturbed += outcome.repeated.len() + usize::from(outcome.invalid.is_some());
    }

    /// The remaining time for this number of transfers, of which `jobs` run at the same time.
    fn remaining(&self, transfers: usize, jobs: usize) -> Duration {
        let batches = transfers.div_ceil(jobs.max(1));
        self.spent.checked_div(self.transfers).unwrap_or_default() * batches as u32
    }

    /// Returns true if fewer transfers in parallel would finish sooner, because the machine disturbs many.
    fn is_crowded(&self, jobs: usize) -> bool {
        jobs > 1 && self.disturbed >= MIN_DISTURBED && 4 * self.disturbed >= self.transfers as usize
    }
}

/// Runs all transfers, calls `observe` after each one, and updates `lab.json` after each round.
///
/// # Errors
///
/// Returns an error if the directory is not usable, or if further transfers would also fail. A failed
/// transfer is part of the report.
pub fn run(
    tools: &Tools,
    experiment: &Experiment,
    mut observe: impl FnMut(&Progress<'_>),
) -> Result<Report, LabError> {
    let directory = &experiment.directory;
    let text = experiment.scenario.to_toml();
    let mut rounds = Rounds::begin(tools, experiment, &text)?;
    let scenario = directory.join("scenario.toml");
    file::replace(&scenario, text.as_bytes()).map_err(LabError::file(&scenario))?;
    let scenario = scenario.to_string_lossy().into_owned();

    let first = rounds.report.rounds;
    let plans = (first..experiment.rounds)
        .flat_map(|round| experiment.senders.iter().map(move |sender| (round, sender)));
    let plans: Vec<_> = plans.collect();
    let (mut pace, mut done, mut was_crowded) = (Pace::default(), 0, false);
    in_parallel(
        experiment.jobs,
        plans.len(),
        |index| {
            let (round, sender) = plans[index];
            let directory = directory.join(directory_name(round, &sender.name));
            let plan = Transfer {
                scenario: &scenario,
                seed: experiment.seed + u64::from(round),
                sender,
                receiver: &experiment.receiver,
                workload: &experiment.workload,
                wait: experiment.wait,
                limit: experiment.limit,
                directory: &directory,
                keep: experiment.keep,
            };
            let start = Instant::now();
            transfer::run_until_valid(tools, &plan).map(|outcome| (outcome, start.elapsed()))
        },
        |index, (outcome, spent): (Outcome, Duration)| {
            done += 1;
            pace.count(&outcome, spent);
            let all = plans.len();
            let remaining = pace.remaining(all - done, experiment.jobs);
            let is_crowded = !was_crowded && pace.is_crowded(experiment.jobs);
            was_crowded |= is_crowded;
            let report = rounds.add(index, outcome.clone())?;
            observe(&Progress { done, all, outcome: &outcome, remaining, is_crowded });
            let decided = experiment.until_decided && report.is_some_and(Report::is_decided);
            Ok(if decided { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        },
    )?;
    Ok(rounds.report)
}

/// Gives the senders the names that they have in a directory to which rounds are added. Recipes may be
/// spelled differently now, but files and directories are found by these names.
pub fn with_recorded_names(mut senders: Vec<Sender>, directory: &Path) -> Vec<Sender> {
    let previous = Report::read(directory).ok();
    for (sender, row) in senders.iter_mut().zip(previous.iter().flat_map(|report| &report.summary)) {
        if sender.profile() == row.profile && sender.matches(&row.sender) {
            sender.name.clone_from(&row.sender);
        }
    }
    senders
}

/// The state of a running experiment: all complete rounds, and single transfers of later rounds.
struct Rounds<'a> {
    experiment: &'a Experiment,
    report: Report,
    /// The command that adds rounds, and the current versions. The report contains them once a round is
    /// added.
    current: (String, Versions),
    /// Transfers of incomplete rounds, by their index after the rounds that existed at the start.
    incomplete: BTreeMap<usize, Outcome>,
    /// The index of the first transfer of the next round.
    next: usize,
}

impl<'a> Rounds<'a> {
    /// Starts in an empty directory, or after the rounds that it contains.
    fn begin(tools: &Tools, experiment: &'a Experiment, scenario: &str) -> Result<Self, LabError> {
        let directory = &experiment.directory;
        let previous = match airfiles::read_result(directory.join("lab.json")) {
            Ok(text) => Some(experiment.parse_previous(&text, scenario)?),
            Err(_) => {
                create_empty_directory(directory)?;
                None
            }
        };
        let current = (experiment.command.clone(), Versions::of(tools, &experiment.receiver.version()));
        let saved = previous.as_ref().map(|report| (report.against.clone(), report.rounds));
        let (command, versions, transfers, in_virtual_time) = match previous {
            Some(report) => (report.command, report.versions, report.transfers, report.in_virtual_time),
            None => (current.0.clone(), current.1.clone(), Vec::new(), Vec::new()),
        };
        let reference = experiment.senders.get(experiment.against);
        let report = Report {
            schema_version: SCHEMA_VERSION,
            command,
            versions,
            scenario: experiment.scenario.name.clone(),
            receiver: experiment.receiver.name().to_owned(),
            bytes: experiment.workload.bytes(),
            asked: experiment.workload.record(),
            rounds: (transfers.len() / experiment.senders.len().max(1)) as u32,
            margin: experiment.margin,
            against: reference.map_or_else(String::new, |sender| sender.name.clone()),
            summary: summary::rows(&experiment.senders, experiment.against, experiment.margin, &transfers),
            kernel_differences: kernel_differences::line(
                &experiment.senders,
                kernel_differences::paces_by_queue(),
            ),
            transfers,
            in_virtual_time,
        };
        let is_saved = saved == Some((report.against.clone(), report.rounds));
        let rounds = Self { experiment, report, current, incomplete: BTreeMap::new(), next: 0 };
        // Do not rewrite existing results before there are new ones, because the disk may be full.
        if !is_saved {
            rounds.save()?;
        }
        Ok(rounds)
    }

    /// Adds a transfer. Returns the report if the transfer completes a round.
    fn add(&mut self, index: usize, outcome: Outcome) -> Result<Option<&Report>, LabError> {
        let senders = self.experiment.senders.len();
        self.incomplete.insert(index, outcome);
        let before = self.report.rounds;
        while (self.next..self.next + senders).all(|index| self.incomplete.contains_key(&index)) {
            let round = (self.next..self.next + senders).filter_map(|index| self.incomplete.remove(&index));
            self.report.transfers.extend(round);
            self.next += senders;
            self.report.rounds += 1;
        }
        if self.report.rounds == before {
            return Ok(None);
        }
        (self.report.command, self.report.versions) = self.current.clone();
        let Experiment { senders, against, margin, .. } = self.experiment;
        self.report.summary = summary::rows(senders, *against, *margin, &self.report.transfers);
        self.save()?;
        Ok(Some(&self.report))
    }

    fn save(&self) -> Result<(), LabError> {
        write_json(&self.experiment.directory.join("lab.json"), &self.report)
    }
}

impl Experiment {
    /// Returns a warning for each part of a recipe whose information cannot arrive.
    pub fn notices(&self) -> Vec<String> {
        let directions = self.workload.directions.each();
        let receivers = self.receiver.receives();
        let senders = self.senders.iter().chain(&self.workload.competitors);
        let of = |sender: &Sender| match &sender.kind {
            Kind::Recipe { recipe, .. } => inputs::notices(&self.scenario, directions, receivers, recipe),
            Kind::Kernel(_) => Vec::new(),
        };
        let mut notices = Vec::new();
        for notice in senders.flat_map(of) {
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
        notices
    }

    /// Parses `lab_json` and checks that it belongs to this experiment. `scenario` is the text of the
    /// scenario.
    fn parse_previous(&self, lab_json: &str, scenario: &str) -> Result<Report, LabError> {
        let taken = |reason: &str| LabError::Taken {
            directory: self.directory.clone(),
            why: format!(
                "the directory has another experiment: {reason}. Choose another directory with --output, or repeat the command \
                 of that experiment to add rounds to it"
            ),
        };
        let previous = Report::parse(lab_json, &self.directory.join("lab.json"))?;
        let Report { summary, transfers, receiver, .. } = &previous;
        let previous_senders: Vec<_> =
            summary.iter().map(|row| (row.sender.as_str(), row.profile.clone())).collect();
        let senders: Vec<_> =
            self.senders.iter().map(|sender| (sender.name.as_str(), sender.profile())).collect();
        let seed = transfers.first().map_or(self.seed, |first| first.seed);
        if airfiles::read_result(self.directory.join("scenario.toml")).is_ok_and(|other| other != scenario) {
            return Err(taken("its scenario differs (scenario.toml)"));
        } else if previous_senders != senders {
            let names: Vec<_> = previous_senders.iter().map(|(name, _)| *name).collect();
            return Err(taken(&format!("its senders are {}", names.join(", "))));
        } else if self.workload.time().is_some() && !transfers.iter().all(Outcome::is_measured_in_time) {
            return Err(taken("it was made by an older version, which measured goodput over a longer time"));
        } else if receiver != self.receiver.name() {
            return Err(taken(&format!("its receiver is {receiver}")));
        } else if previous.bytes != self.workload.bytes() || !previous.asked.matches(&self.workload) {
            return Err(taken(&format!("its transfers differ ({})", previous.describe_transfer())));
        } else if seed != self.seed {
            return Err(taken(&format!("its first seed is {seed}")));
        }
        Ok(previous)
    }
}

static WRITE_LOCK: Mutex<()> = Mutex::new(());

/// Prevents changes of any `lab.json` until the guard is dropped. A caller can thus report the state of the
/// file and exit.
pub fn lock_results() -> MutexGuard<'static, ()> {
    WRITE_LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), LabError> {
    let mut text =
        serde_json::to_string_pretty(value).map_err(|error| LabError::Transfer(error.to_string()))?;
    text.push('\n');
    let _guard = lock_results();
    file::replace(path, text.as_bytes()).map_err(LabError::file(path))
}

pub(super) fn create_empty_directory(directory: &Path) -> Result<(), LabError> {
    fs::create_dir_all(directory).map_err(LabError::file(directory))?;
    let mut entries = fs::read_dir(directory).map_err(LabError::file(directory))?;
    if entries.next().is_none() {
        return Ok(());
    }
    let why = "the directory is not empty; choose another one with --output".to_owned();
    Err(LabError::Taken { directory: directory.to_owned(), why })
}

/// The directory of a sender's transfer in a round. Rounds count from 0.
pub(crate) fn directory_name(round: u32, sender: &str) -> String {
    file_name(&format!("{:02}-{sender}", round + 1))
}

/// Replaces the characters that must be quoted in a shell.
pub(super) fn file_name(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-_.=@".contains(c);
    text.chars().map(|c| if plain(c) { c } else { '-' }).collect()
}

/// Calls `work` for every index below `all`, with `jobs` calls in parallel, and `done` with each result on
/// arrival. No new work starts after the first error, which is returned, or when `done` breaks.
pub(super) fn in_parallel<T: Send>(
    jobs: usize,
    all: usize,
    work: impl Fn(usize) -> Result<T, LabError> + Sync,
    mut done: impl FnMut(usize, T) -> Result<ControlFlow<()>, LabError>,
) -> Result<(), LabError> {
    let (next, stop, error) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(None));
    let fail = |failure| {
        stop.store(true, Ordering::Relaxed);
        error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    };
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, all.max(1)) {
            let (sender, next, stop, fail, work) = (sender.clone(), &next, &stop, &fail, &work);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= all {
                        return;
                    }
                    match work(index) {
                        // The receiver outlives these threads, so the send succeeds.
                        Ok(result) => drop(sender.send((index, result))),
                        Err(failure) => fail(failure),
                    }
                }
            });
        }
        drop(sender);
        for (index, result) in receiver {
            match done(index, result) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => stop.store(true, Ordering::Relaxed),
                Err(failure) => fail(failure),
            }
        }
    });
    error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(repeated: usize) -> Outcome {
        Outcome { repeated: vec!["late".to_owned(); repeated], ..Outcome::default() }
    }

    #[test]
    fn remaining_time_counts_repetitions_and_jobs() {
        let mut pace = Pace::default();
        assert_eq!(pace.remaining(10, 2), Duration::ZERO);
        pace.count(&outcome(0), Duration::from_secs(10));
        pace.count(&outcome(3), Duration::from_secs(40));
        assert_eq!(pace.remaining(5, 1), Duration::from_secs(125));
        assert_eq!(pace.remaining(5, 2), Duration::from_secs(75), "the last batch has one transfer");
    }

    #[test]
    fn parallel_transfers_are_crowded_after_some_disturbances() {
        let mut pace = Pace::default();
        for _ in 0..2 {
            pace.count(&outcome(1), Duration::ZERO);
        }
        assert!(!pace.is_crowded(2), "two disturbances happen on any machine");
        pace.count(&outcome(1), Duration::ZERO);
        assert!(pace.is_crowded(2));
        assert!(!pace.is_crowded(1), "one transfer at a time cannot be fewer");
        for _ in 0..10 {
            pace.count(&outcome(0), Duration::ZERO);
        }
        assert!(!pace.is_crowded(2), "3 of 13 transfers");
    }
}
