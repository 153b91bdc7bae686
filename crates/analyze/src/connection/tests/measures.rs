//! Round-trip times, windows, and the time by what limited the sender.

use super::*;

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
}

#[test]
fn each_ack_samples_rtt_of_newest_segment() {
    let mut d = Diagram::new();
    d.data(0.0, 1..1001);
    d.data(0.02, 1001..2001);
    d.ack(0.12, 2001);
    d.data(0.2, 2001..3001);
    d.ack(0.35, 3001);
    let rtt = d.findings().rtt;
    assert_eq!((rtt.samples, rtt.by_timestamps), (2, 0));
    near(rtt.min_seconds.unwrap(), 0.1);
    near(rtt.max_seconds.unwrap(), 0.15);
    near(rtt.mean_seconds.unwrap(), 0.125);
    near(rtt.mean_deviation_seconds.unwrap(), 0.025);
}

/// Karn's algorithm: it is unknown which copy the ACK is for. Segments that waited for the hole do not yield
/// a sample.
#[test]
fn retransmitted_or_waiting_data_gives_no_rtt_sample() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..5001);
    d.dupacks(0.1, 1, 3);
    d.data(0.1025, 1..1001);
    d.ack(0.2025, 5001);
    assert_eq!(d.findings().rtt.samples, 0);
}

#[test]
fn timestamp_identifies_sampled_transmission() {
    let mut d = Diagram::with_timestamps();
    d.data(0.0, 1..1001);
    d.data(1.0, 1..1001);
    let resent = d.packets.last().unwrap().options.timestamps.unwrap().val;
    d.ack(1.1, 1001).options.timestamps.as_mut().unwrap().ecr = resent;
    let rtt = d.findings().rtt;
    assert_eq!((rtt.samples, rtt.by_timestamps), (1, 1));
    near(rtt.max_seconds.unwrap(), 0.1);
}

#[test]
fn handshake_time_ends_at_first_syn_ack() {
    let mut d = Diagram::cut();
    d.syn(-1.3, Some(1460));
    d.syn_ack(-1.2, Some(1460));
    d.syn_ack(-0.2, Some(1460));
    d.ack_of_a(-0.1, 1);
    let handshake = d.ended().findings.handshake;
    near(handshake.syn_to_syn_ack_seconds.unwrap(), 0.1);
    assert_eq!(handshake.syn_ack_to_ack_seconds, None, "the ACK may answer either SYN,ACK");
}

#[test]
fn time_is_attributed_to_limiting_factor() {
    let mut d = Diagram::with_window(4000);
    // The window is full until 0.1. Then there is nothing to send until 1.0.
    d.burst(0.0, 1..4001);
    d.ack(0.1, 4001);
    d.burst(1.0, 4001..5001);
    d.ack(1.1, 5001);
    let TimeFindings { total_seconds, window_limited_seconds, application_limited_seconds, .. } =
        d.findings().time;
    near(total_seconds, 1.1);
    near(window_limited_seconds, 0.1);
    near(application_limited_seconds.unwrap(), 0.9);
}

/// Segments that are all far outside the window belong to another stream, whose window is unknown.
#[test]
fn new_stream_is_not_limited_by_old_window() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..1001);
    d.ack(0.1, 1001);
    d.burst(0.2, 800_000_001..800_012_001);
    d.ack(1.2, 800_012_001);
    near(d.findings().time.window_limited_seconds, 0.0);
}

#[test]
fn slow_start_growth_factor_is_two() {
    let mut d = Diagram::new();
    let (mut at, mut sent, mut window) = (0.0, 1, 2);
    for _ in 0..5 {
        let begin = sent;
        for segment in 0..window {
            d.data(at + f64::from(segment) * 1e-4, sent..sent + 1000);
            sent += 1000;
        }
        at += 0.1;
        window *= 2;
        d.ack(at, (begin + sent) / 2 / 1000 * 1000 + 1);
        d.ack(at + 0.001, sent);
        at += 0.002;
    }
    let found = d.findings();
    near(found.sender.growth_per_round_trip.unwrap(), 2.0);
    assert_eq!(
        (found.sender.initial_window_segments, found.sender.initial_window_bytes),
        (Some(2), Some(2000))
    );
    assert_eq!(found.window.max_flight_bytes, Some(32_000));
    assert_eq!((found.sender.mss_option, found.sender.longest_segment_bytes), (Some(1460), 1000));
}

#[test]
fn goodput_counts_each_byte_once() {
    let mut d = Diagram::new();
    d.burst(0.0, 1..5001);
    d.dupacks(0.1, 1, 3);
    d.data(0.102, 1..1001);
    d.ack(1.0, 5001);
    let found = d.findings();
    assert_eq!((found.sent_bytes, found.acked_bytes, found.data_packets), (6000, 5000, 6));
    near(found.goodput_bit_per_s, 40_000.0);
    near(found.throughput_bit_per_s, 48_000.0);
    assert_eq!(found.series.sent_bytes.iter().sum::<u64>(), 6000);
    assert_eq!(found.series.acked_bytes.iter().sum::<u64>(), 5000);
}

#[test]
fn ecn_and_transit_marks_are_counted() {
    let mut d = Diagram::new();
    d.data(0.0, 1..1001).ecn = Ecn::Ce;
    let ack = d.ack(0.1, 1001);
    ack.flags = Flags::ACK.with(Flags::ECE).with(Flags(0x800));
    ack.options.reordered = Some(7);
    let found = d.findings();
    let Marks { ecn_capable, ecn_ce, ob, db, reordering_alarm, .. } = found.marks;
    assert_eq!((ecn_capable, ecn_ce, ob, db, reordering_alarm), (1, 1, 1, 0, Some(7)));
    assert_eq!(found.acks.ece, 1);
}

#[test]
fn lost_parts_of_a_large_send_are_one_contiguous_group() {
    const SEGMENT: u64 = 1460;
    let mut d = Diagram::new();
    for round in 0..14 {
        let (at, first) = (0.1 * f64::from(round), 1 + 10 * SEGMENT * u64::from(round as u32));
        d.data(at, first..first + 10 * SEGMENT);
        d.ack(at + 0.1, first + 10 * SEGMENT);
    }
    let first = 1 + 140 * SEGMENT;
    d.data(1.4, first..first + 10 * SEGMENT);
    d.data(1.4, first + 10 * SEGMENT..first + 20 * SEGMENT);
    d.sack(1.5, first, &[first + 4 * SEGMENT..first + 20 * SEGMENT]);
    for part in 0..4 {
        d.data(1.5, first + part * SEGMENT..first + (part + 1) * SEGMENT);
    }
    d.ack(1.6, first + 20 * SEGMENT);
    let rounds = d.findings().round_trips.unwrap();
    assert_eq!((rounds.lost_segments, rounds.loss_runs), (4, 1));
}
