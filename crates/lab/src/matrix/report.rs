//! The results of a matrix: `matrix.json` and its tables.

use std::io;
use std::path::Path;

use airtcp::recovery::inputs::merged;
use airtcp_numbers::table::{Column, Table, wrapped_lines};
use serde::{Deserialize, Serialize};

use super::CellVerdict;
use crate::LabError;
use crate::experiment::Versions;
use crate::sender::Sender;
use crate::summary::profile;
use crate::transfer::Outcome;

/// The result of one combination.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// The receiver's name.
    pub receiver: String,
    /// The sender: a recipe, with its profile if the profiles in the matrix differ, or a kernel sender.
    pub recipe: String,
    /// The profile. `None` for a kernel sender.
    pub profile: Option<String>,
    /// The kind of path.
    pub scenario: String,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: CellVerdict,
    /// The transfer. `None` if it was skipped.
    pub outcome: Option<Outcome>,
}

/// All results: `matrix.json` in the directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The version of this format: 1.
    pub schema_version: u32,
    /// The command line that repeats the matrix.
    pub command: String,
    /// The versions of the programs.
    pub versions: Versions,
    /// Bytes per transfer. `None` if the file is older than this field.
    pub bytes: Option<u64>,
    /// The seed of every path. `None` if the file is older than this field.
    pub seed: Option<u64>,
    /// Number of requested combinations.
    #[serde(default)]
    pub asked: usize,
    /// The receivers' names, with the version or the reason why the receiver is missing.
    pub receivers: Vec<(String, String)>,
    /// The combinations with a result.
    pub cells: Vec<Cell>,
    /// The differences between recipes and the kernel's senders. `None` without kernel senders.
    pub kernel_differences: Option<String>,
}

impl Report {
    /// Reads the results from a directory. `None` if there are none.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or if another version wrote it.
    pub fn read(directory: &Path) -> Result<Option<Self>, LabError> {
        let path = directory.join("matrix.json");
        let text = match airfiles::read_result(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(LabError::file(&path))?,
        };
        let parsed = serde_json::from_str(&text);
        parsed.map(Some).map_err(|error| LabError::Taken {
            directory: directory.to_owned(),
            why: format!(
                "matrix.json was written by another version ({error}); choose another directory with --output"
            ),
        })
    }

    /// Formats one table per kind of path, with a line per recipe and a column per receiver. Receivers that
    /// do not fit into a terminal of this width follow in a table of their own. `None` does not limit the
    /// width.
    pub fn tables(&self, width: Option<usize>) -> String {
        let profile = profile(self.cells.iter().map(|cell| cell.profile.as_deref()));
        let mut text = profile.map(|profile| format!("{profile}\n\n")).unwrap_or_default();
        let scenarios = once_each(self.cells.iter().map(|cell| cell.scenario.as_str()));
        let recipes = once_each(self.cells.iter().map(|cell| cell.recipe.as_str()));
        for scenario in scenarios {
            let mut receivers = self.receivers.as_slice();
            while !receivers.is_empty() {
                let fitting = (1..=receivers.len()).rev().find(|some| {
                    let table = self.table(scenario, &recipes, &receivers[..*some]);
                    *some == 1
                        || width.is_none_or(|width| table.lines().all(|line| line.chars().count() <= width))
                });
                let (some, others) = receivers.split_at(fitting.unwrap_or(1));
                text += &self.table(scenario, &recipes, some);
                text.push('\n');
                receivers = others;
            }
        }
        let notices: String = recipes.iter().map(|recipe| self.notices(recipe)).collect();
        if !notices.is_empty() {
            text.push_str(&(wrapped_lines(&notices, width) + "\n"));
        }
        if let Some(line) = &self.kernel_differences {
            text.push_str(&format!("{line}\n\n"));
        }
        for (name, version) in &self.receivers {
            text.push_str(&format!("{name}: {version}\n"));
        }
        text
    }

    /// The notices of the transfers of one recipe, one line each.
    fn notices(&self, recipe: &str) -> String {
        let cells = self.cells.iter().filter(|cell| cell.recipe == recipe);
        let notices: Vec<_> = cells.filter_map(|cell| Some(cell.outcome.as_ref()?.notices())).collect();
        let lines = merged(notices.iter().map(Vec::as_slice), "transfers").into_iter();
        lines.map(|notice| format!("{recipe}: {notice}\n")).collect()
    }

    fn table(&self, scenario: &str, recipes: &[&str], receivers: &[(String, String)]) -> String {
        let headings = receivers.iter().map(|(name, _)| Column::new(name));
        let mut table =
            Table::new([Column::new(format!("{scenario}, kbit/s")).left()].into_iter().chain(headings));
        for recipe in recipes {
            let cells = receivers.iter().map(|(receiver, _)| {
                let cell = self.cells.iter().find(|cell| {
                    cell.scenario == scenario && cell.recipe == *recipe && cell.receiver == *receiver
                });
                cell.map_or_else(String::new, Cell::text)
            });
            table.push([(*recipe).to_owned()].into_iter().chain(cells));
        }
        table.render(None)
    }
}

impl Cell {
    /// Returns true if the cell belongs to this combination.
    pub(super) fn is_of(&self, scenario: &str, receiver: &str, sender: &Sender) -> bool {
        self.scenario == scenario
            && self.receiver == receiver
            && self.profile == sender.profile()
            && sender.matches(&self.recipe)
    }

    fn text(&self) -> String {
        match &self.verdict {
            CellVerdict::Passed => {
                self.outcome.as_ref().map_or_else(String::new, |outcome| format!("{:.0}", outcome.kbit_per_s))
            }
            CellVerdict::Failed(_) => "FAILED".to_owned(),
            CellVerdict::FailedAsExpected(_) => "(fails)".to_owned(),
            CellVerdict::PassedUnexpectedly(_) => "PASSES".to_owned(),
            CellVerdict::Skipped(_) => "skipped".to_owned(),
        }
    }
}

fn once_each<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    names.fold(Vec::new(), |mut seen, name| {
        if !seen.contains(&name) {
            seen.push(name);
        }
        seen
    })
}
