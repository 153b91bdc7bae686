//! What a command says: its results on stdout, everything else on stderr. `println!` and `eprintln!` would panic where
//! nobody reads, or where there is no room.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};

/// Stdout, for results.
pub(crate) fn out() -> Out {
    Out(io::stdout().lock())
}

/// A line on stderr, for whoever watches. If it cannot be written, there is nobody to tell.
pub(crate) fn aside(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
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
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
        }
    }

    pub(crate) fn clear(&self) {
        self.show("");
    }
}

/// What cannot be written says where to. That the reader has gone stays what it is: it is no failure.
pub(crate) struct Out(StdoutLock<'static>);

impl Write for Out {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.write(octets).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

fn named(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::BrokenPipe | ErrorKind::Interrupted | ErrorKind::WouldBlock => error,
        kind => io::Error::new(kind, format!("cannot write to stdout: {error}")),
    }
}
