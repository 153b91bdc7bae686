//! The plan of one transfer.

use std::path::Path;
use std::time::Duration;

use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::testbed::ExtraFiles;
use crate::workload::{Stream, Workload};

/// The plan of one transfer.
#[derive(Clone, Debug)]
pub(crate) struct Transfer<'a> {
    /// A file, or the name of a preset.
    pub(crate) scenario: &'a str,
    pub(crate) seed: u64,
    pub(crate) sender: &'a Sender,
    pub(crate) receiver: &'a Receiver,
    pub(crate) workload: &'a Workload,
    /// Time from the start of the path to the start of the senders. They start later if they are not ready by
    /// then.
    pub(crate) wait: Duration,
    /// Time limit. A transfer that takes longer is stopped and has failed.
    pub(crate) limit: Duration,
    /// The directory for all files; it exists.
    pub(crate) directory: &'a Path,
    pub(crate) keep: ExtraFiles,
}

impl Transfer<'_> {
    /// The prefix that identifies the connection in errors. Empty if there is only one.
    pub(super) fn prefix(&self, stream: &Stream<'_>) -> String {
        match self.workload.streams(self.sender).len() {
            1 => String::new(),
            _ => format!("{stream}: "),
        }
    }
}
