//! Output to stderr.

use std::io::{self, Write};
use std::sync::OnceLock;

use super::apart::{Apart, Words};

static APART: OnceLock<Apart> = OnceLock::new();

/// Writes complete lines. Errors are ignored, because they cannot be reported anywhere else.
pub fn write(lines: &str) {
    match APART.get() {
        Some(apart) => apart.write(lines.as_bytes()),
        None => drop(io::stderr().lock().write_all(lines.as_bytes())),
    }
}

/// Moves writing to a separate thread, so that the caller never waits for the reader.
pub(super) fn write_apart() -> io::Result<()> {
    let gap = |count| format!("{count} lines were dropped here: the reader was too slow\n");
    if APART.get().is_none() {
        let words = Words { gap: Some(gap), failed: Box::new(|_| {}) };
        let _ = APART.set(Apart::start("stderr", io::stderr(), words)?);
    }
    Ok(())
}

pub(super) fn apart() -> Option<Apart> {
    APART.get().cloned()
}
