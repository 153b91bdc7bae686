//! Tests of drop lists.

use super::*;

fn list(items: &[&str]) -> Loss {
    loss(&LossConfig::list(items.iter().map(|item| item.parse().unwrap()).collect()), 1)
}

#[test]
fn listed_segments_are_lost_across_sequence_wrap() {
    for is_v4 in [true, false] {
        let isn = u32::MAX - 49_500;
        let segment = |n: u32| Tcp { is_v4, seq: isn.wrapping_add(1 + (n - 1) * 1000), ..DATA }.bytes();
        let mut list = list(&["segment 50", "segment 50 retransmission 1", "segment 52 retransmission 2"]);
        let syn = Tcp { is_v4, seq: isn, flags: Flags::SYN, payload: 0, ..DATA };
        assert!(pass(&mut list, syn.bytes()));
        for n in 1..=100 {
            assert_eq!(pass(&mut list, segment(n)), n != 50, "segment {n}");
        }
        assert!(pass(&mut list, segment(49)));
        assert!(!pass(&mut list, segment(50)), "the first retransmission");
        assert!(pass(&mut list, segment(50)), "the second retransmission");
        assert!(pass(&mut list, segment(51)), "the next segment is not lost");
        assert!(pass(&mut list, segment(52)));
        assert!(!pass(&mut list, segment(52)));
        assert!(pass(&mut list, segment(52)));
        assert!(pass(&mut list, segment(101)));
    }
}

#[test]
fn retransmission_is_identified_by_first_byte() {
    let mut list = list(&["segment 2 retransmission 1", "segment 5"]);
    for n in 0..4 {
        assert!(pass(&mut list, data(n * 1000)));
    }
    // The second half of segment 2 alone does not count as a retransmission of segment 2. A packet with both
    // segments counts.
    assert!(pass(&mut list, Tcp { seq: 1500, payload: 500, ..DATA }.bytes()));
    assert!(!pass(&mut list, Tcp { seq: 0, payload: 2000, ..DATA }.bytes()));
    // A retransmission with additional new data is not a new segment, but its new data counts as sent.
    assert!(pass(&mut list, Tcp { seq: 3000, payload: 1500, ..DATA }.bytes()));
    assert!(!pass(&mut list, data(4500)));
}

#[test]
fn segments_are_counted_per_connection() {
    let mut list = list(&["segment 2"]);
    let other = |seq| Tcp { port: DATA.port + 1, seq, ..DATA }.bytes();
    assert!(pass(&mut list, data(5000)));
    assert!(pass(&mut list, other(100)));
    assert!(!pass(&mut list, data(6000)));
    assert!(!pass(&mut list, other(1100)));

    let syn = |seq| Tcp { seq, flags: Flags::SYN, payload: 0, ..DATA }.bytes();
    assert!(pass(&mut list, syn(90_000)));
    assert!(pass(&mut list, data(90_001)));
    assert!(pass(&mut list, syn(90_000)), "a retransmitted SYN does not start a new connection");
    assert!(!pass(&mut list, data(91_001)));
}

#[test]
fn packets_and_acks_are_counted_separately() {
    let mut list = list(&["packets 2-3", "packet 7", "ack 3"]);
    // The third ACK is the sixth packet. Packets other than IP are counted as packets.
    let sent = [data(0), ack(), vec![0xff], ack(), data(1000), ack(), data(2000), ack(), vec![]];
    let lost: Vec<usize> =
        (1..).zip(sent).filter(|(_, bytes)| !pass(&mut list, bytes.clone())).map(|(n, _)| n).collect();
    assert_eq!(lost, [2, 3, 6, 7]);
}

#[test]
fn drop_list_tracks_bounded_number_of_flows() {
    let mut list = list(&["segment 2"]);
    const LAST: u16 = 5000;
    for port in 0..=LAST {
        assert!(pass(&mut list, Tcp { port, ..DATA }.bytes()));
    }
    assert_eq!(list.stats()["flows"], 4096);
    // The newest flows are still known.
    assert!(!pass(&mut list, Tcp { port: LAST, seq: 1000, ..DATA }.bytes()));
}

#[test]
fn fragments_are_not_counted_as_segments() {
    let mut list = list(&["segment 1"]);
    let mut fragment = data(0);
    fragment[7] = 100;
    assert!(pass(&mut list, fragment));
    assert!(!pass(&mut list, data(0)));
}

#[test]
fn drop_list_entries_round_trip() {
    for text in [
        "segment 50",
        "segment 50 retransmission 1",
        "segments 50-53",
        "packet 7",
        "packets 100-110",
        "ack 3",
    ] {
        assert_eq!(text.parse::<DropItem>().unwrap().to_string(), text);
    }
    for text in
        ["segment", "segment 0", "packet x", "packets 9-3", "ack 3 retransmission 1", "fin 1", "7", ""]
    {
        let error = text.parse::<DropItem>().unwrap_err().to_string();
        assert!(error.contains(&format!("`{text}` does not name a packet")), "{error}");
    }
}
