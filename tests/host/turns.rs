//! The order in which the connections of a host send.

use airtcp_testkit::pieces::split;
use airwire::piece::Piece;
use airwire::segment::parse;
use airwire::time::Instant;

use crate::changes::Pair;

/// Returns the order in which two connections send `segments` segments each. `poll` takes the packets from
/// the host.
fn order(segments: usize, poll: impl Fn(&mut Pair) -> Vec<Vec<u8>>) -> String {
    let mut pair = Pair::new();
    let ids = [pair.connect(), pair.connect()];
    let ports = ids.map(|id| pair.client.connection(id).unwrap().local().port());
    for id in ids {
        let octets = vec![0; 1460 * segments];
        assert_eq!(pair.client.write(Instant::ZERO, id, &octets), Ok(octets.len()));
    }
    let mut order = String::new();
    loop {
        let packets = poll(&mut pair);
        if packets.is_empty() {
            return order;
        }
        for packet in packets {
            let port = parse(&packet).unwrap().src.port();
            order.push(if port == ports[0] { 'a' } else { 'b' });
        }
        order.push(' ');
    }
}

fn packet(pair: &mut Pair) -> Vec<Vec<u8>> {
    let mut packet = Vec::new();
    if pair.client.poll_packet(Instant::ZERO, &mut packet) { vec![packet] } else { Vec::new() }
}

fn piece(pair: &mut Pair) -> Vec<Vec<u8>> {
    let mut piece = Piece::default();
    if pair.client.poll_piece(Instant::ZERO, &mut piece) { split(&piece) } else { Vec::new() }
}

#[test]
fn connections_take_turns_segment_by_segment() {
    assert_eq!(order(3, packet), "a b a b a b ");
}

#[test]
fn connections_take_turns_piece_by_piece() {
    assert_eq!(order(5, piece), "aaaaa bbbbb ");
}
