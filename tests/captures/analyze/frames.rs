//! Everything around the packets: headers of every kind, fragments, and wrong lengths. The results are
//! compared with tshark.

use airtcp_testkit::frames::encapsulation::{self, udp, v4 as ipv4};
use airtcp_testkit::frames::{ETHERNET, Pcap, Tcp, ethernet, v4, v6};
use airtcp_testkit::machine::run;

use super::{
    Frames, acked, analyze, analyze_each, counts, file, no_problems, pcap_of, plain, problem, transfer,
    tshark_each,
};

/// tshark 4.0 does not dissect these by default.
const UNLIKE_TSHARK: [&str; 2] = ["Ethernet in MPLS", "Ethernet in MPLS without a control word"];

#[test]
fn every_encapsulation_yields_same_connection() {
    let mut names = Vec::new();
    let mut captures: Vec<Frames> = Vec::new();
    for (number, encapsulation) in (0..).zip(encapsulation::ALL) {
        let port = 4000 + number;
        for packets in
            [transfer(v4(1, port), v4(2, 80), 77), transfer(v6(1, port), v6(2, 80), u32::MAX - 700)]
        {
            names.push(encapsulation.name);
            captures.push((
                encapsulation.link_type,
                packets.iter().map(|tcp| (encapsulation.wrap)(&tcp.packet())).collect(),
            ));
        }
    }
    let analyses = analyze_each(&captures);
    assert_eq!(analyses.len(), names.len());
    for (number, (capture, name)) in analyses.iter().zip(&names).enumerate() {
        let is_v6 = number % 2 == 1;
        assert_eq!(counts(capture), (10, 1), "{name}, v6 {is_v6}");
        assert_eq!(acked(capture, 0), [2000, 0], "{name}, v6 {is_v6}");
        no_problems(capture);
    }
    let theirs = names.iter().zip(tshark_each(&captures));
    let mut unlike: Vec<_> = theirs.filter(|(_, counts)| *counts != (10, 1)).map(|(name, _)| *name).collect();
    unlike.dedup();
    assert_eq!(unlike, UNLIKE_TSHARK);
}

/// A packet whose IP length exceeds the frame, as broken devices send it. The missing part does not count as
/// payload, so its later arrival is not a retransmission.
#[test]
fn length_beyond_frame_does_not_count_as_payload() {
    let pppoe = encapsulation::ALL.iter().find(|it| it.name == "PPPoE").unwrap();
    for wrap in [|packet: &[u8]| ethernet(packet), pppoe.wrap] {
        let frames = plain().into_iter().map(|tcp| {
            let is_first_data = tcp.len > 0 && tcp.seq == 78;
            let tcp = Tcp { len: if is_first_data { 500 } else { tcp.len }, ..tcp };
            let mut packet = tcp.packet();
            if is_first_data {
                // 1000 bytes more than the packet has.
                packet[2..4].copy_from_slice(&1540_u16.to_be_bytes());
            }
            wrap(&packet)
        });
        let mut frames: Vec<_> = frames.collect();
        // The second half of the first 1000 bytes.
        let [client, server] = [v4(1, 4000), v4(2, 80)];
        let half = Tcp::new(client, server, airtcp_testkit::frames::ACK, 578, 501, 500);
        frames.insert(4, wrap(&half.packet()));
        let capture = analyze(&pcap_of(ETHERNET, frames));
        assert_eq!((counts(&capture), acked(&capture, 0)), ((11, 1), [2000, 0]));
        assert_eq!(problem(&capture, "beyond-frame"), Some((1, 4)));
        let sender = &capture["connections"][0]["directions"][0];
        assert_eq!(sender["sent_bytes"], 2000, "{sender}");
        assert_eq!(sender["retransmissions"]["packets"], 0, "{sender}");
    }
}

/// Splits a packet into IPv4 fragments with `octets` bytes of payload, a multiple of 8.
fn split(packet: &[u8], octets: usize) -> Vec<Vec<u8>> {
    let (header, payload) = packet.split_at(20);
    let last = payload.len().div_ceil(octets) - 1;
    let fragment = |(index, part): (usize, &[u8])| {
        let mut header = header.to_vec();
        let field = (index * octets / 8) as u16 | u16::from(index < last) << 13;
        header[2..4].copy_from_slice(&(part.len() as u16 + 20).to_be_bytes());
        header[6..8].copy_from_slice(&field.to_be_bytes());
        // As with checksum offload.
        header[10..12].fill(0);
        [&header, part].concat()
    };
    payload.chunks(octets).enumerate().map(fragment).collect()
}

#[test]
fn fragments_are_reassembled_and_missing_ones_reported() {
    let mut frames = Vec::new();
    for (ident, mut tcp) in plain().into_iter().enumerate() {
        tcp.ident = ident as u16 + 1;
        let mut fragments = split(&tcp.packet(), 400);
        // The fragments arrive in reverse order.
        fragments.reverse();
        frames.extend(fragments);
    }
    // Two of the three fragments of a packet, and all three fragments of a UDP datagram.
    let lonely = Tcp { ident: 99, ..plain()[3].clone() };
    frames.extend(split(&lonely.packet(), 400).into_iter().take(2));
    frames.extend(split(&ipv4(17, &udp([53, 53], &[0; 1000])), 400));
    let frames: Vec<_> = frames.iter().map(|packet| ethernet(packet)).collect();
    let count = frames.len() as u64;
    let octets = pcap_of(ETHERNET, frames);
    let capture = analyze(&octets);
    assert_eq!((counts(&capture), acked(&capture, 0)), ((10, 1), [2000, 0]));
    assert_eq!(problem(&capture, "fragment"), Some((2, 15)));
    let totals = &capture["totals"];
    assert_eq!((&totals["fragments"], &totals["other_frames"]), (&6.into(), &1.into()));
    assert_eq!(totals["others"], serde_json::json!([{ "what": "UDP", "count": 1 }]));
    assert_eq!(totals["frames"], count);
    let text = run(&["analyze", file(&octets).path(), "--wide"]).stdout;
    assert!(text.contains("1 with something else (1 UDP), 6 fragments put together"), "{text}");
    assert!(text.contains("2 × IP fragments of incomplete packets (first at frame 15)"), "{text}");
}

#[test]
fn skipped_frames_are_counted_by_kind() {
    let mut pcap = Pcap::new(ETHERNET);
    for (at, tcp) in plain().iter().enumerate() {
        pcap.frame(at as f64, &tcp.ethernet());
    }
    let arp = [&[0xff; 12], &[8, 6][..], &[0; 46]].concat();
    for frame in [arp.clone(), arp, ethernet(&ipv4(1, &[8; 20]))] {
        pcap.frame(20.0, &frame);
    }
    let capture = analyze(&pcap.file);
    assert_eq!(capture["totals"]["other_frames"], 3);
    let expected = serde_json::json!([{ "what": "ARP", "count": 2 }, { "what": "ICMP", "count": 1 }]);
    assert_eq!(capture["totals"]["others"], expected);
    let text = run(&["analyze", file(&pcap.file).path(), "--wide"]).stdout;
    assert!(text.contains("3 with something else (2 ARP, 1 ICMP)"), "{text}");
    // An encrypted wireless network, captured by a machine outside this network.
    let mut beacon = vec![0x80, 0];
    beacon.resize(80, 0);
    let mut data = vec![0x88, 0x41];
    data.resize(80, 0);
    let text = run(&["analyze", file(&pcap_of(105, [beacon, data])).path(), "--wide"]).stdout;
    assert!(text.contains("(1 802.11 management, 1 encrypted 802.11)"), "{text}");
}
