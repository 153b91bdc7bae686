//! `airtcp sweep slurm`: prints a script that runs the missing part of a sweep as an array of jobs.

mod array;
mod cost;
mod limit;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use airlink::reactor::Clock;
use airtcp_numbers::units;
use airtcp_sim::sweep::plan::{Plan, Shard};
use airtcp_sim::sweep::results::{Known, Results};
use airtcp_sim::sweep::setup::quoted;
use airtcp_sim::sweep::store::StoreError;
use airtcp_sim::sweep::{Manifest, progress};
use airwire::time::Duration;
use anyhow::Context;
use clap::Args;
use serde_json::json;

use self::array::Array;
use self::cost::Cost;
use self::limit::Limit;
use crate::shared::progress::in_words;
use crate::shared::{failure, say};

/// Print an sbatch script that runs the missing part of a sweep as an array of jobs
///
/// Executes a few of the runs first, to estimate the cost and to divide the sweep into jobs of some minutes. If jobs do not
/// finish, run the same command again for a script with the rest.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Slurm {
    /// Sweep file, in a directory that all machines share
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Results directory [default: FILE.results]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Maximum number of jobs [default: as many as take five minutes each]
    #[arg(long, value_name = "N")]
    tasks: Option<NonZeroUsize>,
    /// Cores per job
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    cpus: u16,
    /// Maximum number of jobs that run at the same time [default: no limit]
    #[arg(long, value_name = "N")]
    at_once: Option<NonZeroUsize>,
    /// Time limit per job in Slurm's format, such as 90 (minutes) or 1:30:00 [default: four times the estimate for the longest job, at least ten minutes]
    #[arg(long, value_name = "TIME")]
    time: Option<Limit>,
    /// Time that a run takes on one core, instead of executing some runs to measure it
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    each: Option<Duration>,
    /// MaxArraySize of the cluster (see `scontrol show config`)
    #[arg(long, value_name = "N", default_value = "1001", value_parser = clap::value_parser!(u32).range(2..))]
    max_array_size: u32,
    /// Path of the program on the machines [default: this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Print JSON instead of text: one object with the cost and the script
    #[arg(long)]
    json: bool,
    #[arg(from_global)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  airtcp sweep slurm loss.toml > loss.sh
  sbatch --wait loss.sh && airtcp sweep summary loss.results
  airtcp sweep slurm loss.toml --tasks 64 --cpus 4 --time 60 > loss.sh

Options on the command line of sbatch override those in the script:
  sbatch --partition=long --mem-per-cpu=1G loss.sh";

/// Intended duration of a job in seconds. A cluster takes seconds to start a job, and a job that fails should
/// not cost hours.
const JOB: f64 = 300.0;

impl Slurm {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let plan = super::read(&self.file)?;
        let store = self.store.clone().unwrap_or_else(|| super::store_of(&self.file));
        let most = self.max_array_size as usize - 1;
        if let Some(tasks) = self.tasks.filter(|tasks| tasks.get() > most) {
            return Err(failure::usage(format!(
                "--tasks {tasks} exceeds the limit of {most} jobs per array: choose fewer, or set the cluster's \
                 --max-array-size"
            )));
        }
        let missing = self.missing(&plan, &store)?;
        if missing.is_empty() {
            return Err(failure::run(format!(
                "all {} runs have results in {}: there is nothing to submit",
                plan.runs(),
                store.display()
            )));
        }
        let cost = match self.each {
            Some(each) => Cost::of_each(each),
            None => Cost::measured(&plan, &missing)?,
        };
        let cpus = usize::from(self.cpus);
        let seconds: f64 = missing.iter().map(|run| cost.seconds(&plan, *run)).sum();
        // A job with fewer runs than cores would leave some cores idle.
        let most = most.min(missing.len().div_ceil(cpus));
        let aim = self.time.map_or(JOB, |limit| limit.seconds().map_or(JOB, |limit| JOB.min(limit / 4.0)));
        let by_itself = (seconds / cpus as f64 / aim).ceil() as usize;
        let tasks = match self.tasks {
            Some(tasks) => tasks.get().min(missing.len()),
            None => by_itself.clamp(1, most),
        };
        let array = Array::choose(
            missing.iter().map(|run| (*run, cost.seconds(&plan, *run))),
            tasks,
            self.max_array_size as usize - 1,
        );
        let longest = missing.iter().map(|run| cost.seconds(&plan, *run)).fold(0.0, f64::max);
        let job = (array.fullest / cpus as f64).max(longest);
        let limit = self.time.or_else(|| self.each.is_none().then(|| Limit::for_job(job)));
        let script = self.script(&plan, &store, &missing, &cost, &array, limit)?;
        let octets = cost.octets.map(|octets| octets * missing.len() as u64);
        if self.json {
            let line = json!({
                "runs": plan.runs(), "missing": missing.len(), "measured": cost.measured, "core_hours": seconds / 3600.0,
                "bytes": octets, "memory": cost.memory, "tasks": array.tasks(), "array": array.to_string(),
                "shards": array.of, "longest_s": job, "script": script,
            });
            writeln!(say::out(), "{line}")?;
        } else {
            say::out().write_all(script.as_bytes())?;
        }
        if !self.quiet {
            self.tell(&plan, &missing, &cost, seconds, octets);
            say::aside(format_args!(
                "{} of {} {}, the longest about {}",
                many(array.tasks(), "job"),
                self.cpus,
                if self.cpus == 1 { "core" } else { "cores" },
                in_words(Duration::from_secs_f64(job))
            ));
            if let Some(limit) = limit.and_then(Limit::seconds).filter(|limit| *limit < job) {
                say::aside(format_args!(
                    "airtcp: the longest job takes more than the limit of {}: use more --tasks, or a longer --time",
                    in_words(Duration::from_secs_f64(limit))
                ));
            }
        }
        Ok(())
    }

    /// Returns the runs without a result. Warns if other jobs may be executing them.
    fn missing(&self, plan: &Plan, store: &Path) -> anyhow::Result<Vec<usize>> {
        if Manifest::read(store).map_err(super::told)?.is_none() {
            // Every job would refuse this directory.
            let is_foreign = std::fs::read_dir(store).is_ok_and(|mut entries| entries.next().is_some());
            return match is_foreign {
                true => Err(super::told(StoreError::NoStore(store.to_owned()))),
                false => Ok((0..plan.runs()).collect()),
            };
        }
        let results = Results::read(&[store.to_owned()]).map_err(super::told)?;
        super::tell_damaged(&results);
        let missing = Known::of(&results, plan).missing(plan);
        let now = Clock::start().wall_zero();
        let parts = progress::read(store, &results).map_err(super::told)?;
        let is_filling = |(shard, written): (&Shard, &progress::Written)| {
            written.is_going_on(now) && missing.iter().any(|run| shard.has(*run))
        };
        if !self.quiet && parts.iter().any(is_filling) {
            say::aside(format_args!(
                "airtcp: other jobs may be filling {} right now: this script would repeat their runs",
                store.display()
            ));
        }
        Ok(missing)
    }

    /// Prints the estimated cost.
    fn tell(&self, plan: &Plan, missing: &[usize], cost: &Cost, seconds: f64, octets: Option<u64>) {
        let of = if missing.len() == plan.runs() { String::new() } else { format!(" of {}", plan.runs()) };
        let known = match cost.measured {
            0 => String::new(),
            runs => format!(", estimated from {}", many(runs, "run")),
        };
        let disk =
            octets.map(|octets| format!(", {} on disk", units::show_bytes(octets))).unwrap_or_default();
        let memory = cost.memory.map(|memory| format!(", {} of memory per core", units::show_bytes(memory)));
        say::aside(format_args!(
            "{}{of}: {} core hours{disk}{}{known}",
            many(missing.len(), "run"),
            hours(seconds),
            memory.unwrap_or_default()
        ));
    }

    fn script(
        &self,
        plan: &Plan,
        store: &Path,
        missing: &[usize],
        cost: &Cost,
        array: &Array,
        limit: Option<Limit>,
    ) -> anyhow::Result<String> {
        let absolute = |path: &Path| {
            let path =
                std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))?;
            let text = path.to_str().filter(|text| !text.contains('\n'));
            text.map(quoted)
                .ok_or_else(|| failure::usage(format!("{} cannot be used in a script", path.display())))
        };
        let program = match &self.program {
            Some(program) => program.clone(),
            None => std::env::current_exe().context("cannot find the path of this program")?,
        };
        let name = self.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' })
            .collect();
        let at_once = self.at_once.map(|jobs| format!("%{jobs}")).unwrap_or_default();
        let limit = limit.map(|limit| format!("#SBATCH --time={limit}\n")).unwrap_or_default();
        // Twice the measured memory, because other runs may need more, and Slurm kills a job that exceeds its
        // limit.
        let memory = cost.memory.map(|memory| (2 * memory).div_ceil(MEBI).next_multiple_of(64).max(256));
        let memory = memory.map(|memory| format!("#SBATCH --mem-per-cpu={memory}M\n")).unwrap_or_default();
        // A bare name is searched for in the PATH of each machine.
        let program = if program.components().count() == 1 {
            quoted(&program.to_string_lossy())
        } else {
            absolute(&program)?
        };
        let (file, store) = (absolute(&self.file)?, absolute(store)?);
        Ok(format!(
            "#!/bin/sh\n\
             # {missing} of plan {hash} in {tasks}.\n\
             #SBATCH --job-name={name}\n\
             #SBATCH --array={array}{at_once}\n\
             #SBATCH --ntasks=1\n\
             #SBATCH --cpus-per-task={cpus}\n\
             {memory}\
             {limit}\
             #SBATCH --requeue\n\
             #SBATCH --open-mode=append\n\
             #SBATCH --output={name}-%A-%a.log\n\
             exec {program} sweep run {file} --store {store} --jobs {cpus} --shard \"$SLURM_ARRAY_TASK_ID\"/{of}\n",
            missing = many(missing.len(), "run"),
            hash = plan.hash,
            tasks = many(array.tasks(), "job"),
            cpus = self.cpus,
            of = array.of,
        ))
    }
}

/// Slurm's unit M in bytes.
const MEBI: u64 = 1 << 20;

fn many(count: usize, of: &str) -> String {
    format!("{count} {of}{}", if count == 1 { "" } else { "s" })
}

/// Formats hours with two digits, or all digits from ten hours on.
fn hours(seconds: f64) -> String {
    match seconds / 3600.0 {
        hours if hours < 0.01 => "less than 0.01".to_owned(),
        hours if hours < 1.0 => format!("{hours:.2}"),
        hours if hours < 10.0 => format!("{hours:.1}"),
        hours => format!("{hours:.0}"),
    }
}
