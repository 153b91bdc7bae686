//! Errors when results are read or stored.

use std::io;
use std::path::PathBuf;

/// Error when results are read or stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The path of the file or directory.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// A file or directory cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The path of the file or directory.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The directory contains other files, or its manifest cannot be parsed.
    #[error(
        "{0} is not a results directory; give a sweep file, or a directory that `airtcp sweep run` filled (for new \
         results: an empty one, with --store)"
    )]
    NoStore(PathBuf),
    /// Another version of the program wrote the results.
    #[error(
        "{path} was written by {by}, but this is {this}; use the same version, or another results directory"
    )]
    Version {
        /// The store or the file of rows.
        path: PathBuf,
        /// The program that wrote it.
        by: String,
        /// The running program.
        this: String,
    },
    /// The sources have results of different plans.
    #[error(
        "{path} has results of another plan ({theirs}, not {ours}); run `airtcp sweep run FILE.toml --store {path}` with \
         the current file to update it to this plan"
    )]
    Plan {
        /// The store.
        path: PathBuf,
        /// [`Plan::hash`](super::plan::Plan::hash) of the plan of this store.
        theirs: String,
        /// [`Plan::hash`](super::plan::Plan::hash) of the other sources' plan.
        ours: String,
    },
    /// A merged file has results of another plan than the other sources.
    #[error(
        "{path} was merged from results of another plan ({theirs}, not {ours}) and cannot be updated; name the results \
         directories that it was made from, or merge them again"
    )]
    MergedPlan {
        /// The file of rows.
        path: PathBuf,
        /// [`Plan::hash`](super::plan::Plan::hash) of the plan of this file.
        theirs: String,
        /// [`Plan::hash`](super::plan::Plan::hash) of the other sources' plan.
        ours: String,
    },
    /// The store's rows are numbered by a plan that no longer exists (format 1).
    #[error(
        "{0} was written by an older version (format 1), and the sweep file has changed since then; run `airtcp sweep run` \
         with the old file to update the results directory and then change the file, or name another directory with \
         --store"
    )]
    Numbered(PathBuf),
    /// Two rows of the same run differ.
    #[error(
        "run {run} has two different results, in {first} and {second}, from different versions of the program; use \
         another results directory"
    )]
    Contradiction {
        /// Number of the run in the plan.
        run: usize,
        /// The file with the first of the two rows.
        first: PathBuf,
        /// The file with the second row.
        second: PathBuf,
    },
}
