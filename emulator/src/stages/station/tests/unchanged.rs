//! Packets that a station does not change, and settings.

use super::*;
use crate::scenario::{settings, to_text};

#[test]
fn packets_other_than_whole_segments_pass_unchanged() {
    let mut net = Net::station(&StationConfig { transit_marks: true, ..reports(Side::Mobile) });
    let tcp = Tcp::new(Ip::V4, MOBILE, ACK, 1, 1).payload(&[1; 40]);
    let v6 = Tcp::new(Ip::V6, MOBILE, ACK, 1, 1).payload(&[1; 40]);
    let edited = |mut packet: Vec<u8>, at: usize, octet: u8| {
        packet[at] = octet;
        packet
    };
    let bare = Tcp::new(Ip::V4, MOBILE, ACK, 1, 1);
    let signature = [&[1, 1, 19, 18][..], &[7; 16]].concat();
    for (case, packet) in [
        ("no bytes", vec![]),
        ("one byte", vec![0x45]),
        ("truncated IPv6 header", vec![0x60; 39]),
        ("not IP", vec![0xff; 100]),
        ("UDP", edited(tcp.packet(), 9, 17)),
        ("IPv4 header shorter than 20 bytes", edited(tcp.packet(), 0, 0x44)),
        ("TCP header shorter than 20 bytes", edited(tcp.packet(), 32, 0x40)),
        ("TCP header longer than the packet", edited(bare.packet(), 32, 0x60)),
        ("first IPv4 fragment", tcp.v4(&[], 0x2000)),
        ("last IPv4 fragment", tcp.v4(&[], 0x0003)),
        ("middle IPv4 fragment", tcp.v4(&[], 0x2003)),
        ("first IPv6 fragment", v6.v6(44, &[6, 0, 0, 1, 0, 0, 0, 9])),
        ("last IPv6 fragment", v6.v6(44, &[6, 0, 0, 8, 0, 0, 0, 9])),
        ("IPv6 routing header", v6.v6(43, &[6, 0, 0, 1, 0, 0, 0, 0])),
        ("IPv6 authentication header", v6.v6(51, &[6, 1, 0, 0, 0, 0, 0, 0])),
        ("ICMPv6", v6.v6(58, &[])),
        ("IPv6 options longer than the packet", v6.v6(0, &[6, 200, 0, 0, 0, 0, 0, 0])),
        ("reset", Tcp::new(Ip::V4, MOBILE, RST | ACK, 1, 1).packet()),
        ("segment signed with TCP-MD5", bare.options(&signature).packet()),
    ] {
        assert_eq!(net.send(MOBILE, &packet), Some(packet), "{case}");
    }
    for whole in [tcp.packet(), v6.packet()] {
        for length in 0..whole.len() {
            let packet = &whole[..length];
            assert_eq!(net.send(MOBILE, packet).as_deref(), Some(packet), "truncated to {length} bytes");
        }
    }
}

#[test]
fn ip_options_and_extension_headers_are_skipped() {
    let mut net = Net::station(&StationConfig { transit_marks: true, ..reports(Side::Mobile) });
    let v4 = Tcp::new(Ip::V4, FIXED, SYN, 9, 0);
    let v6 = Tcp::new(Ip::V6, FIXED, SYN, 9, 0);
    let atomic =
        [60, 0, 1, 4, 0, 0, 0, 0, 44, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 1, 2, 3, 4];
    for packet in [v4.v4(&[1, 1, 1, 0], 0), v6.v6(0, &atomic)] {
        assert_eq!(read(&net.send(FIXED, &packet).unwrap()).0.header().flags.0, SYN | OB);
    }
    let ack = Tcp::new(Ip::V6, MOBILE, ACK, 9, 9);
    let (_, options) = read(&net.send(MOBILE, &ack.v6(0, &atomic)).unwrap());
    assert!(loss_rate::find(&options).is_some());
    let ack = Tcp::new(Ip::V4, MOBILE, ACK, 9, 9);
    let (_, options) = read(&net.send(MOBILE, &ack.v4(&[1; 40], 0)).unwrap());
    assert!(loss_rate::find(&options).is_some());
}

#[test]
fn fragmented_segment_yields_congestion_verdict() {
    let mut connection = Connection::open(one_station(MOBILE, &[], &[]), Ip::V4, MOBILE, ISN);
    connection.data(0);
    assert_eq!(connection.ack().1 & OB, 0, "segment 1 has not passed the station");
    let head = Tcp::new(Ip::V4, MOBILE, PSH_ACK, seq(1), PEER + 1).payload(&[0; 80]);
    connection.net.send(MOBILE, &head.v4(&[], 0x2000)).unwrap();
    assert_eq!(connection.verdict().1, Cause::Congestion);
}

#[test]
fn background_packets_pass_unchanged() {
    let mut station = Station::new(&marks(Side::Mobile));
    let mut out = Outbox::new(Recording::Events, false);
    let mut packet = packet(1, Direction::Up, Instant::ZERO, Tcp::new(Ip::V4, MOBILE, SYN, 1, 1).packet());
    packet.origin = Origin::Background { leaves_after: 3 };
    station.handle_packet(Instant::ZERO, packet.clone(), &mut out);
    assert_eq!(out.take(), [packet]);
}

#[test]
fn station_settings_round_trip_and_reject_unknown_keys() {
    let config: StationConfig = settings("transit_marks = true\nradio = \"fixed\"").unwrap();
    assert_eq!(config, marks(Side::Fixed));
    let text = to_text(&config);
    assert_eq!(settings::<StationConfig>(&text).unwrap(), config);
    let wrong = |text| settings::<StationConfig>(text).unwrap_err().to_string();
    assert!(wrong("max_flows = 0").contains("from 1 to"), "{}", wrong("max_flows = 0"));
    assert!(wrong("marks = true").contains("transit_marks"), "{}", wrong("marks = true"));
}

#[test]
fn loss_report_is_reconfigurable_but_marks_are_not() {
    let mut net = Net::station(&marks(Side::Mobile));
    let mut change = |config: StationConfig| net.0.reconfigure(Instant::ZERO, 0, &config);
    change(StationConfig { loss_report: true, ..marks(Side::Mobile) }).unwrap();
    assert!(change(StationConfig::default()).unwrap_err().to_string().contains("transit_marks"));
    let (_, options) = net.pass(&Tcp::new(Ip::V4, MOBILE, ACK, 1, 1)).unwrap();
    assert!(loss_rate::find(&options).is_some());
}
