//! Early retransmission by transit marks (P4 §V: "without having to wait until it has received three duplicate
//! acknowledgments").
//!
//! A duplicate ACK says that something later has arrived, and its marks say that the missing octet went past the last
//! station: Ob where data go from a fixed host to a mobile one, Ob and Db from mobile to mobile (case 3). Between that
//! station and the receiver there is one radio link and nothing that reorders: the first such duplicate is as good as
//! the third. It stands beside the detector, which goes on counting.
//!
//! Choice: only marks that are there are acted on. Where a mark that is *missing* means the radio, three duplicates are
//! waited for: absence proves nothing.
//!
//! Choice: it is silent about a segment that has been sent again, whose mark may be about the first copy and whose
//! duplicates may come from copies that arrived twice; and when nothing later is outstanding.
//!
//! Danger: if a radio link repeats damaged blocks itself and hands packets on out of order (an ARQ without in-sequence
//! delivery), segments that only come late cause duplicate ACKs. A return path that duplicates ACKs looks the same.
//! Three duplicates forgive that, one does not; but the window stays as it is, so the price is a segment sent twice.

use airwire::marks::{DB, OB, RadioPath};
use airwire::segment::Flags;

use super::{Detect, Verdict};
use crate::recovery::{Ack, Handshake, View};

/// P4 §V: the first duplicate ACK is enough if the last base station marked it.
#[derive(Debug, Default)]
pub(crate) struct EarlyMarks {
    /// The marks that are set when an octet has gone past the last station. `None`: no mark says so on this path.
    past_the_last: Option<Flags>,
}

impl Detect for EarlyMarks {
    fn name(&self) -> &'static str {
        "early-marks"
    }

    fn on_established(&mut self, handshake: &Handshake) {
        self.past_the_last = match RadioPath::announced(handshake.peer_flags.0) {
            Some(RadioPath::FixedToMobile) => Some(Flags(OB)),
            Some(RadioPath::MobileToMobile) => Some(Flags(OB | DB)),
            Some(RadioPath::MobileToFixed) | None => None,
        };
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        let marked = self.past_the_last.is_some_and(|bits| ack.flags.contains(bits));
        let about_head = ack.duplicate && ack.number == view.flight.una();
        let first_copy = view.flight.head().is_some_and(|head| head.transmissions == 1);
        if marked && about_head && first_copy && view.flight.len() > 1 {
            return Verdict::Head { why: "a duplicate ACK marked by the last station" };
        }
        Verdict::Nothing
    }
}

#[cfg(test)]
mod tests;
