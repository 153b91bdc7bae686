//! Errors as a message that says what to do next, and an exit code.

use std::process::ExitCode;

use airlink::addresses::BlockError;
use airlink::netns::NamespaceError;
use airlink::program::ProgramError;
use airlink::scenario::ScenarioError;
use airlink::tun::DeviceError;

use super::say;

pub(super) const USAGE: u8 = 2;
const ENVIRONMENT: u8 = 3;

/// The command line asks for something impossible.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

pub(super) fn usage(message: impl Into<String>) -> anyhow::Error {
    Usage(message.into()).into()
}

/// The error and its causes, without causes that a message before them includes.
fn told(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told.as_str() {
        "" => cause,
        _ if told.contains(&cause) => told,
        _ => format!("{told}: {cause}"),
    })
}

/// Says on stderr what went wrong.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    say::complain(format_args!("airlink: {}\n", told(error)));
    if error.is::<Usage>() || error.is::<ScenarioError>() {
        ExitCode::from(USAGE)
    } else if error.is::<DeviceError>()
        || error.is::<NamespaceError>()
        || error.is::<ProgramError>()
        || error.is::<BlockError>()
    {
        // Privilege, devices, namespaces.
        ExitCode::from(ENVIRONMENT)
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn every_cause_is_told_once() {
        let full = || std::io::Error::from_raw_os_error(libc::ENOSPC);
        let source = || DeviceError::Open { name: "x".to_owned(), source: full() };
        assert_eq!(
            told(&source().into()),
            "cannot open a device named `x`: No space left on device (os error 28)"
        );
        let outer = Err::<(), _>(source()).context("starting").unwrap_err();
        assert_eq!(
            told(&outer),
            "starting: cannot open a device named `x`: No space left on device (os error 28)"
        );
        assert_eq!(
            told(&anyhow::Error::from(full()).context("writing")),
            "writing: No space left on device (os error 28)"
        );
    }
}
