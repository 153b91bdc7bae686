//! Finds the first decision that differs between two transfers with the same seed, and the cause.
//!
//! Sender, path and seed are the same, so the first difference causes all later ones. Packets are compared at
//! four capture points. The capture point of the earliest difference identifies the component that caused it.

use std::cmp::Reverse;
use std::fmt;

use airlink::packet::Direction;
use airtcp_analyze::decisions::Line;
use serde::{Deserialize, Serialize};

use super::trace::{CapturePoint, Disturbances, ObservedPacket, Segment, TimedDecision, Trace};

/// The cause of a difference between two transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
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

impl fmt::Display for Cause {
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
pub struct DecisionSummary {
    /// Seconds since the first SYN.
    pub seconds: f64,
    /// The name of the algorithm that decided.
    pub by: String,
    /// The decision.
    pub what: String,
}

/// The first difference between two transfers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Divergence {
    /// The first differing decision in real time. `None` if there are no more decisions.
    pub real: Option<DecisionSummary>,
    /// The first differing decision in virtual time. `None` if there are no more decisions.
    pub in_virtual_time: Option<DecisionSummary>,
    /// The cause.
    pub cause: Cause,
    /// The evidence for the cause.
    pub evidence: String,
}

/// The comparison of the decisions in two transfers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionComparison {
    /// Number of identical decisions before the first difference.
    pub same: usize,
    /// Number of decisions in real time.
    pub real: usize,
    /// Number of decisions in virtual time.
    pub in_virtual_time: usize,
    /// The first difference. `None` if all decisions are identical.
    pub divergence: Option<Divergence>,
}

/// Minimum shift of a packet against virtual time, in nanoseconds, that may have changed a decision. An idle
/// machine shifts packets by less than a millisecond, and the timers of a sender are longer.
const RELEVANT_SHIFT: i64 = 1_000_000;
/// Tolerance between the clocks of the sender's log and of the captures, which were read one after the other.
const CLOCK_TOLERANCE: i64 = 100_000;
/// Algorithms that compare times. A shift below [`RELEVANT_SHIFT`] can change their decisions: RACK's
/// reordering window may be a few milliseconds, and an ACK may arrive just before or just after a timer
/// expires.
const TIME_BASED: [&str; 3] = ["rack", "hystart", "hystartpp"];
/// A receiver that waits longer than this uses a timer. The shortest delayed ACK of Linux is 40 ms
/// (TCP_DELACK_MIN), and a timer may expire one tick early.
const TIMER_WAIT: i64 = 36_000_000;

/// Compares the decisions of two transfers.
pub(crate) fn compare(real: &Trace, in_virtual_time: &Trace) -> DecisionComparison {
    let pairs = real.decisions.iter().zip(&in_virtual_time.decisions);
    let same = pairs.take_while(|(one, other)| one.line.decides_as(&other.line)).count();
    let differing = [real, in_virtual_time].map(|trace| trace.decisions.get(same));
    let until = differing.iter().flatten().map(|decision| decision.at).min();
    let divergence = until.map(|until| {
        let time_based = differing.iter().flatten().any(|decision| is_time_based(&decision.line));
        let relevant_shift = if time_based { CLOCK_TOLERANCE } else { RELEVANT_SHIFT };
        let (cause, evidence) = CauseSearch { real, other: in_virtual_time, relevant_shift }.cause(until);
        let [real, in_virtual_time] = differing.map(|decision| decision.map(DecisionSummary::of));
        Divergence { real, in_virtual_time, cause, evidence }
    });
    let [real, in_virtual_time] = [real, in_virtual_time].map(|trace| trace.decisions.len());
    DecisionComparison { same, real, in_virtual_time, divergence }
}

fn is_time_based(line: &Line) -> bool {
    line.what == "timeout" || TIME_BASED.contains(&line.by.as_str())
}

impl DecisionSummary {
    fn of(TimedDecision { at, line }: &TimedDecision) -> Self {
        let what = format!("{} ({})", line.detail(), line.why);
        Self { seconds: *at as f64 / 1e9, by: line.by.clone(), what }
    }
}

impl fmt::Display for DecisionSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:.3} s: {}", self.by, self.seconds, self.what)
    }
}

impl fmt::Display for DecisionComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { same, real, in_virtual_time, divergence } = self;
        let Some(Divergence { real: one, in_virtual_time: other, cause, evidence }) = divergence else {
            return write!(f, "all {same} decisions identical");
        };
        let [one, other] = [one, other].map(|decision| {
            decision.as_ref().map_or_else(|| "no further decision".to_owned(), DecisionSummary::to_string)
        });
        let all = real.max(in_virtual_time);
        write!(
            f,
            "{same} of {all} decisions identical, then real {one}, virtual {other}: {cause}: {evidence}"
        )
    }
}

/// The n-th packet at a capture point in both transfers.
struct Pair<'a> {
    point: CapturePoint,
    /// n, from 0.
    index: usize,
    real: &'a ObservedPacket,
    other: &'a ObservedPacket,
}

impl Pair<'_> {
    /// How much later the packet passed in real time.
    fn shift(&self) -> i64 {
        self.real.at - self.other.at
    }

    fn earlier_time(&self) -> i64 {
        self.real.at.min(self.other.at)
    }
}

/// The first packet at a capture point that differs between the transfers.
struct PacketDifference<'a> {
    point: CapturePoint,
    index: usize,
    /// The earlier of the times in both transfers.
    at: i64,
    real: Option<&'a Segment>,
    other: Option<&'a Segment>,
}

impl fmt::Display for PacketDifference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [real, other] = [self.real, self.other]
            .map(|segment| segment.map_or_else(|| "nothing".to_owned(), Segment::to_string));
        write!(f, "real {real}, virtual {other}")
    }
}

/// The search for the cause of a divergence.
struct CauseSearch<'a> {
    real: &'a Trace,
    other: &'a Trace,
    /// The smallest shift of a packet that may have changed the decision.
    relevant_shift: i64,
}

impl<'a> CauseSearch<'a> {
    fn packets(&self, point: CapturePoint) -> [&'a [ObservedPacket]; 2] {
        [self.real, self.other].map(|trace| trace.observed[point as usize].as_slice())
    }

    /// Finds the first difference before the earlier of the two decisions.
    fn cause(&self, until: i64) -> (Cause, String) {
        let before = |difference: &PacketDifference<'_>| match difference.point {
            // A segment that leaves at the time of the decision follows from the decision.
            CapturePoint::SenderOut => difference.at < until,
            _ => difference.at <= until + CLOCK_TOLERANCE,
        };
        let differences =
            CapturePoint::ALL.into_iter().filter_map(|point| self.difference(point)).filter(before);
        let Some(first) = differences.min_by_key(|difference| (difference.at, difference.point)) else {
            return self.timing(until, None);
        };
        match first.point {
            CapturePoint::SenderOut => self.timing(first.at, Some(&first)),
            CapturePoint::ReceiverOut => self.receiver(&first),
            CapturePoint::ReceiverIn => self.path(&first, Direction::Down),
            CapturePoint::SenderIn => self.path(&first, Direction::Up),
        }
    }

    fn difference(&self, point: CapturePoint) -> Option<PacketDifference<'a>> {
        let [real, other] = self.packets(point);
        let same = |(one, two): &(&ObservedPacket, &ObservedPacket)| one.segment.is_equivalent(&two.segment);
        let index = real.iter().zip(other).take_while(same).count();
        let [real, other] = [real.get(index), other.get(index)];
        let at = real.into_iter().chain(other).map(|packet| packet.at).min()?;
        let [real, other] = [real, other].map(|packet| packet.map(|packet| &packet.segment));
        Some(PacketDifference { point, index, at, real, other })
    }

    /// Explains a different ACK: by another receiver, or by data that arrived with different timing.
    fn receiver(&self, first: &PacketDifference<'_>) -> (Cause, String) {
        let shown = format!("ACK {} of the same data: {first}", first.index + 1);
        // Check the data since the last but one identical ACK: a delayed ACK may answer an earlier segment.
        let [real, other] = self.packets(CapturePoint::ReceiverOut);
        let since = first.index.checked_sub(2).map_or(i64::MIN, |ack| real[ack].at.min(other[ack].at));
        let data = self.pairs(CapturePoint::ReceiverIn, first.at);
        let data: Vec<_> = data.filter(|pair| pair.earlier_time() >= since).collect();
        let jump = |pair: &[Pair<'_>]| (pair[1].shift() - pair[0].shift()).abs();
        let Some(pair) = data.windows(2).max_by_key(|pair| jump(pair)) else {
            return (Cause::Receiver, shown);
        };
        if jump(pair) <= RELEVANT_SHIFT {
            let within = millis(jump(pair));
            let evidence =
                format!("{shown}; the data before it arrived with the same timing within {within}");
            return (Cause::Receiver, evidence);
        }
        let [gap, other] =
            [pair[1].real.at - pair[0].real.at, pair[1].other.at - pair[0].other.at].map(millis);
        let late = &pair[1].real.segment;
        let evidence =
            format!("{late} arrived {gap} after the segment before it, in virtual time {other}; {shown}");
        (Cause::Lateness, evidence)
    }

    /// Explains different output of the path for the same input.
    fn path(&self, first: &PacketDifference<'_>, direction: Direction) -> (Cause, String) {
        let [real, other] = [self.real, self.other].map(|trace| trace.fates[direction].as_slice());
        let entry = match direction {
            Direction::Down => CapturePoint::SenderOut,
            Direction::Up => CapturePoint::ReceiverOut,
        };
        let mut entered = self.pairs(entry, first.at).filter(|pair| pair.index < real.len().min(other.len()));
        let treated_differently = entered.find(|pair| real[pair.index] != other[pair.index]);
        match (treated_differently, self.disturbance()) {
            (_, Some(disturbance)) if self.real.disturbances.foreign > 0 => (Cause::Machine, disturbance),
            (Some(pair), _) => {
                let evidence = format!(
                    "packet {} {direction} ({}) real {}, virtual {}; it entered {} than in virtual time",
                    pair.index + 1,
                    pair.real.segment,
                    real[pair.index],
                    other[pair.index],
                    shifted(pair.shift(), "earlier", "later")
                );
                (Cause::Path, evidence)
            }
            (None, Some(disturbance)) => (Cause::Machine, format!("{disturbance}; {first}")),
            (None, None) => {
                let number = first.index + 1;
                (Cause::Path, format!("packet {number} out of the path, {direction}: {first}"))
            }
        }
    }

    /// Explains a difference after identical packets by their timing. `sent` is the first segment that the
    /// sender sent differently, if there is one.
    fn timing(&self, until: i64, sent: Option<&PacketDifference<'_>>) -> (Cause, String) {
        let shown = sent.map_or(String::new(), |sent| format!("; segment {} {sent}", sent.index + 1));
        if let (Some(disturbance), Some(_)) = (self.disturbance(), sent) {
            return (Cause::Machine, disturbance + &shown);
        }
        let points = CapturePoint::ALL.into_iter();
        let mut pairs: Vec<_> = points.flat_map(|point| self.pairs(point, until + CLOCK_TOLERANCE)).collect();
        pairs.sort_by_key(|pair| (pair.earlier_time(), pair.point));
        let Some(first) = pairs.iter().find(|pair| pair.shift().abs() > self.relevant_shift) else {
            let within = millis(pairs.iter().map(|pair| pair.shift().abs()).max().unwrap_or_default());
            let evidence =
                format!("all packets before it are identical and at the same time within {within}{shown}");
            return (Cause::Sender, evidence);
        };
        let by_receiver = match first.point {
            CapturePoint::ReceiverOut => self.ack_delay(first),
            CapturePoint::SenderOut => self.window_limit(first),
            CapturePoint::ReceiverIn | CapturePoint::SenderIn => None,
        };
        if let Some(evidence) = by_receiver {
            return (Cause::Receiver, evidence + &shown);
        }
        let farthest = pairs.iter().min_by_key(|pair| Reverse(pair.shift().abs())).unwrap_or(first);
        let late = |pair: &Pair<'_>| {
            format!("{} at {:.3} s", shifted(pair.shift(), "early", "late"), pair.real.at as f64 / 1e9)
        };
        let mut evidence =
            format!("{}, first {}: {}", late(farthest), first.point.component(), first.real.segment);
        if (farthest.index, farthest.point) != (first.index, first.point) {
            evidence += &format!(", {}", late(first));
        }
        if self.real.disturbances.max_lateness > RELEVANT_SHIFT {
            let most = millis(self.real.disturbances.max_lateness);
            evidence += &format!("; the emulator was at most {most} late");
        }
        (Cause::Lateness, evidence + &shown)
    }

    /// The pairs of packets at a capture point up to a time. The iterator ends at the first pair that
    /// differs.
    fn pairs(&self, point: CapturePoint, until: i64) -> impl Iterator<Item = Pair<'a>> {
        let [real, other] = self.packets(point);
        let pairs = real.iter().zip(other).enumerate();
        pairs
            .map(move |(index, (real, other))| Pair { point, index, real, other })
            .take_while(|pair| pair.real.segment.is_equivalent(&pair.other.segment))
            .filter(move |pair| pair.earlier_time() <= until)
    }

    /// Describes how long the receiver delayed this ACK, if it used a timer.
    fn ack_delay(&self, ack: &Pair<'_>) -> Option<String> {
        let delay = |data: &[ObservedPacket], ack: &ObservedPacket| {
            data.iter().rev().find(|data| data.at <= ack.at).map_or(0, |data| ack.at - data.at)
        };
        let data = self.packets(CapturePoint::ReceiverIn);
        let (real, other) = (delay(data[0], ack.real), delay(data[1], ack.other));
        // The model has no scheduling delays, so any wait in virtual time is deliberate.
        (real > TIMER_WAIT || other > RELEVANT_SHIFT).then(|| {
            let [real, other] = [real, other].map(millis);
            format!("{} was sent {real} after the last data, in virtual time {other}", ack.real.segment)
        })
    }

    /// Explains a late segment by the receiver's window, if the window held it back in the transfer in which
    /// it left later. Both senders had received the same ACKs.
    fn window_limit(&self, segment: &Pair<'_>) -> Option<String> {
        let Segment::Data { offset, len: len @ 1.., .. } = segment.real.segment else { return None };
        let end = offset + u64::from(len);
        let edge = |packet: &ObservedPacket| match packet.segment {
            Segment::Ack { edge, .. } => edge,
            Segment::Data { .. } => 0,
        };
        let acks = self.pairs(CapturePoint::SenderIn, segment.earlier_time());
        let (real, other) =
            acks.fold((0, 0), |(real, other), ack| (real.max(edge(ack.real)), other.max(edge(ack.other))));
        let in_later_transfer = if segment.shift() > 0 { real } else { other };
        (in_later_transfer < end && real != other).then(|| {
            format!("{} waited: the window ended at {real}, in virtual time at {other}", segment.real.segment)
        })
    }

    /// Describes how the machine disturbed the real transfer, if it did.
    fn disturbance(&self) -> Option<String> {
        match self.real.disturbances {
            Disturbances { foreign: 0, dropped: 0, .. } => None,
            Disturbances { foreign: 0, dropped, .. } => {
                Some(format!("kernels dropped {dropped} packets between two programs"))
            }
            Disturbances { foreign, .. } => {
                Some(format!("{foreign} packets of other programs crossed the path"))
            }
        }
    }
}

fn millis(nanos: i64) -> String {
    let millis = nanos as f64 / 1e6;
    if millis.abs() < 10.0 { format!("{millis:.2} ms") } else { format!("{millis:.0} ms") }
}

/// Formats a shift in time, followed by one of these words.
fn shifted(nanos: i64, early: &str, late: &str) -> String {
    format!("{} {}", millis(nanos.abs()), if nanos < 0 { early } else { late })
}
