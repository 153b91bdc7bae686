//! The octets that senders send when nobody gives them a file: whoever receives them can say where they differ.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

/// Bytes that are a function of their place, so that a misplaced one shows in any digest or dump: SplitMix64 of
/// the place divided by 8, little-endian.
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
    /// The next octets, as many as fit.
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

    /// Fewer bytes than a word.
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            *byte = octet(self.at);
            self.at += 1;
        }
    }
}

/// The first octet of a stream that is not the pattern's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstDifference {
    /// How many octets come before it.
    pub at: u64,
    /// The pattern's.
    pub expected: u8,
    /// The stream's.
    pub got: u8,
}

/// Lays a stream beside the pattern, as it arrives.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    pattern: Pattern,
    expected: Vec<u8>,
    /// `None`: all octets so far are the pattern's.
    pub first: Option<FirstDifference>,
}

impl Comparison {
    /// The next octets of the stream.
    pub fn take(&mut self, octets: &[u8]) {
        if self.first.is_some() {
            return;
        }
        let start = self.pattern.at;
        self.expected.resize(octets.len(), 0);
        self.pattern.write(&mut self.expected);
        let differs = self.expected.iter().zip(octets).position(|(expected, got)| expected != got);
        self.first = differs.map(|place| FirstDifference {
            at: start + place as u64,
            expected: self.expected[place],
            got: octets[place],
        });
    }
}

/// The pattern's octet behind so many others.
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
    fn the_pattern_depends_on_the_place_alone() {
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
        // SplitMix64's first output for the seed 0.
        assert_eq!(whole[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
    }

    #[test]
    fn the_first_difference_is_found_wherever_the_stream_is_cut() {
        let mut stream = vec![0; 5000];
        Pattern::default().read_exact(&mut stream).unwrap();
        let right = stream[3000];
        stream[3000] ^= 0x20;
        stream[4000] ^= 0x01;
        for piece in [1, 7, 1448, 5000] {
            let mut comparison = Comparison::default();
            stream.chunks(piece).for_each(|piece| comparison.take(piece));
            let expected = FirstDifference { at: 3000, expected: right, got: right ^ 0x20 };
            assert_eq!(comparison.first, Some(expected), "pieces of {piece}");
        }
        let mut comparison = Comparison::default();
        comparison.take(&stream[..3000]);
        assert_eq!(comparison.first, None);
    }
}
