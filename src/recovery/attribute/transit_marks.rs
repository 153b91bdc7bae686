//! Transit marks (Chandra et al. 2003, §III): base stations mark ACKs to show how far the missing segment
//! got.
//!
//! Each ACK carries two bits, Ob and Db, about the byte at its acknowledgment number. They show whether that
//! byte passed the base station. Their meaning depends on the direction of the data (Chandra et al. 2003,
//! Table 1, §III D.2 to D.4), which the base stations announce on the peer's SYN ([`RadioPath`]).
//! docs/reference/header-extensions.md has the tables.
//!
//! **The receiver** can be any TCP: it ignores the reserved bits and never sets them.
//!
//! **Without an agent** on the path (Chandra et al. 2003, §III D.1), no direction is announced, the bits in
//! later ACKs have no meaning, and the sender behaves as with `always-congestion`. The same applies if an
//! agent appears in the middle of a connection.
//!
//! **A mark counts** if it is about the current SND.UNA and a later segment caused the ACK: a duplicate ACK,
//! an ACK that newly SACKs data, or a partial ACK in recovery. An ACK that only advances SND.UNA is not
//! evidence, because the next byte may still be under way. Where a *missing* mark means the radio link (D.3,
//! case 1 of D.4), such an ACK would report a loss that did not happen. A loss that a timer detects without
//! such an ACK counts as congestion.
//!
//! **A timeout** counts as congestion, even if a mark shows the radio link. Chandra et al. 2003 do not
//! mention timeouts, marks are as old as the last ACK, and a sender without feedback has to slow down. With
//! `marked-timeout`, the mark counts at the first timeout in a row: cwnd and ssthresh stay, all data that is
//! not SACKed is retransmitted, and each ACK releases at most two segments, as in slow start. A second
//! timeout without an ACK in between counts as congestion.
//!
//! **After a loss on the radio link**, the segment is retransmitted, and cwnd and ssthresh stay (D.4, cases 1
//! and 3). If congestion turns out to be the cause of a later hole in the same recovery, the window is
//! reduced after all.
//!
//! Choice: As in the paper, the base station's record is about bytes and not about transmissions. If the
//! original passed the base station and the *retransmission* did not reach it, the loss is attributed to the
//! link after the base station.
//!
//! Choice: `sack` knows several holes at once, but a mark is about the first one only. While all known holes
//! are attributed to the radio link, each further hole waits until SND.UNA reaches it and an ACK brings its
//! mark. An earlier retransmission could pass the base station, and the mark would be about the
//! retransmission. Meanwhile, new segments replace those that arrived. They do not replace a waiting hole,
//! because congestion may have caused it. As soon as one hole is attributed to congestion, no further
//! attribution is needed and no hole waits.

use airwire::Cause;
use airwire::marks::RadioPath;
use airwire::segment::Flags;

use super::Attribute;
use crate::recovery::parameter::{Arguments, Parameter};
use crate::recovery::{Ack, RecoveryState, View};

pub(crate) const MARKED_TIMEOUT: Parameter = Parameter::word(
    "marked-timeout",
    "marked timeout",
    "a timeout keeps the window if its segment was marked as lost on the radio link",
    "airtcp; Chandra et al. 2003 do not mention timeouts",
);

#[derive(Debug, Default)]
pub(crate) struct TransitMarks {
    judges_timeouts: bool,
    /// Acknowledgment number and flags of the last ACK whose mark counts.
    marked: Option<(u64, Flags)>,
}

impl TransitMarks {
    pub(crate) fn new(arguments: &Arguments<'_>) -> Self {
        Self { judges_timeouts: arguments.has(&MARKED_TIMEOUT), ..Self::default() }
    }
}

impl Attribute for TransitMarks {
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) {
        let later_segment = ack.duplicate || ack.newly_sacked.segments > 0;
        let partial = ack.advances() && view.cc.state() == RecoveryState::Recovery;
        if ack.number == view.flight.una() && (later_segment || partial) {
            self.marked = Some((ack.number, ack.flags));
        }
    }

    fn cause(&mut self, view: &View<'_>, lost: u64) -> Option<(Cause, &'static str)> {
        let Some(path) = RadioPath::announced(view.handshake.peer_flags.0) else {
            return Some((Cause::Congestion, "no base station announced"));
        };
        // A mark is about the byte at the acknowledgment number only.
        if lost != view.flight.una() {
            return None;
        }
        let Some((_, flags)) = self.marked.filter(|(number, _)| *number == lost) else {
            return Some((Cause::Congestion, "no ACK has marks for it"));
        };
        let why = match (path.cause(flags.0), path) {
            (Cause::Congestion, _) => return Some((Cause::Congestion, "it was lost in the fixed network")),
            (Cause::Radio, RadioPath::FixedToMobile) => "it passed the base station",
            (Cause::Radio, RadioPath::MobileToFixed) => "it never reached the base station",
            (Cause::Radio, RadioPath::MobileToMobile) => "it was lost on one of the radio links",
        };
        Some((Cause::Radio, why))
    }

    fn judges_timeouts(&self) -> bool {
        self.judges_timeouts
    }
}

#[cfg(test)]
mod tests;
