//! Two experimental TCP options (RFC 6994: each begins with an ExID), both from P3 (Lai, Leung, Li, "Design
//! and analysis of TCP AIMD in wireless networks", §III B).

/// An option kind that is reserved for experiments (RFC 4727 §3.1).
pub const KIND: u8 = 254;
/// ExID of the option in which base stations add up the loss rates of their radio links: "qw". It is for
/// laboratories and is not registered with IANA.
pub const LOSS_RATE: u16 = 0x7177;
/// ExID of the option in which a receiver counts the segments that were reordered by more than three.
pub const REORDERING_ALARM: u16 = 0x7178;
/// Length of either option in bytes: kind, length, ExID and a 16-bit value.
pub const LENGTH: usize = 6;

/// A probability in units of 2^-16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LossRate(pub u16);

impl LossRate {
    /// Returns the nearest value. Ratios outside of 0 to 1 saturate.
    pub fn from_ratio(ratio: f64) -> Self {
        // `as` saturates.
        Self((ratio * 65_536.0).round() as u16)
    }

    /// Returns the loss rate as a number from 0 to 1.
    pub fn ratio(self) -> f64 {
        f64::from(self.0) / 65_536.0
    }

    /// Returns the combined loss rate of two links: their sum, as in the paper, limited to just below 1.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for LossRate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.ratio())
    }
}
