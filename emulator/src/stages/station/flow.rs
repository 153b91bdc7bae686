//! The state of one connection in a transit agent, and the evidence for this state.
//!
//! Segments of one side alone never move this state by more than a connection can have in flight. A
//! connection becomes known in one of two ways: by a SYN and its answer or, in mid-connection, by a segment
//! of each side that acknowledges approximately the data of the other side.

use super::ranges::{Bypassed, PassedRanges, Reach, Transit};
use crate::packet::{Direction, PerDirection};

/// A connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// The state that both sides have confirmed. `None`: nothing is confirmed.
    record: Option<Record>,
    /// SYNs without an answer. A SYN may open this connection or another one between the same endpoints, or
    /// it may be an old duplicate without meaning (RFC 9293 §3.5). The answer decides.
    pending: PerDirection<Option<Syn>>,
    /// The last data of each side that does not fit the record.
    unconfirmed: PerDirection<Option<UnconfirmedRange>>,
}

/// The confirmed state of a connection.
#[derive(Clone, Debug)]
struct Record {
    /// The data of each direction.
    halves: PerDirection<Half>,
    other: OtherAgent,
    /// The direction in which the side that opened the connection sends, until this side acknowledges the
    /// answer to its SYN. Before that, the SYN may be forged.
    unacknowledged: Option<Direction>,
}

#[derive(Clone, Debug)]
struct Half {
    /// The initial sequence number. `None`: the SYN passed before the agent was present.
    isn: Option<u32>,
    passed: PassedRanges,
}

/// Whether there is another agent at the far end of the fixed network, with a radio link of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherAgent {
    Absent,
    Present,
    /// The SYN that would have shown it did not pass this agent.
    Unknown,
}

/// The fields of a SYN, with or without an ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syn {
    pub(super) isn: u32,
    /// Length of the SYN's payload in bytes (RFC 7413).
    pub(super) octets: u32,
    /// `Unknown` on a SYN from the radio link, because it has not met other agents yet.
    pub(super) other: OtherAgent,
}

/// The fields of any other segment, always with an acknowledgment number.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentNumbers {
    pub(super) seq: u32,
    pub(super) octets: u32,
    pub(super) ack: u32,
}

/// A contiguous range of sequence numbers that one side has sent, and its last acknowledgment number.
#[derive(Clone, Copy, Debug)]
struct UnconfirmedRange {
    first: u32,
    end: u32,
    ack: u32,
}

/// The relation of a segment to the known state of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The segment fits the known state.
    Known,
    /// The segment fits the known state, but the receiver has bytes that did not pass this station.
    Bypassed,
    /// The segment confirms the data of the other side, so the connection becomes known.
    Learned,
    /// The segment does not fit the known state.
    OutOfReach,
    /// The connection is not known, and the segment does not confirm the data of the other side.
    Unconfirmed,
}

/// The agent's knowledge about the next byte that the sender of an ACK expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Knowledge {
    pub(super) transit: Transit,
    pub(super) other: OtherAgent,
}

impl Half {
    fn new(syn: Syn, reach: Reach) -> Self {
        Self { isn: Some(syn.isn), passed: PassedRanges::new(syn.first(), syn.octets, reach) }
    }

    fn mid_connection(ack: u32, reach: Reach) -> Self {
        Self { isn: None, passed: PassedRanges::mid_connection(ack, reach) }
    }

    fn began_with(&self, syn: Syn) -> bool {
        self.isn == Some(syn.isn)
    }

    fn record(&mut self, seq: u32, octets: u32) {
        // When the connection is far past its SYN, a retransmitted SYN is out of reach and adds nothing.
        if let Ok(offset) = self.passed.locate(seq) {
            self.passed.record(offset, octets);
        }
    }
}

impl Syn {
    fn first(self) -> u32 {
        self.isn.wrapping_add(1)
    }
}

impl UnconfirmedRange {
    fn new(numbers: SegmentNumbers) -> Self {
        Self { first: numbers.seq, end: numbers.seq.wrapping_add(numbers.octets), ack: numbers.ack }
    }

    /// Adds the next segment of the same side: extends the range or starts a new one.
    fn followed_by(self, numbers: SegmentNumbers, reach: Reach) -> Self {
        let (length, offset) = (self.end.wrapping_sub(self.first), numbers.seq.wrapping_sub(self.first));
        if offset > length || length > reach.octets() || !reach.spans(numbers.ack, self.ack) {
            return Self::new(numbers);
        }
        let end = self.first.wrapping_add(length.max(offset.saturating_add(numbers.octets)));
        Self { end, ack: numbers.ack, ..self }
    }

    /// Returns whether the other side acknowledges data close to this range, and sends data close to what
    /// this side acknowledges.
    fn is_confirmed_by(self, numbers: SegmentNumbers, reach: Reach) -> bool {
        reach.spans(numbers.ack, self.end) && reach.spans(numbers.seq, self.ack)
    }
}

/// Returns a pair with `this` for this direction and `back` for the opposite one.
fn by_direction<T>(direction: Direction, this: T, back: T) -> PerDirection<T> {
    match direction {
        Direction::Down => PerDirection { down: this, up: back },
        Direction::Up => PerDirection { down: back, up: this },
    }
}

impl Record {
    /// Creates a record from the data of one side and the segment of the other side that confirms it.
    ///
    /// Choice: the paper's agent is present from the first packet. An agent that joins later takes the
    /// sequence numbers from the two sides, and the direction of each half from the side from which it
    /// arrives. It does not know whether there is another agent.
    fn mid_connection(
        range: UnconfirmedRange,
        direction: Direction,
        numbers: SegmentNumbers,
        reach: Reach,
    ) -> Self {
        let mut this = Half::mid_connection(range.ack, reach);
        this.record(numbers.seq, numbers.octets);
        let mut back = Half::mid_connection(numbers.ack, reach);
        back.record(range.first, range.end.wrapping_sub(range.first));
        Self { halves: by_direction(direction, this, back), other: OtherAgent::Unknown, unacknowledged: None }
    }

    /// Handles the retransmission of a known SYN.
    fn repeat_syn(&mut self, direction: Direction, syn: Syn) {
        self.halves[direction].record(syn.first(), syn.octets);
        if syn.other != OtherAgent::Unknown {
            self.other = syn.other;
        }
    }
}

impl Flow {
    /// Handles a passing SYN without an ACK.
    pub(super) fn syn(&mut self, direction: Direction, syn: Syn) {
        match &mut self.record {
            Some(record) if record.halves[direction].began_with(syn) => record.repeat_syn(direction, syn),
            _ => self.pending[direction] = Some(syn),
        }
    }

    /// Handles a passing SYN with an ACK.
    pub(super) fn syn_ack(&mut self, direction: Direction, syn: Syn, ack: u32, reach: Reach) {
        let back = direction.reversed();
        if let Some(confirmed) = self.pending[back].take_if(|pending| pending.first() == ack) {
            let this = match self.record.take() {
                // Simultaneous open: the SYN of this side was confirmed earlier.
                Some(Record { halves, .. }) if halves[direction].began_with(syn) => {
                    let PerDirection { down, up } = halves;
                    let mut half = if direction == Direction::Down { down } else { up };
                    half.record(syn.first(), syn.octets);
                    half
                }
                _ => Half::new(syn, reach),
            };
            let other = if syn.other == OtherAgent::Unknown { confirmed.other } else { syn.other };
            let halves = by_direction(direction, this, Half::new(confirmed, reach));
            *self = Self {
                record: Some(Record { halves, other, unacknowledged: Some(back) }),
                ..Self::default()
            };
        } else if let Some(record) = &mut self.record
            && record.halves[back].isn == Some(ack.wrapping_sub(1))
        {
            if record.halves[direction].began_with(syn) {
                record.repeat_syn(direction, syn);
            } else if record.unacknowledged.is_some() {
                // Two different answers to one SYN, both not acknowledged: either may be the valid one.
                self.record = None;
            }
        }
    }

    /// Handles any other passing segment with an ACK.
    pub(super) fn pass(
        &mut self,
        direction: Direction,
        numbers: SegmentNumbers,
        reach: Reach,
    ) -> (Relation, Knowledge) {
        let back = direction.reversed();
        if let Some(record) = &mut self.record {
            let sent = record.halves[direction].passed.locate(numbers.seq);
            let expected = record.halves[back].passed.locate(numbers.ack);
            if let (Ok(sent), Ok(expected)) = (sent, expected) {
                record.halves[direction].passed.record(sent, numbers.octets);
                record.unacknowledged.take_if(|initiator| *initiator == direction);
                let data = &mut record.halves[back].passed;
                let relation = match data.acknowledge(expected) {
                    Ok(()) => Relation::Known,
                    Err(Bypassed) => Relation::Bypassed,
                };
                return (relation, Knowledge { transit: data.has(expected), other: record.other });
            }
        }
        if let Some(range) = self.unconfirmed[back].filter(|range| range.is_confirmed_by(numbers, reach)) {
            let record = self.record.insert(Record::mid_connection(range, direction, numbers, reach));
            self.unconfirmed = PerDirection::default();
            let data = &record.halves[back].passed;
            let transit = data.locate(numbers.ack).map_or(Transit::Unknown, |expected| data.has(expected));
            return (Relation::Learned, Knowledge { transit, other: record.other });
        }
        let range = &mut self.unconfirmed[direction];
        *range =
            Some(range.map_or(UnconfirmedRange::new(numbers), |range| range.followed_by(numbers, reach)));
        let (relation, other) = match &self.record {
            Some(record) => (Relation::OutOfReach, record.other),
            None => (Relation::Unconfirmed, OtherAgent::Unknown),
        };
        (relation, Knowledge { transit: Transit::Unknown, other })
    }

    /// Handles the first fragment of a segment that has at most `numbers.octets` bytes. Returns `false` if it
    /// does not fit the known state.
    pub(super) fn pass_first_fragment(&mut self, direction: Direction, numbers: SegmentNumbers) -> bool {
        let Some(record) = &mut self.record else { return true };
        let known = record.halves[direction.reversed()].passed.locate(numbers.ack).is_ok();
        let half = &mut record.halves[direction].passed;
        match half.locate(numbers.seq) {
            Ok(offset) if known => {
                half.mark_unknown(offset, numbers.octets);
                true
            }
            _ => false,
        }
    }

    /// Returns whether both sides have confirmed the connection and the side that opened it has acknowledged
    /// the answer to its SYN.
    pub(super) fn is_live(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.unacknowledged.is_none())
    }

    /// Returns the size of the heap memory in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        let halves = self.record.iter().flat_map(|record| record.halves.iter());
        halves.map(|(_, half)| half.passed.heap_bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use Direction::{Down, Up};

    use super::*;

    fn reach() -> Reach {
        Reach::new(airwire::units::Size::bytes(1_000_000))
    }

    fn syn(isn: u32) -> Syn {
        Syn { isn, octets: 0, other: OtherAgent::Absent }
    }

    /// Passes a segment. Returns its relation to the known state, and whether the next expected byte passed.
    fn pass(flow: &mut Flow, direction: Direction, seq: u32, octets: u32, ack: u32) -> (Relation, Transit) {
        let (relation, knowledge) = flow.pass(direction, SegmentNumbers { seq, octets, ack }, reach());
        (relation, knowledge.transit)
    }

    fn answer(flow: &mut Flow, direction: Direction, isn: u32, ack: u32) {
        flow.syn_ack(direction, syn(isn), ack, reach());
    }

    fn isns(flow: &Flow) -> [Option<u32>; 2] {
        [Down, Up].map(|direction| flow.record.as_ref().and_then(|record| record.halves[direction].isn))
    }

    /// Returns a flow after a SYN and its answer.
    fn answered() -> Flow {
        let mut flow = Flow::default();
        flow.syn(Down, syn(100));
        answer(&mut flow, Up, 900, 101);
        flow
    }

    #[test]
    fn handshake_starts_both_halves_only_once() {
        let mut flow = Flow::default();
        flow.syn(Down, syn(100));
        assert_eq!(isns(&flow), [None, None], "a SYN alone may be an old duplicate");
        answer(&mut flow, Up, 900, 101);
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
        assert!(!flow.is_live(), "the SYN-ACK may be the answer to a forged SYN");
        pass(&mut flow, Down, 101, 50, 901);
        assert!(flow.is_live());
        flow.syn(Down, syn(100));
        answer(&mut flow, Up, 900, 101);
        assert_eq!(pass(&mut flow, Up, 901, 0, 120), (Relation::Known, Transit::Passed));
        assert_eq!(flow.record.unwrap().other, OtherAgent::Absent);
    }

    /// A repeated SYN from the radio link does not show whether there is another agent.
    #[test]
    fn repeated_syn_updates_other_agent_unless_unknown() {
        let mut flow = answered();
        pass(&mut flow, Down, 101, 50, 901);
        let mut other = |other| {
            flow.syn(Down, Syn { other, ..syn(100) });
            let (relation, knowledge) =
                flow.pass(Up, SegmentNumbers { seq: 901, octets: 0, ack: 120 }, reach());
            assert_eq!(relation, Relation::Known);
            knowledge.other
        };
        assert_eq!(other(OtherAgent::Present), OtherAgent::Present);
        assert_eq!(other(OtherAgent::Unknown), OtherAgent::Present);
        assert_eq!(other(OtherAgent::Absent), OtherAgent::Absent);
    }

    #[test]
    fn simultaneous_open_starts_both_halves() {
        let mut flow = Flow::default();
        flow.syn(Down, syn(100));
        flow.syn(Up, syn(900));
        answer(&mut flow, Up, 900, 101);
        answer(&mut flow, Down, 100, 901);
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
    }

    #[test]
    fn new_connection_replaces_flow_at_its_syn_ack() {
        let mut flow = answered();
        flow.syn(Down, syn(70_000));
        assert_eq!(isns(&flow), [Some(100), Some(900)], "the SYN may be an old duplicate");
        answer(&mut flow, Up, 80_000, 70_001);
        assert_eq!(isns(&flow), [Some(70_000), Some(80_000)]);
    }

    #[test]
    fn old_duplicate_syn_ack_changes_nothing() {
        let mut flow = answered();
        answer(&mut flow, Up, 5, 6);
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
    }

    #[test]
    fn conflicting_syn_acks_clear_flow_unless_acknowledged() {
        let mut flow = answered();
        answer(&mut flow, Up, 5_000_000, 101);
        assert_eq!(isns(&flow), [None, None], "either SYN-ACK may be the valid one");
        let mut flow = answered();
        pass(&mut flow, Down, 101, 0, 901);
        answer(&mut flow, Up, 5_000_000, 101);
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
    }

    #[test]
    fn syn_ack_without_syn_starts_no_flow() {
        let mut flow = Flow::default();
        answer(&mut flow, Up, 900, 101);
        assert_eq!(isns(&flow), [None, None]);
    }

    #[test]
    fn mid_connection_flow_needs_confirmation_from_both_sides() {
        let mut flow = Flow::default();
        for (case, direction, [seq, octets, ack]) in [
            ("the other side has not sent anything", Down, [7000, 1000, 500]),
            ("the ACK is far from the data of the other side", Up, [500, 0, 40_000_000]),
            ("the sequence number is far from the ACK of the other side", Up, [9_000_500, 0, 7000]),
        ] {
            let unconfirmed = (Relation::Unconfirmed, Transit::Unknown);
            assert_eq!(pass(&mut flow, direction, seq, octets, ack), unconfirmed, "{case}");
        }
        assert_eq!(pass(&mut flow, Up, 500, 0, 7000), (Relation::Learned, Transit::Passed));
        assert!(flow.is_live());
        let (relation, knowledge) = flow.pass(Up, SegmentNumbers { seq: 500, octets: 0, ack: 7999 }, reach());
        assert_eq!(relation, Relation::Known);
        assert_eq!(knowledge, Knowledge { transit: Transit::Passed, other: OtherAgent::Unknown });
    }

    /// The connection has advanced by 10 MB without the agent.
    #[test]
    fn advanced_connection_is_learned_at_new_position() {
        let mut flow = answered();
        pass(&mut flow, Down, 101, 1000, 901);
        let out_of_reach = (Relation::OutOfReach, Transit::Unknown);
        assert_eq!(pass(&mut flow, Down, 10_000_000, 1000, 901), out_of_reach);
        assert_eq!(flow.record.as_ref().unwrap().other, OtherAgent::Absent);
        assert_eq!(pass(&mut flow, Up, 901, 0, 10_000_000), (Relation::Learned, Transit::Passed));
        assert_eq!(pass(&mut flow, Down, 101, 1000, 901), out_of_reach);
        assert_eq!(flow.record.as_ref().unwrap().other, OtherAgent::Unknown);
    }

    #[test]
    fn learning_handles_sequence_number_wrap() {
        let mut flow = Flow::default();
        let first = u32::MAX - 500;
        for segment in 0..3 {
            pass(&mut flow, Down, first.wrapping_add(segment * 1000), 1000, u32::MAX);
        }
        let learned = pass(&mut flow, Up, u32::MAX, 10, first.wrapping_add(1000));
        assert_eq!(learned, (Relation::Learned, Transit::Passed));
        assert_eq!(pass(&mut flow, Up, 9, 0, first.wrapping_add(2999)), (Relation::Known, Transit::Passed));
    }
}
