//! `airtcp sweep status`: shows the progress of a sweep that other processes run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use airlink::reactor::Clock;
use airtcp_sim::sweep::plan::{Plan, Shard};
use airtcp_sim::sweep::progress::{self, ShardProgress};
use airtcp_sim::sweep::results::{Results, StoredRuns};
use airtcp_sim::sweep::{Manifest, store::StoreError};
use airwire::time::Duration;
use clap::Args;
use serde_json::{Value, json};

use super::ranges::{Ranges, ranges};
use crate::shared::console;
use crate::shared::progress::format_duration;

/// Show the progress of a sweep: completed runs, rate, missing runs
///
/// Only reads the results directory, so it works on any machine, at any time.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Status {
    /// Sweep files or results directories
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Also list the parts in which the sweep was run
    #[arg(long)]
    parts: bool,
    /// Print JSON instead of text: one object per line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  airtcp sweep status loss.toml
  watch airtcp sweep status --parts loss.results";

/// Maximum number of ranges of missing runs to print.
const MAX_REPORTED: usize = 8;

impl Status {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut out = console::stdout();
        for file in &self.files {
            let state = State::read(file, Clock::start().wall_zero())?;
            if self.json {
                writeln!(out, "{}", state.json())?;
            } else {
                state.write(&mut out, self.parts)?;
            }
        }
        Ok(())
    }
}

/// The state of a sweep at one moment.
struct State {
    store: PathBuf,
    runs: usize,
    missing: Vec<usize>,
    /// Size of the rows on disk in bytes.
    bytes: u64,
    parts: Vec<Part>,
}

struct Part {
    shard: Shard,
    runs: usize,
    done: usize,
    /// Time since its last row.
    since: Duration,
    state: PartState,
}

#[derive(Clone, Copy, PartialEq)]
enum PartState {
    /// The rate is `None` if there are too few rows to measure it.
    Fill {
        runs_per_s: Option<f64>,
    },
    /// No row was written for a while, and runs are missing.
    Stopped,
    Done,
}

impl State {
    fn read(file: &Path, now: SystemTime) -> anyhow::Result<Self> {
        let plan = match file.extension() {
            Some(extension) if extension == "toml" => Some(super::read(file)?),
            _ => None,
        };
        let store = if plan.is_some() { super::store_of(file) } else { file.to_owned() };
        let nothing = |plan: &Plan| Self {
            store: store.clone(),
            runs: plan.runs(),
            missing: (0..plan.runs()).collect(),
            bytes: 0,
            parts: Vec::new(),
        };
        match (Manifest::read(&store).map_err(super::store_failure)?, &plan) {
            (None, Some(plan)) => return Ok(nothing(plan)),
            (None, None) => return Err(super::store_failure(StoreError::NoStore(store))),
            (Some(_), _) => {}
        }
        let results = Results::read(std::slice::from_ref(&store)).map_err(super::store_failure)?;
        // The sweep file may have changed since it was run.
        let missing = match &plan {
            Some(plan) => StoredRuns::of(&results, plan).missing(plan),
            None => results.missing().collect(),
        };
        let runs = plan.map_or(missing.len() + results.len(), |plan| plan.runs());
        if !missing.is_empty() {
            super::report_damaged(&results);
        }
        let written = progress::read(&store, &results).map_err(super::store_failure)?;
        let part =
            |(shard, written): (&Shard, &ShardProgress)| Part::of(*shard, written, runs, &missing, now);
        let parts = written.iter().map(part).collect();
        Ok(Self { store, runs, bytes: results.octets(), missing, parts })
    }

    fn filling(&self) -> impl Iterator<Item = Option<f64>> {
        self.parts.iter().filter_map(|part| match part.state {
            PartState::Fill { runs_per_s } => Some(runs_per_s),
            PartState::Stopped | PartState::Done => None,
        })
    }

    /// Returns the rate of all running parts together. Parts without a measured rate count as the mean of the
    /// measured ones.
    fn runs_per_s(&self) -> Option<f64> {
        let known: Vec<f64> = self.filling().flatten().collect();
        let all = self.filling().count() as f64;
        (!known.is_empty()).then(|| known.iter().sum::<f64>() * all / known.len() as f64)
    }

    fn remaining(&self) -> Option<Duration> {
        let seconds = self.missing.len() as f64 / self.runs_per_s()?;
        Some(Duration::from_secs_f64(seconds))
    }

    fn json(&self) -> Value {
        let part = |part: &Part| {
            let state = match part.state {
                PartState::Fill { .. } => "filling",
                PartState::Stopped => "stopped",
                PartState::Done => "done",
            };
            json!({
                "part": part.shard.to_string(), "runs": part.runs, "done": part.done, "state": state,
                "since_s": part.since.as_secs_f64(),
            })
        };
        json!({
            "store": self.store.display().to_string(), "runs": self.runs, "done": self.runs - self.missing.len(),
            "missing": ranges(self.missing.iter().copied()), "bytes": self.bytes, "filling": self.filling().count(),
            "runs_per_s": self.runs_per_s(), "left_s": self.remaining().map(Duration::as_secs_f64),
            "parts": self.parts.iter().map(part).collect::<Vec<_>>(),
        })
    }

    fn write(&self, out: &mut impl Write, parts: bool) -> anyhow::Result<()> {
        let (runs, missing) = (self.runs, self.missing.len());
        let done = runs - missing;
        let share = 100 * done / runs.max(1);
        writeln!(out, "{}: {done} of {runs} runs have results, {share} %", self.store.display())?;
        let filling = self.filling().count();
        if missing > 0 {
            match (filling, self.runs_per_s(), self.remaining()) {
                (0, ..) => writeln!(out, "not running")?,
                (_, Some(rate), Some(remaining)) => {
                    writeln!(
                        out,
                        "running parts: {filling}, {rate:.3} runs/s, {} left",
                        format_duration(remaining)
                    )?;
                }
                _ => writeln!(out, "running parts: {filling}")?,
            }
            let missing = ranges(self.missing.iter().copied());
            let reported = &missing[..missing.len().min(MAX_REPORTED)];
            let more = missing[reported.len()..].iter().map(|(first, last)| last - first + 1).sum::<usize>();
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            writeln!(out, "missing runs: {}{more}", Ranges(reported))?;
        }
        if parts && !self.parts.is_empty() {
            writeln!(out, "{:>12}  {:>15}  last result", "part", "done")?;
        }
        for part in self.parts.iter().filter(|_| parts) {
            let state = match part.state {
                PartState::Fill { .. } => "",
                PartState::Stopped => ", stopped",
                PartState::Done => ", done",
            };
            let done = format!("{} of {}", part.done, part.runs);
            writeln!(
                out,
                "{:>12}  {done:>15}  {} ago{state}",
                part.shard.to_string(),
                format_duration(part.since)
            )?;
        }
        Ok(())
    }
}

impl Part {
    fn of(shard: Shard, written: &ShardProgress, runs: usize, missing: &[usize], now: SystemTime) -> Self {
        let missing = missing.iter().filter(|run| shard.has(**run)).count();
        let runs = (0..runs).filter(|run| shard.has(*run)).count();
        let state = match missing {
            0 => PartState::Done,
            _ if !written.is_active(now) => PartState::Stopped,
            _ => {
                PartState::Fill { runs_per_s: written.row_interval().map(|pause| 1.0 / pause.as_secs_f64()) }
            }
        };
        let since = now.duration_since(written.last).unwrap_or_default();
        Self { shard, runs, done: runs - missing, since: Duration::from_secs_f64(since.as_secs_f64()), state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(number: usize, written: (usize, u64, u64), missing: &[usize]) -> Part {
        let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let (runs, first, last) = written;
        let written = ShardProgress { runs, first: Some(at(first)), last: at(last) };
        Part::of(Shard { of: 4, number }, &written, 42, missing, at(1000))
    }

    /// Returns a sweep with four parts and 42 runs: one part is done, one has stopped, and two are running.
    /// One of these has a single row.
    fn state() -> State {
        let missing: Vec<usize> = (4..42).filter(|run| run % 4 != 0).collect();
        let parts = vec![
            part(1, (11, 900, 950), &missing),
            part(2, (1, 900, 901), &missing),
            part(3, (1, 990, 990), &missing),
            part(4, (5, 992, 1000), &missing),
        ];
        State { store: "s.results".into(), runs: 42, missing, bytes: 77, parts }
    }

    #[test]
    fn rate_counts_only_running_parts() {
        let state = state();
        let rates: Vec<_> = state.filling().collect();
        assert_eq!(rates, [None, Some(0.5)]);
        assert_eq!(state.runs_per_s(), Some(1.0));
        assert_eq!(state.remaining(), Some(Duration::from_secs(state.missing.len() as u64)));
        let done: Vec<_> = state.parts.iter().map(|part| (part.done, part.runs)).collect();
        assert_eq!(done, [(11, 11), (1, 11), (1, 10), (1, 10)]);
    }

    #[test]
    fn status_is_written_as_text_and_json() {
        let state = state();
        let mut text = Vec::new();
        state.write(&mut text, true).unwrap();
        let text = String::from_utf8(text).unwrap();
        let expected = "s.results: 14 of 42 runs have results, 33 %\n\
                        running parts: 2, 1.000 runs/s, 28 s left\n\
                        missing runs: 5-7,9-11,13-15,17-19,21-23,25-27,29-31,33-35 and 4 more\n        \
                                part             done  last result\n         \
                                 1/4         11 of 11  50 s ago, done\n         \
                                 2/4          1 of 11  1 min 39 s ago, stopped\n         \
                                 3/4          1 of 10  10 s ago\n         \
                                 4/4          1 of 10  0 s ago\n";
        assert_eq!(text, expected);
        let json = state.json();
        assert_eq!(json["missing"][1], json!([9, 11]));
        assert_eq!(json["parts"][1]["state"], "stopped");
        assert_eq!((&json["left_s"], &json["done"]), (&json!(28.0), &json!(14)));
    }
}
