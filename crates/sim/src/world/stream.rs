//! The data that a flow's sender writes. Each flow has a different stream, so that mix-ups are
//! detected.

use std::ops::Range;

use airlink::packet::Direction;

/// A sequence of eight-byte words, which are distinct across all streams. Words are as fast to
/// generate as single bytes, and every byte is written and verified.
pub(super) struct Stream {
    first: u64,
}

const WORD: u64 = 8;
/// Number of bits of a word's index within its stream, so a stream has room for 2^43 bytes.
const WORDS: u32 = 40;

impl Stream {
    pub(super) fn new(direction: Direction, flow: usize) -> Self {
        Self { first: (2 * flow as u64 + direction as u64) << WORDS }
    }

    /// Returns the bytes of this range, generated in `scratch`.
    pub(super) fn octets<'a>(&self, offsets: Range<u64>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let skip = (offsets.start % WORD) as usize;
        let len = (offsets.end - offsets.start) as usize;
        let whole = (skip + len).next_multiple_of(WORD as usize);
        if scratch.len() < whole {
            scratch.resize(whole, 0);
        }
        let first = self.first + offsets.start / WORD;
        for (chunk, number) in scratch[..whole].as_chunks_mut().0.iter_mut().zip(first..) {
            *chunk = word(number);
        }
        &scratch[skip..skip + len]
    }

    /// Like [`matching_len`](Self::matching_len), but compares only every eighth word of long pieces. This detects
    /// any piece that is shifted or belongs to another flow.
    pub(super) fn matching_len_in_samples(&self, offset: u64, octets: &[u8], scratch: &mut Vec<u8>) -> usize {
        const DISTANCE: usize = 8;
        let skip = offset.next_multiple_of(WORD) - offset;
        let words = octets.get(skip as usize..).unwrap_or_default().as_chunks().0;
        let mut samples = words.iter().zip(self.first + (offset + skip) / WORD..).step_by(DISTANCE);
        if words.len() > DISTANCE && samples.all(|(octets, number)| *octets == word(number)) {
            return octets.len();
        }
        self.matching_len(offset, octets, scratch)
    }

    /// Returns how many leading bytes of `octets` match the stream at `offset`.
    pub(super) fn matching_len(&self, offset: u64, octets: &[u8], scratch: &mut Vec<u8>) -> usize {
        let expected = self.octets(offset..offset + octets.len() as u64, scratch);
        if expected == octets {
            return octets.len();
        }
        expected.iter().zip(octets).take_while(|(expected, octet)| expected == octet).count()
    }
}

/// Returns the word with this number.
fn word(number: u64) -> [u8; WORD as usize] {
    // Multiplication by an odd number is injective modulo 2^64.
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_detect_shifted_and_foreign_pieces() {
        let (own, other) = (Stream::new(Direction::Down, 3), Stream::new(Direction::Down, 4));
        let mut scratch = Vec::new();
        for (start, len) in [(0, 512), (3, 200), (13, 73), (5, 9), (8, 0)] {
            let piece = own.octets(start..start + len, &mut Vec::new()).to_vec();
            let mut agreeing = |stream: &Stream, at| stream.matching_len_in_samples(at, &piece, &mut scratch);
            assert_eq!(agreeing(&own, start), piece.len(), "{start} {len}");
            if len > 0 {
                assert!(agreeing(&own, start + 1) < piece.len(), "{start} {len}: shifted");
                assert!(agreeing(&own, start + 8) < piece.len(), "{start} {len}: shifted by a word");
                assert!(agreeing(&other, start) < piece.len(), "{start} {len}: another flow");
            }
        }
    }

    #[test]
    fn stream_pieces_match_whole_stream() {
        let stream = Stream::new(Direction::Down, 3);
        let whole = stream.octets(0..200, &mut Vec::new()).to_vec();
        let mut scratch = vec![9; 500];
        for (start, end) in [(0, 0), (0, 8), (3, 5), (7, 9), (1, 199), (16, 200), (65, 65)] {
            let piece = stream.octets(start..end, &mut scratch);
            assert_eq!(piece, &whole[start as usize..end as usize], "{start}..{end}");
        }
    }

    #[test]
    fn first_wrong_byte_is_located() {
        let stream = Stream::new(Direction::Up, 0);
        let mut scratch = Vec::new();
        let right = stream.octets(13..113, &mut scratch).to_vec();
        assert_eq!(stream.matching_len(13, &right, &mut scratch), 100);
        for wrong in 0..100 {
            let mut octets = right.clone();
            octets[wrong] ^= 0x10;
            assert_eq!(stream.matching_len(13, &octets, &mut scratch), wrong);
        }
    }

    /// A TCP that mixes up flows, directions or positions must be detected.
    #[test]
    fn stream_words_are_unique_across_flows() {
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
