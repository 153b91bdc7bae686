//! A stage that consists of two independent one-way stages.

use std::any::Any;

use airwire::time::Instant;
use serde_json::{Map, Value};

use crate::packet::{Direction, Packet, PerDirection};
use crate::settings::{Directions, Invalid, InvalidInPath, Position, Settings};
use crate::stage::{Outbox, ReconfigureError, Stage};

/// The settings of one direction of a stage whose directions are independent. The rules of [`Settings`]
/// apply. Keys are relative to the direction's own table.
pub trait OneWaySettings: Sized + 'static {
    /// The stage that these settings describe.
    type Stage: OneWay<Config = Self> + 'static;

    /// Like [`Settings::validate`].
    fn validate(&self) -> Result<(), Invalid>;

    /// Like [`Settings::check_in_path`].
    fn check_in_path(&self, _direction: Direction, _position: Position<'_>) -> Result<(), InvalidInPath> {
        Ok(())
    }

    /// Like [`Settings::does_nothing`].
    fn does_nothing(&self) -> Option<&'static str> {
        None
    }

    /// Like [`Settings::build`].
    fn build(&self, direction: Direction, position: Position<'_>, seed: u64) -> Result<Self::Stage, String>;
}

impl<C: OneWaySettings> Settings for Directions<C> {
    fn validate(&self) -> Result<(), Invalid> {
        for (direction, config) in self.iter() {
            config.validate().map_err(|invalid| invalid.within(direction.name()))?;
        }
        Ok(())
    }

    fn check_in_path(&self, position: Position<'_>) -> Result<(), InvalidInPath> {
        for (direction, config) in self.iter() {
            config.check_in_path(direction, position).map_err(|misplaced| InvalidInPath {
                key: format!("{direction}.{}", misplaced.key),
                ..misplaced
            })?;
        }
        Ok(())
    }

    fn does_nothing(&self) -> Option<&'static str> {
        let mut why = "it has neither `down` nor `up`";
        for (_, config) in self.iter() {
            why = config.does_nothing()?;
        }
        Some(why)
    }

    fn build(&self, position: Position<'_>, seed: u64) -> Result<Box<dyn Stage>, String> {
        Ok(Box::new(Duplex::build(self, |direction, config: &C| config.build(direction, position, seed))?))
    }
}

/// One direction of a stage whose two directions are independent. [`Duplex`] combines two of them into a
/// [`Stage`]. The rules of [`Stage`] apply.
pub trait OneWay {
    /// The settings of one direction.
    type Config: OneWaySettings;

    /// See [`Stage::handle_packet`].
    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox);

    /// See [`Stage::handle_deadline`].
    fn handle_deadline(&mut self, _now: Instant, _out: &mut Outbox) {}

    /// See [`Stage::next_deadline`].
    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// See [`Stage::be_lazy`].
    fn be_lazy(&mut self, _is_lazy: bool) {}

    /// See [`Stage::catch_up`].
    fn catch_up(&mut self, _now: Instant, _out: &mut Outbox) {}

    /// See [`Stage::held`].
    fn held(&self) -> usize {
        0
    }

    /// See [`Stage::stats`].
    fn stats(&self) -> Value;

    /// Returns an error if these settings cannot be applied while the stage runs.
    fn check(&self, config: &Self::Config) -> Result<(), ReconfigureError> {
        Ok(config.validate()?)
    }

    /// Applies settings that `check` has accepted.
    fn reconfigure(&mut self, now: Instant, config: &Self::Config, out: &mut Outbox);
}

/// A stage made of one [`OneWay`] per direction. In a direction without one, packets pass unchanged.
pub struct Duplex<S> {
    sides: PerDirection<Option<S>>,
    /// The next deadline of each direction, as of its last call.
    deadlines: PerDirection<Option<Instant>>,
}

impl<S: OneWay> Duplex<S> {
    /// Combines two one-way stages. `None`: packets in this direction pass unchanged.
    pub fn new(sides: PerDirection<Option<S>>) -> Self {
        let deadline = |side: &Option<S>| side.as_ref().and_then(S::next_deadline);
        let deadlines = PerDirection { down: deadline(&sides.down), up: deadline(&sides.up) };
        Self { sides, deadlines }
    }

    /// Builds the directions that have settings, `down` first.
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

    fn be_lazy(&mut self, is_lazy: bool) {
        for direction in Direction::BOTH {
            if let Some(side) = &mut self.sides[direction] {
                side.be_lazy(is_lazy);
                self.deadlines[direction] = side.next_deadline();
            }
        }
    }

    fn catch_up(&mut self, now: Instant, out: &mut Outbox) {
        for direction in Direction::BOTH {
            if let Some(side) = &mut self.sides[direction] {
                side.catch_up(now, out);
                self.deadlines[direction] = side.next_deadline();
            }
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

    fn reconfigure(
        &mut self,
        now: Instant,
        settings: &dyn Any,
        out: &mut Outbox,
    ) -> Result<(), ReconfigureError> {
        let Some(settings) = settings.downcast_ref::<Directions<S::Config>>() else {
            return Err(ReconfigureError::new(
                "kind",
                "packets inside the stage cannot move to another kind of stage",
            ));
        };
        // Check both directions before changing either, so that a refused change has no effect.
        for (direction, side) in self.sides.iter() {
            match (side, settings.get(direction)) {
                (Some(side), Some(config)) => side.check(config).map_err(|mut not_live| {
                    not_live.setting = format!("{direction}.{}", not_live.setting);
                    not_live
                })?,
                (None, None) => {}
                _ => {
                    return Err(ReconfigureError::new(
                        direction.name(),
                        "a direction cannot be added or removed",
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
