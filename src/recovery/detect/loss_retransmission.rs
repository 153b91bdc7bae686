//! Loss retransmission (Lin and Kung, INFOCOM 1998; P2 §3.2 and Fig. 8 step 7): a retransmission that is lost itself
//! is found by counting.
//!
//! Every segment that arrives out of order causes one duplicate ACK. More of them than there were segments
//! outstanding when the first unacknowledged one was sent again must come from segments that left after that copy. When
//! DupThresh more have come, the copy is lost: it is sent once more, and the window stays as it is.
//!
//! - in fast recovery (Lin and Kung): dupacks == segments outstanding when recovery began + DupThresh;
//! - after a timeout (P2): dupacks since the timeout == FlightSize at the timeout + DupThresh. That many come only if
//!   new segments are sent meanwhile, as with `fast-timeout`;
//! - with a scoreboard (P2 Fig. 9) nothing need be counted: a SACK block whose right edge lies above SND.HIGH, what
//!   had been sent when the copy left, is enough.
//!
//! It is a witness beside the detector, and acts once for each copy. Any receiver will do that answers segments out of
//! order at once (RFC 5681 §4.2).
//!
//! Choice: neither paper says how the count goes on after a partial ACK, when the next hole is sent again. Here each
//! copy has a limit of its own: the segments that had left in this event before it did. All ACKs since the event began
//! count against it, partial ones included, because each stands for one segment that is no longer in the path.

use super::copies::{Copies, CopyState, all_but_the_head, right_edge};
use super::{Detect, Verdict};
use crate::recovery::{Ack, Departure, Entered, Handshake, Phase, View};

/// Lin and Kung 1998; P2 Fig. 8: finds retransmissions that are lost themselves, by counting.
#[derive(Debug, Default)]
pub(crate) struct LossRetransmission {
    scoreboard: bool,
    copies: Copies,
}

impl LossRetransmission {
    fn is_lost(&self, view: &View<'_>, copy: CopyState) -> Option<&'static str> {
        if self.scoreboard {
            return (right_edge(view) > copy.high).then_some("right edge of a SACK block above SND.HIGH");
        }
        // The head causes no duplicate ACK, but FlightSize counts it: hence more than DupThresh.
        let enough = copy.overtaken_by > u64::from(view.knobs.dup_thresh);
        enough.then_some("FlightSize + DupThresh duplicate ACKs")
    }
}

impl Detect for LossRetransmission {
    fn name(&self) -> &'static str {
        "loss-retransmission"
    }

    fn on_established(&mut self, handshake: &Handshake) {
        self.scoreboard = handshake.scoreboard;
    }

    fn on_sent(&mut self, view: &View<'_>, departure: &Departure) {
        self.copies.on_sent(view, departure);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        self.copies.on_ack(view, ack);
        let una = view.flight.una();
        let copy = self.copies.get(una).filter(|_| ack.duplicate && may_act(view));
        let Some(why) = copy.and_then(|copy| self.is_lost(view, copy)) else { return Verdict::Nothing };
        self.copies.lost(una);
        Verdict::HeadAgain { new_event: false, why }
    }

    fn on_event(&mut self, view: &View<'_>) {
        self.copies.on_event(view);
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        self.copies.begin(all_but_the_head(view));
    }
}

/// In fast recovery, or after a timeout before anything new is acknowledged (Fig. 8 steps 2 and 3).
fn may_act(view: &View<'_>) -> bool {
    match view.cc.phase() {
        Phase::Recovery => true,
        Phase::Restarted => view.cc.last_entry == Some(Entered::ByTimeout) && view.cc.timeouts_in_row > 0,
        Phase::Open | Phase::Reduced => false,
    }
}

#[cfg(test)]
mod tests;
