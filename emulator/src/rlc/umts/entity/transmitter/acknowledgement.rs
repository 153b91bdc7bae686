//! Handling of a STATUS PDU: retransmission, acknowledgement, and the end of a discard (§11.5.3, §11.6.4).

use airwire::time::{Duration, Instant};

use super::{PduState, SduState, Stats, Transmitter, WindowState, max_vt_ws, wire};
use crate::rlc::umts::entity::SduOutcome;
use crate::rlc::umts::entity::reset::ResetCause;
use crate::rlc::umts::pdu::Sn;
use crate::rlc::umts::status_report::StatusContent;

/// Effect of a negative acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NackResult {
    /// The PDU is scheduled for retransmission, unless it is already scheduled, acknowledged or discarded.
    Accepted,
    /// `ignore_nack_within`: the NACK arrived shortly after a retransmission, and refers to an earlier copy.
    Ignored,
    /// VT(DAT) = MaxDAT (§11.3.3a).
    MaxDatReached,
}

impl Transmitter {
    /// Handles the reception of a STATUS PDU (§11.5.3).
    pub(in crate::rlc::umts::entity) fn handle_status(
        &mut self,
        now: Instant,
        content: &StatusContent,
        stats: &mut Stats,
    ) -> Result<(), ResetCause> {
        let vt_a = self.vt_a;
        let ahead = |sn: Sn| u64::from(sn.since(wire(vt_a)));
        // §10.1, "erroneous Sequence Number": a negatively acknowledged SN outside VT(A) ≤ SN < VT(S), or an
        // LSN outside VT(A) ≤ LSN ≤ VT(S). The STATUS PDU is discarded, and the reset procedure is initiated.
        let outstanding = self.vt_s - vt_a;
        if content.missing.iter().any(|sn| ahead(*sn) >= outstanding)
            || content.lsn.is_some_and(|lsn| ahead(lsn) > outstanding)
        {
            stats.erroneous_sns += 1;
            return Err(ResetCause::ErroneousSn);
        }
        // §9.2.2.11.3: VT(WS) := WSN, at most Configured_Tx_Window_Size. WSN = 0 is discarded.
        let vt_ws = self.vt_ws;
        if let Some(wsn) = content.window.filter(|wsn| *wsn > 0) {
            self.vt_ws = wsn.min(max_vt_ws(&self.config));
            stats.windows_applied += 1;
        }
        let mut missing: Vec<u64> = content.missing.iter().map(|sn| vt_a + ahead(*sn)).collect();
        missing.sort_unstable();
        let exhausted = self.handle_nacks(now, &missing, stats);
        if let Some(lsn) = content.lsn {
            self.acknowledge(vt_a + ahead(lsn), &missing);
        }
        if let Some(ack) = content.mrw_ack {
            let sn_ack = vt_a + ahead(ack.sn_ack);
            // §11.6.6.3: any other MRW_ACK is obsolete or corrupted, and is discarded.
            if (self.vt_a..=self.vt_s).contains(&sn_ack)
                && let Some(last_sdu) = self.signalling.handle_mrw_ack(sn_ack, ack.n)
            {
                self.advance(sn_ack);
                self.settle_discarded(last_sdu);
            }
        }
        self.signalling.start_next(self.vt_a, self.config.window);
        self.update_window_state(stats);
        // Choice: if a smaller window makes new data wait, VT(S) − 1 has become the last PDU that is allowed
        // (§9.7.1, trigger 1). It may not have polled, in which case no poll would request the report that
        // opens the window.
        if self.vt_ws < vt_ws && self.window_state != WindowState::Open && self.config.poll.last_pdu {
            self.polling.trigger();
        }
        match exhausted {
            // An MRW_ACK in the same STATUS PDU may have moved VT(A) beyond this PDU.
            Some(sn) if sn >= self.vt_a => self.handle_max_dat(sn, stats),
            _ => Ok(()),
        }
    }

    /// Handles negative acknowledgements. Returns the last PDU with VT(DAT) = MaxDAT.
    fn handle_nacks(&mut self, now: Instant, missing: &[u64], stats: &mut Stats) -> Option<u64> {
        let mut exhausted = None;
        for sn in missing {
            stats.nacks += 1;
            match self.handle_nack(now, *sn) {
                // The report was written before the last retransmission, so it does not answer a poll in that
                // retransmission.
                NackResult::Ignored => {
                    stats.nacks_ignored += 1;
                    continue;
                }
                NackResult::Accepted => {}
                NackResult::MaxDatReached => exhausted = Some(*sn),
            }
            self.polling.handle_nack(*sn);
        }
        exhausted
    }

    /// Schedules a PDU. §11.3.2: VT(DAT) is incremented by 1. Returns `true` if VT(DAT) = MaxDAT (§11.3.3a).
    pub(super) fn reaches_max_dat(&mut self, sn: u64) -> bool {
        let max_dat = self.max_dat();
        let pdu = self.sent(sn);
        pdu.vt_dat = pdu.vt_dat.saturating_add(1);
        max_dat.is_some_and(|max_dat| pdu.vt_dat >= max_dat)
    }

    /// Handles a negative acknowledgement. §11.3.2: the PDU is scheduled for retransmission, unless it is
    /// already scheduled.
    fn handle_nack(&mut self, now: Instant, sn: u64) -> NackResult {
        let ignored = self.config.ignore_nack_within;
        let pdu = self.sent(sn);
        // With VT(DAT) = 1, the NACK cannot refer to an earlier copy.
        let too_soon = pdu.vt_dat > 1 && ignored.is_some_and(|within: Duration| now - pdu.last_sent < within);
        if pdu.state != PduState::Unacknowledged || pdu.is_scheduled {
            return NackResult::Accepted;
        }
        if too_soon {
            return NackResult::Ignored;
        }
        if self.reaches_max_dat(sn) {
            return NackResult::MaxDatReached;
        }
        self.schedule(sn);
        NackResult::Accepted
    }

    /// Handles an ACK. §9.2.2.11.2: it acknowledges all PDUs with SN < LSN that the same STATUS PDU does not
    /// report as missing. VT(A) becomes LSN, or the first missing SN if that is less.
    fn acknowledge(&mut self, lsn: u64, missing: &[u64]) {
        let mut missing_below = missing.iter().copied().take_while(|sn| *sn < lsn).peekable();
        let vt_a = missing_below.peek().copied().unwrap_or(lsn);
        self.advance(vt_a);
        for (sn, pdu) in (vt_a..lsn).zip(&mut self.pdus) {
            if missing_below.next_if_eq(&sn).is_none() && pdu.state == PduState::Unacknowledged {
                pdu.state = PduState::Acknowledged;
                self.unacknowledged -= 1;
                self.scheduled -= usize::from(std::mem::take(&mut pdu.is_scheduled));
            }
        }
        // §11.6.4 refers to VT(A), not to LSN: before the MRW arrives, LSN can be beyond PDUs that the MRW
        // discards and that are reported as missing.
        if let Some(last_sdu) = self.signalling.handle_vt_a(self.vt_a) {
            self.settle_discarded(last_sdu);
        }
    }

    /// Moves VT(A) to `vt_a`, and frees the PDUs and SDUs below it.
    fn advance(&mut self, vt_a: u64) {
        while self.vt_a < vt_a {
            let pdu = self.pdus.pop_front().expect("VT(A) does not pass VT(S)");
            if pdu.state == PduState::Unacknowledged {
                self.unacknowledged -= 1;
                self.scheduled -= usize::from(pdu.is_scheduled);
            }
            self.spare.push(pdu.octets);
            self.vt_a += 1;
        }
        self.scheduled_from = self.scheduled_from.max(self.vt_a);
        self.polling.handle_vt_a(self.vt_a);
        while self.sdus.front().is_some_and(|sdu| {
            sdu.state == SduState::Dropped || sdu.end.is_some_and(|end| end.indicated_in < self.vt_a)
        }) {
            self.free(SduOutcome::Acknowledged);
        }
    }

    /// Settles the SDUs up to this index, because their discard procedure has terminated (§11.6.4).
    fn settle_discarded(&mut self, last: u64) {
        while self.first_sdu <= last && self.discarded_sdus > 0 {
            self.free(SduOutcome::Discarded);
        }
    }

    /// Removes the first SDU. Its outcome is `outcome`, unless it was discarded.
    pub(super) fn free(&mut self, outcome: SduOutcome) {
        let Some(sdu) = self.sdus.pop_front() else { return };
        self.first_sdu += 1;
        if sdu.state != SduState::Active {
            self.discarded_sdus -= 1;
        }
        match sdu.state {
            SduState::Active => self.outcomes.push_back((sdu.id, outcome)),
            SduState::Discarded => self.outcomes.push_back((sdu.id, SduOutcome::Discarded)),
            SduState::Dropped => {}
        }
    }
}
