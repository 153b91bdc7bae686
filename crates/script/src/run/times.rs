//! When a line happens, and how far from that it may be.

use airwire::time::{Duration, Instant};

use super::{ORIGIN, Runner};
use crate::ast::{Base, When};

/// The line before, as far as the next one's time depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    /// When the script wanted it to happen.
    pub(super) at: Instant,
    /// `+` between two packets that the script sends counts from the first one's time, else from what time it is.
    pub(super) inbound: bool,
    pub(super) absolute: bool,
}

/// When a call that waits must return.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallEnd {
    pub(super) at: Instant,
    pub(super) tolerance: Duration,
}

impl Runner {
    /// How far from its time the line may be that the script wants to happen then.
    pub(super) fn tolerance(&self, at: Instant) -> Duration {
        let gap = self.last.map_or(Duration::ZERO, |last| at.saturating_since(last.at));
        self.setup.rules.tolerance.after(gap)
    }
}

impl When {
    pub(super) fn base(self) -> Option<Base> {
        match self {
            Self::Here | Self::Any => None,
            Self::At(base, _) | Self::Window(base, ..) | Self::Blocking(base, ..) => Some(base),
        }
    }

    /// When the script wants it to begin; `anchor` is where `+` counts from.
    pub(super) fn start(self, anchor: Instant) -> Instant {
        self.times(anchor).map_or(anchor, |(earliest, _)| earliest)
    }

    /// From when to when, if the script says.
    pub(super) fn times(self, anchor: Instant) -> Option<(Instant, Instant)> {
        let base = match self.base()? {
            Base::Start => ORIGIN,
            Base::Previous => anchor,
        };
        match self {
            Self::Here | Self::Any => None,
            Self::At(_, start) => Some((base + start, base + start)),
            Self::Window(_, start, end) | Self::Blocking(_, start, end) => Some((base + start, base + end)),
        }
    }
}
