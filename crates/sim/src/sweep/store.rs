//! The store of a sweep's results.
//!
//! A store is a directory with `manifest.json` (the requested runs, and the program that produced
//! the results) and files of rows, one JSON object per line. Each process appends to its own file,
//! so several processes can run concurrently. If a process is killed, its last line may be
//! incomplete; readers ignore such a line. A row identifies its run by content and seed. So the sweep
//! may grow or shrink, and a later plan finds the results that it requests.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use airfiles::{PathSource, limits};

use super::change::Change;
pub use super::error::StoreError;
use super::manifest::{self, FORMAT, MANIFEST, Manifest, NUMBERED, Runs};
use super::plan::{Plan, Planned, Shard};
use super::results::Results;
use super::rows::{ROWS, WrittenRow, row_files};
use crate::run::Report;

/// A store that collects the results of a plan.
pub struct Store {
    directory: PathBuf,
    /// [`Plan::hash`].
    hash: String,
    change: Option<Change>,
}

impl Store {
    /// Opens the store in this directory, or creates one, and sets the requested runs to this plan.
    /// Existing results of its runs are used, and results of other runs remain in the store.
    pub fn open(directory: &Path, plan: &Plan) -> Result<Self, StoreError> {
        let path = || directory.to_owned();
        fs::create_dir_all(directory).map_err(|error| StoreError::Write { path: path(), error })?;
        // The entries are read before the manifest, because another process may be creating the store.
        let entries = fs::read_dir(directory).map_err(|error| StoreError::Read { path: path(), error })?;
        let foreign =
            entries.flatten().any(|entry| !entry.file_name().to_string_lossy().starts_with(MANIFEST));
        let (before, now) = (Manifest::read(directory)?, Manifest::of(plan));
        let change = match &before {
            None if foreign => return Err(StoreError::NoStore(path())),
            Some(before) => match (&before.runs, &now.runs) {
                (Runs::Numbered(_), _) if before.plan != now.plan => {
                    return Err(StoreError::Numbered(path()));
                }
                (Runs::Numbered(_), _) => {
                    name_rows(directory, plan)?;
                    None
                }
                (Runs::Named(before), Runs::Named(now)) => Change::between(before, now),
                (Runs::Named(_), Runs::Numbered(_)) => None,
            },
            None => None,
        };
        if before.as_ref() != Some(&now) {
            now.write(directory)?;
        }
        Ok(Self { directory: path(), hash: plan.hash.clone(), change })
    }

    /// Returns the changes of the plan since the store was last opened. `None` if nothing has
    /// changed.
    pub fn change(&self) -> Option<&Change> {
        self.change.as_ref()
    }

    /// Reads all results so far.
    pub fn results(&self) -> Result<Results, StoreError> {
        Results::read(std::slice::from_ref(&self.directory))
    }

    /// Returns a writer for new rows. `shard` determines only the file name.
    pub fn writer(&self, shard: Shard) -> Writer {
        Writer { directory: self.directory.clone(), hash: self.hash.clone(), shard, file: None, failed: None }
    }
}

/// Converts rows of format 1, which are identified by their number in the plan, to the current
/// format.
fn name_rows(directory: &Path, plan: &Plan) -> Result<(), StoreError> {
    for path in row_files(directory)? {
        let text = airfiles::read(&path, PathSource::File, limits::RESULT)
            .map_err(|error| StoreError::Read { path: path.clone(), error })?;
        let named = |line: &[u8]| -> Option<Vec<u8>> {
            let row: WrittenRow<'_> = serde_json::from_slice(line).ok()?;
            let is_ours = row.format == NUMBERED && row.plan == plan.hash && row.run < plan.runs();
            let content_hash =
                is_ours.then(|| Cow::Borrowed(plan.run(row.run).point.content_hash.as_str()))?;
            serde_json::to_vec(&WrittenRow { format: FORMAT, content_hash: Some(content_hash), ..row }).ok()
        };
        manifest::write_file(&path, |file| {
            for line in text.split_inclusive(|octet| *octet == b'\n') {
                match line.strip_suffix(b"\n").and_then(named) {
                    Some(row) => {
                        file.write_all(&row)?;
                        file.write_all(b"\n")?;
                    }
                    // Not a row of format 1: keep it unchanged.
                    None => file.write_all(line)?,
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Returns the row of a run as a line. `plan` is [`Plan::hash`].
fn row(plan: &str, planned: &Planned<'_>, report: &Report) -> Result<Vec<u8>, serde_json::Error> {
    let report = serde_json::value::to_raw_value(report)?;
    let row = WrittenRow {
        format: FORMAT,
        plan: Cow::Borrowed(plan),
        run: planned.index,
        seed: planned.seed,
        content_hash: Some(Cow::Borrowed(&planned.point.content_hash)),
        point: Cow::Borrowed(&planned.point.labels),
        command: planned.command(),
        report: &report,
    };
    let mut line = serde_json::to_vec(&row)?;
    line.push(b'\n');
    Ok(line)
}

/// Appends rows to a file that no other process writes to.
pub struct Writer {
    directory: PathBuf,
    /// [`Plan::hash`].
    hash: String,
    shard: Shard,
    /// Created with the first row.
    file: Option<Rows>,
    /// The error that has stopped the writer.
    failed: Option<String>,
}

struct Rows {
    path: PathBuf,
    file: File,
    /// Length of all complete rows in bytes.
    len: u64,
}

impl Writer {
    /// Appends the result of a run. After an error nothing more is written.
    pub fn append(&mut self, planned: &Planned<'_>, report: &Report) -> Result<(), StoreError> {
        let line = row(&self.hash, planned, report)
            .map_err(|error| StoreError::Write { path: self.directory.clone(), error: error.into() })?;
        if self.file.is_none() {
            self.file = Some(self.create()?);
        }
        let Some(Rows { path, file, len }) = &mut self.file else { return Ok(()) };
        let result = match &self.failed {
            Some(why) => Err(io::Error::other(why.clone())),
            None => file.write_all(&line),
        };
        if let Err(error) = result {
            if self.failed.is_none() {
                // Remove the incomplete line. If this also fails, readers ignore the line.
                let _ = if *len == 0 { fs::remove_file(&*path) } else { file.set_len(*len) };
            }
            self.failed = Some(error.to_string());
            return Err(StoreError::Write { path: path.clone(), error });
        }
        *len += line.len() as u64;
        Ok(())
    }

    /// Syncs the rows to disk.
    pub fn sync(&self) -> Result<(), StoreError> {
        match &self.file {
            Some(Rows { path, file, .. }) => {
                file.sync_all().map_err(|error| StoreError::Write { path: path.clone(), error })
            }
            None => Ok(()),
        }
    }

    fn create(&self) -> Result<Rows, StoreError> {
        let Shard { number, of } = self.shard;
        let mut part = 1;
        loop {
            let path = self.directory.join(format!("{}{number}-of-{of}.{part:04}{}", ROWS.0, ROWS.1));
            match File::create_new(&path) {
                Ok(file) => return Ok(Rows { path, file, len: 0 }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => part += 1,
                Err(error) => return Err(StoreError::Write { path, error }),
            }
        }
    }
}
