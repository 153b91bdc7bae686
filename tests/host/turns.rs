//! In which order the connections of a host send.

use airwire::segment::{parse_ip, parse_tcp};
use airwire::time::Instant;

use crate::changes::Pair;

/// Which of two connections each segment is of that they send together.
fn order(turn: Option<usize>) -> String {
    let mut pair = Pair::new();
    if let Some(segments) = turn {
        pair.client.take_turns_of(segments);
    }
    let ids = [pair.connect(), pair.connect()];
    let ports = ids.map(|id| pair.client.connection(id).unwrap().local().port());
    for id in ids {
        assert_eq!(pair.client.write(Instant::ZERO, id, &[0; 1460 * 5]), Ok(1460 * 5));
    }
    let mut packet = Vec::new();
    let mut order = String::new();
    while pair.client.poll_packet(Instant::ZERO, &mut packet) {
        let port = parse_tcp(&parse_ip(&packet).unwrap()).unwrap().src.port();
        order.push(if port == ports[0] { 'a' } else { 'b' });
    }
    order
}

#[test]
fn connections_take_turns_segment_by_segment() {
    assert_eq!(order(None), "ababababab");
}

#[test]
fn a_turn_is_as_long_as_the_device_wants_it_and_no_longer_than_there_is_something_to_send() {
    assert_eq!(order(Some(3)), "aaabbbaabb");
    assert_eq!(order(Some(45)), "aaaaabbbbb");
}
