//! Two one-way stages, back to back.

use airwire::time::Instant;
use serde_json::{Map, Value};

use super::{Directions, StageConfig};
use crate::packet::{Direction, Packet, PerDirection};
use crate::stage::{NotLive, OneWay, Outbox, Stage};

/// A direction without a side lets everything pass untouched.
pub struct Duplex<S> {
    sides: PerDirection<Option<S>>,
    /// What each side said when it was last touched.
    deadlines: PerDirection<Option<Instant>>,
}

impl<S: OneWay> Duplex<S> {
    pub fn new(sides: PerDirection<Option<S>>) -> Self {
        let deadline = |side: &Option<S>| side.as_ref().and_then(S::next_deadline);
        let deadlines = PerDirection { down: deadline(&sides.down), up: deadline(&sides.up) };
        Self { sides, deadlines }
    }

    /// Makes the sides that have settings. `make` is told the direction too.
    pub fn build<E>(
        directions: &Directions<S::Config>,
        mut make: impl FnMut(Direction, &S::Config) -> Result<S, E>,
    ) -> Result<Self, E> {
        let mut side =
            |direction| directions.get(direction).map(|config| make(direction, config)).transpose();
        Ok(Self::new(PerDirection { down: side(Direction::Down)?, up: side(Direction::Up)? }))
    }

    fn iter(&self) -> impl Iterator<Item = (Direction, &S)> {
        self.sides.iter().filter_map(|(direction, side)| Some((direction, side.as_ref()?)))
    }
}

impl<S: OneWay> Stage for Duplex<S> {
    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        match &mut self.sides[packet.direction] {
            Some(side) => {
                let direction = packet.direction;
                side.handle_packet(now, packet, out);
                self.deadlines[direction] = side.next_deadline();
            }
            None => out.forward(packet),
        }
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        for direction in Direction::BOTH {
            if let Some(side) = &mut self.sides[direction]
                && self.deadlines[direction].is_some_and(|deadline| deadline <= now)
            {
                side.handle_deadline(now, out);
                self.deadlines[direction] = side.next_deadline();
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        match (self.deadlines.down, self.deadlines.up) {
            (Some(down), Some(up)) => Some(down.min(up)),
            (one, other) => one.or(other),
        }
    }

    fn held(&self) -> usize {
        self.iter().map(|(_, side)| side.held()).sum()
    }

    fn stats(&self) -> Value {
        Value::Object(
            self.iter()
                .map(|(direction, side)| (direction.name().to_owned(), side.stats()))
                .collect::<Map<_, _>>(),
        )
    }

    fn reconfigure(&mut self, now: Instant, config: &StageConfig, out: &mut Outbox) -> Result<(), NotLive> {
        let Some(settings) = S::settings(config) else {
            return Err(NotLive::new("kind", "a stage of another kind would have other packets inside"));
        };
        // All of it is checked before any of it changes.
        for (direction, side) in self.sides.iter() {
            match (side, settings.get(direction)) {
                (Some(side), Some(config)) => side.check(config).map_err(|mut not_live| {
                    not_live.setting = format!("{direction}.{}", not_live.setting);
                    not_live
                })?,
                (None, None) => {}
                _ => {
                    return Err(NotLive::new(
                        direction.name(),
                        "a direction has settings from the start, or never",
                    ));
                }
            }
        }
        for direction in Direction::BOTH {
            if let (Some(side), Some(config)) = (&mut self.sides[direction], settings.get(direction)) {
                side.reconfigure(now, config, out);
                self.deadlines[direction] = side.next_deadline();
            }
        }
        Ok(())
    }
}
