//! `airtcp sim --seeds`: the same run with several seeds.

#![expect(clippy::disallowed_methods, reason = "another process is waited for")]

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use airtcp_numbers::statistics::{Mean, median};
use airtcp_testkit::machine::run;
use nix::sys::signal::Signal;

use super::helpers::{good, interrupted, refused};

const RUN: [&str; 7] = ["sim", "-s", "sifest-random", "--recipe", "reno", "--bytes", "100k"];

#[test]
fn runs_equal_runs_with_single_seed() {
    let all = good(&[&RUN[..], &["--seed", "7", "--seeds", "4", "--json"]].concat()).stdout;
    let each =
        ["7", "8", "9", "10"].map(|seed| good(&[&RUN[..], &["--seed", seed, "--json"]].concat()).stdout);
    assert_eq!(all, each.concat());
}

#[test]
fn table_has_mean_interval_and_median_per_flow() {
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
        for (shown, expected) in
            [(row[2], mean), (row[4], half_width.unwrap()), (row[5], median(&goodputs).unwrap())]
        {
            let shown: f64 = shown.parse().unwrap();
            assert!((shown * 1e3 - expected).abs() < 10.0, "{shown} kbit/s, not {expected} bit/s: {text}");
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
    let stderr = refused(&[&RUN[..], &["--seed", &last, "--seeds", "2"]].concat(), 2);
    assert!(stderr.contains("--seed and --seeds together are too large"), "{stderr}");
}

#[test]
fn interrupted_seeds_show_finished_runs() {
    let args = [&RUN[..], &["--seeds", "100000", "--json"]].concat();
    let ended = interrupted(&args, Signal::SIGINT, |child| {
        let mut threads = fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
        let waits_for_signals = threads.any(|thread| {
            fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| comm == "signals\n")
        });
        if waits_for_signals {
            // Some runs shall be complete.
            sleep(Duration::from_millis(300));
        }
        waits_for_signals
    });
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    let message = format!("airtcp: stopped by a signal: {} of 100000 runs are complete\n", ended.lines.len());
    assert_eq!(ended.stderr, message);
}
