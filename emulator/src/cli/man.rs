//! `airlink man`: manual pages, generated from the definition of the command line.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use super::console;

/// Write manual pages into a directory, one per subcommand
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Man {
    /// Directory, created if it does not exist
    #[arg(required_unless_present = "markdown")]
    dir: Option<PathBuf>,
    /// Print one Markdown page instead
    #[arg(long, conflicts_with = "dir")]
    markdown: bool,
}

const EXAMPLES: &str = "\
Examples:
  airlink man /usr/local/share/man/man1
  airlink man --markdown > airlink.md";

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Some(dir) = self.dir else {
            console::print(airhelp::markdown::page(super::command()))?;
            return Ok(ExitCode::SUCCESS);
        };
        let failed = || format!("cannot write manual pages into {}", dir.display());
        airhelp::man::write(super::command(), super::COMMON, &dir).with_context(failed)?;
        Ok(ExitCode::SUCCESS)
    }
}
