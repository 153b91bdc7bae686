//! Experiments between real hosts over an emulated path: the library behind `airtcp lab`. Senders are recipes over a
//! TUN device and this kernel's TCP. Receivers are this kernel and third-party stacks.
//!
//! ```
//! use airtcp_lab::sender::TypedSender;
//!
//! let kernel: TypedSender = "linux:cubic".parse()?;
//! assert_eq!(kernel, TypedSender::Kernel("cubic".to_owned()));
//! assert!(matches!("newreno+eifel@linux".parse()?, TypedSender::Recipe(_)));
//! # Ok::<(), String>(())
//! ```
//!
//! Start with [`experiment::run`], which runs the same transfer with several senders and summarizes the
//! results, or with [`matrix::run`], which tests every receiver with every recipe over every kind of path.
//! They are built from these modules:
//!
//! * [`testbed`] creates the path: it runs `airlink run` as a process, with an [`agent`] in the namespace on
//!   each side.
//! * [`sender`] and [`receiver`] are the programs that the agents start there.
//! * [`transfer`] runs one transfer and reads its files, with [`capture`].
//! * [`summary`] computes a sender's row in a table; [`kernel_differences`] lists the differences between
//!   recipes and the kernel's senders.
//! * [`compare`] repeats the runs of an experiment in virtual time; [`page`] shows the saved results as HTML.
//! * [`demo`] plays scenes in which one mechanism makes the difference.
//!
//! The lab holds the pipes through which the agents receive orders. When the lab ends for any reason, the
//! pipes close, the agents exit, and `airlink` ends all other processes.

#![expect(clippy::disallowed_methods, reason = "waits for other programs in real time")]
#![warn(missing_docs)]

pub mod agent;
pub mod capture;
pub mod compare;
pub mod connection;
pub mod counters;
pub mod demo;
pub mod difference;
mod disk;
pub mod experiment;
pub mod kernel_differences;
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

/// The reason why something was not run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// This machine lacks a requirement or a permission, so other transfers would also fail.
    #[error("{0}")]
    Environment(String),
    /// One transfer failed; the next one may succeed.
    #[error("{0}")]
    Transfer(String),
    /// The directory contains other files.
    #[error("{}: {why}", .directory.display())]
    Taken {
        /// The directory.
        directory: PathBuf,
        /// The reason why it cannot be used.
        why: String,
    },
    /// The disk is full.
    #[error("{}: the disk is full", .directory.display())]
    Full {
        /// The directory on this disk.
        directory: PathBuf,
    },
    /// A file or directory of the lab cannot be used.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
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
