//! Checks whether the machine disturbed a transfer. The lab repeats such an invalid transfer, and its result
//! does not count.
//!
//! The rules use only files that every transfer keeps (see also docs/reference/lab.md):
//!
//! - At least 1 % of the packets left the path more than [`MAX_LATENESS`] late (`airlink.json`).
//! - A device or its queue refused or dropped a packet that the path did not drop (`airlink.json`,
//!   `sender.jsonl`). A device may refuse packets that a stage `corrupt` damaged, because they are no longer
//!   valid IP.
//! - The wall clock, which aligns captures and logs, moved by more than [`MAX_CLOCK_CHANGE`] relative to the
//!   monotonic clock.
//! - A receiver that reads at once, and whose buffer can grow, closed its window: its program was not
//!   scheduled.
//! - The kernel on either side discarded segments because of missing memory or a program that was not
//!   scheduled ([`SHORTAGES`]). On the side of a receiver that reads slowly, has a fixed buffer or is a
//!   third-party stack this does not count, because the receiver can cause it.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde_json::Value;

use super::counters::Counters;
use super::testbed::PathSide;
use super::transfer::outcome::Outcome;
use super::transfer::plan::Transfer;
use super::transfer::reading::end_of;
use super::workload::{Stream, Workload};

/// Limit of lateness in nanoseconds: half the shortest round-trip time of the presets with a radio link, and
/// less than any timer of a sender.
const MAX_LATENESS: f64 = 10e6;
const MAX_CLOCK_CHANGE: Duration = Duration::from_millis(20);

/// The wall clock relative to the monotonic clock. The programs of a transfer read the wall clock once, when
/// they start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockOffset {
    /// The wall clock minus the monotonic clock, in nanoseconds.
    offset: i128,
}

impl ClockOffset {
    pub(crate) fn now() -> Self {
        // Every Linux system has both clocks.
        let nanos = |clock| {
            let now = clock_gettime(clock).expect("CLOCK_REALTIME and CLOCK_MONOTONIC can be read");
            i128::from(now.tv_sec()) * 1_000_000_000 + i128::from(now.tv_nsec())
        };
        let read =
            || [ClockId::CLOCK_MONOTONIC, ClockId::CLOCK_REALTIME, ClockId::CLOCK_MONOTONIC].map(nanos);
        Self::closest(std::array::from_fn(|_| read()))
    }

    /// Compares the clocks by the reading that took the least time, because the program may be interrupted
    /// during a reading. A reading is the monotonic clock, the wall clock and the monotonic clock again.
    fn closest(readings: [[i128; 3]; 5]) -> Self {
        let duration = |[before, _, after]: &[i128; 3]| after - before;
        let closest = readings.into_iter().min_by_key(duration).expect("there are five");
        let [before, wall, after] = closest;
        Self { offset: wall - before.midpoint(after) }
    }

    /// The change of the wall clock since `earlier`, in nanoseconds.
    fn change_since(self, earlier: Self) -> i128 {
        self.offset - earlier.offset
    }
}

/// Counters of a namespace that neither a path nor a sender increases: packets discarded because of missing
/// memory, segments that waited too long for a program, and connections that did not fit into a queue.
pub(crate) const SHORTAGES: [&str; 5] = [
    "IpInDiscards",
    "IpOutDiscards",
    "TcpExtTCPBacklogDrop",
    "TcpExtListenDrops",
    "TcpExtTCPMemoryPressures",
];

/// The reason why a transfer is invalid. `None` if its files show no disturbance. `started` has the clocks
/// before the first program started.
pub(crate) fn disturbance(
    plan: &Transfer<'_>,
    streams: &[Stream<'_>],
    outcome: &Outcome,
    started: ClockOffset,
) -> Option<String> {
    let summary = airfiles::read_result(plan.directory.join("airlink.json")).ok()?;
    let path: Value = serde_json::from_str(&summary).ok()?;
    let ends =
        streams.iter().filter_map(|stream| end_of(&stream.file(plan.directory, "sender", "jsonl")).ok());
    let reads_at_once = plan.receiver.reads_at_once() && plan.workload.read_rate.is_none();
    let closed = || outcome.connections.iter().map(|connection| connection.capture.closed_windows).sum();
    judge(&Evidence {
        path,
        ends: ends.collect(),
        clock_set_by: ClockOffset::now().change_since(started),
        closed_windows: if reads_at_once { closed() } else { 0 },
        counters: &relevant_counters(plan.workload, reads_at_once, &outcome.counters),
    })
}

/// The counters of the sides on which no receiver has a reason to leave data unread.
fn relevant_counters(
    workload: &Workload,
    reads_at_once: bool,
    counters: &BTreeMap<String, Counters>,
) -> BTreeMap<String, Counters> {
    let directions = workload.directions.each();
    let receives =
        |side: &str| directions.iter().any(|direction| PathSide::receiving(*direction).name() == side);
    let mut relevant = counters.clone();
    relevant.retain(|side, _| reads_at_once || !receives(side));
    relevant
}

/// The evidence that the rules use.
struct Evidence<'a> {
    /// `airlink.json`.
    path: Value,
    /// The final report of each sender.
    ends: Vec<Value>,
    /// The change of the wall clock in nanoseconds, from before the start until all programs have ended.
    clock_set_by: i128,
    /// Closed windows of receivers that have no reason to close them.
    closed_windows: u64,
    /// The counters of the sides that have no reason to discard packets.
    counters: &'a BTreeMap<String, Counters>,
}

fn judge(evidence: &Evidence<'_>) -> Option<String> {
    let Evidence { path, ends, clock_set_by, closed_windows, counters } = evidence;
    // Report this before lateness: a busy machine is often late too, and only the user can prevent clock
    // changes.
    if clock_set_by.unsigned_abs() > MAX_CLOCK_CHANGE.as_nanos() {
        return Some(format!("the clock of this machine was set by {:+.0} ms", *clock_set_by as f64 / 1e6));
    }
    let late = path.pointer("/lateness/p99").and_then(Value::as_f64).unwrap_or_default();
    if late > MAX_LATENESS {
        let late = late / 1e6;
        return Some(format!("at least 1 % of the packets left the path more than {late:.0} ms late"));
    }
    let dropped = dropped(path, ends);
    if dropped > 0 {
        return Some(format!("a device or its queue dropped {dropped} packets, not the path"));
    }
    if *closed_windows > 0 {
        return Some(format!(
            "the receiver program was not scheduled in time: {closed_windows} ACKs closed the window"
        ));
    }
    counters.iter().find_map(|(side, counters)| {
        let (name, times) = SHORTAGES.iter().find_map(|name| Some((name, counters.get(*name)?)))?;
        Some(format!("the kernel on the {side} side was out of memory or time: {name} grew by {times}"))
    })
}

/// Packets that devices and their queues dropped or refused, from `airlink.json` and from the senders' final
/// reports.
pub(crate) fn dropped<'a>(path: &Value, senders: impl IntoIterator<Item = &'a Value>) -> u64 {
    let number =
        |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let of_path = [("fixed", "up"), ("mobile", "down")].into_iter().flat_map(|(side, direction)| {
        let stages = path["stages"].as_object().into_iter().flat_map(|stages| stages.values());
        let corrupted: u64 = stages.map(|stage| number(stage, &format!("/{direction}/corrupted"))).sum();
        let refused = number(path, &format!("/{side}/refused_packets")).saturating_sub(corrupted);
        [number(path, &format!("/{side}/dropped_by_kernel")), refused]
    });
    let of_senders = senders.into_iter().flat_map(|sender| {
        ["/device/dropped_by_kernel", "/device/refused"].map(|counter| number(sender, counter))
    });
    of_path.chain(of_senders).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::workload::Directions;

    fn path() -> Value {
        let device = json!({ "refused_packets": 0, "dropped_by_kernel": 0 });
        json!({ "lateness": { "p99": 700_000, "max": 90_000_000 }, "fixed": device, "mobile": device })
    }

    fn end() -> Value {
        json!({ "device": { "dropped_by_kernel": 0 } })
    }

    /// The evidence of a transfer without disturbances.
    fn valid(counters: &BTreeMap<String, Counters>) -> Evidence<'_> {
        // A disciplined clock and the monotonic clock move by less than a microsecond per millisecond.
        Evidence { path: path(), ends: vec![end()], clock_set_by: -1_000, closed_windows: 0, counters }
    }

    #[test]
    fn interrupted_reading_of_clocks_does_not_count() {
        let mut readings = [[1000, 501_000, 31_000_000]; 5];
        readings[3] = [2000, 502_050, 2100];
        assert_eq!(ClockOffset::closest(readings).offset, 500_000);
    }

    #[test]
    fn single_late_packet_keeps_transfer_valid() {
        assert_eq!(judge(&valid(&BTreeMap::new())), None);
    }

    /// A device refuses packets with a damaged IP version.
    #[test]
    fn device_may_refuse_packets_corrupted_by_path() {
        let counters = BTreeMap::new();
        for (corrupted, refused, is_invalid) in [(3, 2, false), (2, 2, false), (1, 2, true), (0, 1, true)] {
            for (side, direction, other) in [("fixed", "up", "down"), ("mobile", "down", "up")] {
                let mut evidence = valid(&counters);
                evidence.path[side]["refused_packets"] = refused.into();
                evidence.path["stages"]["air"][direction]["corrupted"] = corrupted.into();
                evidence.path["stages"]["air"][other]["corrupted"] = 9.into();
                assert_eq!(judge(&evidence).is_some(), is_invalid, "{side}: {refused} of {corrupted}");
            }
        }
    }

    #[test]
    fn each_disturbance_reports_its_reason() {
        let counted = |name: &str| {
            BTreeMap::from([
                ("fixed".to_owned(), Counters::from([("TcpRetransSegs".to_owned(), 9)])),
                ("mobile".to_owned(), Counters::from([(name.to_owned(), 4)])),
            ])
        };
        let (harmless, short) = (counted("TcpExtTCPTimeouts"), counted("TcpExtTCPBacklogDrop"));
        let mut late = valid(&harmless);
        late.path["lateness"]["p99"] = 12_000_000.into();
        let mut dropped = valid(&harmless);
        dropped.path["mobile"]["dropped_by_kernel"] = 2.into();
        let mut full = valid(&harmless);
        full.ends.push(end());
        full.ends[1]["device"]["dropped_by_kernel"] = 1.into();
        let set = Evidence { clock_set_by: -100_000_000, ..valid(&harmless) };
        let reasons =
            [late, dropped, full, set, Evidence { closed_windows: 3, ..valid(&harmless) }, valid(&short)];
        let reasons = reasons.map(|evidence| judge(&evidence).unwrap());
        let expected = [
            "at least 1 % of the packets left the path more than 12 ms late",
            "a device or its queue dropped 2 packets, not the path",
            "a device or its queue dropped 1 packets, not the path",
            "the clock of this machine was set by -100 ms",
            "the receiver program was not scheduled in time: 3 ACKs closed the window",
            "the kernel on the mobile side was out of memory or time: TcpExtTCPBacklogDrop grew by 4",
        ];
        assert_eq!(reasons, expected);
        assert_eq!(judge(&valid(&harmless)), None);

        let mut late_and_set = Evidence { clock_set_by: 100_000_000, ..valid(&harmless) };
        late_and_set.path["lateness"]["p99"] = 12_000_000.into();
        assert_eq!(judge(&late_and_set).unwrap(), "the clock of this machine was set by +100 ms");
    }

    #[test]
    fn slow_receiver_excludes_only_its_own_counters() {
        let of = |side: &str| (side.to_owned(), Counters::from([("IpOutDiscards".to_owned(), 4)]));
        let both = BTreeMap::from(["fixed", "mobile"].map(of));
        let down = Workload::plain(1);
        let up = Workload { directions: Directions::Up, ..down.clone() };
        let counted_sides = |workload, at_once| {
            relevant_counters(workload, at_once, &both).into_keys().collect::<Vec<_>>().join(" ")
        };
        assert_eq!([counted_sides(&down, true), counted_sides(&up, true)], ["fixed mobile"; 2]);
        assert_eq!([counted_sides(&down, false), counted_sides(&up, false)], ["fixed", "mobile"]);
        assert_eq!(counted_sides(&Workload { directions: Directions::Both, ..down.clone() }, false), "");
    }

    #[test]
    fn kernel_sender_without_device_is_valid() {
        let none = BTreeMap::new();
        let mut evidence = valid(&none);
        evidence.ends[0] = json!({ "kernel": {} });
        assert_eq!(judge(&evidence), None);
    }
}
