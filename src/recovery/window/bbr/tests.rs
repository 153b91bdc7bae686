//! Version 1 on a path of 1000 segments a second and 40 ms ([`Bench`]): 40 segments fit.

use super::super::bench::Bench;
use super::*;

type Path = Bench<Bbr>;

fn probes_bw(path: &Path) -> bool {
    matches!(path.model.mode, Mode::ProbeBw { .. })
}

fn probes_rtt(path: &Path) -> bool {
    matches!(path.model.mode, Mode::ProbeRtt { .. })
}

/// Startup and Drain are over.
fn steady() -> Path {
    let mut path = Path::new();
    path.until(probes_bw);
    path
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more() {
    let mut path = Path::new();
    path.until(|path| path.model.max_bw.get() > 990.0);
    let found = path.model.rounds.count;
    assert_eq!(path.model.mode, Mode::Startup);
    path.until(|path| path.model.mode != Mode::Startup);
    let rounds = path.model.rounds.count - found;
    assert!((3..=4).contains(&rounds), "{rounds} rounds");
    // 40 or 41 fit, and three bursts of two.
    assert!([46.0, 48.0].contains(&path.cc.ssthresh), "what the kernel writes there: {}", path.cc.ssthresh);
}

#[test]
fn drain_lasts_until_what_startup_queued_is_gone() {
    let mut path = Path::new();
    path.until(|path| path.model.mode == Mode::Drain);
    assert!(path.queue > 20.0, "Startup queues up: {}", path.queue);
    path.until(probes_bw);
    assert!(path.queue < 10.0, "six or eight more than fit are in flight: {}", path.queue);
    assert!((path.model.bw() - 1000.0).abs() < 10.0, "{}", path.model.bw());
}

#[test]
fn the_cycle_keeps_the_path_full_and_the_queue_short() {
    let mut path = steady();
    let (delivered, mut queues, mut gains) = (path.totals.delivered, Vec::new(), [0_u32; 8]);
    for _ in 0..4000 {
        path.run(Duration::from_millis(1));
        queues.push(path.queue);
        if let Mode::ProbeBw { phase, .. } = path.model.mode {
            gains[phase] += 1;
        }
    }
    let rate = (path.totals.delivered - delivered) / 4.0;
    assert!(rate > 970.0, "{rate} of 1000 segments a second");
    let mean: f64 = queues.iter().sum::<f64>() / queues.len() as f64;
    assert!(mean < 12.0, "a mean queue of {mean}, where 40 fit without");
    assert!(gains.iter().all(|milliseconds| *milliseconds > 100), "every phase has its turn: {gains:?}");
}

#[test]
fn the_first_phase_differs_from_flow_to_flow_and_never_drains() {
    let phases: Vec<usize> = (0..200)
        .map(|nanos| {
            let mut bbr = Bbr::default();
            bbr.probe_bw(Instant::from_nanos(1_000_000_007 * nanos), nanos as f64);
            let Mode::ProbeBw { phase, .. } = bbr.mode else { panic!("{:?}", bbr.mode) };
            phase
        })
        .collect();
    for phase in 0..8 {
        assert_eq!(phases.contains(&phase), phase != 1, "phase {phase}");
    }
}

#[test]
fn ten_seconds_without_a_shorter_round_trip_are_followed_by_200_ms_with_four_segments() {
    let mut path = steady();
    path.seconds(2);
    let before = path.cc.cwnd;
    // The path grows longer: no sample is as short as the known one.
    path.base = Duration::from_millis(60);
    let stamp = path.model.min_rtt_stamp;
    path.until(probes_rtt);
    let waited = path.now() - stamp;
    assert!((10_000..=10_100).contains(&waited.as_millis()), "{waited}");
    path.run(Duration::from_millis(1));
    assert_eq!(path.cc.cwnd, 4.0);
    let probed = path.now();
    path.until(|path| !probes_rtt(path));
    let probed = path.now() - probed;
    // The flight shrinks first, and a round trip is over with it at the end.
    assert!((200..=400).contains(&probed.as_millis()), "{probed}");
    assert!(path.cc.cwnd >= before, "the window is what it was: {} from {before}", path.cc.cwnd);
    let min_rtt = path.model.min_rtt.unwrap();
    assert!((60..65).contains(&min_rtt.as_millis()), "the new path's round trip: {min_rtt}");
    path.seconds(2);
    assert!((path.model.bw() - 1000.0).abs() < 20.0, "rates of the probe count for nothing");
}

#[test]
fn after_an_idle_time_it_goes_on_at_the_rate_it_knows() {
    let mut path = steady();
    path.seconds(1);
    let (bw, cwnd) = (path.model.bw(), path.cc.cwnd);
    path.writes = 0.0;
    path.seconds(15);
    path.writes = f64::INFINITY;
    let sent = path.sent;
    path.run(Duration::from_millis(30));
    let burst = path.sent - sent;
    assert!((25.0..=31.0).contains(&burst), "{burst} segments in 30 ms at 1000 a second");
    assert!(path.queue < 1.0, "no queue from it: {}", path.queue);
    path.run(Duration::from_millis(100));
    assert!(!probes_rtt(&path), "the idle time has drained every queue");
    assert!((path.model.bw() - bw).abs() < 20.0, "{} from {bw}", path.model.bw());
    assert!(path.cc.cwnd >= cwnd - 2.0, "{} from {cwnd}", path.cc.cwnd);
}

#[test]
fn an_application_that_writes_little_does_not_make_the_path_look_slow() {
    let mut path = steady();
    path.writes = 100.0;
    path.seconds(8);
    assert!(path.model.bw() > 950.0, "{}", path.model.bw());
    // More than is known is news all the same.
    path.capacity = 3000.0;
    path.writes = 1200.0;
    path.seconds(1);
    assert!((1100.0..1300.0).contains(&path.model.max_bw.get()), "{}", path.model.max_bw.get());
}

#[test]
fn an_application_that_writes_little_does_not_end_startup() {
    let mut path = Path::new();
    path.writes = 100.0;
    path.seconds(5);
    assert_eq!(path.model.mode, Mode::Startup);
    path.writes = f64::INFINITY;
    path.until(probes_bw);
    assert!(path.model.bw() > 950.0, "{}", path.model.bw());
}

#[test]
fn a_faster_path_is_found_and_a_slower_one_after_ten_round_trips() {
    let mut path = steady();
    path.capacity = 2000.0;
    path.seconds(4);
    assert!(path.model.bw() > 1900.0, "{}", path.model.bw());
    path.capacity = 500.0;
    path.seconds(4);
    assert!(path.model.bw() < 600.0, "{}", path.model.bw());
}

#[test]
fn the_first_round_trip_of_recovery_sends_what_arrives_and_then_the_window_is_what_it_was() {
    let mut path = steady();
    path.run(Duration::from_millis(500));
    let before = path.cc.cwnd;
    path.loss = 0.05;
    path.until(|path| path.cc.phase() == Phase::Recovery);
    path.loss = 0.0;
    let (sent, in_flight) = (path.sent, path.totals.in_flight);
    assert!(path.model.recovery.packet_conservation);
    path.run(Duration::from_millis(30));
    assert!(path.sent - sent <= 31.0, "no more leaves than arrives: {}", path.sent - sent);
    assert!(path.totals.in_flight <= in_flight + 1.0);
    path.until(|path| path.cc.phase() == Phase::Open);
    path.run(Duration::from_millis(5));
    assert!(!path.model.recovery.packet_conservation);
    assert!(path.cc.cwnd >= before - 2.0, "{} from {before}", path.cc.cwnd);
}

#[test]
fn one_percent_of_loss_takes_hardly_more_than_itself() {
    let mut path = steady();
    path.loss = 0.01;
    path.seconds(2);
    let delivered = path.totals.delivered;
    path.seconds(5);
    let rate = (path.totals.delivered - delivered) / 5.0;
    assert!(rate > 950.0, "{rate}");
}

#[test]
fn a_timeout_starts_from_one_segment_and_returns_to_what_fits() {
    let mut path = steady();
    path.seconds(1);
    let before = path.cc.cwnd;
    path.timeout();
    assert_eq!((path.cc.cwnd, path.model.full_bw.bw), (1.0, 0.0));
    path.run(Duration::from_millis(400));
    assert!(path.cc.cwnd >= before - 4.0, "{} from {before}", path.cc.cwnd);
    assert!(path.model.bw() > 950.0, "{}", path.model.bw());
}

#[test]
fn an_echo_changes_nothing() {
    let (mut path, mut other) = (steady(), steady());
    path.echo();
    path.seconds(3);
    other.seconds(3);
    assert_eq!((path.cc.cwnd, path.sent), (other.cc.cwnd, other.sent));
}

#[test]
fn a_policers_rate_is_found_and_forgotten_after_48_round_trips() {
    let mut path = steady();
    path.policer = Some((300.0, 200.0));
    path.until(|path| path.model.long_term.bw().is_some());
    let bw = path.model.bw();
    assert!((270.0..330.0).contains(&bw), "{bw}");
    let lost = path.totals.lost;
    let sent = path.sent;
    path.run(Duration::from_millis(1500));
    let share = (path.totals.lost - lost) / (path.sent - sent);
    assert!(share < 0.1, "{share} of it is lost");
    path.until(|path| path.model.long_term.bw().is_none());
}

#[test]
fn losses_without_a_policer_are_no_policer() {
    let mut path = steady();
    path.loss = 0.1;
    path.seconds(10);
    assert_eq!(path.model.long_term.bw(), None);
}

#[test]
fn acks_in_heaps_make_the_window_larger() {
    let mut aggregation = Aggregation::since(Instant::ZERO);
    let sample = |ms: u64, acked: f64| RateSample {
        totals: Totals {
            delivered: 0.0,
            delivered_time: Instant::from_millis(ms),
            lost: 0.0,
            in_flight: 40.0,
        },
        prior_in_flight: 40.0,
        newly_acked: acked,
        newly_lost: 0.0,
        rtt: None,
        ack_may_be_delayed: false,
        measured: Some(crate::recovery::rate::Measured {
            delivered: 40.0,
            prior_delivered: 0.0,
            interval: Some(Duration::from_millis(40)),
            is_app_limited: false,
            tx_in_flight: 40.0,
            lost: 0.0,
        }),
    };
    // 20 segments every 20 ms, all at once: that is 1000 a second.
    for heap in 1..=10 {
        aggregation.update(&sample(20 * heap, 20.0), true, 1000.0, 80.0);
    }
    assert_eq!(aggregation.room(1000.0), 20.0);
    assert_eq!(aggregation.room(100.0), 10.0, "no more than leaves in 100 ms");
    // Then they come evenly, and five to ten round trips later it is forgotten.
    for ms in 1..=10_000 {
        aggregation.update(&sample(200 + ms, 1.0), ms % 40 == 0, 1010.0, 80.0);
    }
    assert!(aggregation.room(1000.0) <= 2.0, "{}", aggregation.room(1000.0));
}

#[test]
fn without_a_round_trip_ten_segments_are_what_fits() {
    assert_eq!(Bbr::default().bdp(1e6, 2.0), 10.0);
}
