//! The log of `airlink` agrees with the summary and with the event file, including the times.

mod sample_scenario;

use std::process::{Command, Output};

use airtcp_testkit::temporary::TempDir;
use serde_json::Value;

fn sim(directory: &TempDir, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airlink"));
    command.args(["sim", "--for", "5s", "--json", "--scenario", &directory.path("scenario.toml")]);
    let output = command.args(more).env_remove("RUST_LOG").env("TZ", "UTC").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

/// Runs a simulation. Returns the log lines as JSON objects, and the summary.
fn logged(directory: &TempDir, more: &[&str]) -> (Vec<Value>, Value) {
    let output = sim(directory, &[&["--log-format", "json"], more].concat());
    let lines = text(&output.stderr);
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (lines, serde_json::from_slice(&output.stdout).unwrap())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn default_log_has_every_reset_outage_and_handover() {
    let directory = sample_scenario::directory("default");
    let (log, summary) = logged(&directory, &[]);
    let messages = |message: &str| log.iter().filter(|line| line["message"] == message).collect::<Vec<_>>();
    let radio = &summary["stages"]["radio"];
    let counted = ["down", "up"].map(|direction| radio[direction]["sender"]["resets"].as_u64().unwrap());
    assert!(counted[0] > 0, "{radio}");
    assert_eq!(messages("RLC reset").len() as u64, counted[0] + counted[1]);
    assert!(messages("RLC reset").iter().all(|line| line["cause"] == "max-dat" && line["stage"] == "radio"));
    let handovers = messages("handover").iter().map(|line| line["times"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(handovers, 3, "two handovers happen between the same two packets");
    assert_eq!(summary["stages"]["cell"]["handovers"], handovers);
    let outages = messages("outage");
    assert_eq!(outages.iter().filter(|line| line["direction"] == "down").count(), 1, "{outages:?}");
    let at = outages[0]["wall"].as_f64().unwrap();
    assert!((1.0..1.3).contains(&at), "virtual time starts in 1970: {at}");
    assert!(log.iter().all(|line| line["level"] == "INFO"), "{log:?}");
    assert!(sim(&directory, &["-q"]).stderr.is_empty());
}

#[test]
fn packet_log_matches_the_event_file() {
    let directory = sample_scenario::directory("packets");
    let events = directory.path("events.jsonl");
    let (log, summary) = logged(&directory, &["-vv", "--events", &events]);
    let packets: Vec<&Value> = log.iter().filter(|line| line["target"] == "airlink::packet").collect();
    let events = std::fs::read_to_string(events).unwrap();
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&Value> = events.iter().filter(|event| event["packet"].is_u64()).collect();
    assert_eq!(packets.len(), events.len());
    for (logged, event) in packets.iter().zip(&events) {
        for (log_key, event_key) in
            [("message", "event"), ("packet", "packet"), ("direction", "direction"), ("stage", "stage")]
        {
            assert_eq!(logged[log_key], event[event_key], "{logged} {event}");
        }
        let t = event["t"].as_u64().unwrap() as f64 / 1e9;
        assert!((logged["wall"].as_f64().unwrap() - t).abs() < 1e-9, "{logged} {event}");
        assert_eq!(logged["why"], event["why"]);
    }
    let (debug_log, _) = logged(&directory, &["-v"]);
    let dropped = debug_log.iter().filter(|line| line["message"] == "dropped").count() as u64;
    let counted: u64 = ["down", "up"]
        .iter()
        .flat_map(|direction| summary[direction]["dropped"].as_object().unwrap().values())
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert_eq!(dropped, counted);
    assert!(!debug_log.iter().any(|line| line["message"] == "entered"));
}

#[test]
fn text_log_has_time_level_and_packet_summary() {
    let directory = sample_scenario::directory("text");
    let log = directory.path("log");
    let output = sim(&directory, &["-vv", "--log-file", &log, "--seed", "1"]);
    assert!(output.stderr.is_empty());
    let log = std::fs::read_to_string(log).unwrap();
    let first = log.lines().find(|line| line.contains("entered")).unwrap();
    assert!(first.starts_with("00:00:00.000000 TRACE entered packet=0 direction=down ip=\"IP "), "{first}");
}
