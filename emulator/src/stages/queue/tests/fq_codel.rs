use airwire::time::Duration;
use airwire::units::Size;

use super::ms;
use crate::stage::DropReason;
use crate::stages::queue::testing::{Bench, udp};
use crate::stages::queue::{CodelConfig, Discipline, FqCodelConfig};

/// Returns settings with which CoDel never drops a packet.
fn fair(quantum: u64) -> FqCodelConfig {
    let seconds = Duration::from_secs;
    let codel = CodelConfig { target: seconds(100), interval: seconds(200), ..CodelConfig::default() };
    FqCodelConfig { quantum: Size::bytes(quantum), codel, ..FqCodelConfig::default() }
}

#[test]
fn flows_share_equally_within_one_quantum_and_packet() {
    for (quantum, octets) in [(1514, [1500, 100]), (300, [1500, 700]), (5000, [60, 1499])] {
        let mut bench = Bench::new(Discipline::FqCodel(fair(quantum)));
        let mut lengths = Vec::new();
        for n in 0..2000 {
            let flow = n % 2;
            bench.push(ms(0), udp(flow as u8, 1, octets[flow]));
            lengths.push((flow, octets[flow] as i64));
        }
        let mut shares = [0_i64; 2];
        while let Some((id, _)) = bench.pop(ms(1)) {
            let (flow, octets) = lengths[id as usize];
            shares[flow] += octets;
            // One flow may have had its turn and the other not, so they may differ by a quantum and its
            // overshoot.
            let bound = quantum as i64 + 1500;
            let all_waits = bench.queue.bytes() as i64;
            if shares[0].max(shares[1]) < 60 * 1000 && all_waits > 0 {
                assert!((shares[0] - shares[1]).abs() <= bound, "{shares:?}, quantum {quantum}");
            }
        }
    }
}

#[test]
fn sparse_flow_does_not_wait_for_bulk_flow() {
    let mut bench = Bench::new(Discipline::FqCodel(fair(1514)));
    for _ in 0..400 {
        bench.push(ms(0), udp(1, 1, 1500));
    }
    for at in 1..50 {
        // At first the bulk flow is also new and has its first quantum. After four more packets of the bulk
        // flow, the sparse flow has left both lists.
        for _ in 0..4 {
            assert!(bench.pop(ms(at)).is_some_and(|(id, _)| id < 400 + at));
        }
        let sparse = bench.push(ms(at), udp(2, 1, 100));
        assert_eq!(bench.pop(ms(at)), Some((sparse, Duration::ZERO)), "at {at} ms");
    }
}

#[test]
fn sparse_flow_does_not_starve_others() {
    let mut bench = Bench::new(Discipline::FqCodel(fair(300)));
    for _ in 0..100 {
        bench.push(ms(0), udp(1, 1, 300));
    }
    bench.pop(ms(0));
    // The second flow sends one packet per departure. The first flow still gets half of the departures.
    let mut of_the_first = 0;
    for at in 1..=60 {
        let id = bench.push(ms(at), udp(2, 1, 300));
        of_the_first += u32::from(bench.pop(ms(at)).is_some_and(|(popped, _)| popped < 100 && popped != id));
    }
    assert!((29..=31).contains(&of_the_first), "{of_the_first} of 60");
}

#[test]
fn overflow_drops_head_half_of_longest_flow() {
    let mut bench = Bench::bounded(100, Discipline::FqCodel(fair(1514)));
    for n in 0..100 {
        // 60 packets of 1000 bytes, 40 of 100 bytes.
        let long = n % 5 < 3;
        bench.push(ms(0), udp(u8::from(long), 1, if long { 1000 } else { 100 }));
    }
    assert!(bench.drops().is_empty());
    bench.push(ms(1), udp(9, 1, 100));
    let drops = bench.drops();
    let expected: Vec<u64> = (0..100).filter(|n| n % 5 < 3).take(30).collect();
    assert_eq!(drops.iter().map(|(id, ..)| *id).collect::<Vec<_>>(), expected);
    assert!(drops.iter().all(|(_, _, why)| *why == DropReason::QueueFull));
    assert_eq!((bench.queue.len(), bench.queue.bytes()), (71, 30 * 1000 + 41 * 100));
}

#[test]
fn overflow_drops_at_most_64_packets() {
    let mut bench = Bench::bounded(500, Discipline::FqCodel(fair(1514)));
    for _ in 0..501 {
        bench.push(ms(0), udp(1, 1, 100));
    }
    assert_eq!(bench.drops().len(), 64);
}

/// All queues then have the same length in bytes, and only one has packets.
#[test]
fn overflow_by_empty_packets_drops_one() {
    let mut bench = Bench::bounded(2, Discipline::FqCodel(fair(1514)));
    for _ in 0..3 {
        bench.push(ms(0), Vec::new());
    }
    assert_eq!((bench.queue.len(), bench.drops().len()), (2, 1));
}

#[test]
fn each_flow_has_its_own_codel() {
    let mut bench = Bench::new(Discipline::FqCodel(FqCodelConfig::default()));
    bench.fill(ms(0), 2000);
    let mut lost = Vec::new();
    let mut sparse = Vec::new();
    for at in 0..1000 {
        if at % 10 == 0 {
            sparse.push(bench.push(ms(at), udp(2, 1, 100)));
        }
        bench.pop(ms(at));
        lost.extend(bench.drops());
    }
    assert!(lost.len() > 20);
    assert!(lost.iter().all(|(id, _, why)| !sparse.contains(id) && *why == DropReason::Aqm));
}
