//! Why results cannot be read or kept.

use std::io;
use std::path::PathBuf;

/// Why results cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// Which one.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// A file or directory cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// Which one.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The directory has other things in it, or a manifest that nobody can read.
    #[error("{0} is not a result store: name another one with --store, or an empty directory")]
    NoStore(PathBuf),
    /// Another version of the program wrote it.
    #[error("{path} was written by {by}, and this is {this}: use that one, or another store")]
    Version {
        /// The store, or the file of rows.
        path: PathBuf,
        /// The program that wrote it.
        by: String,
        /// This program.
        this: String,
    },
    /// Results of several plans were to be joined.
    #[error(
        "{path} has results of another plan ({theirs}, not {ours}): `airtcp sweep run FILE.toml --store {path}` with the file \
         as it is now makes it one of this plan"
    )]
    Plan {
        /// The store.
        path: PathBuf,
        /// [`Plan::hash`](super::plan::Plan::hash) of the plan that it has results of.
        theirs: String,
        /// [`Plan::hash`](super::plan::Plan::hash) of the others' plan.
        ours: String,
    },
    /// The same, where one is a file that was merged.
    #[error(
        "{path} was merged from results of another plan ({theirs}, not {ours}), and stays so: name the stores that it was made \
         of, or merge them into a file anew"
    )]
    MergedPlan {
        /// The file of rows.
        path: PathBuf,
        /// [`Plan::hash`](super::plan::Plan::hash) of the plan that it has results of.
        theirs: String,
        /// [`Plan::hash`](super::plan::Plan::hash) of the others' plan.
        ours: String,
    },
    /// Its rows are numbered by a plan that is no more.
    #[error(
        "{0} is of an older program (format 1), and the sweep's file has changed since: `airtcp sweep run` with the \
         file as it was brings the store up to date, then change the file; or name another store with --store"
    )]
    Numbered(PathBuf),
    /// Two rows of one run differ.
    #[error(
        "run {run} has two results, in {first} and {second}: they are not of the same program; use another store"
    )]
    Contradiction {
        /// Its number in the plan.
        run: usize,
        /// The file with the row that was read first.
        first: PathBuf,
        /// The file with the other row.
        second: PathBuf,
    },
}
