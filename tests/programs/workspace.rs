//! A temporary directory in which the tests run programs.

use std::fs;
use std::process::{Command, Output, Stdio};

use airtcp_testkit::machine::{Ended, TempDir};
use airtcp_testkit::programs::{program, repository};

pub(crate) struct Workspace(pub(crate) TempDir);

impl Workspace {
    pub(crate) fn new(name: &str) -> Self {
        Self(TempDir::new(name))
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), content).unwrap();
    }

    /// Copies a capture to `run.pcap`.
    pub(crate) fn add_capture(&self) {
        fs::copy(repository().join("pcaps/newreno.pcap"), self.0.join("run.pcap")).unwrap();
    }

    pub(crate) fn make_fifo(&self, name: &str) {
        assert!(Command::new("mkfifo").arg(self.0.join(name)).status().unwrap().success());
    }

    /// Returns a command for a program and its arguments, to be started in this directory.
    pub(crate) fn command<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut words = words.into_iter();
        let mut command = Command::new(program(words.next().unwrap()));
        command.args(words).current_dir(&self.0).env_remove("RUST_LOG").stdin(Stdio::null());
        command
    }

    pub(crate) fn output(&self, words: &[&str]) -> Output {
        self.command(words.iter().copied()).output().unwrap()
    }

    /// Runs a command line.
    pub(crate) fn run(&self, line: &str) -> Ended {
        Ended::of(self.command(line.split_whitespace()).output().unwrap())
    }
}
