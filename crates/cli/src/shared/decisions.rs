//! The decision trace as JSON lines: when, which question, who decided, what, and why.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::SystemTime;

use airtcp::recovery::Decision;
use airtcp_analyze::decisions::Written;
use anyhow::Context;
use serde::Serialize;

pub(crate) struct DecisionLog {
    file: BufWriter<File>,
    /// Seconds since 1970 of the senders' `Instant::ZERO`.
    zero: f64,
}

impl DecisionLog {
    pub(crate) fn create(path: &Path, zero: SystemTime) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let zero = zero.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Ok(Self { file: BufWriter::new(file), zero })
    }

    pub(crate) fn write(&mut self, decisions: &[Decision]) -> io::Result<()> {
        let zero = self.zero;
        decisions.iter().try_for_each(|decision| self.line(&Written::new(decision, zero)))
    }

    /// For a log that several connections share: each line begins with the connection's number.
    pub(crate) fn write_of(&mut self, connection: u64, decisions: &[Decision]) -> io::Result<()> {
        let zero = self.zero;
        let line = |decision| LineOf { connection, line: Written::new(decision, zero) };
        decisions.iter().try_for_each(|decision| self.line(&line(decision)))
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, line)?;
        self.file.write_all(b"\n")
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[derive(Serialize)]
struct LineOf {
    connection: u64,
    #[serde(flatten)]
    line: Written,
}
