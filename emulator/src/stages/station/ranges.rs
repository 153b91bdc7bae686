//! The transit agent's memory: the sequence numbers that have passed, for one half of a connection.
//!
//! The memory is bounded, so it can forget, and it may have begun in mid-connection. The answer about a byte
//! that it does not know is `Unknown`. Forgetting never turns `Passed` into `NotPassed` or the reverse.

use airwire::units::Size;

/// Whether a byte has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transit {
    Passed,
    NotPassed,
    /// The byte may have passed: the agent has forgotten the byte or never knew it.
    Unknown,
}

/// The maximum number of bytes that a connection has in flight.
///
/// Choice: after the SYNs with the window scale (RFC 7323 §2.2), no packet at a station bounds the flight, so
/// the bound is a setting. It has two consequences. Data that was sent before the agent was present, perhaps
/// over another path, ends at most this far above an acknowledgment. And a number that is further than this
/// from all known ones is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach(u32);

impl Reach {
    /// The largest window (RFC 7323 §2.3).
    pub(super) const LARGEST: Size = Size::bytes(1 << 30);

    pub(super) fn new(size: Size) -> Self {
        Self(size.as_bytes().min(Self::LARGEST.as_bytes()) as u32)
    }

    pub(super) fn octets(self) -> u32 {
        self.0
    }

    /// Returns whether two numbers differ by at most the reach, in either direction.
    pub(super) fn spans(self, first: u32, second: u32) -> bool {
        (first.wrapping_sub(second) as i32).unsigned_abs() <= self.0
    }
}

/// Internally, sequence numbers are offsets that do not wrap. They start at 2^32, so that there is room below
/// the first one.
///
/// ```text
///        known_from   contiguous    later[0]      complete_from   later[1]
///   Unknown  |    Passed    | Unknown | Passed | Unknown |  NotPassed  | Passed |  Unknown
/// ```
#[derive(Clone, Debug)]
pub(super) struct PassedRanges {
    reach: Reach,
    /// The receiver has everything below this offset.
    acked: u64,
    /// Below this offset, the agent has forgotten or never knew which bytes have passed.
    known_from: u64,
    /// All bytes from `known_from` up to this offset have passed.
    contiguous: u64,
    /// Ranges that have passed after a gap: sorted, separate and not empty.
    later: Vec<(u64, u64)>,
    /// From this offset on, all passing bytes are recorded, so bytes without a record have not passed. Below
    /// it, they may have.
    complete_from: u64,
}

/// A sequence number of this half of the connection, as an offset that does not wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset(u64);

/// A sequence number that does not belong to this connection, or is too old to locate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOfReach;

/// The receiver has bytes that did not pass, although later ones did: part of the data takes another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bypassed;

/// Maximum number of open gaps. If there are more, the lowest one is forgotten.
pub(super) const GAPS: usize = 128;

impl PassedRanges {
    /// Creates the memory of a connection whose data begins at `first`, the number after the SYN's. `octets`
    /// bytes passed with the SYN (RFC 7413).
    pub(super) fn new(first: u32, octets: u32, reach: Reach) -> Self {
        let first = (1 << 32) + u64::from(first);
        Self {
            reach,
            acked: first,
            known_from: first,
            contiguous: first + u64::from(octets),
            later: Vec::new(),
            complete_from: first,
        }
    }

    /// Creates the memory of a connection in progress, whose receiver has everything before `ack`. Data in
    /// flight may have taken another path.
    pub(super) fn mid_connection(ack: u32, reach: Reach) -> Self {
        let new = Self::new(ack, 0, reach);
        Self { complete_from: new.acked + u64::from(reach.0), ..new }
    }

    /// Returns the end of the highest range.
    fn end(&self) -> u64 {
        self.later.last().map_or(self.contiguous, |(_, end)| *end)
    }

    /// Converts a sequence number to an offset. Fails if it is out of reach of all known numbers.
    pub(super) fn locate(&self, seq: u32) -> Result<Offset, OutOfReach> {
        let (end, reach) = (self.end(), u64::from(self.reach.0));
        let ahead = seq.wrapping_sub(end as u32) as i32;
        let offset = end.checked_add_signed(i64::from(ahead)).ok_or(OutOfReach)?;
        if offset + reach < self.acked || offset > end + reach { Err(OutOfReach) } else { Ok(Offset(offset)) }
    }

    /// Records that `length` bytes have passed, beginning with `from`.
    pub(super) fn record(&mut self, Offset(from): Offset, length: u32) {
        if length > 0 {
            self.insert(from, from + u64::from(length));
        }
    }

    fn insert(&mut self, from: u64, to: u64) {
        if from <= self.contiguous {
            self.contiguous = self.contiguous.max(to);
        } else {
            let at = self.later.partition_point(|(_, end)| *end < from);
            let after = self.later.partition_point(|(start, _)| *start <= to);
            let merged = self.later[at..after]
                .iter()
                .fold((from, to), |(from, to), (start, end)| (from.min(*start), to.max(*end)));
            self.later.splice(at..after, [merged]);
        }
        self.absorb();
        if self.later.len() > GAPS {
            let (start, end) = self.later.remove(0);
            self.known_from = start;
            self.contiguous = end;
        }
    }

    /// Merges the ranges that the contiguous range has reached.
    fn absorb(&mut self) {
        let reached = self.later.partition_point(|(start, _)| *start <= self.contiguous);
        if let Some((_, end)) = self.later[..reached].last() {
            self.contiguous = self.contiguous.max(*end);
        }
        self.later.drain(..reached);
        if self.later.is_empty() {
            self.later = Vec::new();
        }
    }

    /// Records that an unknown number of bytes has passed, beginning with `from`: at most `length`.
    pub(super) fn mark_unknown(&mut self, Offset(from): Offset, length: u32) {
        self.complete_from = self.complete_from.max(from + u64::from(length));
    }

    /// Returns whether this byte has passed.
    pub(super) fn has(&self, Offset(offset): Offset) -> Transit {
        if offset < self.known_from {
            return Transit::Unknown;
        }
        if offset < self.contiguous {
            return Transit::Passed;
        }
        let at = self.later.partition_point(|(_, end)| *end <= offset);
        match self.later.get(at) {
            Some((start, _)) if *start <= offset => Transit::Passed,
            // An ACK beyond the end acknowledges data that must have taken another path.
            _ if (self.complete_from..=self.end()).contains(&offset) => Transit::NotPassed,
            _ => Transit::Unknown,
        }
    }

    /// Records that the receiver has everything before `ack`.
    ///
    /// The number is accepted only up to the highest byte that passed, or as far as data from before the
    /// agent's presence may reach. A forged number below this limit can make at most the answers about the
    /// data in flight `Unknown`.
    pub(super) fn acknowledge(&mut self, Offset(ack): Offset) -> Result<(), Bypassed> {
        if ack <= self.contiguous {
            self.acked = self.acked.max(ack);
            return Ok(());
        }
        if ack > self.end().max(self.complete_from) {
            return Ok(());
        }
        let missing = self.has_gap(self.complete_from.max(self.contiguous), ack);
        self.acked = ack;
        self.known_from = ack;
        self.contiguous = ack;
        self.absorb();
        if missing {
            self.complete_from = ack + u64::from(self.reach.0);
            return Err(Bypassed);
        }
        Ok(())
    }

    /// Returns whether a byte between these offsets has not passed. `from` is not below the end of the
    /// contiguous range.
    fn has_gap(&self, from: u64, to: u64) -> bool {
        let upto = self
            .later
            .iter()
            .fold(from, |upto, (start, end)| if *start <= upto { upto.max(*end) } else { upto });
        upto < to
    }

    /// Returns the size of the heap memory in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.later.capacity() * size_of::<(u64, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use Transit::{NotPassed, Passed, Unknown};
    use airtcp_testkit::sample::{cases, size};
    use proptest::prelude::*;

    use super::*;

    const REACH: Reach = Reach(1_000_000);

    fn new(first: u32) -> PassedRanges {
        PassedRanges::new(first, 0, REACH)
    }

    /// Shorthands that use sequence numbers, as segments and ACKs do.
    impl PassedRanges {
        fn record_at(&mut self, seq: u32, length: u32) {
            let offset = self.locate(seq).unwrap();
            self.record(offset, length);
        }

        fn acked(&mut self, ack: u32) -> Result<(), Bypassed> {
            let offset = self.locate(ack).unwrap();
            self.acknowledge(offset)
        }

        fn transit(&self, seq: u32) -> Transit {
            self.locate(seq).map_or(Unknown, |offset| self.has(offset))
        }
    }

    /// Returns the memory after segments with these sequence numbers and lengths. The first number is 0.
    fn after(segments: &[(u32, u32)]) -> PassedRanges {
        let mut passed = new(0);
        for (seq, length) in segments {
            passed.record_at(*seq, *length);
        }
        passed
    }

    #[test]
    fn gap_is_not_seen_until_retransmission_fills_it() {
        let mut passed = new(1000);
        passed.record_at(1000, 100);
        passed.record_at(1200, 100);
        let transits = [1000, 1099, 1100, 1199, 1200, 1300].map(|seq| passed.transit(seq));
        assert_eq!(transits, [Passed, Passed, NotPassed, NotPassed, Passed, NotPassed]);
        passed.record_at(1100, 100);
        assert_eq!(passed.transit(1150), Passed);
        assert_eq!(passed.heap_bytes(), 0, "one range needs no list");
    }

    #[test]
    fn ranges_handle_sequence_number_wrap() {
        let first = u32::MAX - 50;
        let mut passed = new(first);
        passed.record_at(first, 40);
        passed.record_at(first.wrapping_add(100), 40);
        assert_eq!(passed.transit(first.wrapping_add(60)), NotPassed);
        assert_eq!(passed.transit(first.wrapping_add(120)), Passed);
        passed.record_at(first.wrapping_add(40), 60);
        passed.acked(first.wrapping_add(140)).unwrap();
        assert_eq!(passed.transit(first), Passed);
        assert_eq!(passed.transit(first.wrapping_add(140)), NotPassed);
    }

    #[test]
    fn acknowledged_data_counts_as_seen() {
        let mut passed = after(&[(0, 1000)]);
        passed.acked(500).unwrap();
        // Late ACKs, and retransmissions of data that has arrived.
        assert_eq!(passed.transit(100), Passed);
        passed.record_at(0, 300);
        assert_eq!(
            (passed.transit(499), passed.transit(999), passed.transit(1000)),
            (Passed, Passed, NotPassed)
        );
    }

    #[test]
    fn data_on_another_path_makes_gaps_unknown() {
        let mut passed = after(&[(0, 100), (200, 1_500_000)]);
        assert_eq!(passed.transit(150), NotPassed);
        assert_eq!(passed.acked(250), Err(Bypassed), "the ACK covers a gap");
        passed.record_at(1_600_000, 100);
        // Another gap at a higher number.
        passed.record_at(1_000_400 + 600_000, 100);
        assert_eq!((passed.transit(150), passed.transit(999)), (Unknown, Passed));
        assert_eq!(passed.transit(1_500_300), NotPassed, "more than one flight above the ACK");
        assert_eq!(passed.acked(1_500_200), Ok(()), "no byte between the ACKs is missing");
    }

    #[test]
    fn ack_of_highest_byte_shows_gap() {
        let mut passed = after(&[(0, 100), (200, 100)]);
        assert_eq!(passed.acked(300), Err(Bypassed));
    }

    #[test]
    fn segment_without_data_shows_no_gap() {
        let passed = after(&[(0, 100), (300, 0)]);
        assert_eq!(passed.transit(200), Unknown);
    }

    #[test]
    fn reach_spans_equal_distance_in_both_directions() {
        for (distance, is_spanned) in [(1_000_000, true), (1_000_001, false)] {
            for (one, other) in [(distance, 0), (0, distance), (u32::MAX, distance - 1)] {
                assert_eq!(REACH.spans(one, other), is_spanned, "{one} and {other}");
            }
        }
    }

    #[test]
    fn ack_of_unsent_data_changes_nothing() {
        let mut passed = after(&[(0, 100), (200, 100)]);
        for ahead in [301, 5000, 1_000_300] {
            assert_eq!(passed.acked(ahead), Ok(()));
            assert_eq!(passed.transit(ahead), Unknown);
        }
        assert_eq!(
            [0, 99, 100, 199, 200].map(|seq| passed.transit(seq)),
            [Passed, Passed, NotPassed, NotPassed, Passed]
        );
    }

    #[test]
    fn flight_before_mid_connection_join_is_unknown() {
        let mut passed = PassedRanges::mid_connection(5000, REACH);
        passed.record_at(8000, 100);
        passed.record_at(5000, 100);
        assert_eq!(
            [4999, 5000, 6000, 8050].map(|seq| passed.transit(seq)),
            [Unknown, Passed, Unknown, Passed]
        );
        // Data on another path has filled the holes, which is expected here.
        assert_eq!(passed.acked(8100), Ok(()));
        passed.record_at(8100, 1_000_000);
        passed.acked(1_005_000).unwrap();
        passed.record_at(1_010_000, 100);
        assert_eq!((passed.transit(1_009_000), passed.transit(7_999)), (NotPassed, Unknown));
        assert_eq!(passed.later.len(), 1, "earlier gaps take no memory");
    }

    #[test]
    fn too_many_gaps_make_oldest_bytes_unknown() {
        let mut passed = new(0);
        for gap in 0..=GAPS as u32 {
            passed.record_at(gap * 10 + 5, 5);
        }
        assert_eq!((passed.transit(0), passed.transit(4)), (Unknown, Unknown));
        assert_eq!((passed.transit(5), passed.transit(10), passed.transit(15)), (Passed, NotPassed, Passed));
        passed.acked(5).unwrap();
        assert_eq!(passed.transit(5), Passed);
        assert!(passed.heap_bytes() <= 2 * (GAPS + 1) * 16, "{}", passed.heap_bytes());
    }

    #[test]
    fn first_fragment_leaves_following_bytes_unknown() {
        let mut passed = after(&[(0, 100)]);
        let head = passed.locate(100).unwrap();
        passed.mark_unknown(head, 1000);
        passed.record_at(600, 600);
        assert_eq!(
            [0, 99, 100, 599, 600, 1150, 1200].map(|seq| passed.transit(seq)),
            [Passed, Passed, Unknown, Unknown, Passed, Passed, NotPassed]
        );
        assert_eq!(passed.acked(700), Ok(()), "the rest of the fragmented segment passed as well");
        assert_eq!(passed.transit(700), Passed);
    }

    #[test]
    fn distant_sequence_numbers_are_rejected() {
        let passed = after(&[(0, 100)]);
        for far in [1_000_101, 0x2000_0000, 0x6000_0000, 0xa000_0000, 0_u32.wrapping_sub(1_000_001)] {
            assert_eq!(passed.locate(far), Err(OutOfReach), "{far}");
        }
        assert!(passed.locate(1_000_100).is_ok() && passed.locate(0_u32.wrapping_sub(1_000_000)).is_ok());
    }

    /// An action of a connection with at most 2000 bytes.
    #[derive(Clone, Debug)]
    enum Step {
        Segment(u32, u32),
        Head(u32),
        /// The receiver acknowledges everything up to this byte that it can have.
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
        #![proptest_config(cases(size(64, 256)))]

        /// Compares with an unbounded memory, in which a first fragment counts with its maximum length.
        #[test]
        fn forgetting_only_turns_answers_into_unknown(
            first: u32,
            steps in prop::collection::vec(step(), 0..800),
        ) {
            let mut passed = new(first);
            let (mut exact, mut acked) = (true, 0);
            let (mut seen, mut maybe) = (vec![false; 2100], vec![false; 2100]);
            for (index, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Segment(seq, length) => {
                        passed.record_at(first.wrapping_add(seq), length);
                        seen[seq as usize..(seq + length) as usize].fill(true);
                    }
                    Step::Head(seq) => {
                        let head = passed.locate(first.wrapping_add(seq)).unwrap();
                        passed.mark_unknown(head, 60);
                        maybe[seq as usize..seq as usize + 60].fill(true);
                    }
                    Step::Ack(upto) => {
                        // Stop at the first byte that cannot have passed.
                        let has = |at: &usize| !seen[*at] && !maybe[*at];
                        let upto = (0..upto as usize).find(has).unwrap_or(upto as usize);
                        passed.acked(first.wrapping_add(upto as u32)).unwrap();
                        acked = acked.max(upto);
                    }
                }
                prop_assert!(passed.later.len() <= GAPS);
                if !index.is_multiple_of(8) {
                    continue;
                }
                let gaps = seen.windows(2).filter(|pair| pair[0] != pair[1]).count();
                exact &= gaps <= GAPS && !maybe.contains(&true);
                for at in 0..2099 {
                    match passed.transit(first.wrapping_add(at as u32)) {
                        Passed => prop_assert!(seen[at], "{at} was not seen"),
                        NotPassed => prop_assert!(!seen[at] && !maybe[at], "{at} was seen"),
                        // The answer does not matter past the end or for acknowledged bytes.
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
