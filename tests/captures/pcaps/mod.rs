//! The captures in `pcaps/`: each contains what it is meant to show, the stored analyses match the program's
//! output, and tshark and tcptrace agree with our counts and measurements.

mod counts;
mod round_trips;
mod tools;

use std::fs;
use std::process::Command;

use airtcp_testkit::programs::program;
use airtcp_testkit::sample::sample;
use round_trips::Ours;
use serde_json::Value;
use tools::{analysis, dissected, file, names, root, sender, stdout, stored_file};

const AGAIN: &str = "look at what changed, then: pcaps/regenerate.sh --analyses";

#[test]
fn stored_analyses_match_program_output() {
    for name in names() {
        let path = file(&name);
        let path = path.strip_prefix(root()).unwrap();
        let analyze = ["analyze", "--json", path.to_str().unwrap()];
        let output = stdout(Command::new(program("airtcp")).current_dir(root()).args(analyze));
        let stored = fs::read_to_string(stored_file(&name, "json")).unwrap();
        assert!(output == stored, "the analysis of {name} has changed: {AGAIN}");
    }
}

/// A sample is enough, because `stored_analyses_match_program_output` detects any change in the analysis of
/// any capture.
#[test]
fn counts_and_rtt_samples_match_tshark() {
    for name in sample("tshark", names(), 10) {
        let (ours, theirs) = (Ours::of(&name), dissected(&name));
        counts::check_retransmissions_match_tshark(&name, &theirs);
        counts::check_duplicate_acks_match_tshark(&name, &theirs);
        round_trips::check_rtt_samples_match_tshark(&name, &ours, &theirs);
        round_trips::check_samples_start_at_echoed_timestamps(&name, &ours, &theirs);
    }
}

#[test]
fn every_capture_has_provenance() {
    for name in names() {
        let provenance: toml::Table =
            fs::read_to_string(stored_file(&name, "toml")).unwrap().parse().unwrap();
        for key in ["shows", "scenario", "settings", "sender", "bytes", "seed", "kernel", "airtcp", "command"]
        {
            assert!(provenance.contains_key(key), "{name}: {key}");
        }
    }
}

#[test]
fn captures_contain_intended_events() {
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
    assert!(number("handover", "/time/waiting_for_timeout_seconds") > 2.0, "a timeout in the coverage hole");
    // In the coverage hole RLC discards packets, so retransmissions after timeouts are necessary. During the
    // handover packets are only late, so the timeouts are spurious.
    let timeouts = number("handover", "/retransmissions/timeouts");
    let mistakes = number("handover", "/retransmissions/spurious/timeouts");
    assert!(timeouts > mistakes && mistakes > 0.0, "{mistakes} of {timeouts} timeouts are spurious");
    for kernel in ["cubic", "bbr"] {
        assert_eq!(number(kernel, "/acked_bytes"), 1e6, "{kernel}");
    }
    for kind in ["ipv6", "vlan", "cooked", "receiver", "short"] {
        assert_eq!(number(kind, "/acked_bytes"), 4e5, "{kind}");
        assert!(number(kind, "/retransmissions/packets") > 0.0, "{kind}");
    }
    assert!(
        number("receiver", "/arrivals/out_of_order") > 0.0 && number("receiver", "/arrivals/duplicate") > 0.0
    );
    assert_eq!(word("receiver", "/rtt_of").as_deref(), Some("receiver-delay"));
    // Values that the capture does not contain are left out.
    assert!(sender("receiver")["window"]["max_flight_bytes"].is_null());
    assert!(sender("one-sided")["window"]["max_flight_bytes"].is_null());
    assert!(sender("one-sided")["sender"]["initial_window_segments"].is_null());
    assert_eq!(number("one-sided", "/acks/packets"), 0.0);
    assert_eq!(number("one-sided", "/goodput_bit_per_s"), 0.0);
    assert!(number("one-sided", "/throughput_bit_per_s") > 1e6, "a one-sided capture shows the throughput");
    assert_eq!(sender("short")["window"]["unscaled"], true);
    assert_eq!(number("short", "/time/window_limited_seconds"), 0.0);
}

#[test]
fn captures_cover_every_frame_type() {
    let kinds = |name: &str| {
        let output = stdout(Command::new("capinfos").args(["-tE"]).arg(file(name)));
        ["pcapng", "Ethernet", "Linux cooked-mode capture v2", "Raw IP"].map(|kind| output.contains(kind))
    };
    assert_eq!(kinds("ipv6"), [true, true, false, false]);
    assert_eq!(kinds("vlan"), [false, true, false, false]);
    assert_eq!(kinds("cooked"), [false, false, true, false]);
    assert_eq!(kinds("receiver"), [false, false, false, true]);
    assert!(tools::tshark("vlan", "vlan.id != 7 || !vlan", &["frame.number"]).is_empty());
    assert!(tools::tshark("ipv6", "!ipv6", &["frame.number"]).is_empty());
    let problems = &analysis("short")["captures"][0]["totals"]["problems"];
    let cut = problems.as_array().unwrap().iter().find(|problem| problem["problem"] == "options-cut");
    assert!(cut.is_some_and(|cut| cut["count"].as_u64() > Some(2)), "SYNs, and ACKs with SACK: {problems}");
}
