//! `airlink completions`: completion scripts, and the candidates that they request.

use std::process::ExitCode;

use airhelp::completion::{self, Candidate, Kinds, ShellName, option_of, value_of};
use airlink::scenario::{Scenario, presets};
use clap::{Args, ValueEnum};

use super::console;

/// Print a shell completion script
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  Install the completions for bash:
    airlink completions bash > /etc/bash_completion.d/airlink")]
pub(crate) struct Completions {
    /// Shell that the script is for
    shell: ShellName,
}

/// Print the possible values of a word, for completion scripts
#[derive(Debug, Args)]
pub(crate) struct Values {
    kind: Kind,
    /// The word, as far as it has been typed
    #[arg(default_value = "", allow_hyphen_values = true)]
    word: String,
    /// All words before the cursor
    #[arg(last = true)]
    line: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Scenario,
    Setting,
}

/// Kinds of values, by their names in help texts.
const KINDS: &Kinds =
    &[("SCENARIO", "scenario"), ("PRESET|FILE", "scenario"), ("STAGE.KEY=VALUE", "setting")];

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        console::print(completion::script(super::command(), "airlink", self.shell, KINDS))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Values {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let word = value_of(&self.word);
        let named = match self.kind {
            Kind::Scenario => presets::complete_name(word),
            Kind::Setting => {
                let scenario =
                    option_of(&self.line, "-s", "--scenario").and_then(|name| Scenario::load(name).ok());
                scenario.map(|scenario| scenario.complete_setting(word)).unwrap_or_default()
            }
        };
        let candidates: Vec<_> =
            named.into_iter().map(|(name, meaning)| Candidate::new(name, meaning)).collect();
        let mut text = Vec::new();
        completion::print(&candidates, &mut text)?;
        console::print(String::from_utf8_lossy(&text))?;
        Ok(ExitCode::SUCCESS)
    }
}
