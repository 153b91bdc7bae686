//! Segment-in-Flight Estimation (P0 §4.2): a sender that knows how few segments are in the path need not wait for
//! three duplicate ACKs that cannot come.
//!
//! `sifest_` counts the segments in the path. A new segment adds one, a new ACK takes off what it covers, and a timeout
//! or an idle round trip sets it to zero. On a duplicate ACK the first unacknowledged segment is sent again if
//! `dupacks >= sifest_ - 1`, or if `dupacks` has reached DupThresh, *and* it was not sent again within the last
//! round trip. The second half is what finds a lost retransmission (P0 Fig. 9): that is a loss event of its own
//! (RFC 5681 §4.3), and reduces the window again.
//!
//! Any receiver will do: it counts immediate duplicate ACKs (RFC 5681 §4.2). With a scoreboard RFC 6675's IsLost() is
//! asked too.
//!
//! Choice: at least one duplicate ACK. P0's formula alone would fire with none when one segment is in the path.
//!
//! Choice: segments of the pass that follows a timeout count when they leave, each once. P0 does not count what is sent
//! again "by schemes other than a timeout"; what a timeout sends again is in the path.
//!
//! Choice: idle means that nothing was outstanding. A sender that waits for ACKs longer than its smoothed round trip
//! still has them in the path, and would take one reordered segment of a full window for a loss.
//!
//! Choice: no clock alone tells whether the last copy left "in the last rtt". A copy leaves behind a whole window,
//! whose duplicate ACKs take longer than any smoothed round trip while a queue fills; after a restart a round trip is
//! much shorter than that. So something that left after the copy must have arrived, by count or by SACK, and at least
//! the shortest round trip must have passed.
//!
//! Choice: a timeout means an empty path ("the sender is going to re-probe the network") only if nothing was heard in
//! the last round trip. In the middle of a long recovery (RFC 6582 §4, Impatient) the timer fires while a window full
//! of segments is on its way, and their duplicate ACKs say nothing about the copy.
//!
//! Choice: `recover` (RFC 6582 §3.2 step 1, "careful") holds back DupThresh duplicate ACKs as ever, but not the
//! estimate. It would forbid the fast retransmit in the first window after every timeout, the very window that is tiny.
//! It guards against the duplicate ACKs of copies sent in vain, which arrive when an earlier copy has filled the hole.
//! The estimate allows for these: for each copy beyond the first that one ACK has covered, it waits for one duplicate
//! ACK more.
//!
//! `sifest-literal` makes none of these choices; `airtcp reproduce p0-text` says what they are worth.
//!
//! In profile `ns2`, SACK's dialect counts no duplicate ACKs between a timeout and the next new ACK, so the estimate
//! hears none there.

use airwire::time::{Duration, Instant};

use super::copies::{Copies, CopyState, all_but_the_head, right_edge};
use super::{Detect, ThreeDupacks, Verdict};
use crate::recovery::{Ack, Departure, Phase, Transmission, View};

/// Segment-in-Flight Estimation (P0 §4.2): few segments in the path need few duplicate ACKs.
#[derive(Debug, Default)]
pub(crate) struct Sifest {
    ordinary: ThreeDupacks,
    /// `sifest_`: the estimated number of segments in the path.
    sifest: u64,
    /// One past the highest offset sent since the last timeout: what leaves below it has been counted.
    counted_to: u64,
    /// When the last ACK came.
    heard: Option<Instant>,
    copies: Copies,
    /// Of the copies that the last new ACK covered, those that may arrive after the one that caused it.
    in_vain: u64,
}

impl Sifest {
    /// How many duplicate ACKs the estimate waits for.
    fn enough(&self) -> u64 {
        self.sifest.saturating_sub(1).max(1) + self.in_vain
    }

    /// Whether the head's newest copy ought to have been acknowledged by now.
    fn is_overdue(&self, view: &View<'_>, left_at: Instant) -> bool {
        let overtaken = |copy: CopyState| copy.overtaken_by > 0 || right_edge(view) > copy.high;
        let shortest = view.rtt.min().unwrap_or_else(|| view.rtt.rto().get());
        self.copies.get(view.flight.una()).is_none_or(overtaken)
            && view.now.saturating_since(left_at) >= shortest
    }
}

impl Detect for Sifest {
    fn name(&self) -> &'static str {
        "sifest"
    }

    fn on_sent(&mut self, view: &View<'_>, departure: &Departure) {
        if departure.kind == Transmission::New && view.flight.una() == departure.start {
            // Idle since the ACK of all that was outstanding.
            if self.heard.is_some_and(|heard| view.now.saturating_since(heard) > round_trip(view)) {
                (self.sifest, self.in_vain) = (0, 0);
            }
        }
        if departure.end > self.counted_to {
            self.counted_to = departure.end;
            self.sifest += 1;
        }
        self.copies.on_sent(view, departure);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        let covered = self.copies.on_ack(view, ack);
        self.heard = Some(view.now);
        if ack.advances() {
            self.sifest = self.sifest.saturating_sub(ack.acked.segments);
            self.in_vain = covered.saturating_sub(1);
        }
        let ordinary = self.ordinary.on_ack(view, ack);
        let Some(head) = view.flight.head().filter(|_| ack.duplicate) else { return ordinary };
        let dupacks = u64::from(view.cc.dupacks());
        let estimated = dupacks >= self.enough();
        let by_number = dupacks >= u64::from(view.knobs.dup_thresh) + self.in_vain;
        if head.transmissions > 1 {
            if (estimated || by_number) && self.is_overdue(view, head.last_sent) {
                self.copies.lost(head.start);
                return Verdict::HeadAgain { new_event: true, why: "sent again a round trip ago" };
            }
            // Nothing more can be said about the head, but a scoreboard may have more holes.
            return if matches!(ordinary, Verdict::Head { .. }) { Verdict::Nothing } else { ordinary };
        }
        // In the pass after a timeout its turn will come.
        let waits = view.cc.phase() == Phase::Restarted || !estimated;
        if waits || matches!(ordinary, Verdict::Below { .. }) {
            return ordinary;
        }
        Verdict::HeadBeyondDoubt { why: "sifest - 1 duplicate ACKs" }
    }

    fn on_event(&mut self, view: &View<'_>) {
        self.copies.on_event(view);
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        (self.sifest, self.in_vain) = (0, 0);
        self.counted_to = view.flight.una();
        let heard = self.heard.is_some_and(|heard| view.now.saturating_since(heard) < round_trip(view));
        self.copies.begin(if heard { all_but_the_head(view) } else { 0 });
    }

    fn dup_thresh(&self, view: &View<'_>) -> u32 {
        view.knobs.dup_thresh.min(self.enough() as u32)
    }
}

fn round_trip(view: &View<'_>) -> Duration {
    view.rtt.srtt().unwrap_or_else(|| view.rtt.rto().get())
}

#[cfg(test)]
mod tests;
