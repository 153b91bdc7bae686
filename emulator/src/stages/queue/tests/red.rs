use airwire::units::{Probability, Size};

use super::ms;
use crate::stage::DropReason;
use crate::stages::queue::testing::{Bench, ect, udp};
use crate::stages::queue::{Discipline, Length, RedConfig};

fn config() -> RedConfig {
    RedConfig { max_p: Probability::new(0.1), weight: Probability::new(1.0), ..RedConfig::default() }
}

fn average(bench: &Bench) -> f64 {
    bench.queue.stats()["avg"].as_f64().unwrap()
}

/// Returns a queue with `packets` waiting packets and the same average.
fn filled(config: RedConfig, packets: usize, seed: u64) -> Bench {
    let mut bench = Bench::with(Discipline::Red(config).into(), seed);
    while bench.queue.len() < packets {
        bench.push(ms(0), udp(1, 1, 1000));
    }
    bench.drops();
    bench
}

#[test]
fn average_is_exponentially_weighted_moving_average() {
    let weight = 1.0 / 512.0;
    let in_packets = RedConfig { weight: Probability::new(weight), ..RedConfig::default() };
    let size = Size::bytes;
    let in_octets =
        RedConfig { min: Length::Bytes(size(5000)), max: Length::Bytes(size(15_000)), ..in_packets };
    for (config, unit) in [(in_packets, 1), (in_octets, 700)] {
        let mut bench = Bench::new(Discipline::Red(config));
        let mut by_hand = 0.0;
        for n in 0..500_u64 {
            by_hand += weight * (bench.queue.len() as f64 * f64::from(unit) - by_hand);
            bench.push(ms(n), udp(1, 1, 700));
            assert!((average(&bench) - by_hand).abs() <= 1e-12 * by_hand, "{} {by_hand}", average(&bench));
            if n % 3 == 0 && bench.queue.len() > 2 {
                bench.pop(ms(n));
            }
        }
        assert!(by_hand > 5.0);
    }
}

#[test]
fn average_decays_while_link_is_idle() {
    let config = RedConfig { weight: Probability::new(0.002), ..RedConfig::default() };
    let mut bench = Bench::new(Discipline::Red(config));
    bench.fill(ms(0), 60);
    let mut at = 0;
    // A transmission takes 4 ms.
    while bench.pop(ms(at)).is_some() {
        at += 4;
    }
    let before = average(&bench);
    assert!(before > 1.0);
    // An idle time of 600 ms corresponds to 150 transmissions.
    bench.push(ms(at + 600), udp(1, 1, 1000));
    let law = before * 0.998_f64.powi(150);
    assert!((average(&bench) - law).abs() < 1e-9 * law, "{} {law}", average(&bench));
    // The idle time is over. The next packet updates the average in the usual way.
    bench.push(ms(at + 700), udp(1, 1, 1000));
    let next = law + 0.002 * (1.0 - law);
    assert!((average(&bench) - next).abs() < 1e-9 * next);
}

#[test]
fn gaps_between_drops_are_uniform() {
    // p_b = 0.1 (10 - 5) / (15 - 5) = 1/20, so gaps are uniform in 1..=20.
    let mut gaps = [0_u32; 21];
    let drops = 20_000;
    let mut bench = filled(config(), 10, 5);
    let mut gap = 0;
    let mut dropped_so_far = 0;
    while dropped_so_far <= drops {
        gap += 1;
        bench.push(ms(1), udp(1, 1, 1000));
        match bench.drops().as_slice() {
            [] => {
                bench.pop(ms(1));
            }
            [(_, _, why)] => {
                assert_eq!(*why, DropReason::Aqm);
                // The length of the first gap is unknown.
                if dropped_so_far > 0 {
                    gaps[gap] += 1;
                }
                dropped_so_far += 1;
                gap = 0;
            }
            more => panic!("{more:?}"),
        }
    }
    let expected = f64::from(drops) / 20.0;
    let chi_square: f64 =
        gaps[1..].iter().map(|number| (f64::from(*number) - expected).powi(2) / expected).sum();
    // The 99.9 % quantile with 19 degrees of freedom is 43.8.
    assert!(chi_square < 43.8 && gaps[0] == 0, "{gaps:?}: {chi_square}");
}

/// Returns the fraction of 2000 packets that is dropped when each finds this number of waiting packets.
fn dropped_at(config: RedConfig, waiting: usize) -> f64 {
    let mut bench = Bench::new(Discipline::DropTail);
    bench.fill(ms(0), waiting);
    bench.reconfigure(ms(0), Discipline::Red(config).into());
    let mut dropped = 0;
    for _ in 0..2000 {
        bench.push(ms(1), udp(1, 1, 1000));
        match bench.drops().len() {
            0 => drop(bench.pop(ms(1))),
            n => dropped += n,
        }
    }
    dropped as f64 / 2000.0
}

#[test]
fn no_drops_below_min_and_all_above_max() {
    assert_eq!(
        (dropped_at(config(), 4), dropped_at(config(), 15), dropped_at(config(), 40)),
        (0.0, 1.0, 1.0)
    );
    // One packet in (20 + 1) / 2 is dropped.
    assert!((dropped_at(config(), 10) - 2.0 / 21.0).abs() < 0.01);
}

#[test]
fn gentle_mode_ramps_up_to_twice_max() {
    let gentle = RedConfig { gentle: true, ..config() };
    // p_b = 0.1 + 0.9 · 5 / 15 = 0.4. The gap is 1, 2 or 3 packets with the probabilities 0.4, 0.4 and 0.2,
    // so one packet in 1.8 is dropped.
    assert!((dropped_at(gentle, 20) - 1.0 / 1.8).abs() < 0.03, "{}", dropped_at(gentle, 20));
    assert_eq!((dropped_at(gentle, 30), dropped_at(gentle, 50)), (1.0, 1.0));
}

#[test]
fn ect_packets_are_marked_instead_of_dropped() {
    let mut bench = filled(RedConfig { ecn: true, ..config() }, 14, 1);
    let mut marked = 0;
    for _ in 0..1000 {
        bench.push(ms(1), ect(udp(1, 1, 1000)));
        marked += bench.marks().len();
        bench.pop(ms(1));
    }
    // p_b = 0.09, so one packet in 6 is marked on average.
    assert!((130..=200).contains(&marked), "{marked}");
    assert_eq!(bench.queue.len(), 14);
}
