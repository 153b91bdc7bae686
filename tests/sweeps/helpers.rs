//! Helpers for the tests of sweeps: a directory, a sweep, and its results.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use airtcp_testkit::machine::{Ended, TempDir, run};
use airtcp_testkit::programs::program;
use serde_json::Value;

/// A sweep of twelve short runs.
pub(super) const SWEEP: &str = "schema = 1\nseeds = 3\n[fixed]\nscenario = \"sifest-random\"\nbytes = \"30k\"\n\
                     [axes]\nrecipe = [\"reno\", [\"newreno\", \"newreno+sifest\"]]\n\
                     radio.down.delay = [\"25ms\", \"0.1s\"]\n";

pub(super) fn good(args: &[&str]) -> Ended {
    let ended = run(args);
    assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
    ended
}

/// Runs a command that must fail with this exit code and a message of one line. Returns the message.
pub(super) fn refused(args: &[&str], code: i32) -> String {
    let ended = run(args);
    assert_eq!(ended.code, code, "{args:?}: {}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
    ended.stderr
}

pub(super) fn merged(store: &str) -> String {
    good(&["sweep", "merge", store, "--output", "-"]).stdout
}

/// Returns the results of a sweep that runs without any disturbance.
pub(super) fn undisturbed(dir: &TempDir, file: &str) -> String {
    let store = dir.path("undisturbed");
    good(&["sweep", "run", file, "--store", &store, "--quiet"]);
    merged(&store)
}

/// Returns a shell command with the program on its PATH, as a user has it.
pub(super) fn shell(script: &str, arguments: &[&str]) -> Command {
    let program = program("airtcp");
    let path =
        format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).args(arguments).env("PATH", path).stdin(Stdio::null());
    command
}

pub(super) fn root(of: &str) -> PathBuf {
    airtcp_testkit::programs::repository().join(of)
}

/// Returns the number of rows of each run, in all files of a store.
pub(super) fn rows_by_run(store: &str) -> BTreeMap<u64, u32> {
    let mut counts = BTreeMap::new();
    for entry in fs::read_dir(store).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for row in whole.lines().flat_map(serde_json::from_str::<Value>) {
            if let Some(run) = row["run"].as_u64() {
                *counts.entry(run).or_default() += 1;
            }
        }
    }
    counts
}
