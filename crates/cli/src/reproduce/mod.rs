//! `airtcp reproduce`: the papers' figures again.

mod page;
mod picture;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use airtcp_report::plot::Format;
use airtcp_reproduce::{Figure, Finding, Paper, figures};
use anyhow::Context;
use clap::Args;
use serde_json::json;

use crate::shared::{failure, say};

/// Run the papers' figures and tables again in virtual time, and print ours beside theirs.
///
/// All that is compared runs with the same seeds; a claim is judged by the 95 % interval of the differences. What a
/// paper does not state, and was chosen here, is listed. Nothing is fitted.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Reproduce {
    /// Figures, such as p0-fig11a, or all of a paper's, such as p0 (Pan et al. 2004) [default: list papers and figures]
    #[arg(value_name = "FIGURE")]
    figure: Vec<String>,
    /// Run all of them
    #[arg(long, conflicts_with = "figure")]
    all: bool,
    /// Runs of every point, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = SEEDS, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
    /// Where claims are undecided, twice as many, and again, but no more than this
    #[arg(long, value_name = "N", default_value_t = MOST_SEEDS)]
    most_seeds: u32,
    /// Draw each chart of the figures into this directory, as SVG: FIGURE.svg, FIGURE-2.svg …
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    plot: Option<PathBuf>,
    /// Write all of it as one page: what held up, and each figure with its claims
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
    /// Print JSON instead of text: an object for every figure, a line each
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[arg(from_global)]
    quiet: bool,
}

const SEEDS: u32 = 30;
/// Four looks, for which the intervals that decide are made ([`airtcp_reproduce::judge::WIDER`]).
const MOST_SEEDS: u32 = 8 * SEEDS;

const EXAMPLES: &str = "\
Examples:
  airtcp reproduce p0-fig11a
  airtcp reproduce p3 --seeds 5 --most-seeds 5         a first look
  airtcp reproduce p1 --html papers.html               as a page, with pictures
  airtcp reproduce --all > docs/reproduction.md        as that file was made";

const HEAD: &str = "\
# The papers again

Made by `airtcp reproduce --all`: every figure and table of the five papers that has numbers or a curve, run in virtual time with the
algorithms of this repository. Each point is the mean over the same seeds for all that are compared, ± half the width of its 95 % interval
(Student's t); comparisons are of pairs of runs with the same seed, and a gain is the mean of their differences over the mean of what is compared with.

A claim is a sentence of a paper, and counts once, however many curves it speaks of; what a paper does not say, what was calibrated to it, and what is true by construction is not counted. One rule judges all of
them (crates/reproduce/src/judge.rs), by the interval and never by the mean: *better* is above zero; *similar* is within 10 %; *slightly* up to 10 %; *considerably* 20 % and more; *in most cases* is pooled over the
points; a number is met if the interval overlaps the paper's ± what one run of the paper's length scatters. A figure with an undecided claim is run with twice as many seeds, up to 240; intervals that decide are 1.2 times as wide as those that
are printed, because of these looks. The papers ran each point once.
";

impl Reproduce {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let known = figures();
        if self.figure.is_empty() && !self.all {
            return list(&known);
        }
        let wanted: Vec<_> = if self.all { known } else { select(&known, &self.figure)? };
        if self.all && !self.json {
            writeln!(say::out(), "{HEAD}")?;
        }
        if let Some(directory) = &self.plot {
            fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        }
        let mut paper: Option<Paper> = None;
        let mut made = Vec::new();
        for (index, figure) in wanted.iter().enumerate() {
            if !self.quiet {
                say::aside(format_args!("[{}/{}] {}: {}", index + 1, wanted.len(), figure.id, figure.title));
            }
            let looked = |seeds, undecided: usize| {
                if !self.quiet && undecided > 0 {
                    say::aside(format_args!(
                        "{}: {undecided} claims undecided with {seeds} seeds",
                        figure.id
                    ));
                }
            };
            let (finding, seeds) = figure
                .decide(self.seeds, self.most_seeds, looked)
                .with_context(|| format!("{} could not be run", figure.id))?;
            if let Some(directory) = &self.plot {
                plot(directory, figure, seeds, &finding)?;
            }
            if self.json {
                let line =
                    json!({ "figure": figure.id, "title": figure.title, "seeds": seeds, "finding": finding });
                writeln!(say::out(), "{line}")?;
            } else {
                if paper.replace(figure.paper) != Some(figure.paper) {
                    writeln!(say::out(), "## {}\n", figure.paper.reference())?;
                }
                let Figure { id, title, .. } = figure;
                write!(say::out(), "### `{id}`: {title}\n\n{seeds} seeds.\n\n{}", finding.markdown())?;
            }
            made.push(page::Made { figure: *figure, seeds, finding });
        }
        if let Some(file) = &self.html {
            fs::write(file, page::page(&made)?)
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(())
    }
}

/// Each chart as a file of its own.
fn plot(directory: &Path, figure: &Figure, seeds: u32, finding: &Finding) -> anyhow::Result<()> {
    for (index, chart) in finding.charts.iter().enumerate() {
        let name = match index {
            0 => format!("{}.svg", figure.id),
            _ => format!("{}-{}.svg", figure.id, index + 1),
        };
        let file = directory.join(name);
        let svg = Format::Svg.render(&picture::figure(chart, figure.paper.cited(), seeds).draw())?;
        fs::write(&file, svg).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Paper by paper, with what names a whole one.
fn list(known: &[Figure]) -> anyhow::Result<()> {
    let mut out = say::out();
    let mut paper: Option<Paper> = None;
    for Figure { id, title, paper: of, .. } in known {
        if paper.replace(*of) != Some(*of) {
            match id.split_once('-') {
                Some((whole, _)) => writeln!(out, "{whole}: {}", of.reference())?,
                None => writeln!(out, "{}", of.reference())?,
            }
        }
        writeln!(out, "  {id:<18} {title}")?;
    }
    Ok(())
}

fn select(known: &[Figure], names: &[String]) -> anyhow::Result<Vec<Figure>> {
    let mut wanted = Vec::new();
    for name in names {
        let prefix = format!("{name}-");
        let before = wanted.len();
        wanted.extend(
            known.iter().filter(|figure| figure.id == name || figure.id.starts_with(&prefix)).copied(),
        );
        if wanted.len() == before {
            return Err(failure::usage(format!(
                "there is no figure `{name}`: `airtcp reproduce` lists them"
            )));
        }
    }
    Ok(wanted)
}
