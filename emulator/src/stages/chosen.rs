//! Which packets a stage does something to: some of them, by chance, and only those of the sort that it affects.

use airwire::rng::Stream;
use airwire::units::Probability;
use serde::{Deserialize, Serialize};

use crate::packet::{Packet, Purpose};

/// Which packets a stage can do something to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Affects {
    /// Every packet.
    #[default]
    All,
    /// All but TCP segments that only acknowledge.
    Data,
    /// TCP segments that only acknowledge.
    Acks,
}

impl Affects {
    /// Whether the packet is one of those.
    pub fn covers(self, packet: &Packet) -> bool {
        match self {
            Self::All => true,
            Self::Data => packet.purpose() != Some(Purpose::PureAck),
            Self::Acks => packet.purpose() == Some(Purpose::PureAck),
        }
    }
}

/// Chooses packets.
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

    /// The stream goes on.
    pub(super) fn set(&mut self, chance: Probability, affects: Affects) {
        self.chance = chance.value();
        self.affects = affects;
    }

    /// Draws one number for every packet, whichever it affects: what happens to the n-th packet depends on n.
    pub(super) fn chooses(&mut self, packet: &Packet) -> bool {
        self.stream.chance(self.chance) && self.affects.covers(packet)
    }
}
