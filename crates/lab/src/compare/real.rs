//! Reads the trace of a transfer in real time from the lab's files.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use aircaptures::ip::Found;
use aircaptures::packet::Packet;
use airlink::packet::{Direction, PerDirection};
use airlink::stage::DropReason;
use airtcp_analyze::airlink_events::{EventReader, EventsError};
use airtcp_analyze::decisions::Log;
use serde_json::Value;

use super::trace::{CapturedTransfer, Disturbances, PathFate, TimedDecision, Trace};
use crate::LabError;
use crate::capture::for_each_frame;
use crate::transfer::reading::end_of;
use crate::validity::dropped;
use crate::workload::PORT;

/// Reads the trace from the transfer's directory. Requires the path's events
/// ([`ExtraFiles::events`](crate::testbed::ExtraFiles)).
pub(crate) fn read(directory: &Path) -> Result<Trace, LabError> {
    let unreadable = |name: &str, why: &dyn Display| {
        LabError::Transfer(format!("{}: {why}", directory.join(name).display()))
    };
    let (fixed, other_protocols) = packets(&directory.join("fixed.pcap"))?;
    let (mobile, _) = packets(&directory.join("mobile.pcap"))?;
    let captured = CapturedTransfer::new(&fixed, &mobile, PORT)
        .ok_or_else(|| unreadable("fixed.pcap", &"no SYN in the capture"))?;

    let log = directory.join("decisions.jsonl");
    let text = airfiles::read_result(&log).map_err(LabError::file(&log))?;
    let log = Log::read(&text).map_err(|error| unreadable("decisions.jsonl", &error))?;
    let log_start = log.start - captured.start.0;
    let at = |seconds: f64| (seconds * 1e9).round() as i64 + log_start;
    let decisions = log.lines.into_iter().map(|line| TimedDecision { at: at(line.time), line }).collect();

    let (path_start, fates) = fates(&directory.join("events.jsonl"))?;
    let foreign = captured.foreign + other_protocols;
    let disturbances = Disturbances { foreign, ..disturbances(directory)? };
    let start = captured.start.0 - path_start;
    Ok(Trace { start, decisions, observed: captured.observed, fates, disturbances })
}

/// The TCP packets of a capture, and the number of packets of other protocols.
fn packets(path: &Path) -> Result<(Vec<Packet>, u64), LabError> {
    let (mut tcp, mut others) = (Vec::new(), 0);
    for_each_frame(path, |frame| match frame.packet() {
        Found::Tcp(packet) | Found::Flawed(packet, _) => tcp.push(packet),
        Found::Unreadable(_) | Found::Fragment | Found::Other(_) => others += 1,
    })?;
    Ok((tcp, others))
}

/// The start of the path's clock as wall-clock time, and the fates of the hosts' packets.
fn fates(path: &Path) -> Result<(i64, PerDirection<Vec<PathFate>>), LabError> {
    let failed = |error: EventsError| LabError::Transfer(error.to_string());
    let mut events = EventReader::open(path).map_err(failed)?;
    let start = events.wall_zero();
    let mut fates = PerDirection::<Vec<PathFate>>::default();
    let mut indices = BTreeMap::new();
    while let Some(event) = events.read().map_err(failed)? {
        let fates = &mut fates[if event.direction == "up" { Direction::Up } else { Direction::Down }];
        match (&*event.what, &event.stage, &event.why) {
            ("entered", None, _) => {
                indices.insert(event.packet, fates.len());
                fates.push(PathFate::Passed);
            }
            ("dropped", _, Some(why)) => {
                let why = DropReason::ALL.into_iter().find(|known| known.name() == why.as_ref());
                if let (Some(index), Some(why)) = (indices.get(&event.packet), why) {
                    fates[*index] = PathFate::Dropped(why);
                }
            }
            _ => {}
        }
    }
    Ok((start, fates))
}

fn disturbances(directory: &Path) -> Result<Disturbances, LabError> {
    let path = directory.join("airlink.json");
    let text = airfiles::read_result(&path).map_err(LabError::file(&path))?;
    let path: Value = serde_json::from_str(&text)
        .map_err(|error| LabError::Transfer(format!("{}: {error}", path.display())))?;
    let sender = end_of(&directory.join("sender.jsonl"))?;
    Ok(Disturbances {
        dropped: dropped(&path, [&sender]),
        foreign: 0,
        max_lateness: path.pointer("/lateness/max").and_then(Value::as_i64).unwrap_or_default(),
    })
}
