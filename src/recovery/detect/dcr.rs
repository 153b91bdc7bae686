//! TCP-DCR (Bhandarkar, Reddy, "TCP-DCR: Making TCP Robust to Non-Congestion Events", Networking 2004; Lai et
//! al. 2013, §II-A). Delays the response to duplicate ACKs by tau, one round trip, so that the link layer can
//! still deliver the missing segment.
//!
//! The wait begins when three duplicate ACKs (with a scoreboard: IsLost()) would declare a segment lost. If a
//! cumulative ACK covers the hole before the wait is over, the detector reports no loss. Otherwise the
//! segment is lost. During the wait, each duplicate ACK or the data that it SACKs releases a new segment.
//!
//! The algorithm has no special requirements for the receiver, and works with and without SACK.
//!
//! Choice: tau is SRTT. Before the first RTT sample, nothing is delayed.
//!
//! Choice: Nothing is delayed in fast recovery either. The window is already reduced, and further holes cost
//! nothing.
//!
//! Choice: Each first hole has its own wait. When it is over, all segments for which IsLost() holds by then
//! are lost.
//!
//! Choice: Without a scoreboard, duplicate ACKs release at most one new segment per outstanding segment,
//! because the sender's segments cannot cause more duplicate ACKs.
//!
//! Choice: The retransmission timer is unchanged. If it fires before the wait is over, it has waited long
//! enough.

use airwire::time::Instant;

use super::three_dupacks::judge;
use super::{Detect, Traits, Verdict};
use crate::recovery::{Ack, RecoveryState, View};

#[derive(Debug, Default)]
pub(crate) struct Dcr {
    waiting: Option<Waiting>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    hole: u64,
    until: Instant,
}

impl Detect for Dcr {
    fn traits(&self) -> Traits {
        Traits { mistakes_reordering: false, keeps_flowing: true, ..Traits::default() }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        let hole = view.flight.una();
        self.waiting.take_if(|waiting| waiting.hole < hole);
        let verdict = judge(view, ack, view.rules.detection.dup_thresh);
        let tau = view.rtt.srtt().filter(|_| view.cc.state() != RecoveryState::Recovery);
        let Some(tau) = tau else { return verdict };
        if verdict != Verdict::Nothing {
            self.waiting.get_or_insert(Waiting { hole, until: view.now + tau });
        }
        Verdict::Nothing
    }

    fn on_episode(&mut self, _view: &View<'_>) {
        self.waiting = None;
    }

    fn on_timeout(&mut self, _view: &View<'_>) {
        self.waiting = None;
    }

    fn deadline(&self) -> Option<Instant> {
        self.waiting.map(|waiting| waiting.until)
    }

    fn on_deadline(&mut self, view: &View<'_>) -> Verdict {
        if self.waiting.take().is_none() {
            return Verdict::Nothing;
        }
        let edge = view.flight.is_lost_edge(view.rules.detection.dup_thresh, view.smss);
        if edge > view.flight.una() {
            return Verdict::Below { offset: edge, why: "IsLost one round trip ago, and still missing" };
        }
        Verdict::Head { why: "DupThresh duplicate ACKs one round trip ago" }
    }

    fn answered_dupacks(&self, view: &View<'_>) -> Option<u32> {
        Some(view.flight_size() as u32)
    }
}

#[cfg(test)]
mod tests;
