//! `airtcp sweep summary`: prints statistics for each point, compared with another point.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use airtcp::sender::shared;
use airtcp_numbers::statistics::Mean;
use airtcp_numbers::table::{Column, Table, wrapped_lines};
use airtcp_numbers::verdict::percent_digits;
use airtcp_sim::sweep::against::{Base, Beside};
use airtcp_sim::sweep::metric::{Metric, Unit};
use airtcp_sim::sweep::results::Results;
use airtcp_sim::sweep::summary::{Line, SummaryError, Values, summarise};
use clap::Args;

use crate::shared::csv::record;
use crate::shared::{failure, say};

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
    against: Option<Base>,
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
        let planned = results.manifest.as_ref().map(|manifest| &manifest.metrics);
        let metrics = match planned {
            _ if !self.metric.is_empty() => self.metric.clone(),
            Some(names) => names.iter().flat_map(|name| name.parse()).collect(),
            None => Metric::usual(),
        };
        let base = match self.against {
            Some(base) => Some(base),
            None => usual_base(&results)?,
        };
        let lines = summarise(&results, &metrics, base.as_ref()).map_err(|error| match error {
            SummaryError::Base(error) => failure::usage(error.to_string()),
            SummaryError::Store(error) => error.into(),
        })?;
        let mut out = say::out();
        if self.json {
            for line in &lines {
                let mut json = line.json(&metrics);
                json["base"] = base.as_ref().map(Base::to_string).into();
                writeln!(out, "{json}")?;
            }
        } else if self.csv {
            csv(&lines, &metrics, base.is_some(), &mut out)?;
        } else {
            table(&lines, &metrics, base.as_ref(), say::width(self.wide), &mut out)?;
        }
        Ok(())
    }
}

fn usual_base(results: &Results) -> anyhow::Result<Option<Base>> {
    let points = results.rows().map(|row| Ok(row?.point)).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Base::usual(&points))
}

/// Prints a table per metric, with a row per point.
fn table(
    lines: &[Line],
    metrics: &[Metric],
    base: Option<&Base>,
    width: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    // A profile that all points share is printed once.
    let common = shared(lines.iter().map(|line| line.profiles.as_slice()));
    let mut said: Vec<String> = Vec::new();
    if let Some([profile]) = common {
        said.push(format!("recipes with profile {profile}"));
    }
    if let Some(base) = base {
        said.push(format!("compared with {base}, in pairs of runs with the same seed"));
    }
    if !said.is_empty() {
        write!(out, "{}", wrapped_lines(&said.join("; "), width))?;
    }
    let is_axis = |line: &Line| line.point.of("profile") == Some(line.profiles.join(" ").as_str());
    let with_profiles = !matches!(common, Some([] | [_])) && !lines.iter().all(is_axis);
    for (index, metric) in metrics.iter().enumerate() {
        if index > 0 || !said.is_empty() {
            writeln!(out)?;
        }
        let values = || lines.iter().filter_map(|line| line.numbers[index].as_ref());
        let scale = Scale::of(metric, values());
        write!(out, "{}", wrapped_lines(&heading(metric, &scale), width))?;
        let compared = values().any(|values| values.beside.is_some());
        let names =
            lines.first().into_iter().flat_map(|line| line.point.0.iter().map(|(name, _)| name.as_str()));
        let names = names.chain(with_profiles.then_some("profiles")).map(|name| Column::new(name).left());
        let numbers =
            [Column::new("runs").optional(2), Column::new("mean"), Column::new("median").optional(1)];
        let comparison =
            [Column::new("difference").optional(0), Column::new("gain"), Column::new("verdict").left()];
        let comparison = comparison.into_iter().filter(|_| compared);
        let mut table = Table::new(names.chain(numbers).chain(comparison));
        for line in lines {
            let labels = line.point.0.iter().map(|(_, label)| label.clone());
            let profiles = with_profiles.then(|| line.profiles.join(" "));
            let labels = labels.chain(profiles).chain([line.runs.to_string()]);
            let values = line.numbers[index].as_ref();
            let mut numbers = vec![scale.mean(values, line.runs), scale.median(values)];
            if compared {
                numbers.extend(scale.beside(values.and_then(|values| values.beside.as_ref())));
            }
            table.push(labels.chain(numbers));
        }
        write!(out, "{}", table.render(width))?;
    }
    write!(out, "{}", wrapped_lines(&notices(lines), width))
}

/// Formats the notices of all points, each with its number of runs.
fn notices(lines: &[Line]) -> String {
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    for (notice, runs) in lines.iter().flat_map(|line| &line.notices) {
        *counted.entry(notice).or_default() += runs;
    }
    let said = counted.iter().map(|(notice, runs)| {
        let s = if *runs == 1 { "" } else { "s" };
        format!("\n{notice} ({runs} run{s})")
    });
    said.collect()
}

/// Formats a heading such as `goodput, kbit/s: of all flows`.
fn heading(metric: &Metric, scale: &Scale) -> String {
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

/// The number format for one metric: one unit for all numbers, and enough decimal places to show the smallest
/// mean.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    factor: f64,
    sign: &'static str,
    places: usize,
}

/// Maximum number of decimal places. Smaller numbers are negligible compared with the others.
const MOST_PLACES: usize = 9;

impl Scale {
    fn of<'a>(metric: &Metric, values: impl Iterator<Item = &'a Values>) -> Self {
        let means: Vec<f64> =
            values.map(|values| values.mean.mean.abs()).filter(|mean| *mean > 0.0).collect();
        let most = means.iter().copied().fold(0.0, f64::max);
        let least = means.iter().copied().fold(most, f64::min);
        let prefixes: &[(f64, &str)] = match metric.unit() {
            Unit::BitPerSecond => &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")],
            Unit::Octets => &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB")],
            Unit::Seconds | Unit::Number | Unit::None => &[],
        };
        let fits = prefixes.iter().find(|(factor, _)| most >= *factor).copied();
        let (factor, sign) = fits.unwrap_or_else(|| (1.0, metric.unit().sign()));
        // Show four digits of the largest mean, and two of the smallest.
        let places = match most / factor {
            size if size >= 1000.0 => 0,
            size if size >= 100.0 => 1,
            size if size >= 10.0 => 2,
            _ => 3,
        };
        let first_digit = if least > 0.0 { (least / factor).log10().floor() as i32 } else { 0 };
        let for_the_least = usize::try_from(1 - first_digit).unwrap_or_default();
        Self { factor, sign, places: places.max(for_the_least.min(MOST_PLACES)) }
    }

    fn number(&self, number: f64) -> String {
        format!("{:.*}", self.places, number / self.factor)
    }

    fn mean(&self, values: Option<&Values>, runs: usize) -> String {
        let Some(Values { mean: Mean { mean, half_width, samples }, .. }) = values else {
            return "-".to_owned();
        };
        let width = half_width.map(|width| format!(" ± {}", self.number(width))).unwrap_or_default();
        let fewer = if *samples < runs { format!(" ({samples})") } else { String::new() };
        format!("{}{width}{fewer}", self.number(*mean))
    }

    fn median(&self, values: Option<&Values>) -> String {
        values.map_or_else(|| "-".to_owned(), |values| self.number(values.median))
    }

    /// Formats the difference, the gain and the verdict.
    fn beside(&self, beside: Option<&Beside>) -> [String; 3] {
        let Some(beside) = beside else { return [const { String::new() }; 3] };
        let signed = |Mean { mean, half_width, .. }: Mean, factor: f64, places: usize, unit: &str| {
            let half = half_width.map(|half| format!(" ± {:.places$}{unit}", half / factor));
            format!("{:+.places$}{unit}{}", mean / factor, half.unwrap_or_default())
        };
        let gain = beside.comparison.gain.map(|gain| signed(gain, 0.01, percent_digits(gain), " %"));
        [
            signed(beside.difference, self.factor, self.places, ""),
            gain.unwrap_or_else(|| "-".to_owned()),
            beside.verdict(),
        ]
    }
}

/// Formats a metric's name with its unit, as the heading of a column of plain numbers.
fn with_unit(metric: &Metric, what: &str) -> String {
    let what = if what.is_empty() { String::new() } else { format!(" {what}") };
    match metric.unit().sign() {
        "" => format!("{metric}{what}"),
        sign => format!("{metric}{what} ({sign})"),
    }
}

fn csv(lines: &[Line], metrics: &[Metric], compared: bool, out: &mut impl Write) -> io::Result<()> {
    let Some(first) = lines.first() else { return Ok(()) };
    let names = first.point.0.iter().map(|(name, _)| name.clone()).chain(["runs".to_owned()]);
    let numbers = metrics.iter().flat_map(|metric| {
        let mut names = ["", "±", "median"].map(|what| with_unit(metric, what)).to_vec();
        names.push(format!("{metric} samples"));
        if compared {
            names.extend(["difference", "difference ±"].map(|what| with_unit(metric, what)));
            names.extend(["gain (%)", "gain ± (%)", "verdict"].map(|what| format!("{metric} {what}")));
        }
        names
    });
    let has_notices = lines.iter().any(|line| !line.notices.is_empty());
    let notices = has_notices.then(|| "notices".to_owned());
    record(out, names.chain(numbers).chain(["profiles".to_owned()]).chain(notices))?;
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
            fields.push(number(values.map(|values| values.median)));
            fields.push(mean.map_or(0, |mean| mean.samples).to_string());
            if compared {
                let beside = values.and_then(|values| values.beside);
                fields.extend(pair(beside.map(|beside| beside.difference), 1.0));
                fields.extend(pair(beside.and_then(|beside| beside.comparison.gain), 100.0));
                fields.push(beside.map(|beside| beside.verdict()).unwrap_or_default());
            }
            fields
        });
        let notices = || line.notices.keys().map(String::as_str).collect::<Vec<_>>().join("; ");
        let last = [line.profiles.join(" ")].into_iter().chain(has_notices.then(notices));
        record(out, labels.chain(numbers).chain(last))?;
    }
    Ok(())
}

/// Writes a row per run: the axes, the seed, all named metrics, and the command that repeats the run.
pub(super) fn rows_as_csv(results: &Results, out: &mut impl Write) -> anyhow::Result<()> {
    let metrics: Vec<Metric> = Metric::known().collect();
    let mut head = false;
    for row in results.rows() {
        let row = row?;
        if !std::mem::replace(&mut head, true) {
            let names = row.point.0.iter().map(|(name, _)| name.clone());
            let numbers = metrics.iter().map(|metric| with_unit(metric, "")).chain(["command".to_owned()]);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn values(mean: f64, half_width: Option<f64>, samples: usize) -> Values {
        Values { mean: Mean { mean, half_width, samples }, median: mean, beside: None }
    }

    fn scale(metric: &str, mean: f64) -> Scale {
        Scale::of(&metric.parse().unwrap(), [values(mean, None, 1)].iter())
    }

    #[test]
    fn metric_numbers_use_suitable_unit_and_digits() {
        for (metric, most, shown) in [
            ("goodput", 123_456.7, "123.5 kbit/s"),
            ("goodput", 98_765_432.0, "98.77 Mbit/s"),
            ("goodput", 12.0, "12.00 bit/s"),
            ("took", 0.25, "0.250 s"),
            ("delivered", 200_000.0, "200.0 kB"),
            ("timeouts", 1234.5, "1234 "),
            ("jain", 0.9, "0.900 "),
        ] {
            let scale = scale(metric, most);
            assert_eq!(format!("{} {}", scale.number(most), scale.sign), shown, "{metric}");
        }
    }

    #[test]
    fn smallest_mean_keeps_readable_digits() {
        let metric = "goodput".parse().unwrap();
        let of = |means: &[f64]| {
            let values: Vec<Values> = means.iter().map(|mean| values(*mean, None, 1)).collect();
            let scale = Scale::of(&metric, values.iter());
            means.iter().map(|mean| format!("{} {}", scale.number(*mean), scale.sign)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[18_000.0, 912_000_000.0]), ["0.018 Mbit/s", "912.000 Mbit/s"]);
        assert_eq!(of(&[18_000.0, 9.5e9]), ["0.000018 Gbit/s", "9.500000 Gbit/s"]);
        assert_eq!(of(&[0.0, 98_765_432.0]), ["0.00 Mbit/s", "98.77 Mbit/s"]);
    }

    #[test]
    fn notices_follow_tables_and_have_a_csv_column() {
        let line = |recipe: &str, runs: usize| Line {
            point: serde_json::from_value(serde_json::json!({ "recipe": recipe })).unwrap(),
            profiles: vec!["default".to_owned()],
            runs: 3,
            notices: (runs > 0).then(|| (format!("{recipe}: no marks"), runs)).into_iter().collect(),
            numbers: vec![Some(values(1e6, None, 3))],
        };
        let metrics: [Metric; 1] = ["goodput".parse().unwrap()];
        let shown = |lines: &[Line]| {
            let (mut text, mut rows) = (Vec::new(), Vec::new());
            table(lines, &metrics, None, Some(80), &mut text).unwrap();
            csv(lines, &metrics, false, &mut rows).unwrap();
            [text, rows].map(|octets| String::from_utf8(octets).unwrap())
        };
        let [text, rows] = shown(&[line("reno", 0), line("etcp", 3), line("etcp", 2)]);
        assert!(text.ends_with("\n\netcp: no marks (5 runs)\n"), "{text}");
        let ends: Vec<_> =
            rows.lines().filter_map(|row| row.rsplit_once("default,")).map(|(_, end)| end).collect();
        assert!(rows.lines().next().unwrap().ends_with(",profiles,notices"), "{rows}");
        assert_eq!(ends, ["", "etcp: no marks", "etcp: no marks"], "{rows}");
        let [text, rows] = shown(&[line("reno", 0)]);
        assert!(!text.contains("runs)") && !rows.contains("notices"), "{text}{rows}");
    }

    #[test]
    fn mean_shows_run_count_if_runs_are_missing() {
        let scale = scale("took", 12.0);
        assert_eq!(scale.mean(Some(&values(12.345, Some(0.5), 28)), 30), "12.35 ± 0.50 (28)");
        assert_eq!(scale.mean(Some(&values(0.5, None, 1)), 1), "0.50");
        assert_eq!(scale.mean(None, 30), "-");
    }
}
