//! `airtcp sim --seeds`: executes the run with several seeds, and prints statistics of its flows.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use airtcp::sender::shared;
use airtcp_numbers::statistics::{Mean, Median};
use airtcp_numbers::table::{Column, Table, wrapped_lines};
use airtcp_sim::run::{self, Report, Run};
use airtcp_sim::sweep::metric::Metric;
use airtcp_sim::sweep::summary::Values;
use anyhow::Context;
use rayon::prelude::*;
use serde_json::Value;

use super::origin::Origin;
use super::tables::{LISTED, recipe};
use crate::shared::console::{self, LiveLine};
use crate::shared::scale::{Scale, seeds_change_nothing};
use crate::shared::{failure, stop};

/// Metrics of the table, with the headings of their columns.
const COLUMNS: [(&str, &str); 4] =
    [("goodput", "goodput"), ("took", "time"), ("timeouts", "timeouts"), ("resent", "retransmissions")];

/// The reports of the finished runs, by seed.
type Reports = BTreeMap<u64, Report>;

/// The seeds, and the form of the output.
#[derive(Clone)]
pub(super) struct Seeds {
    pub(super) count: u64,
    /// The run with the first seed.
    pub(super) run: Run,
    pub(super) origin: Origin,
    pub(super) json: bool,
    pub(super) wide: bool,
    pub(super) quiet: bool,
}

impl Seeds {
    /// Executes the runs on all cores.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let (first, count) = (self.run.seed, self.count);
        let last = first.checked_add(count - 1);
        let last = last.ok_or_else(|| failure::usage("--seed and --seeds together are too large"))?;
        let line = LiveLine::new(!self.quiet);
        let finished = Arc::new(Mutex::new(Reports::new()));
        self.clone().stop_on_signal(line, Arc::clone(&finished))?;
        let seeds: Vec<u64> = (first..=last).collect();
        // Distribute the runs one at a time, because they differ in length.
        seeds.into_par_iter().with_max_len(1).try_for_each(|seed| {
            let report = run::run(&self.with(seed)).with_context(|| format!("the run with seed {seed}"))?;
            let mut finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
            finished.insert(seed, report);
            line.show(&format!("{} of {count} runs", finished.len()));
            anyhow::Ok(())
        })?;
        line.clear();
        self.print(&finished.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with(&self, seed: u64) -> Run {
        Run { seed, ..self.run.clone() }
    }

    /// Arranges for SIGINT, SIGTERM and SIGHUP to print the statistics of the finished runs. Must be called
    /// before any other thread starts.
    fn stop_on_signal(self, line: LiveLine, finished: Arc<Mutex<Reports>>) -> anyhow::Result<()> {
        stop::on_signal(move || {
            let held = finished.lock().unwrap_or_else(PoisonError::into_inner);
            line.clear();
            // If stdout cannot be written, the exit code still reports that the command was stopped.
            let _ = self.print(&held);
            let (done, all) = (held.len(), self.count);
            console::print_status(format_args!(
                "airtcp: stopped by a signal: {done} of {all} runs are complete"
            ));
            // The lock is never released, so that no thread shows its progress after this.
            std::mem::forget(held);
        })
    }

    fn print(&self, reports: &Reports) -> anyhow::Result<()> {
        let mut out = console::stdout();
        if self.json {
            for (seed, report) in reports {
                writeln!(out, "{}", super::json(&self.with(*seed), &self.origin, report))?;
            }
            return Ok(());
        }
        let width = console::width(self.wide);
        let (Some((first, _)), Some((last, _))) = (reports.first_key_value(), reports.last_key_value())
        else {
            return Ok(());
        };
        let about = format!(
            "{}, seeds {first} to {last}: means with 95 % confidence intervals, and medians\n",
            self.run.scenario.name
        );
        write!(out, "{}{}", wrapped_lines(&about, width), table(reports, width)?)?;
        Ok(())
    }
}

/// Formats a table with a row per flow, and one for all flows if there are several.
fn table(reports: &Reports, width: Option<usize>) -> anyhow::Result<String> {
    let Some(Report { flows, .. }) = reports.values().next() else { return Ok(String::new()) };
    let common = shared(flows.iter().map(|flow| flow.profile));
    let listed = flows.iter().take(LISTED).enumerate();
    let mut rows: Vec<(String, String, String)> = listed
        .map(|(index, flow)| {
            let number = index + 1;
            (number.to_string(), recipe(flow, common.is_some()), format!("@{number}"))
        })
        .collect();
    if flows.len() > 1 {
        rows.push(("all".to_owned(), String::new(), String::new()));
    }
    let json = reports.values().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    let mut headings = vec![Column::new("flow"), Column::new("recipe").left()];
    let mut cells: Vec<Vec<String>> =
        rows.iter().map(|(flow, recipe, _)| vec![flow.clone(), recipe.clone()]).collect();
    let mut all = Vec::new();
    for (name, group) in COLUMNS {
        let metrics = rows.iter().map(|(.., flow)| format!("{name}{flow}").parse::<Metric>());
        let metrics = metrics.collect::<Result<Vec<_>, _>>().map_err(anyhow::Error::msg)?;
        let values: Vec<Option<Values>> = metrics.iter().map(|metric| statistics(metric, &json)).collect();
        let Some(any) = metrics.first().filter(|_| values.iter().any(Option::is_some)) else { continue };
        let scale = Scale::of(any, values.iter().flatten());
        let comma = if scale.sign.is_empty() { "" } else { ", " };
        headings.push(Column::new(format!("mean{comma}{}", scale.sign)).of(group));
        headings.push(Column::new("median").of(group).optional(1));
        for (cells, values) in cells.iter_mut().zip(&values) {
            cells.extend([scale.mean(values.as_ref(), reports.len()), scale.median(values.as_ref())]);
        }
        all.extend(values.into_iter().flatten());
    }
    let mut table = Table::new(headings);
    for row in cells {
        table.push(row);
    }
    let mut text = common.map(|profile| format!("recipes with profile {profile}\n")).unwrap_or_default();
    text += &table.render(width);
    if flows.len() > LISTED {
        text += &format!("      … and {} more: --json has them all\n", flows.len() - LISTED);
    }
    text.extend(seeds_change_nothing(&all).map(|line| format!("{line}\n")));
    let incomplete = reports.values().filter(|report| !report.complete).count();
    if incomplete > 0 {
        text += &format!("in {incomplete} runs not every flow is complete\n");
    }
    Ok(text)
}

/// Returns the statistics of a metric over the runs that have it, or `None` if no run has it.
fn statistics(metric: &Metric, reports: &[Value]) -> Option<Values> {
    let numbers: Vec<f64> = reports.iter().filter_map(|report| metric.of(report)).collect();
    Some(Values { mean: Mean::of(&numbers)?, median: Median::of(&numbers)?, against: None })
}
