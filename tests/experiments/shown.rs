//! `airtcp lab show` in several formats, and combinations of options that a lab rejects.

use std::fs;

use airtcp_testkit::machine::{airtcp, run as run_airtcp};
use serde_json::Value;

use crate::scratch::{Scratch, ended, number, refused, rows, succeeded};
use crate::transfers::byte_changing_stack;

// ----- the table in other formats -----

/// Changes a `lab.json` into one from before several connections and directions were added.
fn older(mut report: Value) -> Value {
    let remove = |value: &mut Value, names: &[&str]| {
        names.iter().for_each(|name| drop(value.as_object_mut().unwrap().remove(*name)));
    };
    remove(&mut report, &["asked"]);
    for transfer in report["transfers"].as_array_mut().unwrap() {
        remove(transfer, &["together", "connections", "counters"]);
    }
    report
}

#[test]
fn lab_show_prints_text_csv_and_json() {
    let scratch = Scratch::new("show");
    let transfer = ["--recipe", "newreno", "--sender", "linux:reno", "--bytes", "50k", "--runs", "2"];
    let (run, report) = scratch.run_lab(&[&transfer[..], &["--jobs", "2"]].concat());
    let out = scratch.path("out");
    let show = |more: &[&str]| succeeded(airtcp(&[&["lab", "show", out.as_str()], more].concat())).stdout;
    let table = run.stdout.split("\nresults in ").next().unwrap();
    assert!(show(&["--wide"]).starts_with(table), "{}{}", run.stdout, show(&["--wide"]));
    let narrow = show(&[]);
    let (tables, _) = narrow.split_once("\nrounds").unwrap();
    assert!(tables.lines().all(|line| line.chars().count() <= 80), "{tables}");
    let as_json: Value = serde_json::from_str(&show(&["--json"])).unwrap();
    assert_eq!(as_json["report"], report);
    let csv = show(&["--csv"]);
    let lines: Vec<Vec<_>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 3, "{csv}");
    let column = |name: &str| lines[0].iter().position(|heading| *heading == name).unwrap();
    for (line, row) in lines[1..].iter().zip(rows(&report)) {
        assert_eq!(line.len(), lines[0].len(), "{csv}");
        assert_eq!(line[column("sender")], row["sender"]);
        let goodput = line[column("kbit/s")].parse::<f64>().unwrap();
        assert!((goodput - number(row, "/kbit_per_s/mean")).abs() < 1e-4, "{csv}");
        assert_eq!((line[column("exact")], line[column("transfers")]), ("2", "2"));
    }
    // With one connection and without a competitor, the table has no columns for competitors and fairness.
    assert!(!csv.contains("competitor") && !csv.contains("Jain"), "{csv}");
    let unchanged = ended(scratch.lab("out", &[&transfer[..], &["--csv"]].concat()));
    assert_eq!((unchanged.code, unchanged.stdout), (0, csv.clone()), "the same lab without new transfers");

    fs::write(scratch.0.join("out/lab.json"), older(report).to_string()).unwrap();
    assert_eq!(show(&["--csv"]), csv, "a file from an older version can be read");
    assert!(show(&["--wide"]).starts_with(table));
    let resumed = ended(scratch.lab("out", &[&transfer[..], &["--jobs", "2"]].concat()));
    assert_eq!((resumed.code, resumed.stdout), (0, run.stdout), "a lab can resume from an older file");

    refused(&run_airtcp(&["lab", "show", &scratch.path("nothing")]), 2, "no lab.json in it");
    fs::write(scratch.0.join("out/lab.json"), "{").unwrap();
    refused(&run_airtcp(&["lab", "show", &out]), 1, "if another version wrote it");
    let both = run_airtcp(&["lab", "show", &out, "--csv", "--json"]);
    refused(&both, 2, "cannot be used with");
}

// ----- invalid combinations -----

#[test]
fn lab_does_not_resume_with_different_transfers() {
    let scratch = Scratch::new("other-transfers");
    let senders = ["--recipe", "newreno", "--runs", "1"];
    let (_, report) = scratch.run_lab(&[&senders[..], &["--for", "300ms", "--flows", "2"]].concat());
    let message = "its transfers differ (0.3 s down in each of 2 connections";
    for other in [
        &["--for", "300ms"][..],
        &["--for", "200ms", "--flows", "2"],
        &["--bytes", "1M", "--flows", "2"],
        &["--for", "300ms", "--flows", "2", "--direction", "up"],
        &["--for", "300ms", "--flows", "2", "--competitor", "newreno"],
        &["--for", "300ms", "--flows", "2", "--read-rate", "1MB/s"],
    ] {
        refused(&ended(scratch.lab("out", &[&senders[..], other].concat())), 2, message);
    }
    let resumed = ended(scratch.lab("out", &[&senders[..], &["--for", "0.3s", "--flows", "2"]].concat()));
    assert_eq!(resumed.code, 0, "the same options in another spelling: {}", resumed.stderr);
    assert_eq!(scratch.report()["transfers"], report["transfers"]);
    // Goodput until the buffers were empty and goodput within a time limit have no common mean.
    let mut older = report;
    older["transfers"][0]["connections"][0].as_object_mut().unwrap().remove("bytes_in_time");
    fs::write(scratch.0.join("out/lab.json"), older.to_string()).unwrap();
    let resumed = ended(scratch.lab("out", &[&senders[..], &["--for", "0.3s", "--flows", "2"]].concat()));
    refused(&resumed, 2, "it was made by an older version, which measured goodput over a longer time");
}

#[test]
fn invalid_option_combinations_are_rejected_before_start() {
    let scratch = Scratch::new("cannot");
    let stacks = byte_changing_stack(&scratch);
    for (options, message) in [
        (
            &["--virtual", "--flows", "2"][..],
            "--virtual compares a single connection down and does not support several connections",
        ),
        (&["--virtual", "--direction", "up"], "a sender on the mobile side (--direction)"),
        (&["--virtual", "--competitor", "sack"], "competing senders (--competitor)"),
        (&["--virtual", "--for", "1s"], "transfers limited by time (--for)"),
        (&["--virtual", "--csv"], "cannot be used with"),
        (&["--virtual", "--read-rate", "1k"], "a receiver that reads slowly (--read-rate)"),
        (&["--receiver", "changes", "--stacks", &stacks, "--direction", "up"], "use --direction down"),
        (&["--receiver", "changes", "--stacks", &stacks, "--flows", "2"], "accepts a single connection"),
        (&["--receiver", "changes", "--stacks", &stacks, "--read-rate", "1k"], "cannot limit its read rate"),
        (&["--for", "11m"], "takes longer than a transfer may: raise --limit"),
        (&["--for", "1s", "--bytes", "1M"], "cannot be used with"),
        (&["--flows", "0"], "write a whole number from 1 to 100"),
        (
            &[&["--flows", "100", "--direction", "both"][..], &["--competitor", "sack"].repeat(26)].concat(),
            "252 connections",
        ),
        (&["--read-rate", "fast"], "use for example 50kB/s"),
        (&["--competitor", "linux:nonesuch"], "no congestion control `nonesuch`"),
    ] {
        let run = ended(scratch.lab("out", &[&["--recipe", "newreno"], options].concat()));
        let code = if message.contains("nonesuch") { 3 } else { 2 };
        refused(&run, code, message);
        assert!(!scratch.0.join("out").exists(), "{options:?}");
    }
}
