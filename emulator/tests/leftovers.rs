//! A run removes its processes, namespaces, devices, routes, sockets, files and mounts, however it ends.

mod common;

use std::fs;
use std::sync::{Mutex, PoisonError};

use airtcp_testkit::sample::{is_everything, size};
use airtcp_testkit::temporary::TempDir;
use common::{AIRLINK, Resources, Running, text, wait_for, wait_for_line};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How a run ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// The command exits and leaves child processes behind.
    Normal,
    Signal(Victim, Signal),
}

#[derive(Clone, Copy, Debug)]
enum Victim {
    Airlink,
    /// The first process in the command's namespaces.
    Init,
    Command,
}

const ENDINGS: [Ending; 8] = [
    Ending::Normal,
    Ending::Signal(Victim::Airlink, Signal::SIGINT),
    Ending::Signal(Victim::Airlink, Signal::SIGTERM),
    Ending::Signal(Victim::Airlink, Signal::SIGKILL),
    Ending::Signal(Victim::Init, Signal::SIGKILL),
    Ending::Signal(Victim::Command, Signal::SIGKILL),
    Ending::Signal(Victim::Command, Signal::SIGSEGV),
    Ending::Signal(Victim::Airlink, Signal::SIGHUP),
];

/// Processes with `mark` in their command lines, by their numbers in the outer namespace, oldest first.
fn processes(mark: &str) -> Vec<(i32, String)> {
    let mut found: Vec<(i32, String)> = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid != std::process::id() as i32)
        .map(|pid| (pid, text(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default())))
        .filter(|(_, line)| line.contains(mark))
        .collect();
    found.sort();
    found
}

fn victim(airlink: i32, mark: &str, victim: Victim) -> i32 {
    let all = processes(mark);
    let init = |line: &str| line.contains("\0inside\0");
    let found = match victim {
        Victim::Airlink => Some(airlink),
        Victim::Init => all.iter().find(|(_, line)| init(line)).map(|(pid, _)| *pid),
        Victim::Command => all
            .iter()
            .find(|(pid, line)| {
                *pid != airlink && !init(line) && line.starts_with("sh\0-c\0:") && line.contains("until")
            })
            .map(|(pid, _)| *pid),
    };
    found.unwrap_or_else(|| panic!("no {victim:?} among {all:?}"))
}

/// The command of a run. Its child ignores SIGTERM, SIGHUP and SIGINT, and creates the file `ready`.
fn command(ending: Ending, mark: &str, ready: &str) -> String {
    let end = if matches!(ending, Ending::Normal) { "exit 3" } else { "wait" };
    let stubborn =
        format!("trap \"\" TERM HUP INT; : {mark}; echo up >> {ready}; while :; do sleep 1000; done");
    format!(": {mark}; setsid sh -c '{stubborn}' & until [ -s {ready} ]; do sleep 0.01; done; {end}")
}

/// The exit code that a run must have.
fn exit_code(ending: Ending) -> Option<i32> {
    match ending {
        Ending::Normal => Some(3),
        Ending::Signal(Victim::Airlink, Signal::SIGKILL) => None,
        // The usual exit code of a shell for a process that a signal ended.
        Ending::Signal(_, signal) => Some(128 + signal as i32),
    }
}

/// Ends one run and waits until all its resources are removed. The run has a server, and a grandchild in its own
/// session that ignores SIGTERM and SIGHUP. In odd rounds, its control socket is a file.
fn end_run(ending: Ending, round: usize) {
    // A separate namespace hides the sockets, devices and routes of other links on this machine.
    unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace for this test: it needs root");
    let mark = format!("leftover-{}-{round}", std::process::id());
    let before = Resources::list(&mark);
    let directory = TempDir::new(&mark);
    let (ready, control) = (directory.path("ready"), directory.path("control"));
    let command = command(ending, &mark, &ready);
    let server = format!(": {mark}; sleep 1000");
    let by_name = round.is_multiple_of(2);
    let mut args = vec!["run", "-s", "lossless", "--server", &server];
    if !by_name {
        args.extend(["--control", &control]);
    }
    args.extend(["--", "sh", "-c", &command]);
    let run = Running::start(&args);
    assert_eq!(wait_for_line(&ready), "up");
    if let Ending::Signal(who, signal) = ending {
        kill(Pid::from_raw(victim(run.pid(), &mark, who)), signal).unwrap();
    }
    let output = run.wait();
    assert_eq!(output.status.code(), exit_code(ending), "{ending:?}: {}", text(&output.stderr));
    if matches!(ending, Ending::Signal(Victim::Airlink, Signal::SIGKILL)) && !by_name {
        // A killed process cannot remove its socket file. The next run with the same path replaces the file.
        let next = common::airlink(&["run", "-s", "lossless", "--control", &control, "--", "true"]);
        assert!(next.status.success(), "{}", text(&next.stderr));
        assert!(!fs::exists(&control).unwrap());
    }
    drop(directory);
    wait_for(&format!("the removal of all resources after {ending:?}"), || {
        let left = Resources::list(&mark).added_since(&before);
        if !left.is_empty() {
            println!("not removed: {left:?}");
        }
        left.is_empty().then_some(())
    });
}

/// The tests inspect the whole machine, so they run one after another.
static MACHINE: Mutex<()> = Mutex::new(());

#[test]
fn run_leaves_nothing_behind_for_any_ending() {
    let _guard = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    for repetition in 0..size(2, 3) {
        for (index, ending) in ENDINGS.into_iter().enumerate() {
            // Even rounds have an abstract control socket, odd rounds a socket file. The difference matters most if
            // airlink itself is killed.
            let is_killed = matches!(ending, Ending::Signal(Victim::Airlink, Signal::SIGKILL));
            if repetition == 1 && !is_killed && !is_everything() {
                continue;
            }
            end_run(ending, repetition * 101 + index);
        }
    }
}

#[test]
fn killed_link_leaves_nothing_and_frees_its_name() {
    let _guard = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let name = format!("standing-{}", std::process::id());
    let up = ["up", "--name", &name, "-s", "lossless"];
    for _ in 0..3 {
        // The outer run provides the namespaces for the standing link and removes them at the end.
        let script = format!(
            "set -e; standing() {{ {AIRLINK} status | grep -vx \"$AIRLINK_CONTROL\" || true; }}; \
             {AIRLINK} {}; test \"$(standing)\" = {name}; \
             kill -9 $(pgrep -f -- '--detach$'); while {AIRLINK} status {name} 2>&-; do :; done; \
             {AIRLINK} {}; {AIRLINK} down {name}; test -z \"$(standing)\"; \
             ! grep airlink1 /proc/net/dev",
            up.join(" "),
            up.join(" ")
        );
        let output = common::airlink(&["run", "-s", "lossless", "--", "sh", "-c", &script]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}
