//! The results of an experiment: `lab.json` and its tables.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use airtcp_numbers::verdict::{MARGIN, is_test_point};
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::compare::result::SenderComparison;
use crate::summary::{self, Row};
use crate::testbed::Tools;
use crate::transfer::Outcome;
use crate::workload::WorkloadRecord;
use airtcp_numbers::table::wrapped_lines;

/// All results: `lab.json` in the directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The version of this format: 1.
    pub schema_version: u32,
    /// The command line that repeats the experiment.
    pub command: String,
    /// The versions of the programs.
    pub versions: Versions,
    /// The scenario's name.
    pub scenario: String,
    /// The receiver's name.
    pub receiver: String,
    /// Bytes per connection. `None` if connections are limited by time.
    pub bytes: Option<u64>,
    /// The other properties of the transfers.
    #[serde(default)]
    pub asked: WorkloadRecord,
    /// Number of complete rounds, which is the number of transfers per sender.
    pub rounds: u32,
    /// The name of the reference. Empty if the file is older than this field.
    #[serde(default)]
    pub against: String,
    /// Differences from the reference up to this fraction of its mean count as no difference.
    #[serde(default = "usual_margin")]
    pub margin: f64,
    /// One row per sender.
    pub summary: Vec<Row>,
    /// The differences between recipes and the kernel's senders. `None` without kernel senders.
    #[serde(default)]
    pub kernel_differences: Option<String>,
    /// All transfers, round by round, in the order of the senders.
    pub transfers: Vec<Outcome>,
    /// The comparison of recipes with virtual time. Empty if it was not requested, or if the file is older
    /// than this field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_virtual_time: Vec<SenderComparison>,
}

fn usual_margin() -> f64 {
    MARGIN
}

/// The names and versions of the programs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Versions {
    /// This program.
    pub airtcp: String,
    /// Output of `airlink --version`; empty if it fails.
    pub airlink: String,
    /// `Linux` and its release.
    pub kernel: String,
    /// The text from [`Receiver::version`](crate::receiver::Receiver::version).
    pub receiver: String,
}

impl Versions {
    pub(crate) fn of(tools: &Tools, receiver: &str) -> Self {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let airlink = Command::new(&tools.airlink).arg("--version").output();
        let airlink = airlink.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        Self {
            airtcp: concat!("airtcp ", env!("CARGO_PKG_VERSION")).to_owned(),
            airlink: airlink.unwrap_or_default(),
            kernel: format!("Linux {}", kernel.trim()),
            receiver: receiver.to_owned(),
        }
    }
}

impl Report {
    /// Formats the results for a terminal of this width. `None` shows all columns and does not wrap lines.
    pub fn table(&self, width: Option<usize>) -> String {
        let mut lines = summary::verdicts(&self.summary, &self.against);
        lines += &summary::never_together(&self.summary, &self.asked);
        lines.extend(summary::notices(&self.summary).into_iter().map(|line| line + "\n"));
        let others = [summary::invalid(&self.transfers), self.kernel_differences.clone()];
        lines.extend(others.into_iter().flatten().map(|line| line + "\n"));
        lines += &format!("each transfer: {}\n", self.describe_transfer());
        summary::table(&self.summary, width) + &wrapped_lines(&lines, width)
    }

    /// Formats the results for a spreadsheet: comma-separated values, with headings in the first line.
    pub fn csv(&self) -> String {
        summary::csv(&self.summary)
    }

    /// Formats every transfer for a spreadsheet: one line each, with headings in the first line.
    pub fn transfers_csv(&self) -> String {
        summary::transfers_csv(self.summary.len(), &self.transfers)
    }

    /// Describes one transfer in words.
    pub fn describe_transfer(&self) -> String {
        let Self { asked, bytes, scenario, receiver, .. } = self;
        asked.describe(*bytes, &format!(" over {scenario} to {receiver}"))
    }

    /// Reads the results from a directory.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory does not belong to the lab, or if another version wrote the file.
    pub fn read(directory: &Path) -> Result<Self, LabError> {
        let path = directory.join("lab.json");
        let text = match airfiles::read_result(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let why = "no lab.json in it; give a directory that `airtcp lab run --output` made";
                return Err(LabError::Taken { directory: directory.to_owned(), why: why.to_owned() });
            }
            text => text.map_err(LabError::file(&path))?,
        };
        Self::parse(&text, &path)
    }

    /// Parses the content of the file at `path`.
    pub(super) fn parse(text: &str, path: &Path) -> Result<Self, LabError> {
        serde_json::from_str(text).map_err(|error| {
            let why = format!("{error}; if another version wrote it, repeat the experiment");
            LabError::File { path: path.to_owned(), source: io::Error::other(why) }
        })
    }

    /// Returns true if no comparison needs more rounds for a verdict.
    pub(super) fn is_decided(&self) -> bool {
        let compared = || self.summary.iter().filter_map(|row| row.against);
        is_test_point(self.rounds as usize) && compared().all(|against| against.is_decided(self.margin))
    }

    /// Failed transfers, and the reasons.
    pub fn failures(&self) -> impl Iterator<Item = (&Outcome, &str)> {
        self.transfers.iter().filter_map(|outcome| Some((outcome, outcome.failure.as_deref()?)))
    }
}
