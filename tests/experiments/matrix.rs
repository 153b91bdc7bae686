//! `airtcp lab matrix`: unexpected results, skipped receivers, and continuing after an interruption.

use std::fs;
use std::process::Stdio;

use airtcp_testkit::machine::airtcp;

use crate::processes::{interrupt, wait_for};
use crate::scratch::{Scratch, ended, json, refused, succeeded};

#[test]
fn matrix_reports_unexpected_results_and_skipped_receivers() {
    let scratch = Scratch::new("matrix");
    let expected = scratch.path("expected.toml");
    fs::write(&expected, "[[deviation]]\nreceiver = \"linux-8k\"\nreason = \"a test\"\n").unwrap();
    let (output, stacks) = (scratch.path("out"), scratch.path("stacks"));
    let matrix = |receivers: &[&str], output: &str| {
        let mut command = airtcp(&["lab", "matrix", "--recipe", "sack", "--scenario", "lossless"]);
        command.args(["--bytes", "50k", "--expected", &expected, "--output", output, "--stacks", &stacks]);
        command.args(receivers.iter().flat_map(|receiver| ["--receiver", receiver]));
        command
    };
    let run = ended(matrix(&["linux", "linux-8k", "lwip"], &output));
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("skipped: lwip: the receiver `lwip` is not built"), "{}", run.stderr);
    assert!(run.stdout.contains("PASSES") && run.stdout.contains("skipped"), "{}", run.stdout);
    assert!(run.stdout.contains("lossless, linux-8k, sack: passed, although"), "{}", run.stdout);
    let cells = json(&scratch.0.join("out/matrix.json"))["cells"].clone();
    let verdicts: Vec<_> = cells.as_array().unwrap().iter().map(|cell| cell["verdict"].clone()).collect();
    assert_eq!(verdicts, ["passed", "passed-unexpectedly", "skipped"]);
    assert!(!run.stdout.contains("\npassed "), "{}", run.stdout);

    let run = succeeded(matrix(&["linux", "lwip"], &scratch.path("good")));
    assert_eq!(run.stdout.lines().last(), Some("passed 1 of 1, 1 skipped"));
}

#[test]
fn interrupted_matrix_shows_results_and_resumes() {
    let scratch = Scratch::new("matrix-goes-on");
    let output = scratch.path("out");
    let matrix = |more: &[&str]| {
        let mut command = airtcp(&["lab", "matrix", "--receiver", "linux", "--receiver", "linux-8k"]);
        let combinations =
            ["--recipe", "newreno", "--recipe", "sack", "--kind", "lossless", "--kind", "loss"];
        command.args(combinations).args(["--bytes", "50k", "--jobs", "1", "--output", &output]).args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let file = scratch.0.join("out/matrix.json");
    let cells = || json(&file)["cells"].as_array().unwrap().clone();
    let running = matrix(&[]).spawn().unwrap();
    wait_for("two combinations", || (file.exists() && cells().len() >= 2).then_some(()));
    let stopped = interrupt(running);
    let known = cells();
    assert_eq!(stopped.code, 130, "{}{}", stopped.stdout, stopped.stderr);
    assert!(stopped.stdout.contains("\nlossless, kbit/s"), "{}", stopped.stdout);
    let progress = format!("the same command continues. Known results: {} of 8\n", known.len());
    assert!(stopped.stderr.contains(&progress), "{}", stopped.stderr);

    refused(&ended(matrix(&["--seed", "2"])), 2, "its transfers have another size or seed");
    assert_eq!(cells(), known, "a rejected command changes nothing");
    let rest = succeeded(matrix(&[]));
    assert_eq!(rest.stdout.lines().last(), Some("passed 8 of 8"));
    let complete = rest.stderr.lines().filter(|line| line.contains(": passed")).count();
    assert_eq!(complete, 8 - known.len(), "only the missing transfers run: {}", rest.stderr);
    assert!(known.iter().all(|cell| cells().contains(cell)), "the known results are unchanged");
}
