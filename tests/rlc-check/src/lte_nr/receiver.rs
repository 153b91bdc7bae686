//! The receiving side of AM (TS 36.322 §5.1.3.2 and §5.2.3, TS 38.322 §5.2.3.2 and §5.3.4).

use std::collections::BTreeMap;
use std::ops::Range;

use super::Generation;
use super::codec::{Nack, Status};
use super::ranges::Ranges;
use super::settings::DirectionSettings;
use crate::findings::{Findings, Invariant};
use crate::settings::Time;

/// A data PDU that arrives.
#[derive(Clone, Debug)]
pub(super) struct DataArrival {
    pub(super) sn: u32,
    pub(super) poll: bool,
    pub(super) octets: Range<u32>,
    pub(super) ends: bool,
}

pub(super) struct Receiver {
    generation: Generation,
    reassembly: Time,
    status_prohibit: Time,
    patience: Option<Time>,
    /// RX_Next, VR(R).
    next: u64,
    /// RX_Next_Highest, VR(H).
    highest: u64,
    /// RX_Highest_Status, VR(MS).
    highest_status: u64,
    /// Units at or above `next` that have arrived at least in part.
    units: BTreeMap<u64, Unit>,
    /// t-Reassembly or t-Reordering: time of its expiry, and RX_Next_Status_Trigger or VR(X).
    timer: Option<(Time, u64)>,
    /// Numbers of the units whose polls must not be answered yet.
    delayed_polls: Vec<u64>,
    /// Time since which a report is triggered and not sent.
    triggered: Option<Time>,
    /// End of t-StatusProhibit.
    prohibited_until: Time,
    /// Whether a violation has been recorded because the triggered report is late.
    is_noticed: bool,
    /// A report that lacks its last NACKs: its frame and time, and the maximum size of a NACK in octets.
    truncated: Option<(u64, Time, usize)>,
}

/// A unit, its first missing octet, and its last missing octet. `None`: the octets up to the end are missing.
type MissingOctets = (u64, u32, Option<u32>);

#[derive(Default)]
struct Unit {
    received: Ranges,
    /// The unit's size, once its last octet has arrived.
    length: Option<u32>,
}

impl Unit {
    fn is_whole(&self) -> bool {
        self.length.is_some_and(|length| self.received.contains(&(0..length)))
    }

    /// The missing octets. The end of the last range is `None` if they include the last octet of the unit.
    fn missing(&self) -> Vec<(u32, Option<u32>)> {
        let mut missing: Vec<_> =
            self.received.holes().map(|hole| (hole.start, Some(hole.end - 1))).collect();
        if self.length.is_none() {
            missing.push((self.received.end(), None));
        }
        missing
    }
}

impl Receiver {
    /// `patience`: maximum time for which a report that is due may wait.
    pub(super) fn new(generation: Generation, settings: &DirectionSettings, patience: Option<Time>) -> Self {
        Self {
            generation,
            reassembly: settings.reassembly,
            status_prohibit: settings.status_prohibit,
            patience,
            next: 0,
            highest: 0,
            highest_status: 0,
            units: BTreeMap::new(),
            timer: None,
            delayed_polls: Vec::new(),
            triggered: None,
            prohibited_until: 0,
            is_noticed: false,
            truncated: None,
        }
    }

    pub(super) fn next_expiry(&self) -> Option<Time> {
        self.timer.map(|(at, _)| at)
    }

    fn is_whole(&self, unit: u64) -> bool {
        self.units.get(&unit).is_some_and(Unit::is_whole)
    }

    /// The first unit at or above `from` that is not complete.
    fn first_incomplete(&self, from: u64) -> u64 {
        (from..).find(|unit| !self.is_whole(*unit)).unwrap_or(from)
    }

    pub(super) fn receive(&mut self, now: Time, data: &DataArrival) {
        let number = self.generation.at_or_above(self.next, data.sn);
        let is_inside = number < self.next + self.generation.window();
        let known = self.units.get(&number).is_some_and(|unit| unit.received.contains(&data.octets));
        if !is_inside || known {
            // A poll in a PDU that is discarded is answered at once.
            if data.poll {
                self.trigger(now);
            }
            return;
        }
        let unit = self.units.entry(number).or_default();
        unit.received.add(data.octets.clone());
        if data.ends {
            unit.length = Some(data.octets.end);
        }
        self.highest = self.highest.max(number + 1);
        if self.is_whole(self.highest_status) {
            self.highest_status = self.first_incomplete(self.highest_status);
        }
        if self.is_whole(self.next) {
            self.next = self.first_incomplete(self.next);
            while self.units.first_key_value().is_some_and(|(unit, _)| *unit < self.next) {
                self.units.pop_first();
            }
        }
        self.update_timer(now);
        if data.poll {
            self.delayed_polls.push(number);
        }
        self.answer_polls(now);
    }

    fn update_timer(&mut self, now: Time) {
        if let Some((_, mark)) = self.timer {
            let upper = self.next + self.generation.window();
            let is_outside = (mark < self.next || mark > upper) && mark != upper;
            if mark == self.next || self.is_short_wait(self.next, mark) || is_outside {
                self.timer = None;
            }
        }
        if self.timer.is_none() && self.must_wait(self.next) {
            self.timer = Some((now + self.reassembly, self.highest));
        }
    }

    /// NR: whether `mark` is `lower` + 1, and the SDU `lower` has no gap before its last received octet.
    fn is_short_wait(&self, lower: u64, mark: u64) -> bool {
        matches!(self.generation, Generation::Nr(_)) && mark == lower + 1 && !self.has_hole(lower)
    }

    fn has_hole(&self, unit: u64) -> bool {
        self.units.get(&unit).is_some_and(|unit| unit.received.holes().next().is_some())
    }

    /// Whether the timer has to start. `lower` is RX_Next or VR(R). After an expiry, it is RX_Highest_Status
    /// or VR(MS).
    fn must_wait(&self, lower: u64) -> bool {
        match self.generation {
            Generation::Lte(_) => self.highest > lower,
            Generation::Nr(_) => {
                self.highest > lower + 1 || self.highest == lower + 1 && self.has_hole(lower)
            }
        }
    }

    pub(super) fn expire(&mut self, now: Time) {
        let Some((_, mark)) = self.timer.take_if(|(at, _)| *at <= now) else { return };
        self.highest_status = self.first_incomplete(mark);
        if self.must_wait(self.highest_status) {
            self.timer = Some((now + self.reassembly, self.highest));
        }
        self.trigger(now);
        self.answer_polls(now);
    }

    fn answer_polls(&mut self, now: Time) {
        let (status, upper) = (self.highest_status, self.next + self.generation.window());
        let before = self.delayed_polls.len();
        self.delayed_polls.retain(|unit| *unit >= status && *unit < upper);
        if self.delayed_polls.len() < before {
            self.trigger(now);
        }
    }

    fn trigger(&mut self, now: Time) {
        self.triggered.get_or_insert(now);
    }

    /// Time since which a report is due.
    fn due_since(&self) -> Option<Time> {
        self.triggered.map(|at| at.max(self.prohibited_until))
    }

    /// Checks that no report is overdue. Runs at the transmission of a data PDU of `octets` octets, and at
    /// the end of the capture.
    pub(super) fn check_due(
        &mut self,
        now: Time,
        frame: u64,
        octets: Option<usize>,
        findings: &mut Findings,
    ) {
        // A transport block with room for this data PDU also had room for a report.
        let has_room = octets.is_some_and(|octets| octets > 4);
        if let Some(since) = self.due_since()
            && since <= now
            && !self.is_noticed
        {
            let is_late = has_room || self.patience.is_some_and(|patience| now > since + patience);
            self.is_noticed = is_late;
            findings.expect(Invariant::Reporting, frame, !is_late, || {
                format!("a report that is due for {} us has not been sent", (now - since) / 1000)
            });
        }
        if let (Some((report, at, needed)), Some(octets)) = (self.truncated.take(), octets)
            && at == now
        {
            findings.expect(Invariant::Acknowledgement, report, octets <= needed, || {
                format!("a report omits NACKs, but a data PDU of {octets} bytes follows")
            });
        }
    }

    /// Checks a report that is transmitted.
    pub(super) fn check_report(&mut self, now: Time, frame: u64, status: &Status, findings: &mut Findings) {
        findings.expect(Invariant::Reporting, frame, self.triggered.is_some(), || {
            "a report without a poll or an expiry of the timer".to_owned()
        });
        if self.triggered.is_some() {
            findings.expect(Invariant::StatusProhibit, frame, now >= self.prohibited_until, || {
                let early = self.prohibited_until.saturating_sub(now) / 1000;
                format!("a report {early} us before t-StatusProhibit expires")
            });
            self.check_due(now, frame, None, findings);
        }
        self.check_content(now, frame, status, findings);
        self.triggered = None;
        self.is_noticed = false;
        self.prohibited_until = now + self.status_prohibit;
    }

    fn check_content(&mut self, now: Time, frame: u64, status: &Status, findings: &mut Findings) {
        let ack = self.generation.at_or_above(self.next, status.ack);
        findings.expect(Invariant::Reassembly, frame, ack <= self.highest_status, || {
            format!("ACK_SN {} although the timer allows only {}", status.ack, self.wire(self.highest_status))
        });
        let named: Vec<MissingOctets> = status.nacks.iter().flat_map(|nack| self.named(nack, ack)).collect();
        let is_sorted = named.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1));
        let first = named.first().is_none_or(|(unit, ..)| *unit >= self.next);
        findings.expect(Invariant::Acknowledgement, frame, is_sorted && first, || {
            "the NACKs are not in ascending order below ACK_SN".to_owned()
        });
        let mut expected = self.missing_below(ack);
        // If the holes of the first unit do not fit into the report, one NACK may cover all of them.
        if ack < self.highest_status
            && let [only] = named[..]
            && covering(&expected) == Some(only)
        {
            expected = vec![only];
        }
        self.check_missing(frame, status.ack, &named, &expected, findings);
        if ack < self.highest_status {
            findings.expect(Invariant::Acknowledgement, frame, !self.is_whole(ack), || {
                format!("ACK_SN {} belongs to a unit that has arrived", status.ack)
            });
            // The largest NACK has SN, SO fields and a range.
            self.truncated = Some((frame, now, 16));
        }
    }

    /// Checks that a report names exactly the octets that are expected to be missing.
    fn check_missing(
        &self,
        frame: u64,
        ack: u32,
        named: &[MissingOctets],
        expected: &[MissingOctets],
        findings: &mut Findings,
    ) {
        let received = named.iter().find(|range| !expected.contains(range));
        findings.expect(Invariant::Acknowledgement, frame, received.is_none(), || {
            let (unit, start, end) = received.copied().unwrap_or_default();
            format!("SN {} [{start}..{end:?}] is reported missing, but it is not", self.wire(unit))
        });
        let unnamed = expected.iter().find(|range| !named.contains(range));
        findings.expect(Invariant::Acknowledgement, frame, unnamed.is_none(), || {
            let (unit, start, end) = unnamed.copied().unwrap_or_default();
            format!("ACK_SN {ack} acknowledges SN {} [{start}..{end:?}], which is missing", self.wire(unit))
        });
    }

    /// The octets that have not arrived, in units below `ack`.
    fn missing_below(&self, ack: u64) -> Vec<MissingOctets> {
        let mut missing = Vec::new();
        for unit in self.next..ack.min(self.highest) {
            match self.units.get(&unit) {
                None => missing.push((unit, 0, None)),
                Some(of_unit) if !of_unit.is_whole() => {
                    missing.extend(of_unit.missing().into_iter().map(|(start, end)| (unit, start, end)));
                }
                Some(_) => {}
            }
        }
        missing
    }

    /// The units and octets that a NACK names, below `ack`.
    fn named(&self, nack: &Nack, ack: u64) -> impl Iterator<Item = MissingOctets> {
        let modulus = self.generation.modulus();
        let back = (ack % modulus + modulus - u64::from(nack.sn)) % modulus;
        let first = ack.saturating_sub(back);
        let last = first + u64::from(nack.count) - 1;
        let (start, end) = (nack.start, nack.end);
        (first..=last).map(move |unit| {
            let start = if unit == first { start } else { 0 };
            let end = if unit == last { end } else { None };
            let length = self.units.get(&unit).and_then(|unit| unit.length);
            (unit, start, end.filter(|end| length != Some(end + 1)))
        })
    }

    fn wire(&self, number: u64) -> u64 {
        number % self.generation.modulus()
    }
}

/// The range from the first to the last of these ranges, if they belong to one unit.
fn covering(ranges: &[MissingOctets]) -> Option<MissingOctets> {
    let (&(unit, start, _), &(.., end)) = (ranges.first()?, ranges.last()?);
    ranges.iter().all(|(other, ..)| *other == unit).then_some((unit, start, end))
}
