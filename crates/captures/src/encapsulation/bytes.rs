//! Bytes of a frame, of which the capture may contain only the beginning, and the reasons why a parser stops.

use crate::other::Other;
use crate::problem::Problem;

/// The captured part of some bytes, and their length on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    captured: &'a [u8],
    /// The length on the wire, at least the length of `captured`.
    len: usize,
}

/// The reason why a frame does not contain a TCP packet that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skipped {
    Other(Other),
    Problem(Problem),
}

impl From<Other> for Skipped {
    fn from(other: Other) -> Self {
        Self::Other(other)
    }
}

impl From<Problem> for Skipped {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(captured: &'a [u8], len: usize) -> Self {
        Self { captured, len: len.max(captured.len()) }
    }

    pub(crate) fn captured(&self) -> &'a [u8] {
        self.captured
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns why the first `len` bytes are not available: the capture cut these bytes off, or the frame
    /// ends earlier.
    pub(crate) fn missing(&self, len: usize) -> Skipped {
        if len <= self.len { Problem::HeadersCut.into() } else { Problem::Malformed.into() }
    }

    /// Returns the first `N` bytes.
    pub(crate) fn first<const N: usize>(&self) -> Result<&'a [u8; N], Skipped> {
        self.captured.first_chunk().ok_or_else(|| self.missing(N))
    }

    /// Returns the `N` bytes at `offset`.
    pub(crate) fn at<const N: usize>(&self, offset: usize) -> Result<&'a [u8; N], Skipped> {
        let rest = self.captured.get(offset..).unwrap_or_default();
        rest.first_chunk().ok_or_else(|| self.missing(offset + N))
    }

    /// Returns the 16-bit number in network byte order at `offset`.
    pub(crate) fn word(&self, offset: usize) -> Result<u16, Skipped> {
        self.at(offset).map(|bytes| u16::from_be_bytes(*bytes))
    }

    /// Returns the bytes after the first `first`.
    pub(crate) fn from(self, first: usize) -> Result<Self, Skipped> {
        let len = self.len.checked_sub(first).ok_or(Problem::Malformed)?;
        Ok(Self { captured: self.captured.get(first..).unwrap_or_default(), len })
    }

    /// Returns the first `len` bytes, or all if there are fewer.
    pub(crate) fn to(self, len: usize) -> Self {
        Self { captured: &self.captured[..self.captured.len().min(len)], len: self.len.min(len) }
    }
}
