//! A custom stage that drops every n-th packet of a direction, and a path that contains it.
//!
//! `cargo run -p airlink --example own_stage`

use airlink::packet::Packet;
use airlink::path::NamedStage;
use airlink::settings::{Directions, Invalid, Position, Settings};
use airlink::stage::Outbox;
use airlink::stages::duplex::{OneWay, OneWaySettings};
use airlink::{Direction, DropReason, FIXED, Machine, Path, Recording};
use airwire::time::Instant;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The settings of one direction, as a scenario writes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SieveConfig {
    /// Drop every n-th packet.
    every: u64,
}

impl OneWaySettings for SieveConfig {
    type Stage = Sieve;

    fn validate(&self) -> Result<(), Invalid> {
        match self.every {
            0 => Err(Invalid::new("every", "must be at least 1; write for example 10")),
            _ => Ok(()),
        }
    }

    fn build(&self, _direction: Direction, _position: Position<'_>, _seed: u64) -> Result<Sieve, String> {
        self.validate().map_err(|invalid| invalid.to_string())?;
        Ok(Sieve { config: self.clone(), packets: 0 })
    }
}

/// One direction of the stage.
#[derive(Debug)]
struct Sieve {
    config: SieveConfig,
    packets: u64,
}

impl OneWay for Sieve {
    type Config = SieveConfig;

    fn handle_packet(&mut self, _now: Instant, packet: Packet, out: &mut Outbox) {
        self.packets += 1;
        if self.packets.is_multiple_of(self.config.every) {
            out.drop(packet, DropReason::Listed);
        } else {
            out.forward(packet);
        }
    }

    fn stats(&self) -> Value {
        json!({ "packets": self.packets })
    }

    fn reconfigure(&mut self, _now: Instant, config: &SieveConfig, _out: &mut Outbox) {
        self.config = config.clone();
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = Directions { down: Some(SieveConfig { every: 10 }), up: None };
    let stage = settings.build(Position { index: 0, names: &["sieve"] }, 1)?;
    let mut path = Path::new(vec![NamedStage { name: "sieve".to_owned(), stage }], Recording::Off, false);
    for packet in 0..100 {
        path.handle_packet(Instant::from_millis(packet), FIXED, vec![0; 1000]);
    }
    let down = &path.totals()[Direction::Down];
    println!(
        "{} packets came in, {} left, {} were dropped",
        down.entered,
        down.left,
        down.dropped_for(DropReason::Listed)
    );
    assert_eq!((down.entered, down.left), (100, 90));
    Ok(())
}
