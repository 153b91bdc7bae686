//! Fields that are not aligned to octets.

use crate::rlc::am::ReceiveError;

/// Reads fields from the most significant bit on.
pub(super) struct BitReader<'a> {
    octets: &'a [u8],
    /// Number of bits read.
    position: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(octets: &'a [u8]) -> Self {
        Self { octets, position: 0 }
    }

    /// Reads a field of at most 16 bits.
    pub(super) fn read(&mut self, bits: usize) -> Result<u32, ReceiveError> {
        let first = self.position / 8;
        self.position += bits;
        let end = self.position.div_ceil(8);
        let octets = self.octets.get(first..end).ok_or(ReceiveError::HeaderTruncated)?;
        let value = octets.iter().fold(0, |value, octet| value << 8 | u32::from(*octet));
        Ok(value >> (end * 8 - self.position) & ((1 << bits) - 1))
    }

    pub(super) fn read_flag(&mut self) -> Result<bool, ReceiveError> {
        Ok(self.read(1)? == 1)
    }

    /// The octets after the last one of which a bit was read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.octets.get(self.position.div_ceil(8)..).unwrap_or_default()
    }
}

/// Writes fields from the most significant bit on. The last octet is filled with zero bits.
pub(super) struct BitWriter {
    octets: Vec<u8>,
    /// Bits of the last octet that are not written.
    free: usize,
}

impl BitWriter {
    pub(super) fn with_capacity(octets: usize) -> Self {
        Self { octets: Vec::with_capacity(octets), free: 0 }
    }

    /// Writes a field of at most 16 bits.
    pub(super) fn write(&mut self, value: u32, bits: usize) {
        let mut left = bits;
        while left > 0 {
            if self.free == 0 {
                self.octets.push(0);
                self.free = 8;
            }
            let written = left.min(self.free);
            let part = (value >> (left - written) & ((1 << written) - 1)) as u8;
            if let Some(last) = self.octets.last_mut() {
                *last |= part << (self.free - written);
            }
            self.free -= written;
            left -= written;
        }
    }

    pub(super) fn into_octets(self) -> Vec<u8> {
        self.octets
    }
}
