//! A stage that consists of two independent one-way stages.

use std::any::Any;

use airwire::time::Instant;
use serde_json::{Map, Value};

use crate::packet::{Direction, Packet, PerDirection};
use crate::settings::{Directions, Invalid, InvalidInPath, Position, Settings};
use crate::stage::{Ahead, Background, Outbox, ReconfigureError, Stage};

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

/// One direction of a stage whose two directions are independent. [`Duplex`] combines two directions into a
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

    /// See [`Stage::lookahead`].
    fn lookahead(&mut self) -> Ahead<'_> {
        Ahead::No
    }

    /// See [`Stage::background`].
    fn background(&self) -> Option<Background> {
        None
    }

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

    /// Calls the stage of one direction, if there is one, and updates its deadline.
    fn call(&mut self, direction: Direction, call: impl FnOnce(&mut S)) {
        if let Some(side) = &mut self.sides[direction] {
            call(side);
            self.deadlines[direction] = side.next_deadline();
        }
    }

    fn iter(&self) -> impl Iterator<Item = (Direction, &S)> {
        self.sides.iter().filter_map(|(direction, side)| Some((direction, side.as_ref()?)))
    }
}

impl<S: OneWay> Stage for Duplex<S> {
    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        match &self.sides[packet.direction] {
            Some(_) => self.call(packet.direction, |side| side.handle_packet(now, packet, out)),
            None => out.forward(packet),
        }
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        for direction in Direction::BOTH {
            if self.deadlines[direction].is_some_and(|deadline| deadline <= now) {
                self.call(direction, |side| side.handle_deadline(now, out));
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        match (self.deadlines.down, self.deadlines.up) {
            (Some(down), Some(up)) => Some(down.min(up)),
            (first, second) => first.or(second),
        }
    }

    fn be_lazy(&mut self, is_lazy: bool) {
        for direction in Direction::BOTH {
            self.call(direction, |side| side.be_lazy(is_lazy));
        }
    }

    fn catch_up(&mut self, now: Instant, out: &mut Outbox) {
        for direction in Direction::BOTH {
            self.call(direction, |side| side.catch_up(now, out));
        }
    }

    fn lookahead(&mut self, direction: Direction) -> Ahead<'_> {
        self.sides[direction].as_mut().map_or(Ahead::Passes, S::lookahead)
    }

    fn background(&self, direction: Direction) -> Option<Background> {
        self.sides[direction].as_ref().and_then(S::background)
    }

    fn held(&self) -> usize {
        self.iter().map(|(_, side)| side.held()).sum()
    }

    fn stats(&self) -> Value {
        let sides = self.iter().map(|(direction, side)| (direction.name().to_owned(), side.stats()));
        Value::Object(sides.collect::<Map<_, _>>())
    }

    fn reconfigure(
        &mut self,
        now: Instant,
        settings: &dyn Any,
        out: &mut Outbox,
    ) -> Result<(), ReconfigureError> {
        let Some(settings) = settings.downcast_ref::<Directions<S::Config>>() else {
            let why = "packets inside the stage cannot move to another kind of stage";
            return Err(ReconfigureError::new("kind", why));
        };
        // Check both directions before changing either, so that a refused change has no effect.
        for (direction, side) in self.sides.iter() {
            match (side, settings.get(direction)) {
                (Some(side), Some(config)) => side.check(config).map_err(|mut error| {
                    error.setting = format!("{direction}.{}", error.setting);
                    error
                })?,
                (None, None) => {}
                _ => {
                    let why = "a direction cannot be added or removed";
                    return Err(ReconfigureError::new(direction.name(), why));
                }
            }
        }
        for (direction, config) in settings.iter() {
            self.call(direction, |side| side.reconfigure(now, config, out));
        }
        Ok(())
    }
}
