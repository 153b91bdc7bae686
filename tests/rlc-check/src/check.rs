//! Checks the invariants against the reconstructed state of both ends.
//!
//! Arrivals are processed before transmissions of the same time.

mod arrivals;
mod books;

use std::collections::VecDeque;

use books::*;

use crate::judgement::{Counts, Invariant, Judgement};
use crate::settings::{Direction, Discard, Sizing, Time};
use crate::trace::{Pdu, PduKind, Status};

const MODULUS: u64 = 4096;

/// Returns the number congruent to `sn` that is at or after `base`.
fn at_or_after(base: u64, sn: u16) -> u64 {
    base + (u64::from(sn) + MODULUS - base % MODULUS) % MODULUS
}

/// Returns the number congruent to `sn` that is before `limit`; negative if there is none.
fn before(limit: u64, sn: u16) -> i64 {
    let back = (limit % MODULUS + MODULUS - 1 - u64::from(sn)) % MODULUS + 1;
    limit as i64 - back as i64
}

pub(crate) struct Checker {
    settings: [Direction; 2],
    /// State of the end that sends down, and of the end that sends up.
    ends: [End; 2],
    /// PDUs that each end has sent and that have not arrived at the other end.
    flying: [VecDeque<Arrival>; 2],
    /// The current TTI of each end: its time, its number of PDUs so far, and the frame of the first.
    filling: [(Time, u16, u64); 2],
    counts: [Counts; 2],
    /// Per end, the last epoch in which an objection to the packet inside was excused. The first epoch needs
    /// no excuse.
    excused: [u32; 2],
    report: Judgement,
    now: Time,
}

impl Checker {
    pub(crate) fn new(down: Direction, up: Direction) -> Self {
        let end = |settings: &Direction| End {
            sender: SenderBook { vt_ws: settings.window, hfn: settings.hfn, ..SenderBook::default() },
            receiver: ReceiverBook::default(),
        };
        Self {
            ends: [end(&down), end(&up)],
            settings: [down, up],
            flying: Default::default(),
            filling: Default::default(),
            counts: Default::default(),
            excused: [1; 2],
            report: Judgement::default(),
            now: 0,
        }
    }

    pub(crate) fn pdu(&mut self, pdu: &Pdu) {
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
            PduKind::Data { sn: number, poll, piggybacked } => {
                sn = self.data_sent(end, pdu, *number, *poll);
                if let Some(status) = piggybacked {
                    mrw = self.status_sent(end, pdu, status);
                }
            }
            PduKind::Status(status) => {
                self.counts[end].status += 1;
                mrw = self.status_sent(end, pdu, status);
            }
            PduKind::Reset { rsn, hfni } => self.reset_sent(end, pdu, *rsn, *hfni),
            PduKind::ResetAck { rsn, hfni } => {
                let answered = self.ends[end].receiver.to_answer.pop_front();
                self.report.expect(Invariant::Reset, pdu.frame, answered == Some((*rsn, *hfni)), || {
                    format!("RESET ACK {rsn} HFNI {hfni} where {answered:?} is to be answered")
                });
            }
        }
        if !pdu.lost {
            let at = pdu.at + self.settings[end].flight;
            self.flying[end].push_back(Arrival { at, frame: pdu.frame, kind: pdu.kind.clone(), sn, mrw });
        }
    }

    /// Ends the check. `until` is the end of the capture. If it is unknown, silence after the last PDU is not
    /// a violation.
    pub(crate) fn finish(mut self, until: Option<Time>) -> Judgement {
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
                // 3.29 standard deviations contain 99.9 % of a normal distribution, which approximates the
                // binomial one.
                let holds = (counts.lost as f64 - expected).abs() <= 3.29 * deviation + 0.5;
                self.report.expect(Invariant::BlockErrors, 0, holds, || {
                    format!("{} of {} lost where {expected:.0} are expected", counts.lost, counts.pdus)
                });
            }
        }
        [self.report.down, self.report.up] = self.counts;
        self.report
    }

    /// Checks that every PDU that was reported missing is retransmitted. Retransmissions precede new data, so
    /// each is sent within a window, even with one PDU per TTI and a status report or an MRW in every other
    /// TTI.
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
        let settings = &mut self.settings[end];
        // The TTI grid starts at an arbitrary time of day, so the first PDU determines its phase.
        let phase = *settings.phase.get_or_insert(pdu.at % settings.tti);
        let counts = &mut self.counts[end];
        counts.pdus += 1;
        counts.lost += u64::from(pdu.lost);
        let octets = settings.pdu;
        let fits = match settings.sizing {
            Sizing::Fixed => pdu.octets == octets,
            Sizing::Flexible(_) => pdu.octets <= octets && !pdu.padded,
        };
        self.report.expect(Invariant::Format, pdu.frame, fits, || {
            let padded = if pdu.padded { ", some of them padding," } else { "" };
            format!("{} octets{padded} instead of {octets}", pdu.octets)
        });
        self.report.expect(Invariant::Format, pdu.frame, pdu.objections.is_empty(), || {
            format!("tshark says: {}", pdu.objections)
        });
        // For tshark, each wrap of the sequence numbers starts a new channel. It therefore mistakes the end
        // of a packet that crosses the wrap for a whole packet.
        let excused = !pdu.inside.is_empty() && pdu.epoch != self.excused[end];
        if excused {
            self.excused[end] = pdu.epoch;
        }
        self.report.expect(Invariant::Format, pdu.frame, pdu.inside.is_empty() || excused, || {
            format!("tshark says of the packet inside: {}", pdu.inside)
        });
        let since = pdu.at.checked_sub(phase).map(|since| since % settings.tti);
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
        // A PDU known to be received is retransmitted only to carry a poll. Such retransmissions do not
        // count.
        if let Some(max_dat) = settings.max_dat.filter(|_| !state.acked) {
            report.expect(Invariant::MaxDat, frame, state.transmissions < max_dat.max(2), || {
                format!("SN {sn} is transmitted {} times", state.transmissions)
            });
        }
        // Each wrap of the sequence numbers and each RESET starts a new epoch, so that (epoch, SN) is unique.
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
            polled(sender, settings, report, pdu);
        }
        number
    }

    /// Checks a status report. Returns the sequence number of its MRW without modulus.
    fn status_sent(&mut self, end: usize, pdu: &Pdu, status: &Status) -> Option<u64> {
        let Self { settings, ends, report, .. } = self;
        let other = &settings[1 - end];
        let End { sender, receiver } = &mut ends[end];
        let frame = pdu.frame;
        report.expect(Invariant::Window, frame, status.window != Some(0), || {
            "a WINDOW of 0, which is discarded".to_owned()
        });
        report.expect(Invariant::Reset, frame, sender.pending.is_none(), || {
            "STATUS while a RESET is not answered".to_owned()
        });
        // A report is composed when it is triggered, and may wait for the next TTI.
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
        // A report that is sent in parts may lag behind VR(R), but by at most a window. No PDU that was sent
        // is a window or more ahead of VR(R).
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
            // LSN = VR(R) although later PDUs are known: the rest of the report is in another PDU
            // (§9.2.2.11.2).
            let partial = lsn.is_none_or(|lsn| lsn <= receiver.vr_r) && receiver.vr_h > receiver.vr_r;
            if let (Some(tsp), Some(last)) = (other.tsp, &receiver.last_report) {
                let same = last.partial && pdu.at - last.at <= settings[end].tti || pdu.at == last.at;
                report.expect(Invariant::StatusProhibit, frame, same || pdu.at - last.at >= tsp, || {
                    format!("a report {} ms after another", (pdu.at - last.at) / 1_000_000)
                });
            }
            receiver.last_report = Some(LastReport { at: pdu.at, partial });
            receiver.polled = None;
        }
        // Poll_SN is VT(S) − 1 (§9.2.2.11.9).
        if let Some(sn) = status.poll_sn {
            let last = sender.vt_s.saturating_sub(1) % MODULUS;
            report.expect(Invariant::Polling, frame, u64::from(sn) == last, || {
                format!("Poll_SN {sn} where VT(S) - 1 is {last}")
            });
            polled(sender, &settings[end], report, pdu);
        }
        let (mrw, _) = status.mrw?;
        let number = at_or_after(sender.vt_a, mrw);
        sender.vt_s = sender.vt_s.max(number);
        sender.mrw = Some(number);
        // The receiver does not answer polls for discarded PDUs.
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
        // The other causes of a RESET are MaxMRW, which does not apply here, and an erroneous sequence number
        // from the peer, which sets `must_reset`.
        if let (Discard::Reset, Some(max_dat)) = (settings[end].discard, settings[end].max_dat) {
            // The PDU need not be reported missing: it may have been the one to carry the next poll.
            let exhausted =
                sender.pdus.values().any(|pdu| !pdu.acked && pdu.transmissions + 1 >= max_dat.max(2));
            report.expect(Invariant::Reset, pdu.frame, sender.must_reset || exhausted, || {
                format!("a RESET, and no PDU was transmitted {} times in vain", max_dat.max(2) - 1)
            });
        }
        let expected = sender.last_rsn.is_some_and(|last| !last);
        report.expect(Invariant::Reset, pdu.frame, rsn == expected, || format!("a new RESET has RSN {rsn}"));
        // If this RESET was triggered before the peer's RESET arrived, the two cross, and only the RESET ACK
        // increases the HFN.
        let just_now = sender.set_back_by_peer.is_some_and(|at| pdu.at - at <= 2 * settings[end].tti);
        if just_now && sender.vt_s == 0 && hfni == sender.hfn.wrapping_sub(1) & HFN {
            sender.hfn = hfni;
        }
        let highest = sender.highest_hfn();
        report.expect(Invariant::Reset, pdu.frame, hfni == highest, || {
            format!("HFNI {hfni} where {highest} is the highest used")
        });
        sender.set_back_by_peer = None;
        sender.pending = Some((rsn, hfni));
        sender.last_rsn = Some(rsn);
        sender.exhausted = None;
    }
}

/// Records a poll, either in an AMD PDU or as a POLL SUFI.
fn polled(sender: &mut SenderBook, settings: &Direction, report: &mut Judgement, pdu: &Pdu) {
    if let (Some(prohibit), Some(last)) = (settings.poll_prohibit, sender.last_poll) {
        report.expect(Invariant::Polling, pdu.frame, pdu.at - last >= prohibit, || {
            format!("a poll {} ms after another", (pdu.at - last) / 1_000_000)
        });
    }
    sender.last_poll = Some(pdu.at);
    sender.open_poll = Some(OpenPoll { at: pdu.at, frame: pdu.frame, vt_s: sender.vt_s });
}

#[cfg(test)]
mod tests;
