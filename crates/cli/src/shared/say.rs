//! What a command says: its results on stdout, everything else on stderr. `println!` and `eprintln!` would panic where
//! nobody reads, or where there is no room. Whatever they say may have foreign text in it, which does nothing to a terminal.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};
use std::sync::OnceLock;
use std::time::Duration;

use airfiles::{Showing, Shown};
use airlogs::apart::{Apart, Words};

/// Stdout, where a thread of its own writes it.
static APART: OnceLock<Apart> = OnceLock::new();

/// How long the end of a program waits for those who read what it says.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(2);

/// Stdout, for results.
pub(crate) fn out() -> Showing<Out> {
    Showing::new(match APART.get() {
        Some(apart) => Out::Apart { lines: Vec::new(), apart },
        None => Out::Directly(io::stdout().lock()),
    })
}

/// The width for tables: all columns with `wide`, otherwise the terminal's width and at least 80.
pub(crate) fn width(wide: bool) -> Option<usize> {
    const LEAST: usize = 80;
    let terminal = || rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    (!wide).then(|| terminal().unwrap_or(LEAST).max(LEAST))
}

/// A line on stderr, for whoever watches. If it cannot be written, there is nobody to tell.
pub(crate) fn aside(text: impl Display) {
    airlogs::stderr::write(&format!("{}\n", Shown(text)));
}

/// From here on nobody waits for who reads stdout, stderr or the log: what they do not take in time is left out, and
/// counted. `gap` is the line in its place. Threads begin to run.
pub(crate) fn apart(gap: fn(u64) -> String) -> io::Result<()> {
    airlogs::write_apart()?;
    let failed = |error: &io::Error| {
        aside(format_args!("airtcp: {}: lines are dropped until writing succeeds", cannot(error)))
    };
    if APART.get().is_none() {
        let words = Words { gap: Some(gap), failed: Box::new(failed) };
        let _ = APART.set(Apart::start("stdout", io::stdout(), words)?);
    }
    Ok(())
}

/// What has been said is on its way: waits for that, for a moment where nobody takes it.
pub(crate) fn finish() {
    if let Some(apart) = APART.get() {
        apart.finish(LAST_WORDS);
    }
    airlogs::finish(LAST_WORDS);
}

/// Lines that were left out so far: of stdout, and of the log.
pub(crate) fn left_out() -> (u64, u64) {
    (APART.get().map_or(0, Apart::left_out), airlogs::left_out())
}

/// A line on stderr that is written over again and again, where stderr is a terminal. Elsewhere there is none.
#[derive(Clone, Copy)]
pub(crate) struct LiveLine {
    shown: bool,
}

impl LiveLine {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { shown: wanted && io::stderr().is_terminal() }
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.shown
    }

    pub(crate) fn show(&self, text: &str) {
        if self.shown {
            // Back to the first column; what stood there is erased.
            let _ = write!(io::stderr(), "\r\x1b[K{}", Shown(text));
        }
    }

    pub(crate) fn clear(&self) {
        self.show("");
    }
}

/// What cannot be written says where to. That the reader has gone stays what it is: it is no failure.
pub(crate) enum Out {
    Directly(StdoutLock<'static>),
    /// Handed over when this is dropped.
    Apart {
        lines: Vec<u8>,
        apart: &'static Apart,
    },
}

impl Write for Out {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Directly(stdout) => stdout.write(octets).map_err(named),
            Self::Apart { lines, .. } => lines.write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Directly(stdout) => stdout.flush().map_err(named),
            Self::Apart { .. } => Ok(()),
        }
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        if let Self::Apart { lines, apart } = self
            && !lines.is_empty()
        {
            apart.write(lines);
        }
    }
}

fn named(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::BrokenPipe | ErrorKind::Interrupted | ErrorKind::WouldBlock => error,
        kind => io::Error::new(kind, cannot(&error)),
    }
}

fn cannot(error: &io::Error) -> String {
    format!("cannot write to stdout: {error}")
}
