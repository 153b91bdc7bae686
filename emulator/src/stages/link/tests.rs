use std::path::Path;

use super::*;
use crate::stages::queue::{CodelConfig, Discipline};
use crate::stages::testing::{Bench, SIGMAS, at, ms};

fn us(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn link(config: &LinkConfig) -> Bench<Link> {
    Bench::new(Link::new(config, Stream::new(1, "link").into()).unwrap())
}

fn following(config: &LinkConfig, text: &str, is_looped: bool) -> Bench<Link> {
    let schedule = Some(Schedule::parse(text, is_looped).unwrap());
    Bench::new(Link::new(config, LinkInputs { schedule, ..Stream::new(1, "link").into() }).unwrap())
}

fn follows(text: &str) -> Bench<Link> {
    following(&LinkConfig::default(), text, false)
}

/// Sends packets with these times and lengths, and returns the times at which they left.
fn times(mut bench: Bench<Link>, packets: &[(Instant, usize)]) -> Vec<Instant> {
    for (at, octets) in packets {
        bench.send(*at, vec![0; *octets]);
    }
    bench.advance(Instant::from_secs(10_000_000));
    assert_eq!(bench.stage.held(), 0);
    assert_eq!(bench.order(), (0..packets.len() as u64).collect::<Vec<_>>());
    bench.departures.iter().map(|(at, _)| *at).collect()
}

#[test]
fn constant_schedule_equals_plain_rate_and_delay() {
    let mut stream = Stream::new(1, "packets");
    let mut now = 0;
    let packets: Vec<(Instant, usize)> = (0..2_000)
        .map(|_| {
            now += stream.below(2) * stream.below(30_000_000);
            (Instant::from_nanos(now), 1 + stream.below(1_500) as usize)
        })
        .collect();
    let rate = Rate::bits_per_second(999_983);
    let config = LinkConfig { rate: Some(rate), delay: ms(7), ..LinkConfig::default() };
    let plain = times(link(&config), &packets);
    let lines: String = (1..500).map(|n| format!("{n}ms,999983bit,7ms\n")).collect();
    let text = format!("time,rate,delay\n0s,999983bit,7ms\n{lines}");
    assert_eq!(times(following(&LinkConfig::default(), &text, false), &packets), plain);
    assert_eq!(times(following(&LinkConfig::default(), &text, true), &packets), plain);
    let delays = "time ms,delay ms\n0,7\n3,7\n";
    let config = LinkConfig { rate: Some(rate), ..LinkConfig::default() };
    assert_eq!(times(following(&config, delays, false), &packets), plain);
}

#[test]
fn rate_change_during_transmission_keeps_sent_part() {
    // 1000 bytes at 8 kbit/s take 1 s. Half of the packet is sent when the rate doubles.
    let text = "time s,rate kbit\n0,8\n0.5,16\n";
    assert_eq!(times(follows(text), &[(at(0), 1_000), (at(0), 1_000)]), [at(750), at(1_250)]);
    // The rate drops to 0 and later becomes a tenth of the first rate.
    let text = "time s,rate kbit\n0,8\n0.5,0\n10,0.8\n";
    assert_eq!(times(follows(text), &[(at(0), 1_000), (at(700), 100)]), [at(15_000), at(16_000)]);
    // A change exactly at the end of a packet applies to the next one.
    let text = "time s,rate kbit\n0,8\n1,16\n";
    assert_eq!(times(follows(text), &[(at(0), 1_000), (at(0), 1_000)]), [at(1_000), at(1_500)]);
}

#[test]
fn packets_wait_while_rate_is_zero() {
    let text = "time ms,rate kbit\n0,0\n100,8\n200,0\n300,8\n";
    assert_eq!(
        times(follows(text), &[(at(0), 50), (at(10), 50), (at(10), 50), (at(900), 1)]),
        [at(150), at(200), at(350), at(901)]
    );
    // A packet arrives at the empty link while the rate is 0.
    assert_eq!(times(follows(text), &[(at(250), 10)]), [at(310)]);
    let mut bench = follows(text);
    bench.send(at(250), vec![0; 10]);
    assert_eq!((bench.stage.held(), bench.stage.next_deadline()), (1, Some(at(300))));
    let events = bench.events();
    assert_eq!(events, [(0, Event::Queued { packets: 0, bytes: 0 })]);
}

#[test]
fn schedule_loops_or_holds_last_line() {
    let text = "time ms,rate kbit\n0,8\n10,80\n20,800\n";
    // 10 bytes take 10 ms, 1 ms or 0.1 ms.
    let packets: Vec<_> = [0, 10, 20, 30, 1_000_000_020].map(|at_ms| (at(at_ms), 10)).to_vec();
    assert_eq!(
        times(following(&LinkConfig::default(), text, true), &packets),
        [at(10), at(11), at(30), at(31), at(1_000_000_030)]
    );
    assert_eq!(
        times(follows(text), &packets),
        [at(10), at(11), us(20_100), us(30_100), us(1_000_000_020_100)]
    );
}

/// A period of 30 ms has room for 100 + 0 + 300 bytes.
#[test]
fn saturated_link_carries_capacity_of_schedule() {
    let text = "time ms,rate kbit\n0,80\n10,0\n20,240\n30,0\n";
    let packets = vec![(at(0), 40); 1_000];
    let left = times(following(&LinkConfig::default(), text, true), &packets);
    for (n, left) in left.iter().enumerate() {
        // Packet n has left when 40 (n + 1) bytes have: after whole periods, and the rest in the first or
        // third part of the next one.
        let octets = 40 * (n as u64 + 1);
        let (laps, rest) = (octets / 400, octets % 400);
        let exact = match (laps, rest) {
            (laps, 0) => laps * 30_000,
            (laps, rest @ 1..=100) => laps * 30_000 + rest * 100,
            (laps, rest) => laps * 30_000 + 20_000 + (rest - 100) * 1_000 / 30,
        };
        assert!(left.as_nanos().abs_diff(exact * 1_000) <= 1_000, "packet {n}: {left}, {exact} us");
    }
}

#[test]
fn delay_follows_schedule_without_reordering() {
    let text = "time ms,delay ms\n0,50\n10,20\n100,90\n";
    let packets = [(at(0), 1), (at(9), 1), (at(10), 1), (at(45), 1), (at(99), 1), (at(100), 1)];
    assert_eq!(times(follows(text), &packets), [at(50), at(59), at(59), at(65), at(119), at(190)]);
    // The delay counts from the end of the transmission.
    let text = "time ms,rate kbit,delay ms\n0,8,50\n10,8,90\n";
    assert_eq!(times(follows(text), &[(at(0), 9), (at(9), 1)]), [at(59), at(100)]);
}

#[test]
fn settings_that_conflict_with_schedule_are_rejected() {
    let with = |config: &LinkConfig, text: &str| {
        let schedule = Some(Schedule::parse(text, false).unwrap());
        Link::new(config, LinkInputs { schedule, ..Stream::new(1, "link").into() })
            .err()
            .map(|invalid| invalid.key)
    };
    let rate = LinkConfig { rate: Some(Rate::bits_per_second(1)), ..LinkConfig::default() };
    let delay = LinkConfig { delay: ms(1), ..LinkConfig::default() };
    let (rates, delays) = ("time,rate\n0s,1bit\n", "time,delay\n0s,1s\n");
    assert_eq!([with(&rate, rates), with(&rate, delays)], [Some("rate".to_owned()), None]);
    assert_eq!([with(&delay, rates), with(&delay, delays)], [None, Some("delay".to_owned())]);
    let follow = LinkConfig { follow: Some("x.csv".into()), ..LinkConfig::default() };
    let both = LinkConfig { trace: Some("y".into()), ..follow.clone() };
    assert_eq!(both.validate().unwrap_err().key, "follow");
    let alone = LinkConfig { is_looped: Some(true), ..LinkConfig::default() };
    assert_eq!(alone.validate().unwrap_err().key, "loop");
    // The same holds at run time.
    let bench = following(&follow, rates, false);
    let refused = |config: LinkConfig| bench.stage.check(&config).unwrap_err().setting;
    assert_eq!(refused(LinkConfig { rate: rate.rate, ..follow.clone() }), "rate");
    assert_eq!(refused(LinkConfig { follow: None, ..follow.clone() }), "follow");
    assert_eq!(refused(LinkConfig { is_looped: Some(true), ..follow.clone() }), "loop");
    assert!(bench.stage.check(&LinkConfig { delay: ms(1), ..follow }).is_ok());
}

#[test]
fn schedule_error_names_line_without_quoting_it() {
    for (text, is_looped, line, hint) in [
        ("", false, 1, "names the columns"),
        ("secret,rate\n", false, 1, "unknown column"),
        ("time,rate,time\n", false, 1, "two columns are called `time`"),
        ("rate kbit,delay ms\n", false, 1, "missing"),
        ("time s\n0\n", false, 1, "missing"),
        ("time s,rate secret\n", false, 1, "write bit, kbit, Mbit or Gbit"),
        ("time kbit,rate\n", false, 1, "the column `time` has an unknown unit"),
        ("time s,rate kbit\n", false, 1, "the schedule is empty"),
        ("time s,rate kbit\n0,1\n", true, 2, "at least two lines"),
        ("time s,rate kbit\n1,1\n", false, 2, "at the time 0"),
        ("time s,rate kbit\n0,1\n\n", false, 3, "empty"),
        ("time s,rate kbit\n0,1,secret\n", false, 2, "3 cells, but there are 2 columns"),
        ("time s,rate kbit\n0,1\n2,1\n2,1\n", false, 4, "not later"),
        ("time s,rate kbit\n0,1\n0.00001,1\n", false, 3, "less than"),
        ("time s,rate kbit\nsecret,1\n", false, 2, "the time is invalid: write a number of 0 or more"),
        ("time,rate\n0,1bit\n", false, 2, "a number and its unit"),
        ("time,delay\n0s,-1ms\n", false, 2, "the delay is invalid"),
        ("time s,rate\n0,384\n", false, 2, "the rate is invalid"),
        ("time s,rate kbit\n0,-1\n", false, 2, "the rate is invalid"),
        ("time s,rate\n0,0\n1,1kbit\n", false, 2, "the rate is invalid"),
        ("time s,rate kbit\n0,0\n1,0\n", false, 3, "always 0"),
        ("time s,rate kbit\n0,0\n1,8\n", true, 3, "always 0"),
    ] {
        let error = Schedule::parse(text, is_looped).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line {line}: ")) && error.contains(hint), "{text:?}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
    // The parser accepts units in cells or in column names, spaces, any order of columns, and carriage
    // returns.
    let one = Schedule::parse("delay ms, time s ,rate\r\n5, 0, 1.5Mbit\r\n6,1.5,0kbit\r\n", false).unwrap();
    let other = Schedule::parse("time,rate bit,delay\n0s,1500000,5ms\n1500ms,0,6ms\n", false).unwrap();
    assert_eq!(one, other);
    let missing = Schedule::load(Path::new("/nonexistent/schedule"), false).unwrap_err().to_string();
    assert!(missing.starts_with("/nonexistent/schedule cannot be read"), "{missing}");
}

fn stepping(steps: StepsConfig, seed: u64) -> Bench<Link> {
    let config = LinkConfig { delay: ms(20), steps: Some(steps), ..LinkConfig::default() };
    Bench::new(Link::new(&config, Stream::new(seed, "link").into()).unwrap())
}

const EVERY_15: StepsConfig =
    StepsConfig { every: Duration::from_secs(15), within: Duration::from_millis(20), at: None };

#[test]
fn delay_is_constant_between_scheduled_steps() {
    let of = |config, spacing: u64, n: u64| {
        let mut bench = stepping(config, 3);
        for packet in 0..n {
            bench.send(at(packet * spacing), vec![0; 40]);
        }
        bench.advance(at(10_000_000));
        bench.departures.iter().map(|(left, packet)| *left - at(packet.id.0 * spacing)).collect::<Vec<_>>()
    };
    let delays = of(EVERY_15, 100, 4_500);
    for (step, part) in delays.chunks(150).enumerate() {
        assert!(part.iter().all(|delay| *delay == part[0]), "step {step}");
        assert!((ms(20)..=ms(40)).contains(&part[0]));
    }
    let steps: Vec<Duration> = delays.chunks(150).map(|part| part[0]).collect();
    assert!(steps.windows(2).all(|pair| pair[0] != pair[1]));
    // The first step may come earlier. No step depends on earlier packets.
    let early = of(StepsConfig { at: Some(Duration::from_secs(12)), ..EVERY_15 }, 100, 300);
    assert!(
        early[..120].iter().all(|delay| *delay == steps[0])
            && early[120..270].iter().all(|delay| *delay == steps[1])
    );
    assert_eq!(early[270], steps[2]);
    assert_eq!(of(EVERY_15, 75_000, 6)[5], steps[25]);
}

#[test]
fn delay_steps_are_uniform_and_shared_by_directions() {
    let n = 20_000;
    let mut bench = stepping(StepsConfig { every: ms(100), ..EVERY_15 }, 1);
    for step in 0..n {
        bench.send(at(step * 100), vec![0; 40]);
    }
    bench.advance(at(10_000_000));
    let more: Vec<f64> = bench
        .departures
        .iter()
        .map(|(left, packet)| (*left - at(packet.id.0 * 100 + 20)).as_secs_f64() / 0.020)
        .collect();
    let mean = more.iter().sum::<f64>() / n as f64;
    assert!((mean - 0.5).abs() <= SIGMAS / (12.0 * n as f64).sqrt(), "{mean}");
    // Consecutive values are not correlated.
    let product = more.windows(2).map(|pair| (pair[0] - 0.5) * (pair[1] - 0.5)).sum::<f64>() / n as f64;
    assert!(product.abs() <= SIGMAS / 12.0 / (n as f64).sqrt(), "{product}");

    let config = LinkConfig { steps: Some(EVERY_15), ..LinkConfig::default() };
    let wider =
        LinkConfig { steps: Some(StepsConfig { within: ms(60), ..EVERY_15 }), ..LinkConfig::default() };
    let position = Position { index: 0, names: &["satellite"] };
    let extra_delay = |config: &LinkConfig, direction, seed| {
        let mut bench = Bench::new(config.build(direction, position, seed).unwrap());
        bench.send(at(16_000), vec![0; 40]);
        bench.advance(at(20_000));
        (bench.departures[0].0 - at(16_000)).as_nanos()
    };
    let (down, up) = (extra_delay(&config, Direction::Down, 1), extra_delay(&wider, Direction::Up, 1));
    assert!((3 * down).abs_diff(up) <= 3, "{down} {up}");
    assert_ne!(down, extra_delay(&config, Direction::Down, 2));
}

#[test]
fn delay_steps_do_not_reorder_and_are_reconfigurable() {
    let mut bench = stepping(StepsConfig { every: ms(50), within: Duration::from_secs(1), at: None }, 1);
    bench.stream(2_000, ms(1));
    bench.advance(at(100_000));
    assert_eq!(bench.order(), (0..2_000).collect::<Vec<_>>());
    let config = LinkConfig { delay: ms(20), ..LinkConfig::default() };
    assert!(bench.stage.check(&config).is_ok());
    bench.stage.reconfigure(at(100_000), &config, &mut bench.out);
    bench.send(at(100_000), vec![0; 40]);
    bench.advance(at(200_000));
    assert_eq!(bench.departures.last().unwrap().0, at(100_020));
    for (steps, key) in [
        (StepsConfig { every: Duration::ZERO, ..EVERY_15 }, "steps.every"),
        (StepsConfig { within: Duration::ZERO, ..EVERY_15 }, "steps.within"),
    ] {
        let config = LinkConfig { steps: Some(steps), ..LinkConfig::default() };
        assert_eq!(config.validate().unwrap_err().key, key);
    }
}

/// 1000 bytes at 8 kbit/s take 1 s, and propagation takes 2 s.
#[test]
fn lazy_link_has_deadlines_only_for_deliveries() {
    let rate = Some(Rate::bits_per_second(8_000));
    let config = LinkConfig { rate, delay: ms(2_000), ..LinkConfig::default() };
    let codel = Discipline::Codel(CodelConfig::default());
    let managed = LinkConfig { queue: QueueConfig { discipline: codel, ..config.queue }, ..config.clone() };
    let deadlines = |config: &LinkConfig, is_lazy| {
        let mut bench = link(config);
        bench.stage.be_lazy(is_lazy);
        for _ in 0..3 {
            bench.send(Instant::ZERO, vec![0; 1000]);
        }
        let mut deadlines = Vec::new();
        while let Some(next) = bench.stage.next_deadline() {
            deadlines.push(next);
            bench.advance(next);
        }
        let left: Vec<_> = bench.departures.iter().map(|(at, _)| *at).collect();
        (deadlines, left)
    };
    let landings = vec![at(3_000), at(4_000), at(5_000)];
    assert_eq!(deadlines(&config, true), (landings.clone(), landings.clone()));
    let all = [1_000, 2_000, 3_000, 4_000, 5_000].map(at).to_vec();
    assert_eq!(deadlines(&config, false), (all.clone(), landings.clone()));
    // CoDel may drop a packet at the end of a transmission, so that moment keeps its deadline.
    assert_eq!(deadlines(&managed, true), (all, landings));
}

#[test]
fn catch_up_updates_state_of_lazy_link() {
    let rate = Some(Rate::bits_per_second(8_000));
    let config = LinkConfig { rate, delay: ms(2_000), ..LinkConfig::default() };
    let mut bench = link(&config);
    bench.stage.be_lazy(true);
    for _ in 0..3 {
        bench.send(Instant::ZERO, vec![0; 1000]);
    }
    let places = |link: &Link| {
        let stats = link.stats();
        [&stats["queue"]["packets"], &stats["transmitting"], &stats["on_the_wire"]]
            .map(|n| n.as_u64().unwrap())
    };
    assert_eq!(places(&bench.stage), [2, 1, 0]);
    bench.stage.catch_up(at(1_500), &mut bench.out);
    assert_eq!(places(&bench.stage), [1, 1, 1]);
    bench.stage.catch_up(at(2_500), &mut bench.out);
    assert_eq!(places(&bench.stage), [0, 1, 2]);
}
