//! Octet ranges of one SDU (NR) or of the data field of one AMD PDU (LTE): those that wait for retransmission,
//! and those that a receiver has.

use std::ops::Range;

use smallvec::SmallVec;

/// Octet ranges in ascending order. They neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::rlc) struct Ranges(SmallVec<[Range<u32>; 1]>);

impl Ranges {
    pub(in crate::rlc) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::rlc) fn first(&self) -> Option<Range<u32>> {
        self.0.first().cloned()
    }

    pub(in crate::rlc) fn octets(&self) -> u64 {
        self.0.iter().map(|range| u64::from(range.end - range.start)).sum()
    }

    /// Whether all octets of the range are included.
    pub(in crate::rlc) fn contain(&self, range: &Range<u32>) -> bool {
        let at = self.0.partition_point(|known| known.end < range.end);
        self.0.get(at).is_some_and(|known| known.start <= range.start)
    }

    pub(in crate::rlc) fn insert(&mut self, mut range: Range<u32>) {
        // Merge the ranges that overlap or touch the new one.
        let from = self.0.partition_point(|known| known.end < range.start);
        let to = self.0.partition_point(|known| known.start <= range.end);
        if let Some(merged) = self.0.get(from..to).filter(|merged| !merged.is_empty()) {
            range.start = range.start.min(merged[0].start);
            range.end = range.end.max(merged[merged.len() - 1].end);
            self.0.drain(from + 1..to);
            self.0[from] = range;
        } else {
            self.0.insert(from, range);
        }
    }

    /// Removes the first `octets` octets, which must belong to the first range.
    pub(in crate::rlc) fn remove_first(&mut self, octets: u32) {
        if let Some(first) = self.0.first_mut() {
            first.start += octets;
            if first.start >= first.end {
                self.0.remove(0);
            }
        }
    }
}

/// A segment of an SDU or PDU, as received. The whole SDU or PDU is a segment too.
#[derive(Clone, Copy, Debug)]
pub(in crate::rlc) struct Segment<'a> {
    /// Offset of the first octet.
    pub(in crate::rlc) offset: u32,
    pub(in crate::rlc) octets: &'a [u8],
    /// Whether the segment includes the last octet of the SDU or PDU.
    pub(in crate::rlc) is_last: bool,
}

impl Segment<'_> {
    pub(in crate::rlc) fn end(&self) -> u32 {
        self.offset + self.octets.len() as u32
    }

    pub(in crate::rlc) fn is_whole(&self) -> bool {
        self.offset == 0 && self.is_last
    }
}

/// The received segments of an SDU or PDU that is not complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::rlc) struct Assembly {
    /// Octets with their offsets, in ascending order. They do not overlap.
    pieces: Vec<(u32, Vec<u8>)>,
    received: u32,
    /// Length of the whole. `None` until the segment with the last octet arrives.
    length: Option<u32>,
}

/// Result of adding a segment to an [`Assembly`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rlc) enum Addition {
    /// Some octets of the segment are new.
    New,
    /// All octets have been received before.
    Known,
    /// The segment contradicts an earlier one about the length of the whole.
    Contradiction,
}

impl Assembly {
    /// Adds the octets of a segment that are new.
    pub(in crate::rlc) fn add(&mut self, segment: Segment<'_>) -> Addition {
        let end = segment.end();
        let received_end = self.pieces.last().map_or(0, |(offset, octets)| offset + octets.len() as u32);
        let is_short = segment.is_last && end < received_end;
        let is_long = self.length.is_some_and(|length| end > length || segment.is_last && end != length);
        if is_short || is_long {
            return Addition::Contradiction;
        }
        if segment.is_last {
            self.length = Some(end);
        }
        let before = self.received;
        let mut from = segment.offset;
        let mut at = self.pieces.partition_point(|(offset, octets)| offset + octets.len() as u32 <= from);
        while from < end {
            match self.pieces.get(at).map(|(offset, octets)| (*offset, offset + octets.len() as u32)) {
                Some((start, piece_end)) if start <= from => {
                    from = piece_end;
                    at += 1;
                }
                next => {
                    let gap_end = next.map_or(end, |(start, _)| start.min(end));
                    let gap = (from - segment.offset) as usize..(gap_end - segment.offset) as usize;
                    at = self.insert(at, from, &segment.octets[gap]) + 1;
                    from = gap_end;
                }
            }
        }
        if self.received > before { Addition::New } else { Addition::Known }
    }

    /// Inserts octets before the piece at index `at`. Returns the index of the piece that has them.
    fn insert(&mut self, at: usize, offset: u32, octets: &[u8]) -> usize {
        self.received += octets.len() as u32;
        if let Some((start, before)) = at.checked_sub(1).and_then(|index| self.pieces.get_mut(index))
            && *start + before.len() as u32 == offset
        {
            before.extend_from_slice(octets);
            return at - 1;
        }
        self.pieces.insert(at, (offset, octets.to_vec()));
        at
    }

    pub(in crate::rlc) fn is_complete(&self) -> bool {
        self.length == Some(self.received)
    }

    /// The octets of a complete SDU or PDU.
    pub(in crate::rlc) fn into_octets(self) -> Vec<u8> {
        let length = self.received as usize;
        let mut pieces = self.pieces.into_iter();
        let mut whole = pieces.next().map_or_else(Vec::new, |(_, octets)| octets);
        whole.reserve_exact(length - whole.len());
        pieces.for_each(|(_, octets)| whole.extend_from_slice(&octets));
        whole
    }

    /// The received octets with their offsets, in ascending order.
    pub(in crate::rlc) fn into_pieces(self) -> Vec<(u32, Vec<u8>)> {
        self.pieces
    }

    /// Whether the last octet of the whole has been received.
    pub(in crate::rlc) fn has_end(&self) -> bool {
        self.length.is_some()
    }

    /// The octets from `from` on that have been received without a hole. `from` must have been reached so.
    pub(in crate::rlc) fn prefix_from(&self, from: u32) -> impl Iterator<Item = &[u8]> {
        let mut expected = from;
        self.pieces.iter().skip_while(move |(offset, octets)| offset + octets.len() as u32 <= from).map_while(
            move |(offset, octets)| {
                let skipped = expected.checked_sub(*offset)? as usize;
                expected = offset + octets.len() as u32;
                Some(&octets[skipped..])
            },
        )
    }

    /// Whether an octet before the last received one is missing.
    pub(in crate::rlc) fn has_hole(&self) -> bool {
        self.pieces.last().is_some_and(|(offset, octets)| offset + octets.len() as u32 > self.received)
    }

    /// The missing octets in ascending order. The last range has no end if the length is not known.
    pub(in crate::rlc) fn holes(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        let starts =
            std::iter::once(0).chain(self.pieces.iter().map(|(offset, octets)| offset + octets.len() as u32));
        let ends = self.pieces.iter().map(|(offset, _)| Some(*offset)).chain([self.length]);
        starts.zip(ends).filter(|(start, end)| end.is_none_or(|end| *start < end))
    }
}

#[cfg(test)]
mod tests {
    use airtcp_testkit::sample::cases;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn touching_ranges_merge() {
        let mut ranges = Ranges::default();
        for range in [10..20, 30..40, 20..25, 50..60, 24..51] {
            ranges.insert(range);
        }
        assert_eq!(ranges.first(), Some(10..60));
        assert_eq!(ranges.octets(), 50);
        assert!(ranges.contain(&(10..60)) && !ranges.contain(&(9..11)) && !ranges.contain(&(59..61)));
        ranges.remove_first(50);
        assert!(ranges.is_empty());
    }

    proptest! {
        #![proptest_config(cases(500))]

        #[test]
        fn ranges_match_a_set_of_octets(inserted in prop::collection::vec((0_u32..60, 1_u32..15), 1..20)) {
            let mut ranges = Ranges::default();
            let mut set = [false; 80];
            for (start, length) in inserted {
                let range = start..start + length;
                prop_assert_eq!(ranges.contain(&range), range.clone().all(|octet| set[octet as usize]));
                ranges.insert(range.clone());
                range.for_each(|octet| set[octet as usize] = true);
                prop_assert_eq!(ranges.octets(), set.iter().filter(|known| **known).count() as u64);
                prop_assert!(ranges.0.is_sorted_by(|a, b| a.end < b.start));
            }
        }

        /// Segments in any order, with any overlap, give the same octets.
        #[test]
        fn overlapping_segments_assemble_exactly(
            length in 1_u32..50,
            segments in prop::collection::vec((any::<prop::sample::Index>(), 1_u32..20), 1..40),
        ) {
            let whole: Vec<u8> = (0..length as u8).collect();
            let mut assembly = Assembly::default();
            let mut known = vec![false; whole.len()];
            for (start, segment_length) in segments {
                let offset = start.index(whole.len()) as u32;
                let end = (offset + segment_length).min(length);
                let octets = &whole[offset as usize..end as usize];
                let is_new = known[offset as usize..end as usize].contains(&false);
                let expected = if is_new { Addition::New } else { Addition::Known };
                let segment = Segment { offset, octets, is_last: end == length };
                prop_assert_eq!(assembly.add(segment), expected);
                known[offset as usize..end as usize].fill(true);
                let last = known.iter().rposition(|known| *known).unwrap_or(0);
                prop_assert_eq!(assembly.has_hole(), known[..last].contains(&false));
                let prefix: Vec<u8> = assembly.prefix_from(0).flatten().copied().collect();
                let first_missing = known.iter().position(|known| !known).unwrap_or(known.len());
                prop_assert_eq!(&prefix[..], &whole[..first_missing]);
                for (start, end) in assembly.holes() {
                    let end = end.unwrap_or(length) as usize;
                    prop_assert!(!known[start as usize..end].contains(&true));
                }
                let missing: u32 = assembly.holes().map(|(start, end)| end.unwrap_or(length) - start).sum();
                prop_assert_eq!(missing as usize, known.iter().filter(|known| !**known).count());
            }
            prop_assert_eq!(assembly.is_complete(), !known.contains(&false));
            if assembly.is_complete() {
                prop_assert_eq!(assembly.into_octets(), whole);
            }
        }
    }

    #[test]
    fn contradictory_lengths_are_refused() {
        let mut assembly = Assembly::default();
        let segment = |offset, octets, is_last| Segment { offset, octets, is_last };
        assert_eq!(assembly.add(segment(4, &[4, 5], true)), Addition::New);
        assert_eq!(assembly.add(segment(4, &[4], true)), Addition::Contradiction);
        assert_eq!(assembly.add(segment(5, &[5, 6], false)), Addition::Contradiction);
        assert_eq!(assembly.add(segment(0, &[0; 4], false)), Addition::New);
        assert!(assembly.is_complete());
        let mut assembly = Assembly::default();
        assert_eq!(assembly.add(segment(4, &[4, 5], false)), Addition::New);
        assert_eq!(assembly.add(segment(0, &[0; 4], true)), Addition::Contradiction);
    }
}
