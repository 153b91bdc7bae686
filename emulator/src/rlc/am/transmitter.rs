//! The parts of the transmitting side of AM that the generations share: the window, polling, and their
//! reaction to STATUS PDUs and t-PollRetransmit.

use airwire::time::Instant;

use super::polling::{AfterPdu, Polling};
use super::send_window::{Change, SendWindow};
use super::status::Status;
use super::{AmParameters, AmStats, Generation, ReceiveError};
use crate::rlc::sn::SnBits;

#[derive(Debug)]
pub(in crate::rlc) struct Transmitter<T> {
    parameters: AmParameters,
    bits: SnBits,
    pub(in crate::rlc) window: SendWindow<T>,
    polling: Polling,
}

impl<T> Transmitter<T> {
    pub(in crate::rlc) fn new(parameters: AmParameters, bits: SnBits, generation: Generation) -> Self {
        Self {
            window: SendWindow::new(generation, bits.window(), parameters.max_retx_threshold),
            polling: Polling::default(),
            parameters,
            bits,
        }
    }

    /// Handles the submission of a data PDU with `new_octets` octets that had not been transmitted before.
    /// `has_new`: further new data waits. Returns whether the PDU polls.
    pub(in crate::rlc) fn submit(
        &mut self,
        now: Instant,
        new_octets: usize,
        has_new: bool,
        stats: &mut AmStats,
    ) -> bool {
        let after = AfterPdu {
            highest_sn: self.window.end() - 1,
            new_octets,
            buffers_empty: !has_new && !self.window.has_pending(),
            stalled: self.is_stalled(),
        };
        let polls = self.polling.submit(now, after, &self.parameters);
        stats.pdus_new += u64::from(new_octets > 0);
        stats.pdus_retransmitted += u64::from(new_octets == 0);
        stats.polls += u64::from(polls);
        polls
    }

    /// Whether the window prevents the transmission of new data.
    pub(in crate::rlc) fn is_stalled(&self) -> bool {
        self.window.is_full() && self.window.unfinished().is_none()
    }

    /// Handles a decoded STATUS PDU. Calls `changed` for each change of a unit.
    pub(in crate::rlc) fn handle_status(
        &mut self,
        mut status: Status,
        changed: impl FnMut(Change, &T),
    ) -> Result<(), ReceiveError> {
        let wire = status.ack_sn as u32;
        let restored = status.restore(self.bits, self.window.next_ack());
        if status.ack_sn > self.window.end() {
            // A late report, which a newer one has overtaken, has an ACK_SN below TX_Next_Ack.
            let is_late = status.ack_sn - self.window.next_ack() >= self.bits.window();
            return if is_late { Ok(()) } else { Err(ReceiveError::AckAhead(wire)) };
        }
        restored.map_err(|nack_sn| ReceiveError::NackAhead { nack_sn, ack_sn: wire })?;
        if !status.nacks.is_sorted_by_key(|nack| nack.sn) {
            status.nacks.sort_by_key(|nack| nack.sn);
        }
        self.polling.handle_status(status.ack_sn);
        self.window.handle_status(&status, changed);
        Ok(())
    }

    /// Handles the expiry of t-PollRetransmit (36.322 §5.2.2.3, 38.322 §5.3.3.4). `has_new`: new data waits.
    /// Returns the unit whose RETX_COUNT reaches maxRetxThreshold.
    pub(in crate::rlc) fn handle_deadline(
        &mut self,
        now: Instant,
        has_new: bool,
        stats: &mut AmStats,
    ) -> Option<&T> {
        if !self.polling.handle_deadline(now) {
            return None;
        }
        stats.poll_timeouts += 1;
        if !has_new && !self.window.has_pending() || self.is_stalled() {
            return self.window.retransmit_for_poll();
        }
        None
    }

    /// Handles the discard of an SDU that was not transmitted. Returns the unit whose RETX_COUNT reaches
    /// maxRetxThreshold.
    ///
    /// Choice: the last PDU did not poll because the discarded SDU was to follow. If nothing is left to
    /// transmit, no poll follows, and the loss of that PDU would never be noticed. So a retransmission
    /// carries the poll.
    pub(in crate::rlc) fn handle_discard(&mut self, has_new: bool) -> Option<&T> {
        if has_new || self.window.is_empty() || self.window.has_pending() || self.polling.is_waiting() {
            return None;
        }
        self.window.retransmit_for_poll()
    }

    pub(in crate::rlc) fn next_deadline(&self) -> Option<Instant> {
        self.polling.next_deadline()
    }
}
