use std::collections::BTreeMap;

use super::*;
use crate::stages::testing::{Bench, SIGMAS, at, ms, tcp, within_binomial};

fn by_distance(chance: f64, distance: u32) -> ReorderConfig {
    ReorderConfig {
        chance: Probability::new(chance),
        distance: Some(distance),
        distance_up_to: None,
        at_most: None,
        time: None,
        time_up_to: None,
        affects: Affects::All,
    }
}

fn by_time(chance: f64, time: Duration) -> ReorderConfig {
    ReorderConfig { distance: None, time: Some(time), ..by_distance(chance, 1) }
}

fn reorder(config: &ReorderConfig, seed: u64) -> Bench<Reorder> {
    let stream = |purpose: &str| Stream::new(seed, purpose);
    Bench::new(Reorder::new(config, stream("chosen"), stream("kept")).unwrap())
}

/// Sends `n` packets, one per millisecond, and returns the bench after all have left.
fn streamed(config: &ReorderConfig, seed: u64, n: u64) -> Bench<Reorder> {
    let mut bench = reorder(config, seed);
    bench.stream(n, ms(1));
    bench.advance(at(1_000_000));
    bench
}

/// Returns the reordered packets. RFC 4737 §3.3: a packet is reordered if a later packet arrived earlier.
fn reordered(order: &[u64]) -> Vec<u64> {
    let mut next = 0;
    let mut late = Vec::new();
    for number in order {
        if *number < next {
            late.push(*number);
        }
        next = next.max(number + 1);
    }
    late
}

/// Returns the reordering extents (RFC 4737 §4.2.1): the number of arrivals from the earliest packet that was
/// sent later to the reordered one.
fn extents(order: &[u64]) -> BTreeMap<u64, u64> {
    let late = reordered(order);
    let extent = |number: &u64| {
        let position = order.iter().position(|other| other == number).unwrap();
        let first = order.iter().position(|other| other > number).unwrap();
        (*number, (position - first) as u64)
    };
    late.iter().map(extent).collect()
}

#[test]
fn distance_counts_unchosen_packets_that_overtake() {
    for (seed, distance) in [(1, 1), (2, 3), (3, 10)] {
        let mut bench = streamed(&by_distance(0.05, distance), seed, 4_000);
        let chosen: Vec<u64> = bench
            .events()
            .into_iter()
            .filter(|(_, event)| matches!(event, Event::Held { .. }))
            .map(|(number, _)| number)
            .collect();
        // Compute the expected order by sorting: each chosen packet follows the `distance`-th later packet
        // that is not chosen.
        let mut passed = 0;
        let mut expected: Vec<(u64, u64, u64)> = Vec::new();
        for number in 0..4_000 {
            if chosen.contains(&number) {
                expected.push((passed + u64::from(distance), 1, number));
            } else {
                passed += 1;
                expected.push((passed, 0, number));
            }
        }
        expected.sort_unstable();
        assert_eq!(bench.order(), expected.iter().map(|(_, _, number)| *number).collect::<Vec<_>>());
    }
}

#[test]
fn reordered_share_and_extent_match_settings() {
    for (seed, chance, distance) in [(1, 0.01, 1), (2, 0.02, 3), (3, 0.1, 5), (4, 0.5, 2)] {
        let n = 20_000;
        let bench = streamed(&by_distance(chance, distance), seed, n);
        let order = bench.order();
        assert_eq!(order.len(), n as usize);
        within_binomial(reordered(&order).len(), n as usize, chance);
        assert_eq!(reordered(&order).len() as u64, bench.stage.overtaken);
    }
    // A reordered packet without other chosen packets nearby is late by exactly the distance.
    let mut bench = streamed(&by_distance(0.01, 4), 9, 3_000);
    let extents = extents(&bench.order());
    let late: Vec<u64> = extents.keys().copied().collect();
    let alone = |number: &u64| late.iter().all(|other| other == number || other.abs_diff(*number) > 8);
    assert!(late.iter().filter(|number| alone(number)).count() > 10);
    for number in late.iter().filter(|number| alone(number)) {
        assert_eq!(extents[number], 4, "packet {number}");
    }
    let events: BTreeMap<u64, u64> = bench
        .events()
        .into_iter()
        .filter_map(|(number, event)| match event {
            Event::Overtaken { packets } => Some((number, packets)),
            _ => None,
        })
        .collect();
    for number in late.iter().filter(|number| alone(number)) {
        assert_eq!(events[number], 4);
    }
}

#[test]
fn distances_between_bounds_are_equally_likely() {
    let config = ReorderConfig { distance_up_to: Some(6), ..by_distance(0.002, 3) };
    let mut counts = BTreeMap::new();
    for seed in 0..20 {
        let mut bench = reorder(&config, seed);
        bench.stream(20_000, ms(1));
        for (_, event) in bench.events() {
            if let Event::Overtaken { packets } = event {
                *counts.entry(packets).or_insert(0) += 1;
            }
        }
    }
    // A few packets have another chosen packet nearby, which may also overtake.
    let n: usize = (3..=6).map(|distance| counts[&distance]).sum();
    assert!(n > 700);
    for distance in 3..=6 {
        within_binomial(counts[&distance], n, 0.25);
    }
    assert!(!counts.contains_key(&2) && !counts.contains_key(&10), "{counts:?}");
}

#[test]
fn held_packet_leaves_after_timeout() {
    let mut bench = reorder(&by_distance(1.0, 3), 1);
    bench.send(at(5), vec![0; 40]);
    assert_eq!((bench.stage.held(), bench.stage.next_deadline()), (1, Some(at(105))));
    bench.advance(at(1_000));
    assert_eq!(bench.departures[0].0, at(105));
    assert_eq!(bench.events(), [(0, Event::Held { until: at(105) })], "no packet overtook it");
    let mut bench = reorder(&ReorderConfig { at_most: Some(ms(7)), ..by_distance(1.0, 3) }, 1);
    bench.send(at(5), vec![0; 40]);
    bench.advance(at(1_000));
    assert_eq!(bench.departures[0].0, at(12));
}

#[test]
fn timed_reordering_delays_packet_by_fixed_time() {
    for (seed, chance) in [(1, 0.01), (2, 0.1), (3, 0.5)] {
        let n = 20_000;
        let bench = streamed(&by_time(chance, Duration::from_micros(10_500)), seed, n);
        let mut held = 0;
        for (left, packet) in &bench.departures {
            let after = *left - at(packet.id.0);
            assert!(after.is_zero() || after == Duration::from_micros(10_500), "{after}");
            held += usize::from(!after.is_zero());
        }
        within_binomial(held, n as usize, chance);
        assert!(bench.departures.is_sorted_by_key(|(left, _)| *left));
    }
    // The next ten packets arrive within 10.5 ms.
    let bench = streamed(&by_time(0.001, Duration::from_micros(10_500)), 4, 20_000);
    let order = bench.order();
    let extents = extents(&order);
    assert!(extents.len() > 5 && extents.values().all(|extent| *extent == 10), "{extents:?}");
}

#[test]
fn hold_times_are_uniform_between_bounds() {
    let config = ReorderConfig { time_up_to: Some(ms(30)), ..by_time(1.0, ms(10)) };
    let n = 20_000;
    let bench = streamed(&config, 1, n);
    let times: Vec<f64> =
        bench.departures.iter().map(|(left, packet)| (*left - at(packet.id.0)).as_secs_f64()).collect();
    assert!(times.iter().all(|time| (0.010..=0.030).contains(time)));
    let mean = times.iter().sum::<f64>() / n as f64;
    let deviation = 0.020 / (12.0 * n as f64).sqrt();
    assert!((mean - 0.020).abs() <= SIGMAS * deviation, "{mean}");
    for quarter in 0..4 {
        let from = 0.010 + 0.005 * f64::from(quarter);
        within_binomial(
            times.iter().filter(|time| (from..from + 0.005).contains(*time)).count(),
            n as usize,
            0.25,
        );
    }
}

#[test]
fn packet_arriving_at_hold_end_follows_held_packet() {
    let mut bench = reorder(&by_time(1.0, ms(10)), 1);
    bench.send(at(0), vec![0; 40]);
    let config = by_time(0.0, ms(10));
    assert!(bench.stage.check(&config).is_ok());
    bench.stage.reconfigure(at(1), &config, &mut bench.out);
    bench.send(at(5), vec![0; 40]);
    bench.send(at(10), vec![0; 40]);
    assert_eq!(bench.order(), [1, 0, 2]);
    let events = bench.events();
    assert_eq!(events, [(0, Event::Held { until: at(10) }), (0, Event::Overtaken { packets: 1 })]);
    assert_eq!(bench.stage.held(), 0);
    assert_eq!(bench.stage.stats()["overtaken"], 1);
}

#[test]
fn affects_filters_chosen_packets_without_changing_draws() {
    let chosen = |affects, bytes: &dyn Fn(u64) -> Vec<u8>| {
        let mut bench = reorder(&ReorderConfig { affects, ..by_time(0.3, ms(50)) }, 5);
        for n in 0..2_000 {
            bench.send(at(n), bytes(n));
        }
        let events = bench.events();
        let held = events.iter().filter(|(_, event)| matches!(event, Event::Held { .. }));
        held.map(|(number, _)| *number).collect::<Vec<_>>()
    };
    let mixed = |n: u64| if n.is_multiple_of(2) { tcp(true, &[]) } else { tcp(true, &[1; 10]) };
    let all = chosen(Affects::All, &mixed);
    let (acks, data) = (chosen(Affects::Acks, &mixed), chosen(Affects::Data, &mixed));
    assert_eq!(acks, all.iter().copied().filter(|n| n % 2 == 0).collect::<Vec<_>>());
    assert_eq!(data, all.iter().copied().filter(|n| n % 2 == 1).collect::<Vec<_>>());
}

#[test]
fn default_distance_is_one_packet() {
    let mut bench = reorder(&ReorderConfig { distance: None, ..by_distance(1.0, 9) }, 1);
    bench.send(at(0), vec![0; 40]);
    bench.stage.reconfigure(at(1), &by_distance(0.0, 9), &mut bench.out);
    bench.send(at(2), vec![0; 40]);
    assert_eq!(bench.order(), [1, 0]);
}

#[test]
fn invalid_setting_error_names_key() {
    let base = by_distance(0.1, 3);
    let time = by_time(0.1, ms(10));
    for (config, key) in [
        (ReorderConfig { distance: Some(0), ..base.clone() }, "distance"),
        (ReorderConfig { distance_up_to: Some(2), ..base.clone() }, "distance_up_to"),
        (ReorderConfig { at_most: Some(Duration::ZERO), ..base.clone() }, "at_most"),
        (ReorderConfig { time: Some(ms(1)), ..base.clone() }, "time"),
        (ReorderConfig { time_up_to: Some(ms(1)), ..base }, "time_up_to"),
        (ReorderConfig { time: Some(Duration::ZERO), ..time.clone() }, "time"),
        (ReorderConfig { time_up_to: Some(ms(9)), ..time.clone() }, "time_up_to"),
        (ReorderConfig { distance_up_to: Some(9), ..time.clone() }, "distance_up_to"),
        (ReorderConfig { at_most: Some(ms(9)), ..time }, "at_most"),
    ] {
        assert_eq!(config.validate().unwrap_err().key, key, "{config:?}");
    }
}
