//! Our senders `linux`, `reno-linux` and `bbr-linux` beside the kernel's own, on the same paths with the same losses.
//!
//! A pair is one transfer of each, one after the other, over a path with the same seed. Goodput is alike if the 95 %
//! interval of the paired differences reaches 5 % of the kernel's, what is sent again if it reaches 10 % (or a segment),
//! timeouts if it reaches 0. The lines that are printed have the intervals, so that one sees how much has been shown.
//! What is known to differ stands in `expected.toml`, with the reason.
//!
//! `make pairs` takes thirty pairs of every sender on every path, and a machine that has nothing else to do. AIRTCP_JOBS
//! transfers run at a time.

use std::collections::BTreeSet;

use airtcp_numbers::statistics::{Mean, average, differences, gains};
use airtcp_testkit::machine::{TempFile, run};
use airtcp_testkit::programs::repository;
use airtcp_testkit::sample::size;
use serde::Deserialize;
use serde_json::{Value, json};

/// Ours, the kernel's.
const SENDERS: [(&str, &str); 3] =
    [("linux", "linux:cubic"), ("reno-linux", "linux:reno"), ("bbr-linux", "linux:bbr")];

/// A file in `paths` or a preset, and octets of a transfer.
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

const GOODPUT: f64 = 0.05;
const RESENT: f64 = 0.10;

/// What is known to differ.
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
    what: What,
    /// The least and the most that the mean of the paired differences may be, ours less the kernel's: goodput in per cent,
    /// segments, timeouts.
    from: f64,
    to: f64,
    reason: String,
}

impl Difference {
    fn excuses(&self, found: &Found) -> bool {
        self.what == found.what && (self.from..=self.to).contains(&found.mean)
    }
}

/// More than a pair of senders that are alike would differ by.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Found {
    what: What,
    /// As [`Difference::from`] has it.
    mean: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
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

/// Ours and the kernel's of the rounds in which the machine has spoiled neither, and how many rounds are left out.
fn pairs_of(report: &Value, ours: &str, kernels: &str) -> (Transfers, Transfers, usize) {
    let all = report["transfers"].as_array().unwrap();
    let of = |sender: &str| all.iter().filter(|transfer| transfer["sender"] == sender).collect::<Vec<_>>();
    let (ours, kernels) = (of(ours), of(kernels));
    assert_eq!(ours.len(), kernels.len());
    let (mut own, mut theirs, mut left_out) = (Transfers::default(), Transfers::default(), 0);
    for pair in ours.into_iter().zip(kernels) {
        for transfer in [pair.0, pair.1] {
            assert_eq!(transfer["failure"], Value::Null, "{transfer}");
        }
        if pair.0["spoiled"].is_null() && pair.1["spoiled"].is_null() {
            own.push(pair.0);
            theirs.push(pair.1);
        } else {
            left_out += 1;
        }
    }
    (own, theirs, left_out)
}

/// By how much `estimate` is away from 0 beyond what its interval may be off.
fn certain(estimate: Mean) -> f64 {
    (estimate.mean.abs() - estimate.half_width.unwrap_or(f64::INFINITY)).max(0.0)
}

/// A line that says by how much they differ, and what is too much.
fn compare(ours: &Transfers, kernels: &Transfers) -> (String, Vec<Found>) {
    let goodput = Mean::of(&gains(&ours.kbit_per_s, &kernels.kbit_per_s)).unwrap();
    let resent = Mean::of(&differences(&ours.resent, &kernels.resent)).unwrap();
    let timeouts = Mean::of(&differences(&ours.timeouts, &kernels.timeouts)).unwrap();
    let kernels_resent = average(&kernels.resent).unwrap();
    let too_much = [
        (What::Goodput, 100.0 * goodput.mean, certain(goodput) > GOODPUT),
        // A segment more or less is no difference.
        (What::Resent, resent.mean, certain(resent) > (RESENT * kernels_resent).max(1.0)),
        (What::Timeouts, timeouts.mean, certain(timeouts) > 0.0),
    ];
    let show = |mean: Mean, unit: f64| {
        format!("{:+.2} ± {:.2}", mean.mean * unit, mean.half_width.unwrap_or(f64::INFINITY) * unit)
    };
    let line = format!(
        "goodput {} %, sent again {} beside {kernels_resent:.1}, timeouts {}",
        show(goodput, 100.0),
        show(resent, 1.0),
        show(timeouts, 1.0)
    );
    let found = too_much.into_iter().filter(|(.., is)| *is).map(|(what, mean, _)| Found { what, mean });
    (line, found.collect())
}

fn pairs_on(path: &str, bytes: &str, pairs: u32, senders: &[(&str, &str)]) -> Value {
    let own = repository().join(format!("tests/experiments/pairs/paths/{path}.toml"));
    let scenario = if own.exists() { own.to_str().unwrap().to_owned() } else { path.to_owned() };
    let directory = TempFile::new(&format!("pairs-{path}"));
    let (pairs, output) = (pairs.to_string(), directory.path().to_owned());
    let mut args = vec!["lab", "run", "--json", "--quiet", "--scenario", &scenario, "--output", &output];
    args.extend(["--runs", &pairs, "--bytes", bytes, "--seed", "4711"]);
    for (ours, kernels) in senders {
        args.extend(["--recipe", ours, "--sender", kernels]);
    }
    let jobs = std::env::var("AIRTCP_JOBS").ok();
    args.extend(jobs.iter().flat_map(|jobs| ["--jobs", jobs.as_str()]));
    let run = run(&args);
    let text = std::fs::read_to_string(format!("{output}/lab.json")).unwrap_or_default();
    let _ = std::fs::remove_dir_all(&output);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    serde_json::from_str(&text).unwrap()
}

/// Of our sender of this recipe, whatever its profile, and the kernel's.
fn pairs_with(report: &Value, ours: &str, kernels: &str) -> (Transfers, Transfers, usize) {
    let mut names = report["summary"].as_array().unwrap().iter().filter_map(|row| row["sender"].as_str());
    let name = names.find(|name| name.split('@').next() == Some(ours)).unwrap();
    pairs_of(report, name, kernels)
}

/// A machine that has spoiled nearly all pairs may have other things to do for a minute.
const ATTEMPTS: usize = 3;

/// Compares on these paths. `all`: a row of `expected.toml` that is not needed is an error.
fn hold(paths: &[(&str, &str)], senders: &[(&str, &str)], pairs: u32, all: bool) {
    let expected: Expected = toml::from_str(include_str!("expected.toml")).unwrap();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (path, bytes) in paths {
        let tried = (1..=ATTEMPTS).find_map(|attempt| {
            let report = pairs_on(path, bytes, pairs, senders);
            let are_enough =
                |(ours, kernels): &(&str, &str)| pairs_with(&report, ours, kernels).0.kbit_per_s.len() > 1;
            (attempt == ATTEMPTS || senders.iter().all(are_enough)).then_some(report)
        });
        let report = tried.unwrap();
        for (ours, kernels) in senders {
            let (own, theirs, left_out) = pairs_with(&report, ours, kernels);
            assert!(own.kbit_per_s.len() > 1, "{path}, {ours}: the machine has spoiled {left_out} pairs");
            let (line, differ) = compare(&own, &theirs);
            let spoiled = match left_out {
                0 => String::new(),
                left_out => format!("; {left_out} pairs left out, as the machine has spoiled them"),
            };
            println!("{path}, {ours}: {line}{spoiled}");
            for found in differ {
                let about =
                    |row: &Difference| row.sender == *ours && row.path == *path && row.excuses(&found);
                match expected.difference.iter().position(about) {
                    Some(row) => drop(seen.insert(row)),
                    None => wrong.push(format!("{path}, {ours}: {:?}: {line}", found.what)),
                }
            }
        }
    }
    let needless = expected.difference.iter().enumerate().filter(|(row, _)| all && !seen.contains(row));
    wrong.extend(needless.map(|(_, row)| {
        format!("no difference is seen any more, but expected.toml has {row:?}: {}", row.reason)
    }));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_pair_of_which_the_machine_has_spoiled_one_counts_for_neither() {
    let transfer = |sender: &str, kbit_per_s: f64, spoiled: Value| {
        json!({ "sender": sender, "kbit_per_s": kbit_per_s, "failure": null, "spoiled": spoiled,
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
fn a_known_difference_has_a_direction_and_a_size() {
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
    let found = |what, mean| Found { what, mean };
    assert!(row.excuses(&found(What::Resent, -22.0)) && row.excuses(&found(What::Resent, -13.0)));
    for another in [found(What::Resent, 22.0), found(What::Resent, -60.0), found(What::Goodput, -22.0)] {
        assert!(!row.excuses(&another), "{another:?}");
    }
    // What is found has the sign and the unit of the rows.
    let transfers = |kbit_per_s: f64, resent: [f64; 3]| Transfers {
        kbit_per_s: vec![kbit_per_s, kbit_per_s + 1.0, kbit_per_s + 2.0],
        resent: resent.to_vec(),
        timeouts: vec![0.0; 3],
    };
    let (line, differ) = compare(&transfers(80.0, [50.0, 51.0, 52.0]), &transfers(100.0, [76.0, 77.0, 76.0]));
    assert_eq!(
        differ.iter().map(|found| found.what).collect::<Vec<_>>(),
        [What::Goodput, What::Resent],
        "{line}"
    );
    assert!(
        (-21.0..-19.0).contains(&differ[0].mean) && (-26.0..-25.0).contains(&differ[1].mean),
        "{differ:?}"
    );
}

#[test]
fn a_few_pairs_on_two_paths_are_alike() {
    // The radio link takes most of the time.
    let paths = [("random-5", "300k"), ("wcdma-384", "60k")];
    hold(&paths[..size(1, 2)], &SENDERS[..1], 4, false);
}

/// AIRTCP_PAIRS pairs, thirty if it is not set; of the paths that AIRTCP_PATHS names, all if it is not set.
#[test]
#[ignore = "hours: see `make pairs`"]
fn thirty_pairs_on_eight_paths_are_alike() {
    let pairs = std::env::var("AIRTCP_PAIRS").ok().map_or(30, |pairs| pairs.parse().unwrap());
    let named = std::env::var("AIRTCP_PATHS").ok();
    let wanted = |path: &str| named.as_ref().is_none_or(|named| named.split(',').any(|name| name == path));
    let paths: Vec<_> = PATHS.into_iter().filter(|(path, _)| wanted(path)).collect();
    assert!(!paths.is_empty(), "AIRTCP_PATHS names none of {PATHS:?}");
    hold(&paths, &SENDERS, pairs, named.is_none());
}
