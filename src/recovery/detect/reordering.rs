//! How many later segments overtake one that is not lost: what thresholds that adapt themselves learn from.
//!
//! Only a D-SACK (RFC 2883) proves that a segment was sent again in vain. An unmodified Linux receiver sends it
//! unless tcp_dsack = 0; if the network duplicates the copy of a segment that was lost, that looks the same. The
//! receiver may put several segments into one ACK, so that duplicate ACKs are too few: what is SACKed counts too.

use std::collections::VecDeque;

use crate::recovery::{Ack, Departure, Transmission, View};

/// Copies that a report may still be about, at most.
const COPIES: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Reordering {
    copies: VecDeque<Copy>,
    /// Segments known to have overtaken the first unacknowledged one.
    overtaken_by: u32,
}

#[derive(Debug, Clone, Copy)]
struct Copy {
    start: u64,
    end: u64,
    /// Known once it is acknowledged.
    needed: Option<u32>,
}

/// Of a segment that was overtaken: the smallest DupThresh that would not have taken it for lost.
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
        // A report would not say of which copy. And a timeout is not about order.
        let told_apart = self.copies.len() == known;
        if told_apart && matches!(kind, Transmission::FastRetransmit | Transmission::Recovery) {
            self.copies.truncate(COPIES - 1);
            self.copies.push_front(Copy { start, end, needed: None });
        }
    }

    pub(super) fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Overtaken {
        let una = view.flight.una();
        let needed = self.overtaken_by + 1;
        for copy in self.copies.iter_mut().filter(|copy| copy.end <= una) {
            copy.needed.get_or_insert(needed);
        }
        let was_overtaken = ack.advances() && !ack.any_resent && self.overtaken_by > 0;
        // A partial ACK has segments sent again that nothing has overtaken: that is no matter of a threshold.
        let in_vain = ack.dsack.and_then(|range| self.reported(range, needed));
        let in_vain = in_vain.filter(|needed| *needed > view.knobs.dup_thresh);
        self.overtaken_by = view.cc.dupacks.max(view.flight.sacked().segments as u32);
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

/// A threshold that can be reached: of a window in which one segment is late, all others but one may be needed.
pub(super) fn within_window(view: &View<'_>, dup_thresh: u32) -> u32 {
    let window = view.cc.cwnd.min(view.flight_size()).max(0.0) as u32;
    dup_thresh.min(window.saturating_sub(1)).max(view.knobs.dup_thresh)
}
