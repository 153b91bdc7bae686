//! Sweeps: one run for every combination of axis values and every seed.
//!
//! A [`setup`] contains the options of one run. A [`plan`] contains all runs of a sweep, read from
//! its file. A [`store`] keeps the results on disk, so that an interrupted or extended sweep can
//! continue. [`results`] reads the store, and [`progress`] shows how far the processes are that
//! fill it. A [`metric`] extracts a number from a result, and a [`summary`] has the means of such
//! numbers and compares them with the reference point ([`against`]). A plan does not depend on a
//! machine, so its shards can run on any number of machines.

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
