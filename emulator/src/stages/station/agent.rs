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
//! sends), `Db` the one that serves the sender of the SYN. This is the paper's Table 1, and tells the reader how
//! its own data travel (§III D: "after the handshake process, the sender will be able to choose"): [`RadioPath`](airwire::marks::RadioPath).
//!
//! **On any other ACK,** the agent of a sole station writes `Ob` (D.2, D.3). Of two, the one that serves the data
//! sender writes `Ob` and the one that serves the receiver `Db` (D.4). An agent knows that there is another from
//! the SYN of the data's own direction, on which the other one, nearer to the sender, has set `Db`. So stations
//! need no settings for it: only on which side their radio link is. Every ACK says it: duplicates, those with
//! SACK blocks, and those that carry payload.
//!
//! **What an agent does not know** (it has forgotten, was not there at the SYN, or sees only part of the flow) it
//! answers so that the loss is taken for congestion: as gone past where data come from its radio link, as not
//! gone past where they go there. A sender then does what Reno does. It never errs in the
//! other direction.
//!
//! Choice: like the paper's, the record is of sequence numbers, not of transmissions. A retransmission that is
//! lost before the station is taken for lost behind it when the first transmission had gone past.

use std::num::NonZeroU32;

use airwire::marks::{DB, OB};
use serde::Serialize;

use super::Side;
use super::flow_table::{Flows, Key, Syn};
use super::header::{ACK, RST, SYN, Segment};
use super::ranges::Transit;
use crate::packet::Direction;
use crate::stage::Mark;

#[derive(Debug)]
pub(super) struct Agent {
    radio: Side,
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
    /// Halves of connections of which not everything goes past here.
    pub(super) given_up: u64,
}

/// What becomes of a segment's flags, and what to put on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Writing {
    pub(super) flags: u16,
    pub(super) mark: Mark,
}

impl Agent {
    pub(super) fn new(radio: Side, max_flows: NonZeroU32) -> Self {
        Self { radio, flows: Flows::new(max_flows), counters: Counters::default() }
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn flows(&self) -> &Flows {
        &self.flows
    }

    /// A segment goes past.
    pub(super) fn pass(&mut self, segment: &Segment, direction: Direction) -> Option<Writing> {
        let from_radio = direction != self.radio.towards();
        let key = Key::of(segment, direction);
        // What a reset says is not in sequence with anything.
        if segment.has(RST) {
            return None;
        }
        if segment.has(SYN) {
            let second = !from_radio && segment.has(DB);
            let syn = Syn { isn: segment.seq, octets: segment.sequence_length(), second };
            let flow = self.flows.find_or_insert(key);
            if segment.has(ACK) {
                flow.syn_ack(direction, syn, segment.ack);
            } else {
                flow.syn(direction, syn);
            }
            self.counters.announced += 1;
            // What comes straight from the radio link can have met no other agent.
            let flags = if from_radio { segment.flags & !OB | DB } else { segment.flags | OB };
            return Some(Writing { flags, mark: Mark::Announced });
        }
        self.record(key, segment, direction);
        segment.has(ACK).then(|| self.answer(key, segment, direction))
    }

    fn record(&mut self, key: Key, segment: &Segment, direction: Direction) {
        let Some(half) = self.flows.find(key).and_then(|flow| flow.half_mut(direction)) else { return };
        if half.transited.record(segment.seq, segment.sequence_length()).is_err() {
            self.counters.astray += 1;
        }
    }

    /// The head of a segment goes past, of which it cannot be told how long it is.
    pub(super) fn pass_fragment(&mut self, head: &Segment, direction: Direction) {
        const LONGEST: u32 = 65_535;
        let key = Key::of(head, direction);
        if head.has_any(SYN | RST) {
            return;
        }
        let Some(half) = self.flows.find(key).and_then(|flow| flow.half_mut(direction)) else { return };
        if half.transited.blur(head.seq, LONGEST).is_err() {
            self.counters.astray += 1;
        }
    }

    fn answer(&mut self, key: Key, segment: &Segment, direction: Direction) -> Writing {
        let data = direction.reversed();
        let (transit, second) = self.asked_for(key, data, segment.ack);
        match transit {
            Transit::Seen => self.counters.seen += 1,
            Transit::NotSeen => self.counters.not_seen += 1,
            Transit::Unknown => self.counters.unknown += 1,
        }
        let bits = if data == self.radio.towards() {
            // The first agent that this ACK meets: no bit in it was set by another.
            match (transit, second) {
                (Transit::Seen, false) => OB,
                (Transit::Seen, true) => DB,
                (Transit::NotSeen | Transit::Unknown, _) => 0,
            }
        } else {
            let ob = if transit == Transit::NotSeen { 0 } else { OB };
            let no_other =
                self.flows.find(key).and_then(|flow| flow.half(direction)).is_some_and(|half| !half.second);
            ob | if no_other { 0 } else { segment.flags & DB }
        };
        Writing {
            flags: segment.flags & !(OB | DB) | bits,
            mark: Mark::Transit { ob: bits & OB != 0, db: bits & DB != 0 },
        }
    }

    /// Whether the octet has gone past, and whether another agent, nearer to its sender, answers that, too.
    fn asked_for(&mut self, key: Key, data: Direction, ack: u32) -> (Transit, bool) {
        let Some(flow) = self.flows.find(key) else { return (Transit::Unknown, false) };
        let Some(half) = flow.half_mut(data) else { return (Transit::Unknown, false) };
        if half.transited.acknowledge(ack).is_err() {
            flow.give_up(data);
            self.counters.given_up += 1;
            return (Transit::Unknown, false);
        }
        (half.transited.has(ack), half.second)
    }
}
