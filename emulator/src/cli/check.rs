//! `airlink check`: reports errors in scenarios.

use std::process::ExitCode;

use airlink::scenario::{Scenario, ScenarioError};
use airlink::stage::Recording;
use clap::Args;

use super::console;
use super::failure::USAGE;

/// Check scenarios and report errors
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  Check all scenarios of a directory:
    airlink check scenarios/*.toml

A scenario has at most 4 MiB and 1000 stages, and each trace at most 64 MiB.
A scenario can name ordinary files only. Errors do not quote files that are
neither scenarios nor traces.")]
pub(crate) struct Check {
    /// Scenario files or names of presets
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
}

impl Check {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut exit = ExitCode::SUCCESS;
        for file in &self.files {
            match check(file) {
                Ok(scenario) => {
                    console::print_warnings(file, &scenario);
                    let stages = scenario.stages.len();
                    let s = if stages == 1 { "" } else { "s" };
                    console::print(format_args!("{file}: ok ({stages} stage{s})\n"))?;
                }
                Err(error) => {
                    console::print_status(format_args!("{error}\n"));
                    exit = USAGE.into();
                }
            }
        }
        Ok(exit)
    }
}

/// Loads a scenario and builds its stages, which finds more errors than loading alone.
fn check(file: &str) -> Result<Scenario, ScenarioError> {
    let scenario = Scenario::load(file)?;
    scenario.build(None, Recording::Off, false)?;
    Ok(scenario)
}
