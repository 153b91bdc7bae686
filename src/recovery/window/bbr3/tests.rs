//! Version 3 on a path of 1000 segments a second and 40 ms ([`Bench`]): 40 segments fit.

use super::super::bench::Bench;
use super::*;

type Path = Bench<Bbr3>;

fn is(phase: ProbeBw) -> impl Fn(&Path) -> bool {
    move |path| path.model.state == State::ProbeBw(phase)
}

fn probes_rtt(path: &Path) -> bool {
    matches!(path.model.state, State::ProbeRtt { .. })
}

fn drains(path: &Path) -> bool {
    matches!(path.model.state, State::Drain { .. })
}

/// Startup and Drain are over.
fn steady() -> Path {
    let mut path = Path::new();
    path.until(is(ProbeBw::Cruise));
    path
}

fn longterm(path: &Path) -> f64 {
    path.model.congestion.inflight_longterm
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more_and_drain_with_the_queue() {
    let mut path = Path::new();
    path.until(|path| path.model.max_bw.get() > 990.0);
    let found = path.model.rounds.count;
    path.until(drains);
    let rounds = path.model.rounds.count - found;
    assert!((3..=4).contains(&rounds), "{rounds} rounds");
    assert!(path.queue > 20.0, "Startup queues up: {}", path.queue);
    path.until(|path| matches!(path.model.state, State::ProbeBw(_)));
    assert!(path.queue < 5.0, "{}", path.queue);
    assert!(longterm(&path).is_infinite(), "nothing was lost");
}

#[test]
fn startup_ends_with_losses_when_they_are_more_than_two_percent_in_six_places() {
    let mut path = Path::new();
    // What Startup queues does not fit.
    path.buffer = 10.0;
    path.until(drains);
    let (bdp, longterm) = (path.model.bdp_multiple(path.model.max_bw.get(), 1.0), longterm(&path));
    assert!(longterm.is_finite() && longterm >= bdp, "{longterm}, {bdp} fit");
    assert!(path.model.full_bw.count < 3, "the plateau has not had its three rounds");
}

#[test]
fn startup_goes_on_with_fewer_losses() {
    let mut path = Path::new();
    path.loss = 0.015;
    path.until(drains);
    assert!(longterm(&path).is_infinite());
    assert_eq!(path.model.full_bw.count, 3);
}

#[test]
fn a_startup_that_ended_for_nothing_goes_on() {
    let mut path = Path::new();
    path.buffer = 10.0;
    path.until(drains);
    path.mistake();
    assert_eq!(path.model.state, State::Startup);
    assert!(!path.model.full_bw.reached && longterm(&path).is_infinite());
}

#[test]
fn the_cycle_keeps_the_path_full_and_the_queue_short() {
    let mut path = steady();
    let delivered = path.totals.delivered;
    let mut queues = Vec::new();
    for _ in 0..4000 {
        path.run(Duration::from_millis(1));
        queues.push(path.queue);
    }
    let rate = (path.totals.delivered - delivered) / 4.0;
    assert!(rate > 960.0, "{rate} of 1000 segments a second");
    let mean: f64 = queues.iter().sum::<f64>() / queues.len() as f64;
    assert!(mean < 8.0, "a mean queue of {mean}");
}

#[test]
fn it_probes_every_two_or_three_seconds_or_as_often_as_reno_would_lose_something() {
    let mut path = steady();
    let cruised = path.now();
    path.until(is(ProbeBw::Refill));
    // 40 fit: 39 or 40 round trips of 40 ms are less than two seconds.
    let waited = (path.now() - cruised).as_millis();
    assert!((1400..=1700).contains(&waited), "{waited} ms");
    path.until(is(ProbeBw::Up)).until(is(ProbeBw::Down));
    // A longer path has fewer round trips in that time.
    path.base = Duration::from_millis(200);
    path.capacity = 2000.0;
    path.seconds(12);
    path.until(is(ProbeBw::Cruise));
    let cruised = path.now();
    path.until(is(ProbeBw::Refill));
    let waited = (path.now() - cruised).as_millis();
    assert!((1500..=3000).contains(&waited), "{waited} ms");
}

#[test]
fn a_probe_finds_a_faster_path_and_two_cycles_forget_a_faster_one() {
    let mut path = steady();
    path.capacity = 2000.0;
    path.seconds(8);
    assert!(path.model.max_bw.get() > 1900.0, "{}", path.model.max_bw.get());
    path.capacity = 1000.0;
    path.seconds(10);
    assert!(path.model.max_bw.get() < 1100.0, "{}", path.model.max_bw.get());
}

/// In the probe, and more than two percent are lost: no more than a little fits into the buffer.
fn probed_too_much() -> Path {
    let mut path = steady();
    path.until(is(ProbeBw::Up));
    path.buffer = 4.0;
    path.until(is(ProbeBw::Down));
    path
}

#[test]
fn a_probe_that_loses_more_than_two_percent_sets_the_bound_and_ends() {
    let path = probed_too_much();
    assert!(path.model.cycle.prev_probe_too_high);
    // 44 fit with the buffer. The bound is where the share crossed the threshold, and no less than 0.7 of the target.
    assert!((28.0..60.0).contains(&longterm(&path)), "{}", longterm(&path));
}

#[test]
fn a_bound_leaves_headroom_while_it_cruises() {
    let mut path = probed_too_much();
    path.until(is(ProbeBw::Cruise)).run(Duration::from_millis(100));
    let bound = longterm(&path);
    assert!(path.cc.cwnd <= 0.85 * bound + 1e-9, "{} below {bound}", path.cc.cwnd);
    path.until(is(ProbeBw::Refill)).run(Duration::from_millis(30));
    assert!(path.cc.cwnd <= bound && path.cc.cwnd > 0.85 * bound, "{} of {bound}", path.cc.cwnd);
}

#[test]
fn after_a_probe_that_was_too_much_the_next_is_cautious_and_a_third_follows_at_once() {
    let mut path = probed_too_much();
    path.buffer = 80.0;
    path.until(is(ProbeBw::Up));
    let began = path.now();
    path.until(is(ProbeBw::Down));
    assert!(path.model.cycle.prev_probe_precautionary);
    assert!((path.now() - began).as_millis() < 100, "no longer than until the bound is reached");
    let bound = longterm(&path);
    // Nothing was lost: without a cruise it probes again, and persists.
    path.until(|path| path.model.state != State::ProbeBw(ProbeBw::Down));
    assert_eq!(path.model.state, State::ProbeBw(ProbeBw::Refill));
    path.until(is(ProbeBw::Up)).until(is(ProbeBw::Down));
    assert!(longterm(&path) > bound + 1.0, "the bound rises: {} from {bound}", longterm(&path));
}

#[test]
fn an_undone_probe_probes_again() {
    let mut path = probed_too_much();
    path.mistake();
    assert_eq!(path.model.state, State::ProbeBw(ProbeBw::Refill));
    assert!(longterm(&path).is_infinite());
}

#[test]
fn a_loss_outside_a_probe_lowers_the_short_term_by_0_7_at_most_and_the_next_probe_forgets_it() {
    let mut path = steady();
    assert!(path.model.congestion.bw_shortterm.is_infinite());
    path.loss = 0.05;
    path.run(Duration::from_millis(60));
    path.loss = 0.0;
    path.run(Duration::from_millis(200));
    let bw = path.model.congestion.bw_shortterm;
    // What is delivered of 99 % of 1000, or 0.7 of it twice at most.
    assert!((690.0..1000.0).contains(&bw), "{bw}");
    assert!(path.model.congestion.inflight_shortterm.is_finite());
    assert!(path.model.bw <= bw);
    path.until(is(ProbeBw::Refill));
    assert!(path.model.congestion.bw_shortterm.is_infinite());
    assert!(path.model.congestion.inflight_shortterm.is_infinite());
}

#[test]
fn one_percent_of_loss_takes_little() {
    let mut path = steady();
    path.loss = 0.01;
    path.seconds(4);
    let delivered = path.totals.delivered;
    path.seconds(10);
    let rate = (path.totals.delivered - delivered) / 10.0;
    assert!(rate > 800.0, "{rate}");
}

#[test]
fn an_echo_is_a_loss_of_the_round_trip_outside_a_probe() {
    let mut path = steady();
    path.run(Duration::from_millis(300));
    path.echo();
    path.run(Duration::from_millis(90));
    let (bw, inflight) = (path.model.congestion.bw_shortterm, path.model.congestion.inflight_shortterm);
    assert!((690.0..=1001.0).contains(&bw), "{bw}");
    assert!(inflight < path.model.bdp_multiple(path.model.max_bw.get(), 2.0), "{inflight}");
}

#[test]
fn an_echo_ends_a_probe_and_sets_the_bound() {
    let mut path = steady();
    path.until(is(ProbeBw::Up));
    path.echo();
    assert_eq!(path.model.state, State::ProbeBw(ProbeBw::Down));
    assert!(longterm(&path).is_finite());
}

#[test]
fn an_echo_ends_startup() {
    let mut path = Path::new();
    path.run(Duration::from_millis(100));
    assert_eq!(path.model.state, State::Startup);
    path.echo();
    path.run(Duration::from_millis(5));
    assert!(drains(&path) || matches!(path.model.state, State::ProbeBw(_)));
    assert!(longterm(&path).is_finite());
}

#[test]
fn five_seconds_without_a_shorter_round_trip_are_followed_by_200_ms_with_half_of_what_fits() {
    let mut path = steady();
    path.seconds(1);
    let stamp = path.model.min_rtt.probe_min_stamp;
    path.until(probes_rtt);
    let waited = (path.now() - stamp).as_millis();
    assert!((5_000..=5_100).contains(&waited), "{waited} ms");
    path.run(Duration::from_millis(60));
    let half = path.model.bdp_multiple(path.model.bw, 0.5);
    assert!(path.cc.cwnd <= half + 1e-9 && half > 15.0, "{} of {half}", path.cc.cwnd);
    let began = path.now();
    path.until(|path| !probes_rtt(path));
    let probed = (path.now() - began).as_millis();
    assert!((140..=300).contains(&probed), "{probed} ms");
    assert_eq!(path.model.state, State::ProbeBw(ProbeBw::Cruise), "nothing is left to drain");
}

#[test]
fn a_round_trip_counts_for_ten_seconds_though_it_is_probed_every_five() {
    let mut path = steady();
    path.base = Duration::from_millis(60);
    path.until(probes_rtt);
    assert_eq!(path.model.min_rtt.min_rtt, Some(Duration::from_millis(40)));
    path.seconds(10);
    let min_rtt = path.model.min_rtt.min_rtt.unwrap();
    assert!((60..=64).contains(&min_rtt.as_millis()), "{min_rtt}");
}

#[test]
fn after_an_idle_time_it_goes_on_at_the_rate_it_knows() {
    let mut path = steady();
    let bw = path.model.bw;
    path.writes = 0.0;
    path.seconds(15);
    path.writes = f64::INFINITY;
    let sent = path.sent;
    path.run(Duration::from_millis(30));
    let burst = path.sent - sent;
    assert!((25.0..=31.0).contains(&burst), "{burst} segments in 30 ms at 1000 a second");
    path.run(Duration::from_millis(100));
    assert!(!probes_rtt(&path), "the idle time has drained every queue");
    assert!((path.model.bw - bw).abs() < 20.0, "{} from {bw}", path.model.bw);
}

#[test]
fn an_application_that_writes_little_does_not_make_the_path_look_slow() {
    let mut path = steady();
    path.writes = 100.0;
    path.seconds(8);
    assert!(path.model.max_bw.get() > 950.0, "{}", path.model.max_bw.get());
}

#[test]
fn a_timeout_starts_from_one_segment_and_returns() {
    let mut path = steady();
    let before = path.cc.cwnd;
    path.timeout();
    assert_eq!(path.cc.cwnd, 1.0);
    path.seconds(4);
    assert!(path.cc.cwnd >= 0.6 * before, "{} from {before}", path.cc.cwnd);
    assert!(path.model.max_bw.get() > 900.0, "{}", path.model.max_bw.get());
}
