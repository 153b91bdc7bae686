//! `airtcp sweep summary`: prints statistics for each point, compared with another point.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use airtcp::sender::shared;
use airtcp_numbers::csv::record;
use airtcp_numbers::statistics::{Mean, Median};
use airtcp_numbers::table::{Column, Table, wrapped_lines};
use airtcp_numbers::units;
use airtcp_sim::sweep::against::Reference;
use airtcp_sim::sweep::metric::{Metric, Unit};
use airtcp_sim::sweep::results::Results;
use airtcp_sim::sweep::summary::{Line, SummaryError, summarise};
use clap::Args;

use crate::shared::scale::{Scale, seeds_change_nothing};
use crate::shared::{console, failure};

/// Print means, 95 % confidence intervals (Student's t) and medians of each point, compared with the first recipe
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Summary {
    /// Results directory, merged file, or sweep file with its results next to it
    #[arg(value_name = "STORE|FILE|FILE.toml")]
    source: PathBuf,
    /// Metrics to show (see `airtcp sweep metrics`) [default: those in the sweep file]
    #[arg(long, value_name = "METRIC,…", value_delimiter = ',')]
    metric: Vec<Metric>,
    /// Compare with the points that have this value, seed by seed [default: the first recipe, if there are several]
    #[arg(long, value_name = "AXIS=VALUE")]
    against: Option<Reference>,
    /// Largest difference from the reference that counts as no difference, in percent of its mean
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = units::percent)]
    margin: f64,
    /// Output comma-separated values (CSV) instead of the table
    #[arg(long)]
    csv: bool,
    /// Print JSON instead of text: one object per point
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Show every column of the tables, however wide they get
    #[arg(long, conflicts_with_all = ["csv", "json"])]
    wide: bool,
}

const EXAMPLES: &str = "\
Each point is compared with the point that has the first recipe and is
otherwise equal. Runs with the same seed form pairs. The columns are the mean
difference with its 95 % confidence interval, the gain (the same in percent of
the other mean), and the verdict, as in `airtcp lab run`. For a metric that is
neither good nor bad, the verdict is higher or lower.

(28) after a mean is the number of runs that have the metric: an incomplete
run has no `took`, for example.

goodput@2 belongs to the second flow, and accuracy.vegas to a judge.
stages.STAGE.COUNTER and flows.0.counters.dsacks name numbers of the report.

Examples (loss.toml is in docs/examples):
  airtcp sweep summary loss.results \\
    --metric goodput,timeouts,spurious-timeouts --csv
  airtcp sweep summary loss.results \\
    --against radio.down.channel.errors.bler=1%";

impl Summary {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let results = super::results_of(&self.source)?;
        let metrics = if self.metric.is_empty() { planned_metrics(&results) } else { self.metric.clone() };
        let base = match self.against {
            Some(base) => Some(base),
            None => default_base(&results)?,
        };
        let lines =
            summarise(&results, &metrics, base.as_ref(), self.margin).map_err(|error| match error {
                SummaryError::Reference(error) => failure::usage(error.to_string()),
                SummaryError::Store(error) => error.into(),
            })?;
        let mut out = console::stdout();
        if self.json {
            for line in &lines {
                let mut json = line.json(&metrics);
                json["base"] = base.as_ref().map(Reference::to_string).into();
                writeln!(out, "{json}")?;
            }
        } else if self.csv {
            csv(&lines, &metrics, base.is_some(), &mut out)?;
        } else {
            table(&lines, &metrics, base.as_ref(), console::width(self.wide), &mut out)?;
        }
        Ok(())
    }
}

/// The metrics in the sweep file, or the usual ones of results without a manifest.
pub(super) fn planned_metrics(results: &Results) -> Vec<Metric> {
    match &results.manifest {
        Some(manifest) => manifest.metrics.iter().flat_map(|name| name.parse()).collect(),
        None => Metric::defaults(),
    }
}

pub(super) fn default_base(results: &Results) -> anyhow::Result<Option<Reference>> {
    let points = results.rows().map(|row| Ok(row?.point)).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Reference::first_recipe(&points))
}

/// Prints a table per metric, with a row per point.
fn table(
    lines: &[Line],
    metrics: &[Metric],
    base: Option<&Reference>,
    width: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    let text = preamble(lines, base);
    write!(out, "{}", wrapped_lines(&text, width))?;
    for (index, metric) in metrics.iter().enumerate() {
        if index > 0 || !text.is_empty() {
            writeln!(out)?;
        }
        let scale = Scale::of(metric, lines.iter().filter_map(|line| line.numbers[index].as_ref()));
        write!(out, "{}", wrapped_lines(&heading(metric, &scale), width))?;
        write!(out, "{}", table_of(lines, index, &scale).render(width))?;
    }
    write!(out, "{}", wrapped_lines(&remarks(lines), width))
}

/// Describes what all tables have in common: the profile, the reference, and the correction of verdicts.
pub(super) fn preamble(lines: &[Line], base: Option<&Reference>) -> String {
    let mut text: Vec<String> = Vec::new();
    if let Some([profile]) = common_profiles(lines) {
        text.push(format!("recipes with profile {profile}"));
    }
    if let Some(base) = base {
        text.push(format!("compared with {base}, in pairs of runs with the same seed"));
    }
    let compared = |metric: usize| {
        let values = lines.iter().filter_map(|line| line.numbers[metric].as_ref());
        values.filter(|values| values.against.is_some()).count()
    };
    let metrics = lines.first().map_or(0, |line| line.numbers.len());
    if (0..metrics).any(|metric| compared(metric) > 1) {
        text.push("verdicts are corrected for the number of comparisons in a table (Holm)".to_owned());
    }
    text.join("; ")
}

fn common_profiles(lines: &[Line]) -> Option<&[String]> {
    shared(lines.iter().map(|line| line.profiles.as_slice()))
}

/// The table of one metric, the one with this index in each line.
pub(super) fn table_of(lines: &[Line], index: usize, scale: &Scale) -> Table {
    // A profile that all points share is in the preamble.
    let is_axis = |line: &Line| line.point.of("profile") == Some(line.profiles.join(" ").as_str());
    let with_profiles = !matches!(common_profiles(lines), Some([] | [_])) && !lines.iter().all(is_axis);
    let compared = lines.iter().flat_map(|line| line.numbers[index]).any(|values| values.against.is_some());
    let names = lines.first().into_iter().flat_map(|line| line.point.0.iter().map(|(name, _)| name.as_str()));
    let names = names.chain(with_profiles.then_some("profiles")).map(|name| Column::new(name).left());
    let numbers = [
        Column::new("runs").optional(3),
        Column::new("mean"),
        Column::new("median").optional(2),
        Column::new("median interval").optional(0),
        Column::new("quartiles").optional(0),
    ];
    let comparison =
        [Column::new("difference").optional(1), Column::new("gain"), Column::new("verdict").left()];
    let comparison = comparison.into_iter().filter(|_| compared);
    let mut table = Table::new(names.chain(numbers).chain(comparison));
    for line in lines {
        let labels = line.point.0.iter().map(|(_, label)| label.clone());
        let profiles = with_profiles.then(|| line.profiles.join(" "));
        let labels = labels.chain(profiles).chain([line.runs.to_string()]);
        let values = line.numbers[index].as_ref();
        let mut numbers = vec![
            scale.mean(values, line.runs),
            scale.median(values),
            scale.median_interval(values),
            scale.quartiles(values),
        ];
        if compared {
            numbers.extend(scale.beside(values.and_then(|values| values.against.as_ref())));
        }
        table.push(labels.chain(numbers));
    }
    table
}

/// Remarks about all tables, one line each: results without randomness, and notices.
pub(super) fn remarks(lines: &[Line]) -> String {
    let all = lines.iter().flat_map(|line| line.numbers.iter().flatten());
    let constant = seeds_change_nothing(all).map(|line| format!("\n{line}")).unwrap_or_default();
    constant + &notices(lines)
}

/// Formats the notices of all points, each with its number of runs.
fn notices(lines: &[Line]) -> String {
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    for (notice, runs) in lines.iter().flat_map(|line| &line.notices) {
        *counted.entry(notice).or_default() += runs;
    }
    let text = counted.iter().map(|(notice, runs)| {
        let s = if *runs == 1 { "" } else { "s" };
        format!("\n{notice} ({runs} run{s})")
    });
    text.collect()
}

/// Formats a heading such as `goodput, kbit/s: of all flows`.
pub(super) fn heading(metric: &Metric, scale: &Scale) -> String {
    let unit = match metric.unit() {
        Unit::Number => ", number per run",
        _ if scale.sign.is_empty() => "",
        _ => &format!(", {}", scale.sign),
    };
    match metric.meaning() {
        "" => format!("{metric}{unit}"),
        meaning => format!("{metric}{unit}: {meaning}"),
    }
}

/// Formats a metric's name with its unit, as the heading of a column of plain numbers.
fn with_unit(metric: &Metric, label: &str) -> String {
    let label = if label.is_empty() { String::new() } else { format!(" {label}") };
    match metric.unit().symbol() {
        "" => format!("{metric}{label}"),
        sign => format!("{metric}{label} ({sign})"),
    }
}

/// The columns of [`median`].
const MEDIAN: [&str; 5] = ["median", "median low", "median high", "first quartile", "third quartile"];

/// The median, its 95 % interval, and the quartiles.
fn median(median: Option<Median>) -> [Option<f64>; 5] {
    let (interval, quartiles) =
        (median.and_then(|median| median.interval), median.map(|median| median.quartiles));
    [
        median.map(|median| median.median),
        interval.map(|(low, _)| low),
        interval.map(|(_, high)| high),
        quartiles.map(|(first, _)| first),
        quartiles.map(|(_, third)| third),
    ]
}

fn csv(lines: &[Line], metrics: &[Metric], compared: bool, out: &mut impl Write) -> io::Result<()> {
    let Some(first) = lines.first() else { return Ok(()) };
    let names = first.point.0.iter().map(|(name, _)| name.clone()).chain(["runs".to_owned()]);
    let numbers = metrics.iter().flat_map(|metric| {
        let mut names =
            ["", "±"].into_iter().chain(MEDIAN).map(|label| with_unit(metric, label)).collect::<Vec<_>>();
        names.push(format!("{metric} samples"));
        if compared {
            names.extend(["difference", "difference ±"].map(|label| with_unit(metric, label)));
            names.extend(["gain (%)", "gain ± (%)", "verdict"].map(|label| format!("{metric} {label}")));
        }
        names
    });
    let has_notices = lines.iter().any(|line| !line.notices.is_empty());
    let notices = has_notices.then(|| "notices".to_owned());
    let headings = names.chain(numbers).chain(["profiles".to_owned()]).chain(notices);
    out.write_all(record(headings).as_bytes())?;
    let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    let pair = |mean: Option<Mean>, factor: f64| {
        [mean.map(|mean| mean.mean), mean.and_then(|mean| mean.half_width)]
            .map(|part| number(part.map(|part| part * factor)))
    };
    for line in lines {
        let labels = line.point.0.iter().map(|(_, label)| label.clone()).chain([line.runs.to_string()]);
        let numbers = line.numbers.iter().flat_map(|values| {
            let mean = values.map(|values| values.mean);
            let mut fields = pair(mean, 1.0).to_vec();
            fields.extend(median(values.map(|values| values.median)).map(number));
            fields.push(mean.map_or(0, |mean| mean.samples).to_string());
            if compared {
                let beside = values.and_then(|values| values.against);
                fields.extend(pair(beside.map(|beside| beside.difference), 1.0));
                fields.extend(pair(beside.and_then(|beside| beside.comparison.gain), 100.0));
                fields.push(beside.map(|beside| beside.verdict()).unwrap_or_default());
            }
            fields
        });
        let notices = || line.notices.keys().map(String::as_str).collect::<Vec<_>>().join("; ");
        let last = [line.profiles.join(" ")].into_iter().chain(has_notices.then(notices));
        out.write_all(record(labels.chain(numbers).chain(last)).as_bytes())?;
    }
    Ok(())
}

/// Writes a row per run, with the axes, the seed, all named metrics, and the command that repeats the run.
pub(super) fn rows_as_csv(results: &Results, out: &mut impl Write) -> anyhow::Result<()> {
    let metrics: Vec<Metric> = Metric::known().collect();
    let mut head = false;
    for row in results.rows() {
        let row = row?;
        if !std::mem::replace(&mut head, true) {
            let names = row.point.0.iter().map(|(name, _)| name.clone());
            let numbers = metrics.iter().map(|metric| with_unit(metric, "")).chain(["command".to_owned()]);
            let headings =
                ["run".to_owned()].into_iter().chain(names).chain(["seed".to_owned()]).chain(numbers);
            out.write_all(record(headings).as_bytes())?;
        }
        let labels = row.point.0.into_iter().map(|(_, label)| label);
        let numbers = metrics
            .iter()
            .map(|metric| metric.of(&row.report).map(|number| number.to_string()).unwrap_or_default());
        let fields = [row.run.to_string()].into_iter().chain(labels).chain([row.seed.to_string()]);
        out.write_all(record(fields.chain(numbers).chain([row.command])).as_bytes())?;
    }
    Ok(())
}
