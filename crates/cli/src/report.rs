//! `airtcp report`: writes the results of labs, demos and sweeps, or captures, as one HTML page.

use std::io::Write;
use std::path::{Path, PathBuf};

use airtcp_lab::page::{self, RunDirError};
use airtcp_numbers::units;
use airtcp_report::captures::{self, Bounds};
use airtcp_report::html::Page;
use airtcp_sim::sweep::setup::quoted;
use anyhow::Context;
use clap::Args;
use jiff::tz::TimeZone;

use crate::shared::{console, failure};
use crate::{analyze, sweep};

/// Write an HTML page with zoomable graphs
///
/// The page shows labs, demos or captures, or the pictures and tables of one sweep.
///
/// Each transfer has graphs of its segments and ACKs, retransmissions by cause, losses, decisions, recovery periods,
/// window, RTT and goodput. Point at a packet to see its details and the decisions about it; `?` lists the keys. The page
/// loads nothing from the network.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Report {
    /// Output directories of `airtcp lab run` or `airtcp demo` (or their lab.json), single transfers in them, captures, or the results directory of one sweep
    #[arg(required = true, value_name = "RUNDIR|FILE")]
    sources: Vec<PathBuf>,
    /// Only these packets, as a tcpdump filter (captures only)
    #[arg(long, short, value_name = "FILTER")]
    filter: Option<String>,
    /// Show at most this many connections (per capture, those with the most data) in graphs
    #[arg(long, visible_alias = "top", value_name = "N", default_value_t = Bounds::default().drawn)]
    most: usize,
    /// File to write; an existing file is overwritten
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  A lab:
    airtcp report lab/001-wcdma-384-jitter -o jitter.html
  A demo:
    airtcp report target/demo
  A capture, with graphs of the connections with the most data:
    airtcp report eth0.pcap -f 'host 10.0.0.1'
  A sweep:
    airtcp report loss.results -o loss.html
  Two transfers next to each other:
    airtcp report lab/001-geo/01-newreno lab/001-geo/01-linux-cubic";

impl Report {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let (captures, directories): (Vec<_>, Vec<_>) =
            self.sources.iter().map(|source| experiment_of(source)).partition(|source| source.is_file());
        if let Some(sweep) = directories.iter().find(|directory| is_sweep(directory)) {
            if self.sources.len() > 1 {
                let sweep = quoted(&sweep.display().to_string());
                return Err(failure::usage(format!(
                    "{sweep} has the results of a sweep, which need a page of their own: use `airtcp report {sweep}`"
                )));
            }
            let (html, points) = sweep::page(sweep)?;
            return self.write(&html, points, "point");
        }
        let mut page = match directories[..] {
            [] => Page { title: "airtcp: connections".to_owned(), ..Page::default() },
            _ => page::page(&directories).map_err(|error| match error {
                RunDirError::NotARun(_) => failure::usage(error.to_string()),
                error => error.into(),
            })?,
        };
        let zone = TimeZone::system();
        let bounds = Bounds { drawn: self.most, ..Bounds::default() };
        for capture in &captures {
            let when = |nanos: i64| analyze::moment::long(nanos, &zone);
            captures::add(&mut page, capture, self.filter.as_deref(), bounds, &when)
                .map_err(analyze::failed)?;
        }
        let noun = if directories.is_empty() { "graph" } else { "transfer" };
        self.write(&page.html(), page.runs.len(), noun)
    }

    /// Writes the page, and prints how many of these items it has.
    fn write(&self, html: &str, count: usize, noun: &str) -> anyhow::Result<()> {
        airfiles::write(&self.output, html)
            .with_context(|| format!("cannot write {}", self.output.display()))?;
        let size = units::show_bytes(html.len() as u64);
        let s = if count == 1 { "" } else { "s" };
        writeln!(
            console::stdout(),
            "{}: {count} {noun}{s}, {size}; open it in a browser",
            self.output.display()
        )?;
        Ok(())
    }
}

/// Replaces a results file of a lab or a scene with its directory, which has the captures.
fn experiment_of(source: &Path) -> PathBuf {
    let is_results = source.file_name().is_some_and(|name| name == "lab.json" || name == "scene.json");
    match source.parent().filter(|_| is_results) {
        Some(directory) => Path::new(".").join(directory),
        None => source.to_owned(),
    }
}

fn is_sweep(directory: &Path) -> bool {
    directory.join("manifest.json").is_file() && !directory.join("lab.json").is_file()
}
