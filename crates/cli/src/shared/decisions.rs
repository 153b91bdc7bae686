//! The decision trace as JSON lines: when, which question, who decided, what, and why.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use airtcp::recovery::Decision;
use airtcp_analyze::decisions::Written;
use anyhow::Context;
use serde::Serialize;

pub(crate) struct DecisionLog {
    path: PathBuf,
    file: BufWriter<File>,
    /// Seconds since 1970 of the senders' `Instant::ZERO`.
    zero: f64,
}

impl DecisionLog {
    pub(crate) fn create(path: &Path, zero: SystemTime) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let zero = zero.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), zero })
    }

    pub(crate) fn write(&mut self, decisions: &[Decision]) -> io::Result<()> {
        let zero = self.zero;
        let written = decisions.iter().try_for_each(|decision| self.line(&Written::new(decision, zero)));
        self.named(written)
    }

    /// For a log that several connections share: each line begins with the connection's number.
    pub(crate) fn write_of(&mut self, connection: u64, decisions: &[Decision]) -> io::Result<()> {
        let zero = self.zero;
        let line = |decision| LineOf { connection, line: Written::new(decision, zero) };
        let written = decisions.iter().try_for_each(|decision| self.line(&line(decision)));
        self.named(written)
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, line)?;
        self.file.write_all(b"\n")
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        self.named(flushed)
    }

    fn named(&self, written: io::Result<()>) -> io::Result<()> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot write {}: {error}", self.path.display()))
        };
        written.map_err(named)
    }
}

#[derive(Serialize)]
struct LineOf {
    connection: u64,
    #[serde(flatten)]
    line: Written,
}
