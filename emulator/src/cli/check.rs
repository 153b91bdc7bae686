//! `airlink check`: what is wrong with a scenario, and where.

use std::process::ExitCode;

use airlink::scenario::{Scenario, ScenarioError};
use airlink::stage::Recording;
use clap::Args;

use super::failure::USAGE;
use super::say;

/// Read scenarios and say what is wrong with them. Exits with 2 if something is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  airlink check my.toml
  airlink check scenarios/*.toml
A scenario has at most 4 MiB and 1000 stages, and each trace 64 MiB. The files that it names are ordinary
ones; what stands in one that is neither a scenario nor a trace is not repeated.")]
pub(crate) struct Check {
    /// Files, or names of presets
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
}

impl Check {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut exit = ExitCode::SUCCESS;
        for file in &self.files {
            match check(file) {
                Ok(scenario) => {
                    say::warn_of(file, &scenario);
                    let stages = scenario.stages.len();
                    let s = if stages == 1 { "" } else { "s" };
                    say::print(format_args!("{file}: ok ({stages} stage{s})\n"))?;
                }
                Err(error) => {
                    say::complain(format_args!("{error}\n"));
                    exit = USAGE.into();
                }
            }
        }
        Ok(exit)
    }
}

/// Loads a scenario and builds its stages, which finds mistakes that loading does not.
fn check(file: &str) -> Result<Scenario, ScenarioError> {
    let scenario = Scenario::load(file)?;
    scenario.build(None, Recording::Off, false)?;
    Ok(scenario)
}
