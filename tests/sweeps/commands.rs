//! The commands of documents, as they are typed: each document's in their order, in a copy of what they need.
//!
//! A block of `sh` behind `<!-- illustration: REASON -->` is not run.

use std::fs;

use airtcp_testkit::machine::Ended;

use super::helpers::{Dir, root, shell};

/// The lines of all blocks of `sh` that are no illustrations.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut before = "";
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "```sh" {
            let block: Vec<String> =
                lines.by_ref().take_while(|line| *line != "```").map(str::to_owned).collect();
            if !before.starts_with("<!-- illustration: ") {
                commands.extend(block);
            }
        }
        before = line;
    }
    commands
}

/// Needs GNU parallel. A stand-in runs what `sbatch` is given.
#[test]
fn the_commands_of_documents_run_as_they_are_typed() {
    for (document, least) in [("docs/sweeps.md", 9), ("docs/scenarios.md", 5)] {
        let dir = Dir::new();
        let examples = dir.0.join("docs/examples");
        fs::create_dir_all(&examples).unwrap();
        fs::create_dir_all(dir.0.join("docs/pictures")).unwrap();
        for entry in fs::read_dir(root("docs/examples")).unwrap().map(Result::unwrap) {
            // Not the results of somebody who has tried them.
            if entry.path().extension().is_some_and(|extension| extension == "toml") {
                fs::copy(entry.path(), examples.join(entry.file_name())).unwrap();
            }
        }
        super::sweep::stand_in_for_sbatch(&dir);
        let commands = commands(&fs::read_to_string(root(document)).unwrap());
        assert!(commands.len() >= least, "{document} has only {commands:?}");
        let script: Vec<String> = commands
            .iter()
            .map(|command| {
                format!("{command}\n[ $? = 0 ] || echo 'failed: {}' >&9", command.replace('\'', ""))
            })
            .collect();
        let script = format!("exec 9>\"$1/failed\"; PATH=$1:$PATH; cd \"$1\"\n{}", script.join("\n"));
        let ended = Ended::of(shell(&script, &[&dir.path("")]).output().unwrap());
        let failed = fs::read_to_string(dir.0.join("failed")).unwrap();
        assert!(failed.is_empty(), "{document}: {failed}{}", ended.stderr);
    }
}
