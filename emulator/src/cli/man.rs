//! `airlink man`: manual pages from the definition of the command line.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

/// Write manual pages, one per subcommand, into a directory
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  Install the manual pages:\n    airlink man /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// Directory to write to; it is created if it does not exist
    dir: PathBuf,
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let failed = || format!("cannot write manual pages into {}", self.dir.display());
        airhelp::man::write(super::command(), &self.dir).with_context(failed)?;
        Ok(ExitCode::SUCCESS)
    }
}
