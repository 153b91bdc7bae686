//! The manifest of a store, `manifest.json`, with the requested runs and the version of the program.

use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::StoreError;
use super::labels::Labels;
use super::metric::Metric;
use super::plan::Plan;
use crate::file;

/// Version of the format of stores and rows.
pub(super) const FORMAT: u32 = 2;
/// The first format. Its rows contain only a number in a plan, so they cannot be identified without
/// the plan.
pub(super) const NUMBERED: u32 = 1;
pub(super) const MANIFEST: &str = "manifest.json";
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// The content of the sweep file when the store was last opened for writing.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// [`Plan::description`].
    pub description: String,
    /// The metrics that a summary shows, in the syntax of [`Metric`].
    pub metrics: Vec<String>,
    /// [`Plan::hash`].
    pub(super) plan: String,
    pub(super) runs: Runs,
}

/// How the store's rows identify their runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Runs {
    /// By the content and the seed of the run, so that the plan may change.
    Named(RequestedRuns),
    /// By the number in a fixed plan, which has this many runs.
    Numbered(usize),
}

/// All requested runs: each point with each seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RequestedRuns {
    pub(super) seeds: Vec<u64>,
    pub(super) points: Vec<NamedPoint>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct NamedPoint {
    /// [`Point::content_hash`](super::plan::Point::content_hash).
    #[serde(rename = "what")]
    pub(super) content_hash: String,
    pub(super) labels: Labels,
}

/// The manifest as written to disk.
#[derive(Serialize, Deserialize)]
struct ManifestFile {
    format: u32,
    airtcp: String,
    plan: String,
    description: String,
    metrics: Vec<String>,
    #[serde(flatten)]
    requested: RequestedRuns,
}

/// The manifest as written by format 1.
#[derive(Deserialize)]
struct FirstManifestFile {
    plan: String,
    description: String,
    metrics: Vec<String>,
    runs: usize,
}

impl Manifest {
    pub(super) fn of(plan: &Plan) -> Self {
        let named = |point: &super::plan::Point| NamedPoint {
            content_hash: point.content_hash.clone(),
            labels: point.labels.clone(),
        };
        let requested =
            RequestedRuns { seeds: plan.seeds.clone(), points: plan.points.iter().map(named).collect() };
        Self {
            description: plan.description.clone(),
            metrics: plan.metrics.iter().map(Metric::to_string).collect(),
            plan: plan.hash.clone(),
            runs: Runs::Named(requested),
        }
    }

    /// Returns the number of requested runs.
    pub(super) fn count(&self) -> usize {
        match &self.runs {
            Runs::Named(requested) => requested.seeds.len() * requested.points.len(),
            Runs::Numbered(runs) => *runs,
        }
    }

    /// Reads the manifest of a store. Returns `None` if the directory does not contain a store.
    pub fn read(directory: &Path) -> Result<Option<Self>, StoreError> {
        let path = directory.join(MANIFEST);
        let text = match airfiles::read_result(&path) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(StoreError::Read { path, error }),
        };
        let no_store = |_| StoreError::NoStore(directory.to_owned());
        let json: Value = serde_json::from_str(&text).map_err(no_store)?;
        let format = json["format"].as_u64().and_then(|format| u32::try_from(format).ok());
        let program = json["airtcp"].as_str().unwrap_or_default();
        match format {
            Some(FORMAT) if program == PROGRAM => {
                // The text is parsed again, because a `Value` does not keep the order of the axes.
                let ManifestFile { plan, description, metrics, requested, .. } =
                    serde_json::from_str(&text).map_err(no_store)?;
                Ok(Some(Self { description, metrics, plan, runs: Runs::Named(requested) }))
            }
            Some(NUMBERED) if program == PROGRAM => {
                let FirstManifestFile { plan, description, metrics, runs } =
                    serde_json::from_value(json).map_err(no_store)?;
                Ok(Some(Self { description, metrics, plan, runs: Runs::Numbered(runs) }))
            }
            _ => {
                let format = format.map_or_else(|| "unknown".to_owned(), |format| format.to_string());
                Err(StoreError::Version {
                    path: directory.to_owned(),
                    by: format!("airtcp {program} (format {format})"),
                    this: format!("airtcp {PROGRAM} (format {FORMAT})"),
                })
            }
        }
    }

    /// Writes the manifest atomically, so that another process may write it concurrently.
    pub(super) fn write(&self, directory: &Path) -> Result<(), StoreError> {
        let Runs::Named(requested) = &self.runs else { return Ok(()) };
        let written = ManifestFile {
            format: FORMAT,
            airtcp: PROGRAM.to_owned(),
            plan: self.plan.clone(),
            description: self.description.clone(),
            metrics: self.metrics.clone(),
            requested: requested.clone(),
        };
        write_file(&directory.join(MANIFEST), |file| Ok(serde_json::to_writer_pretty(file, &written)?))
    }
}

/// Writes a file of the store atomically.
pub(super) fn write_file(
    path: &Path,
    content: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
) -> Result<(), StoreError> {
    file::write_atomically(path, content).map_err(|error| StoreError::Write { path: path.to_owned(), error })
}
