//! How many later segments overtake one that is not lost: detectors with an adaptive DupThresh learn from it.
//!
//! Only a D-SACK (RFC 2883) proves that a segment was sent again in vain. An unmodified Linux receiver sends it unless
//! tcp_dsack = 0. If the network duplicates the copy of a segment that was lost, that looks the same. The receiver may
//! put several segments into one ACK, so that duplicate ACKs are too few: what is SACKed counts too.

use std::collections::VecDeque;

use crate::recovery::{Ack, Departure, Transmission, View};

/// The most copies that are remembered until a report may come.
const COPIES: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Reordering {
    copies: VecDeque<WatchedCopy>,
    /// Segments known to have overtaken the first unacknowledged one.
    overtaken_by: u32,
}

#[derive(Debug, Clone, Copy)]
struct WatchedCopy {
    start: u64,
    end: u64,
    /// The DupThresh that would have been needed; known once the copy is acknowledged.
    needed: Option<u32>,
}

/// For a segment that was overtaken: the smallest DupThresh that would not have taken it for lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Overtaken {
    /// It arrived before it was sent again.
    pub(super) in_time: Option<u32>,
    /// It was sent again, and the receiver reports the copy as a duplicate.
    pub(super) in_vain: Option<u32>,
}

impl Reordering {
    pub(super) fn on_sent(&mut self, departure: &Departure) {
        let Departure { start, end, kind, .. } = *departure;
        if kind == Transmission::New {
            return;
        }
        let known = self.copies.len();
        self.copies.retain(|copy| copy.start != start);
        // A second copy is not watched: a report would not say which copy it is about. Nor is one after a timeout,
        // which is not about order.
        let told_apart = self.copies.len() == known;
        if told_apart && matches!(kind, Transmission::FastRetransmit | Transmission::Recovery) {
            self.copies.truncate(COPIES - 1);
            self.copies.push_front(WatchedCopy { start, end, needed: None });
        }
    }

    pub(super) fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Overtaken {
        let una = view.flight.una();
        let needed = self.overtaken_by + 1;
        for copy in self.copies.iter_mut().filter(|copy| copy.end <= una) {
            copy.needed.get_or_insert(needed);
        }
        let was_overtaken = ack.advances() && !ack.any_resent && self.overtaken_by > 0;
        // After a partial ACK segments are sent again that nothing has overtaken: no threshold would avoid that.
        let in_vain = ack.dsack.and_then(|range| self.reported(range, needed));
        let in_vain = in_vain.filter(|needed| *needed > view.knobs.dup_thresh);
        self.overtaken_by = view.cc.dupacks().max(view.flight.sacked().segments as u32);
        Overtaken { in_time: was_overtaken.then_some(needed), in_vain }
    }

    fn reported(&mut self, (left, right): (u64, u64), now_needed: u32) -> Option<u32> {
        let mut most = None;
        self.copies.retain(|copy| {
            let reported = left <= copy.start && copy.end <= right;
            if reported {
                most = most.max(Some(copy.needed.unwrap_or(now_needed)));
            }
            !reported
        });
        most
    }
}

/// `dup_thresh`, but at most what the window can reach: where one segment is late, the number of all the others. At
/// least the ordinary DupThresh.
pub(super) fn within_window(view: &View<'_>, dup_thresh: u32) -> u32 {
    let window = view.cc.cwnd.min(view.flight_size()).max(0.0) as u32;
    dup_thresh.min(window.saturating_sub(1)).max(view.knobs.dup_thresh)
}
