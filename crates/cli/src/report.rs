//! `airtcp report`: what `airtcp lab run` has kept, as one HTML file.

use std::io::Write;
use std::path::PathBuf;

use airtcp_lab::page::{self, RunDirError};
use airtcp_numbers::units;
use anyhow::Context;
use clap::Args;

use crate::shared::{failure, say};

/// Write one HTML file with tables of the runs and graphs to zoom into; it fetches nothing from the network.
///
/// For each transfer: segments and ACKs over time, retransmissions by their cause, losses, the sender's decisions and when
/// it was repairing a loss; its window, RTT and goodput. Point at a packet to see what it was and what was decided about it; `?` shows the keys.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Report {
    /// Directories that `airtcp lab run` or `airtcp demo` has made, or directories of single transfers in them
    #[arg(required = true, value_name = "RUNDIR")]
    directories: Vec<PathBuf>,
    /// File to write; an old one is overwritten
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  Everything that was run, with its tables
    airtcp report lab/001-wcdma-384-jitter -o jitter.html
  The scenes of a demo
    airtcp report target/demo
  Two transfers beside each other
    airtcp report lab/001-geo/01-newreno lab/001-geo/01-linux-cubic";

impl Report {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let page = page::page(&self.directories).map_err(|error| match error {
            RunDirError::NotARun(_) => failure::usage(error.to_string()),
            error => error.into(),
        })?;
        let html = page.html();
        airfiles::write(&self.output, &html)
            .with_context(|| format!("cannot write {}", self.output.display()))?;
        let size = units::show_bytes(html.len() as u64);
        let transfers = match page.runs.len() {
            1 => "1 transfer".to_owned(),
            many => format!("{many} transfers"),
        };
        writeln!(say::out(), "{}: {transfers}, {size}; open it in a browser", self.output.display())?;
        Ok(())
    }
}
