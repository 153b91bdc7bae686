use std::cmp::Reverse;
use std::collections::BinaryHeap;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::Probability;

use super::super::draws::Draws;
use super::super::pie::Pie;
use super::super::testing::{Bench, ect, udp};
use super::super::{Bounds, Discipline, PieConfig, QueueConfig, Tally, Verdict};
use super::ms;
use crate::stage::Why;

#[test]
fn updates_that_are_done_late_are_those_that_a_timer_would_have_done() {
    for seed in 0..50 {
        let mut rng = Stream::new(seed, "test");
        let config = PieConfig { t_update: Duration::from_millis(1 + rng.below(30)), ..PieConfig::default() };
        let draws = || Draws::Stream(Stream::new(seed, "draws"));
        let (mut lazy, mut by_timer) = (Pie::new(&config, Instant::ZERO), Pie::new(&config, Instant::ZERO));
        let (mut lazy_draws, mut timer_draws) = (draws(), draws());
        let mut tally = Tally::default();
        let mut now = Instant::ZERO;
        let mut waiting = std::collections::VecDeque::new();
        for _ in 0..2000 {
            // Bursts, gaps, and now and then silence.
            let step = match rng.below(50) {
                0 => rng.below(5_000_000_000),
                n => rng.below(n * 100_000),
            };
            let next = now + Duration::from_nanos(step);
            // The timer runs each millisecond; that of the other is asked for when something happens.
            let mut tick = now;
            while tick <= next {
                by_timer.catch_up(&config, tick, &tally);
                tick += Duration::from_millis(1);
            }
            by_timer.catch_up(&config, next, &tally);
            now = next;
            if rng.chance(0.55) {
                let verdict = lazy.arrive(&config, now, &tally, &mut lazy_draws);
                assert_eq!(verdict, by_timer.arrive(&config, now, &tally, &mut timer_draws));
                if verdict == Verdict::Pass {
                    waiting.push_back(now);
                    tally.bytes += 1000;
                } else {
                    lazy.dropped();
                    by_timer.dropped();
                }
            } else if let Some(since) = waiting.pop_front() {
                lazy.catch_up(&config, now, &tally);
                tally.bytes -= 1000;
                lazy.depart(now, now - since, &tally);
                by_timer.depart(now, now - since, &tally);
            } else {
                lazy.catch_up(&config, now, &tally);
            }
            assert_eq!(lazy, by_timer, "seed {seed} at {now:?}");
        }
    }
}

/// Updates one by one for years would take longer than anybody waits.
#[test]
fn years_of_silence_are_over_at_once() {
    let year = Duration::from_secs(365 * 86_400);
    let mut bench = Bench::new(Discipline::Pie(PieConfig::default()));
    let drop_prob = |bench: &Bench| bench.queue.stats()["drop_prob"].as_f64().unwrap();
    overload(&mut bench, 1000);
    // A queue that stands still for a year has the delay it had when it last moved: too long at each update.
    bench.push(ms(1000) + year, udp(1, 1, 1000));
    assert_eq!(drop_prob(&bench), 1.0);
    assert_eq!(bench.drops().len(), 1);
    // An empty queue for a year, and nothing is left of that.
    while bench.pop(ms(1000) + year).is_some() {}
    bench.push(ms(1000) + year + year, udp(1, 1, 1000));
    assert_eq!(drop_prob(&bench), 0.0);
    assert!(bench.drops().is_empty());
}

/// For so many milliseconds 2 packets come and 1 leaves. What was dropped.
fn overload(bench: &mut Bench, milliseconds: u64) -> Vec<(u64, Instant, Why)> {
    for at in 0..milliseconds {
        bench.push(ms(at), udp(1, 1, 1000));
        bench.push(ms(at), udp(1, 1, 1000));
        bench.pop(ms(at));
    }
    bench.drops()
}

#[test]
fn nothing_of_a_burst_is_dropped_and_then_half_of_what_is_twice_too_much() {
    let mut bench = Bench::new(Discipline::Pie(PieConfig::default()));
    let drops = overload(&mut bench, 150);
    assert!(drops.is_empty(), "{drops:?}");
    let mut bench = Bench::new(Discipline::Pie(PieConfig::default()));
    let drops = overload(&mut bench, 20_000);
    assert!(drops.iter().all(|(_, _, why)| *why == Why::Aqm));
    let late = drops.iter().filter(|(_, at, _)| *at >= ms(10_000)).count();
    assert!((9000..11_000).contains(&late), "{late} of 20000 packets in the last 10 s");
    let waited = bench.pop(ms(20_000)).unwrap().1;
    assert!(waited < Duration::from_millis(30), "{waited}");
}

#[test]
fn marks_end_where_the_probability_is_too_high() {
    let config = PieConfig { ecn: true, mark_ecnth: Probability::new(0.1), ..PieConfig::default() };
    let mut bench = Bench::new(Discipline::Pie(config));
    let (mut marks, mut drops) = (0, 0);
    for at in 0..6000 {
        // A twelfth too much, then twice as much.
        let too_much = at % 12 == 0 || at > 3000;
        for _ in 0..1 + u32::from(too_much) {
            let before = bench.queue.len();
            bench.push(ms(at), ect(udp(1, 1, 1000)));
            let (probability, dropped) =
                (bench.queue.stats()["drop_prob"].as_f64().unwrap(), bench.queue.len() == before);
            let marked = !bench.marks().is_empty();
            assert!(!marked || probability <= 0.1, "{probability}");
            assert!(!dropped || probability > 0.1, "{probability}");
            marks += u32::from(marked);
            drops += u32::from(dropped);
        }
        bench.pop(ms(at));
    }
    assert!(marks > 0 && drops > 0, "{marks} {drops}");
}

/// Senders with a window each, which grows by a packet in a round trip and is halved when one is lost: what is in the queue
/// of a link of 1000 packets per second, over a way of 50 ms, from 20 s to 60 s. The mean of how long packets wait.
fn mean_delay(discipline: Discipline, senders: usize, seed: u64) -> f64 {
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    enum Event {
        Departure,
        Acknowledged(usize),
        Lost(usize, u64),
    }
    let bounds = Bounds { packets: Some(1000), bytes: None };
    let mut bench = Bench::with(QueueConfig { bounds, discipline }, seed);
    let mut events = BinaryHeap::from([Reverse((ms(0), Event::Departure))]);
    let (mut window, mut flight, mut halved) = (vec![2.0_f64; senders], vec![0; senders], vec![0; senders]);
    let mut owner = Vec::new();
    let (mut sum, mut count) = (0.0, 0);
    while let Some(Reverse((now, event))) = events.pop() {
        if now > Instant::from_millis(60_000) {
            break;
        }
        match event {
            Event::Departure => {
                if let Some((id, waited)) = bench.pop(now) {
                    let sender: usize = owner[id as usize];
                    events.push(Reverse((now + Duration::from_millis(50), Event::Acknowledged(sender))));
                    if now > ms(20_000) {
                        sum += waited.as_secs_f64();
                        count += 1;
                    }
                }
                events.push(Reverse((now + Duration::from_millis(1), Event::Departure)));
            }
            Event::Acknowledged(sender) => {
                flight[sender] -= 1;
                window[sender] += 1.0 / window[sender];
            }
            Event::Lost(sender, id) => {
                flight[sender] -= 1;
                // Once for all that was sent before it was halved.
                if id >= halved[sender] {
                    window[sender] = (window[sender] / 2.0).max(1.0);
                    halved[sender] = owner.len() as u64;
                }
            }
        }
        for sender in 0..senders {
            while f64::from(flight[sender]) < window[sender].floor() {
                owner.push(sender);
                flight[sender] += 1;
                bench.push(now, udp(sender as u8, 1, 1000));
            }
        }
        for (id, at, _) in bench.drops() {
            events.push(Reverse((at + Duration::from_millis(60), Event::Lost(owner[id as usize], id))));
        }
    }
    sum / f64::from(count)
}

#[test]
fn the_delay_of_senders_that_react_stays_near_the_target() {
    for target in [15, 40] {
        let config = PieConfig { target: Duration::from_millis(target), ..PieConfig::default() };
        let target = target as f64 / 1000.0;
        let delays: Vec<f64> = (0..5).map(|seed| mean_delay(Discipline::Pie(config), 10, seed)).collect();
        assert!(delays.iter().all(|mean| (0.5..1.5).contains(&(mean / target))), "{target}: {delays:?}");
    }
    let without = mean_delay(Discipline::DropTail, 10, 1);
    assert!(without > 0.3, "{without}: the queue of 1000 packets is full or nearly so");
}
