//! Output to stderr.

use std::error::Error;
use std::io::{self, Write};
use std::iter;
use std::sync::OnceLock;

use super::background::BackgroundWriter;

static WRITER: OnceLock<BackgroundWriter> = OnceLock::new();

/// Writes complete lines. Errors are ignored, because they can only be reported here.
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

/// Joins the messages of the error and its causes, except causes that an earlier message already
/// contains.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = iter::successors(Some(error), |error| (*error).source()).map(ToString::to_string);
    causes.fold(String::new(), |joined, cause| match joined.as_str() {
        "" => cause,
        _ if joined.contains(&cause) => joined,
        _ => format!("{joined}: {cause}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{message}")]
    struct Outer {
        message: &'static str,
        source: io::Error,
    }

    #[test]
    fn error_text_contains_each_cause_once() {
        for message in ["cannot open x", "cannot open x: the disk is full"] {
            let error = Outer { message, source: io::Error::other("the disk is full") };
            assert_eq!(with_causes(&error), "cannot open x: the disk is full");
        }
    }
}
