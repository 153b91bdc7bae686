use airwire::rng::Stream;

use super::*;

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn flight(segments: &[(u64, u64)]) -> Flight {
    let mut flight = Flight::default();
    for (start, end) in segments {
        assert_eq!(*start, flight.max());
        flight.on_new(*end, at(0), 0);
    }
    flight
}

fn ten() -> Flight {
    flight(&(0..10).map(|i| (i * 100, i * 100 + 100)).collect::<Vec<_>>())
}

fn sack(flight: &mut Flight, block: Range<u64>) -> Sacked {
    let mut news = Sacked::default();
    flight.on_sack(block, &mut news);
    news
}

/// Recomputes every sum from the list.
fn check(flight: &Flight) {
    let sum = |states: &[SegmentState]| {
        let mut amount = Amount::default();
        for s in flight.iter().filter(|s| states.contains(&s.state)) {
            amount.bytes += s.len();
            amount.segments += 1;
        }
        amount
    };
    assert_eq!(flight.sacked(), sum(&[SegmentState::Sacked]));
    assert_eq!(flight.lost(), sum(&[SegmentState::Lost, SegmentState::Resent]));
    assert_eq!(flight.resent(), sum(&[SegmentState::Resent, SegmentState::InDoubt]));
    let (once, twice) = (sum(&[SegmentState::InFlight, SegmentState::Resent]), sum(&[SegmentState::InDoubt]));
    let pipe = Amount { bytes: once.bytes + 2 * twice.bytes, segments: once.segments + 2 * twice.segments };
    assert_eq!(flight.pipe(), pipe);
    assert_eq!(
        flight.first_lost().map(|s| s.start),
        flight.iter().find(|s| s.state == SegmentState::Lost).map(|s| s.start)
    );
    let start = |sent: Option<&Sent>| sent.map(|s| s.start);
    let waiting =
        flight.iter().skip(flight.passed().segments as usize).find(|s| s.state != SegmentState::Sacked);
    assert_eq!(start(flight.next_in_pass()), start(waiting));
    let reported = |s: &Sent| flight.sacked_ranges().contains_range(&(s.start..s.end));
    let in_flight = flight.iter().rev().find(|s| s.state == SegmentState::InFlight && !reported(s));
    assert_eq!(start(flight.last_in_flight()), start(in_flight));
    let passed: Vec<&Sent> = flight.iter().filter(|s| s.start < flight.nxt()).collect();
    assert_eq!(flight.passed().segments, passed.len() as u64);
    assert_eq!(flight.passed().bytes, passed.iter().map(|s| s.len()).sum::<u64>());
    let mut previous = flight.una();
    for segment in flight.iter() {
        assert_eq!(segment.start, previous, "the list has a gap");
        assert!(segment.end > segment.start);
        previous = segment.end;
    }
    assert_eq!(previous, flight.max());
}

#[test]
fn parts_of_mtu_probe_are_marked_too() {
    let mut flight = flight(&[(0, 100), (100, 350), (350, 450)]);
    flight.set_probes_mtu(350, true);
    flight.split(100, 200);
    flight.split(200, 300);
    let marked = |flight: &Flight| flight.iter().map(|s| s.probes_mtu).collect::<Vec<_>>();
    assert_eq!(marked(&flight), [false, true, true, true, false]);
    flight.set_probes_mtu(350, false);
    assert_eq!(marked(&flight), [false, true, true, false, false]);
    check(&flight);
}

#[test]
fn sums_match_segment_list_after_random_operations() {
    for seed in 0..200 {
        let mut rng = Stream::new(seed, "flight");
        let mut flight = Flight::default();
        for step in 0..300 {
            let now = at(step);
            let (una, max) = (flight.una(), flight.max());
            let somewhere = una + rng.below(max - una + 1);
            match rng.below(13) {
                0..=3 => flight.on_new(max + 1 + rng.below(100), now, 0),
                4 => {
                    flight.on_ack(somewhere);
                }
                5 | 6 if somewhere > una => {
                    let end = somewhere + rng.below(max - somewhere + 1);
                    if somewhere < end {
                        let before = flight.sacked();
                        let news = sack(&mut flight, somewhere..end);
                        assert_eq!(flight.sacked().bytes, before.bytes + news.amount.bytes);
                        assert_eq!(flight.sacked().segments, before.segments + news.amount.segments);
                    }
                }
                7 => {
                    flight.mark_lost_below(somewhere);
                }
                8 => {
                    let start = flight.first_lost().or_else(|| flight.next_in_pass()).map(|s| s.start);
                    match start {
                        Some(start) if rng.below(4) == 0 => flight.on_resent_outside_pass(start, now, 0),
                        Some(start) => flight.on_resent(start, now, 0),
                        None => {}
                    }
                }
                9 if rng.below(6) == 0 => flight.rewind(),
                10 if rng.below(6) == 0 => flight.resume_at_max(),
                10 => {
                    flight.mark_head_lost();
                }
                11 if rng.below(4) == 0 => flight.forget_sacks(),
                11 => {
                    let start = flight.segment_at(somewhere).map(|s| s.start);
                    if let Some(start) = start {
                        flight.split(start, somewhere);
                    }
                }
                12 => {
                    let unsacked = |sent: &&Sent| sent.state != SegmentState::Sacked;
                    let first = flight.segment_at(somewhere).filter(unsacked);
                    let next = first.and_then(|first| flight.segment_at(first.end)).filter(unsacked);
                    if let (Some(start), Some(_)) = (first.map(|s| s.start), next) {
                        flight.merge(start);
                    }
                }
                _ => {}
            }
            check(&flight);
        }
    }
}

#[test]
fn is_lost_needs_three_ranges_or_enough_bytes() {
    let mut f = ten();
    sack(&mut f, 200..300);
    sack(&mut f, 400..500);
    assert_eq!(f.is_lost_edge(3, 100), 0, "200 bytes above do not exceed 2·SMSS");
    sack(&mut f, 600..700);
    assert_eq!(f.is_lost_edge(3, 100), 200, "three ranges");
    let mut f = ten();
    sack(&mut f, 300..600);
    assert_eq!(f.is_lost_edge(3, 100), 300, "300 bytes in one range");
    assert_eq!(f.mark_lost_below(300), Some((0, 3)));
    assert_eq!(f.pipe().segments, 10 - 3 - 3);
    sack(&mut f, 700..1000);
    assert_eq!(f.mark_lost_below(700), Some((600, 1)), "the others were already marked lost");
    assert_eq!(f.mark_lost_below(700), None);
}

#[test]
fn retransmission_outside_pass_does_not_advance_it() {
    let mut f = ten();
    f.rewind();
    f.on_resent_outside_pass(0, at(1), 0);
    assert_eq!(f.next_in_pass().map(|s| s.start), Some(0));
    f.on_resent(0, at(1), 0);
    assert_eq!(f.next_in_pass().map(|s| s.start), Some(100));
    assert_eq!(f.head().map(|s| s.transmissions), Some(3));
}

#[test]
fn rewound_pass_skips_acknowledged_and_sacked_segments() {
    let mut f = ten();
    sack(&mut f, 300..400);
    f.rewind();
    assert_eq!((f.nxt(), f.pipe().segments), (0, 0));
    f.on_resent(0, at(1), 0);
    f.on_ack(200);
    assert_eq!(f.next_in_pass().map(|s| s.start), Some(200));
    f.on_resent(200, at(2), 0);
    assert_eq!(f.next_in_pass().map(|s| s.start), Some(400), "offset 300 is SACKed");
}

#[test]
fn pipe_counts_original_and_retransmission_until_lost() {
    let mut f = ten();
    sack(&mut f, 300..400);
    f.on_resent(200, at(1), 0);
    assert_eq!((f.pipe().segments, f.lost().segments, f.resent().segments), (10, 0, 1));
    // IsLost() later holds for the original too: only the retransmission counts.
    assert_eq!(f.mark_lost_below(300), Some((0, 2)));
    assert_eq!((f.pipe().segments, f.lost().segments, f.resent().segments), (7, 3, 1));
    check(&f);
}

#[test]
fn ack_inside_segment_trims_it() {
    let mut f = ten();
    let acked = f.on_ack(150);
    assert_eq!(acked.amount, Amount { bytes: 150, segments: 1 });
    assert_eq!(f.head().map(|s| (s.start, s.end)), Some((150, 200)));
    check(&f);
}

#[test]
fn karn_sample_uses_oldest_segment_sent_once() {
    let mut f = Flight::default();
    f.on_new(100, at(1), 0);
    f.on_new(200, at(2), 0);
    f.on_new(300, at(3), 0);
    assert_eq!(f.clone().on_ack(200).oldest_unambiguous, Some(at(1)));
    f.mark_head_lost();
    f.on_resent(0, at(9), 0);
    let acked = f.on_ack(300);
    assert!(acked.any_resent);
    assert_eq!(acked.oldest_unambiguous, Some(at(2)));
}

#[test]
fn resume_counts_waiting_segments_as_in_flight() {
    let mut f = ten();
    f.rewind();
    f.on_resent(0, at(1), 0);
    f.resume_at_max();
    assert_eq!((f.nxt(), f.pipe().segments, f.lost().segments), (1000, 10, 1));
    check(&f);
}
