//! What each end must know, as far as the capture shows it.

use std::collections::{BTreeMap, VecDeque};

use super::MODULUS;
use crate::settings::Time;
use crate::trace::PduKind;

/// What became of one of the sender's PDUs.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) transmissions: u32,
    /// When it was last reported missing, if that was after its last transmission.
    pub(super) nacked: Option<Time>,
    pub(super) acked: bool,
}

/// A poll whose answer the sender waits for.
#[derive(Debug)]
pub(super) struct OpenPoll {
    pub(super) at: Time,
    pub(super) frame: u64,
    /// VT(S) after the poll.
    pub(super) vt_s: u64,
}

#[derive(Debug, Default)]
pub(super) struct SenderBook {
    pub(super) vt_s: u64,
    pub(super) vt_a: u64,
    pub(super) vt_ws: u64,
    pub(super) pdus: BTreeMap<u64, Sent>,
    pub(super) last_poll: Option<Time>,
    pub(super) open_poll: Option<OpenPoll>,
    /// Since when a PDU may not be sent again, and which.
    pub(super) exhausted: Option<(Time, u64)>,
    /// Something has happened that a RESET may follow.
    pub(super) must_reset: bool,
    /// SN_MRW_LENGTH of an MRW that is not answered.
    pub(super) mrw: Option<u64>,
    /// RSN and HFNI of a RESET that is not answered yet.
    pub(super) pending: Option<(bool, u32)>,
    /// RSN of the last RESET.
    pub(super) last_rsn: Option<bool>,
    /// HFN of the first number since all variables were set back.
    pub(super) hfn: u32,
    /// When a RESET of the other end has set them back.
    pub(super) set_back_by_peer: Option<Time>,
    pub(super) epoch: u32,
}

#[derive(Debug, Default)]
pub(super) struct ReceiverBook {
    pub(super) vr_r: u64,
    pub(super) vr_h: u64,
    /// When each PDU arrived; those well below VR(R) are forgotten.
    pub(super) arrived: BTreeMap<u64, Time>,
    pub(super) last_report: Option<LastReport>,
    /// The oldest poll that is not answered yet: when it came, and with which frame.
    pub(super) polled: Option<(Time, u64)>,
    pub(super) last_rsn: Option<bool>,
    /// RSNs of RESETs that are to be answered, and HFNI of the answer.
    pub(super) to_answer: VecDeque<(bool, u32)>,
}

#[derive(Debug)]
pub(super) struct LastReport {
    pub(super) at: Time,
    /// More PDUs of the same report may follow.
    pub(super) partial: bool,
}

#[derive(Debug, Default)]
pub(super) struct End {
    pub(super) sender: SenderBook,
    pub(super) receiver: ReceiverBook,
}

#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) at: Time,
    pub(super) frame: u64,
    pub(super) kind: PduKind,
    /// Of a data PDU, without modulus.
    pub(super) sn: u64,
    /// Of a STATUS PDU with MRW, without modulus.
    pub(super) mrw: Option<u64>,
}

/// An HFN has 20 bits.
pub(super) const HFN: u32 = 0xf_ffff;

impl SenderBook {
    /// The highest HFN used (§11.4.1): it grows with each wrap of the numbers.
    pub(super) fn highest_hfn(&self) -> u32 {
        self.hfn.wrapping_add((self.vt_s.saturating_sub(1) / MODULUS) as u32) & HFN
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

impl ReceiverBook {
    pub(super) fn advance(&mut self) {
        while self.arrived.contains_key(&self.vr_r) {
            self.vr_r += 1;
        }
        // Reports that were made a little earlier may still have to be judged.
        while self.arrived.first_key_value().is_some_and(|(sn, _)| sn + 1024 < self.vr_r) {
            self.arrived.pop_first();
        }
        self.vr_h = self.vr_h.max(self.vr_r);
    }
}
