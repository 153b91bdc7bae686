//! Tests of devices, in their own namespaces.

use std::net::UdpSocket;
use std::sync::Arc;

use airwire::options::{Layout, Options};
use airwire::piece::Payload;
use airwire::segment::{self, Ecn, Flags, Header};
use airwire::seq::Seq;

use super::*;
use crate::interface::enable_ipv6;
use crate::netns::{Namespace, test_namespace as namespace};

fn config(namespace: &Namespace) -> TunConfig {
    TunConfig {
        namespace: Some(namespace.name().into()),
        addrs: vec!["10.7.0.1/24".parse().unwrap(), "fd07::1/64".parse().unwrap()],
        routes: vec!["10.8.0.0/16".parse().unwrap(), "fd08::/32".parse().unwrap()],
        ..TunConfig::default()
    }
}

/// The UDP packets that are waiting, as (IP version, length).
fn udp(tun: &Tun) -> Vec<(u8, usize)> {
    let mut buffer = [0; 2000];
    let mut packets = Vec::new();
    while let Some(len) = tun.recv(&mut buffer).unwrap() {
        let version = buffer[0] >> 4;
        let protocol = if version == 4 { buffer[9] } else { buffer[6] };
        if protocol == 17 {
            packets.push((version, len));
        }
    }
    packets
}

#[test]
fn packets_of_both_families_reach_device() {
    let namespace = namespace();
    let tun = Tun::open(&config(&namespace)).unwrap();
    assert!(tun.name().starts_with("airtcp"));
    namespace
        .enter(|| {
            for (from, to) in [("10.7.0.1:0", "10.7.0.9:9"), ("10.7.0.1:0", "10.8.1.2:9")] {
                UdpSocket::bind(from).unwrap().send_to(b"four", to).unwrap();
            }
            for (from, to) in [("[fd07::1]:0", "[fd07::9]:9"), ("[fd07::1]:0", "[fd08:0:1::2]:9")] {
                UdpSocket::bind(from).unwrap().send_to(b"six", to).unwrap();
            }
        })
        .unwrap();
    assert_eq!(udp(&tun), [(4, 32), (4, 32), (6, 51), (6, 51)]);
    assert_eq!(tun.kernel_drops().unwrap(), 0);
}

#[test]
fn idle_device_emits_no_packets() {
    let namespace = namespace();
    let tun = Tun::open(&config(&namespace)).unwrap();
    let mut reactor = crate::reactor::Reactor::new(crate::reactor::Clock::start()).unwrap();
    let second = airwire::time::Instant::from_secs(1);
    while reactor.wait(Some(second)).unwrap().is_empty() {}
    let mut buffer = [0; 2000];
    let packets = std::iter::from_fn(|| tun.recv(&mut buffer).unwrap().map(|len| buffer[..len].to_vec()));
    assert_eq!(packets.collect::<Vec<_>>(), Vec::<Vec<u8>>::new());
}

#[test]
fn all_addresses_of_device_can_be_bound() {
    let namespace = namespace();
    let addrs = ["10.7.0.1/24", "10.7.0.2/24", "192.0.2.1/32", "10.9.0.1/16", "fd07::1/64", "fd07::2/64"];
    let addrs = addrs.map(|addr| addr.parse().unwrap()).to_vec();
    let _tun = Tun::open(&TunConfig { addrs: addrs.clone(), ..config(&namespace) }).unwrap();
    for prefix in addrs {
        let bound = namespace.enter(|| UdpSocket::bind((prefix.addr(), 0))).unwrap();
        assert!(bound.is_ok(), "{prefix}: {bound:?}");
    }
}

#[test]
fn ipv6_address_is_rejected_where_ipv6_is_disabled() {
    let namespace = namespace();
    for devices in ["all", "default"] {
        namespace.sysctl(&format!("net.ipv6.conf.{devices}.disable_ipv6"), "1").unwrap();
    }
    assert!(!namespace.enter(new_devices_have_ipv6).unwrap());
    let error = Tun::open(&config(&namespace)).unwrap_err();
    assert!(error.to_string().contains("IPv6 is disabled here"), "{error}");
    let v4 = |prefixes: Vec<Prefix>| prefixes.into_iter().filter(|one| one.addr().is_ipv4()).collect();
    let TunConfig { addrs, routes, .. } = config(&namespace);
    drop(Tun::open(&TunConfig { addrs: v4(addrs), routes: v4(routes), ..config(&namespace) }).unwrap());

    namespace.enter(enable_ipv6).unwrap();
    let _tun = Tun::open(&TunConfig { routes: Vec::new(), ..config(&namespace) }).unwrap();
    let small = Tun::open(&TunConfig { mtu: 1000, ..config(&namespace) }).unwrap_err();
    assert!(small.to_string().contains("1280"), "{small}");
}

#[test]
fn drops_of_full_queue_are_counted() {
    let namespace = namespace();
    let tun = Tun::open(&TunConfig { queue_len: 3, ..config(&namespace) }).unwrap();
    namespace
        .enter(|| {
            let socket = UdpSocket::bind("10.7.0.1:0").unwrap();
            for _ in 0..8 {
                socket.send_to(b"four", "10.7.0.9:9").unwrap();
            }
        })
        .unwrap();
    let queued = udp(&tun).len() as u64;
    assert!((3..8).contains(&queued), "{queued} packets were queued");
    assert_eq!(tun.kernel_drops().unwrap(), 8 - queued);
}

#[test]
fn sent_packet_reaches_socket_before_send_returns() {
    let namespace = namespace();
    let tun = Tun::open(&config(&namespace)).unwrap();
    let socket = namespace.enter(|| UdpSocket::bind("10.7.0.1:5678").unwrap()).unwrap();
    socket.set_nonblocking(true).unwrap();
    // UDP 10.7.0.2:1234 > 10.7.0.1:5678 without a UDP checksum.
    let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 7, 0, 2, 10, 7, 0, 1];
    let sum: u32 = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([0x04, 0xd2, 0x16, 0x2e, 0, 12, 0, 0, 1, 2, 3, 4]);
    tun.send(&packet).unwrap();
    let mut buffer = [0; 16];
    let (len, from) = socket.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..len], from), (&[1, 2, 3, 4][..], "10.7.0.2:1234".parse().unwrap()));
}

/// TCP packets that a forwarding kernel sends into a device without offload.
fn forwarded(tun: &Tun) -> Vec<Vec<u8>> {
    let mut buffer = [0; 70_000];
    let packets = std::iter::from_fn(|| tun.recv(&mut buffer).unwrap().map(|len| buffer[..len].to_vec()));
    packets.filter(|packet| packet[if packet[0] >> 4 == 4 { 9 } else { 6 }] == 6).collect()
}

#[test]
fn kernel_splits_joined_segments_at_mtu() {
    let namespace = namespace();
    let near = Tun::open(&TunConfig { offload: true, ..config(&namespace) }).unwrap();
    let far = Tun::open(&TunConfig {
        namespace: Some(namespace.name().into()),
        addrs: vec!["10.9.0.1/16".parse().unwrap(), "fd09::1/64".parse().unwrap()],
        ..TunConfig::default()
    })
    .unwrap();
    namespace.sysctl("net.ipv4.ip_forward", "1").unwrap();
    namespace.sysctl("net.ipv6.conf.all.forwarding", "1").unwrap();
    for (src, dst) in [("10.7.0.2:80", "10.9.0.2:9"), ("[fd07::2]:80", "[fd09::2]:9")] {
        let header = |count: u32| Header {
            src: src.parse().unwrap(),
            dst: dst.parse().unwrap(),
            seq: Seq(1000 + count * 1400),
            ack: Seq(1),
            flags: Flags::ACK,
            window: 500,
            ecn: Ecn::NotEct,
            tos: 0,
            ttl: 64,
            dont_fragment: true,
            ident: 7 + count as u16,
        };
        let packets = |ttl| {
            (0..20).map(move |count| {
                let mut packet = Vec::new();
                let header = Header { ttl, ..header(count) };
                segment::emit(&mut packet, &header, &[], (&[count as u8; 1400], &[]));
                packet
            })
        };
        let mut batch = Batch::default();
        for mut packet in packets(64) {
            assert!(batch.join(&mut packet));
        }
        near.send_batch(&mut batch).unwrap();
        assert_eq!(forwarded(&far), packets(63).collect::<Vec<_>>(), "{src}");
        let mut piece = Piece::default();
        for count in 0..20 {
            let text = Arc::new(vec![count as u8; 1400]);
            let text = std::iter::once(Payload::Shared(&text, 0..1400));
            let (header, options) = (header(count), Options::default());
            if count == 0 {
                piece.begin(&header, &options, Layout::Linux, 1400, text);
            } else {
                assert!(piece.can_append(&header, &options, 1400));
                piece.append(&header, 1400, text);
            }
        }
        near.send_piece(&mut piece).unwrap();
        assert_eq!(forwarded(&far), packets(63).collect::<Vec<_>>(), "{src}, a piece");
    }
}

#[test]
fn errors_say_what_to_do() {
    let namespace = namespace();
    let tun = Tun::open(&config(&namespace)).unwrap();
    let open =
        |name: &str| Tun::open(&TunConfig { name: name.to_owned(), ..config(&namespace) }).unwrap_err();
    assert!(matches!(open(tun.name()), DeviceError::Busy(_)));
    assert!(matches!(open("lo"), DeviceError::NotATun(_)));
    for name in ["", "a/b", "a b", "a-name-too-long-by-one", "%d%d", "%s", ".."] {
        assert!(matches!(open(name), DeviceError::BadName(_)), "{name}");
    }
    let missing = TunConfig { namespace: Some("no-such-namespace".into()), ..TunConfig::default() };
    assert!(Tun::open(&missing).unwrap_err().to_string().contains("ip netns add"));
    let mtu = Tun::open(&TunConfig { mtu: 10, ..config(&namespace) }).unwrap_err();
    assert!(mtu.to_string().contains("MTU 10"), "{mtu}");
    let message = |name: &str, code| open_error(name, io::Error::from_raw_os_error(code)).to_string();
    for (code, advice) in
        [(libc::ENOENT, "modprobe"), (libc::EACCES, "chmod 666"), (libc::EPERM, "CAP_NET_ADMIN")]
    {
        assert!(message("x", code).contains(advice), "{}", message("x", code));
    }
    for code in [libc::EPERM, libc::ENOSPC] {
        let (named, numbered) = (message("x", code), message("x%d", code));
        assert!(named.contains("the device `x`"), "{named}");
        assert!(numbered.contains("a TUN device") && !numbered.contains("%d"), "{numbered}");
    }
}
