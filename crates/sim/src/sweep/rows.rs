//! Rows as files have them, and which files have rows.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::StoreError;
use super::labels::Labels;

/// Rows of one process: `rows-SHARD-of-SHARDS.PART.jsonl`.
pub(super) const ROWS: (&str, &str) = ("rows-", ".jsonl");

/// A row: one run and its result.
#[derive(Deserialize)]
pub struct Row {
    /// Its number in the plan.
    pub run: usize,
    /// The run's seed.
    pub seed: u64,
    /// What was varied, and to which values.
    pub point: Labels,
    /// The command line that repeats the run.
    pub command: String,
    /// A [`Report`](crate::run::Report) as JSON.
    pub report: Value,
}

impl Row {
    /// Adds the profiles of the run's senders that are not among `known`. Rows that are older than this field have none.
    pub(super) fn add_profiles(&self, known: &mut Vec<String>) {
        let flows = self.report["flows"].as_array().into_iter().flatten();
        for profile in flows.filter_map(|flow| flow["profile"].as_str()) {
            if !known.iter().any(|known| known == profile) {
                known.push(profile.to_owned());
            }
        }
    }
}

/// A row as it is written.
#[derive(Serialize, Deserialize)]
pub(super) struct Written<'a> {
    pub(super) format: u32,
    /// The plan that asked for the run when it was made, the run's number in it, and its name there.
    pub(super) plan: Cow<'a, str>,
    pub(super) run: usize,
    pub(super) seed: u64,
    /// [`Point::what`](super::plan::Point::what). `None`: written in format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) what: Option<Cow<'a, str>>,
    pub(super) point: Cow<'a, Labels>,
    pub(super) command: String,
    #[serde(borrow)]
    pub(super) report: &'a RawValue,
}

/// What identifies a row. The rest must be there.
#[derive(Deserialize)]
pub(super) struct Head {
    pub(super) format: u32,
    pub(super) plan: String,
    pub(super) run: usize,
    pub(super) seed: u64,
    pub(super) what: Option<String>,
    #[serde(rename = "point")]
    _point: IgnoredAny,
    #[serde(rename = "command")]
    _command: IgnoredAny,
    #[serde(rename = "report")]
    _report: IgnoredAny,
}

/// All files of rows in a store, in the order of their names.
pub(super) fn row_files(directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>());
    let mut paths = entries.map_err(|error| StoreError::Read { path: directory.to_owned(), error })?;
    let is_rows = |name: &str| name.starts_with(ROWS.0) && name.ends_with(ROWS.1);
    paths.retain(|path| path.file_name().is_some_and(|name| is_rows(&name.to_string_lossy())));
    paths.sort();
    Ok(paths)
}
