//! `airtcp lab run`: runs the same transfer with several senders, and compares them in a table.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use airhelp::options::number;
use airlink::scenario::{self, Scenario};
use airtcp::ProfileName;
use airtcp_lab::LabError;
use airtcp_lab::compare;
use airtcp_lab::experiment::{self, Experiment, Progress, Report};
use airtcp_lab::receiver::Receiver;
use airtcp_lab::sender::{self, Kind, Sender, TypedSender};
use airtcp_lab::testbed::{ExtraFiles, Tools};
use airtcp_lab::transfer::Outcome;
use airtcp_numbers::units;
use airtcp_sim::sweep::setup::quoted;
use anyhow::Context;
use clap::{Args, ValueEnum};

use super::format::OutputFormat;
use super::workload::WorkloadOptions;
use super::{Stacks, failed};
use crate::shared::senders::ProfileParser;
use crate::shared::{console, failure, stop};

/// Compare senders in real time, over the same emulated path and in several rounds
///
/// Creates two network namespaces, connects them with `airlink`, and starts a receiver that is not airtcp. Runs the
/// senders, verifies the received data (SHA-256), and keeps captures and decisions. The namespaces are removed in any case.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Run {
    /// Recipe, optionally with a profile: newreno@linux (repeatable: one sender each; see `airtcp algorithms`)
    #[arg(long, value_name = "RECIPE[@PROFILE]")]
    recipe: Vec<TypedSender>,
    /// Kernel sender: linux:cubic, linux:reno, linux:bbr, … (repeatable)
    #[arg(long, value_name = "SENDER", value_parser = sender::parse_kernel_sender)]
    sender: Vec<TypedSender>,
    /// Compare the other senders with this one [default: the first]
    #[arg(long, value_name = "RECIPE|SENDER")]
    against: Option<TypedSender>,
    /// TCP stack to imitate in everything the recipe does not set [default: `linux` if there is a kernel sender, otherwise `default`]
    #[arg(long, value_name = "PROFILE", value_parser = ProfileParser, hide_possible_values = true)]
    profile: Option<ProfileName>,
    /// A preset's name, or a scenario file; `airlink show` lists the presets
    #[arg(long, short, value_name = "SCENARIO")]
    scenario: String,
    /// Change one of the scenario's settings, such as wire.down.rate=64kbit, or remove a stage with wire.remove=true (repeatable)
    #[arg(long, value_name = "STAGE.KEY=VALUE", value_parser = scenario::parse_assignment)]
    set: Vec<(String, String)>,
    /// Receiver (see `airtcp lab receivers`)
    #[arg(long, value_name = "RECEIVER", default_value = "linux")]
    receiver: String,
    /// Number of rounds; in each, every sender sends once with the same seed [default: 3; with --until at most 200]
    #[arg(long, value_name = "N", value_parser = number::<u32>(1..=u32::MAX.into()))]
    runs: Option<u32>,
    /// Stop once every comparison is decided: better, worse, or no difference
    #[arg(long, value_name = "WHEN")]
    until: Option<Until>,
    /// Largest difference from the reference that counts as no difference, in percent of its goodput
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = units::percent)]
    margin: f64,
    #[command(flatten)]
    workload: WorkloadOptions,
    /// Seed of all random numbers (in the first round; each later round adds 1)
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Number of parallel jobs (transfers), each on its own path
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::<u16>(1..=65_535))]
    jobs: u16,
    /// Time limit per transfer; a transfer that takes longer has failed
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = units::duration)]
    limit: airwire::time::Duration,
    #[command(flatten)]
    stacks: Stacks,
    /// Output directory: empty, or with rounds of the same experiment, which is then continued [default: the next free lab/NNN-SCENARIO]
    #[arg(long, short, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Also keep the events of every packet as JSON lines (events.jsonl)
    #[arg(long, help_heading = "Output")]
    events: bool,
    /// Also keep every radio PDU in transmit order, for Wireshark (radio.pcap)
    #[arg(long, help_heading = "Output")]
    radio: bool,
    /// Also run the recipes in virtual time with the same seeds, and compare decisions and goodput
    ///
    /// For each recipe, reports the first decision that differs, the reason, and the difference in goodput per round. Also keeps
    /// events.jsonl.
    #[arg(long = "virtual", conflicts_with = "csv")]
    in_virtual_time: bool,
    #[command(flatten)]
    format: OutputFormat,
    #[arg(from_global)]
    quiet: bool,
}

/// The condition that ends a lab before its last round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Until {
    /// All comparisons have a verdict
    Decided,
}

const EXAMPLES: &str = "\
Examples (as root, or as an ordinary user who can open /dev/net/tun):
  Compare recovery on W-CDMA with 10 % of the blocks in error:
    airtcp lab run --scenario wcdma-384-jitter --recipe newreno \\
      --recipe newreno+eifel --sender linux:cubic
  The same until all comparisons are decided:
    airtcp lab run --scenario wcdma-384-jitter --recipe newreno \\
      --recipe newreno+eifel --until decided
  Measure the effect of the kernel's retransmission timer on a recipe:
    airtcp lab run --scenario wcdma-384-jitter --recipe newreno@default \\
      --recipe newreno@linux
  Upload over two connections at a time:
    airtcp lab run --scenario hsdpa-like --recipe linux \\
      --sender linux:cubic --direction up --flows 2
  Compete with the kernel's CUBIC on one path for 30 seconds:
    airtcp lab run --scenario leo --recipe linux --recipe bbr-linux \\
      --competitor linux:cubic --for 30s
  Use a receiver that reads 50 kB per second:
    airtcp lab run --scenario wcdma-384 --recipe newreno \\
      --sender linux:cubic --read-rate 50kB/s
  Show the table of an earlier lab as CSV:
    airtcp lab show lab/003-leo --csv > leo.csv
  Send to another stack:
    interop/receivers/setup.sh gvisor
    airtcp lab run --scenario tax-rebate --recipe sack \\
      --recipe newreno+rebate --receiver gvisor

The output directory has lab.json (all results, and the command that repeats
them) and scenario.toml. Each transfer has fixed.pcap and mobile.pcap (packets
at the path's devices), decisions.jsonl, annotated.pcapng (packets with the
decisions as comments, for Wireshark), airlink.json, and the logs of both
programs. With several connections per transfer, the files of the others have
a suffix: sender-2.jsonl, decisions-up.jsonl, receiver-competitor.jsonl.

Exit codes:
  0  every transfer was exact
  1  some transfers were not
  2  usage error
  3  environment error: missing privilege, device or program
  130  stopped with Ctrl-C (128 + N: by signal N)";

impl Run {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let typed: Vec<_> = self.recipe.iter().chain(&self.sender).cloned().collect();
        if typed.is_empty() {
            return Err(failure::usage(
                "no sender: use for example --recipe newreno or --sender linux:cubic",
            ));
        }
        let default = || sender::default_profile(typed.iter().chain(self.workload.competitors()));
        let profile = self.profile.unwrap_or_else(default);
        let senders = sender::resolve(&typed, Some(profile)).map_err(failure::usage)?;
        let workload = self.workload.workload(profile, self.limit)?;
        if self.in_virtual_time {
            compare::check_workload(&workload).map_err(failure::usage)?;
        }
        check_senders(senders.iter().chain(&workload.competitors))?;
        let against = self.against.as_ref().map(|typed| sender::index_of(&senders, typed)).transpose();
        let against = against.map_err(failure::usage)?.unwrap_or(0);
        let scenario = self.edited_scenario()?;
        let rounds = self.runs.unwrap_or_else(|| self.until.map_or(3, |_| 200));
        if self.seed.checked_add(u64::from(rounds - 1)).is_none() {
            return Err(failure::usage("--seed and --runs together are too large"));
        }
        let tools = Tools::find().map_err(failed)?;
        let receiver = Receiver::find(&self.receiver, &self.stacks.directory()).map_err(failed)?;
        receiver.check_workload(&workload).map_err(failure::usage)?;
        let directory = super::output_directory(self.output.as_ref(), &scenario.name)?;
        let printer = ResultPrinter::watch(self.format, &directory)?;
        let experiment = Experiment {
            scenario,
            senders: experiment::with_recorded_names(senders, &directory),
            against,
            receiver,
            rounds,
            margin: self.margin,
            until_decided: self.until == Some(Until::Decided),
            workload,
            seed: self.seed,
            wait: Duration::ZERO,
            limit: Duration::from_nanos(self.limit.as_nanos()),
            jobs: usize::from(self.jobs),
            // The comparison with virtual time needs the events of each packet.
            keep: ExtraFiles { events: self.events || self.in_virtual_time, radio: self.radio },
            directory: std::path::absolute(&directory)?,
            command: super::command_line(),
        };
        experiment.notices().iter().for_each(|notice| tracing::warn!("{notice}"));
        let ran = experiment::run(&tools, &experiment, |progress| self.show_progress(progress));
        let mut report = ran.map_err(|error| {
            // The directory holds another experiment, whose results must not be shown.
            if !matches!(error, LabError::Taken { .. }) {
                printer.show();
            }
            match error {
                LabError::Full { .. } => printer.disk_full(),
                error => failed(error),
            }
        })?;
        if self.in_virtual_time {
            compare::compare(&experiment, &mut report).map_err(failed)?;
        }
        write!(console::stdout(), "{}", self.format.render(&report))?;
        if self.format.is_text() {
            writeln!(
                console::stdout(),
                "\nresults in {}: captures, decisions, lab.json",
                directory.display()
            )?;
        }
        let Some((first, why)) = report.failures().next() else { return Ok(()) };
        let (failures, all) = (report.failures().count(), report.transfers.len());
        let Outcome { sender, seed, .. } = first;
        Err(failure::run(format!(
            "{failures} of {all} transfers failed; the first is {sender} with seed {seed}: {why}"
        )))
    }

    fn edited_scenario(&self) -> anyhow::Result<Scenario> {
        let usage = |error: &dyn std::fmt::Display| failure::usage(error.to_string());
        let mut scenario = Scenario::load(&self.scenario).map_err(|error| usage(&error))?;
        for (key, value) in &self.set {
            scenario.edit(key, value).map_err(|error| usage(&error))?;
        }
        Ok(scenario)
    }

    fn show_progress(&self, progress: &Progress<'_>) {
        if !self.quiet {
            print_progress(progress);
        }
        if progress.is_crowded {
            console::print_status(format_args!(
                "airtcp: warning: this machine is too busy for {} transfers in parallel: they disturb each other and are \
                 repeated. Stop with Ctrl-C and continue with --jobs 1; complete rounds are kept",
                self.jobs
            ));
        }
    }
}

/// Checks that the senders run in real time, and that the kernel has their congestion control.
fn check_senders<'a>(senders: impl Iterator<Item = &'a Sender> + Clone) -> anyhow::Result<()> {
    super::check_real_time(senders.clone())?;
    for sender in senders {
        if let Kind::Kernel(control) = &sender.kind {
            sender::check_congestion_control(control).map_err(failed)?;
        }
    }
    Ok(())
}

/// Prints the complete rounds of a running lab when it ends or is stopped. The rounds are in `lab.json`.
#[derive(Clone)]
struct ResultPrinter {
    format: OutputFormat,
    directory: PathBuf,
}

impl ResultPrinter {
    /// Arranges for SIGINT, SIGTERM and SIGHUP to stop the lab and print the complete rounds. Must be called
    /// before any other thread starts.
    fn watch(format: OutputFormat, directory: &Path) -> anyhow::Result<Self> {
        let printer = Self { format, directory: directory.to_owned() };
        let printer_at_stop = printer.clone();
        stop::on_signal(move || {
            // The lab keeps running until the process exits. The guard keeps the lab from recording rounds
            // that would not be printed.
            let guard = experiment::lock_results();
            printer_at_stop.show();
            let directory = quoted(&printer_at_stop.directory.display().to_string());
            console::print_status(format_args!(
                "airtcp: stopped by a signal. With --output {directory} the same command continues. Complete rounds: {}",
                printer_at_stop.rounds()
            ));
            guard
        })?;
        Ok(printer)
    }

    fn complete(&self) -> Option<Report> {
        Report::read(&self.directory).ok().filter(|report| report.rounds > 0)
    }

    fn rounds(&self) -> u32 {
        self.complete().map_or(0, |report| report.rounds)
    }

    fn show(&self) {
        let text = self.complete().map(|report| self.format.render(&report));
        let _ = write!(console::stdout(), "{}", text.unwrap_or_default());
    }

    /// Returns the error for a full disk, with the way to continue.
    fn disk_full(&self) -> anyhow::Error {
        let directory = quoted(&self.directory.display().to_string());
        let rounds = self.rounds();
        failure::run(format!(
            "{}: the disk is full (No space left on device). Free some space, then run the same command with --output \
             {directory} to continue. Complete rounds: {rounds}",
            self.directory.display()
        ))
    }
}

fn print_progress(progress: &Progress<'_>) {
    let Progress { done, all, outcome, remaining, .. } = progress;
    let result = match &outcome.failure {
        None => format!("{} in {:.1} s", units::show_rate(outcome.kbit_per_s * 1e3), outcome.capture.seconds),
        Some(why) => format!("failed: {why}"),
    };
    let competitors = outcome.together.competitor_kbit_per_s.map(|competitors| {
        let share = outcome.together.share.map(|share| format!(", a share of {:.0} %", 100.0 * share));
        format!(", competitors {}{}", units::show_rate(competitors * 1e3), share.unwrap_or_default())
    });
    let result = result + &competitors.filter(|_| outcome.failure.is_none()).unwrap_or_default();
    let repetitions: String = outcome.repeated.iter().map(|why| format!(", repeated: {why}")).collect();
    let invalid = outcome.invalid.as_ref().map(|why| format!(", invalid: {why}")).unwrap_or_default();
    let remaining =
        if done == all { String::new() } else { format!(", about {} left", show_time(*remaining)) };
    console::print_status(format_args!(
        "[{done}/{all}] {} to {}, seed {}: {result}{repetitions}{invalid}{remaining}",
        outcome.sender, outcome.receiver, outcome.seed
    ));
}

pub(super) fn show_time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..90 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// Creates `parent/NNN-name` with the next free number. Labs that start at the same time get different
/// directories.
pub(super) fn create_numbered_directory(parent: &Path, name: &str) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
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
            Err(error) => {
                return Err(error).with_context(|| format!("cannot create {}", directory.display()));
            }
        }
    }
}
