//! Error messages and exit codes.

use std::process::ExitCode;

use airlink::addresses::BlockError;
use airlink::netns::NamespaceError;
use airlink::program::ProgramError;
use airlink::scenario::ScenarioError;
use airlink::tun::DeviceError;
use airlogs::stderr::with_causes;

use super::console;

pub(super) const USAGE: u8 = 2;
const ENVIRONMENT: u8 = 3;

/// Error for an invalid use of the command line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

pub(super) fn usage(message: impl Into<String>) -> anyhow::Error {
    Usage(message.into()).into()
}

/// Reports an error on stderr, and returns the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    console::print_status(format_args!("airlink: {}\n", with_causes(&**error)));
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
