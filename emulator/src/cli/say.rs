//! Output of commands. A closed pipe is not an error. Control characters in the text are escaped.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use airfiles::Shown;
use airlink::scenario::Scenario;
use anyhow::Context;

/// Whether the reader of stdout is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Reads,
    /// The reader has closed the pipe, as `head` does.
    HasGone,
}

/// Writes to stdout. `print!` would panic on a closed pipe.
pub(super) fn print(text: impl Display) -> anyhow::Result<Reader> {
    let mut stdout = std::io::stdout().lock();
    match write!(stdout, "{}", Shown(text)).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::HasGone),
        Err(error) => Err(error).context("cannot write to stdout"),
    }
}

/// Writes to stderr. Errors are ignored, since they cannot be reported.
pub(super) fn complain(text: impl Display) {
    let _ = write!(std::io::stderr().lock(), "{}", Shown(text));
}

/// Prints the warnings about a scenario, with the name under which the user requested it.
pub(super) fn warn_of(name: &str, scenario: &Scenario) {
    for warning in scenario.warnings() {
        complain(format_args!("{name}: warning: {warning}\n"));
    }
}
