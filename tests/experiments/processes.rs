//! The processes of a lab. Tests of the complete cleanup after any process is killed, of labs that run at
//! the same time, and of `airtcp lab shell`.

#![expect(clippy::disallowed_methods, reason = "another program is waited for")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use airtcp_testkit::machine::{Ended, run};
use airtcp_testkit::sample::size;
use airwire::rng::Stream;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::scratch::{Scratch, refused, succeeded};

/// Limit for every wait, so that a test fails instead of hanging.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// Processes that belong to this lab. `airlink run` has passed them the name of its control socket.
fn processes_of(lab: u32) -> Vec<(i32, String)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let text = |pid: i32, file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let mark = format!("lab-{lab}-");
    pids.filter(|pid| {
        text(*pid, "environ").contains(&format!("AIRLINK_CONTROL={mark}"))
            || text(*pid, "cmdline").contains(&mark)
    })
    .map(|pid| (pid, text(pid, "cmdline")))
    .collect()
}

/// Everything that a run could leave on the machine: devices, routes, named namespaces, mounts, and files in
/// shared directories.
fn machine_state() -> BTreeSet<String> {
    let names = |directory: &str| -> Vec<String> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        // Other tests use different names.
        names
            .filter(|name| name.contains("airlink") || name.contains("lab"))
            .filter(|name| !name.starts_with("airtcp-test-"))
            .collect()
    };
    let mut state = BTreeSet::new();
    let temporary = std::env::temp_dir().display().to_string();
    for directory in ["/sys/class/net", "/run/netns", "/run", &temporary, "/dev/shm"] {
        state.extend(names(directory).into_iter().map(|name| format!("{directory}/{name}")));
    }
    let routes = fs::read_to_string("/proc/net/route").unwrap();
    state.extend(routes.lines().filter(|line| line.contains("airlink")).map(str::to_owned));
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    state.extend(mounts.lines().filter(|line| line.contains("airlink")).map(str::to_owned));
    state
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum LabProcess {
    Lab,
    Emulator,
    Sender,
    Receiver,
}

impl LabProcess {
    /// The ID of the process, once the process exists.
    pub(crate) fn pid(self, lab: u32) -> Option<i32> {
        let matches = |line: &str| match self {
            Self::Lab => false,
            Self::Emulator => line.contains("airlink run"),
            Self::Sender => line.contains("airtcp send"),
            Self::Receiver => line.contains("airtcp sink"),
        };
        match self {
            Self::Lab => Some(lab as i32),
            _ => processes_of(lab).into_iter().find(|(_, line)| matches(line)).map(|(pid, _)| pid),
        }
    }
}

pub(crate) fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(start.elapsed() < WAIT_LIMIT, "timed out waiting for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A process that is killed and reaped even if the test fails.
struct KillOnDrop(Child);

impl KillOnDrop {
    fn read_stderr(&mut self) -> String {
        let mut text = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Interrupts a lab as Ctrl-C does, and waits for its end.
pub(crate) fn interrupt(lab: Child) -> Ended {
    kill(Pid::from_raw(lab.id() as i32), Signal::SIGINT).unwrap();
    Ended::of(lab.wait_with_output().unwrap())
}

#[test]
fn killed_lab_process_leaves_nothing_behind() {
    let scratch = Scratch::new("killed");
    let before = machine_state();
    let mut random = Stream::new(1, "moments");
    for round in 0..size(8, 20) {
        let victim =
            [LabProcess::Lab, LabProcess::Emulator, LabProcess::Sender, LabProcess::Receiver][round % 4];
        let mut command =
            scratch.lab(&format!("out{round}"), &["--recipe", "newreno", "--bytes", "5M", "--runs", "1"]);
        let mut lab = KillOnDrop(command.spawn().unwrap());
        let id = lab.0.id();
        if !matches!(victim, LabProcess::Lab) {
            wait_for(&format!("{victim:?}"), || victim.pid(id));
        }
        thread::sleep(Duration::from_millis(random.below(800)));
        let pid = victim.pid(id).unwrap_or_else(|| panic!("{victim:?} has ended before it was killed"));
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();

        let status = wait_for("the lab's end", || lab.0.try_wait().unwrap());
        if !matches!(victim, LabProcess::Lab) {
            let output = lab.read_stderr();
            assert_eq!(status.code(), Some(1), "{victim:?}: {output}");
            assert!(output.contains("killed") || output.contains("137"), "{victim:?}: {output}");
        }
        wait_for(&format!("the end of all lab processes after {victim:?}: {:?}", processes_of(id)), || {
            processes_of(id).is_empty().then_some(())
        });
        let remains: Vec<_> = machine_state().difference(&before).cloned().collect();
        assert!(remains.is_empty(), "{victim:?} leaves {remains:?}");
    }
    succeeded(scratch.lab("next", &["--recipe", "newreno", "--bytes", "50k", "--runs", "1"]));
}

#[test]
fn stopped_emulator_is_reported_as_stopped() {
    let scratch = Scratch::new("stopped");
    let mut command = scratch.lab("out", &["--recipe", "newreno", "--bytes", "5M", "--runs", "1"]);
    let mut lab = KillOnDrop(command.spawn().unwrap());
    let id = lab.0.id();
    let pid = wait_for("the emulator", || LabProcess::Emulator.pid(id));
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    let status = wait_for("the lab's end", || lab.0.try_wait().unwrap());
    let output = lab.read_stderr();
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(output.contains("airlink was stopped by a signal"), "{output}");
    wait_for("the end of all lab processes", || processes_of(id).is_empty().then_some(()));
}

#[test]
fn concurrent_labs_do_not_interfere() {
    let scratch = Scratch::new("two");
    let start = |name: &str| {
        let more = ["--recipe", "newreno", "--sender", "linux:cubic", "--bytes", "300k", "--runs", "2"];
        scratch.lab(name, &more).spawn().unwrap()
    };
    let labs = [start("one"), start("other")];
    for lab in labs {
        let run = Ended::of(lab.wait_with_output().unwrap());
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    }
}

#[test]
fn lab_shell_opens_on_either_side() {
    let addresses = |side: &str| {
        let shell = ["lab", "shell", side, "--scenario", "lossless", "--"];
        let shell = run(&[&shell[..], &["sh", "-c", "ip -br -4 addr; exit 5"]].concat());
        assert_eq!(shell.code, 5, "{}{}", shell.stdout, shell.stderr);
        shell.stdout.lines().find(|line| line.starts_with("airlink")).unwrap_or_default().to_owned()
    };
    let (fixed, mobile) = (addresses("fixed"), addresses("mobile"));
    assert!(fixed.contains("100.64.") && mobile.contains("100.64.") && fixed != mobile, "{fixed} {mobile}");

    // In a running lab.
    let scratch = Scratch::new("shell");
    let more = ["--recipe", "newreno", "--bytes", "20M", "--runs", "1"];
    let lab = KillOnDrop(scratch.lab("out", &more).spawn().unwrap());
    let id = lab.0.id().to_string();
    wait_for("the sender", || LabProcess::Sender.pid(lab.0.id()));
    let sockets = run(&["lab", "shell", "mobile", "--lab", &id, "--", "ss", "-Htna", "sport", "=", ":9000"]);
    assert!(sockets.stdout.contains(":9000"), "{}{}", sockets.stdout, sockets.stderr);
    // The sender creates its device after its start.
    wait_for("the sender's own device", || {
        let devices = run(&["lab", "shell", "fixed", "--lab", &id, "--", "ip", "-br", "link"]);
        devices.stdout.contains("airtcp0").then_some(())
    });

    refused(&run(&["lab", "shell", "fixed", "--lab", "4194304"]), 1, "process 4194304 has no fixed side");
}
