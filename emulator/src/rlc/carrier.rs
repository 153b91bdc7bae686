//! The channel of one direction of a bearer: dedicated or shared.

use airwire::time::{Duration, Instant};

use super::air::{Air, Counters, Flight};
use super::umts::dch::Dch;
use super::umts::hs::{Link, TTI};

#[expect(clippy::large_enum_variant, reason = "most bearers have two of the large one")]
pub(super) enum Carrier {
    /// A dedicated channel, with its own TTIs.
    Dedicated(Air),
    /// A share of a common channel, whose TTIs the cell assigns.
    Shared(Box<Link>),
}

impl Carrier {
    pub(super) fn advance(&mut self, now: Instant) {
        if let Self::Dedicated(air) = self {
            air.advance(now);
        }
    }

    /// Start of the next TTI at or after `from`. `None` for a shared channel, where the cell decides.
    pub(super) fn next_begin_from(&self, from: Instant) -> Option<Instant> {
        match self {
            Self::Dedicated(air) => Some(air.next_begin_from(from)),
            Self::Shared(_) => None,
        }
    }

    pub(super) fn tti(&self) -> Duration {
        match self {
            Self::Dedicated(air) => air.tti(),
            Self::Shared(_) => TTI,
        }
    }

    pub(super) fn largest(&self) -> usize {
        match self {
            Self::Dedicated(air) => air.largest(),
            Self::Shared(link) => link.largest(),
        }
    }

    /// Maximum number of PDU bytes in a TTI. `pdu` is the size of a PDU in bytes.
    pub(super) fn largest_octets(&self, pdu: usize) -> usize {
        match self {
            Self::Dedicated(air) => air.largest() * pdu,
            Self::Shared(link) => link.largest_octets(),
        }
    }

    pub(super) fn rate(&self) -> Option<Dch> {
        match self {
            Self::Dedicated(air) => air.rate(),
            Self::Shared(_) => None,
        }
    }

    pub(super) fn change_rate(&mut self, now: Instant, rate: Dch) {
        if let Self::Dedicated(air) = self {
            air.change_rate(now, rate);
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Dedicated(air) => air.clear(),
            Self::Shared(link) => link.clear(),
        }
    }

    /// Memory of the undamaged blocks in flight, in bytes.
    pub(super) fn in_flight(&self) -> u64 {
        match self {
            Self::Dedicated(air) => air.in_flight(),
            Self::Shared(link) => link.in_flight(),
        }
    }

    pub(super) fn next_landing(&self) -> Option<Instant> {
        match self {
            Self::Dedicated(air) => air.next_landing(),
            Self::Shared(link) => link.next_landing(),
        }
    }

    pub(super) fn land(&mut self, now: Instant) -> Option<Flight> {
        match self {
            Self::Dedicated(air) => air.land(now),
            Self::Shared(link) => link.land(now),
        }
    }

    /// Counters of the channel. On a shared channel, they count MAC-hs blocks.
    pub(super) fn counters(&self) -> Counters {
        match self {
            Self::Dedicated(air) => air.counters,
            Self::Shared(link) => Counters {
                ttis: link.counters.ttis,
                blocks: link.counters.blocks,
                lost: link.counters.lost,
                lost_in_outage: 0,
            },
        }
    }
}
