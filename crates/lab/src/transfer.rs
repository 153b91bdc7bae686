//! One transfer: a path, a receiver, a sender, and what each of them says of it afterwards.

use std::collections::BTreeMap;
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
use super::capture::Findings;
use super::connection::{self, Connection, Together, kbit_per_s};
use super::counters::{Counters, growth};
use super::difference;
use super::disk;
use super::receiver::Receiver;
use super::sender::{Kind, Repair, Sender};
use super::testbed::{Keep, Link, PathSide, Running, Testbed, Tools};
use super::validity;
use super::workload::{Role, Stream, Workload};

/// One transfer, as it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Transfer<'a> {
    /// A file, or a preset's name.
    pub(crate) scenario: &'a str,
    pub(crate) seed: u64,
    pub(crate) sender: &'a Sender,
    pub(crate) receiver: &'a Receiver,
    pub(crate) workload: &'a Workload,
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
    /// Goodput from the first SYN to the ACK for the last octet; 0 if nothing was acknowledged.
    pub kbit_per_s: f64,
    /// What the sender counted, for all of its connections. `None`: another one of the kernel's senders shared its
    /// counters.
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

/// How long the receiver may take to notice the end.
const GRACE: Duration = Duration::from_secs(10);

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
        Err(LabError::Transfer(why)) => outcome.failure = Some(why),
        Err(error) => return Err(error),
    }
    Ok(outcome)
}

fn watch(tools: &Tools, plan: &Transfer<'_>, outcome: &mut Outcome) -> Result<(), LabError> {
    let &Transfer { scenario, seed, directory, keep, .. } = plan;
    let streams = plan.workload.streams(plan.sender);
    let mut testbed = Testbed::start(tools, &Link { scenario, seed, directory, keep })?;
    let ended = send(tools, plan, &streams, &mut testbed, &mut outcome.counters)
        .map_err(|error| testbed.reason(error));
    // Whatever came of it: the capture is complete only when the link has ended.
    let finished = testbed.finish();
    let annotated = if finished.is_ok() { annotate(directory, &streams) } else { Ok(()) };
    let received = ended?;
    finished?;
    annotated?;
    outcome.read(directory, &streams, received)?;
    outcome.spoiled = validity::spoiled(plan, &streams, outcome);
    for (stream, connection) in streams.iter().zip(&mut outcome.connections) {
        check(plan, stream, connection)?;
    }
    Ok(())
}

impl Outcome {
    /// Takes in what the transfer has left.
    fn read(
        &mut self,
        directory: &Path,
        streams: &[Stream<'_>],
        received: Vec<Option<Received>>,
    ) -> Result<(), LabError> {
        let seen = connection::read(directory, streams)?;
        let while_all_sent = connection::time_together(&seen);
        let together: Option<Vec<_>> = while_all_sent.map(|(from, to)| {
            seen.iter().map(|one| one.acked_until(to).saturating_sub(one.acked_until(from))).collect()
        });
        for (at, stream) in streams.iter().enumerate() {
            let end = end_of(&stream.file(directory, "sender", "jsonl"))?;
            let findings = seen[at].findings.clone();
            self.connections.push(Connection {
                sender: stream.sender.name.clone(),
                role: stream.role,
                direction: stream.way,
                port: stream.port(),
                bytes: findings.acked_bytes,
                kbit_per_s: kbit_per_s(findings.acked_bytes, findings.seconds),
                bytes_together: together.as_ref().map(|octets| octets[at]),
                capture: findings,
                sent: text(&end, "/sha256"),
                received: received[at].clone().or_else(|| received_by_the_sink(directory, stream)),
                difference: None,
            });
        }
        let tested = || streams.iter().zip(&seen).filter(|(stream, _)| stream.role == Role::Tested);
        let own: Vec<_> = tested().map(|(_, seen)| seen).collect();
        let first = &self.connections[0];
        (self.sent, self.received) = (first.sent.clone(), first.received.clone());
        self.capture = Findings::of_several(own.iter().map(|seen| &seen.findings));
        self.capture.seconds = connection::seconds(own.iter().copied());
        self.bytes = self.capture.acked_bytes;
        self.kbit_per_s = kbit_per_s(self.bytes, self.capture.seconds);
        self.together = connection::together(streams, &seen, together.as_deref());
        self.repair = repair(directory, streams, &self.counters)?;
        Ok(())
    }
}

/// What the tested sender counted. `None`: another one of the kernel's senders shared its counters.
fn repair(
    directory: &Path,
    streams: &[Stream<'_>],
    counters: &BTreeMap<String, Counters>,
) -> Result<Option<Repair>, LabError> {
    let mut repair = Repair::default();
    let tested = || streams.iter().filter(|stream| stream.role == Role::Tested);
    if matches!(streams[0].sender.kind, Kind::Recipe { .. }) {
        for stream in tested() {
            repair += Repair::of_recipe(&end_of(&stream.file(directory, "sender", "jsonl"))?);
        }
        return Ok(Some(repair));
    }
    let is_kernel = |stream: &Stream<'_>| matches!(stream.sender.kind, Kind::Kernel(_));
    if streams.iter().any(|stream| stream.role == Role::Beside && is_kernel(stream)) {
        return Ok(None);
    }
    for side in [PathSide::Fixed, PathSide::Mobile] {
        if tested().any(|stream| stream.way.sender_side() == side) {
            repair += counters.get(side.name()).map(Repair::of_kernel).unwrap_or_default();
        }
    }
    Ok(Some(repair))
}

/// Whether every octet of a connection arrived and nothing else.
fn check(plan: &Transfer<'_>, stream: &Stream<'_>, connection: &mut Connection) -> Result<(), LabError> {
    let which = plan.which(stream);
    let Some(received) = &connection.received else {
        return Err(LabError::Transfer(format!("{which}the receiver does not say what it received")));
    };
    let sent = match plan.workload.octets() {
        Some(octets) => octets,
        None => {
            end_of(&stream.file(plan.directory, "sender", "jsonl"))?["bytes"].as_u64().unwrap_or_default()
        }
    };
    if received.bytes == sent && Some(&received.sha256) == connection.sent.as_ref() {
        return Ok(());
    }
    let found = difference::first(received, sent);
    connection.difference =
        found.map(|found| difference::locate(plan.directory, stream, found)).transpose()?;
    let place = connection.difference.as_ref().map(|place| format!("; {place}")).unwrap_or_default();
    Err(LabError::Transfer(format!(
        "{which}the octets are not the same: {} of {sent} arrived, SHA-256 {} instead of {}{place}",
        received.bytes,
        received.sha256,
        connection.sent.as_deref().unwrap_or("(unknown)"),
    )))
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

/// The transfer itself. What each receiver got, if it is one that the agent reads.
fn send(
    tools: &Tools,
    plan: &Transfer<'_>,
    streams: &[Stream<'_>],
    testbed: &mut Testbed,
    counters: &mut BTreeMap<String, Counters>,
) -> Result<Vec<Option<Received>>, LabError> {
    let &Transfer { receiver, directory, workload, .. } = plan;
    // Routes to senders before those routes' settings, which a receiver may change.
    for (at, stream) in streams.iter().enumerate() {
        let side = stream.way.sender_side();
        let same = |other: &Stream<'_>| other.sender.kind == stream.sender.kind && other.way == stream.way;
        if !streams[..at].iter().any(same) {
            stream.sender.prepare(testbed, side, directory)?;
        }
    }
    for way in workload.ways.each() {
        receiver.prepare(testbed, way.receiver_side(), directory)?;
    }
    let mut pairs = Vec::new();
    for stream in streams {
        pairs.push(receiver.start(tools, testbed, stream, workload.read_rate, directory)?);
    }
    let before = both_counters(testbed)?;
    let mut running = Vec::new();
    for (stream, (receiver, addr)) in streams.iter().zip(pairs) {
        let sender = stream.sender.start(tools, testbed, stream, addr, workload.amount, directory)?;
        running.push(Pair { sender, receiver });
    }
    let ended = until_all_have_ended(plan, streams, testbed, &running);
    // What a kernel counted may say why a transfer failed. A side that has gone says nothing.
    if let Ok(after) = both_counters(testbed) {
        for ((side, before), (_, after)) in before.iter().zip(&after) {
            counters.insert(side.name().to_owned(), growth(before, after));
        }
    }
    ended
}

fn both_counters(testbed: &mut Testbed) -> Result<[(PathSide, Counters); 2], LabError> {
    let mut of = |side| Ok::<_, LabError>((side, testbed.side(side).counters()?));
    Ok([of(PathSide::Fixed)?, of(PathSide::Mobile)?])
}

/// The programs of a connection.
#[derive(Clone, Copy, Debug)]
struct Pair {
    sender: Running,
    receiver: Running,
}

/// Writes the sender's capture again, for Wireshark, with its decisions as comments on the packets. The kernel's own
/// senders have no log, and a log is one connection's: where there are several, or none, nothing is written.
fn annotate(directory: &Path, streams: &[Stream<'_>]) -> Result<(), LabError> {
    let [stream] = streams else { return Ok(()) };
    let from = stream.way.sender_side().capture();
    let [from, log, to] = [from, "decisions.jsonl", "annotated.pcapng"].map(|name| directory.join(name));
    let Ok(text) = fs::read_to_string(log) else { return Ok(()) };
    let Ok(log) = Log::read(&text) else { return Ok(()) };
    let open = || Capture::open(&from, None).map_err(|error| LabError::Transfer(error.to_string()));
    let mut comments = Comments::new(Some(log));
    survey::read(&mut open()?, Traces::All, &mut |finished| comments.take(&finished.ended));
    comments.add_decisions();
    comments.save(&mut open()?, &to).map_err(LabError::file(&to))
}

fn until_all_have_ended(
    plan: &Transfer<'_>,
    streams: &[Stream<'_>],
    testbed: &mut Testbed,
    pairs: &[Pair],
) -> Result<Vec<Option<Received>>, LabError> {
    let until = Instant::now() + plan.limit;
    let mut received = vec![None; streams.len()];
    // When each of them must have ended, and whose program it is.
    let mut running: Vec<_> = pairs
        .iter()
        .enumerate()
        .flat_map(|(at, pair)| [pair.sender, pair.receiver].map(|program| (program, at, until)))
        .collect();
    while let Some(next) = running.iter().map(|(_, _, until)| *until).min() {
        let programs: Vec<_> = running.iter().map(|(program, ..)| *program).collect();
        let Some(program) = testbed.wait_for_any(&programs, next)? else {
            let late = running.iter().find(|(_, _, until)| *until == next).map_or(0, |(_, at, _)| *at);
            let of_it: Vec<_> = running.iter().filter(|(_, at, _)| *at == late).collect();
            let why = match of_it.as_slice() {
                [(program, ..)] if *program == pairs[late].receiver => {
                    "the receiver does not notice the end".to_owned()
                }
                [_] => "the sender does not notice that the receiver has ended".to_owned(),
                _ => format!("not done after {} s", plan.limit.as_secs()),
            };
            return Err(LabError::Transfer(format!("{}{why}", plan.which(&streams[late]))));
        };
        let place = running.iter().position(|(other, ..)| *other == program);
        let Some((_, at, _)) = place.map(|place| running.remove(place)) else { continue };
        let stream = &streams[at];
        // A receiver that reads slowly has much to read when its sender has ended.
        if plan.workload.read_rate.is_none() {
            for (_, _, its) in running.iter_mut().filter(|(_, other, _)| *other == at) {
                *its = until.min(Instant::now() + GRACE);
            }
        }
        let name = if program == pairs[at].sender { "sender" } else { "receiver" };
        match testbed.side(program.side).ended(program) {
            Some(ended) if ended.code == 0 => received[at] = received[at].take().or(ended.received),
            Some(ended) => {
                let log = stream.file(plan.directory, name, "log");
                let text = fs::read_to_string(log).unwrap_or_default();
                let why =
                    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
                let which = plan.which(stream);
                let code = ended.code;
                return Err(LabError::Transfer(format!("{which}the {name} ended with code {code}: {why}")));
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

fn received_by_the_sink(directory: &Path, stream: &Stream<'_>) -> Option<Received> {
    let end = end_of(&stream.file(directory, "receiver", "jsonl")).ok()?;
    serde_json::from_value(end).ok()
}
