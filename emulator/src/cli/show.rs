//! `airlink show`: lists the presets, or prints a scenario with all defaults.

use std::process::ExitCode;

use airlink::scenario::{Scenario, presets};
use airlink::views::TERMINAL_WIDTH;
use airtcp_numbers::table::wrapped;
use clap::Args;
use serde_json::json;

use super::console;

/// List the presets, or print a scenario with all settings
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  List the presets:
    airlink show
  Start your own scenario from a preset:
    airlink show wcdma-384 > my.toml
  Show the sources of the numbers in a preset:
    airlink show --source wcdma-384")]
pub(crate) struct Show {
    /// Scenario to print: a preset, or a scenario file [default: list the presets]
    #[arg(value_name = "PRESET|FILE")]
    scenario: Option<String>,
    /// Print the source text, with its comments
    #[arg(long, requires = "scenario", conflicts_with = "json")]
    source: bool,
    /// Print JSON instead of text: one object
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let shown = match &self.scenario {
            None => self.list()?,
            Some(name) => {
                let scenario = Scenario::load(name)?;
                console::print_warnings(name, &scenario);
                if self.json {
                    format!("{:#}\n", scenario.to_json())
                } else if self.source {
                    Scenario::source(name)?
                } else {
                    let remarks = scenario.remarks();
                    let remarks: String = remarks.iter().map(|remark| format!("# {remark}\n")).collect();
                    if remarks.is_empty() { scenario.to_toml() } else { scenario.to_toml() + "\n" + &remarks }
                }
            }
        };
        console::print(shown)?;
        Ok(ExitCode::SUCCESS)
    }

    fn list(&self) -> anyhow::Result<String> {
        let presets: Vec<(&str, String)> = presets::ALL
            .iter()
            .map(|preset| Ok((preset.name, Scenario::load(preset.name)?.description)))
            .collect::<anyhow::Result<_>>()?;
        if self.json {
            let presets: Vec<_> = presets
                .iter()
                .map(|(name, description)| json!({ "name": name, "description": description }))
                .collect();
            return Ok(format!("{:#}\n", json!({ "schema_version": 1, "presets": presets })));
        }
        let width = presets.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let row = |(name, description): &(&str, String)| {
            wrapped(&format!("{name:<width$}  "), description, TERMINAL_WIDTH)
        };
        Ok(presets.iter().map(row).collect())
    }
}
