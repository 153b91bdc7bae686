//! `airtcp sim --seeds`: the same run with several seeds.

#![expect(clippy::disallowed_methods, reason = "another process is waited for")]

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use airtcp_numbers::statistics::{Mean, median};
use airtcp_testkit::machine::{Ended, TIMEOUT, TimeLimit, airtcp, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::helpers::{good, refused};

const RUN: [&str; 7] = ["sim", "-s", "sifest-random", "--recipe", "reno", "--bytes", "100k"];

#[test]
fn runs_equal_runs_with_single_seed() {
    let all = good(&[&RUN[..], &["--seed", "7", "--seeds", "4", "--json"]].concat()).stdout;
    let each =
        ["7", "8", "9", "10"].map(|seed| good(&[&RUN[..], &["--seed", seed, "--json"]].concat()).stdout);
    assert_eq!(all, each.concat());
}

#[test]
fn table_has_mean_interval_and_median_of_each_flow() {
    let args = [&RUN[..], &["--recipe", "sack", "--seeds", "5"]].concat();
    let lines = good(&[&args[..], &["--json"]].concat()).lines;
    let text = good(&[&args[..], &["--wide"]].concat()).stdout;
    assert!(text.starts_with("sifest-random, seeds 1 to 5: means with 95 %"), "{text}");
    let row = |name: &str| -> Vec<&str> {
        let row = text.lines().find(|line| line.trim_start().starts_with(name));
        row.unwrap_or_else(|| panic!("no row {name} in {text}")).split_whitespace().collect()
    };
    for (flow, row) in [(0_usize, row("1  reno")), (1, row("2  sack"))] {
        let goodputs: Vec<f64> = lines
            .iter()
            .map(|line| line["report"]["flows"][flow]["goodput_bit_per_s"].as_f64().unwrap())
            .collect();
        assert_eq!(goodputs.len(), 5);
        let Mean { mean, half_width, .. } = Mean::of(&goodputs).unwrap();
        // flow, recipe, mean, ±, interval, median
        assert_eq!(row[3], "±", "{text}");
        for (shown, is) in
            [(row[2], mean), (row[4], half_width.unwrap()), (row[5], median(&goodputs).unwrap())]
        {
            let shown: f64 = shown.parse().unwrap();
            assert!((shown * 1e3 - is).abs() < 10.0, "{shown} kbit/s, not {is} bit/s: {text}");
        }
    }
    assert!(text.contains("goodput") && text.contains("mean, kbit/s"), "{text}");
    assert!(text.contains("time") && text.contains("mean, s"), "{text}");
    assert_eq!(row("all")[0], "all");
}

#[test]
fn endless_flow_has_no_column_for_time() {
    let text = good(&["sim", "-s", "sifest-random", "--for", "5s", "--seeds", "2", "--wide"]).stdout;
    assert!(text.contains("goodput") && !text.contains("mean, s"), "{text}");
}

#[test]
fn files_of_one_run_are_refused_with_seeds() {
    for option in [&["--pcap", "x"][..], &["--decisions", "x"], &["--trace", "x"], &["--score"]] {
        let ended = run(&[&RUN[..], &["--seeds", "2"], option].concat());
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains("cannot be used with"), "{}", ended.stderr);
    }
    let last = u64::MAX.to_string();
    let told = refused(&[&RUN[..], &["--seed", &last, "--seeds", "2"]].concat(), 2);
    assert!(told.contains("--seed and --seeds together are too large"), "{told}");
}

#[test]
fn interrupted_seeds_show_finished_runs() {
    let child = airtcp(&[&RUN[..], &["--seeds", "100000", "--json"]].concat())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _limit = TimeLimit::of(&child);
    let threads = format!("/proc/{}/task", child.id());
    let waits_for_signals = || {
        let threads = fs::read_dir(&threads).into_iter().flatten().flatten();
        threads
            .map(|thread| thread.path().join("comm"))
            .any(|comm| fs::read_to_string(comm).is_ok_and(|comm| comm == "signals\n"))
    };
    let begin = Instant::now();
    while !waits_for_signals() {
        assert!(begin.elapsed() < TIMEOUT, "no thread waits for signals");
        sleep(Duration::from_millis(5));
    }
    sleep(Duration::from_millis(300));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    let message = format!("airtcp: stopped by a signal: {} of 100000 runs are complete\n", ended.lines.len());
    assert_eq!(ended.stderr, message);
}
