use smoltcp::wire::{Ipv4Packet, Ipv6Packet, TcpPacket};

use super::*;
use crate::rng::Stream;
use crate::segment::{BadPacket, parse, parse_ip};

const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];

/// A TCP header with these options, and seven bytes of payload.
fn tcp(options: &[u8]) -> Vec<u8> {
    let offset = (5 + options.len() as u8 / 4) << 4;
    let mut segment =
        vec![0, 80, 0x13, 0x88, 1, 2, 3, 4, 5, 6, 7, 8, offset | 0x8, 0x18, 0xfa, 0xf0, 0, 0, 0, 9];
    segment.extend(options);
    segment.extend(b"payload");
    segment
}

/// An IPv4 packet with these IP options and this field of flags and fragment offset.
fn v4(options: &[u8], field: u16, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let mut packet = vec![0x40 | (header / 4) as u8, 0xb9];
    packet.extend([(header + payload.len()) as u16, 0xbeef, field].map(u16::to_be_bytes).concat());
    packet.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(options);
    let sum = checksum::plain(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(payload);
    packet
}

/// An IPv6 packet with these extension headers, the first of which has the type `next`.
fn v6(next: u8, extensions: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x6b, 0x9f, 0xed, 0xcb];
    packet.extend(((extensions.len() + payload.len()) as u16).to_be_bytes());
    packet.extend([next, 64]);
    for host in 1..=2 {
        packet.extend(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host).octets());
    }
    packet.extend(extensions);
    packet.extend(payload);
    packet
}

fn hop_by_hop(next: u8) -> Vec<u8> {
    vec![next, 0, 5, 2, 0, 0, 1, 0]
}

fn destination_options(next: u8) -> Vec<u8> {
    [&[next, 1, 1, 12][..], &[0; 12]].concat()
}

fn routing(next: u8) -> Vec<u8> {
    vec![next, 0, 253, 0, 0, 0, 0, 0]
}

fn fragment(next: u8, field: u16) -> Vec<u8> {
    let [high, low] = field.to_be_bytes();
    vec![next, 0, high, low, 0, 0, 0x12, 0x34]
}

fn header(flags: u16, len: usize) -> TcpHeader {
    TcpHeader {
        src_port: 80,
        dst_port: 5000,
        seq: Seq(0x0102_0304),
        ack: Seq(0x0506_0708),
        len,
        flags: Flags(flags),
        window: 0xfaf0,
    }
}

#[test]
fn fields_of_ipv4_segment() {
    let packet = v4(&[], 0x4000, TCP, &tcp(&TIMESTAMPS));
    let view = View::of(&packet).unwrap();
    assert_eq!((view.source(), view.destination()), ([10, 0, 0, 1].into(), [10, 0, 0, 2].into()));
    assert_eq!(view.address_bytes(), [10, 0, 0, 1, 10, 0, 0, 2]);
    assert_eq!((view.protocol, view.ecn(), view.ident()), (TCP, Ecn::Ect1, Some(0xbeef)));
    assert_eq!((view.transport, view.end, view.fragment), (20, packet.len(), None));
    assert!(view.is_v4() && view.is_complete() && !view.is_header_damaged() && !view.is_length_zero());
    let segment = view.tcp().unwrap();
    assert_eq!(segment.header, header(0x818, 32));
    assert_eq!((segment.urgent, segment.options, segment.payload), (9, &TIMESTAMPS[..], &b"payload"[..]));
    assert_eq!(view.ports(), Some([80, 5000]));
}

#[test]
fn fields_of_ipv6_segment() {
    let packet = v6(TCP, &[], &tcp(&[]));
    let view = View::of(&packet).unwrap();
    let host = |number| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number).into();
    assert_eq!((view.source(), view.destination()), (host(1), host(2)));
    assert_eq!(view.address_bytes(), &packet[8..40]);
    assert_eq!((view.protocol, view.ecn(), view.ident()), (TCP, Ecn::Ect1, None));
    assert_eq!((view.transport, view.end, view.fragment), (40, packet.len(), None));
    assert!(!view.is_v4() && view.is_complete() && !view.is_header_damaged());
    assert_eq!(view.tcp().unwrap().header, header(0x818, 20));
}

#[test]
fn ipv4_options_precede_segment() {
    let packet = v4(&[1; 40], 0, TCP, &tcp(&[]));
    let view = View::of(&packet).unwrap();
    assert_eq!((view.transport, view.ports()), (60, Some([80, 5000])));
    assert!(view.is_complete() && !view.is_header_damaged());
    let mut damaged = packet.clone();
    damaged[59] ^= 1;
    assert!(View::of(&damaged).unwrap().is_header_damaged());
    assert!(!View::of(&damaged[..59]).unwrap().is_header_damaged(), "an incomplete header is not verified");
}

#[test]
fn header_length_below_five_words_leaves_no_payload() {
    for words in 0..5 {
        let mut packet = v4(&[], 0, TCP, &tcp(&[]));
        packet[0] = 0x40 | words;
        let view = View::of(&packet).unwrap();
        assert_eq!((view.protocol, view.source()), (TCP, [10, 0, 0, 1].into()));
        assert!(view.payload().is_empty() && view.tcp().is_none() && view.ports().is_none());
        assert!(!view.is_complete());
    }
}

#[test]
fn length_field_limits_payload_and_may_exceed_packet() {
    for (mut packet, field, header) in [(v4(&[], 0, TCP, &tcp(&[])), 2, 20), (v6(TCP, &[], &tcp(&[])), 4, 40)]
    {
        let len = packet.len();
        packet.extend([0xff; 6]);
        let padded = View::of(&packet).unwrap();
        assert!(padded.is_complete());
        assert_eq!((padded.end, padded.tcp().unwrap().payload), (len, &b"payload"[..]));

        let counted = if header == 20 { 0 } else { header };
        let with_end = |end: usize| {
            let mut packet = packet.clone();
            packet[field..field + 2].copy_from_slice(&((end - counted) as u16).to_be_bytes());
            packet
        };
        let longer = with_end(len + 100);
        let longer = View::of(&longer[..len]).unwrap();
        assert_eq!((longer.end, longer.is_complete()), (len + 100, false));
        assert_eq!(longer.tcp().unwrap().payload, b"payload");

        let shorter = with_end(header + 19);
        let shorter = View::of(&shorter).unwrap();
        assert!(shorter.is_complete() && shorter.tcp().is_none());
        assert_eq!((shorter.payload().len(), shorter.ports()), (19, Some([80, 5000])));

        packet[field..field + 2].fill(0);
        let zero = View::of(&packet).unwrap();
        assert!(zero.is_length_zero() && zero.payload().is_empty());
        assert_eq!(zero.is_complete(), header == 40, "with IPv6, the field counts only the payload");
    }
}

#[test]
fn ipv4_fragments() {
    let first = v4(&[], 0x2000, TCP, &tcp(&[]));
    let view = View::of(&first).unwrap();
    assert_eq!(view.fragment, Some(Fragment { ident: 0xbeef, offset: 0, is_last: false }));
    assert_eq!(view.ports(), Some([80, 5000]));
    let last = v4(&[], 0x1fff, TCP, &tcp(&[]));
    let view = View::of(&last).unwrap();
    assert_eq!(view.fragment, Some(Fragment { ident: 0xbeef, offset: 65_528, is_last: true }));
    assert!(view.ports().is_none() && view.tcp().is_none());
}

#[test]
fn extension_headers_are_followed_to_segment() {
    let chain = [hop_by_hop(43), routing(60), destination_options(44), fragment(TCP, 1)].concat();
    let packet = v6(0, &chain, &tcp(&TIMESTAMPS));
    let view = View::of(&packet).unwrap();
    assert_eq!((view.protocol, view.transport, view.ports()), (TCP, 40 + chain.len(), Some([80, 5000])));
    assert_eq!(view.fragment, Some(Fragment { ident: 0x1234, offset: 0, is_last: false }));
    assert_eq!(view.tcp().unwrap().header, header(0x818, 32));
    assert!(view.is_routed && view.is_complete() && !view.is_cut_in_extensions());

    let without = View::without_extensions(&packet).unwrap();
    assert_eq!((without.protocol, without.transport, without.fragment), (0, 40, None));
}

#[test]
fn unknown_extension_headers_end_the_walk() {
    // Authentication, mobility and HIP.
    for unknown in [51, 135, 139] {
        let packet = v6(0, &[hop_by_hop(unknown), hop_by_hop(TCP)].concat(), &tcp(&[]));
        let view = View::of(&packet).unwrap();
        assert_eq!((view.protocol, view.transport, view.ports()), (unknown, 48, None));
        assert!(!view.is_cut_in_extensions());
    }
    let v4 = v4(&[], 0, 60, &[hop_by_hop(TCP), tcp(&[])].concat());
    assert_eq!(View::of(&v4).unwrap().protocol, 60, "IPv4 has no extension headers");
}

#[test]
fn walk_ends_at_later_fragment() {
    // The fragment begins in the middle of the packet, so its bytes are not headers.
    let packet = v6(0, &[hop_by_hop(44), fragment(60, 8)].concat(), &[0; 40]);
    let view = View::of(&packet).unwrap();
    assert_eq!((view.protocol, view.transport), (60, 56));
    assert_eq!(view.fragment, Some(Fragment { ident: 0x1234, offset: 8, is_last: true }));
    assert!(view.is_later_fragment() && !view.is_cut_in_extensions());
    let atomic = v6(44, &fragment(TCP, 0), &tcp(&[]));
    let view = View::of(&atomic).unwrap();
    assert!(view.fragment.unwrap().is_atomic() && view.tcp().is_some());
}

#[test]
fn extension_header_beyond_packet_is_cut() {
    let mut options = hop_by_hop(TCP);
    options[1] = 200;
    let packet = v6(0, &options, &tcp(&[]));
    let view = View::of(&packet).unwrap();
    assert!(view.is_cut_in_extensions() && view.tcp().is_none() && view.payload().is_empty());
    let packet = v6(60, &[], &[6, 0, 0, 0, 0, 0, 0]);
    let view = View::of(&packet).unwrap();
    assert_eq!((view.protocol, view.transport), (60, 40));
    assert!(view.is_cut_in_extensions() && view.is_complete());
}

#[test]
fn extension_lengths() {
    let read = |protocol, units| extension(protocol, &[TCP, units, 0, 9, 0, 0, 0, 7]).1;
    assert_eq!([read(0, 2), read(43, 0), read(60, 255), read(51, 4), read(44, 9)], [24, 8, 2048, 24, 8]);
    let fragment = Fragment { ident: 7, offset: 8, is_last: false };
    assert_eq!(extension(44, &[TCP, 0, 0, 9, 0, 0, 0, 7]), (TCP, 8, Some(fragment)));
}

#[test]
fn missing_header_is_reported_with_required_length() {
    let needed = |bytes: &[u8]| View::of(bytes).unwrap_err();
    assert_eq!(needed(&[]), NoHeader::Truncated(1));
    assert_eq!(needed(&[0x45; 19]), NoHeader::Truncated(20));
    assert_eq!(needed(&[0x60; 39]), NoHeader::Truncated(40));
    assert_eq!(needed(&[0x75; 60]), NoHeader::NotIp);
}

/// Everything that a truncated packet must either report like the complete packet, or not at all.
fn facts(view: &View<'_>) -> [Option<String>; 5] {
    let known = |known: bool, text: String| known.then_some(text);
    [
        known(true, format!("{} {} {:?}", view.source(), view.destination(), view.ecn())),
        known(!view.is_at_extension(), format!("{} {}", view.protocol, view.transport)),
        view.fragment.map(|fragment| format!("{fragment:?}")),
        view.ports().map(|ports| format!("{ports:?}")),
        view.tcp().map(|tcp| format!("{:?} {:?}", tcp.header, tcp.options)),
    ]
}

#[test]
fn truncated_packet_reports_prefix_of_facts() {
    let chain = [hop_by_hop(60), destination_options(44), fragment(TCP, 1)].concat();
    for packet in [
        v4(&[], 0, TCP, &tcp(&TIMESTAMPS)),
        v4(&[1; 12], 0x2000, TCP, &tcp(&[])),
        v4(&[], 0, UDP, &[0, 80, 0, 90, 0, 8, 0, 0]),
        v6(TCP, &[], &tcp(&TIMESTAMPS)),
        v6(0, &chain, &tcp(&[])),
        v6(44, &fragment(TCP, 800), &tcp(&[])),
    ] {
        let complete = View::of(&packet).unwrap();
        let all = facts(&complete);
        let mut known = 0;
        for len in 0..packet.len() {
            let Ok(view) = View::of(&packet[..len]) else {
                assert!(len < if complete.is_v4() { 20 } else { 40 }, "{len}");
                continue;
            };
            assert!(!view.is_complete());
            assert!(view.transport < complete.transport || complete.payload().starts_with(view.payload()));
            let facts = facts(&view);
            for (fact, complete) in facts.iter().zip(&all) {
                assert!(fact.is_none() || fact == complete, "{len}: {fact:?}");
            }
            let count = facts.iter().flatten().count();
            assert!(count >= known, "{len}: a longer packet reports more");
            known = count;
        }
        assert!(complete.is_complete());
    }
}

/// Compares with smoltcp's parsers, on packets that are damaged and truncated at random.
#[test]
fn view_agrees_with_smoltcp_on_damaged_packets() {
    let mut random = Stream::new(1, "view");
    let chain = [hop_by_hop(60), destination_options(TCP)].concat();
    let packets = [
        v4(&[], 0, TCP, &tcp(&TIMESTAMPS)),
        v4(&[1; 8], 0x2000, TCP, &tcp(&[])),
        v6(TCP, &[], &tcp(&TIMESTAMPS)),
        v6(0, &chain, &tcp(&[])),
    ];
    for _ in 0..20_000 {
        let mut packet = packets[random.below(packets.len() as u64) as usize].clone();
        for _ in 0..random.below(4) {
            let at = random.below(packet.len() as u64) as usize;
            packet[at] = random.below(256) as u8;
        }
        packet.truncate(random.below(packet.len() as u64 + 20) as usize);
        let _ = parse(&packet);
        let Ok(view) = View::of(&packet) else { continue };
        if view.is_v4() {
            let checked = Ipv4Packet::new_checked(&packet[..]);
            assert_eq!(view.is_complete(), checked.is_ok(), "{packet:02x?}");
            let Ok(ip) = checked else { continue };
            assert_eq!((view.source(), view.destination()), (ip.src_addr().into(), ip.dst_addr().into()));
            assert_eq!((view.protocol, view.payload()), (ip.next_header().into(), ip.payload()));
            assert_eq!(view.is_later_fragment(), ip.frag_offset() > 0);
            assert_eq!(view.fragment.is_some(), ip.frag_offset() > 0 || ip.more_frags());
        } else {
            let checked = Ipv6Packet::new_checked(&packet[..]);
            assert_eq!(view.is_complete(), checked.is_ok(), "{packet:02x?}");
            let Ok(ip) = checked else { continue };
            assert_eq!((view.source(), view.destination()), (ip.src_addr().into(), ip.dst_addr().into()));
            let first = View::without_extensions(&packet).unwrap();
            assert_eq!((first.protocol, first.payload()), (ip.next_header().into(), ip.payload()));
        }
        let parsed = TcpPacket::new_checked(view.payload()).ok().filter(|_| !view.is_later_fragment());
        let Some(segment) = parsed.filter(|_| view.protocol == TCP) else {
            assert!(view.tcp().is_none());
            continue;
        };
        let Tcp { header, payload, .. } = view.tcp().unwrap();
        assert_eq!((header.len, payload), (usize::from(segment.header_len()), segment.payload()));
        assert_eq!([header.src_port, header.dst_port], [segment.src_port(), segment.dst_port()]);
        assert_eq!(header.seq.0, segment.seq_number().0 as u32);
        assert_eq!(header.window, segment.window_len());
    }
}

#[test]
fn strict_parser_rejects_fragments_and_cut_chains() {
    let bad = |packet: &[u8]| parse_ip(packet).map(|_| ()).unwrap_err();
    assert_eq!(bad(&v4(&[], 0x2000, TCP, &tcp(&[]))), BadPacket::Fragment);
    assert_eq!(bad(&v6(44, &fragment(TCP, 0), &tcp(&[]))), BadPacket::Fragment);
    let packet = v6(0, &hop_by_hop(60), &[TCP, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bad(&packet), BadPacket::Truncated);
    assert_eq!(bad(&packet[..54]), BadPacket::Truncated);
    let followed = v6(0, &[hop_by_hop(60), destination_options(TCP)].concat(), &tcp(&[]));
    assert_eq!(parse_ip(&followed).unwrap().payload, tcp(&[]));
}
