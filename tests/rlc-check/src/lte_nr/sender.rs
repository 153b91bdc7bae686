//! The transmitting side of AM (TS 36.322 §5.1.3.1 and §5.2, TS 38.322 §5.2.3.1 and §5.3).

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use super::Generation;
use super::codec::{Data, Layout, Nack, Status};
use super::ranges::Ranges;
use super::settings::DirectionSettings;
use crate::findings::{Findings, Invariant};
use crate::settings::Time;

pub(super) struct Sender {
    generation: Generation,
    settings: DirectionSettings,
    /// TX_Next_Ack, VT(A): the number of the first element of `units`.
    next_ack: u64,
    units: VecDeque<Unit>,
    /// Units with octets that wait for retransmission.
    pending: BTreeSet<u64>,
    polling: Polling,
    /// The last expiry of t-PollRetransmit. After it, one unit may be retransmitted that is not reported
    /// missing.
    expired: Option<Time>,
    /// Frame and time of a poll that is correct only if no more data waits.
    doubtful_poll: Option<(u64, Time)>,
    /// The last data PDU: its time, and whether it polled.
    last: Option<(Time, bool)>,
    /// Number of the report that was received last.
    reports: u64,
    /// Time at which RETX_COUNT reached maxRetxThreshold.
    exhausted: Option<Time>,
}

#[derive(Default)]
struct Polling {
    pdu_without_poll: u32,
    byte_without_poll: u64,
    poll_sn: u64,
    /// Expiry of t-PollRetransmit.
    timer: Option<Time>,
    /// Whether the timer has expired since the last poll.
    is_forced: bool,
}

struct Unit {
    octets: Vec<u8>,
    layout: Layout,
    /// Whether its last octet has been transmitted.
    is_complete: bool,
    is_acked: bool,
    retx_count: Option<u32>,
    /// Time and number of the report that changed RETX_COUNT last.
    counted: (Time, u64),
    pending: Ranges,
}

/// A data PDU with its place in the capture.
pub(super) struct Transmission<'a> {
    pub(super) at: Time,
    pub(super) frame: u64,
    /// Number of this transmission, as the capture has it.
    pub(super) count: u16,
    pub(super) data: &'a Data<'a>,
}

impl Sender {
    pub(super) fn new(generation: Generation, settings: &DirectionSettings) -> Self {
        Self {
            generation,
            settings: settings.clone(),
            next_ack: 0,
            units: VecDeque::new(),
            pending: BTreeSet::new(),
            polling: Polling::default(),
            expired: None,
            doubtful_poll: None,
            last: None,
            reports: 0,
            exhausted: None,
        }
    }

    /// TX_Next, VT(S). A partly transmitted SDU is below it.
    pub(super) fn next(&self) -> u64 {
        self.next_ack + self.units.len() as u64
    }

    pub(super) const fn next_expiry(&self) -> Option<Time> {
        self.polling.timer
    }

    pub(super) const fn exhausted(&self) -> Option<Time> {
        self.exhausted
    }

    /// Handles the expiry of t-PollRetransmit.
    pub(super) fn expire(&mut self, now: Time) {
        if let Some(at) = self.polling.timer.take_if(|at| *at <= now) {
            self.polling.is_forced = true;
            self.expired = Some(at);
        }
    }

    fn unit(&mut self, number: u64) -> Option<&mut Unit> {
        self.units.get_mut(number.checked_sub(self.next_ack)? as usize)
    }

    fn has_unfinished(&self) -> bool {
        self.units.back().is_some_and(|unit| !unit.is_complete)
    }

    /// Checks a data PDU. Returns whether it is new.
    pub(super) fn check_data(&mut self, pdu: &Transmission<'_>, findings: &mut Findings) -> bool {
        let data = pdu.data;
        let number = self.generation.at_or_above(self.next_ack, data.sn);
        let last = self.next().wrapping_sub(1);
        let continues = self.has_unfinished() && number == last && self.unfinished_from() <= data.start;
        let is_new = number == self.next() || continues;
        self.check_doubtful_poll(pdu, is_new.then_some(continues || data.layout.continues), findings);
        let added = if is_new {
            self.check_pause(pdu, findings);
            self.check_new(pdu, number, findings)
        } else if number < self.next() {
            self.check_retransmission(pdu, number, findings);
            0
        } else {
            findings.expect(Invariant::Format, pdu.frame, false, || {
                let next = self.next() % self.generation.modulus();
                format!("SN {} is neither the next one, {next}, nor one that is not acknowledged", data.sn)
            });
            0
        };
        self.check_poll(pdu, added, findings);
        self.last = Some((pdu.at, data.poll));
        is_new
    }

    /// Octets of the last unit that have been transmitted.
    fn unfinished_from(&self) -> u32 {
        self.units.back().map_or(0, |unit| unit.octets.len() as u32)
    }

    fn begin_unit(&mut self, data: &Data<'_>) {
        self.units.push_back(Unit {
            octets: data.octets.to_vec(),
            layout: data.layout.clone(),
            is_complete: data.ends,
            is_acked: false,
            retx_count: None,
            counted: (0, 0),
            pending: Ranges::default(),
        });
    }

    fn continue_unit(&mut self, data: &Data<'_>) {
        if let Some(last) = self.units.back_mut() {
            last.octets.extend_from_slice(data.octets);
            last.is_complete = data.ends;
        }
    }

    /// Checks a data PDU with new octets. Returns their number.
    fn check_new(&mut self, pdu: &Transmission<'_>, number: u64, findings: &mut Findings) -> u32 {
        let Transmission { frame, count, data, .. } = *pdu;
        findings.expect(Invariant::Retransmission, frame, self.pending.is_empty(), || {
            let waiting = self.pending.first().copied().unwrap_or(0) % self.generation.modulus();
            format!("new data, although SN {waiting} waits for its retransmission")
        });
        findings.expect(Invariant::RetxCount, frame, count == 1, || {
            format!("a first transmission has the number {count}")
        });
        let upper = self.next_ack + self.generation.window();
        findings.expect(Invariant::Window, frame, number < upper, || {
            format!(
                "new SN {} although TX_Next_Ack is {}",
                data.sn,
                self.next_ack % self.generation.modulus()
            )
        });
        let is_continuation = number < self.next();
        let expected = if is_continuation { self.unfinished_from() } else { 0 };
        let is_cut = !is_continuation && self.has_unfinished();
        let is_whole = matches!(self.generation, Generation::Nr(_)) || data.ends;
        let fits = data.start == expected && !is_cut && is_whole;
        findings.expect(Invariant::Segmentation, frame, fits, || {
            format!("SN {} begins at octet {} instead of {expected}", data.sn, data.start)
        });
        if is_continuation {
            self.continue_unit(data);
        } else {
            self.begin_unit(data);
        }
        data.octets.len() as u32
    }

    fn check_retransmission(&mut self, pdu: &Transmission<'_>, number: u64, findings: &mut Findings) {
        let Transmission { frame, data, at, count } = *pdu;
        let sn = data.sn;
        let range = data.start..data.start + data.octets.len() as u32;
        let (expired, reports, is_lte) =
            (self.expired, self.reports, matches!(self.generation, Generation::Lte(_)));
        let Some(unit) = self.unit(number) else { return };
        let is_same = unit.contains(&range, data, is_lte);
        findings.expect(Invariant::Segmentation, frame, is_same, || {
            format!("octets {range:?} of SN {sn} differ from their first transmission")
        });
        let mut is_allowed = unit.pending.contains(&range);
        if let Some(expiry) = expired
            && !is_allowed
            && !unit.is_acked
            && is_same
        {
            // The expiry of t-PollRetransmit may have selected this unit.
            if unit.retx_count.is_none() || unit.counted.0 < expiry {
                unit.retx_count = Some(unit.retx_count.map_or(0, |count| count + 1));
                unit.counted = (at, reports);
            }
            unit.pending.add(0..unit.octets.len() as u32);
            is_allowed = true;
            self.expired = None;
            self.pending.insert(number);
        }
        findings.expect(Invariant::Retransmission, frame, is_allowed, || {
            format!("octets {range:?} of SN {sn} are retransmitted, but were not reported missing")
        });
        let Some(unit) = self.unit(number) else { return };
        unit.pending.remove(&range);
        let expected = (unit.retx_count.unwrap_or(0) + 2).min(u16::MAX.into());
        if unit.pending.is_empty() {
            self.pending.remove(&number);
        }
        findings.expect(Invariant::RetxCount, frame, u32::from(count) == expected, || {
            format!("SN {sn}: transmission {count}, although RETX_COUNT is {}", expected - 2)
        });
    }

    /// Checks P, and updates the counters and the timer. `added` octets of the PDU are new.
    fn check_poll(&mut self, pdu: &Transmission<'_>, added: u32, findings: &mut Findings) {
        let Transmission { at, frame, data, .. } = *pdu;
        let is_full = self.units.len() as u64 >= self.generation.window();
        let is_stalled = is_full && !self.has_unfinished();
        let polling = &mut self.polling;
        polling.pdu_without_poll += u32::from(added > 0);
        polling.byte_without_poll += u64::from(added);
        let must = self.settings.poll_pdu.is_some_and(|limit| polling.pdu_without_poll >= limit)
            || self.settings.poll_byte.is_some_and(|limit| polling.byte_without_poll >= limit)
            || is_stalled
            || polling.is_forced;
        if !data.poll {
            findings.expect(Invariant::Polling, frame, !must, || {
                format!(
                    "SN {} should poll: {} PDUs and {} bytes since the last poll, stalled {is_stalled}, \
                     t-PollRetransmit expired {}",
                    data.sn, polling.pdu_without_poll, polling.byte_without_poll, polling.is_forced
                )
            });
            return;
        }
        if !must {
            let is_last = self.pending.is_empty();
            findings.expect(Invariant::Polling, frame, is_last, || {
                format!("SN {} polls, although retransmissions wait", data.sn)
            });
            self.doubtful_poll = is_last.then_some((frame, at));
        }
        self.polling = Polling {
            poll_sn: self.next() - 1,
            timer: Some(at + self.settings.poll_retransmit),
            ..Polling::default()
        };
    }

    /// Checks that the data PDU after a poll does not show that more data waited at the time of the poll.
    /// `new`: whether the PDU continues a partly transmitted unit. `None`: the PDU is a retransmission.
    fn check_doubtful_poll(&mut self, pdu: &Transmission<'_>, new: Option<bool>, findings: &mut Findings) {
        let Some((frame, at)) = self.doubtful_poll.take() else { return };
        let waited = new.is_some_and(|continues| continues || pdu.at == at);
        findings.expect(Invariant::Polling, frame, !waited, || {
            "a poll before the counters reach their limits, although more data waits".to_owned()
        });
    }

    /// Checks that the last PDU before a pause polled.
    fn check_pause(&self, pdu: &Transmission<'_>, findings: &mut Findings) {
        if let (Some((last, false)), Some(patience)) = (self.last, self.settings.patience) {
            let is_waiting = self.polling.timer.is_some() || self.units.is_empty();
            findings.expect(Invariant::Polling, pdu.frame, is_waiting || pdu.at <= last + patience, || {
                format!("no poll before a pause of {} us", (pdu.at - last) / 1000)
            });
        }
    }

    /// Checks at the end that the reactions to the last PDUs have happened.
    pub(super) fn check_end(&self, now: Time, findings: &mut Findings) {
        let Some(patience) = self.settings.patience else { return };
        let is_late = self.polling.is_forced && self.expired.is_some_and(|expiry| now > expiry + patience);
        findings.expect(Invariant::Polling, 0, !is_late || self.units.is_empty(), || {
            "an unanswered poll is not repeated".to_owned()
        });
    }

    /// Handles a report that arrives.
    pub(super) fn handle_report(&mut self, now: Time, status: &Status) {
        let ack = self.generation.at_or_above(self.next_ack, status.ack);
        if ack > self.next() {
            // A newer report has overtaken this one.
            return;
        }
        self.reports += 1;
        let mut missing = BTreeSet::new();
        for nack in &status.nacks {
            self.handle_nack(now, nack, ack, &mut missing);
        }
        for number in self.next_ack..ack {
            if missing.contains(&number) {
                continue;
            }
            if let Some(unit) = self.unit(number).filter(|unit| unit.is_complete && !unit.is_acked) {
                unit.is_acked = true;
                unit.pending.clear();
                self.pending.remove(&number);
            }
        }
        if self.polling.poll_sn < ack {
            self.polling.timer = None;
        }
        while self.units.pop_front_if(|unit| unit.is_acked).is_some() {
            self.next_ack += 1;
        }
    }

    fn handle_nack(&mut self, now: Time, nack: &Nack, ack: u64, missing: &mut BTreeSet<u64>) {
        let modulus = self.generation.modulus();
        let back = (ack % modulus + modulus - u64::from(nack.sn)) % modulus;
        let Some(first) = ack.checked_sub(back) else { return };
        let last = first + u64::from(nack.count) - 1;
        for number in first.max(self.next_ack)..=last.min(ack) {
            missing.insert(number);
            let start = if number == first { nack.start } else { 0 };
            let end = if number == last { nack.end.map_or(u32::MAX, |end| end + 1) } else { u32::MAX };
            self.consider(now, number, start..end);
        }
    }

    /// Considers octets of a unit for retransmission (TS 36.322 §5.2.1, TS 38.322 §5.3.2).
    fn consider(&mut self, now: Time, number: u64, range: Range<u32>) {
        let (reports, generation, limit) = (self.reports, self.generation, self.settings.max_retx);
        let Some(unit) = self.unit(number) else { return };
        let range = range.start..range.end.min(unit.octets.len() as u32);
        if range.is_empty() || unit.is_acked {
            return;
        }
        let is_counted = matches!(generation, Generation::Nr(_)) && unit.counted.1 == reports;
        let count = match unit.retx_count {
            None => Some(0),
            Some(count) if !unit.pending.contains(&range) && !is_counted => Some(count + 1),
            Some(_) => None,
        };
        unit.pending.add(range);
        if let Some(count) = count {
            unit.retx_count = Some(count);
            unit.counted = (now, reports);
        }
        self.pending.insert(number);
        if count == Some(limit) {
            self.exhausted.get_or_insert(now);
        }
    }
}

impl Unit {
    /// Whether a PDU has the octets of the unit in this range, and the right layout.
    fn contains(&self, range: &Range<u32>, data: &Data<'_>, is_lte: bool) -> bool {
        let length = self.octets.len() as u32;
        let Some(own) = self.octets.get(range.start as usize..range.end as usize) else { return false };
        let ends = self.is_complete && range.end == length;
        let is_boundary = |offset: u32| self.layout.boundaries.contains(&offset);
        let continues = if range.start == 0 { self.layout.continues } else { !is_boundary(range.start) };
        let is_continued = if ends { self.layout.is_continued } else { !is_boundary(range.end) };
        let inside = self.layout.boundaries.iter().filter(|at| range.start < **at && **at < range.end);
        let layout =
            Layout { continues, is_continued, boundaries: inside.map(|at| at - range.start).collect() };
        own == data.octets && ends == data.ends && (!is_lte || layout == data.layout)
    }
}
