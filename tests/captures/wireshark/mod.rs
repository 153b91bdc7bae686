//! Checks with Wireshark: the fields that its plug-in shows for marks and reports, and the packet comments.

mod comments;
mod streams;

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::SystemTime;

use aircaptures::capture::{self, Next};
use aircaptures::ip::Found;
use aircaptures::packet::Packet;
use airlink::capture::Capture;
use airlink::path::{FIXED, MOBILE};
use airlink::scenario::Scenario;
use airtcp_sim::world::{Flow, HostSpec, Length, World, WorldConfig};
use airtcp_testkit::frames::{ACK, ETHERNET, Pcap, SYN, SYN_ACK, Tcp, ethernet, v4, v6};
use airtcp_testkit::machine::TempFile;
use airwire::marks::{DB, OB, RadioPath};
use airwire::segment::Flags;
use airwire::time::Duration;

use crate::tools;

const PLUGIN: &str = concat!("lua_script:", env!("CARGO_MANIFEST_DIR"), "/../interop/wireshark/airtcp.lua");
const FIELDS: [&str; 6] =
    ["airtcp.ob", "airtcp.db", "airtcp.cause", "airtcp.loss_rate", "airtcp.reordered", "airtcp.meaning"];

fn tshark(file: &str, more: &[&str]) -> String {
    let Output { stdout, stderr, status } = tools::tshark(&[&["-X", PLUGIN, "-r", file], more].concat());
    let (text, errors) = (String::from_utf8(stdout).unwrap(), String::from_utf8_lossy(&stderr));
    assert!(status.success() && !errors.contains("Lua") && !text.contains("Lua Error"), "{errors}{text}");
    text
}

/// Returns these fields of every frame.
fn fields(file: &str, names: &[&str]) -> Vec<Vec<String>> {
    let names = names.iter().flat_map(|name| ["-e", name]);
    let text = tshark(file, &[&["-T", "fields"][..], &names.collect::<Vec<_>>()].concat());
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// Returns the plug-in's fields of every frame.
fn plugin(file: &str) -> Vec<[String; 6]> {
    fields(file, &FIELDS).into_iter().map(|row| row.try_into().unwrap()).collect()
}

/// Runs a flow in virtual time and captures at `port`.
fn capture(
    scenario: &str,
    recipe: &str,
    receiver: &str,
    port: airlink::machine::Port,
    flow: Flow,
) -> TempFile {
    let file = TempFile::new("world.pcap");
    let scenario = Scenario::parse(scenario, "test").unwrap();
    let [fixed, mobile] = [recipe, receiver].map(|recipe| HostSpec::sender(recipe.parse().unwrap()));
    let mut world = World::new(WorldConfig { scenario, seed: 1, fixed, mobile, flows: vec![flow] }).unwrap();
    world.tap(port, Capture::create(file.path(), SystemTime::UNIX_EPOCH).unwrap());
    assert!(world.run_to_end(Duration::from_secs(3600)).unwrap());
    file
}

fn preset(name: &str) -> String {
    fs::read_to_string(
        airtcp_testkit::programs::repository().join("emulator/presets").join(format!("{name}.toml")),
    )
    .unwrap()
}

fn down(octets: u64) -> Flow {
    Flow::down(Length::Octets(octets))
}

/// Returns the packets of the file as our own parser reads them.
fn packets(file: &str) -> Vec<Packet> {
    let mut capture = capture::Capture::open(Path::new(file), None).unwrap();
    let mut packets = Vec::new();
    loop {
        let frame = match capture.read() {
            Next::Frame(frame) => frame,
            Next::End => return packets,
            next => panic!("{next:?}"),
        };
        match frame.packet() {
            Found::Tcp(packet) | Found::Flawed(packet, _) => packets.push(packet),
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the values that the plug-in must show for each packet, without the meaning in words.
fn expected(packets: &[Packet]) -> Vec<[String; 5]> {
    let mut announced = Vec::new();
    let row = |packet: &Packet| {
        let Flags(flags) = packet.flags;
        let syn = packet.flags.contains(SYN);
        let scenario = RadioPath::announced(flags);
        if let (true, Some(scenario)) = (syn, scenario) {
            announced.push((packet.src, scenario));
        }
        let announcement = announced.iter().rev().find(|(from, _)| *from == packet.src && !syn);
        let shown = scenario.is_some() || announcement.is_some() && packet.ack.is_some();
        let bit = |bit: u16| if shown { u8::from(flags & bit != 0).to_string() } else { String::new() };
        let cause = announcement.filter(|_| shown).map(|(_, scenario)| scenario.cause(flags).name());
        let rate = packet.options.loss_report.map(|rate| (100.0 * rate.ratio()).to_string());
        let count = packet.options.reordered.map(|count| count.to_string());
        let cause = cause.unwrap_or_default().to_owned();
        [bit(OB), bit(DB), cause, rate.unwrap_or_default(), count.unwrap_or_default()]
    };
    packets.iter().map(row).collect()
}

/// Compares the plug-in's fields with the expected ones. Numbers are compared by value, because they may have
/// different numbers of digits.
fn check(file: &str) -> Vec<[String; 6]> {
    let rows = plugin(file);
    let expected = expected(&packets(file));
    assert_eq!(rows.len(), expected.len());
    for (at, (row, expected)) in rows.iter().zip(&expected).enumerate() {
        let frame = at + 1;
        for (field, (shown, wanted)) in FIELDS.iter().zip(row.iter().zip(expected)) {
            match (shown.parse::<f64>(), wanted.parse::<f64>()) {
                (Ok(shown), Ok(wanted)) => {
                    assert!((shown - wanted).abs() < 1e-9, "frame {frame}, {field}: {shown}, {wanted}")
                }
                _ => assert_eq!(shown, wanted, "frame {frame}, {field}"),
            }
        }
    }
    rows
}

fn count(rows: &[[String; 6]], wanted: impl Fn(&[String; 6]) -> bool) -> usize {
    rows.iter().filter(|row| wanted(row)).count()
}

#[test]
fn plugin_names_transit_marks_on_every_path() {
    for (scenario, path, port, flow) in [
        ("etcp-fixed-mobile", "fixed → mobile", FIXED, down(60_000)),
        ("etcp-mobile-fixed", "mobile → fixed", MOBILE, Flow::up(Length::Octets(60_000))),
        ("etcp-mobile-mobile", "mobile → mobile", FIXED, down(60_000)),
    ] {
        let file = capture(&preset(scenario), "etcp", "etcp", port, flow);
        let rows = check(file.path());
        let syns =
            count(&rows, |row| row[5].starts_with("data of the receiver of this SYN ") && row[2].is_empty());
        assert!(syns >= 1, "{scenario}: {rows:?}");
        for cause in ["radio", "congestion"] {
            let acks = |row: &[String; 6]| row[2] == cause && row[5].starts_with(path);
            assert!(count(&rows, acks) > 0, "{scenario}: no ACK says {cause}");
        }
        let lost = tshark(file.path(), &["-Y", "airtcp.cause == \"radio\" and tcp.analysis.duplicate_ack"]);
        assert!(!lost.is_empty(), "{scenario}: no duplicate ACK for a radio loss");
    }
}

#[test]
fn plugin_shows_loss_rate_and_reordering_count() {
    let file = capture(&preset("tax-rebate"), "newreno+rebate", "newreno", FIXED, down(400_000));
    let rows = check(file.path());
    assert!(count(&rows, |row| row[3].parse::<f64>().is_ok_and(|rate| 1.0 < rate && rate < 20.0)) > 50);
    let wanted = tshark(file.path(), &["-Y", "airtcp.loss_rate > 1.5"]).lines().count();
    assert_eq!(wanted, count(&rows, |row| row[3].parse::<f64>().is_ok_and(|rate| rate > 1.5)));

    // A link layer that delivers retransmissions out of order.
    let recipe = "newreno+timestamps+reordering-alarm";
    let file = capture(&preset("tax-rebate-llrtx"), "newreno+rebate", recipe, MOBILE, down(400_000));
    let rows = check(file.path());
    assert!(count(&rows, |row| row[4].parse::<u16>().is_ok_and(|count| count > 0)) > 10, "{rows:?}");
    let tree = tshark(file.path(), &["-V", "-Y", "airtcp.reordered == 1"]);
    assert!(tree.contains("Reordering alarm: 1\n"), "{tree}");
}

#[test]
fn ordinary_connection_has_no_plugin_fields() {
    let file = capture(&preset("geo"), "sack", "newreno", FIXED, down(100_000));
    assert_eq!(tshark(file.path(), &["-Y", "airtcp"]), "");
    assert!(check(file.path()).iter().flatten().all(String::is_empty));
    assert!(tshark(file.path(), &["-V"]) == tools::tshark_text(&["-r", file.path(), "-V"]));
}

/// Returns a frame from the other end. `bits` and `options` replace the reserved bits and the options of the
/// TCP header.
fn frame(number: u8, flags: Flags, bits: u8, options: &[u8]) -> Vec<u8> {
    let packet = Tcp::new(v4(2, 9000), v4(1, 40_000 + u16::from(number)), flags, 1, 7241, 0).packet();
    let mut packet = [&packet, options].concat();
    let total = packet.len() as u16;
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet[32] = (5 + options.len() as u8 / 4) << 4 | bits;
    ethernet(&packet)
}

#[test]
fn plugin_tolerates_malformed_options_and_truncated_headers() {
    let mut file = Pcap::new(ETHERNET);
    let mut frames = Vec::new();
    for options in [
        &[254, 6, 0x71, 0x77, 0x10, 0, 0, 0][..],
        // Too long, too short, without a length, truncated, and between other options.
        &[254, 60, 0x71, 0x77, 0x10, 0, 0, 0],
        &[254, 7, 0x71, 0x77, 0x10, 0, 0, 0],
        &[254, 1, 0x71, 0x77, 0x10, 0, 0, 0],
        &[254, 0, 0x71, 0x77],
        &[1, 1, 1, 254],
        &[254, 2, 254, 3, 0, 254, 4, 0x71, 0x77, 0, 0, 0],
        &[1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 254, 6, 0x71, 0x78, 0, 9, 254, 6, 0x71, 0x77, 0xff, 0xff, 0],
        &[254, 6, 0x71, 0x77, 0x10, 0, 3, 0],
    ] {
        frames.push(frame(frames.len() as u8, ACK, 0, options));
    }
    // Mark bits without a SYN that announces them, on a RST, and on SYNs.
    for flags in [ACK, Flags::RST, SYN, SYN_ACK] {
        for bits in [0x8, 0x4, 0xc] {
            frames.push(frame(frames.len() as u8, flags, bits, &[]));
        }
    }
    for (at, frame) in frames.iter().enumerate() {
        file.frame(at as f64, frame);
    }
    let path = TempFile::new("malformed.pcap");
    fs::write(path.path(), &file.file).unwrap();
    let rows = check_bits(path.path());
    let with_rate: Vec<_> = (0..9).filter(|at| !rows[*at][3].is_empty()).collect();
    assert_eq!(with_rate, [0, 7], "{rows:?}");
    assert_eq!((rows[7][3].as_str(), rows[7][4].as_str()), ("99.9984741210938", "9"));
    tshark(path.path(), &["-V"]);
    tshark(path.path(), &["-2", "-V"]);

    // Each frame, truncated at each length after the IP header.
    let mut file = Pcap::new(ETHERNET);
    for (kept, frame) in (34..90).flat_map(|kept| frames.iter().map(move |frame| (kept, frame))) {
        let kept = frame.len().min(kept);
        file.header(0, kept as u32, frame.len() as u32);
        file.file.extend(&frame[..kept]);
    }
    fs::write(path.path(), &file.file).unwrap();
    tshark(path.path(), &["-V"]);
}

/// Like [`check`], for captures in which no SYN announces the meaning of the bits.
fn check_bits(file: &str) -> Vec<[String; 6]> {
    let rows = plugin(file);
    for (row, packet) in rows.iter().zip(packets(file)) {
        let Flags(flags) = packet.flags;
        let bit =
            |bit| if flags & (OB | DB) == 0 { String::new() } else { u8::from(flags & bit != 0).to_string() };
        assert_eq!([&row[0], &row[1]], [&bit(OB), &bit(DB)], "{packet:?}");
        assert_eq!(row[3].is_empty(), packet.options.loss_report.is_none(), "{packet:?}");
        assert_eq!(row[4].is_empty(), packet.options.reordered.is_none(), "{packet:?}");
        let unknown_meaning = "unknown: the capture has no SYN that announced a station";
        let unknown = flags & (OB | DB) != 0 && packet.flags.contains(ACK) && !packet.flags.contains(SYN);
        assert_eq!(row[5] == unknown_meaning, unknown, "{row:?}");
    }
    rows
}

#[test]
fn plugin_ignores_quoted_packets_and_reads_ipv6() {
    let syn_ack = Tcp::new(v6(2, 9000), v6(1, 40_000), Flags(SYN_ACK.0 | DB), 7, 8, 0).packet();
    let quoted = Tcp::new(v4(2, 9000), v4(1, 40_000), Flags(ACK.0 | OB), 7, 8, 0).packet();
    let mut icmp = Tcp::new(v4(9, 1), v4(2, 1), ACK, 0, 0, 0).packet();
    icmp.truncate(20);
    icmp[9] = 1;
    icmp[2..4].copy_from_slice(&(28 + quoted.len() as u16).to_be_bytes());
    icmp.extend([3, 1, 0, 0, 0, 0, 0, 0]);
    icmp.extend(quoted);
    let mut file = Pcap::new(ETHERNET);
    file.frame(0.0, &ethernet(&syn_ack));
    file.frame(1.0, &ethernet(&icmp));
    let path = TempFile::new("quoted.pcap");
    fs::write(path.path(), &file.file).unwrap();
    let rows = plugin(path.path());
    assert_eq!(rows[0][..2], ["0", "1"]);
    assert_eq!(
        rows[0][5],
        "data of the receiver of this SYN takes the path fixed → mobile, and its ACKs carry Ob"
    );
    assert!(rows[1].iter().all(String::is_empty), "{rows:?}");
}
