//! The test pattern that senders transmit if they have no file. A receiver can locate any difference from the
//! pattern.

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
        self.fill(out);
        Ok(out.len())
    }
}

impl Pattern {
    /// Fills `out` with the next bytes.
    fn fill(&mut self, out: &mut [u8]) {
        let head = out.len().min((8 - self.at % 8) as usize % 8);
        let (head, rest) = out.split_at_mut(head);
        let (words, tail) = rest.as_chunks_mut::<8>();
        self.fill_bytewise(head);
        for word in words {
            *word = splitmix64(self.at / 8).to_le_bytes();
            self.at += 8;
        }
        self.fill_bytewise(tail);
    }

    /// Fills less than a word.
    fn fill_bytewise(&mut self, out: &mut [u8]) {
        for byte in out {
            *byte = byte_at(self.at);
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

/// Compares an arriving stream with the pattern.
#[derive(Clone, Debug, Default)]
pub struct PatternCheck {
    pattern: Pattern,
    expected: Vec<u8>,
    /// The first difference. `None` if all bytes so far match.
    pub first: Option<FirstDifference>,
}

impl PatternCheck {
    /// Compares the next bytes of the stream.
    pub fn take(&mut self, received: &[u8]) {
        if self.first.is_some() {
            return;
        }
        let start = self.pattern.at;
        self.expected.resize(received.len(), 0);
        self.pattern.fill(&mut self.expected);
        let mut bytes = self.expected.iter().zip(received).zip(start..);
        let first = bytes.find(|((expected, received), _)| expected != received);
        self.first = first.map(|((&expected, &received), at)| FirstDifference { at, expected, received });
    }
}

/// The byte of the pattern at this offset.
pub fn byte_at(at: u64) -> u8 {
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
        let mut all = vec![0; 1000];
        Pattern::default().read_exact(&mut all).unwrap();
        let mut chunks = Vec::new();
        let mut pattern = Pattern::default();
        for len in [1, 2, 3, 5, 8, 13, 700, 268] {
            let mut chunk = vec![0; len];
            pattern.read_exact(&mut chunk).unwrap();
            chunks.extend(chunk);
        }
        assert_eq!(chunks, all);
        // The first output of SplitMix64 for the seed 0.
        assert_eq!(all[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
    }

    #[test]
    fn first_difference_is_independent_of_chunk_size() {
        let mut stream = vec![0; 5000];
        Pattern::default().read_exact(&mut stream).unwrap();
        let right = stream[3000];
        stream[3000] ^= 0x20;
        stream[4000] ^= 0x01;
        for size in [1, 7, 1448, 5000] {
            let mut check = PatternCheck::default();
            stream.chunks(size).for_each(|chunk| check.take(chunk));
            let expected = FirstDifference { at: 3000, expected: right, received: right ^ 0x20 };
            assert_eq!(check.first, Some(expected), "chunks of {size}");
        }
        let mut check = PatternCheck::default();
        check.take(&stream[..3000]);
        assert_eq!(check.first, None);
    }
}
