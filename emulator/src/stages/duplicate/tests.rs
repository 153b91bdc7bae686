use super::*;
use crate::packet::PacketId;
use crate::stages::testing::{Bench, at, ms, tcp, within_binomial};

fn config(chance: f64, copies: u32, gap: Duration) -> DuplicateConfig {
    DuplicateConfig { chance: Probability::new(chance), copies, gap, affects: Affects::All }
}

fn duplicate(config: &DuplicateConfig, seed: u64) -> Bench<Duplicate> {
    Bench::new(Duplicate::new(config, Stream::new(seed, "chosen")).unwrap())
}

#[test]
fn copies_follow_packet_immediately_with_new_ids() {
    let mut bench = duplicate(&config(1.0, 2, Duration::ZERO), 1);
    bench.send(at(3), tcp(true, b"data"));
    let (left, packets): (Vec<_>, Vec<_>) = bench.departures.iter().cloned().unzip();
    assert_eq!(left, [at(3); 3]);
    assert_eq!(packets.iter().map(|packet| packet.id.0).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(packets.iter().all(|packet| packet.bytes == tcp(true, b"data") && packet.entered == at(3)));
    let copied = |n| (n, Event::Copied { of: PacketId(0) });
    assert_eq!(bench.events(), [copied(1), copied(2)]);
}

#[test]
fn copies_are_spaced_by_gap() {
    let mut bench = duplicate(&config(1.0, 3, ms(4)), 1);
    bench.send(at(10), vec![1; 40]);
    bench.send(at(15), vec![2; 40]);
    assert_eq!(bench.stage.held(), 3 + 3 - 1, "one copy of the first packet has left");
    bench.advance(at(1_000));
    let left: Vec<_> =
        bench.departures.iter().map(|(left, packet)| (left.as_millis(), packet.bytes[0])).collect();
    assert_eq!(left, [(10, 1), (14, 1), (15, 2), (18, 1), (19, 2), (22, 1), (23, 2), (27, 2)]);
    assert_eq!((bench.stage.held(), bench.stage.next_deadline()), (0, None));
}

#[test]
fn packet_arriving_when_copy_is_due_follows_it() {
    let mut bench = duplicate(&config(1.0, 1, ms(5)), 1);
    bench.send(at(0), vec![1; 40]);
    bench.send(at(5), vec![2; 40]);
    bench.advance(at(100));
    assert_eq!(bench.departures.iter().map(|(_, packet)| packet.bytes[0]).collect::<Vec<_>>(), [1, 1, 2, 2]);
}

#[test]
fn duplicated_share_matches_chance() {
    for (seed, chance) in [(1, 0.001), (2, 0.02), (3, 0.5), (4, 0.97)] {
        let n = 100_000;
        let mut bench = duplicate(&config(chance, 1, Duration::ZERO), seed);
        bench.stream(n, ms(1));
        within_binomial(bench.departures.len() - n as usize, n as usize, chance);
        assert_eq!(bench.stage.stats()["copied"], bench.departures.len() as u64 - n);
    }
}

#[test]
fn unaffected_packets_are_not_duplicated() {
    let only = |affects| {
        let mut bench = duplicate(&DuplicateConfig { affects, ..config(1.0, 1, Duration::ZERO) }, 1);
        bench.send(at(0), tcp(true, b"data"));
        bench.send(at(0), tcp(true, b""));
        bench.lengths()
    };
    assert_eq!(only(Affects::Data), [44, 44, 40]);
    assert_eq!(only(Affects::Acks), [44, 40, 40]);
}

#[test]
fn reconfiguration_keeps_pending_copies() {
    let mut bench = duplicate(&config(1.0, 1, ms(5)), 1);
    bench.send(at(0), vec![1; 40]);
    bench.stage.reconfigure(at(1), &config(1.0, 2, ms(1)), &mut bench.out);
    bench.send(at(2), vec![2; 40]);
    bench.advance(at(100));
    let left: Vec<_> =
        bench.departures.iter().map(|(left, packet)| (left.as_millis(), packet.bytes[0])).collect();
    assert_eq!(left, [(0, 1), (2, 2), (3, 2), (4, 2), (5, 1)]);
}

#[test]
fn invalid_copy_counts_are_rejected() {
    for copies in [0, 101] {
        let invalid = config(0.1, copies, Duration::ZERO).validate().unwrap_err();
        assert_eq!(invalid.key, "copies");
    }
    assert!(config(0.1, 100, Duration::ZERO).validate().is_ok());
}
