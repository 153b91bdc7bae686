//! The stages that a path can be made of, and their settings as a scenario writes them.

pub mod arq;
pub mod link;
pub mod loss;
pub mod outage;
pub mod queue;
pub mod station;
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

    pub fn get(&self, direction: Direction) -> Option<&T> {
        match direction {
            Direction::Down => self.down.as_ref(),
            Direction::Up => self.up.as_ref(),
        }
    }
}
