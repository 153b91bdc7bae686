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
    #[error("{0} is not a result store; name another store or an empty directory with --store")]
    NoStore(PathBuf),
    /// Another version of the program wrote it.
    #[error("{path} was written by {by}, but this is {this}; use the same version, or another store")]
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
        "{path} has results of another plan ({theirs}, not {ours}); run `airtcp sweep run FILE.toml --store {path}` with \
         the current file to update it to this plan"
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
        "{path} was merged from results of another plan ({theirs}, not {ours}) and cannot be updated; name the stores that \
         it was made from, or merge them again"
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
        "{0} was written by an older version (format 1), and the sweep file has changed since then; run `airtcp sweep run` \
         with the old file to update the store and then change the file, or name another store with --store"
    )]
    Numbered(PathBuf),
    /// Two rows of one run differ.
    #[error(
        "run {run} has two different results, in {first} and {second}, from different versions of the program; use another store"
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
