//! What is known of an experiment: `lab.json`, and the forms in which people and programs see it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use airtcp_numbers::verdict::is_look;
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::compare::Compared;
use crate::summary::{self, Row};
use crate::testbed::Tools;
use crate::transfer::Outcome;
use crate::workload::Asked;
use airtcp_numbers::table::wrapped_lines;

/// Everything that is known afterwards: `lab.json` in the directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Of this format: 1.
    pub schema_version: u32,
    /// The command line that repeats the experiment.
    pub command: String,
    /// What it was run with.
    pub versions: Versions,
    /// The scenario's name.
    pub scenario: String,
    /// The receiver's name.
    pub receiver: String,
    /// Octets of each connection. `None`: they go by time.
    pub bytes: Option<u64>,
    /// What else was asked for.
    #[serde(default)]
    pub asked: Asked,
    /// Transfers of each sender: the rounds that are complete.
    pub rounds: u32,
    /// The sender that the others are compared with. Empty: the file is older than this field.
    #[serde(default)]
    pub against: String,
    /// A row for each sender.
    pub summary: Vec<Row>,
    /// What the kernel's senders have and ours have not. `None`: the kernel sends nothing here.
    #[serde(default)]
    pub unlike_the_kernel: Option<String>,
    /// Round after round, each in the order of the senders.
    pub transfers: Vec<Outcome>,
    /// The recipes in virtual time, beside what they did here. Empty: nobody asked for it, or the file is older than this
    /// field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_virtual_time: Vec<Compared>,
}

/// The programs that took part, each with its name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Versions {
    /// This program.
    pub airtcp: String,
    /// As `airlink --version` says it; empty if it does not.
    pub airlink: String,
    /// `Linux` and its release.
    pub kernel: String,
    /// As [`Receiver::version`](crate::receiver::Receiver::version) says it.
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
    /// For a terminal of this width, or with all columns and lines as long as they are.
    pub fn table(&self, width: Option<usize>) -> String {
        let mut lines = summary::verdicts(&self.summary, &self.against);
        lines += &summary::never_together(&self.summary, &self.asked);
        let others = [summary::spoiled(&self.transfers), self.unlike_the_kernel.clone()];
        lines.extend(others.into_iter().flatten().map(|line| line + "\n"));
        lines += &format!("each transfer: {}\n", self.transfer_in_words());
        summary::table(&self.summary, width) + &wrapped_lines(&lines, width)
    }

    /// The same for a spreadsheet: comma-separated values, with a heading in the first line.
    pub fn csv(&self) -> String {
        summary::csv(&self.summary)
    }

    /// What one transfer was, in words.
    pub fn transfer_in_words(&self) -> String {
        let Self { asked, bytes, scenario, receiver, .. } = self;
        asked.in_words(*bytes, &format!(" over {scenario} to {receiver}"))
    }

    /// What was kept in this directory.
    ///
    /// # Errors
    /// If it is no lab's, or another version's.
    pub fn read(directory: &Path) -> Result<Self, LabError> {
        let path = directory.join("lab.json");
        let text = match airfiles::read_kept(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let why = "no lab.json in it; give a directory that `airtcp lab run --output` made";
                return Err(LabError::Taken { directory: directory.to_owned(), why: why.to_owned() });
            }
            text => text.map_err(LabError::file(&path))?,
        };
        Self::parse(&text, &path)
    }

    /// `path`: where the text stands.
    pub(super) fn parse(text: &str, path: &Path) -> Result<Self, LabError> {
        serde_json::from_str(text).map_err(|error| {
            let why = format!("{error}; if another version wrote it, repeat the experiment");
            LabError::File { path: path.to_owned(), source: io::Error::other(why) }
        })
    }

    /// No more rounds are needed to tell the senders apart, or to say that they are alike.
    pub(super) fn is_decided(&self) -> bool {
        let compared = || self.summary.iter().filter_map(|row| row.against);
        is_look(self.rounds as usize) && compared().all(|against| against.is_decided())
    }

    /// Transfers that failed, and why.
    pub fn failures(&self) -> impl Iterator<Item = (&Outcome, &str)> {
        self.transfers.iter().filter_map(|outcome| Some((outcome, outcome.failure.as_deref()?)))
    }
}
