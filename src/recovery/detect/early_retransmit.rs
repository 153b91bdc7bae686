//! Early retransmit (RFC 5827, segment-based): with two or three segments outstanding there cannot be three duplicate
//! ACKs, and a loss would wait for the retransmission timer.
//!
//! If fewer than four segments are outstanding (`oseg`), and nothing new can be sent because nothing is written or the
//! receiver's window is full, as many duplicate ACKs are enough as the segments above the hole can cause: ER_thresh =
//! oseg - 1. With a scoreboard it takes as many SACKed segments instead, whichever ACK reports the last of them. What the
//! congestion window holds back is no reason: Limited Transmit (RFC 3042) is for that.
//!
//! It stands beside the detector, which goes on counting. It needs nothing from the receiver but duplicate ACKs at once
//! (RFC 5681 §4.2).
//!
//! Choice: with one segment outstanding ER_thresh would be zero, and no ACK a reason: it is silent.
//!
//! Danger: where the network reorders, one late segment of two is enough for a copy sent in vain, and half the window
//! (RFC 5827 §4). Of its mitigations none is taken; `eifel` and `dsack` answer the question whether it was a mistake.

use super::{Detect, Verdict};
use crate::recovery::{Ack, Handshake, View};

/// Early retransmit (RFC 5827).
#[derive(Debug, Default)]
pub(crate) struct EarlyRetransmit {
    scoreboard: bool,
}

impl Detect for EarlyRetransmit {
    fn name(&self) -> &'static str {
        "early-retransmit"
    }

    fn on_established(&mut self, handshake: &Handshake) {
        self.scoreboard = handshake.scoreboard;
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        let oseg = view.flight.len() as u64;
        // §3.2 (2.a) and (2.b).
        if !(2..4).contains(&oseg) || view.has_new_data() {
            return Verdict::Nothing;
        }
        let er_thresh = oseg - 1;
        if self.scoreboard && view.flight.sacked().segments >= er_thresh {
            return Verdict::Head { why: "all outstanding segments but the first are SACKed" };
        }
        if !self.scoreboard && ack.duplicate && u64::from(view.cc.dupacks()) >= er_thresh {
            return Verdict::Head { why: "a duplicate ACK for each outstanding segment but the first" };
        }
        Verdict::Nothing
    }
}

#[cfg(test)]
mod tests;
