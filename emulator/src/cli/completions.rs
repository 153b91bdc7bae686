//! `airlink completions`: completion scripts, and the candidates that they request.

use std::process::ExitCode;

use airhelp::completion::{self, Candidate, Kinds, ShellName, value_of};
use airlink::scenario::presets;
use clap::{Args, ValueEnum};

use super::say;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  Install the completions for bash:
    airlink completions bash > /etc/bash_completion.d/airlink")]
pub(crate) struct Completions {
    /// Shell for which to print the script
    shell: ShellName,
}

/// Print the possible values of a word, for completion scripts
#[derive(Debug, Args)]
pub(crate) struct Values {
    kind: Kind,
    /// The word, as far as it has been typed
    #[arg(default_value = "", allow_hyphen_values = true)]
    word: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Scenario,
}

/// Kinds of values, by their names in help texts.
const KINDS: &Kinds = &[("SCENARIO", "scenario"), ("PRESET|FILE", "scenario")];

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        say::print(completion::script(super::command(), "airlink", self.shell, KINDS))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Values {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let named = match self.kind {
            Kind::Scenario => presets::named_like(value_of(&self.word)).into_iter(),
        };
        let candidates: Vec<_> = named.map(|(name, meaning)| Candidate::new(name, meaning)).collect();
        let mut text = Vec::new();
        completion::print(&candidates, &mut text)?;
        say::print(String::from_utf8_lossy(&text))?;
        Ok(ExitCode::SUCCESS)
    }
}
