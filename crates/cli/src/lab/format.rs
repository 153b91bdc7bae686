//! Output formats of a lab's table.

use airtcp_lab::compare;
use airtcp_lab::experiment::Report;
use clap::Args;
use serde_json::json;

use crate::shared::console;

#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct OutputFormat {
    /// Print JSON instead of text: one object
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Output comma-separated values (CSV) instead of the table: the same columns, with their units and more digits
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    csv: bool,
    /// Show every column of the tables, however wide they get
    #[arg(long, conflicts_with_all = ["json", "csv"], help_heading = "Output")]
    wide: bool,
}

impl OutputFormat {
    /// Returns true if the output is text for a user, so that more text can follow it.
    pub(super) fn is_text(self) -> bool {
        !self.json && !self.csv
    }

    pub(super) fn render(self, report: &Report) -> String {
        if self.csv {
            return report.csv();
        }
        let compared = &report.in_virtual_time;
        if self.json {
            let mut report = report.clone();
            let compared = std::mem::take(&mut report.in_virtual_time);
            return json!({ "report": report, "virtual": compared }).to_string() + "\n";
        }
        let width = console::width(self.wide);
        match compared.is_empty() {
            true => report.table(width),
            false => format!("{}\n{}", report.table(width), compare::table(compared, width)),
        }
    }
}
