//! What is known of a matrix: `matrix.json`, and the tables that people see.

use std::io;
use std::path::Path;

use airtcp_numbers::table::{Column, Table};
use serde::{Deserialize, Serialize};

use super::Verdict;
use crate::LabError;
use crate::experiment::Versions;
use crate::sender::Sender;
use crate::summary::profile;
use crate::transfer::Outcome;

/// One combination.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// The receiver's name.
    pub receiver: String,
    /// The sender: a recipe, with its profile where those of the matrix differ, or one of the kernel's own.
    pub recipe: String,
    /// The sender's. `None`: it is the kernel's own.
    pub profile: Option<String>,
    /// The kind of path.
    pub scenario: String,
    /// Whether it passed.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// `None` if it was skipped.
    pub outcome: Option<Outcome>,
}

/// Everything that is known afterwards: `matrix.json` in the directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Of this format: 1.
    pub schema_version: u32,
    /// The command line that repeats it.
    pub command: String,
    /// What it was run with.
    pub versions: Versions,
    /// Octets of every transfer. `None`: the file is older than this field.
    pub bytes: Option<u64>,
    /// Of every path. `None`: the file is older than this field.
    pub seed: Option<u64>,
    /// Combinations that were asked for.
    #[serde(default)]
    pub asked: usize,
    /// Names, and versions or why there is none.
    pub receivers: Vec<(String, String)>,
    /// The combinations that are known.
    pub cells: Vec<Cell>,
    /// What the kernel's senders have and ours have not. `None`: the kernel sends nothing here.
    pub unlike_the_kernel: Option<String>,
}

impl Report {
    /// What was kept in this directory. `None`: nothing.
    ///
    /// # Errors
    /// If it is not to be read, or of another version.
    pub fn read(directory: &Path) -> Result<Option<Self>, LabError> {
        let path = directory.join("matrix.json");
        let text = match airfiles::read_kept(&path) {
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

    /// A table for every kind of path, with a line for each recipe and a column for each receiver. The receivers that a
    /// terminal of this width has no room for follow in a table of their own.
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
        if let Some(line) = &self.unlike_the_kernel {
            text.push_str(&format!("{line}\n\n"));
        }
        for (name, version) in &self.receivers {
            text.push_str(&format!("{name}: {version}\n"));
        }
        text
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
                cell.map_or_else(String::new, Cell::shown)
            });
            table.push([(*recipe).to_owned()].into_iter().chain(cells));
        }
        table.render(None)
    }
}

impl Cell {
    /// Whether it is of this combination.
    pub(super) fn is_of(&self, scenario: &str, receiver: &str, sender: &Sender) -> bool {
        self.scenario == scenario
            && self.receiver == receiver
            && self.profile == sender.profile()
            && sender.is(&self.recipe)
    }

    fn shown(&self) -> String {
        match &self.verdict {
            Verdict::Passed => {
                self.outcome.as_ref().map_or_else(String::new, |outcome| format!("{:.0}", outcome.kbit_per_s))
            }
            Verdict::Failed(_) => "FAILED".to_owned(),
            Verdict::FailedAsExpected(_) => "(fails)".to_owned(),
            Verdict::PassedUnexpectedly(_) => "PASSES".to_owned(),
            Verdict::Skipped(_) => "skipped".to_owned(),
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
