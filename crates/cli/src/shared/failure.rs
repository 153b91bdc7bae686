//! Errors of commands: an exit code, and one line that says what to do next.

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;

use airlink::driver::DriverError;
use airlink::netns::NamespaceError;
use airlink::tun::DeviceError;
use airtcp::host::{ConnectError, ListenError};
use airtcp::tcp::Ended;
use airtcp_tun::NeedsVirtualTime;
use nix::sys::signal::Signal;

use super::say;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line is invalid, or names something that does not exist.
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Run(String),
    #[error("{0}")]
    Environment(String),
    /// A signal stopped the command before its work was complete.
    #[error("{message}")]
    Stopped { signal: Signal, message: String },
}

pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    Failure::Usage(message.into()).into()
}

pub(crate) fn run(message: impl Into<String>) -> anyhow::Error {
    Failure::Run(message.into()).into()
}

pub(crate) fn environment(message: impl Into<String>) -> anyhow::Error {
    Failure::Environment(message.into()).into()
}

pub(crate) fn stopped(signal: Signal, message: impl Into<String>) -> anyhow::Error {
    Failure::Stopped { signal, message: message.into() }.into()
}

/// Prints the error to stderr and returns the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        // The reader of the output has closed the pipe, which is not a failure.
        return ExitCode::SUCCESS;
    }
    say::aside(format_args!("airtcp: {}{}", told(error), advice(error)));
    ExitCode::from(exit_code(error))
}

/// Joins the messages of the error and its causes, except causes that an earlier message already contains.
pub(crate) fn told(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told.as_str() {
        "" => cause,
        _ if told.contains(&cause) => told,
        _ => format!("{told}: {cause}"),
    })
}

/// Returns a suggestion if a file cannot be written.
fn advice(error: &anyhow::Error) -> &'static str {
    let kind = error.chain().find_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
    match kind {
        // A message with a question already contains a suggestion.
        _ if !told(error).contains("cannot write") || told(error).contains('?') => "",
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            ": free some space, or choose another place"
        }
        Some(io::ErrorKind::NotFound) => ": create the directory first",
        Some(io::ErrorKind::IsADirectory) => ": name a file in it",
        Some(io::ErrorKind::NotADirectory) => ": a part of the path is a file",
        _ => "",
    }
}

/// Returns the exit code of a command that a signal stopped, as in a shell.
pub(crate) fn code_of(signal: Signal) -> u8 {
    128 + signal as u8
}

pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
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

/// Returns the error for a connection that ended before the transfer was complete.
pub(crate) fn ended(why: Ended, remote: SocketAddr, established: bool, acked: u64) -> anyhow::Error {
    let hint = match (why, established) {
        (Ended::Refused, _) | (Ended::Reset, false) => {
            let port = remote.port();
            format!(": start a receiver there first, for example `airtcp sink {port}`")
        }
        (Ended::Reset, true) => {
            format!(
                " after {acked} bytes were acknowledged: the receiving program ended early, see its own output"
            )
        }
        (Ended::TimedOut, false) => no_answer_hint().to_owned(),
        (Ended::TimedOut, true) => format!(" after {acked} bytes were acknowledged: is the path still up?"),
        (Ended::Unreachable(_), _) => ": check the routes of the device's namespace".to_owned(),
        (Ended::Aborted, _) => String::new(),
    };
    run(format!("{remote}: {why}{hint}"))
}

pub(crate) fn no_answer_hint() -> &'static str {
    ": is it an address of the kernel, or one that the kernel routes? `--pcap FILE` records the sent packets"
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    // A named file is not a pipe to a reader that has seen enough.
    let named = error.to_string().contains("cannot write");
    !named && error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
