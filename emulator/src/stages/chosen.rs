//! Random choice of the packets that a stage affects, optionally limited to data or to pure ACKs.

use airwire::rng::Stream;
use airwire::units::Probability;
use serde::{Deserialize, Serialize};

use crate::packet::{Packet, Purpose};

/// The kind of packets that a stage can affect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Affects {
    /// Every packet.
    #[default]
    All,
    /// All packets except pure ACKs.
    Data,
    /// Pure ACKs: TCP segments that only acknowledge.
    Acks,
}

impl Affects {
    /// Returns whether the packet is of this kind.
    pub fn covers(self, packet: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Data => Purpose::of(packet) != Some(Purpose::PureAck),
            Self::Acks => Purpose::of(packet) == Some(Purpose::PureAck),
        }
    }
}

/// Chooses packets at random.
#[derive(Debug)]
pub(super) struct Chooser {
    chance: f64,
    affects: Affects,
    stream: Stream,
}

impl Chooser {
    pub(super) fn new(chance: Probability, affects: Affects, stream: Stream) -> Self {
        Self { chance: chance.value(), affects, stream }
    }

    /// Changes the settings. The random stream continues.
    pub(super) fn set(&mut self, chance: Probability, affects: Affects) {
        self.chance = chance.value();
        self.affects = affects;
    }

    /// Returns whether the packet is chosen. Draws one number for every packet of any kind, so that the
    /// decision about the n-th packet depends only on n.
    pub(super) fn chooses(&mut self, packet: &Packet) -> bool {
        self.stream.chance(self.chance) && self.affects.covers(&packet.bytes)
    }
}
