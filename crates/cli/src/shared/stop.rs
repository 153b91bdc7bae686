//! Stops a command when a signal arrives.

use std::io::{self, IsTerminal};
use std::{process, thread};

use airlink::reactor::{Clock, Reactor, Wakeup};
use nix::sys::signal::Signal;

use super::{console, failure};

/// Arranges for SIGINT, SIGTERM and SIGHUP to end this program with exit code 128 plus the signal's number.
/// Before that, `last` is called to report the state; its result is dropped only when the process exits. No
/// other thread may run yet.
pub(crate) fn on_signal<T>(last: impl FnOnce() -> T + Send + 'static) -> anyhow::Result<()> {
    let mut reactor = Reactor::new(Clock::start())?;
    reactor.catch_stop_signals()?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let signal = wait(&mut reactor);
        if io::stderr().is_terminal() {
            // Begin a new line after the `^C` that the terminal shows.
            console::print_status("");
        }
        let _until_then = last();
        // Programs that were started behind a link end when their pipes close.
        process::exit(i32::from(failure::code_of(signal)));
    })?;
    Ok(())
}

fn wait(reactor: &mut Reactor) -> Signal {
    loop {
        match reactor.wait(None).map(Wakeup::stop_signal) {
            Ok(None) => {}
            Ok(Some(signal)) => return signal,
            // The signals stay blocked. If waiting for them fails, the program must end here, because no
            // signal could end it later.
            Err(_) => return Signal::SIGTERM,
        }
    }
}
