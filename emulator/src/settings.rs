//! Common interface of the settings of all kinds of stages.
//!
//! Each kind of stage has a settings type that implements [`Settings`], and a row in the table of
//! `scenario/kinds.rs`.

use std::any::Any;

use airwire::rng::Stream;
use serde::{Deserialize, Serialize};

use crate::packet::{Direction, PerDirection};
use crate::stage::{ReconfigureError, Stage};

/// Settings of one kind of stage, for both directions.
///
/// A stage whose directions are independent implements [`OneWaySettings`] for the settings of one direction.
/// This trait is then implemented for [`Directions`] of these settings.
///
/// [`OneWaySettings`]: crate::stages::duplex::OneWaySettings
pub trait Settings: Any {
    /// Refuses values that have the right type but are invalid, such as a queue of 0 packets.
    fn validate(&self) -> Result<(), Invalid>;

    /// Refuses settings that conflict with the other stages of the path, or with files. Called after
    /// `validate`.
    fn check_in_path(&self, _position: Position<'_>) -> Result<(), InvalidInPath> {
        Ok(())
    }

    /// Returns the reason why the stage passes every packet unchanged and without delay. `None`: the stage
    /// has an effect.
    fn does_nothing(&self) -> Option<&'static str> {
        None
    }

    /// Creates the stage in its initial state. `seed` is the seed of the scenario. The stage takes its random
    /// streams from [`Position::stream`]. The error is a message.
    fn build(&self, position: Position<'_>, seed: u64) -> Result<Box<dyn Stage>, String>;
}

/// Position of a stage in its path.
#[derive(Clone, Copy, Debug)]
pub struct Position<'a> {
    /// Index of the stage, counted from 0 at the fixed side.
    pub index: usize,
    /// Names of all stages of the path including this one, from the fixed side to the mobile side.
    pub names: &'a [&'a str],
}

impl<'a> Position<'a> {
    /// Name of the stage at this position.
    pub fn name(&self) -> &'a str {
        self.names[self.index]
    }

    /// The random numbers for one purpose in one direction. They depend on the stage's name, not on its
    /// index, so that adding another stage does not change them.
    pub fn stream(&self, seed: u64, direction: Direction, purpose: &str) -> Stream {
        Stream::new(seed, &format!("{}/{direction}/{purpose}", self.name()))
    }
}

/// An invalid setting, with advice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {message}")]
pub struct Invalid {
    /// Path of the setting within the stage, with dots: `down.queue.packets`. If a key is missing, this is
    /// the key to add.
    pub key: String,
    /// The problem, and what to write instead.
    pub message: String,
}

impl Invalid {
    /// Creates the error. `key` is relative to the table that is being validated.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }

    /// Converts the key to be relative to the enclosing table.
    #[must_use]
    pub fn within(mut self, table: &str) -> Self {
        self.key = format!("{table}.{}", self.key);
        self
    }
}

/// A value of a setting that determines which other settings apply, such as a model.
#[derive(Debug)]
pub(crate) struct Variant {
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
}

impl Variant {
    /// Creates a variant from its name, the keys that it requires and the keys that it also allows.
    pub(crate) const fn new(
        name: &'static str,
        required: &'static [&'static str],
        optional: &'static [&'static str],
    ) -> Self {
        Self { name, required, optional }
    }

    fn allows(&self, key: &str) -> bool {
        self.required.contains(&key) || self.optional.contains(&key)
    }

    /// Refuses missing settings, and settings that only other variants allow. `setting` is the name of the
    /// setting that selects the variant. `keys` are all keys that depend on it, and whether each is set.
    pub(crate) fn check(
        &self,
        setting: &str,
        all: &[Self],
        keys: impl IntoIterator<Item = (&'static str, bool)>,
    ) -> Result<(), Invalid> {
        let name = self.name;
        for (key, is_set) in keys {
            if self.required.contains(&key) && !is_set {
                let message = format!("required by the {setting} \"{name}\": add `{key} = …`");
                return Err(Invalid::new(key, message));
            }
            if is_set && !self.allows(key) {
                let owners = all.iter().filter(|other| other.allows(key));
                let owners: Vec<String> = owners.map(|other| format!("\"{}\"", other.name)).collect();
                return Err(Invalid::new(
                    key,
                    format!(
                        "valid only with the {setting} {}, but the {setting} is \"{name}\": remove it, or change the {setting}",
                        owners.join(" or ")
                    ),
                ));
            }
        }
        Ok(())
    }
}

impl From<Invalid> for ReconfigureError {
    fn from(Invalid { key, message }: Invalid) -> Self {
        Self::new(key, message)
    }
}

/// A setting that is valid in itself, but not in this path or on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidInPath {
    /// The key, as in [`Invalid::key`].
    pub key: String,
    /// A whole sentence, which is printed without the key in front.
    pub message: String,
    /// Advice on what to write instead, if known.
    pub help: Option<String>,
}

/// Settings of a stage that treats its two directions separately. A direction without settings passes all
/// packets unchanged. In a scenario: `down = { … }`, `up = { … }`, or `both = { … }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directions<T> {
    /// The direction from the fixed side to the mobile side.
    pub down: Option<T>,
    /// The direction from the mobile side to the fixed side.
    pub up: Option<T>,
}

impl<T> Directions<T> {
    /// Both settings by reference, indexed by direction.
    pub fn as_ref(&self) -> PerDirection<Option<&T>> {
        PerDirection { down: self.down.as_ref(), up: self.up.as_ref() }
    }

    /// Settings of this direction. `None`: it does not have any.
    pub fn get(&self, direction: Direction) -> Option<&T> {
        self.as_ref()[direction]
    }

    /// Iterates over the directions that have settings, `down` first.
    pub fn iter(&self) -> impl Iterator<Item = (Direction, &T)> {
        Direction::BOTH.into_iter().filter_map(|direction| Some((direction, self.get(direction)?)))
    }
}
