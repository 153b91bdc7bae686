//! What the tests of the program in real time share: starting it, killing it, and looking for what is left.

#![allow(dead_code, reason = "each test program uses its part")]
#![expect(clippy::disallowed_methods, reason = "another program is waited for")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use airtcp_testkit::temporary::{TempDir, TempFile};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

pub(crate) const AIRLINK: &str = env!("CARGO_BIN_EXE_airlink");

/// A test that hangs is worse than one that fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A directory that is removed at the end.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        Self(TempDir::new(name))
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path(name)
    }

    /// The file's text, as soon as there is a whole line.
    pub(crate) fn line(&self, name: &str) -> String {
        let path = self.path(name);
        wait_for(&format!("a line in {path}"), || {
            fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))
        })
        .trim()
        .to_owned()
    }
}

pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// An `airlink` that runs beside the test.
pub(crate) struct Running(Child, [File; 2]);

impl Running {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::spawn(Command::new(AIRLINK).args(args))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        // Files: of a pipe there would be no end as long as somebody is left behind who has it.
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

/// A file that is gone with the last who has it open.
fn unnamed(what: &str) -> File {
    let path = TempFile::new(what);
    File::options().read(true).append(true).create_new(true).open(path.path()).unwrap()
}

impl Drop for Running {
    /// A failed assertion must not leave it running.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs it to its end.
pub(crate) fn airlink(args: &[&str]) -> Output {
    Running::start(args).wait()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Of `run --json`: the last line of the output.
pub(crate) fn summary(output: &Output) -> Value {
    let text = text(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Everything that a link could leave behind on the machine.
#[derive(Debug)]
pub(crate) struct Traces([(&'static str, BTreeSet<String>); 7]);

impl Traces {
    /// `mark` is in the command line of everything that the test has started.
    pub(crate) fn look(mark: &str) -> Self {
        let names = |dir: &str| -> BTreeSet<String> {
            let entries = fs::read_dir(dir).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let lines = |file: &str, keep: &dyn Fn(&str) -> bool| -> BTreeSet<String> {
            let text = fs::read_to_string(file).unwrap_or_default();
            text.lines().filter(|line| keep(line)).map(str::to_owned).collect()
        };
        let own = std::process::id().to_string();
        let processes = names("/proc").into_iter().filter(|pid| pid.parse::<u32>().is_ok() && *pid != own);
        let command_line = |pid: &String| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            text(&line).replace('\0', " ")
        };
        // Others' tests run beside this one: only what carries a link's name counts, or this test's mark.
        let ours = |line: &str| line.contains("airlink");
        let namespaces =
            names("/run/netns").into_iter().filter(|name| !name.starts_with("airtcp-")).collect();
        let routes =
            &lines("/proc/thread-self/net/route", &ours) | &lines("/proc/thread-self/net/ipv6_route", &ours);
        let sockets = lines("/proc/thread-self/net/unix", &|line| line.contains("@airlink/"))
            .iter()
            .filter_map(|line| line.rsplit(' ').next().map(str::to_owned))
            .collect();
        let temporary = std::env::temp_dir().display().to_string();
        let files = [temporary.as_str(), "/run", "/dev/shm"]
            .into_iter()
            .flat_map(names)
            .filter(|name| name.contains("airlink") && !name.contains("airlink-test-"))
            .collect();
        let processes = processes.map(|pid| command_line(&pid)).filter(|line| line.contains(mark)).collect();
        Self([
            ("namespace", namespaces),
            ("device", lines("/proc/thread-self/net/dev", &ours).iter().map(|line| device(line)).collect()),
            ("route", routes),
            ("socket", sockets),
            ("file", files),
            ("process", processes),
            ("mount", lines("/proc/self/mounts", &ours)),
        ])
    }

    /// What is there that was not there before.
    pub(crate) fn beyond(&self, before: &Self) -> Vec<String> {
        std::iter::zip(&self.0, &before.0)
            .flat_map(|((what, now), (_, before))| {
                now.difference(before).map(move |one| format!("{what} {one}"))
            })
            .collect()
    }
}

/// The name only: the counters go on.
fn device(line: &str) -> String {
    line.split(':').next().unwrap_or_default().trim().to_owned()
}
