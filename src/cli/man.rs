//! `airtcp man`: manual pages from the definitions of the command lines.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};

/// Write manual pages of airtcp and airlink, one per subcommand, into a directory.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  airtcp man /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// The directory; it is made if it does not exist
    dir: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Program {
    Airtcp,
    Airlink,
}

impl Program {
    pub(super) fn command(self) -> clap::Command {
        match self {
            Self::Airtcp => super::command(),
            Self::Airlink => airlink::cli::command(),
        }
    }
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let failed = || format!("cannot write manual pages into {}", self.dir.display());
        fs::create_dir_all(&self.dir).with_context(failed)?;
        for program in Program::value_variants() {
            clap_mangen::generate_to(program.command(), &self.dir).with_context(failed)?;
        }
        Ok(())
    }
}
