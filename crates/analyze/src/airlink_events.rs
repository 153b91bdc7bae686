//! Reads airlink's event log (docs/reference/link-views.md) line by line.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

const SCHEMA: u32 = 1;
/// Maximum line length in bytes. Even a line that names very many stages is shorter.
const LONGEST: u64 = 1 << 16;

/// The reason why an event log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum EventsError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The first line does not begin an event log, or the log has another version.
    #[error("{} is not an event log of airlink; give a file that `airlink --events` wrote", .0.display())]
    NoEvents(PathBuf),
    /// A line in the middle is not an event.
    #[error("{}:{line}: damaged line; write the file again with `airlink --events`", .path.display())]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The line number, counted from 1.
        line: u64,
    },
}

/// An event, with the fields that are used here. docs/reference/link-views.md defines them.
#[derive(Debug, Deserialize)]
pub struct AirlinkEvent<'a> {
    /// The kind of event: `entered`, `queued`, `sent`, `left`, `dropped` …
    #[serde(borrow, rename = "event")]
    pub what: Cow<'a, str>,
    /// Nanoseconds since the start of the run.
    #[serde(default)]
    pub t: i64,
    /// The packet's number in the run, or 0 if the event does not concern a packet.
    #[serde(default)]
    pub packet: u64,
    /// `down` or `up`. Empty if the event does not concern a packet.
    #[serde(borrow, default)]
    pub direction: Cow<'a, str>,
    /// The name of the stage where the event occurred.
    #[serde(borrow)]
    pub stage: Option<Cow<'a, str>>,
    /// The packet's length, or the number of bytes ahead in the queue.
    #[serde(default)]
    pub bytes: u64,
    /// The cause of a drop: the name of an [`airwire::Cause`].
    #[serde(borrow)]
    pub cause: Option<Cow<'a, str>>,
    /// The detailed reason of a drop: the name of an `airlink::stage::DropReason`.
    #[serde(borrow)]
    pub why: Option<Cow<'a, str>>,
    /// For `corrupted`: whether a checksum detects it.
    #[serde(default)]
    pub found: bool,
    schema_version: Option<u32>,
    wall_zero: Option<i64>,
}

/// Reads the events of one file.
#[derive(Debug)]
pub struct EventReader {
    path: PathBuf,
    file: BufReader<File>,
    line: Vec<u8>,
    number: u64,
    wall_zero: i64,
}

impl EventReader {
    /// Opens the file and reads its first line.
    pub fn open(path: &Path) -> Result<Self, EventsError> {
        let unreadable = |error| EventsError::Read { path: path.to_owned(), error };
        let file = BufReader::new(File::open(path).map_err(unreadable)?);
        let mut reader = Self { path: path.to_owned(), file, line: Vec::new(), number: 0, wall_zero: 0 };
        let begin = match reader.read() {
            Ok(Some(AirlinkEvent { what, schema_version: Some(SCHEMA), wall_zero, .. }))
                if what == "start" =>
            {
                wall_zero
            }
            Err(error @ EventsError::Read { .. }) => return Err(error),
            _ => None,
        };
        reader.wall_zero = begin.ok_or_else(|| EventsError::NoEvents(path.to_owned()))?;
        Ok(reader)
    }

    /// Returns the start of the run, in nanoseconds since 1970.
    pub const fn wall_zero(&self) -> i64 {
        self.wall_zero
    }

    /// Returns the next event, or `None` at the end. An incomplete last line also counts as the end, because
    /// the run may be in progress or was stopped.
    pub fn read(&mut self) -> Result<Option<AirlinkEvent<'_>>, EventsError> {
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
