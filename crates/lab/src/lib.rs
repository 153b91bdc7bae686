//! The lab: a transfer between two unmodified hosts over a path, as one call; many of them as an experiment.
//!
//! [`testbed`] builds the path: `airlink run` in a process of its own, with an [`agent`] in the namespace on
//! either side of it. [`sender`] and [`receiver`] are what the agents start there, [`transfer`] watches one run and
//! reads what it left, [`experiment`] repeats it for every sender, [`matrix`] for every receiver and scenario;
//! [`compare`] does the same runs in virtual time.
//!
//! The lab holds the pipes on which the agents take their orders. When it ends, however it ends, they close, the
//! agents end, and `airlink` ends everything else.

#![expect(clippy::disallowed_methods, reason = "other programs are waited for, in real time")]

pub mod agent;
pub mod capture;
pub mod compare;
pub mod experiment;
pub mod matrix;
pub mod page;
pub mod receiver;
pub mod sender;
pub mod summary;
pub mod testbed;
pub mod transfer;

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// What this machine lacks.
    #[error("{0}")]
    Environment(String),
    /// What came of one transfer; the next may succeed.
    #[error("{0}")]
    Transfer(String),
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
}

impl LabError {
    fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }
}
