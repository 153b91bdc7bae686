//! The stages that a path can be made of, and their settings as a scenario writes them.

pub mod arq;
pub mod duplex;
pub mod link;
pub mod loss;
pub mod outage;
mod pace;
pub mod queue;
pub mod station;
pub mod trace;
pub mod traffic;

use serde::{Deserialize, Serialize};

use crate::packet::{Direction, PerDirection};

/// The settings of one stage: what `kind` says in a scenario, and what belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub enum StageConfig {
    Link(Directions<link::LinkConfig>),
    Loss(Directions<loss::LossConfig>),
    Outage(Directions<outage::OutageConfig>),
    Arq(Directions<arq::ArqConfig>),
    Rlc(Box<crate::rlc::config::RlcConfig>),
    Station(station::StationConfig),
    Traffic(Directions<traffic::TrafficConfig>),
}

/// A setting that makes no sense, and what would.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {message}")]
pub struct Invalid {
    /// Where in the stage's settings, with dots: `down.queue.packets`. Where a key is missing: the table it is
    /// missing from has to get it.
    pub key: String,
    pub message: String,
}

impl Invalid {
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

/// Settings of a stage that treats its two directions apart. A direction without settings lets everything pass
/// untouched. In a scenario: `down = { … }`, `up = { … }`, or `both = { … }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directions<T> {
    #[serde(skip_serializing_if = "Option::is_none", default = "none")]
    pub down: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none", default = "none")]
    pub up: Option<T>,
}

fn none<T>() -> Option<T> {
    None
}

impl<T> Directions<T> {
    pub fn as_ref(&self) -> PerDirection<Option<&T>> {
        PerDirection { down: self.down.as_ref(), up: self.up.as_ref() }
    }

    /// What is wrong in either direction, with the direction in front of its key.
    pub fn validate(&self, each: impl Fn(&T) -> Result<(), Invalid>) -> Result<(), Invalid> {
        for (direction, config) in self.as_ref().iter() {
            config.map_or(Ok(()), &each).map_err(|invalid| invalid.within(direction.name()))?;
        }
        Ok(())
    }

    pub fn get(&self, direction: Direction) -> Option<&T> {
        match direction {
            Direction::Down => self.down.as_ref(),
            Direction::Up => self.up.as_ref(),
        }
    }
}
