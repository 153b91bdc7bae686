//! One transfer: a path, a receiver, a sender, and what each of them says of it afterwards.

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
use super::workload::{Stream, Workload};

/// One transfer, as it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Transfer<'a> {
    /// A file, or a preset's name.
    pub(crate) scenario: &'a str,
    pub(crate) seed: u64,
    pub(crate) sender: &'a Sender,
    pub(crate) receiver: &'a Receiver,
    pub(crate) workload: &'a Workload,
    /// From the path's beginning until the senders start; sooner than they can be started they do not.
    pub(crate) wait: Duration,
    /// A transfer that takes longer is ended, and has failed.
    pub(crate) limit: Duration,
    /// For everything that is kept; it exists.
    pub(crate) directory: &'a Path,
    pub(crate) keep: Keep,
}

/// What came of a transfer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// As the experiment calls it.
    pub sender: String,
    /// The sender's. `None`: it is the kernel's own, or the file is older than this field.
    #[serde(default)]
    pub profile: Option<String>,
    /// As it is typed.
    pub receiver: String,
    /// Of the path.
    pub seed: u64,
    /// Why it failed. `None`: every octet arrived and nothing else.
    pub failure: Option<String>,
    /// Why it is the machine's doing and not the path's: it counts for nothing. `None`: it is valid.
    #[serde(default)]
    pub spoiled: Option<String>,
    /// Why it was made again, as often as it was: the machine had spoiled it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_again: Vec<String>,
    /// Octets that were acknowledged, of all of the sender's connections.
    pub bytes: u64,
    /// Goodput from the first SYN to the ACK for the last octet, or in the time that its connections had (`capture` has the
    /// seconds, `connections` the octets); 0 if nothing was acknowledged.
    pub kbit_per_s: f64,
    /// What the sender counted, for all of its connections. `None`: another one of the kernel's senders shared its
    /// counters, or they could not be read.
    pub repair: Option<Repair>,
    /// What the capture on the sender's side shows, of all of its connections.
    pub capture: Findings,
    /// SHA-256 of what was sent, if the sender got as far as to say it: of the first connection.
    pub sent: Option<String>,
    /// What the receiver got, if it got as far as to say it: of the first connection.
    pub received: Option<Received>,
    /// Of several connections.
    #[serde(default)]
    pub together: Together,
    /// Each connection; those of the tested sender and those that compete with it. Empty: it failed before they were
    /// read, or the file is older than this field.
    #[serde(default)]
    pub connections: Vec<Connection>,
    /// By how much the counters of both namespaces have grown, by side (`fixed`, `mobile`) and nstat's names.
    #[serde(default)]
    pub counters: BTreeMap<String, Counters>,
}

impl Outcome {
    /// It says something about its sender: every octet arrived and nothing else, and the machine has not spoiled it.
    pub fn counts(&self) -> bool {
        self.failure.is_none() && self.spoiled.is_none()
    }

    /// Its goodput, if it has any, is that of the time that it had.
    pub(crate) fn is_in_time(&self) -> bool {
        self.connections.iter().all(|connection| connection.bytes_in_time.is_some())
    }

    /// What fails is never put down to the machine.
    fn has_failed(&mut self, why: String) {
        (self.failure, self.spoiled) = (Some(why), None);
    }
}

/// So often a transfer is made that the machine spoils; then it is left as it is, and counts for nothing.
const ATTEMPTS: usize = 3;

/// Makes the transfer in a directory of its own, again and again if the machine spoils it.
pub(crate) fn run_until_valid(tools: &Tools, plan: &Transfer<'_>) -> Result<Outcome, LabError> {
    let mut made_again = Vec::new();
    loop {
        make_anew(plan.directory)?;
        let outcome = match run(tools, plan) {
            Err(error @ LabError::Full { .. }) => {
                // What it left is of no use, and others need the room.
                let _ = fs::remove_dir_all(plan.directory);
                return Err(error);
            }
            outcome => outcome?,
        };
        match &outcome.spoiled {
            // What fails is never put down to the machine.
            Some(why) if outcome.failure.is_none() && made_again.len() + 1 < ATTEMPTS => {
                made_again.push(why.clone())
            }
            _ => return Ok(Outcome { made_again, ..outcome }),
        }
    }
}

/// What was there before, of a lab that was interrupted say, is removed.
fn make_anew(directory: &Path) -> Result<(), LabError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(LabError::file(directory)(error));
        }
        _ => {}
    }
    fs::create_dir(directory).map_err(LabError::file(directory))
}

/// A transfer that fails has an outcome that says so; an error is what would make the next one fail too.
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
        // It would fail every further transfer, and says nothing about this one.
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
    // Whatever came of it: the capture is complete only when the link has ended.
    let finished = testbed.finish();
    let annotated = if finished.is_ok() { annotate(directory, &streams) } else { Ok(()) };
    let received = ended?;
    finished?;
    annotated?;
    outcome.read(directory, &streams, plan.workload.time(), received)?;
    outcome.spoiled = validity::spoiled(plan, &streams, outcome, began);
    for (stream, connection) in streams.iter().zip(&mut outcome.connections) {
        check(plan, stream, connection)?;
    }
    Ok(())
}

impl Transfer<'_> {
    /// For errors, where there are several connections.
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
    fn what_fails_is_never_put_down_to_the_machine() {
        let mut outcome = Outcome { spoiled: Some("late".to_owned()), ..Outcome::default() };
        assert!(!outcome.counts());
        outcome.has_failed("not the same octets".to_owned());
        assert_eq!(
            (outcome.failure.as_deref(), outcome.spoiled.as_deref()),
            (Some("not the same octets"), None)
        );
        assert!(!outcome.counts() && Outcome::default().counts());
    }
}
