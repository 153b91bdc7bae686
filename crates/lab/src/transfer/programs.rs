//! Runs the programs of each connection, from the first start to the last exit.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::Instant;

use super::plan::Transfer;
use super::reading::end_of;
use crate::LabError;
use crate::agent::Received;
use crate::counters::{Counters, growth};
use crate::testbed::{NETWORK_TIMEOUT, PathSide, Running, Testbed, Tools, last_line};
use crate::workload::Stream;

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
    for (index, stream) in streams.iter().enumerate() {
        let key = |stream: &Stream<'_>| (stream.sender.kind.clone(), stream.direction);
        if !streams[..index].iter().any(|other| key(other) == key(stream)) {
            stream.sender.prepare(testbed, PathSide::sending(stream.direction), directory)?;
        }
    }
    for &direction in workload.directions.each() {
        receiver.prepare(testbed, PathSide::receiving(direction), directory)?;
    }
    let mut receivers = Vec::new();
    for stream in streams {
        receivers.push(receiver.start(tools, testbed, stream, workload.read_rate, directory)?);
    }
    thread::sleep(plan.wait.saturating_sub(testbed.started.elapsed()));
    let before = both_counters(testbed)?;
    let mut pairs = Vec::new();
    for (stream, (receiver, addr)) in streams.iter().zip(receivers) {
        let sender = stream.sender.start(tools, testbed, stream, addr, workload.amount, directory)?;
        pairs.push(Pair { sender, receiver });
    }
    let received = wait_for_programs(plan, streams, testbed, &pairs);
    // The kernel's counters may explain a failure. A side that has ended cannot report them.
    if let Ok(after) = both_counters(testbed) {
        for ((side, before), (_, after)) in before.iter().zip(&after) {
            counters.insert(side.name().to_owned(), growth(before, after));
        }
    }
    received
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

/// Waits until all programs have ended. Returns the received data of each connection, if its receiver reports
/// it.
fn wait_for_programs(
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
        .flat_map(|(index, pair)| [pair.sender, pair.receiver].map(|program| (program, index, until)))
        .collect();
    while let Some(next) = running.iter().map(|(_, _, until)| *until).min() {
        let programs: Vec<_> = running.iter().map(|(program, ..)| *program).collect();
        let Some(program) = testbed.wait_for_any(&programs, next)? else {
            let late = running.iter().find(|(_, _, until)| *until == next).map_or(0, |(_, index, _)| *index);
            let of_connection: Vec<_> = running.iter().filter(|(_, index, _)| *index == late).collect();
            let why = match of_connection.as_slice() {
                [(program, ..)] => {
                    let (late, other) = match *program == pairs[late].receiver {
                        true => ("receiver", "sender"),
                        false => ("sender", "receiver"),
                    };
                    format!("the {late} did not exit after the {other}")
                }
                _ => format!("not complete after {} s", plan.limit.as_secs()),
            };
            return Err(LabError::Transfer(format!("{}{why}", plan.prefix(&streams[late]))));
        };
        let position = running.iter().position(|(other, ..)| *other == program);
        let Some((_, index, _)) = position.map(|position| running.remove(position)) else { continue };
        let stream = &streams[index];
        // A receiver that reads slowly may still have much to read when its sender ends.
        if plan.workload.read_rate.is_none() {
            for (_, _, deadline) in running.iter_mut().filter(|(_, other, _)| *other == index) {
                *deadline = until.min(Instant::now() + NETWORK_TIMEOUT);
            }
        }
        let name = if program == pairs[index].sender { "sender" } else { "receiver" };
        match testbed.side(program.side).take_exit(program) {
            Some(exit) if exit.code == 0 || (name == "receiver" && reports_difference(plan, stream)) => {
                received[index] = received[index].take().or(exit.received);
            }
            Some(exit) => {
                let log = stream.file(plan.directory, name, "log");
                let mut why = last_line(&fs::read_to_string(log).unwrap_or_default());
                if why.is_empty() {
                    why = ": no message".to_owned();
                }
                let (prefix, code) = (plan.prefix(stream), exit.code);
                return Err(LabError::Transfer(format!("{prefix}the {name} exited with code {code}{why}")));
            }
            None => return Err(LabError::Transfer(format!("the end of the {name} was not reported"))),
        }
    }
    Ok(received)
}

/// Returns true if the receiver read everything and reports a difference from the sent data, in which case it
/// exits with code 1.
fn reports_difference(plan: &Transfer<'_>, stream: &Stream<'_>) -> bool {
    end_of(&stream.file(plan.directory, "receiver", "jsonl"))
        .is_ok_and(|end| !end["first_difference"].is_null())
}
