//! Whether a transfer is the path's doing, or this machine's: one that the machine has spoiled is made again, and says
//! nothing about its sender.
//!
//! The rules, by what every transfer keeps anyway (docs/reference/lab.md has them as well):
//!
//! - Of the packets one in a hundred left the path more than [`LATE`] later than they were to (`airlink.json`).
//! - A device or its queue refused a packet: not the path dropped it (`airlink.json`, `sender.jsonl`). It may refuse those that a
//!   stage `corrupt` has damaged: what is of no version of IP any more.
//! - The clock of the wall, by which captures and logs are laid side by side, moved [`JUMP`] against the other one meanwhile.
//! - A receiver that reads at once, and whose buffer may grow, closed its window: its program did not get its turn.
//! - A kernel on either side discarded segments for want of memory or of a program's turn ([`SHORTAGES`]). On a side where a
//!   receiver reads slowly, or another stack stands, that may be its own doing, and does not count.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde_json::Value;

use super::counters::Counters;
use super::transfer::{Outcome, Transfer, end_of};
use super::workload::{Stream, Workload};

/// Half of the least round trip of any preset with a radio, less than any timer of a sender.
const LATE: f64 = 10e6;
const JUMP: Duration = Duration::from_millis(20);

/// The clock of the wall beside the one that nobody sets. The programs of a transfer read the first one once, when they begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// By how many nanoseconds the first is ahead of the second.
    ahead: i128,
}

impl Clocks {
    pub(crate) fn now() -> Self {
        // Both clocks exist on every Linux.
        let nanos = |clock| {
            let now = clock_gettime(clock).expect("CLOCK_REALTIME and CLOCK_MONOTONIC can be read");
            i128::from(now.tv_sec()) * 1_000_000_000 + i128::from(now.tv_nsec())
        };
        Self { ahead: nanos(ClockId::CLOCK_REALTIME) - nanos(ClockId::CLOCK_MONOTONIC) }
    }

    /// By how many nanoseconds the clock of the wall was set since `earlier`.
    fn set_since(self, earlier: Self) -> i128 {
        self.ahead - earlier.ahead
    }
}

/// Counters of either namespace that no path moves, and no sender: packets that were discarded for want of memory, segments
/// that waited for a program until there were too many of them, connections that found no place.
pub(crate) const SHORTAGES: [&str; 5] = [
    "IpInDiscards",
    "IpOutDiscards",
    "TcpExtTCPBacklogDrop",
    "TcpExtListenDrops",
    "TcpExtTCPMemoryPressures",
];

/// Why it is not valid. `None`: it is, as far as its files tell. `began`: the clocks before anything was started.
pub(crate) fn spoiled(
    plan: &Transfer<'_>,
    streams: &[Stream<'_>],
    outcome: &Outcome,
    began: Clocks,
) -> Option<String> {
    let summary = airfiles::read_kept(plan.directory.join("airlink.json")).ok()?;
    let path: Value = serde_json::from_str(&summary).ok()?;
    let ends =
        streams.iter().filter_map(|stream| end_of(&stream.file(plan.directory, "sender", "jsonl")).ok());
    let reads_at_once = plan.receiver.reads_at_once() && plan.workload.read_rate.is_none();
    let closed = || outcome.connections.iter().map(|connection| connection.capture.closed_windows).sum();
    judge(&Evidence {
        path,
        ends: ends.collect(),
        clock_set_by: Clocks::now().set_since(began),
        closed_windows: if reads_at_once { closed() } else { 0 },
        counters: &counters_that_tell(plan.workload, reads_at_once, &outcome.counters),
    })
}

/// Those of the sides where no receiver has a reason to leave anything unread.
fn counters_that_tell(
    workload: &Workload,
    reads_at_once: bool,
    counters: &BTreeMap<String, Counters>,
) -> BTreeMap<String, Counters> {
    let receives = |side: &str| workload.ways.each().iter().any(|way| way.receiver_side().name() == side);
    let tells = |(side, _): &(&String, &Counters)| reads_at_once || !receives(side);
    counters.iter().filter(tells).map(|(side, counters)| (side.clone(), counters.clone())).collect()
}

/// What a transfer keeps, as far as a rule is about it.
struct Evidence<'a> {
    /// `airlink.json`.
    path: Value,
    /// What each sender says at its end.
    ends: Vec<Value>,
    /// In nanoseconds, from before anything was started until everything has ended.
    clock_set_by: i128,
    /// Of a receiver that has no reason to close its window.
    closed_windows: u64,
    /// Of either side, where it has no reason to discard anything.
    counters: &'a BTreeMap<String, Counters>,
}

fn judge(evidence: &Evidence<'_>) -> Option<String> {
    let Evidence { path, ends, clock_set_by, closed_windows, counters } = evidence;
    // Reported before lateness: a busy machine is often late as well, and only the user can leave the clock alone.
    if clock_set_by.unsigned_abs() > JUMP.as_nanos() {
        return Some(format!("the clock of this machine was set by {:+.0} ms", *clock_set_by as f64 / 1e6));
    }
    let late = path.pointer("/lateness/p99").and_then(Value::as_f64).unwrap_or_default();
    if late > LATE {
        return Some(format!(
            "at least 1 % of the packets left the path more than {:.0} ms late",
            late / 1e6
        ));
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

/// Packets that devices and their queues dropped or refused: `airlink.json`, and what each sender says at its end.
pub(crate) fn dropped<'a>(path: &Value, senders: impl IntoIterator<Item = &'a Value>) -> u64 {
    let number =
        |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let of_path = [("fixed", "up"), ("mobile", "down")].into_iter().flat_map(|(side, way)| {
        let stages = path["stages"].as_object().into_iter().flat_map(|stages| stages.values());
        let corrupted: u64 = stages.map(|stage| number(stage, &format!("/{way}/corrupted"))).sum();
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
    use crate::workload::Ways;

    fn path() -> Value {
        let device = json!({ "refused_packets": 0, "dropped_by_kernel": 0 });
        json!({ "lateness": { "p99": 700_000, "max": 90_000_000 }, "fixed": device, "mobile": device })
    }

    fn end() -> Value {
        json!({ "device": { "dropped_by_kernel": 0 } })
    }

    /// A transfer that nothing has spoiled: a path, and what a sender said.
    fn valid(counters: &BTreeMap<String, Counters>) -> Evidence<'_> {
        // A clock that is disciplined moves by less than a microsecond in a millisecond, as the other one does.
        Evidence { path: path(), ends: vec![end()], clock_set_by: -1_000, closed_windows: 0, counters }
    }

    #[test]
    fn one_late_packet_among_many_spoils_nothing() {
        assert_eq!(judge(&valid(&BTreeMap::new())), None);
    }

    /// A device takes no packet whose version of IP was damaged.
    #[test]
    fn what_the_path_has_damaged_a_device_may_refuse() {
        let counters = BTreeMap::new();
        for (corrupted, refused, is_spoiled) in [(3, 2, false), (2, 2, false), (1, 2, true), (0, 1, true)] {
            for (side, way, other) in [("fixed", "up", "down"), ("mobile", "down", "up")] {
                let mut evidence = valid(&counters);
                evidence.path[side]["refused_packets"] = refused.into();
                evidence.path["stages"]["air"][way]["corrupted"] = corrupted.into();
                evidence.path["stages"]["air"][other]["corrupted"] = 9.into();
                assert_eq!(judge(&evidence).is_some(), is_spoiled, "{side}: {refused} of {corrupted}");
            }
        }
    }

    #[test]
    fn each_rule_has_its_reason() {
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
    fn a_slow_receiver_excuses_its_own_side_alone() {
        let of = |side: &str| (side.to_owned(), Counters::from([("IpOutDiscards".to_owned(), 4)]));
        let both = BTreeMap::from(["fixed", "mobile"].map(of));
        let down = Workload::plain(1);
        let up = Workload { ways: Ways::Up, ..down.clone() };
        let tell = |workload, at_once| {
            counters_that_tell(workload, at_once, &both).into_keys().collect::<Vec<_>>().join(" ")
        };
        assert_eq!([tell(&down, true), tell(&up, true)], ["fixed mobile"; 2]);
        assert_eq!([tell(&down, false), tell(&up, false)], ["fixed", "mobile"]);
        assert_eq!(tell(&Workload { ways: Ways::Both, ..down.clone() }, false), "");
    }

    #[test]
    fn a_kernel_sender_has_no_device_of_its_own() {
        let none = BTreeMap::new();
        let mut evidence = valid(&none);
        evidence.ends[0] = json!({ "kernel": {} });
        assert_eq!(judge(&evidence), None);
    }
}
