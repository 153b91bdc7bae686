//! Each class of packet, in the smallest diagram that shows it.

use super::*;

fn retransmission_classes(findings: &DirectionFindings) -> [u64; 4] {
    let Retransmissions { fast, timeout, tail, unexplained, .. } = findings.retransmissions;
    [fast, timeout, tail, unexplained]
}

#[test]
fn retransmission_after_three_duplicate_acks_is_fast() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..5001);
    d.dupacks(0.100, 1, 4);
    d.data(0.1025, 1..1001);
    d.ack(0.2025, 5001);
    let found = d.findings();
    assert_eq!(retransmission_classes(&found), [1, 0, 0, 0]);
    assert_eq!((found.retransmissions.fast_retransmits, found.acks.duplicate), (1, 4));
    let traces = d.ended().traces.unwrap();
    let resent = traces[0].segments.iter().find(|segment| segment.sending == Sending::Fast).unwrap();
    assert_eq!((resent.start, resent.end, resent.dupacks, resent.in_flight), (1, 1001, 4, 4));
}

/// RFC 8985 §2: the retransmission has arrived, so segments sent earlier are lost. Duplicate ACKs
/// do not occur.
#[test]
fn rack_loss_detection_counts_as_fast_retransmission() {
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
    assert_eq!(retransmission_classes(&found), [2, 0, 0, 0]);
}

/// The converse: the segment that arrived may have been sent earlier.
#[test]
fn retransmission_of_later_sent_segment_is_not_fast() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..3001);
    d.ack(0.100, 3001);
    d.data(0.101, 3001..4001);
    d.data(0.102, 4001..5001);
    d.ack(0.201, 4001);
    d.data(0.2011, 4001..5001);
    d.ack(0.202, 5001);
    let [fast, timeout, tail, unexplained] = retransmission_classes(&d.findings());
    assert_eq!((fast, timeout, tail + unexplained), (0, 0, 1));
}

/// SACK has shown that the original arrived. The ACK that covers it later is not evidence that the
/// retransmission arrived, and that segments sent before the retransmission are lost.
#[test]
fn ack_of_sacked_original_does_not_acknowledge_retransmission() {
    let mut d = Diagram::new();
    d.data(0.0, 1..1001);
    d.ack(0.100, 1001);
    d.burst(0.100, 1001..3001);
    d.data(0.200, 3001..4001);
    d.data(0.250, 2001..3001);
    d.sack(0.270, 1001, &[2001..3001]);
    d.ack(0.360, 3001);
    d.data(0.3605, 3001..4001);
    d.ack(0.460, 4001);
    assert_eq!(retransmission_classes(&d.findings()), [0, 0, 0, 2]);
}

#[test]
fn go_back_n_after_silence_counts_one_timeout() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..4001);
    d.data(1.0, 1..1001);
    d.ack(1.1, 1001);
    d.burst(1.1, 1001..3001);
    d.ack(1.2, 4001);
    let found = d.findings();
    assert_eq!(retransmission_classes(&found), [0, 3, 0, 0]);
    assert_eq!(
        (found.retransmissions.timeouts, found.retransmissions.timeouts_by_dupacks),
        (1, [1, 0, 0, 0])
    );
    assert_eq!(found.time.waiting_for_timeout_seconds, 1.0);
    assert_eq!(found.sender.after_timeout, AfterTimeout::GoBackN);
    assert_eq!(d.ended().traces.unwrap()[0].idle.len(), 1);
}

#[test]
fn backed_off_timeouts_count_individually() {
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

/// P0 §4.1: with two duplicate ACKs and three segments outstanding, a third duplicate ACK cannot arrive.
#[test]
fn timeout_after_all_possible_dupacks_is_failed_dupack() {
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
        "a third duplicate ACK was still possible"
    );
    let mut d = Diagram::new();
    d.burst(0.0, 1..2001);
    d.dupacks(0.1, 1, 2);
    d.data(1.0, 1..1001);
    assert_eq!(d.findings().retransmissions.failed_dupack, 0, "more duplicate ACKs than segments");
}

/// Without SACK, a NewReno sender may answer a partial ACK late. After a round trip, only the timer is left.
#[test]
fn late_repair_after_partial_ack_is_timeout() {
    for (at, classes) in [(0.3225, [2, 0, 0, 0]), (0.4025, [1, 1, 0, 0])] {
        let mut d = Diagram::new();
        for syn in &mut d.packets[..2] {
            syn.options.sack_permitted = false;
        }
        d.data(0.0, 1..1001);
        d.ack(0.1, 1001);
        d.burst(0.1, 1001..9001);
        d.dupacks(0.2, 1001, 3);
        d.data(0.2025, 1001..2001);
        d.ack(0.3025, 3001);
        d.data(at, 3001..4001);
        assert_eq!(retransmission_classes(&d.findings()), classes, "{at} s");
    }
}

#[test]
fn retransmission_of_sack_hole_is_fast() {
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
    assert_eq!(retransmission_classes(&found), [2, 0, 0, 0]);
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
fn partial_ack_distinguishes_newreno_from_reno_and_tahoe() {
    let mut newreno = partial_ack();
    newreno.data(0.2026, 3001..4001);
    newreno.ack(0.3026, 8001);
    let found = newreno.findings();
    assert_eq!((found.retransmissions.fast_retransmits, retransmission_classes(&found)), (1, [2, 0, 0, 0]));
    assert_eq!(found.sender.partial_acks, PartialAcks::NewReno);

    let mut reno = partial_ack();
    reno.dupacks(0.21, 3001, 3);
    reno.data(0.2125, 3001..4001);
    reno.ack(0.3125, 8001);
    let found = reno.findings();
    assert_eq!((found.retransmissions.fast_retransmits, retransmission_classes(&found)), (2, [2, 0, 0, 0]));
    assert_eq!(found.sender.partial_acks, PartialAcks::Reno);

    let mut tahoe = partial_ack();
    tahoe.burst(0.2026, 3001..5001);
    tahoe.ack(0.3026, 8001);
    let found = tahoe.findings();
    assert_eq!(retransmission_classes(&found), [3, 0, 0, 0]);
    assert_eq!(found.sender.partial_acks, PartialAcks::Tahoe);
}

#[test]
fn last_segment_before_timeout_is_tail_probe() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..5001);
    d.ack(0.1, 3001);
    d.data(0.32, 4001..5001);
    d.ack(0.42, 5001);
    assert_eq!(retransmission_classes(&d.findings()), [0, 0, 1, 0]);
    assert_eq!(d.sendings(), [(4001, 5001, Sending::Tail)]);
}

#[test]
fn old_timestamp_echo_proves_spurious_retransmission() {
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
    assert_eq!(resent.fate, Fate::Spurious { proof: Proof::Timestamp });
}

/// The ACK echoes the timestamp of the first segment that it covers (RFC 7323 §4.3). It proves nothing about
/// the next segment.
#[test]
fn delayed_ack_does_not_prove_second_segment_spurious() {
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
fn dsack_proves_spurious_retransmission() {
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

/// RFC 2883 §4: a D-SACK may end at the ACK number.
#[test]
fn dsack_of_last_segment_proves_spurious_retransmission() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..2001);
    d.ack(0.1, 1001);
    d.data(1.0, 1001..2001);
    d.ack(1.01, 2001);
    d.sack(1.1, 2001, &[1001..2001]);
    let found = d.findings();
    assert_eq!((found.retransmissions.spurious.by_dsack, found.acks.dsacks), (1, 1));
}

/// An outage with this number of timeouts. The first segment has arrived, and its ACK is lost. If
/// `others_lost`, the other segments are lost too: only the first retransmission is spurious, and the
/// timeouts are not.
fn outage(timeouts: u32, others_lost: bool, timestamps: bool) -> Spurious {
    let mut d = if timestamps { Diagram::with_timestamps() } else { Diagram::new() };
    d.burst(0.0, 1..5001);
    for n in 0..timeouts {
        d.data(f64::from(1 << n), 1..1001);
    }
    let end = f64::from(1 << (timeouts - 1)) + 0.1;
    if others_lost {
        d.sack(end, 1001, &[1..1001]);
        d.burst(end, 1001..3001);
        d.ack(end + 0.1, 3001);
        d.burst(end + 0.1, 3001..5001);
        d.ack(end + 0.2, 5001);
    } else {
        d.sack(end, 5001, &[1..1001]);
    }
    d.burst(end + 0.3, 5001..6001);
    d.ack(end + 0.4, 6001);
    let found = d.findings().retransmissions;
    assert_eq!(found.timeouts, u64::from(timeouts));
    found.spurious
}

/// The D-SACK may arrive after the recovery.
#[test]
fn late_dsack_does_not_prove_outage_timeout_spurious() {
    for (lost, expected) in [(true, 0), (false, 1)] {
        let mut d = Diagram::new();
        d.burst(0.0, 1..3001);
        d.data(1.0, 1..1001);
        if lost {
            d.ack(1.1, 1001);
            d.burst(1.1, 1001..3001);
            d.ack(1.2, 3001);
        } else {
            d.ack(1.01, 3001);
        }
        d.sack(1.25, 3001, &[1..1001]);
        let spurious = d.findings().retransmissions.spurious;
        assert_eq!((spurious.by_dsack, spurious.timeouts), (1, expected));
    }
}

#[test]
fn loss_of_other_segments_makes_timeout_genuine() {
    for timeouts in [1, 3] {
        for timestamps in [false, true] {
            let lost = outage(timeouts, true, timestamps);
            assert_eq!((lost.packets, lost.by_dsack, lost.timeouts), (1, 1, 0), "{timeouts}, {timestamps}");
            let all_arrived = outage(timeouts, false, timestamps);
            assert_eq!((all_arrived.packets, all_arrived.timeouts), (1, 1), "{timeouts}, {timestamps}");
        }
    }
}

#[test]
fn window_probes_and_keep_alives_are_distinguished() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..2001);
    d.ack(0.1, 2001).window = 0;
    d.data(0.5, 2001..2002);
    d.ack(0.6, 2001).window = 0;
    // Linux sends probes with an old sequence number and without data.
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
fn identical_packet_is_copy_not_retransmission() {
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
fn late_network_duplicate_is_not_retransmission() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..6001);
    let mut copy = d.packets[4].clone();
    copy.at.0 += 300_000_000;
    d.packets.push(copy);
    let found = d.findings();
    assert_eq!((found.retransmissions.packets, found.arrivals.duplicate), (0, 1));
}

#[test]
fn limited_transmit_is_detected_on_first_dupacks() {
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
