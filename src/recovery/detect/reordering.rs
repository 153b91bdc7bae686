//! Measures how many later segments overtake a segment that is not lost, for detectors with an adaptive
//! DupThresh.
//!
//! Only a D-SACK (RFC 2883) proves that a retransmission was spurious. An unmodified Linux receiver sends
//! D-SACKs unless tcp_dsack = 0. If the network duplicates a necessary retransmission, the D-SACK looks the
//! same. The receiver may acknowledge several segments with one ACK, so there may be too few duplicate ACKs.
//! SACKed segments therefore count too.

use std::collections::VecDeque;

use crate::recovery::{Ack, Transmission, TransmissionKind, View};

/// Maximum number of retransmissions that wait for a D-SACK.
const MAX_WATCHED: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Reordering {
    retransmissions: VecDeque<WatchedRetransmission>,
    /// Number of segments known to have overtaken the first unacknowledged one.
    overtaken_by: u32,
}

#[derive(Debug, Clone, Copy)]
struct WatchedRetransmission {
    start: u64,
    end: u64,
    /// The DupThresh that would have prevented the retransmission. It is known once the segment is
    /// acknowledged.
    needed: Option<u32>,
}

/// The smallest DupThresh with which an overtaken segment would not have been declared lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Overtaken {
    /// The segment was not retransmitted before its arrival.
    pub(super) in_time: Option<u32>,
    /// The segment was retransmitted, and the receiver reported the retransmission as a duplicate.
    pub(super) in_vain: Option<u32>,
}

impl Reordering {
    pub(super) fn on_sent(&mut self, transmission: &Transmission) {
        let Transmission { start, end, kind, .. } = *transmission;
        if kind == TransmissionKind::New {
            return;
        }
        let known = self.retransmissions.len();
        self.retransmissions.retain(|copy| copy.start != start);
        // A second retransmission is not tracked, because a D-SACK does not show which copy it is about. A
        // retransmission after a timeout is not tracked either, because its cause is not reordering.
        let are_distinct = self.retransmissions.len() == known;
        if are_distinct && matches!(kind, TransmissionKind::FastRetransmit | TransmissionKind::Recovery) {
            self.retransmissions.truncate(MAX_WATCHED - 1);
            self.retransmissions.push_front(WatchedRetransmission { start, end, needed: None });
        }
    }

    pub(super) fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Overtaken {
        let una = view.flight.una();
        let needed = self.overtaken_by + 1;
        for copy in self.retransmissions.iter_mut().filter(|copy| copy.end <= una) {
            copy.needed.get_or_insert(needed);
        }
        let was_overtaken = ack.advances() && !ack.any_resent && self.overtaken_by > 0;
        // After a partial ACK, the sender also retransmits segments that no other has overtaken. No threshold
        // can prevent that.
        let in_vain = ack.dsack.and_then(|range| self.reported(range, needed));
        let in_vain = in_vain.filter(|needed| *needed > view.rules.detection.dup_thresh);
        self.overtaken_by = view.cc.dupacks().max(view.flight.sacked().segments as u32);
        Overtaken { in_time: was_overtaken.then_some(needed), in_vain }
    }

    fn reported(&mut self, (left, right): (u64, u64), now_needed: u32) -> Option<u32> {
        let mut most = None;
        self.retransmissions.retain(|copy| {
            let reported = left <= copy.start && copy.end <= right;
            if reported {
                most = most.max(Some(copy.needed.unwrap_or(now_needed)));
            }
            !reported
        });
        most
    }
}

/// Limits `dup_thresh` to the number of duplicate ACKs that the window can produce if one segment is late,
/// but not to less than the default DupThresh.
pub(super) fn within_window(view: &View<'_>, dup_thresh: u32) -> u32 {
    let window = view.cc.cwnd.min(view.flight_size()).max(0.0) as u32;
    dup_thresh.min(window.saturating_sub(1)).max(view.rules.detection.dup_thresh)
}
