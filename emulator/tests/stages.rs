//! The plain stages, alone and in chains, in virtual time.

use std::collections::BTreeMap;

use airlink::machine::{Machine, Port, catch_up, drain};
use airlink::packet::{Content, Direction, Origin, Packet, PacketId, PerDirection, Purpose};
use airlink::path::{FIXED, MOBILE, Named, Path};
use airlink::settings::{Directions, Settings};
use airlink::stage::{Event, Outbox, Recording, Stage, Why};
use airlink::stages::arq::{Arq, ArqConfig};
use airlink::stages::chosen::Affects;
use airlink::stages::corrupt::{Checksum, Corrupt, CorruptConfig, Part};
use airlink::stages::duplex::{Duplex, OneWaySettings};
use airlink::stages::duplicate::{Duplicate, DuplicateConfig};
use airlink::stages::link::schedule::Schedule;
use airlink::stages::link::{Given, Link, LinkConfig, StepsConfig};
use airlink::stages::loss::{Loss, LossConfig};
use airlink::stages::outage::{Meanwhile, Outage, OutageConfig};
use airlink::stages::policer::{Policer, PolicerConfig};
use airlink::stages::queue::{
    Bounds, CodelConfig, Discipline, FqCodelConfig, Length, PieConfig, QueueConfig, RedConfig,
};
use airlink::stages::reorder::{Reorder, ReorderConfig};
use airlink::stages::trace::Trace;
use airlink::stages::traffic::{Begins, Source, Traffic, TrafficConfig};
use airlink::stages::truncate::{Truncate, TruncateConfig};
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::{Probability, Rate, Size};
use proptest::prelude::*;

// ---- how the scenarios are told

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn at(time: Duration) -> Instant {
    Instant::ZERO + time
}

fn kbit(rate: u64) -> Rate {
    Rate::bits_per_second(rate * 1000)
}

fn p(value: f64) -> Probability {
    Probability::new(value)
}

fn stream(what: &str) -> Stream {
    Stream::new(1, what)
}

fn down_only<T>(config: T) -> Directions<T> {
    Directions { down: Some(config), up: None }
}

fn link(config: &LinkConfig) -> Box<dyn Stage> {
    let make = |_, config: &LinkConfig| Link::new(config, stream("link/jitter").into());
    Box::new(Duplex::build(&down_only(config.clone()), make).unwrap())
}

fn traced(trace: &str) -> Box<dyn Stage> {
    let config = LinkConfig { trace: Some("some.trace".into()), ..LinkConfig::default() };
    let given = Given { trace: Some(Trace::parse(trace).unwrap()), ..stream("link").into() };
    let make = |_, config: &LinkConfig| Link::new(config, given.clone());
    Box::new(Duplex::build(&down_only(config), make).unwrap())
}

fn outage(config: &OutageConfig) -> Box<dyn Stage> {
    Box::new(Duplex::build(&down_only(config.clone()), |_, config| Outage::new(config)).unwrap())
}

fn arq(config: &ArqConfig) -> Box<dyn Stage> {
    let make = |_, config: &ArqConfig| Arq::new(config, stream("arq/damage"), stream("arq/queue"));
    Box::new(Duplex::build(&down_only(config.clone()), make).unwrap())
}

fn traffic(config: &TrafficConfig, leaves_after: u16) -> Box<dyn Stage> {
    traffic_of(config, leaves_after, "traffic/times")
}

fn traffic_of(config: &TrafficConfig, leaves_after: u16, name: &str) -> Box<dyn Stage> {
    let make =
        |direction, config: &TrafficConfig| Traffic::new(config, direction, leaves_after, stream(name));
    Box::new(Duplex::build(&down_only(config.clone()), make).unwrap())
}

fn path(stages: Vec<Box<dyn Stage>>) -> Path {
    let named = stages.into_iter().enumerate().map(|(i, stage)| Named { name: format!("stage-{i}"), stage });
    Path::new(named.collect(), Recording::Events, false)
}

/// `octets` of which the first two are a number to know them by. Not an IP packet: no stage may mind.
fn numbered(number: usize, octets: usize) -> Vec<u8> {
    let mut bytes = vec![0; octets.max(2)];
    bytes[..2].copy_from_slice(&(number as u16).to_be_bytes());
    bytes
}

fn number(bytes: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Sends each of these octets down at its time, and lets everything happen until `end`. What reached the mobile,
/// by number and time.
fn run(path: &mut Path, sent: &[(Instant, usize)], end: Instant) -> Vec<(usize, Instant)> {
    let mut arrived = Vec::new();
    let mut arrive = |now, port, bytes: Vec<u8>| {
        assert_eq!(port, MOBILE);
        arrived.push((number(&bytes), now));
    };
    for (n, (time, octets)) in sent.iter().enumerate() {
        catch_up(path, *time, &mut arrive);
        path.handle_packet(*time, FIXED, numbered(n, *octets));
        drain(path, *time, &mut arrive);
    }
    catch_up(path, end, &mut arrive);
    arrived
}

fn numbers(arrived: &[(usize, Instant)]) -> Vec<usize> {
    arrived.iter().map(|(number, _)| *number).collect()
}

/// So many packets at once, at the start.
fn burst(packets: usize, octets: usize) -> Vec<(Instant, usize)> {
    vec![(Instant::ZERO, octets); packets]
}

fn dropped(path: &mut Path) -> Vec<(u64, Why)> {
    path.take_records()
        .into_iter()
        .filter_map(|record| match record.event {
            Event::Dropped { why } => Some((record.packet.0, why)),
            _ => None,
        })
        .collect()
}

const HOUR: Instant = Instant::from_secs(3600);

// ---- link

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

// ---- outages

fn hole(packets: Meanwhile) -> OutageConfig {
    OutageConfig {
        at: vec![ms(100), ms(300)],
        lasts: ms(50),
        every: Some(ms(1000)),
        packets,
        queue: Bounds::default(),
    }
}

#[test]
fn an_outage_drops_from_its_beginning_until_before_its_end() {
    let times = [99, 100, 149, 150, 299, 300, 350, 1099, 1100, 1149, 1150, 7320, 7350];
    let sent: Vec<_> = times.iter().map(|time| (at(ms(*time)), 100)).collect();
    let mut path = path(vec![outage(&hole(Meanwhile::Dropped))]);
    let arrived = run(&mut path, &sent, HOUR);
    let left: Vec<u64> = arrived.iter().map(|(_, time)| time.as_millis()).collect();
    assert_eq!(left, [99, 150, 299, 350, 1099, 1150, 7350]);
    assert!(dropped(&mut path).iter().all(|(_, why)| *why == Why::Outage));
}

#[test]
fn a_handover_that_requeues_keeps_everything_in_order_until_its_end() {
    let queue = Bounds { packets: Some(3), bytes: None };
    let config = OutageConfig { queue, ..hole(Meanwhile::Requeued) };
    let slow = LinkConfig { rate: Some(kbit(80)), ..LinkConfig::default() };
    let sent: Vec<_> = [90, 110, 120, 130, 140, 150].map(|time| (at(ms(time)), 100)).into();
    let mut path = path(vec![outage(&config), link(&slow)]);
    // The fourth one does not fit. The one that comes just when it is over goes behind those that waited. The
    // link behind paces them: 10 ms each.
    let arrived = run(&mut path, &sent, HOUR);
    assert_eq!(
        arrived,
        [(0, at(ms(100))), (1, at(ms(160))), (2, at(ms(170))), (3, at(ms(180))), (5, at(ms(190)))]
    );
    assert_eq!(dropped(&mut path), [(4, Why::QueueFull)]);
}

#[test]
fn an_outage_that_follows_at_once_goes_on_keeping() {
    let config = OutageConfig { at: vec![ms(100), ms(150)], every: None, ..hole(Meanwhile::Requeued) };
    assert_eq!(run(&mut path(vec![outage(&config)]), &[(at(ms(120)), 100)], HOUR), [(0, at(ms(200)))]);
}

#[test]
fn an_outage_taken_back_under_way_lets_go_what_it_kept() {
    let mut path = path(vec![outage(&hole(Meanwhile::Requeued))]);
    assert!(run(&mut path, &[(at(ms(110)), 10)], at(ms(120))).is_empty());
    let later = OutageConfig { at: vec![ms(500)], ..hole(Meanwhile::Requeued) };
    path.reconfigure(at(ms(120)), 0, &down_only(later)).unwrap();
    assert_eq!((path.totals().down.left, path.held()), (1, 0));
}

#[test]
fn impossible_outages_are_refused_with_what_was_meant() {
    for (config, hint) in [
        (OutageConfig { at: vec![], ..hole(Meanwhile::Dropped) }, "`at`: no outage"),
        (OutageConfig { lasts: ms(0), ..hole(Meanwhile::Dropped) }, "`lasts`"),
        (
            OutageConfig { lasts: ms(201), ..hole(Meanwhile::Dropped) },
            "is not over when the one at 300.000ms",
        ),
        (OutageConfig { every: Some(ms(249)), ..hole(Meanwhile::Dropped) }, "the outages take 250.000ms"),
        (
            OutageConfig { queue: Bounds { packets: Some(0), bytes: None }, ..hole(Meanwhile::Dropped) },
            "`queue.packets`",
        ),
    ] {
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn a_packet_that_comes_from_the_stage_before_just_when_an_outage_is_over_goes_behind_those_kept() {
    let before = LinkConfig { rate: Some(kbit(80)), ..LinkConfig::default() };
    let config = OutageConfig { at: vec![ms(5)], lasts: ms(25), every: None, ..hole(Meanwhile::Requeued) };
    let arrived = run(&mut path(vec![link(&before), outage(&config)]), &burst(4, 100), HOUR);
    assert_eq!(arrived, [(0, at(ms(30))), (1, at(ms(30))), (2, at(ms(30))), (3, at(ms(40)))]);
}

// ---- ARQ

/// A packet of 100 octets takes 10 ms, is there after 5 ms more, and missed after another 15 ms.
fn llrtx(per: f64, retries: u32) -> ArqConfig {
    ArqConfig {
        per: p(per),
        retries,
        rate: kbit(80),
        delay: ms(5),
        feedback: Some(ms(15)),
        queue: QueueConfig::default(),
    }
}

#[test]
fn without_damage_arq_is_a_link() {
    let arrived = run(&mut path(vec![arq(&llrtx(0.0, 3))]), &burst(3, 100), HOUR);
    assert_eq!(arrived, [(0, at(ms(15))), (1, at(ms(25))), (2, at(ms(35)))]);
}

#[test]
fn a_packet_that_is_always_damaged_is_given_up_after_its_retries() {
    let mut path = path(vec![arq(&llrtx(1.0, 3))]);
    assert!(run(&mut path, &burst(1, 100), HOUR).is_empty());
    let events: Vec<_> = path.take_records().into_iter().filter(|record| record.stage == Some(0)).collect();
    let events: Vec<_> = events.into_iter().map(|record| (record.at, record.event)).collect();
    assert_eq!(
        events,
        [
            (at(ms(0)), Event::Sent { waited: ms(0) }),
            (at(ms(30)), Event::Resent { attempt: 2 }),
            (at(ms(60)), Event::Resent { attempt: 3 }),
            (at(ms(90)), Event::Resent { attempt: 4 }),
            (at(ms(120)), Event::Dropped { why: Why::RetryLimit }),
        ]
    );
}

#[test]
fn later_packets_overtake_one_that_is_sent_again() {
    // The channel is bad until 10 ms and good from then on: only the first transmission of packet 0 is damaged.
    let mut path = path(vec![arq(&llrtx(1.0, 3))]);
    let mut arrived = run(&mut path, &burst(6, 100), at(ms(10)));
    path.reconfigure(at(ms(10)), 0, &down_only(llrtx(0.0, 3))).unwrap();
    arrived.extend(run(&mut path, &[], HOUR));
    // It is missed at 30 ms, when packet 2 is just out: it goes before packet 3.
    assert_eq!(
        arrived,
        [
            (1, at(ms(25))),
            (2, at(ms(35))),
            (0, at(ms(45))),
            (3, at(ms(55))),
            (4, at(ms(65))),
            (5, at(ms(75)))
        ]
    );
}

#[test]
fn arq_gives_up_and_reorders_as_often_as_the_error_rate_says() {
    let (per, n) = (0.3, 50_000);
    let sent: Vec<_> = (0..n).map(|i| (at(ms(20) * i), 100)).collect();
    let mut path = path(vec![arq(&llrtx(per, 1))]);
    let arrived = run(&mut path, &sent, Instant::from_secs(7200));
    let lost = n as f64 - arrived.len() as f64;
    let expected = n as f64 * per * per;
    assert!((lost - expected).abs() < 3.2905 * (expected * (1.0 - per * per)).sqrt(), "{lost} of {n}");
    assert_eq!(path.totals().down.dropped_for(Why::RetryLimit), lost as u64);
    let overtaken = arrived.windows(2).filter(|pair| pair[0].0 > pair[1].0).count();
    assert!(overtaken > 5000, "{overtaken}");
}

// ---- traffic

fn cbr() -> TrafficConfig {
    TrafficConfig {
        source: Source::Cbr,
        sources: 1,
        rate: kbit(80),
        packet: Size::bytes(100),
        shape: None,
        mean_on: None,
        mean_off: None,
        begins: Begins::On,
        leaves_after: "stage-1".to_owned(),
        starts: ms(1000),
    }
}

#[test]
fn background_packets_delay_hosts_packets_and_never_reach_a_host() {
    // A link of 160 kbit/s that the source fills by half: 5 ms of each 10 ms.
    let slow = LinkConfig { rate: Some(kbit(160)), ..LinkConfig::default() };
    let mut path = path(vec![traffic(&cbr(), 1), link(&slow)]);
    let arrived =
        run(&mut path, &[(at(ms(900)), 100), (at(ms(1002)), 100), (at(ms(1018)), 100)], at(ms(2005)));
    assert_eq!(arrived, [(0, at(ms(905))), (1, at(ms(1010))), (2, at(ms(1023)))]);
    assert_eq!((path.totals().down.entered, path.totals().down.left), (3, 3));
    // 1000, 1010, …, 2000 ms.
    let background = &path.background().down;
    assert_eq!((background.entered, background.left, background.left_bytes), (101, 101, 10_100));
}

#[test]
fn background_packets_are_valid_udp_to_the_discard_port() {
    let mut out = Outbox::new(Recording::Off, false);
    for (octets, at_once) in [(28, 3), (1500, 3), (65_535, 1)] {
        let config = TrafficConfig { packet: Size::bytes(octets), sources: at_once, ..cbr() };
        let mut source = traffic(&config, 7);
        let now = source.next_deadline().unwrap();
        source.handle_deadline(now, &mut out);
        for packet in out.take() {
            assert_eq!(packet.len() as u64, octets);
            assert_eq!(packet.origin, Origin::Background { leaves_after: 7 });
            assert_eq!(packet.purpose(), Some(Purpose::Data));
            let ip = smoltcp::wire::Ipv4Packet::new_checked(&packet.bytes[..]).unwrap();
            assert!(ip.verify_checksum());
            let udp = smoltcp::wire::UdpPacket::new_checked(ip.payload()).unwrap();
            assert!(udp.verify_checksum(&ip.src_addr().into(), &ip.dst_addr().into()));
            assert_eq!(udp.dst_port(), 9);
        }
    }
}

/// What a source sends until `end`.
fn sent_by(config: &TrafficConfig, end: Instant) -> Vec<Instant> {
    let mut source = traffic(config, 0);
    let mut out = Outbox::new(Recording::Off, false);
    let mut times = Vec::new();
    while let Some(now) = source.next_deadline().filter(|now| *now <= end) {
        source.handle_deadline(now, &mut out);
        times.extend(out.take().iter().map(|_| now));
    }
    times
}

#[test]
fn several_sources_share_the_time_between_two_packets() {
    let times = sent_by(&TrafficConfig { sources: 4, ..cbr() }, at(ms(1010)));
    assert_eq!(times, [1_000_000, 1_002_500, 1_005_000, 1_007_500, 1_010_000].map(Instant::from_micros));
}

fn pareto(shape: f64) -> TrafficConfig {
    TrafficConfig {
        source: Source::ParetoOnOff,
        rate: kbit(800),
        shape: Some(shape),
        mean_on: Some(ms(1000)),
        mean_off: Some(ms(2000)),
        starts: ms(0),
        ..cbr()
    }
}

/// On and off times in seconds, to the millisecond between two packets.
fn on_and_off(times: &[Instant]) -> (Vec<f64>, Vec<f64>) {
    let (mut on, mut off, mut begin) = (Vec::new(), Vec::new(), times[0]);
    for pair in times.windows(2) {
        if pair[1] - pair[0] > ms(100) {
            on.push((pair[0] - begin).as_secs_f64());
            off.push((pair[1] - pair[0]).as_secs_f64());
            begin = pair[1];
        }
    }
    (on, off)
}

#[test]
fn pareto_sources_are_on_and_off_as_long_as_they_are_told_in_the_mean() {
    // With the shape 3 there is a variance to judge the mean by: mean² / (a (a − 2)).
    let times = sent_by(&pareto(3.0), Instant::from_secs(12_000));
    let (on, off) = on_and_off(&times);
    for (lengths, mean) in [(on, 1.0), (off, 2.0)] {
        let n = lengths.len() as f64;
        let found = lengths.iter().sum::<f64>() / n;
        let deviation = mean / 3.0_f64.sqrt() / n.sqrt();
        // A packet is 1 ms: that is how well an end is seen.
        assert!((found - mean).abs() < 3.2905 * deviation + 0.001, "{found} over {n}");
    }
    // 1000 packets/s for a third of the time. The variance of a renewal reward process: with X on, Y off,
    // Var ≈ (t / E[X+Y]) · Var(X − (X + Y)/3) · 1000².
    let (x, y) = (1.0 / 3.0, 4.0 / 3.0);
    let deviation = 1000.0 * (12_000.0_f64 / 3.0 * (x * 4.0 / 9.0 + y / 9.0)).sqrt();
    let found = times.len() as f64;
    assert!((found - 4_000_000.0).abs() < 3.2905 * deviation, "{found} packets");
}

#[test]
fn pareto_sources_have_the_heavy_tail_of_their_shape() {
    // With P1's shape of 1.5 there is no variance, but quantiles: P(X > x) = (m / x)^1.5 with m = mean / 3.
    let (on, off) = on_and_off(&sent_by(&pareto(1.5), Instant::from_secs(20_000)));
    for (lengths, least) in [(on, 1.0 / 3.0), (off, 2.0 / 3.0)] {
        let n = lengths.len() as f64;
        assert!(n > 4000.0 && lengths.iter().all(|length| *length > least - 0.002));
        for factor in [1.5, 3.0, 10.0, 30.0_f64] {
            let share = factor.powf(-1.5);
            let beyond = lengths.iter().filter(|length| **length > least * factor).count() as f64;
            let interval = 3.2905 * (n * share * (1.0 - share)).sqrt();
            assert!((beyond - n * share).abs() < interval, "{beyond} of {n} beyond {factor} × the least");
        }
    }
}

/// The first packet comes after a time of being off, which is 2/3 s at the least, and 2 s in the mean.
#[test]
fn a_source_may_begin_with_being_off() {
    let first = |begins, seed| {
        let mut source = traffic_of(&TrafficConfig { begins, ..pareto(1.5) }, 0, &format!("traffic/{seed}"));
        let mut out = Outbox::new(Recording::Off, false);
        loop {
            let now = source.next_deadline().unwrap();
            source.handle_deadline(now, &mut out);
            if !out.take().is_empty() {
                return now;
            }
        }
    };
    assert_eq!(first(Begins::On, 1), Instant::ZERO);
    let waits: Vec<_> = (1..=50).map(|seed| first(Begins::Off, seed)).collect();
    assert!(waits.iter().all(|wait| *wait > at(ms(666))), "{waits:?}");
    assert!(waits.iter().any(|wait| *wait > at(ms(1500))), "{waits:?}");
}

#[test]
fn impossible_sources_are_refused_with_what_was_meant() {
    for (config, hint) in [
        (TrafficConfig { packet: Size::bytes(27), ..cbr() }, "`packet`"),
        (TrafficConfig { sources: 0, ..cbr() }, "`sources`"),
        (TrafficConfig { shape: Some(1.5), ..cbr() }, "leave one out"),
        (TrafficConfig { begins: Begins::Off, ..cbr() }, "leave one out"),
        (TrafficConfig { mean_on: None, ..pareto(1.5) }, "`mean_on`: the source \"pareto-on-off\" needs it"),
        (TrafficConfig { shape: Some(1.0), ..pareto(1.5) }, "`shape`"),
        (TrafficConfig { shape: Some(f64::NAN), ..pareto(1.5) }, "`shape`"),
        (TrafficConfig { mean_off: Some(ms(0)), ..pareto(1.5) }, "`mean_off`"),
    ] {
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains(hint), "{error}");
    }
}

// ---- any chain

#[derive(Clone, Debug)]
enum Recipe {
    Link(LinkConfig),
    Traced(&'static str),
    /// What it follows, and the steps of its delay.
    Following(&'static str, StepsConfig),
    Loss(LossConfig),
    Outage(OutageConfig),
    Arq(ArqConfig),
    Traffic(TrafficConfig, usize),
    Reorder(ReorderConfig),
    Duplicate(DuplicateConfig),
    Corrupt(CorruptConfig),
    Truncate(TruncateConfig),
    Policer(PolicerConfig),
}

impl Recipe {
    fn reorders(&self) -> bool {
        match self {
            Self::Arq(_) | Self::Reorder(_) => true,
            Self::Link(config) => matches!(config.queue.discipline, Discipline::FqCodel(_)),
            // Copies that come later are behind packets that came later.
            Self::Duplicate(config) => !config.gap.is_zero(),
            _ => false,
        }
    }

    fn duplicates(&self) -> bool {
        matches!(self, Self::Duplicate(_))
    }

    fn truncates(&self) -> bool {
        matches!(self, Self::Truncate(_))
    }

    /// The same for both directions.
    fn stage(&self, index: usize, seed: u64) -> Box<dyn Stage> {
        let stream = |direction: Direction, what| Stream::new(seed, &format!("{index}/{direction}/{what}"));
        fn both<C: Clone>(config: &C) -> Directions<C> {
            Directions { down: Some(config.clone()), up: Some(config.clone()) }
        }
        match self {
            Self::Link(config) => Box::new(
                Duplex::build(&both(config), |d, c| {
                    Link::new(c, Given { queue: stream(d, "queue"), ..stream(d, "jitter").into() })
                })
                .unwrap(),
            ),
            Self::Traced(trace) => {
                let trace = Some(Trace::parse(trace).unwrap());
                let make = |d, c: &LinkConfig| {
                    Link::new(c, Given { trace: trace.clone(), ..stream(d, "jitter").into() })
                };
                Box::new(Duplex::build(&both(&LinkConfig::default()), make).unwrap())
            }
            Self::Following(schedule, steps) => {
                let schedule = Some(Schedule::parse(schedule, true).unwrap());
                let config = LinkConfig { steps: Some(*steps), ..LinkConfig::default() };
                let make = |d, c: &LinkConfig| {
                    Link::new(c, Given { schedule: schedule.clone(), ..stream(d, "jitter").into() })
                };
                Box::new(Duplex::build(&both(&config), make).unwrap())
            }
            Self::Loss(config) => {
                let make = |d, c: &LossConfig| Loss::new(c, stream(d, "damage"), stream(d, "state"));
                Box::new(Duplex::build(&both(config), make).unwrap())
            }
            Self::Outage(config) => Box::new(Duplex::build(&both(config), |_, c| Outage::new(c)).unwrap()),
            Self::Arq(config) => Box::new(
                Duplex::build(&both(config), |d, c| Arq::new(c, stream(d, "damage"), stream(d, "queue")))
                    .unwrap(),
            ),
            Self::Reorder(config) => {
                let make = |d, c: &ReorderConfig| Reorder::new(c, stream(d, "chosen"), stream(d, "kept"));
                Box::new(Duplex::build(&both(config), make).unwrap())
            }
            Self::Duplicate(config) => {
                let make = |d, c: &DuplicateConfig| Duplicate::new(c, stream(d, "chosen"));
                Box::new(Duplex::build(&both(config), make).unwrap())
            }
            Self::Corrupt(config) => {
                let make = |d, c: &CorruptConfig| Corrupt::new(c, stream(d, "chosen"), stream(d, "bits"));
                Box::new(Duplex::build(&both(config), make).unwrap())
            }
            Self::Truncate(config) => {
                let make = |d, c: &TruncateConfig| Truncate::new(c, stream(d, "chosen"), stream(d, "length"));
                Box::new(Duplex::build(&both(config), make).unwrap())
            }
            Self::Policer(config) => Box::new(Duplex::build(&both(config), |_, c| Policer::new(c)).unwrap()),
            Self::Traffic(config, reach) => {
                let make = |direction, c: &TrafficConfig| {
                    let leaves_after = match direction {
                        Direction::Down => index + reach,
                        Direction::Up => index.saturating_sub(*reach),
                    };
                    Traffic::new(c, direction, leaves_after as u16, stream(direction, "times"))
                };
                Box::new(Duplex::build(&both(config), make).unwrap())
            }
        }
    }
}

fn any_bounds() -> impl Strategy<Value = Bounds> {
    (proptest::option::of(1_usize..20), proptest::option::of(100_u64..20_000))
        .prop_map(|(packets, bytes)| Bounds { packets, bytes: bytes.map(Size::bytes) })
}

fn any_queue() -> impl Strategy<Value = QueueConfig> {
    let codel = (1_u64..20, 1_u64..100, 0_u64..3000, any::<bool>()).prop_map(|(target, more, mtu, ecn)| {
        CodelConfig { target: ms(target), interval: ms(target + more), mtu: Size::bytes(mtu), ecn }
    });
    let fq_codel = (1_u32..50, 100_u64..3000, codel.clone()).prop_map(|(flows, quantum, codel)| {
        Discipline::FqCodel(FqCodelConfig { flows, quantum: Size::bytes(quantum), codel })
    });
    let pie = (1_u64..30, 1_u64..30, 0.0..20.0, 0.0..200.0).prop_map(|(target, t_update, alpha, beta)| {
        let (target, t_update, max_burst, mtu) = (ms(target), ms(t_update), ms(5), Size::bytes(100));
        Discipline::Pie(PieConfig { target, t_update, alpha, beta, max_burst, mtu, ..PieConfig::default() })
    });
    let red = (0_u32..5, 1_u32..5, 0.01..1.0, 0.01..1.0, any::<bool>()).prop_map(
        |(min, more, weight, max_p, gentle)| {
            let (min, max) = (Length::Packets(min), Length::Packets(min + more));
            Discipline::Red(RedConfig { min, max, weight: p(weight), max_p: p(max_p), gentle, ecn: false })
        },
    );
    let discipline = prop_oneof![
        3 => Just(Discipline::DropTail),
        1 => codel.prop_map(Discipline::Codel),
        1 => fq_codel,
        1 => pie,
        1 => red,
    ];
    (any_bounds(), discipline).prop_map(|(bounds, discipline)| QueueConfig { bounds, discipline })
}

fn any_stage() -> impl Strategy<Value = Recipe> {
    let link = (proptest::option::of(20_000_u64..50_000_000), 0_u64..50_000, 0_u64..5_000, any_queue())
        .prop_map(|(rate, delay, jitter, queue)| {
            Recipe::Link(LinkConfig {
                rate: rate.map(Rate::bits_per_second),
                delay: us(delay),
                jitter: us(jitter),
                queue,
                ..LinkConfig::default()
            })
        });
    let loss = prop_oneof![
        (0.0..0.5).prop_map(|per| LossConfig::uniform(p(per))),
        (0.0..1e-4).prop_map(|ber| LossConfig::bit_errors(p(ber))),
        (0.0..0.1, 0.3..1.0).prop_map(|(x, y)| LossConfig::gilbert_elliott(p(x), p(y), p(0.1), p(0.3))),
        Just(LossConfig::list(vec!["packets 3-5".parse().unwrap(), "packet 40".parse().unwrap()])),
    ];
    let outage =
        (0_u64..300, 1_u64..100, any::<bool>(), any_bounds()).prop_map(|(at, lasts, requeue, queue)| {
            let packets = if requeue { Meanwhile::Requeued } else { Meanwhile::Dropped };
            Recipe::Outage(OutageConfig {
                at: vec![ms(at)],
                lasts: ms(lasts),
                every: Some(ms(lasts + at)),
                packets,
                queue,
            })
        });
    let arq = (0.0..0.6, 0_u32..4, 50_000_u64..10_000_000, 0_u64..20_000, any_queue()).prop_map(
        |(per, retries, rate, delay, queue)| {
            Recipe::Arq(ArqConfig {
                per: p(per),
                retries,
                rate: Rate::bits_per_second(rate),
                delay: us(delay),
                feedback: None,
                queue,
            })
        },
    );
    let traffic =
        (50_u64..1500, 10_u64..1000, any::<bool>(), 1_usize..4).prop_map(|(packet, rate, on_off, reach)| {
            let base = if on_off { pareto(1.5) } else { cbr() };
            let starts = ms(20);
            Recipe::Traffic(
                TrafficConfig { packet: Size::bytes(packet), rate: kbit(rate), starts, ..base },
                reach,
            )
        });
    let schedules = prop_oneof![
        Just("time ms,rate kbit\n0,500\n10,0\n13,20000\n20,0\n"),
        Just("time,delay,rate\n0s,5ms,1Mbit\n1ms,40ms,1Mbit\n9ms,0ms,9kbit\n15ms,0s,0bit\n"),
        Just("time ms,delay ms\n0,30\n7,0\n9,0\n"),
    ];
    let following = (schedules, 1_u64..50, 1_u64..50).prop_map(|(schedule, every, within)| {
        Recipe::Following(schedule, StepsConfig { every: ms(every), within: ms(within), at: None })
    });
    let chance = 0.0..1.0;
    let by_distance =
        (chance.clone(), 1_u32..8, 0_u32..8, 1_u64..100).prop_map(|(chance, least, more, at_most)| {
            ReorderConfig {
                chance: p(chance),
                distance: Some(least),
                distance_up_to: Some(least + more),
                at_most: Some(ms(at_most)),
                time: None,
                time_up_to: None,
                affects: Affects::All,
            }
        });
    let by_time = (chance.clone(), 1_u64..50, 0_u64..50).prop_map(|(chance, least, more)| ReorderConfig {
        chance: p(chance),
        distance: None,
        distance_up_to: None,
        at_most: None,
        time: Some(ms(least)),
        time_up_to: Some(ms(least + more)),
        affects: Affects::All,
    });
    let duplicate =
        (chance.clone(), 1_u32..4, prop_oneof![Just(0), 0_u64..20_000]).prop_map(|(chance, copies, gap)| {
            DuplicateConfig { chance: p(chance), copies, gap: us(gap), affects: Affects::All }
        });
    // The number by which a packet is known stays.
    let truncate = (chance.clone(), 2_u64..2000).prop_map(|(chance, to)| TruncateConfig {
        chance: p(chance),
        to: Some(Size::bytes(to)),
        affects: Affects::All,
    });
    let corrupt = chance.prop_map(|chance| CorruptConfig {
        chance: p(chance),
        bits: Some(2),
        part: Part::default(),
        checksum: Checksum::default(),
        affects: Affects::All,
    });
    let policer = (1_000_u64..10_000_000, 1_u64..10_000).prop_map(|(rate, burst)| PolicerConfig {
        rate: Rate::bits_per_second(rate),
        burst: Size::bytes(burst),
    });
    prop_oneof![
        1 => by_distance.prop_map(Recipe::Reorder),
        1 => by_time.prop_map(Recipe::Reorder),
        1 => duplicate.prop_map(Recipe::Duplicate),
        1 => corrupt.prop_map(Recipe::Corrupt),
        1 => truncate.prop_map(Recipe::Truncate),
        1 => policer.prop_map(Recipe::Policer),
        3 => link,
        1 => Just(Recipe::Traced("0\n1\n1\n4\n9\n")),
        1 => following,
        3 => loss.prop_map(Recipe::Loss),
        1 => outage,
        2 => arq,
        1 => traffic,
    ]
}

/// Packets at random times, from both sides: nanoseconds since the one before, direction, octets.
fn any_packets() -> impl Strategy<Value = Vec<(u64, bool, usize)>> {
    let gap = prop_oneof![Just(0), 0_u64..100_000, 0_u64..20_000_000];
    proptest::collection::vec((gap, any::<bool>(), 2_usize..3000), 0..150)
}

/// Nothing is lost without being dropped, and nothing comes from nowhere.
fn conserved(path: &Path) {
    let sum = |totals: &PerDirection<airlink::path::Totals>| {
        totals.iter().fold((0, 0), |(entered, gone), (_, totals)| {
            (
                entered + totals.entered + totals.copied,
                gone + totals.left + totals.dropped.iter().sum::<u64>(),
            )
        })
    };
    let (hosts, hosts_gone) = sum(path.totals());
    let (background, background_gone) = sum(path.background());
    assert!(hosts >= hosts_gone && background >= background_gone);
    assert_eq!(hosts + background, hosts_gone + background_gone + path.held() as u64);
}

/// Runs it, checking after each step. What left, and when.
fn run_conserving(
    recipes: &[Recipe],
    seed: u64,
    packets: &[(u64, bool, usize)],
) -> Vec<(Instant, Port, Vec<u8>)> {
    let stages = recipes.iter().enumerate().map(|(index, recipe)| recipe.stage(index, seed)).collect();
    let mut path = path(stages);
    let mut left: Vec<(Instant, Port, Vec<u8>)> = Vec::new();
    let mut now = Instant::ZERO;
    let step = |path: &mut Path, until: Instant, left: &mut Vec<_>| {
        while let Some(deadline) = path.next_deadline().filter(|deadline| *deadline <= until) {
            path.handle_deadline(deadline);
            drain(path, deadline, |now, port, bytes| left.push((now, port, bytes)));
            conserved(path);
        }
    };
    for (n, (gap, down, octets)) in packets.iter().enumerate() {
        now += Duration::from_nanos(*gap);
        step(&mut path, now, &mut left);
        path.handle_packet(now, if *down { FIXED } else { MOBILE }, numbered(n, *octets));
        drain(&mut path, now, |now, port, bytes| left.push((now, port, bytes)));
        conserved(&path);
    }
    step(&mut path, now + Duration::from_secs(1), &mut left);

    let any = |what: fn(&Recipe) -> bool| recipes.iter().any(what);
    let mut seen = BTreeMap::new();
    for (_, port, bytes) in &left {
        let (_, down, octets) = packets[number(bytes)];
        let whole = numbered(number(bytes), octets);
        assert_eq!(*port, if down { MOBILE } else { FIXED });
        assert!(*bytes == whole || any(Recipe::truncates) && whole.starts_with(bytes));
        let again = seen.insert(number(bytes), ()).is_some();
        assert!(!again || any(Recipe::duplicates), "a packet left twice");
    }
    let copied: u64 = path.totals().iter().map(|(_, totals)| totals.copied).sum();
    assert!(copied == 0 || any(Recipe::duplicates));
    if !any(Recipe::reorders) {
        for port in [FIXED, MOBILE] {
            let order = left.iter().filter(|(_, by, _)| *by == port).map(|(_, _, bytes)| number(bytes));
            assert!(order.is_sorted(), "nobody but those reorders");
        }
    }
    left
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_stage_alone_conserves_packets_at_every_step(stage in any_stage(), packets in any_packets()) {
        run_conserving(&[stage], 1, &packets);
    }

    #[test]
    fn any_chain_conserves_packets_at_every_step_and_repeats_to_the_bit(
        chain in proptest::collection::vec(any_stage(), 1..=6),
        packets in any_packets(),
        seed in any::<u64>(),
    ) {
        let first = run_conserving(&chain, seed, &packets);
        prop_assert_eq!(first, run_conserving(&chain, seed, &packets));
    }
}

/// What a machine has to put up with from its driver: deadlines handed in late do not shift what follows.
#[test]
fn a_driver_that_is_late_does_not_make_the_link_late() {
    let config = LinkConfig { rate: Some(kbit(80)), delay: ms(20), ..LinkConfig::default() };
    let mut stage = link(&config);
    let mut out = Outbox::new(Recording::Off, false);
    let packet = |n| {
        Packet::from(Content {
            id: PacketId(n),
            direction: Direction::Down,
            origin: Origin::Host,
            entered: Instant::ZERO,
            bytes: numbered(n as usize, 100),
        })
    };
    for n in 0..10 {
        stage.handle_packet(Instant::ZERO, packet(n), &mut out);
    }
    // Even one call for everything at 75 ms: 10 ms each and 20 ms of propagation make 5 that are out by then.
    stage.handle_deadline(at(ms(75)), &mut out);
    assert_eq!(out.take().len(), 5);
    assert_eq!(stage.next_deadline(), Some(at(ms(80))));
}
