//! What Wireshark makes of a radio link: the real tshark decodes every PDU of long lossy runs, puts the packets
//! together again and counts what was sent twice, and `rlc-check` judges the behaviour by what tshark shows.
//!
//! Needs tshark: `interop/setup.sh test`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use airtcp_testkit::sample::size;
use airtcp_testkit::temporary::TempDir;
use rlc_check::End;
use rlc_check::judgement::{Invariant, Judgement};
use serde_json::Value;

/// The source port of PDUs that the channel damages.
const LOST: u16 = airlink::views::radio::LOST;

/// A bearer alone, at a block error rate of 10 % both ways.
const BEARER: &str = r#"
schema = 1
description = "a bearer alone"
[[stage]]
kind = "rlc"
name = "radio"
down.channel.errors = { model = "independent", bler = "10%" }
up.channel.errors = { model = "independent", bler = "10%" }
"#;

/// A downlink with PDUs of a flexible size, which a mobile alone in its cell receives without losses; the uplink as above.
const FLEXIBLE: &str = r#"
schema = 1
description = "a bearer alone, over an HS-DSCH"
[[stage]]
kind = "rlc"
name = "radio"
hsdpa.snr = "40dB"
down.format.flexible = {}
down.sender.poll.poll_sufi = true
up.channel.errors = { model = "independent", bler = "10%" }
"#;

/// How `rlc-check` is told the same.
const DOWN: &str = "tti=10ms,phase=0ms,blocks=1+2+4+8+12,flight=50ms,window=512,tsp=150ms,poll=200ms,prohibit=100ms,bler=0.1";
const UP: &str =
    "tti=20ms,phase=0ms,blocks=1+2+3+4,flight=60ms,window=512,tsp=150ms,poll=200ms,prohibit=100ms,bler=0.1";
/// A PDU stands where its last part begins, up to two TTIs after RLC has sent it: so much closer may polls be.
const FLEXIBLE_DOWN: &str =
    "tti=2ms,phase=0ms,flight=42ms,pdu=1505,flexible=15bit,window=512,tsp=150ms,poll=200ms,prohibit=96ms";

/// What tshark prints.
fn tshark(pcap: &Path, args: &[&str]) -> String {
    let output = Command::new("tshark")
        .arg("-r")
        .arg(pcap)
        .args(["-n", "--enable-heuristic", "rlc_udp"])
        // It takes some packets of the emulator for its own.
        .args(["--disable-protocol", "rtcp"])
        .args(args)
        .output()
        .expect("this test needs tshark: sh interop/setup.sh test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn packets(pcap: &Path, from: [u8; 4]) -> Vec<Vec<u8>> {
    let mut capture = pcap::Capture::from_file(pcap).unwrap();
    let mut packets = Vec::new();
    while let Ok(packet) = capture.next_packet() {
        if packet.data[12..16] == from {
            packets.push(packet.data.to_vec());
        }
    }
    packets
}

/// The fields that the tests read: one pass of tshark gives all of them.
const FIELDS: [&str; 7] = [
    "_ws.expert.message",
    "rlc.li.value",
    "rlc.sufi.sn_mrw",
    "rlc.sufi.poll_sn",
    "rlc.he",
    "rlc.padding",
    "rlc.channel.dir",
];

/// A simulation, and what tshark and `rlc-check` say about it.
struct Run {
    directory: TempDir,
    summary: Value,
    report: Judgement,
    /// The values of `FIELDS` in each PDU; an empty value if the PDU lacks the field.
    fields: Vec<[String; FIELDS.len()]>,
}

/// One direction's packets.
struct Packets {
    sent: Vec<Vec<u8>>,
    delivered: Vec<Vec<u8>>,
    /// As tshark takes them out of the PDUs.
    inner: Vec<Vec<u8>>,
}

impl Run {
    fn new(name: &str, settings: &str, check: &str, args: &[&str]) -> Self {
        let [down, up] = [DOWN, UP].map(|direction| format!("{direction},{check}"));
        Self::of(name, &format!("{BEARER}{settings}"), &down, &up, args)
    }

    fn of(name: &str, scenario: &str, down: &str, up: &str, args: &[&str]) -> Self {
        let directory = TempDir::new(name);
        std::fs::write(directory.join("radio.toml"), scenario).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_airlink"))
            .args(["sim", "--json", "--scenario"])
            .arg(directory.join("radio.toml"))
            .arg("--radio-pcap")
            .arg(directory.join("radio.pcap"))
            .arg("--pcap-fixed")
            .arg(directory.join("fixed.pcap"))
            .arg("--pcap-mobile")
            .arg(directory.join("mobile.pcap"))
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        let ended = (summary["seconds"].as_f64().unwrap() * 1e9) as u64;
        let radio = directory.join("radio.pcap");
        let [down, up] = [down, up].map(|settings| settings.parse().unwrap());
        let report = rlc_check::judge(&radio, down, up, LOST, None, End::At(ended)).unwrap();
        println!("{}", report.to_text(5));
        let options = FIELDS.iter().flat_map(|field| ["-e", field]);
        let options: Vec<&str> = ["-T", "fields"].into_iter().chain(options).collect();
        let fields = tshark(&radio, &options)
            .lines()
            .map(|line| {
                let values: Vec<String> = line.split('\t').map(str::to_owned).collect();
                values.try_into().expect("a value of each field")
            })
            .collect();
        Self { directory, summary, report, fields }
    }

    /// The values of a field, of those PDUs that have it.
    fn values(&self, field: &str) -> impl Iterator<Item = &str> {
        let column = FIELDS.iter().position(|name| *name == field).expect("one of FIELDS");
        self.fields.iter().map(move |values| values[column].as_str()).filter(|value| !value.is_empty())
    }

    fn radio(&self) -> PathBuf {
        self.directory.join("radio.pcap")
    }

    fn counter(&self, of: &str) -> u64 {
        ["down", "up"]
            .iter()
            .map(|direction| self.summary["stages"]["radio"][direction]["sender"][of].as_u64().unwrap())
            .sum()
    }

    fn assert_behaves(&self) {
        assert!(self.report.violations.is_empty(), "{}", self.report.to_text(5));
        for invariant in Invariant::ALL {
            assert!(self.report.checks[invariant as usize] > 0, "{invariant:?} was never checked");
        }
    }

    /// No objection to any PDU. To the packets inside only what comes of a wrap: each lap is a channel of its own
    /// to tshark, and the end of the packet that straddles looks like a broken one at its beginning.
    fn assert_no_expert_items(&self) {
        let objections: Vec<&str> = self.values("_ws.expert.message").collect();
        let laps = self.report.down.laps + self.report.up.laps;
        assert!(objections.len() as u64 <= laps, "{laps} laps, but {objections:?}");
    }

    /// The dissector recognises a number that comes again within 5 s.
    fn assert_counts_the_same_retransmissions(&self) {
        let duplicates = tshark(&self.radio(), &["-2", "-Y", "rlc.duplicate_of"]).lines().count() as u64;
        assert!(duplicates > 0);
        assert_eq!(duplicates, self.counter("pdus_resent"));
    }

    fn packets(&self) -> [Packets; 2] {
        // The carrier's packets are among them; other addresses tell them apart.
        let all = self.directory.join("all.pcap");
        tshark(&self.radio(), &["-U", "IP", "-F", "nsecpcap", "-w", all.to_str().unwrap()]);
        [([10, 0, 0, 1], "fixed.pcap", "mobile.pcap"), ([10, 0, 0, 2], "mobile.pcap", "fixed.pcap")].map(
            |(from, entry, exit)| Packets {
                sent: packets(&self.directory.join(entry), from),
                delivered: packets(&self.directory.join(exit), from),
                inner: packets(&all, from),
            },
        )
    }
}

impl Packets {
    /// Every one that tshark took out is one that went in, to the octet, in its order and once.
    fn assert_inner_are_of_sent(&self) {
        let mut sent = self.sent.iter();
        for (number, inner) in self.inner.iter().enumerate() {
            assert!(
                sent.any(|packet| packet == inner),
                "packet {number} of tshark's is none of what was sent"
            );
        }
    }

    /// Delivered packets that tshark did not find.
    fn missed(&self) -> u64 {
        let inner: BTreeSet<_> = self.inner.iter().collect();
        self.delivered.iter().filter(|packet| !inner.contains(packet)).count() as u64
    }
}

#[test]
fn wireshark_takes_from_a_long_lossy_run_every_packet_that_went_in() {
    let run = Run::new(
        "long",
        "",
        "max-dat=10",
        &["--size", "mix", "--for", size("25s", "110s"), "--up", "saturate", "--seed", "7"],
    );
    assert!(run.report.down.pdus + run.report.up.pdus >= size(20_000, 100_000));
    assert!(run.report.down.laps >= 3 && run.report.up.laps >= size(1, 3));
    run.assert_behaves();
    run.assert_no_expert_items();
    run.assert_counts_the_same_retransmissions();
    for (packets, laps) in run.packets().iter().zip([run.report.down.laps, run.report.up.laps]) {
        assert_eq!(packets.sent, packets.delivered, "nothing is given up at 9 transmissions");
        packets.assert_inner_are_of_sent();
        assert!(packets.missed() <= laps, "{} missed in {laps} laps", packets.missed());
    }
}

#[test]
fn wireshark_follows_resets() {
    let run = Run::new(
        "resets",
        r#"
down.sender.discard = { mode = "reset-after-max-dat", max_dat = 4 }
up.sender.discard = { mode = "reset-after-max-dat", max_dat = 4 }
"#,
        "max-dat=4",
        &["--size", "mix", "--for", size("10s", "60s"), "--up", "saturate"],
    );
    println!("{} resets down, {} up", run.report.down.resets, run.report.up.resets);
    assert!(run.report.down.resets >= size(2, 10) && run.report.up.resets >= size(1, 5));
    run.assert_behaves();
    run.assert_no_expert_items();
    run.assert_counts_the_same_retransmissions();
    for (packets, laps) in run.packets().iter().zip([run.report.down.laps, run.report.up.laps]) {
        assert!(packets.delivered.len() < packets.sent.len());
        packets.assert_inner_are_of_sent();
        assert!(packets.missed() <= laps, "{} missed in {laps} laps", packets.missed());
    }
}

/// When MRW moves the window past numbers that were never sent, tshark waits for these until the next lap. So it
/// cannot be expected to find every packet; but what it finds must be right.
#[test]
fn wireshark_understands_discards_by_mrw() {
    let discard = "{ mode = \"mrw-after-max-dat\", max_dat = 3, timer_mrw = \"200ms\", max_mrw = 6 }";
    let run = Run::new(
        "mrw",
        &format!("down.sender.discard = {discard}\nup.sender.discard = {discard}\n"),
        "max-dat=3,discard=mrw",
        &["--size", "mix", "--for", size("10s", "60s"), "--up", "saturate"],
    );
    let mrw = run.values("rlc.sufi.sn_mrw").count();
    assert!(mrw > size(15, 100), "{mrw}");
    run.assert_behaves();
    run.assert_counts_the_same_retransmissions();
    for packets in run.packets() {
        assert!(packets.delivered.len() < packets.sent.len());
        packets.assert_inner_are_of_sent();
    }
}

#[test]
fn wireshark_reads_reports_that_travel_in_padding() {
    let run = Run::new(
        "piggybacked",
        r#"
down.receiver.piggyback = true
up.receiver.piggyback = true
"#,
        "max-dat=10",
        // So little that there is padding.
        &[
            "--size",
            "mix",
            "--for",
            size("40s", "120s"),
            "--down",
            "poisson:100kbit",
            "--up",
            "poisson:20kbit",
        ],
    );
    assert!(run.counter("pdus_new") > size(3_000, 10_000));
    let announces_report = |values: &&str| values.split(',').any(|value| value == "126");
    let piggybacked = run.values("rlc.li.value").filter(announces_report).count();
    assert!(piggybacked > size(6, 20), "{piggybacked}");
    run.assert_behaves();
    run.assert_no_expert_items();
    run.assert_counts_the_same_retransmissions();
    for (packets, laps) in run.packets().iter().zip([run.report.down.laps, run.report.up.laps]) {
        assert_eq!(packets.sent, packets.delivered);
        packets.assert_inner_are_of_sent();
        assert!(packets.missed() <= laps, "{} missed in {laps} laps", packets.missed());
    }
}

/// 16 of these packets fit a PDU, more than length indicators do.
#[test]
fn wireshark_takes_many_small_packets_out_of_large_pdus() {
    let run = Run::new(
        "small",
        r#"
down.format.pdu = "700B"
up.format.pdu = "700B"
"#,
        "max-dat=10,pdu=700",
        &["--size", "40", "--for", "2s", "--down", "saturate:1000", "--up", "saturate:200"],
    );
    let most = run.values("rlc.li.value").map(|values| values.split(',').count()).max();
    assert_eq!(most, Some(15), "14 packets end, and padding");
    run.assert_behaves();
    run.assert_no_expert_items();
    for (packets, laps) in run.packets().iter().zip([run.report.down.laps, run.report.up.laps]) {
        assert_eq!(packets.sent, packets.delivered);
        packets.assert_inner_are_of_sent();
        assert!(packets.missed() <= laps, "{} missed in {laps} laps", packets.missed());
    }
}

#[test]
fn wireshark_takes_packets_out_of_pdus_of_a_flexible_size() {
    for (name, he_special) in [("flexible", false), ("flexible-he", true)] {
        let run = Run::of(
            name,
            &format!("{FLEXIBLE}down.format.he_special = {he_special}\n"),
            &format!("{FLEXIBLE_DOWN},max-dat=10"),
            &format!("{UP},max-dat=10"),
            &[
                "--size",
                "mix",
                "--for",
                size("5s", "20s"),
                "--down",
                "poisson:2500kbit",
                "--up",
                "poisson:50kbit",
            ],
        );
        let (mut down, mut ends_by_he) = (0, 0);
        for [_, _, _, _, he, padding, direction] in &run.fields {
            if direction == "1" {
                down += 1;
                assert!(padding.is_empty(), "padding");
                ends_by_he += usize::from(he.starts_with('2'));
            }
        }
        let some = size(125, 500);
        assert!(down > some);
        assert_eq!(ends_by_he > some, he_special, "{ends_by_he} of {down} PDUs have HE = 10");
        assert!(run.values("rlc.sufi.poll_sn").count() > 0);
        run.assert_behaves();
        run.assert_no_expert_items();
        for (packets, laps) in run.packets().iter().zip([run.report.down.laps, run.report.up.laps]) {
            assert!(packets.sent.len() > size(40, 100));
            assert_eq!(packets.sent, packets.delivered);
            packets.assert_inner_are_of_sent();
            assert!(packets.missed() <= laps, "{} missed in {laps} laps", packets.missed());
        }
    }
}

/// Without HARQ one block in ten is lost, and with it every PDU of which it has a part.
#[test]
fn wireshark_follows_pdus_of_which_a_part_was_lost() {
    let scenario = FLEXIBLE
        .replace("hsdpa.snr = \"40dB\"", "hsdpa = { snr = \"3.45dB\", transmissions = 1, t1 = \"10ms\" }");
    let directory = TempDir::new("parts");
    std::fs::write(directory.join("radio.toml"), scenario).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_airlink"))
        .args([
            "sim",
            "--json",
            "--size",
            "mix",
            "--for",
            size("10s", "20s"),
            "--down",
            "saturate",
            "--scenario",
        ])
        .arg(directory.join("radio.toml"))
        .arg("--radio-pcap")
        .arg(directory.join("radio.pcap"))
        .arg("--pcap-fixed")
        .arg(directory.join("fixed.pcap"))
        .arg("--pcap-mobile")
        .arg(directory.join("mobile.pcap"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let hsdpa = &summary["stages"]["radio"]["down"]["hsdpa"];
    assert!(
        hsdpa["lost"].as_u64().unwrap() > size(50, 100)
            && hsdpa["incomplete"].as_u64().unwrap() > size(50, 100),
        "{hsdpa}"
    );
    let run = Run { directory, summary, report: Judgement::default(), fields: Vec::new() };
    let [down, _] = run.packets();
    down.assert_inner_are_of_sent();
    assert_eq!(down.sent, down.delivered);
    let found = down.inner.len() as f64 / down.delivered.len() as f64;
    assert!(found > 0.99, "{found}");
}
