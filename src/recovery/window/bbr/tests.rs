//! Tests of BBR version 1 on a path with 1000 segments per second and 40 ms ([`TestPath`]), into which 40
//! segments fit.

use super::*;
use crate::recovery::window::test_path::TestPath;

type Path = TestPath<Bbr>;

fn probes_bw(path: &Path) -> bool {
    matches!(path.model.mode, Mode::ProbeBw { .. })
}

fn probes_rtt(path: &Path) -> bool {
    matches!(path.model.mode, Mode::ProbeRtt { .. })
}

/// Returns a path after Startup and Drain.
fn steady() -> Path {
    let mut path = Path::new();
    path.until(probes_bw);
    path
}

#[test]
fn startup_ends_after_three_rounds_without_growth() {
    let mut path = Path::new();
    path.until(|path| path.model.max_bw.get() > 990.0);
    let found = path.model.rounds.count;
    assert_eq!(path.model.mode, Mode::Startup);
    path.until(|path| path.model.mode != Mode::Startup);
    let rounds = path.model.rounds.count - found;
    assert!((3..=4).contains(&rounds), "{rounds} rounds");
    // 40 or 41 segments fit, plus three bursts of two.
    assert!(
        [46.0, 48.0].contains(&path.cc().ssthresh),
        "ssthresh as the kernel sets it: {}",
        path.cc().ssthresh
    );
}

#[test]
fn drain_lasts_until_startup_queue_is_empty() {
    let mut path = Path::new();
    path.until(|path| path.model.mode == Mode::Drain);
    assert!(path.queue > 20.0, "Startup builds a queue: {}", path.queue);
    path.until(probes_bw);
    assert!(path.queue < 10.0, "six or eight segments above the BDP are in flight: {}", path.queue);
    assert!((path.model.bw() - 1000.0).abs() < 10.0, "{}", path.model.bw());
}

#[test]
fn gain_cycle_keeps_path_full_and_queue_short() {
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
    assert!(rate > 970.0, "{rate} of 1000 segments per second");
    let mean: f64 = queues.iter().sum::<f64>() / queues.len() as f64;
    assert!(mean < 12.0, "mean queue {mean}, BDP 40");
    assert!(gains.iter().all(|milliseconds| *milliseconds > 100), "every phase occurs: {gains:?}");
}

#[test]
fn first_phase_is_random_but_never_drains() {
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
fn probe_rtt_follows_ten_seconds_without_new_minimum() {
    let mut path = steady();
    path.seconds(2);
    let before = path.cc().cwnd;
    // The path becomes longer, so no sample is as short as the known minimum.
    path.base = Duration::from_millis(60);
    let stamp = path.model.min_rtt_stamp;
    path.until(probes_rtt);
    let waited = path.now() - stamp;
    assert!((10_000..=10_100).contains(&waited.as_millis()), "{waited}");
    path.run(Duration::from_millis(1));
    assert_eq!(path.cc().cwnd, 4.0);
    let probed = path.now();
    path.until(|path| !probes_rtt(path));
    let probed = path.now() - probed;
    // The flight has to shrink first, and the probe includes at least one round trip.
    assert!((200..=400).contains(&probed.as_millis()), "{probed}");
    assert!(path.cc().cwnd >= before, "the window is restored: {} from {before}", path.cc().cwnd);
    let min_rtt = path.model.min_rtt.unwrap();
    assert!((60..65).contains(&min_rtt.as_millis()), "round-trip time of the new path: {min_rtt}");
    path.seconds(2);
    assert!((path.model.bw() - 1000.0).abs() < 20.0, "rates during ProbeRTT are ignored");
}

#[test]
fn idle_restart_resumes_at_known_rate() {
    let mut path = steady();
    path.seconds(1);
    let (bw, cwnd) = (path.model.bw(), path.cc().cwnd);
    path.check_restart_from_idle(probes_rtt);
    assert!((path.model.bw() - bw).abs() < 20.0, "{} from {bw}", path.model.bw());
    assert!(path.cc().cwnd >= cwnd - 2.0, "{} from {cwnd}", path.cc().cwnd);
}

#[test]
fn app_limited_samples_do_not_lower_bandwidth() {
    let mut path = steady();
    path.writes = 100.0;
    path.seconds(8);
    assert!(path.model.bw() > 950.0, "{}", path.model.bw());
    // An application-limited sample counts if it exceeds the known bandwidth.
    path.capacity = 3000.0;
    path.writes = 1200.0;
    path.seconds(1);
    assert!((1100.0..1300.0).contains(&path.model.max_bw.get()), "{}", path.model.max_bw.get());
}

#[test]
fn app_limited_sender_stays_in_startup() {
    let mut path = Path::new();
    path.writes = 100.0;
    path.seconds(5);
    assert_eq!(path.model.mode, Mode::Startup);
    path.writes = f64::INFINITY;
    path.until(probes_bw);
    assert!(path.model.bw() > 950.0, "{}", path.model.bw());
}

#[test]
fn bandwidth_estimate_follows_path_rate() {
    let mut path = steady();
    path.capacity = 2000.0;
    path.seconds(4);
    assert!(path.model.bw() > 1900.0, "{}", path.model.bw());
    path.capacity = 500.0;
    path.seconds(4);
    assert!(path.model.bw() < 600.0, "{}", path.model.bw());
}

#[test]
fn recovery_conserves_packets_then_restores_window() {
    let mut path = steady();
    path.run(Duration::from_millis(500));
    let before = path.cc().cwnd;
    path.loss = 0.05;
    path.until(|path| path.cc().state() == RecoveryState::Recovery);
    path.loss = 0.0;
    let (sent, in_flight) = (path.sent, path.totals.in_flight);
    assert!(path.model.recovery.packet_conservation);
    path.run(Duration::from_millis(30));
    assert!(path.sent - sent <= 31.0, "at most as much is sent as arrives: {}", path.sent - sent);
    assert!(path.totals.in_flight <= in_flight + 1.0);
    path.until(|path| path.cc().state() == RecoveryState::Open);
    path.run(Duration::from_millis(5));
    assert!(!path.model.recovery.packet_conservation);
    assert!(path.cc().cwnd >= before - 2.0, "{} from {before}", path.cc().cwnd);
}

#[test]
fn one_percent_loss_barely_lowers_rate() {
    let mut path = steady();
    path.loss = 0.01;
    path.seconds(2);
    let rate = path.rate(5);
    assert!(rate > 950.0, "{rate}");
}

#[test]
fn timeout_restarts_from_one_segment_and_recovers() {
    let mut path = steady();
    path.seconds(1);
    let before = path.cc().cwnd;
    path.timeout();
    assert_eq!((path.cc().cwnd, path.model.full_bw.bw), (1.0, 0.0));
    path.run(Duration::from_millis(400));
    assert!(path.cc().cwnd >= before - 4.0, "{} from {before}", path.cc().cwnd);
    assert!(path.model.bw() > 950.0, "{}", path.model.bw());
}

#[test]
fn ecn_echo_is_ignored() {
    let (mut path, mut other) = (steady(), steady());
    path.echo();
    path.seconds(3);
    other.seconds(3);
    assert_eq!((path.cc().cwnd, path.sent), (other.cc().cwnd, other.sent));
}

#[test]
fn policer_rate_is_detected_and_expires() {
    let mut path = steady();
    path.policer = Some((300.0, 200.0));
    path.until(|path| path.model.long_term.bw().is_some());
    let bw = path.model.bw();
    assert!((270.0..330.0).contains(&bw), "{bw}");
    let lost = path.totals.lost;
    let sent = path.sent;
    path.run(Duration::from_millis(1500));
    let share = (path.totals.lost - lost) / (path.sent - sent);
    assert!(share < 0.1, "{share} of the data is lost");
    path.until(|path| path.model.long_term.bw().is_none());
}

#[test]
fn random_loss_is_not_detected_as_policer() {
    let mut path = steady();
    path.loss = 0.1;
    path.seconds(10);
    assert_eq!(path.model.long_term.bw(), None);
}

#[test]
fn ack_aggregation_raises_window() {
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
    // 20 segments arrive at once every 20 ms, which is 1000 per second.
    for heap in 1..=10 {
        aggregation.update(&sample(20 * heap, 20.0), true, 1000.0, 80.0);
    }
    assert_eq!(aggregation.room(1000.0), 20.0);
    assert_eq!(aggregation.room(100.0), 10.0, "at most the segments of 100 ms");
    // Then they arrive evenly, and after five to ten round trips the maximum is forgotten.
    for ms in 1..=10_000 {
        aggregation.update(&sample(200 + ms, 1.0), ms % 40 == 0, 1010.0, 80.0);
    }
    assert!(aggregation.room(1000.0) <= 2.0, "{}", aggregation.room(1000.0));
}

#[test]
fn bdp_is_ten_segments_without_rtt() {
    assert_eq!(Bbr::default().bdp(1e6, 2.0), 10.0);
}
