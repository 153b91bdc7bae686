//! Sweeps: one run for every combination of what is varied, and every seed.
//!
//! A [`setup`] is one run as a person asks for it. A [`plan`] is all runs of a sweep, read from its file. A [`store`]
//! keeps the result of each run on disk, so that a sweep that was killed or has grown goes on where it was; [`results`]
//! finds them there, and [`progress`] how far those are who fill it. A [`metric`] finds a number in a result, and a [`summary`] has the means of such numbers, beside those
//! of the point that the others are compared with ([`against`]). A plan says what to run, not where: its parts can be run on
//! any number of machines.

pub mod against;
pub mod change;
mod error;
mod file;
pub mod labels;
mod manifest;
pub mod metric;
pub mod plan;
pub mod progress;
pub mod results;
mod rows;
pub mod setup;
pub mod store;
mod suggestion;
pub mod summary;

pub use file::FileError;
pub use manifest::Manifest;
