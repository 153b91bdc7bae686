//! The output and the exit codes of runs in virtual time that are stopped, or whose disk is full.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use airtcp_testkit::machine::{Ended, TempDir, TimeLimit, airtcp};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::helpers::{SWEEP, good, interrupted, rows_by_run, shell};

#[test]
fn stopped_run_writes_whole_lines_and_names_files() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let dir = TempDir::new("sweep");
        let [decisions, trace, packets] =
            ["decisions.jsonl", "trace.jsonl", "run.pcap"].map(|name| dir.path(name));
        let output = ["--decisions", &decisions, "--trace", &trace, "--pcap", &packets];
        let long = [&["sim", "-s", "leo", "--recipe", "sack", "--for", "1000h"][..], &output].concat();
        let ended =
            interrupted(&long, signal, |_| fs::metadata(&trace).is_ok_and(|trace| trace.len() >= 50_000));
        assert_eq!(ended.code, 128 + signal as i32, "{}", ended.stderr);
        assert!(ended.stderr.contains("stopped by a signal after"), "{}", ended.stderr);
        assert!(ended.stdout.contains("goodput"), "partial results: {}", ended.stdout);
        for file in [&decisions, &trace, &packets] {
            assert!(ended.stderr.contains(file), "{file}: {}", ended.stderr);
        }
        for file in [&decisions, &trace] {
            let text = fs::read_to_string(file).unwrap();
            assert!(text.ends_with('\n'), "{file}");
            let invalid = text.lines().find(|line| serde_json::from_str::<Value>(line).is_err());
            assert_eq!(invalid, None, "{file}");
            assert!(text.lines().count() > 50, "{file}");
        }
        // Both files extend to the end of the run.
        let last = |file: &str, field: &str| -> f64 {
            let text = fs::read_to_string(file).unwrap();
            let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
            line[field].as_f64().unwrap()
        };
        let difference = last(&decisions, "wall") - last(&trace, "time");
        assert!(difference.abs() < 5.0, "{difference}");
        assert!(!good(&["analyze", &packets, "--json"]).lines.is_empty());
    }
}

#[test]
fn interrupted_sweep_keeps_results_and_resumes() {
    let dir = TempDir::new("sweep");
    let text = SWEEP.replace("seeds = 3", "seeds = 30").replace("30k", "200k");
    let (file, store) = (dir.write("s.toml", &text), dir.path("store"));
    let args = ["sweep", "run", &file, "--store", &store, "--quiet", "--jobs", "2"];
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let before = rows_by_run(&store).len();
        let ended = interrupted(&args, signal, |_| rows_by_run(&store).len() >= before + 5);
        assert_eq!(ended.code, 128 + signal as i32, "{}", ended.stderr);
        let results = rows_by_run(&store).len();
        assert!((before + 5..120).contains(&results), "{results}");
        assert_eq!(
            ended.stderr,
            format!(
                "airtcp: stopped by a signal: {results} of 120 results are kept; run the same command again for the others\n"
            )
        );
        let stderr = good(&["sweep", "summary", &store, "--metric", "took"]).stderr;
        assert!(!stderr.contains("damaged"), "{stderr}");
    }
    good(&args);
    let counts = rows_by_run(&store);
    assert_eq!(counts.len(), 120);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
}

#[test]
fn interrupted_reproduction_reports_complete_figures() {
    let endless = ["reproduce", "p2-fig13", "--seeds", "100000", "--most-seeds", "100000"];
    let mut child = airtcp(&endless).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let _limit = TimeLimit::of(&child);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    stderr.read_line(&mut first).unwrap();
    assert!(first.starts_with("[1/1] p2-fig13: "), "{first}");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert_eq!(
        rest,
        "airtcp: stopped by a signal: 0 of 1 figures are complete; with --keep DIR, the same command would continue\n"
    );
}

/// Every line of the store is valid, even immediately after the disk was full, and after repeated attempts.
#[test]
fn full_disk_is_reported_and_leaves_whole_rows() {
    assert!(nix::unistd::geteuid().is_root(), "this test mounts a small file system: run it as root");
    let dir = TempDir::new("sweep");
    let (file, disk) = (dir.write("s.toml", SWEEP), dir.path("disk"));
    fs::create_dir(&disk).unwrap();
    let script = "mount -t tmpfs -o size=24k tmpfs \"$2\"
        airtcp sweep run \"$1\" --store \"$2/store\" --quiet; echo \"code $?\" >&2
        airtcp sweep run \"$1\" --store \"$2/store\" --quiet; echo \"code $?\" >&2
        tail -qc1 \"$2\"/store/rows-* | od -An -c; ls \"$2\"/store
        airtcp sweep summary \"$2/store\" --metric took | tail -n 1
        airtcp sim -s leo --recipe sack --for 60s --decisions \"$2/decisions.jsonl\"; echo \"code $?\" >&2";
    let isolated = format!("exec unshare --mount sh -c '{script}' sh \"$@\"");
    let ended = Ended::of(shell(&isolated, &[&file, &disk]).output().unwrap());
    let errors: Vec<&str> = ended.stderr.lines().collect();
    let is_full = |line: &str, path: &str| line.contains(path) && line.contains("No space left on device");
    assert!(
        is_full(errors[0], "store/rows-1-of-1.0001.jsonl") && errors[0].contains(" of 12 results are kept"),
        "{errors:?}"
    );
    assert!(is_full(errors[2], "store/rows-1-of-1.0002.jsonl"), "{errors:?}");
    assert_eq!((errors[1], errors[3]), ("code 1", "code 1"));
    assert!(errors[4].contains("of 12 runs have no result yet"), "{errors:?}");
    assert!(is_full(errors[5], "decisions.jsonl"), "{errors:?}");
    let shown: Vec<&str> = ended.stdout.split_whitespace().collect();
    assert_eq!(
        shown[..3],
        ["\\n", "manifest.json", "rows-1-of-1.0001.jsonl"],
        "whole lines only: {}",
        ended.stdout
    );
    assert!(!ended.stdout.contains("0002"), "no empty files: {}", ended.stdout);
}
