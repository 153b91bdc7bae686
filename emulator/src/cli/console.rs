//! Output of commands. A closed pipe is not an error. Control characters in the text are escaped.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use airfiles::Escaped;
use airlink::scenario::Scenario;
use anyhow::Context;

/// State of the pipe or terminal behind stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Open,
    /// The reader has closed the pipe, as `head` does.
    Closed,
}

/// Writes to stdout. `print!` would panic on a closed pipe.
pub(super) fn print(text: impl Display) -> anyhow::Result<Reader> {
    let mut stdout = std::io::stdout().lock();
    match write!(stdout, "{}", Escaped(text)).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Reader::Open),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Closed),
        Err(error) => Err(error).context("cannot write to stdout"),
    }
}

/// Writes to stderr, and ignores errors, which could not be reported anywhere.
pub(super) fn print_status(text: impl Display) {
    let _ = write!(std::io::stderr().lock(), "{}", Escaped(text));
}

/// Prints the warnings about a scenario, with the name under which the user requested it.
pub(super) fn print_warnings(name: &str, scenario: &Scenario) {
    for warning in scenario.warnings() {
        print_status(format_args!("{name}: warning: {warning}\n"));
    }
}
