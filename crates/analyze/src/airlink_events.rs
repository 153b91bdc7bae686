//! airlink's event stream (docs/views.md), a line at a time.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

const SCHEMA: u32 = 1;
/// A line of a path with very many stages is shorter.
const LONGEST: u64 = 1 << 16;

#[derive(Debug, thiserror::Error)]
pub enum EventsError {
    #[error("cannot read {}: {error}", .path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{} is not airlink's event stream: name the file that `airlink --events` wrote", .0.display())]
    NoEvents(PathBuf),
    #[error("{}:{line}: this line is damaged: write the events again, or delete it", .path.display())]
    Damaged { path: PathBuf, line: u64 },
}

/// What those who read events want to know of one.
#[derive(Debug, Deserialize)]
pub struct Event<'a> {
    #[serde(borrow, rename = "event")]
    pub what: Cow<'a, str>,
    /// Nanoseconds since the run's begin.
    #[serde(default)]
    pub t: i64,
    #[serde(default)]
    pub packet: u64,
    #[serde(borrow, default)]
    pub direction: Cow<'a, str>,
    #[serde(borrow)]
    pub stage: Option<Cow<'a, str>>,
    #[serde(default)]
    pub bytes: u64,
    #[serde(borrow)]
    pub cause: Option<Cow<'a, str>>,
    schema_version: Option<u32>,
    wall_zero: Option<i64>,
}

#[derive(Debug)]
pub struct EventReader {
    path: PathBuf,
    file: BufReader<File>,
    line: Vec<u8>,
    number: u64,
    wall_zero: i64,
}

impl EventReader {
    pub fn open(path: &Path) -> Result<Self, EventsError> {
        let unreadable = |error| EventsError::Read { path: path.to_owned(), error };
        let file = BufReader::new(File::open(path).map_err(unreadable)?);
        let mut reader = Self { path: path.to_owned(), file, line: Vec::new(), number: 0, wall_zero: 0 };
        let begin = match reader.read() {
            Ok(Some(Event { what, schema_version: Some(SCHEMA), wall_zero, .. })) if what == "start" => {
                wall_zero
            }
            Err(error @ EventsError::Read { .. }) => return Err(error),
            _ => None,
        };
        reader.wall_zero = begin.ok_or_else(|| EventsError::NoEvents(path.to_owned()))?;
        Ok(reader)
    }

    /// The run's begin, in nanoseconds since 1970.
    pub const fn wall_zero(&self) -> i64 {
        self.wall_zero
    }

    /// `None` at the end: the run may still go on, or was stopped in the middle of a line.
    pub fn read(&mut self) -> Result<Option<Event<'_>>, EventsError> {
        self.line.clear();
        let read = self.file.by_ref().take(LONGEST).read_until(b'\n', &mut self.line);
        let len = read.map_err(|error| EventsError::Read { path: self.path.clone(), error })?;
        self.number += 1;
        if len == 0 || (self.line.last() != Some(&b'\n') && (len as u64) < LONGEST) {
            return Ok(None);
        }
        match serde_json::from_slice(&self.line) {
            Ok(event) => Ok(Some(event)),
            Err(_) => Err(EventsError::Damaged { path: self.path.clone(), line: self.number }),
        }
    }
}
