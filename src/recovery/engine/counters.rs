//! Counters of a connection's loss recovery.

use crate::recovery::TransmissionKind;

/// Counters of a connection's loss recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Counters {
    /// Episodes that began without a timeout (succeeded-dupack).
    pub fast_retransmits: u64,
    /// Timeouts with data outstanding.
    pub timeouts: u64,
    /// Timeouts by the number of preceding duplicate ACKs: 0, 1, 2, and 3 or more (Pan et al. 2004, §4.1,
    /// x-dupack).
    pub timeouts_by_dupacks: [u32; 4],
    /// Timeouts after all segments outstanding in the current pass, except the first, had caused a duplicate
    /// ACK (failed-dupack).
    pub failed_dupack: u32,
    /// Timeouts with only one segment outstanding in the current pass (failed-dupack with x = 0).
    pub failed_alone: u32,
    /// Timeouts that timestamps prove spurious (RFC 3522), whether or not the sender undid them.
    pub spurious_timeouts: u64,
    /// Fast retransmissions that timestamps prove spurious (RFC 3522), whether or not the sender undid them.
    pub spurious_fast_retransmits: u64,
    /// ACKs with a D-SACK block.
    pub dsacks: u64,
    /// Duplicate ACKs that the repair counted.
    pub dupacks: u64,
    /// Window reductions that were undone.
    pub undone: u64,
    /// Window reductions for any reason.
    pub window_reductions: u64,
    /// Episodes and timeouts that were attributed to the radio link.
    pub attributed_to_radio: u64,
    /// Retransmissions that were declared lost without a timeout.
    pub lost_retransmissions: u64,
    /// Segments retransmitted as the first of an episode.
    pub resent_fast: u64,
    /// Segments retransmitted as a further hole of an episode.
    pub resent_recovery: u64,
    /// Segments retransmitted after a timeout or in a go-back-N pass.
    pub resent_timeout: u64,
    /// Segments retransmitted as a probe.
    pub resent_probe: u64,
}

impl Counters {
    /// Returns the number of all retransmissions.
    pub fn resent(&self) -> u64 {
        self.resent_fast + self.resent_recovery + self.resent_timeout + self.resent_probe
    }
    pub(super) fn count_sent(&mut self, kind: TransmissionKind) {
        match kind {
            TransmissionKind::New => {}
            TransmissionKind::FastRetransmit => self.resent_fast += 1,
            TransmissionKind::Recovery => self.resent_recovery += 1,
            TransmissionKind::Timeout => self.resent_timeout += 1,
            TransmissionKind::Probe => self.resent_probe += 1,
        }
    }

    /// Counts an expiry of the retransmission timer, after this number of duplicate ACKs and with this number
    /// of segments outstanding in the current pass.
    pub(super) fn count_timeout(&mut self, dupacks: u32, outstanding: u64) {
        self.timeouts += 1;
        self.timeouts_by_dupacks[(dupacks as usize).min(3)] += 1;
        if u64::from(dupacks) + 1 == outstanding {
            match dupacks {
                0 => self.failed_alone += 1,
                _ => self.failed_dupack += 1,
            }
        }
    }
}
