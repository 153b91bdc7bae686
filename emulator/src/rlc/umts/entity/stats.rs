//! What an entity counts.

use serde::Serialize;

/// What an entity has counted since it was made. RESETs and re-establishments do not clear it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// AMD PDUs transmitted for the first time.
    pub pdus_new: u64,
    /// AMD PDUs retransmitted, for whatever reason.
    pub pdus_resent: u64,
    /// Of `pdus_resent`: those that nobody asked for, retransmitted to carry a poll (§11.3.2).
    pub poll_retransmissions: u64,
    /// Polls sent, in AMD PDUs and as POLL super-fields.
    pub polls: u64,
    /// Expiries of Timer_Poll (§9.5 a).
    pub timer_poll_expiries: u64,
    /// AMD PDUs that the peer reported missing. A PDU counts each time it is reported.
    pub nacks: u64,
    /// Of `nacks`: those that came too soon after a retransmission (`ignore_nack_within`).
    pub nacks_ignored: u64,
    /// Times that new data began to wait because VT(S) had reached VT(MS).
    pub window_full: u64,
    /// Of `window_full`: those when the lower layer had a block for them. It is asked for a block if something else,
    /// a poll perhaps, is to be sent.
    pub window_stalls: u64,
    /// WINDOWs received, and heeded (§9.2.2.11.3).
    pub windows_taken: u64,
    /// WINDOWs sent, repetitions included.
    pub windows_told: u64,
    /// STATUS PDUs sent, the piggybacked ones included.
    pub statuses_sent: u64,
    /// Of `statuses_sent`: the piggybacked ones.
    pub piggybacked: u64,
    /// STATUS PDUs received, the piggybacked ones included.
    pub statuses_received: u64,
    /// Of `statuses_received`: those discarded because they contradict themselves (§10.2).
    pub statuses_refused: u64,
    /// STATUS PDUs with an "erroneous Sequence Number" (§10.1). Each initiates the reset procedure.
    pub erroneous_sns: u64,
    /// AMD PDUs received for the first time.
    pub pdus_received: u64,
    /// AMD PDUs that had been received before (§11.3.4.8): the peer retransmitted them needlessly.
    pub duplicates: u64,
    /// AMD PDUs outside the reception window (§11.3.4.2).
    pub outside_window: u64,
    /// Polls received, in AMD PDUs and as POLL super-fields.
    pub polled: u64,
    /// PDUs with an invalid format (§10.3).
    pub decode_errors: u64,
    /// PDUs ignored in RESET_PENDING (§11.4.2) or after an unrecoverable error, and RESET ACKs that answer nothing.
    pub ignored: u64,
    /// Reset procedures initiated because VT(DAT) reached MaxDAT (§11.4.2).
    pub resets_max_dat: u64,
    /// Reset procedures initiated because VT(MRW) reached MaxMRW.
    pub resets_max_mrw: u64,
    /// Reset procedures initiated by an "erroneous Sequence Number".
    pub resets_erroneous_sn: u64,
    /// RESET PDUs sent, repetitions included.
    pub reset_pdus: u64,
    /// Resets that the peer initiated (§11.4.3).
    pub resets_by_peer: u64,
    /// VT(RST) reached MaxRST (§11.4.4a).
    pub unrecoverable_errors: u64,
    /// Discards that the peer has to be told of (§11.6.2). One may concern several SDUs.
    pub discards: u64,
    /// MRWs sent, repetitions included.
    pub mrws_sent: u64,
    /// MRWs received, repetitions included.
    pub mrws_received: u64,
    /// Of `mrws_received`: those that were obsolete (§11.6.6.1).
    pub mrws_obsolete: u64,
    /// SDUs that the upper layer has submitted.
    pub sdus_submitted: u64,
    /// SDUs delivered to the upper layer.
    pub sdus_delivered: u64,
    /// SDUs submitted here and given up because of MaxDAT or Timer_Discard.
    pub sdus_discarded: u64,
    /// SDUs submitted here and discarded by a reset or an unrecoverable error.
    pub sdus_reset: u64,
}

impl Stats {
    /// Reset procedures that this side has initiated, whatever the cause.
    pub const fn resets(&self) -> u64 {
        self.resets_max_dat + self.resets_max_mrw + self.resets_erroneous_sn
    }
}
