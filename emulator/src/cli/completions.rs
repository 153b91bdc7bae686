//! `airlink completions`: a script for a shell.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use clap_complete::Shell;

use super::say;

/// Print a completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  airlink completions bash > /etc/bash_completion.d/airlink")]
pub(crate) struct Completions {
    /// The shell that the script is for
    shell: ShellName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let shell = match self.shell {
            ShellName::Bash => Shell::Bash,
            ShellName::Zsh => Shell::Zsh,
            ShellName::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut super::command(), "airlink", &mut script);
        say::print(String::from_utf8_lossy(&script))?;
        Ok(ExitCode::SUCCESS)
    }
}
