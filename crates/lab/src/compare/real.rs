//! Reads the trace of a transfer in real time from the lab's files.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use aircaptures::capture::{Capture, Next};
use aircaptures::ip::Found;
use aircaptures::packet::Packet;
use airlink::stage::Why;
use airtcp_analyze::airlink_events::{EventReader, EventsError};
use airtcp_analyze::decisions::Log;
use serde_json::Value;

use super::trace::{Captured, Decided, Fate, Machine, Trace};
use crate::LabError;
use crate::transfer::reading::end_of;
use crate::validity::dropped;
use crate::workload::PORT;

/// Reads the trace from the transfer's directory. Requires the path's events
/// ([`Keep::events`](crate::testbed::Keep)).
pub(crate) fn read(directory: &Path) -> Result<Trace, LabError> {
    let unreadable = |name: &str, why: &dyn Display| {
        LabError::Transfer(format!("{}: {why}", directory.join(name).display()))
    };
    let (fixed, mobile) = (packets(directory, "fixed.pcap")?, packets(directory, "mobile.pcap")?);
    let captured = Captured::new(&fixed.tcp, &mobile.tcp, PORT)
        .ok_or_else(|| unreadable("fixed.pcap", &"no SYN in the capture"))?;

    let log = directory.join("decisions.jsonl");
    let text = airfiles::read_kept(&log).map_err(LabError::file(&log))?;
    let log = Log::read(&text).map_err(|error| unreadable("decisions.jsonl", &error))?;
    let zero = log.start - captured.start.0;
    let at = |seconds: f64| (seconds * 1e9).round() as i64 + zero;
    let decisions = log.lines.into_iter().map(|line| Decided { at: at(line.time), line }).collect();

    let (wall_zero, fates) = fates(&directory.join("events.jsonl"))?;
    let machine = Machine { strangers: captured.strangers + fixed.others, ..machine(directory)? };
    Ok(Trace { start: captured.start.0 - wall_zero, decisions, passed: captured.passed, fates, machine })
}

/// The packets of a capture.
#[derive(Default)]
struct Packets {
    tcp: Vec<Packet>,
    /// Number of packets of other protocols.
    others: u64,
}

fn packets(directory: &Path, name: &str) -> Result<Packets, LabError> {
    let path = directory.join(name);
    let mut capture = Capture::open(&path, None).map_err(|error| LabError::Transfer(error.to_string()))?;
    let mut packets = Packets::default();
    loop {
        match capture.read() {
            Next::Frame(frame) => match frame.packet() {
                Found::Tcp(packet) | Found::Flawed(packet, _) => packets.tcp.push(packet),
                Found::Nothing(_) | Found::Fragment | Found::Other(_) => packets.others += 1,
            },
            Next::LeftOut | Next::Nothing | Next::Flaw { .. } => {}
            Next::Damaged { detail, .. } => {
                return Err(LabError::Transfer(format!("{}: {detail}", path.display())));
            }
            Next::End => return Ok(packets),
        }
    }
}

/// The fates of the hosts' packets, down and up, and the start of the path's clock.
fn fates(path: &Path) -> Result<(i64, [Vec<Fate>; 2]), LabError> {
    let failed = |error: EventsError| LabError::Transfer(error.to_string());
    let mut events = EventReader::open(path).map_err(failed)?;
    let zero = events.wall_zero();
    let mut fates = [Vec::new(), Vec::new()];
    let mut numbers = BTreeMap::new();
    while let Some(event) = events.read().map_err(failed)? {
        let way = usize::from(event.direction == "up");
        match (&*event.what, &event.stage, &event.why) {
            ("entered", None, _) => {
                numbers.insert(event.packet, fates[way].len());
                fates[way].push(Fate::Passed);
            }
            ("dropped", _, Some(why)) => {
                let why = Why::ALL.into_iter().find(|known| known.name() == why.as_ref());
                if let (Some(number), Some(why)) = (numbers.get(&event.packet), why) {
                    fates[way][*number] = Fate::Dropped(why);
                }
            }
            _ => {}
        }
    }
    Ok((zero, fates))
}

fn machine(directory: &Path) -> Result<Machine, LabError> {
    let path = directory.join("airlink.json");
    let text = airfiles::read_kept(&path).map_err(LabError::file(&path))?;
    let path: Value = serde_json::from_str(&text)
        .map_err(|error| LabError::Transfer(format!("{}: {error}", path.display())))?;
    let sender = end_of(&directory.join("sender.jsonl"))?;
    Ok(Machine {
        dropped: dropped(&path, [&sender]),
        strangers: 0,
        latest: path.pointer("/lateness/max").and_then(Value::as_i64).unwrap_or_default(),
    })
}
