//! `--setups`: writes the set-up of each point of a figure, and the measured value of each seed.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use airtcp_numbers::csv;
use airtcp_reproduce::{Runs, Table};
use airtcp_sim::file;
use airtcp_sim::sweep::setup::quoted;
use anyhow::Context;

use crate::shared::console;

/// Directory of the set-ups in a bundle.
pub(super) const IN_BUNDLE: &str = "setups";

/// Returns the names and contents of a figure's files: its set-ups first.
pub(super) fn files(id: &str, runs: &Runs) -> Vec<(String, String)> {
    let setups = (1..).zip(runs.files()).map(|(number, run)| (name(id, number), run));
    // A figure may consist of calculations, or of runs that do not depend on a seed.
    let tables = [("points", runs.points()), ("seeds", runs.seeds())].into_iter();
    let tables = tables.filter(|(_, table)| !table.rows.is_empty());
    setups.chain(tables.map(|(name, table)| (format!("{id}-{name}.csv"), text(&table)))).collect()
}

fn name(id: &str, number: usize) -> String {
    format!("{id}-{number}.json")
}

/// Writes the files of a figure.
pub(super) fn write(directory: &Path, id: &str, runs: &Runs, quiet: bool) -> anyhow::Result<()> {
    for (name, content) in files(id, runs) {
        let path = directory.join(name);
        file::replace(&path, content.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let count = runs.files().len();
    // An earlier run of the figure may have had more points.
    for stale in (count + 1..).map(|number| directory.join(name(id, number))) {
        match fs::remove_file(&stale) {
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            removed => removed.with_context(|| format!("cannot remove {}", stale.display()))?,
        }
    }
    if count > 0 && !quiet {
        let first = quoted(&directory.join(name(id, 1)).display().to_string());
        console::print_status(format_args!(
            "{id}: {count} set-ups in {}; repeat the first one with `airtcp sim --run {first}`",
            directory.display()
        ));
    }
    Ok(())
}

fn text(table: &Table) -> String {
    csv::record(&table.columns) + &table.rows.iter().map(csv::record).collect::<String>()
}
