use airtcp_testkit::frames::encapsulation::{self, Encapsulation, v4, v6};
use airtcp_testkit::frames::{ACK, Tcp, ethernet, v4 as v4_at, v6 as v6_at};

use super::*;
use crate::capture::Frame;
use crate::ip::Found;
use crate::packet::Timestamp;

const PAYLOAD: usize = 33;

fn packet(is_v6: bool) -> Vec<u8> {
    let (src, dst) = if is_v6 { (v6_at(1, 4000), v6_at(2, 80)) } else { (v4_at(1, 4000), v4_at(2, 80)) };
    Tcp::new(src, dst, ACK, 7, 8, PAYLOAD).packet()
}

fn found(link: i32, data: &[u8], length: usize) -> Found {
    let link = LinkType(link);
    Frame { number: 1, at: Timestamp(0), link, data, length: length as u32, snap_length: None }.packet()
}

fn parse_frame(link: i32, frame: &[u8]) -> Found {
    found(link, frame, frame.len())
}

fn named(name: &str) -> &'static Encapsulation {
    encapsulation::ALL.iter().find(|it| it.name == name).unwrap()
}

fn is_unbounded(name: &str) -> bool {
    name == "NFLOG"
}

#[test]
fn packet_is_found_in_every_encapsulation() {
    for encapsulation in encapsulation::ALL {
        for is_v6 in [false, true] {
            let packet = packet(is_v6);
            let frame = (encapsulation.wrap)(&packet);
            let link = encapsulation.link_type as i32;
            let Found::Tcp(read) = parse_frame(link, &frame) else {
                panic!("{}, v6 {is_v6}: {:?}", encapsulation.name, parse_frame(link, &frame))
            };
            assert_eq!((read.len as usize, read.src.is_ipv6()), (PAYLOAD, is_v6), "{}", encapsulation.name);
            assert_eq!((read.src.port(), read.dst.port()), (4000, 80), "{}", encapsulation.name);
            // Padding does not count as payload.
            let mut padded = frame.clone();
            padded.extend([0xbb; 9]);
            let Found::Tcp(read) = parse_frame(link, &padded) else {
                panic!("{}, padded", encapsulation.name)
            };
            assert_eq!(read.len as usize, PAYLOAD, "{}, padded", encapsulation.name);
        }
    }
}

/// The headers determine the lengths. The missing bytes determine the reported problem.
#[test]
fn truncated_frame_is_reported_as_cut() {
    for encapsulation in encapsulation::ALL.iter().filter(|encapsulation| !is_unbounded(encapsulation.name)) {
        let packet = packet(false);
        let frame = (encapsulation.wrap)(&packet);
        let headers = frame.len() - PAYLOAD;
        // A header may end before the packet does, because MACsec's checksum follows.
        let rest = if encapsulation.name.starts_with("MACsec") { 16 } else { 0 };
        for captured in 0..frame.len() - rest {
            let read = found(encapsulation.link_type as i32, &frame[..captured], frame.len());
            match read {
                Found::Unreadable(Problem::HeadersCut) => {}
                Found::Flawed(packet, Problem::PayloadCut) => {
                    assert!(captured + 4 >= headers - rest, "{}: {captured}", encapsulation.name);
                    assert_eq!(packet.len as usize, PAYLOAD, "{}: {captured}", encapsulation.name);
                }
                other => panic!("{}: {other:?} with {captured} bytes", encapsulation.name),
            }
        }
    }
}

/// The inner IP header promises 200 bytes, but the outer headers have space for only 73.
#[test]
fn payload_length_is_bounded_by_outer_headers() {
    let long = {
        let mut packet = packet(false);
        packet[2..4].copy_from_slice(&[0, 200]);
        packet
    };
    for encapsulation in encapsulation::ALL.iter().filter(|encapsulation| !is_unbounded(encapsulation.name)) {
        let frame = (encapsulation.wrap)(&long);
        let Found::Flawed(read, Problem::BeyondFrame) = parse_frame(encapsulation.link_type as i32, &frame)
        else {
            panic!("{}: {:?}", encapsulation.name, parse_frame(encapsulation.link_type as i32, &frame))
        };
        assert_eq!(read.len as usize, PAYLOAD, "{}", encapsulation.name);
    }
    // PPPoE's length field is a tighter bound than an Ethernet frame with padding.
    let pppoe = named("PPPoE");
    let mut frame = (pppoe.wrap)(&long);
    frame.extend([0; 300]);
    assert!(
        matches!(parse_frame(1, &frame), Found::Flawed(read, Problem::BeyondFrame) if read.len as usize == PAYLOAD)
    );
}

#[test]
fn zero_ip_length_means_outer_length() {
    for name in ["Ethernet", "802.1Q", "VXLAN", "GRE"] {
        let encapsulation = named(name);
        let mut packet = packet(false);
        packet[2..4].copy_from_slice(&[0, 0]);
        let read = parse_frame(encapsulation.link_type as i32, &(encapsulation.wrap)(&packet));
        assert!(matches!(&read, Found::Tcp(read) if read.len as usize == PAYLOAD), "{name}: {read:?}");
    }
}

#[test]
fn non_tcp_frames_are_classified() {
    let kind = |kind: [u8; 2], rest: &[u8]| [&[0; 12], &kind[..], rest, &[0; 46]].concat();
    let wlan = |control: [u8; 2]| [&control[..], &[0; 40]].concat();
    let udp = |port: u16, payload: &[u8]| v4(17, &encapsulation::udp([5000, port], payload));
    let mut many = Vec::new();
    for _ in 0..200 {
        many.extend([0, 7, 0x81, 0]);
    }
    for (link, frame, expected) in [
        (1, kind([8, 6], &[]), Other::Arp),
        (1, kind([0x88, 0xcc], &[]), Other::Lldp),
        (1, kind([0x88, 0x63], &[]), Other::PppoeDiscovery),
        (1, kind([0x89, 0x4f], &[]), Other::EtherType(0x894f)),
        (1, kind([0, 38], &[0x42, 0x42, 3]), Other::Stp),
        (1, kind([0, 38], &[0xfe, 0xfe, 3]), Other::Llc),
        (1, kind([0x88, 0x47], &[0, 1, 1, 9, 0x50]), Other::Mpls),
        (1, kind([0x88, 0xe5], &[0x0c, 0, 0, 0, 0, 1]), Other::Macsec),
        (1, kind([0x88, 0x64], &[0x11, 0, 0, 1, 0, 10, 0xc0, 0x21]), Other::PppControl),
        (1, kind([0x81, 0], &many), Other::TooDeep),
        (9, vec![0xff, 3, 0, 0x2d, 1], Other::PppCompressed),
        (0, vec![7, 0, 0, 0, 1], Other::Family),
        (105, wlan([0x80, 0]), Other::WlanManagement),
        (105, wlan([0xd4, 0]), Other::WlanControl),
        (105, wlan([0x48, 1]), Other::WlanNull),
        (105, wlan([0x88, 0x41]), Other::WlanEncrypted),
        (105, wlan([0x08, 5]), Other::WlanFragment),
        (127, [&[0, 0, 9, 0, 2, 0, 0, 0, 0x50][..], &wlan([8, 1])].concat(), Other::WlanDamaged),
        (101, v4(1, &[8; 20]), Other::Icmp),
        (101, v6(58, &[8; 20]), Other::Icmpv6),
        (101, v4(50, &[8; 20]), Other::Esp),
        (101, v4(88, &[8; 20]), Other::Protocol(88)),
        (101, v4(47, &[0; 20]), Other::Gre),
        (101, udp(53, &[0; 30]), Other::Udp),
        (101, udp(1701, &[0xc8, 2, 0, 12]), Other::L2tp),
        (101, udp(2152, &[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]), Other::GtpSignalling),
        // Only the port suggests a tunnel here. Most of these payloads do not have a valid tunnel header.
        (101, udp(4789, &[8; 30]), Other::EtherType(0x0808)),
        (101, udp(4789, &[0; 30]), Other::Udp),
        (101, udp(6081, &[0x2f; 30]), Other::Udp),
        (101, udp(2152, &[0x30, 255, 0, 0]), Other::Udp),
        (101, udp(3544, &[0x40; 30]), Other::Udp),
        (101, v4(17, &encapsulation::udp([5000, 2152], &[0x30, 255, 0, 40, 0, 0, 0, 1, 0x45])), Other::Udp),
    ] {
        let read = parse_frame(link, &frame);
        assert_eq!(read, Found::Other(expected), "link type {link}, {frame:02x?}");
    }
    assert_eq!(parse_frame(147, &[0; 60]), Found::Unreadable(Problem::UnknownLink));
}

/// An A-MSDU with one packet can be read. One with two packets is only reported.
#[test]
fn wireless_aggregate_with_single_packet_is_read() {
    let encapsulation = named("802.11 with QoS");
    let plain = (encapsulation.wrap)(&packet(false));
    let (header, llc) = plain.split_at(26);
    let mut header = header.to_vec();
    header[24] |= 0x80;
    let subframe = [&[2; 12], &(llc.len() as u16).to_be_bytes()[..], llc].concat();
    let one = [&header, &subframe[..]].concat();
    assert!(matches!(parse_frame(105, &one), Found::Tcp(read) if read.len as usize == PAYLOAD));
    let mut two = one;
    two.resize(two.len().next_multiple_of(4) + 2, 0);
    two.extend(subframe);
    assert_eq!(parse_frame(105, &two), Found::Other(Other::WlanAggregate));
}

#[test]
fn nflog_attributes_use_either_byte_order() {
    let encapsulation = named("NFLOG");
    let packet = packet(true);
    let mut frame = (encapsulation.wrap)(&packet);
    for at in [4, 6, 12, 14] {
        frame.swap(at, at + 1);
    }
    assert!(matches!(parse_frame(239, &frame), Found::Tcp(read) if read.len as usize == PAYLOAD));
    // The kernel truncates the packet that it copies, and the attribute's length is the truncated length.
    let captured = &frame[..frame.len() - 20];
    let mut cut = captured.to_vec();
    cut[12..14].copy_from_slice(&(packet.len() as u16 - 16).to_be_bytes());
    assert!(
        matches!(parse_frame(239, &cut), Found::Flawed(read, Problem::PayloadCut) if read.len as usize == PAYLOAD)
    );
    // An attribute length of 0 must not cause an endless loop.
    assert_eq!(parse_frame(239, &[2, 0, 0, 0, 0, 0, 9, 0]), Found::Unreadable(Problem::Malformed));
}

#[test]
fn infiniband_header_after_address_is_read() {
    for front in [0, 20, 40] {
        let frame = [&vec![1; front][..], &[8, 0, 0, 0], &packet(false)].concat();
        assert!(
            matches!(parse_frame(242, &frame), Found::Tcp(read) if read.len as usize == PAYLOAD),
            "{front}"
        );
    }
    assert_eq!(parse_frame(242, &[1; 60]), Found::Other(Other::Family));
}

#[test]
fn ethernet_padding_is_not_payload() {
    let short = Tcp::new(v4_at(1, 1), v4_at(2, 2), ACK, 0, 0, 0).packet();
    let frame = ethernet(&short);
    assert_eq!(frame.len(), 60);
    assert!(matches!(parse_frame(1, &frame), Found::Tcp(read) if read.len == 0));
}
