//! `airtcp analyze` with every kind of capture, and with files that are not captures. tshark counts the same
//! packets and connections if it can read the file.

mod builder;
mod command;
mod compressed;
mod frames;
mod handshakes;
mod many_connections;
mod names;
mod plots;
mod problems;
mod report;
mod selection;
mod senders;
mod windows;

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::process::Command;

use airtcp_testkit::frames::bulk::Bulk;
use airtcp_testkit::frames::{
    ACK, ETHERNET, FIN_ACK, Pcap, Pcapng, RST, SYN, SYN_ACK, Tcp, ethernet, ethertype, v4, v6,
};
use airtcp_testkit::machine::{TempFile, airtcp, run};
use airtcp_testkit::programs::program;
use airtcp_testkit::sample;
use airwire::options::Options;
use serde_json::Value;

use crate::tools;

fn file(bytes: &[u8]) -> TempFile {
    let file = TempFile::new("capture");
    std::fs::write(file.path(), bytes).unwrap();
    file
}

fn analyze_path(path: &str, more: &[&str]) -> Value {
    let ended = run(&[&["analyze", "--json", path], more].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{path}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["schema_version"], 1);
    document["captures"][0].clone()
}

fn analyze(bytes: &[u8]) -> Value {
    analyze_path(file(bytes).path(), &[])
}

fn analyze_stdin(bytes: &[u8]) -> Value {
    let output = tools::pipe(&mut airtcp(&["analyze", "-", "--json"]), bytes);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["captures"][0].clone()
}

/// Number of occurrences of this problem, and its first frame.
fn problem(capture: &Value, name: &str) -> Option<(u64, u64)> {
    let problems = capture["totals"]["problems"].as_array().unwrap();
    let found = problems.iter().find(|problem| problem["problem"] == name)?;
    Some((found["count"].as_u64().unwrap(), found["first_frame"].as_u64().unwrap()))
}

fn no_problems(capture: &Value) {
    assert_eq!(capture["totals"]["problems"], serde_json::json!([]));
}

/// Number of TCP packets and of connections.
fn counts(capture: &Value) -> (u64, u64) {
    let totals = &capture["totals"];
    assert_eq!(totals["connections"], capture["connections"].as_array().unwrap().len());
    (totals["tcp_packets"].as_u64().unwrap(), totals["connections"].as_u64().unwrap())
}

/// The fields of all TCP packets from tshark, separated by tabs.
fn tshark_fields(path: &str, fields: &[&str]) -> String {
    let args = ["-r", path, "-o", "ip.defragment:FALSE", "-Y", "tcp", "-T", "fields"];
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    tools::tshark_text(&args.into_iter().chain(fields).collect::<Vec<_>>())
}

/// The same numbers from tshark.
fn tshark(bytes: &[u8]) -> (u64, u64) {
    let text = tshark_fields(file(bytes).path(), &["tcp.stream"]);
    let streams: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    (streams.len() as u64, streams.iter().max().map_or(0, |last| last + 1))
}

/// The link type and the frames of a capture.
type Frames = (u32, Vec<Vec<u8>>);

/// The analysis of each capture. The program runs once for all captures.
fn analyze_each(captures: &[Frames]) -> Vec<Value> {
    let files: Vec<_> =
        captures.iter().map(|(link_type, frames)| file(&pcap_of(*link_type, frames.clone()))).collect();
    let paths: Vec<_> = files.iter().map(TempFile::path).collect();
    let ended = run(&[&["analyze", "--json"], &paths[..]].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    document["captures"].as_array().unwrap().clone()
}

/// The number of TCP packets and of connections in each capture, from a single run of tshark, for which each
/// capture becomes an interface of one file. The captures must have different ports.
fn tshark_each(captures: &[Frames]) -> Vec<(u64, u64)> {
    let mut pcapng = Pcapng::new(false);
    for (number, (link_type, frames)) in captures.iter().enumerate() {
        pcapng.interface(u16::try_from(*link_type).unwrap(), 0);
        frames.iter().for_each(|frame| pcapng.frame(number as u32, 0.0, frame));
    }
    let file = file(&pcapng.file);
    let text = tshark_fields(file.path(), &["frame.interface_id", "tcp.stream"]);
    let rows: Vec<_> = text.lines().map(|line| line.split_once('\t').unwrap()).collect();
    let count = |number: usize| {
        let of = rows.iter().filter(|(interface, _)| *interface == number.to_string());
        let streams: Vec<_> = of.map(|(_, stream)| *stream).collect();
        (streams.len() as u64, streams.iter().collect::<BTreeSet<_>>().len() as u64)
    };
    (0..captures.len()).map(count).collect()
}

fn acked(capture: &Value, connection: usize) -> [u64; 2] {
    let directions = &capture["connections"][connection]["directions"];
    [0, 1].map(|end| directions[end]["acked_bytes"].as_u64().unwrap())
}

/// A complete connection with 2000 bytes in two segments: ten packets.
fn transfer(client: SocketAddr, server: SocketAddr, iss: u32) -> Vec<Tcp> {
    let seq = |offset: u32| iss.wrapping_add(offset);
    let to_server = |flags, offset, ack, len| Tcp::new(client, server, flags, seq(offset), ack, len);
    let to_client = |flags, number, offset| Tcp::new(server, client, flags, number, seq(offset), 0);
    let mut packets = vec![
        to_server(SYN, 0, 0, 0),
        to_client(SYN_ACK, 500, 1),
        to_server(ACK, 1, 501, 0),
        to_server(ACK, 1, 501, 1000),
        to_server(ACK, 1001, 501, 1000),
        to_client(ACK, 501, 1001),
        to_client(ACK, 501, 2001),
        to_server(FIN_ACK, 2001, 501, 0),
        to_client(FIN_ACK, 501, 2002),
        to_server(ACK, 2002, 502, 0),
    ];
    for syn in &mut packets[..2] {
        syn.options = Options { mss: Some(1460), ..Options::default() };
    }
    packets
}

fn plain() -> Vec<Tcp> {
    transfer(v4(1, 4000), v4(2, 80), 77)
}

fn pcap_of(link_type: u32, frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut pcap = Pcap::new(link_type);
    for (at, frame) in frames.into_iter().enumerate() {
        pcap.frame(at as f64 * 0.01, &frame);
    }
    pcap.file
}

fn ethernet_of(packets: &[Tcp]) -> Vec<u8> {
    pcap_of(ETHERNET, packets.iter().map(Tcp::ethernet))
}

// ----- link layers -----

#[test]
fn every_link_type_yields_same_connection() {
    type Framing = (u32, fn(&[u8]) -> Vec<u8>);
    let framings: [Framing; 12] = [
        (1, ethernet),
        (1, |packet| [&[0; 12], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8][..], &ethertype(packet), packet].concat()),
        (101, <[u8]>::to_vec),
        (113, |packet| [&[0, 0, 0, 1, 0, 6][..], &[0; 8], &ethertype(packet), packet].concat()),
        (276, |packet| [&ethertype(packet)[..], &[0, 0, 0, 0, 0, 3, 0, 1, 0, 6], &[0; 8], packet].concat()),
        (0, |packet| [&[if packet[0] >> 4 == 6 { 30 } else { 2 }, 0, 0, 0], packet].concat()),
        (0, |packet| [&[0, 0, 0, if packet[0] >> 4 == 6 { 24 } else { 2 }], packet].concat()),
        (108, |packet| [&[0, 0, 0, if packet[0] >> 4 == 6 { 28 } else { 2 }], packet].concat()),
        (9, |packet| [&[0xff, 3, 0, if packet[0] >> 4 == 6 { 0x57 } else { 0x21 }], packet].concat()),
        (50, |packet| [&[0xff, 3, 0, if packet[0] >> 4 == 6 { 0x57 } else { 0x21 }], packet].concat()),
        (228, <[u8]>::to_vec),
        (229, <[u8]>::to_vec),
    ];
    let mut captures: Vec<Frames> = Vec::new();
    for (link_type, framing) in framings {
        let port = 4000 + captures.len() as u16;
        for packets in
            [transfer(v4(1, port), v4(2, 80), 77), transfer(v6(1, port), v6(2, 80), u32::MAX - 700)]
        {
            let is_v6 = packets[0].src.is_ipv6();
            if (link_type, is_v6) == (228, true) || (link_type, is_v6) == (229, false) {
                continue;
            }
            captures.push((link_type, packets.iter().map(|tcp| framing(&tcp.packet())).collect()));
        }
    }
    assert_eq!(captures.len(), 2 * framings.len() - 2);
    for ((number, capture), theirs) in analyze_each(&captures).iter().enumerate().zip(tshark_each(&captures))
    {
        let link_type = captures[number].0;
        assert_eq!(counts(capture), (10, 1), "capture {number}, link type {link_type}");
        assert_eq!(acked(capture, 0), [2000, 0], "capture {number}, link type {link_type}");
        no_problems(capture);
        assert_eq!(theirs, (10, 1), "capture {number}, link type {link_type}");
    }
}

/// The same frames as another machine or an older tcpdump writes them: in the other byte order, or with times
/// in microseconds.
fn in_other_format(pcap: &[u8], big: bool, micros: bool) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(pcap[at..at + 4].try_into().unwrap());
    let put = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut file = put(if micros { 0xa1b2_c3d4 } else { word(0) }).to_vec();
    file.extend(if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] });
    file.extend((8..24).step_by(4).flat_map(|at| put(word(at))));
    let mut at = 24;
    while at < pcap.len() {
        let captured = word(at + 8);
        let fraction = if micros { word(at + 4) / 1000 } else { word(at + 4) };
        file.extend([word(at), fraction, captured, word(at + 12)].into_iter().flat_map(put));
        file.extend(&pcap[at + 16..at + 16 + captured as usize]);
        at += 16 + captured as usize;
    }
    file
}

#[test]
fn pcap_byte_order_and_resolution_are_detected() {
    let pcap = ethernet_of(&plain());
    let original = analyze(&pcap);
    assert_eq!((counts(&original), acked(&original, 0)), ((10, 1), [2000, 0]));
    for (big, micros) in [(false, true), (true, false), (true, true)] {
        let converted = in_other_format(&pcap, big, micros);
        assert_ne!(converted, pcap);
        let capture = analyze(&converted);
        assert_eq!(capture["connections"], original["connections"], "big {big}, microseconds {micros}");
        assert_eq!(capture["totals"], original["totals"], "big {big}, microseconds {micros}");
        assert_eq!(tshark(&converted), (10, 1));
    }
}

#[test]
fn pcapng_interfaces_may_differ_in_link_type() {
    for big in [false, true] {
        let mut pcapng = Pcapng::new(big);
        pcapng.interface(1, 262_144);
        pcapng.interface(101, 96);
        pcapng.interface(147, 96);
        for (at, (one, other)) in plain().iter().zip(transfer(v6(1, 4000), v6(2, 80), 1)).enumerate() {
            pcapng.frame(0, at as f64, &one.ethernet());
            pcapng.frame(1, at as f64 + 0.5, &other.packet());
        }
        // An unknown link type, and a frame that exceeds the interface's snap length.
        pcapng.frame(2, 20.0, &[0; 100]);
        let capture = analyze(&pcapng.file);
        assert_eq!(counts(&capture), (20, 2));
        assert_eq!((acked(&capture, 0), acked(&capture, 1)), ([2000, 0], [2000, 0]));
        assert_eq!(problem(&capture, "unknown-link"), Some((1, 21)));
        // Both data packets of the first connection, and the last frame.
        assert_eq!(problem(&capture, "above-snap-length"), Some((3, 8)));
        assert_eq!(tshark(&pcapng.file), (20, 2));
        let file = file(&pcapng.file);
        let filtered = analyze_path(file.path(), &["-f", "ip6 and dst port 80"]);
        assert_eq!(counts(&filtered), (6, 1));
        assert_eq!(filtered["connections"][0]["first_packet"], 2, "frame numbers refer to the file");
    }
}

#[test]
fn capture_is_read_from_standard_input() {
    let mut pcapng = Pcapng::new(false);
    pcapng.interface(1, 0);
    for tcp in plain() {
        pcapng.frame(0, 0.0, &tcp.ethernet());
    }
    for bytes in [ethernet_of(&plain()), pcapng.file] {
        assert_eq!(counts(&analyze_stdin(&bytes)), (10, 1));
    }
}

// ----- connections -----

#[test]
fn reused_port_starts_second_connection() {
    let again = transfer(v4(1, 4000), v4(2, 80), 900_000);
    let bytes = ethernet_of(&[plain(), again].concat());
    let capture = analyze(&bytes);
    assert_eq!(counts(&capture), (20, 2));
    assert_eq!((acked(&capture, 0), acked(&capture, 1)), ([2000, 0], [2000, 0]));
    assert_eq!(tshark(&bytes), (20, 2));
    // The first connection does not end with a FIN or a reset.
    let half = plain()[..5].to_vec();
    let bytes = ethernet_of(&[half, transfer(v4(1, 4000), v4(2, 80), 900_000)].concat());
    let capture = analyze(&bytes);
    assert_eq!(counts(&capture), tshark(&bytes));
    assert_eq!(capture["connections"][1]["directions"][0]["acked_bytes"], 2000);
}

#[test]
fn reset_ends_connection_without_starting_another() {
    let mut packets = plain()[..5].to_vec();
    packets.push(Tcp::new(v4(2, 80), v4(1, 4000), RST, 501, 0, 0));
    let bytes = ethernet_of(&packets);
    assert_eq!(counts(&analyze(&bytes)), (6, 1));
    assert_eq!(tshark(&bytes), (6, 1));
}

#[test]
fn capture_starting_mid_connection_is_analysed() {
    let bytes = ethernet_of(&plain()[3..]);
    let capture = analyze(&bytes);
    assert_eq!(counts(&capture), (7, 1));
    assert_eq!(capture["connections"][0]["handshake"]["seen"], "none");
    assert_eq!(acked(&capture, 0), [2000, 0]);
}

#[test]
fn sequence_numbers_may_wrap() {
    for iss in [u32::MAX, u32::MAX - 500, u32::MAX - 1500, 1 << 31] {
        let capture = analyze(&ethernet_of(&transfer(v4(1, 4000), v4(2, 80), iss)));
        assert_eq!(acked(&capture, 0), [2000, 0], "{iss}");
        assert_eq!(capture["connections"][0]["directions"][0]["retransmissions"]["packets"], 0);
    }
}

/// Returns the output of the program and its peak memory in KiB.
fn memory(args: &[&str]) -> (String, u64) {
    let output = Command::new("/usr/bin/time")
        .args(["-f", "%M"])
        .arg(program("airtcp"))
        .arg("analyze")
        .args(args)
        .output()
        .expect("this test needs GNU time: apt-get install time");
    let memory = String::from_utf8(output.stderr).unwrap();
    (String::from_utf8(output.stdout).unwrap(), memory.trim().parse().unwrap())
}

/// The analysis needs at most 2 kB per connection beyond the memory for a tiny capture, and at most 200 MB in
/// total.
fn assert_little_memory(kib: u64, connections: u32) {
    let (_, alone) = memory(&[file(&ethernet_of(&plain())).path()]);
    println!("{kib} KiB, the program alone {alone} KiB");
    let more = (kib - alone) * 1024;
    assert!(more < 2000 * u64::from(connections), "{kib} KiB, the program alone {alone} KiB");
    assert!(kib * 1024 < 200_000_000, "{kib} KiB");
}

#[test]
fn many_connections_use_little_memory() {
    let path = TempFile::new("many");
    let connections = sample::size(5_000, 100_000);
    // Few connections are open at a time, so memory that is kept for closed ones shows.
    let many = Bulk { parallel: connections / 50, connections, segments: 4, loss: 1000 };
    let mut output = BufWriter::new(std::fs::File::create(path.path()).unwrap());
    many.write(&mut output).unwrap();
    output.flush().unwrap();
    let (text, kib) = memory(&["--most", "3", path.path()]);
    assert!(text.contains(&format!("of {connections} connections")), "{text}");
    let left_out = connections - 3;
    let rest = format!("and {left_out} more with less data: --most {connections} shows them");
    assert!(text.contains(&rest), "{text}");
    assert_little_memory(kib, connections as u32);
}
