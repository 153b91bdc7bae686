//! Duplicates some packets.
//!
//! A copy is a separate packet with its own number in the ground truth, which also records the original's
//! number.

use std::collections::BTreeMap;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::Probability;
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
pub struct DuplicateConfig {
    /// Probability that a packet of the affected kind is chosen.
    pub chance: Probability,
    /// Number of copies of a chosen packet, in addition to the original.
    #[serde(default = "one")]
    pub copies: u32,
    /// Time from the packet to its first copy, and from each copy to the next.
    #[serde(default)]
    pub gap: Duration,
    /// The kind of packets that can be chosen.
    #[serde(default)]
    pub affects: Affects,
}

fn one() -> u32 {
    1
}

/// More copies would be a flood rather than a network fault.
const MOST_COPIES: u32 = 100;

impl OneWaySettings for DuplicateConfig {
    type Stage = Duplicate;

    fn validate(&self) -> Result<(), Invalid> {
        match self.copies {
            1..=MOST_COPIES => Ok(()),
            _ => Err(Invalid::new("copies", format!("write a number from 1 to {MOST_COPIES}"))),
        }
    }

    fn does_nothing(&self) -> Option<&'static str> {
        (self.chance.value() == 0.0).then_some("`chance` is 0")
    }

    fn build(&self, direction: Direction, position: Position<'_>, seed: u64) -> Result<Duplicate, String> {
        let chosen = position.stream(seed, direction, "chosen");
        Duplicate::new(self, chosen).map_err(|invalid| invalid.to_string())
    }
}

/// One direction of the stage.
#[derive(Debug)]
pub struct Duplicate {
    chooser: Chooser,
    copies: u32,
    gap: Duration,
    /// Copies that are not due yet, ordered by time and then by creation.
    waiting: BTreeMap<(Instant, u64), Packet>,
    packets: u64,
    chosen: u64,
    copied: u64,
}

impl Duplicate {
    /// Creates the stage, or returns an error if the settings are invalid.
    pub fn new(config: &DuplicateConfig, chosen: Stream) -> Result<Self, Invalid> {
        config.validate()?;
        Ok(Self {
            chooser: Chooser::new(config.chance, config.affects, chosen),
            copies: config.copies,
            gap: config.gap,
            waiting: BTreeMap::new(),
            packets: 0,
            chosen: 0,
            copied: 0,
        })
    }
}

impl OneWay for Duplicate {
    type Config = DuplicateConfig;

    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        // The previous stage may forward a packet at the moment when a copy is due. The copy leaves first.
        self.handle_deadline(now, out);
        self.packets += 1;
        if !self.chooser.chooses(&packet) {
            return out.forward(packet);
        }
        self.chosen += 1;
        let copies: Vec<Packet> = (0..self.copies).map(|_| out.copy(&packet)).collect();
        out.forward(packet);
        for (copy, n) in copies.into_iter().zip(1..) {
            self.copied += 1;
            let at = now + self.gap * n;
            if at == now {
                out.forward(copy);
            } else {
                out.note(&copy, Event::Held { until: at });
                self.waiting.insert((at, self.copied), copy);
            }
        }
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= now) {
            out.forward(first.remove());
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    fn held(&self) -> usize {
        self.waiting.len()
    }

    fn stats(&self) -> Value {
        json!({
            "packets_in": self.packets,
            "chosen": self.chosen,
            "copied": self.copied,
            "waiting": self.waiting.len(),
        })
    }

    /// Existing copies keep their times.
    fn reconfigure(&mut self, _now: Instant, config: &DuplicateConfig, _out: &mut Outbox) {
        self.chooser.set(config.chance, config.affects);
        self.copies = config.copies;
        self.gap = config.gap;
    }
}

#[cfg(test)]
mod tests;
