//! What an entity counts.

use serde::Serialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// AMD PDUs transmitted for the first time.
    pub pdus_new: u64,
    /// AMD PDUs transmitted again, for whatever reason.
    pub pdus_resent: u64,
    /// Of those: not asked for, to carry a poll.
    pub poll_retransmissions: u64,
    /// Polls sent.
    pub polls: u64,
    pub timer_poll_expiries: u64,
    /// PDUs that were reported missing; the same one each time.
    pub nacks: u64,
    /// NACKs that came too soon after a retransmission (`ignore_nack_within`).
    pub nacks_ignored: u64,
    /// Times that new data had to wait because the window was full.
    pub window_stalls: u64,
    pub statuses_sent: u64,
    /// Of those: in an AMD PDU.
    pub piggybacked: u64,
    pub statuses_received: u64,
    /// STATUS PDUs that contradicted themselves.
    pub statuses_refused: u64,
    /// STATUS PDUs about what was never sent, or is long acknowledged. Each makes a RESET.
    pub erroneous_sns: u64,
    /// AMD PDUs that were received and new.
    pub pdus_received: u64,
    /// AMD PDUs that had been received before: spurious retransmissions of the peer.
    pub duplicates: u64,
    pub outside_window: u64,
    /// Polls received.
    pub polled: u64,
    /// What no PDU looks like (§10).
    pub decode_errors: u64,
    /// PDUs that came while a RESET was pending, or after an unrecoverable error.
    pub ignored: u64,
    /// RESET procedures that this side started, by cause.
    pub resets_max_dat: u64,
    pub resets_max_mrw: u64,
    pub resets_erroneous_sn: u64,
    /// RESET PDUs sent, repetitions included.
    pub reset_pdus: u64,
    /// RESET procedures that the peer started.
    pub resets_by_peer: u64,
    pub unrecoverable_errors: u64,
    /// Discards with signalling.
    pub discards: u64,
    pub mrws_sent: u64,
    pub mrws_received: u64,
    pub mrws_obsolete: u64,
    pub sdus_submitted: u64,
    pub sdus_delivered: u64,
    pub sdus_discarded: u64,
    pub sdus_reset: u64,
}

impl Stats {
    /// RESET procedures that this side started.
    pub const fn resets(&self) -> u64 {
        self.resets_max_dat + self.resets_max_mrw + self.resets_erroneous_sn
    }
}
