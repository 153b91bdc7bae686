//! `airtcp lab show`: prints the table of an earlier lab.

use std::io::Write;
use std::path::PathBuf;

use airtcp_lab::experiment::Report;
use airtcp_sim::sweep::setup::quoted;
use clap::Args;

use super::failed;
use super::format::OutputFormat;
use crate::shared::console;

/// Show the table of an earlier lab again: as text, JSON or CSV
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Show {
    /// Output directory of `airtcp lab run`
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print every transfer instead of the table, as comma-separated values (CSV)
    #[arg(long, conflicts_with_all = ["json", "csv", "wide"], help_heading = "Output")]
    transfers: bool,
    #[command(flatten)]
    format: OutputFormat,
}

const EXAMPLES: &str = "\
Examples:
  airtcp lab show lab/003-leo
  airtcp lab show lab/003-leo --csv > leo.csv
  airtcp lab show lab/003-leo --transfers > transfers.csv
  airtcp lab show lab/003-leo --json |
    jq '.report.summary[] | {sender, kbit_per_s}'

For a lab that is running, or that was interrupted, the table has the complete
rounds. `airtcp report` makes a page with graphs of the same directory.";

impl Show {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let report = Report::read(&self.directory).map_err(failed)?;
        let mut out = console::stdout();
        if self.transfers {
            write!(out, "{}", report.transfers_csv())?;
            return Ok(());
        }
        write!(out, "{}", self.format.render(&report))?;
        if self.format.is_text() {
            let directory = quoted(&self.directory.display().to_string());
            write!(
                out,
                "\nrounds        {}\ncommand       {}\nversions      {}, {}, {}\nwith graphs   airtcp report {directory}\n",
                report.rounds,
                report.command,
                report.versions.airtcp,
                report.versions.airlink,
                report.versions.kernel,
            )?;
        }
        Ok(())
    }
}
