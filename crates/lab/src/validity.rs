//! Whether a transfer is the path's doing, or this machine's: one that the machine has spoiled is made again, and says
//! nothing about its sender.
//!
//! The rules, by what every transfer keeps anyway (docs/lab.md has them as well):
//!
//! - Of the packets one in a hundred left the path more than [`LATE`] later than they were to (`airlink.json`).
//! - A device or its queue refused a packet: not the path dropped it (`airlink.json`, `sender.jsonl`).
//! - The clock of the wall, by which captures go, moved [`JUMP`] against the other one while the sender ran.
//! - A receiver that reads at once, and whose buffer may grow, closed its window: its program did not get its turn.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::capture::Findings;
use super::receiver::Receiver;

/// Half of the least round trip of any preset with a radio, less than any timer of a sender.
const LATE: f64 = 10e6;
const JUMP: f64 = 0.02;

/// Why it is not valid. `None`: it is, as far as its files tell.
pub(crate) fn spoiled(directory: &Path, receiver: &Receiver, findings: &Findings) -> Option<String> {
    let path: Value = serde_json::from_str(&fs::read_to_string(directory.join("airlink.json")).ok()?).ok()?;
    let sender = fs::read_to_string(directory.join("sender.jsonl")).unwrap_or_default();
    let events: Vec<Value> = sender.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let closed = if receiver.reads_at_once() { findings.closed_windows } else { 0 };
    judge(&path, &events, closed)
}

fn judge(path: &Value, events: &[Value], closed_windows: u64) -> Option<String> {
    let late = path.pointer("/lateness/p99").and_then(Value::as_f64).unwrap_or_default();
    if late > LATE {
        return Some(format!("one packet in a hundred left the path more than {:.0} ms late", late / 1e6));
    }
    let end = events.iter().rfind(|event| event["event"] == "end");
    let dropped = dropped(path, end.map_or(&Value::Null, |end| &end["data"]));
    if dropped > 0 {
        return Some(format!("a device or its queue dropped {dropped} packets, not the path"));
    }
    let apart = |event: &Value| Some(event["wall"].as_f64()? - event["time"].as_f64()?);
    let start = events.iter().find(|event| event["event"] == "start");
    let jump = start.zip(end).and_then(|(start, end)| Some(apart(end)? - apart(start)?)).unwrap_or_default();
    if jump.abs() > JUMP {
        return Some(format!("the clock of this machine was set by {:+.0} ms", 1e3 * jump));
    }
    (closed_windows > 0).then(|| {
        format!("the receiver's program did not get its turn: {closed_windows} ACKs closed the window")
    })
}

/// Packets that devices and their queues dropped or refused: `airlink.json`, and what the sender says at its end.
pub(crate) fn dropped(path: &Value, sender: &Value) -> u64 {
    let number =
        |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let of_path = ["/fixed", "/mobile"].into_iter().flat_map(|side| {
        ["dropped_by_kernel", "refused_packets"].map(|counter| number(path, &format!("{side}/{counter}")))
    });
    let of_sender = ["/device/dropped_by_kernel", "/device/refused"].map(|counter| number(sender, counter));
    of_path.chain(of_sender).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path() -> Value {
        let device = json!({ "refused_packets": 0, "dropped_by_kernel": 0 });
        json!({ "lateness": { "p99": 700_000, "max": 90_000_000 }, "fixed": device, "mobile": device })
    }

    fn events(wall_at_the_end: f64) -> Vec<Value> {
        let data = json!({ "device": { "dropped_by_kernel": 0 } });
        vec![
            json!({ "event": "start", "time": 0.5, "wall": 1000.5 }),
            json!({ "event": "end", "time": 2.5, "wall": wall_at_the_end, "data": data }),
        ]
    }

    #[test]
    fn one_late_packet_among_many_spoils_nothing() {
        assert_eq!(judge(&path(), &events(1002.5), 0), None);
    }

    #[test]
    fn each_rule_has_its_reason() {
        let mut late = path();
        late["lateness"]["p99"] = 12_000_000.into();
        let mut dropped = path();
        dropped["mobile"]["dropped_by_kernel"] = 2.into();
        let mut full = events(1002.5);
        full[1]["data"]["device"]["dropped_by_kernel"] = 1.into();
        let reasons = [
            judge(&late, &events(1002.5), 0),
            judge(&dropped, &events(1002.5), 0),
            judge(&path(), &full, 0),
            judge(&path(), &events(1002.4), 0),
            judge(&path(), &events(1002.5), 3),
        ];
        let reasons = reasons.map(Option::unwrap);
        assert_eq!(reasons[0], "one packet in a hundred left the path more than 12 ms late");
        assert_eq!(reasons[1], "a device or its queue dropped 2 packets, not the path");
        assert_eq!(reasons[2], "a device or its queue dropped 1 packets, not the path");
        assert_eq!(reasons[3], "the clock of this machine was set by -100 ms");
        assert_eq!(reasons[4], "the receiver's program did not get its turn: 3 ACKs closed the window");
    }

    #[test]
    fn a_kernel_sender_has_no_device_of_its_own() {
        let mut events = events(1002.5);
        events[1]["data"] = json!({ "kernel": {} });
        assert_eq!(judge(&path(), &events, 0), None);
    }
}
