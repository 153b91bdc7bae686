//! Stderr, for whoever watches.

use std::io::{self, Write};
use std::sync::OnceLock;

use super::apart::{Apart, Words};

static APART: OnceLock<Apart> = OnceLock::new();

/// Writes whole lines. If they cannot be written, there is nobody to tell.
pub fn write(lines: &str) {
    match APART.get() {
        Some(apart) => apart.write(lines.as_bytes()),
        None => drop(io::stderr().lock().write_all(lines.as_bytes())),
    }
}

/// From now on a thread of its own writes them: nobody waits for who reads them.
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
