//! The files of `airtcp reproduce --setups` repeat the runs of the figures bit for bit.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};

use airtcp_reproduce::lai2013::{self, setting::Extent};
use airtcp_reproduce::pan2004::setting::MSS;
use airtcp_reproduce::{Effort, Paper, Runs, Watcher, figures};
use airtcp_sim::run::{Report, Run, run};
use airtcp_testkit::machine::TempDir;
use airtcp_testkit::sample::{sample, seed};
use airwire::time::Instant;

use crate::helpers::{good, refused};

/// The reports of a figure, by run.
#[derive(Debug, Default)]
struct Reports(Mutex<BTreeMap<String, Report>>);

impl Watcher for Reports {
    fn ran(&self, run: &Run, report: &Report) {
        self.0.lock().unwrap().insert(run.to_json(), report.clone());
    }

    fn expects(&self, _: u64) {}
}

/// Runs a figure with one seed, and repeats `count` of its runs from their files.
fn check_files(id: &str, count: usize, figure: impl FnOnce(&Effort)) {
    let (reports, runs) = (Arc::<Reports>::default(), Arc::<Runs>::default());
    figure(&Effort::watched(1, reports.clone()).starting_at(seed()).recording(runs.clone()));
    let files = runs.files();
    assert!(!files.is_empty(), "{id}");
    let reports = reports.0.lock().unwrap();
    for (number, file) in sample(id, (1..).zip(files), count) {
        let again = run(&Run::from_json(&file).unwrap()).unwrap();
        assert_eq!(Some(&again), reports.get(&file), "{id}-{number}.json");
    }
}

fn check_figure(id: &str, count: usize) {
    let figure = figures().into_iter().find(|figure| figure.id == id).unwrap();
    check_files(id, count, |effort| drop(figure.run(effort).unwrap()));
}

#[test]
fn files_repeat_runs_of_pan2004() {
    check_figure("p0-fig6", 4);
}

#[test]
fn files_repeat_runs_of_ni2002() {
    check_figure("p1-fig8", 4);
}

#[test]
fn files_repeat_runs_of_inamura2009() {
    check_figure("p2-fig13", 2);
    check_figure("p2-fig7", 2);
}

#[test]
fn files_repeat_runs_of_lai2013() {
    let short = Extent { error_rates: &[2], from: Instant::from_secs(5), until: Instant::from_secs(20) };
    check_files("p3-fig2c", 4, |effort| drop(lai2013::out_of_order(effort, &short).unwrap()));
    check_files("p3-theorem1", 2, |effort| drop(lai2013::theorem_1(effort, &short).unwrap()));
}

#[test]
fn files_repeat_runs_of_chandra2003() {
    check_figure("p4-table3", 2);
}

/// `airtcp sim` reads the files that `airtcp reproduce` writes, and its run has the value that the figure
/// measured.
#[test]
fn sim_repeats_what_reproduce_measured() {
    let dir = TempDir::new("runs");
    let runs = dir.path("runs");
    good(&["reproduce", "p0-fig6", "--seeds", "2", "--most-seeds", "2", "--setups", &runs, "--quiet"]);
    let csv = |name: &str| -> Vec<Vec<String>> {
        let text = fs::read_to_string(format!("{runs}/p0-fig6-{name}.csv")).unwrap();
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    let (points, seeds) = (csv("points"), csv("seeds"));
    let column = |table: &[Vec<String>], name: &str| {
        table[0].iter().position(|heading| heading == name).unwrap_or_else(|| panic!("{:?}", table[0]))
    };
    assert_eq!(2 * (points.len() - 1), seeds.len() - 1);
    let packets = column(&seeds, "packets acknowledged");
    let bad = column(&points, "scenario.stage.radio-errors.down.bad_to_good");
    for row in sample("values by seed", &seeds[1..], 3) {
        let (point, seed) = (&row[0], &row[1]);
        let file = format!("{runs}/p0-fig6-{point}.json");
        let line = good(&["sim", "--run", &file, "--seed", seed, "--json"]).lines.remove(0);
        let acked = line["report"]["flows"][0]["acked"].as_u64().unwrap() / u64::from(MSS);
        assert_eq!(row[packets].parse::<f64>().unwrap(), acked as f64, "{file}");
        let run = Run::from_json(&fs::read_to_string(&file).unwrap()).unwrap();
        let stage = run.scenario.get("radio-errors.down.bad_to_good").unwrap();
        assert_eq!(points[point.parse::<usize>().unwrap()][bad], stage.as_str().unwrap(), "{file}");
        let command = line["command"].as_str().unwrap();
        assert_eq!(command, format!("airtcp sim --run {file} --seed {seed}"));
    }
    let file = format!("{runs}/p0-fig6-1.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\"ttl\": 64", "\"tll\": 64", 1)).unwrap();
    let message = refused(&["sim", "--run", &file], 2);
    assert!(message.contains("p0-fig6-1.json: not a valid run: unknown field `tll`"), "{message}");
}

/// One command verifies the files of a bundle, and the runs from its set-ups to its claims.
#[test]
fn bundle_is_verified_with_its_setups() {
    let dir = TempDir::new("bundle");
    let bundle = dir.path("bundle");
    let setups = format!("{bundle}/setups");
    let seeds = ["--seeds", "2", "--most-seeds", "2"];
    let written: [&str; 7] = ["reproduce", "p0-fig6", "--record", &bundle, "--setups", &setups, "--quiet"];
    good(&[&written[..], &seeds].concat());
    let instructions = fs::read_to_string(format!("{bundle}/BUNDLE.md")).unwrap();
    assert!(instructions.contains("airtcp sim --run setups/p0-fig6-1.json"), "{instructions}");
    let sums = fs::read_to_string(format!("{bundle}/SHA256SUMS")).unwrap();
    for name in ["BUNDLE.md", "README.md", "data/p0-fig6.csv", "setups/p0-fig6-seeds.csv"] {
        assert!(sums.lines().any(|line| line.ends_with(&format!("  {name}"))), "{name} in {sums}");
    }
    let verify: [&str; 3] = ["reproduce", "--verify-record", &bundle];
    good(&verify);

    let file = format!("{setups}/p0-fig6-seeds.csv");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen(",2,", ",3,", 1)).unwrap();
    let message = refused(&verify, 1);
    assert!(message.contains("setups/p0-fig6-seeds.csv"), "{message}");
    // Without checksums, the repeated runs show the difference.
    fs::remove_file(format!("{bundle}/SHA256SUMS")).unwrap();
    let ended = airtcp_testkit::machine::run(&verify);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("p0-fig6: differs in setups/p0-fig6-seeds.csv"), "{}", ended.stderr);
}

fn check_paper(paper: Paper) {
    for figure in figures().into_iter().filter(|figure| figure.paper == paper) {
        check_files(figure.id, 10, |effort| drop(figure.run(effort).unwrap()));
    }
}

#[test]
#[ignore = "nightly: simulates all figures"]
fn files_repeat_all_figures_of_pan2004() {
    check_paper(Paper::Pan2004);
}

#[test]
#[ignore = "nightly: simulates all figures"]
fn files_repeat_all_figures_of_ni2002() {
    check_paper(Paper::Ni2002);
}

#[test]
#[ignore = "nightly: simulates all figures"]
fn files_repeat_all_figures_of_inamura2009() {
    check_paper(Paper::Inamura2009);
}

#[test]
#[ignore = "nightly: simulates all figures"]
fn files_repeat_all_figures_of_lai2013() {
    check_paper(Paper::Lai2013);
}

#[test]
#[ignore = "nightly: simulates all figures"]
fn files_repeat_all_figures_of_chandra2003() {
    check_paper(Paper::Chandra2003);
}
