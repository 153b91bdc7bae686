//! Stops a command when a signal arrives.

use std::io::{self, IsTerminal};
use std::{process, thread};

use airlink::reactor::{Clock, Reactor, Wakeup};

use super::say;

/// Arranges for SIGINT, SIGTERM and SIGHUP to end this program with exit code 1. Before that, `last` is
/// called to report the state; its result lives until the process exits. No other thread may run yet.
pub(crate) fn at_a_signal<T>(last: impl FnOnce() -> T + Send + 'static) -> anyhow::Result<()> {
    let mut reactor = Reactor::new(Clock::start())?;
    reactor.catch_stop_signals()?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        while reactor.wait(None).is_ok_and(|events| !events.contains(&Wakeup::Stop)) {}
        if io::stderr().is_terminal() {
            // Begin a new line after the `^C` that the terminal shows.
            say::aside("");
        }
        let _until_then = last();
        // Programs that were started behind a link end when their pipes close.
        process::exit(1);
    })?;
    Ok(())
}
