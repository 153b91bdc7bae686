//! `airtcp completions`: a script for a shell.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use clap_complete::Shell;

/// Print a completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    shell: Kind,
}

const EXAMPLES: &str = "\
Examples:
  airtcp completions bash > /etc/bash_completion.d/airtcp
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
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut super::command(), "airtcp", &mut script);
        io::stdout().write_all(&script)?;
        Ok(())
    }
}
