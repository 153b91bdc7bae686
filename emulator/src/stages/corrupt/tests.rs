use std::collections::BTreeSet;

use airwire::segment::{BadPacket, parse_ip, parse_tcp};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{Icmpv4Message, IpProtocol, Ipv4Address, Ipv4Packet, Ipv4Repr, UdpPacket};

use super::super::testing::{Bench, tcp, within_binomial};
use super::*;

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

/// The bits in which the two differ.
fn difference(one: &[u8], other: &[u8]) -> Vec<u32> {
    assert_eq!(one.len(), other.len());
    (0..one.len() as u32 * 8)
        .filter(|bit| (one[*bit as usize / 8] ^ other[*bit as usize / 8]) & (0x80 >> (bit % 8)) != 0)
        .collect()
}

/// Each packet is corrupted with another seed. What came out.
fn each(config: &CorruptConfig, packet: &[u8], n: u64) -> Vec<Vec<u8>> {
    (0..n)
        .map(|seed| {
            let mut bench = corrupt(config, seed);
            bench.send(Instant::ZERO, packet.to_vec());
            bench.left.remove(0).1.bytes.clone()
        })
        .collect()
}

/// What a host says of it: both checksums.
fn host(packet: &[u8]) -> Result<(), BadPacket> {
    parse_tcp(&parse_ip(packet)?).map(|_segment| ())
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

fn is_right_udp(bytes: &[u8]) -> bool {
    let packet = Ipv4Packet::new_checked(bytes).unwrap();
    let (from, to) = (packet.src_addr().into(), packet.dst_addr().into());
    packet.verify_checksum() && UdpPacket::new_unchecked(packet.payload()).verify_checksum(&from, &to)
}

#[test]
fn as_many_bits_as_told_are_turned_over_and_the_record_has_them() {
    let packet = tcp(true, &payload(100));
    for bits in [1, 2, 3, 17, 64] {
        let mut bench = corrupt(&config(1.0, Some(bits), Part::Anywhere, Checksum::Fails), u64::from(bits));
        bench.send(Instant::ZERO, packet.clone());
        let difference = difference(&packet, &bench.left[0].1.bytes);
        assert_eq!(difference.len(), bits as usize);
        let corrupted = Event::Corrupted { bits: difference.into(), found: true };
        assert_eq!(bench.events(), [(0, corrupted)]);
    }
}

#[test]
fn what_should_fail_fails_at_the_receiver_wherever_it_is() {
    for is_v4 in [true, false] {
        let packet = tcp(is_v4, &payload(33));
        let header = packet.len() - 33;
        for (part, from, to) in [
            (Part::Anywhere, 0, packet.len()),
            (Part::Header, 0, header),
            (Part::Payload, header, packet.len()),
        ] {
            for bits in [1, 2, 16] {
                for bytes in each(&config(1.0, Some(bits), part, Checksum::Fails), &packet, 300) {
                    assert!(host(&bytes).is_err());
                    let difference = difference(&packet, &bytes);
                    assert_eq!(difference.len(), bits as usize);
                    assert!(difference.iter().all(|bit| (from..to).contains(&(*bit as usize / 8))));
                }
            }
        }
    }
}

#[test]
fn what_should_pass_passes_at_the_receiver_and_is_wrong() {
    for is_v4 in [true, false] {
        // An odd length: the last octet is half a word.
        for octets in [33, 200] {
            let packet = tcp(is_v4, &payload(octets));
            let (ip, header) = (packet.len() - octets - 20, packet.len() - octets);
            for (part, from, to) in [
                (Part::Anywhere, ip, packet.len()),
                (Part::Header, ip, header),
                (Part::Payload, header, packet.len()),
            ] {
                for bits in [None, Some(2), Some(6)] {
                    for bytes in each(&config(1.0, bits, part, Checksum::Passes), &packet, 300) {
                        host(&bytes).unwrap();
                        let difference = difference(&packet, &bytes);
                        assert_eq!(difference.len(), bits.unwrap_or(2) as usize);
                        assert!(difference.iter().all(|bit| (from..to).contains(&(*bit as usize / 8))));
                    }
                }
            }
        }
    }
}

#[test]
fn every_bit_that_a_checksum_covers_is_equally_likely() {
    let packet = tcp(true, &payload(4));
    let n = 44 * 8 * 30;
    let mut counts = vec![0; 44 * 8];
    for bytes in each(&config(1.0, None, Part::Anywhere, Checksum::Fails), &packet, n) {
        counts[difference(&packet, &bytes)[0] as usize] += 1;
    }
    // Each octet, with the correction for asking 44 times at once.
    for octet in counts.chunks(8).map(|octet| octet.iter().sum::<usize>()) {
        let (mean, deviation) = (n as f64 / 44.0, (n as f64 / 44.0 * (43.0 / 44.0)).sqrt());
        assert!((octet as f64 - mean).abs() <= 4.3 * deviation, "{octet} of {mean}");
    }
    // Over IPv6: not the class, the flow label, the hop limit, nor the two fields that say what the packet is.
    let packet = tcp(false, &payload(4));
    let touched: BTreeSet<u32> = each(&config(1.0, None, Part::Anywhere, Checksum::Fails), &packet, 5_000)
        .iter()
        .map(|bytes| difference(&packet, bytes)[0] / 8)
        .collect();
    assert_eq!(touched, (8..64).collect());
}

#[test]
fn udp_without_a_checksum_has_nothing_that_fails_in_its_payload_and_everything_passes() {
    let (with, without) = (udp(&payload(20), true), udp(&payload(20), false));
    for bytes in each(&config(1.0, None, Part::Payload, Checksum::Fails), &with, 200) {
        assert!(!is_right_udp(&bytes));
    }
    for bytes in each(&config(1.0, None, Part::Anywhere, Checksum::Passes), &with, 200) {
        assert!(bytes != with && is_right_udp(&bytes));
        assert_eq!(bytes[24..28], with[24..28], "length and checksum stay");
    }
    let mut bench = corrupt(&config(1.0, None, Part::Payload, Checksum::Fails), 1);
    bench.send(Instant::ZERO, without.clone());
    assert_eq!((&bench.left[0].1.bytes, &bench.stage.stats()["spared"]), (&without, &json!(1)));
    for bytes in each(&config(1.0, None, Part::Payload, Checksum::Passes), &without, 200) {
        assert_eq!(difference(&without, &bytes).len(), 2);
        assert_eq!(bytes[..28], without[..28]);
    }
    // The checksum field is not touched: as 0 it would be none.
    for bytes in each(&config(1.0, None, Part::Header, Checksum::Fails), &with, 500) {
        assert_eq!(bytes[26..28], with[26..28]);
    }
}

#[test]
fn icmp_and_fragments_are_summed_by_their_words() {
    let mut echo = vec![Icmpv4Message::EchoRequest.into(), 0, 0, 0, 1, 2, 3, 4];
    echo.extend(payload(56));
    let sum = airwire::checksum::plain(&echo);
    echo[2..4].copy_from_slice(&sum.to_be_bytes());
    let packet = v4(IpProtocol::Icmp, &echo);
    for bytes in each(&config(1.0, None, Part::Anywhere, Checksum::Passes), &packet, 200) {
        assert!(bytes != packet && airwire::checksum::plain(&bytes[20..]) == 0);
    }
    for bytes in each(&config(1.0, None, Part::Payload, Checksum::Fails), &packet, 200) {
        assert_ne!(airwire::checksum::plain(&bytes[20..]), 0);
    }
    // A later fragment has no header of its own but IP's. Its words are summed with those of the others.
    let mut fragment = v4(IpProtocol::Udp, &payload(64));
    fragment[6..8].copy_from_slice(&185_u16.to_be_bytes());
    for bytes in each(&config(1.0, None, Part::Payload, Checksum::Passes), &fragment, 200) {
        assert!(bytes != fragment);
        assert_eq!(airwire::checksum::plain(&bytes[20..]), airwire::checksum::plain(&fragment[20..]));
    }
    for bytes in each(&config(1.0, None, Part::Anywhere, Checksum::Passes), &fragment, 50) {
        assert_eq!(bytes[..20], fragment[..20]);
    }
}

#[test]
fn a_packet_without_such_bits_is_spared_and_counted() {
    let spared = |config: &CorruptConfig, bytes: Vec<u8>| {
        let mut bench = corrupt(config, 1);
        bench.send(Instant::ZERO, bytes.clone());
        assert!(bench.events().is_empty());
        bench.left[0].1.bytes == bytes && bench.stage.stats()["spared"] == 1
    };
    let fails = |part| config(1.0, None, part, Checksum::Fails);
    let passes = |part| config(1.0, None, part, Checksum::Passes);
    assert!(spared(&fails(Part::Payload), tcp(true, &[])), "no payload");
    assert!(spared(&passes(Part::Payload), tcp(true, &[0; 500])), "nothing but zeros has no two that cancel");
    assert!(spared(&fails(Part::Anywhere), tcp(true, &payload(10))[..45].to_vec()), "not whole");
    assert!(spared(&fails(Part::Anywhere), vec![0x45; 19]) && spared(&fails(Part::Anywhere), Vec::new()));
    assert!(spared(&fails(Part::Anywhere), vec![0; 40]), "not IP");
    assert!(
        spared(&fails(Part::Payload), v4(IpProtocol::Unknown(132), &payload(40))),
        "a sum that is not known"
    );
    assert!(spared(&passes(Part::Anywhere), v4(IpProtocol::Unknown(132), &payload(40))));
    // Its IP header is known all the same; and a TCP header that is cut off is no header.
    for packet in [v4(IpProtocol::Unknown(132), &payload(40)), v4(IpProtocol::Tcp, &payload(12))] {
        for bytes in each(&fails(Part::Anywhere), &packet, 100) {
            assert!(difference(&packet, &bytes)[0] < 160);
        }
    }
}

#[test]
fn so_many_as_the_chance_says_whatever_it_does_to_them() {
    let n = 50_000;
    for (seed, chance) in [(1, 0.001), (2, 0.05), (3, 0.5)] {
        let mut touched = Vec::new();
        for (bits, checksum) in [(1, Checksum::Fails), (4, Checksum::Passes)] {
            let mut bench = corrupt(&config(chance, Some(bits), Part::Anywhere, checksum), seed);
            for _ in 0..n {
                bench.send(Instant::ZERO, tcp(true, &payload(10)));
            }
            within_binomial(bench.events().len(), n, chance);
            let whole = tcp(true, &payload(10));
            let corrupted = bench.left.iter().filter(|(_, packet)| packet.bytes != whole);
            touched.push(corrupted.map(|(_, packet)| packet.id).collect::<Vec<_>>());
        }
        assert_eq!(touched[0], touched[1], "which ones depends on the seed alone");
    }
}

#[test]
fn only_what_it_affects_and_what_is_set_under_way() {
    let mut bench = corrupt(
        &CorruptConfig { affects: Affects::Acks, ..config(1.0, None, Part::Anywhere, Checksum::Fails) },
        1,
    );
    let (data, ack) = (tcp(true, &payload(10)), tcp(true, &[]));
    bench.send(Instant::ZERO, data.clone());
    bench.send(Instant::ZERO, ack.clone());
    assert!(bench.left[0].1.bytes == data && bench.left[1].1.bytes != ack);
    let other = config(1.0, Some(4), Part::Payload, Checksum::Passes);
    assert!(bench.stage.check(&other).is_ok());
    bench.stage.reconfigure(Instant::ZERO, &other, &mut bench.out);
    bench.send(Instant::ZERO, data.clone());
    assert_eq!(difference(&data, &bench.left[2].1.bytes).len(), 4);
}

#[test]
fn odd_numbers_that_should_cancel_and_none_are_refused() {
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
