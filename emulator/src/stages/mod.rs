//! The stages that a path can be made of. (The stage `rlc` is [`crate::rlc`].)
//!
//! Each file holds one kind: its settings, how they are checked and built, and the stage. `scenario/kinds.rs` is the
//! table of all kinds.

pub mod arq;
pub mod chosen;
pub mod corrupt;
pub mod duplex;
pub mod duplicate;
pub mod link;
pub mod loss;
pub mod outage;
mod pace;
pub mod policer;
pub mod queue;
pub mod reorder;
pub mod station;
#[cfg(test)]
pub(crate) mod testing;
pub mod times;
pub mod trace;
pub mod traffic;
pub mod truncate;
