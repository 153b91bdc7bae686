use std::collections::BTreeSet;

use airwire::segment::{BadPacket, parse};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{Icmpv4Message, IpProtocol, Ipv4Address, Ipv4Packet, Ipv4Repr, UdpPacket};

use super::*;
use crate::stages::testing::{Bench, tcp, within_binomial};

fn config(chance: f64, bits: Option<u32>, part: Part, checksum: Checksum) -> CorruptConfig {
    CorruptConfig { chance: Probability::new(chance), bits, part, checksum, affects: Affects::All }
}

fn corrupt(config: &CorruptConfig, seed: u64) -> Bench<Corrupt> {
    let stream = |purpose: &str| Stream::new(seed, purpose);
    Bench::new(Corrupt::new(config, stream("chosen"), stream("bits")).unwrap())
}

fn payload(octets: usize) -> Vec<u8> {
    (0..octets).map(|n| (n * 37 + 11) as u8).collect()
}

/// Returns the positions of the bits in which the two packets differ.
fn flipped_bits(one: &[u8], other: &[u8]) -> Vec<u32> {
    assert_eq!(one.len(), other.len());
    (0..one.len() as u32 * 8)
        .filter(|bit| (one[*bit as usize / 8] ^ other[*bit as usize / 8]) & (0x80 >> (bit % 8)) != 0)
        .collect()
}

/// Asserts that this number of bits was flipped, all within these bytes.
#[track_caller]
fn assert_flipped(before: &[u8], after: &[u8], count: u32, bytes: std::ops::Range<usize>) {
    let flipped = flipped_bits(before, after);
    assert_eq!(flipped.len(), count as usize);
    assert!(flipped.iter().all(|bit| bytes.contains(&(*bit as usize / 8))));
}

/// Corrupts the packet with `n` different seeds and returns the results.
fn corrupt_each(config: &CorruptConfig, packet: &[u8], n: u64) -> Vec<Vec<u8>> {
    (0..n)
        .map(|seed| {
            let mut bench = corrupt(config, seed);
            bench.send(Instant::ZERO, packet.to_vec());
            bench.departures.remove(0).1.bytes.clone()
        })
        .collect()
}

/// Verifies the IP and TCP checksums as a host does.
fn verify_as_host(packet: &[u8]) -> Result<(), BadPacket> {
    parse(packet).map(|_segment| ())
}

fn v4(protocol: IpProtocol, payload: &[u8]) -> Vec<u8> {
    let ip = Ipv4Repr {
        src_addr: Ipv4Address::new(10, 9, 8, 7),
        dst_addr: Ipv4Address::new(10, 1, 2, 3),
        next_header: protocol,
        payload_len: payload.len(),
        hop_limit: 64,
    };
    let mut bytes = vec![0; 20 + payload.len()];
    bytes[20..].copy_from_slice(payload);
    ip.emit(&mut Ipv4Packet::new_unchecked(&mut bytes), &ChecksumCapabilities::default());
    bytes
}

fn udp(payload: &[u8], has_checksum: bool) -> Vec<u8> {
    let mut datagram = vec![0; 8 + payload.len()];
    datagram[8..].copy_from_slice(payload);
    let mut packet = UdpPacket::new_unchecked(&mut datagram);
    packet.set_src_port(5353);
    packet.set_dst_port(999);
    packet.set_len(8 + payload.len() as u16);
    if has_checksum {
        packet.fill_checksum(&Ipv4Address::new(10, 9, 8, 7).into(), &Ipv4Address::new(10, 1, 2, 3).into());
    }
    v4(IpProtocol::Udp, &datagram)
}

fn is_valid_udp(bytes: &[u8]) -> bool {
    let packet = Ipv4Packet::new_checked(bytes).unwrap();
    let (from, to) = (packet.src_addr().into(), packet.dst_addr().into());
    packet.verify_checksum() && UdpPacket::new_unchecked(packet.payload()).verify_checksum(&from, &to)
}

#[test]
fn configured_number_of_bits_is_flipped_and_recorded() {
    let packet = tcp(true, &payload(100));
    for bits in [1, 2, 3, 17, 64] {
        let mut bench = corrupt(&config(1.0, Some(bits), Part::Anywhere, Checksum::Fails), u64::from(bits));
        bench.send(Instant::ZERO, packet.clone());
        let flipped = flipped_bits(&packet, &bench.departures[0].1.bytes);
        assert_eq!(flipped.len(), bits as usize);
        let corrupted = Event::Corrupted { bits: flipped.into(), found: true };
        assert_eq!(bench.events(), [(0, corrupted)]);
    }
}

#[test]
fn corruption_in_any_part_fails_receiver_checksum() {
    for is_v4 in [true, false] {
        let packet = tcp(is_v4, &payload(33));
        let header = packet.len() - 33;
        for (part, from, to) in [
            (Part::Anywhere, 0, packet.len()),
            (Part::Header, 0, header),
            (Part::Payload, header, packet.len()),
        ] {
            for bits in [1, 2, 16] {
                for bytes in corrupt_each(&config(1.0, Some(bits), part, Checksum::Fails), &packet, 300) {
                    assert!(verify_as_host(&bytes).is_err());
                    assert_flipped(&packet, &bytes, bits, from..to);
                }
            }
        }
    }
}

#[test]
fn cancelling_bit_flips_pass_receiver_checksum() {
    for is_v4 in [true, false] {
        // With an odd length, the last byte is half a word.
        for octets in [33, 200] {
            let packet = tcp(is_v4, &payload(octets));
            let (ip, header) = (packet.len() - octets - 20, packet.len() - octets);
            for (part, from, to) in [
                (Part::Anywhere, ip, packet.len()),
                (Part::Header, ip, header),
                (Part::Payload, header, packet.len()),
            ] {
                for bits in [None, Some(2), Some(6)] {
                    for bytes in corrupt_each(&config(1.0, bits, part, Checksum::Passes), &packet, 300) {
                        verify_as_host(&bytes).unwrap();
                        assert_flipped(&packet, &bytes, bits.unwrap_or(2), from..to);
                    }
                }
            }
        }
    }
}

#[test]
fn bits_covered_by_checksum_are_equally_likely() {
    let packet = tcp(true, &payload(4));
    let n = 44 * 8 * 30;
    let mut counts = vec![0; 44 * 8];
    for bytes in corrupt_each(&config(1.0, None, Part::Anywhere, Checksum::Fails), &packet, n) {
        counts[flipped_bits(&packet, &bytes)[0] as usize] += 1;
    }
    // Test each byte. The bound is corrected for 44 simultaneous tests.
    for octet in counts.chunks(8).map(|octet| octet.iter().sum::<usize>()) {
        let (mean, deviation) = (n as f64 / 44.0, (n as f64 / 44.0 * (43.0 / 44.0)).sqrt());
        assert!((octet as f64 - mean).abs() <= 4.3 * deviation, "{octet} of {mean}");
    }
    // Over IPv6, the first 8 bytes stay unchanged: class, flow label, payload length, next header and hop
    // limit.
    let packet = tcp(false, &payload(4));
    let corrupted_ids: BTreeSet<u32> =
        corrupt_each(&config(1.0, None, Part::Anywhere, Checksum::Fails), &packet, 5_000)
            .iter()
            .map(|bytes| flipped_bits(&packet, bytes)[0] / 8)
            .collect();
    assert_eq!(corrupted_ids, (8..64).collect());
}

#[test]
fn corruption_of_udp_without_checksum_always_passes() {
    let (with, without) = (udp(&payload(20), true), udp(&payload(20), false));
    for bytes in corrupt_each(&config(1.0, None, Part::Payload, Checksum::Fails), &with, 200) {
        assert!(!is_valid_udp(&bytes));
    }
    for bytes in corrupt_each(&config(1.0, None, Part::Anywhere, Checksum::Passes), &with, 200) {
        assert!(bytes != with && is_valid_udp(&bytes));
        assert_eq!(bytes[24..28], with[24..28], "length and checksum are unchanged");
    }
    let mut bench = corrupt(&config(1.0, None, Part::Payload, Checksum::Fails), 1);
    bench.send(Instant::ZERO, without.clone());
    assert_eq!((&bench.departures[0].1.bytes, &bench.stage.stats()["unsuitable"]), (&without, &json!(1)));
    for bytes in corrupt_each(&config(1.0, None, Part::Payload, Checksum::Passes), &without, 200) {
        assert_eq!(flipped_bits(&without, &bytes).len(), 2);
        assert_eq!(bytes[..28], without[..28]);
    }
    // The checksum field stays unchanged: 0 would mean "no checksum".
    for bytes in corrupt_each(&config(1.0, None, Part::Header, Checksum::Fails), &with, 500) {
        assert_eq!(bytes[26..28], with[26..28]);
    }
}

#[test]
fn icmp_and_fragment_corruption_respects_plain_checksum() {
    let mut echo = vec![Icmpv4Message::EchoRequest.into(), 0, 0, 0, 1, 2, 3, 4];
    echo.extend(payload(56));
    let sum = airwire::checksum::plain(&echo);
    echo[2..4].copy_from_slice(&sum.to_be_bytes());
    let packet = v4(IpProtocol::Icmp, &echo);
    for bytes in corrupt_each(&config(1.0, None, Part::Anywhere, Checksum::Passes), &packet, 200) {
        assert!(bytes != packet && airwire::checksum::plain(&bytes[20..]) == 0);
    }
    for bytes in corrupt_each(&config(1.0, None, Part::Payload, Checksum::Fails), &packet, 200) {
        assert_ne!(airwire::checksum::plain(&bytes[20..]), 0);
    }
    // A later fragment has only an IP header. Its words are part of the datagram's checksum.
    let mut fragment = v4(IpProtocol::Udp, &payload(64));
    fragment[6..8].copy_from_slice(&185_u16.to_be_bytes());
    for bytes in corrupt_each(&config(1.0, None, Part::Payload, Checksum::Passes), &fragment, 200) {
        assert!(bytes != fragment);
        assert_eq!(airwire::checksum::plain(&bytes[20..]), airwire::checksum::plain(&fragment[20..]));
    }
    for bytes in corrupt_each(&config(1.0, None, Part::Anywhere, Checksum::Passes), &fragment, 50) {
        assert_eq!(bytes[..20], fragment[..20]);
    }
}

#[test]
fn unsuitable_packets_pass_unchanged_and_are_counted() {
    let unsuitable = |config: &CorruptConfig, bytes: Vec<u8>| {
        let mut bench = corrupt(config, 1);
        bench.send(Instant::ZERO, bytes.clone());
        assert!(bench.events().is_empty());
        bench.departures[0].1.bytes == bytes && bench.stage.stats()["unsuitable"] == 1
    };
    let fails = |part| config(1.0, None, part, Checksum::Fails);
    let passes = |part| config(1.0, None, part, Checksum::Passes);
    let sctp = || v4(IpProtocol::Unknown(132), &payload(40));
    for (case, config, bytes) in [
        ("no payload", fails(Part::Payload), tcp(true, &[])),
        ("no two bits of an all-zero payload cancel", passes(Part::Payload), tcp(true, &[0; 500])),
        ("truncated packet", fails(Part::Anywhere), tcp(true, &payload(10))[..45].to_vec()),
        ("incomplete IP header", fails(Part::Anywhere), vec![0x45; 19]),
        ("no bytes", fails(Part::Anywhere), Vec::new()),
        ("not an IP packet", fails(Part::Anywhere), vec![0; 40]),
        ("unknown transport checksum", fails(Part::Payload), sctp()),
        ("unknown transport header", passes(Part::Anywhere), sctp()),
    ] {
        assert!(unsuitable(&config, bytes), "{case}");
    }
    // The IP header can still be corrupted. An incomplete TCP header is not treated as a header.
    for packet in [sctp(), v4(IpProtocol::Tcp, &payload(12))] {
        for bytes in corrupt_each(&fails(Part::Anywhere), &packet, 100) {
            assert!(flipped_bits(&packet, &bytes)[0] < 160);
        }
    }
}

#[test]
fn corrupted_share_matches_chance_in_both_modes() {
    let n = 50_000;
    for (seed, chance) in [(1, 0.001), (2, 0.05), (3, 0.5)] {
        let mut corrupted_ids = Vec::new();
        for (bits, checksum) in [(1, Checksum::Fails), (4, Checksum::Passes)] {
            let mut bench = corrupt(&config(chance, Some(bits), Part::Anywhere, checksum), seed);
            for _ in 0..n {
                bench.send(Instant::ZERO, tcp(true, &payload(10)));
            }
            within_binomial(bench.events().len(), n, chance);
            let original = tcp(true, &payload(10));
            let corrupted = bench.departures.iter().filter(|(_, packet)| packet.bytes != original);
            corrupted_ids.push(corrupted.map(|(_, packet)| packet.id).collect::<Vec<_>>());
        }
        assert_eq!(corrupted_ids[0], corrupted_ids[1], "the seed alone selects the packets");
    }
}

#[test]
fn corruption_affects_only_selected_packets_and_is_reconfigurable() {
    let mut bench = corrupt(
        &CorruptConfig { affects: Affects::Acks, ..config(1.0, None, Part::Anywhere, Checksum::Fails) },
        1,
    );
    let (data, ack) = (tcp(true, &payload(10)), tcp(true, &[]));
    bench.send(Instant::ZERO, data.clone());
    bench.send(Instant::ZERO, ack.clone());
    assert!(bench.departures[0].1.bytes == data && bench.departures[1].1.bytes != ack);
    let other = config(1.0, Some(4), Part::Payload, Checksum::Passes);
    assert!(bench.stage.check(&other).is_ok());
    bench.stage.reconfigure(Instant::ZERO, &other, &mut bench.out);
    bench.send(Instant::ZERO, data.clone());
    assert_eq!(flipped_bits(&data, &bench.departures[2].1.bytes).len(), 4);
}

#[test]
fn invalid_bit_counts_are_rejected() {
    for (bits, checksum) in [
        (0, Checksum::Fails),
        (65, Checksum::Fails),
        (1, Checksum::Passes),
        (3, Checksum::Passes),
        (0, Checksum::Passes),
    ] {
        let invalid = config(0.1, Some(bits), Part::Anywhere, checksum).validate().unwrap_err();
        assert_eq!(invalid.key, "bits");
    }
    assert!(config(0.1, Some(64), Part::Anywhere, Checksum::Passes).validate().is_ok());
}
