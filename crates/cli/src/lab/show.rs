//! `airtcp lab show`: the table of a lab that was run before.

use std::io::Write;
use std::path::PathBuf;

use airtcp_lab::experiment::Report;
use airtcp_lab::testbed::quoted;
use clap::Args;

use super::failed;
use super::form::Form;
use crate::shared::say;

/// Show the table of a lab again, from the lab.json that it has kept: as text, JSON or comma-separated values.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Show {
    /// The directory that `airtcp lab run --output` has made
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    form: Form,
}

const EXAMPLES: &str = "\
Examples:
  airtcp lab show lab/003-leo
  airtcp lab show lab/003-leo --csv > leo.csv
  airtcp lab show lab/003-leo --json | jq '.report.summary[] | {sender, kbit_per_s}'

A lab that is still running, or was interrupted, shows the rounds that are complete.
`airtcp report` makes a page with graphs of the same directory.";

impl Show {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let report = Report::read(&self.directory).map_err(failed)?;
        let mut out = say::out();
        write!(out, "{}", self.form.of(&report))?;
        if self.form.is_text() {
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
