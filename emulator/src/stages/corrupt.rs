//! Bits of some packets are turned over, so that a checksum finds it, or so that none does.
//!
//! The packet goes on as it is then. Whoever verifies its checksums drops it, or takes the wrong octets for the right ones.

use airwire::rng::Stream;
use airwire::time::Instant;
use airwire::units::Probability;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::chosen::{Affects, Chooser};
use super::duplex::OneWaySettings;
use crate::packet::{Direction, Packet};
use crate::settings::{Invalid, Position};
use crate::stage::{Event, NotLive, OneWay, Outbox};

mod anatomy;

use anatomy::Anatomy;

/// The settings of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorruptConfig {
    /// Of each packet to be chosen.
    pub chance: Probability,
    /// How many bits of a chosen packet are turned over. Absent: 1, or 2 with `checksum = "passes"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<u32>,
    /// In which part of it.
    #[serde(default, rename = "where")]
    pub part: Part,
    /// Whether a checksum gives it away.
    #[serde(default)]
    pub checksum: Checksum,
    /// Which packets can be chosen.
    #[serde(default)]
    pub affects: Affects,
}

/// A part of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// All of it.
    #[default]
    Anywhere,
    /// The IP header, and that of TCP, UDP or ICMP with its options.
    Header,
    /// What is behind those.
    Payload,
}

/// What becomes of a packet's checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checksum {
    /// One of them is wrong.
    #[default]
    Fails,
    /// All of them are right: the bits cancel each other in the sum.
    Passes,
}

/// More would not look like noise on a line.
const MOST_BITS: u32 = 64;

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
            Some(MOST_BITS..) if self.bits != Some(MOST_BITS) => {
                Err(Invalid::new("bits", format!("must be at most {MOST_BITS}")))
            }
            Some(bits) if self.checksum == Checksum::Passes && !bits.is_multiple_of(2) => Err(Invalid::new(
                "bits",
                "an odd number of flipped bits changes a checksum: write 2, or `checksum = \"fails\"`",
            )),
            _ => Ok(()),
        }
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
    /// One number for each packet, the seed of what happens to its bits.
    bits: Stream,
    packets: u64,
    corrupted: u64,
    spared: u64,
}

impl Corrupt {
    /// `chosen` decides about packets, `bits` about their bits.
    pub fn new(config: &CorruptConfig, chosen: Stream, bits: Stream) -> Result<Self, Invalid> {
        config.validate()?;
        Ok(Self {
            chooser: Chooser::new(config.chance, config.affects, chosen),
            config: config.clone(),
            bits,
            packets: 0,
            corrupted: 0,
            spared: 0,
        })
    }

    /// The bits to turn over in a chosen packet, in ascending order. `None`: it has no such bits.
    fn choose(&self, bytes: &[u8], mut stream: Stream) -> Option<Vec<u32>> {
        let anatomy = Anatomy::of(bytes)?;
        let count = self.config.bits() as usize;
        let mut bits = match self.config.checksum {
            Checksum::Fails => anatomy.bits_that_are_found(bytes, self.config.part, count, &mut stream),
            Checksum::Passes => anatomy.bits_that_cancel(bytes, self.config.part, count, &mut stream),
        }?;
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
            if let Some(bits) = self.choose(&packet.bytes, Stream::new(seed, "bits")) {
                self.corrupted += 1;
                for bit in &bits {
                    packet.bytes[*bit as usize / 8] ^= 0x80 >> (bit % 8);
                }
                let found = self.config.checksum == Checksum::Fails;
                out.note(&packet, Event::Corrupted { bits: bits.into(), found });
            } else {
                self.spared += 1;
            }
        }
        out.forward(packet);
    }

    fn handle_deadline(&mut self, _now: Instant, _out: &mut Outbox) {}

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn held(&self) -> usize {
        0
    }

    fn stats(&self) -> Value {
        json!({ "packets_in": self.packets, "corrupted": self.corrupted, "spared": self.spared })
    }

    fn check(&self, config: &CorruptConfig) -> Result<(), NotLive> {
        config.validate().map_err(|invalid| NotLive::new(invalid.key, invalid.message))
    }

    fn reconfigure(&mut self, _now: Instant, config: &CorruptConfig, _out: &mut Outbox) {
        self.chooser.set(config.chance, config.affects);
        self.config = config.clone();
    }
}

#[cfg(test)]
mod tests;
