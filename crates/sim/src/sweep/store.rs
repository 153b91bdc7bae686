//! The results of a sweep's runs, on disk.
//!
//! A store is a directory with `manifest.json` (which plan, and which program) and files of rows, one JSON object a line.
//! Each process appends to a file of its own, so many can run at once. A process that is killed leaves at most a last line
//! without its end, which does not count. Nothing in a row says when or where it was made: equal plans have equal rows.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::metric::Metric;
use super::plan::{Plan, Planned, Shard};
use crate::run::Report;

/// The version of the format of stores and rows.
const FORMAT: u32 = 1;
const PROGRAM: &str = env!("CARGO_PKG_VERSION");
const MANIFEST: &str = "manifest.json";
const ROWS: &str = "rows-";

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
    /// The results belong to another plan.
    #[error(
        "{path} has results of another plan ({theirs}, not {ours}): use another store, or the sweep's file as it was"
    )]
    Plan {
        /// The store, or the file of rows.
        path: PathBuf,
        /// [`Plan::hash`] of the plan that it has results of.
        theirs: String,
        /// [`Plan::hash`] of the plan at hand.
        ours: String,
    },
    /// A line is not a row.
    #[error("{path}:{line}: this row is damaged: delete the line, and `airtcp sweep run` repeats its run")]
    Damaged {
        /// The file of rows.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// Two rows of one run differ.
    #[error("run {run} has two results, in {first} and {second}: they are not of the same program")]
    Contradiction {
        /// Its number in the plan.
        run: usize,
        /// The file with the row that was read first.
        first: PathBuf,
        /// The file with the other row.
        second: PathBuf,
    },
}

/// What a store says about itself in `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    airtcp: String,
    plan: String,
    runs: usize,
    seeds: usize,
    /// [`Plan::description`].
    pub description: String,
    /// What a summary shows, as [`Metric`] reads it.
    pub metrics: Vec<String>,
}

impl Manifest {
    fn of(plan: &Plan) -> Self {
        Self {
            format: FORMAT,
            airtcp: PROGRAM.to_owned(),
            plan: plan.hash.clone(),
            runs: plan.runs(),
            seeds: plan.seeds.len(),
            description: plan.description.clone(),
            metrics: plan.metrics.iter().map(Metric::to_string).collect(),
        }
    }

    fn read(directory: &Path) -> Result<Option<Self>, StoreError> {
        let path = directory.join(MANIFEST);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(StoreError::Read { path, error }),
        };
        let json: Value =
            serde_json::from_str(&text).map_err(|_| StoreError::NoStore(directory.to_owned()))?;
        let version = (json["format"].as_u64(), json["airtcp"].as_str().unwrap_or_default());
        if version != (Some(FORMAT.into()), PROGRAM) {
            let format = version.0.map_or_else(|| "unknown".to_owned(), |format| format.to_string());
            return Err(StoreError::Version {
                path: directory.to_owned(),
                by: format!("airtcp {} (format {format})", version.1),
                this: format!("airtcp {PROGRAM} (format {FORMAT})"),
            });
        }
        serde_json::from_value(json).map(Some).map_err(|_| StoreError::NoStore(directory.to_owned()))
    }

    /// Written completely or not at all, whoever else is writing it.
    fn write(&self, directory: &Path) -> Result<(), StoreError> {
        let path = directory.join(MANIFEST);
        let beside = directory.join(format!("{MANIFEST}.{}", std::process::id()));
        let write = || {
            let mut file = File::create(&beside)?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.sync_all()?;
            fs::rename(&beside, &path)
        };
        write().map_err(|error| {
            // The half-written file is of no use; the store is as it was.
            let _ = fs::remove_file(&beside);
            StoreError::Write { path, error }
        })
    }
}

/// A store to which results of a plan are added.
pub struct Store {
    directory: PathBuf,
    /// The plan's.
    hash: String,
}

impl Store {
    /// Opens the store of this plan, or makes it if there is none. The directory may be empty or absent.
    pub fn open(directory: &Path, plan: &Plan) -> Result<Self, StoreError> {
        let path = || directory.to_owned();
        fs::create_dir_all(directory).map_err(|error| StoreError::Write { path: path(), error })?;
        // Looked at before the manifest: somebody else may be making the same store right now.
        let entries = fs::read_dir(directory).map_err(|error| StoreError::Read { path: path(), error })?;
        let foreign =
            entries.flatten().any(|entry| !entry.file_name().to_string_lossy().starts_with(MANIFEST));
        let ours = Manifest::of(plan);
        match Manifest::read(directory)? {
            None if foreign => return Err(StoreError::NoStore(path())),
            Some(theirs) if theirs.plan != ours.plan => {
                return Err(StoreError::Plan { path: path(), theirs: theirs.plan, ours: ours.plan });
            }
            Some(theirs) if theirs == ours => {}
            // The description and the metrics may change.
            None | Some(_) => ours.write(directory)?,
        }
        Ok(Self { directory: path(), hash: plan.hash.clone() })
    }

    /// Everything in it so far.
    pub fn results(&self) -> Result<Results, StoreError> {
        Results::read(std::slice::from_ref(&self.directory))
    }

    /// Adds rows. `shard` only names the file that they go to.
    pub fn writer(&self, shard: Shard) -> Writer<'_> {
        Writer { store: self, shard, file: None, failed: None }
    }
}

/// Appends rows to a file that no other process writes to.
pub struct Writer<'a> {
    store: &'a Store,
    shard: Shard,
    /// Made with the first row.
    file: Option<(PathBuf, File)>,
    /// Why no more is written: behind a torn line another one would be lost too.
    failed: Option<String>,
}

impl Writer<'_> {
    /// Writes the result of one run. After a failure nothing more is written.
    pub fn append(&mut self, planned: &Planned<'_>, report: &Report) -> Result<(), StoreError> {
        let row = RowOut {
            format: FORMAT,
            plan: &self.store.hash,
            run: planned.index,
            seed: planned.seed,
            point: Labels(&planned.point.labels),
            command: planned.command(),
            report,
        };
        let written = |error| StoreError::Write { path: self.store.directory.clone(), error };
        let mut line = serde_json::to_vec(&row).map_err(|error| written(error.into()))?;
        line.push(b'\n');
        if self.file.is_none() {
            self.file = Some(self.create()?);
        }
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        let result = match &self.failed {
            Some(why) => Err(io::Error::other(why.clone())),
            None => file.write_all(&line),
        };
        if let Err(error) = &result {
            self.failed = Some(error.to_string());
        }
        result.map_err(|error| StoreError::Write { path: path.clone(), error })
    }

    /// Makes sure that the rows survive a loss of power, too.
    pub fn finish(self) -> Result<(), StoreError> {
        match self.file {
            Some((path, file)) => file.sync_all().map_err(|error| StoreError::Write { path, error }),
            None => Ok(()),
        }
    }

    fn create(&self) -> Result<(PathBuf, File), StoreError> {
        let Shard { number, of } = self.shard;
        let mut part = 1;
        loop {
            let path = self.store.directory.join(format!("{ROWS}{number}-of-{of}.{part:04}.jsonl"));
            match File::create_new(&path) {
                Ok(file) => return Ok((path, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => part += 1,
                Err(error) => return Err(StoreError::Write { path, error }),
            }
        }
    }
}

#[derive(Serialize)]
struct RowOut<'a> {
    format: u32,
    plan: &'a str,
    run: usize,
    seed: u64,
    point: Labels<'a>,
    command: String,
    report: &'a Report,
}

struct Labels<'a>(&'a [(String, String)]);

impl Serialize for Labels<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, label) in self.0 {
            map.serialize_entry(name, label)?;
        }
        map.end()
    }
}

/// What identifies a row.
#[derive(Deserialize)]
struct Head {
    format: u32,
    plan: String,
    run: usize,
}

/// Where a row stands.
#[derive(Clone, Copy)]
struct Place {
    file: usize,
    from: u64,
    len: usize,
}

/// Rows of one plan, from any number of stores and merged files.
pub struct Results {
    /// The first store's. `None`: all sources are merged files.
    pub manifest: Option<Manifest>,
    plan: Option<String>,
    files: Vec<(PathBuf, RefCell<File>)>,
    rows: BTreeMap<usize, Place>,
}

impl Results {
    /// Reads stores, and files that were merged from some. All must be of one plan.
    pub fn read(sources: &[PathBuf]) -> Result<Self, StoreError> {
        let mut results = Self { manifest: None, plan: None, files: Vec::new(), rows: BTreeMap::new() };
        for source in sources {
            if !source.is_dir() {
                results.file(source, source)?;
                continue;
            }
            let Some(manifest) = Manifest::read(source)? else {
                return Err(StoreError::NoStore(source.clone()));
            };
            results.expect(source, &manifest.plan)?;
            results.manifest.get_or_insert(manifest);
            let entries = fs::read_dir(source)
                .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>());
            let mut paths = entries.map_err(|error| StoreError::Read { path: source.clone(), error })?;
            paths
                .retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(ROWS)));
            paths.sort();
            for path in paths {
                results.file(source, &path)?;
            }
        }
        Ok(results)
    }

    /// All sources must be of one plan.
    fn expect(&mut self, source: &Path, plan: &str) -> Result<(), StoreError> {
        let ours = self.plan.get_or_insert_with(|| plan.to_owned());
        if ours == plan {
            return Ok(());
        }
        Err(StoreError::Plan { path: source.to_owned(), theirs: plan.to_owned(), ours: ours.clone() })
    }

    fn file(&mut self, source: &Path, path: &Path) -> Result<(), StoreError> {
        let unreadable = |error| StoreError::Read { path: path.to_owned(), error };
        let file = File::open(path).map_err(unreadable)?;
        let index = self.files.len();
        // Opened twice: a clone would share the position from which `reader` goes on.
        self.files.push((path.to_owned(), RefCell::new(File::open(path).map_err(unreadable)?)));
        let mut reader = BufReader::new(file);
        let (mut line, mut from) = (Vec::new(), 0);
        for number in 1.. {
            line.clear();
            let len = reader.read_until(b'\n', &mut line).map_err(unreadable)?;
            // The process that wrote it was stopped in the middle.
            if line.pop() != Some(b'\n') {
                return Ok(());
            }
            let damaged = || StoreError::Damaged { path: path.to_owned(), line: number };
            let head: Head = serde_json::from_slice(&line).map_err(|_| damaged())?;
            if head.format != FORMAT {
                return Err(StoreError::Version {
                    path: path.to_owned(),
                    by: format!("a program of format {}", head.format),
                    this: format!("one of format {FORMAT}"),
                });
            }
            self.expect(source, &head.plan)?;
            let place = Place { file: index, from, len: line.len() };
            from += len as u64;
            // Two processes may have done the same run; then their rows are equal.
            match self.rows.get(&head.run).copied() {
                None => {
                    self.rows.insert(head.run, place);
                }
                Some(other) if self.line(other)? == line => {}
                Some(other) => {
                    let (first, second) = (self.files[other.file].0.clone(), path.to_owned());
                    return Err(StoreError::Contradiction { run: head.run, first, second });
                }
            }
        }
        Ok(())
    }

    fn line(&self, Place { file, from, len }: Place) -> Result<Vec<u8>, StoreError> {
        let (path, file) = &self.files[file];
        let mut line = vec![0; len];
        let mut file = file.borrow_mut();
        file.seek(SeekFrom::Start(from))
            .and_then(|_| file.read_exact(&mut line))
            .map_err(|error| StoreError::Read { path: path.clone(), error })?;
        Ok(line)
    }

    /// How many runs have a row.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// No run has a row yet.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether the run with this number has a row.
    pub fn has(&self, run: usize) -> bool {
        self.rows.contains_key(&run)
    }

    /// The numbers of the runs without a row; none without a manifest, which says how many there are.
    pub fn missing(&self) -> impl Iterator<Item = usize> {
        let runs = self.manifest.as_ref().map_or(0, |manifest| manifest.runs);
        (0..runs).filter(|run| !self.has(*run))
    }

    /// The rows as they were written but for the newline, in the order of the plan.
    pub fn lines(&self) -> impl Iterator<Item = Result<Vec<u8>, StoreError>> {
        self.rows.values().map(|place| self.line(*place))
    }
}
