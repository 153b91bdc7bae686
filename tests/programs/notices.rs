//! Recipes whose information never arrives: a warning before the run, and a notice in every output of it.

use std::fs;
use std::process::Command;

use airtcp_testkit::machine::{TempDir, run};
use airtcp_testkit::programs::program;
use serde_json::Value;

/// A base station that marks nothing.
const SILENT: &str = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"1Mbit\", delay = \"10ms\" }\n\
                      [[stage]]\nkind = \"station\"\n";
const FORESEEN: &str = "etcp: transit-marks: no transit marks will arrive: no `station` of the path has \
                        `transit_marks = true`; it works like `always-congestion`";
const OBSERVED: &str = "transit-marks: 0 transit marks received; it works like `always-congestion`";

/// Joins lines that were broken to fit the terminal.
fn unbroken(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn recipe_without_its_information_is_reported_by_sim_and_check() {
    let place = TempDir::new("notices");
    let file = place.join("silent.toml");
    fs::write(&file, SILENT).unwrap();
    let file = file.to_str().unwrap();
    let sim = |more: &[&str]| {
        let usual = ["sim", "-s", file, "--recipe", "reno", "--recipe", "etcp", "--bytes", "20k"];
        let ended = run(&[&usual[..], more].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended
    };
    let text = sim(&[]);
    assert!(text.stderr.contains(FORESEEN) && text.stderr.lines().count() == 1, "{}", text.stderr);
    assert!(unbroken(&text.stdout).contains(&format!("etcp: {OBSERVED}")), "{}", text.stdout);
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{}", text.stdout);
    let report: Value = serde_json::from_str(&sim(&["--json"]).stdout).unwrap();
    let flows = &report["report"]["flows"];
    assert_eq!((&flows[0]["notices"], &flows[1]["notices"][0]), (&Value::Null, &OBSERVED.into()), "{flows}");
    assert_eq!(sim(&["-q"]).stderr, "");
    let marking = sim(&["--set", "station.transit_marks=true"]);
    assert_eq!(marking.stderr, "");
    assert!(!marking.stdout.contains("transit marks"), "{}", marking.stdout);

    let checked = Command::new(program("airlink")).args(["check", file]).output().unwrap();
    let said = String::from_utf8(checked.stderr).unwrap();
    assert!(said.contains("warning: station: the stage does nothing: neither `transit_marks`"), "{said}");
}

#[test]
fn recipe_without_its_information_is_reported_by_sweep() {
    let place = TempDir::new("notices-sweep");
    fs::write(place.join("silent.toml"), SILENT).unwrap();
    let file = place.join("marks.toml");
    let sweep = "schema = 1\nseeds = 2\n[fixed]\nscenario = \"silent.toml\"\nbytes = \"20k\"\n\
                 [axes]\nrecipe = [\"reno\", \"etcp\"]\n";
    fs::write(&file, sweep).unwrap();
    let file = file.to_str().unwrap();
    let sweep = |words: &[&str]| {
        let ended = run(&[&["sweep"][..], words, &[file]].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended
    };
    for command in ["plan", "run"] {
        let said = sweep(&[command]).stderr;
        assert!(said.contains(&format!("{FORESEEN} (1 of 2 points)")), "{said}");
    }
    assert!(!sweep(&["run"]).stderr.contains("will arrive"), "all runs have results");
    let text = sweep(&["summary"]).stdout;
    assert!(unbroken(&text).ends_with(&format!("etcp: {OBSERVED} (2 runs)")), "{text}");
    let points = sweep(&["summary", "--json"]).lines;
    assert_eq!(points[0]["notices"], Value::Null);
    assert_eq!(points[1]["notices"][&format!("etcp: {OBSERVED}")], 2, "{}", points[1]);
    let csv = sweep(&["summary", "--csv"]).stdout;
    let rows: Vec<&str> = csv.lines().collect();
    assert!(rows[0].ends_with(",profiles,notices"), "{csv}");
    assert!(
        rows[1].ends_with(",default,") && rows[2].ends_with(&format!(",default,etcp: {OBSERVED}")),
        "{csv}"
    );
}
