//! Accuracy of fitted paths. A recording from both ends of a path is converted to a scenario, over which
//! other senders must perform as over the original path.
//!
//! The recording has one sender, two minutes and one seed. The comparison uses other senders and other seeds.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use airlink::capture::Tap;
use airlink::path::{FIXED, MOBILE};
use airlink::scenario::Scenario;
use airlink_fit::{self as fit, Observed, Options};
use airtcp::profile::Profile;
use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::{Flow, HostSpec, Length, Watch, World, WorldConfig};
use airtcp_testkit::temporary::TempDir;
use airwire::time::{Duration, Instant};

/// Presets to record.
const PATHS: [&str; 10] = [
    "wcdma-64",
    "wcdma-384",
    "wcdma-384-jitter",
    "gprs",
    "hsdpa-like",
    "geo",
    "leo",
    "sifest-random",
    "rtt-last-hop",
    "tax-rebate",
];
const RECORDED: &str = "linux";
const RECORDED_FOR: Duration = Duration::from_secs(120);
const COMPARED: [&str; 2] = ["newreno", "sack+fast-timeout"];
const COMPARED_FOR: Duration = Duration::from_secs(30);

#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Observed>>);

impl Tap for Recorder {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        self.0.lock().unwrap().packet(at.as_nanos() as i64, packet);
    }
}

/// Creates a world with an endless transfer between hosts that resemble Linux.
fn transfer(scenario: &str, recipe: &str, seed: u64) -> World {
    World::new(WorldConfig {
        scenario: Scenario::load(scenario).unwrap(),
        seed,
        fixed: HostSpec { profile: Profile::linux(), recipe: recipe.parse().unwrap() },
        mobile: HostSpec::kernel(),
        flows: vec![Flow { watch: Watch::Results, ..Flow::down(Length::Endless) }],
    })
    .unwrap()
}

/// Records a transfer, and fits a scenario to the recording. Returns a directory with the scenario,
/// `{preset}.toml`.
fn fitted(preset: &str) -> TempDir {
    let mut world = transfer(preset, RECORDED, 1);
    let ends = [Recorder::default(), Recorder::default()];
    world.tap(FIXED, ends[0].clone());
    world.tap(MOBILE, ends[1].clone());
    world.run_until(Instant::ZERO + RECORDED_FOR).unwrap();
    let [fixed, mobile] = ends.map(|end| end.0.lock().unwrap().clone());
    let matched = fit::match_captures(fixed, mobile, None).unwrap();
    let fitted = fit::fit(&matched.recording, Options::default()).unwrap();
    let files = fit::files(&fitted, preset, "a recording");
    let directory = TempDir::new("fitted");
    for (name, text) in &files.schedules {
        directory.write(name, text);
    }
    directory.write(&format!("{preset}.toml"), &files.scenario);
    directory
}

/// The result of a transfer.
struct Outcome {
    /// Bytes read by the application.
    delivered: f64,
    /// Retransmitted segments per megabyte of delivered data.
    resent: f64,
}

fn run(scenario: &str, recipe: &str, seed: u64) -> Outcome {
    let mut world = transfer(scenario, recipe, seed);
    world.run_until(Instant::ZERO + COMPARED_FOR).unwrap();
    let result = world.result(0);
    let delivered = result.delivered as f64;
    Outcome { delivered, resent: result.counters.resent() as f64 * 1e6 / delivered }
}

fn mean(runs: &[Outcome], of: fn(&Outcome) -> f64) -> Mean {
    Mean::of(&runs.iter().map(of).collect::<Vec<_>>()).unwrap()
}

/// Returns the half-width of the interval relative to the mean.
fn share(mean: Mean) -> f64 {
    mean.half_width.unwrap_or_default() / mean.mean
}

/// Returns one row for each path and sender: the ratio, the half-width of its interval, and a line of the
/// table in docs/guides/recorded-path.md.
fn compare(paths: &[&str], seeds: Range<u64>) -> Vec<(f64, f64, String)> {
    let mut rows = Vec::new();
    println!(
        "| path | sender | goodput: fitted / path | retransmissions per MB: path, fitted |\n|---|---|---|---|"
    );
    for preset in paths {
        let directory = fitted(preset);
        let file = directory.path(&format!("{preset}.toml"));
        for recipe in COMPARED {
            let runs =
                |scenario: &str| seeds.clone().map(|seed| run(scenario, recipe, seed)).collect::<Vec<_>>();
            let [path, fitted] = [runs(preset), runs(&file)];
            let [over_path, over_fitted] = [&path, &fitted].map(|runs| mean(runs, |it| it.delivered));
            let ratio = over_fitted.mean / over_path.mean;
            // The relative errors of two independent means add in quadrature.
            let half_width = ratio * share(over_path).hypot(share(over_fitted));
            let [resent, resent_fitted] = [&path, &fitted].map(|runs| mean(runs, |it| it.resent).mean);
            let row = format!(
                "| `{preset}` | `{recipe}` | {ratio:.2} ± {half_width:.2} | {resent:.0}, {resent_fitted:.0} |"
            );
            println!("{row}");
            rows.push((ratio, half_width, row));
        }
    }
    rows
}

/// The tolerance is 10 %, on paths with little random variation.
#[test]
fn fitted_path_gives_same_goodput_as_original() {
    for (ratio, _, row) in compare(&["wcdma-64", "wcdma-384", "gprs"], 11..15) {
        assert!((0.9..1.1).contains(&ratio), "{row}");
    }
}

/// Prints the table of docs/guides/recorded-path.md.
#[test]
#[ignore = "takes minutes"]
fn ten_fitted_paths_are_within_factor_of_two() {
    let rows = compare(&PATHS, 11..31);
    // A factor of two or more means that the fit describes a different path.
    let far =
        rows.iter().filter(|(ratio, half_width, _)| ratio + half_width < 0.5 || ratio - half_width > 2.0);
    assert_eq!(far.collect::<Vec<_>>(), Vec::<&(f64, f64, String)>::new());
}
