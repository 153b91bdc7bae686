//! The same transfer with every sender, in several rounds. A round has one transfer of each, so that whatever else the
//! machine does hits all of them alike; its transfers have the same seed, so that they meet the same path.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use airlink::scenario::Scenario;
use airtcp_numbers::verdict::is_look;
use serde::{Deserialize, Serialize};

use super::LabError;
use super::compare::Compared;
use super::likeness;
use super::receiver::Receiver;
use super::sender::Sender;
use super::summary::{self, Row};
use super::testbed::{Keep, Tools};
use super::transfer::{self, Outcome, Transfer};

const SCHEMA_VERSION: u32 = 1;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The path.
    pub scenario: Scenario,
    /// Each sends once in a round, in this order.
    pub senders: Vec<Sender>,
    /// Which of them the others are compared with.
    pub against: usize,
    /// Who receives from all of them.
    pub receiver: Receiver,
    /// Transfers of each sender.
    pub rounds: u32,
    /// It ends sooner if it is decided about every sender.
    pub until_decided: bool,
    /// Octets of a transfer.
    pub bytes: u64,
    /// Of the first round; the next ones count up from it.
    pub seed: u64,
    /// A transfer that takes longer has failed.
    pub limit: Duration,
    /// Transfers at a time, each on a path of its own.
    pub jobs: usize,
    /// What is kept beside captures and logs.
    pub keep: Keep,
    /// For everything that is kept. It is made, and must be empty or hold rounds of this experiment: then it goes on
    /// behind these.
    pub directory: PathBuf,
    /// The command line that repeats it.
    pub command: String,
}

/// Everything that is known afterwards: `lab.json` in the directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Of this format: 1.
    pub schema_version: u32,
    /// The command line that repeats the experiment.
    pub command: String,
    /// What it was run with.
    pub versions: Versions,
    /// The scenario's name.
    pub scenario: String,
    /// The receiver's name.
    pub receiver: String,
    /// Octets of a transfer.
    pub bytes: u64,
    /// Transfers of each sender: the rounds that are complete.
    pub rounds: u32,
    /// The sender that the others are compared with. Empty: the file is older than this field.
    #[serde(default)]
    pub against: String,
    /// A row for each sender.
    pub summary: Vec<Row>,
    /// What the kernel's senders have and ours have not. `None`: the kernel sends nothing here.
    #[serde(default)]
    pub unlike_the_kernel: Option<String>,
    /// Round after round, each in the order of the senders.
    pub transfers: Vec<Outcome>,
    /// The recipes in virtual time, beside what they did here. Empty: nobody asked for it, or the file is older than this
    /// field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_virtual_time: Vec<Compared>,
}

/// The programs that took part, each with its name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Versions {
    /// This program.
    pub airtcp: String,
    /// As `airlink --version` says it; empty if it does not.
    pub airlink: String,
    /// `Linux` and its release.
    pub kernel: String,
    /// As [`Receiver::version`] says it.
    pub receiver: String,
}

impl Versions {
    pub(crate) fn of(tools: &Tools, receiver: &str) -> Self {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let airlink = Command::new(&tools.airlink).arg("--version").output();
        let airlink = airlink.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        Self {
            airtcp: concat!("airtcp ", env!("CARGO_PKG_VERSION")).to_owned(),
            airlink: airlink.unwrap_or_default(),
            kernel: format!("Linux {}", kernel.trim()),
            receiver: receiver.to_owned(),
        }
    }
}

/// One more transfer is done.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Transfers that are done, with this one.
    pub done: usize,
    /// Transfers in all.
    pub all: usize,
    /// What came of this one.
    pub outcome: &'a Outcome,
    /// What is known now, if another round is complete. `lab.json` has it.
    pub report: Option<&'a Report>,
    /// How long the others will take, at the mean speed so far.
    pub left: Duration,
}

/// Runs all transfers, tells `observe` of each as it ends, and keeps `lab.json` up to date, round by round.
pub fn run(
    tools: &Tools,
    experiment: &Experiment,
    mut observe: impl FnMut(&Progress<'_>),
) -> Result<Report, LabError> {
    let directory = &experiment.directory;
    let text = experiment.scenario.to_toml();
    let mut rounds = Rounds::begin(tools, experiment, &text)?;
    let scenario = directory.join("scenario.toml");
    fs::write(&scenario, text).map_err(LabError::file(&scenario))?;
    let scenario = scenario.to_string_lossy().into_owned();

    let first = rounds.report.rounds;
    let plans = (first..experiment.rounds)
        .flat_map(|round| experiment.senders.iter().map(move |sender| (round, sender)));
    let plans: Vec<_> = plans.collect();
    let start = Instant::now();
    let mut done = 0;
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
                bytes: experiment.bytes,
                limit: experiment.limit,
                directory: &directory,
                keep: experiment.keep,
            };
            transfer::run_until_valid(tools, &plan)
        },
        |index, outcome: Outcome| {
            done += 1;
            let all = plans.len();
            let left = start.elapsed().mul_f64((all - done) as f64 / done as f64);
            let report = rounds.take(index, outcome.clone())?;
            observe(&Progress { done, all, outcome: &outcome, report, left });
            let decided = experiment.until_decided && report.is_some_and(Report::is_decided);
            Ok(if decided { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        },
    )?;
    rounds.save()?;
    Ok(rounds.report)
}

/// What is known of an experiment while it runs: complete rounds, from the first one on, and single transfers behind them.
struct Rounds<'a> {
    experiment: &'a Experiment,
    report: Report,
    /// By their place behind the rounds that there were at the beginning.
    behind: BTreeMap<usize, Outcome>,
    /// The place of the next one.
    next: usize,
}

impl<'a> Rounds<'a> {
    /// In an empty directory, or behind the rounds that are in it.
    fn begin(tools: &Tools, experiment: &'a Experiment, scenario: &str) -> Result<Self, LabError> {
        let directory = &experiment.directory;
        let transfers = match fs::read_to_string(directory.join("lab.json")) {
            Ok(text) => experiment.earlier(&text, scenario)?,
            Err(_) => {
                make_empty(directory)?;
                Vec::new()
            }
        };
        let report = Report {
            schema_version: SCHEMA_VERSION,
            command: experiment.command.clone(),
            versions: Versions::of(tools, &experiment.receiver.version()),
            scenario: experiment.scenario.name.clone(),
            receiver: experiment.receiver.name().to_owned(),
            bytes: experiment.bytes,
            rounds: (transfers.len() / experiment.senders.len().max(1)) as u32,
            against: experiment
                .senders
                .get(experiment.against)
                .map_or_else(String::new, |it| it.name.clone()),
            summary: summary::rows(&experiment.senders, experiment.against, &transfers),
            unlike_the_kernel: likeness::line(&experiment.senders, likeness::paces_by_queue()),
            transfers,
            in_virtual_time: Vec::new(),
        };
        let rounds = Self { experiment, report, behind: BTreeMap::new(), next: 0 };
        rounds.save()?;
        Ok(rounds)
    }

    /// One more transfer. The report, if a round is complete with it.
    fn take(&mut self, index: usize, outcome: Outcome) -> Result<Option<&Report>, LabError> {
        let senders = self.experiment.senders.len();
        self.behind.insert(index, outcome);
        let before = self.report.rounds;
        while (self.next..self.next + senders).all(|index| self.behind.contains_key(&index)) {
            let round = (self.next..self.next + senders).filter_map(|index| self.behind.remove(&index));
            self.report.transfers.extend(round);
            self.next += senders;
            self.report.rounds += 1;
        }
        if self.report.rounds == before {
            return Ok(None);
        }
        let Experiment { senders, against, .. } = self.experiment;
        self.report.summary = summary::rows(senders, *against, &self.report.transfers);
        self.save()?;
        Ok(Some(&self.report))
    }

    fn save(&self) -> Result<(), LabError> {
        write_json(&self.experiment.directory.join("lab.json"), &self.report)
    }
}

impl Experiment {
    /// The transfers that `lab.json` has, if they are this experiment's. `scenario`: the text of the scenario.
    fn earlier(&self, lab_json: &str, scenario: &str) -> Result<Vec<Outcome>, LabError> {
        let path = self.directory.join("lab.json");
        let another = |what: &str| LabError::Taken {
            directory: self.directory.clone(),
            why: format!(
                "another experiment is kept here: {what}. Choose another directory with --output, or repeat that one's \
                 command to add rounds to it"
            ),
        };
        let kept: Report = serde_json::from_str(lab_json)
            .map_err(|error| LabError::File { path: path.clone(), source: io::Error::other(error) })?;
        let theirs: Vec<_> =
            kept.summary.iter().map(|row| (row.sender.as_str(), row.profile.clone())).collect();
        let ours: Vec<_> = self.senders.iter().map(|it| (it.name.as_str(), it.profile())).collect();
        let seed = kept.transfers.first().map_or(self.seed, |first| first.seed);
        if fs::read_to_string(self.directory.join("scenario.toml")).is_ok_and(|kept| kept != scenario) {
            return Err(another("its scenario is not the same (scenario.toml)"));
        } else if theirs != ours {
            let theirs: Vec<_> = theirs.iter().map(|(name, _)| *name).collect();
            return Err(another(&format!("its senders are {}", theirs.join(", "))));
        } else if kept.receiver != self.receiver.name() {
            return Err(another(&format!("its receiver is {}", kept.receiver)));
        } else if kept.bytes != self.bytes {
            return Err(another(&format!("its transfers have {} bytes", kept.bytes)));
        } else if seed != self.seed {
            return Err(another(&format!("its first seed is {seed}")));
        }
        Ok(kept.transfers)
    }
}

/// Writes the file anew beside the old one, which it then takes the place of: whatever happens, one of them is complete.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), LabError> {
    let mut text =
        serde_json::to_string_pretty(value).map_err(|error| LabError::Transfer(error.to_string()))?;
    text.push('\n');
    let new = path.with_extension("json.new");
    fs::write(&new, text).map_err(LabError::file(&new))?;
    fs::rename(&new, path).map_err(LabError::file(path))
}

pub(super) fn make_empty(directory: &Path) -> Result<(), LabError> {
    fs::create_dir_all(directory).map_err(LabError::file(directory))?;
    let mut entries = fs::read_dir(directory).map_err(LabError::file(directory))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(LabError::Taken {
            directory: directory.to_owned(),
            why: "it is not empty: choose another directory with --output".to_owned(),
        }),
    }
}

/// The directory of a sender's transfer in a round, which counts from 0.
pub(crate) fn directory_name(round: u32, sender: &str) -> String {
    file_name(&format!("{:02}-{sender}", round + 1))
}

/// A part of a path that needs no quotes.
pub(super) fn file_name(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-_.=@".contains(c);
    text.chars().map(|c| if plain(c) { c } else { '-' }).collect()
}

/// Does `work` for every index below `all`, `jobs` at a time, and calls `done` with each result as it comes. After the
/// first error, which is returned, or when `done` says so, nothing new is begun.
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
                        // The receiver lives until the last of these threads has ended.
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
    match error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

impl Report {
    /// For a terminal.
    pub fn table(&self) -> String {
        let mut table = summary::table(&self.summary) + &summary::verdicts(&self.summary, &self.against);
        if let Some(line) = summary::spoiled(&self.transfers) {
            table.push_str(&format!("{line}\n"));
        }
        if let Some(line) = &self.unlike_the_kernel {
            table.push_str(&format!("{line}\n"));
        }
        table
    }

    /// No more rounds are needed to tell the senders apart, or to say that they are alike.
    fn is_decided(&self) -> bool {
        let compared = || self.summary.iter().filter_map(|row| row.against);
        is_look(self.rounds as usize) && compared().all(|against| against.is_decided())
    }

    /// Transfers that failed, and why.
    pub fn failures(&self) -> impl Iterator<Item = (&Outcome, &str)> {
        self.transfers.iter().filter_map(|outcome| Some((outcome, outcome.failure.as_deref()?)))
    }
}
