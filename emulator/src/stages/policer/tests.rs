use airwire::rng::Stream;

use super::super::testing::Bench;
use super::*;
use crate::stage::Event;

fn config(rate: u64, burst: u64) -> PolicerConfig {
    PolicerConfig { rate: Rate::bits_per_second(rate), burst: Size::bytes(burst) }
}

fn policer(rate: u64, burst: u64) -> Bench<Policer> {
    Bench::new(Policer::new(&config(rate, burst)).unwrap())
}

#[test]
fn a_burst_passes_and_then_what_the_rate_allows() {
    // 1000 octets at 8000 bit/s are a second.
    let mut bench = policer(8_000, 3_000);
    for at in [0, 0, 0, 0, 999, 1_000, 1_500, 2_000] {
        bench.send(Instant::from_millis(at), vec![0; 1_000]);
    }
    let policed = |packet| (packet, Event::Dropped { why: Why::Policed });
    assert_eq!(bench.events(), [policed(3), policed(4), policed(6)]);
    assert_eq!(bench.order(), [0, 1, 2, 5, 7]);
    assert_eq!(bench.stage.stats()["bytes_out"], 5_000);
}

#[test]
fn to_the_nanosecond_without_rounding() {
    // An octet at 7 bit/s is 8/7 s, which is no whole number of nanoseconds: 1142857142.857….
    let mut bench = policer(7, 1);
    bench.send(Instant::ZERO, vec![0]);
    bench.send(Instant::from_nanos(1_142_857_142), vec![0]);
    assert_eq!(bench.order(), [0]);
    bench.send(Instant::from_nanos(1_142_857_143), vec![0]);
    assert_eq!(bench.order(), [0, 2]);
    // One after the other, each asked for every nanosecond around its time: seven octets take eight seconds exactly.
    let mut bench = policer(7, 2);
    bench.send(Instant::ZERO, vec![0; 2]);
    for n in 1..=7_u64 {
        let exact = n * 8_000_000_000;
        bench.send(Instant::from_nanos(exact.div_ceil(7) - 1), vec![0]);
        bench.send(Instant::from_nanos(exact.div_ceil(7)), vec![0]);
    }
    assert_eq!(bench.order(), [0, 2, 4, 6, 8, 10, 12, 14]);
    assert_eq!(bench.left.last().unwrap().0, Instant::from_secs(8));
}

/// In any interval of length T at most burst + rate · T passes, and under a load that is always higher at least that
/// less one packet.
#[test]
fn no_interval_has_more_than_the_burst_and_the_rate_allow() {
    let (rate, burst) = (1_000_000, 5_000);
    let mut bench = policer(rate, burst);
    let mut stream = Stream::new(1, "sizes");
    let mut now = 0;
    for _ in 0..3_000 {
        now += stream.below(8_000_000);
        bench.send(Instant::from_nanos(now), vec![0; 1 + stream.below(1_500) as usize]);
    }
    let passed: Vec<(u64, u128)> =
        bench.left.iter().map(|(at, packet)| (at.as_nanos(), packet.len() as u128)).collect();
    assert!(passed.len() > 500);
    for (first, (from, _)) in passed.iter().enumerate() {
        let mut octets = 0;
        for (until, len) in &passed[first..] {
            octets += len;
            let allowed = u128::from(burst) * PER_OCTET + u128::from(until - from) * u128::from(rate);
            assert!(octets * PER_OCTET <= allowed, "{octets} from {from} to {until}");
        }
    }
    // 100 packets of 40 octets a second.
    let mut bench = policer(40_000, 1_000);
    bench.stream(1_000, Duration::from_millis(10));
    let octets: u64 = bench.left.iter().map(|(_, packet)| packet.len() as u64).sum();
    let load = 1_000 * 40;
    assert_eq!(octets, load, "32 kbit/s are less");
    let mut bench = policer(16_000, 1_000);
    bench.stream(1_000, Duration::from_millis(10));
    let octets: u64 = bench.left.iter().map(|(_, packet)| packet.len() as u64).sum();
    // 9.99 s at 2000 octets a second, and the burst.
    assert!((19_980 + 1_000 - 40..=19_980 + 1_000).contains(&octets), "{octets}");
}

#[test]
fn a_dropped_packet_takes_no_tokens_and_a_short_one_may_pass_behind_it() {
    let mut bench = policer(8, 100);
    for octets in [60, 60, 40, 1] {
        bench.send(Instant::ZERO, vec![0; octets]);
    }
    assert_eq!(bench.order(), [0, 2]);
    // The bucket does not become fuller than full, however long nothing comes.
    bench.send(Instant::from_secs(1_000_000), vec![0; 101]);
    bench.send(Instant::from_secs(1_000_000), vec![0; 100]);
    bench.send(Instant::from_secs(1_000_000), vec![0; 1]);
    assert_eq!(bench.order(), [0, 2, 5]);
}

#[test]
fn a_new_rate_holds_from_now_on() {
    let mut bench = policer(8_000, 1_000);
    bench.send(Instant::ZERO, vec![0; 1_000]);
    // Half a second at 1000 octets a second, then at 100.
    bench.stage.reconfigure(Instant::from_millis(500), &config(800, 600), &mut bench.out);
    bench.send(Instant::from_millis(500), vec![0; 501]);
    bench.send(Instant::from_millis(500), vec![0; 400]);
    bench.send(Instant::from_millis(1_500), vec![0; 201]);
    bench.send(Instant::from_millis(1_500), vec![0; 200]);
    assert_eq!(bench.order(), [0, 2, 4]);
    // A smaller bucket loses what it has no room for.
    let mut bench = policer(8_000, 1_000);
    bench.stage.reconfigure(Instant::ZERO, &config(8_000, 300), &mut bench.out);
    bench.send(Instant::ZERO, vec![0; 301]);
    bench.send(Instant::ZERO, vec![0; 300]);
    assert_eq!(bench.order(), [1]);
}

#[test]
fn the_cause_is_congestion_and_an_empty_bucket_is_refused() {
    assert_eq!(Why::Policed.cause(), Some(airwire::Cause::Congestion));
    assert_eq!(config(1, 0).validate().unwrap_err().key, "burst");
    assert_eq!(config(1, 1_000_000_000_001).validate().unwrap_err().key, "burst");
}
