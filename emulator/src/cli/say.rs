//! What a command says to whoever started it. That nobody listens any more is no failure.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use anyhow::Context;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Reads,
    /// It has seen enough, as `head` has.
    HasGone,
}

/// To stdout. `print!` would panic when the reader has gone.
pub(super) fn print(text: impl Display) -> anyhow::Result<Reader> {
    let mut stdout = std::io::stdout().lock();
    match write!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::HasGone),
        Err(error) => Err(error).context("cannot write to stdout"),
    }
}

/// To stderr. Where that cannot be written, nobody can be told so.
pub(super) fn complain(text: impl Display) {
    let _ = write!(std::io::stderr().lock(), "{text}");
}
