//! Flips bits in some packets, so that either a checksum detects the damage or all checksums still match.
//!
//! The packet then continues along the path. A host that verifies the checksums drops it, or accepts the
//! wrong data if they match.

use airwire::rng::Stream;
use airwire::time::Instant;
use airwire::units::Probability;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::chosen::{Affects, Chooser};
use super::duplex::{OneWay, OneWaySettings};
use crate::packet::{Direction, Packet};
use crate::settings::{Invalid, Position};
use crate::stage::{Event, Outbox};

mod layout;

use layout::Layout;

/// The settings of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorruptConfig {
    /// Probability that a packet of the affected kind is chosen.
    pub chance: Probability,
    /// Number of bits to flip in a chosen packet. Defaults to 1, or to 2 with `checksum = "passes"`.
    pub bits: Option<u32>,
    /// The part of the packet in which bits are flipped.
    #[serde(default, rename = "where")]
    pub part: Part,
    /// Whether a checksum detects the damage.
    #[serde(default)]
    pub checksum: Checksum,
    /// The kind of packets that can be chosen.
    #[serde(default)]
    pub affects: Affects,
}

/// A part of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The whole packet.
    #[default]
    Anywhere,
    /// The IP header and the TCP, UDP or ICMP header with its options.
    Header,
    /// The data after these headers.
    Payload,
}

/// The effect of the flipped bits on the packet's checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checksum {
    /// At least one checksum is wrong.
    #[default]
    Fails,
    /// All checksums match: the flipped bits cancel out in the sum.
    Passes,
}

/// More flipped bits would not resemble noise on a line.
const MAX_BITS: u32 = 64;

impl CorruptConfig {
    fn bits(&self) -> u32 {
        self.bits.unwrap_or(match self.checksum {
            Checksum::Fails => 1,
            Checksum::Passes => 2,
        })
    }
}

impl OneWaySettings for CorruptConfig {
    type Stage = Corrupt;

    fn validate(&self) -> Result<(), Invalid> {
        match self.bits {
            Some(0) => Err(Invalid::new("bits", "must be at least 1")),
            Some(MAX_BITS..) if self.bits != Some(MAX_BITS) => {
                Err(Invalid::new("bits", format!("must be at most {MAX_BITS}")))
            }
            Some(bits) if self.checksum == Checksum::Passes && !bits.is_multiple_of(2) => Err(Invalid::new(
                "bits",
                "an odd number of flipped bits changes a checksum: write 2, or `checksum = \"fails\"`",
            )),
            _ => Ok(()),
        }
    }

    fn does_nothing(&self) -> Option<&'static str> {
        (self.chance.value() == 0.0).then_some("`chance` is 0")
    }

    fn build(&self, direction: Direction, position: Position<'_>, seed: u64) -> Result<Corrupt, String> {
        let stream = |purpose| position.stream(seed, direction, purpose);
        Corrupt::new(self, stream("chosen"), stream("bits")).map_err(|invalid| invalid.to_string())
    }
}

/// One direction of the stage.
#[derive(Debug)]
pub struct Corrupt {
    chooser: Chooser,
    config: CorruptConfig,
    /// Yields one random number per packet, which is the seed for the selection of the packet's bits.
    bits: Stream,
    packets: u64,
    corrupted: u64,
    unsuitable: u64,
}

impl Corrupt {
    /// Creates the stage, or returns an error if the settings are invalid. `chosen` selects packets, and
    /// `bits` selects the bits of these packets.
    pub fn new(config: &CorruptConfig, chosen: Stream, bits: Stream) -> Result<Self, Invalid> {
        config.validate()?;
        Ok(Self {
            chooser: Chooser::new(config.chance, config.affects, chosen),
            config: config.clone(),
            bits,
            packets: 0,
            corrupted: 0,
            unsuitable: 0,
        })
    }

    /// Returns the bits to flip in a chosen packet, in ascending order, or `None` if the packet has no
    /// suitable bits.
    fn choose_bits(&self, bytes: &[u8], mut stream: Stream) -> Option<Vec<u32>> {
        let CorruptConfig { part, checksum, .. } = self.config;
        let count = self.config.bits() as usize;
        let mut bits = Layout::of(bytes)?.choose_bits(bytes, part, checksum, count, &mut stream)?;
        bits.sort_unstable();
        Some(bits)
    }
}

impl OneWay for Corrupt {
    type Config = CorruptConfig;

    fn handle_packet(&mut self, _now: Instant, mut packet: Packet, out: &mut Outbox) {
        self.packets += 1;
        let seed = self.bits.bits();
        if self.chooser.chooses(&packet) {
            if let Some(bits) = self.choose_bits(&packet.bytes, Stream::new(seed, "bits")) {
                self.corrupted += 1;
                for bit in &bits {
                    packet.bytes[*bit as usize / 8] ^= 0x80 >> (bit % 8);
                }
                let found = self.config.checksum == Checksum::Fails;
                out.note(&packet, Event::Corrupted { bits: bits.into(), found });
            } else {
                self.unsuitable += 1;
            }
        }
        out.forward(packet);
    }

    fn stats(&self) -> Value {
        json!({ "packets_in": self.packets, "corrupted": self.corrupted, "unsuitable": self.unsuitable })
    }

    fn reconfigure(&mut self, _now: Instant, config: &CorruptConfig, _out: &mut Outbox) {
        self.chooser.set(config.chance, config.affects);
        self.config = config.clone();
    }
}

#[cfg(test)]
mod tests;
