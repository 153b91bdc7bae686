//! Which sequence numbers of one half of a connection went past: the transit agent's memory.
//!
//! It is bounded, so it can forget, and it may have begun in mid-connection. It knows what it does not know: that makes
//! an answer `Unknown`, and never turns "went past" into "did not" or the other way round.

use airwire::units::Size;

/// Did an octet go past?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transit {
    Seen,
    NotSeen,
    /// It may have: that was forgotten, or never known.
    Unknown,
}

/// The octets that a connection has in flight at most.
///
/// Choice: nothing that a station sees bounds them once the SYNs with the window scale (RFC 7323 §2.2) are past, so the
/// bound is a setting. Two things follow from it: what was sent before the station looked, and so perhaps another way,
/// ends at most so far above an acknowledgment; and a number that is further from all that is known is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach(u32);

impl Reach {
    /// No window is larger (RFC 7323 §2.3).
    pub(super) const LARGEST: Size = Size::bytes(1 << 30);

    pub(super) fn new(size: Size) -> Self {
        Self(size.as_bytes().min(Self::LARGEST.as_bytes()) as u32)
    }

    pub(super) fn octets(self) -> u32 {
        self.0
    }

    /// One number is no further from the other than this, either way.
    pub(super) fn spans(self, one: u32, other: u32) -> bool {
        (one.wrapping_sub(other) as i32).unsigned_abs() <= self.0
    }
}

/// Inside, sequence numbers are offsets that do not wrap. They count from one wrap up, so that there is room
/// below the first.
///
/// ```text
///        known_from    contiguous   beyond[0]   complete_from   beyond[1]
///   Unknown  |     Seen     | Unknown  |Seen| Unknown | NotSeen   |Seen|  Unknown
/// ```
#[derive(Clone, Debug)]
pub(super) struct Transited {
    reach: Reach,
    /// The receiver has everything before this.
    acked: u64,
    /// What went past before this has been forgotten, or was never known.
    known_from: u64,
    /// Everything from `known_from` up to this went past.
    contiguous: u64,
    /// What went past behind a gap: in order, apart from each other, not empty.
    beyond: Vec<(u64, u64)>,
    /// From here on everything that goes past is noted: what was not has not gone past. Before it, it may have.
    complete_from: u64,
}

/// A sequence number of this half of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset(u64);

/// A sequence number that is not of this connection, or so old that it cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Astray;

/// The receiver has what never went past, and what was sent after it did: not everything goes past here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Elsewhere;

/// So many gaps can be open at a time; then the lowest is forgotten.
pub(super) const GAPS: usize = 128;

impl Transited {
    /// Of a connection that begins with `first`, the number behind the SYN's own; so many octets went past with the
    /// SYN (RFC 7413).
    pub(super) fn new(first: u32, octets: u32, reach: Reach) -> Self {
        let first = (1 << 32) + u64::from(first);
        Self {
            reach,
            acked: first,
            known_from: first,
            contiguous: first + u64::from(octets),
            beyond: Vec::new(),
            complete_from: first,
        }
    }

    /// Of a connection that is under way: the receiver has everything before `ack`. What is in flight now may have
    /// gone another way.
    pub(super) fn under_way(ack: u32, reach: Reach) -> Self {
        let new = Self::new(ack, 0, reach);
        Self { complete_from: new.acked + u64::from(reach.0), ..new }
    }

    /// The end of the highest range.
    fn end(&self) -> u64 {
        self.beyond.last().map_or(self.contiguous, |(_, end)| *end)
    }

    /// What is further than the reach from all that is known is not believed, whoever says it.
    pub(super) fn locate(&self, seq: u32) -> Result<Offset, Astray> {
        let (end, reach) = (self.end(), u64::from(self.reach.0));
        let ahead = seq.wrapping_sub(end as u32) as i32;
        let offset = end.checked_add_signed(i64::from(ahead)).ok_or(Astray)?;
        if offset + reach < self.acked || offset > end + reach { Err(Astray) } else { Ok(Offset(offset)) }
    }

    /// `length` octets from `from` on go past.
    pub(super) fn record(&mut self, Offset(from): Offset, length: u32) {
        if length > 0 {
            self.insert(from, from + u64::from(length));
        }
    }

    fn insert(&mut self, from: u64, to: u64) {
        if from <= self.contiguous {
            self.contiguous = self.contiguous.max(to);
        } else {
            let at = self.beyond.partition_point(|(_, end)| *end < from);
            let behind = self.beyond.partition_point(|(start, _)| *start <= to);
            let merged = self.beyond[at..behind]
                .iter()
                .fold((from, to), |(from, to), (start, end)| (from.min(*start), to.max(*end)));
            self.beyond.splice(at..behind, [merged]);
        }
        self.absorb();
        if self.beyond.len() > GAPS {
            let (start, end) = self.beyond.remove(0);
            self.known_from = start;
            self.contiguous = end;
        }
    }

    /// What the contiguous range has reached is part of it.
    fn absorb(&mut self) {
        let reached = self.beyond.partition_point(|(start, _)| *start <= self.contiguous);
        if let Some((_, end)) = self.beyond[..reached].last() {
            self.contiguous = self.contiguous.max(*end);
        }
        self.beyond.drain(..reached);
        if self.beyond.is_empty() {
            self.beyond = Vec::new();
        }
    }

    /// Something goes past from `from` on, but it cannot be told how much: at most `length`.
    pub(super) fn blur(&mut self, Offset(from): Offset, length: u32) {
        self.complete_from = self.complete_from.max(from + u64::from(length));
    }

    /// Has this octet gone past?
    pub(super) fn has(&self, Offset(offset): Offset) -> Transit {
        if offset < self.known_from {
            return Transit::Unknown;
        }
        if offset < self.contiguous {
            return Transit::Seen;
        }
        let at = self.beyond.partition_point(|(_, end)| *end <= offset);
        match self.beyond.get(at) {
            Some((start, _)) if *start <= offset => Transit::Seen,
            // Behind the end, the receiver asks for what comes after octets that it can only have got by another way.
            _ if (self.complete_from..=self.end()).contains(&offset) => Transit::NotSeen,
            _ => Transit::Unknown,
        }
    }

    /// The receiver says that it has everything before `ack`.
    ///
    /// Believed only as far as the sender bears it out, by having sent something that high past here, or as what was in
    /// flight before may reach. A false number below that makes answers `Unknown` for as much as can be in flight, and
    /// no worse.
    pub(super) fn acknowledge(&mut self, Offset(ack): Offset) -> Result<(), Elsewhere> {
        if ack <= self.contiguous {
            self.acked = self.acked.max(ack);
            return Ok(());
        }
        if ack > self.end().max(self.complete_from) {
            return Ok(());
        }
        let missing = self.misses(self.complete_from.max(self.contiguous), ack);
        self.acked = ack;
        self.known_from = ack;
        self.contiguous = ack;
        self.absorb();
        if missing {
            self.complete_from = ack + u64::from(self.reach.0);
            return Err(Elsewhere);
        }
        Ok(())
    }

    /// Something between these two has not gone past; `from` is not before the contiguous range's end.
    fn misses(&self, from: u64, to: u64) -> bool {
        let upto = self
            .beyond
            .iter()
            .fold(from, |upto, (start, end)| if *start <= upto { upto.max(*end) } else { upto });
        upto < to
    }

    /// Octets of memory beside the value itself.
    pub(super) fn heap(&self) -> usize {
        self.beyond.capacity() * size_of::<(u64, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use Transit::{NotSeen, Seen, Unknown};
    use airtcp_testkit::sample::size;
    use proptest::prelude::*;

    use super::*;

    const REACH: Reach = Reach(1_000_000);

    fn new(first: u32) -> Transited {
        Transited::new(first, 0, REACH)
    }

    /// As a segment does, or an ACK.
    impl Transited {
        fn sent(&mut self, seq: u32, length: u32) {
            let offset = self.locate(seq).unwrap();
            self.record(offset, length);
        }

        fn acked(&mut self, ack: u32) -> Result<(), Elsewhere> {
            let offset = self.locate(ack).unwrap();
            self.acknowledge(offset)
        }

        fn asked(&self, seq: u32) -> Transit {
            self.locate(seq).map_or(Unknown, |offset| self.has(offset))
        }
    }

    #[test]
    fn a_gap_has_not_gone_past_until_a_retransmission_fills_it() {
        let mut transited = new(1000);
        transited.sent(1000, 100);
        transited.sent(1200, 100);
        assert_eq!(
            [1000, 1099, 1100, 1199, 1200, 1300].map(|seq| transited.asked(seq)),
            [Seen, Seen, NotSeen, NotSeen, Seen, NotSeen]
        );
        transited.sent(1100, 100);
        assert_eq!(transited.asked(1150), Seen);
        assert_eq!(transited.heap(), 0, "one range needs no list");
    }

    #[test]
    fn numbers_wrap() {
        let first = u32::MAX - 50;
        let mut transited = new(first);
        transited.sent(first, 40);
        transited.sent(first.wrapping_add(100), 40);
        assert_eq!(transited.asked(first.wrapping_add(60)), NotSeen);
        assert_eq!(transited.asked(first.wrapping_add(120)), Seen);
        transited.sent(first.wrapping_add(40), 60);
        transited.acked(first.wrapping_add(140)).unwrap();
        assert_eq!(transited.asked(first), Seen);
        assert_eq!(transited.asked(first.wrapping_add(140)), NotSeen);
    }

    #[test]
    fn what_is_acknowledged_has_gone_past() {
        let mut transited = new(0);
        transited.sent(0, 1000);
        transited.acked(500).unwrap();
        // Late ACKs, and retransmissions of what has arrived.
        assert_eq!(transited.asked(100), Seen);
        transited.sent(0, 300);
        assert_eq!(
            (transited.asked(499), transited.asked(999), transited.asked(1000)),
            (Seen, Seen, NotSeen)
        );
    }

    #[test]
    fn the_receiver_has_what_took_another_way_and_nothing_in_flight_is_missed_any_more() {
        let mut transited = new(0);
        transited.sent(0, 100);
        transited.sent(200, 1_500_000);
        assert_eq!(transited.asked(150), NotSeen);
        assert_eq!(transited.acked(250), Err(Elsewhere), "there was a gap before it");
        transited.sent(1_600_000, 100);
        // In between, before the flight is over.
        transited.sent(1_000_400 + 600_000, 100);
        assert_eq!((transited.asked(150), transited.asked(999)), (Unknown, Seen));
        assert_eq!(transited.asked(1_500_300), NotSeen, "further above the ACK than a flight");
        assert_eq!(transited.acked(1_500_200), Ok(()), "nothing between has not gone past");
    }

    #[test]
    fn an_ack_of_what_nobody_has_sent_changes_nothing() {
        let mut transited = new(0);
        transited.sent(0, 100);
        transited.sent(200, 100);
        for ahead in [301, 5000, 1_000_300] {
            assert_eq!(transited.acked(ahead), Ok(()));
            assert_eq!(transited.asked(ahead), Unknown);
        }
        assert_eq!(
            [0, 99, 100, 199, 200].map(|seq| transited.asked(seq)),
            [Seen, Seen, NotSeen, NotSeen, Seen]
        );
    }

    #[test]
    fn in_mid_connection_what_was_in_flight_is_not_missed() {
        let mut transited = Transited::under_way(5000, REACH);
        transited.sent(8000, 100);
        transited.sent(5000, 100);
        assert_eq!([4999, 5000, 6000, 8050].map(|seq| transited.asked(seq)), [Unknown, Seen, Unknown, Seen]);
        // The holes were filled by what went another way: that is no surprise.
        assert_eq!(transited.acked(8100), Ok(()));
        transited.sent(8100, 1_000_000);
        transited.acked(1_005_000).unwrap();
        transited.sent(1_010_000, 100);
        assert_eq!((transited.asked(1_009_000), transited.asked(7_999)), (NotSeen, Unknown));
        assert_eq!(transited.beyond.len(), 1, "the holes of before take no room");
    }

    #[test]
    fn too_many_gaps_make_the_oldest_octets_unknown() {
        let mut transited = new(0);
        for gap in 0..=GAPS as u32 {
            transited.sent(gap * 10 + 5, 5);
        }
        assert_eq!((transited.asked(0), transited.asked(4)), (Unknown, Unknown));
        assert_eq!((transited.asked(5), transited.asked(10), transited.asked(15)), (Seen, NotSeen, Seen));
        transited.acked(5).unwrap();
        assert_eq!(transited.asked(5), Seen);
        assert!(transited.heap() <= 2 * (GAPS + 1) * 16, "{}", transited.heap());
    }

    #[test]
    fn where_it_cannot_be_told_how_much_went_past_nothing_is_missed() {
        let mut transited = new(0);
        transited.sent(0, 100);
        let head = transited.locate(100).unwrap();
        transited.blur(head, 1000);
        transited.sent(600, 600);
        assert_eq!(
            [0, 99, 100, 599, 600, 1150, 1200].map(|seq| transited.asked(seq)),
            [Seen, Seen, Unknown, Unknown, Seen, Seen, NotSeen]
        );
        assert_eq!(transited.acked(700), Ok(()), "the rest of the head's segment went past, too");
        assert_eq!(transited.asked(700), Seen);
    }

    #[test]
    fn what_is_far_away_is_not_of_this_connection() {
        let mut transited = new(0);
        transited.sent(0, 100);
        for far in [1_000_101, 0x2000_0000, 0x6000_0000, 0xa000_0000, 0_u32.wrapping_sub(1_000_001)] {
            assert_eq!(transited.locate(far), Err(Astray), "{far}");
        }
        assert!(
            transited.locate(1_000_100).is_ok() && transited.locate(0_u32.wrapping_sub(1_000_000)).is_ok()
        );
    }

    /// What a connection of at most 2000 octets does.
    #[derive(Clone, Debug)]
    enum Step {
        Segment(u32, u32),
        Head(u32),
        /// The receiver acknowledges so much of what it can have.
        Ack(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            200 => (0_u32..2000, 1_u32..6).prop_map(|(seq, length)| Step::Segment(seq, length)),
            1 => (0_u32..2000).prop_map(Step::Head),
            20 => (0_u32..2000).prop_map(Step::Ack),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(size(64, 256)))]

        /// Against a memory without bounds, in which a head counts as all that it may stand for.
        #[test]
        fn forgetting_never_changes_an_answer_to_its_opposite(
            first: u32,
            steps in prop::collection::vec(step(), 0..800),
        ) {
            let mut transited = new(first);
            let (mut exact, mut acked) = (true, 0);
            let (mut seen, mut maybe) = (vec![false; 2100], vec![false; 2100]);
            for (index, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Segment(seq, length) => {
                        transited.sent(first.wrapping_add(seq), length);
                        seen[seq as usize..(seq + length) as usize].fill(true);
                    }
                    Step::Head(seq) => {
                        let head = transited.locate(first.wrapping_add(seq)).unwrap();
                        transited.blur(head, 60);
                        maybe[seq as usize..seq as usize + 60].fill(true);
                    }
                    Step::Ack(upto) => {
                        // Of what has gone past, or may have.
                        let has = |at: &usize| !seen[*at] && !maybe[*at];
                        let upto = (0..upto as usize).find(has).unwrap_or(upto as usize);
                        transited.acked(first.wrapping_add(upto as u32)).unwrap();
                        acked = acked.max(upto);
                    }
                }
                prop_assert!(transited.beyond.len() <= GAPS);
                if !index.is_multiple_of(8) {
                    continue;
                }
                let gaps = seen.windows(2).filter(|pair| pair[0] != pair[1]).count();
                exact &= gaps <= GAPS && !maybe.contains(&true);
                for at in 0..2099 {
                    match transited.asked(first.wrapping_add(at as u32)) {
                        Seen => prop_assert!(seen[at], "{at} was not seen"),
                        NotSeen => prop_assert!(!seen[at] && !maybe[at], "{at} was seen"),
                        // Past the end nobody asks, nor for what has been acknowledged.
                        Unknown => prop_assert!(
                            !exact || at < acked || seen[at..].iter().all(|seen| !seen),
                            "{at} was forgotten"
                        ),
                    }
                }
            }
        }
    }
}
