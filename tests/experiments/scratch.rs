//! Helpers for the tests of `airtcp lab`: a temporary directory, and the command that writes into it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use airtcp_testkit::machine::{self, Ended, TempDir, airtcp};
use serde_json::Value;

/// A temporary directory that is removed when this value is dropped.
pub(crate) struct Scratch(pub(crate) TempDir);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let directory = TempDir::new(name);
        let scenario = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"4Mbit\", delay = \"5ms\" }\n\
                        [[stage]]\nkind = \"loss\"\ndown = { model = \"uniform\", per = \"2%\" }\n";
        directory.write("lossy.toml", scenario);
        Self(directory)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path(name)
    }

    /// `airtcp lab run` over the lossy path, into the directory `output`.
    pub(crate) fn lab(&self, output: &str, more: &[&str]) -> Command {
        let (scenario, output) = (self.path("lossy.toml"), self.path(output));
        let mut command = airtcp(&["lab", "run", "--scenario", &scenario, "--output", &output]);
        if !more.iter().any(|option| ["--json", "--csv"].contains(option)) {
            command.arg("--wide");
        }
        command.args(more).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

pub(crate) fn ended(mut command: Command) -> Ended {
    machine::ended(&mut command)
}

pub(crate) fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Checks the exit code, and that the error line on stderr contains `what`.
pub(crate) fn refused(run: &Ended, code: i32, what: &str) {
    assert_eq!(run.code, code, "{}{}", run.stdout, run.stderr);
    let line = run.stderr.lines().find(|line| line.starts_with("airtcp: ") || line.starts_with("error: "));
    assert!(line.is_some_and(|line| line.contains(what)), "`{what}` is not in: {}", run.stderr);
}
