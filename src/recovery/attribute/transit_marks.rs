//! Transit marks (P4 §III): the base stations say how far the segment got that the receiver asks for.
//!
//! Every ACK carries two bits, Ob and Db, about the octet of its acknowledgment number: has it gone past the
//! station? How they are read depends on which way the data travel (P4 Table 1, §III D.2 to D.4), which the stations
//! announce on the peer's SYN: [`RadioPath`]. docs/reference/header-extensions.md has the tables.
//!
//! **The receiver** may be any: it ignores the reserved bits, and never sets them.
//!
//! **Without an agent** on the path (P4 §III D.1) nothing is announced, bits in later ACKs mean nothing, and the sender
//! behaves as with `always-congestion`. The same holds when an agent appears in mid-connection.
//!
//! **Which mark counts:** one about the present SND.UNA, from an ACK that a later segment has caused: a duplicate, one
//! with news in its SACK blocks, or a partial ACK in a recovery. An ACK that only advances SND.UNA comes when the octet
//! is under way; where *no* mark means the radio (D.3, case 1 of D.4) it would blame the radio for what nobody has lost
//! yet. A loss found by a clock, with no such ACK, is congestion.
//!
//! **A timeout** is congestion, whatever was marked: P4 does not mention timeouts, marks are as old as the last
//! ACK, and a sender that hears nothing has to slow down. With `marked-timeout` the mark counts at the first timeout
//! of a row: cwnd and ssthresh stay, everything that is not SACKed is sent again, and each ACK lets two segments out at
//! most, as slow start would. A second timeout without an ACK between is congestion.
//!
//! **Put down to the radio:** the segment is sent again, cwnd and ssthresh stay (D.4, cases 1 and 3). When the next
//! hole of the same recovery turns out to be congestion, the window is reduced after all.
//!
//! Choice: as in the paper, the record is of octets and not of transmissions. A copy sent *again* and lost on the way
//! to the station, after the first copy went past, is taken for lost behind it.
//!
//! Choice: `sack` knows several holes at once, and a mark is about the first. While all of them are put down to the
//! radio the others wait, each until SND.UNA reaches it and an ACK brings its mark: a copy that had left before could
//! go past the station, and the mark would be about that. New segments leave meanwhile for what has arrived, but none
//! in the place of a hole that waits, which may turn out to be congestion. Once one hole is congestion nothing more is
//! asked, and nothing waits.

use airwire::Cause;
use airwire::marks::RadioPath;
use airwire::segment::Flags;

use super::Attribute;
use crate::recovery::parameter::{Given, Parameter};
use crate::recovery::{Ack, Handshake, Phase, View};

pub(crate) const MARKED_TIMEOUT: Parameter = Parameter::word(
    "marked-timeout",
    "marked timeout",
    "a timeout keeps the window if its segment was marked as lost on the radio link",
    "airtcp; Chandra et al. 2003 do not mention timeouts",
);

/// Transit marks of base stations (P4 §III).
#[derive(Debug, Default)]
pub(crate) struct TransitMarks {
    judges_timeouts: bool,
    path: Option<RadioPath>,
    /// The acknowledgment number and the flags of the last ACK whose mark counts.
    marked: Option<(u64, Flags)>,
}

impl TransitMarks {
    pub(crate) fn new(given: &Given<'_>) -> Self {
        Self { judges_timeouts: given.has(&MARKED_TIMEOUT), ..Self::default() }
    }
}

impl Attribute for TransitMarks {
    fn name(&self) -> &'static str {
        "transit-marks"
    }

    fn on_established(&mut self, handshake: &Handshake) {
        self.path = RadioPath::announced(handshake.peer_flags.0);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) {
        let later_segment = ack.duplicate || ack.newly_sacked.segments > 0;
        let partial = ack.advances() && view.cc.phase() == Phase::Recovery;
        if ack.number == view.flight.una() && (later_segment || partial) {
            self.marked = Some((ack.number, ack.flags));
        }
    }

    fn cause(&mut self, view: &View<'_>, lost: u64) -> Option<(Cause, &'static str)> {
        let Some(path) = self.path else {
            return Some((Cause::Congestion, "no base station announced"));
        };
        // A mark is about the octet that the ACK asks for, and about no other.
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
