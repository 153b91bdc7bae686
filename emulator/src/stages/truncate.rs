//! Cuts off the end of some packets. The lengths and checksums in their headers stay unchanged.

use airwire::rng::Stream;
use airwire::time::Instant;
use airwire::units::{Probability, Size};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::chosen::{Affects, Chooser};
use super::duplex::{OneWay, OneWaySettings};
use crate::packet::{Direction, Packet};
use crate::settings::{Invalid, Position};
use crate::stage::{Event, Outbox};

/// The settings of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TruncateConfig {
    /// Probability that a packet of the affected kind is chosen.
    pub chance: Probability,
    /// Number of bytes that remain of a chosen packet. Packets that are not longer stay whole. The default is
    /// a random length between 1 and one less than the packet's, each equally likely.
    pub to: Option<Size>,
    /// The kind of packets that can be chosen.
    #[serde(default)]
    pub affects: Affects,
}

impl OneWaySettings for TruncateConfig {
    type Stage = Truncate;

    fn validate(&self) -> Result<(), Invalid> {
        match self.to.map(Size::as_bytes) {
            Some(0) => Err(Invalid::new(
                "to",
                "no byte would remain: write at least \"1B\", or drop packets in a stage `loss`",
            )),
            _ => Ok(()),
        }
    }

    fn does_nothing(&self) -> Option<&'static str> {
        (self.chance.value() == 0.0).then_some("`chance` is 0")
    }

    fn build(&self, direction: Direction, position: Position<'_>, seed: u64) -> Result<Truncate, String> {
        let stream = |purpose| position.stream(seed, direction, purpose);
        Truncate::new(self, stream("chosen"), stream("length")).map_err(|invalid| invalid.to_string())
    }
}

/// One direction of the stage.
#[derive(Debug)]
pub struct Truncate {
    chooser: Chooser,
    to: Option<u64>,
    /// Draws one number for each packet.
    length: Stream,
    packets: u64,
    truncated: u64,
    bytes_cut: u64,
}

impl Truncate {
    /// Creates the stage, or returns an error if the settings are invalid. `chosen` selects packets, `length`
    /// determines their new lengths.
    pub fn new(config: &TruncateConfig, chosen: Stream, length: Stream) -> Result<Self, Invalid> {
        config.validate()?;
        Ok(Self {
            chooser: Chooser::new(config.chance, config.affects, chosen),
            to: config.to.map(Size::as_bytes),
            length,
            packets: 0,
            truncated: 0,
            bytes_cut: 0,
        })
    }
}

impl OneWay for Truncate {
    type Config = TruncateConfig;

    fn handle_packet(&mut self, _now: Instant, mut packet: Packet, out: &mut Outbox) {
        self.packets += 1;
        let from = packet.len() as u64;
        let drawn = 1 + self.length.below(from.saturating_sub(1));
        let to = self.to.unwrap_or(drawn);
        if self.chooser.chooses(&packet) && to < from {
            self.truncated += 1;
            self.bytes_cut += from - to;
            packet.bytes.truncate(to as usize);
            out.note(&packet, Event::Truncated { from: from as usize, to: to as usize });
        }
        out.forward(packet);
    }

    fn stats(&self) -> Value {
        json!({ "packets_in": self.packets, "truncated": self.truncated, "bytes_cut": self.bytes_cut })
    }

    fn reconfigure(&mut self, _now: Instant, config: &TruncateConfig, _out: &mut Outbox) {
        self.chooser.set(config.chance, config.affects);
        self.to = config.to.map(Size::as_bytes);
    }
}

#[cfg(test)]
mod tests;
