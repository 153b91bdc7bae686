//! The decision log, as JSON lines: time, question, algorithm, action and reason.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use airlogs::background::BackgroundWriter;
use airtcp::DecisionLine;
use airtcp::recovery::Decision;
use anyhow::Context;

use crate::console;

/// A decision log that is written during a run.
pub struct DecisionLog {
    path: PathBuf,
    to: To,
    /// Wall-clock time of the senders' `Instant::ZERO`, in seconds since 1970.
    zero: f64,
}

enum To {
    File(BufWriter<File>),
    /// A separate thread writes the decisions, so that the disk does not block the senders.
    Background(BackgroundWriter),
}

impl DecisionLog {
    /// Creates the file. `zero` is the wall-clock time of the senders' `Instant::ZERO`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(path: &Path, zero: SystemTime) -> anyhow::Result<Self> {
        let file = airfiles::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let zero = zero.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Ok(Self { path: path.to_owned(), to: To::File(BufWriter::new(file)), zero })
    }

    /// Moves writing to a separate thread. From here on, decisions that cannot be written in time are dropped
    /// and counted. `program` begins the message on stderr if writing fails.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn write_in_background(&mut self, program: &'static str) -> io::Result<()> {
        let To::File(file) = &self.to else { return Ok(()) };
        let path = self.path.clone();
        let failed = move |error: &io::Error| {
            console::print_status(format_args!(
                "{program}: cannot write {}: {error}: decisions are dropped until there is room",
                path.display()
            ));
        };
        let file = file.get_ref().try_clone()?;
        self.to = To::Background(BackgroundWriter::start("decisions", file, None, failed)?);
        Ok(())
    }

    /// Returns the number of dropped decisions.
    pub fn dropped(&self) -> u64 {
        match &self.to {
            To::File(_) => 0,
            To::Background(writer) => writer.dropped(),
        }
    }

    /// Writes decisions. In a log that several connections share, each line begins with the number `connection`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&mut self, connection: Option<u64>, decisions: &[Decision]) -> io::Result<()> {
        let zero = self.zero;
        let line = |decision| DecisionLine::new(decision, zero, connection);
        let written = decisions.iter().try_for_each(|decision| self.line(&line(decision)));
        self.named(written)
    }

    fn line(&mut self, line: &DecisionLine) -> io::Result<()> {
        match &mut self.to {
            To::File(file) => {
                serde_json::to_writer(&mut *file, line)?;
                file.write_all(b"\n")
            }
            To::Background(writer) => {
                let mut line = serde_json::to_vec(line)?;
                line.push(b'\n');
                writer.write(&line);
                Ok(())
            }
        }
    }

    /// Writes everything that is buffered.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.to {
            To::File(file) => file.flush(),
            To::Background(writer) if writer.finish(console::FLUSH_TIMEOUT) => Ok(()),
            To::Background(_) => Err(io::ErrorKind::StorageFull.into()),
        };
        self.named(flushed)
    }

    fn named(&self, written: io::Result<()>) -> io::Result<()> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot write {}: {error}", self.path.display()))
        };
        written.map_err(named)
    }
}
