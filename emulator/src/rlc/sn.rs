//! Sequence numbers of LTE and NR. PDUs carry their low bits. Entities use unwrapped numbers, which never
//! return to
//! 0. They unwrap a received number with an edge of their window, the modulus base (36.322 §7.1, 38.322 §7.1).

/// Length of a sequence number in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rlc) struct SnBits(pub(in crate::rlc) u32);

impl SnBits {
    pub(in crate::rlc) const fn modulus(self) -> u64 {
        1 << self.0
    }

    /// AM_Window_Size or UM_Window_Size (36.322 §7.2, 38.322 §7.2), which is half of the number space for
    /// every length.
    pub(in crate::rlc) const fn window(self) -> u64 {
        self.modulus() / 2
    }

    /// The number on the wire.
    pub(in crate::rlc) const fn wire(self, sn: u64) -> u32 {
        (sn & (self.modulus() - 1)) as u32
    }

    /// The first number at or above `base` that is sent as `wire`.
    pub(in crate::rlc) const fn restore(self, base: u64, wire: u32) -> u64 {
        base + ((wire as u64).wrapping_sub(base) & (self.modulus() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_restored_across_the_wrap() {
        let bits = SnBits(10);
        for base in [0, 1, 1000, 1023, 1024, 5_000_000_000] {
            for distance in [0, 1, 511, 512, 1023] {
                let sn = base + distance;
                assert_eq!(bits.restore(base, bits.wire(sn)), sn);
            }
        }
        assert_eq!(bits.window(), 512);
    }
}
