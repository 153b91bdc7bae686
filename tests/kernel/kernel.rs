//! Every algorithm against this kernel's receiver over a lossy link: airtcp, a TUN device, a router, airlink,
//! another TUN device, and the kernel.
//!
//! The tests create network namespaces. Without root privileges they fail with this reason.

use std::collections::BTreeSet;
use std::process::Command;
use std::thread;

use airtcp::recovery::catalogue::{CATALOGUE, Need, Question, Row};
use airtcp_testkit::machine::emulated::EmulatedPath;
use airtcp_testkit::machine::{TempFile, kernel_receiver, run_in};
use airtcp_testkit::sample::sample;
use serde_json::Value;

const BYTES: u64 = 600_000;
const TARGET: &str = "10.84.0.2:9000";

/// Data segments and ACKs are lost, and the queue is short.
const LOSSY: &str = r#"
schema = 1
description = "20 Mbit/s, 10 ms, 2 % of the data segments and 1 % of the ACKs lost"
[[stage]]
kind = "link"
name = "wire"
both = { rate = "20Mbit", delay = "5ms", queue = { packets = 60 } }
[[stage]]
kind = "loss"
name = "radio"
down = { model = "uniform", per = "2%" }
up = { model = "uniform", per = "1%" }
"#;

/// A similar path through a base station.
const STATION: &str = r#"
schema = 1
description = "a base station with agent and loss report, before a radio link that loses 2 % of the packets"
[[stage]]
kind = "link"
name = "wire"
both = { rate = "20Mbit", delay = "5ms", queue = { packets = 200 } }
[[stage]]
kind = "station"
name = "station"
transit_marks = true
loss_report = true
[[stage]]
kind = "link"
name = "air"
both = { rate = "10Mbit", delay = "5ms", queue = { packets = 200 } }
[[stage]]
kind = "loss"
name = "radio"
down = { model = "uniform", per = "2%" }
"#;

/// A queue that marks packets, and no other impairment.
const MARKS: &str = r#"
schema = 1
description = "10 Mbit/s, 20 ms, and CoDel that marks"
[[stage]]
kind = "link"
name = "wire"
down = { rate = "10Mbit", delay = "10ms", queue = { discipline = "codel", ecn = true } }
up = { delay = "10ms" }
"#;

/// Sends to the kernel at the mobile side. Panics unless the stream arrives unchanged.
fn send(link: &EmulatedPath, recipe: &str) -> Value {
    let receiver = kernel_receiver(&link.mobile, 9000);
    let bytes = format!("--bytes={BYTES}");
    let ended = run_in(&link.fixed, &["send", &bytes, TARGET, "--recipe", recipe, "--json", "--timeout=60s"]);
    assert_eq!(ended.code, 0, "{recipe}: {}", ended.stderr);
    let end = ended.event("end").clone();
    let received = receiver.join().unwrap();
    assert_eq!((received.bytes, end["bytes"].as_u64()), (BYTES, Some(BYTES)), "{recipe}");
    assert_eq!(end["sha256"], received.digest, "{recipe}");
    assert_eq!(end["outcome"], "done", "{recipe}");
    end
}

/// Combinations from the papers, in addition to each algorithm alone.
const COMBINATIONS: &[&str] = &[
    "tahoe+sifest",
    "reno+sifest",
    "sack+sifest",
    "tahoe+liw+sifest",
    "sack+eifel",
    "sack+frto",
    "fast-timeout+loss-retransmission",
    "sack+fast-timeout+loss-retransmission",
    "newreno+rebate+tax=0.02",
    "sack+pr+rebate+tax=0.02",
    "sack+rr+rebate+tax=0.02",
    "sack+dcr+rebate+tax=0.02+tax-scale=0.5",
    "sack+transit-marks+early-marks",
    "sack+rack+prr+cubic",
    "sack+rack+prr+cubic+eifel+judges",
];

#[test]
fn every_algorithm_delivers_to_kernel_despite_loss() {
    // Algorithms that need the ground truth run only in virtual time.
    let fits = |row: &&Row| row.question() != Question::Option && !row.needs.contains(&Need::Truth);
    let alone = CATALOGUE.iter().filter(fits).map(|row| row.name);
    let combinations = sample("combinations to the kernel", COMBINATIONS.iter().copied(), 5);
    let recipes: BTreeSet<&str> = alone.chain(combinations).collect();
    // Many runs in parallel, because each mostly waits for its losses.
    let lanes = 24;
    let recipes: Vec<&str> = recipes.into_iter().collect();
    thread::scope(|scope| {
        for lane in 0..lanes {
            let recipes = &recipes;
            scope.spawn(move || {
                let link = EmulatedPath::new(LOSSY, lane as u64);
                for recipe in recipes.iter().skip(lane).step_by(lanes) {
                    let end = send(&link, recipe);
                    let count = |field: &str| end["timeouts"][field].as_u64().unwrap();
                    let repaired = count("fast_retransmits") + count("timeouts");
                    assert!(repaired > 0, "{recipe}: no loss was repaired: {end}");
                }
            });
        }
    });
}

#[test]
fn base_station_marks_avoid_window_reductions() {
    let link = EmulatedPath::new(STATION, 1);
    let (plain, marked) = (send(&link, "reno"), send(&link, "etcp"));
    let reductions = |end: &Value| end["timeouts"]["window_reductions"].as_u64().unwrap();
    let radio = marked["timeouts"]["attributed_to_radio"].as_u64().unwrap();
    assert!(radio >= 3, "{marked}");
    assert!(reductions(&marked) < reductions(&plain), "{marked} {plain}");
}

#[test]
fn ecn_echo_reduces_window_once_per_round_trip() {
    let link = EmulatedPath::new(MARKS, 1);
    // The default since Linux 2.6.31: accept ECN if the peer requests it.
    link.mobile.sysctl("net.ipv4.tcp_ecn", "2").unwrap();
    let pcap = TempFile::new("pcap");
    let receiver = kernel_receiver(&link.mobile, 9000);
    let send = ["send", "--bytes=4M", TARGET, "--recipe=sack+ecn", "--json", "--timeout=60s", "--pcap"];
    let ended = run_in(&link.fixed, &[&send[..], &[pcap.path()]].concat()).success();
    let end = ended.event("end").clone();
    assert_eq!(receiver.join().unwrap().bytes, 4_000_000);
    let times = |filter: &str| -> Vec<f64> {
        let output = Command::new("tcpdump")
            .args(["-n", "-tt", "-r", pcap.path(), filter])
            .output()
            .expect("this test needs tcpdump: apt-get install tcpdump");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
    };
    // A SYN,ACK with ECE and without CWR accepts ECN (RFC 3168 §6.1.1).
    let accepted = times("src host 10.84.0.2 and tcp[13] & 0xd2 = 0x52");
    assert_eq!(accepted.len(), 1, "the kernel did not accept ECN");
    let echoes = times("src host 10.84.0.2 and tcp[13] & 0x42 = 0x40");
    let reduced = times("dst host 10.84.0.2 and tcp[13] & 0x82 = 0x80");
    let counters = &end["timeouts"];
    // The next segment with new data carries CWR. An echo after the last such segment reduces the window without a
    // CWR.
    let last_data = times("dst host 10.84.0.2 and greater 100").into_iter().fold(0.0, f64::max);
    let without_cwr = u64::from(echoes.iter().any(|echo| *echo > last_data));
    let reductions = counters["window_reductions"].as_u64().unwrap();
    let cwr = reduced.len() as u64;
    assert!((cwr..=cwr + without_cwr).contains(&reductions), "each reduction must set CWR: {end}");
    assert!(cwr > 1 && echoes.len() as u64 > cwr, "{cwr} CWR, {} ECE: {end}", echoes.len());
    assert!(reduced.windows(2).all(|pair| pair[1] - pair[0] >= 0.02), "{reduced:?}");
    let repairs = (&counters["fast_retransmits"], &counters["timeouts"]);
    assert_eq!(repairs, (&0.into(), &0.into()), "retransmissions without loss: {end}");
}
