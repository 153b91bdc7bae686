//! Runs every script of `tests/scripts` as a test. `cargo test --test scripts -- handshake` runs one
//! directory.
//!
//! Files in a directory `include` are included by other scripts and do not run on their own.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use airtcp_script::{RunOptions, Tolerance, UnlistedPackets, run_file};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut scripts = Vec::new();
    collect(&root, &mut scripts);
    scripts.sort();
    let trials = scripts
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).unwrap_or(&path).with_extension("").display().to_string();
            Trial::test(name, move || run(&path))
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Runs a script. It must mention every packet with its exact time, and nothing that airtcp ignores.
fn run(path: &Path) -> Result<(), Failed> {
    let options = RunOptions {
        unlisted: UnlistedPackets::Refused,
        tolerance: Some(Tolerance::EXACT),
        ..RunOptions::default()
    };
    let report = run_file(path, &options)?;
    if report.checked == 0 {
        return Err("this script expects no packet at all".into());
    }
    if !report.notes.is_empty() {
        return Err(format!("something in this script has no effect: {}", report.notes.join("; ")).into());
    }
    Ok(())
}

fn collect(dir: &Path, into: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    for entry in entries {
        let path = entry.expect("a directory that could be opened can be read").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "include") {
            collect(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            into.push(path);
        }
    }
}
