//! The time of a line and its tolerance.

use airwire::time::{Duration, Instant};

use super::{ORIGIN, Runner};
use crate::ast::{TimeBase, When};

/// The properties of the previous line on which the time of the next line depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreviousLine {
    /// The scheduled time.
    pub(super) at: Instant,
    /// Whether the script sent a packet. Between two such packets, `+` counts from the scheduled
    /// time of the first; otherwise it counts from the current time.
    pub(super) inbound: bool,
    pub(super) absolute: bool,
}

/// The time at which a blocked call must return.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallEnd {
    pub(super) at: Instant,
    pub(super) tolerance: Duration,
}

impl Runner {
    /// Returns the tolerance for a line scheduled at `at`.
    pub(super) fn tolerance(&self, at: Instant) -> Duration {
        let gap = self.previous.map_or(Duration::ZERO, |previous| at.saturating_since(previous.at));
        self.setup.rules.tolerance.after(gap)
    }
}

impl When {
    pub(super) fn base(self) -> Option<TimeBase> {
        match self {
            Self::Immediately | Self::Any => None,
            Self::At(base, _) | Self::Window(base, ..) | Self::Blocking(base, ..) => Some(base),
        }
    }

    /// Returns the time at which the line begins. `anchor` is the base of relative times.
    pub(super) fn start(self, anchor: Instant) -> Instant {
        self.times(anchor).map_or(anchor, |(earliest, _)| earliest)
    }

    /// Returns the earliest and the latest time of a line. `None` if it gives no time.
    pub(super) fn times(self, anchor: Instant) -> Option<(Instant, Instant)> {
        let base = match self.base()? {
            TimeBase::Start => ORIGIN,
            TimeBase::Previous => anchor,
        };
        match self {
            Self::Immediately | Self::Any => None,
            Self::At(_, start) => Some((base + start, base + start)),
            Self::Window(_, start, end) | Self::Blocking(_, start, end) => Some((base + start, base + end)),
        }
    }
}
