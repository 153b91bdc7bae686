//! Sweeps: one run for every combination of what is varied, and every seed.
//!
//! A [`setup`] is one run as a person asks for it. A [`plan`] is all runs of a sweep, read from its file. A [`store`]
//! keeps the result of each run on disk, so that a sweep that was killed goes on where it was. A [`metric`] finds a number
//! in a result, a [`summary`] has the means of such numbers, and [`against`] the differences between points. A plan says
//! what to run, not where: its parts can be run on any number of machines.

pub mod against;
mod file;
pub mod metric;
pub mod plan;
pub mod setup;
pub mod store;
mod suggestion;
pub mod summary;

pub use file::FileError;
