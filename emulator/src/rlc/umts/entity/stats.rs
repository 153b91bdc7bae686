//! Counters of an entity.

use serde::Serialize;

/// Counters of an entity since its creation. RESETs and re-establishments do not clear them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// AMD PDUs transmitted for the first time.
    pub pdus_new: u64,
    /// AMD PDUs retransmitted for any reason.
    pub pdus_resent: u64,
    /// Retransmissions in `pdus_resent` that the peer did not request, sent to carry a poll (§11.3.2).
    pub poll_retransmissions: u64,
    /// Polls sent, in AMD PDUs and as POLL super-fields.
    pub polls: u64,
    /// Expiries of Timer_Poll (§9.5 a).
    pub timer_poll_expiries: u64,
    /// AMD PDUs that the peer reported missing. A PDU counts each time it is reported.
    pub nacks: u64,
    /// NACKs in `nacks` that were ignored, because they arrived too soon after a retransmission
    /// (`ignore_nack_within`).
    pub nacks_ignored: u64,
    /// Number of times that new data began to wait because VT(S) had reached VT(MS).
    pub window_full: u64,
    /// Cases of `window_full` in which the lower layer had a block for the data. An entity with a full window
    /// gets a block only if it has something else to send, such as a poll.
    pub window_stalls: u64,
    /// WINDOWs received and applied (§9.2.2.11.3).
    pub windows_applied: u64,
    /// WINDOWs sent, including repetitions.
    pub windows_sent: u64,
    /// STATUS PDUs sent, including piggybacked ones.
    pub statuses_sent: u64,
    /// Piggybacked STATUS PDUs in `statuses_sent`.
    pub piggybacked: u64,
    /// STATUS PDUs received, including piggybacked ones.
    pub statuses_received: u64,
    /// STATUS PDUs in `statuses_received` that were discarded because they are inconsistent (§10.2).
    pub statuses_refused: u64,
    /// STATUS PDUs with an "erroneous Sequence Number" (§10.1). Each initiates the reset procedure.
    pub erroneous_sns: u64,
    /// AMD PDUs received for the first time.
    pub pdus_received: u64,
    /// AMD PDUs that had been received before (§11.3.4.8), which are needless retransmissions of the peer.
    pub duplicates: u64,
    /// AMD PDUs outside the reception window (§11.3.4.2).
    pub outside_window: u64,
    /// Polls received, in AMD PDUs and as POLL super-fields.
    pub polled: u64,
    /// PDUs with an invalid format (§10.3).
    pub decode_errors: u64,
    /// PDUs ignored in RESET_PENDING (§11.4.2) or after an unrecoverable error, and RESET ACKs without a
    /// matching RESET.
    pub ignored: u64,
    /// Reset procedures initiated because VT(DAT) reached MaxDAT (§11.4.2).
    pub resets_max_dat: u64,
    /// Reset procedures initiated because VT(MRW) reached MaxMRW.
    pub resets_max_mrw: u64,
    /// Reset procedures initiated by an "erroneous Sequence Number".
    pub resets_erroneous_sn: u64,
    /// RESET PDUs sent, including repetitions.
    pub reset_pdus: u64,
    /// Resets that the peer initiated (§11.4.3).
    pub resets_by_peer: u64,
    /// Unrecoverable errors: VT(RST) reached MaxRST (§11.4.4a).
    pub unrecoverable_errors: u64,
    /// Discards of which the peer must be informed (§11.6.2). A discard may cover several SDUs.
    pub discards: u64,
    /// MRWs sent, including repetitions.
    pub mrws_sent: u64,
    /// MRWs received, including repetitions.
    pub mrws_received: u64,
    /// Obsolete MRWs in `mrws_received` (§11.6.6.1).
    pub mrws_obsolete: u64,
    /// SDUs that the upper layer has submitted.
    pub sdus_submitted: u64,
    /// SDUs delivered to the upper layer.
    pub sdus_delivered: u64,
    /// SDUs submitted to this entity and discarded because of MaxDAT or Timer_Discard.
    pub sdus_discarded: u64,
    /// SDUs submitted to this entity and discarded by a reset or an unrecoverable error.
    pub sdus_reset: u64,
}

impl Stats {
    /// Number of reset procedures that this side has initiated, for any cause.
    pub const fn resets(&self) -> u64 {
        self.resets_max_dat + self.resets_max_mrw + self.resets_erroneous_sn
    }
}
