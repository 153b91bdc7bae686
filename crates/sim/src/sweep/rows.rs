//! The format of rows, and the files that contain them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::StoreError;
use super::labels::Labels;

/// Prefix and suffix of a file of rows, `rows-SHARD-of-SHARDS.PART.jsonl`. Each file is written by
/// one process.
pub(super) const ROWS: (&str, &str) = ("rows-", ".jsonl");

/// A row: a run and its result.
#[derive(Deserialize)]
pub struct Row {
    /// Number of the run in the plan.
    pub run: usize,
    /// The run's seed.
    pub seed: u64,
    /// The axes and their values.
    pub point: Labels,
    /// The command line that repeats the run.
    pub command: String,
    /// A [`Report`](crate::run::Report) as JSON.
    pub report: Value,
}

impl Row {
    /// Adds the profiles of the run's senders to `known`, each once. Older rows have no profiles.
    pub(super) fn add_profiles(&self, known: &mut Vec<String>) {
        let flows = self.report["flows"].as_array().into_iter().flatten();
        for profile in flows.filter_map(|flow| flow["profile"].as_str()) {
            if !known.iter().any(|known| known == profile) {
                known.push(profile.to_owned());
            }
        }
    }

    /// Returns the notices of the run's flows, each with its recipe.
    pub(super) fn notices(&self) -> BTreeSet<String> {
        let mut notices = BTreeSet::new();
        for flow in self.report["flows"].as_array().into_iter().flatten() {
            let recipe = flow["recipe"].as_str().unwrap_or_default();
            let texts = flow["notices"].as_array().into_iter().flatten().filter_map(Value::as_str);
            notices.extend(texts.map(|notice| format!("{recipe}: {notice}")));
        }
        notices
    }
}

/// A row as written to a file.
#[derive(Serialize, Deserialize)]
pub(super) struct WrittenRow<'a> {
    pub(super) format: u32,
    /// The plan that requested the run when it was executed; `run` and `point` are its number and
    /// labels in that plan.
    pub(super) plan: Cow<'a, str>,
    pub(super) run: usize,
    pub(super) seed: u64,
    /// [`Point::content_hash`](super::plan::Point::content_hash). `None` in format 1.
    #[serde(rename = "what", default, skip_serializing_if = "Option::is_none")]
    pub(super) content_hash: Option<Cow<'a, str>>,
    pub(super) point: Cow<'a, Labels>,
    pub(super) command: String,
    #[serde(borrow)]
    pub(super) report: &'a RawValue,
}

/// The fields that identify a row. The other fields must be present.
#[derive(Deserialize)]
pub(super) struct Head {
    pub(super) format: u32,
    pub(super) plan: String,
    pub(super) run: usize,
    pub(super) seed: u64,
    #[serde(rename = "what")]
    pub(super) content_hash: Option<String>,
    #[serde(rename = "point")]
    _point: IgnoredAny,
    #[serde(rename = "command")]
    _command: IgnoredAny,
    #[serde(rename = "report")]
    _report: IgnoredAny,
}

/// Returns all files of rows in a store, sorted by name.
pub(super) fn row_files(directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>());
    let mut paths = entries.map_err(|error| StoreError::Read { path: directory.to_owned(), error })?;
    let is_rows = |name: &str| name.starts_with(ROWS.0) && name.ends_with(ROWS.1);
    paths.retain(|path| path.file_name().is_some_and(|name| is_rows(&name.to_string_lossy())));
    paths.sort();
    Ok(paths)
}
