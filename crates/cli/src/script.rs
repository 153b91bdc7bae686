//! `airtcp script`: packet scripts in virtual time.

use std::io::{self, Write};
use std::path::PathBuf;

use airtcp_numbers::units;
use airtcp_script::{End, RunOptions, run_file};
use airwire::time::Duration;
use clap::Args;

use crate::shared::failure;
use crate::shared::station::RecipeParser;

/// Run packet scripts (packetdrill's language) against a host, in virtual time.
///
/// Needs neither a device nor privileges.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Script {
    /// The scripts
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Algorithms joined by `+`, instead of the script's own `recipe` line
    #[arg(long, value_parser = RecipeParser, hide_possible_values = true)]
    recipe: Option<airtcp::recovery::Recipe>,
    /// Whose TCP to look like, instead of the script's own `profile` line
    #[arg(long, value_parser = airtcp::profile::Profile::NAMES)]
    profile: Option<String>,
    /// How far a packet's time may be off [default: the script's, or exact]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    tolerance: Option<Duration>,
    /// Fail if the host has sent packets that the script does not mention
    #[arg(long)]
    exact: bool,
    /// Say nothing about scripts that pass
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Example:
  airtcp script tests/scripts/handshake/*.pkt";

impl Script {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let options = RunOptions {
            recipe: self.recipe.map(|recipe| recipe.to_string()),
            profile: self.profile,
            tolerance: self.tolerance,
            end: if self.exact { End::Exact } else { End::Open },
        };
        let mut failed = 0;
        for file in &self.files {
            match run_file(file, &options) {
                Ok(report) if !self.quiet => writeln!(io::stdout(), "{report}")?,
                Ok(_) => {}
                Err(error) => {
                    failed += 1;
                    eprintln!("{error}");
                }
            }
        }
        match failed {
            0 => Ok(()),
            _ => Err(failure::run(format!("{failed} of {} scripts failed", self.files.len()))),
        }
    }
}
