use airwire::rng::Stream;

use super::*;
use crate::stage::Event;
use crate::stages::testing::Bench;

fn config(rate: u64, burst: u64) -> PolicerConfig {
    PolicerConfig { rate: Rate::bits_per_second(rate), burst: Size::bytes(burst) }
}

fn policer(rate: u64, burst: u64) -> Bench<Policer> {
    Bench::new(Policer::new(&config(rate, burst)).unwrap())
}

#[test]
fn policer_passes_burst_then_configured_rate() {
    // 1000 bytes at 8000 bit/s take 1 s.
    let mut bench = policer(8_000, 3_000);
    for at in [0, 0, 0, 0, 999, 1_000, 1_500, 2_000] {
        bench.send(Instant::from_millis(at), vec![0; 1_000]);
    }
    let policed = |packet| (packet, Event::Dropped { why: DropReason::Policed });
    assert_eq!(bench.events(), [policed(3), policed(4), policed(6)]);
    assert_eq!(bench.order(), [0, 1, 2, 5, 7]);
    assert_eq!(bench.stage.stats()["bytes_out"], 5_000);
}

#[test]
fn token_bucket_is_exact_to_nanosecond() {
    // 1 byte at 7 bit/s takes 8/7 s, which is not a whole number of nanoseconds: 1142857142.857….
    let mut bench = policer(7, 1);
    bench.send(Instant::ZERO, vec![0]);
    bench.send(Instant::from_nanos(1_142_857_142), vec![0]);
    assert_eq!(bench.order(), [0]);
    bench.send(Instant::from_nanos(1_142_857_143), vec![0]);
    assert_eq!(bench.order(), [0, 2]);
    // Seven bytes take exactly 8 s. Each byte is tried at the last nanosecond before its time and at the
    // first nanosecond after its time.
    let mut bench = policer(7, 2);
    bench.send(Instant::ZERO, vec![0; 2]);
    for n in 1..=7_u64 {
        let exact = n * 8_000_000_000;
        bench.send(Instant::from_nanos(exact.div_ceil(7) - 1), vec![0]);
        bench.send(Instant::from_nanos(exact.div_ceil(7)), vec![0]);
    }
    assert_eq!(bench.order(), [0, 2, 4, 6, 8, 10, 12, 14]);
    assert_eq!(bench.departures.last().unwrap().0, Instant::from_secs(8));
}

/// In any interval of length T, at most burst + rate · T passes. Under a constant overload, the amount that
/// passes is at most one packet smaller.
#[test]
fn policer_never_exceeds_burst_plus_rate() {
    let (rate, burst) = (1_000_000, 5_000);
    let mut bench = policer(rate, burst);
    let mut stream = Stream::new(1, "sizes");
    let mut now = 0;
    for _ in 0..3_000 {
        now += stream.below(8_000_000);
        bench.send(Instant::from_nanos(now), vec![0; 1 + stream.below(1_500) as usize]);
    }
    let passed: Vec<(u64, u128)> =
        bench.departures.iter().map(|(at, packet)| (at.as_nanos(), packet.len() as u128)).collect();
    assert!(passed.len() > 500);
    for (first, (from, _)) in passed.iter().enumerate() {
        let mut octets = 0;
        for (until, len) in &passed[first..] {
            octets += len;
            let allowed = u128::from(burst) * PER_OCTET + u128::from(until - from) * u128::from(rate);
            assert!(octets * PER_OCTET <= allowed, "{octets} from {from} to {until}");
        }
    }
    // 100 packets of 40 bytes per second.
    let mut bench = policer(40_000, 1_000);
    bench.stream(1_000, Duration::from_millis(10));
    let octets: usize = bench.lengths().iter().sum();
    let load = 1_000 * 40;
    assert_eq!(octets, load, "32 kbit/s are below the rate");
    let mut bench = policer(16_000, 1_000);
    bench.stream(1_000, Duration::from_millis(10));
    let octets: usize = bench.lengths().iter().sum();
    // 9.99 s at 2000 bytes/s, plus the burst.
    assert!((19_980 + 1_000 - 40..=19_980 + 1_000).contains(&octets), "{octets}");
}

#[test]
fn dropped_packet_consumes_no_tokens() {
    let mut bench = policer(8, 100);
    for octets in [60, 60, 40, 1] {
        bench.send(Instant::ZERO, vec![0; octets]);
    }
    assert_eq!(bench.order(), [0, 2]);
    // The bucket never holds more than its size, even after a long time without packets.
    bench.send(Instant::from_secs(1_000_000), vec![0; 101]);
    bench.send(Instant::from_secs(1_000_000), vec![0; 100]);
    bench.send(Instant::from_secs(1_000_000), vec![0; 1]);
    assert_eq!(bench.order(), [0, 2, 5]);
}

#[test]
fn new_rate_applies_immediately() {
    let mut bench = policer(8_000, 1_000);
    bench.send(Instant::ZERO, vec![0; 1_000]);
    // Half a second at 1000 bytes/s, then at 100 bytes/s.
    bench.stage.reconfigure(Instant::from_millis(500), &config(800, 600), &mut bench.out);
    bench.send(Instant::from_millis(500), vec![0; 501]);
    bench.send(Instant::from_millis(500), vec![0; 400]);
    bench.send(Instant::from_millis(1_500), vec![0; 201]);
    bench.send(Instant::from_millis(1_500), vec![0; 200]);
    assert_eq!(bench.order(), [0, 2, 4]);
    // A smaller bucket discards excess tokens.
    let mut bench = policer(8_000, 1_000);
    bench.stage.reconfigure(Instant::ZERO, &config(8_000, 300), &mut bench.out);
    bench.send(Instant::ZERO, vec![0; 301]);
    bench.send(Instant::ZERO, vec![0; 300]);
    assert_eq!(bench.order(), [1]);
}

#[test]
fn policing_is_congestion_and_burst_is_validated() {
    assert_eq!(DropReason::Policed.cause(), Some(airwire::Cause::Congestion));
    assert_eq!(config(1, 0).validate().unwrap_err().key, "burst");
    assert_eq!(config(1, 1_000_000_000_001).validate().unwrap_err().key, "burst");
}
