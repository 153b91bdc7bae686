//! Sequence numbers: 32 bits on the wire, `u64` stream offsets inside.
//!
//! Offset 0 is the SYN, the first octet of data has offset 1. Only this file does arithmetic that wraps, so
//! no comparison anywhere else can be fooled by a wrap.

use std::fmt;

/// A sequence or acknowledgment number as it stands in a TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// The wire number of stream offset `offset`, for a stream whose SYN has this number.
    pub const fn at(self, offset: u64) -> Self {
        Self(self.0.wrapping_add(offset as u32))
    }

    /// The stream offset nearest to `near` that this number can mean, for a stream whose SYN has number
    /// `initial`. `None` if that lies before the stream's beginning.
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
    fn numbers_before_the_syn_have_no_offset() {
        assert_eq!(Seq(99).offset(Seq(100), 0), None);
        assert_eq!(Seq(u32::MAX).offset(Seq(0), 0), None);
    }
}
