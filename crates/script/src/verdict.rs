//! The outcome of a script: success, or a readable failure report.

use std::fmt;
use std::path::PathBuf;

use airwire::time::Duration;

use super::ast::Position;
use super::parse::ParseError;

/// The result of a script that ran to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passed {
    /// Path of the script as the caller gave it.
    pub path: PathBuf,
    /// Number of events.
    pub events: usize,
    /// Number of the host's packets that matched a line.
    pub checked: usize,
    /// Number of the host's packets that were not compared with a line, because they belonged to
    /// other connections or were sent after the last line.
    pub unchecked: usize,
    /// Virtual time from the first event to the last.
    pub duration: Duration,
    /// Settings and commands of the script that airtcp ignores, each with its position.
    pub notes: Vec<String>,
    /// Lines that the script's `print` statements wrote.
    pub output: Vec<String>,
}

/// The reason why a script did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The script cannot be parsed.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The settings above the first event are invalid.
    #[error("{position}: {message}")]
    Setup {
        /// The position of the error.
        position: Position,
        /// The cause of the error.
        message: String,
    },
    /// The host did not behave as the script expects.
    #[error("{0}")]
    Failed(Box<Failure>),
}

/// Report on a failed line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The failed line.
    pub position: Position,
    /// The problem.
    pub problem: Problem,
    /// The lines that ran before, in order.
    pub done: Vec<Step>,
    /// The failed line in the transcript.
    pub failed: Step,
    /// The last packets in both directions, in the script's notation.
    pub recent: Vec<String>,
    /// As in [`Passed`].
    pub notes: Vec<String>,
    /// As in [`Passed`].
    pub output: Vec<String>,
}

/// A problem and its details.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// A one-sentence description.
    pub message: String,
    /// The expected and the actual packet, one per line.
    pub details: Vec<String>,
    /// Line of the script, if it is not the first line of the event.
    pub line: Option<usize>,
}

/// A line of the transcript.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Position in the script.
    pub position: Position,
    /// Time since the start of the script.
    pub at: Duration,
    /// The line as written, with single spaces.
    pub text: String,
}

impl Problem {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), details: Vec::new(), line: None }
    }

    pub(super) fn with(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

/// Formats a time like a script, in seconds.
pub(super) fn clock(time: Duration) -> String {
    format!("{}.{:06}", time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000 / 1_000)
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, at) = (self.position.line, clock(self.at));
        write!(f, "{line:>4} {at:>11}  {}", self.text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.position, self.problem.message)?;
        self.done.iter().try_for_each(|step| writeln!(f, "  ✓ {step}"))?;
        writeln!(f, "  ✗ {}", self.failed)?;
        self.problem.details.iter().try_for_each(|detail| writeln!(f, "      {detail}"))?;
        if !self.recent.is_empty() {
            writeln!(f, "  recent packets:")?;
            self.recent.iter().try_for_each(|packet| writeln!(f, "      {packet}"))?;
        }
        self.output.iter().try_for_each(|line| writeln!(f, "  output: {line}"))?;
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))
    }
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, events, checked, unchecked, duration, notes, output } = self;
        write!(
            f,
            "{}: {events} events, {checked} packets as expected, {duration} of virtual time",
            path.display()
        )?;
        if *unchecked > 0 {
            write!(f, ", {unchecked} packets not checked")?;
        }
        output.iter().try_for_each(|line| write!(f, "\n  output: {line}"))?;
        notes.iter().try_for_each(|note| write!(f, "\n  note: {note}"))
    }
}
