//! Bytes of a frame, of which the capture may have kept only the beginning.

use super::skipped::Skipped;
use crate::problem::Problem;

/// The captured part of some bytes, and their length on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Octets<'a> {
    kept: &'a [u8],
    /// The length on the wire, at least the length of `kept`.
    len: usize,
}

impl<'a> Octets<'a> {
    pub(crate) fn new(kept: &'a [u8], len: usize) -> Self {
        Self { kept, len: len.max(kept.len()) }
    }

    pub(crate) fn kept(&self) -> &'a [u8] {
        self.kept
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns why the first `octets` bytes are not available: the capture did not keep them, or they never
    /// existed.
    pub(crate) fn missing(&self, octets: usize) -> Skipped {
        if octets <= self.len { Problem::HeadersCut.into() } else { Problem::Malformed.into() }
    }

    /// Returns the first `N` bytes.
    pub(crate) fn first<const N: usize>(&self) -> Result<&'a [u8; N], Skipped> {
        self.kept.first_chunk().ok_or_else(|| self.missing(N))
    }

    /// Returns the `N` bytes at offset `place`.
    pub(crate) fn at<const N: usize>(&self, place: usize) -> Result<&'a [u8; N], Skipped> {
        let rest = self.kept.get(place..).unwrap_or_default();
        rest.first_chunk().ok_or_else(|| self.missing(place + N))
    }

    /// Returns the 16-bit number in network byte order at offset `place`.
    pub(crate) fn word(&self, place: usize) -> Result<u16, Skipped> {
        self.at(place).map(|octets| u16::from_be_bytes(*octets))
    }

    /// Returns the bytes after the first `first`.
    pub(crate) fn from(self, first: usize) -> Result<Self, Skipped> {
        let len = self.len.checked_sub(first).ok_or(Problem::Malformed)?;
        Ok(Self { kept: self.kept.get(first..).unwrap_or_default(), len })
    }

    /// Returns the first `len` bytes, or all if there are fewer.
    pub(crate) fn to(self, len: usize) -> Self {
        Self { kept: &self.kept[..self.kept.len().min(len)], len: self.len.min(len) }
    }
}
