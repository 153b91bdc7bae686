//! What comes out of a script: that it passed, or a failure that a person can read.

use std::fmt;
use std::path::PathBuf;

use airwire::time::Duration;

use super::ast::Place;
use super::parse::ParseError;

/// A script that ran to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passed {
    /// The script, as it was named.
    pub path: PathBuf,
    /// How many it had.
    pub events: usize,
    /// Packets of the host that a line expected.
    pub checked: usize,
    /// Packets of the host that no line was compared with: of other connections, or after the last line.
    pub unchecked: usize,
    /// Virtual time from the first event to the last.
    pub duration: Duration,
    /// What the script asks for and airtcp ignores.
    pub notes: Vec<String>,
}

/// A script did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It cannot be read.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The lines above the first event do not make a host.
    #[error("{place}: {message}")]
    Setup {
        /// The line that is wrong.
        place: Place,
        /// What is wrong with it.
        message: String,
    },
    /// The host did something else than the script says.
    #[error("{0}")]
    Failed(Box<Failure>),
}

/// One line did not come true.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The line.
    pub place: Place,
    /// What was wrong.
    pub problem: Problem,
    /// What ran before, in order.
    pub done: Vec<Step>,
    /// The line as a part of the transcript.
    pub failed: Step,
    /// The last packets in either direction, in the script's notation.
    pub recent: Vec<String>,
}

/// What was wrong, and lines that show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// In one sentence.
    pub message: String,
    /// What was expected and what came, a line each.
    pub details: Vec<String>,
}

/// A line of the transcript.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Where it stands.
    pub place: Place,
    /// Since the start of the script.
    pub at: Duration,
    /// As it was written, with single spaces.
    pub text: String,
}

impl Problem {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), details: Vec::new() }
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

/// Script time as scripts write it, in seconds.
pub(super) fn clock(time: Duration) -> String {
    format!("{}.{:06}", time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000 / 1_000)
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, at) = (self.place.line, clock(self.at));
        write!(f, "{line:>4} {at:>11}  {}", self.text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.place, self.problem.message)?;
        self.done.iter().try_for_each(|step| writeln!(f, "  ✓ {step}"))?;
        writeln!(f, "  ✗ {}", self.failed)?;
        self.problem.details.iter().try_for_each(|detail| writeln!(f, "      {detail}"))?;
        if !self.recent.is_empty() {
            writeln!(f, "  recent packets:")?;
            self.recent.iter().try_for_each(|packet| writeln!(f, "      {packet}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, events, checked, unchecked, duration, notes } = self;
        write!(
            f,
            "{}: {events} events, {checked} packets as expected, {duration} of virtual time",
            path.display()
        )?;
        if *unchecked > 0 {
            write!(f, ", {unchecked} packets not checked")?;
        }
        notes.iter().try_for_each(|note| write!(f, "\n  note: {note}"))
    }
}
