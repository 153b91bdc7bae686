//! Delay of single packets, which depends on slot grid, scheduling requests, grants and DRX.

use airlink::drb::config::{LteConfig, NrConfig};
use airlink::mac::drx::DrxConfig;
use airlink::packet::Direction;
use airlink::settings::Settings;
use airwire::time::{Duration, Instant};

use crate::run::{Run, ms, numbered};

/// Sends a packet at each of the times, which are far apart, and returns the delay of each in µs.
fn delays(config: &dyn Settings, direction: Direction, times: &[u64]) -> Vec<u64> {
    let mut run = Run::new(config, 1);
    for (n, time) in (0..).zip(times) {
        run.send(Instant::ZERO + Duration::from_micros(*time), direction, numbered(n, 100));
    }
    run.until(Instant::ZERO + Duration::from_micros(times.last().unwrap() + 1_000_000));
    assert_eq!(run.left.len(), times.len());
    run.left.iter().zip(times).map(|((at, ..), time)| at.as_micros() - time).collect()
}

/// Times 700 ms apart, whose phases cover a scheduling request period in steps of 0.1 ms.
fn phases(period: u64) -> Vec<u64> {
    (0..period / 100).map(|n| n * 700_000 + n * 100 + 30).collect()
}

/// The first slot of length `slot` that begins at or after `at`, where `uses` returns whether slot n is
/// usable.
fn next(at: u64, slot: u64, uses: impl Fn(u64) -> bool) -> u64 {
    (at.div_ceil(slot)..).find(|n| uses(*n)).unwrap() * slot
}

#[test]
fn nr_uplink_delay_includes_request_and_grant() {
    let mut config = NrConfig::default();
    let up = |n| n % 5 == 4;
    for (sr_period, delay) in [(10, 4), (20, 4), (5, 2)] {
        let grant = config.up.grant.get_or_insert_default();
        (grant.sr_period, grant.delay) = (Some(ms(sr_period)), ms(delay));
        let times = phases(1_000 * sr_period);
        let expected = times.iter().map(|time| {
            let request = next(time.div_ceil(1_000 * sr_period) * 1_000 * sr_period, 500, up);
            let granted = next(request + 1_000 * delay, 500, up);
            // A slot, then 2 ms of decoding.
            granted + 500 + 2_000 - time
        });
        assert_eq!(delays(&config, Direction::Up, &times), expected.collect::<Vec<_>>(), "SR {sr_period} ms");
    }
}

#[test]
fn lte_uplink_waits_14_ms_on_average() {
    let times = phases(10_000);
    let delays = delays(&LteConfig::default(), Direction::Up, &times);
    let expected = times.iter().map(|time| time.div_ceil(10_000) * 10_000 + 8_000 + 1_000 + 2_000 - time);
    assert_eq!(delays, expected.collect::<Vec<_>>());
    let mean = delays.iter().sum::<u64>() as f64 / delays.len() as f64 / 1_000.0;
    // Half a period, 8 ms to the grant, and the subframe. Decoding takes 2 ms more.
    assert!((mean - 2.0 - 14.0).abs() < 0.1, "{mean}");
}

#[test]
fn configured_grant_waits_for_uplink_slot_only() {
    let mut config = NrConfig::default();
    config.up.grant.get_or_insert_default().sr_period = None;
    let times = phases(5_000);
    let expected = times.iter().map(|time| next(*time, 500, |n| n % 5 == 4) + 2_500 - time);
    assert_eq!(delays(&config, Direction::Up, &times), expected.collect::<Vec<_>>());
}

#[test]
fn downlink_delay_is_slot_alignment_and_decoding() {
    let times = phases(5_000);
    let expected = times.iter().map(|time| next(*time, 500, |n| n % 5 != 4) + 2_500 - time);
    assert_eq!(delays(&NrConfig::default(), Direction::Down, &times), expected.collect::<Vec<_>>());
}

#[test]
fn drx_delays_first_packet_to_next_on_duration() {
    let drx = DrxConfig { inactivity: ms(100), cycle: ms(160), on: ms(10) };
    let config = LteConfig { drx: Some(drx), ..LteConfig::default() };
    let times: Vec<u64> = (0..80).map(|n| 2_000 * n + 1_000_000 * n).collect();
    let expected = times.iter().map(|time| {
        let listens = time % 160_000 < 10_000;
        let active = if listens { *time } else { time.div_ceil(160_000) * 160_000 };
        next(active, 1_000, |_| true) + 3_000 - time
    });
    assert_eq!(delays(&config, Direction::Down, &times), expected.collect::<Vec<_>>());
}
