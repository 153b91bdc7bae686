//! Output of a command. It is no failure if the reader has gone. Foreign text in it does nothing to a terminal.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use airfiles::Shown;
use airlink::scenario::Scenario;
use anyhow::Context;

/// Whether somebody still reads stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Reads,
    /// It has closed the pipe, as `head` does.
    HasGone,
}

/// Writes to stdout. `print!` would panic when the reader has gone.
pub(super) fn print(text: impl Display) -> anyhow::Result<Reader> {
    let mut stdout = std::io::stdout().lock();
    match write!(stdout, "{}", Shown(text)).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::HasGone),
        Err(error) => Err(error).context("cannot write to stdout"),
    }
}

/// Writes to stderr. If that fails, there is nobody to tell.
pub(super) fn complain(text: impl Display) {
    let _ = write!(std::io::stderr().lock(), "{}", Shown(text));
}

/// Warns of what a scenario says, by the name under which it was asked for.
pub(super) fn warn_of(name: &str, scenario: &Scenario) {
    for warning in scenario.warnings() {
        complain(format_args!("{name}: warning: {warning}\n"));
    }
}
