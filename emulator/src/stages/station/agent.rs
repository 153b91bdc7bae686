//! P4's transit agent (Chandra, Harris, Shenoy, "TCP performance for future IP-based wireless networks", §III).
//!
//! The agent remembers the sequence numbers of what goes past, and tells the sender on every ACK whether the
//! octet that the receiver asks for, the one of the acknowledgment number, has gone past here. Two of the three
//! reserved bits of the TCP header carry that:
//!
//! ```text
//!   0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15
//! +---------------+---+---+---+---+---+---+---+---+---+---+---+---+
//! |  data offset  | Ob| Db| - | AE|CWR|ECE|URG|ACK|PSH|RST|SYN|FIN|
//! +---------------+---+---+---+---+---+---+---+---+---+---+---+---+
//! ```
//!
//! A receiver must ignore these bits (RFC 9293 §3.1), and a stock kernel does: Linux masks them out of its header
//! prediction, too. `AE` is left alone (RFC 9768 uses it), and so is the bit beside it, the next to be assigned.
//!
//! **On a SYN, with or without an ACK,** nothing has been asked for yet, and the bits say which agents there are,
//! from where its reader stands: `Ob` is the base station that serves the reader (the origin of what the reader
//! sends), `Db` the one that serves the sender of the SYN. So the reader knows how its own data will travel
//! ([`RadioPath`](airwire::marks::RadioPath)). Choice: the paper has the sender know its row of Table 1 "after the
//! handshake process" (§III D), and not by what means.
//!
//! **On any other ACK,** the agent of a sole station writes `Ob` (D.2, D.3). Of two, the one that serves the data
//! sender writes `Ob` and the one that serves the receiver `Db` (D.4). Choice: an agent knows that there is another from
//! the SYN of the data's own direction, on which the other one, nearer to the sender, has set `Db`. So stations
//! need no settings for it: only on which side their radio link is. Every ACK says it: duplicates, those with
//! SACK blocks, and those that carry payload.
//!
//! **What an agent does not know** it answers so that the loss is taken for congestion: as gone past where data come
//! from its radio link, as not gone past where they go there. A sender then does what Reno does. It never errs in the
//! other direction. (Choice: the paper's agent knows everything.)
//!
//! **A connection in mid-flight.** Choice, all of it: the paper's mobile "stays in one cell during the lifetime of the
//! connection" (§IV) and its agent is always there. Here an agent may come later: after a handover to its station, a
//! restart, or when its table was full. It learns the connection from one segment of each side that acknowledges about
//! what the other sends:
//!
//! - *Sequence numbers* are theirs. The *direction* of each half is the side on which it comes in, and whether its data
//!   come from the radio link is the station's own setting.
//! - *The role*, sole agent or second of two, was on the SYN. Until another SYN tells, what has gone past to the radio
//!   link is marked with both bits. A sole agent's sender reads only `Ob`; before the first of two agents the second
//!   may write into `Ob` what it likes, because the first puts its own there.
//! - *To the radio link*, a mark says that an octet has gone past. That is true as soon as one has.
//! - *From the radio link*, a mark says that an octet has **not**, and what was in flight when the agent came may have
//!   gone past another. So it says so only of octets that are further above the receiver's acknowledgment at that time
//!   than a connection has in flight ([`Reach`], the setting `max_flight`).
//! - The same again when the receiver acknowledges what has not gone past here, though later octets have.
//!
//! **Who forges.** Somebody off the path sends what looks like a connection's own segments, from one side, and has to
//! guess the numbers. What he can do is bounded so:
//!
//! - A segment is believed if both its numbers are within the reach of what is known; with a reach of 1 MB, one guess
//!   in four million is. Any other changes nothing, whatever its flags are, and what it asks for is answered as
//!   unknown. Resets change nothing at all, and a SYN nothing without its answer.
//! - A guess that hits puts octets on record that have not gone past, or makes the agent answer "unknown" for as much as
//!   is in flight. It cannot make the agent forget the connection.
//! - One who speaks for one side only teaches the agent no connection, and displaces none ([`Flows`]).
//!
//! Somebody who forges segments of both sides, on both sides of the station, can lead it astray until it has learned the
//! connection again. Somebody who sees the packets can have marked what he likes; but he can also end the connection,
//! or put octets into it. Checksums are not verified: that would cost more than all else here.
//!
//! Choice: like the paper's, the record is of sequence numbers, not of transmissions. A retransmission that is
//! lost before the station is taken for lost behind it when the first transmission had gone past.

use std::num::NonZeroU32;

use airwire::marks::{DB, OB};
use airwire::units::Size;
use serde::Serialize;

use super::Side;
use super::flow::{Answer, Other, Passed, Said, Syn};
use super::flow_table::{Flows, Key};
use super::header::{ACK, RST, SYN, Segment};
use super::ranges::{Reach, Transit};
use crate::packet::Direction;
use crate::stage::Mark;

#[derive(Debug)]
pub(super) struct Agent {
    radio: Side,
    max_flows: NonZeroU32,
    reach: Reach,
    flows: Flows,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counters {
    pub(super) announced: u64,
    /// ACKs by what was known of the octet that they ask for.
    pub(super) seen: u64,
    pub(super) not_seen: u64,
    pub(super) unknown: u64,
    /// Segments whose numbers are far from all that is known of their connection.
    pub(super) astray: u64,
    /// Connections that became known in mid-flight.
    pub(super) learned: u64,
    /// ACKs of what never went past here, although what was sent later did.
    pub(super) elsewhere: u64,
}

/// What becomes of a segment's flags, and what to put on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Writing {
    pub(super) flags: u16,
    pub(super) mark: Mark,
}

impl Agent {
    pub(super) fn new(radio: Side, max_flows: NonZeroU32, max_flight: Size) -> Self {
        Self {
            radio,
            max_flows,
            reach: Reach::new(max_flight),
            flows: Flows::new(max_flows),
            counters: Counters::default(),
        }
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn flows(&self) -> &Flows {
        &self.flows
    }

    /// Another agent takes over, which has seen nothing. The counters go on.
    pub(super) fn forget(&mut self) {
        self.flows = Flows::new(self.max_flows);
    }

    /// A segment goes past.
    pub(super) fn pass(&mut self, segment: &Segment, direction: Direction) -> Option<Writing> {
        // What a reset says is not in sequence with anything; and what has neither SYN nor ACK no receiver takes (RFC
        // 9293 §3.10.7.4, fifth).
        if segment.has(RST) || !segment.has_any(SYN | ACK) {
            return None;
        }
        let slot = self.flows.find_or_insert(Key::of(segment, direction));
        if segment.has(SYN) {
            let syn = self.read_syn(segment, direction);
            let flow = &mut self.flows[slot];
            if segment.has(ACK) {
                flow.syn_ack(direction, syn, segment.ack, self.reach);
            } else {
                flow.syn(direction, syn);
            }
            self.counters.announced += 1;
            // What comes straight from the radio link can have met no other agent.
            let flags =
                if self.comes_from_radio(direction) { segment.flags & !OB | DB } else { segment.flags | OB };
            return Some(Writing { flags, mark: Mark::Announced });
        }
        let said = Said { seq: segment.seq, octets: segment.sequence_length(), ack: segment.ack };
        let unknown = |other| Answer { transit: Transit::Unknown, other };
        let answer = match self.flows[slot].pass(direction, said, self.reach) {
            Passed::Known(answer) => answer,
            Passed::Elsewhere(answer) => {
                self.counters.elsewhere += 1;
                answer
            }
            Passed::Learned(answer) => {
                self.counters.learned += 1;
                answer
            }
            Passed::Astray(other) => {
                self.counters.astray += 1;
                unknown(other)
            }
            Passed::Stranger => unknown(Other::Unknown),
        };
        self.flows.settle(slot);
        Some(self.write(answer, segment.flags, direction))
    }

    fn comes_from_radio(&self, direction: Direction) -> bool {
        direction != self.radio.towards()
    }

    fn read_syn(&self, segment: &Segment, direction: Direction) -> Syn {
        let other = if self.comes_from_radio(direction) {
            Other::Unknown
        } else if segment.has(DB) {
            Other::Present
        } else {
            Other::Absent
        };
        Syn { isn: segment.seq, octets: segment.sequence_length(), other }
    }

    /// The head of a segment goes past, of which it cannot be told how long it is.
    pub(super) fn pass_fragment(&mut self, head: &Segment, direction: Direction) {
        const LONGEST: u32 = 65_535;
        if head.has_any(SYN | RST) || !head.has(ACK) {
            return;
        }
        let Some(slot) = self.flows.find(Key::of(head, direction)) else { return };
        let said = Said { seq: head.seq, octets: LONGEST, ack: head.ack };
        if !self.flows[slot].pass_head(direction, said) {
            self.counters.astray += 1;
        }
    }

    /// The bits on an ACK that goes this way, in the place of those that it has.
    fn write(&mut self, Answer { transit, other }: Answer, flags: u16, direction: Direction) -> Writing {
        match transit {
            Transit::Seen => self.counters.seen += 1,
            Transit::NotSeen => self.counters.not_seen += 1,
            Transit::Unknown => self.counters.unknown += 1,
        }
        let bits = if self.comes_from_radio(direction) {
            // Its data go to the radio link. The first agent that this ACK meets: no bit in it was set by another.
            match (transit, other) {
                (Transit::Seen, Other::Absent) => OB,
                (Transit::Seen, Other::Present) => DB,
                (Transit::Seen, Other::Unknown) => OB | DB,
                (Transit::NotSeen | Transit::Unknown, _) => 0,
            }
        } else {
            let ob = if transit == Transit::NotSeen { 0 } else { OB };
            ob | if other == Other::Absent { 0 } else { flags & DB }
        };
        Writing {
            flags: flags & !(OB | DB) | bits,
            mark: Mark::Transit { ob: bits & OB != 0, db: bits & DB != 0 },
        }
    }
}
