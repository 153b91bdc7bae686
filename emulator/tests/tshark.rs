//! Decodes radio captures with tshark: it decodes every PDU of long lossy runs, reassembles the packets and counts
//! retransmissions. `rlc-check` checks the behaviour of the bearer in the same captures.
//!
//! Needs tshark: `interop/setup.sh test`.

#[path = "common/packets.rs"]
mod packets;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use airtcp_testkit::sample::size;
use airtcp_testkit::temporary::TempDir;
use airtcp_testkit::wireshark::tshark;
use rlc_check::End;
use rlc_check::findings::{Findings, Invariant};
use serde_json::Value;

use packets::packets;

/// Source port that marks PDUs as damaged by the channel.
const LOST: u16 = airlink::views::radio::LOST;

/// A bearer with a block error rate of 10 % in both directions.
const BEARER: &str = r#"
schema = 1
description = "a bearer alone"
[[stage]]
kind = "rlc"
name = "radio"
down.channel.errors = { model = "independent", bler = "10%" }
up.channel.errors = { model = "independent", bler = "10%" }
"#;

/// A downlink with PDUs of flexible size that a single mobile receives without losses, and the uplink of [`BEARER`].
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

/// The settings of [`BEARER`] in the notation of `rlc-check`.
const DOWN: &str = "tti=10ms,phase=0ms,blocks=1+2+4+8+12,flight=50ms,window=512,tsp=150ms,poll=200ms,prohibit=100ms,bler=0.1";
const UP: &str =
    "tti=20ms,phase=0ms,blocks=1+2+3+4,flight=60ms,window=512,tsp=150ms,poll=200ms,prohibit=100ms,bler=0.1";
/// The capture time of a PDU is the start of its last segment, up to two TTIs after RLC sent it. Polls can therefore
/// appear up to 4 ms closer together than Timer_Poll_Prohibit allows.
const FLEXIBLE_DOWN: &str =
    "tti=2ms,phase=0ms,flight=42ms,pdu=1505,flexible=15bit,window=512,tsp=150ms,poll=200ms,prohibit=96ms";

/// The fields that the tests read. One pass of tshark extracts all fields.
const FIELDS: [&str; 7] = [
    "_ws.expert.message",
    "rlc.li.value",
    "rlc.sufi.sn_mrw",
    "rlc.sufi.poll_sn",
    "rlc.he",
    "rlc.padding",
    "rlc.channel.dir",
];

/// A simulation with the results of tshark and `rlc-check`.
struct Run {
    directory: TempDir,
    summary: Value,
    findings: Findings,
    /// The values of `FIELDS` in each PDU; an empty value if the PDU lacks the field.
    fields: Vec<[String; FIELDS.len()]>,
}

/// One direction's packets.
struct Packets {
    sent: Vec<Vec<u8>>,
    delivered: Vec<Vec<u8>>,
    /// The packets that tshark reassembled from the PDUs.
    reassembled: Vec<Vec<u8>>,
}

/// Runs `airlink sim` with captures in a new directory. Returns the directory and the summary.
fn simulate(name: &str, scenario: &str, args: &str) -> (TempDir, Value) {
    let directory = TempDir::new(name);
    directory.write("radio.toml", scenario);
    let files =
        "--scenario radio.toml --radio-pcap radio.pcap --pcap-fixed fixed.pcap --pcap-mobile mobile.pcap";
    let mut command = Command::new(env!("CARGO_BIN_EXE_airlink"));
    command.args(["sim", "--json"]).args(files.split(' ')).args(args.split(' '));
    let output = command.current_dir(&directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (directory, serde_json::from_slice(&output.stdout).unwrap())
}

impl Run {
    fn new(name: &str, settings: &str, check: &str, args: &str) -> Self {
        let [down, up] = [DOWN, UP].map(|direction| format!("{direction},{check}"));
        Self::with_scenario(name, &format!("{BEARER}{settings}"), &down, &up, args)
    }

    fn with_scenario(name: &str, scenario: &str, down: &str, up: &str, args: &str) -> Self {
        let (directory, summary) = simulate(name, scenario, args);
        let ended = (summary["seconds"].as_f64().unwrap() * 1e9) as u64;
        let radio = directory.join("radio.pcap");
        let [down, up] = [down, up].map(|settings| settings.parse().unwrap());
        let findings = rlc_check::check(&radio, down, up, LOST, None, End::At(ended)).unwrap();
        println!("{}", findings.to_text(5));
        let options = FIELDS.iter().flat_map(|field| ["-e", field]);
        let options: Vec<&str> = ["-T", "fields"].into_iter().chain(options).collect();
        let fields = tshark(&radio, &["rlc_udp"], &options)
            .lines()
            .map(|line| {
                let values: Vec<String> = line.split('\t').map(str::to_owned).collect();
                values.try_into().expect("a value for each field")
            })
            .collect();
        Self { directory, summary, findings, fields }
    }

    /// The values of a field in the PDUs that contain it.
    fn values(&self, field: &str) -> impl Iterator<Item = &str> {
        let column = FIELDS.iter().position(|name| *name == field).expect("one of FIELDS");
        self.fields.iter().map(move |values| values[column].as_str()).filter(|value| !value.is_empty())
    }

    fn radio(&self) -> PathBuf {
        self.directory.join("radio.pcap")
    }

    fn counter(&self, name: &str) -> u64 {
        ["down", "up"]
            .iter()
            .map(|direction| self.summary["stages"]["radio"][direction]["sender"][name].as_u64().unwrap())
            .sum()
    }

    fn assert_behaves(&self) {
        assert!(self.findings.violations.is_empty(), "{}", self.findings.to_text(5));
        for invariant in Invariant::UMTS {
            assert!(self.findings.checks[invariant as usize] > 0, "{invariant:?} was never checked");
        }
    }

    /// tshark has no expert message about any PDU, and at most one about a packet per wrap of the sequence number.
    ///
    /// tshark treats each cycle of sequence numbers as a separate channel. The end of a packet that spans two cycles looks
    /// like a broken packet at the start of the second one.
    fn assert_no_expert_items(&self) {
        let messages: Vec<&str> = self.values("_ws.expert.message").collect();
        let laps = self.findings.down.laps + self.findings.up.laps;
        assert!(messages.len() as u64 <= laps, "{laps} laps, but {messages:?}");
    }

    /// The dissector recognises a sequence number that is repeated within 5 s.
    fn assert_counts_the_same_retransmissions(&self) {
        let duplicates =
            tshark(&self.radio(), &["rlc_udp"], &["-2", "-Y", "rlc.duplicate_of"]).lines().count() as u64;
        assert!(duplicates > 0);
        assert_eq!(duplicates, self.counter("pdus_resent"));
    }

    /// Checks that both directions deliver all packets, and that tshark reassembles nearly all packets.
    fn assert_all_packets_delivered(&self) -> [Packets; 2] {
        let packets = self.packets();
        for packets in &packets {
            assert_eq!(packets.sent, packets.delivered);
        }
        self.assert_reassembled(&packets);
        packets
    }

    /// tshark misses at most one packet per wrap of the sequence numbers.
    fn assert_reassembled(&self, packets: &[Packets; 2]) {
        for (packets, laps) in packets.iter().zip([self.findings.down.laps, self.findings.up.laps]) {
            packets.assert_reassembled_packets_were_sent();
            assert!(packets.missed() <= laps, "{} missed in {laps} laps", packets.missed());
        }
    }

    fn packets(&self) -> [Packets; 2] {
        // The file also contains the carrier packets. Their addresses differ.
        let all = self.directory.join("all.pcap");
        tshark(&self.radio(), &["rlc_udp"], &["-U", "IP", "-F", "nsecpcap", "-w", all.to_str().unwrap()]);
        [([10, 0, 0, 1], "fixed.pcap", "mobile.pcap"), ([10, 0, 0, 2], "mobile.pcap", "fixed.pcap")].map(
            |(from, entry, exit)| Packets {
                sent: packets(&self.directory.join(entry), from),
                delivered: packets(&self.directory.join(exit), from),
                reassembled: packets(&all, from),
            },
        )
    }
}

impl Packets {
    /// Every reassembled packet equals a sent packet. Order is kept and no packet is repeated.
    fn assert_reassembled_packets_were_sent(&self) {
        let mut sent = self.sent.iter();
        for (number, reassembled) in self.reassembled.iter().enumerate() {
            assert!(
                sent.any(|packet| packet == reassembled),
                "packet {number} that tshark reassembled was not sent"
            );
        }
    }

    /// Delivered packets that tshark did not find.
    fn missed(&self) -> u64 {
        let reassembled: BTreeSet<_> = self.reassembled.iter().collect();
        self.delivered.iter().filter(|packet| !reassembled.contains(packet)).count() as u64
    }
}

#[test]
fn wireshark_reassembles_all_packets_of_a_lossy_run() {
    let args = format!("--size mix --for {} --up saturate --seed 7", size("25s", "110s"));
    let run = Run::new("long", "", "max-dat=10", &args);
    assert!(run.findings.down.pdus + run.findings.up.pdus >= size(20_000, 100_000));
    assert!(run.findings.down.laps >= 3 && run.findings.up.laps >= size(1, 3));
    run.assert_behaves();
    run.assert_no_expert_items();
    run.assert_counts_the_same_retransmissions();
    run.assert_all_packets_delivered();
}

/// Settings of both directions, each beginning with a dot.
fn both_directions(settings: &str) -> String {
    format!("down{settings}\nup{settings}\n")
}

#[test]
fn wireshark_follows_resets() {
    let run = Run::new(
        "resets",
        &both_directions(".sender.discard = { mode = \"reset-after-max-dat\", max_dat = 4 }"),
        "max-dat=4",
        &format!("--size mix --for {} --up saturate", size("10s", "60s")),
    );
    println!("{} resets down, {} up", run.findings.down.resets, run.findings.up.resets);
    assert!(run.findings.down.resets >= size(2, 10) && run.findings.up.resets >= size(1, 5));
    run.assert_behaves();
    run.assert_no_expert_items();
    run.assert_counts_the_same_retransmissions();
    let packets = run.packets();
    assert!(packets.iter().all(|packets| packets.delivered.len() < packets.sent.len()));
    run.assert_reassembled(&packets);
}

/// When MRW moves the window past sequence numbers that were never sent, tshark waits for these numbers until
/// they wrap. Therefore tshark may miss packets, but every packet that it reassembles must be correct.
#[test]
fn wireshark_decodes_mrw_discards() {
    let discard = "{ mode = \"mrw-after-max-dat\", max_dat = 3, timer_mrw = \"200ms\", max_mrw = 6 }";
    let run = Run::new(
        "mrw",
        &both_directions(&format!(".sender.discard = {discard}")),
        "max-dat=3,discard=mrw",
        &format!("--size mix --for {} --up saturate", size("10s", "60s")),
    );
    let mrw = run.values("rlc.sufi.sn_mrw").count();
    assert!(mrw > size(15, 100), "{mrw}");
    run.assert_behaves();
    run.assert_counts_the_same_retransmissions();
    for packets in run.packets() {
        assert!(packets.delivered.len() < packets.sent.len());
        packets.assert_reassembled_packets_were_sent();
    }
}

#[test]
fn wireshark_decodes_piggybacked_reports() {
    // The load is so low that PDUs contain padding.
    let args = format!("--size mix --for {} --down poisson:100kbit --up poisson:20kbit", size("40s", "120s"));
    let run = Run::new("piggybacked", &both_directions(".receiver.piggyback = true"), "max-dat=10", &args);
    assert!(run.counter("pdus_new") > size(3_000, 10_000));
    let has_piggybacked = |values: &&str| values.split(',').any(|value| value == "126");
    let piggybacked = run.values("rlc.li.value").filter(has_piggybacked).count();
    assert!(piggybacked > size(6, 20), "{piggybacked}");
    run.assert_behaves();
    run.assert_no_expert_items();
    run.assert_counts_the_same_retransmissions();
    run.assert_all_packets_delivered();
}

/// A PDU has room for 16 of these packets, but not for their length indicators.
#[test]
fn wireshark_reassembles_small_packets_from_large_pdus() {
    let args = "--size 40 --for 2s --down saturate:1000 --up saturate:200";
    let run = Run::new("small", &both_directions(".format.pdu = \"700B\""), "max-dat=10,pdu=700", args);
    let most_indicators = run.values("rlc.li.value").map(|values| values.split(',').count()).max();
    assert_eq!(most_indicators, Some(15), "14 packet ends plus padding");
    run.assert_behaves();
    run.assert_no_expert_items();
    run.assert_all_packets_delivered();
}

#[test]
fn wireshark_reassembles_packets_from_flexible_pdus() {
    let duration = size("5s", "20s");
    let args = format!("--size mix --for {duration} --down poisson:2500kbit --up poisson:50kbit");
    for (name, he_special) in [("flexible", false), ("flexible-he", true)] {
        let run = Run::with_scenario(
            name,
            &format!("{FLEXIBLE}down.format.he_special = {he_special}\n"),
            &format!("{FLEXIBLE_DOWN},max-dat=10"),
            &format!("{UP},max-dat=10"),
            &args,
        );
        let (mut down, mut ends_by_he) = (0, 0);
        for [_, _, _, _, he, padding, direction] in &run.fields {
            if direction == "1" {
                down += 1;
                assert!(padding.is_empty(), "padding");
                ends_by_he += usize::from(he.starts_with('2'));
            }
        }
        let minimum = size(125, 500);
        assert!(down > minimum);
        assert_eq!(ends_by_he > minimum, he_special, "{ends_by_he} of {down} PDUs have HE = 10");
        assert!(run.values("rlc.sufi.poll_sn").count() > 0);
        run.assert_behaves();
        run.assert_no_expert_items();
        let packets = run.assert_all_packets_delivered();
        assert!(packets.iter().all(|packets| packets.sent.len() > size(40, 100)));
    }
}

/// Without HARQ, 10 % of the blocks are lost. With each block, every PDU that has a segment in the block is
/// lost too.
#[test]
fn wireshark_follows_pdus_with_lost_segments() {
    let scenario = FLEXIBLE
        .replace("hsdpa.snr = \"40dB\"", "hsdpa = { snr = \"3.45dB\", transmissions = 1, t1 = \"10ms\" }");
    let args = format!("--size mix --for {} --down saturate", size("10s", "20s"));
    let (directory, summary) = simulate("parts", &scenario, &args);
    let hsdpa = &summary["stages"]["radio"]["down"]["hsdpa"];
    for counter in ["lost", "incomplete"] {
        assert!(hsdpa[counter].as_u64().unwrap() > size(50, 100), "{hsdpa}");
    }
    let run = Run { directory, summary, findings: Findings::default(), fields: Vec::new() };
    let [down, _] = run.packets();
    down.assert_reassembled_packets_were_sent();
    assert_eq!(down.sent, down.delivered);
    let share = down.reassembled.len() as f64 / down.delivered.len() as f64;
    assert!(share > 0.99, "{share}");
}
