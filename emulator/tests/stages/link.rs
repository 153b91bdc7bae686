//! Links with a rate, and links that follow a trace of delivery opportunities.

use airlink::settings::Settings;
use airlink::stages::loss::LossConfig;
use airlink::stages::queue::Bounds;
use airwire::units::Size;

use super::*;

#[test]
fn delay_is_serialization_plus_propagation() {
    let config = LinkConfig { rate: Some(kbit(384)), delay: ms(150), ..LinkConfig::default() };
    let mut path = path(vec![link(&config)]);
    let arrived = run(&mut path, &[(at(ms(7)), 1500), (at(ms(500)), 40)], HOUR);
    assert_eq!(
        arrived,
        [
            (0, at(ms(7) + us(31_250) + ms(150))),
            (1, at(ms(500) + ms(150) + us(833)) + Duration::from_nanos(333))
        ]
    );
}

#[test]
fn back_to_back_packets_keep_ideal_times() {
    // One packet takes 12e12 / 999983 ns, which is not a whole number. The sum must not drift.
    let rate = 999_983;
    let config =
        LinkConfig { rate: Some(Rate::bits_per_second(rate)), delay: ms(3), ..LinkConfig::default() };
    let arrived = run(&mut path(vec![link(&config)]), &burst(20_000, 1500), HOUR);
    assert_eq!(arrived.len(), 20_000);
    for (n, time) in arrived {
        let ideal = (n as u128 + 1) * 12_000 * 1_000_000_000 * 2 / u128::from(rate) + 1;
        assert_eq!(u128::from((time - at(ms(3))).as_nanos()), ideal / 2, "packet {n}");
    }
}

#[test]
fn fractional_nanoseconds_survive_when_the_link_becomes_free() {
    // 3 bytes at 7 bit/s take 3428571428.57 ns. Each packet arrives in the nanosecond in which the previous one ends.
    let mut path =
        path(vec![link(&LinkConfig { rate: Some(Rate::bits_per_second(7)), ..LinkConfig::default() })]);
    let mut left = Vec::new();
    let mut now = Instant::ZERO;
    for n in 0..7 {
        path.handle_packet(now, FIXED, numbered(n, 3));
        now = path.next_deadline().unwrap();
        catch_up(&mut path, now, |time, _, _| left.push(time));
    }
    assert_eq!(left.last(), Some(&Instant::from_secs(24)));
}

#[test]
fn link_without_a_rate_delivers_immediately() {
    let arrived = run(&mut path(vec![link(&LinkConfig::default())]), &burst(100, 1500), Instant::ZERO);
    assert_eq!(numbers(&arrived), (0..100).collect::<Vec<_>>());
}

#[test]
fn jitter_spreads_uniformly_and_never_reorders() {
    let config = LinkConfig { delay: ms(10), jitter: ms(4), ..LinkConfig::default() };
    // With large gaps, each packet shows its own jitter.
    let sent: Vec<_> = (0..20_000).map(|n| (at(ms(20) * n), 100)).collect();
    let arrived = run(&mut path(vec![link(&config)]), &sent, HOUR);
    let jitter: Vec<Duration> = arrived.iter().map(|(n, time)| *time - sent[*n].0 - ms(10)).collect();
    assert!(jitter.iter().all(|jitter| *jitter <= ms(4)));
    let below = jitter.iter().filter(|jitter| **jitter < ms(1)).count() as f64;
    assert!(
        (below - 5000.0).abs() < 3.2905 * (20_000.0 * 0.25 * 0.75_f64).sqrt(),
        "{below} packets have less than a quarter of the jitter"
    );
    // With small gaps, packets may bunch but not overtake.
    let sent: Vec<_> = (0..5000).map(|n| (at(us(100) * n), 100)).collect();
    let arrived = run(&mut path(vec![link(&config)]), &sent, HOUR);
    assert_eq!(numbers(&arrived), (0..5000).collect::<Vec<_>>());
    assert!(arrived.is_sorted_by_key(|(_, time)| *time));
}

#[test]
fn packet_limit_excludes_the_packet_being_sent() {
    let queue = Bounds { packets: Some(5), bytes: None }.into();
    let config = LinkConfig { rate: Some(kbit(100)), queue, ..LinkConfig::default() };
    let mut path = path(vec![link(&config)]);
    assert_eq!(numbers(&run(&mut path, &burst(10, 1000), HOUR)), [0, 1, 2, 3, 4, 5]);
    assert_eq!(dropped(&mut path), [6, 7, 8, 9].map(|n| (n, DropReason::QueueFull)));
}

#[test]
fn byte_limit_drops_only_packets_exceeding_it() {
    let queue = Bounds { packets: None, bytes: Some(Size::bytes(2000)) }.into();
    let config = LinkConfig { rate: Some(kbit(100)), queue, ..LinkConfig::default() };
    let sent: Vec<_> = [1000, 1000, 900, 101, 100, 2].map(|length| (Instant::ZERO, length)).into();
    // 1000 bytes are being sent and 1000 + 900 wait. 101 more do not fit, but 100 do, which fills the queue.
    let mut path = path(vec![link(&config)]);
    assert_eq!(numbers(&run(&mut path, &sent, HOUR)), [0, 1, 2, 4]);
    assert_eq!(dropped(&mut path), [(3, DropReason::QueueFull), (5, DropReason::QueueFull)]);
}

#[test]
fn events_contain_queue_length_and_waiting_time() {
    let config = LinkConfig { rate: Some(kbit(80)), ..LinkConfig::default() };
    let mut path = path(vec![link(&config)]);
    run(&mut path, &burst(3, 1000), HOUR);
    let records = path.take_records().into_iter().filter(|record| record.stage == Some(0));
    let events: Vec<_> = records.map(|record| (record.packet.0, record.at, record.event)).collect();
    let sent = |waited| Event::Sent { waited };
    assert_eq!(
        events,
        [
            (0, at(ms(0)), sent(ms(0))),
            (1, at(ms(0)), Event::Queued { packets: 0, bytes: 0 }),
            (2, at(ms(0)), Event::Queued { packets: 1, bytes: 1000 }),
            (1, at(ms(100)), sent(ms(100))),
            (2, at(ms(200)), sent(ms(200))),
        ]
    );
}

#[test]
fn new_rate_applies_to_the_remaining_bits() {
    let config = |rate| down_only(LinkConfig { rate, ..LinkConfig::default() });
    let mut path = path(vec![link(&LinkConfig { rate: Some(kbit(80)), ..LinkConfig::default() })]);
    let mut arrived = run(&mut path, &burst(3, 1000), at(ms(40)));
    // The remaining 60 ms at 80 kbit/s become 120 ms at 40 kbit/s.
    path.reconfigure(at(ms(40)), 0, &config(Some(kbit(40)))).unwrap();
    arrived.extend(run(&mut path, &[], at(ms(200))));
    // 160 of 200 ms of the next packet remain when the rate is removed. All packets leave immediately.
    path.reconfigure(at(ms(200)), 0, &config(None)).unwrap();
    drain(&mut path, at(ms(200)), |now, _, bytes| arrived.push((number(&bytes), now)));
    assert_eq!(arrived, [(0, at(ms(160))), (1, at(ms(200))), (2, at(ms(200)))]);
    assert_eq!((path.totals().down.entered, path.totals().down.left, path.held()), (3, 3, 0));
}

#[test]
fn shorter_delay_does_not_cause_overtaking() {
    let config = |delay| LinkConfig { delay, ..LinkConfig::default() };
    let mut path = path(vec![link(&config(ms(100)))]);
    assert!(run(&mut path, &[(at(ms(0)), 10)], at(ms(10))).is_empty());
    path.reconfigure(at(ms(10)), 0, &down_only(config(ms(5)))).unwrap();
    path.handle_packet(at(ms(10)), FIXED, numbered(1, 10));
    assert_eq!(run(&mut path, &[], HOUR), [(0, at(ms(100))), (1, at(ms(100)))]);
}

#[test]
fn refused_settings_leave_the_link_unchanged() {
    let config = LinkConfig { delay: ms(100), ..LinkConfig::default() };
    let mut path = path(vec![link(&config)]);
    let refused = |path: &mut Path, config: &dyn Settings| {
        path.reconfigure(Instant::ZERO, 0, config).unwrap_err().to_string()
    };
    let with_trace = LinkConfig { trace: Some("x".into()), delay: ms(1), ..LinkConfig::default() };
    assert!(refused(&mut path, &down_only(with_trace)).contains("`down.trace`"));
    let both = Directions { down: Some(LinkConfig::default()), up: Some(LinkConfig::default()) };
    assert!(refused(&mut path, &both).contains("`up`"));
    assert!(refused(&mut path, &down_only(LossConfig::default())).contains("`kind`"));
    assert_eq!(run(&mut path, &[(at(ms(0)), 10)], HOUR), [(0, at(ms(100)))]);
}

#[test]
fn trace_delivers_one_packet_per_line_and_repeats() {
    let sent = burst(7, 1500);
    // The opportunity at 0 ms is over when the first packet arrives. The period is 10 ms.
    let arrived = run(&mut path(vec![traced("0\n3\n3\n10\n")]), &sent, HOUR);
    let times: Vec<u64> = arrived.iter().map(|(_, time)| time.as_millis()).collect();
    assert_eq!(times, [3, 3, 10, 10, 13, 13, 20]);
}

#[test]
fn small_packets_share_opportunities_and_long_ones_split() {
    // An opportunity has 1504 bytes. A packet takes 4 bytes more than its length.
    let lengths = [496, 496, 496, 3000, 1000, 2000, 40];
    let sent: Vec<_> = lengths.map(|length| (Instant::ZERO, length)).into();
    let arrived = run(&mut path(vec![traced("1\n")]), &sent, HOUR);
    // Opportunity 1: 500 + 500 + 500, and 4 of 3004. 2: 1504. 3: the remaining 1496, and 8 of 1004. 4: 996, and 508 of
    // 2004. 5: the remaining 1496, and 8 of 44. 6: the rest.
    let times: Vec<u64> = arrived.iter().map(|(_, time)| time.as_millis()).collect();
    assert_eq!(times, [1, 1, 1, 3, 4, 5, 6]);
}

#[test]
fn unused_opportunity_expires() {
    let trace = "10\n20\n30\n";
    // The packet from 5 ms leaves at 10 ms. The packet from 12 ms cannot use the rest of that opportunity. A packet that
    // arrives exactly at an opportunity misses it. The position in the trace is also correct much later.
    let late = at(Duration::from_secs(3000));
    let sent = [(at(ms(5)), 100), (at(ms(12)), 100), (at(ms(30)), 100), (late + ms(1), 100)];
    let arrived = run(&mut path(vec![traced(trace)]), &sent, HOUR);
    assert_eq!(arrived, [(0, at(ms(10))), (1, at(ms(20))), (2, at(ms(40))), (3, late + ms(10))]);
}
