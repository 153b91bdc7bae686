//! The stages of paths. The stage `rlc` is in [`crate::rlc`].
//!
//! Each file contains one kind of stage: its settings, their validation, and the stage itself.
//! `scenario/kinds.rs` lists all kinds.

pub mod arq;
pub mod chosen;
pub mod corrupt;
pub mod duplex;
pub mod duplicate;
pub mod file;
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
