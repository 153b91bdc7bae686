//! What a flow's sender writes: a stream unlike any other flow's, so that a mix-up is noticed.

use std::ops::Range;

use airlink::packet::Direction;

/// Words of eight octets, no two of them equal in all streams. Applications write and check every octet, and a word
/// takes no longer to make than one octet would.
pub(super) struct Stream {
    first: u64,
}

const WORD: u64 = 8;
/// The number of a stream's first word is a multiple of 2^40: a stream has room for 2^43 octets.
const WORDS: u32 = 40;

impl Stream {
    pub(super) fn new(direction: Direction, flow: usize) -> Self {
        Self { first: (2 * flow as u64 + direction as u64) << WORDS }
    }

    /// The octets at these offsets, made in `scratch`.
    pub(super) fn octets<'a>(&self, offsets: Range<u64>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let skip = (offsets.start % WORD) as usize;
        let len = (offsets.end - offsets.start) as usize;
        let whole = (skip + len).next_multiple_of(WORD as usize);
        if scratch.len() < whole {
            scratch.resize(whole, 0);
        }
        let first = self.first + offsets.start / WORD;
        for (chunk, number) in scratch[..whole].as_chunks_mut().0.iter_mut().zip(first..) {
            // Multiplication by an odd number is one to one.
            *chunk = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        }
        &scratch[skip..skip + len]
    }

    /// How many of `octets`, from the front, are those of the stream at `offset`.
    pub(super) fn agreeing(&self, offset: u64, octets: &[u8], scratch: &mut Vec<u8>) -> usize {
        let expected = self.octets(offset..offset + octets.len() as u64, scratch);
        if expected == octets {
            return octets.len();
        }
        expected.iter().zip(octets).take_while(|(expected, octet)| expected == octet).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_from_the_whole() {
        let stream = Stream::new(Direction::Down, 3);
        let whole = stream.octets(0..200, &mut Vec::new()).to_vec();
        let mut scratch = vec![9; 500];
        for (start, end) in [(0, 0), (0, 8), (3, 5), (7, 9), (1, 199), (16, 200), (65, 65)] {
            let piece = stream.octets(start..end, &mut scratch);
            assert_eq!(piece, &whole[start as usize..end as usize], "{start}..{end}");
        }
    }

    #[test]
    fn the_first_wrong_octet_is_found() {
        let stream = Stream::new(Direction::Up, 0);
        let mut scratch = Vec::new();
        let right = stream.octets(13..113, &mut scratch).to_vec();
        assert_eq!(stream.agreeing(13, &right, &mut scratch), 100);
        for wrong in 0..100 {
            let mut octets = right.clone();
            octets[wrong] ^= 0x10;
            assert_eq!(stream.agreeing(13, &octets, &mut scratch), wrong);
        }
    }

    /// A TCP that mixes up flows, directions or places must not get away with it.
    #[test]
    fn a_word_is_found_nowhere_else() {
        let mut words = std::collections::BTreeSet::new();
        for (direction, flow) in [(Direction::Down, 0), (Direction::Up, 0), (Direction::Down, 9_999)] {
            let stream = Stream::new(direction, flow);
            let mut scratch = Vec::new();
            for word in stream.octets(0..80_000, &mut scratch).chunks(WORD as usize) {
                assert!(words.insert(word.to_vec()), "{direction} {flow}: {word:?}");
            }
        }
    }
}
