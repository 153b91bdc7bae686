//! Early retransmission by transit marks (P4 §V: "without having to wait until it has received three duplicate
//! acknowledgments").
//!
//! A duplicate ACK says that something later has arrived, and its marks say that the missing octet went past the last
//! station: Ob where data go from a fixed host to a mobile one, Ob and Db from mobile to mobile (case 3). Between that
//! station and the receiver there is one radio link and nothing that reorders: the first such duplicate is as good as
//! the third. It stands beside the detector, which goes on counting.
//!
//! From a mobile host to a fixed one the radio link comes first: Ob = 0 in a duplicate ACK says that the station has
//! seen something later and not the missing octet. That is as good, because a station that cannot tell sets Ob
//! (docs/reference/header-extensions.md).
//!
//! Choice: from mobile to mobile Ob = 0 (case 1) is not acted on: a second station stands between, and three duplicates
//! are waited for.
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
    /// Which marks mean the one radio link that reorders nothing. `None`: no station has announced itself.
    path: Option<RadioPath>,
}

impl Detect for EarlyMarks {
    fn name(&self) -> &'static str {
        "early-marks"
    }

    fn on_established(&mut self, handshake: &Handshake) {
        self.path = RadioPath::announced(handshake.peer_flags.0);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        let marked = match self.path {
            Some(RadioPath::FixedToMobile) => ack.flags.contains(Flags(OB)),
            Some(RadioPath::MobileToFixed) => !ack.flags.contains(Flags(OB)),
            Some(RadioPath::MobileToMobile) => ack.flags.contains(Flags(OB | DB)),
            None => false,
        };
        let about_head = ack.duplicate && ack.number == view.flight.una();
        let first_copy = view.flight.head().is_some_and(|head| head.transmissions == 1);
        if marked && about_head && first_copy && view.flight.len() > 1 {
            return Verdict::Head { why: "marks of a duplicate ACK: lost on the radio link" };
        }
        Verdict::Nothing
    }
}

#[cfg(test)]
mod tests;
