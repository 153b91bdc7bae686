//! The state of each end that follows from the capture.

use std::collections::{BTreeMap, VecDeque};

use super::{MODULUS, full_sn_from};
use crate::settings::Time;
use crate::trace::PduKind;

/// The state of a data PDU at its sender.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) transmissions: u32,
    /// Time of the last report with this PDU missing, if the report came after its last transmission.
    pub(super) nacked: Option<Time>,
    pub(super) acked: bool,
}

/// A poll whose answer the sender awaits.
#[derive(Debug)]
pub(super) struct OpenPoll {
    pub(super) at: Time,
    pub(super) frame: u64,
    /// VT(S) after the poll.
    pub(super) vt_s: u64,
}

#[derive(Debug, Default)]
pub(super) struct SenderState {
    pub(super) vt_s: u64,
    pub(super) vt_a: u64,
    pub(super) vt_ws: u64,
    pub(super) pdus: BTreeMap<u64, Sent>,
    pub(super) last_poll: Option<Time>,
    pub(super) open_poll: Option<OpenPoll>,
    /// The time at which a PDU reached MaxDAT, and the number of the PDU, which must not be retransmitted.
    pub(super) exhausted: Option<(Time, u64)>,
    /// Whether an event has occurred that may cause a RESET.
    pub(super) may_reset: bool,
    /// SN_MRW_LENGTH of an MRW that is not acknowledged.
    pub(super) mrw: Option<u64>,
    /// RSN and HFNI of a RESET that is not acknowledged.
    pub(super) pending: Option<(bool, u32)>,
    /// RSN of the last RESET.
    pub(super) last_rsn: Option<bool>,
    /// HFN of the first sequence number after the last reset of all variables.
    pub(super) hfn: u32,
    /// Time at which a RESET from the peer reset all variables.
    pub(super) reset_by_peer_at: Option<Time>,
    pub(super) epoch: u32,
}

#[derive(Debug, Default)]
pub(super) struct ReceiverState {
    pub(super) vr_r: u64,
    pub(super) vr_h: u64,
    /// Arrival time of each PDU. PDUs well below VR(R) are removed.
    pub(super) arrived: BTreeMap<u64, Time>,
    pub(super) last_report: Option<LastReport>,
    /// Arrival time and frame of the oldest poll that is not answered.
    pub(super) polled: Option<(Time, u64)>,
    pub(super) last_rsn: Option<bool>,
    /// RSN and HFNI of each RESET ACK that is due.
    pub(super) pending_acks: VecDeque<(bool, u32)>,
}

#[derive(Debug)]
pub(super) struct LastReport {
    pub(super) at: Time,
    /// Whether further PDUs of the same report may follow.
    pub(super) partial: bool,
}

#[derive(Debug, Default)]
pub(super) struct End {
    pub(super) sender: SenderState,
    pub(super) receiver: ReceiverState,
}

#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) at: Time,
    pub(super) frame: u64,
    pub(super) kind: PduKind,
    /// Sequence number of a data PDU, unwrapped.
    pub(super) sn: u64,
    /// SN_MRW_LENGTH of an MRW, unwrapped.
    pub(super) mrw: Option<u64>,
}

/// Mask of the 20 bits of an HFN.
pub(super) const HFN: u32 = 0xf_ffff;

impl SenderState {
    /// Returns the highest HFN used (§11.4.1). It increases with each wrap of the sequence numbers.
    pub(super) fn highest_hfn(&self) -> u32 {
        self.hfn.wrapping_add((self.vt_s.saturating_sub(1) / MODULUS) as u32) & HFN
    }

    /// Applies SN_MRW_LENGTH of a transmitted MRW. Returns the number unwrapped.
    pub(super) fn discard_up_to(&mut self, length: u16) -> u64 {
        let number = full_sn_from(self.vt_a, length);
        self.vt_s = self.vt_s.max(number);
        self.mrw = Some(number);
        // The receiver does not answer polls for discarded PDUs.
        if self.open_poll.as_ref().is_some_and(|poll| poll.vt_s <= number) {
            self.open_poll = None;
        }
        if self.exhausted.is_some_and(|(_, sn)| sn <= number) {
            self.exhausted = None;
        }
        number
    }

    pub(super) fn acknowledged(&mut self, below: u64) {
        if below <= self.vt_a {
            return;
        }
        self.vt_a = below;
        self.pdus = self.pdus.split_off(&below);
        if self.open_poll.as_ref().is_some_and(|poll| poll.vt_s <= below) {
            self.open_poll = None;
        }
        if self.mrw.is_some_and(|length| length < below) {
            self.mrw = None;
        }
        if self.exhausted.is_some_and(|(_, sn)| sn < below) {
            self.exhausted = None;
        }
    }
}

impl ReceiverState {
    pub(super) fn advance(&mut self) {
        while self.arrived.contains_key(&self.vr_r) {
            self.vr_r += 1;
        }
        // Keep some history for the check of reports that were composed slightly earlier.
        while self.arrived.first_key_value().is_some_and(|(sn, _)| sn + 1024 < self.vr_r) {
            self.arrived.pop_first();
        }
        self.vr_h = self.vr_h.max(self.vr_r);
    }
}
