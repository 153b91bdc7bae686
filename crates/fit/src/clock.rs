//! Clock difference between two captures, and the direction of the flows that cross both.
//!
//! Packets take a time d in one direction and d′ in the other. If the second clock is ahead by o, the
//! timestamps at the second capture minus those at the first are d + o in one direction and o − d′ in the
//! other. The first value is the larger one for every o, so the comparison reveals the directions.

use serde::Serialize;

/// Upper bound on the nanoseconds by which a capture program timestamps packets too late.
const JITTER: i64 = 1_000_000;

/// Relation between the clocks of the two captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Clock {
    /// The packets show no difference between the clocks.
    Same,
    /// The user gave the offset.
    Given {
        /// Nanoseconds by which the second clock is ahead. Negative: it is behind.
        ahead_ns: i64,
    },
    /// With equal clocks, packets would have arrived before they left. The offset is chosen so that the
    /// smallest delay is the same in both directions.
    Estimated {
        /// Nanoseconds by which the second clock is ahead. Negative: it is behind.
        ahead_ns: i64,
    },
}

impl Clock {
    /// Nanoseconds by which the second clock is ahead.
    pub fn ahead(self) -> i64 {
        match self {
            Self::Same => 0,
            Self::Given { ahead_ns } | Self::Estimated { ahead_ns } => ahead_ns,
        }
    }

    /// Estimates the clock from all flows. The flag is true for flows from the first capture to the second.
    pub fn estimated(flows: impl IntoIterator<Item = (bool, OffsetRange)>) -> Self {
        let (mut forth, mut back) = (None::<i64>, None::<i64>);
        for (is_forward, OffsetRange { least, most }) in flows {
            if is_forward {
                forth = Some(forth.map_or(least, |known| known.min(least)));
            } else {
                back = Some(back.map_or(most, |known| known.max(most)));
            }
        }
        let is_possible =
            forth.is_none_or(|least| least >= -JITTER) && back.is_none_or(|most| most <= JITTER);
        match (forth, back) {
            _ if is_possible => Self::Same,
            (Some(least), Some(most)) => Self::Estimated { ahead_ns: least / 2 + most / 2 },
            (Some(by), None) | (None, Some(by)) => Self::Estimated { ahead_ns: by },
            (None, None) => Self::Same,
        }
    }
}

/// Range of the time differences (second capture minus first) of a flow's packets, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct OffsetRange {
    least: i64,
    most: i64,
}

impl OffsetRange {
    /// The difference for one packet that is in both captures.
    pub fn of(first: i64, second: i64) -> Self {
        // Clocks may be centuries apart.
        let by = second.saturating_sub(first);
        Self { least: by, most: by }
    }

    /// The combined range of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// Whether the flow leads from the first capture to the second. `back` is the flow of the replies. Without
    /// replies, `ahead` is the assumed offset of the second clock in nanoseconds.
    pub fn is_forward(self, back: Option<Self>, ahead: i64) -> bool {
        match back {
            Some(back) => self.least.midpoint(self.most) > back.least.midpoint(back.most),
            None => self.least.saturating_sub(ahead) >= -JITTER,
        }
    }
}
