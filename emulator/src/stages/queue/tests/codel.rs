use airwire::time::{Duration, Instant};
use airwire::units::Size;

use super::super::testing::{Bench, ect, udp};
use super::super::{CodelConfig, Discipline};
use super::ms;
use crate::stage::Why;

fn bench(ecn: bool) -> Bench {
    Bench::new(Discipline::Codel(CodelConfig { ecn, ..CodelConfig::default() }))
}

/// Everything comes at once, and a packet leaves each millisecond: from 5 ms on, each has waited longer than 5 ms.
fn overload(bench: &mut Bench, packets: u64, uses_ecn: bool) {
    for _ in 0..packets {
        let packet = udp(1, 1, 1000);
        bench.push(ms(0), if uses_ecn { ect(packet) } else { packet });
    }
}

/// When the control law says, rounded up to the next departure: an interval after the queue was first too long, and then
/// an interval through the square root of the number of drops so far.
fn by_the_law(drops: usize) -> Vec<Instant> {
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
fn the_time_to_the_next_drop_is_the_interval_through_the_root_of_the_drops() {
    let mut bench = bench(false);
    overload(&mut bench, 3000, false);
    for at in 0..2000 {
        bench.pop(ms(at));
    }
    let drops = bench.drops();
    assert!(drops.iter().all(|(_, _, why)| *why == Why::Aqm));
    let times: Vec<_> = drops.iter().map(|(_, at, _)| *at).collect();
    assert!(times.len() > 90, "{}", times.len());
    assert_eq!(times, by_the_law(times.len()));
}

#[test]
fn marks_come_when_drops_would() {
    let mut bench = bench(true);
    overload(&mut bench, 3000, true);
    let mut marked = Vec::new();
    for at in 0..2000 {
        bench.pop(ms(at));
        marked.extend(bench.marks().iter().map(|_| ms(at)));
    }
    assert!(marked.len() > 90);
    assert_eq!(marked, by_the_law(marked.len()));
    assert_eq!(bench.queue.len(), 1000, "none was dropped");
}

#[test]
fn senders_without_ecn_have_their_packets_dropped_also_where_others_are_marked() {
    let mut bench = bench(true);
    overload(&mut bench, 3000, false);
    for at in 0..500 {
        bench.pop(ms(at));
    }
    assert!(bench.drops().len() > 5);
}

#[test]
fn a_queue_that_is_too_long_for_less_than_an_interval_loses_nothing() {
    let mut bench = bench(false);
    // 100 ms of packets: the last but one has waited 99 ms, but the queue was too long from 5 ms to 99 ms only.
    overload(&mut bench, 101, false);
    for at in 0..=100 {
        bench.pop(ms(at));
    }
    assert!(bench.queue.is_empty() && bench.drops().is_empty());
}

#[test]
fn while_no_more_than_mtu_waits_behind_it_none_is_dropped() {
    let drops = [4, 5].map(|waiting| {
        let mtu = Size::bytes(3000);
        let mut bench = Bench::new(Discipline::Codel(CodelConfig { mtu, ..CodelConfig::default() }));
        overload(&mut bench, waiting, false);
        // Each waits for 40 ms and more.
        for at in 0..100 {
            bench.pop(ms(10 * at));
            bench.push(ms(10 * at), udp(1, 1, 1000));
        }
        bench.drops().len()
    });
    assert!(drops[0] == 0 && drops[1] > 0, "{drops:?}");
}

#[test]
fn a_dropping_state_that_begins_soon_after_the_last_one_goes_on_at_its_rate() {
    let mut bench = bench(false);
    overload(&mut bench, 1000, false);
    let mut at = 0;
    while bench.pop(ms(at)).is_some() {
        at += 1;
    }
    let first = bench.drops();
    // It is empty. 50 ms later it fills again.
    let again = at + 50;
    for _ in 0..1000 {
        bench.push(ms(again), udp(1, 1, 1000));
    }
    for n in 0..400 {
        bench.pop(ms(again + n));
    }
    let second = bench.drops();
    let gap = |drops: &[(u64, Instant, Why)]| drops[1].1 - drops[0].1;
    assert_eq!(gap(&first), Duration::from_millis(100));
    // `count` goes on at what the first one added to it.
    let law = 100.0 / ((first.len() - 1) as f64).sqrt();
    assert_eq!(gap(&second), Duration::from_millis(law.ceil() as u64));
}
