//! `airtcp sweep`: executes many runs in virtual time, on all cores or on many machines.

mod page;
mod picture;
mod plot;
mod ranges;
mod run;
mod slurm;
mod status;
mod summary;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use airtcp_sim::file;
use airtcp_sim::sweep::labels::Labels;
use airtcp_sim::sweep::metric::{Metric, Unit};
use airtcp_sim::sweep::plan::{Plan, PlanError, Planned};
use airtcp_sim::sweep::results::{Damaged, Results, StoredRuns};
use airtcp_sim::sweep::store::StoreError;
use anyhow::Context;
use clap::{Args, Subcommand};
pub(crate) use page::page;
use serde_json::json;

use crate::shared::{console, failure};

/// Run all combinations of several axes in virtual time
///
/// The results are kept. A sweep that was stopped continues when it is started again.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sweep {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Plan(PlanCommand),
    Run(run::Run),
    Merge(Merge),
    Summary(summary::Summary),
    Plot(plot::Plot),
    Slurm(slurm::Slurm),
    Status(status::Status),
    /// List the named metrics
    #[command(after_help = "Example:\n  airtcp sweep metrics")]
    Metrics,
}

const EXAMPLES: &str = "\
Examples (the files are in docs/examples):
  airtcp sweep plan loss.toml                    list the runs
  airtcp sweep run loss.toml                     run them on all cores
  airtcp sweep status loss.toml                  show the progress
  airtcp sweep summary loss.results              means and 95 % intervals
  airtcp sweep merge loss.results -o loss.jsonl  one row per run
  airtcp sweep plot loss.results --x radio.down.channel.errors.bler \\
    --y goodput --by recipe -o loss.svg

In eight parts with GNU parallel, or on a cluster:
  parallel airtcp sweep run loss.toml --jobs 1 --shard {}/8 ::: $(seq 8)
  airtcp sweep slurm loss.toml --tasks 8 > loss.sh && sbatch loss.sh

docs/reference/sweep-files.md describes the format of a sweep file.";

/// List the runs of a sweep without executing them
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  airtcp sweep plan loss.toml | tail -n 1")]
struct PlanCommand {
    /// Sweep file
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Results directory, to mark runs that have a result [default: FILE.results]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Print JSON instead of text: one object per line
    #[arg(long)]
    json: bool,
}

/// Merge results into one file, which does not depend on how the runs were distributed
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  airtcp sweep merge here.results there.results --output all.jsonl")]
struct Merge {
    /// Results directories
    #[arg(value_name = "STORE", required = true)]
    stores: Vec<PathBuf>,
    /// File to write (one row per run, in the order of the plan); - is stdout
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Output comma-separated values (CSV) instead of JSON lines
    #[arg(long)]
    csv: bool,
    /// Write the file even if runs are missing
    #[arg(long)]
    partial: bool,
}

impl Sweep {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Plan(command) => command.run(),
            Command::Run(command) => command.run(),
            Command::Merge(command) => command.run(),
            Command::Summary(command) => command.run(),
            Command::Plot(command) => command.run(),
            Command::Slurm(command) => command.run(),
            Command::Status(command) => command.run(),
            Command::Metrics => {
                let mut out = console::stdout();
                for metric in Metric::known() {
                    let unit = match metric.unit() {
                        Unit::Number => "number",
                        unit => unit.symbol(),
                    };
                    writeln!(out, "{:<26} {unit:<6}  {}", metric.to_string(), metric.meaning())?;
                }
                Ok(())
            }
        }
    }
}

fn read(file: &Path) -> anyhow::Result<Plan> {
    Plan::read(file).map_err(|error| match error {
        PlanError::Read { .. } | PlanError::File(_) => failure::usage_of(error),
    })
}

/// Returns the default results directory of a sweep.
fn store_of(file: &Path) -> PathBuf {
    file.with_extension("results")
}

/// Returns the points of the sweep that a command line names, or none if it names no sweep.
pub(crate) fn points_in(line: &[String]) -> Vec<Labels> {
    let of = |source: &String| -> Option<Vec<Labels>> {
        let source = Path::new(source);
        let is_sweep =
            ["toml", "results", "jsonl"].iter().any(|end| source.extension() == Some(end.as_ref()));
        if !is_sweep {
            return None;
        }
        match Plan::read(&source.with_extension("toml")) {
            Ok(plan) => Some(plan.points.into_iter().map(|point| point.labels).collect()),
            Err(_) => {
                let results = Results::read(&[source.to_owned()]).ok()?;
                Some(results.rows().flatten().map(|row| row.point).collect())
            }
        }
    };
    line.iter().find_map(of).unwrap_or_default()
}

/// Converts an error of a store. A store that is missing or is not the right one is a usage error.
fn store_failure(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::Read { .. }
        | StoreError::NoStore(_)
        | StoreError::Version { .. }
        | StoreError::Plan { .. }
        | StoreError::MergedPlan { .. }
        | StoreError::Numbered(_) => failure::usage_of(error),
        error => error.into(),
    }
}

/// Reads results, of which there must be at least one. Reports missing runs.
fn results_of(source: &Path) -> anyhow::Result<Results> {
    let source = match source.extension() {
        Some(extension) if extension == "toml" => store_of(source),
        _ => source.to_owned(),
    };
    let results = Results::read(std::slice::from_ref(&source)).map_err(store_failure)?;
    let missing = results.missing().count();
    if missing > 0 || results.manifest.is_none() {
        report_damaged(&results);
    }
    if results.is_empty() {
        return Err(failure::run(format!(
            "{} has no results yet: run `airtcp sweep run` first",
            source.display()
        )));
    }
    if missing > 0 {
        let all = missing + results.len();
        console::print_status(format_args!(
            "airtcp: {missing} of {all} runs have no result yet, and are not included"
        ));
    }
    Ok(results)
}

/// Maximum number of damaged rows to report one by one.
const MAX_REPORTED: usize = 3;

fn report_damaged(results: &Results) {
    let damaged = results.damaged();
    for Damaged { path, line } in damaged.iter().take(MAX_REPORTED) {
        console::print_status(format_args!(
            "airtcp: {}:{line}: ignored a damaged row; `airtcp sweep run` repeats its run",
            path.display()
        ));
    }
    if damaged.len() > MAX_REPORTED {
        console::print_status(format_args!(
            "airtcp: ignored {} more damaged rows",
            damaged.len() - MAX_REPORTED
        ));
    }
}

impl PlanCommand {
    fn run(self) -> anyhow::Result<()> {
        let plan = read(&self.file)?;
        plan.notices().iter().for_each(|notice| tracing::warn!("{notice}"));
        let directory = self.store.unwrap_or_else(|| store_of(&self.file));
        // If the store cannot be read, the runs are listed anyway.
        let known = StoredRuns::read(&directory, &plan).unwrap_or_else(|error| {
            console::print_status(format_args!("airtcp: {error}"));
            None
        });
        let is_done = |planned: &Planned<'_>| known.as_ref().is_some_and(|known| known.has(planned));
        let mut out = console::stdout();
        let mut done = 0;
        for planned in (0..plan.runs()).map(|index| plan.run(index)) {
            let (is_done, command) = (is_done(&planned), planned.command());
            done += usize::from(is_done);
            if self.json {
                let line = json!({
                    "run": planned.index, "seed": planned.seed, "point": planned.point.labels, "command": command,
                    "done": is_done,
                });
                writeln!(out, "{line}")?;
            } else {
                let mark = if is_done { "done" } else { "" };
                writeln!(out, "{:>6}  {mark:<4}  {command}", planned.index)?;
            }
        }
        if !self.json {
            let (points, seeds) = (plan.points.len(), plan.seeds.len());
            let runs = plan.runs();
            write!(out, "{runs} runs: {points} points, {seeds} seeds each; plan {}", plan.hash)?;
            match known {
                Some(_) => writeln!(out, "; {done} done, in {}", directory.display())?,
                None => writeln!(out)?,
            }
        }
        Ok(())
    }
}

impl Merge {
    fn run(self) -> anyhow::Result<()> {
        let results = Results::read(&self.stores).map_err(store_failure)?;
        if results.manifest.is_none() || results.missing().next().is_some() {
            report_damaged(&results);
        }
        let mut missing = results.missing();
        if let Some(first) = missing.next().filter(|_| !self.partial) {
            let (missing, runs) = (missing.count() + 1, results.len());
            return Err(failure::run(format!(
                "{missing} of {} runs are missing (first: {first}): run `airtcp sweep run`, or merge without them with --partial",
                missing + runs
            )));
        }
        drop(missing);
        let to_stdout = self.output.as_os_str() == "-";
        if to_stdout {
            return self.write(&results, &mut console::stdout());
        }
        // A device or a pipe is written to, not replaced.
        if std::fs::metadata(&self.output).is_ok_and(|output| !output.is_file()) {
            let write = || -> anyhow::Result<()> {
                let mut file = io::BufWriter::new(airfiles::create(&self.output)?);
                self.write(&results, &mut file)?;
                Ok(file.flush()?)
            };
            return write().with_context(|| format!("cannot write {}", self.output.display()));
        }
        // The old file remains until the new one is complete.
        file::write_atomically(&self.output, |file| self.write(&results, file))
            .with_context(|| format!("cannot write {}", self.output.display()))
    }

    fn write(&self, results: &Results, out: &mut impl Write) -> anyhow::Result<()> {
        if self.csv {
            return summary::rows_as_csv(results, out);
        }
        for line in results.lines() {
            out.write_all(&line?)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}
