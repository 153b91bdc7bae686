//! One transfer of a page: its graphs, and its facts in words.

use std::path::Path;

use aircaptures::capture::{Capture, CaptureError};
use airfiles::PathSource;
use airlink::packet::Direction;
use airtcp_analyze::connections::Traces;
use airtcp_analyze::path;
use airtcp_analyze::survey;
use airtcp_analyze::trace::{Fate, Sending, Trace};
use airtcp_report::html::{Run, decisions};
use serde_json::Value;

use super::RunDirError;
use crate::connection::Connection;
use crate::sender::RetransmissionCounts;
use crate::testbed::PathSide;
use crate::transfer::Outcome;
use crate::workload::{PORT, Role};

pub(super) fn run(directory: &Path, name: &str, outcome: Option<&Outcome>) -> Result<Run, RunDirError> {
    let connections = outcome.map_or(&[][..], |outcome| &outcome.connections);
    let direction = connections.first().map_or(Direction::Down, |first| first.direction);
    let mut trace = first_trace(&directory.join(PathSide::sending(direction).capture()))?;
    let mut facts = Vec::new();
    // With several connections, the line would not say which one it describes.
    facts.extend(add_fates(directory, direction, &mut trace)?.filter(|_| connections.len() <= 1));
    let events = events(&directory.join("sender.jsonl"));
    if let (Ok(log), Some(start)) = (airfiles::read_result(directory.join("decisions.jsonl")), start(&events))
    {
        let mss = events.iter().find_map(|event| event.pointer("/data/handshake/mss")?.as_f64());
        let mss = mss.unwrap_or_else(|| longest_segment(&trace));
        let merged = decisions::merge_log(&mut trace, &log, start, mss);
        if merged.unreadable > 0 {
            let text = format!("{} lines of decisions.jsonl are unreadable", merged.unreadable);
            facts.push(("log".to_owned(), text));
        }
        facts.push(retransmissions(&trace, Some(merged.corrected)));
    } else {
        facts.push(retransmissions(&trace, None));
    }
    if connections.len() > 1 {
        let each = connections.iter().map(|Connection { role, sender, direction, kbit_per_s, .. }| {
            let role = if *role == Role::Competitor { " (competitor)" } else { "" };
            format!("{sender}{role} {direction}: {kbit_per_s:.1} kbit/s")
        });
        let each = each.collect::<Vec<_>>().join("; ");
        let text = format!("the graphs show the first of {} connections: {each}", connections.len());
        facts.push(("connections".to_owned(), text));
    }
    if let Some(outcome) = outcome {
        let Outcome { profile, seed, kbit_per_s, capture, failure, repair, .. } = outcome;
        if let Some(RetransmissionCounts { fast, timeout, probe, timeouts, spurious }) = repair {
            let counts = format!(
                "{fast} fast, {timeout} after a timeout, {probe} probes; {timeouts} timeouts, {spurious} of them detected as \
                 spurious"
            );
            facts.push(("retransmissions (counted by the sender)".to_owned(), counts));
        }
        let shaded: i64 = trace.idle.iter().map(|idle| idle.to - idle.from).sum();
        let silence = format!(
            "{:.2} s before retransmissions; {:.2} s before timeouts, shaded in the graphs",
            capture.idle_seconds,
            shaded as f64 / 1e9
        );
        facts.push(("idle time".to_owned(), silence));
        facts.extend(profile.iter().map(|profile| ("profile".to_owned(), profile.clone())));
        facts.push(("seed".to_owned(), seed.to_string()));
        facts.push(("goodput".to_owned(), format!("{kbit_per_s:.1} kbit/s over {:.2} s", capture.seconds)));
        facts.extend(outcome.notices().into_iter().map(|notice| ("missing".to_owned(), notice)));
        if let Some(failure) = failure {
            facts.push(("failed".to_owned(), failure.clone()));
        }
    }
    facts.extend(path_facts(&directory.join("airlink.json"), direction));
    facts.push(("files".to_owned(), directory.display().to_string()));
    Ok(Run { name: name.to_owned(), facts, trace })
}

/// The number of retransmissions in the graphs, by cause. `differing` is the number of retransmissions whose
/// cause in the sender's log differs from the capture. `None` without a log.
fn retransmissions(trace: &Trace, differing: Option<usize>) -> (String, String) {
    let of = |sending| trace.segments.iter().filter(move |it| it.sending == sending && it.start > 0).count();
    let mut parts =
        vec![format!("{} fast", of(Sending::Fast)), format!("{} after a timeout", of(Sending::Timeout))];
    for (sending, words) in [
        (Sending::Tail, "tail probes"),
        (Sending::Probe, "window probes"),
        (Sending::Unexplained, "unexplained"),
    ] {
        let count = of(sending);
        if count > 0 {
            parts.push(format!("{count} {words}"));
        }
    }
    let syns = trace.segments.iter().filter(|it| it.sending != Sending::New && it.start == 0).count();
    if syns > 0 {
        parts.push(format!("SYN {}", if syns == 1 { "once".to_owned() } else { format!("{syns} times") }));
    }
    let spurious = trace.segments.iter().filter(|it| matches!(it.fate, Fate::Spurious { .. })).count();
    let source = match differing {
        Some(0) => "causes from the sender's log, the same as in its capture".to_owned(),
        Some(count) => {
            format!("causes from the sender's log; the capture alone suggests another cause for {count}")
        }
        None => "causes from the capture alone".to_owned(),
    };
    let text = format!("{}; {spurious} spurious according to the captures; {source}", parts.join(", "));
    ("retransmissions (in the graphs)".to_owned(), text)
}

/// The trace to draw. In a capture of the lab, it is the sender's direction of the first connection. In any
/// other capture, it is the direction with the most data.
fn first_trace(path: &Path) -> Result<Trace, RunDirError> {
    let mut longest = Trace::default();
    let rank = |trace: &Trace| {
        let bytes = trace.segments.iter().map(|segment| segment.end - segment.start).sum::<u64>();
        (trace.name.ends_with(&format!(":{PORT}")), bytes)
    };
    // Accept regular files only: another user may have placed a pipe in the directory. libpcap opens the file
    // again.
    airfiles::open(path, PathSource::File)
        .map_err(|error| CaptureError::File { path: path.to_owned(), error })?;
    survey::read(&mut Capture::open(path, None)?, Traces::All, &mut |finished| {
        for trace in finished.ended.traces.into_iter().flatten() {
            if rank(&trace) > rank(&longest) {
                longest = trace;
            }
        }
    });
    Ok(longest)
}

/// Adds the outcome of each packet, from the capture at the other end and from airlink's events if the lab
/// kept the events. Returns a summary.
fn add_fates(
    directory: &Path,
    direction: Direction,
    trace: &mut Trace,
) -> Result<Option<(String, String)>, RunDirError> {
    let captures = [PathSide::sending(direction), PathSide::receiving(direction)]
        .map(|side| directory.join(side.capture()));
    if !captures[1].is_file() {
        return Ok(None);
    }
    let truth = Some(directory.join("events.jsonl")).filter(|events| events.is_file());
    let files = path::Files { captures: captures.into(), truth, ..path::Files::default() };
    let (report, fates) = path::read(&files, path::Keep::Fates)?;
    fates.apply_to(trace);
    let flows = report.connections.iter().flat_map(|connection| &connection.directions);
    let flow = flows.filter(|flow| flow.enters_at == 0).max_by_key(|flow| flow.bytes);
    Ok(flow.map(|flow| ("on the path".to_owned(), flow.data.to_string())))
}

fn longest_segment(trace: &Trace) -> f64 {
    trace.segments.iter().map(|segment| segment.end - segment.start).max().unwrap_or(1) as f64
}

/// The path's treatment of packets, in words.
fn path_facts(path: &Path, direction: Direction) -> Vec<(String, String)> {
    let text = airfiles::read_result(path).unwrap_or_default();
    let totals: Value = serde_json::from_str(&text).unwrap_or_default();
    let fact = |(direction, name): (Direction, &str)| {
        let totals = &totals[direction.name()];
        let (entered, left) = (totals["entered"].as_u64()?, totals["left"].as_u64()?);
        let mut fact = format!("{entered} packets in, {left} out");
        for (why, packets) in totals["dropped"].as_object().into_iter().flatten() {
            fact.push_str(&format!(", {packets} dropped: {why}"));
        }
        Some((name.to_owned(), fact))
    };
    let both = [(direction, "path to the receiver"), (direction.reversed(), "path back")];
    let stages = totals["stages"].as_object().into_iter().flatten();
    let radio = stages.flat_map(|(name, stats)| radio_facts(name, stats, direction));
    both.into_iter().filter_map(fact).chain(radio).collect()
}

/// The transmissions of a stage in words, if it is a radio bearer.
fn radio_facts(name: &str, stats: &Value, direction: Direction) -> Vec<(String, String)> {
    let fact = |direction: Direction| {
        let stats = &stats[direction.name()];
        let count = |pointer: &str| stats.pointer(pointer).and_then(Value::as_u64);
        let seconds = |pointer: &str| stats.pointer(pointer).and_then(Value::as_f64).unwrap_or_default();
        let (blocks, lost) = (count("/blocks")?, count("/blocks_lost")?);
        let mut fact = format!("{blocks} blocks, {lost} damaged");
        if let Some(new) = count("/harq/transport_blocks").filter(|new| *new > 0) {
            let given_up = count("/harq/exhausted")? + count("/harq/nack_to_ack")?;
            let attempts = blocks as f64 / new as f64;
            fact.push_str(&format!("; HARQ: {attempts:.2} attempts per block, {given_up} lost"));
        }
        let (new, resent) = (count("/sender/pdus_new")?, count("/sender/pdus_resent")?);
        fact.push_str(&format!("; RLC: {new} PDUs, {resent} retransmitted"));
        if let Some(peak) = count("/queue_peak_bytes") {
            fact.push_str(&format!("; queue: up to {:.0} kB", peak as f64 / 1e3));
        }
        if let Some(held) = count("/pdcp/held").filter(|held| *held > 0) {
            fact.push_str(&format!(
                "; PDCP: {held} packets held for {:.1} ms on average, {:.1} ms at most",
                1e3 * seconds("/pdcp/mean_hold_seconds"),
                1e3 * seconds("/pdcp/longest_hold_seconds"),
            ));
        }
        Some((format!("{name}, {direction}"), fact))
    };
    [direction, direction.reversed()].into_iter().filter_map(fact).collect()
}

fn events(path: &Path) -> Vec<Value> {
    let text = airfiles::read_result(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The start of the sender's clock as wall-clock time, in nanoseconds since 1970.
fn start(events: &[Value]) -> Option<i64> {
    events.iter().find_map(|event| {
        let (time, wall) = (event["time"].as_f64()?, event["wall"].as_f64()?);
        Some(((wall - time) * 1e9).round() as i64)
    })
}
