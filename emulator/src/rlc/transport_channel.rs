//! The transport channel in one direction of a bearer: dedicated to the bearer, or shared by the mobiles of a
//! cell.

use airwire::time::{Duration, Instant};

use super::block_errors::BlockCounters;
use super::dedicated_channel::DedicatedChannel;
use super::umts::dch::Dch;
use super::umts::hs::{Link, TTI};

#[expect(clippy::large_enum_variant, reason = "most bearers have two of the large one")]
pub(super) enum TransportChannel {
    /// The channel has its own TTIs.
    Dedicated(DedicatedChannel),
    /// The cell assigns TTIs to its mobiles.
    Shared(Box<Link>),
}

impl TransportChannel {
    pub(super) fn dedicated(&self) -> Option<&DedicatedChannel> {
        if let Self::Dedicated(channel) = self { Some(channel) } else { None }
    }

    pub(super) fn dedicated_mut(&mut self) -> Option<&mut DedicatedChannel> {
        if let Self::Dedicated(channel) = self { Some(channel) } else { None }
    }

    pub(super) fn tti(&self) -> Duration {
        self.dedicated().map_or(TTI, DedicatedChannel::tti)
    }

    /// Maximum number of blocks in a TTI. On a shared channel, PDUs count as blocks.
    pub(super) fn max_blocks(&self) -> usize {
        match self {
            Self::Dedicated(channel) => channel.max_blocks(),
            Self::Shared(link) => link.max_pdus(),
        }
    }

    /// Maximum number of PDU bytes in a TTI. `pdu` is the size of a PDU in bytes.
    pub(super) fn max_octets(&self, pdu: usize) -> usize {
        match self {
            Self::Dedicated(channel) => channel.max_blocks() * pdu,
            Self::Shared(link) => link.max_octets(),
        }
    }

    /// Current rate, if it is one of the named rates.
    pub(super) fn rate(&self) -> Option<Dch> {
        self.dedicated()?.rate()
    }

    /// Drops the blocks in flight.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Dedicated(channel) => channel.clear(),
            Self::Shared(link) => link.clear(),
        }
    }

    /// Memory of the undamaged blocks in flight, in bytes.
    pub(super) fn in_flight(&self) -> u64 {
        match self {
            Self::Dedicated(channel) => channel.in_flight(),
            Self::Shared(link) => link.in_flight(),
        }
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        match self {
            Self::Dedicated(channel) => channel.next_arrival(),
            Self::Shared(link) => link.next_arrival(),
        }
    }

    /// Passes the undamaged blocks of the next TTI that has arrived by `now` to `receive`, in the order of
    /// transmission. Returns `false` if no TTI has arrived.
    pub(super) fn take_arrival(&mut self, now: Instant, mut receive: impl FnMut(&[u8])) -> bool {
        match self {
            Self::Dedicated(channel) => {
                let Some(blocks) = channel.take_arrival(now) else { return false };
                blocks.iter().for_each(|block| receive(&block.octets));
            }
            Self::Shared(link) => {
                let Some(blocks) = link.take_arrival(now) else { return false };
                blocks.iter().for_each(|octets| receive(octets));
            }
        }
        true
    }

    /// Counters of the channel. On a shared channel, they count MAC-hs blocks.
    pub(super) fn counters(&self) -> BlockCounters {
        match self {
            Self::Dedicated(channel) => channel.counters,
            Self::Shared(link) => {
                let hs = link.counters;
                BlockCounters { ttis: hs.ttis, blocks: hs.blocks, lost: hs.lost, lost_in_outage: 0 }
            }
        }
    }
}
