//! tshark decodes radio captures of LTE and NR without errors, and reassembles the delivered IP packets.
//!
//! Needs tshark: `interop/setup.sh test`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use airtcp_testkit::sample::size;
use airtcp_testkit::temporary::TempDir;
use airtcp_testkit::wireshark::tshark;

use crate::packets::packets;

const NR: &str = r#"
schema = 1
[[stage]]
kind = "nr"
name = "radio"
handover = { every = "1s", interruption = "30ms" }
down.tbs = "5000B"
up.tbs = "3000B"
both.harq = { transmissions = 3, retx_bler = "30%", bler = { model = "independent", bler = "30%" } }
"#;

const LTE: &str = r#"
schema = 1
[[stage]]
kind = "lte"
name = "radio"
handover = { every = "1s", interruption = "30ms" }
down = { tbs = "3000B", blocks = 1 }
up.tbs = "2000B"
both.harq = { transmissions = 3, retx_bler = "30%", bler = { model = "independent", bler = "30%" } }
"#;

/// Dissects a radio capture down to IP.
fn dissect(capture: &Path, pdcp_sn: &str, args: &[&str]) -> String {
    let lte_pdcp = format!("rlc-lte.call_pdcp_for_drb:pdcp-drb-sn-{pdcp_sn}");
    let preferences = [
        "rlc-nr.call_pdcp_for_dl_drb:pdcp-drb-sn-18",
        "rlc-nr.call_pdcp_for_ul_drb:pdcp-drb-sn-18",
        "rlc-lte.do_sequence_analysis_am:Only-RLC-frames",
        &lte_pdcp,
        "pdcp-nr.check_sequence_numbers:no-analysis",
    ];
    let preferences = preferences.iter().flat_map(|preference| ["-o", preference]);
    let args: Vec<&str> = preferences.chain(args.iter().copied()).collect();
    tshark(capture, &["rlc_nr_udp", "rlc_lte_udp"], &args)
}

fn check(name: &str, scenario: &str, args: &str, pdcp_sn: &str) {
    let directory = TempDir::new(name);
    directory.write("radio.toml", scenario);
    let files =
        "--scenario radio.toml --radio-pcap radio.pcap --pcap-fixed fixed.pcap --pcap-mobile mobile.pcap";
    let mut command = Command::new(env!("CARGO_BIN_EXE_airlink"));
    command.args(["sim", "--json"]).args(files.split(' ')).args(args.split(' '));
    let output = command.current_dir(&directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for direction in ["down", "up"] {
        let stats = &summary["stages"]["radio"][direction];
        assert!(stats["sender"]["pdus_resent"].as_u64().unwrap() > 0, "{stats:#}");
        assert_eq!(stats["unknown_sdus"], 0);
    }
    let radio = directory.join("radio.pcap");
    // Two items are expected here: NR segments overlap earlier ones if they are cut differently when they are
    // retransmitted, and a PDU is reported missing again if its retransmission is lost too.
    let errors = "(_ws.malformed || _ws.expert.severity >= 0x00800000 || _ws.expert.group == \"Undecoded\") \
                  && !(_ws.expert.message contains \"overlaps old data\") \
                  && !(_ws.expert.message contains \"in successive Status PDUs\")";
    assert_eq!(dissect(&radio, pdcp_sn, &["-Y", errors]), "");
    let all = directory.join("all.pcap");
    dissect(&radio, pdcp_sn, &["-U", "IP", "-F", "nsecpcap", "-w", all.to_str().unwrap()]);
    for (from, entry, exit) in
        [([10, 0, 0, 1], "fixed.pcap", "mobile.pcap"), ([10, 0, 0, 2], "mobile.pcap", "fixed.pcap")]
    {
        let sent = packets(&directory.join(entry), from);
        let delivered = packets(&directory.join(exit), from);
        assert!(delivered.len() > 100);
        assert_eq!(sent, delivered);
        let reassembled: BTreeSet<_> = packets(&all, from).into_iter().collect();
        assert_eq!(reassembled, delivered.into_iter().collect::<BTreeSet<_>>());
    }
}

#[test]
fn tshark_reassembles_all_packets_from_nr_pdus() {
    let args =
        format!("--size mix --for {} --down poisson:20Mbit --up poisson:2Mbit --seed 7", size("3s", "120s"));
    check("drb-nr", NR, &args, "12");
}

#[test]
fn tshark_reassembles_all_packets_from_lte_pdus() {
    let args =
        format!("--size mix --for {} --down poisson:8Mbit --up poisson:2Mbit --seed 7", size("3s", "60s"));
    check("drb-lte", LTE, &args, "12");
}
