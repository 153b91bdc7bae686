//! Files that a scenario names: traces and schedules.

use std::path::Path;

use airfiles::{PathSource, limits};

/// The reason why a file is invalid. It never quotes the file's content: a scenario may name any file, and
/// its author may see the errors.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read: its name and the operating system's error.
    #[error("{0} cannot be read: {1}")]
    Unreadable(String, std::io::Error),
    /// A line is invalid.
    #[error("line {line}: {wrong}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// A description of the error.
        wrong: String,
    },
    /// The content as a whole is invalid.
    #[error("{0}")]
    Content(String),
}

impl FileError {
    /// Formats the error with the file's name.
    pub(super) fn in_file(&self, path: &Path) -> String {
        match self {
            Self::Unreadable(..) => self.to_string(),
            Self::Line { line, wrong } => format!("{}:{line}: {wrong}", path.display()),
            Self::Content(wrong) => format!("{}: {wrong}", path.display()),
        }
    }
}

/// Reads a trace or a schedule.
pub(super) fn read(file: &Path) -> Result<String, FileError> {
    let text = airfiles::read(file, PathSource::File, limits::TRACE);
    let text = text.map_err(|error| FileError::Unreadable(file.display().to_string(), error))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
