//! Applies the arrival of PDUs to the state of both ends, and checks deadlines.

use super::*;

impl Checker {
    /// Processes all arrivals up to `now` in order.
    pub(super) fn process_arrivals(&mut self, now: Time) {
        loop {
            let next = |end: usize| self.in_flight[end].front().map(|arrival| (arrival.at, end));
            let Some((at, from)) = [next(0), next(1)].into_iter().flatten().min() else { return };
            if at > now {
                return;
            }
            let arrival = self.in_flight[from].pop_front().expect("it was at the front");
            self.now = at;
            self.check_deadlines();
            self.process_arrival(1 - from, arrival);
        }
    }

    pub(super) fn process_arrival(&mut self, end: usize, arrival: Arrival) {
        match &arrival.kind {
            PduKind::Reset { rsn, .. } => self.process_reset(end, arrival.at, *rsn),
            PduKind::ResetAck { rsn, .. } => {
                if self.ends[end].sender.pending.is_some_and(|(pending, _)| pending == *rsn) {
                    self.ends[end].sender.pending = None;
                    self.reset_state(end, 1);
                }
            }
            // While its own RESET is not acknowledged, an end discards all other PDUs.
            _ if self.ends[end].sender.pending.is_some() => {}
            PduKind::Data { poll, piggybacked, .. } => {
                self.process_data(end, &arrival, *poll);
                if let Some(status) = piggybacked {
                    self.apply_status(end, arrival.at, arrival.frame, status, arrival.mrw);
                }
            }
            PduKind::Status(status) => {
                self.apply_status(end, arrival.at, arrival.frame, status, arrival.mrw);
            }
        }
    }

    fn process_reset(&mut self, end: usize, at: Time, rsn: bool) {
        let End { sender, receiver } = &mut self.ends[end];
        // A repeated RESET, sent because the RESET ACK was lost or late, does not reset the variables again.
        // Its RESET ACK carries the HFN before the current one.
        if receiver.last_rsn == Some(rsn) && sender.pending.is_none() {
            receiver.pending_acks.push_back((rsn, sender.hfn.wrapping_sub(1) & HFN));
            return;
        }
        receiver.last_rsn = Some(rsn);
        receiver.pending_acks.push_back((rsn, sender.highest_hfn()));
        // While an end waits for a RESET ACK itself, only that RESET ACK increases its HFN (§11.4.5.3).
        let increase = u32::from(sender.pending.is_none());
        self.reset_state(end, increase);
        self.ends[end].sender.reset_by_peer_at = (increase == 1).then_some(at);
    }

    fn process_data(&mut self, end: usize, arrival: &Arrival, poll: bool) {
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
    }

    pub(super) fn apply_status(
        &mut self,
        end: usize,
        at: Time,
        frame: u64,
        status: &Status,
        mrw: Option<u64>,
    ) {
        let Self { settings, ends, findings, .. } = self;
        let settings = &settings[end];
        let End { sender, receiver } = &mut ends[end];
        let first_missing = apply_nacks(sender, settings, findings, (at, frame), &status.missing);
        if let Some(lsn) = status.lsn {
            apply_lsn(sender, findings, frame, lsn, first_missing);
        }
        if let (Some((sn_ack, _)), Some(length)) = (status.mrw_ack, sender.mrw) {
            let number = full_sn_from(sender.vt_a, sn_ack);
            if number >= length && number <= sender.vt_s {
                sender.mrw = None;
                sender.acknowledged(number);
            }
        }
        // A WINDOW with WSN = 0 is discarded (§9.2.2.11.3).
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
            let number = full_sn_from(receiver.vr_r, sn);
            receiver.vr_h = receiver.vr_h.max(number + 1);
            receiver.polled.get_or_insert((at, frame));
        }
    }

    /// Resets all state variables to their initial values (§11.4.3), and adds `increase` to the HFN.
    pub(super) fn reset_state(&mut self, end: usize, increase: u32) {
        let window = self.settings[end].window;
        let End { sender, receiver } = &mut self.ends[end];
        *sender = SenderState {
            vt_ws: window,
            pending: sender.pending,
            last_rsn: sender.last_rsn,
            hfn: sender.highest_hfn().wrapping_add(increase) & HFN,
            epoch: sender.epoch,
            ..SenderState::default()
        };
        *receiver = ReceiverState {
            last_rsn: receiver.last_rsn,
            pending_acks: std::mem::take(&mut receiver.pending_acks),
            ..ReceiverState::default()
        };
    }

    /// Checks that no reaction is overdue.
    pub(super) fn check_deadlines(&mut self) {
        for end in 0..2 {
            let Self { settings, ends, findings, now, .. } = self;
            let (own, other) = (&settings[end], &settings[1 - end]);
            let End { sender, receiver } = &mut ends[end];
            if sender.pending.is_some() {
                continue;
            }
            check_answer(receiver, own, other, *now, findings);
            check_repeated_poll(sender, own, *now, findings);
            check_exhausted(sender, own, *now, findings);
        }
    }
}

/// Records the PDUs that a report has missing. Returns the lowest of their numbers.
fn apply_nacks(
    sender: &mut SenderState,
    settings: &DirectionSettings,
    findings: &mut Findings,
    (at, frame): (Time, u64),
    missing: &[u16],
) -> u64 {
    let mut first_missing = u64::MAX;
    for &sn in missing {
        let number = full_sn_from(sender.vt_a, sn);
        sender.may_reset |= number >= sender.vt_s;
        findings.expect(Invariant::Acknowledgement, frame, number < sender.vt_s, || {
            format!("SN {sn} is reported missing outside of VT(A) to VT(S)")
        });
        first_missing = first_missing.min(number);
        if let Some(state) = sender.pdus.get_mut(&number) {
            state.nacked = Some(at);
            if settings.max_dat.is_some_and(|max_dat| state.transmissions + 1 >= max_dat.max(2)) {
                sender.exhausted.get_or_insert((at, number));
                sender.may_reset = true;
            }
        }
        if sender.open_poll.as_ref().is_some_and(|poll| number + 1 == poll.vt_s) {
            sender.open_poll = None;
        }
    }
    first_missing
}

/// Acknowledges the PDUs below LSN, except those from `first_missing` on.
fn apply_lsn(sender: &mut SenderState, findings: &mut Findings, frame: u64, lsn: u16, first_missing: u64) {
    let number = full_sn_from(sender.vt_a, lsn);
    sender.may_reset |= number > sender.vt_s;
    findings.expect(Invariant::Acknowledgement, frame, number <= sender.vt_s, || {
        format!("LSN {lsn} is outside of VT(A) to VT(S)")
    });
    for (_, state) in sender.pdus.range_mut(..number).filter(|(_, state)| state.nacked.is_none()) {
        state.acked = true;
    }
    sender.acknowledged(number.min(first_missing).min(sender.vt_s));
}

/// Checks that a poll is answered in time.
fn check_answer(
    receiver: &mut ReceiverState,
    own: &DirectionSettings,
    other: &DirectionSettings,
    now: Time,
    findings: &mut Findings,
) {
    let Some((since, frame)) = receiver.polled else { return };
    // An answer waits for the next TTI, and for Timer_Status_Prohibit, which the last report started at the
    // end of its TTI.
    let prohibited = receiver.last_report.as_ref().zip(other.tsp);
    let allowed = prohibited.map_or(since, |(last, tsp)| since.max(last.at + own.tti + tsp));
    if now > allowed + 2 * own.tti {
        findings.expect(Invariant::Polling, frame, false, || {
            format!("a poll that arrived at {} us is not answered", since / 1000)
        });
        receiver.polled = None;
    } else {
        findings.checks[Invariant::Polling as usize] += 1;
    }
}

/// Checks that an unanswered poll is repeated in time.
fn check_repeated_poll(
    sender: &mut SenderState,
    own: &DirectionSettings,
    now: Time,
    findings: &mut Findings,
) {
    let (Some(poll), Some(timer)) = (&sender.open_poll, own.timer_poll) else { return };
    let waited = timer.max(own.poll_prohibit.unwrap_or(0)) + 3 * own.tti;
    // The PDU that would carry the poll may have had its last permitted transmission. It is then discarded
    // instead.
    let last = sender.pdus.last_key_value().map_or(0, |(_, state)| state.transmissions);
    let carried = own.max_dat.is_none_or(|max_dat| last + 1 < max_dat.max(2));
    if now > poll.at + waited {
        findings.expect(Invariant::Polling, poll.frame, !carried, || {
            "an unanswered poll is not repeated".to_owned()
        });
        sender.open_poll = None;
    } else {
        findings.checks[Invariant::Polling as usize] += 1;
    }
}

/// Checks that a RESET or MRW follows in time when a PDU has reached MaxDAT.
fn check_exhausted(sender: &mut SenderState, own: &DirectionSettings, now: Time, findings: &mut Findings) {
    let Some((since, sn)) = sender.exhausted else { return };
    // An MRW may have to wait until the previous one is acknowledged.
    let patience = match own.discard {
        Discard::Reset => 2 * own.tti,
        Discard::Mrw => 2_000_000_000,
    };
    if now > since + patience {
        findings.expect(Invariant::MaxDat, 0, false, || {
            format!("no RESET or MRW follows, although SN {} must not be retransmitted", sn % MODULUS)
        });
        sender.exhausted = None;
    }
}
