//! Tests with known paths: they replay packets, and the fit must recover their properties.

use airlink::packet::{Direction, PerDirection};
use airlink::path::Path;
use airlink::scenario::Scenario;
use airlink::stage::Recording as Events;
use airlink_fit::{
    Bound, Burst, Crossing, Fitted, FittedDirection, Options, Recorded, Recording, compare, files, fit,
};
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::{Rate, Size};

use super::replay::replay;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Packets of the same length for some seconds, with random intervals of `apart_us` microseconds on average.
fn packets(seed: u64, octets: u32, apart_us: u64, seconds: u64) -> Recorded {
    let mut rng = Stream::new(seed, "arrivals");
    let mut now = Instant::ZERO;
    let mut crossings = Vec::new();
    while now < Instant::from_secs(seconds) {
        crossings.push(Crossing { entered: now, octets, left: None });
        now += Duration::from_nanos(rng.below(2_000 * apart_us));
    }
    Recorded { crossings, copies: 0 }
}

/// Sends packets over a path with these stages.
fn over(stages: &str, down: Recorded, up: Recorded, seed: u64) -> Recording {
    let scenario = Scenario::parse(&format!("schema = 1\n{stages}"), "known.toml").unwrap();
    let mut path = scenario.build(Some(seed), Events::Off, false).unwrap();
    let mut recording =
        replay(&Recording { directions: PerDirection { down, up }, duration: ms(60_000) }, &mut path);
    let crossings = |direction| recording.directions[direction].crossings.iter();
    let ends =
        Direction::BOTH.into_iter().flat_map(|direction| crossings(direction).filter_map(|it| it.left));
    recording.duration = ends.max().unwrap() - Instant::ZERO;
    recording
}

fn link(down: &str, up: &str) -> String {
    format!("[[stage]]\nkind = \"link\"\ndown = {down}\nup = {up}\n")
}

/// ACKs, on average one every 50 ms.
fn acks(seconds: u64) -> Recorded {
    packets(99, 40, 50_000, seconds)
}

fn fitted(recording: &Recording) -> Fitted {
    fit(recording, Options::default()).unwrap()
}

/// Builds the fitted path from its files.
fn built(fitted: &Fitted, name: &str) -> Path {
    let directory = std::env::temp_dir().join(format!("airlink-fit-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let files = files(fitted, name, "a test");
    for (file, text) in &files.schedules {
        std::fs::write(directory.join(file), text).unwrap();
    }
    let file = directory.join("path.toml");
    std::fs::write(&file, &files.scenario).unwrap();
    let scenario = Scenario::load(&file.display().to_string()).unwrap();
    let path = scenario.build(Some(7), Events::Off, false).unwrap();
    std::fs::remove_dir_all(directory).unwrap();
    path
}

#[test]
fn fit_recovers_rate_delay_and_queue_exactly() {
    // The load is 1.2 Mbit/s on a link with 1 Mbit/s.
    let link =
        link(r#"{ rate = "1Mbit", delay = "35ms", queue = { packets = 20 } }"#, r#"{ delay = "20ms" }"#);
    let fitted = fitted(&over(&link, packets(1, 1250, 8333, 60), acks(60), 1));
    let FittedDirection { delay, rate, losses, overtaken, copied, .. } = &fitted.directions.down;
    assert_eq!(delay.as_constant(), Some(ms(35)));
    assert_eq!(rate.as_ref().unwrap().over_time.as_constant(), Some(Rate::bits_per_second(1_000_000)));
    assert_eq!(losses.bound, Some(Bound::Packets(20)));
    assert_eq!((losses.others, *overtaken, *copied), (0, None, 0.0));
    let FittedDirection { delay, rate, losses, jitter, .. } = &fitted.directions.up;
    assert_eq!((delay.as_constant(), rate, *jitter), (Some(ms(20)), &None, Duration::ZERO));
    assert_eq!((losses.bound, losses.others), (None, 0));
}

#[test]
fn fit_distinguishes_byte_bound_from_packet_bound() {
    let mut down = packets(2, 100, 6000, 60);
    let mut rng = Stream::new(2, "sizes");
    for crossing in &mut down.crossings {
        crossing.octets = [1500, 1500, 1500, 60, 600][rng.below(5) as usize];
    }
    let in_octets = r#"{ rate = "1Mbit", delay = "35ms", queue = { bytes = "30kB" } }"#;
    let recording = over(&link(in_octets, r#"{ delay = "20ms" }"#), down.clone(), acks(60), 1);
    let Some(Bound::Bytes(size)) = fitted(&recording).directions.down.losses.bound else { panic!() };
    assert!((Size::bytes(28_500)..=Size::bytes(31_500)).contains(&size), "{size}");
    let in_packets = r#"{ rate = "1Mbit", delay = "35ms", queue = { packets = 30 } }"#;
    let recording = over(&link(in_packets, r#"{ delay = "20ms" }"#), down, acks(60), 1);
    let Some(Bound::Packets(packets)) = fitted(&recording).directions.down.losses.bound else { panic!() };
    assert!((29..=31).contains(&packets), "{packets}");
}

#[test]
fn fit_follows_changing_rate() {
    let directory = std::env::temp_dir().join(format!("airlink-fit-{}-schedule", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("rates.csv");
    std::fs::write(&file, "time s,rate kbit\n0,1000\n5,250\n9,0\n10,2000\n20,1000\n").unwrap();
    let link = link(&format!("{{ follow = {file:?}, delay = \"35ms\" }}"), r#"{ delay = "20ms" }"#);
    let recording = over(&link, packets(3, 1250, 4000, 20), acks(20), 1);
    std::fs::remove_dir_all(directory).unwrap();
    let fitted = fitted(&recording);
    let rate_over_time = &fitted.directions.down.rate.as_ref().unwrap().over_time;
    // Times here are departure times, 35 ms after the link. A transmission takes 10 ms or 40 ms.
    for (time, rate) in
        [(1000, 1e6), (4900, 1e6), (5200, 0.25e6), (8900, 0.25e6), (10_200, 2e6), (15_000, 2e6)]
    {
        let found = rate_over_time.at(at(time)).as_bits_per_second() as f64;
        assert!((found / rate - 1.0).abs() < 0.03, "{time}: {found}");
    }
    let at_zero_rate = rate_over_time.at(at(9500)).as_bits_per_second();
    assert!(
        at_zero_rate < 12_000,
        "{at_zero_rate} bit/s while the rate is 0: a packet of 10000 bits takes a second"
    );
    let mut path = built(&fitted, "rates");
    let comparison = compare(&recording, &replay(&recording, &mut path)).down;
    assert!(comparison.mean_delay_difference < ms(20), "{comparison:?}");
}

#[test]
fn fit_estimates_random_loss_and_burst_length() {
    for (model, per_mille, burst) in [
        (r#"{ model = "uniform", per = "2%" }"#, 20.0, None),
        (r#"{ model = "gilbert-elliott", mean = "3%", burst = 5 }"#, 30.0, Some(5.0)),
    ] {
        for seed in 0..5 {
            let loss = format!("[[stage]]\nkind = \"loss\"\ndown = {model}\n");
            let link = link(r#"{ rate = "1Mbit", delay = "35ms" }"#, r#"{ delay = "20ms" }"#);
            // 40,000 packets: 99.9 % of all runs are within 0.25 % of 2 %, and within 0.8 % of 3 % in bursts.
            let recording = over(&(link + &loss), packets(seed, 125, 1500, 60), acks(60), seed);
            let found = fitted(&recording).directions.down.losses;
            assert_eq!(found.bound, None, "{model}, seed {seed}");
            let share = 1000.0 * found.share;
            assert!((share - per_mille).abs() < if burst.is_some() { 8.0 } else { 2.5 }, "{model}: {share}");
            match (found.burst, burst) {
                (None, None) => {}
                (Some(Burst::Packets(length)), Some(known)) => {
                    assert!((length / known - 1.0_f64).abs() < 0.2, "{length}")
                }
                other => panic!("{model}, seed {seed}: {other:?}"),
            }
        }
    }
}

#[test]
fn fit_reports_outages_as_bursts_in_time() {
    let outage = "[[stage]]\nkind = \"outage\"\ndown = { at = [\"3s\"], lasts = \"500ms\", every = \"5s\", packets = \"dropped\" }\n";
    let link = link(r#"{ rate = "1Mbit", delay = "35ms" }"#, r#"{ delay = "20ms" }"#);
    let losses =
        fitted(&over(&(link + outage), packets(4, 125, 1500, 60), acks(60), 1)).directions.down.losses;
    let Some(Burst::Time(lasts, share)) = losses.burst else { panic!("{losses:?}") };
    assert!(lasts.abs_diff(ms(500)) < ms(10), "{lasts}");
    assert!((share - 0.1).abs() < 0.01, "{share}");
}

#[test]
fn fit_follows_changing_delay_without_queue() {
    let link = link(
        r#"{ rate = "1Mbit", delay = "35ms" }"#,
        r#"{ delay = "20ms", jitter = "2ms", steps = { every = "10s", within = "40ms" } }"#,
    );
    let recording = over(&link, packets(5, 1250, 8333, 60), packets(6, 40, 20_000, 60), 3);
    let Fitted { directions, .. } = fitted(&recording);
    assert_eq!(directions.up.rate, None);
    for crossing in
        recording.directions.up.crossings.iter().filter(|it| it.entered.as_millis() % 10_000 > 100)
    {
        let (found, delay) = (directions.up.delay.at(crossing.entered), crossing.delay().unwrap());
        assert!(delay.abs_diff(found) < ms(3), "{:?}: {delay}, {found}", crossing.entered);
    }
}

#[test]
fn fit_estimates_reordering_and_duplication() {
    let stages = "[[stage]]\nkind = \"reorder\"\ndown = { chance = \"4%\", time = \"30ms\" }\n\
                  [[stage]]\nkind = \"duplicate\"\ndown = { chance = \"5%\" }\n";
    let link = link(r#"{ delay = "35ms" }"#, r#"{ delay = "20ms" }"#);
    let recording = over(&(link + stages), packets(7, 125, 3000, 60), acks(60), 1);
    let down = fitted(&recording).directions.down;
    let overtaken = down.overtaken.unwrap();
    assert!((overtaken.share - 0.04).abs() < 0.005, "{overtaken:?}");
    assert!((down.copied - 0.05).abs() < 0.005, "{}", down.copied);
    let replayed = replay(&recording, &mut built(&fitted(&recording), "order"));
    let refitted = fitted(&replayed).directions.down;
    assert!(
        (refitted.overtaken.unwrap().share / overtaken.share - 1.0).abs() < 0.25,
        "{:?}",
        refitted.overtaken
    );
    assert!((refitted.copied / down.copied - 1.0).abs() < 0.25, "{}", refitted.copied);
}

#[test]
fn fitted_path_reproduces_delays_and_losses() {
    // The load is 95 % of the link's rate, so that packets wait occasionally.
    let link =
        link(r#"{ rate = "1Mbit", delay = "35ms", queue = { packets = 20 } }"#, r#"{ delay = "20ms" }"#);
    let recording = over(&link, packets(8, 1250, 10_500, 60), acks(60), 1);
    let mut path = built(&fitted(&recording), "same");
    let PerDirection { down, up } = compare(&recording, &replay(&recording, &mut path));
    assert!(down.mean_delay_difference < ms(1), "{down:?}");
    assert!((down.replayed.lost - down.recorded.lost).abs() < 0.01, "{down:?}");
    assert_eq!(up.mean_delay_difference, Duration::ZERO);
}

#[test]
fn fit_rejects_short_long_or_sparse_recordings() {
    let link = link(r#"{ delay = "35ms" }"#, r#"{ delay = "20ms" }"#);
    let error = fit(&Recording::default(), Options::default()).unwrap_err().to_string();
    assert_eq!(error, "the recording lasts only 0ns, and at least one second is needed");
    let long = Recording { duration: Duration::from_secs(365 * 86_400), ..Recording::default() };
    let error = fit(&long, Options::default()).unwrap_err().to_string();
    assert!(error.contains("more than 5000000 steps of 20.000ms: use longer steps (--step)"), "{error}");
    let mut few = over(&link, packets(9, 125, 3000, 5), acks(5), 1);
    few.directions.up.crossings.truncate(19);
    let error = fit(&few, Options::default()).unwrap_err().to_string();
    assert_eq!(
        error,
        "only 19 packets crossed from the second capture to the first, and 20 are needed: record a longer transfer, in both \
         directions"
    );
}
