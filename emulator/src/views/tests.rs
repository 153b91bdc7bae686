//! Tests that tcpdump and tshark can read the files.

use std::process::Command;

use airwire::time::Duration;

use super::*;
use crate::packet::{Direction, PacketId};
use crate::simulate::{Family, sequenced};
use crate::stage::{BlockContext, DropReason, Event, RadioLayer, RadioPdu, Technology};

fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("airlink-views-{}-{name}", std::process::id()))
}

fn run() -> RunInfo {
    RunInfo {
        scenario: "test".to_owned(),
        seed: 1,
        stages: vec!["wire".to_owned(), "radio".to_owned()],
        wall_zero: SystemTime::UNIX_EPOCH,
    }
}

fn output_of(program: &str, file: &std::path::Path, args: &[&str]) -> String {
    let output = Command::new(program)
        .arg("-r")
        .arg(file)
        .args(args)
        .output()
        .unwrap_or_else(|_| panic!("this test needs {program}: sh interop/setup.sh test"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn record(millis: u64, packet: u64, stage: Option<usize>, event: Event) -> Record {
    let family = if packet == 1 { Family::V6 } else { Family::V4 };
    Record {
        at: Instant::from_millis(millis),
        stage,
        packet: PacketId(packet),
        direction: Direction::Down,
        event,
        bytes: Some(sequenced(family, Direction::Down, packet, 100).into()),
    }
}

fn entered(millis: u64, packet: u64) -> Record {
    record(millis, packet, None, Event::Entered { bytes: 100 })
}

fn amd(millis: u64, sn: u16, transmission: u32, lost: bool, packet: u64) -> RadioPdu {
    let header = (0x8000 | sn << 3).to_be_bytes();
    let mut bytes = vec![0; 42];
    bytes[..2].copy_from_slice(&header);
    RadioPdu {
        at: Instant::from_millis(millis),
        stage: 1,
        bearer: 0,
        direction: Direction::Down,
        technology: Technology::Umts { indicators: 7 },
        bytes: bytes.into(),
        epoch: 0,
        lost,
        arrival: None,
        transmission,
        packets: vec![PacketId(packet)],
    }
}

#[test]
fn pcapng_comments_state_packet_outcomes_in_time_order() {
    let path = temporary("fates.pcapng");
    let mut capture = CommentedCapture::create(&path, &run()).unwrap();
    capture.record(entered(0, 0)).unwrap();
    capture.record(record(5, 0, Some(0), Event::Sent { waited: Duration::from_millis(5) })).unwrap();
    capture.pdu(&amd(5, 12, 1, false, 0));
    capture.pdu(&amd(5, 13, 1, true, 0));
    capture.record(entered(6, 1)).unwrap();
    capture.record(record(7, 1, Some(0), Event::Dropped { why: DropReason::QueueFull })).unwrap();
    capture.pdu(&amd(8, 13, 2, false, 0));
    capture.record(record(9, 2, Some(0), Event::Entered { bytes: 100 })).unwrap();
    capture.record(record(9, 0, None, Event::Left)).unwrap();
    capture.record(record(10, 2, Some(1), Event::Dropped { why: DropReason::Loss })).unwrap();
    capture.record(entered(11, 3)).unwrap();
    capture.finish().unwrap();

    let fields = ["frame.time_epoch", "frame.interface_name", "ip.version", "frame.comment"];
    let mut args = vec!["-T", "fields", "-E", "separator= "];
    args.extend(fields.iter().flat_map(|field| ["-e", field]));
    let shown = output_of("tshark", &path, &args);
    let radio = "radio: pdus=12..13 sent=3 resent=1 lost=1";
    let delivered = format!("packet=0 fate=delivered after=9.000ms queued=5.000ms {radio}");
    let full = "packet=1 fate=dropped at=wire why=queue-full cause=congestion after=1.000ms";
    let lost = "packet=2 fate=dropped at=radio why=loss cause=radio after=1.000ms origin=background";
    let expected = [
        format!("0.000000000 fixed 4 {delivered}"),
        format!("0.006000000 fixed 6 {full}"),
        format!("0.007000000 wire 6 {full}"),
        format!("0.009000000 wire 4 {lost}"),
        format!("0.009000000 mobile 4 {delivered}"),
        format!("0.010000000 radio 4 {lost}"),
        "0.011000000 fixed 4 packet=3 fate=inside".to_owned(),
    ];
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected);

    // libpcap refuses files whose interfaces differ.
    let dumped = output_of("tcpdump", &path, &["-nt"]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(dumped.lines().filter(|line| line.starts_with("IP 10.0.0.1.9 > 10.0.0.2.9: UDP")).count(), 5);
    assert_eq!(dumped.lines().filter(|line| line.starts_with("IP6 fd00::1.9 > fd00::2.9: UDP")).count(), 2);
}

#[test]
fn wireshark_decodes_radio_capture_with_valid_checksums() {
    let path = temporary("radio.pcap");
    let mut capture = RadioCapture::create(&path, RadioLayer::Rlc, &run()).unwrap();
    capture.pdu(&amd(20, 0, 1, true, 0)).unwrap();
    capture.pdu(&RadioPdu { epoch: 0x1002, direction: Direction::Up, ..amd(30, 4095, 3, false, 0) }).unwrap();
    let reset = [0x18, 0x12, 0x34, 0x50].iter().copied().chain([0; 38]).collect();
    capture.pdu(&RadioPdu { bytes: reset, packets: Vec::new(), ..amd(40, 0, 1, false, 0) }).unwrap();
    // 15-bit length indicators. The second one announces padding.
    let mut long = vec![0; 200];
    long[..4].copy_from_slice(&[0x80, 0x01, 0xff, 0xfe]);
    let of_15_bits = RadioPdu { technology: Technology::Umts { indicators: 15 }, ..amd(50, 0, 1, false, 0) };
    capture.pdu(&RadioPdu { bytes: long.into(), ..of_15_bits.clone() }).unwrap();
    // With a flexible PDU size, a short PDU can have 15-bit indicators too.
    let short = [0x80, 0x09, 0x00, 0x04, 0x45, 0x00];
    capture.pdu(&RadioPdu { bytes: short.into(), ..of_15_bits }).unwrap();
    capture.finish().unwrap();

    let fields = "frame.time_epoch ip.id udp.srcport ip.checksum.status udp.checksum.status rlc.channel.dir \
                  rlc.channel.ueid rlc.channel.rbid rlc.seq rlc.hfni rlc.li.value";
    let mut args = vec!["--enable-heuristic", "rlc_udp", "-o", "ip.check_checksum:TRUE"];
    args.extend(["-o", "udp.check_checksum:TRUE", "-T", "fields", "-E", "separator= "]);
    args.extend(fields.split_whitespace().flat_map(|field| ["-e", field]));
    let shown = output_of("tshark", &path, &args);
    std::fs::remove_file(&path).unwrap();
    let expected = [
        "0.020000000 0x0001 50002 1 1 1 0x00000001 6 0  ",
        "0.030000000 0x0003 50000 1 1 0 0x00001003 6 4095  ",
        "0.040000000 0x0001 50000 1 1 1 0x00000001 6  74565 ",
        "0.050000000 0x0001 50000 1 1 1 0x00000001 6 0  32767",
        "0.050000000 0x0001 50000 1 1 1 0x00000001 6 1  2",
    ];
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn wireshark_decodes_transport_blocks_longer_than_datagrams() {
    let path = temporary("blocks.pcap");
    let mut capture = RadioCapture::create(&path, RadioLayer::Mac, &run()).unwrap();
    let context = BlockContext { is_tdd: true, frame: 1023, slot: 9, process: 7 };
    let mut bytes = vec![0; 70_000];
    bytes[0] = 63;
    let short = RadioPdu {
        technology: Technology::NrMac(context),
        bytes: bytes[..100].into(),
        epoch: 2,
        ..amd(20, 0, 1, true, 0)
    };
    capture.pdu(&short).unwrap();
    let long = RadioPdu { bytes: bytes.into(), transmission: 2, lost: false, ..short.clone() };
    capture.pdu(&long).unwrap();
    let technology = Technology::LteMac(BlockContext { is_tdd: false, ..context });
    let lte = RadioPdu { technology, bytes: [31; 50].into(), ..long };
    capture.pdu(&lte).unwrap();
    capture.pdu(&RadioPdu { direction: Direction::Up, transmission: 1, ..lte }).unwrap();
    // Not of this layer.
    capture.pdu(&RadioPdu { technology: Technology::Nr { sn: 18 }, ..short }).unwrap();
    // UMTS has only RLC.
    capture.pdu(&amd(30, 0, 1, false, 0)).unwrap();
    capture.finish().unwrap();

    let fields = "ipv6.flow udp.srcport udp.checksum.status mac-nr.ueid mac-nr.radio-type mac-nr.direction \
                  mac-nr.sfn mac-nr.slot mac-nr.harqid mac-lte.ueid mac-lte.radio-type mac-lte.direction \
                  mac-lte.sfn mac-lte.subframe mac-lte.ul-phy.harq-id mac-lte.dl-phy.harq-id mac-lte.retx-count";
    let mut args = vec!["--enable-heuristic", "mac_nr_udp", "--enable-heuristic", "mac_lte_udp"];
    args.extend(["-o", "udp.check_checksum:TRUE", "-T", "fields", "-E", "separator= "]);
    args.extend(fields.split_whitespace().flat_map(|field| ["-e", field]));
    let shown = output_of("tshark", &path, &args);
    std::fs::remove_file(&path).unwrap();
    let shown: Vec<_> =
        shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "0x000001 50002 1 34 2 1 1023 9 7",
        "0x000002 50000 1 34 2 1 1023 9 7",
        "0x000002 50000 1 34 1 1 1023 9 7 1",
        "0x000001 50000 1 34 1 0 1023 9 7",
        "50000 1",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn undelivered_packet_holds_back_bounded_data() {
    let path = temporary("stays.pcapng");
    let mut capture = CommentedCapture::create(&path, &run()).unwrap();
    capture.record(entered(0, 0)).unwrap();
    let long: Box<[u8]> = vec![0x45; 60_000].into();
    for packet in 1..2000 {
        capture.record(Record { bytes: Some(long.clone()), ..entered(1, packet) }).unwrap();
        capture.record(Record { bytes: Some(long.clone()), ..record(1, packet, None, Event::Left) }).unwrap();
    }
    capture.record(record(2, 0, None, Event::Left)).unwrap();
    let held_back: usize = capture.held_back();
    capture.finish().unwrap();
    let size = std::fs::metadata(&path).unwrap().len();
    std::fs::remove_file(&path).unwrap();
    assert!(held_back <= 64 << 20);
    assert!(size > 2 * 1999 * 60_000, "all packets are in the file");
}

#[test]
fn create_error_names_path() {
    let files = Files { events: Some("/nonexistent/x.jsonl".into()), ..Files::default() };
    let error = Views::create(&files, &run()).err().unwrap().to_string();
    assert!(error.contains("/nonexistent/x.jsonl"), "{error}");
}
