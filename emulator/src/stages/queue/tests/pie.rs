use std::cmp::Reverse;
use std::collections::BinaryHeap;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::Probability;

use super::ms;
use crate::stage::DropReason;
use crate::stages::queue::pie::Pie;
use crate::stages::queue::testing::{Bench, ect, udp};
use crate::stages::queue::{
    Bounds, Discipline, PieConfig, QueueConfig, QueueCounters, RandomNumbers, Verdict,
};

#[test]
fn lazy_updates_equal_timer_updates() {
    for seed in 0..50 {
        let mut rng = Stream::new(seed, "test");
        let config = PieConfig { t_update: Duration::from_millis(1 + rng.below(30)), ..PieConfig::default() };
        let random = || RandomNumbers::Stream(Stream::new(seed, "draws"));
        let (mut lazy, mut by_timer) = (Pie::new(&config, Instant::ZERO), Pie::new(&config, Instant::ZERO));
        let (mut lazy_random, mut timer_random) = (random(), random());
        let mut counters = QueueCounters::default();
        let mut now = Instant::ZERO;
        let mut waiting = std::collections::VecDeque::new();
        for _ in 0..2000 {
            // Bursts, gaps, and occasional silence.
            let step = match rng.below(50) {
                0 => rng.below(5_000_000_000),
                n => rng.below(n * 100_000),
            };
            let next = now + Duration::from_nanos(step);
            // `by_timer` is updated every millisecond, `lazy` only at arrivals and departures.
            let mut tick = now;
            while tick <= next {
                by_timer.catch_up(&config, tick, &counters);
                tick += Duration::from_millis(1);
            }
            by_timer.catch_up(&config, next, &counters);
            now = next;
            if rng.chance(0.55) {
                let verdict = lazy.arrive(&config, now, &counters, &mut lazy_random);
                assert_eq!(verdict, by_timer.arrive(&config, now, &counters, &mut timer_random));
                if verdict == Verdict::Pass {
                    waiting.push_back(now);
                    counters.bytes += 1000;
                } else {
                    lazy.dropped();
                    by_timer.dropped();
                }
            } else if let Some(since) = waiting.pop_front() {
                lazy.catch_up(&config, now, &counters);
                counters.bytes -= 1000;
                lazy.depart(now, now - since, &counters);
                by_timer.depart(now, now - since, &counters);
            } else {
                lazy.catch_up(&config, now, &counters);
            }
            assert_eq!(lazy, by_timer, "seed {seed} at {now:?}");
        }
    }
}

#[test]
fn probability_is_updated_at_t_update() {
    let config = PieConfig::default();
    let mut pie = Pie::new(&config, Instant::ZERO);
    let counters = QueueCounters { bytes: 10_000, ..QueueCounters::default() };
    pie.depart(Instant::ZERO, Duration::from_secs(1), &counters);
    let first = Instant::ZERO + config.t_update;
    pie.catch_up(&config, first - Duration::from_nanos(1), &counters);
    assert_eq!(pie.drop_prob(), 0.0);
    pie.catch_up(&config, first, &counters);
    assert!(pie.drop_prob() > 0.0);
}

/// Updating one by one for years would take too long.
#[test]
fn year_long_gap_updates_probability_at_once() {
    let year = Duration::from_secs(365 * 86_400);
    let mut bench = Bench::new(Discipline::Pie(PieConfig::default()));
    let drop_prob = |bench: &Bench| bench.queue.stats()["drop_prob"].as_f64().unwrap();
    overload(&mut bench, 1000);
    // A queue without departures for a year keeps its last delay, which is too long at each update.
    bench.push(ms(1000) + year, udp(1, 1, 1000));
    assert_eq!(drop_prob(&bench), 1.0);
    assert_eq!(bench.drops().len(), 1);
    // After a year with an empty queue, the probability is 0 again.
    while bench.pop(ms(1000) + year).is_some() {}
    bench.push(ms(1000) + year + year, udp(1, 1, 1000));
    assert_eq!(drop_prob(&bench), 0.0);
    assert!(bench.drops().is_empty());
}

/// In each millisecond, two packets arrive and one leaves. Returns the drops.
fn overload(bench: &mut Bench, milliseconds: u64) -> Vec<(u64, Instant, DropReason)> {
    for at in 0..milliseconds {
        bench.fill(ms(at), 2);
        bench.pop(ms(at));
    }
    bench.drops()
}

#[test]
fn burst_passes_and_sustained_overload_is_dropped() {
    let mut bench = Bench::new(Discipline::Pie(PieConfig::default()));
    let drops = overload(&mut bench, 150);
    assert!(drops.is_empty(), "{drops:?}");
    let mut bench = Bench::new(Discipline::Pie(PieConfig::default()));
    let drops = overload(&mut bench, 20_000);
    assert!(drops.iter().all(|(_, _, why)| *why == DropReason::Aqm));
    let late = drops.iter().filter(|(_, at, _)| *at >= ms(10_000)).count();
    assert!((9000..11_000).contains(&late), "{late} of 20000 packets in the last 10 s");
    let waited = bench.pop(ms(20_000)).unwrap().1;
    assert!(waited < Duration::from_millis(30), "{waited}");
}

#[test]
fn drops_replace_marks_above_mark_ecnth() {
    let config = PieConfig { ecn: true, mark_ecnth: Probability::new(0.1), ..PieConfig::default() };
    let mut bench = Bench::new(Discipline::Pie(config));
    let (mut marks, mut drops) = (0, 0);
    for at in 0..6000 {
        // A load of 13/12 of the capacity, then twice the capacity.
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

/// Senders with a window that grows by one packet per round trip and is halved after a loss.
struct Senders {
    window: Vec<f64>,
    flight: Vec<u32>,
    /// Number of the first packet after each sender's last reduction.
    halved: Vec<u64>,
    /// The sender of each packet.
    owner: Vec<usize>,
}

impl Senders {
    fn new(count: usize) -> Self {
        Self { window: vec![2.0; count], flight: vec![0; count], halved: vec![0; count], owner: Vec::new() }
    }

    fn acknowledge(&mut self, sender: usize) {
        self.flight[sender] -= 1;
        self.window[sender] += 1.0 / self.window[sender];
    }

    fn lose(&mut self, sender: usize, id: u64) {
        self.flight[sender] -= 1;
        // Halve the window once for all packets that were sent before the last reduction.
        if id >= self.halved[sender] {
            self.window[sender] = (self.window[sender] / 2.0).max(1.0);
            self.halved[sender] = self.owner.len() as u64;
        }
    }

    fn fill_windows(&mut self, now: Instant, bench: &mut Bench) {
        for sender in 0..self.window.len() {
            while f64::from(self.flight[sender]) < self.window[sender].floor() {
                self.owner.push(sender);
                self.flight[sender] += 1;
                bench.push(now, udp(sender as u8, 1, 1000));
            }
        }
    }
}

/// Simulates [`Senders`] over a link that carries 1000 packets per second, with a delay of 50 ms. Returns the
/// mean queueing delay in seconds between 20 s and 60 s.
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
    let mut senders = Senders::new(senders);
    let (mut sum, mut count) = (0.0, 0);
    while let Some(Reverse((now, event))) = events.pop() {
        if now > Instant::from_millis(60_000) {
            break;
        }
        match event {
            Event::Departure => {
                if let Some((id, waited)) = bench.pop(now) {
                    let sender = senders.owner[id as usize];
                    events.push(Reverse((now + Duration::from_millis(50), Event::Acknowledged(sender))));
                    if now > ms(20_000) {
                        sum += waited.as_secs_f64();
                        count += 1;
                    }
                }
                events.push(Reverse((now + Duration::from_millis(1), Event::Departure)));
            }
            Event::Acknowledged(sender) => senders.acknowledge(sender),
            Event::Lost(sender, id) => senders.lose(sender, id),
        }
        senders.fill_windows(now, &mut bench);
        for (id, at, _) in bench.drops() {
            let loss = Event::Lost(senders.owner[id as usize], id);
            events.push(Reverse((at + Duration::from_millis(60), loss)));
        }
    }
    sum / f64::from(count)
}

#[test]
fn delay_of_responsive_senders_stays_near_target() {
    for target in [15, 40] {
        let config = PieConfig { target: Duration::from_millis(target), ..PieConfig::default() };
        let target = target as f64 / 1000.0;
        let delays: Vec<f64> = (0..5).map(|seed| mean_delay(Discipline::Pie(config), 10, seed)).collect();
        assert!(delays.iter().all(|mean| (0.5..1.5).contains(&(mean / target))), "{target}: {delays:?}");
    }
    let without = mean_delay(Discipline::DropTail, 10, 1);
    assert!(without > 0.3, "{without}: drop-tail lets the queue of 1000 packets fill up");
}
