//! Error messages and exit codes.

use std::process::ExitCode;

use airlink::addresses::BlockError;
use airlink::netns::NamespaceError;
use airlink::program::ProgramError;
use airlink::scenario::ScenarioError;
use airlink::tun::DeviceError;

use super::say;

pub(super) const USAGE: u8 = 2;
const ENVIRONMENT: u8 = 3;

/// Error for an invalid use of the command line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

pub(super) fn usage(message: impl Into<String>) -> anyhow::Error {
    Usage(message.into()).into()
}

/// The error and its causes. Causes that an earlier message contains are omitted.
fn told(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told.as_str() {
        "" => cause,
        _ if told.contains(&cause) => told,
        _ => format!("{told}: {cause}"),
    })
}

/// Reports an error on stderr, and returns the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    say::complain(format_args!("airlink: {}\n", told(error)));
    if error.is::<Usage>() || error.is::<ScenarioError>() {
        ExitCode::from(USAGE)
    } else if error.is::<DeviceError>()
        || error.is::<NamespaceError>()
        || error.is::<ProgramError>()
        || error.is::<BlockError>()
    {
        // Privileges, devices or namespaces.
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
    fn error_text_contains_each_cause_once() {
        let full = || std::io::Error::from_raw_os_error(libc::ENOSPC);
        let source = || DeviceError::Open { name: "x".to_owned(), source: full() };
        assert_eq!(
            told(&source().into()),
            "cannot open the device `x`: No space left on device (os error 28)"
        );
        let outer = Err::<(), _>(source()).context("starting").unwrap_err();
        assert_eq!(
            told(&outer),
            "starting: cannot open the device `x`: No space left on device (os error 28)"
        );
        assert_eq!(
            told(&anyhow::Error::from(full()).context("writing")),
            "writing: No space left on device (os error 28)"
        );
    }
}
