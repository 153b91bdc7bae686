//! Loss retransmission (Lin and Kung, INFOCOM 1998; Inamura et al. 2009, §3.2 and Fig. 8 step 7). Finds lost
//! retransmissions by counting duplicate ACKs.
//!
//! Every segment that arrives out of order causes one duplicate ACK. Segments outstanding at the time of the
//! retransmission can cause only a limited number. Segments sent after the retransmission cause all further
//! ones. When DupThresh more have arrived, the retransmission is lost. The segment is retransmitted once
//! more, and the window is not reduced.
//!
//! - In fast recovery (Lin and Kung), the condition is dupacks == segments outstanding when recovery began +
//!   DupThresh.
//! - After a timeout (Inamura et al. 2009), it is dupacks since the timeout == FlightSize at the timeout +
//!   DupThresh. This requires that new segments are sent in the meantime, as with `fast-timeout`.
//! - With a scoreboard (Inamura et al. 2009, Fig. 9), no counting is necessary. It is enough that the right
//!   edge of a SACK block is above SND.HIGH, the highest offset sent before the retransmission.
//!
//! The detector is consulted after the primary detector and acts once per retransmission. The receiver only
//! has to respond to out-of-order segments immediately (RFC 5681 §4.2).
//!
//! Choice: The papers do not define the count after a partial ACK, when the next hole is retransmitted. Here,
//! each retransmission has its own limit: the number of segments sent earlier in this episode. All ACKs since
//! the beginning of the episode count, including partial ACKs, because each means that one segment left the
//! network.

use super::retransmissions::{RetransmissionState, Retransmissions, all_but_the_head, right_edge};
use super::{Detect, Verdict};
use crate::recovery::{Ack, Entered, RecoveryState, Transmission, View};

#[derive(Debug, Default)]
pub(crate) struct LossRetransmission {
    retransmissions: Retransmissions,
}

impl LossRetransmission {
    fn is_lost(&self, view: &View<'_>, copy: RetransmissionState) -> Option<&'static str> {
        if view.handshake.scoreboard {
            return (right_edge(view) > copy.high).then_some("right edge of a SACK block above SND.HIGH");
        }
        // FlightSize includes the head, which causes no duplicate ACK. So the count must exceed DupThresh.
        let enough = copy.overtaken_by > u64::from(view.rules.detection.dup_thresh);
        enough.then_some("FlightSize + DupThresh duplicate ACKs")
    }
}

impl Detect for LossRetransmission {
    fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission) {
        self.retransmissions.on_sent(view, transmission);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        self.retransmissions.on_ack(view, ack);
        let una = view.flight.una();
        let copy = self.retransmissions.get(una).filter(|_| ack.duplicate && may_act(view));
        let Some(why) = copy.and_then(|copy| self.is_lost(view, copy)) else { return Verdict::Nothing };
        self.retransmissions.lost(una);
        Verdict::RetransmittedHead { new_episode: false, why }
    }

    fn on_episode(&mut self, view: &View<'_>) {
        self.retransmissions.on_episode(view);
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        self.retransmissions.begin(all_but_the_head(view));
    }
}

/// Returns whether the sender is in fast recovery, or after a timeout and before new data is acknowledged
/// (Fig. 8 steps 2 and 3).
fn may_act(view: &View<'_>) -> bool {
    match view.cc.state() {
        RecoveryState::Recovery => true,
        RecoveryState::Loss => view.cc.last_entry == Some(Entered::ByTimeout) && view.cc.timeouts_in_row > 0,
        RecoveryState::Open | RecoveryState::Cwr => false,
    }
}

#[cfg(test)]
mod tests;
