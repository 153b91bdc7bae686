//! `airtcp completions`: a script for a shell.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use clap_complete::Shell;

/// Print a completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    shell: ShellName,
}

const EXAMPLES: &str = "\
Examples:
  airtcp completions bash > /etc/bash_completion.d/airtcp
  airtcp completions fish > ~/.config/fish/completions/airtcp.fish";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let shell = match self.shell {
            ShellName::Bash => Shell::Bash,
            ShellName::Zsh => Shell::Zsh,
            ShellName::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut super::command(), "airtcp", &mut script);
        io::stdout().write_all(&script)?;
        Ok(())
    }
}
