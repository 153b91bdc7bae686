//! The invariants, and the books of both ends that they are checked against.
//!
//! At each instant PDUs arrive first, then PDUs are sent.

use std::collections::{BTreeMap, VecDeque};

use crate::settings::{Direction, Discard, Time};
use crate::trace::{Kind, Pdu, Status};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    Format,
    Window,
    MaxDat,
    Acknowledgement,
    StatusProhibit,
    Polling,
    Tti,
    BlockErrors,
    Reset,
}

impl Invariant {
    pub const ALL: [Self; 9] = [
        Self::Format,
        Self::Window,
        Self::MaxDat,
        Self::Acknowledgement,
        Self::StatusProhibit,
        Self::Polling,
        Self::Tti,
        Self::BlockErrors,
        Self::Reset,
    ];

    pub const fn text(self) -> &'static str {
        match self {
            Self::Format => "sizes, no objections, new numbers ascend by 1 from 0",
            Self::Window => "nothing is sent beyond the window",
            Self::MaxDat => "at most MaxDAT - 1 transmissions, then RESET or MRW",
            Self::Acknowledgement => "re-sent as reported; reported as received",
            Self::StatusProhibit => "Timer_Status_Prohibit lies between reports",
            Self::Polling => "polls are answered, prohibited and repeated in time",
            Self::Tti => "PDUs of a TTI on its grid and in the format set",
            Self::BlockErrors => "losses within the binomial 99.9 % interval",
            Self::Reset => "RESETs: numbers alternate, repeats are identical",
        }
    }
}

#[derive(Debug)]
pub struct Violation {
    pub invariant: Invariant,
    pub frame: u64,
    pub what: String,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub pdus: u64,
    pub lost: u64,
    pub new: u64,
    pub resent: u64,
    pub status: u64,
    pub resets: u64,
    pub laps: u64,
}

#[derive(Debug, Default)]
pub struct Report {
    pub checks: [u64; 9],
    pub violations: Vec<Violation>,
    pub down: Counts,
    pub up: Counts,
}

impl Report {
    /// Each invariant with the checks that were made, and up to `show` of its violations.
    pub fn to_text(&self, show: usize) -> String {
        let mut text = String::new();
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        for invariant in Invariant::ALL {
            let found: Vec<_> = self.violations.iter().filter(|found| found.invariant == invariant).collect();
            let number = invariant as usize;
            let verdict = if found.is_empty() { "ok" } else { "VIOLATED" };
            line(format!(
                "{}  {:<55} {:>9} checks  {verdict}",
                number + 1,
                invariant.text(),
                self.checks[number]
            ));
            for Violation { frame, what, .. } in found.iter().take(show) {
                line(format!("     frame {frame}: {what}"));
            }
            if found.len() > show {
                line(format!("     and {} more", found.len() - show));
            }
        }
        for (name, Counts { pdus, lost, new, resent, status, resets, laps }) in
            [("down", self.down), ("up", self.up)]
        {
            line(format!(
                "{name}: {pdus} PDUs, {lost} lost, {new} new, {resent} re-sent, {status} status, \
                 {resets} resets, {laps} laps"
            ));
        }
        text
    }

    fn expect(&mut self, invariant: Invariant, frame: u64, holds: bool, what: impl FnOnce() -> String) {
        self.checks[invariant as usize] += 1;
        if !holds {
            self.violations.push(Violation { invariant, frame, what: what() });
        }
    }
}

const MODULUS: u64 = 4096;

/// The number congruent to `sn` that is at or after `base`.
fn at_or_after(base: u64, sn: u16) -> u64 {
    base + (u64::from(sn) + MODULUS - base % MODULUS) % MODULUS
}

/// The number congruent to `sn` that is before `limit`; negative if there is none.
fn before(limit: u64, sn: u16) -> i64 {
    let back = (limit % MODULUS + MODULUS - 1 - u64::from(sn)) % MODULUS + 1;
    limit as i64 - back as i64
}

/// What one PDU of the sender's has gone through.
#[derive(Debug, Default)]
struct Sent {
    transmissions: u32,
    /// When it was last reported missing, if that was after its last transmission.
    nacked: Option<Time>,
    acked: bool,
}

/// A poll that the sender waits to be answered.
#[derive(Debug)]
struct OpenPoll {
    at: Time,
    frame: u64,
    /// VT(S) after it.
    vt_s: u64,
}

#[derive(Debug, Default)]
struct Sender {
    vt_s: u64,
    vt_a: u64,
    vt_ws: u64,
    pdus: BTreeMap<u64, Sent>,
    last_poll: Option<Time>,
    open_poll: Option<OpenPoll>,
    /// A PDU may not be sent once more: since when, and which.
    exhausted: Option<(Time, u64)>,
    /// Something that only a RESET can follow, unless it is an MRW, has happened.
    must_reset: bool,
    /// SN_MRW_LENGTH of a procedure that goes on.
    mrw: Option<u64>,
    /// RSN and HFNI of a RESET that is not answered.
    pending: Option<(bool, u32)>,
    last_reset: Option<(bool, u32)>,
    /// Times that all variables were set back, and wraps since the last RESET that was sent.
    set_back: u32,
    wraps: u32,
    epoch: u32,
}

#[derive(Debug, Default)]
struct Receiver {
    vr_r: u64,
    vr_h: u64,
    /// When each arrived; from somewhat below VR(R).
    arrived: BTreeMap<u64, Time>,
    last_report: Option<Report1>,
    /// The oldest poll that is not answered yet: when it came, and with which frame.
    polled: Option<(Time, u64)>,
    last_rsn: Option<bool>,
    /// RSNs of RESETs that are to be answered.
    to_answer: VecDeque<bool>,
}

#[derive(Debug)]
struct Report1 {
    at: Time,
    /// More PDUs of the same report may follow.
    partial: bool,
}

#[derive(Debug, Default)]
struct End {
    sender: Sender,
    receiver: Receiver,
}

#[derive(Debug)]
struct Arrival {
    at: Time,
    frame: u64,
    kind: Kind,
    /// Of a data PDU, without modulus.
    sn: u64,
    /// Of a STATUS PDU with MRW, without modulus.
    mrw: Option<u64>,
}

pub struct Checker {
    settings: [Direction; 2],
    /// The end that sends down, and the end that sends up.
    ends: [End; 2],
    /// To the other end.
    flying: [VecDeque<Arrival>; 2],
    /// PDUs of the TTI that is being filled.
    filling: [(Time, u16, u64); 2],
    counts: [Counts; 2],
    /// The last epoch of which tshark did not understand the first packet's end. The first epoch has none.
    excused: [u32; 2],
    report: Report,
    now: Time,
}

impl Checker {
    pub fn new(down: Direction, up: Direction) -> Self {
        let end = |settings: &Direction| End {
            sender: Sender { vt_ws: settings.window, ..Sender::default() },
            receiver: Receiver::default(),
        };
        Self {
            ends: [end(&down), end(&up)],
            settings: [down, up],
            flying: Default::default(),
            filling: Default::default(),
            counts: Default::default(),
            excused: [1; 2],
            report: Report::default(),
            now: 0,
        }
    }

    pub fn pdu(&mut self, pdu: &Pdu) {
        self.report.expect(Invariant::Format, pdu.frame, pdu.at >= self.now, || {
            "before the one in front of it".to_owned()
        });
        self.arrivals(pdu.at);
        self.now = pdu.at;
        let end = pdu.way as usize;
        self.deadlines();
        self.block(end, pdu);
        let (mut sn, mut mrw) = (0, None);
        match &pdu.kind {
            Kind::Data { sn: number, poll, piggybacked } => {
                sn = self.data_sent(end, pdu, *number, *poll);
                if let Some(status) = piggybacked {
                    mrw = self.status_sent(end, pdu, status);
                }
            }
            Kind::Status(status) => {
                self.counts[end].status += 1;
                mrw = self.status_sent(end, pdu, status);
            }
            Kind::Reset { rsn, hfni } => self.reset_sent(end, pdu, *rsn, *hfni),
            Kind::ResetAck { rsn, .. } => {
                let answered = self.ends[end].receiver.to_answer.pop_front();
                self.report.expect(Invariant::Reset, pdu.frame, answered == Some(*rsn), || {
                    format!("RESET ACK {rsn} where {answered:?} is to be answered")
                });
            }
        }
        if !pdu.lost {
            let at = pdu.at + self.settings[end].flight;
            self.flying[end].push_back(Arrival { at, frame: pdu.frame, kind: pdu.kind.clone(), sn, mrw });
        }
    }

    /// `until`: when the capture ended. If that is not known, nothing is missed after the last PDU.
    pub fn finish(mut self, until: Option<Time>) -> Report {
        if let Some(until) = until.filter(|until| *until > self.now) {
            self.arrivals(until);
            self.now = until;
            self.deadlines();
        }
        for end in 0..2 {
            self.forgotten(end);
            self.full_tti(end);
            let (settings, counts) = (&self.settings[end], self.counts[end]);
            if let Some(bler) = settings.bler {
                let expected = bler * counts.pdus as f64;
                let deviation = (counts.pdus as f64 * bler * (1.0 - bler)).sqrt();
                // 3.29 standard deviations are 99.9 % of a normal distribution, which this is near.
                let holds = (counts.lost as f64 - expected).abs() <= 3.29 * deviation + 0.5;
                self.report.expect(Invariant::BlockErrors, 0, holds, || {
                    format!("{} of {} lost where {expected:.0} are expected", counts.lost, counts.pdus)
                });
            }
        }
        [self.report.down, self.report.up] = self.counts;
        self.report
    }

    /// What was reported missing long ago and never sent again. Copies go before new data, so each has its turn after
    /// a window at most; at one PDU per TTI, and a report or an MRW in between.
    fn forgotten(&mut self, end: usize) {
        let Self { settings, ends, report, now, .. } = self;
        let (settings, sender) = (&settings[end], &ends[end].sender);
        if settings.discard == Discard::Mrw || sender.pending.is_some() {
            return;
        }
        let patience = 2 * settings.window * settings.tti + settings.timer_poll.unwrap_or(0);
        let allowed = sender.pdus.range(..sender.vt_a + sender.vt_ws);
        let forgotten = allowed
            .filter_map(|(sn, state)| Some((sn, state.nacked?)))
            .find(|(_, nacked)| *now > nacked + patience)
            .map(|(sn, _)| sn % MODULUS);
        report.expect(Invariant::Acknowledgement, 0, forgotten.is_none(), || {
            format!(
                "SN {} was reported missing long ago and is not sent again",
                forgotten.unwrap_or_default()
            )
        });
    }

    fn block(&mut self, end: usize, pdu: &Pdu) {
        let settings = &self.settings[end];
        let counts = &mut self.counts[end];
        counts.pdus += 1;
        counts.lost += u64::from(pdu.lost);
        let octets = settings.pdu;
        self.report.expect(Invariant::Format, pdu.frame, pdu.octets == octets, || {
            format!("{} octets instead of {octets}", pdu.octets)
        });
        self.report.expect(Invariant::Format, pdu.frame, pdu.objections.is_empty(), || {
            format!("tshark says: {}", pdu.objections)
        });
        // To tshark each lap is a new channel. So it takes the end of the packet that straddles the wrap for a
        // packet of its own, which it is not.
        let excused = !pdu.inside.is_empty() && pdu.epoch != self.excused[end];
        if excused {
            self.excused[end] = pdu.epoch;
        }
        self.report.expect(Invariant::Format, pdu.frame, pdu.inside.is_empty() || excused, || {
            format!("tshark says of the packet inside: {}", pdu.inside)
        });
        let since = pdu.at.checked_sub(settings.phase).map(|since| since % settings.tti);
        self.report.expect(Invariant::Tti, pdu.frame, since == Some(0), || {
            format!("sent {since:?} ns after a TTI began")
        });
        if self.filling[end].0 != pdu.at {
            self.full_tti(end);
            self.filling[end] = (pdu.at, 0, pdu.frame);
        }
        self.filling[end].1 += 1;
    }

    fn full_tti(&mut self, end: usize) {
        let (_, blocks, frame) = self.filling[end];
        let formats = &self.settings[end].blocks;
        if blocks > 0 && !formats.is_empty() {
            self.report.expect(Invariant::Tti, frame, formats.contains(&blocks), || {
                format!("{blocks} PDUs in a TTI are no transport format")
            });
        }
    }

    fn data_sent(&mut self, end: usize, pdu: &Pdu, sn: u16, poll: bool) -> u64 {
        let Self { settings, ends, report, counts, .. } = self;
        let (settings, sender) = (&settings[end], &mut ends[end].sender);
        let frame = pdu.frame;
        report.expect(Invariant::Reset, frame, sender.pending.is_none(), || {
            "data while a RESET is not answered".to_owned()
        });
        let full = sender.vt_s >= sender.vt_a + sender.vt_ws;
        let number = if u64::from(sn) == sender.vt_s % MODULUS {
            report.expect(Invariant::Window, frame, !full, || {
                format!("new SN {sn} beyond VT(A) {} + {}", sender.vt_a % MODULUS, sender.vt_ws)
            });
            if settings.discard == Discard::Reset {
                report.expect(Invariant::MaxDat, frame, sender.exhausted.is_none(), || {
                    format!("new data although {:?} may not be sent again", sender.exhausted)
                });
            }
            let number = sender.vt_s;
            sender.vt_s += 1;
            counts[end].new += 1;
            if number > 0 && number.is_multiple_of(MODULUS) {
                counts[end].laps += 1;
                sender.wraps += 1;
            }
            number
        } else {
            counts[end].resent += 1;
            let number = before(sender.vt_s, sn);
            report.expect(Invariant::Format, frame, number >= sender.vt_a as i64, || {
                format!(
                    "SN {sn} is neither the next new one, {}, nor one that is not acknowledged",
                    sender.vt_s % MODULUS
                )
            });
            let number = number.max(0) as u64;
            let last = number + 1 == sender.vt_s;
            report.expect(Invariant::Window, frame, last || number < sender.vt_a + sender.vt_ws, || {
                format!("re-sent SN {sn} beyond the window")
            });
            let state = sender.pdus.get(&number);
            let reported = state.is_some_and(|state| state.nacked.is_some());
            let known_received = state.is_none_or(|state| state.acked);
            report.expect(
                Invariant::Acknowledgement,
                frame,
                reported || (poll && (last || !known_received)),
                || format!("SN {sn} is re-sent though nobody reported it missing and it polls nothing"),
            );
            number
        };
        let state = sender.pdus.entry(number).or_default();
        state.transmissions += 1;
        state.nacked = None;
        // What is known to have arrived only carries polls: that does not count.
        if let Some(max_dat) = settings.max_dat.filter(|_| !state.acked) {
            report.expect(Invariant::MaxDat, frame, state.transmissions < max_dat.max(2), || {
                format!("SN {sn} is transmitted {} times", state.transmissions)
            });
        }
        // Every lap of the numbers and every RESET has an epoch of its own, so that (epoch, SN) is unique.
        let lap = (number / MODULUS) as u32 % 4096;
        let epoch = pdu.epoch.wrapping_sub(1);
        report.expect(Invariant::Format, frame, epoch % 4096 == lap, || {
            format!("epoch {epoch:#x} in lap {lap}")
        });
        report.expect(Invariant::Format, frame, epoch >> 12 >= sender.epoch >> 12, || {
            format!("epoch {epoch:#x} after {:#x}", sender.epoch)
        });
        sender.epoch = epoch;
        if poll {
            if let (Some(prohibit), Some(last)) = (settings.poll_prohibit, sender.last_poll) {
                report.expect(Invariant::Polling, frame, pdu.at - last >= prohibit, || {
                    format!("a poll {} ms after another", (pdu.at - last) / 1_000_000)
                });
            }
            sender.last_poll = Some(pdu.at);
            sender.open_poll = Some(OpenPoll { at: pdu.at, frame, vt_s: sender.vt_s });
        }
        number
    }

    /// The MRW's number without modulus.
    fn status_sent(&mut self, end: usize, pdu: &Pdu, status: &Status) -> Option<u64> {
        let Self { settings, ends, report, .. } = self;
        let other = &settings[1 - end];
        let End { sender, receiver } = &mut ends[end];
        let frame = pdu.frame;
        report.expect(Invariant::Reset, frame, sender.pending.is_none(), || {
            "STATUS while a RESET is not answered".to_owned()
        });
        // A report is made when it is triggered, and may wait for the next TTI.
        let made = pdu.at.saturating_sub(settings[end].tti);
        let mut missing: Vec<u64> = Vec::new();
        for &sn in &status.missing {
            let number = before(receiver.vr_h, sn);
            let since = receiver.arrived.get(&(number.max(0) as u64)).copied();
            let was_missing = number >= 0
                && match since {
                    Some(arrived) => arrived >= made,
                    None => number >= receiver.vr_r as i64,
                };
            report.expect(Invariant::Acknowledgement, frame, was_missing, || {
                format!(
                    "SN {sn} is reported missing, but VR(R) {} VR(H) {} and it arrived {since:?}",
                    receiver.vr_r % MODULUS,
                    receiver.vr_h % MODULUS
                )
            });
            missing.push(number.max(0) as u64);
        }
        // A report whose parts go out one by one may be behind VR(R), by a window at most; and nothing that was sent is
        // a window ahead of VR(R).
        let oldest = receiver.vr_r.saturating_sub(MODULUS.saturating_sub(other.window));
        let lsn = status.lsn.map(|lsn| at_or_after(oldest, lsn));
        if let Some(lsn) = lsn {
            report.expect(Invariant::Acknowledgement, frame, lsn <= receiver.vr_h, || {
                format!("LSN {} is beyond VR(H) {}", lsn % MODULUS, receiver.vr_h % MODULUS)
            });
            let unsaid = (receiver.vr_r..lsn.min(receiver.vr_h))
                .find(|sn| !receiver.arrived.contains_key(sn) && !missing.contains(sn));
            report.expect(Invariant::Acknowledgement, frame, unsaid.is_none(), || {
                let unsaid = unsaid.map(|sn| sn % MODULUS);
                format!("LSN {} acknowledges SN {unsaid:?}, which never arrived", lsn % MODULUS)
            });
        }
        if status.acknowledges() {
            // LSN = VR(R) with more known above: the rest of the report comes in another PDU (§9.2.2.11.2).
            let partial = lsn.is_none_or(|lsn| lsn <= receiver.vr_r) && receiver.vr_h > receiver.vr_r;
            if let (Some(tsp), Some(last)) = (other.tsp, &receiver.last_report) {
                let same = last.partial && pdu.at - last.at <= settings[end].tti || pdu.at == last.at;
                report.expect(Invariant::StatusProhibit, frame, same || pdu.at - last.at >= tsp, || {
                    format!("a report {} ms after another", (pdu.at - last.at) / 1_000_000)
                });
            }
            receiver.last_report = Some(Report1 { at: pdu.at, partial });
            receiver.polled = None;
        }
        let (mrw, _) = status.mrw?;
        let number = at_or_after(sender.vt_a, mrw);
        sender.vt_s = sender.vt_s.max(number);
        sender.mrw = Some(number);
        // Nobody waits for an answer about what is given up.
        if sender.open_poll.as_ref().is_some_and(|poll| poll.vt_s <= number) {
            sender.open_poll = None;
        }
        if sender.exhausted.is_some_and(|(_, sn)| sn <= number) {
            sender.exhausted = None;
        }
        Some(number)
    }

    fn reset_sent(&mut self, end: usize, pdu: &Pdu, rsn: bool, hfni: u32) {
        let Self { settings, ends, report, counts, .. } = self;
        let sender = &mut ends[end].sender;
        if let Some(pending) = sender.pending {
            report.expect(Invariant::Reset, pdu.frame, pending == (rsn, hfni), || {
                format!("a RESET that is repeated as {rsn} {hfni} was {pending:?}")
            });
            return;
        }
        counts[end].resets += 1;
        // The other causes are MaxMRW, and an erroneous number in what the peer says.
        if let (Discard::Reset, Some(max_dat)) = (settings[end].discard, settings[end].max_dat) {
            // One that should have carried a poll once more.
            let exhausted =
                sender.pdus.values().any(|pdu| !pdu.acked && pdu.transmissions + 1 >= max_dat.max(2));
            report.expect(Invariant::Reset, pdu.frame, sender.must_reset || exhausted, || {
                format!("a RESET, and no PDU was transmitted {} times in vain", max_dat.max(2) - 1)
            });
        }
        let expected = sender.last_reset.is_some_and(|(last, _)| !last);
        report.expect(Invariant::Reset, pdu.frame, rsn == expected, || format!("a new RESET has RSN {rsn}"));
        // Every wrap and every RESET of either end adds 1 to the HFN.
        let (last, set_back) = sender.last_reset.map_or((0, 0), |(_, hfni)| (hfni, sender.set_back));
        let least = last + sender.wraps + u32::from(set_back > 0);
        report.expect(Invariant::Reset, pdu.frame, hfni >= least, || {
            format!("HFNI {hfni} where at least {least} are used")
        });
        sender.pending = Some((rsn, hfni));
        sender.last_reset = Some((rsn, hfni));
        (sender.set_back, sender.wraps) = (0, 0);
        sender.exhausted = None;
    }

    /// Everything that arrives up to `now`, in its order.
    fn arrivals(&mut self, now: Time) {
        loop {
            let next = |end: usize| self.flying[end].front().map(|arrival| (arrival.at, end));
            let Some((at, from)) = [next(0), next(1)].into_iter().flatten().min() else { return };
            if at > now {
                return;
            }
            let arrival = self.flying[from].pop_front().expect("it was at the front");
            self.now = at;
            self.deadlines();
            self.arrive(1 - from, arrival);
        }
    }

    fn arrive(&mut self, end: usize, arrival: Arrival) {
        match arrival.kind {
            Kind::Reset { rsn, .. } => {
                let End { sender, receiver } = &mut self.ends[end];
                receiver.to_answer.push_back(rsn);
                // The answer to it was lost, or comes too late: nothing is set back twice.
                if receiver.last_rsn != Some(rsn) || sender.pending.is_some() {
                    receiver.last_rsn = Some(rsn);
                    self.set_back(end);
                }
            }
            Kind::ResetAck { rsn, .. } => {
                if self.ends[end].sender.pending.is_some_and(|(pending, _)| pending == rsn) {
                    self.ends[end].sender.pending = None;
                    self.set_back(end);
                }
            }
            // While a RESET is not answered nothing else is listened to.
            _ if self.ends[end].sender.pending.is_some() => {}
            Kind::Data { poll, piggybacked, .. } => {
                let receiver = &mut self.ends[end].receiver;
                let window = self.settings[1 - end].window;
                if arrival.sn >= receiver.vr_r && arrival.sn < receiver.vr_r + window {
                    receiver.arrived.entry(arrival.sn).or_insert(arrival.at);
                    receiver.vr_h = receiver.vr_h.max(arrival.sn + 1);
                    receiver.advance();
                }
                if poll && receiver.polled.is_none() {
                    receiver.polled = Some((arrival.at, arrival.frame));
                }
                if let Some(status) = piggybacked {
                    self.status_arrived(end, arrival.at, arrival.frame, &status, arrival.mrw);
                }
            }
            Kind::Status(status) => {
                self.status_arrived(end, arrival.at, arrival.frame, &status, arrival.mrw);
            }
        }
    }

    fn status_arrived(&mut self, end: usize, at: Time, frame: u64, status: &Status, mrw: Option<u64>) {
        let Self { settings, ends, report, .. } = self;
        let settings = &settings[end];
        let End { sender, receiver } = &mut ends[end];
        let mut first_missing = u64::MAX;
        for &sn in &status.missing {
            let number = at_or_after(sender.vt_a, sn);
            sender.must_reset |= number >= sender.vt_s;
            report.expect(Invariant::Acknowledgement, frame, number < sender.vt_s, || {
                format!("SN {sn} is reported missing outside of VT(A) to VT(S)")
            });
            first_missing = first_missing.min(number);
            if let Some(state) = sender.pdus.get_mut(&number) {
                state.nacked = Some(at);
                if settings.max_dat.is_some_and(|max_dat| state.transmissions + 1 >= max_dat.max(2)) {
                    sender.exhausted.get_or_insert((at, number));
                    sender.must_reset = true;
                }
            }
            if sender.open_poll.as_ref().is_some_and(|poll| number + 1 == poll.vt_s) {
                sender.open_poll = None;
            }
        }
        if let Some(lsn) = status.lsn {
            let number = at_or_after(sender.vt_a, lsn);
            sender.must_reset |= number > sender.vt_s;
            report.expect(Invariant::Acknowledgement, frame, number <= sender.vt_s, || {
                format!("LSN {lsn} is outside of VT(A) to VT(S)")
            });
            for (_, state) in sender.pdus.range_mut(..number).filter(|(_, state)| state.nacked.is_none()) {
                state.acked = true;
            }
            sender.acknowledged(number.min(first_missing).min(sender.vt_s));
        }
        if let (Some((sn_ack, _)), Some(length)) = (status.mrw_ack, sender.mrw) {
            let number = at_or_after(sender.vt_a, sn_ack);
            if number >= length && number <= sender.vt_s {
                sender.mrw = None;
                sender.acknowledged(number);
            }
        }
        if let Some(window) = status.window.filter(|window| *window > 0) {
            sender.vt_ws = u64::from(window).min(settings.window);
        }
        if let Some(length) = mrw {
            for number in receiver.vr_r..length {
                receiver.arrived.entry(number).or_insert(at);
            }
            receiver.vr_h = receiver.vr_h.max(length);
            receiver.advance();
        }
        if let Some(sn) = status.poll_sn {
            let number = at_or_after(receiver.vr_r, sn);
            receiver.vr_h = receiver.vr_h.max(number + 1);
            receiver.polled.get_or_insert((at, frame));
        }
    }

    /// All state variables have their first values again (§11.4.3).
    fn set_back(&mut self, end: usize) {
        let window = self.settings[end].window;
        let End { sender, receiver } = &mut self.ends[end];
        *sender = Sender {
            vt_ws: window,
            pending: sender.pending,
            last_reset: sender.last_reset,
            set_back: sender.set_back + 1,
            wraps: sender.wraps,
            epoch: sender.epoch,
            ..Sender::default()
        };
        *receiver = Receiver {
            last_rsn: receiver.last_rsn,
            to_answer: std::mem::take(&mut receiver.to_answer),
            ..Receiver::default()
        };
    }

    /// What should have happened by now.
    fn deadlines(&mut self) {
        for end in 0..2 {
            let Self { settings, ends, report, now, .. } = self;
            let (own, other) = (&settings[end], &settings[1 - end]);
            let End { sender, receiver } = &mut ends[end];
            if sender.pending.is_some() {
                continue;
            }
            if let Some((since, frame)) = receiver.polled {
                // An answer waits for its TTI, and for the timer that the last report started at the end of its own.
                let prohibited = receiver.last_report.as_ref().zip(other.tsp);
                let allowed = prohibited.map_or(since, |(last, tsp)| since.max(last.at + own.tti + tsp));
                if *now > allowed + 2 * own.tti {
                    report.expect(Invariant::Polling, frame, false, || {
                        format!("a poll that arrived at {} us is not answered", since / 1000)
                    });
                    receiver.polled = None;
                } else {
                    report.checks[Invariant::Polling as usize] += 1;
                }
            }
            if let (Some(poll), Some(timer)) = (&sender.open_poll, own.timer_poll) {
                let waited = timer.max(own.poll_prohibit.unwrap_or(0)) + 3 * own.tti;
                // What would carry the poll may have had its last transmission; then it is discarded instead.
                let last = sender.pdus.last_key_value().map_or(0, |(_, state)| state.transmissions);
                let carried = own.max_dat.is_none_or(|max_dat| last + 1 < max_dat.max(2));
                if *now > poll.at + waited {
                    report.expect(Invariant::Polling, poll.frame, !carried, || {
                        "a poll that nobody answered is not repeated".to_owned()
                    });
                    sender.open_poll = None;
                } else {
                    report.checks[Invariant::Polling as usize] += 1;
                }
            }
            if let Some((since, sn)) = sender.exhausted {
                // An MRW may have to wait until the one before it is done.
                let patience = match own.discard {
                    Discard::Reset => 2 * own.tti,
                    Discard::Mrw => 2_000_000_000,
                };
                if *now > since + patience {
                    report.expect(Invariant::MaxDat, 0, false, || {
                        format!("SN {} may not be sent again, and nothing happens", sn % MODULUS)
                    });
                    sender.exhausted = None;
                }
            }
        }
    }
}

impl Sender {
    fn acknowledged(&mut self, below: u64) {
        if below <= self.vt_a {
            return;
        }
        self.vt_a = below;
        self.pdus = self.pdus.split_off(&below);
        if self.open_poll.as_ref().is_some_and(|poll| poll.vt_s <= below) {
            self.open_poll = None;
        }
        if self.mrw.is_some_and(|length| length < below) {
            self.mrw = None;
        }
        if self.exhausted.is_some_and(|(_, sn)| sn < below) {
            self.exhausted = None;
        }
    }
}

impl Receiver {
    fn advance(&mut self) {
        while self.arrived.contains_key(&self.vr_r) {
            self.vr_r += 1;
        }
        // Reports that were made a little earlier are still to be judged.
        while self.arrived.first_key_value().is_some_and(|(sn, _)| sn + 1024 < self.vr_r) {
            self.arrived.pop_first();
        }
        self.vr_h = self.vr_h.max(self.vr_r);
    }
}

#[cfg(test)]
mod tests;
