//! How the clocks of two captures compare, and which way packets go between them.
//!
//! A packet takes d one way, and another takes d′ back. If the second clock is ahead by o, they seem to take d + o and
//! d′ − o. From both together follows which way is which, whatever o is.

use serde::Serialize;

/// Nanoseconds by which a capturing program may stamp a packet too late.
const JITTER: i64 = 1_000_000;

/// What a capture's clock was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Clock {
    /// The same as the first one's: nothing speaks against it.
    Same,
    /// The user says by how much it is ahead.
    Given {
        /// Nanoseconds; negative if it is behind.
        ahead_ns: i64,
    },
    /// With the first one's clock, packets would have arrived before they left. It is taken to be ahead by so much that
    /// the least delay is the same both ways.
    Estimated {
        /// Nanoseconds; negative if it is behind.
        ahead_ns: i64,
    },
}

impl Clock {
    /// In nanoseconds.
    pub fn ahead(self) -> i64 {
        match self {
            Self::Same => 0,
            Self::Given { ahead_ns } | Self::Estimated { ahead_ns } => ahead_ns,
        }
    }

    /// From all flows, each with whether it goes forth, from the first capture to the second.
    pub fn estimated(flows: impl IntoIterator<Item = (bool, Later)>) -> Self {
        let (mut forth, mut back) = (None::<i64>, None::<i64>);
        for (goes_forth, Later { least, most }) in flows {
            if goes_forth {
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

/// By how many nanoseconds the packets of a flow seem to be later at the second capture.
#[derive(Clone, Copy, Debug)]
pub struct Later {
    least: i64,
    most: i64,
}

impl Later {
    /// Of one packet that both have.
    pub fn of(first: i64, second: i64) -> Self {
        // Clocks may be centuries apart.
        let by = second.saturating_sub(first);
        Self { least: by, most: by }
    }

    /// Of these packets together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// Whether the flow goes from the first capture to the second. `back` is the flow of its answers; where there is none,
    /// the second clock is `ahead` by so much.
    pub fn goes_forth(self, back: Option<Self>, ahead: i64) -> bool {
        match back {
            Some(back) => self.least.midpoint(self.most) > back.least.midpoint(back.most),
            None => self.least.saturating_sub(ahead) >= -JITTER,
        }
    }
}
