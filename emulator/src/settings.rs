//! The settings of a stage: what each kind's own file says of them, and what all kinds have in common.
//!
//! A kind of stage is a type of settings that implements [`Settings`], and a row in the table of `scenario/kinds.rs`.

use std::any::Any;

use airwire::rng::Stream;
use serde::{Deserialize, Serialize};

use crate::packet::{Direction, PerDirection};
use crate::stage::Stage;

/// The settings of one kind of stage, both directions together.
///
/// A stage whose directions know nothing of each other implements [`OneWaySettings`] for the settings of one of them,
/// and has this for [`Directions`] of them.
///
/// [`OneWaySettings`]: crate::stages::duplex::OneWaySettings
pub trait Settings: Any {
    /// Refuses what fits its type and still makes no sense, such as a queue of no packets.
    fn validate(&self) -> Result<(), Invalid>;

    /// Refuses what the other stages of the path, or files, do not allow. Called after `validate`.
    fn check_in_path(&self, _position: Position<'_>) -> Result<(), Misplaced> {
        Ok(())
    }

    /// The stage, at the start of time. `seed` is the scenario's; the stage takes its streams from
    /// [`Position::stream`]. The error says in words what is wrong.
    fn build(&self, position: Position<'_>, seed: u64) -> Result<Box<dyn Stage>, String>;
}

/// Where in its path a stage stands.
#[derive(Clone, Copy, Debug)]
pub struct Position<'a> {
    /// Counted from 0 at the fixed side.
    pub index: usize,
    /// The names of all stages of the path, this one's among them, from the fixed side to the mobile.
    pub names: &'a [&'a str],
}

impl<'a> Position<'a> {
    /// Of the stage that stands here.
    pub fn name(&self) -> &'a str {
        self.names[self.index]
    }

    /// The random numbers for one purpose in one direction. They depend on the stage's name, not on its index, so
    /// that a stage added elsewhere shifts nothing here.
    pub fn stream(&self, seed: u64, direction: Direction, purpose: &str) -> Stream {
        Stream::new(seed, &format!("{}/{direction}/{purpose}", self.name()))
    }
}

/// A setting that makes no sense, and what would.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {message}")]
pub struct Invalid {
    /// Where in the stage's settings, with dots: `down.queue.packets`. If a key is missing, this is the key to add.
    pub key: String,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl Invalid {
    /// `key` as seen from the table that is validated.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }

    /// The same, seen from the table around it.
    #[must_use]
    pub fn within(mut self, table: &str) -> Self {
        self.key = format!("{table}.{}", self.key);
        self
    }
}

/// A setting that is valid in itself, but not in this path or on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// As in [`Invalid::key`].
    pub key: String,
    /// A whole sentence: the key is not put in front of it.
    pub message: String,
    /// What to write instead, where that is known.
    pub help: Option<String>,
}

/// Settings of a stage that treats its two directions apart. A direction without settings lets everything pass
/// untouched. In a scenario: `down = { … }`, `up = { … }`, or `both = { … }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directions<T> {
    /// From the fixed side to the mobile.
    #[serde(skip_serializing_if = "Option::is_none", default = "none")]
    pub down: Option<T>,
    /// From the mobile side to the fixed.
    #[serde(skip_serializing_if = "Option::is_none", default = "none")]
    pub up: Option<T>,
}

fn none<T>() -> Option<T> {
    None
}

impl<T> Directions<T> {
    /// Both, to be indexed by direction.
    pub fn as_ref(&self) -> PerDirection<Option<&T>> {
        PerDirection { down: self.down.as_ref(), up: self.up.as_ref() }
    }

    /// `None`: this direction has no settings.
    pub fn get(&self, direction: Direction) -> Option<&T> {
        self.as_ref()[direction]
    }

    /// The directions that have settings, `down` first.
    pub fn iter(&self) -> impl Iterator<Item = (Direction, &T)> {
        Direction::BOTH.into_iter().filter_map(|direction| Some((direction, self.get(direction)?)))
    }
}
