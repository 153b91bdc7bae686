//! What ends a command before its time.

use std::io::{self, IsTerminal};
use std::{process, thread};

use airlink::reactor::{Clock, Reactor, Wakeup};

use super::say;

/// From here on SIGINT, SIGTERM and SIGHUP end this program with exit code 1, when `last` has said where it stands; what that
/// returns lives until then. No thread may run before.
pub(crate) fn at_a_signal<T>(last: impl FnOnce() -> T + Send + 'static) -> anyhow::Result<()> {
    let mut reactor = Reactor::new(Clock::start())?;
    reactor.catch_stop_signals()?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        while reactor.wait(None).is_ok_and(|events| !events.contains(&Wakeup::Stop)) {}
        if io::stderr().is_terminal() {
            // Behind the ^C that the terminal shows.
            say::aside("");
        }
        let _until_then = last();
        // What has been started behind a link ends when its pipes close.
        process::exit(1);
    })?;
    Ok(())
}
