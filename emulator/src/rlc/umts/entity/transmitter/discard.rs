//! Discard of SDUs by the Sender, because of MaxDAT (§11.3.3a), Timer_Discard (§11.3.4.3) or RESET (§11.4.3).

use std::sync::Arc;

use airwire::time::{Instant, earlier};

use super::{End, PduState, Sdu, SduState, SentPdu, Stats, Target, Transmitter, WindowState, max_vt_ws};
use crate::rlc::umts::config::Discard;
use crate::rlc::umts::entity::SduOutcome;
use crate::rlc::umts::entity::reset::ResetCause;

impl Transmitter {
    /// Handles a PDU whose VT(DAT) is equal to MaxDAT (§11.3.3a). "No_discard after MaxDAT number of
    /// transmissions" (§9.7.3.4) initiates the reset procedure, "SDU discard after MaxDAT number of
    /// transmissions" (§9.7.3.3) a discard.
    pub(super) fn handle_max_dat(&mut self, sn: u64, stats: &mut Stats) -> Result<(), ResetCause> {
        if let Discard::ResetAfterMaxDat { .. } = self.config.discard {
            return Err(ResetCause::MaxDat);
        }
        // §11.6.2: all SDUs with segments or Length Indicators in VT(A) ≤ SN ≤ X, where X is `sn`.
        let is_in_pdus = |sdu: &Sdu| sdu.first_pdu.is_some_and(|first_pdu| first_pdu <= sn);
        let count =
            self.sdus.iter().take_while(|sdu| is_in_pdus(sdu) || sdu.state == SduState::Dropped).count();
        if count > self.discarded_sdus {
            self.discard_first(count, stats);
        }
        self.signalling.start_next(self.vt_a, self.config.window);
        Ok(())
    }

    /// Discards the first `count` SDUs with explicit signalling (§11.6.2). A part of the last one has been sent.
    fn discard_first(&mut self, count: usize, stats: &mut Stats) {
        let last = self.first_sdu + count as u64 - 1;
        if self.sdus[count - 1].end.is_none() {
            // The last SDU was sent in part, and is not continued. The PDU with its Length Indicator would be
            // VT(S), but is never transmitted. If this SN were used for other data, the peer could take the
            // next SDU for the end of the discarded one before the MRW arrives. So SN_MRW_LENGTH > VT(S), and
            // VT(S) := SN_MRW_LENGTH.
            self.segmenter.discard_through(last);
            let indicated_in = self.vt_s;
            self.pdus.push_back(SentPdu {
                octets: Arc::default(),
                state: PduState::Discarded,
                is_scheduled: false,
                vt_dat: 0,
                last_sent: Instant::ZERO,
                carries: None,
            });
            self.vt_s += 1;
            let target = Target { sn: self.vt_s, nlength: 0 };
            self.sdus[count - 1].end = Some(End { indicated_in, target, sdu: last });
        }
        let mut ends = Vec::new();
        for sdu in self.sdus.range_mut(self.discarded_sdus..count).filter(|sdu| sdu.state == SduState::Active)
        {
            sdu.state = SduState::Discarded;
            stats.sdus_discarded += 1;
            ends.extend(sdu.end);
        }
        self.discarded_sdus = count;
        // §11.6.2: discards the AMD PDUs with segments of these SDUs, unless they also carry a segment of
        // another SDU.
        let target = ends.last().map_or(self.vt_a, |end| end.target.sn);
        for sn in self.vt_a..target {
            let pdu = self.sent(sn);
            if pdu.state == PduState::Unacknowledged {
                pdu.state = PduState::Discarded;
                self.unacknowledged -= 1;
                self.unschedule(sn);
            }
        }
        stats.discards += 1;
        self.signalling.discard(ends);
    }

    /// Stops the poll and discard timers in RESET_PENDING (§11.4.2), where nothing is transmitted.
    pub(in crate::rlc::umts::entity) fn stop_timers(&mut self) {
        self.polling.reset();
        self.signalling.reset();
    }

    /// Discards all SDUs whose transmission has begun, and resets the state variables (§11.4.3,
    /// §11.4.4). The other SDUs remain.
    pub(in crate::rlc::umts::entity) fn reset(&mut self, stats: &mut Stats) {
        self.segmenter.reset();
        while self.sdus.front().is_some_and(|sdu| sdu.first_pdu.is_some() || sdu.state == SduState::Dropped) {
            stats.sdus_reset += u64::from(self.sdus[0].state == SduState::Active);
            self.free(SduOutcome::Reset);
        }
        self.pdus.clear();
        (self.scheduled, self.scheduled_from) = (0, 0);
        self.unacknowledged = 0;
        // Choice: after a reset, a suspended entity may send as many new PDUs as before the reset.
        self.suspended = self.suspended();
        (self.vt_s, self.vt_a) = (0, 0);
        self.vt_ws = max_vt_ws(&self.config);
        self.window_state = WindowState::Open;
        self.stop_timers();
    }

    /// Removes all SDUs whose transmission has not begun. They have no outcome.
    pub(in crate::rlc::umts::entity) fn withdraw(&mut self) {
        while let Some(sdu) = self.sdus.pop_back_if(|sdu| sdu.first_pdu.is_none()) {
            if sdu.state == SduState::Active {
                self.unsent_sdus -= 1;
                self.unsent_octets -= sdu.octets;
                self.segmenter.remove_unsent(self.first_sdu + self.sdus.len() as u64);
            }
        }
        self.discarded_sdus = self.discarded_sdus.min(self.sdus.len());
    }

    /// Expiry of Timer_Discard (§9.5 d) for the first SDU that has not been discarded.
    fn timer_discard(&self) -> Option<Instant> {
        let Discard::Timer { timer_discard, .. } = self.config.discard else { return None };
        self.sdus.get(self.discarded_sdus).map(|sdu| sdu.submitted + timer_discard)
    }

    pub(in crate::rlc::umts::entity) fn next_deadline(&self, resetting: bool) -> Option<Instant> {
        // A pending reset discards SDUs that were sent in part. Timer_Discard of all other SDUs is evaluated
        // after the reset.
        let discard = if resetting { None } else { self.timer_discard() };
        earlier(self.polling.next_deadline(), earlier(self.signalling.next_deadline(), discard))
    }

    pub(in crate::rlc::umts::entity) fn handle_deadline(
        &mut self,
        now: Instant,
        resetting: bool,
        stats: &mut Stats,
    ) -> Result<(), ResetCause> {
        while !resetting && self.timer_discard().is_some_and(|at| at <= now) {
            self.expire_timer_discard(stats);
        }
        self.signalling.start_next(self.vt_a, self.config.window);
        let has_data = self.unacknowledged > 0 || self.segmenter.has_next();
        if self.polling.handle_deadline(now, has_data) {
            stats.timer_poll_expiries += 1;
        }
        if !has_data || resetting {
            self.polling.cancel();
        }
        self.signalling.handle_deadline(now)
    }

    /// Handles an expiry of Timer_Discard for the first SDU that has not been discarded (§9.7.3.1). Explicit
    /// signalling is used only if a segment of the SDU was submitted to the lower layer.
    fn expire_timer_discard(&mut self, stats: &mut Stats) {
        let index = self.discarded_sdus;
        if self.sdus[index].first_pdu.is_some() {
            self.discard_first(index + 1, stats);
            return;
        }
        let sdu = &mut self.sdus[index];
        sdu.state = SduState::Dropped;
        self.unsent_sdus -= 1;
        self.unsent_octets -= sdu.octets;
        self.outcomes.push_back((sdu.id, SduOutcome::Discarded));
        stats.sdus_discarded += 1;
        self.discarded_sdus += 1;
        self.segmenter.remove_unsent(self.first_sdu + index as u64);
        // Without an earlier SDU, the SDU can be removed at once.
        if index == 0 {
            self.free(SduOutcome::Discarded);
        }
    }
}
