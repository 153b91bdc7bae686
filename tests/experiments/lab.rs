//! `airtcp lab` as users run it: the table, the files, and the cleanup after any of its processes is killed.

#![expect(clippy::disallowed_methods, reason = "another program is waited for")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use airtcp_testkit::machine::{Ended, airtcp};
use airtcp_testkit::programs::program;
use airtcp_testkit::sample::size;
use airwire::rng::Stream;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::scratch::{Scratch, ended, json, refused};

/// Limit for every wait, so that a test fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn recipes_and_kernel_senders_share_one_table() {
    let scratch = Scratch::new("table");
    let senders = [
        "--recipe",
        "newreno",
        "--recipe",
        "sack+sifest+liw",
        "--sender",
        "linux:cubic",
        "--sender",
        "linux:reno",
    ];
    let more = [&senders[..], &["--runs", "2", "--bytes", "300k", "--jobs", "4"]].concat();
    let run = ended(scratch.lab("out", &more));
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("[8/8]") && run.stderr.contains("left"), "{}", run.stderr);

    let report = json(&scratch.0.join("out/lab.json"));
    // A busy machine may disturb transfers, which then do not count.
    let valid = |sender: &str| {
        let transfers = report["transfers"].as_array().unwrap().iter();
        transfers.filter(|transfer| transfer["sender"] == sender && transfer["invalid"].is_null()).count()
    };
    for sender in ["newreno", "sack+sifest+liw", "linux:cubic", "linux:reno"] {
        let end = format!("2/2  {}", valid(sender));
        let is_row = |line: &str| line.starts_with(sender) && line.ends_with(&end);
        assert!(run.stdout.lines().any(is_row), "{sender}: {}", run.stdout);
    }
    assert!(report["command"].as_str().unwrap().contains("--recipe sack+sifest+liw"), "{report}");
    assert_eq!(report["transfers"].as_array().unwrap().len(), 8);
    for transfer in report["transfers"].as_array().unwrap() {
        assert_eq!(transfer["bytes"], 300_000, "{transfer}");
        assert_eq!(transfer["sent"], transfer["received"]["sha256"], "{transfer}");
    }
    // Our senders use the profile `linux`, because the command line does not name one.
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!(lines[0], "recipes with profile linux", "{}", run.stdout);
    let unlike = report["kernel_differences"].as_str().unwrap();
    assert!(unlike.starts_with("differences from the kernel senders: all recipes lack"), "{unlike}");
    assert!(unlike.contains("RACK-TLP") && !unlike.contains("profile"), "{unlike}");
    assert_eq!(lines.iter().filter(|line| **line == unlike).count(), 1, "{}", run.stdout);
    for part in ["summary", "transfers"] {
        for one in report[part].as_array().unwrap() {
            let ours = !one["sender"].as_str().unwrap().starts_with("linux:");
            assert_eq!(one["profile"].as_str(), ours.then_some("linux"), "{one}");
        }
    }
    // 2 % of more than 200 segments are lost, so every sender has retransmissions.
    let counts = |row: &&Value| valid(row["sender"].as_str().unwrap()) > 0;
    for row in report["summary"].as_array().unwrap().iter().filter(counts) {
        assert!(row["resent_packets"].as_f64().unwrap() >= 1.0, "{row}");
        assert!(row["fast"].as_f64().unwrap() + row["timeout"].as_f64().unwrap() >= 1.0, "{row}");
    }
    let directory = scratch.0.join("out/01-sack+sifest+liw");
    for file in [
        "fixed.pcap",
        "mobile.pcap",
        "annotated.pcapng",
        "airlink.json",
        "decisions.jsonl",
        "sender.jsonl",
        "receiver.jsonl",
    ] {
        assert!(fs::metadata(directory.join(file)).unwrap().len() > 0, "{file}");
    }
    let log = fs::read_to_string(directory.join("sender.jsonl")).unwrap();
    let start: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&start["data"]["recipe"], &start["data"]["profile"]),
        (&"sack+sifest+liw".into(), &"linux".into())
    );
    let cubic = fs::read_to_string(scratch.0.join("out/01-linux-cubic/sender.jsonl")).unwrap();
    assert!(cubic.contains("TCP_INFO") || cubic.contains("cubic"), "{cubic}");
}

#[test]
fn recipe_without_its_information_is_reported() {
    let scratch = Scratch::new("notices");
    let mut scenario = fs::read_to_string(scratch.path("lossy.toml")).unwrap();
    scenario += "[[stage]]\nkind = \"station\"\n";
    fs::write(scratch.path("lossy.toml"), scenario).unwrap();
    let recipes = ["--recipe", "reno", "--recipe", "etcp", "--recipe", "sack+eifel"];
    let more = ["--receiver", "linux-bare", "--runs", "1", "--bytes", "50k", "--jobs", "3"];
    let run = ended(scratch.lab("out", &[&recipes[..], &more].concat()));
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    for foreseen in [
        "etcp: transit-marks: no transit marks will arrive: no `station` of the path",
        "sack+eifel: sack: SACK will not be negotiated: the receiver does not accept it",
        "sack+eifel: eifel: timestamps will not be negotiated: the receiver does not accept them",
    ] {
        assert!(run.stderr.contains(foreseen), "{foreseen}: {}", run.stderr);
    }
    let marks = "transit-marks: 0 transit marks received; it works like `always-congestion`";
    let expected = [
        vec![],
        vec![marks],
        vec![
            "sack: SACK was not negotiated; it works like `newreno`",
            "eifel: timestamps were not negotiated; it works like `never`",
        ],
    ];
    let report = json(&scratch.0.join("out/lab.json"));
    for (at, notices) in expected.iter().enumerate() {
        let (row, transfer) = (&report["summary"][at], &report["transfers"][at]);
        let kept = if notices.is_empty() { Value::Null } else { serde_json::json!(notices) };
        assert_eq!((&row["notices"], &transfer["connections"][0]["notices"]), (&kept, &kept), "{row}");
        for notice in notices {
            let line = format!("{}: {notice}", row["sender"].as_str().unwrap());
            assert!(run.stdout.lines().any(|shown| shown == line), "{line}: {}", run.stdout);
        }
    }
    let output = scratch.path("out");
    let csv = ended(piped(&["lab", "show", &output, "--csv"])).stdout;
    let [head, reno, etcp, _] = csv.lines().collect::<Vec<_>>().try_into().unwrap();
    assert!(head.ends_with(",transfers,n,notices") && reno.ends_with(",1,1,1,"), "{csv}");
    assert!(etcp.ends_with(&format!(",1,1,1,{marks}")), "{csv}");
    let page = scratch.path("page.html");
    let made = ended(piped(&["report", &output, "-o", &page]));
    assert_eq!(made.code, 0, "{}", made.stderr);
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains(&format!("<dd>etcp: {marks}</dd>")), "the page lacks the notice");
}

/// `airtcp` with these arguments, whose output is read.
fn piped(arguments: &[&str]) -> Command {
    let mut command = airtcp(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn recipe_with_two_profiles_yields_two_senders() {
    let scratch = Scratch::new("profiles");
    let more = ["--recipe", "newreno", "--recipe", "newreno@linux", "--profile", "ns2", "--virtual"];
    let run =
        ended(scratch.lab("out", &[&more[..], &["--runs", "1", "--bytes", "100k", "--jobs", "2"]].concat()));
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    // ns-2's agents do not support timestamps, and Linux does.
    for (name, profile, timestamps) in [("newreno@ns2", "ns2", false), ("newreno@linux", "linux", true)] {
        let rows = run.stdout.lines().filter(|line| line.starts_with(&format!("{name} "))).count();
        assert_eq!(rows, 2, "one row in the lab's table and one in the comparison: {}", run.stdout);
        let directory = scratch.0.join("out").join(format!("01-{name}"));
        let log = fs::read_to_string(directory.join("sender.jsonl")).unwrap();
        let end: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        assert_eq!((&end["data"]["recipe"], &end["data"]["profile"]), (&"newreno".into(), &profile.into()));
        assert_eq!(end["data"]["handshake"]["timestamps"], timestamps, "{end}");
    }
    assert!(
        !run.stdout.contains("recipes with profile") && !run.stdout.contains("differences from"),
        "{}",
        run.stdout
    );
    let report = json(&scratch.0.join("out/lab.json"));
    let profiles: Vec<_> = report["summary"].as_array().unwrap().iter().map(|row| &row["profile"]).collect();
    assert_eq!(profiles, ["ns2", "linux"]);
    assert!(report["command"].as_str().unwrap().contains("--profile ns2"), "{report}");
    // A file from an older version, which has no profiles, can still be read.
    let old = serde_json::to_string(&without_profiles(report)).unwrap();
    fs::write(scratch.0.join("out/lab.json"), old).unwrap();
    let page = scratch.path("page.html");
    let run = ended(airtcp(&["report", &scratch.path("out"), "-o", &page]));
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// Changes a `lab.json` into one from before profiles were added.
fn without_profiles(mut report: Value) -> Value {
    for newer in ["kernel_differences", "in_virtual_time"] {
        report.as_object_mut().unwrap().remove(newer);
    }
    for part in ["summary", "transfers"] {
        for one in report[part].as_array_mut().unwrap() {
            one.as_object_mut().unwrap().remove("profile");
        }
    }
    report
}

#[test]
fn path_analysis_of_captures_matches_airlink_events() {
    let scratch = Scratch::new("path");
    let more = ["--recipe", "newreno+judges", "--runs", "1", "--bytes", "400k", "--events"];
    let run = ended(scratch.lab("out", &more));
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let directory = scratch.0.join("out/01-newreno+judges");
    let mut command = airtcp(&["analyze", "--json", "--path", "--judges"]);
    for (option, file) in [
        ("", "fixed.pcap"),
        ("", "mobile.pcap"),
        ("--truth", "events.jsonl"),
        ("--sender-log", "sender.jsonl"),
    ] {
        command.args((!option.is_empty()).then_some(option)).arg(directory.join(file));
    }
    let run = ended(command);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let path = &document["path"];
    let truth = &path["truth"];
    let count = |name: &str| truth[name].as_u64().unwrap();
    assert!(count("losses_found") > 0 && count("arrivals_found") > 300, "{truth}");
    assert_eq!((count("unknown"), count("losses_missed"), count("false_losses")), (0, 0, 0), "{truth}");
    let data = &path["connections"][0]["directions"][0]["data"];
    assert_eq!(data["lost_by_radio"], data["lost"], "{data}");
    let counts = path["sender"]["counts"].as_array().unwrap();
    let again = counts.iter().find(|count| count["what"] == "retransmitted packets").unwrap();
    assert_eq!(again["sender"], again["capture"], "{again}");
    assert!(path["judges"]["vegas"]["radio"].is_object(), "{path}");
}

/// The retransmissions of a kernel sender that the captures show, and their causes, agree with the kernel's
/// counters.
#[test]
fn kernel_sender_retransmissions_in_captures_match_kernel_counters() {
    let scratch = Scratch::new("counted");
    let senders = ["--sender", "linux:cubic", "--sender", "linux:reno"];
    let run = ended(
        scratch.lab("out", &[&senders[..], &["--runs", "2", "--bytes", "600k", "--jobs", "2"]].concat()),
    );
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let mut fast = 0;
    for name in ["01-linux-cubic", "02-linux-cubic", "01-linux-reno", "02-linux-reno"] {
        let directory = scratch.0.join("out").join(name);
        let log = fs::read_to_string(directory.join("sender.jsonl")).unwrap();
        let end: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        let kernel = |counter: &str| end["data"]["kernel"][counter].as_u64().unwrap_or(0);
        let mut command = airtcp(&["analyze", "--json"]);
        command.arg(directory.join("fixed.pcap"));
        let document: Value = serde_json::from_str(&ended(command).stdout).unwrap();
        let direction = &document["captures"][0]["connections"][0]["directions"][0];
        let again = &direction["retransmissions"];
        let found = |field: &str| again[field].as_u64().unwrap();
        assert_eq!(found("packets") + found("syns"), kernel("RetransSegs"), "{name}: {again}");
        // The causes are compared only if no timer has expired: a tail loss probe can come as late as a
        // timeout, and looks like one.
        if kernel("TCPTimeouts") + kernel("TCPLossProbes") == 0 {
            assert_eq!(found("fast"), kernel("TCPFastRetrans"), "{name}: {again}");
            fast += found("fast");
        }
    }
    assert!(fast > 0, "2 % of about 1600 segments are lost");
}

#[test]
fn matrix_reports_unexpected_results_and_skipped_receivers() {
    let scratch = Scratch::new("matrix");
    let expected = scratch.path("expected.toml");
    fs::write(&expected, "[[deviation]]\nreceiver = \"linux-8k\"\nreason = \"a test\"\n").unwrap();
    let (output, stacks) = (scratch.path("out"), scratch.path("stacks"));
    let arguments = ["lab", "matrix", "--receiver", "linux", "--receiver", "linux-8k", "--receiver", "lwip"];
    let more = ["--recipe", "sack", "--scenario", "lossless", "--bytes", "50k", "--expected", &expected];
    let run = ended({
        let mut command = airtcp(&arguments);
        command.args(more).args(["--output", &output, "--stacks", &stacks]);
        command
    });
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("skipped: lwip: the receiver `lwip` is not built"), "{}", run.stderr);
    assert!(run.stdout.contains("PASSES") && run.stdout.contains("skipped"), "{}", run.stdout);
    assert!(run.stdout.contains("lossless, linux-8k, sack: passed, although"), "{}", run.stdout);
    let cells = json(&scratch.0.join("out/matrix.json"))["cells"].clone();
    let verdicts: Vec<_> = cells.as_array().unwrap().iter().map(|cell| cell["verdict"].clone()).collect();
    assert_eq!(verdicts, ["passed", "passed-unexpectedly", "skipped"]);
    assert!(!run.stdout.contains("\npassed "), "{}", run.stdout);

    let run = ended({
        let mut command = airtcp(&["lab", "matrix", "--receiver", "linux", "--receiver", "lwip"]);
        let output = scratch.path("good");
        command.args(more).args(["--output", &output, "--stacks", &stacks]);
        command
    });
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert_eq!(run.stdout.lines().last(), Some("passed 1 of 1, 1 skipped"));
}

// ----- killed processes -----

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
        let named = entries.filter_map(|entry| entry.file_name().into_string().ok());
        // Other tests use different names.
        named
            .filter(|name| name.contains("airlink") || name.contains("lab"))
            .filter(|name| !name.starts_with("airtcp-test-"))
            .collect()
    };
    let mut machine_state = BTreeSet::new();
    let temporary = std::env::temp_dir().display().to_string();
    for directory in ["/sys/class/net", "/run/netns", "/run", &temporary, "/dev/shm"] {
        machine_state.extend(names(directory).into_iter().map(|name| format!("{directory}/{name}")));
    }
    let routes = fs::read_to_string("/proc/net/route").unwrap();
    machine_state.extend(routes.lines().filter(|line| line.contains("airlink")).map(str::to_owned));
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    machine_state.extend(mounts.lines().filter(|line| line.contains("airlink")).map(str::to_owned));
    machine_state
}

#[derive(Clone, Copy, Debug)]
enum Victim {
    Lab,
    Emulator,
    Sender,
    Receiver,
}

impl Victim {
    fn find(self, lab: u32) -> Option<i32> {
        let is_it = |line: &str| match self {
            Self::Lab => false,
            Self::Emulator => line.contains("airlink run"),
            Self::Sender => line.contains("airtcp send"),
            Self::Receiver => line.contains("airtcp sink"),
        };
        match self {
            Self::Lab => Some(lab as i32),
            _ => processes_of(lab).into_iter().find(|(_, line)| is_it(line)).map(|(pid, _)| pid),
        }
    }
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "timed out waiting for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Kills and reaps the process, even if the test fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn killed_lab_process_leaves_nothing_behind() {
    let scratch = Scratch::new("killed");
    let before = machine_state();
    let mut draw = Stream::new(1, "moments");
    for round in 0..size(8, 20) {
        let victim = [Victim::Lab, Victim::Emulator, Victim::Sender, Victim::Receiver][round % 4];
        let mut command =
            scratch.lab(&format!("out{round}"), &["--recipe", "newreno", "--bytes", "5M", "--runs", "1"]);
        let mut lab = Killed(command.spawn().unwrap());
        let id = lab.0.id();
        if !matches!(victim, Victim::Lab) {
            wait_for(&format!("{victim:?}"), || victim.find(id));
        }
        thread::sleep(Duration::from_millis(draw.below(800)));
        let pid = victim.find(id).unwrap_or_else(|| panic!("{victim:?} has ended before it was killed"));
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();

        let status = wait_for("the lab's end", || lab.0.try_wait().unwrap());
        if !matches!(victim, Victim::Lab) {
            let mut output = String::new();
            lab.0.stderr.take().unwrap().read_to_string(&mut output).unwrap();
            assert_eq!(status.code(), Some(1), "{victim:?}: {output}");
            assert!(output.contains("killed") || output.contains("137"), "{victim:?}: {output}");
        }
        wait_for(&format!("the end of all lab processes after {victim:?}: {:?}", processes_of(id)), || {
            processes_of(id).is_empty().then_some(())
        });
        let left: Vec<_> = machine_state().difference(&before).cloned().collect();
        assert!(left.is_empty(), "{victim:?} leaves {left:?}");
    }
    let next = ended(scratch.lab("next", &["--recipe", "newreno", "--bytes", "50k", "--runs", "1"]));
    assert_eq!(next.code, 0, "{}{}", next.stdout, next.stderr);
}

#[test]
fn stopped_emulator_is_reported_as_stopped() {
    let scratch = Scratch::new("stopped");
    let mut command = scratch.lab("out", &["--recipe", "newreno", "--bytes", "5M", "--runs", "1"]);
    let mut lab = Killed(command.spawn().unwrap());
    let id = lab.0.id();
    let pid = wait_for("the emulator", || Victim::Emulator.find(id));
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    let status = wait_for("the lab's end", || lab.0.try_wait().unwrap());
    let mut output = String::new();
    lab.0.stderr.take().unwrap().read_to_string(&mut output).unwrap();
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

// ----- resumed labs -----

/// Returns the number of rounds in `lab.json`, which is complete JSON at any time.
fn rounds(scratch: &Scratch) -> u64 {
    let report = json(&scratch.0.join("out/lab.json"));
    let (rounds, transfers) = (report["rounds"].as_u64().unwrap(), report["transfers"].as_array().unwrap());
    assert_eq!(transfers.len() as u64, 2 * rounds, "{report}");
    rounds
}

#[test]
fn interrupted_lab_shows_results_and_resumes() {
    let scratch = Scratch::new("goes-on");
    let lab = |runs: &str, more: &[&str]| {
        let senders = ["--recipe", "newreno", "--recipe", "sack", "--bytes", "50k", "--runs", runs];
        scratch.lab("out", &[&senders[..], more].concat())
    };
    let running = lab("500", &["--jobs", "2"]).spawn().unwrap();
    let until = Instant::now() + PATIENCE;
    while !scratch.0.join("out/lab.json").exists() || rounds(&scratch) < 2 {
        assert!(Instant::now() < until, "timed out waiting for two complete rounds");
        thread::sleep(Duration::from_millis(20));
    }
    kill(Pid::from_raw(running.id() as i32), Signal::SIGINT).unwrap();
    let stopped = Ended::of(running.wait_with_output().unwrap());
    let kept = rounds(&scratch);
    assert_eq!(stopped.code, 130, "{}{}", stopped.stdout, stopped.stderr);
    assert!(stopped.stderr.contains(&format!("Complete rounds: {kept}")), "{}", stopped.stderr);
    assert!(
        stopped.stdout.lines().any(|line| line.contains(&format!(" {kept}/{kept} "))),
        "{}",
        stopped.stdout
    );
    let first = json(&scratch.0.join("out/lab.json"))["transfers"][0].clone();

    // Interrupt the lab again before another round is complete.
    let next = scratch.0.join(format!("out/{:02}-newreno", kept + 1));
    // Processes of the first lab may still write into this directory.
    wait_for("the removal of the interrupted round", || {
        let _ = fs::remove_dir_all(&next);
        (!next.exists()).then_some(())
    });
    let running = lab("500", &[]).spawn().unwrap();
    wait_for("the next round", || next.exists().then_some(()));
    kill(Pid::from_raw(running.id() as i32), Signal::SIGINT).unwrap();
    let stopped = Ended::of(running.wait_with_output().unwrap());
    let kept = rounds(&scratch);
    assert!(stopped.stderr.contains(&format!("Complete rounds: {kept}")), "{}", stopped.stderr);

    let all = (kept + 2).to_string();
    let grown = ended(lab(&all, &[]));
    assert_eq!((grown.code, rounds(&scratch)), (0, kept + 2), "{}{}", grown.stdout, grown.stderr);
    assert!(grown.stderr.contains("[4/4]"), "only the missing transfers run: {}", grown.stderr);
    let report = json(&scratch.0.join("out/lab.json"));
    assert_eq!(report["transfers"][0], first);
    let seeds = report["transfers"].as_array().unwrap().iter().map(|it| it["seed"].as_u64().unwrap());
    assert!(seeds.eq((1..=kept + 2).flat_map(|seed| [seed, seed])), "each seed has one transfer per sender");

    let text = || fs::read_to_string(scratch.0.join("out/lab.json")).unwrap();
    let before = text();
    let again = ended(lab(&all, &["--jobs", "3"]));
    assert_eq!((again.code, again.stdout), (0, grown.stdout.clone()), "no transfer was missing");
    assert_eq!(text(), before, "a lab without new transfers leaves its file unchanged");
    let respelt = ["--recipe", "three-dupacks+newreno", "--recipe", "sack", "--bytes", "50k", "--runs", &all];
    let respelt = ended(scratch.lab("out", &respelt));
    assert_eq!((respelt.code, respelt.stdout), (0, grown.stdout), "{}", respelt.stderr);
    for (changed, what) in [
        (&["--seed", "7"], "its first seed is 1"),
        (&["--recipe", "reno"], "its senders are newreno, sack"),
        (&["--receiver", "linux-bare"], "its receiver is linux"),
        (&["--set", "link.both.rate=1Mbit"], "its scenario differs"),
    ] {
        let run = ended(lab(&all, changed));
        refused(&run, 2, what);
        assert_eq!(run.stdout, "", "no table of another experiment is printed");
    }
    assert_eq!(rounds(&scratch), kept + 2, "a rejected command changes nothing");
}

#[test]
fn interrupted_matrix_shows_results_and_resumes() {
    let scratch = Scratch::new("matrix-goes-on");
    let output = scratch.path("out");
    let matrix = |more: &[&str]| {
        let mut command = airtcp(&["lab", "matrix", "--receiver", "linux", "--receiver", "linux-8k"]);
        let few = ["--recipe", "newreno", "--recipe", "sack", "--kind", "lossless", "--kind", "loss"];
        command.args(few).args(["--bytes", "50k", "--jobs", "1", "--output", &output]).args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let file = scratch.0.join("out/matrix.json");
    let cells = || json(&file)["cells"].as_array().unwrap().clone();
    let running = matrix(&[]).spawn().unwrap();
    wait_for("two combinations", || (file.exists() && cells().len() >= 2).then_some(()));
    kill(Pid::from_raw(running.id() as i32), Signal::SIGINT).unwrap();
    let stopped = Ended::of(running.wait_with_output().unwrap());
    let known = cells();
    assert_eq!(stopped.code, 130, "{}{}", stopped.stdout, stopped.stderr);
    assert!(stopped.stdout.contains("\nlossless, kbit/s"), "{}", stopped.stdout);
    let where_it_stands = format!("the same command continues. Known results: {} of 8\n", known.len());
    assert!(stopped.stderr.contains(&where_it_stands), "{}", stopped.stderr);

    refused(&ended(matrix(&["--seed", "2"])), 2, "its transfers have another size or seed");
    assert_eq!(cells(), known, "a rejected command changes nothing");
    let rest = ended(matrix(&[]));
    assert_eq!(rest.code, 0, "{}{}", rest.stdout, rest.stderr);
    assert_eq!(rest.stdout.lines().last(), Some("passed 8 of 8"));
    let made = rest.stderr.lines().filter(|line| line.contains(": passed")).count();
    assert_eq!(made, 8 - known.len(), "only the missing transfers run: {}", rest.stderr);
    assert!(known.iter().all(|cell| cells().contains(cell)), "the known results are unchanged");
}

#[test]
fn senders_are_compared_with_named_reference() {
    let scratch = Scratch::new("against");
    let senders = ["--recipe", "newreno", "--recipe", "sack", "--recipe", "tahoe", "--bytes", "50k"];
    let run = ended(
        scratch.lab("out", &[&senders[..], &["--against", "sack", "--runs", "2", "--jobs", "3"]].concat()),
    );
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let report = json(&scratch.0.join("out/lab.json"));
    assert_eq!(
        (&report["against"], &report["summary"][1]["against"]),
        (&"sack".into(), &Value::Null),
        "{report}"
    );
    // A busy machine may disturb transfers. A pair counts if both of its transfers do.
    let goodputs = |sender: &Value| -> Vec<Option<f64>> {
        let transfers = report["transfers"].as_array().unwrap().iter();
        let own = transfers.filter(|transfer| transfer["sender"] == *sender);
        own.map(|transfer| transfer["kbit_per_s"].as_f64().filter(|_| transfer["invalid"].is_null()))
            .collect()
    };
    for row in [&report["summary"][0], &report["summary"][2]] {
        let theirs = goodputs(&"sack".into());
        let pairs: Vec<(f64, f64)> = goodputs(&row["sender"])
            .into_iter()
            .zip(theirs)
            .filter_map(|(own, theirs)| own.zip(theirs))
            .collect();
        assert_eq!(row["counted"], pairs.len(), "{row}");
        if !pairs.is_empty() {
            let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
            let gain = sum(|(own, _)| *own) / sum(|(_, theirs)| *theirs) - 1.0;
            assert!((row["against"]["gain"]["mean"].as_f64().unwrap() - gain).abs() < 1e-9, "{row}");
        }
        if pairs.len() == 2 {
            let sender = row["sender"].as_str().unwrap();
            let judged = |line: &&str| line.contains(sender) && line.contains("2 pairs");
            assert_eq!(run.stdout.lines().filter(judged).count(), 1, "{}", run.stdout);
        }
    }
    refused(
        &ended(scratch.lab("b", &["--recipe", "newreno", "--against", "sack"])),
        2,
        "unknown sender sack",
    );
}

#[test]
fn lab_until_decided_ends_early() {
    let scratch = Scratch::new("decided");
    // With an initial window of one segment, the transfer needs several more round trips than with ten.
    let senders =
        ["--recipe", "newreno+iw10", "--recipe", "newreno+iw=1", "--bytes", "14k", "--until", "decided"];
    let scenario = scratch.path("clean.toml");
    fs::write(
        &scenario,
        "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"8Mbit\", delay = \"20ms\" }\n",
    )
    .unwrap();
    let output = scratch.path("out");
    let mut command = airtcp(&["lab", "run", "--scenario", &scenario, "--output", &output]);
    command.args(senders).args(["--runs", "60", "--jobs", "2"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = ended(command);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("newreno+iw=1 is worse than newreno+iw10"), "{}", run.stdout);
    assert!((5..=15).contains(&rounds(&scratch)), "{}", run.stdout);
}

/// Installs an `airtcp` next to an `airlink` that runs `after` in a shell before it exits. `$code` is the
/// exit code of the real `airlink`.
fn airtcp_with_airlink_and_then(scratch: &Scratch, after: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let (own, wrapper) = (scratch.0.join("airtcp"), scratch.0.join("airlink"));
    fs::copy(program("airtcp"), &own).unwrap();
    let airlink = program("airlink").canonicalize().unwrap();
    let script = format!("#!/bin/sh\n'{}' \"$@\"; code=$?\n{after}\nexit $code\n", airlink.display());
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    own
}

/// Installs an `airlink` that reports late packets in its first `spoils` runs and none in the others, however
/// busy the machine is.
fn late_airlink(scratch: &Scratch, spoils: u32) -> PathBuf {
    let count = scratch.path("count");
    fs::write(&count, "").unwrap();
    let after = format!(
        "for word; do [ \"$last\" = --summary ] && file=$word; last=$word; done\n\
         late=0; [ \"$(wc -l <'{count}')\" -lt {spoils} ] && late=99000000\n\
         if [ -n \"$file\" ]; then echo >>'{count}'; sed -i \"s/\\\"p99\\\":[0-9]*/\\\"p99\\\":$late/\" \"$file\"; fi"
    );
    airtcp_with_airlink_and_then(scratch, &after)
}

/// On a busy machine the kernel takes seconds to remove network namespaces.
#[test]
fn slow_airlink_exit_does_not_fail_transfer() {
    let scratch = Scratch::new("slow-end");
    let own = airtcp_with_airlink_and_then(&scratch, "sleep 6");
    let asked = scratch.lab("out", &["--recipe", "newreno", "--runs", "1", "--bytes", "20k"]);
    let mut command = Command::new(own);
    command.args(asked.get_args()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = ended(command);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("1/1"), "{}", run.stdout);
}

#[test]
fn invalid_transfers_are_repeated_then_left_out() {
    const LATE: &str = "at least 1 % of the packets left the path more than 99 ms late";
    let lab = |scratch: &Scratch, own: PathBuf| {
        let asked =
            scratch.lab("out", &["--recipe", "newreno", "--runs", "2", "--bytes", "20k", "--virtual"]);
        let mut command = Command::new(own);
        command.args(asked.get_args()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let run = ended(command);
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        assert!(
            run.stderr.lines().next().is_some_and(|first| first.contains(", repeated: ")),
            "{}",
            run.stderr
        );
        (json(&scratch.0.join("out/lab.json")), run.stdout)
    };
    let scratch = Scratch::new("spoiled-once");
    let own = late_airlink(&scratch, 1);
    let (report, table) = lab(&scratch, own);
    assert!(table.contains("1 repeated, 0 left out"), "{table}");
    assert_eq!(report["transfers"][0]["repeated"][0], LATE);
    let page = scratch.path("page.html");
    assert_eq!(ended(airtcp(&["report", &scratch.path("out"), "-o", &page])).code, 0);
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("1 repeated") && page.contains("exact, repeated: at least 1 %"),
        "the page agrees with the table"
    );
    assert_eq!(report["summary"][0]["kbit_per_s"]["samples"], 2, "{report}");

    let scratch = Scratch::new("spoiled-always");
    let own = late_airlink(&scratch, 3);
    let (report, table) = lab(&scratch, own);
    assert!(table.contains("2 repeated, 1 left out"), "{table}");
    assert_eq!(
        (&report["transfers"][0]["invalid"], &report["transfers"][1]["invalid"]),
        (&LATE.into(), &Value::Null)
    );
    assert_eq!(report["summary"][0]["kbit_per_s"]["samples"], 1, "{report}");
    assert_eq!(report["summary"][0]["succeeded"], 2, "every byte arrived");
    let compared = &report["in_virtual_time"][0];
    let why = compared["rounds"][0]["failure"].as_str().unwrap();
    assert!(why.contains("left out") && why.contains(LATE), "{why}");
    assert_eq!(
        (&compared["rounds"][1]["failure"], &compared["real_kbit_per_s"]["samples"]),
        (&Value::Null, &1.into())
    );

    // A lab that is resumed without --virtual keeps the results of the comparison.
    let more = ended(scratch.lab("out", &["--recipe", "newreno", "--runs", "3", "--bytes", "20k"]));
    assert_eq!(more.code, 0, "{}{}", more.stdout, more.stderr);
    let grown = json(&scratch.0.join("out/lab.json"));
    assert_eq!((&grown["rounds"], &grown["in_virtual_time"]), (&3.into(), &report["in_virtual_time"]));
}

/// A library for LD_PRELOAD that sets the wall clock 100 ms ahead as soon as the file in CLOCK_IS_SET_BY
/// exists.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    const char *file = getenv("CLOCK_IS_SET_BY");
    int result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && clock == CLOCK_REALTIME && file && access(file, F_OK) == 0) {
        now->tv_nsec += 100 * 1000 * 1000;
        if (now->tv_nsec >= 1000000000) { now->tv_nsec -= 1000000000; now->tv_sec += 1; }
    }
    return result;
}
"#;

#[test]
fn clock_step_invalidates_transfer_in_progress() {
    let scratch = Scratch::new("clock");
    let [source, library, set] = ["clock.c", "clock.so", "set"].map(|name| scratch.path(name));
    fs::write(&source, CLOCK).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o", &library, &source]).status();
    assert!(built.expect("this test needs a C compiler: apt-get install gcc").success());
    let mut lab = scratch.lab("out", &["--recipe", "newreno", "--runs", "2", "--bytes", "300k"]);
    let lab = lab.env("LD_PRELOAD", &library).env("CLOCK_IS_SET_BY", &set).spawn().unwrap();
    wait_for("the first transfer's sender", || Victim::Sender.find(lab.id()));
    fs::write(&set, "").unwrap();
    let run = Ended::of(lab.wait_with_output().unwrap());
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let report = json(&scratch.0.join("out/lab.json"));
    // A busy machine may add other reasons.
    let again = |at: usize| {
        let mut reasons = report["transfers"][at]["repeated"].as_array().cloned().unwrap_or_default();
        reasons.retain(|reason| reason.as_str().is_some_and(|reason| reason.starts_with("the clock ")));
        reasons
    };
    assert_eq!(again(0), ["the clock of this machine was set by +100 ms"]);
    assert_eq!(again(1), [""; 0]);
    assert!(run.stdout.contains(" repeated, "), "{}", run.stdout);
}

// ----- error messages -----

#[test]
fn invalid_lab_options_are_reported_in_one_line() {
    let scratch = Scratch::new("errors");
    refused(&ended(scratch.lab("a", &[])), 2, "no sender");
    refused(&ended(scratch.lab("b", &["--sender", "bsd:reno"])), 2, "linux:cubic");
    refused(&ended(scratch.lab("c", &["--recipe", "newrno"])), 2, "did you mean `newreno`");
    refused(&ended(scratch.lab("d", &["--recipe", "newreno", "--recipe", "newreno"])), 2, "given twice");
    refused(&ended(scratch.lab("e", &["--recipe", "newreno", "--set", "radio.down.rate=1Mbit"])), 2, "radio");
    let run = ended(scratch.lab("f", &["--recipe", "newreno", "--receiver", "vax"]));
    refused(&run, 3, "interop/receivers/setup.sh vax");
    fs::create_dir(scratch.0.join("full")).unwrap();
    fs::write(scratch.0.join("full/x"), "").unwrap();
    refused(&ended(scratch.lab("full", &["--recipe", "newreno"])), 2, "is not empty");
    let run = ended(scratch.lab("g", &["--sender", "linux:nonesuch", "--runs", "1"]));
    refused(&run, 3, "no congestion control `nonesuch`");
    assert!(!scratch.0.join("g").exists(), "the command is rejected before it creates its directory");
    refused(&ended(scratch.lab("h", &["--sender", "cubic"])), 2, "use --recipe cubic, or linux:cubic");
    let last = ["--recipe", "newreno", "--seed", "18446744073709551615", "--runs", "2"];
    refused(&ended(scratch.lab("i", &last)), 2, "--seed and --runs together are too large");
}

#[test]
fn missing_airlink_error_explains_build() {
    let scratch = Scratch::new("alone");
    let alone = scratch.path("airtcp");
    fs::copy(program("airtcp"), &alone).unwrap();
    let run = Command::new(&alone)
        .args(["lab", "run", "-s", "lossless", "--recipe", "reno"])
        .env("PATH", "/nowhere")
        .output();
    refused(&Ended::of(run.unwrap()), 3, "cargo build");
}

/// Runs a lab as an unprivileged user, in a mount namespace where /dev/net/tun has this mode.
fn as_unprivileged_user(scratch: &Scratch, mode: &str) -> Ended {
    // Other users may not be permitted to read the checkout.
    let built = program("airtcp");
    for program in ["airtcp", "airlink"] {
        fs::copy(built.with_file_name(program), scratch.0.join(program)).unwrap();
    }
    let script = "node=$0/tun; mknod \"$node\" c 10 200; chmod $1 \"$node\"; mount --bind \"$node\" /dev/net/tun; \
                  chmod 777 \"$0\"; shift; exec setpriv --reuid=65534 --regid=65534 --clear-groups -- \"$@\"";
    let command = scratch
        .lab("out", &["--recipe", "newreno", "--sender", "linux:reno", "--runs", "1", "--bytes", "100k"]);
    let own = scratch.path("airtcp");
    let words = std::iter::once(own.as_ref()).chain(command.get_args());
    let mut unshare = Command::new("unshare");
    unshare
        .args(["-m", "sh", "-c", script])
        .arg(scratch.0.as_os_str())
        .arg(mode)
        .args(words)
        .env("HOME", scratch.0.as_os_str());
    ended(unshare)
}

#[test]
fn unprivileged_user_with_tun_access_runs_lab() {
    let run = as_unprivileged_user(&Scratch::new("somebody"), "666");
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert_eq!(run.stdout.matches("1/1").count(), 2, "{}", run.stdout);
}

#[test]
fn missing_tun_permission_is_reported() {
    refused(&as_unprivileged_user(&Scratch::new("nobody"), "600"), 3, "/dev/net/tun");
}

#[test]
fn full_disk_ends_lab_with_error() {
    let scratch = Scratch::new("disk");
    let (small, scenario) = (scratch.path("small"), scratch.path("lossy.toml"));
    fs::create_dir(&small).unwrap();
    let script = "mount -t tmpfs -o size=300k none \"$0\" && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script, &small])
        .arg(program("airtcp"))
        .args(["lab", "run", "--scenario", &scenario])
        .args(["--recipe", "newreno", "--runs", "1", "--bytes", "2M", "--output", &format!("{small}/out")])
        .output()
        .unwrap();
    let run = Ended::of(output);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("No space left on device"), "{}{}", run.stdout, run.stderr);
}

#[test]
fn lab_shell_opens_on_either_side() {
    let line = |run: &Ended| {
        run.stdout.lines().find(|line| line.starts_with("airlink")).unwrap_or_default().to_owned()
    };
    let own = |side: &str| {
        let run = airtcp_testkit::machine::run(&[
            "lab",
            "shell",
            side,
            "--scenario",
            "lossless",
            "--",
            "sh",
            "-c",
            "ip -br -4 addr; exit 5",
        ]);
        assert_eq!(run.code, 5, "{}{}", run.stdout, run.stderr);
        line(&run)
    };
    let (fixed, mobile) = (own("fixed"), own("mobile"));
    assert!(fixed.contains("100.64.") && mobile.contains("100.64.") && fixed != mobile, "{fixed} {mobile}");

    // In a running lab.
    let scratch = Scratch::new("shell");
    let more = ["--recipe", "newreno", "--bytes", "20M", "--runs", "1"];
    let lab = Killed(scratch.lab("out", &more).spawn().unwrap());
    let id = lab.0.id().to_string();
    wait_for("the sender", || Victim::Sender.find(lab.0.id()));
    let sockets = airtcp_testkit::machine::run(&[
        "lab", "shell", "mobile", "--lab", &id, "--", "ss", "-Htna", "sport", "=", ":9000",
    ]);
    assert!(sockets.stdout.contains(":9000"), "{}{}", sockets.stdout, sockets.stderr);
    let devices =
        airtcp_testkit::machine::run(&["lab", "shell", "fixed", "--lab", &id, "--", "ip", "-br", "link"]);
    assert!(
        devices.stdout.contains("airtcp0"),
        "the sender's own device: {}{}",
        devices.stdout,
        devices.stderr
    );

    refused(
        &airtcp_testkit::machine::run(&["lab", "shell", "fixed", "--lab", "4194304"]),
        1,
        "process 4194304 has no fixed side",
    );
}
