//! Files that are written while a path runs. Every error is reported with the name of the file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Error for a file that could not be created or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}; check that its directory exists, is writable and has space", path.display())]
pub struct OutputError {
    path: PathBuf,
    source: io::Error,
}

/// A buffered file. Dropping it flushes the buffer, but only `flush` reports errors.
#[derive(Debug)]
pub(crate) struct Output {
    file: BufWriter<File>,
    path: PathBuf,
}

impl Output {
    pub(crate) fn create(path: &Path) -> Result<Self, OutputError> {
        Self::of(path, airfiles::create(path))
    }

    /// Creates a file for packets. Only its owner may read a new file.
    pub(crate) fn create_private(path: &Path) -> Result<Self, OutputError> {
        Self::of(path, airfiles::create_private(path))
    }

    fn of(path: &Path, file: io::Result<File>) -> Result<Self, OutputError> {
        match file {
            Ok(file) => Ok(Self { file: BufWriter::with_capacity(1 << 16, file), path: path.to_owned() }),
            Err(source) => Err(OutputError { path: path.to_owned(), source }),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        self.file.write_all(bytes).map_err(|source| self.error(source))
    }

    pub(crate) fn flush(&mut self) -> Result<(), OutputError> {
        self.file.flush().map_err(|source| self.error(source))
    }

    fn error(&self, source: io::Error) -> OutputError {
        OutputError { path: self.path.clone(), source }
    }
}
