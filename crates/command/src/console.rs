//! Output of a program: results on stdout, everything else on stderr. `println!` and `eprintln!` would panic if the
//! reader has closed the pipe or the disk is full. Foreign text is escaped, so that it cannot control the terminal.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};
use std::sync::OnceLock;
use std::time::Duration;

use airfiles::{Escaped, EscapingWriter};
use airlogs::background::BackgroundWriter;

/// Stdout, if a separate thread writes it.
static WRITER: OnceLock<BackgroundWriter> = OnceLock::new();

/// Maximum time that a program waits at its end for its output to be written.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns stdout, for results.
pub fn stdout() -> EscapingWriter<Out> {
    EscapingWriter::new(match WRITER.get() {
        Some(writer) => Out::Background { lines: Vec::new(), writer },
        None => Out::Directly(io::stdout().lock()),
    })
}

/// Returns the width for tables. `None` with `wide`, otherwise the width of the terminal, and at least 80.
pub fn width(wide: bool) -> Option<usize> {
    const LEAST: usize = 80;
    let terminal = || rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    (!wide).then(|| terminal().unwrap_or(LEAST).max(LEAST))
}

/// Writes a line to stderr. An error is ignored, because it cannot be reported.
pub fn print_status(text: impl Display) {
    airlogs::stderr::write(&format!("{}\n", Escaped(text)));
}

/// Starts threads that write stdout, stderr and the log, so that slow readers do not block the program. Lines
/// that cannot be written in time are dropped and counted; `gap` formats the line that replaces them. `program`
/// begins the message on stderr if writing fails.
///
/// # Errors
/// If a thread cannot be started.
pub fn write_in_background(program: &'static str, gap: fn(u64) -> String) -> io::Result<()> {
    airlogs::write_in_background()?;
    let failed = move |error: &io::Error| {
        print_status(format_args!(
            "{program}: {}: lines are dropped until writing succeeds",
            cannot_write(error)
        ))
    };
    if WRITER.get().is_none() {
        let _ = WRITER.set(BackgroundWriter::start("stdout", io::stdout(), Some(gap), failed)?);
    }
    Ok(())
}

/// Waits until all output is written, but at most [`FLUSH_TIMEOUT`] per stream.
pub fn finish() {
    if let Some(writer) = WRITER.get() {
        writer.finish(FLUSH_TIMEOUT);
    }
    airlogs::finish(FLUSH_TIMEOUT);
}

/// Returns the numbers of lines dropped so far: of stdout, and of the log.
pub fn dropped_lines() -> (u64, u64) {
    (WRITER.get().map_or(0, BackgroundWriter::dropped), airlogs::dropped_lines())
}

/// A line on stderr that is overwritten repeatedly. Escaped only if stderr is a terminal.
#[derive(Clone, Copy)]
pub struct LiveLine {
    shown: bool,
}

impl LiveLine {
    /// Creates the line if it is wanted and stderr is a terminal.
    pub fn new(wanted: bool) -> Self {
        Self { shown: wanted && io::stderr().is_terminal() }
    }

    /// Returns whether the line is shown.
    pub fn is_shown(&self) -> bool {
        self.shown
    }

    /// Replaces the text of the line.
    pub fn show(&self, text: &str) {
        if self.shown {
            // Return to the first column, and erase the line.
            let _ = write!(io::stderr(), "\r\x1b[K{}", Escaped(text));
        }
    }

    /// Erases the line.
    pub fn clear(&self) {
        self.show("");
    }
}

/// Several lines on stderr that are overwritten repeatedly, if stderr is a terminal.
pub struct LiveBlock {
    /// Number of lines that are shown at the moment.
    lines: usize,
}

impl LiveBlock {
    /// Creates the block if it is wanted and stderr is a terminal.
    pub fn new(wanted: bool) -> Option<Self> {
        (wanted && io::stderr().is_terminal()).then_some(Self { lines: 0 })
    }

    /// Returns the columns and rows of the terminal.
    pub fn size(&self) -> (usize, usize) {
        let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
        // A terminal that does not know its size reports 0.
        let known = size.filter(|size| size.ws_col > 0 && size.ws_row > 1);
        known.map_or((80, 24), |size| (usize::from(size.ws_col), usize::from(size.ws_row)))
    }

    /// Replaces the text of the block. Lines that do not fit on the terminal are left out.
    pub fn show(&mut self, text: &str) {
        let (columns, rows) = self.size();
        let lines = || text.lines().take(rows - 1);
        let cut = |line: &str| line.chars().take(columns).chain(['\n']).collect::<String>();
        let text: String = lines().map(cut).collect();
        // Move to the first line of the block, and erase from there to the end of the screen.
        let up = if self.lines > 0 { format!("\x1b[{}A", self.lines) } else { String::new() };
        let _ = write!(io::stderr(), "{up}\r\x1b[J{}", Escaped(text));
        self.lines = lines().count();
    }

    /// Erases the block.
    pub fn clear(&mut self) {
        if self.lines > 0 {
            self.show("");
        }
    }
}

/// Stdout. Errors say that stdout cannot be written, except a closed pipe, which is not a failure.
pub enum Out {
    /// Stdout itself.
    Directly(StdoutLock<'static>),
    /// Collects lines, and passes them to the writing thread when it is dropped.
    Background {
        /// The lines until now.
        lines: Vec<u8>,
        /// The writing thread.
        writer: &'static BackgroundWriter,
    },
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Directly(stdout) => stdout.write(bytes).map_err(with_context),
            Self::Background { lines, .. } => lines.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Directly(stdout) => stdout.flush().map_err(with_context),
            Self::Background { .. } => Ok(()),
        }
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        if let Self::Background { lines, writer } = self
            && !lines.is_empty()
        {
            writer.write(lines);
        }
    }
}

fn with_context(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::BrokenPipe | ErrorKind::Interrupted | ErrorKind::WouldBlock => error,
        kind => io::Error::new(kind, cannot_write(&error)),
    }
}

fn cannot_write(error: &io::Error) -> String {
    format!("cannot write to stdout: {error}")
}
