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

/// Writes the files of a figure.
pub(super) fn write(directory: &Path, id: &str, runs: &Runs, quiet: bool) -> anyhow::Result<()> {
    let write = |name: String, content: String| {
        let path = directory.join(name);
        file::replace(&path, content.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
    };
    let name = |number: usize| format!("{id}-{number}.json");
    let files = runs.files();
    let count = files.len();
    for (number, run) in (1..).zip(files) {
        write(name(number), run)?;
    }
    // An earlier run of the figure may have had more points.
    for stale in (count + 1..).map(|number| directory.join(name(number))) {
        match fs::remove_file(&stale) {
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            removed => removed.with_context(|| format!("cannot remove {}", stale.display()))?,
        }
    }
    // A figure may consist of calculations, or of runs that do not depend on a seed.
    for (name, table) in [("points", runs.points()), ("seeds", runs.seeds())] {
        if !table.rows.is_empty() {
            write(format!("{id}-{name}.csv"), text(&table))?;
        }
    }
    if count > 0 && !quiet {
        let first = quoted(&directory.join(name(1)).display().to_string());
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
