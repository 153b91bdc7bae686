//! Imperfect captures: late starts, other capture points, holes, reordering and garbage.

use super::*;

/// A capture at `B`: packets are captured at their arrival, and are acknowledged immediately.
fn at_receiver() -> Diagram {
    let mut d = Diagram::cut();
    d.syn(-0.1, Some(1460));
    d.syn_ack(-0.1, Some(1460));
    d.ack_of_a(0.0, 1);
    d
}

#[test]
fn handshake_reveals_capture_point() {
    let sender = Diagram::new().ended().findings;
    assert_eq!(sender.capture_at, CapturePoint::End { end: 0 });
    assert_eq!(sender.directions[0].rtt_of, RttOf::RoundTrip);
    assert_eq!(sender.handshake.rtt_seconds, Some(0.1));
    let receiver = at_receiver().ended().findings;
    assert_eq!(receiver.capture_at, CapturePoint::End { end: 1 });
    assert_eq!(receiver.directions[0].rtt_of, RttOf::ReceiverDelay);
    let mut between = Diagram::cut();
    between.syn(-0.2, None);
    between.syn_ack(-0.17, None);
    between.ack_of_a(-0.1, 1);
    match between.ended().findings.capture_at {
        CapturePoint::Between { share } => assert!((share - 0.7).abs() < 1e-9),
        other => panic!("{other:?}"),
    }
}

/// The window scale is the last option in a Linux SYN, so a short snap length cuts it off.
#[test]
fn truncated_syn_leaves_window_scale_unknown() {
    let complete = Diagram::new().ended().findings;
    assert!(complete.sack && !complete.directions[0].window.unscaled);
    let mut d = Diagram::new();
    for syn in &mut d.packets[..2] {
        (syn.options.window_scale, syn.options_cut) = (None, true);
    }
    d.burst(0.0, 1..60_001);
    d.ack(0.1, 60_001);
    let cut = d.ended().findings;
    assert!(cut.sack, "the SACK option was captured");
    assert!(cut.directions[0].window.unscaled);
    assert_eq!(cut.directions[0].time.window_limited_seconds, 0.0);
}

#[test]
fn flight_is_unknown_without_acks() {
    let mut d = Diagram::cut();
    d.syn(-0.2, Some(1460));
    d.burst(0.0, 1..10_001);
    d.data(1.0, 1..1001);
    let found = d.findings();
    assert_eq!((found.data_packets, found.retransmissions.packets), (11, 1));
    assert_eq!((found.window.max_flight_bytes, found.sender.initial_window_segments), (None, None));
}

#[test]
fn hole_filled_after_rtt_was_lost_before_capture() {
    let mut d = at_receiver();
    d.burst(0.1, 1..1001);
    d.ack(0.1, 1001);
    d.burst(0.1, 2001..6001);
    d.dupacks(0.1, 1001, 4);
    d.data(0.21, 1001..2001);
    d.ack(0.21, 6001);
    let Retransmissions { packets, fast, lost_before_capture, .. } = d.findings().retransmissions;
    assert_eq!((packets, fast, lost_before_capture), (1, 1, 1));
}

#[test]
fn hole_filled_immediately_is_reordering() {
    let mut d = at_receiver();
    d.data(0.1, 1..1001);
    d.data(0.1005, 2001..3001);
    d.data(0.101, 1001..2001);
    d.ack(0.101, 3001);
    let found = d.findings();
    assert_eq!((found.retransmissions.packets, found.arrivals.out_of_order), (0, 1));
}

/// The sender's timestamp shows whether a segment was reordered or retransmitted, even if it arrives very
/// late.
#[test]
fn timestamp_distinguishes_reordering_from_retransmission() {
    for (tsval_later, expected) in [(-5, (0, 1)), (300, (1, 0))] {
        let mut d = Diagram::with_timestamps();
        d.data(0.1, 1..1001);
        let newest = d.data(0.1005, 2001..3001).options.timestamps.unwrap().val as i32;
        d.data(0.5, 1001..2001).options.timestamps.as_mut().unwrap().val = (newest + tsval_later) as u32;
        let found = d.findings();
        assert_eq!((found.retransmissions.packets, found.arrivals.out_of_order), expected);
    }
}

#[test]
fn capture_starting_mid_connection_is_analysed() {
    let mut d = Diagram::cut();
    d.ids = [100, 500];
    d.burst(0.0, 500_001..503_001);
    // An ACK for data sent before the capture began.
    d.ack(0.05, 499_001);
    d.ack(0.06, 500_001);
    d.ack(0.1, 503_001);
    d.burst(0.1, 503_001..506_001);
    d.dupacks(0.2, 503_001, 3);
    d.data(0.203, 503_001..504_001);
    d.ack(0.3, 506_001);
    let ended = d.ended();
    assert_eq!(ended.findings.handshake.seen, HandshakeSeen::None);
    let found = &ended.findings.directions[0];
    assert_eq!((found.retransmissions.fast, found.retransmissions.packets), (1, 1));
    assert!(found.window.unscaled);
    assert_eq!(ended.traces.unwrap()[0].segments[0].start, 1, "counted from the first byte seen");
}

#[test]
fn one_sided_capture_still_shows_retransmissions() {
    let mut d = Diagram::cut();
    d.burst(0.0, 1..5001);
    d.data(1.0, 1..1001);
    let found = d.findings();
    assert_eq!((found.retransmissions.packets, found.retransmissions.timeouts), (1, 1));
    assert_eq!((found.acked_bytes, found.rtt.samples), (0, 0));
}

#[test]
fn acks_for_uncaptured_data_are_counted_separately() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..2001);
    d.ack(0.1, 4001);
    let found = d.findings();
    assert_eq!((found.acked_bytes, found.acked_unseen_bytes), (4000, 2000));
}

#[test]
fn segments_far_outside_window_are_ignored() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..2001);
    d.data(0.01, 800_000_000..800_001_000);
    d.ack(0.02, 1_600_000_000);
    d.ack(0.1, 2001);
    d.burst(0.1, 2001..4001);
    d.ack(0.2, 4001);
    let found = d.findings();
    assert_eq!((found.retransmissions.packets, found.acked_bytes), (0, 4000));
}

/// A copy of data that is further below the ACKs than the largest window was does not belong to the stream.
#[test]
fn old_copy_counts_only_within_largest_window() {
    for (window_scale, counted) in [(14, 1), (0, 0)] {
        let mut d = Diagram::new();
        for syn in &mut d.packets[..2] {
            syn.options.window_scale = Some(window_scale);
        }
        d.data(0.0, 1..50_000_001);
        d.data(0.0, 50_000_001..100_000_001);
        d.ack(0.1, 100_000_001);
        d.data(0.2, 1..1001);
        assert_eq!(d.findings().retransmissions.packets, counted, "window scale {window_scale}");
    }
}

#[test]
fn backward_clock_step_is_counted_without_distorting_rtt() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..2001);
    d.ack(0.1, 1001);
    d.ack(0.05, 2001);
    let ended = d.ended();
    assert_eq!(ended.findings.clock_went_back, 1);
    assert_eq!(ended.findings.directions[0].rtt.max_seconds, Some(0.1));
}

#[test]
fn connection_ends_on_acknowledged_fins_or_reset() {
    let take = |d: &Diagram| {
        let mut connection = Connection::new(&d.packets[0], Keep::Findings);
        d.packets.iter().for_each(|packet| connection.process(packet));
        connection
    };
    let mut d = Diagram::new();
    d.burst(0.0, 1..1001);
    d.fin(0.0, 1001);
    d.ack(0.1, 1002).flags = Flags::FIN.with(Flags::ACK);
    assert!(!take(&d).is_over());
    d.packet(0.1, 0, 1002, 2, 0);
    let connection = take(&d);
    assert!(connection.is_over());
    assert_eq!(connection.finish(0).findings.close, Close::Closed);

    let mut d = Diagram::new();
    d.packet(0.1, 1, 1, 1, 0).flags = Flags::RST.with(Flags::ACK);
    assert_eq!(take(&d).finish(0).findings.close, Close::Reset { by: 1 });
    let mut d = Diagram::new();
    d.packet(0.1, 1, 900_000_000, 1, 0).flags = Flags::RST.with(Flags::ACK);
    assert!(!take(&d).is_over(), "outside the window: RFC 5961 §3.2");
}

#[test]
fn syn_with_different_isn_starts_new_connection() {
    let d = Diagram::new();
    let mut connection = Connection::new(&d.packets[0], Keep::Findings);
    d.packets.iter().for_each(|packet| connection.process(packet));
    let mut syn = d.packets[0].clone();
    assert!(!connection.starts_new_connection(&syn), "a retransmitted SYN");
    syn.seq = Seq(12345);
    assert!(connection.starts_new_connection(&syn));
    assert!(!connection.starts_new_connection(&d.packets[2]), "not a SYN");
}

/// Random packets must not cause a panic, and the counts and times must add up.
#[test]
fn random_packets_keep_counts_and_times_consistent() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    for _ in 0..200 {
        let mut d = if next(2) == 0 { Diagram::new() } else { Diagram::cut() };
        d.timestamps = next(2) == 0;
        let mut at = 0.0;
        for _ in 0..100 {
            at += next(1000) as f64 / 1000.0 - 0.01;
            let (from, seq, ack) = (next(2) as usize, next(20_000), next(20_000));
            let flags = next(4096) as u16;
            let window = next(3) as u16 * 500;
            let blocks = [(next(20_000), next(20_000)), (next(20_000), next(20_000))];
            let len = next(3000) as u32;
            let packet = d.packet(at, from, seq, ack, len);
            (packet.flags, packet.window) = (Flags(flags), window);
            packet.ack = packet.flags.contains(Flags::ACK).then_some(packet.ack).flatten();
            if next(3) == 0 {
                packet.seq = Seq(next(1 << 32) as u32);
            }
            for (left, right) in blocks {
                packet.options.sack.push(Seq(ISNS[1 - from]).at(left), Seq(ISNS[1 - from]).at(right));
            }
        }
        let ended = d.ended();
        assert!(!ended.findings.to_string().is_empty());
        for found in &ended.findings.directions {
            let Retransmissions { packets, fast, timeout, tail, unexplained, .. } = found.retransmissions;
            assert_eq!(packets, fast + timeout + tail + unexplained);
            let time = &found.time;
            let parts = time.zero_window_seconds
                + time.waiting_for_timeout_seconds
                + time.window_limited_seconds
                + time.application_limited_seconds.unwrap_or(0.0)
                + time.network_limited_seconds.unwrap_or(0.0)
                + time.undetermined_seconds;
            assert!((parts - time.total_seconds).abs() < 1e-6);
        }
    }
}

#[test]
fn cut_sack_options_do_not_show_reordering() {
    let overtaken = |is_cut: bool| {
        let mut d = Diagram::new();
        for round in 0..10 {
            let (at, first) = (0.1 * f64::from(round), 1 + 4000 * u64::from(round as u32));
            d.burst(at, first..first + 4000);
            d.sack(at + 0.1, first, &[first + 2000..first + 3000]).options_cut = is_cut;
            d.ack(at + 0.1, first + 4000);
        }
        d.findings().round_trips.unwrap().overtaken_segments
    };
    assert_eq!((overtaken(false) > 0, overtaken(true)), (true, 0));
}
