use super::*;
use crate::stages::testing::{Bench, SIGMAS, tcp, within_binomial};

fn config(chance: f64, to: Option<u64>) -> TruncateConfig {
    TruncateConfig { chance: Probability::new(chance), to: to.map(Size::bytes), affects: Affects::All }
}

fn truncate(config: &TruncateConfig, seed: u64) -> Bench<Truncate> {
    let stream = |purpose: &str| Stream::new(seed, purpose);
    Bench::new(Truncate::new(config, stream("chosen"), stream("length")).unwrap())
}

#[test]
fn truncation_keeps_beginning_and_headers_unchanged() {
    let mut bench = truncate(&config(1.0, Some(30)), 1);
    let packet = tcp(true, b"payload");
    bench.send(Instant::ZERO, packet.clone());
    bench.send(Instant::ZERO, packet[..30].to_vec());
    bench.send(Instant::ZERO, packet[..31].to_vec());
    assert!(bench.departures.iter().all(|(_, left)| left.bytes == packet[..30]));
    let cut = |packet, from| (packet, Event::Truncated { from, to: 30 });
    assert_eq!(bench.events(), [cut(0, 47), cut(2, 31)], "a packet of the target length is not cut");
    assert_eq!(bench.stage.stats()["bytes_cut"], 17 + 1);
}

#[test]
fn shorter_lengths_are_equally_likely() {
    let n = 50_000;
    let mut bench = truncate(&config(1.0, None), 1);
    for _ in 0..n {
        bench.send(Instant::ZERO, vec![0; 11]);
    }
    for octets in 1..=10 {
        let count = bench.departures.iter().filter(|(_, packet)| packet.len() == octets).count();
        within_binomial(count, n, 0.1);
    }
    let mean = bench.lengths().iter().sum::<usize>() as f64 / n as f64;
    assert!((mean - 5.5).abs() <= SIGMAS * (8.25 / n as f64).sqrt(), "{mean}");
}

#[test]
fn truncated_share_matches_chance_and_affects() {
    for (seed, chance) in [(1, 0.01), (2, 0.3)] {
        let n = 50_000;
        let mut bench = truncate(&config(chance, Some(20)), seed);
        for _ in 0..n {
            bench.send(Instant::ZERO, vec![0; 40]);
        }
        within_binomial(bench.departures.iter().filter(|(_, packet)| packet.len() == 20).count(), n, chance);
    }
    let mut bench = truncate(&TruncateConfig { affects: Affects::Acks, ..config(1.0, Some(20)) }, 1);
    bench.send(Instant::ZERO, tcp(false, b"data"));
    bench.send(Instant::ZERO, tcp(false, b""));
    assert_eq!(bench.lengths(), [64, 20]);
}

#[test]
fn packets_of_one_byte_are_not_truncated() {
    let mut bench = truncate(&config(1.0, None), 1);
    bench.send(Instant::ZERO, vec![7]);
    bench.send(Instant::ZERO, Vec::new());
    assert_eq!(bench.lengths(), [1, 0]);
    assert!(bench.events().is_empty());
}

#[test]
fn length_is_reconfigurable_and_zero_is_rejected() {
    let mut bench = truncate(&config(1.0, Some(30)), 1);
    bench.stage.reconfigure(Instant::ZERO, &config(1.0, Some(10)), &mut bench.out);
    bench.send(Instant::ZERO, vec![0; 40]);
    assert_eq!(bench.departures[0].1.len(), 10);
    assert_eq!(config(1.0, Some(0)).validate().unwrap_err().key, "to");
    assert_eq!(bench.stage.check(&config(1.0, Some(0))).unwrap_err().setting, "to");
}
