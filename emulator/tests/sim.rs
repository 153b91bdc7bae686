//! `airlink sim` as a user runs it, and the contents of its output files.

mod sample_scenario;

use std::collections::BTreeMap;
use std::process::Command;

use airtcp_testkit::temporary::TempDir;
use serde_json::Value;

const FILES: [(&str, &str); 5] = [
    ("--radio-pcap", "radio.pcap"),
    ("--pcapng", "all.pcapng"),
    ("--events", "events.jsonl"),
    ("--pcap-fixed", "fixed.pcap"),
    ("--pcap-mobile", "mobile.pcap"),
];

/// Runs a simulation and returns the contents of every file that it writes. `name` is the prefix of the files.
fn simulate(directory: &TempDir, name: &str, seed: &str) -> BTreeMap<&'static str, Vec<u8>> {
    let mut command = sim(&directory.path("scenario.toml"));
    command.args(["--for", "5s", "--size", "mix", "--json", "--seed", seed]);
    for (option, file) in FILES {
        command.arg(option).arg(directory.path(&format!("{name}-{file}")));
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut files: BTreeMap<_, _> = FILES
        .iter()
        .map(|(_, file)| (*file, std::fs::read(directory.path(&format!("{name}-{file}"))).unwrap()))
        .collect();
    files.insert("summary", output.stdout);
    files
}

fn sim(scenario: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airlink"));
    command.arg("sim").arg("--scenario").arg(scenario);
    command
}

/// Options of tshark that print the interface and the comment of each packet.
const COMMENTS: [&str; 6] = ["-T", "fields", "-e", "frame.interface_name", "-e", "frame.comment"];

fn tshark(file: &str, args: &[&str]) -> String {
    let output = Command::new("tshark").args(["-r", file]).args(args).output();
    let output = output.expect("this test needs tshark: sh interop/setup.sh test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn output_files_depend_only_on_the_seed() {
    let directory = sample_scenario::directory("repeat");
    let first = simulate(&directory, "first", "1");
    let repeated = simulate(&directory, "repeated", "1");
    let other = simulate(&directory, "other", "2");
    for (name, bytes) in &first {
        assert!(bytes.len() > 100, "{name} is empty");
        assert!(*bytes == repeated[name], "{name} differs with the same seed");
        assert!(*bytes != other[name], "{name} is identical with another seed");
    }
}

#[test]
fn events_account_for_every_packet() {
    let directory = sample_scenario::directory("events");
    let files = simulate(&directory, "run", "1");
    let text = String::from_utf8(files["events.jsonl"].clone()).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary: Value = serde_json::from_slice(&files["summary"]).unwrap();

    let (start, end) = (&events[0], events.last().unwrap());
    assert_eq!(start["event"], "start");
    assert_eq!(start["schema_version"], 1);
    assert_eq!(start["stages"], serde_json::json!(["wire", "cell", "hole", "air", "radio"]));
    assert_eq!(end["event"], "end");
    assert_eq!(end["down"], summary["down"]);

    let mut last = 0;
    let mut outcomes = BTreeMap::new();
    for event in &events[1..events.len() - 1] {
        let t = event["t"].as_u64().unwrap();
        assert!(t >= last, "{event} goes back in time");
        last = t;
        // Events of stages have no packet.
        let Some(packet) = event["packet"].as_u64() else { continue };
        match event["event"].as_str().unwrap() {
            "entered" => assert_eq!(outcomes.insert(packet, 0), None),
            "left" => *outcomes.get_mut(&packet).unwrap() += 1,
            "dropped" => {
                *outcomes.get_mut(&packet).unwrap() += 1;
                let cause = match event["why"].as_str().unwrap() {
                    "queue-full" => "congestion",
                    _ => "radio",
                };
                assert_eq!(event["cause"], cause);
                assert!(event["stage"].is_string());
            }
            "queued" | "sent" | "marked" => assert!(event["stage"].is_string()),
            other => panic!("unexpected event `{other}` in this scenario"),
        }
    }
    assert!(outcomes.values().all(|count| *count == 1), "each packet must leave or be dropped exactly once");
    let dropped = |why: &str| summary["down"]["dropped"][why].as_u64().unwrap_or(0);
    for why in ["queue-full", "loss", "rlc-reset"] {
        let counted =
            events.iter().filter(|event| event["direction"] == "down" && event["why"] == why).count() as u64;
        assert!(counted > 0, "this scenario drops packets for {why}");
        assert_eq!(counted, dropped(why));
    }
    assert_eq!(summary["arrived"]["down"]["damaged"], 0);
    assert_eq!(summary["arrived"]["down"]["intact"], summary["down"]["left"]);
}

/// A link, four stages that each change about 10 % of the packets, and a policer.
const IMPAIRED: &str = r#"
schema = 1
[[stage]]
kind = "link"
name = "wire"
down = { rate = "2Mbit", delay = "10ms" }
[[stage]]
kind = "duplicate"
down = { chance = "10%", gap = "3ms" }
[[stage]]
kind = "reorder"
down = { chance = "10%", distance = 2 }
[[stage]]
kind = "corrupt"
down = { chance = "10%", where = "payload", bits = 2 }
[[stage]]
kind = "truncate"
down = { chance = "10%", to = "100B" }
[[stage]]
kind = "policer"
down = { rate = "1900kbit", burst = "3kB" }
"#;

#[test]
fn events_comments_and_summary_agree_on_impairments() {
    let directory = sample_scenario::directory("impaired");
    let scenario = directory.write("impaired.toml", IMPAIRED);
    let [events, comments] = ["events.jsonl", "comments.pcapng"].map(|name| directory.path(name));
    let mut command = sim(&scenario);
    command.args(["--for", "5s", "--json", "--down", "saturate", "--up", "none"]);
    let output = command.args(["--events", &events, "--pcapng", &comments]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = std::fs::read_to_string(events).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |event: &str| events.iter().filter(|line| line["event"] == event).count() as u64;
    let down = &summary["down"];
    let dropped = down["dropped"]["policed"].as_u64().unwrap();
    assert!(dropped > 0 && count("dropped") == dropped);
    let copied = down["copied"].as_u64().unwrap();
    assert_eq!([count("copied"), count("entered")], [copied, copied + down["entered"].as_u64().unwrap()]);
    let left = down["left"].as_u64().unwrap();
    assert_eq!(count("entered"), left + dropped + summary["held"].as_u64().unwrap());
    let stages = &summary["stages"];
    assert_eq!(count("corrupted"), stages["corrupt"]["down"]["corrupted"].as_u64().unwrap());
    assert_eq!(count("truncated"), stages["truncate"]["down"]["truncated"].as_u64().unwrap());
    assert_eq!(count("overtaken"), stages["reorder"]["down"]["overtaken"].as_u64().unwrap());
    for event in ["corrupted", "truncated", "overtaken"] {
        assert!(count(event) > 10, "{event}");
    }
    let arrived = &summary["arrived"]["down"];
    assert!(arrived["damaged"].as_u64().unwrap() > 0 && arrived["late"].as_u64().unwrap() > 0, "{arrived}");

    let text = tshark(&comments, &COMMENTS);
    // Each packet has two comments: where it enters the path, and where it leaves or is dropped.
    let lines = |what: &str| text.lines().filter(|line| line.contains(what)).count() as u64;
    assert_eq!(lines(" copy-of=") / 2, copied);
    for comment in [" corrupted=2 checksum=fails", " truncated-from=", " overtaken="] {
        assert!(lines(comment) > 20, "{comment}");
    }
    let is_copy = |line: &str| line.starts_with("duplicate\t");
    assert!(text.lines().any(is_copy), "a copy must enter at the stage that creates it");
    assert_eq!(lines("why=policed cause=congestion"), 2 * dropped);
}

#[test]
fn pcapng_packets_have_comments_and_match_the_summary() {
    let directory = sample_scenario::directory("comments");
    let files = simulate(&directory, "run", "1");
    let summary: Value = serde_json::from_slice(&files["summary"]).unwrap();
    let text = tshark(&directory.path("run-all.pcapng"), &COMMENTS);
    let mut points = BTreeMap::<_, u64>::new();
    for line in text.lines() {
        let (point, comment) = line.split_once('\t').unwrap();
        assert!(comment.starts_with("packet=") && comment.contains(" fate="), "{line}");
        *points.entry(point.to_owned()).or_default() += 1;
    }
    let count = |direction: &str, what: &str| summary[direction][what].as_u64().unwrap();
    assert_eq!(points["fixed"], count("down", "entered") + count("up", "left"));
    assert_eq!(points["mobile"], count("up", "entered") + count("down", "left"));
    let full = summary["down"]["dropped"]["queue-full"].as_u64().unwrap();
    assert_eq!(points["wire"], full);
}

#[test]
fn unwritable_file_is_reported_by_name() {
    let directory = sample_scenario::directory("full");
    for (option, _) in FILES {
        let mut command = sim(&directory.path("scenario.toml"));
        let output = command.args(["--for", "2s", option, "/dev/full"]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{option}: {stderr}");
        assert_eq!(stderr.matches("/dev/full").count(), 1, "{option}: {stderr}");
        assert_eq!(stderr.matches("No space left on device").count(), 1, "{option}: {stderr}");
    }
}

#[test]
fn pcapng_without_packets_is_valid() {
    let directory = sample_scenario::directory("empty");
    let path = directory.path("empty.pcapng");
    let mut command = sim("lossless");
    command.args(["--down", "none", "--up", "none", "--pcapng"]).arg(&path);
    assert!(command.output().unwrap().status.success());
    assert_eq!(tshark(&path, &[]), "");
    // Unlike tshark, other programs do not accept an empty file. Check the magic number of the section
    // header.
    assert!(std::fs::read(&path).unwrap().starts_with(&0x0a0d_0d0a_u32.to_le_bytes()));
}

#[test]
fn invalid_load_is_refused_with_a_hint() {
    for (args, hint) in [
        (&["--down", "cbr:64"][..], "384kbit"),
        (&["--up", "lots"], "poisson:RATE"),
        (&["--size", "19"], "20 to 65535"),
        (&["--size", "30", "--ipv6"], "at least 40"),
        (&["--set", "wire.rate=0bit"], "wire"),
    ] {
        let output = sim("lossless").args(args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && stderr.contains(hint), "{args:?}: {stderr}");
    }
}

#[test]
fn radio_capture_without_requested_pdus_is_warned_about() {
    let directory = TempDir::new("layers");
    let radio = directory.path("radio.pcap");
    for (scenario, layer, warning) in [
        ("lossless", "rlc", "--radio-pcap: the file has no PDUs"),
        ("lossless", "mac", "--radio-pcap: the file has no PDUs"),
        ("wcdma-384", "rlc", ""),
        ("wcdma-384", "mac", "--radio-layer mac: stage `radio` is UMTS"),
        ("wcdma-384", "pdcp", "--radio-layer pdcp: stage `radio` is UMTS"),
        ("nr-fr1-100MHz", "mac", ""),
        ("lte-20MHz", "pdcp", ""),
    ] {
        let mut command = sim(scenario);
        command.args(["--for", "10ms", "--radio-layer", layer, "--radio-pcap", &radio]);
        let output = command.output().unwrap();
        assert!(output.status.success());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(warning), "{scenario} {layer}: {stderr}");
        assert_eq!(stderr.is_empty(), warning.is_empty(), "{scenario} {layer}: {stderr}");
    }
}
