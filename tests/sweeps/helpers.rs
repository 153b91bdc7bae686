//! Helpers for the tests of sweeps, such as a directory, a sweep, and its results.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use airtcp_testkit::machine::{Ended, TIMEOUT, TempDir, TimeLimit, airtcp, run};
use airtcp_testkit::programs::program;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
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

/// Starts a command, and sends the signal when `is_ready` returns true. Returns the result of the command.
#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
pub(super) fn interrupted(args: &[&str], signal: Signal, is_ready: impl Fn(&Child) -> bool) -> Ended {
    let child = airtcp(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap();
    let _limit = TimeLimit::of(&child);
    let begin = Instant::now();
    while !is_ready(&child) {
        assert!(begin.elapsed() < TIMEOUT, "{args:?} was never ready for the signal");
        sleep(Duration::from_millis(5));
    }
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    Ended::of(child.wait_with_output().unwrap())
}

pub(super) fn merged(store: &str) -> String {
    good(&["sweep", "merge", store, "--output", "-"]).stdout
}

/// Returns the results of a sweep that is not interrupted.
pub(super) fn uninterrupted(dir: &TempDir, file: &str) -> String {
    let store = dir.path("uninterrupted");
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

pub(super) fn root(file: &str) -> PathBuf {
    airtcp_testkit::programs::repository().join(file)
}

/// Returns the number of rows of each run, in all files of a store.
pub(super) fn rows_by_run(store: &str) -> BTreeMap<u64, u32> {
    let mut counts = BTreeMap::new();
    for entry in fs::read_dir(store).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
        for row in complete.lines().flat_map(serde_json::from_str::<Value>) {
            if let Some(run) = row["run"].as_u64() {
                *counts.entry(run).or_default() += 1;
            }
        }
    }
    counts
}
