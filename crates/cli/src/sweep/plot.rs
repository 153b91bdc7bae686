//! `airtcp sweep plot`: points of a sweep compared in a picture.

use std::path::{Path, PathBuf};

use airtcp_report::plot::Format;
use airtcp_sim::sweep::metric::Metric;
use airtcp_sim::sweep::store::Results;
use airtcp_sim::sweep::summary::summarise;
use anyhow::Context;
use clap::{Args, ValueEnum};

use super::picture::{Comparison, figure};
use crate::shared::failure;

/// Draw means and 95 % intervals of a metric over an axis of the sweep, with a line for each value of another axis.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Plot {
    /// A directory of results, a file that was merged from some, or the sweep, whose results are beside it
    #[arg(value_name = "STORE|FILE|FILE.toml")]
    source: PathBuf,
    /// The axis of the sweep that runs from left to right
    #[arg(long, value_name = "AXIS")]
    x: String,
    /// The metric, see `airtcp sweep metrics`
    #[arg(long, value_name = "METRIC")]
    y: Metric,
    /// The axis of the sweep whose values have a line each
    #[arg(long, value_name = "AXIS")]
    by: Option<String>,
    /// Only points with this value; may be given more than once
    #[arg(long, value_name = "AXIS=VALUE", value_parser = pair)]
    only: Vec<(String, String)>,
    /// Logarithmic scale: x, y or both, as in --log x,y
    #[arg(long, value_name = "AXES", value_delimiter = ',')]
    log: Vec<Axis>,
    /// Title of the picture [default: the sweep's description]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// File to write: .svg or .png
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Axis {
    X,
    Y,
}

const EXAMPLES: &str = "\
Values with one unit (1%, 150ms, 384kbit) stand on a scale; other values are names. The intervals are a band along
each line, and a bar at each name.

Example:
  airtcp sweep plot loss.toml --x radio.down.channel.errors.bler --y goodput --by recipe -o loss.svg";

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((axis, value)) if !axis.is_empty() => Ok((axis.to_owned(), value.to_owned())),
        _ => Err("write AXIS=VALUE, such as recipe=newreno".to_owned()),
    }
}

impl Plot {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let format = Format::of(&self.output).ok_or_else(|| {
            failure::usage(format!("{}: give it a name that ends in .svg or .png", self.output.display()))
        })?;
        let source = match self.source.extension() {
            Some(extension) if extension == "toml" => super::store_of(&self.source),
            _ => self.source.clone(),
        };
        let results = Results::read(std::slice::from_ref(&source)).map_err(super::told)?;
        if results.is_empty() {
            return Err(failure::run(format!("{} has no results yet", source.display())));
        }
        let missing = results.missing().count();
        if missing > 0 {
            eprintln!("airtcp: {missing} runs have no result yet: these are means of the others");
        }
        let lines = summarise(&results, std::slice::from_ref(&self.y))?;
        let title = self.title.unwrap_or_else(|| match &results.manifest {
            Some(manifest) if !manifest.description.is_empty() => manifest.description.clone(),
            _ => source.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
        });
        let comparison = Comparison {
            title,
            x: self.x,
            y: self.y,
            by: self.by,
            only: self.only,
            log_x: self.log.contains(&Axis::X),
            log_y: self.log.contains(&Axis::Y),
        };
        let figure = figure(&lines, &comparison).map_err(|error| failure::usage(error.to_string()))?;
        write(&self.output, &format.render(&figure.draw())?)
    }
}

fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}
