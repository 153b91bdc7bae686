//! The test pattern that senders transmit if they have no file. A receiver can locate any difference from it.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

/// A byte stream in which each byte depends on its offset, so that a misplaced byte shows in any digest or
/// dump: SplitMix64 of the offset divided by 8, little-endian.
#[derive(Clone, Debug, Default)]
pub struct Pattern {
    at: u64,
}

impl Read for Pattern {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.write(out);
        Ok(out.len())
    }
}

impl Pattern {
    /// Fills `out` with the next bytes.
    fn write(&mut self, out: &mut [u8]) {
        let head = out.len().min((8 - self.at % 8) as usize % 8);
        let (head, rest) = out.split_at_mut(head);
        let (words, tail) = rest.as_chunks_mut::<8>();
        self.fill(head);
        for word in words {
            *word = splitmix64(self.at / 8).to_le_bytes();
            self.at += 8;
        }
        self.fill(tail);
    }

    /// Fills less than a word.
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            *byte = octet(self.at);
            self.at += 1;
        }
    }
}

/// The first byte of a stream that differs from the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstDifference {
    /// The offset of the byte.
    pub at: u64,
    /// The byte of the pattern.
    pub expected: u8,
    /// The byte of the stream.
    pub received: u8,
}

/// Compares a stream to the pattern as it arrives.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    pattern: Pattern,
    expected: Vec<u8>,
    /// The first difference. `None` if all bytes so far match.
    pub first: Option<FirstDifference>,
}

impl Comparison {
    /// Compares the next bytes of the stream.
    pub fn take(&mut self, octets: &[u8]) {
        if self.first.is_some() {
            return;
        }
        let start = self.pattern.at;
        self.expected.resize(octets.len(), 0);
        self.pattern.write(&mut self.expected);
        let differs = self.expected.iter().zip(octets).position(|(expected, received)| expected != received);
        self.first = differs.map(|place| FirstDifference {
            at: start + place as u64,
            expected: self.expected[place],
            received: octets[place],
        });
    }
}

/// The byte of the pattern at this offset.
pub fn octet(at: u64) -> u8 {
    splitmix64(at / 8).to_le_bytes()[(at % 8) as usize]
}

fn splitmix64(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_depends_only_on_offset() {
        let mut whole = vec![0; 1000];
        Pattern::default().read_exact(&mut whole).unwrap();
        let mut pieces = Vec::new();
        let mut pattern = Pattern::default();
        for len in [1, 2, 3, 5, 8, 13, 700, 268] {
            let mut piece = vec![0; len];
            pattern.read_exact(&mut piece).unwrap();
            pieces.extend(piece);
        }
        assert_eq!(pieces, whole);
        // The first output of SplitMix64 for the seed 0.
        assert_eq!(whole[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
    }

    #[test]
    fn first_difference_is_independent_of_chunk_size() {
        let mut stream = vec![0; 5000];
        Pattern::default().read_exact(&mut stream).unwrap();
        let right = stream[3000];
        stream[3000] ^= 0x20;
        stream[4000] ^= 0x01;
        for piece in [1, 7, 1448, 5000] {
            let mut comparison = Comparison::default();
            stream.chunks(piece).for_each(|piece| comparison.take(piece));
            let expected = FirstDifference { at: 3000, expected: right, received: right ^ 0x20 };
            assert_eq!(comparison.first, Some(expected), "pieces of {piece}");
        }
        let mut comparison = Comparison::default();
        comparison.take(&stream[..3000]);
        assert_eq!(comparison.first, None);
    }
}
