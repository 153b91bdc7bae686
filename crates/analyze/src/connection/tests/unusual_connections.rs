//! Unusual situations of real captures.

use super::*;

// ----- time -----

/// The sender waits repeatedly for its timer. Only a capture at the sender shows it: at the receiver, the
/// second copies look like new data.
fn repeated_timeouts(at_receiver: bool) -> DirectionFindings {
    let late = if at_receiver { 0.1 } else { 0.0 };
    let mut d = Diagram::cut();
    d.syn(-0.2 + late, Some(1460));
    d.syn_ack(-0.1, Some(1460));
    d.ack_of_a(-0.1 + late, 1);
    let mut start = 1;
    for round in 0..5 {
        let at = f64::from(round) * 1.1;
        // The first copy is lost on the path.
        if !at_receiver {
            d.data(at, start..start + 1000);
        }
        d.data(at + 1.0 + late, start..start + 1000);
        d.ack(at + 1.1, start + 1000);
        start += 1000;
    }
    d.findings()
}

#[test]
fn receiver_capture_leaves_waiting_time_undetermined() {
    let sender = repeated_timeouts(false);
    assert_eq!(sender.rtt_of, RttOf::RoundTrip);
    assert!(sender.time.waiting_for_timeout_seconds > 4.0, "{:?}", sender.time);
    assert_eq!(sender.time.undetermined_seconds, 0.0);
    let receiver = repeated_timeouts(true);
    assert_eq!(receiver.rtt_of, RttOf::ReceiverDelay);
    let TimeFindings { application_limited_seconds, network_limited_seconds, undetermined_seconds, .. } =
        receiver.time;
    assert_eq!((application_limited_seconds, network_limited_seconds), (None, None));
    assert!(undetermined_seconds > 4.0, "{:?}", receiver.time);
}

#[test]
fn dying_connection_counts_time_waiting_for_timeouts() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..3001);
    d.ack(0.1, 2001);
    for at in [0.6, 1.5, 3.0, 5.2, 9.3] {
        d.data(at, 2001..3001);
    }
    let found = d.findings();
    assert_eq!(found.retransmissions.timeouts, 5);
    let TimeFindings { total_seconds, waiting_for_timeout_seconds, longest_wait_for_timeout_seconds, .. } =
        found.time;
    assert!((total_seconds - 9.3).abs() < 1e-6, "{total_seconds}");
    assert!((waiting_for_timeout_seconds - 9.2).abs() < 1e-6, "{waiting_for_timeout_seconds}");
    assert!((longest_wait_for_timeout_seconds - 4.1).abs() < 1e-6);
    assert!((found.transfer_seconds - 9.3).abs() < 1e-6, "the transfer has not ended");
}

#[test]
fn zero_window_time_includes_end_of_capture() {
    let mut d = Diagram::with_window(2000);
    d.burst(0.0, 1..2001);
    d.ack(0.1, 2001).window = 0;
    for at in [0.5, 1.2, 2.5] {
        d.data(at, 2001..2002);
        d.ack(at + 0.1, 2001).window = 0;
    }
    let time = d.findings().time;
    assert!((time.zero_window_seconds - 2.5).abs() < 1e-6, "{time:?}");
}

/// The window closes and does not open again. The sender transmits probes until the capture ends.
#[test]
fn transfer_with_closed_window_lasts_until_the_end() {
    let mut d = Diagram::with_window(4000);
    d.burst(0.0, 1..4001);
    d.ack(0.0005, 4001).window = 0;
    for at in [0.4, 1.2, 2.8, 6.0, 12.4, 23.7] {
        d.data(at, 4000..4000);
        d.ack(at + 0.0001, 4001).window = 0;
    }
    let found = d.findings();
    assert!((found.transfer_seconds - 23.7001).abs() < 1e-6, "{}", found.transfer_seconds);
    assert!(found.goodput_bit_per_s < 1400.0, "{}", found.goodput_bit_per_s);
    assert!((found.time.waiting_seconds() - 23.6996).abs() < 1e-6, "{:?}", found.time);
    // If the window opens again, the transfer ends with its last data.
    d.ack(30.0, 4001);
    d.data(30.0, 4001..5001);
    d.ack(30.1, 5001);
    d.data(90.0, 5000..5001);
    d.ack(90.1, 5001);
    assert!((d.findings().transfer_seconds - 30.1).abs() < 1e-6);
}

#[test]
fn transfer_time_ends_when_all_data_acknowledged() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..2001);
    d.ack(0.1, 2001);
    d.fin(60.0, 2001);
    d.fin(61.0, 2001);
    let time = d.findings().time;
    assert!((time.total_seconds - 0.1).abs() < 1e-6, "{time:?}");
}

#[test]
fn rtt_is_correct_after_backward_clock_step() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..2001);
    d.ack(0.1, 2001);
    for round in 1..5 {
        let at = f64::from(round) - 1000.0;
        let start = 1 + round as u64 * 2000;
        d.burst(at, start..start + 2000);
        d.ack(at + 0.1, start + 2000);
    }
    let ended = d.ended().findings;
    assert_eq!(ended.clock_went_back, 1);
    let rtt = &ended.directions[0].rtt;
    assert_eq!((rtt.samples, rtt.min_seconds), (5, Some(0.1)));
}

// ----- handshakes -----

/// The other end still has an earlier connection and reports it. The client resets it, and its retransmitted
/// SYN is accepted (RFC 5961 §4).
#[test]
fn challenge_ack_before_handshake_keeps_one_connection() {
    let mut d = Diagram::cut();
    d.syn(0.0, Some(1460));
    d.packet(0.1, 1, 3_000_000_000, 2_500_000_000, 0);
    let reset = d.packet(0.1, 0, 2_500_000_000, 0, 0);
    (reset.flags, reset.ack) = (Flags::RST, None);
    d.syn(1.0, Some(1460));
    d.syn_ack(1.1, Some(1460));
    d.ack_of_a(1.1, 1);
    d.burst(1.1, 1..3001);
    d.ack(1.2, 3001);
    let mut connection = Connection::new(&d.packets[0], Keep::Findings);
    for packet in &d.packets {
        assert!(!connection.starts_new_connection(packet), "frame {}", packet.number);
        connection.process(packet);
    }
    let ended = connection.finish(0).findings;
    assert_eq!((ended.close, ended.handshake.seen), (Close::Open, HandshakeSeen::Whole));
    let found = &ended.directions[0];
    assert!(!found.window.unscaled);
    assert_eq!((found.acked_bytes, found.acked_unseen_bytes), (3000, 0));
    assert_eq!(ended.directions[1].retransmissions, Retransmissions::default());
}

#[test]
fn refused_then_accepted_syn_is_one_connection() {
    let mut d = Diagram::cut();
    d.syn(0.0, Some(1460));
    d.packet(0.1, 1, 3_000_000_000, 1, 0).flags = Flags::RST.with(Flags::ACK);
    d.syn(1.0, Some(1460));
    d.syn_ack(1.1, Some(1460));
    d.ack_of_a(1.1, 1);
    d.burst(1.1, 1..3001);
    d.ack(1.2, 3001);
    let ended = d.ended().findings;
    assert_eq!((ended.close, ended.handshake.seen), (Close::Open, HandshakeSeen::Whole));
    let found = &ended.directions[0];
    assert!(!found.window.unscaled);
    assert_eq!((found.acked_bytes, found.acked_unseen_bytes, found.retransmissions.packets), (3000, 0, 0));
}

/// Half of all sequence numbers are "ahead". An RST with an arbitrary number must not reset the connection.
#[test]
fn reset_with_arbitrary_number_keeps_handshake_open() {
    for seq in [5_000_000_u64, 1 << 30, (1 << 31) - 9] {
        let mut d = Diagram::cut();
        d.syn(0.0, Some(1460));
        d.packet(0.1, 0, seq, 1, 0).flags = Flags::RST;
        assert_eq!(d.ended().findings.close, Close::Open, "{seq}");
    }
}

/// A server answers each SYN with another ISN, for example with SYN cookies. As in Wireshark, it is one
/// connection.
#[test]
fn syn_ack_with_another_isn_keeps_one_connection() {
    for (uses_second, syn_again) in [(false, false), (true, false), (true, true)] {
        let mut d = Diagram::cut();
        d.syn(0.0, Some(1460));
        d.syn_ack(0.1, Some(1460));
        if syn_again {
            d.syn(1.0, Some(1460));
        }
        let other = Seq(ISNS[1]).at(3_000_000_000);
        d.syn_ack(1.1, Some(1460));
        d.packets.last_mut().unwrap().seq = other;
        let first = d.packets.len();
        d.ack_of_a(1.1, 1);
        d.burst(1.1, 1..3001);
        d.ack(1.2, 3001);
        d.packet(1.3, 1, 1, 3001, 500);
        d.packet(1.4, 0, 3001, 501, 0);
        for packet in &mut d.packets[first..] {
            // The two ends continue with the second ISN.
            if uses_second && packet.src.port() == 80 {
                packet.seq = packet.seq.at(3_000_000_000);
            } else if uses_second {
                packet.ack = packet.ack.map(|ack| ack.at(3_000_000_000));
            }
        }
        let mut connection = Connection::new(&d.packets[0], Keep::Findings);
        for packet in &d.packets {
            assert!(!connection.starts_new_connection(packet), "frame {}", packet.number);
            connection.process(packet);
        }
        let found = connection.finish(0).findings;
        assert_eq!(found.handshake.syns[1].unwrap().times, 2);
        let [a, b] = &found.directions;
        assert_eq!((a.acked_bytes, b.acked_bytes, b.acked_unseen_bytes), (3000, 500, 0), "{uses_second}");
        assert_eq!((b.retransmissions.packets, b.retransmissions.syns), (0, 0));
    }
}

#[test]
fn stray_syn_ack_does_not_disturb_open_connection() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..3001);
    d.ack(0.1, 3001);
    d.syn_ack(0.2, Some(1460));
    d.packets.last_mut().unwrap().seq = Seq(12345);
    d.burst(0.3, 3001..5001);
    d.ack(0.4, 5001);
    let [a, b] = d.ended().findings.directions;
    assert_eq!((a.acked_bytes, a.retransmissions.packets, b.retransmissions.syns), (5000, 0, 0));
}

/// The capture has missed the SYN of the next connection between the same ports. Wireshark counts both as one.
#[test]
fn syn_ack_of_next_connection_renumbers_both_directions() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..3001);
    d.ack(0.1, 3001);
    let first = d.packets.len();
    d.syn_ack(5.0, Some(1460));
    d.ack_of_a(5.1, 1);
    d.burst(5.1, 1..4001);
    d.ack(5.2, 4001);
    for distance in [70_000, 2_000_000_000] {
        let mut d = Diagram { packets: d.packets.clone(), ..d };
        for packet in &mut d.packets[first..] {
            packet.seq = packet.seq.at(distance);
            packet.ack = packet.ack.map(|ack| ack.at(distance));
        }
        let [a, b] = d.ended().findings.directions;
        assert_eq!((a.acked_bytes, a.acked_unseen_bytes, a.retransmissions.packets), (7000, 0, 0));
        assert_eq!(b.retransmissions.syns, 0);
    }
}

/// A SYN-ACK for an earlier SYN reaches the client after its new SYN.
#[test]
fn syn_ack_for_an_earlier_syn_is_ignored() {
    let mut d = Diagram::cut();
    d.syn(0.0, Some(1460));
    d.syn_ack(0.05, Some(1460));
    let late = d.packets.last_mut().unwrap();
    (late.seq, late.ack) = (Seq(500), Some(Seq(ISNS[0]).at((1 << 32) - 70_000)));
    d.syn_ack(0.1, Some(1460));
    d.ack_of_a(0.1, 1);
    d.burst(0.1, 1..2001);
    d.ack(0.2, 2001);
    let [a, b] = d.ended().findings.directions;
    assert_eq!((a.acked_bytes, a.acked_unseen_bytes, b.retransmissions.syns), (2000, 0, 0));
}

// ----- order -----

#[test]
fn data_captured_just_after_its_ack_is_reordered() {
    for timestamps in [false, true] {
        let mut d = if timestamps { Diagram::with_timestamps() } else { Diagram::new() };
        let mut start = 1;
        for round in 0..25 {
            let at = f64::from(round) * 0.2;
            d.data(at, start..start + 1000);
            let tsval = (at * 1000.0) as u32 + 10_000;
            let ack = d.ack(at + 0.1, start + 2000);
            if let Some(timestamps) = &mut ack.options.timestamps {
                timestamps.ecr = tsval;
            }
            let late = d.data(at + 0.1005, start + 1000..start + 2000);
            if let Some(timestamps) = &mut late.options.timestamps {
                timestamps.val = tsval;
            }
            start += 2000;
        }
        let found = d.findings();
        assert_eq!((found.retransmissions.packets, found.arrivals.out_of_order), (0, 25));
        assert_eq!((found.acked_bytes, found.acked_unseen_bytes), (50_000, 0));
    }
}

/// The capture missed the first copy. The second copy was sent after the time that the ACK echoes.
#[test]
fn timestamp_reveals_retransmission_captured_after_its_ack() {
    let mut d = Diagram::with_timestamps();
    d.data(0.0, 1..1001);
    d.ack(0.1, 2001);
    d.data(0.101, 1001..2001);
    let found = d.findings();
    assert_eq!((found.retransmissions.packets, found.arrivals.out_of_order), (1, 0));
    assert_eq!(found.acked_unseen_bytes, 1000);
}

#[test]
fn fast_retransmission_within_three_milliseconds_is_recognised() {
    // The capture is at the receiver, with an RTT of 1 ms to the sender.
    let mut d = Diagram::cut();
    d.syn(-0.001, Some(1460));
    d.syn_ack(-0.001, Some(1460));
    d.ack_of_a(0.0, 1);
    d.data(0.0, 1..1001);
    d.ack(0.0, 1001);
    d.burst(0.001, 2001..6001);
    for i in 0..4 {
        d.ack(0.001 + f64::from(i) * 1e-5, 1001);
    }
    for packet in &mut d.packets {
        packet.ip_id = None;
    }
    d.data(0.0021, 1001..2001).ip_id = None;
    d.ack(0.0021, 6001);
    let found = d.findings();
    assert_eq!((found.retransmissions.fast, found.arrivals.out_of_order), (1, 0));
}

#[test]
fn same_ip_id_one_second_later_is_retransmission() {
    for (later, expected) in [(0.02, (0, 1)), (1.0, (1, 0))] {
        let mut d = Diagram::new();
        let id = d.data(0.0, 1..1001).ip_id;
        // A different window field, so that the packets are not identical.
        let again = d.data(later, 1..1001);
        (again.ip_id, again.window) = (id, 59_999);
        let found = d.findings();
        let once = (found.retransmissions.packets, found.arrivals.duplicate - found.retransmissions.packets);
        assert_eq!(once, expected, "{later}");
    }
}

/// Packets merged by the capturing host lie just after an ACK that ends inside them.
#[test]
fn data_captured_after_its_partial_ack_is_reordered() {
    for (timestamps, acks) in [(false, 1), (true, 1), (false, 3), (true, 3)] {
        let mut d = if timestamps { Diagram::with_timestamps() } else { Diagram::new() };
        let mut start = 1;
        for round in 0..25 {
            let at = f64::from(round) * 0.2;
            d.data(at, start..start + 1000);
            let tsval = (at * 1000.0) as u32 + 10_000;
            // Several ACKs may end inside the packet.
            for ack in 1..=acks {
                let ack = d.ack(at + 0.1, start + 1000 + 400 * ack);
                if let Some(timestamps) = &mut ack.options.timestamps {
                    timestamps.ecr = tsval;
                }
            }
            let late = d.data(at + 0.1005, start + 1000..start + 4000);
            if let Some(timestamps) = &mut late.options.timestamps {
                timestamps.val = tsval;
            }
            d.ack(at + 0.15, start + 4000);
            start += 4000;
        }
        let found = d.findings();
        assert_eq!((found.retransmissions.packets, found.arrivals.out_of_order), (0, 25));
        assert_eq!((found.acked_bytes, found.acked_unseen_bytes), (100_000, 0));
    }
}

// ----- why it was sent again -----

#[test]
fn resegmented_data_after_timeout_belongs_to_timeout() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..5001);
    d.sack(0.1, 1, &[4001..5001]);
    // Pieces of 400 bytes replace segments of 1000 bytes, without an ACK in between.
    for start in (1..4001).step_by(400) {
        d.data(1.0, start..start + 400);
    }
    d.ack(1.1, 5001);
    let Retransmissions { packets, fast, timeout, timeouts, .. } = d.findings().retransmissions;
    assert_eq!((packets, fast, timeout, timeouts), (10, 0, 10, 1));
}

#[test]
fn immediate_segments_into_closed_window_are_not_probes() {
    let mut d = Diagram::with_window(2000);
    d.burst(0.0, 1..2001);
    d.ack(0.1, 2001).window = 0;
    d.burst(0.1001, 2001..5001);
    assert_eq!(d.findings().retransmissions.window_probes, 0);
    // A packet of any size that is sent some time later is a probe.
    let mut d = Diagram::with_window(2000);
    d.burst(0.0, 1..2001);
    d.ack(0.1, 2001).window = 0;
    d.data(0.5, 2001..3001);
    assert_eq!(d.findings().retransmissions.window_probes, 1);
}

#[test]
fn retransmission_of_acknowledged_data_is_spurious() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..4001);
    d.ack(0.1, 4001);
    d.data(0.3, 1..1001);
    d.data(0.3, 3001..4001);
    let Retransmissions { packets, spurious, .. } = d.findings().retransmissions;
    assert_eq!((packets, spurious.packets, spurious.by_ack), (2, 2, 2));
    let [a, _] = d.ended().traces.unwrap();
    assert_eq!(a.segments.last().unwrap().fate, Fate::Spurious { proof: Proof::Acked });
}

// ----- holes -----

#[test]
fn acknowledged_but_uncaptured_bytes_are_counted() {
    let mut d = Diagram::new();
    d.data(0.0, 1..1001);
    d.data(0.0, 3001..4001);
    d.data(0.0, 6001..7001);
    // One segment is acknowledged partially. Data is outstanding after the first two ACKs.
    d.ack(0.1, 3501);
    d.ack(0.2, 6501);
    d.ack(0.3, 7001);
    let found = d.findings();
    assert_eq!((found.acked_bytes, found.acked_unseen_bytes), (7000, 4000));
}

#[test]
fn pure_ack_sequence_number_reveals_missed_data() {
    let mut d = Diagram::new();
    d.data(0.0, 1..1001);
    d.packet(0.01, 0, 3001, 1, 0);
    // One of the two missing segments arrives late.
    d.data(0.011, 1001..2001);
    d.ack(0.1, 3001);
    let found = d.findings();
    assert_eq!((found.acked_bytes, found.acked_unseen_bytes), (3000, 1000));
    assert_eq!((found.arrivals.out_of_order, found.retransmissions.packets), (1, 0));
}

/// The second hole exceeds half of the sequence number space.
#[test]
fn sequence_hole_of_gigabytes_is_not_retransmission() {
    for hole in [1_200_000_000, 3_000_000_000_u64] {
        let mut d = Diagram::cut();
        d.burst(0.0, 1..20_001);
        for round in 0..20 {
            let start = hole + round * 5000;
            d.burst(5.0 + round as f64, start..start + 5000);
        }
        let found = d.findings();
        assert_eq!(found.retransmissions.packets, 0, "{hole}");
    }
}
