//! `airtcp lab run`: the same transfer for several senders, and a table.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlink::scenario::{self, Scenario};
use airtcp::ProfileName;
use airtcp_lab::LabError;
use airtcp_lab::compare;
use airtcp_lab::experiment::{self, Experiment, Progress, Report};
use airtcp_lab::receiver::Receiver;
use airtcp_lab::sender::{self, Kind, Typed};
use airtcp_lab::testbed::{Keep, Tools, quoted};
use airtcp_lab::transfer::Outcome;
use airtcp_numbers::units;
use anyhow::Context;
use clap::{Args, ValueEnum};

use super::form::Form;
use super::load::Load;
use super::{Stacks, failed};
use crate::shared::senders::ProfileParser;
use crate::shared::{failure, say, stop};

/// Transfer the same bytes with every sender over the same path, several times, and compare.
///
/// Builds the namespaces, starts `airlink` between them and a receiver that is not airtcp, runs the sender, compares
/// what arrived octet for octet (SHA-256), keeps captures and decisions, and cleans up whatever happens.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Run {
    /// Algorithms joined by `+` (see `airtcp algorithms`), with a profile of its own behind an @: newreno@linux (repeatable: a sender of each)
    #[arg(long, value_name = "RECIPE[@PROFILE]")]
    recipe: Vec<Typed>,
    /// A sender of the kernel: linux:cubic, linux:reno, linux:bbr, … is this kernel's own TCP (repeatable)
    #[arg(long, value_name = "SENDER", value_parser = sender::kernels_own)]
    sender: Vec<Typed>,
    /// Compare the others with this sender [default: the first]
    #[arg(long, value_name = "RECIPE|SENDER")]
    against: Option<Typed>,
    /// Whose TCP to look like in everything but the recipe, where that does not name it [default: linux beside one of the kernel's senders, otherwise default]
    #[arg(long, value_name = "PROFILE", value_parser = ProfileParser, hide_possible_values = true)]
    profile: Option<ProfileName>,
    /// A preset's name, or a file; `airlink show` lists the presets
    #[arg(long, short, value_name = "SCENARIO")]
    scenario: String,
    /// Change one of the scenario's settings, e.g. wire.down.rate=64kbit (repeatable)
    #[arg(long, value_name = "STAGE.KEY=VALUE", value_parser = scenario::assigned)]
    set: Vec<(String, String)>,
    /// Who receives; `airtcp lab receivers` lists them
    #[arg(long, value_name = "RECEIVER", default_value = "linux")]
    receiver: String,
    /// Rounds in all: in each, every sender sends once, all with the same seed [default: 3; with --until, 200 at most]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// End as soon as every sender is known to be better than the one it is compared with, worse, or alike
    #[arg(long, value_name = "WHEN")]
    until: Option<Until>,
    #[command(flatten)]
    load: Load,
    /// Seed of all random numbers, of the first round; each later round adds 1
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// How many at once: transfers, each on a path of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// A transfer that takes longer has failed
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = units::duration)]
    limit: airwire::time::Duration,
    #[command(flatten)]
    stacks: Stacks,
    /// Directory for everything that is kept; empty, or with rounds of the same experiment, behind which it then goes on [default: the next free lab/NNN-SCENARIO]
    #[arg(long, short, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Also keep what happened to every packet as JSON lines (events.jsonl)
    #[arg(long, help_heading = "Output")]
    events: bool,
    /// Also keep every radio PDU in transmit order, for Wireshark (radio.pcap)
    #[arg(long, help_heading = "Output")]
    radio: bool,
    /// Also run the recipes in virtual time, with the same seeds, and say until which decision both are the same, why they
    /// part there, and how far the goodputs of a round differ (also keeps events.jsonl)
    #[arg(long = "virtual", conflicts_with = "csv")]
    in_virtual_time: bool,
    #[command(flatten)]
    form: Form,
    #[arg(from_global)]
    quiet: bool,
}

/// What ends a lab before its last round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Until {
    /// The intervals say which sender is better, and about all of them
    Decided,
}

const EXAMPLES: &str = "\
Examples (as root, or as an ordinary user where /dev/net/tun may be opened):
  Which recovers best on W-CDMA with 10 % of its blocks in error?
    airtcp lab run --scenario wcdma-384-jitter --recipe newreno --recipe newreno+eifel --sender linux:cubic
  The same until it is decided:
    airtcp lab run --scenario wcdma-384-jitter --recipe newreno --recipe newreno+eifel --until decided
  What is the kernel's retransmission timer worth to a recipe?
    airtcp lab run --scenario wcdma-384-jitter --recipe newreno@default --recipe newreno@linux
  Upwards, two connections at a time:
    airtcp lab run --scenario hsdpa-like --recipe linux --sender linux:cubic --direction up --flows 2
  Who gives way? Half a minute beside the kernel's CUBIC, on one path:
    airtcp lab run --scenario leo --recipe linux --recipe bbr-linux --beside linux:cubic --for 30s
  A receiver that reads 50 kB in a second:
    airtcp lab run --scenario wcdma-384 --recipe newreno --sender linux:cubic --read-rate 50kB/s
  The table of an old lab again, for a spreadsheet:
    airtcp lab show lab/003-leo --csv > leo.csv
  Against another stack:
    interop/receivers/setup.sh gvisor
    airtcp lab run --scenario tax-rebate --recipe sack --recipe newreno+rebate --receiver gvisor

The directory has lab.json (everything, with the command that repeats it), scenario.toml, and for every transfer
fixed.pcap and mobile.pcap (what crossed the path's devices), decisions.jsonl, annotated.pcapng (for Wireshark: the
packets with the decisions beside them), airlink.json, and both programs' logs.

With several connections in a transfer the files of the others have an addition: sender-2.jsonl, decisions-up.jsonl,
receiver-beside.jsonl.

Exit codes: 0 every transfer was exact, 1 some were not, 2 usage, 3 environment (privilege, device, missing program).";

impl Run {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let typed: Vec<_> = self.recipe.iter().chain(&self.sender).cloned().collect();
        if typed.is_empty() {
            return Err(failure::usage("name who sends: --recipe newreno, --sender linux:cubic"));
        }
        let usual = || sender::usual_profile(typed.iter().chain(self.load.beside()));
        let profile = self.profile.unwrap_or_else(usual);
        let senders = sender::resolve(&typed, Some(profile)).map_err(failure::usage)?;
        let workload = self.load.workload(profile, self.limit)?;
        if self.in_virtual_time {
            compare::has_a_model(&workload).map_err(failure::usage)?;
        }
        for sender in senders.iter().chain(&workload.beside) {
            if let Kind::Kernel(control) = &sender.kind {
                sender::congestion_control(control).map_err(failed)?;
            }
        }
        let against = self.against.as_ref().map(|typed| sender::find(&senders, typed)).transpose();
        let against = against.map_err(failure::usage)?.unwrap_or(0);
        let mut scenario =
            Scenario::load(&self.scenario).map_err(|error| failure::usage(error.to_string()))?;
        for (key, value) in &self.set {
            scenario.set(key, value).map_err(|error| failure::usage(error.to_string()))?;
        }
        let rounds = self.runs.unwrap_or_else(|| self.until.map_or(3, |_| 200));
        if self.seed.checked_add(u64::from(rounds - 1)).is_none() {
            return Err(failure::usage("--seed and --runs together are too large"));
        }
        let tools = Tools::find().map_err(failed)?;
        let receiver = Receiver::find(&self.receiver, &self.stacks.directory()).map_err(failed)?;
        receiver.can(&workload).map_err(failure::usage)?;
        let directory = match &self.output {
            Some(directory) => directory.clone(),
            None => next_free(Path::new("lab"), &scenario.name)?,
        };
        let standing = Standing::watch(self.form, &directory)?;
        let experiment = Experiment {
            scenario,
            senders: experiment::named_as_kept(senders, &directory),
            against,
            receiver,
            rounds,
            until_decided: self.until == Some(Until::Decided),
            workload,
            seed: self.seed,
            wait: Duration::ZERO,
            limit: Duration::from_nanos(self.limit.as_nanos()),
            jobs: usize::from(self.jobs),
            // What the path did to each packet is half of a comparison with virtual time.
            keep: Keep { events: self.events || self.in_virtual_time, radio: self.radio },
            directory: std::path::absolute(&directory)?,
            command: std::env::args().map(|word| quoted(&word)).collect::<Vec<_>>().join(" "),
        };
        let ran = experiment::run(&tools, &experiment, |progress| {
            if !self.quiet {
                say(progress);
            }
        });
        let mut report = ran.map_err(|error| {
            // What is kept there is another experiment's.
            if !matches!(error, LabError::Taken { .. }) {
                standing.show();
            }
            match error {
                LabError::Full { .. } => standing.no_room(),
                error => failed(error),
            }
        })?;
        if self.in_virtual_time {
            compare::compare(&experiment, &mut report).map_err(failed)?;
        }
        write!(say::out(), "{}", self.form.of(&report))?;
        if self.form.is_text() {
            writeln!(say::out(), "\nkept in {}: captures, decisions, lab.json", directory.display())?;
        }
        let Some((first, why)) = report.failures().next() else { return Ok(()) };
        let (failures, all) = (report.failures().count(), report.transfers.len());
        let Outcome { sender, seed, .. } = first;
        Err(failure::run(format!(
            "{failures} of {all} transfers failed. The first, {sender} with seed {seed}: {why}"
        )))
    }
}

/// Where a lab stands while it runs: whatever ends it before its time, the complete rounds are shown. `lab.json` has them.
#[derive(Clone)]
struct Standing {
    form: Form,
    directory: PathBuf,
}

impl Standing {
    /// From here on SIGINT, SIGTERM and SIGHUP end the lab with what it has. No thread may run before.
    fn watch(form: Form, directory: &Path) -> anyhow::Result<Self> {
        let standing = Self { form, directory: directory.to_owned() };
        let watching = standing.clone();
        stop::at_a_signal(move || {
            // The lab runs on until this ends it, and shall not have more rounds than it says.
            let held = experiment::hold();
            watching.show();
            let directory = quoted(&watching.directory.display().to_string());
            say::aside(format_args!(
                "airtcp: stopped by a signal. With --output {directory} the same command goes on behind the rounds that are \
                 complete: {}",
                watching.rounds()
            ));
            held
        })?;
        Ok(standing)
    }

    fn complete(&self) -> Option<Report> {
        Report::read(&self.directory).ok().filter(|report| report.rounds > 0)
    }

    fn rounds(&self) -> u32 {
        self.complete().map_or(0, |report| report.rounds)
    }

    fn show(&self) {
        let text = self.complete().map(|report| self.form.of(&report));
        let _ = write!(say::out(), "{}", text.unwrap_or_default());
    }

    /// The disk is full: what is to be done.
    fn no_room(&self) -> anyhow::Error {
        let directory = quoted(&self.directory.display().to_string());
        let rounds = self.rounds();
        failure::run(format!(
            "{}: the disk is full (No space left on device). Make room there, and with --output {directory} the same command \
             goes on behind the rounds that are complete: {rounds}",
            self.directory.display()
        ))
    }
}

fn say(progress: &Progress<'_>) {
    let Progress { done, all, outcome, left, .. } = progress;
    let result = match &outcome.failure {
        None => format!("{} in {:.1} s", units::show_rate(outcome.kbit_per_s * 1e3), outcome.capture.seconds),
        Some(why) => format!("failed: {why}"),
    };
    let beside = outcome.together.beside_kbit_per_s.map(|beside| {
        let share = outcome.together.share.map(|share| format!(", a share of {:.0} %", 100.0 * share));
        format!(", {} beside it{}", units::show_rate(beside * 1e3), share.unwrap_or_default())
    });
    let result = result + &beside.filter(|_| outcome.failure.is_none()).unwrap_or_default();
    let again: String = outcome.made_again.iter().map(|why| format!(", made again: {why}")).collect();
    let spoiled = outcome.spoiled.as_ref().map(|why| format!(", left out: {why}")).unwrap_or_default();
    let left = if done == all { String::new() } else { format!(", about {} left", show_time(*left)) };
    say::aside(format_args!(
        "[{done}/{all}] {} to {}, seed {}: {result}{again}{spoiled}{left}",
        outcome.sender, outcome.receiver, outcome.seed
    ));
}

pub(super) fn show_time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..90 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// Makes `parent/NNN-name` with the next free number; another lab that starts now gets another directory.
pub(crate) fn next_free(parent: &Path, name: &str) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let taken = fs::read_dir(parent)
        .with_context(|| format!("cannot read {}", parent.display()))?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.split('-').next()?.parse::<u32>().ok());
    let mut number = taken.max().unwrap_or(0);
    loop {
        number += 1;
        let directory = parent.join(format!("{number:03}-{plain}"));
        match fs::create_dir(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot make {}", directory.display())),
        }
    }
}
