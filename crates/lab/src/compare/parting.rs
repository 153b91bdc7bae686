//! Finds the first decision that differs between two transfers with the same seed, and the cause.
//!
//! Sender, path and seed are the same, so the first difference is the cause, and everything after it follows
//! from it. Packets are compared at four places. The place of the earliest difference identifies what caused
//! it.

use std::cmp::Reverse;
use std::fmt;

use airtcp_analyze::decisions::Line;
use serde::{Deserialize, Serialize};

use super::trace::{Decided, Passed, Place, Segment, Trace};

/// The cause of a difference between two transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartedBy {
    /// The receiver got the same data, but sent a different ACK or delayed it longer.
    Receiver,
    /// All packets were identical so far, but late.
    Lateness,
    /// The path treated a packet with the same number differently.
    Path,
    /// All earlier packets were identical and on time, but the decision differs: a bug in the sender.
    Sender,
    /// A kernel dropped a packet between two programs, or a foreign packet crossed the path.
    Machine,
}

impl fmt::Display for PartedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Receiver => "receiver",
            Self::Lateness => "lateness",
            Self::Path => "path",
            Self::Sender => "sender",
            Self::Machine => "machine",
        })
    }
}

/// A decision, as text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Seconds since the first SYN.
    pub seconds: f64,
    /// The name of the algorithm that decided.
    pub by: String,
    /// The decision.
    pub what: String,
}

/// The first difference between two transfers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parted {
    /// The first differing decision in real time. `None` if there are no more decisions.
    pub real: Option<Moment>,
    /// The first differing decision in virtual time. `None` if there are no more decisions.
    pub in_virtual_time: Option<Moment>,
    /// The cause.
    pub cause: PartedBy,
    /// The evidence for the cause.
    pub evidence: String,
}

/// The comparison of the decisions in two transfers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alike {
    /// Number of identical decisions before the first difference.
    pub same: usize,
    /// Number of decisions in real time.
    pub real: usize,
    /// Number of decisions in virtual time.
    pub in_virtual_time: usize,
    /// The first difference. `None` if all decisions are identical.
    pub divergence: Option<Parted>,
}

/// A packet that is this much later or earlier than in virtual time may have changed a decision. A
/// millisecond is more than an idle machine needs, and less than the timers that decide.
const LATE: i64 = 1_000_000;
/// Tolerance between the clocks of the sender's log and of the captures, which were read one after the other.
const CLOCKS: i64 = 100_000;
/// Algorithms that compare times. A shift below [`LATE`] can change their decisions: RACK's reordering window
/// may be a few milliseconds, and an ACK may arrive just before or just after a timer expires.
const BY_TIMES: [&str; 3] = ["rack", "hystart", "hystartpp"];
/// A receiver that waits longer than this uses a timer. The shortest delayed ACK of Linux is 40 ms
/// (TCP_DELACK_MIN), and a timer may expire one tick early.
const WAITS: i64 = 36_000_000;

/// Compares the decisions of two transfers.
pub(crate) fn compare(real: &Trace, in_virtual_time: &Trace) -> Alike {
    let pairs = real.decisions.iter().zip(&in_virtual_time.decisions);
    let same = pairs.take_while(|(one, other)| one.line.decides_as(&other.line)).count();
    let firsts = [real, in_virtual_time].map(|trace| trace.decisions.get(same));
    let until = firsts.iter().flatten().map(|decided| decided.at).min();
    let divergence = until.map(|until| {
        let by_times = firsts.iter().flatten().any(|decided| by_times(&decided.line));
        let late = if by_times { CLOCKS } else { LATE };
        let (cause, evidence) = Comparison { real, other: in_virtual_time, late }.cause(until);
        let [real, in_virtual_time] = firsts.map(|decided| decided.map(moment));
        Parted { real, in_virtual_time, cause, evidence }
    });
    let [real, in_virtual_time] = [real, in_virtual_time].map(|trace| trace.decisions.len());
    Alike { same, real, in_virtual_time, divergence }
}

fn by_times(line: &Line) -> bool {
    line.what == "timeout" || BY_TIMES.contains(&line.by.as_str())
}

fn moment(Decided { at, line }: &Decided) -> Moment {
    let Line { by, why, .. } = line;
    Moment { seconds: *at as f64 / 1e9, by: by.clone(), what: format!("{} ({why})", line.detail()) }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:.3} s: {}", self.by, self.seconds, self.what)
    }
}

impl fmt::Display for Alike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { same, real, in_virtual_time, divergence } = self;
        let Some(Parted { real: one, in_virtual_time: other, cause, evidence }) = divergence else {
            return write!(f, "all {same} decisions identical");
        };
        let shown = |moment: &Option<Moment>| {
            moment.as_ref().map_or_else(|| "no further decision".to_owned(), Moment::to_string)
        };
        let all = real.max(in_virtual_time);
        write!(
            f,
            "{same} of {all} decisions identical, then real {}, virtual {}: ",
            shown(one),
            shown(other)
        )?;
        write!(f, "{cause}: {evidence}")
    }
}

/// The n-th packet at a place in both transfers.
struct Pair<'a> {
    place: Place,
    number: usize,
    real: &'a Passed,
    other: &'a Passed,
}

impl Pair<'_> {
    fn late(&self) -> i64 {
        self.real.at - self.other.at
    }

    fn first_at(&self) -> i64 {
        self.real.at.min(self.other.at)
    }
}

/// The first packet at a place that differs between the transfers.
struct Difference<'a> {
    place: Place,
    number: usize,
    /// The earlier of the times in both transfers.
    at: i64,
    real: Option<&'a Segment>,
    other: Option<&'a Segment>,
}

impl Difference<'_> {
    fn shown(&self) -> String {
        let shown =
            |segment: Option<&Segment>| segment.map_or_else(|| "nothing".to_owned(), Segment::to_string);
        format!("real {}, virtual {}", shown(self.real), shown(self.other))
    }
}

struct Comparison<'a> {
    real: &'a Trace,
    other: &'a Trace,
    /// The smallest shift that may have changed the decision.
    late: i64,
}

impl<'a> Comparison<'a> {
    fn passed(&self, place: Place) -> [&'a [Passed]; 2] {
        [self.real, self.other].map(|trace| trace.passed[place as usize].as_slice())
    }

    /// Finds the first difference before the earlier of the two decisions.
    fn cause(&self, until: i64) -> (PartedBy, String) {
        let before = |difference: &Difference<'_>| match difference.place {
            // A segment that leaves at the time of the decision follows from it.
            Place::SenderOut => difference.at < until,
            _ => difference.at <= until + CLOCKS,
        };
        let differences = Place::ALL.into_iter().filter_map(|place| self.difference(place)).filter(before);
        let Some(first) = differences.min_by_key(|difference| (difference.at, difference.place)) else {
            return self.timing(until, None);
        };
        match first.place {
            Place::SenderOut => self.timing(first.at, Some(&first)),
            Place::ReceiverOut => self.receiver(&first),
            Place::ReceiverIn => self.path(&first, 0),
            Place::SenderIn => self.path(&first, 1),
        }
    }

    fn difference(&self, place: Place) -> Option<Difference<'a>> {
        let [real, other] = self.passed(place);
        let number =
            real.iter().zip(other).take_while(|(one, two)| one.segment.says_as(&two.segment)).count();
        let [real, other] = [real.get(number), other.get(number)];
        let at = real.into_iter().chain(other).map(|passed| passed.at).min()?;
        let segment = |passed: Option<&'a Passed>| passed.map(|passed| &passed.segment);
        Some(Difference { place, number, at, real: segment(real), other: segment(other) })
    }

    /// Explains a different ACK: by another receiver, or by data that arrived with different timing.
    fn receiver(&self, first: &Difference<'_>) -> (PartedBy, String) {
        let shown = format!("ACK {} of the same data: {}", first.number + 1, first.shown());
        // Check the data since the last but one identical ACK: a delayed ACK may answer an earlier segment.
        let acks = self.passed(Place::ReceiverOut);
        let since =
            first.number.checked_sub(2).map_or(i64::MIN, |number| acks[0][number].at.min(acks[1][number].at));
        let data: Vec<_> =
            self.pairs(Place::ReceiverIn, first.at).filter(|pair| pair.first_at() >= since).collect();
        let jump = |pair: &[Pair<'_>]| pair[1].late() - pair[0].late();
        let Some(pair) = data.windows(2).max_by_key(|pair| jump(pair).abs()) else {
            return (PartedBy::Receiver, shown);
        };
        let jump = jump(pair).abs();
        if jump <= LATE {
            let evidence =
                format!("{shown}; the data before it arrived with the same timing within {}", millis(jump));
            return (PartedBy::Receiver, evidence);
        }
        let [gap, other] =
            [pair[1].real.at - pair[0].real.at, pair[1].other.at - pair[0].other.at].map(millis);
        let late = &pair[1].real.segment;
        let evidence =
            format!("{late} arrived {gap} after the segment before it, in virtual time {other}; {shown}");
        (PartedBy::Lateness, evidence)
    }

    /// Explains different output of the path for the same input.
    fn path(&self, first: &Difference<'_>, way: usize) -> (PartedBy, String) {
        let [real, other] = [self.real, self.other].map(|trace| trace.fates[way].as_slice());
        let entered = self.pairs(if way == 0 { Place::SenderOut } else { Place::ReceiverOut }, first.at);
        let mut entered = entered.filter(|pair| pair.number < real.len().min(other.len()));
        let parted = entered.find(|pair| real[pair.number] != other[pair.number]);
        let direction = ["down", "up"][way];
        match (parted, self.machine()) {
            (_, Some(machine)) if self.real.machine.strangers > 0 => (PartedBy::Machine, machine),
            (Some(pair), _) => {
                let evidence = format!(
                    "packet {} {direction} ({}) real {}, virtual {}; it entered {} than in virtual time",
                    pair.number + 1,
                    pair.real.segment,
                    real[pair.number],
                    other[pair.number],
                    later(pair.late())
                );
                (PartedBy::Path, evidence)
            }
            (None, Some(machine)) => (PartedBy::Machine, format!("{machine}; {}", first.shown())),
            (None, None) => {
                let number = first.number + 1;
                (PartedBy::Path, format!("packet {number} out of the path, {direction}: {}", first.shown()))
            }
        }
    }

    /// Explains a difference after identical packets by their timing. `left` is the first segment that the
    /// sender sent differently, if there is one.
    fn timing(&self, until: i64, left: Option<&Difference<'_>>) -> (PartedBy, String) {
        let shown =
            left.map_or(String::new(), |left| format!("; segment {} {}", left.number + 1, left.shown()));
        if let (Some(machine), Some(_)) = (self.machine(), left) {
            return (PartedBy::Machine, format!("{machine}{shown}"));
        }
        let mut pairs: Vec<_> =
            Place::ALL.into_iter().flat_map(|place| self.pairs(place, until + CLOCKS)).collect();
        pairs.sort_by_key(|pair| (pair.first_at(), pair.place));
        let Some(first) = pairs.iter().find(|pair| pair.late().abs() > self.late) else {
            let most = pairs.iter().map(|pair| pair.late().abs()).max().unwrap_or_default();
            let evidence = format!(
                "all packets before it are identical and at the same time within {}{shown}",
                millis(most)
            );
            return (PartedBy::Sender, evidence);
        };
        match first.place {
            Place::ReceiverOut => {
                if let Some(evidence) = self.waited(first) {
                    return (PartedBy::Receiver, format!("{evidence}{shown}"));
                }
            }
            Place::SenderOut => {
                if let Some(evidence) = self.held_back(first) {
                    return (PartedBy::Receiver, format!("{evidence}{shown}"));
                }
            }
            Place::ReceiverIn | Place::SenderIn => {}
        }
        let latest = pairs.iter().min_by_key(|pair| Reverse(pair.late().abs())).unwrap_or(first);
        let mut evidence = format!(
            "{} at {:.3} s, first {}: {}",
            late(latest.late()),
            latest.real.at as f64 / 1e9,
            first.place.step(),
            first.real.segment
        );
        if latest.number != first.number || latest.place != first.place {
            evidence.push_str(&format!(", {} at {:.3} s", late(first.late()), first.real.at as f64 / 1e9));
        }
        if self.real.machine.latest > LATE {
            evidence
                .push_str(&format!("; the emulator was at most {} late", millis(self.real.machine.latest)));
        }
        (PartedBy::Lateness, evidence + &shown)
    }

    /// The n-th packets at a place in both transfers, up to a time, as long as they are identical.
    fn pairs(&self, place: Place, until: i64) -> impl Iterator<Item = Pair<'a>> {
        let [real, other] = self.passed(place);
        let pairs = real.iter().zip(other).enumerate();
        pairs
            .map(move |(number, (real, other))| Pair { place, number, real, other })
            .take_while(|pair| pair.real.segment.says_as(&pair.other.segment))
            .filter(move |pair| pair.first_at() <= until)
    }

    /// Describes how long the receiver delayed this ACK, if it used a timer.
    fn waited(&self, ack: &Pair<'_>) -> Option<String> {
        let data = self.passed(Place::ReceiverIn);
        let [real, other] = [(0, ack.real), (1, ack.other)].map(|(run, ack): (usize, &Passed)| {
            data[run].iter().rev().find(|data| data.at <= ack.at).map_or(0, |data| ack.at - data.at)
        });
        // The model has no scheduling delays, so any wait in it is deliberate.
        (real > WAITS || other > LATE).then(|| {
            let [real, other] = [real, other].map(millis);
            format!("{} was sent {real} after the last data, in virtual time {other}", ack.real.segment)
        })
    }

    /// Explains a late segment by the receiver's window, if the window held it back in the transfer in which
    /// it left later. Both senders had received the same ACKs.
    fn held_back(&self, segment: &Pair<'_>) -> Option<String> {
        let Segment::Data { offset, len: len @ 1.., .. } = segment.real.segment else { return None };
        let end = offset + u64::from(len);
        let edge = |passed: &Passed| match passed.segment {
            Segment::Ack { edge, .. } => edge,
            Segment::Data { .. } => 0,
        };
        let acks = self.pairs(Place::SenderIn, segment.first_at());
        let (real, other) =
            acks.fold((0, 0), |(real, other), ack| (real.max(edge(ack.real)), other.max(edge(ack.other))));
        let later = if segment.late() > 0 { real } else { other };
        (later < end && real != other).then(|| {
            format!("{} waited: the window ended at {real}, in virtual time at {other}", segment.real.segment)
        })
    }

    fn machine(&self) -> Option<String> {
        let machine = self.real.machine;
        if machine.strangers > 0 {
            return Some(format!("{} packets of other programs crossed the path", machine.strangers));
        }
        (machine.dropped > 0)
            .then(|| format!("kernels dropped {} packets between two programs", machine.dropped))
    }
}

fn millis(nanos: i64) -> String {
    let millis = nanos as f64 / 1e6;
    if millis.abs() < 10.0 { format!("{millis:.2} ms") } else { format!("{millis:.0} ms") }
}

fn late(nanos: i64) -> String {
    let which = if nanos < 0 { "early" } else { "late" };
    format!("{} {which}", millis(nanos.abs()))
}

fn later(nanos: i64) -> String {
    let which = if nanos < 0 { "earlier" } else { "later" };
    format!("{} {which}", millis(nanos.abs()))
}
