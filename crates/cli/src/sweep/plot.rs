//! `airtcp sweep plot`: compares the points of a sweep in a picture.

use std::collections::BTreeSet;
use std::path::PathBuf;

use airtcp::sender::shared;
use airtcp_numbers::verdict::MARGIN;
use airtcp_report::plot::Format;
use airtcp_sim::sweep::labels::Labels;
use airtcp_sim::sweep::metric::Metric;
use airtcp_sim::sweep::results::Results;
use airtcp_sim::sweep::setup::words;
use airtcp_sim::sweep::summary::{Line, distributions, summarise};
use anyhow::Context;
use clap::{Args, ValueEnum};

use super::picture::{Captions, Kind, PictureSpec, figure};
use crate::shared::failure;

/// Plot a metric of a sweep: means with 95 % confidence intervals, box plots or distribution functions
#[derive(Debug, Args)]
#[command(override_usage = "airtcp sweep plot [OPTIONS] --y METRIC -o FILE STORE|FILE|FILE.toml", after_help = EXAMPLES)]
pub(super) struct Plot {
    /// Results directory, merged file, or sweep file with its results next to it
    #[arg(value_name = "STORE|FILE|FILE.toml")]
    source: PathBuf,
    /// Axis of the sweep for the horizontal axis
    #[arg(long, value_name = "AXIS", required_unless_present = "ecdf")]
    x: Option<String>,
    /// Metric to plot (see `airtcp sweep metrics`)
    #[arg(long, value_name = "METRIC")]
    y: Metric,
    /// Draw box plots: minimum, quartiles, median and maximum of the runs
    #[arg(long)]
    boxes: bool,
    /// Draw the empirical distribution function (ECDF) of the metric, with one line per value of --by
    #[arg(long, conflicts_with_all = ["x", "boxes", "from_data"])]
    ecdf: bool,
    /// Axis of the sweep that gets one line per value
    #[arg(long, value_name = "AXIS")]
    by: Option<String>,
    /// Only points with this value (repeatable)
    #[arg(long, value_name = "AXIS=VALUE", value_parser = pair)]
    only: Vec<(String, String)>,
    /// Logarithmic scale: x, y or both, as in --log x,y
    #[arg(long, value_name = "AXES", value_delimiter = ',')]
    log: Vec<Axis>,
    /// Start the vertical axis near the smallest number instead of at zero
    #[arg(long)]
    from_data: bool,
    /// Title of the picture [default: the sweep's description]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Caption of the horizontal axis; the unit is appended
    #[arg(long, value_name = "TEXT")]
    x_label: Option<String>,
    /// Caption of the vertical axis; the unit is appended
    #[arg(long, value_name = "TEXT")]
    y_label: Option<String>,
    /// Name in the legend for a value of --by (repeatable)
    #[arg(long, value_name = "VALUE=TEXT", value_parser = pair, requires = "by")]
    legend: Vec<(String, String)>,
    /// File to write: .svg, .pdf or .png
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Axis {
    X,
    Y,
}

const EXAMPLES: &str = "\
Values with one unit (1%, 150ms, 384kbit) are drawn to scale; other values are
names. Means at the same name are drawn next to each other.

Examples (loss.toml is in docs/examples):
  airtcp sweep plot loss.toml --x radio.down.channel.errors.bler \\
    --y goodput --by recipe -o loss.svg
  airtcp sweep plot loss.toml --ecdf --y goodput --by recipe \\
    --only radio.down.channel.errors.bler=10% --legend newreno=NewReno \\
    -o loss.pdf";

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((axis, value)) if !axis.is_empty() => Ok((axis.to_owned(), value.to_owned())),
        _ => Err("expected two parts with = between them, such as recipe=newreno".to_owned()),
    }
}

impl Plot {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let output = &self.output;
        let format = Format::of(&self.output).ok_or_else(|| {
            failure::usage(format!(
                "{}: unknown format of a picture: use a name that ends in .svg, .pdf or .png",
                output.display()
            ))
        })?;
        let results = super::results_of(&self.source)?;
        let lines = summarise(&results, std::slice::from_ref(&self.y), None, MARGIN)?;
        let title = self.title.or_else(|| description(&results)).unwrap_or_else(|| {
            match self.x.as_ref().or(self.by.as_ref()) {
                Some(axis) => format!("{} by {axis}", self.y),
                None => self.y.to_string(),
            }
        });
        let about = about(&results, &lines, &self.only)?;
        let runs = distributions(&results, &self.y)?;
        let kind = match self.x {
            None => Kind::Ecdf,
            Some(x) if self.boxes => Kind::Boxes(x),
            Some(x) => Kind::Means(x),
        };
        let comparison = PictureSpec {
            title,
            about,
            kind,
            y: self.y,
            captions: Captions { x: self.x_label, y: self.y_label, legend: self.legend },
            by: self.by,
            only: self.only,
            log_x: self.log.contains(&Axis::X),
            log_y: self.log.contains(&Axis::Y),
            from_data: self.from_data,
        };
        let figure = figure(&lines, &runs, &comparison).map_err(|error| failure::usage(error.to_string()))?;
        airfiles::write(output, format.render(&figure.draw())?)
            .with_context(|| format!("cannot write {}", output.display()))
    }
}

/// The description of the sweep, if it has one.
pub(super) fn description(results: &Results) -> Option<String> {
    let manifest = results.manifest.as_ref()?;
    (!manifest.description.is_empty()).then(|| manifest.description.clone())
}

/// Describes the points with these values: `over wcdma-384, 5 seeds each, recipes with profile default`.
pub(super) fn about(results: &Results, lines: &[Line], only: &[(String, String)]) -> anyhow::Result<String> {
    let is_drawn = |point: &Labels| only.iter().all(|(axis, value)| point.of(axis) == Some(value.as_str()));
    let mut paths = BTreeSet::new();
    for row in results.rows() {
        let row = row?;
        if is_drawn(&row.point) {
            paths.extend(words(&row.command).into_iter().skip_while(|word| word != "--scenario").nth(1));
        }
    }
    let path = match paths.into_iter().collect::<Vec<_>>().as_slice() {
        [path] => format!("over {path}"),
        paths => format!("over {} scenarios", paths.len()),
    };
    let lines = || lines.iter().filter(|line| is_drawn(&line.point));
    let runs: BTreeSet<usize> = lines().map(|line| line.runs).collect();
    let runs = match (runs.first(), runs.last()) {
        (Some(1), Some(1)) => "one seed, without intervals".to_owned(),
        (Some(least), Some(most)) if least == most => format!("{most} seeds each"),
        (Some(least), Some(most)) => format!("{least} to {most} seeds each"),
        _ => String::new(),
    };
    let profile = match shared(lines().map(|line| line.profiles.as_slice())) {
        Some([profile]) => format!(", recipes with profile {profile}"),
        _ => String::new(),
    };
    Ok(format!("{path}, {runs}{profile}"))
}
