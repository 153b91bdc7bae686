//! The text of segments, as bytes or as a part of a known stream.
//!
//! A simulated application writes a stream whose bytes depend only on their position. Its text needs no
//! memory: a buffer or a packet keeps the position and the length, and produces the bytes where they are
//! needed.
//!
//! ```
//! use airwire::text::{Known, Text};
//!
//! let text = Text::Known(Known::new(1_000..2_000));
//! assert_eq!(text.slice(8..20), Text::Known(Known::new(1_008..1_020)));
//!
//! // The bytes of a position are always the same.
//! assert_eq!(text.to_vec()[8..20], text.slice(8..20).to_vec());
//! ```

use std::ops::Range;

/// A part of the known stream. Different applications write different ranges of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    start: u64,
    len: usize,
}

/// The stream consists of words, because words are as fast to produce as single bytes.
const WORD: usize = 8;

impl Known {
    /// Minimum length of the text of an [abbreviated](crate::segment::abbreviate) packet.
    pub const MIN_ABBREVIATED: usize = WORD + 1;

    /// Returns the part at these positions.
    pub const fn new(range: Range<u64>) -> Self {
        Self { start: range.start, len: (range.end - range.start) as usize }
    }

    /// Position of the first byte.
    pub const fn start(self) -> u64 {
        self.start
    }

    /// Position after the last byte.
    pub const fn end(self) -> u64 {
        self.start + self.len as u64
    }

    /// Number of bytes.
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns a part of this part. `range` counts from its first byte.
    ///
    /// # Panics
    /// If the range is not inside this part.
    #[inline]
    pub fn slice(self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {} bytes", self.len);
        Self { start: self.start + range.start as u64, len: range.len() }
    }

    /// Appends `next` if it follows this part. Returns whether it does.
    pub const fn extend(&mut self, next: Self) -> bool {
        let follows = self.end() == next.start;
        if follows {
            self.len += next.len;
        }
        follows
    }

    /// Returns the number of the word of the first byte, the first byte in it, and the number of bytes before the
    /// first whole word.
    fn first_word(self) -> (u64, usize, usize) {
        let skip = self.start as usize % WORD;
        (self.start / WORD as u64, skip, self.len.min((WORD - skip) % WORD))
    }

    /// Writes the bytes to `out`, which has the same length.
    fn write_to(self, out: &mut [u8]) {
        let (first, skip, before) = self.first_word();
        let (head, rest) = out.split_at_mut(before);
        head.copy_from_slice(&word(first)[skip..][..before]);
        let first = first + u64::from(skip > 0);
        let (words, tail) = rest.as_chunks_mut();
        let last = first + words.len() as u64;
        for (bytes, number) in words.iter_mut().zip(first..) {
            *bytes = word(number);
        }
        tail.copy_from_slice(&word(last)[..tail.len()]);
    }

    /// Appends the bytes to `out`.
    pub fn copy_to(self, out: &mut Vec<u8>) {
        let from = out.len();
        out.resize(from + self.len, 0);
        self.write_to(&mut out[from..]);
    }

    /// Returns how many leading bytes of `bytes` equal the known ones.
    pub fn matching_len(self, bytes: &[u8]) -> usize {
        let (first, skip, before) = self.first_word();
        let (head, rest) = bytes.split_at(before.min(bytes.len()));
        let following = first + u64::from(skip > 0);
        let (words, tail) = rest.as_chunks();
        let last = word(following + words.len() as u64);
        let matches = word(first)[skip..].starts_with(head)
            && words.iter().zip(following..).all(|(bytes, number)| *bytes == word(number))
            && last.starts_with(tail);
        if matches && bytes.len() <= self.len {
            return bytes.len();
        }
        let expected = (self.start..self.end()).map(|at| word(at / WORD as u64)[at as usize % WORD]);
        expected.zip(bytes).take_while(|(expected, byte)| expected == *byte).count()
    }
}

/// Returns the word with this number.
fn word(number: u64) -> [u8; WORD] {
    // Multiplication by an odd number is injective modulo 2^64.
    number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// The text of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Text<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// A part of the known stream.
    Known(Known),
}

impl Text<'_> {
    /// No text.
    pub const EMPTY: Self = Self::Bytes(&[]);

    /// Number of bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Known(known) => known.len,
        }
    }

    /// Whether it is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a part of the text.
    ///
    /// # Panics
    /// If the range is not inside the text.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> Self {
        match self {
            Self::Bytes(bytes) => Self::Bytes(&bytes[range]),
            Self::Known(known) => Self::Known(known.slice(range)),
        }
    }

    /// Appends the bytes to `out`.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Known(known) => known.copy_to(out),
        }
    }

    /// Returns the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        self.copy_to(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of this range, from whole words.
    fn bytes(range: Range<u64>) -> Vec<u8> {
        range.map(|position| word(position / WORD as u64)[position as usize % WORD]).collect()
    }

    #[test]
    fn parts_have_the_bytes_of_their_positions() {
        for start in 0..20 {
            for end in start..40 {
                let known = Known::new(start..end);
                assert_eq!(Text::Known(known).to_vec(), bytes(start..end), "{start}..{end}");
                assert_eq!(known.matching_len(&bytes(start..end)), known.len());
            }
        }
    }

    #[test]
    fn first_wrong_byte_is_located() {
        let known = Known::new(1013..1113);
        let right = Text::Known(known).to_vec();
        for wrong in 0..100 {
            let mut bytes = right.clone();
            bytes[wrong] ^= 0x10;
            assert_eq!(known.matching_len(&bytes), wrong);
        }
    }

    #[test]
    fn parts_extend_only_with_what_follows() {
        let mut known = Known::new(10..20);
        assert!(!known.extend(Known::new(21..30)) && !known.extend(Known::new(19..30)));
        assert!(known.extend(Known::new(20..30)));
        assert_eq!(known, Known::new(10..30));
        assert_eq!(known.slice(5..15), Known::new(15..25));
    }
}
