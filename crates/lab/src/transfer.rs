//! One transfer: a path, a receiver, a sender, and what each of them says of it afterwards.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use airtcp_analyze::capture::Capture;
use airtcp_analyze::comments::Comments;
use airtcp_analyze::connections::Traces;
use airtcp_analyze::decisions::Log;
use airtcp_analyze::survey;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::LabError;
use super::agent::Received;
use super::capture::{self, Findings};
use super::receiver::{PORT, Receiver};
use super::sender::{Repair, Sender};
use super::testbed::{Keep, Link, Running, Testbed, Tools};
use super::validity;

/// One transfer, as it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Transfer<'a> {
    /// A file, or a preset's name.
    pub(crate) scenario: &'a str,
    pub(crate) seed: u64,
    pub(crate) sender: &'a Sender,
    pub(crate) receiver: &'a Receiver,
    pub(crate) bytes: u64,
    /// A transfer that takes longer is ended, and has failed.
    pub(crate) limit: Duration,
    /// For everything that is kept; it exists.
    pub(crate) directory: &'a Path,
    pub(crate) keep: Keep,
}

/// What came of a transfer.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// Octets that were acknowledged.
    pub bytes: u64,
    /// Goodput from the first SYN to the ACK for the last octet; 0 if nothing was acknowledged.
    pub kbit_per_s: f64,
    /// What the sender counted.
    pub repair: Repair,
    /// What the capture on the sender's side shows.
    pub capture: Findings,
    /// SHA-256 of what was sent, if the sender got as far as to say it.
    pub sent: Option<String>,
    /// What the receiver got, if it got as far as to say it.
    pub received: Option<Received>,
}

/// How long the receiver may take to notice the end.
const GRACE: Duration = Duration::from_secs(10);

/// So often a transfer is made that the machine spoils; then it is left as it is, and counts for nothing.
const ATTEMPTS: usize = 3;

/// Makes the transfer in a directory of its own, again and again if the machine spoils it.
pub(crate) fn run_until_valid(tools: &Tools, plan: &Transfer<'_>) -> Result<Outcome, LabError> {
    let mut made_again = Vec::new();
    loop {
        make_anew(plan.directory)?;
        let outcome = run(tools, plan)?;
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
        failure: None,
        spoiled: None,
        made_again: Vec::new(),
        bytes: 0,
        kbit_per_s: 0.0,
        repair: Repair::default(),
        capture: Findings::default(),
        sent: None,
        received: None,
    };
    match watch(tools, plan, &mut outcome) {
        Ok(()) => {}
        Err(LabError::Transfer(why)) => outcome.failure = Some(why),
        Err(error) => return Err(error),
    }
    Ok(outcome)
}

fn watch(tools: &Tools, plan: &Transfer<'_>, outcome: &mut Outcome) -> Result<(), LabError> {
    let &Transfer { scenario, seed, directory, keep, .. } = plan;
    let mut testbed = Testbed::start(tools, &Link { scenario, seed, directory, keep })?;
    let ended = send(tools, plan, &mut testbed).map_err(|error| testbed.reason(error));
    // Whatever came of it: the capture is complete only when the link has ended.
    let finished = testbed.finish();
    let annotated = if finished.is_ok() { annotate(directory) } else { Ok(()) };
    let received = ended?;
    finished?;
    annotated?;

    let end = end_of(&directory.join("sender.jsonl"))?;
    outcome.repair = plan.sender.repair(&end);
    outcome.sent = text(&end, "/sha256");
    outcome.received = received.or_else(|| received_by_the_sink(directory));
    outcome.capture = capture::read(&directory.join("fixed.pcap"), PORT)?;
    outcome.spoiled = validity::spoiled(directory, plan.receiver, &outcome.capture);
    outcome.bytes = outcome.capture.acked_bytes;
    if outcome.capture.seconds > 0.0 {
        outcome.kbit_per_s = outcome.bytes as f64 * 8.0 / outcome.capture.seconds / 1e3;
    }
    let Some(received) = &outcome.received else {
        return Err(LabError::Transfer("the receiver does not say what it received".to_owned()));
    };
    if received.bytes != plan.bytes || Some(&received.sha256) != outcome.sent.as_ref() {
        return Err(LabError::Transfer(format!(
            "the octets are not the same: {} of {} arrived, SHA-256 {} instead of {}",
            received.bytes,
            plan.bytes,
            received.sha256,
            outcome.sent.as_deref().unwrap_or("(unknown)"),
        )));
    }
    Ok(())
}

/// The transfer itself. What the receiver got, if it is one that the agent reads.
fn send(tools: &Tools, plan: &Transfer<'_>, testbed: &mut Testbed) -> Result<Option<Received>, LabError> {
    plan.sender.prepare(&mut testbed.fixed)?;
    let (receiver, addr) = plan.receiver.start(tools, testbed, plan.directory)?;
    let sender = plan.sender.start(tools, &mut testbed.fixed, addr, plan.bytes, plan.directory)?;
    until_both_have_ended(plan, testbed, sender, receiver)
}

/// Writes the sender's capture again, for Wireshark, with its decisions as comments on the packets. The kernel's own
/// senders have no log: nothing is written.
fn annotate(directory: &Path) -> Result<(), LabError> {
    let [from, log, to] =
        ["fixed.pcap", "decisions.jsonl", "annotated.pcapng"].map(|name| directory.join(name));
    let Ok(text) = fs::read_to_string(log) else { return Ok(()) };
    let Ok(log) = Log::read(&text) else { return Ok(()) };
    let open = || Capture::open(&from, None).map_err(|error| LabError::Transfer(error.to_string()));
    let mut comments = Comments::new(Some(log));
    survey::read(&mut open()?, Traces::All, &mut |finished| comments.take(&finished.ended));
    comments.add_decisions();
    comments.save(&mut open()?, &to).map_err(LabError::file(&to))
}

fn until_both_have_ended(
    plan: &Transfer<'_>,
    testbed: &mut Testbed,
    sender: Running,
    receiver: Running,
) -> Result<Option<Received>, LabError> {
    let until = Instant::now() + plan.limit;
    let mut received = None;
    let mut running = vec![sender, receiver];
    let mut until_now = until;
    while !running.is_empty() {
        let Some(program) = testbed.wait_for_any(&running, until_now)? else {
            return Err(LabError::Transfer(match running.as_slice() {
                [_] if running[0] == receiver => "the receiver does not notice the end".to_owned(),
                [_] => "the sender does not notice that the receiver has ended".to_owned(),
                _ => format!("not done after {} s", plan.limit.as_secs()),
            }));
        };
        running.retain(|other| *other != program);
        until_now = until.min(Instant::now() + GRACE);
        let (name, log) =
            if program == sender { ("sender", "sender.log") } else { ("receiver", "receiver.log") };
        let ended = testbed.side(program.side).ended(program);
        match ended {
            Some(ended) if ended.code == 0 => received = received.or(ended.received),
            Some(ended) => {
                let text = fs::read_to_string(plan.directory.join(log)).unwrap_or_default();
                let why =
                    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
                return Err(LabError::Transfer(format!("the {name} ended with code {}: {why}", ended.code)));
            }
            None => return Err(LabError::Transfer(format!("nothing is known of the {name}'s end"))),
        }
    }
    Ok(received)
}

/// The data of the last event `end` in a file of JSON lines.
pub(crate) fn end_of(path: &Path) -> Result<Value, LabError> {
    let text = fs::read_to_string(path).map_err(LabError::file(path))?;
    let events = text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut ends = events.filter(|event| event["event"] == "end");
    let end = ends.next().map(|event| event["data"].clone());
    end.ok_or_else(|| LabError::Transfer(format!("{} says nothing of an end", path.display())))
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer)?.as_str().map(str::to_owned)
}

fn received_by_the_sink(directory: &Path) -> Option<Received> {
    let end = end_of(&directory.join("receiver.jsonl")).ok()?;
    Some(Received { bytes: end["bytes"].as_u64()?, sha256: text(&end, "/sha256")? })
}
