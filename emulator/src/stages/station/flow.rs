//! What a transit agent knows of one connection, and on whose word.
//!
//! Nothing that only one side says moves what is known by more than can be in flight. A connection becomes known in one
//! of two ways, and in both each side bears out the other's numbers: by a SYN and its answer, or, in mid-connection, by
//! a segment of each side that acknowledges about what the other one sends.

use super::ranges::{Elsewhere, Reach, Transit, Transited};
use crate::packet::{Direction, PerDirection};

/// A connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// `None`: nothing that both sides have borne out.
    record: Option<Record>,
    /// A SYN opens a connection, or another one between the same ends, or is an old duplicate that means nothing
    /// (RFC 9293 §3.5): the answer will tell.
    pending: PerDirection<Option<Syn>>,
    /// What each side has sent last that does not go on from the record.
    glimpses: PerDirection<Option<Glimpse>>,
}

/// A connection that both sides have borne out.
#[derive(Clone, Debug)]
struct Record {
    /// What each side sends.
    halves: PerDirection<Half>,
    other: Other,
    /// The side that opened the connection and has not yet acknowledged the answer. Until then the answer may be to a
    /// forged SYN.
    awaited: Option<Direction>,
}

#[derive(Clone, Debug)]
struct Half {
    /// `None`: the SYN went past before the station looked.
    isn: Option<u32>,
    transited: Transited,
}

/// Has another agent, at the far end of the fixed network, a radio link of its own?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    Absent,
    Present,
    /// Its SYN would have told.
    Unknown,
}

/// What a SYN says, with or without an ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syn {
    pub(super) isn: u32,
    /// Payload with the SYN (RFC 7413).
    pub(super) octets: u32,
    /// `Unknown` on a SYN that comes from the radio link, and so from this side of all others.
    pub(super) other: Other,
}

/// What any other segment says. All have an acknowledgment number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub(super) seq: u32,
    pub(super) octets: u32,
    pub(super) ack: u32,
}

/// Octets that one side has sent in a row, and the last acknowledgment number beside them.
#[derive(Clone, Copy, Debug)]
struct Glimpse {
    first: u32,
    end: u32,
    ack: u32,
}

/// What a segment means for what is known of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// It goes on from what was known.
    Known(Answer),
    /// The same, but the receiver has what has not gone past here.
    Elsewhere(Answer),
    /// It bears out what the other side has said: from now on the connection is known.
    Learned(Answer),
    /// It does not go on from what is known.
    Astray(Other),
    /// Nothing is known that it could go on from.
    Stranger,
}

/// What is known of the octet that an ACK asks for.
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
        // A retransmitted SYN is astray once the connection is far past it: then it adds nothing.
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

    /// The same side's next segment: a longer row, or the first of another one.
    fn followed_by(self, said: Said, reach: Reach) -> Self {
        let (row, into) = (self.end.wrapping_sub(self.first), said.seq.wrapping_sub(self.first));
        if into > row || row > reach.octets() || !reach.spans(said.ack, self.ack) {
            return Self::new(said);
        }
        let end = self.first.wrapping_add(row.max(into.saturating_add(said.octets)));
        Self { end, ack: said.ack, ..self }
    }

    /// The other side acknowledges about what this one sends, and sends about what this one acknowledges.
    fn is_borne_out_by(self, said: Said, reach: Reach) -> bool {
        reach.spans(said.ack, self.end) && reach.spans(said.seq, self.ack)
    }
}

/// `one` goes this way, and `back` the other.
fn facing<T>(direction: Direction, one: T, back: T) -> PerDirection<T> {
    match direction {
        Direction::Down => PerDirection { down: one, up: back },
        Direction::Up => PerDirection { down: back, up: one },
    }
}

impl Record {
    /// From what one side was seen to send, and the segment of the other side that bears it out.
    ///
    /// Choice: the paper's agent is there from the first packet. One that comes later takes its sequence numbers from
    /// the two sides, the direction of each half from the side on which it came in, and leaves open whether there is
    /// another agent.
    fn under_way(glimpse: Glimpse, direction: Direction, said: Said, reach: Reach) -> Self {
        let mut this = Half::under_way(glimpse.ack, reach);
        this.record(said.seq, said.octets);
        let mut back = Half::under_way(said.ack, reach);
        back.record(glimpse.first, glimpse.end.wrapping_sub(glimpse.first));
        Self { halves: facing(direction, this, back), other: Other::Unknown, awaited: None }
    }

    /// An old SYN once more.
    fn again(&mut self, direction: Direction, syn: Syn) {
        self.halves[direction].record(syn.first(), syn.octets);
        if syn.other != Other::Unknown {
            self.other = syn.other;
        }
    }
}

impl Flow {
    /// A SYN without an ACK goes past.
    pub(super) fn syn(&mut self, direction: Direction, syn: Syn) {
        match &mut self.record {
            Some(record) if record.halves[direction].began_with(syn) => record.again(direction, syn),
            _ => self.pending[direction] = Some(syn),
        }
    }

    /// A SYN with an ACK goes past.
    pub(super) fn syn_ack(&mut self, direction: Direction, syn: Syn, ack: u32, reach: Reach) {
        let asker = direction.reversed();
        if let Some(confirmed) = self.pending[asker].take_if(|pending| pending.first() == ack) {
            let this = match self.record.take() {
                // Both sides opened at once: this one's SYN was confirmed before.
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
                // Two different answers to one SYN, and none is acknowledged: it cannot be told which of them counts.
                self.record = None;
            }
        }
    }

    /// Any other segment with an ACK goes past.
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

    /// The head of a segment goes past, of which it can only be told that it has at most `said.octets`. `false`: it
    /// does not go on from what is known.
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

    /// Both sides have borne it out, and the one that opened it has acknowledged the answer to its SYN.
    pub(super) fn is_live(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.awaited.is_none())
    }

    /// Octets of memory beside the value itself.
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

    /// A handshake up to the answer.
    fn answered() -> Flow {
        let mut flow = Flow::default();
        flow.syn(Down, syn(100));
        flow.syn_ack(Up, syn(900), 101, reach());
        flow
    }

    #[test]
    fn a_handshake_begins_both_halves_and_its_retransmissions_nothing() {
        let mut flow = Flow::default();
        flow.syn(Down, syn(100));
        assert_eq!(isns(&flow), [None, None], "a SYN alone may be an old duplicate");
        flow.syn_ack(Up, syn(900), 101, reach());
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
        assert!(!flow.is_live(), "it may be the answer to a forged SYN");
        flow.pass(Down, said(101, 50, 901), reach());
        assert!(flow.is_live());
        flow.syn(Down, syn(100));
        flow.syn_ack(Up, syn(900), 101, reach());
        let seen = Answer { transit: Transit::Seen, other: Other::Absent };
        assert_eq!(flow.pass(Up, said(901, 0, 120), reach()), Passed::Known(seen));
    }

    /// A repeated SYN that comes from the radio link says nothing about another agent.
    #[test]
    fn a_repeated_syn_can_report_another_agent_and_never_takes_the_report_back() {
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
    fn both_sides_may_open_at_once() {
        let mut flow = Flow::default();
        flow.syn(Down, syn(100));
        flow.syn(Up, syn(900));
        flow.syn_ack(Up, syn(900), 101, reach());
        flow.syn_ack(Down, syn(100), 901, reach());
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
    }

    #[test]
    fn another_connection_between_the_same_ends_begins_with_its_answer() {
        let mut flow = answered();
        flow.syn(Down, syn(70_000));
        assert_eq!(isns(&flow), [Some(100), Some(900)], "so far it may be an old duplicate");
        flow.syn_ack(Up, syn(80_000), 70_001, reach());
        assert_eq!(isns(&flow), [Some(70_000), Some(80_000)]);
    }

    #[test]
    fn old_duplicates_of_a_handshake_change_nothing() {
        let mut flow = answered();
        flow.syn_ack(Up, syn(5), 6, reach());
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
    }

    #[test]
    fn of_two_answers_to_one_syn_the_one_that_is_acknowledged_counts() {
        let mut flow = answered();
        flow.syn_ack(Up, syn(5_000_000), 101, reach());
        assert_eq!(isns(&flow), [None, None], "it cannot be told which");
        let mut flow = answered();
        flow.pass(Down, said(101, 0, 901), reach());
        flow.syn_ack(Up, syn(5_000_000), 101, reach());
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
    }

    #[test]
    fn a_syn_ack_whose_syn_went_another_way_tells_nothing() {
        let mut flow = Flow::default();
        flow.syn_ack(Up, syn(900), 101, reach());
        assert_eq!(isns(&flow), [None, None]);
    }

    #[test]
    fn in_mid_connection_each_side_has_to_bear_the_other_out() {
        let mut flow = Flow::default();
        assert_eq!(flow.pass(Down, said(7000, 1000, 500), reach()), Passed::Stranger);
        assert_eq!(
            flow.pass(Up, said(500, 0, 40_000_000), reach()),
            Passed::Stranger,
            "it asks for something else"
        );
        assert_eq!(
            flow.pass(Up, said(9_000_500, 0, 7000), reach()),
            Passed::Stranger,
            "it is somewhere else"
        );
        let seen = Answer { transit: Transit::Seen, other: Other::Unknown };
        assert_eq!(flow.pass(Up, said(500, 0, 7000), reach()), Passed::Learned(seen));
        assert!(flow.is_live());
        assert_eq!(flow.pass(Up, said(500, 0, 7999), reach()), Passed::Known(seen));
    }

    /// While its record was of use to nobody, the connection has gone on by ten megabytes.
    #[test]
    fn a_connection_that_has_moved_on_is_learned_where_it_is_now() {
        let mut flow = answered();
        flow.pass(Down, said(101, 1000, 901), reach());
        assert_eq!(flow.pass(Down, said(10_000_000, 1000, 901), reach()), Passed::Astray(Other::Absent));
        let seen = Answer { transit: Transit::Seen, other: Other::Unknown };
        assert_eq!(flow.pass(Up, said(901, 0, 10_000_000), reach()), Passed::Learned(seen));
        assert_eq!(flow.pass(Down, said(101, 1000, 901), reach()), Passed::Astray(Other::Unknown));
    }

    #[test]
    fn numbers_may_wrap_while_they_are_learned() {
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
