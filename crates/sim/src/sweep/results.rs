//! The rows of stores and merged files, with their positions in the plan.
//!
//! A row contains a hash of the run's content, and the seed. The store's manifest maps it to a run of the current
//! plan and to the current labels, which may have changed since the row was written.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use airfiles::{PathSource, limits};
use airtcp::recovery::Recipe;
use serde_json::Value;

use super::error::StoreError;
use super::labels::Labels;
use super::manifest::{FORMAT, Manifest, NUMBERED, RequestedRuns, Runs};
use super::plan::{Plan, Planned};
pub use super::rows::Row;
use super::rows::{Head, WrittenRow, row_files};

/// Position of a row in a file.
#[derive(Clone, Copy)]
struct RowPosition {
    file: usize,
    from: u64,
    len: usize,
}

/// A line that is not a valid row. Readers ignore it, and the sweep repeats its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The file of rows.
    pub path: PathBuf,
    /// Line number from 1.
    pub line: usize,
}

/// The rows of one plan, from any number of stores and merged files.
pub struct Results {
    /// The manifest of the first store. `None` if all sources are merged files.
    pub manifest: Option<Manifest>,
    plan: Option<String>,
    numbers: Lookup,
    files: Vec<(PathBuf, RefCell<File>)>,
    rows: BTreeMap<usize, RowPosition>,
    unplanned: BTreeSet<(String, u64)>,
    damaged: Vec<Damaged>,
}

impl Results {
    /// Reads stores and merged files. All must have results of the same plan.
    pub fn read(sources: &[PathBuf]) -> Result<Self, StoreError> {
        let mut results = Self {
            manifest: None,
            plan: None,
            numbers: Lookup::default(),
            files: Vec::new(),
            rows: BTreeMap::new(),
            unplanned: BTreeSet::new(),
            damaged: Vec::new(),
        };
        for source in sources {
            if !source.is_dir() {
                results.file(source, source, true)?;
                continue;
            }
            let Some(manifest) = Manifest::read(source)? else {
                return Err(StoreError::NoStore(source.clone()));
            };
            results.check_plan(source, &manifest.plan)?;
            let one_plan = match &manifest.runs {
                Runs::Numbered(_) => true,
                Runs::Named(requested) => {
                    results.numbers = Lookup::of(requested);
                    false
                }
            };
            results.manifest.get_or_insert(manifest);
            for path in row_files(source)? {
                results.file(source, &path, one_plan)?;
            }
        }
        Ok(results)
    }

    /// Checks that a source has the same plan as the previous sources.
    fn check_plan(&mut self, source: &Path, plan: &str) -> Result<(), StoreError> {
        let ours = self.plan.get_or_insert_with(|| plan.to_owned());
        if ours == plan {
            return Ok(());
        }
        let (path, theirs, ours) = (source.to_owned(), plan.to_owned(), ours.clone());
        Err(match source.is_dir() {
            true => StoreError::Plan { path, theirs, ours },
            false => StoreError::MergedPlan { path, theirs, ours },
        })
    }

    /// Reads a file of rows. If `one_plan` is set, rows of another plan are an error.
    fn file(&mut self, source: &Path, path: &Path, one_plan: bool) -> Result<(), StoreError> {
        let unreadable = |error| StoreError::Read { path: path.to_owned(), error };
        let file = airfiles::open(path, PathSource::File).map_err(unreadable)?;
        let index = self.files.len();
        // Opened twice, because a clone would share its position with `reader`.
        self.files.push((
            path.to_owned(),
            RefCell::new(airfiles::open(path, PathSource::File).map_err(unreadable)?),
        ));
        let mut reader = BufReader::new(file);
        let (mut line, mut from) = (Vec::new(), 0);
        for number in 1.. {
            line.clear();
            let len = reader
                .by_ref()
                .take(limits::WRITTEN_BY_HAND)
                .read_until(b'\n', &mut line)
                .map_err(unreadable)?;
            // Either the writing process was stopped in the middle of the line, or the line exceeds
            // the limit and is not a row.
            if line.pop() != Some(b'\n') {
                return Ok(());
            }
            let position = RowPosition { file: index, from, len: line.len() };
            from += len as u64;
            let Ok(head) = serde_json::from_slice::<Head>(&line) else {
                self.damaged.push(Damaged { path: path.to_owned(), line: number });
                continue;
            };
            if !(NUMBERED..=FORMAT).contains(&head.format) {
                return Err(StoreError::Version {
                    path: path.to_owned(),
                    by: format!("a program of format {}", head.format),
                    this: format!("one of format {FORMAT}"),
                });
            }
            if one_plan {
                self.check_plan(source, &head.plan)?;
            }
            let runs = match &head.content_hash {
                Some(content_hash) if !one_plan => self.numbers.find(content_hash, head.seed),
                _ if self.plan.as_ref() == Some(&head.plan) => vec![head.run],
                _ => Vec::new(),
            };
            if runs.is_empty() {
                self.unplanned.insert((head.content_hash.unwrap_or(head.plan), head.seed));
            }
            for run in runs {
                self.add(run, position, &line)?;
            }
        }
        Ok(())
    }

    /// Adds a row. Several processes may have executed the same run; their results then differ at
    /// most in the spelling of recipes.
    fn add(&mut self, run: usize, position: RowPosition, line: &[u8]) -> Result<(), StoreError> {
        let Some(other) = self.rows.get(&run).copied() else {
            self.rows.insert(run, position);
            return Ok(());
        };
        let report = |line: &[u8]| -> Option<Value> {
            let mut report = serde_json::from_slice::<Row>(line).ok()?.report;
            spell_canonically(&mut report);
            Some(report)
        };
        if report(&self.line(other)?) == report(line) {
            return Ok(());
        }
        let [first, second] = [other, position].map(|position| self.files[position.file].0.clone());
        Err(StoreError::Contradiction { run, first, second })
    }

    fn line(&self, RowPosition { file, from, len }: RowPosition) -> Result<Vec<u8>, StoreError> {
        let (path, file) = &self.files[file];
        let mut line = vec![0; len];
        let mut file = file.borrow_mut();
        file.seek(SeekFrom::Start(from))
            .and_then(|_| file.read_exact(&mut line))
            .map_err(|error| StoreError::Read { path: path.clone(), error })?;
        Ok(line)
    }

    /// Returns the number of the plan's runs with a row.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether no run of the plan has a row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns whether the run with this number has a row.
    pub fn has(&self, run: usize) -> bool {
        self.rows.contains_key(&run)
    }

    /// Returns the number of runs with a row that are not in the plan.
    pub fn unplanned(&self) -> usize {
        self.unplanned.len()
    }

    /// Returns the size of the rows of the plan's runs, in bytes.
    pub fn octets(&self) -> u64 {
        self.rows.values().map(|position| position.len as u64 + 1).sum()
    }

    /// Returns the files in reading order, each with the number of rows for runs of the plan.
    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, usize)> {
        let mut rows = vec![0; self.files.len()];
        for position in self.rows.values() {
            rows[position.file] += 1;
        }
        self.files.iter().map(|(path, _)| path.as_path()).zip(rows)
    }

    /// Returns the lines that are not valid rows.
    pub fn damaged(&self) -> &[Damaged] {
        &self.damaged
    }

    /// Returns the numbers of the runs without a row. Empty without a manifest, because the number
    /// of runs is then unknown.
    pub fn missing(&self) -> impl Iterator<Item = usize> {
        let runs = self.manifest.as_ref().map_or(0, Manifest::count);
        (0..runs).filter(|run| !self.has(*run))
    }

    /// Returns the rows without line feeds, in the order of the plan and with its current numbers
    /// and labels.
    pub fn lines(&self) -> impl Iterator<Item = Result<Vec<u8>, StoreError>> {
        self.rows.iter().map(|(run, position)| {
            let line = self.line(*position)?;
            let (Some(labels), Some(plan)) = (self.labels(*run), &self.plan) else { return Ok(line) };
            let unreadable = |error: serde_json::Error| StoreError::Read {
                path: self.files[position.file].0.clone(),
                error: error.into(),
            };
            let row: WrittenRow<'_> = serde_json::from_slice(&line).map_err(unreadable)?;
            let row = WrittenRow { plan: plan.into(), run: *run, point: Cow::Borrowed(labels), ..row };
            serde_json::to_vec(&row).map_err(unreadable)
        })
    }

    /// Returns all rows in the order of the plan.
    pub fn rows(&self) -> impl Iterator<Item = Result<Row, StoreError>> {
        self.lines().map(|line| {
            serde_json::from_slice(&line?)
                .map_err(|error| StoreError::Read { path: "a row".into(), error: error.into() })
        })
    }

    /// Returns the labels of the run's point in the plan. `None` if only the row has them.
    fn labels(&self, run: usize) -> Option<&Labels> {
        match &self.manifest.as_ref()?.runs {
            Runs::Named(requested) => {
                requested.points.get(run / requested.seeds.len()).map(|point| &point.labels)
            }
            Runs::Numbered(_) => None,
        }
    }
}

/// Replaces the recipes in a report, which are spelled as the user typed them, by their canonical
/// names.
fn spell_canonically(report: &mut Value) {
    let flows = report.get_mut("flows").and_then(Value::as_array_mut);
    for recipe in flows.into_iter().flatten().filter_map(|flow| flow.get_mut("recipe")) {
        if let Some(typed) = recipe.as_str().and_then(|typed| typed.parse::<Recipe>().ok()) {
            *recipe = typed.canonical().into();
        }
    }
}

/// Maps a run to its numbers in the plan. A run has several numbers if points with different labels
/// are equal otherwise.
#[derive(Default)]
struct Lookup {
    points: BTreeMap<String, Vec<usize>>,
    seeds: BTreeMap<u64, usize>,
}

impl Lookup {
    fn of(requested: &RequestedRuns) -> Self {
        let mut points: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, point) in requested.points.iter().enumerate() {
            points.entry(point.content_hash.clone()).or_default().push(index);
        }
        Self {
            points,
            seeds: requested.seeds.iter().enumerate().map(|(index, seed)| (*seed, index)).collect(),
        }
    }

    fn find(&self, content_hash: &str, seed: u64) -> Vec<usize> {
        let (Some(points), Some(seed)) = (self.points.get(content_hash), self.seeds.get(&seed)) else {
            return Vec::new();
        };
        points.iter().map(|point| point * self.seeds.len() + seed).collect()
    }
}

/// The runs of which a store has results, including runs outside the store's current plan.
pub struct StoredRuns(BTreeSet<(String, u64)>);

impl StoredRuns {
    /// Reads a store. Returns `None` if the directory does not contain one.
    pub fn read(directory: &Path, plan: &Plan) -> Result<Option<Self>, StoreError> {
        if Manifest::read(directory)?.is_none() {
            return Ok(None);
        }
        Ok(Some(Self::of(&Results::read(&[directory.to_owned()])?, plan)))
    }

    /// Returns the runs of a store from its results.
    pub fn of(results: &Results, plan: &Plan) -> Self {
        let mut known = results.unplanned.clone();
        let Some(manifest) = &results.manifest else { return Self(known) };
        match &manifest.runs {
            Runs::Named(requested) => known.extend(results.rows.keys().map(|run| {
                let (point, seed) = (run / requested.seeds.len(), run % requested.seeds.len());
                (requested.points[point].content_hash.clone(), requested.seeds[seed])
            })),
            Runs::Numbered(_) if manifest.plan == plan.hash => known.extend(results.rows.keys().map(|run| {
                let planned = plan.run(*run);
                (planned.point.content_hash.clone(), planned.seed)
            })),
            Runs::Numbered(_) => {}
        }
        Self(known)
    }

    /// Returns whether the store has a result of this run.
    pub fn has(&self, planned: &Planned<'_>) -> bool {
        self.0.contains(&(planned.point.content_hash.clone(), planned.seed))
    }

    /// Returns the numbers of the plan's runs that the store does not have.
    pub fn missing(&self, plan: &Plan) -> Vec<usize> {
        (0..plan.runs()).filter(|run| !self.has(&plan.run(*run))).collect()
    }
}
