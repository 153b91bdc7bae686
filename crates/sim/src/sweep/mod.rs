//! Sweeps: one run for every combination of what is varied, and every seed.
//!
//! [`setup`] is one run as a person asks for it, [`plan`] all of a sweep's from its [`mod@file`], [`store`] keeps what
//! came of each on disk, so that a sweep that was killed goes on where it was, and [`metric`] finds in it the numbers
//! that [`summary`] draws together. A plan says what to run, not where: parts of it can be run anywhere.

pub mod against;
pub mod file;
pub mod metric;
pub mod plan;
pub mod setup;
pub mod store;
mod suggestion;
pub mod summary;
