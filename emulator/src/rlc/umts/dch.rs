//! Dedicated channels with common rates.

use airwire::time::Duration;
use serde::{Deserialize, Serialize};

/// A DCH for packet data, based on the reference radio bearers of TS 34.108 §6.10. Its rate determines the
/// TTI and the transport format set. Blocks have 336 bits, of which 320 are payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Dch {
    /// 64 kbit/s: 4 blocks in 20 ms.
    #[serde(rename = "64kbit")]
    Kbit64,
    /// 128 kbit/s: 8 blocks in 20 ms.
    #[serde(rename = "128kbit")]
    Kbit128,
    /// 384 kbit/s: 12 blocks in 10 ms.
    #[serde(rename = "384kbit")]
    Kbit384,
}

impl Dch {
    /// The transmission time interval.
    pub const fn tti(self) -> Duration {
        match self {
            Self::Kbit64 | Self::Kbit128 => Duration::from_millis(20),
            Self::Kbit384 => Duration::from_millis(10),
        }
    }

    /// Possible numbers of blocks in a TTI, in ascending order.
    pub const fn blocks(self) -> &'static [u16] {
        match self {
            Self::Kbit64 => &[1, 2, 3, 4],
            Self::Kbit128 => &[1, 2, 4, 8],
            Self::Kbit384 => &[1, 2, 4, 8, 12],
        }
    }

    /// Name of the rate in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kbit64 => "64kbit",
            Self::Kbit128 => "128kbit",
            Self::Kbit384 => "384kbit",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dch_rate_matches_its_name() {
        for (dch, kbit) in [(Dch::Kbit64, 64), (Dch::Kbit128, 128), (Dch::Kbit384, 384)] {
            let largest = u64::from(*dch.blocks().last().unwrap());
            assert_eq!(largest * 320 / dch.tti().as_millis(), kbit);
            assert_eq!(dch.name(), format!("{kbit}kbit"));
            assert_eq!(toml::Value::try_from(dch).unwrap().as_str(), Some(dch.name()));
        }
    }
}
