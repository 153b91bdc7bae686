//! TCP-DCR (Bhandarkar, Reddy, "TCP-DCR: Making TCP Robust to Non-Congestion Events", Networking 2004; one of P3's
//! differentiators, §II-A): the response to duplicate ACKs is delayed by tau, one round trip, in which the link layer
//! may bring the missing segment after all.
//!
//! When a segment would be taken for lost at three duplicate ACKs (with a scoreboard, by IsLost()), the wait begins.
//! If a cumulative ACK covers the hole before the wait is over, nothing has happened. If none does, it is lost.
//! Meanwhile the window keeps flowing: each duplicate ACK, or what it SACKs, releases a new segment.
//!
//! It asks nothing of the receiver, and works with SACK and without.
//!
//! Choice: tau is SRTT. Before there is a sample, nothing is delayed.
//! Choice: in fast recovery nothing is delayed either. The response has been made, and further holes cost nothing.
//! Choice: each first hole has a wait of its own. When it is over, everything that IsLost() names by then is lost.
//! Choice: without a scoreboard no more duplicate ACKs are answered than segments were outstanding, because more of
//! them cannot come from this sender's segments.
//! Choice: the retransmission timer is left as it is. Where it is shorter than the wait, it has waited long enough.

use airwire::time::Instant;

use super::three_dupacks::judge;
use super::{Detect, Traits, Verdict};
use crate::recovery::{Ack, Phase, View};

/// TCP-DCR (Bhandarkar and Reddy 2004): the response to duplicate ACKs waits for a round trip.
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
    fn name(&self) -> &'static str {
        "dcr"
    }

    fn traits(&self) -> Traits {
        Traits { mistakes_reordering: false, keeps_flowing: true, ..Traits::default() }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        let hole = view.flight.una();
        self.waiting.take_if(|waiting| waiting.hole < hole);
        let verdict = judge(view, ack, view.knobs.dup_thresh);
        let tau = view.rtt.srtt().filter(|_| view.cc.phase() != Phase::Recovery);
        let Some(tau) = tau else { return verdict };
        if verdict != Verdict::Nothing {
            self.waiting.get_or_insert(Waiting { hole, until: view.now + tau });
        }
        Verdict::Nothing
    }

    fn on_event(&mut self, _view: &View<'_>) {
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
        let edge = view.flight.is_lost_edge(view.knobs.dup_thresh, view.smss);
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
