//! Helpers for the tests of `airtcp lab`, such as a temporary directory, the command that writes into it, and
//! checks of its results.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use airtcp_testkit::machine::{self, Ended, TempDir, airtcp};
use airtcp_testkit::programs::program;
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

    /// Installs an `airtcp` next to an `airlink` that is this shell script. `$airlink` is the real program.
    pub(crate) fn airtcp_with_airlink(&self, script: &str) -> PathBuf {
        let (airtcp, airlink) = (self.0.join("airtcp"), self.0.join("airlink"));
        fs::copy(program("airtcp"), &airtcp).unwrap();
        let real = program("airlink").canonicalize().unwrap();
        fs::write(&airlink, format!("#!/bin/sh\nairlink='{}'\n{script}\n", real.display())).unwrap();
        fs::set_permissions(&airlink, fs::Permissions::from_mode(0o755)).unwrap();
        airtcp
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

    /// Runs a lab into the directory `out`. It must succeed. Returns its output and its report.
    #[track_caller]
    pub(crate) fn run_lab(&self, more: &[&str]) -> (Ended, Value) {
        let run = succeeded(self.lab("out", more));
        (run, self.report())
    }

    /// The report in the directory `out`.
    pub(crate) fn report(&self) -> Value {
        json(&self.0.join("out/lab.json"))
    }
}

pub(crate) fn ended(mut command: Command) -> Ended {
    machine::ended(&mut command)
}

/// Runs a command to its end. It must succeed.
#[track_caller]
pub(crate) fn succeeded(command: Command) -> Ended {
    let run = ended(command);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    run
}

pub(crate) fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The transfers in a report.
pub(crate) fn transfers(report: &Value) -> &Vec<Value> {
    report["transfers"].as_array().unwrap()
}

/// The senders' rows in a report.
pub(crate) fn rows(report: &Value) -> &Vec<Value> {
    report["summary"].as_array().unwrap()
}

pub(crate) fn number(value: &Value, pointer: &str) -> f64 {
    let number = value.pointer(pointer).and_then(Value::as_f64);
    number.unwrap_or_else(|| panic!("{pointer} is not a number in {value}"))
}

/// Checks the exit code, and that the error line on stderr contains `message`.
#[track_caller]
pub(crate) fn refused(run: &Ended, code: i32, message: &str) {
    assert_eq!(run.code, code, "{}{}", run.stdout, run.stderr);
    let line = run.stderr.lines().find(|line| line.starts_with("airtcp: ") || line.starts_with("error: "));
    assert!(line.is_some_and(|line| line.contains(message)), "`{message}` is not in: {}", run.stderr);
}
