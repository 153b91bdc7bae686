//! Experiments between real hosts over an emulated path: the library behind `airtcp lab`.
//!
//! Begin with [`experiment::run`], which makes the same transfer with several senders and sums it up; [`matrix::run`]
//! tries every receiver with every recipe over every kind of path. Below them:
//!
//! * [`testbed`] builds the path: `airlink run` in a process of its own, with an [`agent`] in the namespace on either
//!   side of it.
//! * [`sender`] and [`receiver`] are what the agents start there.
//! * [`transfer`] makes one transfer and reads what it left, with [`capture`].
//! * [`summary`] is the row that a sender's transfers make in a table; [`likeness`] says under it what our senders
//!   still lack beside the kernel's.
//! * [`compare`] does the runs of an experiment again in virtual time; [`page`] shows what was kept as HTML.
//! * [`demo`] plays scenes in which one mechanism decides.
//!
//! The lab holds the pipes on which the agents take their orders. When it ends, however it ends, the pipes close, the
//! agents end, and `airlink` ends everything else.

#![expect(clippy::disallowed_methods, reason = "other programs are waited for, in real time")]

pub mod agent;
pub mod capture;
pub mod compare;
pub mod connection;
pub mod counters;
pub mod demo;
pub mod difference;
mod disk;
pub mod experiment;
pub mod likeness;
pub mod matrix;
pub mod page;
pub mod pattern;
pub mod receiver;
pub mod sender;
pub mod summary;
pub mod testbed;
pub mod transfer;
mod validity;
pub mod workload;

use std::io;
use std::path::PathBuf;

/// Why something was not run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// This machine lacks something, or does not permit it: other transfers would fail as well.
    #[error("{0}")]
    Environment(String),
    /// One transfer failed; the next may succeed.
    #[error("{0}")]
    Transfer(String),
    /// The directory has something else in it.
    #[error("{}: {why}", .directory.display())]
    Taken { directory: PathBuf, why: String },
    /// Nothing more can be kept.
    #[error("{}: the disk is full", .directory.display())]
    Full { directory: PathBuf },
    /// A file or directory of the lab's cannot be used.
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
}

impl LabError {
    fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { directory: path },
            _ => Self::File { path, source },
        }
    }
}
