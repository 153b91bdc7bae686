//! Buffered reading and byte orders, for both file formats.

use std::io::{self, Read};
use std::ops::Range;

const CHUNK: usize = 1 << 18;

/// A sliding window over the bytes of the file.
pub(super) struct Buffer<R> {
    input: R,
    bytes: Vec<u8>,
    /// Index of the first byte that was not taken.
    at: usize,
    /// An error that occurred after the bytes in the window. The next read returns it.
    error: Option<io::Error>,
}

impl<R: Read> Buffer<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, bytes: Vec::new(), at: 0, error: None }
    }

    /// Returns the whole window. Ranges from [`take`](Self::take) index into it until the next `fill`.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// Takes this number of bytes from `rest`. A preceding [`fill`](Self::fill) must have read them.
    pub(super) fn take(&mut self, bytes: usize) -> Range<usize> {
        let begin = self.at;
        self.at += bytes;
        begin..self.at
    }

    /// Reads until `rest` has this number of bytes. Returns false if the file ends earlier.
    pub(super) fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        while self.bytes.len() - self.at < bytes {
            if self.at > 0 {
                self.bytes.drain(..self.at);
                self.at = 0;
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            let want = bytes.max(CHUNK) - self.bytes.len();
            match self.input.by_ref().take(want as u64).read_to_end(&mut self.bytes) {
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
    pub(super) fn long(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        })
    }

    pub(super) fn word(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(match self {
            Self::Big => u16::from_be_bytes(bytes),
            Self::Little => u16::from_le_bytes(bytes),
        })
    }
}
