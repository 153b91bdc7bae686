use airwire::options::{Layout, Timestamps};
use airwire::segment::{self, Ecn, Header};
use airwire::seq::Seq;

use super::*;

const PAYLOAD: usize = 100;

fn addresses(v6: bool) -> (SocketAddr, SocketAddr) {
    match v6 {
        false => (([10, 0, 0, 1], 4000).into(), ([10, 0, 0, 2], 80).into()),
        true => (([0xfd83, 0, 0, 0, 0, 0, 0, 1], 4000).into(), ([0xfd83, 0, 0, 0, 0, 0, 0, 2], 80).into()),
    }
}

/// A data packet with timestamps: 20 or 40 bytes of IP header, 32 bytes of TCP header.
fn packet(v6: bool) -> Vec<u8> {
    let (src, dst) = addresses(v6);
    let header = Header {
        src,
        dst,
        seq: Seq(0xffff_fff0),
        ack: Seq(7),
        flags: Flags::ACK.with(Flags::PSH),
        window: 512,
        ecn: Ecn::Ce,
        tos: 0,
        ttl: 64,
        dont_fragment: true,
        ident: 0x1234,
    };
    let options = Options { timestamps: Some(Timestamps { val: 1, ecr: 2 }), ..Options::default() };
    let (mut bytes, mut packet) = (Vec::new(), Vec::new());
    options.write(Layout::Linux, &mut bytes);
    segment::emit(&mut packet, &header, &bytes, (&[0; PAYLOAD], &[]));
    packet
}

fn parse_as(on_wire: usize, packet: &[u8]) -> Found {
    parse(Context { number: 3, at: Timestamp(5), on_wire }, packet)
}

fn parse_frame(packet: &[u8]) -> Found {
    parse_as(packet.len(), packet)
}

fn tcp(found: Found) -> Packet {
    let Found::Tcp(packet) = found else { panic!("{found:?}") };
    packet
}

/// Overwrites bytes, and clears the checksums, which are no longer correct.
fn set(mut packet: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    let checksums = if packet[0] >> 4 == 6 { &[56][..] } else { &[10, 36] };
    for checksum in checksums {
        if let Some(field) = packet.get_mut(*checksum..checksum + 2) {
            field.fill(0);
        }
    }
    packet[at..at + bytes.len()].copy_from_slice(bytes);
    packet
}

#[test]
fn checksum_detects_every_covered_bit_flip() {
    let is_flawed = |found: &Found| matches!(found, Found::Flawed(_, Problem::Checksum));
    for v6 in [false, true] {
        let sent = packet(v6);
        assert!(!is_flawed(&parse_frame(&sent)));
        for bit in 0..8 * sent.len() {
            let mut changed = sent.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let found = parse_frame(&changed);
            // No checksum covers IPv6's traffic class, flow label and hop limit. The version field determines
            // how all other bytes are read.
            let covered = !v6 || !matches!(bit / 8, 1..=3 | 7);
            match found {
                _ if bit / 8 == 0 => {}
                Found::Flawed(_, Problem::Checksum) => assert!(covered, "bit {bit}"),
                Found::Tcp(_) => assert!(!covered, "bit {bit}"),
                Found::Flawed(_, Problem::BeyondFrame)
                | Found::Unreadable(_)
                | Found::Fragment
                | Found::Other(_) => {}
                Found::Flawed(..) => panic!("bit {bit}: {found:?}"),
            }
        }
        // An incomplete segment cannot be verified.
        let mut cut = sent.clone();
        let last = cut.len() - 1;
        cut[last - 20] ^= 1;
        assert!(!is_flawed(&parse_as(cut.len(), &cut[..last])));
    }
}

#[test]
fn offloaded_checksum_is_not_damage() {
    for v6 in [false, true] {
        let (sent, at) = (packet(v6), if v6 { 56 } else { 36 });
        let (src, dst) = addresses(v6);
        let partial = checksum::partial(src.ip(), dst.ip(), TCP, 32 + PAYLOAD);
        for (written, is_damaged) in [(partial, false), (0, false), (partial ^ 0x100, true)] {
            let mut packet = sent.clone();
            packet[at..at + 2].copy_from_slice(&written.to_be_bytes());
            let found = parse_frame(&packet);
            assert_eq!(matches!(found, Found::Flawed(_, Problem::Checksum)), is_damaged, "{written:x}");
        }
    }
}

#[test]
fn parsed_fields_match_written_packet() {
    for v6 in [false, true] {
        let found = tcp(parse_frame(&packet(v6)));
        let (src, dst) = addresses(v6);
        assert_eq!((found.number, found.at, found.src, found.dst), (3, Timestamp(5), src, dst));
        assert_eq!((found.seq, found.ack, found.window), (Seq(0xffff_fff0), Some(Seq(7)), 512));
        assert_eq!((found.flags, found.ecn), (Flags::ACK.with(Flags::PSH), Ecn::Ce));
        assert_eq!((found.len as usize, found.ip_id), (PAYLOAD, (!v6).then_some(0x1234)));
        assert_eq!(found.options.timestamps, Some(Timestamps { val: 1, ecr: 2 }));
    }
}

#[test]
fn ack_number_without_ack_flag_is_ignored() {
    let found = tcp(parse_frame(&set(packet(false), 33, &[0x04])));
    assert_eq!((found.flags, found.ack), (Flags::RST, None));
}

#[test]
fn frame_padding_does_not_count_as_payload() {
    for v6 in [false, true] {
        let mut padded = packet(v6);
        padded.extend([0xaa; 9]);
        assert_eq!(tcp(parse_frame(&padded)).len as usize, PAYLOAD);
    }
}

#[test]
fn truncated_packet_keeps_length_from_headers() {
    for (v6, headers) in [(false, 52), (true, 72)] {
        let packet = packet(v6);
        for captured in 0..packet.len() {
            let found = parse_as(packet.len(), &packet[..captured]);
            match captured {
                _ if captured < headers - 16 => {
                    assert_eq!(found, Found::Unreadable(Problem::HeadersCut), "{captured}")
                }
                _ if captured < headers => {
                    let Found::Flawed(packet, Problem::OptionsCut) = found else {
                        panic!("{captured}: {found:?}")
                    };
                    assert_eq!((packet.len as usize, packet.options), (PAYLOAD, Options::default()));
                }
                _ => {
                    let Found::Flawed(packet, Problem::PayloadCut) = found else {
                        panic!("{captured}: {found:?}")
                    };
                    assert_eq!(packet.len as usize, PAYLOAD);
                    assert!(packet.options.timestamps.is_some());
                }
            }
        }
    }
}

/// A snap length of 68 bytes on Ethernet cuts a Linux SYN inside its timestamps option. The window scale
/// option comes later and is also missing.
#[test]
fn options_before_truncation_are_parsed() {
    let mut syn = packet(false);
    let options = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 10];
    syn.truncate(40);
    syn.extend(options);
    syn = set(set(syn, 2, &[0, 60]), 32, &[0xa0, 2]);
    let Found::Flawed(packet, Problem::OptionsCut) = parse_as(60, &syn[..54]) else { panic!("not cut") };
    let Options { mss, sack_permitted, timestamps, window_scale, .. } = packet.options;
    assert_eq!((mss, sack_permitted, timestamps, window_scale), (Some(1460), true, None, None));
    assert!(packet.options_cut);
    let complete = tcp(parse_frame(&syn));
    assert!(!complete.options_cut && complete.options.window_scale == Some(10));
}

#[test]
fn zero_ip_length_means_frame_length() {
    let v4 = set(packet(false), 2, &[0, 0]);
    assert_eq!(tcp(parse_frame(&v4)).len as usize, PAYLOAD);
    let Found::Flawed(cut, Problem::PayloadCut) = parse_as(100_052, &v4) else { panic!("not cut") };
    assert_eq!(cut.len, 100_000);
    let v6 = set(packet(true), 4, &[0, 0]);
    assert_eq!(tcp(parse_frame(&v6)).len as usize, PAYLOAD);
}

#[test]
fn ip_options_and_extension_headers_are_skipped() {
    let plain = packet(false);
    let mut v4 = set(plain[..20].to_vec(), 0, &[0x46]);
    v4[3] += 4;
    v4.extend([1, 1, 1, 0]);
    v4.extend(&plain[20..]);
    assert_eq!(tcp(parse_frame(&v4)).len as usize, PAYLOAD);

    let plain = packet(true);
    let mut v6 = set(plain[..40].to_vec(), 6, &[0]);
    // Hop-by-hop with 8 bytes, authentication with 16, destination options with 16.
    let headers = [&[51, 0, 1, 4, 0, 0, 0, 0][..], &[60, 2], &[0; 14], &[6, 1], &[0; 14]].concat();
    v6[5] += headers.len() as u8;
    v6.extend(headers);
    v6.extend(&plain[40..]);
    assert_eq!(tcp(parse_frame(&v6)).len as usize, PAYLOAD);
}

#[test]
fn lone_tcp_fragment_is_reported_as_problem() {
    for offset in [[0x20, 0], [0, 10]] {
        let fragment = set(packet(false), 6, &offset);
        assert_eq!(parse_frame(&fragment), Found::Unreadable(Problem::Fragment));
        assert_eq!(parse_frame(&set(fragment, 9, &[1])), Found::Other(Other::Icmp));
    }
    let plain = packet(true);
    // The last fragment header belongs to an unfragmented packet (RFC 6946).
    for (offset, expected) in [(1, Err(())), (8, Err(())), (0, Ok(PAYLOAD))] {
        let mut v6 = set(plain[..40].to_vec(), 6, &[44]);
        v6[5] += 8;
        v6.extend([6, 0, 0, offset, 0, 0, 0, 9]);
        v6.extend(&plain[40..]);
        match parse_frame(&v6) {
            Found::Tcp(packet) => assert_eq!(Ok(packet.len as usize), expected),
            found => assert_eq!((found, expected), (Found::Unreadable(Problem::Fragment), Err(()))),
        }
    }
}

/// The header promises 100 bytes of payload, but the frame carries 8. Only these 8 count.
#[test]
fn payload_length_is_bounded_by_frame() {
    for (v6, headers) in [(false, 52), (true, 72)] {
        let packet = packet(v6);
        let len = headers + 8;
        let Found::Flawed(found, Problem::BeyondFrame) = parse_as(len, &packet[..len]) else {
            panic!("v6 {v6}: not bounded by the frame")
        };
        assert_eq!(found.len, 8, "{v6}");
        // If the TCP header does not fit, the packet is malformed.
        assert_eq!(parse_as(headers - 20, &packet[..headers - 20]), Found::Unreadable(Problem::Malformed));
    }
}

#[test]
fn impossible_headers_are_malformed() {
    for (what, bytes) in [
        ("an IP version that is neither 4 nor 6", set(packet(false), 0, &[0x55])),
        ("an IP header of 16 bytes", set(packet(false), 0, &[0x44])),
        ("a total length inside the header", set(packet(false), 2, &[0, 19])),
        ("no room for TCP", set(packet(false), 2, &[0, 30])),
        ("a TCP header of 16 bytes", set(packet(false), 32, &[0x40])),
        ("a TCP header beyond the packet", set(set(packet(false), 2, &[0, 60]), 32, &[0xf0])),
        ("an IPv6 packet of 10 bytes", set(packet(true), 4, &[0, 10])),
        ("an extension header beyond its end", set(set(packet(true), 6, &[60]), 40, &[6, 255])),
    ] {
        let found = parse_frame(&bytes);
        assert_eq!(found, Found::Unreadable(Problem::Malformed), "{what}");
    }
    let odd = set(packet(false), 40, &[8, 99]);
    assert!(matches!(parse_frame(&odd), Found::Flawed(packet, Problem::MalformedOptions)
        if packet.options == Options::default() && packet.len as usize == PAYLOAD));
}
