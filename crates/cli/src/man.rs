//! `airtcp man`: writes manual pages from the definition of the command line.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::shared::console;

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
  airtcp man /usr/local/share/man/man1
  airtcp man --markdown > airtcp.md";

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Some(dir) = self.dir else {
            write!(console::stdout(), "{}", airhelp::markdown::page(super::command()))?;
            return Ok(());
        };
        let failed = || format!("cannot write manual pages into {}", dir.display());
        // `airtcp-serve` writes the page with this name.
        let command = super::command().mut_subcommand("serve", |serve| serve.hide(true));
        airhelp::man::write(command, super::COMMON, &dir).with_context(failed)
    }
}
