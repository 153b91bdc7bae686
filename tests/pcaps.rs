//! The captures in `pcaps/`: each shows what it is there for, the analyses beside them are what the program says, and
//! tshark and tcptrace count what we count.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const AGAIN: &str = "look at what changed, then: pcaps/regenerate.sh --analyses";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Names of all captures.
fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join("pcaps"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pcap"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert!(names.len() >= 14, "only {names:?}");
    names
}

fn beside(name: &str, extension: &str) -> PathBuf {
    root().join("pcaps").join(format!("{name}.{extension}"))
}

fn stdout(command: &mut Command) -> String {
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; sh interop/setup.sh test"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn analysis(name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(beside(name, "json")).unwrap()).unwrap()
}

/// The direction with the data.
fn sender(name: &str) -> Value {
    let analysis = analysis(name);
    let directions = analysis["captures"][0]["connections"][0]["directions"].as_array().unwrap();
    directions.iter().max_by_key(|direction| direction["acked_bytes"].as_u64()).unwrap().clone()
}

#[test]
fn the_analyses_are_what_the_program_says() {
    for name in names() {
        let said = stdout(Command::new(env!("CARGO_BIN_EXE_airtcp")).current_dir(root()).args([
            "analyze",
            "--json",
            &format!("pcaps/{name}.pcap"),
        ]));
        let kept = fs::read_to_string(beside(&name, "json")).unwrap();
        assert!(said == kept, "{name} is analysed differently now: {AGAIN}");
    }
}

#[test]
fn every_capture_says_where_it_comes_from() {
    for name in names() {
        let provenance: toml::Table = fs::read_to_string(beside(&name, "toml")).unwrap().parse().unwrap();
        for key in ["shows", "scenario", "settings", "sender", "bytes", "seed", "kernel", "airtcp", "command"]
        {
            assert!(provenance.contains_key(key), "{name}: {key}");
        }
    }
}

#[test]
fn every_capture_shows_what_it_is_there_for() {
    let number = |name: &str, pointer: &str| {
        sender(name).pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{name}: {pointer}"))
    };
    let word =
        |name: &str, pointer: &str| sender(name).pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    for ordinary in ["tahoe", "reno", "newreno", "sack"] {
        assert!(number(ordinary, "/retransmissions/fast_retransmits") > 0.0, "{ordinary}");
    }
    assert!(number("sack", "/acks/with_sack") > 0.0);
    assert_eq!(number("newreno", "/acks/with_sack"), 0.0);
    assert_eq!(word("newreno", "/sender/partial_acks").as_deref(), Some("new-reno"));
    assert!(number("sifest", "/retransmissions/fast_retransmits") > 0.0);
    assert!(number("judges", "/retransmissions/packets") > 0.0);
    assert!(number("eifel", "/retransmissions/spurious/timeouts") > 0.0, "a spurious timeout");
    assert!(number("fast-timeout", "/retransmissions/timeouts") > 0.0);
    assert!(number("rebate", "/marks/loss_reports") > 0.0);
    assert!(number("etcp", "/marks/ob") > 0.0);
    assert!(number("reset", "/retransmissions/packets") > 0.0);
    assert!(number("handover", "/time/waiting_for_timeout_seconds") > 2.0, "the hole in the coverage");
    for kernel in ["cubic", "bbr"] {
        assert_eq!(number(kernel, "/acked_bytes"), 1e6, "{kernel}");
    }
}

/// What tcptrace says of the direction with the data, which is its first number in a line.
fn tcptrace(name: &str, what: &str) -> u64 {
    let told = stdout(Command::new("tcptrace").args(["-n", "-l", beside(name, "pcap").to_str().unwrap()]));
    let line = told.lines().find_map(|line| line.trim().strip_prefix(&format!("{what}:")));
    let number = line.and_then(|rest| rest.split_whitespace().next()).and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("{name}: no `{what}` in\n{told}"))
}

/// By how much a tool counts more than we do, where its definition is another one.
fn more(known: &[(&str, u64)], name: &str) -> u64 {
    known.iter().find(|(one, _)| *one == name).map_or(0, |(_, more)| *more)
}

#[test]
fn tcptrace_counts_the_same_sent_again_and_out_of_order() {
    // SYN and FIN are octets to it, and data: what was sent again with them has one more each time.
    const OCTETS: [(&str, u64); 4] = [("fast-timeout", 1), ("rebate", 1), ("reset", 2), ("sack", 1)];
    for name in names() {
        let ours = sender(&name);
        let of = |pointer: &str| ours.pointer(pointer).and_then(Value::as_u64).unwrap();
        let packets = of("/retransmissions/packets") + of("/retransmissions/syns");
        assert_eq!(tcptrace(&name, "rexmt data pkts"), packets, "{name}: packets sent again");
        let octets = of("/retransmissions/bytes") + more(&OCTETS, &name);
        assert_eq!(tcptrace(&name, "rexmt data bytes"), octets, "{name}: octets sent again");
        assert_eq!(tcptrace(&name, "outoforder pkts"), of("/arrivals/out_of_order"), "{name}: out of order");
    }
}

#[test]
fn tshark_counts_the_same_duplicate_acks() {
    // When everything is acknowledged, late copies of the data still make the receiver send ACKs. With nothing
    // outstanding these are no duplicate ACKs (RFC 5681 §2 (a)).
    const NOTHING_OUTSTANDING: [(&str, u64); 2] = [("newreno", 5), ("sack", 2)];
    for name in names() {
        let to = port(&name);
        let told = stdout(
            Command::new("tshark")
                .args(["-r", beside(&name, "pcap").to_str().unwrap(), "-T", "fields", "-e", "frame.number"])
                .args(["-Y", &format!("tcp.dstport == {to} && tcp.analysis.duplicate_ack")]),
        );
        let ours = sender(&name)["acks"]["duplicate"].as_u64().unwrap();
        assert_eq!(told.lines().count() as u64, ours + more(&NOTHING_OUTSTANDING, &name), "{name}");
    }
}

/// Where nearly all segments were sent once. Else tshark measures from the first copy, and we by timestamps.
#[test]
fn tshark_measures_the_same_round_trips() {
    for name in ["bbr", "cubic", "eifel", "fast-timeout", "sifest", "tahoe"] {
        let to = port(name);
        let path = beside(name, "pcap");
        let fields = |filter: &str, fields: &[&str]| {
            let told = stdout(
                Command::new("tshark")
                    .args(["-r", path.to_str().unwrap(), "-T", "fields", "-Y", filter])
                    .args(fields.iter().flat_map(|field| ["-e", field])),
            );
            told.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect::<Vec<Vec<_>>>()
        };
        let data: Vec<_> = fields(&format!("tcp.srcport == {to} && tcp.len > 0"), &["frame.number"]).concat();
        let samples: Vec<f64> = fields(
            &format!("tcp.dstport == {to} && tcp.analysis.ack_rtt"),
            &["tcp.analysis.acks_frame", "tcp.analysis.ack_rtt"],
        )
        .iter()
        // Not of the handshake.
        .filter(|row| data.contains(&row[0]))
        .map(|row| row[1].parse().unwrap())
        .collect();
        let rtt = &sender(name)["rtt"];
        assert_eq!(rtt["samples"].as_u64(), Some(samples.len() as u64), "{name}");
        let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
        let ours = rtt["min_seconds"].as_f64().unwrap();
        assert!((ours - least).abs() < 1e-6, "{name}: {ours}, tshark {least}");
    }
}

fn port(name: &str) -> String {
    sender(name)["from"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned()
}

/// What the packets of the data's sender are to tshark.
fn tshark(name: &str) -> BTreeMap<&'static str, usize> {
    const FIELDS: [&str; 2] = ["tcp.analysis.retransmission", "tcp.analysis.out_of_order"];
    let from = port(name);
    let told = stdout(
        Command::new("tshark")
            .args(["-r", beside(name, "pcap").to_str().unwrap(), "-T", "fields"])
            .args(["-Y", &format!("tcp.srcport == {from} && tcp.len > 0")])
            .args(["-e", "tcp.len"])
            .args(FIELDS.iter().flat_map(|field| ["-e", field])),
    );
    let mut counts = BTreeMap::new();
    for line in told.lines() {
        *counts.entry("data").or_default() += 1;
        let mut fields = line.split('\t').skip(1);
        if fields.any(|field| !field.is_empty()) {
            *counts.entry("again").or_default() += 1;
        }
    }
    counts
}

/// A copy of a segment is a retransmission to tshark if its round trip permits, else out of order: a capture at the
/// sender has nothing out of order, so both together are what was sent again.
#[test]
fn tshark_counts_the_same_packets_sent_again() {
    for name in names() {
        let counts = tshark(&name);
        let ours = sender(&name);
        let count = |what: &str| counts.get(what).copied().unwrap_or(0) as u64;
        assert_eq!(ours["data_packets"].as_u64(), Some(count("data")), "{name}: data packets");
        assert_eq!(ours["retransmissions"]["packets"].as_u64(), Some(count("again")), "{name}: sent again");
    }
}
