//! Tests of BBR version 3 on a path with 1000 segments per second and 40 ms ([`TestPath`]), into which 40
//! segments fit.

use super::*;
use crate::recovery::window::test_path::TestPath;

type Path = TestPath<Bbr3>;

fn in_phase(phase: ProbeBw) -> impl Fn(&Path) -> bool {
    move |path| path.model.state == State::ProbeBw(phase)
}

fn probes_rtt(path: &Path) -> bool {
    matches!(path.model.state, State::ProbeRtt { .. })
}

fn drains(path: &Path) -> bool {
    matches!(path.model.state, State::Drain { .. })
}

/// Returns a path after Startup and Drain.
fn steady() -> Path {
    let mut path = Path::new();
    path.until(in_phase(ProbeBw::Cruise));
    path
}

fn longterm(path: &Path) -> f64 {
    path.model.congestion.inflight_longterm
}

#[test]
fn startup_ends_after_plateau_and_drain_empties_queue() {
    let mut path = Path::new();
    path.until(|path| path.model.max_bw.get() > 990.0);
    let found = path.model.rounds.count;
    path.until(drains);
    let rounds = path.model.rounds.count - found;
    assert!((3..=4).contains(&rounds), "{rounds} rounds");
    assert!(path.queue > 20.0, "Startup builds a queue: {}", path.queue);
    path.until(|path| matches!(path.model.state, State::ProbeBw(_)));
    assert!(path.queue < 5.0, "{}", path.queue);
    assert!(longterm(&path).is_infinite(), "nothing was lost");
}

#[test]
fn startup_ends_after_excessive_loss() {
    let mut path = Path::new();
    // The buffer is too small for the queue that Startup builds.
    path.buffer = 10.0;
    path.until(drains);
    let (bdp, longterm) = (path.model.bdp_multiple(path.model.max_bw.get(), 1.0), longterm(&path));
    assert!(longterm.is_finite() && longterm >= bdp, "bound {longterm}, BDP {bdp}");
    assert!(path.model.full_bw.count < 3, "Startup ends before a plateau of three rounds");
}

#[test]
fn startup_continues_with_few_losses() {
    let mut path = Path::new();
    path.loss = 0.015;
    path.until(drains);
    assert!(longterm(&path).is_infinite());
    assert_eq!(path.model.full_bw.count, 3);
}

#[test]
fn undone_loss_resumes_startup() {
    let mut path = Path::new();
    path.buffer = 10.0;
    path.until(drains);
    path.mistake();
    assert_eq!(path.model.state, State::Startup);
    assert!(!path.model.full_bw.reached && longterm(&path).is_infinite());
}

#[test]
fn probe_cycle_keeps_path_full_and_queue_short() {
    let mut path = steady();
    let delivered = path.totals.delivered;
    let mut queues = Vec::new();
    for _ in 0..4000 {
        path.run(Duration::from_millis(1));
        queues.push(path.queue);
    }
    let rate = (path.totals.delivered - delivered) / 4.0;
    assert!(rate > 960.0, "{rate} of 1000 segments per second");
    let mean: f64 = queues.iter().sum::<f64>() / queues.len() as f64;
    assert!(mean < 8.0, "mean queue {mean}");
}

#[test]
fn probe_interval_is_bounded_by_reno_coexistence() {
    let mut path = steady();
    let cruised = path.now();
    path.until(in_phase(ProbeBw::Refill));
    // 40 segments fit, and 39 or 40 round trips of 40 ms take less than two seconds.
    let waited = (path.now() - cruised).as_millis();
    assert!((1400..=1700).contains(&waited), "{waited} ms");
    path.until(in_phase(ProbeBw::Up)).until(in_phase(ProbeBw::Down));
    // A longer path has fewer round trips in that time.
    path.base = Duration::from_millis(200);
    path.capacity = 2000.0;
    path.seconds(12);
    path.until(in_phase(ProbeBw::Cruise));
    let cruised = path.now();
    path.until(in_phase(ProbeBw::Refill));
    let waited = (path.now() - cruised).as_millis();
    assert!((1500..=3000).contains(&waited), "{waited} ms");
}

#[test]
fn bandwidth_estimate_follows_path_rate() {
    let mut path = steady();
    path.capacity = 2000.0;
    path.seconds(8);
    assert!(path.model.max_bw.get() > 1900.0, "{}", path.model.max_bw.get());
    path.capacity = 1000.0;
    path.seconds(10);
    assert!(path.model.max_bw.get() < 1100.0, "{}", path.model.max_bw.get());
}

/// Returns a path after a probe that lost more than 2 %, because the buffer holds only a few segments.
fn after_lossy_probe() -> Path {
    let mut path = steady();
    path.until(in_phase(ProbeBw::Up));
    path.buffer = 4.0;
    path.until(in_phase(ProbeBw::Down));
    path
}

#[test]
fn excessive_loss_ends_probe_and_sets_bound() {
    let path = after_lossy_probe();
    assert!(path.model.cycle.prev_probe_too_high);
    // 44 segments fit, including the buffer. The bound is where the loss share crossed the threshold, but at
    // least 0.7 of the target.
    assert!((28.0..60.0).contains(&longterm(&path)), "{}", longterm(&path));
}

#[test]
fn cruise_leaves_headroom_below_bound() {
    let mut path = after_lossy_probe();
    path.until(in_phase(ProbeBw::Cruise)).run(Duration::from_millis(100));
    let bound = longterm(&path);
    assert!(path.cc().cwnd <= 0.85 * bound + 1e-9, "{} below {bound}", path.cc().cwnd);
    path.until(in_phase(ProbeBw::Refill)).run(Duration::from_millis(30));
    assert!(path.cc().cwnd <= bound && path.cc().cwnd > 0.85 * bound, "{} of {bound}", path.cc().cwnd);
}

#[test]
fn lossy_probe_makes_next_probe_precautionary() {
    let mut path = after_lossy_probe();
    path.buffer = 80.0;
    path.until(in_phase(ProbeBw::Up));
    let began = path.now();
    path.until(in_phase(ProbeBw::Down));
    assert!(path.model.cycle.prev_probe_precautionary);
    assert!((path.now() - began).as_millis() < 100, "the probe ends at the bound");
    let bound = longterm(&path);
    // Nothing was lost, so it probes again without cruising, and the probe lasts longer.
    path.until(|path| path.model.state != State::ProbeBw(ProbeBw::Down));
    assert_eq!(path.model.state, State::ProbeBw(ProbeBw::Refill));
    path.until(in_phase(ProbeBw::Up)).until(in_phase(ProbeBw::Down));
    assert!(longterm(&path) > bound + 1.0, "the bound rises: {} from {bound}", longterm(&path));
}

#[test]
fn probe_raises_bound_in_first_round_trip() {
    let mut path = after_lossy_probe();
    path.buffer = 80.0;
    path.until(in_phase(ProbeBw::Up)).until(in_phase(ProbeBw::Down)).until(in_phase(ProbeBw::Up));
    let bound = longterm(&path);
    let raised =
        [60, 100].map(|time| path.run(Duration::from_millis(time)).model.congestion.inflight_longterm);
    assert_eq!(raised, [bound + 1.0, bound + 7.0], "one, two, and four segments");
}

#[test]
fn undone_probe_loss_repeats_probe() {
    let mut path = after_lossy_probe();
    path.mistake();
    assert_eq!(path.model.state, State::ProbeBw(ProbeBw::Refill));
    assert!(longterm(&path).is_infinite());
}

#[test]
fn loss_sets_short_term_bounds_until_next_probe() {
    let mut path = steady();
    assert!(path.model.congestion.bw_shortterm.is_infinite());
    path.loss = 0.05;
    path.run(Duration::from_millis(60));
    path.loss = 0.0;
    path.run(Duration::from_millis(200));
    let bw = path.model.congestion.bw_shortterm;
    // The bound is the delivered bandwidth, but at least 0.7 of its previous value.
    assert!((690.0..1000.0).contains(&bw), "{bw}");
    assert!(path.model.congestion.inflight_shortterm.is_finite());
    assert!(path.model.bw <= bw);
    path.until(in_phase(ProbeBw::Refill));
    assert!(path.model.congestion.bw_shortterm.is_infinite());
    assert!(path.model.congestion.inflight_shortterm.is_infinite());
}

#[test]
fn one_percent_loss_keeps_most_of_rate() {
    let mut path = steady();
    path.loss = 0.01;
    path.seconds(4);
    let rate = path.rate(10);
    assert!(rate > 800.0, "{rate}");
}

#[test]
fn ecn_echo_sets_short_term_bounds() {
    let mut path = steady();
    path.run(Duration::from_millis(300));
    path.echo();
    path.run(Duration::from_millis(90));
    let (bw, inflight) = (path.model.congestion.bw_shortterm, path.model.congestion.inflight_shortterm);
    assert!((690.0..=1001.0).contains(&bw), "{bw}");
    assert!(inflight < path.model.bdp_multiple(path.model.max_bw.get(), 2.0), "{inflight}");
}

#[test]
fn ecn_echo_ends_probe_and_sets_bound() {
    let mut path = steady();
    path.until(in_phase(ProbeBw::Up));
    path.echo();
    assert_eq!(path.model.state, State::ProbeBw(ProbeBw::Down));
    assert!(longterm(&path).is_finite());
}

#[test]
fn ecn_echo_ends_startup() {
    let mut path = Path::new();
    path.run(Duration::from_millis(100));
    assert_eq!(path.model.state, State::Startup);
    path.echo();
    path.run(Duration::from_millis(5));
    assert!(drains(&path) || matches!(path.model.state, State::ProbeBw(_)));
    assert!(longterm(&path).is_finite());
}

#[test]
fn probe_rtt_follows_five_seconds_without_new_minimum() {
    let mut path = steady();
    path.seconds(1);
    let stamp = path.model.min_rtt.probe_min_stamp;
    path.until(probes_rtt);
    let waited = (path.now() - stamp).as_millis();
    assert!((5_000..=5_100).contains(&waited), "{waited} ms");
    path.run(Duration::from_millis(60));
    let half = path.model.bdp_multiple(path.model.bw, 0.5);
    assert!(path.cc().cwnd <= half + 1e-9 && half > 15.0, "{} of {half}", path.cc().cwnd);
    let began = path.now();
    path.until(|path| !probes_rtt(path));
    let probed = (path.now() - began).as_millis();
    assert!((140..=300).contains(&probed), "{probed} ms");
    assert_eq!(path.model.state, State::ProbeBw(ProbeBw::Cruise), "nothing is left to drain");
}

#[test]
fn min_rtt_is_kept_for_ten_seconds() {
    let mut path = steady();
    path.base = Duration::from_millis(60);
    path.until(probes_rtt);
    assert_eq!(path.model.min_rtt.min_rtt, Some(Duration::from_millis(40)));
    path.seconds(10);
    let min_rtt = path.model.min_rtt.min_rtt.unwrap();
    assert!((60..=64).contains(&min_rtt.as_millis()), "{min_rtt}");
}

#[test]
fn idle_restart_resumes_at_known_rate() {
    let mut path = steady();
    let bw = path.model.bw;
    path.check_restart_from_idle(probes_rtt);
    assert!((path.model.bw - bw).abs() < 20.0, "{} from {bw}", path.model.bw);
}

#[test]
fn app_limited_samples_do_not_lower_bandwidth() {
    let mut path = steady();
    path.writes = 100.0;
    path.seconds(8);
    assert!(path.model.max_bw.get() > 950.0, "{}", path.model.max_bw.get());
}

#[test]
fn timeout_restarts_from_one_segment_and_recovers() {
    let mut path = steady();
    let before = path.cc().cwnd;
    path.timeout();
    assert_eq!(path.cc().cwnd, 1.0);
    path.seconds(4);
    assert!(path.cc().cwnd >= 0.6 * before, "{} from {before}", path.cc().cwnd);
    assert!(path.model.max_bw.get() > 900.0, "{}", path.model.max_bw.get());
}
