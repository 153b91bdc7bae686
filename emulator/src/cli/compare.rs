//! `airlink compare`: differences between two scenarios.

use std::process::ExitCode;

use airlink::scenario::Scenario;
use airlink::scenario::compare::Difference;
use clap::Args;
use serde_json::json;

use super::console;

/// Print the settings in which two scenarios differ
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  Compare two presets:
    airlink compare wcdma-384 wcdma-384-tsp
  Compare a preset with your own scenario, as JSON:
    airlink compare wcdma-384 my.toml --json

Stages are matched by name. Descriptions are not compared.")]
pub(crate) struct Compare {
    /// First scenario: a preset, or a scenario file
    #[arg(value_name = "PRESET|FILE")]
    first: String,
    /// Second scenario: a preset, or a scenario file
    #[arg(value_name = "PRESET|FILE")]
    second: String,
    /// Print JSON instead of text: one object
    #[arg(long)]
    json: bool,
}

impl Compare {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let [first, second] = [Scenario::load(&self.first)?, Scenario::load(&self.second)?];
        let differences = first.differences(&second);
        console::print(if self.json {
            format!("{:#}\n", json!({ "schema_version": 1, "differences": differences }))
        } else if differences.is_empty() {
            format!("{} and {} describe the same path\n", self.first, self.second)
        } else {
            table(&self.first, &self.second, &differences)
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn table(first: &str, second: &str, differences: &[Difference]) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
    let mut rows = vec![[String::new(), first.to_owned(), second.to_owned()]];
    rows.extend(differences.iter().map(|it| [it.key.clone(), value(&it.first), value(&it.second)]));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let (keys, values) = (width(0), width(1));
    rows.iter().map(|[key, first, second]| format!("{key:<keys$}  {first:<values$}  {second}\n")).collect()
}
