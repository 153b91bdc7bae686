//! The transit agent of P4 (Chandra, Harris, Shenoy, "TCP performance for future IP-based wireless networks",
//! §III).
//!
//! The agent remembers the sequence numbers of passing segments. On every ACK it reports to the sender
//! whether the next expected byte, the one with the acknowledgment number, has passed the station. It
//! uses two of the three reserved bits of the TCP header:
//!
//! ```text
//!   0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15
//! +---------------+---+---+---+---+---+---+---+---+---+---+---+---+
//! |  data offset  | Ob| Db| - | AE|CWR|ECE|URG|ACK|PSH|RST|SYN|FIN|
//! +---------------+---+---+---+---+---+---+---+---+---+---+---+---+
//! ```
//!
//! Receivers must ignore these bits (RFC 9293 §3.1). Unmodified kernels do, and Linux also masks them out of
//! its header prediction. The agent does not change `AE`, which RFC 9768 uses, or the neighbouring bit, which
//! will be assigned next.
//!
//! **On a SYN, with or without an ACK,** the receiver does not ask for data yet. Here the bits show which
//! agents are on the path, from the point of view of the host that reads the SYN. `Ob` means that a base
//! station serves the reader (the origin of the reader's data), and `Db` that one serves the sender of the
//! SYN. The reader then knows the path of its own data ([`RadioPath`](airwire::marks::RadioPath)). Choice: in
//! the paper, the sender knows its row of Table 1 "after the handshake process" (§III D), but the paper does
//! not say how.
//!
//! **On any other ACK,** the agent of a single station writes `Ob` (D.2, D.3). With two stations, the one
//! that serves the data sender writes `Ob`, and the one that serves the receiver writes `Db` (D.4). Choice:
//! the agent at the receiver's end learns about the other one from the SYN of the data sender, which the
//! other agent has passed before and marked with `Db`. The only setting that a station needs is the side of
//! its radio link. All ACKs carry the marks, including duplicate ACKs, ACKs with SACK blocks and ACKs with
//! payload.
//!
//! **If the agent does not know the byte,** its answer makes the sender attribute the loss to congestion:
//! "passed" for data from the radio link, "not passed" for data to the radio link. The sender then
//! behaves like Reno. The agent never errs in the other direction. (Choice: the paper's agent knows
//! everything.)
//!
//! **Connections in progress.** All of this is a Choice: the paper's mobile "stays in one cell during the
//! lifetime of the connection" (§IV), and its agent is always present. Here an agent may join later: after a
//! handover to its station, after a restart, or because its table was full. It learns the connection from one
//! segment of each side, if each segment acknowledges approximately what the other side sends:
//!
//! - *Sequence numbers* are taken from the two segments. The *direction* of each half is the side from which
//!   it arrives. The station's own setting shows whether that side is the radio link.
//! - *The role* (single agent, or second of two) was on the SYN. Until another SYN shows it, the agent sets
//!   both bits for bytes that have passed to the radio link. With a single agent, the sender reads only `Ob`.
//!   With two agents, the second one may write anything into `Ob`, because the first one overwrites it.
//! - *For data to the radio link*, the answer "passed" indicates the radio link. The agent can give it from
//!   the first passing byte on.
//! - *For data from the radio link*, the answer "**not** passed" indicates the radio link. Bytes that were in
//!   flight when the agent joined may have passed another agent. A connection has at most `max_flight` bytes
//!   in flight ([`Reach`]). The agent therefore gives this answer only for bytes more than `max_flight` above
//!   the acknowledgment number at the time when it joined.
//! - The same applies when the receiver acknowledges bytes that have not passed this station although later
//!   bytes have.
//!
//! **Forged segments.** An off-path attacker can forge segments of one side of a connection, but has to guess
//! the numbers. The effect is bounded:
//!
//! - The agent accepts a segment if both numbers are within reach of the known ones. With a reach of 1 MB,
//!   one guess in four million succeeds. Other segments with any flags change nothing, and the agent answers
//!   them as unknown. Resets never change anything, and a SYN changes nothing without its answer.
//! - After a successful guess, the agent takes bytes for passed that have not passed, or answers "unknown"
//!   for the data in flight. It cannot make the agent forget the connection.
//! - An attacker who forges one side only cannot make the agent learn a connection, and cannot displace one
//!   ([`Flows`]).
//!
//! An attacker who forges segments of both sides, on both sides of the station, can mislead the agent until
//! it has learned the connection again. An attacker who reads the packets can get any mark, but could also
//! end the connection or insert data. The agent does not verify checksums, because that would cost more than
//! the rest of its work.
//!
//! Choice: as in the paper, the agent records sequence numbers and not transmissions. If the first
//! transmission has passed and a retransmission is lost before the station, the agent reports that loss as
//! one after the station.

use std::num::NonZeroU32;

use airwire::marks::{DB, OB};
use airwire::rewrite::TcpInPacket;
use airwire::segment::Flags;
use airwire::units::Size;
use airwire::view::TcpHeader;
use serde::Serialize;

use super::Side;
use super::flow::{Knowledge, OtherAgent, Relation, SegmentNumbers, Syn};
use super::flow_table::{Flows, Key};
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
    /// ACKs whose next expected byte has passed, has not passed, or is unknown to the agent.
    pub(super) seen: u64,
    pub(super) not_seen: u64,
    pub(super) unknown: u64,
    /// Segments whose numbers are out of reach of all known numbers of their connection.
    pub(super) out_of_range: u64,
    /// Connections that the agent learned while they were in progress.
    pub(super) learned_without_handshake: u64,
    /// ACKs of bytes that did not pass this station although later ones did.
    pub(super) bypassed: u64,
}

/// The new flags of a segment, and the mark to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rewrite {
    pub(super) flags: Flags,
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

    /// Replaces the agent by one that does not know any connection. The counters continue.
    pub(super) fn forget(&mut self) {
        self.flows = Flows::new(self.max_flows);
    }

    /// Handles a passing segment. Returns the change to its flags, if any.
    pub(super) fn pass(&mut self, segment: &TcpInPacket, direction: Direction) -> Option<Rewrite> {
        // The numbers of a reset need not fit the connection. Receivers drop segments with neither SYN nor
        // ACK (RFC 9293 §3.10.7.4, fifth).
        let TcpHeader { seq, ack, flags, .. } = *segment.header();
        if flags.contains(Flags::RST) || !flags.intersects(Flags::SYN.with(Flags::ACK)) {
            return None;
        }
        let slot = self.flows.find_or_insert(Key::of(segment, direction));
        if flags.contains(Flags::SYN) {
            let syn = self.read_syn(segment, direction);
            let flow = &mut self.flows[slot];
            if flags.contains(Flags::ACK) {
                flow.syn_ack(direction, syn, ack.0, self.reach);
            } else {
                flow.syn(direction, syn);
            }
            self.counters.announced += 1;
            // A SYN that comes straight from the radio link has not met another agent.
            let flags = if self.comes_from_radio(direction) { flags.0 & !OB | DB } else { flags.0 | OB };
            return Some(Rewrite { flags: Flags(flags), mark: Mark::Announced });
        }
        let numbers = SegmentNumbers { seq: seq.0, octets: sequence_length(segment), ack: ack.0 };
        let (relation, knowledge) = self.flows[slot].pass(direction, numbers, self.reach);
        match relation {
            Relation::Known | Relation::Unconfirmed => {}
            Relation::Bypassed => self.counters.bypassed += 1,
            Relation::Learned => self.counters.learned_without_handshake += 1,
            Relation::OutOfReach => self.counters.out_of_range += 1,
        }
        self.flows.update_state(slot);
        Some(self.rewrite(knowledge, flags.0, direction))
    }

    fn comes_from_radio(&self, direction: Direction) -> bool {
        direction != self.radio.towards()
    }

    fn read_syn(&self, segment: &TcpInPacket, direction: Direction) -> Syn {
        let other = if self.comes_from_radio(direction) {
            OtherAgent::Unknown
        } else if segment.header().flags.contains(Flags(DB)) {
            OtherAgent::Present
        } else {
            OtherAgent::Absent
        };
        Syn { isn: segment.header().seq.0, octets: sequence_length(segment), other }
    }

    /// Handles the first fragment of a segment. The length of the segment is unknown.
    pub(super) fn pass_fragment(&mut self, fragment: &TcpInPacket, direction: Direction) {
        const LONGEST: u32 = 65_535;
        let TcpHeader { seq, ack, flags, .. } = *fragment.header();
        if flags.intersects(Flags::SYN.with(Flags::RST)) || !flags.contains(Flags::ACK) {
            return;
        }
        let Some(slot) = self.flows.find(Key::of(fragment, direction)) else { return };
        let numbers = SegmentNumbers { seq: seq.0, octets: LONGEST, ack: ack.0 };
        if !self.flows[slot].pass_first_fragment(direction, numbers) {
            self.counters.out_of_range += 1;
        }
    }

    /// Returns the new bits of an ACK in this direction.
    fn rewrite(
        &mut self,
        Knowledge { transit, other }: Knowledge,
        flags: u16,
        direction: Direction,
    ) -> Rewrite {
        match transit {
            Transit::Passed => self.counters.seen += 1,
            Transit::NotPassed => self.counters.not_seen += 1,
            Transit::Unknown => self.counters.unknown += 1,
        }
        let bits = if self.comes_from_radio(direction) {
            // The data flows to the radio link. This agent is the first one that the ACK meets, so no other
            // agent has set bits.
            match (transit, other) {
                (Transit::Passed, OtherAgent::Absent) => OB,
                (Transit::Passed, OtherAgent::Present) => DB,
                (Transit::Passed, OtherAgent::Unknown) => OB | DB,
                (Transit::NotPassed | Transit::Unknown, _) => 0,
            }
        } else {
            let ob = if transit == Transit::NotPassed { 0 } else { OB };
            ob | if other == OtherAgent::Absent { 0 } else { flags & DB }
        };
        Rewrite {
            flags: Flags(flags & !(OB | DB) | bits),
            mark: Mark::Transit { ob: bits & OB != 0, db: bits & DB != 0 },
        }
    }
}

/// Returns the length of payload and FIN in sequence numbers. A SYN is not counted.
fn sequence_length(segment: &TcpInPacket) -> u32 {
    segment.payload_len() as u32 + u32::from(segment.header().flags.contains(Flags::FIN))
}
