//! `airtcp sweep summary`: means of the runs of each point.

use std::io::{self, Write};
use std::path::PathBuf;

use airtcp::sender::shared;
use airtcp_numbers::statistics::Mean;
use airtcp_sim::sweep::against::{Base, against};
use airtcp_sim::sweep::metric::Metric;
use airtcp_sim::sweep::store::Results;
use airtcp_sim::sweep::summary::{Line, rows, summarise};
use clap::Args;

use crate::shared::failure;

/// Print means and 95 % intervals (Student's t) of the runs of each point.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Summary {
    /// A directory of results, or a file that was merged from some
    #[arg(value_name = "STORE|FILE")]
    source: PathBuf,
    /// What to show, see `airtcp sweep metrics` [default: what the sweep's file says]
    #[arg(long, value_name = "METRIC,…", value_delimiter = ',')]
    metric: Vec<Metric>,
    /// Differences to the points with this value, seed by seed, e.g. recipe=newreno
    #[arg(long, value_name = "AXIS=VALUE")]
    against: Option<Base>,
    /// Numbers separated by commas
    #[arg(long)]
    csv: bool,
    /// Print one JSON object per point
    #[arg(long, conflicts_with = "csv")]
    json: bool,
}

const EXAMPLES: &str = "\
(28) behind a mean: so many of the runs have this number; a run that is not complete took no time.
goodput@2 is the second flow's; accuracy.vegas a judge's; stages.STAGE.COUNTER and
flows.0.counters.dsacks are any number of the report.

Examples:
  airtcp sweep summary loss.results --metric goodput,timeouts,accuracy.vegas --csv
  airtcp sweep summary loss.results --against recipe=newreno";

impl Summary {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let results = Results::read(std::slice::from_ref(&self.source)).map_err(super::told)?;
        if results.is_empty() {
            return Err(failure::run(format!("{} has no results yet", self.source.display())));
        }
        let planned = results.manifest.as_ref().map(|manifest| &manifest.metrics);
        let metrics = match planned {
            _ if !self.metric.is_empty() => self.metric.clone(),
            Some(names) => names.iter().flat_map(|name| name.parse()).collect(),
            None => Metric::usual(),
        };
        let lines = match &self.against {
            Some(base) => {
                against(&results, &metrics, base).map_err(|error| failure::usage(error.to_string()))?
            }
            None => summarise(&results, &metrics)?,
        };
        for (index, metric) in metrics.iter().enumerate() {
            if lines.iter().all(|line| line.means[index].is_none()) {
                eprintln!("airtcp: no run has a number `{metric}`");
            }
        }
        let missing = results.missing().count();
        if missing > 0 {
            eprintln!("airtcp: {missing} runs have no result yet: these are means of the others");
        }
        let mut out = io::stdout().lock();
        if self.json {
            for line in &lines {
                writeln!(out, "{}", line.json(&metrics))?;
            }
        } else if self.csv {
            csv(&lines, &metrics, &mut out)?;
        } else {
            table(&lines, &metrics, &mut out)?;
        }
        Ok(())
    }
}

fn table(lines: &[Line], metrics: &[Metric], out: &mut impl Write) -> io::Result<()> {
    // If all points have the same profile, it is said once.
    let common = shared(lines.iter().map(|line| line.profiles.as_slice()));
    if let Some([profile]) = common {
        writeln!(out, "recipes with profile {profile}")?;
    }
    let is_axis = |line: &Line| {
        line.point.0.iter().any(|(name, label)| name == "profile" && *label == line.profiles.join(" "))
    };
    let said = matches!(common, Some([] | [_])) || lines.iter().all(is_axis);
    let profiles = |line: &Line| (!said).then(|| line.profiles.join(" "));
    let mut cells: Vec<Vec<String>> = Vec::new();
    let mut axes = 0;
    if let Some(first) = lines.first() {
        let mut names: Vec<_> = first.point.0.iter().map(|(name, _)| name.clone()).collect();
        names.extend(profiles(first).map(|_| "profiles".to_owned()));
        axes = names.len();
        names.push("runs".to_owned());
        cells.push(names.into_iter().chain(metrics.iter().map(Metric::to_string)).collect());
    }
    for line in lines {
        let labels = line.point.0.iter().map(|(_, label)| label.clone());
        let labels = labels.chain(profiles(line)).chain([line.runs.to_string()]);
        cells.push(labels.chain(line.means.iter().map(|mean| cell(*mean, line.runs))).collect());
    }
    let columns = cells.first().map_or(0, Vec::len);
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in &cells {
        let padded = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column < axes { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        writeln!(out, "{}", padded.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn cell(mean: Option<Mean>, runs: usize) -> String {
    let Some(Mean { mean, half_width, samples }) = mean else { return "-".to_owned() };
    // Four digits of the mean, and as many places of its interval.
    let places = match mean.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    let width = half_width.map(|width| format!(" ± {width:.places$}")).unwrap_or_default();
    let fewer = if samples < runs { format!(" ({samples})") } else { String::new() };
    format!("{mean:.places$}{width}{fewer}")
}

fn csv(lines: &[Line], metrics: &[Metric], out: &mut impl Write) -> io::Result<()> {
    let Some(first) = lines.first() else { return Ok(()) };
    let names = first.point.0.iter().map(|(name, _)| name.clone()).chain(["runs".to_owned()]);
    let means = metrics
        .iter()
        .flat_map(|metric| [format!("{metric}"), format!("{metric} ±"), format!("{metric} samples")]);
    record(out, names.chain(means).chain(["profiles".to_owned()]))?;
    for line in lines {
        let labels = line.point.0.iter().map(|(_, label)| label.clone()).chain([line.runs.to_string()]);
        let means = line.means.iter().flat_map(|mean| {
            let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
            let samples = mean.map_or(0, |mean| mean.samples).to_string();
            [number(mean.map(|mean| mean.mean)), number(mean.and_then(|mean| mean.half_width)), samples]
        });
        record(out, labels.chain(means).chain([line.profiles.join(" ")]))?;
    }
    Ok(())
}

/// A row for each run: the axes, the seed, every number that has a name, and how to repeat it.
pub(super) fn rows_as_csv(results: &Results, out: &mut impl Write) -> anyhow::Result<()> {
    let metrics: Vec<Metric> = Metric::known().map(|(metric, _)| metric).collect();
    let mut head = false;
    for row in rows(results) {
        let row = row?;
        if !std::mem::replace(&mut head, true) {
            let names = row.point.0.iter().map(|(name, _)| name.clone());
            let numbers = metrics.iter().map(Metric::to_string).chain(["command".to_owned()]);
            record(
                out,
                ["run".to_owned()].into_iter().chain(names).chain(["seed".to_owned()]).chain(numbers),
            )?;
        }
        let labels = row.point.0.into_iter().map(|(_, label)| label);
        let numbers = metrics
            .iter()
            .map(|metric| metric.of(&row.report).map(|number| number.to_string()).unwrap_or_default());
        let fields = [row.run.to_string()].into_iter().chain(labels).chain([row.seed.to_string()]);
        record(out, fields.chain(numbers).chain([row.command]))?;
    }
    Ok(())
}

/// RFC 4180.
fn record(out: &mut impl Write, fields: impl Iterator<Item = String>) -> io::Result<()> {
    let quoted = fields.map(|field| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        }
    });
    writeln!(out, "{}", quoted.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_four_digits_and_says_if_runs_are_left_out() {
        let mean = |mean, half_width, samples| Some(Mean { mean, half_width, samples });
        assert_eq!(cell(mean(123_456.7, Some(89.5), 30), 30), "123457 ± 90");
        assert_eq!(cell(mean(12.345, Some(0.5), 28), 30), "12.35 ± 0.50 (28)");
        assert_eq!(cell(mean(0.5, None, 1), 1), "0.500");
        assert_eq!(cell(None, 30), "-");
    }

    #[test]
    fn a_field_with_a_comma_is_quoted() {
        let mut out = Vec::new();
        record(&mut out, ["a,b", "c\"d", "e"].map(str::to_owned).into_iter()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\"a,b\",\"c\"\"d\",e\n");
    }
}
