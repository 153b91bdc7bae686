//! `airtcp sweep run`: executes all runs that have no result yet.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use airhelp::options::number;
use airlink::reactor::Clock;
use airtcp_sim::sweep::plan::Shard;
use airtcp_sim::sweep::store::{Store, Writer};
use airwire::time::{Duration, Instant};
use anyhow::Context;
use clap::Args;
use rayon::prelude::*;

use crate::shared::progress::{ProgressDisplay, format_duration};
use crate::shared::{console, failure, stop};

/// Run everything that has no result yet, on all cores
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Run {
    /// Sweep file
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Results directory [default: FILE.results]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Number of parallel jobs (runs) [default: one per core]
    #[arg(long, value_name = "N", value_parser = number::<u16>(1..=65_535))]
    jobs: Option<u16>,
    /// Only the I-th of N parts
    #[arg(long, value_name = "I/N", default_value = "1/1", hide_default_value = true)]
    shard: String,
    #[arg(from_global)]
    quiet: bool,
}

const EXAMPLES: &str = "\
If the command is stopped, its results are kept, and the same command
continues. Several processes can fill one results directory at the same time.
After a change of the sweep file (more seeds, other values, another axis), the
same command adds the missing runs.

Examples:
  airtcp sweep run loss.toml
  parallel airtcp sweep run loss.toml --jobs 1 --shard {}/8 ::: $(seq 8)";

impl Run {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let shard: Shard = self.shard.parse().map_err(|error| failure::usage(format!("--shard: {error}")))?;
        let plan = super::read(&self.file)?;
        let directory = self.store.unwrap_or_else(|| super::store_of(&self.file));
        let store = Store::open(&directory, &plan).map_err(super::store_failure)?;
        let results = store.results().map_err(super::store_failure)?;
        let mine: Vec<usize> = (0..plan.runs()).filter(|run| shard.has(*run)).collect();
        let missing: Vec<usize> = mine.iter().copied().filter(|run| !results.has(*run)).collect();
        if !missing.is_empty() {
            super::report_damaged(&results);
            plan.notices().iter().for_each(|notice| tracing::warn!("{notice}"));
        }
        if let Some(change) = store.change().filter(|_| !self.quiet) {
            console::print_status(format_args!("{} has changed: {change}", self.file.display()));
        }
        let others = results.unplanned();
        drop(results);
        let progress = Progress::new(mine.len() - missing.len(), mine.len(), others, self.quiet);
        let state = Arc::new(Mutex::new((store.writer(shard), progress)));
        stop_on_signal(Arc::clone(&state))?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.jobs.map_or(0, usize::from))
            .build()
            .context("cannot start threads")?;
        let done = pool.install(|| {
            // Distribute the runs one at a time, because they differ in length.
            missing.into_par_iter().with_max_len(1).try_for_each(|index| {
                let planned = plan.run(index);
                let report =
                    planned.execute().with_context(|| format!("run {index} ({})", planned.command()))?;
                // A thread that panicked while it held the lock has printed the reason.
                let mut state = state.lock().map_err(|_| failure::run("another run has failed"))?;
                let (writer, progress): &mut (Writer, Progress) = &mut state;
                writer.append(&planned, &report)?;
                progress.advance();
                anyhow::Ok(())
            })
        });
        let state = state.lock().map_err(|_| failure::run("a run has failed"))?;
        let (writer, progress) = &*state;
        done.and_then(|()| Ok(writer.sync()?)).with_context(|| progress.describe_results())?;
        progress.finish(&directory);
        Ok(())
    }
}

/// Arranges for SIGINT, SIGTERM and SIGHUP to stop the runs and report the number of results. Must be called
/// before any other thread starts.
fn stop_on_signal(state: Arc<Mutex<(Writer, Progress)>>) -> anyhow::Result<()> {
    stop::on_signal(move || {
        let held = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (writer, progress) = &*held;
        progress.display.clear();
        let synced = writer.sync().err().map(|error| format!("; {error}")).unwrap_or_default();
        console::print_status(format_args!(
            "airtcp: stopped by a signal: {}{synced}",
            progress.describe_results()
        ));
        // The lock is never released, so that no thread is writing a row when the process exits.
        std::mem::forget(held);
    })
}

/// The progress, with an estimate of the remaining time.
struct Progress {
    done: usize,
    all: usize,
    /// Runs that had a result before this process started. They do not count for its speed.
    before: usize,
    begin: Instant,
    shown: Instant,
    clock: Clock,
    display: ProgressDisplay,
}

impl Progress {
    /// Starts the progress display. `others` is the number of results that the sweep does not include.
    fn new(before: usize, all: usize, others: usize, quiet: bool) -> Self {
        let display = ProgressDisplay::new(quiet);
        let clock = Clock::start();
        let begin = clock.now();
        let progress = Self { done: before, all, before, begin, shown: begin, clock, display };
        if !quiet && before + others > 0 {
            console::print_status(format_args!("{before} of {all} runs have results already"));
        }
        if !quiet && others > 0 {
            console::print_status(format_args!(
                "{others} other results are not part of the sweep now; they stay in the results directory and are ignored"
            ));
        }
        progress
    }

    fn advance(&mut self) {
        self.done += 1;
        let now = self.clock.now();
        if self.display.interval().is_none_or(|every| now.saturating_since(self.shown) < every) {
            return;
        }
        self.shown = now;
        let each = now.saturating_since(self.begin).as_secs_f64() / (self.done - self.before) as f64;
        let remaining = each * (self.all - self.done) as f64;
        let text = format!(
            "{}/{} runs, {} left",
            self.done,
            self.all,
            format_duration(Duration::from_secs_f64(remaining))
        );
        self.display.show(&text);
    }

    /// Describes the results of a sweep that has not been completed.
    fn describe_results(&self) -> String {
        let Self { done, all, .. } = self;
        format!("{done} of {all} results are kept; run the same command again for the others")
    }

    fn finish(&self, store: &std::path::Path) {
        self.display.clear();
        if self.display.interval().is_some() {
            let took = self.clock.now().saturating_since(self.begin);
            let new = self.done - self.before;
            console::print_status(format_args!(
                "{new} runs in {}: {} of {} are in {}",
                format_duration(took),
                self.done,
                self.all,
                store.display()
            ));
        }
    }
}
