use airwire::time::{Duration, Instant};
use airwire::units::Size;

use super::ms;
use crate::stage::DropReason;
use crate::stages::queue::testing::{Bench, ect, udp};
use crate::stages::queue::{CodelConfig, Discipline};

fn bench(ecn: bool) -> Bench {
    Bench::new(Discipline::Codel(CodelConfig { ecn, ..CodelConfig::default() }))
}

/// Queues all packets at time 0. If one leaves per millisecond, the delay exceeds 5 ms from 5 ms on.
fn overload(bench: &mut Bench, packets: u64, uses_ecn: bool) {
    for _ in 0..packets {
        let packet = udp(1, 1, 1000);
        bench.push(ms(0), if uses_ecn { ect(packet) } else { packet });
    }
}

/// RFC 3168 §5: a packet that already carries CE needs neither a mark nor a drop.
#[test]
fn packet_with_ce_is_forwarded() {
    let mut bench = bench(true);
    for _ in 0..1000 {
        let mut packet = udp(1, 1, 1000);
        packet[1] |= 3;
        bench.push(ms(0), packet);
    }
    bench.pop_each(0..500);
    assert_eq!(bench.queue.len(), 500);
    assert_eq!((bench.drops(), bench.marks()), (vec![], vec![]));
}

/// Returns the drop times according to the control law, rounded up to the next departure. The first drop
/// comes one interval after the delay exceeds the target. Each further one follows after the interval divided
/// by the square root of the number of drops.
fn drop_times_by_law(drops: usize) -> Vec<Instant> {
    let mut at = 105e6;
    (1..=drops)
        .map(|count| {
            let due = Instant::from_millis((at / 1e6_f64).ceil() as u64);
            at += 100e6 / (count as f64).sqrt();
            due
        })
        .collect()
}

#[test]
fn drop_times_follow_control_law() {
    let mut bench = bench(false);
    overload(&mut bench, 3000, false);
    bench.pop_each(0..2000);
    let drops = bench.drops();
    assert!(drops.iter().all(|(_, _, why)| *why == DropReason::Aqm));
    let times: Vec<_> = drops.iter().map(|(_, at, _)| *at).collect();
    assert!(times.len() > 90, "{}", times.len());
    assert_eq!(times, drop_times_by_law(times.len()));
}

#[test]
fn mark_times_follow_control_law() {
    let mut bench = bench(true);
    overload(&mut bench, 3000, true);
    let mut marked = Vec::new();
    for at in 0..2000 {
        bench.pop(ms(at));
        marked.extend(bench.marks().iter().map(|_| ms(at)));
    }
    assert!(marked.len() > 90);
    assert_eq!(marked, drop_times_by_law(marked.len()));
    assert_eq!(bench.queue.len(), 1000, "no packet was dropped");
}

#[test]
fn non_ect_packets_are_dropped_with_ecn_enabled() {
    let mut bench = bench(true);
    overload(&mut bench, 3000, false);
    bench.pop_each(0..500);
    assert!(bench.drops().len() > 5);
}

#[test]
fn short_delay_above_target_drops_nothing() {
    let mut bench = bench(false);
    // 100 ms of packets. The last but one has waited for 99 ms, but the delay exceeds the target only from 5
    // ms to 99 ms.
    overload(&mut bench, 101, false);
    bench.pop_each(0..101);
    assert!(bench.queue.is_empty() && bench.drops().is_empty());
}

#[test]
fn backlog_within_mtu_causes_no_drop() {
    let drops = [4, 5].map(|waiting| {
        let mtu = Size::bytes(3000);
        let mut bench = Bench::new(Discipline::Codel(CodelConfig { mtu, ..CodelConfig::default() }));
        overload(&mut bench, waiting, false);
        // Each packet waits for at least 40 ms.
        for at in 0..100 {
            bench.pop(ms(10 * at));
            bench.push(ms(10 * at), udp(1, 1, 1000));
        }
        bench.drops().len()
    });
    assert!(drops[0] == 0 && drops[1] > 0, "{drops:?}");
}

#[test]
fn recent_dropping_state_resumes_at_its_rate() {
    let mut bench = bench(false);
    overload(&mut bench, 1000, false);
    let mut at = 0;
    while bench.pop(ms(at)).is_some() {
        at += 1;
    }
    let first = bench.drops();
    // The queue is empty. It fills up again 50 ms later.
    let again = at + 50;
    bench.fill(ms(again), 1000);
    bench.pop_each(again..again + 400);
    let second = bench.drops();
    let gap = |drops: &[(u64, Instant, DropReason)]| drops[1].1 - drops[0].1;
    assert_eq!(gap(&first), Duration::from_millis(100));
    // `count` continues from the number of drops in the first dropping state.
    let law = 100.0 / ((first.len() - 1) as f64).sqrt();
    assert_eq!(gap(&second), Duration::from_millis(law.ceil() as u64));
}
