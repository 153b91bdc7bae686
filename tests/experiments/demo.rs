//! `airtcp demo` prints only the sentences that its runs support.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use airtcp_testkit::machine::{Ended, run};
use airtcp_testkit::programs::program;
use airwire::rng::Stream;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::scratch::{Scratch, ended, refused};

/// `airtcp demo` with fast links and without losses in real time, so that the transfers take less than a second.
fn fast_demo(scratch: &Scratch, more: &[&str]) -> Command {
    let fast = "if [ $1 = run ]; then shift; for link in wire radio; do \
                set -- --set $link.both.delay=1ms --set $link.both.rate=10Mbit \"$@\"; \
                done; set -- run --set radio-errors.remove=true \"$@\"; fi; exec \"$airlink\" \"$@\"";
    let mut demo = Command::new(scratch.airtcp_with_airlink(fast));
    demo.arg("demo").args(more).env_remove("RUST_LOG");
    demo
}

#[test]
fn scene_runs_in_real_and_virtual_time() {
    let scratch = Scratch::new("demo");
    let output = scratch.path("demo");
    // For each of these seeds, the path is some seconds old when the transfer starts.
    const SEEDS: u64 = 3;
    let age = |seed| Stream::new(seed, "demo-begin").below(12_000_000_000) as f64 / 1e9;
    let is_some_seconds_old = |seed| (2.0..5.0).contains(&age(seed));
    let first = (1..).find(|first| (*first..first + SEEDS).all(is_some_seconds_old)).unwrap();
    // With three seeds, not every sentence holds.
    let (seeds, first) = (SEEDS.to_string(), first.to_string());
    let options = ["--scene", "tiny-window", "--seeds", &seeds, "--seed", &first, "--output", &output];
    let demo = ended(fast_demo(&scratch, &options));
    assert_eq!(demo.code, 0, "{}{}", demo.stdout, demo.stderr);
    let read = |name: &str| fs::read_to_string(format!("{output}/{name}")).unwrap();
    let scene: Value = serde_json::from_str(&read("4-tiny-window/scene.json")).unwrap();
    let sentences = |which: &str| {
        let all = scene[which].as_array().unwrap().iter();
        all.map(|sentence| sentence["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (printed, left_out) = (sentences("sentences"), sentences("left_out"));
    assert_eq!(printed.len() + left_out.len(), 3);
    // The tables fit into 80 columns. File names, which follow them, may be longer.
    let (tables, _) = demo.stdout.split_once("\nTables and graphs").unwrap();
    assert!(tables.lines().all(|line| line.chars().count() <= 80), "{tables}");
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (stdout, page) = (plain(&demo.stdout), read("report.html"));
    assert!(stdout.starts_with("4. Tiny windows: "), "the scene has the number of its directory: {stdout}");
    for text in &printed {
        assert!(stdout.contains(text.as_str()) && page.contains(text.as_str()), "{text}\n{stdout}");
    }
    for text in &left_out {
        assert!(!stdout.contains(text.as_str()) && !page.contains(text.as_str()), "{text}\n{stdout}");
    }
    for row in scene["rows"].as_array().unwrap() {
        assert_eq!(row["in_virtual_time"]["kbit_per_s"]["samples"], SEEDS);
        assert_eq!(row["real"]["bytes"], 60_000, "{row}");
    }
    // A sender starts when the path has this age, which includes the time to set it up. So it waits for less
    // after the receiver's start.
    let wall = |sender: &str, file: &str| {
        let log = read(&format!("4-tiny-window/01-{sender}/{file}.jsonl"));
        serde_json::from_str::<Value>(log.lines().next().unwrap()).unwrap()["wall"].as_f64().unwrap()
    };
    let waited =
        ["newreno", "sack", "sack+sifest"].map(|sender| wall(sender, "sender") - wall(sender, "receiver"));
    let seed = scene["rows"][0]["real"]["seed"].as_u64().unwrap();
    assert!(
        waited.iter().any(|waited| *waited < age(seed)),
        "waits of {waited:?} s, path age {} s",
        age(seed)
    );
    // `airtcp report` makes the same page.
    let copy = format!("{output}/copy.html");
    assert_eq!(run(&["report", &output, "--output", &copy]).code, 0);
    assert_eq!(read("copy.html"), page);
}

#[test]
fn unknown_scene_error_lists_scenes() {
    let demo = run(&["demo", "--scene", "nothing"]);
    assert_eq!(demo.code, 2);
    assert!(demo.stderr.contains("handover, lost-again, marks, tiny-window"), "{}", demo.stderr);
}

#[test]
fn duplicate_scene_and_non_empty_output_are_rejected() {
    let scratch = Scratch::new("demo-refused");
    let output = scratch.path("demo");
    let duplicate = ["demo", "--scene", "tiny-window", "--scene", "tiny-window", "--output", &output];
    refused(&run(&duplicate), 2, "--scene tiny-window is given twice");
    assert!(!scratch.0.join("demo").exists());
    fs::create_dir(&output).unwrap();
    fs::write(format!("{output}/old"), "").unwrap();
    refused(&run(&["demo", "--scene", "tiny-window", "--seeds", "2", "--output", &output]), 2, "not empty");
    assert_eq!(fs::read_dir(&output).unwrap().count(), 1);
}

#[test]
fn failed_demo_leaves_no_directories() {
    let scratch = Scratch::new("demo-failed");
    let output = scratch.path("demo");
    let program = scratch.airtcp_with_airlink("echo 'airlink: cannot create the path' >&2; exit 3");
    let demo = |more: &[&str]| {
        let mut demo = Command::new(&program);
        demo.args(["demo", "--scene", "tiny-window", "--scene", "marks", "--seeds", "2"]).args(more);
        refused(&Ended::of(demo.current_dir(&scratch.0).output().unwrap()), 3, "cannot create the path");
    };
    for _ in 0..2 {
        demo(&["--output", &output]);
        assert!(!scratch.0.join("demo").exists());
    }
    fs::create_dir(&output).unwrap();
    demo(&["--output", &output]);
    demo(&[]);
    for empty in ["demo", "lab"] {
        assert_eq!(fs::read_dir(scratch.0.join(empty)).unwrap().count(), 0, "{empty}");
    }
}

#[test]
fn closed_stdout_does_not_fail_demo() {
    let scratch = Scratch::new("demo-head");
    let output = scratch.path("demo");
    let mut demo = fast_demo(&scratch, &["--scene", "tiny-window", "--seeds", "2", "--output", &output]);
    let mut demo = demo.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(demo.stdout.take());
    let ended = demo.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(fs::metadata(format!("{output}/report.html")).unwrap().len() > 0, "the page is still written");
}

#[test]
fn interrupted_demo_reports_complete_scenes() {
    let scratch = Scratch::new("demo-stopped");
    let output = scratch.path("demo");
    let scenes = ["--scene", "tiny-window", "--scene", "marks"];
    // With these seeds, the transfers of both scenes begin soon after their paths. The runs of the second scene in
    // virtual time take long enough to interrupt them.
    let seeds = ["--seed", "32", "--seeds", "100", "--output", &output];
    let mut demo = fast_demo(&scratch, &[&scenes[..], &seeds].concat());
    let mut demo = demo.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The tables of the first scene end with an empty line.
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("4. Tiny windows")));
    assert!(lines.any(|line| line.starts_with("TUN devices")));
    assert!(lines.any(|line| line.is_empty()));
    kill(Pid::from_raw(demo.id() as i32), Signal::SIGINT).unwrap();
    let rest: Vec<_> = lines.collect();
    let ended = Ended::of(demo.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    assert!(rest.is_empty(), "the second scene was not complete: {rest:?}");
    assert!(ended.stderr.contains("stopped by a signal: 1 of 2 scenes are complete"), "{}", ended.stderr);
    let page = format!("{output}/report.html");
    assert_eq!(run(&["report", &output, "--output", &page]).code, 0);
    assert!(fs::read_to_string(page).unwrap().contains("Tiny windows"));
}

/// `script` provides a terminal.
#[test]
fn terminal_shows_transient_progress_line() {
    let scratch = Scratch::new("demo-live");
    let output = scratch.path("demo");
    let program = program("airtcp");
    let command_line =
        format!("{} demo --scene tiny-window --seeds 5 --output {output} --json", program.display());
    let output = Command::new("script").args(["-qec", &command_line, "/dev/null"]).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<_> = shown.split("\r\x1b[K").collect();
    for line in ["0 of 4 transfers over TUN", "4 of 4 transfers over TUN", "20 of 20 runs in virtual time"] {
        assert!(lines.contains(&line), "no line `{line}` in {shown:?}");
    }
    let result = lines.last().unwrap();
    assert!(result.starts_with("{\"page\""), "the last line contains only the result: {result:?}");
}
