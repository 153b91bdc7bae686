//! Errors of commands, with an exit code and one line about what to do next.

use std::error::Error;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use airlink::driver::DriverError;
use airlink::netns::NamespaceError;
use airlink::tun::DeviceError;
use airlogs::stderr::with_causes;
use airtcp::host::{ConnectError, ListenError};
use airtcp_tun::NeedsVirtualTime;
use nix::sys::signal::Signal;

use crate::console;

/// An error with its own exit code.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line is invalid, or names something that does not exist.
    #[error("{0}")]
    Usage(String),
    /// The run failed.
    #[error("{0}")]
    Run(String),
    /// A privilege, device or program is missing.
    #[error("{0}")]
    Environment(String),
    /// A signal stopped the command before its work was complete.
    #[error("{message}")]
    Stopped {
        /// The signal.
        signal: Signal,
        /// The message on stderr.
        message: String,
    },
}

/// Creates a [`Failure::Usage`].
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    Failure::Usage(message.into()).into()
}

/// Creates a [`Failure::Usage`] with the message of its cause.
pub fn usage_of(cause: impl Error + Send + Sync + 'static) -> anyhow::Error {
    let failure = Failure::Usage(cause.to_string());
    anyhow::Error::new(cause).context(failure)
}

/// Creates a [`Failure::Usage`]: a file that the command line names cannot be read.
pub fn cannot_read(path: &Path, cause: io::Error) -> anyhow::Error {
    anyhow::Error::new(cause).context(Failure::Usage(format!("cannot read {}", path.display())))
}

/// Creates a [`Failure::Run`] with the message of its cause.
pub fn run_of(cause: impl Error + Send + Sync + 'static) -> anyhow::Error {
    let failure = Failure::Run(cause.to_string());
    anyhow::Error::new(cause).context(failure)
}

/// Creates a [`Failure::Run`].
pub fn run(message: impl Into<String>) -> anyhow::Error {
    Failure::Run(message.into()).into()
}

/// Creates a [`Failure::Environment`].
pub fn environment(message: impl Into<String>) -> anyhow::Error {
    Failure::Environment(message.into()).into()
}

/// Creates a [`Failure::Stopped`].
pub fn stopped(signal: Signal, message: impl Into<String>) -> anyhow::Error {
    Failure::Stopped { signal, message: message.into() }.into()
}

/// Prints the error of `program` to stderr and returns the exit code.
pub fn report(program: &str, error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        // The reader of the output has closed the pipe, which is not a failure.
        return ExitCode::SUCCESS;
    }
    console::print_status(format_args!("{program}: {}{}", with_causes(&**error), advice(error)));
    ExitCode::from(exit_code(error))
}

/// Returns a suggestion if a file cannot be read or written, or a program cannot listen at an address.
fn advice(error: &anyhow::Error) -> &'static str {
    let message = with_causes(&**error);
    let kind = error.chain().find_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
    let is_writing = message.contains("cannot write");
    match kind {
        None => "",
        // A message with a question or a second part already contains a suggestion.
        Some(_) if message.contains(['?', ';']) => "",
        Some(io::ErrorKind::AddrNotAvailable) => "; choose an address of this machine",
        Some(io::ErrorKind::AddrInUse) => "; choose another port, or stop the other program",
        Some(_) if !is_writing && !message.contains("cannot read") => "",
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            ": free some space, or choose another place"
        }
        Some(io::ErrorKind::AlreadyExists) if is_writing => "; choose another name",
        Some(io::ErrorKind::NotFound) if is_writing => ": create the directory first",
        Some(io::ErrorKind::NotFound) => "; check its name and directory",
        Some(io::ErrorKind::IsADirectory) => ": name a file in it",
        Some(io::ErrorKind::NotADirectory) => ": a part of the path is a file",
        Some(io::ErrorKind::PermissionDenied) => "; check its permissions",
        Some(_) => "",
    }
}

/// Returns the exit code of a command that a signal stopped, as in a shell.
pub fn code_of(signal: Signal) -> u8 {
    128 + signal as u8
}

/// Returns the exit code for an error.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if let Some(Failure::Stopped { signal, .. }) = error.downcast_ref() {
        return code_of(*signal);
    }
    let environment = error.is::<DeviceError>()
        || error.is::<NamespaceError>()
        || matches!(error.downcast_ref(), Some(Failure::Environment(_)))
        || matches!(error.downcast_ref(), Some(DriverError::Device { .. }));
    let usage = error.is::<ConnectError>()
        || error.is::<ListenError>()
        || matches!(error.downcast_ref(), Some(DriverError::Observer(source)) if source.is::<NeedsVirtualTime>())
        || matches!(error.downcast_ref(), Some(Failure::Usage(_)));
    if usage {
        2
    } else if environment {
        3
    } else {
        1
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    // A named file is not a pipe whose reader has ended.
    let named = error.to_string().contains("cannot write");
    !named && error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_depends_on_cause_and_not_on_text() {
        let missing = || io::Error::from_raw_os_error(2);
        let error = cannot_read(Path::new("x.toml"), missing());
        assert_eq!((exit_code(&error), advice(&error)), (2, "; check its name and directory"));
        assert_eq!(with_causes(&*error), "cannot read x.toml: No such file or directory (os error 2)");

        let error = usage_of(io::Error::new(io::ErrorKind::NotFound, "cannot write y"));
        assert_eq!((exit_code(&error), advice(&error)), (2, ": create the directory first"));
        assert_eq!(with_causes(&*error), "cannot write y");

        assert_eq!(advice(&run(format!("cannot read x.toml: {}", missing()))), "");
    }
}
