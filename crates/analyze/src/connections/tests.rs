use std::net::SocketAddr;

use airwire::segment::Flags;
use airwire::seq::Seq;

use super::*;
use crate::test_support::packet;

const SYN: Flags = Flags::SYN;
const ACK: Flags = Flags::ACK;
const FIN: Flags = Flags::FIN.with(Flags::ACK);
const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);

#[derive(Default)]
struct Packets {
    connections: Option<Connections>,
    problems: Problems,
    finished: Vec<Finished>,
    number: u64,
}

fn client(port: u16) -> SocketAddr {
    ([10, 0, 0, 1], port).into()
}

fn server() -> SocketAddr {
    ([10, 0, 0, 2], 80).into()
}

impl Packets {
    fn new(limits: Limits) -> Self {
        Self { connections: Some(Connections::new(Traces::None, limits)), ..Self::default() }
    }

    fn packet(&mut self, seconds: i64, ends: (SocketAddr, SocketAddr), flags: Flags, seq: u32, ack: u32) {
        self.data(seconds, ends, flags, (seq, ack), 0);
    }

    fn data(
        &mut self,
        seconds: i64,
        ends: (SocketAddr, SocketAddr),
        flags: Flags,
        (seq, ack): (u32, u32),
        len: u32,
    ) {
        self.number += 1;
        let packet = Packet {
            number: self.number,
            at: Timestamp(seconds * 1_000_000_000),
            seq: Seq(seq),
            ack: flags.contains(ACK).then_some(Seq(ack)),
            flags,
            len,
            ..packet(ends.0, ends.1)
        };
        let finished = &mut self.finished;
        self.connections
            .as_mut()
            .unwrap()
            .process(&packet, &mut self.problems, &mut |one| finished.push(one));
    }

    fn open(&mut self, at: i64, port: u16, iss: u32) {
        let to_server = (client(port), server());
        self.packet(at, to_server, SYN, iss, 0);
        self.packet(at, (server(), client(port)), SYN_ACK, 900, iss + 1);
        self.packet(at, to_server, ACK, iss + 1, 901);
    }

    fn close(&mut self, at: i64, port: u16, iss: u32) {
        let to_server = (client(port), server());
        self.packet(at, to_server, FIN, iss + 1, 901);
        self.packet(at, (server(), client(port)), FIN, 901, iss + 2);
        self.packet(at, to_server, ACK, iss + 2, 902);
    }

    /// Returns the numbers and packet counts of the finished connections.
    fn finished_packets(&self) -> Vec<(u64, u64)> {
        self.finished.iter().map(|one| (one.number, one.ended.findings.packets)).collect()
    }

    fn end(mut self) -> Vec<(u64, u64)> {
        let finished = &mut self.finished;
        self.connections.take().unwrap().finish(&mut |one| finished.push(one));
        self.finished_packets()
    }
}

#[test]
fn connection_includes_both_directions_but_not_other_ports() {
    let mut packets = Packets::new(Limits::default());
    packets.open(0, 1000, 5);
    packets.open(0, 1001, 5);
    packets.close(1, 1000, 5);
    assert_eq!(packets.end(), [(0, 6), (1, 3)]);
}

#[test]
fn reused_port_starts_new_connection() {
    let mut packets = Packets::new(Limits::default());
    packets.open(0, 1000, 5);
    packets.close(1, 1000, 5);
    packets.open(2, 1000, 70_000);
    assert_eq!(packets.finished_packets(), [(0, 6)]);
    // A retransmitted SYN does not start a third connection.
    packets.packet(3, (client(1000), server()), SYN, 70_000, 0);
    assert_eq!(packets.end(), [(0, 6), (1, 4)]);
}

#[test]
fn closed_connection_is_released_after_linger_time() {
    let mut packets = Packets::new(Limits { linger: 10_000_000_000, ..Limits::default() });
    packets.open(0, 1000, 5);
    packets.close(1, 1000, 5);
    packets.open(1, 1001, 5);
    let other_packets = |packets: &mut Packets, at: i64| {
        for _ in 0..=MIN_SWEEP {
            packets.packet(at, (client(1001), server()), ACK, 6, 901);
        }
    };
    other_packets(&mut packets, 11);
    assert_eq!(packets.finished_packets(), []);
    other_packets(&mut packets, 12);
    assert_eq!(packets.finished_packets(), [(0, 6)], "an idle connection is not closed");
    assert_eq!(packets.connections.as_ref().unwrap().open(), 1);
}

#[test]
fn crowding_evicts_closed_then_longest_idle_connections() {
    let mut packets = Packets::new(Limits { open: 16, ..Limits::default() });
    for port in 0..16 {
        packets.open(i64::from(port), port, 5);
    }
    packets.close(20, 7, 5);
    packets.open(21, 100, 5);
    // An eighth of 17 is 2: the ended connection, and the one that has been idle longest.
    assert_eq!(packets.finished_packets(), [(7, 6), (0, 3)]);
    assert_eq!(packets.problems.count(Problem::Crowded), 1);
    assert_eq!(packets.connections.as_ref().unwrap().open(), 15);
    assert_eq!(packets.end().len(), 17);
}

#[test]
fn short_connection_uses_under_1600_bytes() {
    let mut packets = Packets::new(Limits::default());
    for port in 0..100 {
        let (to_server, to_client) = ((client(port), server()), (server(), client(port)));
        packets.open(0, port, 5);
        packets.data(1, to_server, ACK, (6, 901), 200);
        packets.packet(1, to_client, ACK, 901, 206);
        for segment in 0..4 {
            packets.data(2, to_client, ACK, (901 + segment * 1000, 206), 1000);
        }
        for segments in [2, 4, 4, 4] {
            packets.packet(3, to_server, ACK, 206, 901 + segments * 1000);
        }
        packets.packet(4, to_server, FIN, 206, 4901);
        packets.packet(5, to_client, FIN, 4901, 207);
        packets.packet(5, to_server, ACK, 207, 4902);
    }
    let each = packets.connections.as_ref().unwrap().memory() / 100;
    assert!(each < 1600, "{each} bytes");
}

#[test]
fn memory_limit_ends_connections_gradually() {
    let limits = Limits { memory: 100_000, ..Limits::default() };
    let mut packets = Packets::new(limits);
    for port in 0..20 {
        packets.open(0, port, 5);
    }
    let mut most = 0;
    for segment in 0..200 {
        for port in 0..20 {
            packets.data(1, (server(), client(port)), ACK, (901 + segment * 1000, 6), 1000);
            most = most.max(packets.connections.as_ref().unwrap().memory());
        }
    }
    assert!((limits.memory / 2..limits.memory * 9 / 8).contains(&most), "{most}");
    assert!(packets.problems.count(Problem::Crowded) > 0);
    let not_followed = packets.problems.count(Problem::NotFollowed);
    let finished = packets.end();
    assert_eq!(finished.iter().map(|(_, packets)| packets).sum::<u64>() + not_followed, 20 * 203);
}

#[test]
fn new_connection_is_ignored_when_all_are_active() {
    let mut packets = Packets::new(Limits { open: 16, ..Limits::default() });
    for port in 0..16 {
        packets.open(0, port, 5);
    }
    packets.open(1, 100, 5);
    assert_eq!(packets.finished_packets(), []);
    assert_eq!(
        (packets.problems.count(Problem::NotFollowed), packets.problems.count(Problem::Crowded)),
        (3, 0)
    );
    // The 16 connections are unaffected.
    for port in 0..16 {
        packets.close(2, port, 5);
    }
    packets.open(3, 100, 5);
    assert_eq!(packets.finished_packets(), [(0, 6), (1, 6)]);
    assert_eq!(packets.end().last(), Some(&(16, 3)));
}
