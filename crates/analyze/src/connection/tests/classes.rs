//! Each kind of packet, in the smallest diagram that shows it.

use super::*;

fn again(findings: &DirectionFindings) -> [u64; 4] {
    let Retransmissions { fast, timeout, tail, unexplained, .. } = findings.retransmissions;
    [fast, timeout, tail, unexplained]
}

#[test]
fn three_duplicate_acks_bring_a_fast_retransmit() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..5001);
    d.dupacks(0.100, 1, 4);
    d.data(0.1025, 1..1001);
    d.ack(0.2025, 5001);
    let found = d.findings();
    assert_eq!(again(&found), [1, 0, 0, 0]);
    assert_eq!((found.retransmissions.fast_retransmits, found.acks.duplicate), (1, 4));
    let traces = d.ended().traces.unwrap();
    let resent = traces[0].segments.iter().find(|segment| segment.sending == Sending::Fast).unwrap();
    assert_eq!((resent.start, resent.end, resent.dupacks, resent.in_flight), (1, 1001, 4, 4));
}

/// RFC 8985 §2: its retransmission has come, so what left before that is lost. There is no duplicate ACK.
#[test]
fn what_left_before_something_that_has_arrived_is_sent_again_at_once() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..6001);
    d.sack(0.100, 1, &[1001..2001]);
    d.sack(0.101, 1, &[1001..3001]);
    d.sack(0.102, 1, &[1001..4001]);
    d.data(0.1025, 6001..7001);
    d.data(0.103, 1..1001);
    d.sack(0.104, 1, &[1001..6001]);
    d.ack(0.204, 6001);
    d.data(0.2041, 6001..7001);
    d.ack(0.304, 7001);
    let found = d.findings();
    assert_eq!(again(&found), [2, 0, 0, 0]);
}

/// The same, but what has arrived may have left before it.
#[test]
fn what_left_after_something_that_has_arrived_is_not_to_be_sent_again() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..3001);
    d.ack(0.100, 3001);
    d.data(0.101, 3001..4001);
    d.data(0.102, 4001..5001);
    d.ack(0.201, 4001);
    d.data(0.2011, 4001..5001);
    d.ack(0.202, 5001);
    let [fast, timeout, tail, unexplained] = again(&d.findings());
    assert_eq!((fast, timeout, tail + unexplained), (0, 0, 1));
}

#[test]
fn silence_and_then_the_first_segment_again_is_a_timeout_and_the_rest_follows_from_it() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..4001);
    d.data(1.0, 1..1001);
    d.ack(1.1, 1001);
    d.burst(1.1, 1001..3001);
    d.ack(1.2, 4001);
    let found = d.findings();
    assert_eq!(again(&found), [0, 3, 0, 0]);
    assert_eq!(
        (found.retransmissions.timeouts, found.retransmissions.timeouts_by_dupacks),
        (1, [1, 0, 0, 0])
    );
    assert_eq!(found.time.waiting_for_timeout_seconds, 1.0);
    assert_eq!(found.sender.after_timeout, AfterTimeout::GoBackN);
    assert_eq!(d.ended().traces.unwrap()[0].idle.len(), 1);
}

#[test]
fn timeouts_back_off_and_each_is_one() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..2001);
    for at in [1.0, 3.0, 7.0] {
        d.data(at, 1..1001);
    }
    d.ack(7.1, 2001);
    let found = d.findings();
    assert_eq!((found.retransmissions.timeouts, found.retransmissions.timeout), (3, 3));
    assert_eq!(found.time.longest_wait_for_timeout_seconds, 4.0);
    assert_eq!(found.time.waiting_for_timeout_seconds, 7.0);
}

/// P0 §4.1: two duplicate ACKs, three segments outstanding; there will never be a third one.
#[test]
fn a_timeout_after_all_duplicate_acks_that_can_come_is_a_failed_dupack() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..3001);
    d.dupacks(0.1, 1, 2);
    d.data(1.0, 1..1001);
    d.ack(1.1, 3001);
    let found = d.findings().retransmissions;
    assert_eq!((found.timeouts_by_dupacks, found.failed_dupack), ([0, 0, 1, 0], 1));
    let mut d = Diagram::new();
    d.burst(0.0, 1..4001);
    d.dupacks(0.1, 1, 2);
    d.data(1.0, 1..1001);
    let found = d.findings().retransmissions;
    assert_eq!(
        (found.timeouts_by_dupacks, found.failed_dupack),
        ([0, 0, 1, 0], 0),
        "one more could have come"
    );
}

#[test]
fn a_hole_that_sack_shows_is_reason_enough() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..8001);
    d.sack(0.100, 1, &[1001..2001]);
    d.sack(0.101, 1, &[1001..3001]);
    d.sack(0.102, 1, &[4001..5001, 1001..3001]);
    d.data(0.102, 1..1001);
    d.sack(0.103, 1, &[4001..6001, 1001..3001]);
    d.data(0.103, 3001..4001);
    d.ack(0.203, 8001);
    let found = d.findings();
    assert_eq!(again(&found), [2, 0, 0, 0]);
    assert_eq!((found.retransmissions.fast_retransmits, found.acks.sack_blocks), (1, 6));
    assert_eq!(found.sender.partial_acks, PartialAcks::Sack);
}

fn partial_ack() -> Diagram {
    let mut d = Diagram::new();
    d.burst(0.0, 1..8001);
    d.dupacks(0.1, 1, 3);
    d.data(0.1025, 1..1001);
    d.ack(0.2025, 3001);
    d
}

#[test]
fn a_partial_ack_tells_newreno_from_reno_and_tahoe() {
    let mut newreno = partial_ack();
    newreno.data(0.2026, 3001..4001);
    newreno.ack(0.3026, 8001);
    let found = newreno.findings();
    assert_eq!((found.retransmissions.fast_retransmits, again(&found)), (1, [2, 0, 0, 0]));
    assert_eq!(found.sender.partial_acks, PartialAcks::NewReno);

    let mut reno = partial_ack();
    reno.dupacks(0.21, 3001, 3);
    reno.data(0.2125, 3001..4001);
    reno.ack(0.3125, 8001);
    let found = reno.findings();
    assert_eq!((found.retransmissions.fast_retransmits, again(&found)), (2, [2, 0, 0, 0]));
    assert_eq!(found.sender.partial_acks, PartialAcks::Reno);

    let mut tahoe = partial_ack();
    tahoe.burst(0.2026, 3001..5001);
    tahoe.ack(0.3026, 8001);
    let found = tahoe.findings();
    assert_eq!(again(&found), [3, 0, 0, 0]);
    assert_eq!(found.sender.partial_acks, PartialAcks::Tahoe);
}

#[test]
fn the_last_segment_before_the_timer_is_a_tail_probe() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..5001);
    d.ack(0.1, 3001);
    d.data(0.32, 4001..5001);
    d.ack(0.42, 5001);
    assert_eq!(again(&d.findings()), [0, 0, 1, 0]);
    assert_eq!(d.sendings(), [(4001, 5001, Sending::Tail)]);
}

#[test]
fn a_timestamp_from_before_a_retransmission_proves_it_spurious() {
    let mut d = Diagram::with_timestamps();
    d.burst(0.0, 1..2001);
    let original = d.packets.last().unwrap().options.timestamps.unwrap().val;
    d.data(1.0, 1..1001);
    let late = d.ack(1.05, 1001);
    late.options.timestamps.as_mut().unwrap().ecr = original;
    d.ack(1.1, 2001);
    let ended = d.ended();
    let spurious = &ended.findings.directions[0].retransmissions.spurious;
    assert_eq!((spurious.packets, spurious.by_timestamp, spurious.timeouts), (1, 1, 1));
    let text = ended.findings.to_string();
    assert!(text.contains("1 packets (1 by timestamp)"), "{text}");
    let [a, _] = ended.traces.unwrap();
    let resent = a.segments.iter().find(|segment| segment.sending == Sending::Timeout).unwrap();
    assert_eq!(resent.fate, Fate::Unneeded { proof: Proof::Timestamp });
}

/// The echo is of the first segment that the ACK covers (RFC 7323 §4.3): of the next one it proves nothing.
#[test]
fn a_delayed_ack_does_not_accuse_the_second_segment() {
    let mut d = Diagram::with_timestamps();
    d.burst(0.0, 1..3001);
    d.data(1.0, 1..1001);
    let resent = d.packets.last().unwrap().options.timestamps.unwrap().val;
    d.ack(1.1, 1001);
    d.data(1.1, 1001..2001);
    let first = d.packets.last().unwrap().options.timestamps.unwrap().val;
    d.data(1.11, 2001..3001);
    d.ack(1.2, 3001).options.timestamps.as_mut().unwrap().ecr = first;
    assert!(first > resent);
    assert_eq!(d.findings().retransmissions.spurious.packets, 0);
}

#[test]
fn a_dsack_proves_it_too() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..5001);
    d.dupacks(0.1, 1, 3);
    d.data(0.1025, 1..1001);
    d.ack(0.11, 5001);
    d.sack(0.2025, 5001, &[1..1001]);
    let found = d.findings();
    let Spurious { packets, by_dsack, fast_retransmits, .. } = found.retransmissions.spurious;
    assert_eq!((packets, by_dsack, fast_retransmits, found.acks.dsacks), (1, 1, 1, 1));
}

#[test]
fn probes_of_a_closed_window_and_of_an_idle_connection_are_told_apart() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..2001);
    d.ack(0.1, 2001).window = 0;
    d.data(0.5, 2001..2002);
    d.ack(0.6, 2001).window = 0;
    // Linux asks with an old octet, and without any.
    d.data(1.5, 2000..2000);
    d.ack(1.6, 2001).window = 0;
    d.ack(2.0, 2001);
    d.burst(2.0, 2001..3001);
    d.ack(2.1, 3001);
    d.data(9000.0, 3000..3001);
    d.ack(9000.1, 3001);
    d.data(9010.0, 3000..3000);
    d.ack(9010.1, 3001);
    let found = d.findings();
    let Retransmissions { packets, window_probes, keep_alives, .. } = found.retransmissions;
    assert_eq!((packets, window_probes, keep_alives), (0, 2, 2));
    assert_eq!((found.window.zero_windows, found.acks.duplicate), (1, 0));
    assert!((found.time.zero_window_seconds - 1.9).abs() < 1e-9, "{:?}", found.time);
    assert_eq!(found.acked_bytes, 3000);
}

#[test]
fn the_same_packet_twice_is_a_copy_and_nothing_was_sent_again() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..3001);
    let mut copy = d.packets.last().unwrap().clone();
    copy.at.0 += 200_000;
    d.packets.push(copy);
    d.ack(0.1, 3001);
    let copy = d.packets.last().unwrap().clone();
    d.packets.push(copy);
    let ended = d.ended();
    assert_eq!(ended.findings.copies, 2);
    let found = &ended.findings.directions[0];
    assert_eq!((found.retransmissions.packets, found.acks.duplicate, found.data_packets), (0, 0, 3));
}

#[test]
fn what_the_network_duplicates_late_is_no_retransmission_either() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..6001);
    let mut copy = d.packets[4].clone();
    copy.at.0 += 300_000_000;
    d.packets.push(copy);
    let found = d.findings();
    assert_eq!((found.retransmissions.packets, found.arrivals.duplicate), (0, 1));
}

#[test]
fn limited_transmit_shows_on_the_first_duplicate_acks() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..5001);
    d.ack(0.100, 1);
    d.data(0.100, 5001..6001);
    d.ack(0.101, 1);
    d.data(0.101, 6001..7001);
    d.ack(0.102, 1);
    d.data(0.102, 1..1001);
    assert_eq!(d.findings().sender.limited_transmit, Evidence::Yes);
    let mut d = Diagram::new();
    d.burst(0.0, 1..5001);
    d.dupacks(0.1, 1, 3);
    d.data(0.102, 1..1001);
    assert_eq!(d.findings().sender.limited_transmit, Evidence::No);
}
