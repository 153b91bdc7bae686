//! Runs one transfer: a path, a receiver and a sender, and the evaluation of their files.

mod programs;
mod reading;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use programs::send;
pub(crate) use reading::end_of;
use reading::{annotate, check};
use serde::{Deserialize, Serialize};

use super::LabError;
use super::agent::Received;
use super::capture::Findings;
use super::connection::{Connection, Together};
use super::counters::Counters;
use super::disk;
use super::receiver::Receiver;
use super::sender::{Repair, Sender};
use super::testbed::{Keep, Link, Testbed, Tools};
use super::validity::{self, Clocks};
use super::workload::{Role, Stream, Workload};

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
    pub(crate) keep: Keep,
}

/// The result of a transfer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The name of the sender in the experiment.
    pub sender: String,
    /// The profile. `None` for a kernel sender, or if the file is older than this field.
    #[serde(default)]
    pub profile: Option<String>,
    /// The name of the receiver on the command line.
    pub receiver: String,
    /// The seed of the path.
    pub seed: u64,
    /// The reason for a failure. `None` if exactly the sent bytes arrived.
    pub failure: Option<String>,
    /// The reason why the transfer is invalid: the machine disturbed it. `None` if it is valid.
    #[serde(default)]
    pub invalid: Option<String>,
    /// The reason for each repetition: the machine disturbed the earlier attempts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<String>,
    /// Acknowledged bytes of all connections of the sender.
    pub bytes: u64,
    /// Goodput from the first SYN to the ACK for the last byte, or within the time limit (`capture` has the
    /// seconds, `connections` the bytes); 0 if no data was acknowledged.
    pub kbit_per_s: f64,
    /// The sender's own counts for all its connections. `None` if another kernel sender shared the counters,
    /// or if they could not be read.
    pub repair: Option<Repair>,
    /// Findings from the capture on the sender's side, for all its connections.
    pub capture: Findings,
    /// SHA-256 of the data sent on the first connection, if the sender reported it.
    pub sent: Option<String>,
    /// The data received on the first connection, if the receiver reported it.
    pub received: Option<Received>,
    /// The interaction of several connections.
    #[serde(default)]
    pub together: Together,
    /// All connections of the tested sender and of the competitors. Empty if the transfer failed before they
    /// were read, or if the file is older than this field.
    #[serde(default)]
    pub connections: Vec<Connection>,
    /// The increase of the counters in both namespaces, by side (`fixed`, `mobile`) and nstat's name.
    #[serde(default)]
    pub counters: BTreeMap<String, Counters>,
}

impl Outcome {
    /// Returns true if the result counts: exactly the sent bytes arrived, and the transfer is valid.
    pub fn counts(&self) -> bool {
        self.failure.is_none() && self.invalid.is_none()
    }

    /// The notices of all connections, each once. Those of a competitor begin with its name.
    pub(crate) fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        for Connection { role, sender, notices: own, .. } in &self.connections {
            for notice in own {
                let notice = match role {
                    Role::Tested => notice.clone(),
                    Role::Competitor => format!("competitor {sender}: {notice}"),
                };
                if !notices.contains(&notice) {
                    notices.push(notice);
                }
            }
        }
        notices
    }

    /// Returns true if the goodput of every connection refers to its time limit.
    pub(crate) fn is_in_time(&self) -> bool {
        self.connections.iter().all(|connection| connection.bytes_in_time.is_some())
    }

    /// Marks the transfer as failed. A failure is never attributed to the machine.
    fn has_failed(&mut self, why: String) {
        (self.failure, self.invalid) = (Some(why), None);
    }
}

/// Maximum number of attempts for a transfer that the machine disturbs. After that it stays invalid.
const ATTEMPTS: usize = 3;

/// Runs the transfer in its own directory, and repeats it if it is invalid.
pub(crate) fn run_until_valid(tools: &Tools, plan: &Transfer<'_>) -> Result<Outcome, LabError> {
    let mut repeated = Vec::new();
    loop {
        make_anew(plan.directory)?;
        let outcome = match run(tools, plan) {
            Err(error @ LabError::Full { .. }) => {
                // The remaining files are useless, and other transfers need the space.
                let _ = fs::remove_dir_all(plan.directory);
                return Err(error);
            }
            outcome => outcome?,
        };
        match &outcome.invalid {
            // A failure is never attributed to the machine.
            Some(why) if outcome.failure.is_none() && repeated.len() + 1 < ATTEMPTS => {
                repeated.push(why.clone())
            }
            _ => return Ok(Outcome { repeated, ..outcome }),
        }
    }
}

/// Creates an empty directory, and removes an older one, such as the remains of an interrupted lab.
fn make_anew(directory: &Path) -> Result<(), LabError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(LabError::file(directory)(error));
        }
        _ => {}
    }
    fs::create_dir(directory).map_err(LabError::file(directory))
}

/// Runs a transfer. If it fails, the outcome contains the reason. An error means that the next transfer would
/// fail as well.
pub(crate) fn run(tools: &Tools, plan: &Transfer<'_>) -> Result<Outcome, LabError> {
    let mut outcome = Outcome {
        sender: plan.sender.name.clone(),
        profile: plan.sender.profile(),
        receiver: plan.receiver.name().to_owned(),
        seed: plan.seed,
        ..Outcome::default()
    };
    match watch(tools, plan, &mut outcome) {
        Ok(()) => {}
        // A full disk would fail every further transfer, and does not depend on this one.
        Err(LabError::Transfer(why)) if disk::is_full(plan.directory, &why) => {
            return Err(LabError::Full { directory: plan.directory.to_owned() });
        }
        Err(LabError::Transfer(why)) => outcome.has_failed(why),
        Err(error) => return Err(error),
    }
    Ok(outcome)
}

fn watch(tools: &Tools, plan: &Transfer<'_>, outcome: &mut Outcome) -> Result<(), LabError> {
    let &Transfer { scenario, seed, directory, keep, .. } = plan;
    let streams = plan.workload.streams(plan.sender);
    let began = Clocks::now();
    let mut testbed = Testbed::start(tools, &Link { scenario, seed, directory, keep })?;
    let ended = send(tools, plan, &streams, &mut testbed, &mut outcome.counters)
        .map_err(|error| testbed.reason(error));
    // Finish in any case: the capture is complete only when the path has ended.
    let finished = testbed.finish();
    let annotated = if finished.is_ok() { annotate(directory, &streams) } else { Ok(()) };
    let received = ended?;
    finished?;
    annotated?;
    outcome.read(directory, &streams, plan.workload.time(), received)?;
    outcome.invalid = validity::disturbance(plan, &streams, outcome, began);
    for (stream, connection) in streams.iter().zip(&mut outcome.connections) {
        check(plan, stream, connection)?;
    }
    Ok(())
}

impl Transfer<'_> {
    /// The prefix that identifies the connection in errors. Empty if there is only one.
    fn which(&self, stream: &Stream<'_>) -> String {
        match self.workload.streams(self.sender).len() {
            1 => String::new(),
            _ => format!("{stream}: "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_clears_invalid_reason() {
        let mut outcome = Outcome { invalid: Some("late".to_owned()), ..Outcome::default() };
        assert!(!outcome.counts());
        outcome.has_failed("not the same octets".to_owned());
        assert_eq!(
            (outcome.failure.as_deref(), outcome.invalid.as_deref()),
            (Some("not the same octets"), None)
        );
        assert!(!outcome.counts() && Outcome::default().counts());
    }
}
