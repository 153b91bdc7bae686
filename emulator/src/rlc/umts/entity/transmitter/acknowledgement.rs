//! Handling of a STATUS PDU: retransmission, acknowledgement, and the end of a discard (§11.5.3, §11.6.4).

use airwire::time::{Duration, Instant};

use super::{Fate, State, Stats, Transmitter, Window, widest, wire};
use crate::rlc::umts::entity::SduOutcome;
use crate::rlc::umts::entity::reset::ResetCause;
use crate::rlc::umts::pdu::Sn;
use crate::rlc::umts::status_report::Interpretation;

/// Result of a NACK.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nack {
    /// The PDU is scheduled for retransmission, unless it is already scheduled, acknowledged or discarded.
    Heeded,
    /// The NACK is ignored. It arrived shortly after a retransmission, and refers to an earlier copy
    /// (`ignore_nack_within`).
    TooSoon,
    /// VT(DAT) = MaxDAT (§11.3.3a).
    Exhausts,
}

impl Transmitter {
    /// Handles the reception of a STATUS PDU (§11.5.3).
    pub(in crate::rlc::umts::entity) fn handle_report(
        &mut self,
        now: Instant,
        told: &Interpretation,
        stats: &mut Stats,
    ) -> Result<(), ResetCause> {
        // §10.1, "erroneous Sequence Number": a negatively acknowledged SN outside VT(A) ≤ SN < VT(S), or an
        // LSN outside VT(A) ≤ LSN ≤ VT(S). The STATUS PDU is discarded, and the reset procedure is initiated.
        let base = wire(self.vt_a);
        let outstanding = self.vt_s - self.vt_a;
        let in_flight = |sn: &Sn| u64::from(sn.since(base)) < outstanding;
        if !told.missing.iter().all(in_flight)
            || told.lsn.is_some_and(|lsn| u64::from(lsn.since(base)) > outstanding)
        {
            stats.erroneous_sns += 1;
            return Err(ResetCause::ErroneousSn);
        }
        // §9.2.2.11.3: VT(WS) := WSN, at most Configured_Tx_Window_Size. WSN = 0 is discarded.
        let before = self.vt_ws;
        if let Some(wsn) = told.window.filter(|wsn| *wsn > 0) {
            self.vt_ws = wsn.min(widest(&self.config));
            stats.windows_applied += 1;
        }

        let vt_a = self.vt_a;
        let mut missing: Vec<u64> = told.missing.iter().map(|sn| vt_a + u64::from(sn.since(base))).collect();
        missing.sort_unstable();
        let mut exhausted = None;
        for sn in &missing {
            stats.nacks += 1;
            match self.negatively_acknowledged(now, *sn) {
                // The report was written before the last retransmission, so it does not answer a poll in that
                // retransmission.
                Nack::TooSoon => {
                    stats.nacks_ignored += 1;
                    continue;
                }
                Nack::Heeded => {}
                Nack::Exhausts => exhausted = Some(*sn),
            }
            self.polling.negatively_acknowledged(*sn);
        }
        if let Some(lsn) = told.lsn {
            let lsn = vt_a + u64::from(lsn.since(base));
            self.acknowledge(lsn, &missing);
        }
        if let Some(ack) = told.mrw_ack {
            let sn_ack = vt_a + u64::from(ack.sn_ack.since(base));
            // §11.6.6.3: any other MRW_ACK is obsolete or corrupted, and is discarded.
            if (self.vt_a..=self.vt_s).contains(&sn_ack)
                && let Some(through) = self.discarding.acknowledged(sn_ack, ack.n)
            {
                self.advance(sn_ack);
                self.discarded(through);
            }
        }
        self.discarding.start_next(self.vt_a, self.config.window);
        self.look_at_window(stats);
        // Choice: if a smaller window makes new data wait, VT(S) − 1 has become the last PDU that is allowed
        // (§9.7.1, trigger 1). It may not have polled, in which case no poll would request the report that
        // opens the window.
        if self.vt_ws < before && self.window != Window::Open && self.config.poll.last_pdu {
            self.polling.trigger();
        }
        match exhausted {
            // An MRW_ACK in the same STATUS PDU may have moved VT(A) beyond this PDU.
            Some(sn) if sn >= self.vt_a => self.exhausted(sn, stats),
            _ => Ok(()),
        }
    }

    /// Schedules a PDU, which increments VT(DAT) (§11.3.2). Returns `true` if VT(DAT) = MaxDAT.
    pub(super) fn exhausts(&mut self, sn: u64) -> bool {
        let max_dat = self.max_dat();
        let pdu = self.sent(sn);
        pdu.vt_dat = pdu.vt_dat.saturating_add(1);
        max_dat.is_some_and(|max_dat| pdu.vt_dat >= max_dat)
    }

    /// Schedules a negatively acknowledged PDU for retransmission, unless it is already scheduled (§11.3.2).
    fn negatively_acknowledged(&mut self, now: Instant, sn: u64) -> Nack {
        let ignored = self.config.ignore_nack_within;
        let pdu = self.sent(sn);
        // With VT(DAT) = 1, the NACK cannot refer to an earlier copy.
        let too_soon = pdu.vt_dat > 1 && ignored.is_some_and(|within: Duration| now - pdu.last_sent < within);
        if pdu.state != State::Unacknowledged || self.scheduled.contains(&sn) {
            return Nack::Heeded;
        }
        if too_soon {
            return Nack::TooSoon;
        }
        if self.exhausts(sn) {
            return Nack::Exhausts;
        }
        self.scheduled.insert(sn);
        Nack::Heeded
    }

    /// Handles an ACK with `lsn` (§9.2.2.11.2). It acknowledges all PDUs with SN < LSN that the same STATUS
    /// PDU does not report as `missing`. VT(A) becomes LSN, or the first missing SN if that is less.
    fn acknowledge(&mut self, lsn: u64, missing: &[u64]) {
        let mut missing_below = missing.iter().copied().take_while(|sn| *sn < lsn).peekable();
        let first_missing = missing_below.peek().copied();
        for sn in self.vt_a..lsn {
            if missing_below.next_if_eq(&sn).is_some() {
                continue;
            }
            let pdu = self.sent(sn);
            if pdu.state == State::Unacknowledged {
                pdu.state = State::Acknowledged;
                self.unacknowledged -= 1;
                self.scheduled.remove(&sn);
            }
        }
        self.advance(first_missing.unwrap_or(lsn));
        // §11.6.4 refers to VT(A), not to LSN: before the MRW arrives, LSN can be beyond PDUs that the MRW
        // discards and that are reported as missing.
        if let Some(through) = self.discarding.acknowledged_up_to(self.vt_a) {
            self.discarded(through);
        }
    }

    /// Moves VT(A) to `vt_a`, and frees the PDUs and SDUs below it.
    fn advance(&mut self, vt_a: u64) {
        while self.vt_a < vt_a {
            let pdu = self.pdus.pop_front().expect("VT(A) does not pass VT(S)");
            if pdu.state == State::Unacknowledged {
                self.unacknowledged -= 1;
                self.scheduled.remove(&self.vt_a);
            }
            self.vt_a += 1;
        }
        self.polling.acknowledged(self.vt_a);
        while self.sdus.front().is_some_and(|sdu| {
            sdu.fate == Fate::Dropped || sdu.end.is_some_and(|end| end.said_in < self.vt_a)
        }) {
            self.free(SduOutcome::Acknowledged);
        }
    }

    /// Settles the SDUs up to this index, because their discard procedure has terminated (§11.6.4).
    fn discarded(&mut self, through: u64) {
        while self.first_sdu <= through && self.settled > 0 {
            self.free(SduOutcome::Discarded);
        }
    }

    /// Removes the first SDU. Its outcome is `outcome`, unless it was given up.
    pub(super) fn free(&mut self, outcome: SduOutcome) {
        let Some(sdu) = self.sdus.pop_front() else { return };
        self.first_sdu += 1;
        if sdu.fate != Fate::Kept {
            self.settled -= 1;
        }
        match sdu.fate {
            Fate::Kept => self.outcomes.push_back((sdu.id, outcome)),
            Fate::GivenUp => self.outcomes.push_back((sdu.id, SduOutcome::Discarded)),
            Fate::Dropped => {}
        }
    }
}
