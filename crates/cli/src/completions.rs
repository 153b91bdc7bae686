//! `airtcp completions`: prints a shell completion script.

use std::io::Write;

use airhelp::completion::{ShellName, script};
use clap::Args;

use crate::shared::console;
use crate::values::KINDS;

/// Print a shell completion script
///
/// The script completes recipes word by word, also after `+` and `@`, as well as scenarios and their settings, receivers,
/// figures, metrics, and axes of sweeps.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// Shell that the script is for
    shell: ShellName,
}

const EXAMPLES: &str = "\
Examples:
  airtcp completions bash > /etc/bash_completion.d/airtcp
  airtcp completions zsh > /usr/local/share/zsh/site-functions/_airtcp
  airtcp completions fish > ~/.config/fish/completions/airtcp.fish";

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let script = script(super::command(), "airtcp", self.shell, KINDS);
        console::stdout().write_all(script.as_bytes())?;
        Ok(())
    }
}
