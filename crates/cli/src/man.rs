//! `airtcp man`: manual pages from the definition of the command line.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

/// Write manual pages into a directory, one per subcommand
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  airtcp man /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// Directory, created if it does not exist
    dir: PathBuf,
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let failed = || format!("cannot write manual pages into {}", self.dir.display());
        airhelp::man::write(super::command(), &self.dir).with_context(failed)
    }
}
