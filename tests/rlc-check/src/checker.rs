//! Checks the invariants against the reconstructed state of both ends.
//!
//! Arrivals are processed before transmissions of the same time.

mod arrivals;
mod state;

use std::collections::VecDeque;

use state::*;

use crate::findings::{Counts, Findings, Invariant};
use crate::settings::{DirectionSettings, Discard, Sizing, Time};
use crate::trace::{Pdu, PduKind, Status};

const MODULUS: u64 = 4096;

/// Returns the number congruent to `sn` that is at or after `base`.
fn full_sn_from(base: u64, sn: u16) -> u64 {
    base + (u64::from(sn) + MODULUS - base % MODULUS) % MODULUS
}

/// Returns the number congruent to `sn` that is before `limit`; negative if there is none.
fn full_sn_before(limit: u64, sn: u16) -> i64 {
    let back = (limit % MODULUS + MODULUS - 1 - u64::from(sn)) % MODULUS + 1;
    limit as i64 - back as i64
}

pub(crate) struct Checker {
    settings: [DirectionSettings; 2],
    /// State of the end that sends down, and of the end that sends up.
    ends: [End; 2],
    /// PDUs that each end has sent and that have not arrived at the other end.
    in_flight: [VecDeque<Arrival>; 2],
    /// The current TTI of each end, as its time, its number of PDUs so far, and the frame of the first PDU.
    current_tti: [(Time, u16, u64); 2],
    counts: [Counts; 2],
    /// For each end, the last epoch in which an objection to the packet in a PDU was accepted. Such
    /// objections are never accepted in the first epoch.
    excused_epoch: [u32; 2],
    findings: Findings,
    now: Time,
}

impl Checker {
    pub(crate) fn new(down: DirectionSettings, up: DirectionSettings) -> Self {
        let end = |settings: &DirectionSettings| End {
            sender: SenderState { vt_ws: settings.window, hfn: settings.hfn, ..SenderState::default() },
            receiver: ReceiverState::default(),
        };
        Self {
            ends: [end(&down), end(&up)],
            settings: [down, up],
            in_flight: Default::default(),
            current_tti: Default::default(),
            counts: Default::default(),
            excused_epoch: [1; 2],
            findings: Findings::default(),
            now: 0,
        }
    }

    pub(crate) fn pdu(&mut self, pdu: &Pdu) {
        self.findings.expect(Invariant::Format, pdu.frame, pdu.at >= self.now, || {
            "sent before the previous PDU".to_owned()
        });
        self.process_arrivals(pdu.at);
        self.now = pdu.at;
        let end = pdu.direction as usize;
        self.check_deadlines();
        self.block(end, pdu);
        let (mut sn, mut mrw) = (0, None);
        match &pdu.kind {
            PduKind::Data { sn: number, poll, piggybacked } => {
                sn = self.check_data(end, pdu, *number, *poll);
                if let Some(status) = piggybacked {
                    mrw = self.check_status(end, pdu, status);
                }
            }
            PduKind::Status(status) => {
                self.counts[end].status += 1;
                mrw = self.check_status(end, pdu, status);
            }
            PduKind::Reset { rsn, hfni } => self.check_reset(end, pdu, *rsn, *hfni),
            PduKind::ResetAck { rsn, hfni } => {
                let answered = self.ends[end].receiver.pending_acks.pop_front();
                self.findings.expect(Invariant::Reset, pdu.frame, answered == Some((*rsn, *hfni)), || {
                    format!("RESET ACK {rsn} HFNI {hfni}, expected {answered:?}")
                });
            }
        }
        if !pdu.lost {
            let at = pdu.at + self.settings[end].flight;
            self.in_flight[end].push_back(Arrival { at, frame: pdu.frame, kind: pdu.kind.clone(), sn, mrw });
        }
    }

    /// Ends the check. `until` is the end of the capture. If `until` is unknown, a missing reaction to the
    /// last PDUs is not a violation.
    pub(crate) fn finish(mut self, until: Option<Time>) -> Findings {
        if let Some(until) = until.filter(|until| *until > self.now) {
            self.process_arrivals(until);
            self.now = until;
            self.check_deadlines();
        }
        for end in 0..2 {
            self.check_retransmissions(end);
            self.check_tti(end);
            let (settings, counts) = (&self.settings[end], self.counts[end]);
            if let Some(bler) = settings.bler {
                let expected = bler * counts.pdus as f64;
                let deviation = (counts.pdus as f64 * bler * (1.0 - bler)).sqrt();
                // 3.29 standard deviations contain 99.9 % of a normal distribution, which approximates the
                // binomial one.
                let holds = (counts.lost as f64 - expected).abs() <= 3.29 * deviation + 0.5;
                self.findings.expect(Invariant::BlockErrors, 0, holds, || {
                    format!("{} of {} lost, expected {expected:.0}", counts.lost, counts.pdus)
                });
            }
        }
        [self.findings.down, self.findings.up] = self.counts;
        self.findings
    }

    /// Checks that every PDU that was reported missing is retransmitted. Retransmissions precede new data.
    /// Even with one PDU per TTI, and a status report or an MRW in every other TTI, they are sent within a
    /// window.
    fn check_retransmissions(&mut self, end: usize) {
        let Self { settings, ends, findings, now, .. } = self;
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
        findings.expect(Invariant::Acknowledgement, 0, forgotten.is_none(), || {
            format!("SN {} was reported missing and is not retransmitted", forgotten.unwrap_or_default())
        });
    }

    /// Counts a PDU, and checks its size, its format and its time.
    fn block(&mut self, end: usize, pdu: &Pdu) {
        let counts = &mut self.counts[end];
        counts.pdus += 1;
        counts.lost += u64::from(pdu.lost);
        self.check_size(end, pdu);
        self.check_objections(end, pdu);
        self.check_time(end, pdu);
    }

    fn check_size(&mut self, end: usize, pdu: &Pdu) {
        let settings = &self.settings[end];
        let octets = settings.pdu;
        let fits = match settings.sizing {
            Sizing::Fixed => pdu.octets == octets,
            Sizing::Flexible(_) => pdu.octets <= octets && !pdu.padded,
        };
        self.findings.expect(Invariant::Format, pdu.frame, fits, || {
            let padded = if pdu.padded { ", some of them padding," } else { "" };
            format!("{} bytes{padded} instead of {octets}", pdu.octets)
        });
    }

    /// Checks that tshark has no objections to the PDU and to the packet inside.
    fn check_objections(&mut self, end: usize, pdu: &Pdu) {
        self.findings.expect(Invariant::Format, pdu.frame, pdu.objections.is_empty(), || {
            format!("objection of tshark: {}", pdu.objections)
        });
        // For tshark, each wrap of the sequence numbers starts a new channel. It therefore mistakes the end
        // of a packet that crosses the wrap for a whole packet.
        let excused = !pdu.packet_objections.is_empty() && pdu.epoch != self.excused_epoch[end];
        if excused {
            self.excused_epoch[end] = pdu.epoch;
        }
        self.findings.expect(
            Invariant::Format,
            pdu.frame,
            pdu.packet_objections.is_empty() || excused,
            || format!("objection of tshark to the packet inside: {}", pdu.packet_objections),
        );
    }

    /// Checks that the PDU is sent at the beginning of a TTI. Checks the previous TTI when a new one begins.
    fn check_time(&mut self, end: usize, pdu: &Pdu) {
        let settings = &mut self.settings[end];
        // The TTI grid starts at an arbitrary time of day, so the first PDU determines its phase.
        let phase = *settings.phase.get_or_insert(pdu.at % settings.tti);
        let since = pdu.at.checked_sub(phase).map(|since| since % settings.tti);
        self.findings.expect(Invariant::Tti, pdu.frame, since == Some(0), || {
            format!("sent {since:?} ns after a TTI began")
        });
        if self.current_tti[end].0 != pdu.at {
            self.check_tti(end);
            self.current_tti[end] = (pdu.at, 0, pdu.frame);
        }
        self.current_tti[end].1 += 1;
    }

    fn check_tti(&mut self, end: usize) {
        let (_, blocks, frame) = self.current_tti[end];
        let formats = &self.settings[end].blocks;
        if blocks > 0 && !formats.is_empty() {
            self.findings.expect(Invariant::Tti, frame, formats.contains(&blocks), || {
                format!("no transport format has {blocks} PDUs in a TTI")
            });
        }
    }

    /// Checks a data PDU. Returns its unwrapped sequence number.
    fn check_data(&mut self, end: usize, pdu: &Pdu, sn: u16, poll: bool) -> u64 {
        let Self { settings, ends, findings, counts, .. } = self;
        let (settings, sender) = (&settings[end], &mut ends[end].sender);
        let frame = pdu.frame;
        findings.expect(Invariant::Reset, frame, sender.pending.is_none(), || {
            "data while a RESET is unanswered".to_owned()
        });
        let number = if u64::from(sn) == sender.vt_s % MODULUS {
            let number = check_new(sender, settings, findings, pdu);
            counts[end].new += 1;
            counts[end].laps += u64::from(number > 0 && number.is_multiple_of(MODULUS));
            number
        } else {
            counts[end].resent += 1;
            check_retransmission(sender, findings, pdu, sn, poll)
        };
        let state = sender.pdus.entry(number).or_default();
        state.transmissions += 1;
        state.nacked = None;
        // A PDU known to be received is retransmitted only to carry a poll. Such retransmissions do not
        // count.
        if let Some(max_dat) = settings.max_dat.filter(|_| !state.acked) {
            findings.expect(Invariant::MaxDat, frame, state.transmissions < max_dat.max(2), || {
                format!("SN {sn} is transmitted {} times", state.transmissions)
            });
        }
        check_epoch(sender, findings, pdu, number);
        if poll {
            record_poll(sender, settings, findings, pdu);
        }
        number
    }

    /// Checks a status report. Returns the unwrapped sequence number of its MRW.
    fn check_status(&mut self, end: usize, pdu: &Pdu, status: &Status) -> Option<u64> {
        let Self { settings, ends, findings, .. } = self;
        let other = &settings[1 - end];
        let End { sender, receiver } = &mut ends[end];
        let frame = pdu.frame;
        findings.expect(Invariant::Window, frame, status.window != Some(0), || {
            "a WINDOW of 0, which is discarded".to_owned()
        });
        findings.expect(Invariant::Reset, frame, sender.pending.is_none(), || {
            "STATUS while a RESET is unanswered".to_owned()
        });
        // A report is composed when it is triggered, and may wait for the next TTI.
        let composed = pdu.at.saturating_sub(settings[end].tti);
        let lsn = check_acknowledgement(receiver, other, findings, status, frame, composed);
        if status.acknowledges() {
            // LSN = VR(R) although later PDUs are known: the rest of the report is in another PDU
            // (§9.2.2.11.2).
            let partial = lsn.is_none_or(|lsn| lsn <= receiver.vr_r) && receiver.vr_h > receiver.vr_r;
            if let (Some(tsp), Some(last)) = (other.tsp, &receiver.last_report) {
                check_prohibit(last, tsp, settings[end].tti, findings, pdu);
            }
            receiver.last_report = Some(LastReport { at: pdu.at, partial });
            receiver.polled = None;
        }
        // Poll_SN is VT(S) − 1 (§9.2.2.11.9).
        if let Some(sn) = status.poll_sn {
            let last = sender.vt_s.saturating_sub(1) % MODULUS;
            findings.expect(Invariant::Polling, frame, u64::from(sn) == last, || {
                format!("Poll_SN {sn}, but VT(S) - 1 is {last}")
            });
            record_poll(sender, &settings[end], findings, pdu);
        }
        status.mrw.map(|(length, _)| sender.discard_up_to(length))
    }

    fn check_reset(&mut self, end: usize, pdu: &Pdu, rsn: bool, hfni: u32) {
        let Self { settings, ends, findings, counts, .. } = self;
        let sender = &mut ends[end].sender;
        if let Some(pending) = sender.pending {
            findings.expect(Invariant::Reset, pdu.frame, pending == (rsn, hfni), || {
                format!("RESET {rsn} {hfni} repeats RESET {pending:?}")
            });
            return;
        }
        counts[end].resets += 1;
        check_reset_cause(sender, &settings[end], findings, pdu);
        let expected = sender.last_rsn.is_some_and(|last| !last);
        findings
            .expect(Invariant::Reset, pdu.frame, rsn == expected, || format!("a new RESET has RSN {rsn}"));
        // If this RESET was triggered before the peer's RESET arrived, the two cross, and only the RESET ACK
        // increases the HFN.
        let crossing = sender.reset_by_peer_at.is_some_and(|at| pdu.at - at <= 2 * settings[end].tti);
        if crossing && sender.vt_s == 0 && hfni == sender.hfn.wrapping_sub(1) & HFN {
            sender.hfn = hfni;
        }
        let highest = sender.highest_hfn();
        findings.expect(Invariant::Reset, pdu.frame, hfni == highest, || {
            format!("HFNI {hfni}, but {highest} is the highest used")
        });
        sender.reset_by_peer_at = None;
        sender.pending = Some((rsn, hfni));
        sender.last_rsn = Some(rsn);
        sender.exhausted = None;
    }
}

/// Checks that a RESET has a cause.
fn check_reset_cause(sender: &SenderState, settings: &DirectionSettings, findings: &mut Findings, pdu: &Pdu) {
    // The other causes of a RESET are MaxMRW, which does not apply here, and an erroneous sequence number
    // from the peer, which sets `may_reset`.
    let (Discard::Reset, Some(max_dat)) = (settings.discard, settings.max_dat) else { return };
    let limit = max_dat.max(2);
    // The PDU need not be reported missing: its retransmission may have been due to a poll.
    let exhausted = sender.pdus.values().any(|pdu| !pdu.acked && pdu.transmissions + 1 >= limit);
    findings.expect(Invariant::Reset, pdu.frame, sender.may_reset || exhausted, || {
        format!("a RESET although no PDU was transmitted {} times without success", limit - 1)
    });
}

fn check_new(
    sender: &mut SenderState,
    settings: &DirectionSettings,
    findings: &mut Findings,
    pdu: &Pdu,
) -> u64 {
    let number = sender.vt_s;
    let full = number >= sender.vt_a + sender.vt_ws;
    findings.expect(Invariant::Window, pdu.frame, !full, || {
        format!("new SN {} beyond VT(A) {} + {}", number % MODULUS, sender.vt_a % MODULUS, sender.vt_ws)
    });
    if settings.discard == Discard::Reset {
        findings.expect(Invariant::MaxDat, pdu.frame, sender.exhausted.is_none(), || {
            format!("new data although {:?} must not be retransmitted", sender.exhausted)
        });
    }
    sender.vt_s += 1;
    number
}

fn check_retransmission(
    sender: &SenderState,
    findings: &mut Findings,
    pdu: &Pdu,
    sn: u16,
    poll: bool,
) -> u64 {
    let number = full_sn_before(sender.vt_s, sn);
    findings.expect(Invariant::Format, pdu.frame, number >= sender.vt_a as i64, || {
        let next = sender.vt_s % MODULUS;
        format!("SN {sn} is neither the next new one, {next}, nor one that is not acknowledged")
    });
    let number = number.max(0) as u64;
    let last = number + 1 == sender.vt_s;
    findings.expect(Invariant::Window, pdu.frame, last || number < sender.vt_a + sender.vt_ws, || {
        format!("retransmission of SN {sn} beyond the window")
    });
    let state = sender.pdus.get(&number);
    let reported = state.is_some_and(|state| state.nacked.is_some());
    let known_received = state.is_none_or(|state| state.acked);
    let requested = reported || (poll && (last || !known_received));
    findings.expect(Invariant::Acknowledgement, pdu.frame, requested, || {
        format!("SN {sn} is retransmitted, but was not reported missing and does not poll")
    });
    number
}

/// Checks that (epoch, SN) is unique: each wrap of the sequence numbers and each RESET starts a new epoch.
fn check_epoch(sender: &mut SenderState, findings: &mut Findings, pdu: &Pdu, number: u64) {
    let lap = (number / MODULUS) as u32 % 4096;
    let epoch = pdu.epoch.wrapping_sub(1);
    findings.expect(Invariant::Format, pdu.frame, epoch % 4096 == lap, || {
        format!("epoch {epoch:#x} in lap {lap}")
    });
    findings.expect(Invariant::Format, pdu.frame, epoch >> 12 >= sender.epoch >> 12, || {
        format!("epoch {epoch:#x} after {:#x}", sender.epoch)
    });
    sender.epoch = epoch;
}

/// Checks that a report agrees with the arrivals. Returns its unwrapped LSN.
fn check_acknowledgement(
    receiver: &ReceiverState,
    other: &DirectionSettings,
    findings: &mut Findings,
    status: &Status,
    frame: u64,
    composed: Time,
) -> Option<u64> {
    let missing = check_missing(receiver, findings, &status.missing, frame, composed);
    // The LSN of a report in several parts may be below VR(R), but at most by a window. All transmitted PDUs
    // are less than a window above VR(R).
    let oldest = receiver.vr_r.saturating_sub(MODULUS.saturating_sub(other.window));
    let lsn = status.lsn.map(|lsn| full_sn_from(oldest, lsn))?;
    findings.expect(Invariant::Acknowledgement, frame, lsn <= receiver.vr_h, || {
        format!("LSN {} is beyond VR(H) {}", lsn % MODULUS, receiver.vr_h % MODULUS)
    });
    let unreported = (receiver.vr_r..lsn.min(receiver.vr_h))
        .find(|sn| !receiver.arrived.contains_key(sn) && !missing.contains(sn));
    findings.expect(Invariant::Acknowledgement, frame, unreported.is_none(), || {
        let unreported = unreported.map(|sn| sn % MODULUS);
        format!("LSN {} acknowledges SN {unreported:?}, which never arrived", lsn % MODULUS)
    });
    Some(lsn)
}

/// Checks that the PDUs that a report has missing had not arrived when it was composed. Returns their
/// unwrapped numbers.
fn check_missing(
    receiver: &ReceiverState,
    findings: &mut Findings,
    missing: &[u16],
    frame: u64,
    composed: Time,
) -> Vec<u64> {
    let mut numbers = Vec::new();
    for &sn in missing {
        let number = full_sn_before(receiver.vr_h, sn);
        let since = receiver.arrived.get(&(number.max(0) as u64)).copied();
        let was_missing = number >= 0
            && match since {
                Some(arrived) => arrived >= composed,
                None => number >= receiver.vr_r as i64,
            };
        findings.expect(Invariant::Acknowledgement, frame, was_missing, || {
            format!(
                "SN {sn} is reported missing, but VR(R) {} VR(H) {} and it arrived {since:?}",
                receiver.vr_r % MODULUS,
                receiver.vr_h % MODULUS
            )
        });
        numbers.push(number.max(0) as u64);
    }
    numbers
}

/// Checks that Timer_Status_Prohibit does not prohibit a report (§9.7.2).
fn check_prohibit(last: &LastReport, tsp: Time, tti: Time, findings: &mut Findings, pdu: &Pdu) {
    let elapsed = pdu.at - last.at;
    let same_report = last.partial && elapsed <= tti || elapsed == 0;
    findings.expect(Invariant::StatusProhibit, pdu.frame, same_report || elapsed >= tsp, || {
        format!("a report {} ms after another", elapsed / 1_000_000)
    });
}

/// Records a poll, either in an AMD PDU or as a POLL SUFI.
fn record_poll(sender: &mut SenderState, settings: &DirectionSettings, findings: &mut Findings, pdu: &Pdu) {
    if let (Some(prohibit), Some(last)) = (settings.poll_prohibit, sender.last_poll) {
        findings.expect(Invariant::Polling, pdu.frame, pdu.at - last >= prohibit, || {
            format!("a poll {} ms after another", (pdu.at - last) / 1_000_000)
        });
    }
    sender.last_poll = Some(pdu.at);
    sender.open_poll = Some(OpenPoll { at: pdu.at, frame: pdu.frame, vt_s: sender.vt_s });
}

#[cfg(test)]
mod tests;
