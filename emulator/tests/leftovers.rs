//! However a run ends, nothing of it is left: no process, namespace, device, route, socket, file or mount.
//!
//! These tests make network namespaces and fail, saying so, when they are not run as root.

mod lab;

use std::fs;
use std::sync::{Mutex, PoisonError};

use airtcp_testkit::sample::{is_everything, size};
use lab::{AIRLINK, Running, Scratch, Traces, text, wait_for};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Whom the test kills, and how.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// The command ends by itself, and leaves others behind.
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

const DEATHS: [Death; 8] = [
    Death::Normal,
    Death::Signal(Victim::Airlink, Signal::SIGINT),
    Death::Signal(Victim::Airlink, Signal::SIGTERM),
    Death::Signal(Victim::Airlink, Signal::SIGKILL),
    Death::Signal(Victim::Init, Signal::SIGKILL),
    Death::Signal(Victim::Command, Signal::SIGKILL),
    Death::Signal(Victim::Command, Signal::SIGSEGV),
    Death::Signal(Victim::Airlink, Signal::SIGHUP),
];

/// The outer process numbers of everything that was started with `mark`, the oldest first.
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
    found.unwrap_or_else(|| panic!("there is no {victim:?} in {all:?}"))
}

/// One run with a server, a grandchild that ignores SIGTERM and SIGHUP in a session of its own, and a control
/// socket that is a file.
fn die(death: Death, round: usize) {
    // Links that others have on this machine have their sockets, devices and routes elsewhere.
    unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace for this test: it needs root");
    let mark = format!("leftover-{}-{round}", std::process::id());
    let before = Traces::look(&mark);
    let scratch = Scratch::new(&mark);
    let (ready, control) = (scratch.path("ready"), scratch.path("control"));
    let end = if matches!(death, Death::Normal) { "exit 3" } else { "wait" };
    let stubborn =
        format!("trap \"\" TERM HUP INT; : {mark}; echo up >> {ready}; while :; do sleep 1000; done");
    let command =
        format!(": {mark}; setsid sh -c '{stubborn}' & until [ -s {ready} ]; do sleep 0.01; done; {end}");
    let server = format!(": {mark}; sleep 1000");
    let by_name = round.is_multiple_of(2);
    let mut args = vec!["run", "-s", "lossless", "--server", &server];
    if !by_name {
        args.extend(["--control", &control]);
    }
    args.extend(["--", "sh", "-c", &command]);
    let run = Running::start(&args);
    assert_eq!(scratch.line("ready"), "up");
    if let Death::Signal(who, signal) = death {
        kill(Pid::from_raw(victim(run.pid(), &mark, who)), signal).unwrap();
    }
    let output = run.wait();
    let expected = match death {
        Death::Normal => Some(3),
        Death::Signal(Victim::Airlink, Signal::SIGKILL) => None,
        // `sh` dies of what it is sent, except of SIGINT while it waits in the background.
        Death::Signal(_, signal) => Some(128 + signal as i32),
    };
    assert_eq!(output.status.code(), expected, "{death:?}: {}", text(&output.stderr));
    if matches!(death, Death::Signal(Victim::Airlink, Signal::SIGKILL)) && !by_name {
        // A file that a killed process cannot remove is where the user asked for it; the next run replaces it.
        let next = lab::airlink(&["run", "-s", "lossless", "--control", &control, "--", "true"]);
        assert!(next.status.success(), "{}", text(&next.stderr));
        assert!(!fs::exists(&control).unwrap());
    }
    drop(scratch);
    wait_for(&format!("nothing to be left after {death:?}"), || {
        let left = Traces::look(&mark).beyond(&before);
        if !left.is_empty() {
            println!("still there: {left:?}");
        }
        left.is_empty().then_some(())
    });
}

/// The tests look at the whole machine, so they take turns.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn nothing_is_left_however_a_run_ends() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for repetition in 0..size(2, 3) {
        for (index, death) in DEATHS.into_iter().enumerate() {
            // An even round has its control socket under a name, an odd one in a file. That matters most if airlink
            // itself is killed.
            let is_killed = matches!(death, Death::Signal(Victim::Airlink, Signal::SIGKILL));
            if repetition == 1 && !is_killed && !is_everything() {
                continue;
            }
            die(death, repetition * 101 + index);
        }
    }
}

#[test]
fn a_standing_link_that_is_killed_leaves_nothing_and_its_name_is_free() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let name = format!("standing-{}", std::process::id());
    let up = ["up", "--name", &name, "-s", "lossless"];
    for _ in 0..3 {
        // The inner program ends at once, and the link stays: in the namespaces of a run, which end with it.
        let script = format!(
            "set -e; standing() {{ {AIRLINK} status | grep -vx \"$AIRLINK_CONTROL\" || true; }}; \
             {AIRLINK} {}; test \"$(standing)\" = {name}; \
             kill -9 $(pgrep -f -- '--detach$'); while {AIRLINK} status {name} 2>&-; do :; done; \
             {AIRLINK} {}; {AIRLINK} down {name}; test -z \"$(standing)\"; \
             ! grep airlink1 /proc/net/dev",
            up.join(" "),
            up.join(" ")
        );
        let output = lab::airlink(&["run", "-s", "lossless", "--", "sh", "-c", &script]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}
