//! Until which decision two transfers with one seed are the same, where they part, and why.
//!
//! Both have the same sender, path and seed, so the first thing that differs is the cause, and everything after it a
//! consequence. Packets are looked at at four places; the difference that was there first says who made it.

use std::cmp::Reverse;
use std::fmt;

use airtcp_analyze::decisions::Line;
use serde::{Deserialize, Serialize};

use super::trace::{Decided, Passed, Place, Segment, Trace};

/// Why two transfers part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartedBy {
    /// The same data came to the receiver, and its ACK was another, or it waited longer with it.
    Receiver,
    /// Everything was the same so far, but late.
    Lateness,
    /// The path treated a packet with the same number otherwise.
    Path,
    /// Everything before was the same and in time, and still the decision differs: a mistake in the sender.
    Sender,
    /// A kernel dropped a packet between two programs, or let something cross the path that is not the transfer's.
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

/// A decision, for people and programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Since the first SYN.
    pub seconds: f64,
    /// The name of the answer that decided.
    pub by: String,
    /// What it decided.
    pub what: String,
}

/// Where two transfers part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parted {
    /// The first decision that differs, over real devices. `None`: there is none any more.
    pub real: Option<Moment>,
    /// The same in virtual time.
    pub in_virtual_time: Option<Moment>,
    /// Why.
    pub cause: PartedBy,
    /// What shows it.
    pub evidence: String,
}

/// Two traces of decisions side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alike {
    /// Decisions that are the same, from the first one on.
    pub same: usize,
    /// Decisions over real devices.
    pub real: usize,
    /// Decisions in virtual time.
    pub in_virtual_time: usize,
    /// `None`: all are the same.
    pub parted: Option<Parted>,
}

/// What came so much later, or earlier, than in virtual time can have changed a decision: a millisecond is more than a
/// machine that is not busy needs, and less than the timers that decide.
const LATE: i64 = 1_000_000;
/// The sender's log and the captures have two clocks, which were read one after the other.
const CLOCKS: i64 = 100_000;
/// These answers compare times with each other or with a limit, so what is late by less than a timer can change them:
/// RACK's reordering window may be some milliseconds, and an ACK may come just before the timer or just after it.
const BY_TIMES: [&str; 3] = ["rack", "hystart", "hystartpp"];
/// A receiver that waits longer than this does so by a timer of its own: Linux' shortest delay of an ACK is 40 ms
/// (TCP_DELACK_MIN), and timers of a tick may be one early.
const WAITS: i64 = 36_000_000;

/// Lays them side by side.
pub(crate) fn compare(real: &Trace, in_virtual_time: &Trace) -> Alike {
    let pairs = real.decisions.iter().zip(&in_virtual_time.decisions);
    let same = pairs.take_while(|(one, other)| one.line.decides_as(&other.line)).count();
    let firsts = [real, in_virtual_time].map(|trace| trace.decisions.get(same));
    let until = firsts.iter().flatten().map(|decided| decided.at).min();
    let parted = until.map(|until| {
        let by_times = firsts.iter().flatten().any(|decided| by_times(&decided.line));
        let late = if by_times { CLOCKS } else { LATE };
        let (cause, evidence) = Comparison { real, other: in_virtual_time, late }.cause(until);
        let [real, in_virtual_time] = firsts.map(|decided| decided.map(moment));
        Parted { real, in_virtual_time, cause, evidence }
    });
    let [real, in_virtual_time] = [real, in_virtual_time].map(|trace| trace.decisions.len());
    Alike { same, real, in_virtual_time, parted }
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
        let Self { same, real, in_virtual_time, parted } = self;
        let Some(Parted { real: one, in_virtual_time: other, cause, evidence }) = parted else {
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

/// The n-th packet at a place in both.
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

/// The first packet at a place that is not the same in both.
struct Difference<'a> {
    place: Place,
    number: usize,
    /// When it was there in the one where it was first.
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
    /// From so much on lateness can have changed the decision.
    late: i64,
}

impl<'a> Comparison<'a> {
    fn passed(&self, place: Place) -> [&'a [Passed]; 2] {
        [self.real, self.other].map(|trace| trace.passed[place as usize].as_slice())
    }

    /// What differed first, up to the time when the first of the two decisions was taken.
    fn cause(&self, until: i64) -> (PartedBy, String) {
        let before = |difference: &Difference<'_>| match difference.place {
            // What leaves then follows the decision.
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

    /// The receiver said something else. Either it is another receiver, or the data came in another rhythm.
    fn receiver(&self, first: &Difference<'_>) -> (PartedBy, String) {
        let shown = format!("ACK {} of the same data: {}", first.number + 1, first.shown());
        // Since the last ACK but one that is the same: what an ACK answers may wait for the next segment.
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

    /// Something else came out of the path, although the same went in.
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

    /// All that was said is the same so far. `left`: but the sender then sent something else.
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

    /// The n-th packets of a place that are the same, up to a time.
    fn pairs(&self, place: Place, until: i64) -> impl Iterator<Item = Pair<'a>> {
        let [real, other] = self.passed(place);
        let pairs = real.iter().zip(other).enumerate();
        pairs
            .map(move |(number, (real, other))| Pair { place, number, real, other })
            .take_while(|pair| pair.real.segment.says_as(&pair.other.segment))
            .filter(move |pair| pair.first_at() <= until)
    }

    /// How long the receiver waited with this ACK, if it did so by its own timers.
    fn waited(&self, ack: &Pair<'_>) -> Option<String> {
        let data = self.passed(Place::ReceiverIn);
        let [real, other] = [(0, ack.real), (1, ack.other)].map(|(run, ack): (usize, &Passed)| {
            data[run].iter().rev().find(|data| data.at <= ack.at).map_or(0, |data| ack.at - data.at)
        });
        // The model knows no accident: if it waits, it means to.
        (real > WAITS || other > LATE).then(|| {
            let [real, other] = [real, other].map(millis);
            format!("{} was sent {real} after the last data, in virtual time {other}", ack.real.segment)
        })
    }

    /// The receiver's window, if it held this segment back where it came later: the same ACKs had come to both.
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
