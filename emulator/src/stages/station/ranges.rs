//! Which sequence numbers of one half of a connection went past: the transit agent's memory.
//!
//! It is bounded, so it can forget, and it knows what it has forgotten. Forgetting makes an answer `Unknown`; it
//! never turns "went past" into "did not" or the other way round.

/// Did an octet go past?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transit {
    Seen,
    NotSeen,
    /// It may have: that was forgotten, or never known.
    Unknown,
}

/// Inside, sequence numbers are offsets that do not wrap. They count from one wrap up, so that there is room
/// below the first.
///
/// ```text
///        acked       known_from       contiguous      beyond[0]     beyond[1]
///   Seen   |   Unknown    |      Seen      |   NotSeen  |Seen|NotSeen |Seen|  NotSeen
/// ```
#[derive(Clone, Debug)]
pub(super) struct Transited {
    /// The receiver has everything before this.
    acked: u64,
    /// What went past between `acked` and this has been forgotten.
    known_from: u64,
    /// Everything from `known_from` up to this went past.
    contiguous: u64,
    /// What went past behind a gap: in order, apart from each other, not empty.
    beyond: Vec<(u64, u64)>,
}

/// A sequence number that is not of this connection, or so old that it cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Astray;

/// So many gaps can be open at a time; then the lowest is forgotten.
pub(super) const GAPS: usize = 128;

/// No window is larger (RFC 7323 §2.3), so nothing of this connection is further away.
const REACH: u64 = 1 << 30;

impl Transited {
    /// A connection that begins with `first`, the number behind the SYN's own; so many octets went past with the
    /// SYN (RFC 7413).
    pub(super) fn new(first: u32, octets: u32) -> Self {
        let first = (1 << 32) + u64::from(first);
        Self { acked: first, known_from: first, contiguous: first + u64::from(octets), beyond: Vec::new() }
    }

    /// The end of the highest range.
    fn end(&self) -> u64 {
        self.beyond.last().map_or(self.contiguous, |(_, end)| *end)
    }

    fn offset(&self, seq: u32) -> Result<u64, Astray> {
        let end = self.end();
        let ahead = seq.wrapping_sub(end as u32) as i32;
        let offset = end.checked_add_signed(i64::from(ahead)).ok_or(Astray)?;
        if offset + REACH < self.acked || offset > end + REACH { Err(Astray) } else { Ok(offset) }
    }

    /// `length` octets from `seq` on go past.
    pub(super) fn record(&mut self, seq: u32, length: u32) -> Result<(), Astray> {
        if length == 0 {
            return Ok(());
        }
        let from = self.offset(seq)?;
        self.insert(from, from + u64::from(length));
        Ok(())
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

    /// Something went past from `seq` on, but it cannot be told how much: at most `length`.
    pub(super) fn blur(&mut self, seq: u32, length: u32) -> Result<(), Astray> {
        let to = self.offset(seq)? + u64::from(length);
        self.begin_again(to);
        Ok(())
    }

    /// Nothing below `offset` is known any more.
    fn begin_again(&mut self, offset: u64) {
        self.known_from = self.known_from.max(offset);
        self.contiguous = self.contiguous.max(self.known_from);
        self.absorb();
    }

    /// Has the octet `seq` gone past?
    pub(super) fn has(&self, seq: u32) -> Transit {
        let Ok(offset) = self.offset(seq) else { return Transit::Unknown };
        if offset < self.acked {
            Transit::Seen
        } else if offset < self.known_from {
            Transit::Unknown
        } else if offset < self.contiguous {
            Transit::Seen
        } else if offset > self.end() {
            // The receiver asks for what comes after octets that it can only have got by another way.
            Transit::Unknown
        } else {
            let at = self.beyond.partition_point(|(_, end)| *end <= offset);
            match self.beyond.get(at) {
                Some((start, _)) if *start <= offset => Transit::Seen,
                _ => Transit::NotSeen,
            }
        }
    }

    /// The receiver has everything before `ack`.
    pub(super) fn acknowledge(&mut self, ack: u32) -> Result<(), Beyond> {
        // An ACK from far away is of another connection, and tells nothing.
        let Ok(offset) = self.offset(ack) else { return Ok(()) };
        if offset > self.contiguous {
            return Err(Beyond);
        }
        self.acked = self.acked.max(offset);
        self.begin_again(self.acked);
        Ok(())
    }

    /// Octets of memory beside the value itself.
    pub(super) fn heap(&self) -> usize {
        self.beyond.capacity() * size_of::<(u64, u64)>()
    }
}

/// The receiver has what never went past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beyond;

#[cfg(test)]
mod tests {
    use Transit::{NotSeen, Seen, Unknown};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_gap_has_not_gone_past_until_a_retransmission_fills_it() {
        let mut transited = Transited::new(1000, 0);
        transited.record(1000, 100).unwrap();
        transited.record(1200, 100).unwrap();
        assert_eq!(
            [1000, 1099, 1100, 1199, 1200, 1300].map(|seq| transited.has(seq)),
            [Seen, Seen, NotSeen, NotSeen, Seen, NotSeen]
        );
        transited.record(1100, 100).unwrap();
        assert_eq!(transited.has(1150), Seen);
        assert_eq!(transited.heap(), 0, "one range needs no list");
    }

    #[test]
    fn numbers_wrap() {
        let first = u32::MAX - 50;
        let mut transited = Transited::new(first, 0);
        transited.record(first, 40).unwrap();
        transited.record(first.wrapping_add(100), 40).unwrap();
        assert_eq!(transited.has(first.wrapping_add(60)), NotSeen);
        assert_eq!(transited.has(first.wrapping_add(120)), Seen);
        transited.record(first.wrapping_add(40), 60).unwrap();
        transited.acknowledge(first.wrapping_add(140)).unwrap();
        assert_eq!(transited.has(first), Seen);
        assert_eq!(transited.has(first.wrapping_add(140)), NotSeen);
    }

    #[test]
    fn what_is_acknowledged_has_gone_past() {
        let mut transited = Transited::new(0, 0);
        transited.record(0, 1000).unwrap();
        transited.acknowledge(500).unwrap();
        // Late ACKs, and retransmissions of what has arrived.
        assert_eq!(transited.has(100), Seen);
        transited.record(0, 300).unwrap();
        assert_eq!((transited.has(499), transited.has(999), transited.has(1000)), (Seen, Seen, NotSeen));
    }

    #[test]
    fn an_ack_of_what_never_went_past_is_told() {
        let mut transited = Transited::new(0, 0);
        transited.record(0, 100).unwrap();
        assert_eq!(transited.acknowledge(101), Err(Beyond));
        transited.record(200, 100).unwrap();
        assert_eq!(transited.acknowledge(250), Err(Beyond), "there was a gap before it");
        assert_eq!(transited.acknowledge(100), Ok(()));
    }

    #[test]
    fn too_many_gaps_make_the_oldest_octets_unknown() {
        let mut transited = Transited::new(0, 0);
        for gap in 0..=GAPS as u32 {
            transited.record(gap * 10 + 5, 5).unwrap();
        }
        assert_eq!((transited.has(0), transited.has(4)), (Unknown, Unknown));
        assert_eq!((transited.has(5), transited.has(10), transited.has(15)), (Seen, NotSeen, Seen));
        transited.acknowledge(5).unwrap();
        assert_eq!((transited.has(4), transited.has(5)), (Seen, Seen));
        assert!(transited.heap() <= 2 * (GAPS + 1) * 16, "{}", transited.heap());
    }

    #[test]
    fn where_it_cannot_be_told_how_much_went_past_nothing_is_known() {
        let mut transited = Transited::new(0, 0);
        transited.record(0, 100).unwrap();
        transited.blur(100, 1000).unwrap();
        transited.record(600, 600).unwrap();
        assert_eq!([0, 99, 1099].map(|seq| transited.has(seq)), [Unknown; 3]);
        assert_eq!((transited.has(1150), transited.has(1200)), (Seen, NotSeen));
        transited.acknowledge(700).unwrap();
        assert_eq!((transited.has(699), transited.has(700)), (Seen, Unknown));
    }

    #[test]
    fn what_is_far_away_changes_nothing() {
        let mut transited = Transited::new(0, 0);
        transited.record(0, 100).unwrap();
        assert_eq!(transited.record(0x6000_0000, 100), Err(Astray));
        assert_eq!(transited.record(0xa000_0000, 100), Err(Astray));
        assert_eq!(transited.acknowledge(0x6000_0000), Ok(()));
        assert_eq!((transited.has(0x6000_0000), transited.has(100)), (Unknown, NotSeen));
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
        /// Against a memory without bounds, in which a head counts as all that it may stand for.
        #[test]
        fn forgetting_never_changes_an_answer_to_its_opposite(
            first: u32,
            steps in prop::collection::vec(step(), 0..800),
        ) {
            let mut transited = Transited::new(first, 0);
            let mut exact = true;
            let (mut seen, mut maybe) = (vec![false; 2100], vec![false; 2100]);
            for (index, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Segment(seq, length) => {
                        transited.record(first.wrapping_add(seq), length).unwrap();
                        seen[seq as usize..(seq + length) as usize].fill(true);
                    }
                    Step::Head(seq) => {
                        transited.blur(first.wrapping_add(seq), 60).unwrap();
                        maybe[seq as usize..seq as usize + 60].fill(true);
                    }
                    Step::Ack(upto) => {
                        let has = |at: &usize| !seen[*at] && !maybe[*at];
                        let upto = (0..upto as usize).find(has).unwrap_or(upto as usize);
                        transited.acknowledge(first.wrapping_add(upto as u32)).unwrap();
                        seen[..upto].fill(true);
                    }
                }
                prop_assert!(transited.beyond.len() <= GAPS);
                if !index.is_multiple_of(8) {
                    continue;
                }
                let gaps = seen.windows(2).filter(|pair| pair[0] != pair[1]).count();
                exact &= gaps <= GAPS && !maybe.contains(&true);
                for at in 0..2099 {
                    match transited.has(first.wrapping_add(at as u32)) {
                        Seen => prop_assert!(seen[at], "{at} was not seen"),
                        NotSeen => prop_assert!(!seen[at] && !maybe[at], "{at} was seen"),
                        // Past the end nobody asks.
                        Unknown => prop_assert!(!exact || seen[at..].iter().all(|seen| !seen), "{at} was forgotten"),
                    }
                }
            }
        }
    }
}
