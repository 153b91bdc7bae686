//! The state of one connection in a transit agent, and the evidence for it.
//!
//! Claims of one side alone never move this state by more than can be in flight. A connection becomes known
//! in one of two ways, and in both each side confirms the other's numbers: by a SYN and its answer or, in
//! mid-connection, by a segment of each side that acknowledges approximately what the other one sends.

use super::ranges::{Elsewhere, Reach, Transit, Transited};
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
    glimpses: PerDirection<Option<Glimpse>>,
}

/// The confirmed state of a connection.
#[derive(Clone, Debug)]
struct Record {
    /// The data of each direction.
    halves: PerDirection<Half>,
    other: Other,
    /// The direction in which the side that opened the connection sends, until this side acknowledges the
    /// answer to its SYN. Before that, the answer may be to a forged SYN.
    awaited: Option<Direction>,
}

#[derive(Clone, Debug)]
struct Half {
    /// The initial sequence number. `None`: the SYN passed before the agent was present.
    isn: Option<u32>,
    transited: Transited,
}

/// Whether there is another agent at the far end of the fixed network, with a radio link of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
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
    /// `Unknown` on a SYN that comes from the radio link, because it has not met other agents yet.
    pub(super) other: Other,
}

/// The fields of any other segment. All of them have an acknowledgment number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub(super) seq: u32,
    pub(super) octets: u32,
    pub(super) ack: u32,
}

/// A contiguous range of sequence numbers that one side has sent, and its last acknowledgment number.
#[derive(Clone, Copy, Debug)]
struct Glimpse {
    first: u32,
    end: u32,
    ack: u32,
}

/// The relation of a segment to the known state of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// The segment fits the known state.
    Known(Answer),
    /// The segment fits the known state, but the receiver has bytes that did not pass this station.
    Elsewhere(Answer),
    /// The segment confirms the data of the other side, so the connection is known from now on.
    Learned(Answer),
    /// The segment does not fit the known state.
    Astray(Other),
    /// Nothing is known yet with which the segment could be compared.
    Stranger,
}

/// The agent's knowledge about the byte that an ACK asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) transit: Transit,
    pub(super) other: Other,
}

impl Half {
    fn new(syn: Syn, reach: Reach) -> Self {
        Self { isn: Some(syn.isn), transited: Transited::new(syn.first(), syn.octets, reach) }
    }

    fn under_way(ack: u32, reach: Reach) -> Self {
        Self { isn: None, transited: Transited::under_way(ack, reach) }
    }

    fn began_with(&self, syn: Syn) -> bool {
        self.isn == Some(syn.isn)
    }

    fn record(&mut self, seq: u32, octets: u32) {
        // When the connection is far past its SYN, a retransmitted SYN is out of reach and adds nothing.
        if let Ok(offset) = self.transited.locate(seq) {
            self.transited.record(offset, octets);
        }
    }
}

impl Syn {
    fn first(self) -> u32 {
        self.isn.wrapping_add(1)
    }
}

impl Glimpse {
    fn new(said: Said) -> Self {
        Self { first: said.seq, end: said.seq.wrapping_add(said.octets), ack: said.ack }
    }

    /// Adds the next segment of the same side: extends the range or starts a new one.
    fn followed_by(self, said: Said, reach: Reach) -> Self {
        let (row, into) = (self.end.wrapping_sub(self.first), said.seq.wrapping_sub(self.first));
        if into > row || row > reach.octets() || !reach.spans(said.ack, self.ack) {
            return Self::new(said);
        }
        let end = self.first.wrapping_add(row.max(into.saturating_add(said.octets)));
        Self { end, ack: said.ack, ..self }
    }

    /// Returns whether the other side acknowledges data close to this range, and sends data close to what
    /// this side acknowledges.
    fn is_borne_out_by(self, said: Said, reach: Reach) -> bool {
        reach.spans(said.ack, self.end) && reach.spans(said.seq, self.ack)
    }
}

/// Returns a pair with `one` for this direction and `back` for the opposite one.
fn facing<T>(direction: Direction, one: T, back: T) -> PerDirection<T> {
    match direction {
        Direction::Down => PerDirection { down: one, up: back },
        Direction::Up => PerDirection { down: back, up: one },
    }
}

impl Record {
    /// Creates a record from the data of one side and the segment of the other side that confirms it.
    ///
    /// Choice: the paper's agent is present from the first packet. An agent that joins later takes the
    /// sequence numbers from the two sides, and the direction of each half from the side from which it
    /// arrives. It does not know whether there is another agent.
    fn under_way(glimpse: Glimpse, direction: Direction, said: Said, reach: Reach) -> Self {
        let mut this = Half::under_way(glimpse.ack, reach);
        this.record(said.seq, said.octets);
        let mut back = Half::under_way(said.ack, reach);
        back.record(glimpse.first, glimpse.end.wrapping_sub(glimpse.first));
        Self { halves: facing(direction, this, back), other: Other::Unknown, awaited: None }
    }

    /// Handles the retransmission of a known SYN.
    fn again(&mut self, direction: Direction, syn: Syn) {
        self.halves[direction].record(syn.first(), syn.octets);
        if syn.other != Other::Unknown {
            self.other = syn.other;
        }
    }
}

impl Flow {
    /// Handles a passing SYN without an ACK.
    pub(super) fn syn(&mut self, direction: Direction, syn: Syn) {
        match &mut self.record {
            Some(record) if record.halves[direction].began_with(syn) => record.again(direction, syn),
            _ => self.pending[direction] = Some(syn),
        }
    }

    /// Handles a passing SYN with an ACK.
    pub(super) fn syn_ack(&mut self, direction: Direction, syn: Syn, ack: u32, reach: Reach) {
        let asker = direction.reversed();
        if let Some(confirmed) = self.pending[asker].take_if(|pending| pending.first() == ack) {
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
            let other = if syn.other == Other::Unknown { confirmed.other } else { syn.other };
            let halves = facing(direction, this, Half::new(confirmed, reach));
            *self = Self { record: Some(Record { halves, other, awaited: Some(asker) }), ..Self::default() };
        } else if let Some(record) = &mut self.record
            && record.halves[asker].isn == Some(ack.wrapping_sub(1))
        {
            if record.halves[direction].began_with(syn) {
                record.again(direction, syn);
            } else if record.awaited.is_some() {
                // Two different answers to one SYN, neither of them acknowledged: either one may be the valid
                // one.
                self.record = None;
            }
        }
    }

    /// Handles any other passing segment with an ACK.
    pub(super) fn pass(&mut self, direction: Direction, said: Said, reach: Reach) -> Passed {
        let back = direction.reversed();
        if let Some(record) = &mut self.record {
            let sent = record.halves[direction].transited.locate(said.seq);
            let asked = record.halves[back].transited.locate(said.ack);
            if let (Ok(sent), Ok(asked)) = (sent, asked) {
                record.halves[direction].transited.record(sent, said.octets);
                record.awaited.take_if(|initiator| *initiator == direction);
                let receiver = &mut record.halves[back].transited;
                let acknowledged = receiver.acknowledge(asked);
                let answer = Answer { transit: receiver.has(asked), other: record.other };
                return match acknowledged {
                    Ok(()) => Passed::Known(answer),
                    Err(Elsewhere) => Passed::Elsewhere(answer),
                };
            }
        }
        if let Some(glimpse) = self.glimpses[back].filter(|glimpse| glimpse.is_borne_out_by(said, reach)) {
            let record = self.record.insert(Record::under_way(glimpse, direction, said, reach));
            self.glimpses = PerDirection::default();
            let receiver = &record.halves[back].transited;
            let transit = receiver.locate(said.ack).map_or(Transit::Unknown, |asked| receiver.has(asked));
            return Passed::Learned(Answer { transit, other: record.other });
        }
        let glimpse = &mut self.glimpses[direction];
        *glimpse = Some(glimpse.map_or(Glimpse::new(said), |glimpse| glimpse.followed_by(said, reach)));
        match &self.record {
            Some(record) => Passed::Astray(record.other),
            None => Passed::Stranger,
        }
    }

    /// Handles the first fragment of a segment that has at most `said.octets` bytes. Returns `false` if it
    /// does not fit the known state.
    pub(super) fn pass_head(&mut self, direction: Direction, said: Said) -> bool {
        let Some(record) = &mut self.record else { return true };
        let known = record.halves[direction.reversed()].transited.locate(said.ack).is_ok();
        let half = &mut record.halves[direction].transited;
        match half.locate(said.seq) {
            Ok(offset) if known => {
                half.blur(offset, said.octets);
                true
            }
            _ => false,
        }
    }

    /// Returns whether both sides have confirmed the connection and the side that opened it has acknowledged
    /// the answer to its SYN.
    pub(super) fn is_live(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.awaited.is_none())
    }

    /// Returns the size of the heap memory in bytes.
    pub(super) fn heap(&self) -> usize {
        let halves = self.record.iter().flat_map(|record| record.halves.iter());
        halves.map(|(_, half)| half.transited.heap()).sum()
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
        Syn { isn, octets: 0, other: Other::Absent }
    }

    fn said(seq: u32, octets: u32, ack: u32) -> Said {
        Said { seq, octets, ack }
    }

    fn isns(flow: &Flow) -> [Option<u32>; 2] {
        [Down, Up].map(|direction| flow.record.as_ref().and_then(|record| record.halves[direction].isn))
    }

    /// Returns a flow after a SYN and its answer.
    fn answered() -> Flow {
        let mut flow = Flow::default();
        flow.syn(Down, syn(100));
        flow.syn_ack(Up, syn(900), 101, reach());
        flow
    }

    #[test]
    fn handshake_starts_both_halves_only_once() {
        let mut flow = Flow::default();
        flow.syn(Down, syn(100));
        assert_eq!(isns(&flow), [None, None], "a SYN alone may be an old duplicate");
        flow.syn_ack(Up, syn(900), 101, reach());
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
        assert!(!flow.is_live(), "the SYN-ACK may be the answer to a forged SYN");
        flow.pass(Down, said(101, 50, 901), reach());
        assert!(flow.is_live());
        flow.syn(Down, syn(100));
        flow.syn_ack(Up, syn(900), 101, reach());
        let seen = Answer { transit: Transit::Seen, other: Other::Absent };
        assert_eq!(flow.pass(Up, said(901, 0, 120), reach()), Passed::Known(seen));
    }

    /// A repeated SYN that comes from the radio link does not show whether there is another agent.
    #[test]
    fn repeated_syn_updates_other_agent_unless_unknown() {
        let mut flow = answered();
        flow.pass(Down, said(101, 50, 901), reach());
        let mut other = |seen| {
            flow.syn(Down, Syn { other: seen, ..syn(100) });
            match flow.pass(Up, said(901, 0, 120), reach()) {
                Passed::Known(answer) => answer.other,
                passed => panic!("{passed:?}"),
            }
        };
        assert_eq!(other(Other::Present), Other::Present);
        assert_eq!(other(Other::Unknown), Other::Present);
        assert_eq!(other(Other::Absent), Other::Absent);
    }

    #[test]
    fn simultaneous_open_starts_both_halves() {
        let mut flow = Flow::default();
        flow.syn(Down, syn(100));
        flow.syn(Up, syn(900));
        flow.syn_ack(Up, syn(900), 101, reach());
        flow.syn_ack(Down, syn(100), 901, reach());
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
    }

    #[test]
    fn new_connection_replaces_flow_at_its_syn_ack() {
        let mut flow = answered();
        flow.syn(Down, syn(70_000));
        assert_eq!(isns(&flow), [Some(100), Some(900)], "the SYN may be an old duplicate");
        flow.syn_ack(Up, syn(80_000), 70_001, reach());
        assert_eq!(isns(&flow), [Some(70_000), Some(80_000)]);
    }

    #[test]
    fn old_duplicate_syn_ack_changes_nothing() {
        let mut flow = answered();
        flow.syn_ack(Up, syn(5), 6, reach());
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
    }

    #[test]
    fn conflicting_syn_acks_clear_flow_unless_acknowledged() {
        let mut flow = answered();
        flow.syn_ack(Up, syn(5_000_000), 101, reach());
        assert_eq!(isns(&flow), [None, None], "either SYN-ACK may be the valid one");
        let mut flow = answered();
        flow.pass(Down, said(101, 0, 901), reach());
        flow.syn_ack(Up, syn(5_000_000), 101, reach());
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
    }

    #[test]
    fn syn_ack_without_syn_starts_no_flow() {
        let mut flow = Flow::default();
        flow.syn_ack(Up, syn(900), 101, reach());
        assert_eq!(isns(&flow), [None, None]);
    }

    #[test]
    fn mid_connection_flow_needs_confirmation_from_both_sides() {
        let mut flow = Flow::default();
        assert_eq!(flow.pass(Down, said(7000, 1000, 500), reach()), Passed::Stranger);
        assert_eq!(
            flow.pass(Up, said(500, 0, 40_000_000), reach()),
            Passed::Stranger,
            "the ACK is far from the data of the other side"
        );
        assert_eq!(
            flow.pass(Up, said(9_000_500, 0, 7000), reach()),
            Passed::Stranger,
            "the sequence number is far from the ACK of the other side"
        );
        let seen = Answer { transit: Transit::Seen, other: Other::Unknown };
        assert_eq!(flow.pass(Up, said(500, 0, 7000), reach()), Passed::Learned(seen));
        assert!(flow.is_live());
        assert_eq!(flow.pass(Up, said(500, 0, 7999), reach()), Passed::Known(seen));
    }

    /// The connection has advanced by 10 MB without the agent.
    #[test]
    fn advanced_connection_is_learned_at_new_position() {
        let mut flow = answered();
        flow.pass(Down, said(101, 1000, 901), reach());
        assert_eq!(flow.pass(Down, said(10_000_000, 1000, 901), reach()), Passed::Astray(Other::Absent));
        let seen = Answer { transit: Transit::Seen, other: Other::Unknown };
        assert_eq!(flow.pass(Up, said(901, 0, 10_000_000), reach()), Passed::Learned(seen));
        assert_eq!(flow.pass(Down, said(101, 1000, 901), reach()), Passed::Astray(Other::Unknown));
    }

    #[test]
    fn learning_handles_sequence_number_wrap() {
        let mut flow = Flow::default();
        let first = u32::MAX - 500;
        for segment in 0..3 {
            flow.pass(Down, said(first.wrapping_add(segment * 1000), 1000, u32::MAX), reach());
        }
        let answer = flow.pass(Up, said(u32::MAX, 10, first.wrapping_add(1000)), reach());
        assert!(matches!(answer, Passed::Learned(Answer { transit: Transit::Seen, .. })), "{answer:?}");
        let answer = flow.pass(Up, said(9, 0, first.wrapping_add(2999)), reach());
        assert!(matches!(answer, Passed::Known(Answer { transit: Transit::Seen, .. })), "{answer:?}");
    }
}
