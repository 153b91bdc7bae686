//! Recipes whose information never arrives: a warning before the run, and a notice in every output of the
//! run.

use std::fs;
use std::process::Command;

use airtcp_testkit::machine::{TempDir, run};
use airtcp_testkit::programs::program;
use serde_json::Value;

/// A base station that marks nothing.
const SILENT: &str = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"1Mbit\", delay = \"10ms\" }\n\
                      [[stage]]\nkind = \"station\"\n";
const WARNING: &str = "etcp: transit-marks: no transit marks will arrive: no `station` of the path has \
                        `transit_marks = true`; it works like `always-congestion`";
const NOTICE: &str = "transit-marks: 0 transit marks received; it works like `always-congestion`";

/// Joins lines that were broken to fit the terminal.
fn unwrap_lines(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn sim_and_check_report_recipe_without_information() {
    let directory = TempDir::new("notices");
    let file = directory.join("silent.toml");
    fs::write(&file, SILENT).unwrap();
    let file = file.to_str().unwrap();
    let sim = |more: &[&str]| {
        let arguments = ["sim", "-s", file, "--recipe", "reno", "--recipe", "etcp", "--bytes", "20k"];
        let ended = run(&[&arguments[..], more].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended
    };
    let text = sim(&[]);
    assert!(text.stderr.contains(WARNING) && text.stderr.lines().count() == 1, "{}", text.stderr);
    assert!(unwrap_lines(&text.stdout).contains(&format!("etcp: {NOTICE}")), "{}", text.stdout);
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{}", text.stdout);
    let report: Value = serde_json::from_str(&sim(&["--json"]).stdout).unwrap();
    let flows = &report["report"]["flows"];
    assert_eq!((&flows[0]["notices"], &flows[1]["notices"][0]), (&Value::Null, &NOTICE.into()), "{flows}");
    assert_eq!(sim(&["-q"]).stderr, "");
    let marking = sim(&["--set", "station.transit_marks=true"]);
    assert_eq!(marking.stderr, "");
    assert!(!marking.stdout.contains("transit marks"), "{}", marking.stdout);

    let checked = Command::new(program("airlink")).args(["check", file]).output().unwrap();
    let text = String::from_utf8(checked.stderr).unwrap();
    assert!(text.contains("warning: station: the stage does nothing: neither `transit_marks`"), "{text}");
}

#[test]
fn recipe_without_its_information_is_reported_by_sweep() {
    let directory = TempDir::new("notices-sweep");
    fs::write(directory.join("silent.toml"), SILENT).unwrap();
    let file = directory.join("marks.toml");
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
        let text = sweep(&[command]).stderr;
        assert!(text.contains(&format!("{WARNING} (1 of 2 points)")), "{text}");
    }
    assert!(!sweep(&["run"]).stderr.contains("will arrive"), "all runs have results");
    let text = sweep(&["summary"]).stdout;
    assert!(unwrap_lines(&text).ends_with(&format!("etcp: {NOTICE} (2 runs)")), "{text}");
    let points = sweep(&["summary", "--json"]).lines;
    assert_eq!(points[0]["notices"], Value::Null);
    assert_eq!(points[1]["notices"][&format!("etcp: {NOTICE}")], 2, "{}", points[1]);
    let csv = sweep(&["summary", "--csv"]).stdout;
    let rows: Vec<&str> = csv.lines().collect();
    assert!(rows[0].ends_with(",profiles,notices"), "{csv}");
    assert!(rows[1].ends_with(",default,"), "{csv}");
    assert!(rows[2].ends_with(&format!(",default,etcp: {NOTICE}")), "{csv}");
}
