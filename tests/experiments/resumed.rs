//! Labs that are interrupted and continued, and labs that end before the last round.

use std::fs;
use std::process::Stdio;

use airtcp_testkit::machine::airtcp;

use crate::processes::{interrupt, wait_for};
use crate::scratch::{Scratch, ended, refused, succeeded, transfers};

/// Returns the number of rounds in `lab.json`, which is complete JSON at any time.
fn rounds(scratch: &Scratch) -> u64 {
    let report = scratch.report();
    let rounds = report["rounds"].as_u64().unwrap();
    assert_eq!(transfers(&report).len() as u64, 2 * rounds, "{report}");
    rounds
}

#[test]
fn interrupted_lab_shows_results_and_resumes() {
    let scratch = Scratch::new("resumed");
    let lab = |runs: &str, more: &[&str]| {
        let senders = ["--recipe", "newreno", "--recipe", "sack", "--bytes", "50k", "--runs", runs];
        scratch.lab("out", &[&senders[..], more].concat())
    };
    let running = lab("500", &["--jobs", "2"]).spawn().unwrap();
    let file = scratch.0.join("out/lab.json");
    wait_for("two complete rounds", || (file.exists() && rounds(&scratch) >= 2).then_some(()));
    let stopped = interrupt(running);
    let complete = rounds(&scratch);
    assert_eq!(stopped.code, 130, "{}{}", stopped.stdout, stopped.stderr);
    assert!(stopped.stderr.contains(&format!("Complete rounds: {complete}")), "{}", stopped.stderr);
    assert!(
        stopped.stdout.lines().any(|line| line.contains(&format!(" {complete}/{complete} "))),
        "{}",
        stopped.stdout
    );
    let first = scratch.report()["transfers"][0].clone();

    // Interrupt the lab again before another round is complete.
    let next = scratch.0.join(format!("out/{:02}-newreno", complete + 1));
    // Processes of the first lab may still write into this directory.
    wait_for("the removal of the interrupted round", || {
        let _ = fs::remove_dir_all(&next);
        (!next.exists()).then_some(())
    });
    let running = lab("500", &[]).spawn().unwrap();
    wait_for("the next round", || next.exists().then_some(()));
    let stopped = interrupt(running);
    let complete = rounds(&scratch);
    assert!(stopped.stderr.contains(&format!("Complete rounds: {complete}")), "{}", stopped.stderr);

    let all = (complete + 2).to_string();
    let extended = ended(lab(&all, &[]));
    assert_eq!(
        (extended.code, rounds(&scratch)),
        (0, complete + 2),
        "{}{}",
        extended.stdout,
        extended.stderr
    );
    assert!(extended.stderr.contains("[4/4]"), "only the missing transfers run: {}", extended.stderr);
    let report = scratch.report();
    assert_eq!(report["transfers"][0], first);
    let seeds = transfers(&report).iter().map(|transfer| transfer["seed"].as_u64().unwrap());
    assert!(
        seeds.eq((1..=complete + 2).flat_map(|seed| [seed, seed])),
        "each seed has one transfer per sender"
    );

    let text = || fs::read_to_string(&file).unwrap();
    let before = text();
    let unchanged = ended(lab(&all, &["--jobs", "3"]));
    assert_eq!((unchanged.code, unchanged.stdout), (0, extended.stdout.clone()), "no transfer was missing");
    assert_eq!(text(), before, "a lab without new transfers leaves its file unchanged");
    let respelt = ["--recipe", "three-dupacks+newreno", "--recipe", "sack", "--bytes", "50k", "--runs", &all];
    let respelt = ended(scratch.lab("out", &respelt));
    assert_eq!((respelt.code, respelt.stdout), (0, extended.stdout), "{}", respelt.stderr);
    for (changed, message) in [
        (&["--seed", "7"], "its first seed is 1"),
        (&["--recipe", "reno"], "its senders are newreno, sack"),
        (&["--receiver", "linux-bare"], "its receiver is linux"),
        (&["--set", "link.both.rate=1Mbit"], "its scenario differs"),
    ] {
        let run = ended(lab(&all, changed));
        refused(&run, 2, message);
        assert_eq!(run.stdout, "", "no table of another experiment is printed");
    }
    assert_eq!(rounds(&scratch), complete + 2, "a rejected command changes nothing");
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
    let run = succeeded(command);
    assert!(run.stdout.contains("newreno+iw=1 is worse than newreno+iw10"), "{}", run.stdout);
    assert!((5..=15).contains(&rounds(&scratch)), "{}", run.stdout);
}
