//! Polling (36.322 §5.2.2, 38.322 §5.3.3): when a data PDU requests a STATUS PDU.

use airwire::time::Instant;

use super::AmParameters;

#[derive(Debug, Default)]
pub(in crate::rlc) struct Polling {
    /// PDU_WITHOUT_POLL.
    pdu_without_poll: u32,
    /// BYTE_WITHOUT_POLL.
    byte_without_poll: u64,
    /// POLL_SN.
    poll_sn: u64,
    t_poll_retransmit: Option<Instant>,
    /// Whether the next data PDU polls, because t-PollRetransmit has expired.
    is_forced: bool,
}

/// State of the transmitting side after a data PDU. It decides whether the PDU polls.
#[derive(Clone, Copy, Debug)]
pub(in crate::rlc) struct AfterPdu {
    /// Highest sequence number submitted to the lower layer.
    pub(in crate::rlc) highest_sn: u64,
    /// Octets of the PDU that had not been transmitted before.
    pub(in crate::rlc) new_octets: usize,
    /// Whether neither new data nor a retransmission waits.
    pub(in crate::rlc) buffers_empty: bool,
    /// Whether the window prevents the transmission of new data.
    pub(in crate::rlc) stalled: bool,
}

impl Polling {
    /// Whether the data PDU that is submitted at `now` polls. If so, t-PollRetransmit starts or restarts.
    pub(in crate::rlc) fn submit(
        &mut self,
        now: Instant,
        after: AfterPdu,
        parameters: &AmParameters,
    ) -> bool {
        if after.new_octets > 0 {
            self.pdu_without_poll += 1;
            self.byte_without_poll += after.new_octets as u64;
        }
        // 36.322 §5.2.2.1, 38.322 §5.3.3.2: a PDU polls if PDU_WITHOUT_POLL >= pollPDU, if BYTE_WITHOUT_POLL >=
        // pollByte, if both buffers are empty after the PDU, or if no new data can be transmitted after the
        // PDU. The counters reach their limits only with a PDU that has new octets, because a poll resets
        // them.
        let polls = parameters.poll_pdu.is_some_and(|limit| self.pdu_without_poll >= limit)
            || parameters.poll_byte.is_some_and(|limit| self.byte_without_poll >= limit)
            || after.buffers_empty
            || after.stalled
            || self.is_forced;
        // The same clauses: a poll resets both counters and sets POLL_SN to the highest SN submitted. It
        // starts or restarts t-PollRetransmit.
        if polls {
            *self = Self {
                poll_sn: after.highest_sn,
                t_poll_retransmit: Some(now + parameters.t_poll_retransmit),
                ..Self::default()
            };
        }
        polls
    }

    /// §5.2.2.2, §5.3.3.3: t-PollRetransmit stops when a STATUS PDU acknowledges POLL_SN, positively or
    /// negatively. Both mean that POLL_SN is below ACK_SN.
    pub(in crate::rlc) fn handle_status(&mut self, ack_sn: u64) {
        if self.poll_sn < ack_sn {
            self.t_poll_retransmit = None;
        }
    }

    /// Returns whether t-PollRetransmit expires at `now`. If so, the next data PDU polls (36.322 §5.2.2.3,
    /// 38.322 §5.3.3.4).
    pub(in crate::rlc) fn handle_deadline(&mut self, now: Instant) -> bool {
        let expired = self.t_poll_retransmit.take_if(|at| *at <= now).is_some();
        self.is_forced |= expired;
        expired
    }

    /// Whether a poll has been sent and its answer may still arrive.
    pub(in crate::rlc) fn is_waiting(&self) -> bool {
        self.t_poll_retransmit.is_some()
    }

    pub(in crate::rlc) fn next_deadline(&self) -> Option<Instant> {
        self.t_poll_retransmit
    }
}
