//! Early Retransmit (RFC 5827, segment-based). With two or three segments outstanding, three duplicate ACKs
//! cannot arrive, and a loss would have to wait for the retransmission timer.
//!
//! If fewer than four segments are outstanding (`oseg`) and no new data can be sent, ER_thresh = oseg - 1
//! duplicate ACKs are enough: the segments after the hole cannot cause more. With a scoreboard, ER_thresh
//! SACKed segments are needed instead. New data cannot be sent if the application has written none or the
//! receiver's window is full. A full congestion window does not count, because Limited Transmit (RFC 3042)
//! covers that case.
//!
//! The detector is consulted after the primary detector, which continues to count. The receiver only has to
//! send duplicate ACKs immediately (RFC 5681 §4.2).
//!
//! Choice: With one segment outstanding, ER_thresh would be zero, and any ACK would declare it lost. So the
//! detector then does nothing.
//!
//! Danger: On a path with reordering, one late segment of two causes a spurious retransmission and halves the
//! window (RFC 5827 §4). This implementation has none of the RFC's mitigations. The undo algorithms `eifel`
//! and `dsack` correct such errors.

use super::{Detect, Verdict};
use crate::recovery::{Ack, View};

#[derive(Debug, Default)]
pub(crate) struct EarlyRetransmit;

impl Detect for EarlyRetransmit {
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        let oseg = view.flight.len() as u64;
        // §3.2 (2.a) and (2.b) of RFC 5827.
        if !(2..4).contains(&oseg) || view.has_new_data() {
            return Verdict::Nothing;
        }
        let er_thresh = oseg - 1;
        if view.handshake.scoreboard && view.flight.sacked().segments >= er_thresh {
            return Verdict::Head { why: "all outstanding segments but the first are SACKed" };
        }
        if !view.handshake.scoreboard && ack.duplicate && u64::from(view.cc.dupacks()) >= er_thresh {
            return Verdict::Head { why: "a duplicate ACK for each outstanding segment but the first" };
        }
        Verdict::Nothing
    }
}

#[cfg(test)]
mod tests;
