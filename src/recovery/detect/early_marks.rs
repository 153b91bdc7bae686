//! Early retransmission by transit marks (Chandra et al. 2003, §V: "without having to wait until it has
//! received three duplicate acknowledgments").
//!
//! A duplicate ACK shows that a later segment arrived. Its marks can show that the missing byte passed the
//! last base station: Ob for data from a fixed host to a mobile host, Ob and Db from mobile to mobile (case
//! 3). Between that base station and the receiver there is only one radio link, which does not reorder. So
//! the first such duplicate ACK is as conclusive as the third. This detector is consulted after the primary
//! detector, which continues to count.
//!
//! From a mobile host to a fixed host, the radio link comes first. Ob = 0 in a duplicate ACK means that the
//! base station saw a later segment but not the missing byte. This is equally conclusive, because a base
//! station that does not know sets Ob (docs/reference/header-extensions.md).
//!
//! Choice: From mobile to mobile, Ob = 0 (case 1) has no effect. A second base station follows, so three
//! duplicate ACKs are needed.
//!
//! Choice: The detector does not judge a segment that was retransmitted. The mark may be about the original,
//! and segments that arrived twice may have caused the duplicate ACKs. It does not judge a segment either if
//! no later one is outstanding.
//!
//! Danger: If a radio link retransmits damaged blocks and delivers packets out of order (ARQ without
//! in-sequence delivery), late segments cause duplicate ACKs. A return path that duplicates ACKs looks the
//! same. A threshold of three duplicate ACKs tolerates this, and a threshold of one fails. The window is not
//! reduced, so the cost is one spurious retransmission.

use airwire::marks::{DB, OB, RadioPath};
use airwire::segment::Flags;

use super::{Detect, Verdict};
use crate::recovery::{Ack, View};

#[derive(Debug, Default)]
pub(crate) struct EarlyMarks;

impl Detect for EarlyMarks {
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        let marked = match RadioPath::announced(view.handshake.peer_flags.0) {
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
