//! A run in virtual time logs the same events as `airtcp send`, with the times of the run.

use std::fs;

use airtcp_testkit::machine::{TempFile, run};
use serde_json::Value;

const RUN: [&str; 7] = ["sim", "-s", "wcdma-384", "--set", "radio.down.queue.packets=10", "--bytes", "100k"];

fn logged(more: &[&str]) -> (Vec<Value>, String) {
    let ended = run(&[&RUN[..], &["--log-format", "json"], more].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    (ended.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), ended.stdout)
}

#[test]
fn verbosity_levels_add_events_in_virtual_time() {
    let quiet = run(&RUN);
    assert!(quiet.stderr.is_empty(), "{}", quiet.stderr);
    let of = |lines: &[Value], target: &str| lines.iter().filter(|line| line["target"] == target).count();
    let (lines, stdout) = logged(&["-v"]);
    assert_eq!(stdout, quiet.stdout, "logging must not change stdout");
    // Both ends of the simulated connection are airtcp hosts.
    let established = lines.iter().filter(|line| line["message"] == "established");
    let ends: Vec<&Value> = established.map(|line| &line["connection"]["local"]).collect();
    assert!(ends.len() == 2 && ends[0] != ends[1], "{lines:?}");
    let (lines, _) = logged(&["-vv"]);
    assert!(of(&lines, "airtcp::recovery") > 0 && of(&lines, "airtcp::timer") > 0);
    assert_eq!(of(&lines, "airtcp::segment"), 0);
    let (lines, _) = logged(&["-vvv"]);
    assert!(of(&lines, "airtcp::segment") > 100);
    let times: Vec<f64> = lines.iter().map(|line| line["wall"].as_f64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] == 0.0, "times must be sorted and start at 0: {:?}", &times[..3]);
}

#[test]
fn log_matches_decision_file_and_capture() {
    let (decisions, pcap) = (TempFile::new("sim.jsonl"), TempFile::new("sim.pcap"));
    let (lines, _) = logged(&["-vvv", "--decisions", decisions.path(), "--pcap", pcap.path()]);
    let of = |target: &str| lines.iter().filter(|line| line["target"] == target).collect::<Vec<_>>();
    let text = fs::read_to_string(decisions.path()).unwrap();
    let written: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sender = of("airtcp::segment")[0]["connection"]["local"].clone();
    let decided: Vec<&Value> =
        of("airtcp::recovery").into_iter().filter(|line| line["connection"]["local"] == sender).collect();
    assert!(!written.is_empty() && decided.len() == written.len());
    for (logged, written) in decided.iter().zip(&written) {
        assert_eq!((&logged["by"], &logged["why"]), (&written["by"], &written["why"]));
        let [wall, time] = [&logged["wall"], &written["time"]].map(|time| time.as_f64().unwrap());
        assert!((wall - time).abs() < 1e-6, "{logged} {written}");
    }
    let captured = run(&["analyze", "--json", pcap.path()]);
    let document: Value = serde_json::from_str(&captured.stdout).unwrap();
    assert_eq!(document["captures"][0]["totals"]["tcp_packets"], of("airtcp::segment").len());
}
