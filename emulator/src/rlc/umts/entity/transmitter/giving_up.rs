//! Discard of SDUs by the Sender, because of MaxDAT (§11.3.3a), Timer_Discard (§11.3.4.3) or RESET (§11.4.3).

use std::sync::Arc;

use airwire::time::Instant;

use super::{Activity, End, Fate, Sdu, Sent, State, Stats, Target, Transmitter, Window, widest};
use crate::rlc::umts::config::Discard;
use crate::rlc::umts::entity::reset::ResetCause;
use crate::rlc::umts::entity::{SduOutcome, discard};

impl Transmitter {
    /// Handles a PDU whose VT(DAT) is equal to MaxDAT (§11.3.3a). "No_discard after MaxDAT number of
    /// transmissions" (§9.7.3.4) initiates the reset procedure, "SDU discard after MaxDAT number of
    /// transmissions" (§9.7.3.3) a discard.
    pub(super) fn exhausted(&mut self, sn: u64, stats: &mut Stats) -> Result<(), ResetCause> {
        if let Discard::ResetAfterMaxDat { .. } = self.config.discard {
            return Err(ResetCause::MaxDat);
        }
        // §11.6.2: all SDUs with segments or Length Indicators in VT(A) ≤ SN ≤ X, where X is `sn`.
        let begun = |sdu: &Sdu| sdu.begun_in.is_some_and(|begun_in| begun_in <= sn);
        let count = self.sdus.iter().take_while(|sdu| begun(sdu) || sdu.fate == Fate::Dropped).count();
        if count > self.settled {
            self.give_up(count, stats);
        }
        self.discarding.start_next(self.vt_a, self.config.window);
        Ok(())
    }

    /// Discards the first `count` SDUs with explicit signalling (§11.6.2). Something of the last one has been
    /// sent.
    fn give_up(&mut self, count: usize, stats: &mut Stats) {
        let last = self.first_sdu + count as u64 - 1;
        if self.sdus[count - 1].end.is_none() {
            // The last SDU was sent in part, and is not continued. The PDU with its Length Indicator would be
            // VT(S), but is never transmitted. If this SN were used for other data, the peer could take the
            // next SDU for the end of the discarded one before the MRW arrives. So SN_MRW_LENGTH > VT(S), and
            // VT(S) := SN_MRW_LENGTH.
            self.segmenter.discard_through(last);
            let said_in = self.vt_s;
            self.pdus.push_back(Sent {
                octets: Arc::default(),
                state: State::Discarded,
                vt_dat: 0,
                last_sent: Instant::ZERO,
                carries: None,
            });
            self.vt_s += 1;
            let target = Target { sn: self.vt_s, nlength: 0 };
            self.sdus[count - 1].end = Some(End { said_in, target, sdu: last });
        }
        let mut ends = Vec::new();
        for sdu in self.sdus.range_mut(self.settled..count).filter(|sdu| sdu.fate == Fate::Kept) {
            sdu.fate = Fate::GivenUp;
            stats.sdus_discarded += 1;
            ends.extend(sdu.end);
        }
        self.settled = count;
        // §11.6.2: discards the AMD PDUs with segments of these SDUs, unless they also carry a segment of
        // another SDU.
        let target = ends.last().map_or(self.vt_a, |end| end.target.sn);
        for sn in self.vt_a..target {
            let pdu = self.sent(sn);
            if pdu.state == State::Unacknowledged {
                pdu.state = State::Discarded;
                self.unacknowledged -= 1;
                self.scheduled.remove(&sn);
            }
        }
        stats.discards += 1;
        self.discarding.discard(ends.into_iter());
    }

    /// Stops the poll and discard timers in RESET_PENDING (§11.4.2), where nothing is transmitted.
    pub(in crate::rlc::umts::entity) fn pause(&mut self) {
        self.polling.reset();
        self.discarding.reset();
    }

    /// Discards all SDUs of which anything has been transmitted, and resets the state variables (§11.4.3,
    /// §11.4.4). The other SDUs remain.
    pub(in crate::rlc::umts::entity) fn reset(&mut self, stats: &mut Stats) {
        self.segmenter.reset();
        while self.sdus.front().is_some_and(|sdu| sdu.begun_in.is_some() || sdu.fate == Fate::Dropped) {
            stats.sdus_reset += u64::from(self.sdus[0].fate == Fate::Kept);
            self.free(SduOutcome::Reset);
        }
        self.pdus.clear();
        self.scheduled.clear();
        self.unacknowledged = 0;
        // Choice: after a reset, a suspended entity may send as many new PDUs as before the reset.
        self.suspended = self.suspended();
        (self.vt_s, self.vt_a) = (0, 0);
        self.vt_ws = widest(&self.config);
        self.window = Window::Open;
        self.pause();
    }

    /// Removes all SDUs of which nothing has been transmitted. They have no outcome.
    pub(in crate::rlc::umts::entity) fn withdraw(&mut self) {
        while let Some(sdu) = self.sdus.pop_back_if(|sdu| sdu.begun_in.is_none()) {
            if sdu.fate == Fate::Kept {
                self.unbegun -= 1;
                self.unbegun_octets -= sdu.octets;
                self.segmenter.remove_unsent(self.first_sdu + self.sdus.len() as u64);
            }
        }
        self.settled = self.settled.min(self.sdus.len());
    }

    /// Expiry of Timer_Discard (§9.5 d) for the first SDU that has not been given up.
    fn timer_discard(&self) -> Option<Instant> {
        let Discard::Timer { timer_discard, .. } = self.config.discard else { return None };
        self.sdus.get(self.settled).map(|sdu| sdu.submitted + timer_discard)
    }

    pub(in crate::rlc::umts::entity) fn next_deadline(&self, activity: Activity) -> Option<Instant> {
        let discard = match activity {
            Activity::DataTransfer => self.timer_discard(),
            // The reset discards SDUs that were sent in part. Timer_Discard of the others is evaluated after
            // it.
            Activity::ResetPending => None,
        };
        [self.polling.next_deadline(), self.discarding.next_deadline(), discard].into_iter().flatten().min()
    }

    pub(in crate::rlc::umts::entity) fn handle_deadline(
        &mut self,
        now: Instant,
        activity: Activity,
        stats: &mut Stats,
    ) -> Result<(), ResetCause> {
        while activity == Activity::DataTransfer && self.timer_discard().is_some_and(|at| at <= now) {
            self.expire(stats);
        }
        self.discarding.start_next(self.vt_a, self.config.window);
        let anything = self.unacknowledged > 0 || self.segmenter.has_next();
        if self.polling.handle_deadline(now, anything) {
            stats.timer_poll_expiries += 1;
        }
        if !anything || activity == Activity::ResetPending {
            self.polling.forget();
        }
        match self.discarding.handle_deadline(now) {
            Some(discard::Expiry::GiveUp) => Err(ResetCause::MaxMrw),
            Some(discard::Expiry::Repeat) | None => Ok(()),
        }
    }

    /// Handles an expiry of Timer_Discard for the first SDU that has not been given up (§9.7.3.1). Explicit
    /// signalling is used only if a segment of the SDU was submitted to the lower layer.
    fn expire(&mut self, stats: &mut Stats) {
        let index = self.settled;
        if self.sdus[index].begun_in.is_some() {
            self.give_up(index + 1, stats);
            return;
        }
        let sdu = &mut self.sdus[index];
        sdu.fate = Fate::Dropped;
        self.unbegun -= 1;
        self.unbegun_octets -= sdu.octets;
        self.outcomes.push_back((sdu.id, SduOutcome::Discarded));
        stats.sdus_discarded += 1;
        self.settled += 1;
        self.segmenter.remove_unsent(self.first_sdu + index as u64);
        // The first SDU of all can be removed at once.
        if index == 0 {
            self.free(SduOutcome::Discarded);
        }
    }
}
