//! A link with a rate, and one by a trace of delivery opportunities.

use airlink::machine::{Machine, catch_up, drain};
use airlink::path::{FIXED, Path};
use airlink::settings::{Directions, Settings};
use airlink::stage::{Event, Why};
use airlink::stages::link::LinkConfig;
use airlink::stages::loss::LossConfig;
use airlink::stages::queue::Bounds;
use airwire::time::{Duration, Instant};
use airwire::units::{Rate, Size};

use super::*;

#[test]
fn a_packet_takes_its_serialisation_and_the_propagation() {
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
fn back_to_back_packets_leave_at_ideal_times_for_ever() {
    // One packet takes 12e12 / 999983 ns, which is no whole number: the sum must not drift.
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
fn a_packet_that_arrives_just_as_the_link_gets_free_does_not_lose_the_fraction() {
    // 3 octets at 7 bit/s take 3428571428.57 ns. Each packet comes at the very nanosecond the one before ends.
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
fn without_a_rate_everything_passes_at_once() {
    let arrived = run(&mut path(vec![link(&LinkConfig::default())]), &burst(100, 1500), Instant::ZERO);
    assert_eq!(numbers(&arrived), (0..100).collect::<Vec<_>>());
}

#[test]
fn jitter_spreads_uniformly_and_never_reorders() {
    let config = LinkConfig { delay: ms(10), jitter: ms(4), ..LinkConfig::default() };
    // Far apart: each packet shows its own jitter.
    let sent: Vec<_> = (0..20_000).map(|n| (at(ms(20) * n), 100)).collect();
    let arrived = run(&mut path(vec![link(&config)]), &sent, HOUR);
    let jitter: Vec<Duration> = arrived.iter().map(|(n, time)| *time - sent[*n].0 - ms(10)).collect();
    assert!(jitter.iter().all(|jitter| *jitter <= ms(4)));
    let below = jitter.iter().filter(|jitter| **jitter < ms(1)).count() as f64;
    assert!((below - 5000.0).abs() < 3.2905 * (20_000.0 * 0.25 * 0.75_f64).sqrt(), "{below} below a quarter");
    // Close together: they may bunch, but not overtake.
    let sent: Vec<_> = (0..5000).map(|n| (at(us(100) * n), 100)).collect();
    let arrived = run(&mut path(vec![link(&config)]), &sent, HOUR);
    assert_eq!(numbers(&arrived), (0..5000).collect::<Vec<_>>());
    assert!(arrived.is_sorted_by_key(|(_, time)| *time));
}

#[test]
fn a_queue_keeps_exactly_as_many_as_it_is_told_behind_the_one_on_the_wire() {
    let queue = Bounds { packets: Some(5), bytes: None }.into();
    let config = LinkConfig { rate: Some(kbit(100)), queue, ..LinkConfig::default() };
    let mut path = path(vec![link(&config)]);
    assert_eq!(numbers(&run(&mut path, &burst(10, 1000), HOUR)), [0, 1, 2, 3, 4, 5]);
    assert_eq!(dropped(&mut path), [6, 7, 8, 9].map(|n| (n, Why::QueueFull)));
}

#[test]
fn a_queue_of_octets_refuses_what_would_not_fit_and_takes_what_does() {
    let queue = Bounds { packets: None, bytes: Some(Size::bytes(2000)) }.into();
    let config = LinkConfig { rate: Some(kbit(100)), queue, ..LinkConfig::default() };
    let sent: Vec<_> = [1000, 1000, 900, 101, 100, 2].map(|octets| (Instant::ZERO, octets)).into();
    // 1000 on the wire; 1000 + 900 wait; 101 do not fit, 100 do, and then nothing more.
    let mut path = path(vec![link(&config)]);
    assert_eq!(numbers(&run(&mut path, &sent, HOUR)), [0, 1, 2, 4]);
    assert_eq!(dropped(&mut path), [(3, Why::QueueFull), (5, Why::QueueFull)]);
}

#[test]
fn events_tell_how_many_were_before_and_how_long_it_waited() {
    let config = LinkConfig { rate: Some(kbit(80)), ..LinkConfig::default() };
    let mut path = path(vec![link(&config)]);
    run(&mut path, &burst(3, 1000), HOUR);
    let events: Vec<_> = path.take_records().into_iter().filter(|r| r.stage == Some(0)).collect();
    let events: Vec<_> =
        events.into_iter().map(|record| (record.packet.0, record.at, record.event)).collect();
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
fn a_new_rate_holds_for_the_bits_not_yet_sent() {
    let config = |rate| down_only(LinkConfig { rate, ..LinkConfig::default() });
    let mut path = path(vec![link(&LinkConfig { rate: Some(kbit(80)), ..LinkConfig::default() })]);
    let mut arrived = run(&mut path, &burst(3, 1000), at(ms(40)));
    // 60 ms are left at 80 kbit/s: 120 ms at 40 kbit/s.
    path.reconfigure(at(ms(40)), 0, &config(Some(kbit(40)))).unwrap();
    arrived.extend(run(&mut path, &[], at(ms(200))));
    // 160 ms of 200 ms are left of the next one when the rate is lifted: everything is out at once.
    path.reconfigure(at(ms(200)), 0, &config(None)).unwrap();
    drain(&mut path, at(ms(200)), |now, _, bytes| arrived.push((number(&bytes), now)));
    assert_eq!(arrived, [(0, at(ms(160))), (1, at(ms(200))), (2, at(ms(200)))]);
    assert_eq!((path.totals().down.entered, path.totals().down.left, path.held()), (3, 3, 0));
}

#[test]
fn a_shorter_delay_set_under_way_lets_nobody_overtake() {
    let config = |delay| LinkConfig { delay, ..LinkConfig::default() };
    let mut path = path(vec![link(&config(ms(100)))]);
    assert!(run(&mut path, &[(at(ms(0)), 10)], at(ms(10))).is_empty());
    path.reconfigure(at(ms(10)), 0, &down_only(config(ms(5)))).unwrap();
    path.handle_packet(at(ms(10)), FIXED, numbered(1, 10));
    assert_eq!(run(&mut path, &[], HOUR), [(0, at(ms(100))), (1, at(ms(100)))]);
}

#[test]
fn what_cannot_change_under_way_is_refused_and_changes_nothing() {
    let config = LinkConfig { delay: ms(100), ..LinkConfig::default() };
    let mut path = path(vec![link(&config)]);
    let refused = |path: &mut Path, config: &dyn Settings| {
        path.reconfigure(Instant::ZERO, 0, config).unwrap_err().to_string()
    };
    let with_trace = LinkConfig { trace: Some("x".into()), delay: ms(1), ..LinkConfig::default() };
    assert!(refused(&mut path, &down_only(with_trace)).contains("`down.trace`"));
    let both = Directions { down: Some(LinkConfig::default()), up: Some(LinkConfig::default()) };
    assert!(refused(&mut path, &both).contains("`up`"));
    assert!(refused(&mut path, &down_only(LossConfig::none())).contains("`kind`"));
    assert_eq!(run(&mut path, &[(at(ms(0)), 10)], HOUR), [(0, at(ms(100)))]);
}

// ---- delivery traces

#[test]
fn a_trace_delivers_a_full_packet_per_line_and_starts_over() {
    let sent = burst(7, 1500);
    // The opportunity at 0 has passed when the first packet is there. The period is 10 ms.
    let arrived = run(&mut path(vec![traced("0\n3\n3\n10\n")]), &sent, HOUR);
    let times: Vec<u64> = arrived.iter().map(|(_, time)| time.as_millis()).collect();
    assert_eq!(times, [3, 3, 10, 10, 13, 13, 20]);
}

#[test]
fn small_packets_share_an_opportunity_and_long_ones_span_several() {
    // 1504 octets each; a packet costs 4 more than its length.
    let octets = [496, 496, 496, 3000, 1000, 2000, 40];
    let sent: Vec<_> = octets.map(|octets| (Instant::ZERO, octets)).into();
    let arrived = run(&mut path(vec![traced("1\n")]), &sent, HOUR);
    // 1: 500 + 500 + 500, and 4 of 3004. 2: 1504. 3: the 1496 left of it, 8 of 1004. 4: 996, 508 of 2004.
    // 5: the 1496 left of it and 8 of 44. 6: the rest.
    let times: Vec<u64> = arrived.iter().map(|(_, time)| time.as_millis()).collect();
    assert_eq!(times, [1, 1, 1, 3, 4, 5, 6]);
}

#[test]
fn an_opportunity_that_nobody_uses_is_gone() {
    let trace = "10\n20\n30\n";
    // The packet of 5 ms leaves at 10 ms, what is left of that opportunity is lost on the one of 12 ms, and one
    // that comes at the very time of an opportunity misses it. Much later, the trace is where it has to be.
    let late = at(Duration::from_secs(3000));
    let sent = [(at(ms(5)), 100), (at(ms(12)), 100), (at(ms(30)), 100), (late + ms(1), 100)];
    let arrived = run(&mut path(vec![traced(trace)]), &sent, HOUR);
    assert_eq!(arrived, [(0, at(ms(10))), (1, at(ms(20))), (2, at(ms(40))), (3, late + ms(10))]);
}
