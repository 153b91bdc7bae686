//! Runs the programs of each connection, from the first start to the last exit.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::plan::Transfer;
use super::reading::end_of;
use crate::LabError;
use crate::agent::Received;
use crate::counters::{Counters, growth};
use crate::testbed::{PathSide, Running, Testbed, Tools};
use crate::workload::Stream;

/// Time that the receiver may take to notice the end.
const GRACE: Duration = Duration::from_secs(10);

/// Runs the transfer. Returns the received data of each receiver whose output the agent reads.
pub(super) fn send(
    tools: &Tools,
    plan: &Transfer<'_>,
    streams: &[Stream<'_>],
    testbed: &mut Testbed,
    counters: &mut BTreeMap<String, Counters>,
) -> Result<Vec<Option<Received>>, LabError> {
    let &Transfer { receiver, directory, workload, .. } = plan;
    // Set up the senders first: their routes must exist before a receiver changes the settings of these
    // routes.
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
    thread::sleep(plan.wait.saturating_sub(testbed.began.elapsed()));
    let before = both_counters(testbed)?;
    let mut running = Vec::new();
    for (stream, (receiver, addr)) in streams.iter().zip(pairs) {
        let sender = stream.sender.start(tools, testbed, stream, addr, workload.amount, directory)?;
        running.push(Pair { sender, receiver });
    }
    let ended = until_all_have_ended(plan, streams, testbed, &running);
    // The kernel's counters may explain a failure. A side that has ended cannot report them.
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

fn until_all_have_ended(
    plan: &Transfer<'_>,
    streams: &[Stream<'_>],
    testbed: &mut Testbed,
    pairs: &[Pair],
) -> Result<Vec<Option<Received>>, LabError> {
    let until = Instant::now() + plan.limit;
    let mut received = vec![None; streams.len()];
    // Each running program, the index of its connection, and its deadline.
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
                    "the receiver did not notice the end of the transfer".to_owned()
                }
                [_] => "the sender did not notice that the receiver ended".to_owned(),
                _ => format!("not complete after {} s", plan.limit.as_secs()),
            };
            return Err(LabError::Transfer(format!("{}{why}", plan.which(&streams[late]))));
        };
        let place = running.iter().position(|(other, ..)| *other == program);
        let Some((_, at, _)) = place.map(|place| running.remove(place)) else { continue };
        let stream = &streams[at];
        // A receiver that reads slowly may still have much to read when its sender ends.
        if plan.workload.read_rate.is_none() {
            for (_, _, its) in running.iter_mut().filter(|(_, other, _)| *other == at) {
                *its = until.min(Instant::now() + GRACE);
            }
        }
        let name = if program == pairs[at].sender { "sender" } else { "receiver" };
        match testbed.side(program.side).ended(program) {
            Some(ended) if ended.code == 0 || (name == "receiver" && has_told_a_difference(plan, stream)) => {
                received[at] = received[at].take().or(ended.received);
            }
            Some(ended) => {
                let log = stream.file(plan.directory, name, "log");
                let text = fs::read_to_string(log).unwrap_or_default();
                let why = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
                let which = plan.which(stream);
                let code = ended.code;
                return Err(LabError::Transfer(format!("{which}the {name} exited with code {code}: {why}")));
            }
            None => return Err(LabError::Transfer(format!("the end of the {name} was not reported"))),
        }
    }
    Ok(received)
}

/// Returns true if the receiver read everything and found a difference from the sent data, in which case it
/// exits with code 1. The difference is in its final report, and is searched for in the captures.
fn has_told_a_difference(plan: &Transfer<'_>, stream: &Stream<'_>) -> bool {
    end_of(&stream.file(plan.directory, "receiver", "jsonl"))
        .is_ok_and(|end| !end["first_difference"].is_null())
}
