//! Our senders `linux`, `reno-linux` and `bbr-linux` compared with the kernel's own, on the same paths with
//! the same losses.
//!
//! A pair consists of one transfer by each sender, one after the other, over a path with the same seed. The
//! senders differ if the 95 % interval of the paired differences lies beyond a limit: 5 % of the kernel's
//! goodput, 10 % of its retransmissions (at least one segment), or 0 timeouts. The printed lines contain the
//! intervals, which show how much the pairs prove. `expected.toml` lists the known differences, with the
//! reasons.
//!
//! `make pairs` runs thirty pairs of every sender on every path, and needs an otherwise idle machine.
//! AIRTCP_JOBS sets the number of transfers that run in parallel.

use std::collections::BTreeSet;

use airtcp_numbers::statistics::{Mean, average, differences, gains};
use airtcp_testkit::machine::{TempFile, run};
use airtcp_testkit::programs::repository;
use airtcp_testkit::sample::size;
use serde::Deserialize;
use serde_json::{Value, json};

/// Our sender, and the kernel's.
const SENDERS: [(&str, &str); 3] =
    [("linux", "linux:cubic"), ("reno-linux", "linux:reno"), ("bbr-linux", "linux:bbr")];

/// A file in `paths` or a preset, and the number of bytes per transfer.
const PATHS: [(&str, &str); 8] = [
    ("lossless", "6M"),
    ("random-1", "3M"),
    ("random-5", "1M"),
    ("bursts", "3M"),
    ("reordering", "3M"),
    ("wcdma-384", "500k"),
    ("hsdpa-like", "2M"),
    ("leo", "20M"),
];

const GOODPUT_LIMIT: f64 = 0.05;
const RESENT_LIMIT: f64 = 0.10;

/// Known differences.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    #[serde(default)]
    difference: Vec<Difference>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    sender: String,
    path: String,
    #[serde(rename = "what")]
    quantity: Quantity,
    /// The minimum and the maximum of the mean paired difference, ours minus the kernel's: goodput in per
    /// cent, retransmissions in segments, or the number of timeouts.
    from: f64,
    to: f64,
    reason: String,
}

impl Difference {
    fn covers(&self, difference: &MeanDifference) -> bool {
        self.quantity == difference.quantity && (self.from..=self.to).contains(&difference.mean)
    }
}

/// A difference beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MeanDifference {
    quantity: Quantity,
    /// In the unit of [`Difference::from`].
    mean: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Quantity {
    Goodput,
    Resent,
    Timeouts,
}

/// The transfers of one sender, in the order of the rounds.
#[derive(Debug, Default)]
struct Transfers {
    kbit_per_s: Vec<f64>,
    resent: Vec<f64>,
    timeouts: Vec<f64>,
}

impl Transfers {
    fn push(&mut self, transfer: &Value) {
        self.kbit_per_s.push(transfer["kbit_per_s"].as_f64().unwrap());
        self.resent.push(transfer["capture"]["resent_packets"].as_f64().unwrap());
        self.timeouts.push(transfer["repair"]["timeouts"].as_f64().unwrap());
    }
}

/// Our transfers and the kernel's in the rounds where both are valid, and the number of the other rounds.
fn pairs_of(report: &Value, ours: &str, kernels: &str) -> (Transfers, Transfers, usize) {
    let all = report["transfers"].as_array().unwrap();
    let of = |sender: &str| all.iter().filter(|transfer| transfer["sender"] == sender).collect::<Vec<_>>();
    let (ours, kernels) = (of(ours), of(kernels));
    assert_eq!(ours.len(), kernels.len());
    let (mut our_transfers, mut kernel_transfers, mut left_out) =
        (Transfers::default(), Transfers::default(), 0);
    for pair in ours.into_iter().zip(kernels) {
        for transfer in [pair.0, pair.1] {
            assert_eq!(transfer["failure"], Value::Null, "{transfer}");
        }
        if pair.0["invalid"].is_null() && pair.1["invalid"].is_null() {
            our_transfers.push(pair.0);
            kernel_transfers.push(pair.1);
        } else {
            left_out += 1;
        }
    }
    (our_transfers, kernel_transfers, left_out)
}

/// The distance between 0 and the interval of `estimate`, or 0 if the interval contains 0.
fn distance_from_zero(estimate: Mean) -> f64 {
    (estimate.mean.abs() - estimate.half_width.unwrap_or(f64::INFINITY)).max(0.0)
}

/// Returns a line with the differences, and those that exceed their limits.
fn compare(ours: &Transfers, kernels: &Transfers) -> (String, Vec<MeanDifference>) {
    let goodput = Mean::of(&gains(&ours.kbit_per_s, &kernels.kbit_per_s)).unwrap();
    let resent = Mean::of(&differences(&ours.resent, &kernels.resent)).unwrap();
    let timeouts = Mean::of(&differences(&ours.timeouts, &kernels.timeouts)).unwrap();
    let kernels_resent = average(&kernels.resent).unwrap();
    let compared = [
        (Quantity::Goodput, 100.0 * goodput.mean, distance_from_zero(goodput) > GOODPUT_LIMIT),
        // One segment more or less does not count.
        (
            Quantity::Resent,
            resent.mean,
            distance_from_zero(resent) > (RESENT_LIMIT * kernels_resent).max(1.0),
        ),
        (Quantity::Timeouts, timeouts.mean, distance_from_zero(timeouts) > 0.0),
    ];
    let show = |estimate: Mean, factor: f64| {
        format!(
            "{:+.2} ± {:.2}",
            estimate.mean * factor,
            estimate.half_width.unwrap_or(f64::INFINITY) * factor
        )
    };
    let line = format!(
        "goodput {} %, retransmissions {} (kernel: {kernels_resent:.1}), timeouts {}",
        show(goodput, 100.0),
        show(resent, 1.0),
        show(timeouts, 1.0)
    );
    let excessive = compared.into_iter().filter(|(.., exceeds_limit)| *exceeds_limit);
    (line, excessive.map(|(quantity, mean, _)| MeanDifference { quantity, mean }).collect())
}

fn pairs_on(path: &str, bytes: &str, pairs: u32, senders: &[(&str, &str)]) -> Value {
    let file = repository().join(format!("tests/experiments/pairs/paths/{path}.toml"));
    let scenario = if file.exists() { file.to_str().unwrap().to_owned() } else { path.to_owned() };
    let directory = TempFile::new(&format!("pairs-{path}"));
    let (pairs, output) = (pairs.to_string(), directory.path().to_owned());
    let mut arguments = vec!["lab", "run", "--json", "--quiet", "--scenario", &scenario, "--output", &output];
    arguments.extend(["--runs", &pairs, "--bytes", bytes, "--seed", "4711"]);
    for (ours, kernels) in senders {
        arguments.extend(["--recipe", ours, "--sender", kernels]);
    }
    let jobs = std::env::var("AIRTCP_JOBS").ok();
    arguments.extend(jobs.iter().flat_map(|jobs| ["--jobs", jobs.as_str()]));
    let run = run(&arguments);
    let text = std::fs::read_to_string(format!("{output}/lab.json")).unwrap_or_default();
    let _ = std::fs::remove_dir_all(&output);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    serde_json::from_str(&text).unwrap()
}

/// Like [`pairs_of`], for our sender with this recipe and any profile.
fn pairs_with(report: &Value, ours: &str, kernels: &str) -> (Transfers, Transfers, usize) {
    let mut names = report["summary"].as_array().unwrap().iter().filter_map(|row| row["sender"].as_str());
    let name = names.find(|name| name.split('@').next() == Some(ours)).unwrap();
    pairs_of(report, name, kernels)
}

/// Number of attempts per path. A machine that disturbed nearly all pairs may be idle a minute later.
const ATTEMPTS: usize = 3;

/// Compares the senders on these paths. With `all`, an entry of `expected.toml` that is not needed is an
/// error.
fn assert_senders_match(paths: &[(&str, &str)], senders: &[(&str, &str)], pairs: u32, all: bool) {
    let expected: Expected = toml::from_str(include_str!("expected.toml")).unwrap();
    let mut errors = Vec::new();
    let mut used = BTreeSet::new();
    for (path, bytes) in paths {
        let report = (1..=ATTEMPTS).find_map(|attempt| {
            let report = pairs_on(path, bytes, pairs, senders);
            let are_enough =
                |(ours, kernels): &(&str, &str)| pairs_with(&report, ours, kernels).0.kbit_per_s.len() > 1;
            (attempt == ATTEMPTS || senders.iter().all(are_enough)).then_some(report)
        });
        let report = report.unwrap();
        for (ours, kernels) in senders {
            let (our_transfers, kernel_transfers, left_out) = pairs_with(&report, ours, kernels);
            assert!(
                our_transfers.kbit_per_s.len() > 1,
                "{path}, {ours}: the machine disturbed {left_out} pairs"
            );
            let (line, excessive) = compare(&our_transfers, &kernel_transfers);
            let note = match left_out {
                0 => String::new(),
                left_out => format!("; {left_out} pairs left out because the machine disturbed them"),
            };
            println!("{path}, {ours}: {line}{note}");
            for difference in excessive {
                let matches =
                    |row: &Difference| row.sender == *ours && row.path == *path && row.covers(&difference);
                match expected.difference.iter().position(matches) {
                    Some(row) => drop(used.insert(row)),
                    None => errors.push(format!("{path}, {ours}: {:?}: {line}", difference.quantity)),
                }
            }
        }
    }
    let unneeded = expected.difference.iter().enumerate().filter(|(row, _)| all && !used.contains(row));
    errors.extend(unneeded.map(|(_, row)| {
        format!("expected.toml lists a difference that no longer exists: {row:?}: {}", row.reason)
    }));
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn pair_with_invalid_transfer_is_left_out() {
    let transfer = |sender: &str, kbit_per_s: f64, invalid: Value| {
        json!({ "sender": sender, "kbit_per_s": kbit_per_s, "failure": null, "invalid": invalid,
                "capture": { "resent_packets": 3 }, "repair": { "timeouts": 1 } })
    };
    let transfers = [
        transfer("linux", 100.0, Value::Null),
        transfer("linux:cubic", 101.0, Value::Null),
        transfer("linux", 200.0, "late".into()),
        transfer("linux:cubic", 201.0, Value::Null),
        transfer("linux", 300.0, Value::Null),
        transfer("linux:cubic", 301.0, "late".into()),
        transfer("linux", 400.0, Value::Null),
        transfer("linux:cubic", 401.0, Value::Null),
    ];
    let (ours, kernels, left_out) = pairs_of(&json!({ "transfers": transfers }), "linux", "linux:cubic");
    assert_eq!((ours.kbit_per_s, kernels.kbit_per_s), (vec![100.0, 400.0], vec![101.0, 401.0]));
    assert_eq!((ours.resent.len(), kernels.timeouts.len(), left_out), (2, 2, 2));
}

#[test]
fn known_difference_has_sign_and_bounds() {
    let known: Expected = toml::from_str(include_str!("expected.toml")).unwrap();
    assert!(known.difference.iter().all(|row| row.from < row.to), "{known:?}");
    let row: Difference = toml::from_str(
        r#"sender = "bbr-linux"
           path = "random-5"
           what = "resent"
           from = -35
           to = 0
           reason = "made up""#,
    )
    .unwrap();
    let difference = |quantity, mean| MeanDifference { quantity, mean };
    assert!(
        row.covers(&difference(Quantity::Resent, -22.0)) && row.covers(&difference(Quantity::Resent, -13.0))
    );
    for other in [
        difference(Quantity::Resent, 22.0),
        difference(Quantity::Resent, -60.0),
        difference(Quantity::Goodput, -22.0),
    ] {
        assert!(!row.covers(&other), "{other:?}");
    }
    // Differences have the sign and the unit of the entries in `expected.toml`.
    let transfers = |kbit_per_s: f64, resent: [f64; 3]| Transfers {
        kbit_per_s: vec![kbit_per_s, kbit_per_s + 1.0, kbit_per_s + 2.0],
        resent: resent.to_vec(),
        timeouts: vec![0.0; 3],
    };
    let (line, excessive) =
        compare(&transfers(80.0, [50.0, 51.0, 52.0]), &transfers(100.0, [76.0, 77.0, 76.0]));
    assert_eq!(
        excessive.iter().map(|difference| difference.quantity).collect::<Vec<_>>(),
        [Quantity::Goodput, Quantity::Resent],
        "{line}"
    );
    assert!(
        (-21.0..-19.0).contains(&excessive[0].mean) && (-26.0..-25.0).contains(&excessive[1].mean),
        "{excessive:?}"
    );
}

#[test]
fn few_pairs_match_kernel_on_two_paths() {
    // The path with the radio link takes longest, so it runs only in `make nightly`.
    let paths = [("random-5", "300k"), ("wcdma-384", "60k")];
    assert_senders_match(&paths[..size(1, 2)], &SENDERS[..1], 4, false);
}

/// AIRTCP_PAIRS sets the number of pairs (default: thirty), and AIRTCP_PATHS names the paths (default: all).
#[test]
#[ignore = "hours: see `make pairs`"]
fn thirty_pairs_match_kernel_on_eight_paths() {
    let pairs = std::env::var("AIRTCP_PAIRS").ok().map_or(30, |pairs| pairs.parse().unwrap());
    let named = std::env::var("AIRTCP_PATHS").ok();
    let is_selected =
        |path: &str| named.as_ref().is_none_or(|named| named.split(',').any(|name| name == path));
    let paths: Vec<_> = PATHS.into_iter().filter(|(path, _)| is_selected(path)).collect();
    assert!(!paths.is_empty(), "AIRTCP_PATHS names none of {PATHS:?}");
    assert_senders_match(&paths, &SENDERS, pairs, named.is_none());
}
