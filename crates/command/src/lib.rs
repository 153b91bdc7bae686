//! Code that the programs `airtcp` and `airtcp-serve` share: errors, output, and the options of a host. [`execute`]
//! runs a command and turns its error into a message and an exit code. [`console`] writes output without blocking the
//! host.
//!
//! ```
//! use airtcp_command::failure::{Failure, usage};
//!
//! // The program exits with code 2.
//! let error = usage("--rate must be above 0");
//! assert!(matches!(error.downcast_ref(), Some(Failure::Usage(_))));
//! ```

#![warn(missing_docs)]
#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "they panic if the reader is gone: see console.rs"
)]

pub mod console;
pub mod counters;
pub mod decisions;
pub mod failure;
pub mod host_args;
pub mod reporter;
pub mod senders;
pub mod unanswered;

use std::io::Write;
use std::process::ExitCode;

use airlogs::LogArgs;
use tracing::level_filters::LevelFilter;

/// Starts the log, executes a command of `program`, and reports its error.
pub fn execute(program: &'static str, log: &LogArgs, run: impl FnOnce() -> anyhow::Result<()>) -> ExitCode {
    let log = match log.start(program, LevelFilter::WARN) {
        Ok(log) => log,
        Err(error) => return failure::report(program, &error.into()),
    };
    let ended = run().and_then(|()| Ok(console::stdout().flush()?));
    let code = match ended {
        Ok(()) if log.is_complete() => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(error) => failure::report(program, &error),
    };
    console::finish();
    code
}
