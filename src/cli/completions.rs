//! `airtcp completions`: a script for a shell.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use clap_complete::Shell;

use super::man::Program;

/// Print a completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    shell: Kind,
    /// The program whose options are completed
    #[arg(default_value = "airtcp")]
    program: Program,
}

const EXAMPLES: &str = "\
Examples:
  airtcp completions bash > /etc/bash_completion.d/airtcp
  airtcp completions bash airlink > /etc/bash_completion.d/airlink
  airtcp completions fish > ~/.config/fish/completions/airtcp.fish";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let shell = match self.shell {
            Kind::Bash => Shell::Bash,
            Kind::Zsh => Shell::Zsh,
            Kind::Fish => Shell::Fish,
        };
        let mut command = self.program.command();
        let name = command.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, name, &mut script);
        io::stdout().write_all(&script)?;
        Ok(())
    }
}
