//! `airtcp lab matrix`: tests every combination of receiver, recipe and kind of path.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airfiles::{PathSource, limits};
use airhelp::options::number;
use airtcp::ProfileName;
use airtcp_lab::LabError;
use airtcp_lab::experiment;
use airtcp_lab::matrix::{
    self, Cell, CellVerdict, KINDS, KnownFailures, Progress, RECIPES, Report, RequestedReceiver, STACKS,
    quick,
};
use airtcp_lab::receiver::{KERNEL_PROFILES, Receiver};
use airtcp_lab::sender::{self, Sender, TypedSender};
use airtcp_lab::testbed::Tools;
use airtcp_numbers::units;
use airtcp_sim::sweep::setup::quoted;
use clap::Args;

use super::run::show_time;
use super::{Stacks, failed};
use crate::shared::senders::ProfileParser;
use crate::shared::{console, failure, stop};

/// Test every combination of receiver, recipe and kind of path, and verify the data (SHA-256)
///
/// Receivers that are not built are skipped and reported. interop/expected.toml lists the known failures with their reasons.
/// If a known failure passes, that is reported like a failure. With --output, a matrix that was stopped continues.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Matrix {
    /// Receiver (repeatable; see `airtcp lab receivers`) [default: this kernel's profiles and all stacks]
    #[arg(long, value_name = "RECEIVER")]
    receiver: Vec<String>,
    /// Recipe, optionally with a profile: newreno@linux, or a kernel sender such as linux:cubic (repeatable) [default: the base recipes and each paper's]
    #[arg(long, value_name = "RECIPE[@PROFILE]")]
    recipe: Vec<TypedSender>,
    /// TCP stack to imitate in everything the recipe does not set [default: `linux` if there is a kernel sender, otherwise `default`]
    #[arg(long, value_name = "PROFILE", value_parser = ProfileParser, hide_possible_values = true)]
    profile: Option<ProfileName>,
    /// Only these kinds of path (repeatable) [default: all]
    #[arg(long = "kind", alias = "scenario", value_name = "KIND", value_parser = KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>())]
    scenario: Vec<String>,
    /// Run the quick selection for every change; a missing receiver is an error
    #[arg(long, conflicts_with_all = ["receiver", "recipe"])]
    quick: bool,
    /// Bytes to send (each transfer)
    #[arg(long, value_name = "SIZE", default_value = "200k", value_parser = units::bytes)]
    bytes: u64,
    /// Seed of all random numbers (the same on every path)
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Number of parallel jobs (transfers), each on its own path
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = number::<u16>(1..=65_535))]
    jobs: u16,
    /// Time limit per transfer; a transfer that takes longer has failed
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = units::duration)]
    limit: airwire::time::Duration,
    /// File with the known failures [default: interop/expected.toml as of the build of this program]
    #[arg(long, value_name = "FILE")]
    expected: Option<PathBuf>,
    #[command(flatten)]
    stacks: Stacks,
    /// Output directory for matrix.json and failed transfers: empty, or with a part of this matrix, which is then completed [default: the next free lab/NNN-matrix]
    #[arg(long, short, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Print JSON instead of text: one object
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[arg(from_global)]
    quiet: bool,
}

const EXPECTED: &str = include_str!("expected.toml");

const EXAMPLES: &str = "\
Examples (as root, or as an ordinary user who can open /dev/net/tun):
  The quick selection:
    airtcp lab matrix --quick
  Two recipes to this kernel over paths with loss:
    airtcp lab matrix --kind loss --kind burst --receiver linux \\
      --recipe sack --recipe newreno";

impl Matrix {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let expected = match &self.expected {
            None => KnownFailures::parse(EXPECTED, "interop/expected.toml"),
            Some(path) => {
                let text = airfiles::read_text(path, PathSource::User, limits::WRITTEN_BY_HAND)
                    .map_err(|error| failure::cannot_read(path, error))?;
                KnownFailures::parse(&text, &path.display().to_string())
            }
        }
        .map_err(failed)?;
        let senders = self.senders()?;
        super::check_real_time(&senders)?;
        let tools = Tools::find().map_err(failed)?;
        let directory = super::output_directory(self.output.as_ref(), "matrix")?;
        let plan = matrix::Matrix {
            receivers: self.receivers()?,
            senders,
            kinds: KINDS
                .iter()
                .filter(|kind| self.scenario.is_empty() || self.scenario.iter().any(|name| name == kind.name))
                .collect(),
            bytes: self.bytes,
            seed: self.seed,
            limit: Duration::from_nanos(self.limit.as_nanos()),
            jobs: usize::from(self.jobs),
            directory: std::path::absolute(&directory)?,
            expected,
            command: super::command_line(),
        };
        for RequestedReceiver { name, found } in &plan.receivers {
            if let Err(why) = found {
                console::print_status(format_args!("skipped: {name}: {why}"));
            }
        }
        let printer = ResultPrinter::watch(self.json, &directory)?;
        let report = matrix::run(&tools, &plan, |progress| {
            if !self.quiet {
                print_progress(progress);
            }
        })
        .map_err(|error| printer.error_after(error))?;
        printer.show(&report);
        let wrong: Vec<_> = report.cells.iter().filter(|cell| cell.verdict.is_wrong()).collect();
        if !self.json {
            writeln!(
                console::stdout(),
                "\nresults in {}: matrix.json, and the failed transfers",
                directory.display()
            )?;
            if wrong.is_empty() {
                writeln!(console::stdout(), "{}", passed(&report.cells))?;
            }
        }
        match wrong.len() {
            0 => Ok(()),
            wrong => {
                Err(failure::run(format!("{wrong} of {} transfers are not as expected", report.cells.len())))
            }
        }
    }

    fn receivers(&self) -> anyhow::Result<Vec<RequestedReceiver>> {
        let kernels = KERNEL_PROFILES.iter().map(|profile| profile.name);
        let names: Vec<String> = match (self.quick, self.receiver.is_empty()) {
            (true, _) => quick::RECEIVERS.iter().map(|&name| name.to_owned()).collect(),
            (false, false) => self.receiver.clone(),
            (false, true) => kernels.chain(STACKS.iter().copied()).map(str::to_owned).collect(),
        };
        let requested = names.into_iter().map(|name| {
            let found = Receiver::find(&name, &self.stacks.directory());
            match found {
                Err(error) if self.quick => Err(failed(error)),
                found => Ok(RequestedReceiver { name, found: found.map_err(|error| error.to_string()) }),
            }
        });
        requested.collect()
    }

    fn senders(&self) -> anyhow::Result<Vec<Sender>> {
        let names = if self.quick { quick::RECIPES } else { RECIPES };
        let default = || names.iter().map(|name| name.parse()).collect::<Result<Vec<TypedSender>, _>>();
        let typed = if self.recipe.is_empty() { default() } else { Ok(self.recipe.clone()) };
        typed.and_then(|typed| sender::resolve(&typed, self.profile)).map_err(failure::usage)
    }
}

/// Prints the known results of a running matrix when it ends or is stopped. The results are in `matrix.json`.
#[derive(Clone)]
struct ResultPrinter {
    json: bool,
    directory: PathBuf,
}

impl ResultPrinter {
    /// Arranges for SIGINT, SIGTERM and SIGHUP to stop the matrix and print the known results. Must be called
    /// before any other thread starts.
    fn watch(json: bool, directory: &Path) -> anyhow::Result<Self> {
        let printer = Self { json, directory: directory.to_owned() };
        let printer_at_stop = printer.clone();
        stop::on_signal(move || {
            // The matrix keeps running until the process exits. The guard keeps the matrix from recording
            // results that would not be printed.
            let guard = experiment::lock_results();
            let known = printer_at_stop.show_known();
            let directory = quoted(&printer_at_stop.directory.display().to_string());
            console::print_status(format_args!(
                "airtcp: stopped by a signal. With --output {directory} the same command continues. Known results: {known}"
            ));
            guard
        })?;
        Ok(printer)
    }

    fn show(&self, report: &Report) {
        let text = if self.json {
            serde_json::to_string(report).map(|text| text + "\n").unwrap_or_default()
        } else {
            let wrong = report.cells.iter().filter(|cell| cell.verdict.is_wrong());
            report.tables(console::width(false))
                + &wrong.map(|cell| explained(cell) + "\n").collect::<String>()
        };
        let _ = write!(console::stdout(), "{text}");
    }

    /// Prints the known results and returns their number as text.
    fn show_known(&self) -> String {
        match Report::read(&self.directory) {
            Ok(Some(report)) if !report.cells.is_empty() => {
                self.show(&report);
                format!("{} of {}", report.cells.len(), report.asked)
            }
            _ => "none".to_owned(),
        }
    }

    fn error_after(&self, error: LabError) -> anyhow::Error {
        match error {
            // The directory holds another matrix, whose results must not be shown.
            LabError::Taken { .. } => failed(error),
            LabError::Full { .. } => {
                let known = self.show_known();
                let directory = quoted(&self.directory.display().to_string());
                failure::run(format!(
                    "{}: the disk is full (No space left on device). Free some space, then run the same command with \
                     --output {directory} to continue. Known results: {known}",
                    self.directory.display()
                ))
            }
            error => {
                self.show_known();
                failed(error)
            }
        }
    }
}

fn print_progress(progress: &Progress<'_>) {
    let Progress { done, all, cell, remaining } = progress;
    if matches!(cell.verdict, CellVerdict::Skipped(_)) {
        return;
    }
    let remaining =
        if done == all { String::new() } else { format!(", about {} left", show_time(*remaining)) };
    console::print_status(format_args!("[{done}/{all}] {}{remaining}", explained(cell)));
}

/// Counts the transfers that passed, among those that could be run.
fn passed(cells: &[Cell]) -> String {
    let count = |is: fn(&CellVerdict) -> bool| cells.iter().filter(|cell| is(&cell.verdict)).count();
    let skipped = count(|verdict| matches!(verdict, CellVerdict::Skipped(_)));
    let failed = count(|verdict| matches!(verdict, CellVerdict::FailedAsExpected(_)));
    let complete = cells.len() - skipped;
    let mut text = format!("passed {} of {complete}", complete - failed);
    for (count, label) in [(failed, "failed as expected"), (skipped, "skipped")] {
        if count > 0 {
            text += &format!(", {count} {label}");
        }
    }
    text
}

fn explained(cell: &Cell) -> String {
    let Cell { receiver, recipe, scenario, verdict, .. } = cell;
    let verdict = match verdict {
        CellVerdict::Passed => "passed".to_owned(),
        CellVerdict::Failed(why) => format!("failed: {why}"),
        CellVerdict::FailedAsExpected(reason) => format!("failed as expected: {reason}"),
        CellVerdict::PassedUnexpectedly(reason) => {
            format!("passed, although it is a known failure in interop/expected.toml: {reason}")
        }
        CellVerdict::Skipped(why) => format!("skipped: {why}"),
    };
    format!("{scenario}, {receiver}, {recipe}: {verdict}")
}
