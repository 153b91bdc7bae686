//! Shared code of the real-time tests. They need root, because they create network namespaces.

#![allow(dead_code, reason = "each test program uses a part of this module")]
#![expect(clippy::disallowed_methods, reason = "the tests wait for another program")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use airlink::netns::Namespace;
use airtcp_testkit::temporary::TempFile;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

pub(crate) const AIRLINK: &str = env!("CARGO_BIN_EXE_airlink");

/// Time after which a test fails that waits for the program.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn namespace() -> Namespace {
    Namespace::create().unwrap_or_else(|error| panic!("this test needs root to create a namespace: {error}"))
}

/// Waits until the file contains a complete line. Returns its text.
pub(crate) fn wait_for_line(path: &str) -> String {
    let line = || fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'));
    wait_for(&format!("a line in {path}"), line).trim().to_owned()
}

pub(crate) fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(start.elapsed() < TIMEOUT, "timed out while waiting for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// An `airlink` process that runs in parallel with the test.
pub(crate) struct Running(Child, [File; 2]);

impl Running {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::spawn(Command::new(AIRLINK).args(args))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        // Use files, because reading a pipe would not end while a leftover process has it open.
        let outputs = ["out", "err"].map(unnamed);
        let [out, err] = outputs.each_ref().map(|file| file.try_clone().unwrap());
        let command = command.env("RUST_LOG", "warn").stdin(Stdio::null());
        Self(command.stdout(out).stderr(err).spawn().unwrap(), outputs)
    }

    pub(crate) fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    pub(crate) fn wait(mut self) -> Output {
        let status = wait_for("the end of airlink", || self.0.try_wait().unwrap());
        let [stdout, stderr] = self.1.each_mut().map(|file| {
            let mut bytes = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut bytes).unwrap();
            bytes
        });
        Output { status, stdout, stderr }
    }
}

/// Creates a file without a name, which disappears when the last process closes it.
fn unnamed(what: &str) -> File {
    let path = TempFile::new(what);
    File::options().read(true).append(true).create_new(true).open(path.path()).unwrap()
}

impl Drop for Running {
    /// A failed assertion must not leave the process running.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs airlink until it ends.
pub(crate) fn airlink(args: &[&str]) -> Output {
    Running::start(args).wait()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Parses the summary of `run --json`, which is the last line of the output.
pub(crate) fn summary(output: &Output) -> Value {
    let text = text(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The names in a directory.
fn names(dir: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The lines of a file that `keep` selects.
fn lines(file: &str, keep: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter(|line| keep(line)).map(str::to_owned).collect()
}

/// The names of airlink's abstract sockets.
fn sockets() -> BTreeSet<String> {
    lines("/proc/thread-self/net/unix", |line| line.contains("@airlink/"))
        .iter()
        .filter_map(|line| line.rsplit(' ').next().map(str::to_owned))
        .collect()
}

/// The names of airlink's files in the directories for temporary files. Those of the tests do not count.
fn files() -> BTreeSet<String> {
    let temporary = std::env::temp_dir().display().to_string();
    [temporary.as_str(), "/run", "/dev/shm"]
        .into_iter()
        .flat_map(names)
        .filter(|name| name.contains("airlink") && !name.contains("airlink-test-"))
        .collect()
}

/// The command lines of other processes that contain `mark`.
fn processes(mark: &str) -> BTreeSet<String> {
    let own = std::process::id().to_string();
    names("/proc")
        .into_iter()
        .filter(|pid| pid.parse::<u32>().is_ok() && *pid != own)
        .map(|pid| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default())
        .map(|line| text(&line).replace('\0', " "))
        .filter(|line| line.contains(mark))
        .collect()
}

/// The resources on this machine that a link could leave behind.
#[derive(Debug)]
pub(crate) struct Resources([(&'static str, BTreeSet<String>); 7]);

impl Resources {
    /// Lists the resources that exist now. Every process that the test starts has `mark` in its command line.
    pub(crate) fn list(mark: &str) -> Self {
        // Other tests run in parallel, so count only resources with the name of a link or with this test's mark.
        let ours = |line: &str| line.contains("airlink");
        let namespaces =
            names("/run/netns").into_iter().filter(|name| !name.starts_with("airtcp-")).collect();
        let routes =
            &lines("/proc/thread-self/net/route", ours) | &lines("/proc/thread-self/net/ipv6_route", ours);
        Self([
            ("namespace", namespaces),
            ("device", lines("/proc/thread-self/net/dev", ours).iter().map(|line| device(line)).collect()),
            ("route", routes),
            ("socket", sockets()),
            ("file", files()),
            ("process", processes(mark)),
            ("mount", lines("/proc/self/mounts", ours)),
        ])
    }

    /// The resources that did not exist before.
    pub(crate) fn added_since(&self, before: &Self) -> Vec<String> {
        std::iter::zip(&self.0, &before.0)
            .flat_map(|((what, now), (_, before))| {
                now.difference(before).map(move |name| format!("{what} {name}"))
            })
            .collect()
    }
}

/// The name of the device, without the counters, which change.
fn device(line: &str) -> String {
    line.split(':').next().unwrap_or_default().trim().to_owned()
}
