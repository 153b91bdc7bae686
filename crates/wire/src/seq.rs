//! Sequence numbers: 32 bits on the wire, `u64` stream offsets inside the program.
//!
//! The SYN has offset 0, and the first byte of data has offset 1. Only this file contains wrapping
//! arithmetic, so comparisons elsewhere are safe from wraparound.

use std::fmt;

/// A sequence or acknowledgment number of a TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// Returns the wire number of stream offset `offset`, for a stream whose SYN has this number.
    pub const fn at(self, offset: u64) -> Self {
        Self(self.0.wrapping_add(offset as u32))
    }

    /// Returns the stream offset nearest to `near` that this number can represent, for a stream whose SYN has
    /// the number `initial`. Returns `None` if that offset is before the start of the stream.
    #[inline]
    pub fn offset(self, initial: Self, near: u64) -> Option<u64> {
        let distance = self.0.wrapping_sub(initial.at(near).0) as i32;
        near.checked_add_signed(i64::from(distance))
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_survive_any_number_of_wraps() {
        for initial in [0, 1, 77, u32::MAX, 1 << 31] {
            let iss = Seq(initial);
            for near in [0_u64, 1, 1 << 31, u64::from(u32::MAX), 5 << 32] {
                for step in [0_u64, 1, 1460, (1 << 31) - 1] {
                    assert_eq!(iss.at(near + step).offset(iss, near), Some(near + step));
                    if let Some(before) = near.checked_sub(step) {
                        assert_eq!(iss.at(before).offset(iss, near), Some(before));
                    }
                }
            }
        }
    }

    #[test]
    fn sequence_number_before_syn_has_no_offset() {
        assert_eq!(Seq(99).offset(Seq(100), 0), None);
        assert_eq!(Seq(u32::MAX).offset(Seq(0), 0), None);
    }
}
