//! The assignment of packets to connections agrees with Wireshark's `tcp.stream`.

use std::fs;
use std::path::Path;

use aircaptures::Capture;
use airtcp_analyze::{Traces, read};
use airtcp_testkit::frames::{ACK, ETHERNET, FIN_ACK, Pcap, RST, SYN, SYN_ACK, Tcp, v4};
use airtcp_testkit::machine::TempFile;
use airwire::options::Options;
use airwire::segment::Flags;

use super::fields;

/// A packet between two hosts: sender, flags, sequence number, acknowledgement number, payload length.
type Row = (char, Flags, u32, u32, usize);

const RST_ACK: Flags = Flags::RST.with(Flags::ACK);

fn written(rows: &[Row]) -> TempFile {
    let (a, b) = (v4(1, 1000), v4(2, 80));
    let mut pcap = Pcap::new(ETHERNET);
    for (index, (from, flags, seq, ack, len)) in rows.iter().enumerate() {
        let (src, dst) = if *from == 'a' { (a, b) } else { (b, a) };
        let mut packet = Tcp::new(src, dst, *flags, *seq, *ack, *len);
        packet.ident = index as u16 + 1;
        if flags.contains(Flags::SYN) {
            packet.options = Options { mss: Some(1460), window_scale: Some(7), ..Options::default() };
        }
        pcap.frame(index as f64 * 0.1, &packet.ethernet());
    }
    let file = TempFile::new("streams.pcap");
    fs::write(file.path(), pcap.file).unwrap();
    file
}

/// The first frame of each stream according to Wireshark and to us, and whether we know the window scale.
fn streams(rows: &[Row]) -> (Vec<u64>, Vec<u64>, Vec<bool>) {
    let file = written(rows);
    let mut theirs: Vec<u64> = Vec::new();
    for (index, row) in fields(file.path(), &["tcp.stream"]).iter().enumerate() {
        let stream: usize = row[0].parse().unwrap();
        if stream == theirs.len() {
            theirs.push(index as u64 + 1);
        }
    }
    let mut ours = Vec::new();
    let mut capture = Capture::open(Path::new(file.path()), None).unwrap();
    read(&mut capture, Traces::None, &mut |finished| {
        let findings = finished.ended.findings;
        ours.push((finished.number, findings.first_packet, !findings.directions[0].window.unscaled));
    });
    ours.sort_unstable();
    let scaled = ours.iter().map(|(.., scaled)| *scaled).collect();
    (theirs, ours.iter().map(|(_, first, _)| *first).collect(), scaled)
}

const HANDSHAKE: [Row; 3] = [('a', SYN, 100, 0, 0), ('b', SYN_ACK, 500, 101, 0), ('a', ACK, 101, 501, 0)];
const DATA: [Row; 2] = [('a', ACK, 101, 501, 1000), ('b', ACK, 501, 1101, 0)];

#[test]
fn repeated_syn_before_handshake_starts_one_stream() {
    let cases: [(&str, &[Row]); 4] = [
        ("no earlier attempt", &[]),
        // RFC 5961 §4: the other end still has an old connection, answers with a challenge ACK, and is reset.
        (
            "a challenge ACK and the reset that it causes",
            &[
                ('a', SYN, 100, 0, 0),
                ('b', ACK, 3_000_000_000, 2_500_000_000, 0),
                ('a', RST, 2_500_000_000, 0, 0),
            ],
        ),
        ("a refused SYN", &[('a', SYN, 100, 0, 0), ('b', RST_ACK, 0, 101, 0)]),
        ("two SYNs without an answer", &[('a', SYN, 100, 0, 0), ('a', SYN, 100, 0, 0)]),
    ];
    for (what, before) in cases {
        let (theirs, ours, scaled) = streams(&[before, &HANDSHAKE[..], &DATA].concat());
        assert_eq!((&theirs, &ours), (&vec![1], &vec![1]), "{what}");
        assert_eq!(scaled, [true], "{what}");
    }
}

#[test]
fn new_isn_on_same_ports_starts_new_stream() {
    let close = [('a', FIN_ACK, 1101, 501, 0), ('b', FIN_ACK, 501, 1102, 0), ('a', ACK, 1102, 502, 0)];
    let again = [('a', SYN, 70_000, 0, 0), ('b', SYN_ACK, 90_000, 70_001, 0), ('a', ACK, 70_001, 90_001, 0)];
    for end in [&close[..], &[('b', RST_ACK, 501, 1101, 0)], &[]] {
        let (theirs, ours, scaled) = streams(&[&HANDSHAKE[..], &DATA, end, &again].concat());
        assert_eq!(theirs, ours, "{end:?}");
        assert_eq!(scaled, [true, true]);
    }
}
