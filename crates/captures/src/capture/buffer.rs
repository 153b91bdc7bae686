//! Buffered reading and byte orders, for both file formats.

use std::io::{self, Read};
use std::ops::Range;

const CHUNK: usize = 1 << 18;

/// A sliding window over the bytes of the file.
pub(super) struct Buffer<R> {
    input: R,
    octets: Vec<u8>,
    /// Index of the first byte that was not taken.
    at: usize,
    /// An error that occurred after the bytes in the window. The next read returns it.
    error: Option<io::Error>,
}

impl<R: Read> Buffer<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, octets: Vec::new(), at: 0, error: None }
    }

    /// Returns the whole window. Ranges from [`take`](Self::take) index into it until the next `fill`.
    pub(super) fn octets(&self) -> &[u8] {
        &self.octets
    }

    pub(super) fn rest(&self) -> &[u8] {
        &self.octets[self.at..]
    }

    /// Takes this number of bytes from `rest`. A preceding [`fill`](Self::fill) must have read them.
    pub(super) fn take(&mut self, octets: usize) -> Range<usize> {
        let begin = self.at;
        self.at += octets;
        begin..self.at
    }

    /// Reads until `rest` has this number of bytes. Returns false if the file ends earlier.
    pub(super) fn fill(&mut self, octets: usize) -> io::Result<bool> {
        while self.octets.len() - self.at < octets {
            if self.at > 0 {
                self.octets.drain(..self.at);
                self.at = 0;
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            let want = octets.max(CHUNK) - self.octets.len();
            match self.input.by_ref().take(want as u64).read_to_end(&mut self.octets) {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                // The bytes before the error are valid.
                Err(error) => self.error = Some(error),
            }
        }
        Ok(true)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Big,
    Little,
}

impl Order {
    pub(super) fn long(self, octets: &[u8], at: usize) -> Option<u32> {
        let octets = octets.get(at..at + 4)?.try_into().ok()?;
        Some(match self {
            Self::Big => u32::from_be_bytes(octets),
            Self::Little => u32::from_le_bytes(octets),
        })
    }

    pub(super) fn word(self, octets: &[u8], at: usize) -> Option<u16> {
        let octets = octets.get(at..at + 2)?.try_into().ok()?;
        Some(match self {
            Self::Big => u16::from_be_bytes(octets),
            Self::Little => u16::from_le_bytes(octets),
        })
    }
}
