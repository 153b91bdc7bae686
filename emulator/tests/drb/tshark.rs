//! tshark decodes radio captures of LTE and NR without errors, and reassembles the delivered IP packets.
//!
//! Needs tshark: `interop/setup.sh test`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use airtcp_testkit::sample::{sample, size};
use airtcp_testkit::temporary::TempDir;
use airtcp_testkit::wireshark::tshark;

use crate::packets::packets;

const HANDOVERS: &str = r#"handover = { every = "1s", interruption = "30ms" }"#;

/// A scenario with a bearer whose HARQ often fails.
fn scenario(kind: &str, settings: &[&str]) -> String {
    let harq = r#"both.harq = { transmissions = 3, retx_bler = "30%", bler = { model = "independent", bler = "30%" } }"#;
    format!("schema = 1\n[[stage]]\nkind = \"{kind}\"\nname = \"radio\"\n{harq}\n{}\n", settings.join("\n"))
}

/// Preferences of tshark that dissect a capture of this layer (RLC or MAC) down to IP. tshark reassembles LTE's
/// SDUs only if it analyses sequence numbers.
fn reassembly(layer: &str, pdcp_sn: u8) -> Vec<String> {
    vec![
        format!("rlc-nr.call_pdcp_for_dl_drb:pdcp-drb-sn-{pdcp_sn}"),
        format!("rlc-nr.call_pdcp_for_ul_drb:pdcp-drb-sn-{pdcp_sn}"),
        format!("rlc-lte.call_pdcp_for_drb:pdcp-drb-sn-{pdcp_sn}"),
        format!("rlc-lte.do_sequence_analysis_am:Only-{layer}-frames"),
        format!("rlc-lte.do_sequence_analysis:Only-{layer}-frames"),
        "pdcp-nr.check_sequence_numbers:no-analysis".to_owned(),
    ]
}

fn dissect(capture: &Path, preferences: &[String], args: &[&str]) -> String {
    let preferences = preferences.iter().flat_map(|preference| ["-o", preference]);
    let args: Vec<&str> = preferences.chain(args.iter().copied()).collect();
    let heuristics =
        ["mac", "rlc", "pdcp"].map(|layer| [format!("{layer}_nr_udp"), format!("{layer}_lte_udp")]);
    let heuristics: Vec<&str> = heuristics.iter().flatten().map(String::as_str).collect();
    tshark(capture, &heuristics, &args)
}

/// Checks that tshark, with these preferences, decodes every octet of at least `least` PDUs.
fn check_format(radio: &Path, preferences: &[String], least: usize) {
    // Reassembly reports an error if a retransmission has other segments than the first transmission. The
    // analysis of sequence numbers reports an error if a PDU is reported missing twice. Both are correct
    // behaviour.
    let off = ["rlc-nr.reassemble_am_frames:FALSE", "rlc-lte.do_sequence_analysis_am:No-Analysis"];
    let preferences = [preferences, &off.map(str::to_owned)].concat();
    let decoded =
        dissect(radio, &preferences, &["-Y", "rlc-nr || rlc-lte", "-T", "fields", "-e", "frame.number"]);
    let all = tshark(radio, &[], &["-T", "fields", "-e", "udp.length"]);
    let (decoded, all) = (decoded.lines().count(), all.lines().count());
    assert_eq!(decoded, all);
    assert!(decoded >= least, "{decoded} PDUs");
    // tshark takes 262044 for the modulus of 18-bit sequence numbers, so it mistakes NACKs before the wrap
    // for NACKs after ACK_SN.
    let errors = "(_ws.malformed || _ws.expert.severity >= 0x00800000 || _ws.expert.group == \"Undecoded\") \
                  && !(rlc-nr.am.nack-sn > 262044 && _ws.expert.message contains \"ahead of ACK\")";
    assert_eq!(dissect(radio, &preferences, &["-Y", errors]), "");
}

/// Simulates a scenario. Returns the directory with the captures, and the statistics of the bearer.
fn simulate(name: &str, scenario: &str, args: &str) -> (TempDir, serde_json::Value) {
    let directory = TempDir::new(name);
    directory.write("radio.toml", scenario);
    let files =
        "--scenario radio.toml --radio-pcap radio.pcap --pcap-fixed fixed.pcap --pcap-mobile mobile.pcap";
    let mut command = Command::new(env!("CARGO_BIN_EXE_airlink"));
    command.args(["sim", "--json"]).args(files.split(' ')).args(args.split(' '));
    let output = command.current_dir(&directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let stats = summary["stages"]["radio"].take();
    for direction in ["down", "up"] {
        assert_eq!(stats[direction]["unknown_sdus"], 0);
    }
    (directory, stats)
}

fn check(name: &str, scenario: &str, args: &str, pdcp_sn: u8, least: usize) {
    let (directory, stats) = simulate(name, scenario, args);
    for direction in ["down", "up"] {
        assert!(stats[direction]["sender"]["pdus_resent"].as_u64().unwrap() > 0, "{stats:#}");
    }
    check_packets(&directory, pdcp_sn, least, true);
}

/// Checks that tshark decodes the radio PDUs and reassembles the packets. All packets must be delivered. If
/// `is_complete` is false, tshark does not reassemble packets from segments.
fn check_packets(directory: &TempDir, pdcp_sn: u8, least: usize, is_complete: bool) {
    let radio = directory.join("radio.pcap");
    check_format(&radio, &[], least);
    check_reassembled(directory, &radio, &reassembly("RLC", pdcp_sn), is_complete);
}

/// Checks that tshark reassembles the delivered packets from this radio capture.
fn check_reassembled(directory: &TempDir, radio: &Path, preferences: &[String], is_complete: bool) {
    let all = directory.join("all.pcap");
    dissect(radio, preferences, &["-U", "IP", "-F", "nsecpcap", "-w", all.to_str().unwrap()]);
    for (from, entry, exit) in
        [([10, 0, 0, 1], "fixed.pcap", "mobile.pcap"), ([10, 0, 0, 2], "mobile.pcap", "fixed.pcap")]
    {
        let sent = packets(&directory.join(entry), from);
        let delivered = packets(&directory.join(exit), from);
        assert!(delivered.len() > 100);
        assert!(sent == delivered, "the bearer changes packets or their order");
        drop(sent);
        let reassembled: BTreeSet<_> = packets(&all, from).into_iter().collect();
        let delivered: BTreeSet<_> = delivered.into_iter().collect();
        if is_complete {
            assert!(reassembled == delivered, "tshark reassembles other packets");
        } else {
            assert!(reassembled.is_subset(&delivered), "tshark reassembles other packets");
            assert!(4 * reassembled.len() > 3 * delivered.len(), "{} packets", reassembled.len());
        }
    }
}

#[test]
fn tshark_reassembles_all_packets_from_nr_pdus() {
    let scenario = scenario("nr", &[HANDOVERS, r#"down.tbs = "5000B""#, r#"up.tbs = "3000B""#]);
    let args =
        format!("--size mix --for {} --down poisson:20Mbit --up poisson:2Mbit --seed 7", size("3s", "30s"));
    check("drb-nr", &scenario, &args, 18, 1_000);
}

#[test]
fn tshark_reassembles_all_packets_from_lte_pdus() {
    let down = r#"down = { tbs = "3000B", blocks = 1 }"#;
    let scenario = scenario("lte", &[HANDOVERS, down, r#"up.tbs = "2000B""#]);
    let args =
        format!("--size mix --for {} --down poisson:8Mbit --up poisson:2Mbit --seed 7", size("3s", "30s"));
    check("drb-lte", &scenario, &args, 12, 1_000);
}

/// `make nightly` uses a million PDUs of each format. Without handovers, the sequence numbers wrap.
#[test]
fn tshark_decodes_a_million_pdus_of_each_format() {
    let nr = ("nr", r#"down.tbs = "2000B""#, r#"up.tbs = "1000B""#, "8Mbit", 18, size("600ms", "110s"));
    let lte = (
        "lte",
        r#"down = { tbs = "300B", blocks = 2 }"#,
        r#"up.tbs = "300B""#,
        "3Mbit",
        12,
        size("2s", "560s"),
    );
    let formats = [
        (nr, "am", 18),
        (nr, "am", 12),
        (nr, "um", 12),
        (nr, "um", 6),
        (lte, "am", 10),
        (lte, "am", 16),
        (lte, "um", 10),
        (lte, "um", 5),
    ];
    for ((kind, down, up, load, pdcp_sn, length), mode, sn) in sample("formats", formats, 4) {
        let rlc = format!("both.rlc = {{ mode = \"{mode}\", sn = {sn} }}");
        let scenario = scenario(kind, &[down, up, &rlc]);
        let args = format!("--size 100 --for {length} --down poisson:{load} --up poisson:1Mbit --seed 7");
        let (name, least) = (format!("million-{mode}-{sn}"), size(3_000, 1_000_000));
        if mode == "am" {
            check(&name, &scenario, &args, pdcp_sn, least);
        } else {
            let (directory, _) = simulate(&name, &scenario, &args);
            check_format(&directory.join("radio.pcap"), &[], least);
        }
    }
}

#[test]
fn tshark_reassembles_all_packets_of_unacknowledged_mode() {
    // One retransmission is always enough, so no PDU is later than a window of sequence numbers.
    let harq = r#"both.harq = { retx_bler = "0%", bler = { model = "independent", bler = "30%" } }"#;
    let formats = [("nr", 6, 18), ("nr", 12, 12), ("lte", 5, 12), ("lte", 10, 12)];
    for (kind, sn, pdcp_sn) in sample("um", formats, 2) {
        let scenario = format!(
            "schema = 1\n[[stage]]\nkind = \"{kind}\"\nname = \"radio\"\n{harq}\nboth.tbs = \"2000B\"\n\
             both.rlc = {{ mode = \"um\", sn = {sn} }}\nboth.pdcp.sn = {pdcp_sn}\n"
        );
        let args = format!(
            "--size mix --for {} --down poisson:4Mbit --up poisson:1Mbit --seed 7",
            size("3s", "30s")
        );
        let (directory, _) = simulate(&format!("um-{kind}-{sn}"), &scenario, &args);
        // tshark 4.0 aborts when it reassembles segments of NR in unacknowledged mode.
        check_packets(&directory, pdcp_sn, 1_000, kind == "lte");
    }
}

/// The dedicated bearer carries UDP to port 9. Only packets that are too short for a port use the default
/// bearer.
#[test]
fn tshark_decodes_two_bearers_with_losses() {
    for (kind, pdcp_sn) in sample("two bearers", [("nr", 18), ("lte", 12)], 1) {
        let dedicated = r#"dedicated = { ports = [9], rlc = { mode = "um" } }"#;
        let scenario = scenario(kind, &[HANDOVERS, dedicated, r#"both.tbs = "3000B""#]);
        let args = format!("--size mix --for {} --down poisson:8Mbit --up poisson:2Mbit", size("3s", "30s"));
        let (directory, stats) = simulate(&format!("two-{kind}"), &scenario, &args);
        assert!(stats["dedicated"]["down"]["rlc_loss"].as_u64().unwrap() > 0, "{stats:#}");
        assert!(stats["down"]["delivered"].as_u64().unwrap() > 0, "{stats:#}");
        let radio = directory.join("radio.pcap");
        check_format(&radio, &[], 1_000);
        let bearers = dissect(
            &radio,
            &reassembly("RLC", pdcp_sn),
            &["-T", "fields", "-e", "rlc-nr.bearer-id", "-e", "rlc-lte.channel-id"],
        );
        let bearers: BTreeSet<&str> = bearers.lines().map(str::trim).collect();
        assert_eq!(bearers.into_iter().collect::<Vec<_>>(), ["1", "17"]);
    }
}

/// Preferences of tshark that map the logical channel of the default bearer to a DRB.
fn mapping(kind: &str, mode: &str, sn: u8) -> Vec<String> {
    let mode = match (kind, mode, sn) {
        ("lte", "am", 10) => "AM".to_owned(),
        (_, mode, sn) => format!("{}, SN Len={sn}", mode.to_uppercase()),
    };
    let table = match kind {
        "nr" => format!("uat:drb_bearerconfig:\"LCID 4\",\"1\",\"{mode}\",\"{mode}\""),
        _ => format!("uat:drb_logchans:\"LCID 3\",\"1\",\"{mode}\""),
    };
    // The first one is the limit of nested protocols, which several PDUs in a block exceed. tshark 4.0 aborts when
    // it reassembles segments of NR in unacknowledged mode.
    vec!["gui.max_tree_depth:5000".to_owned(), table, "rlc-nr.reassemble_um_frames:FALSE".to_owned()]
}

/// The transport blocks in a radio capture.
#[derive(Default)]
struct Blocks {
    transmissions: u64,
    lost: u64,
    /// The RLC PDUs of each direction that tshark finds in first transmissions.
    pdus: [Vec<String>; 2],
}

impl Blocks {
    fn read(radio: &Path) -> Self {
        let fields = ["ipv6.src", "ipv6.flow", "udp.srcport"];
        let sdus = ["mac-nr.dlsch.sdu", "mac-nr.ulsch.sdu", "mac-lte.sch.sdu"];
        let fields = fields.iter().chain(&sdus).flat_map(|field| ["-e", field]);
        let args: Vec<&str> = ["-T", "fields"].into_iter().chain(fields).collect();
        let mut blocks = Self::default();
        for row in dissect(radio, &[], &args).lines() {
            let columns: Vec<&str> = row.split('\t').collect();
            let [source, transmission, port, sdus @ ..] = &columns[..] else { panic!("{row}") };
            blocks.transmissions += 1;
            blocks.lost += u64::from(*port == "50002");
            if *transmission == "0x000001" {
                let pdus = &mut blocks.pdus[usize::from(*source == "2001:db8::2")];
                let sdus = sdus.iter().flat_map(|sdus| sdus.split(','));
                pdus.extend(sdus.filter(|sdu| !sdu.is_empty()).map(str::to_owned));
            }
        }
        blocks
    }
}

/// The RLC PDUs of each direction in a capture of RLC. `framing` is the size of Wireshark's framing.
fn pdus(radio: &Path, framing: usize) -> [Vec<String>; 2] {
    [[192, 0, 2, 1], [192, 0, 2, 2]].map(|from| {
        let datagrams = packets(radio, from);
        let hex = |datagram: &Vec<u8>| {
            let header = usize::from(datagram[0] & 0x0f) * 4 + 8 + framing;
            datagram[header..].iter().map(|octet| format!("{octet:02x}")).collect()
        };
        datagrams.iter().map(hex).collect()
    })
}

/// Checks captures of all HARQ transmissions of transport blocks with one or more RLC PDUs, in these formats of RLC.
/// `framing` is the size of Wireshark's framing of an RLC PDU.
fn check_blocks(kind: &str, formats: [(&str, u8); 3], down: &str, load: &str, framing: usize) {
    let mut transmissions = 0;
    for (mode, sn) in sample("blocks", formats, 2) {
        let rlc = format!("both.rlc = {{ mode = \"{mode}\", sn = {sn} }}");
        let scenario = scenario(kind, &[down, r#"up.tbs = "301B""#, &rlc]);
        let args = format!("--size 100 {load} --up poisson:1Mbit --seed 7");
        let name = format!("mac-{kind}-{mode}-{sn}");
        let (directory, stats) = simulate(&name, &scenario, &format!("{args} --radio-layer mac"));
        let radio = directory.join("radio.pcap");
        check_format(&radio, &mapping(kind, mode, sn), 500);
        let count = |key: &str| -> u64 {
            ["down", "up"].map(|direction| stats[direction][key].as_u64().unwrap()).iter().sum()
        };
        let found = Blocks::read(&radio);
        assert_eq!((found.transmissions, found.lost), (count("blocks"), count("blocks_lost")), "{name}");
        transmissions += found.transmissions;
        drop(directory);
        let (directory, _) = simulate(&name, &scenario, &args);
        for (found, recorded) in found.pdus.iter().zip(pdus(&directory.join("radio.pcap"), framing)) {
            assert!(found.starts_with(&recorded), "{name}: other RLC PDUs");
            // RLC PDUs are recorded when HARQ has finished.
            assert!(
                found.len() - recorded.len() < 20,
                "{name}: {} PDUs are missing",
                found.len() - recorded.len()
            );
        }
    }
    assert!(transmissions >= size(1_000, 1_000_000), "{transmissions} transport blocks");
}

/// `make nightly` uses a million transport blocks and three million RLC PDUs.
#[test]
fn tshark_decodes_nr_transport_blocks_of_each_format() {
    let load = format!("--for {} --down poisson:8Mbit", size("500ms", "170s"));
    check_blocks("nr", [("am", 18), ("am", 12), ("um", 6)], r#"down.tbs = "2000B""#, &load, 18);
}

/// `make nightly` uses a million transport blocks and three million RLC PDUs.
#[test]
fn tshark_decodes_lte_transport_blocks_of_each_format() {
    let load = format!("--for {} --down poisson:3Mbit", size("1s", "560s"));
    let down = r#"down = { tbs = "300B", blocks = 2 }"#;
    check_blocks("lte", [("am", 10), ("am", 16), ("um", 5)], down, &load, 22);
}

/// Without block errors, because tshark mistakes a segment of a retransmission for one of another SDU in the same
/// block.
#[test]
fn tshark_reassembles_all_packets_from_transport_blocks() {
    let formats = [("nr", "am", 18, 18), ("lte", "am", 10, 12), ("lte", "um", 10, 12)];
    for (kind, mode, sn, pdcp_sn) in sample("packets in blocks", formats, 2) {
        let scenario = format!(
            "schema = 1\n[[stage]]\nkind = \"{kind}\"\nname = \"radio\"\nboth.tbs = \"3000B\"\n\
             both.rlc = {{ mode = \"{mode}\", sn = {sn} }}\n"
        );
        let args = format!(
            "--size mix --for {} --down poisson:8Mbit --up poisson:2Mbit --seed 7 --radio-layer mac",
            size("2s", "30s")
        );
        let (directory, _) = simulate(&format!("mac-ip-{kind}-{mode}"), &scenario, &args);
        let preferences = [mapping(kind, mode, sn), reassembly("MAC", pdcp_sn)].concat();
        check_reassembled(&directory, &directory.join("radio.pcap"), &preferences, true);
    }
}

#[test]
fn tshark_decodes_transport_blocks_of_two_bearers() {
    for kind in sample("blocks of two bearers", ["nr", "lte"], 1) {
        let dedicated = r#"dedicated = { ports = [9], rlc = { mode = "um" } }"#;
        let scenario = scenario(kind, &[HANDOVERS, dedicated, r#"both.tbs = "3000B""#]);
        let args = format!(
            "--size mix --for {} --down poisson:8Mbit --up poisson:2Mbit --radio-layer mac",
            size("2s", "30s")
        );
        let (directory, _) = simulate(&format!("mac-two-{kind}"), &scenario, &args);
        let radio = directory.join("radio.pcap");
        let (mut preferences, channels) = match kind {
            "nr" => (mapping(kind, "am", 18), ["LCID 5", "UM, SN Len=12", "4", "5"]),
            _ => (mapping(kind, "am", 10), ["LCID 4", "UM, SN Len=10", "3", "4"]),
        };
        let [lcid, mode, ..] = channels;
        preferences.push(match kind {
            "nr" => format!("uat:drb_bearerconfig:\"{lcid}\",\"17\",\"{mode}\",\"{mode}\""),
            _ => format!("uat:drb_logchans:\"{lcid}\",\"17\",\"{mode}\""),
        });
        check_format(&radio, &preferences, 1_000);
        let fields =
            ["-T", "fields", "-E", "occurrence=f", "-e", "rlc-nr.bearer-id", "-e", "rlc-lte.channel-id"];
        let bearers = dissect(&radio, &preferences, &fields);
        let bearers: BTreeSet<&str> = bearers.lines().map(str::trim).collect();
        assert_eq!(bearers.into_iter().collect::<Vec<_>>(), ["1", "17"]);
    }
}

/// A column of tshark's output for each frame.
fn column(capture: &Path, preferences: &[String], filter: &str, field: &str) -> Vec<String> {
    let rows = dissect(capture, preferences, &["-Y", filter, "-T", "fields", "-e", field]);
    rows.lines().map(str::to_owned).collect()
}

/// The lower bounds of the buffer sizes that tshark shows for each index from 1. The upper bounds are not used,
/// because tshark 4.0 has a wrong one: 10276 in place of 10287.
fn buffer_size_levels(field: &str) -> Vec<u64> {
    let output = Command::new("tshark").args(["-G", "values"]).output().unwrap();
    let values = String::from_utf8(output.stdout).unwrap();
    let prefix = format!("V\t{field}\t");
    let mut levels = Vec::new();
    for line in values.lines().filter_map(|line| line.strip_prefix(&prefix)) {
        let (_, value) = line.split_once('\t').unwrap();
        if let Some(last) = value.strip_prefix("BS > ") {
            levels.push(last.parse().unwrap());
            break;
        }
        levels.extend(value.split_once(" < BS").map(|(level, _)| level.parse::<u64>().unwrap()));
    }
    levels
}

/// Ground truth is the difference between the packets that enter and the RLC data that was transmitted.
#[test]
fn buffer_status_reports_contain_the_buffered_octets() {
    for (kind, sn, load, bsr, pdcp_header) in [
        ("nr", 12, "700kbit", "mac-nr.control.bsr.bs-lcg0", 3),
        ("lte", 10, "1500kbit", "mac-lte.control.bsr.buffer-size", 2),
    ] {
        let scenario = scenario(kind, &[r#"up.tbs = "301B""#, r#"both.rlc = { mode = "um" }"#]);
        let args = format!(
            "--size mix --for {} --down none --up poisson:{load} --seed 7 --radio-layer mac",
            size("10s", "60s")
        );
        let (directory, stats) = simulate(&format!("bsr-{kind}"), &scenario, &args);
        assert_eq!(stats["up"]["queue_full"], 0);
        let times = |capture: &Path, filter: &str| -> Vec<u64> {
            let times = column(capture, &[], filter, "frame.time_epoch");
            times.iter().map(|time| time.replace('.', "").parse().unwrap()).collect()
        };
        let entry = directory.join("mobile.pcap");
        let lengths = column(&entry, &[], "ip.src == 10.0.0.2", "ip.len");
        let sdus = lengths.iter().map(|length| length.parse::<u64>().unwrap() + pdcp_header);
        let mut entering = times(&entry, "ip.src == 10.0.0.2").into_iter().zip(sdus).peekable();

        let (radio, first) = (directory.join("radio.pcap"), "ipv6.flow == 1");
        let preferences = mapping(kind, "um", sn);
        let reports = column(&radio, &preferences, first, bsr);
        let data = column(&radio, &preferences, first, &format!("rlc-{kind}.um.data"));
        let levels = buffer_size_levels(bsr);
        let (mut buffered, mut seen) = (0, BTreeSet::new());
        for ((start, report), data) in times(&radio, first).into_iter().zip(reports).zip(data) {
            while let Some((_, octets)) = entering.next_if(|(at, _)| *at < start) {
                buffered += octets;
            }
            buffered -= data.split(',').map(|data| data.len() as u64 / 2).sum::<u64>();
            if !report.is_empty() {
                let index: usize = report.parse().unwrap();
                assert_eq!(index, levels.partition_point(|level| *level < buffered), "{buffered} octets");
                seen.insert(index);
            }
        }
        assert!(seen.len() >= 5, "{kind}: {seen:?}");
    }
}

/// PDCP PDUs are in the order in which RLC delivers them: the receiver of LTE misses none.
#[test]
fn tshark_decodes_pdcp_pdus_in_order_of_delivery() {
    let formats = [("nr", 18), ("nr", 12), ("lte", 12), ("lte", 15), ("lte", 18)];
    for (kind, pdcp_sn) in sample("pdcp", formats, 2) {
        let pdcp = format!("both.pdcp.sn = {pdcp_sn}");
        let scenario = scenario(kind, &[r#"both.tbs = "3000B""#, &pdcp]);
        let args = format!(
            "--size mix --for {} --down poisson:8Mbit --up poisson:2Mbit --seed 7 --radio-layer pdcp",
            size("1s", "30s")
        );
        let (directory, _) = simulate(&format!("pdcp-{kind}-{pdcp_sn}"), &scenario, &args);
        let radio = directory.join("radio.pcap");
        check_reassembled(&directory, &radio, &[], true);
        let checks = ["nr", "lte"].map(|kind| format!("pdcp-{kind}.check_sequence_numbers:Only-PDCP-frames"));
        let faults = match kind {
            // The segments of NR overtake each other, so PDCP restores the order.
            "nr" => "_ws.malformed || _ws.expert.severity >= 0x00800000 || _ws.expert.group == \"Undecoded\"",
            _ => "_ws.expert.severity >= 0x00600000",
        };
        assert_eq!(dissect(&radio, &checks, &["-Y", faults]), "", "{kind} {pdcp_sn}");
        let decoded =
            dissect(&radio, &[], &["-Y", "pdcp-nr || pdcp-lte", "-T", "fields", "-e", "udp.length"]);
        let all = tshark(&radio, &[], &["-T", "fields", "-e", "udp.length"]);
        assert_eq!(decoded.lines().count(), all.lines().count());
    }
}
