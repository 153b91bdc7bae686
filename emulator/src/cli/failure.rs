//! What goes wrong, as an exit code and a message that says what to do next.

use std::process::ExitCode;

use crate::addresses::BlockError;
use crate::netns::NamespaceError;
use crate::program::ProgramError;
use crate::scenario::ScenarioError;
use crate::tun::DeviceError;

pub(super) const USAGE: u8 = 2;
const ENVIRONMENT: u8 = 3;

/// The command line asks for something that cannot be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

pub(super) fn usage(message: impl Into<String>) -> anyhow::Error {
    Usage(message.into()).into()
}

/// Says on stderr what went wrong.
pub fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("airlink: {error:#}");
    if error.is::<Usage>() || error.is::<ScenarioError>() {
        ExitCode::from(USAGE)
    } else if error.is::<DeviceError>()
        || error.is::<NamespaceError>()
        || error.is::<ProgramError>()
        || error.is::<BlockError>()
    {
        // The machine does not let us.
        ExitCode::from(ENVIRONMENT)
    } else {
        ExitCode::FAILURE
    }
}
