//! Output to stderr.

use std::io::{self, Write};
use std::sync::OnceLock;

use super::background::BackgroundWriter;

static WRITER: OnceLock<BackgroundWriter> = OnceLock::new();

/// Writes complete lines. Errors are ignored, because they cannot be reported anywhere else.
pub fn write(lines: &str) {
    match WRITER.get() {
        Some(writer) => writer.write(lines.as_bytes()),
        None => drop(io::stderr().lock().write_all(lines.as_bytes())),
    }
}

/// Moves writing to a separate thread, so that the caller never waits for the reader.
pub(super) fn write_in_background() -> io::Result<()> {
    let gap = |count: u64| format!("{count} lines were dropped here: the reader was too slow\n");
    if WRITER.get().is_none() {
        let _ = WRITER.set(BackgroundWriter::start("stderr", io::stderr(), Some(gap), |_| {})?);
    }
    Ok(())
}

pub(super) fn background() -> Option<BackgroundWriter> {
    WRITER.get().cloned()
}
