//! Lazy mode: a world without observers may defer internal events. Whenever it is inspected, it must be in
//! the same state as an observed world.

use airlink::scenario::Scenario;
use airlink::stage::DropReason;
use airtcp_sim::run::{Run, Until, run};
use airtcp_sim::world::{Flow, HostSpec, Length, Watch, World, WorldConfig};
use airtcp_testkit::sample::{sample, size};
use airwire::time::{Duration, Instant};

/// Two consecutive links with background traffic. The first one is fast; the second one has a short queue,
/// jitter and rate steps.
const OTHER: &str = r#"
schema = 1
[[stage]]
kind = "traffic"
name = "voice"
down = { source = "cbr", rate = "64kbit", packet = "200B", leaves_after = "air" }
[[stage]]
kind = "link"
name = "backbone"
both = { rate = "10Mbit" }
[[stage]]
kind = "link"
name = "air"
both = { rate = "512kbit", delay = "7ms", jitter = "3ms", steps = { every = "1s", within = "20ms" }, queue = { packets = 6 } }
[[stage]]
kind = "loss"
both = { model = "uniform", per = "2%" }
"#;

fn scenarios() -> Vec<Scenario> {
    let presets =
        ["sifest-heavy", "sifest-fairness", "leo", "geo", "etcp-fixed-mobile", "rtt-broad-backbone-short"];
    let presets = presets.map(|name| Scenario::load(name).unwrap());
    let managed = OTHER.replace("packets = 6", "packets = 60, discipline = \"codel\"");
    let written = [OTHER, &managed].map(|text| Scenario::parse(text, "test").unwrap());
    presets.into_iter().chain(written).collect()
}

fn world(scenario: &Scenario, seed: u64, watch: Watch) -> World {
    let recipe = |recipe: &str| Some(recipe.parse().expect("a valid recipe"));
    let sender = |text: &str| HostSpec::sender(text.parse().expect("a valid recipe"));
    let flows = vec![
        Flow { recipe: recipe("sack"), watch, ..Flow::down(Length::Endless) },
        Flow { watch, start: Instant::from_secs(1), ..Flow::down(Length::Octets(50_000)) },
        Flow { watch, ..Flow::up(Length::Octets(30_000)) },
    ];
    let (fixed, mobile) = (sender("newreno"), sender("newreno"));
    World::new(WorldConfig { scenario: scenario.clone(), seed, fixed, mobile, flows }).unwrap()
}

#[test]
fn lazy_world_matches_observed_world_when_inspected() {
    for (path, scenario) in scenarios().iter().enumerate() {
        for seed in 1..=size(1, 3) {
            let [mut watched, mut unwatched] =
                [Watch::Decisions, Watch::Results].map(|watch| world(scenario, seed, watch));
            // Odd times, so that some inspections fall between the end of a transmission and the arrival.
            let mut at = Instant::ZERO;
            for step in 0..60_u64 {
                at += Duration::from_micros(1 + step * step * 211 + seed);
                for world in [&mut watched, &mut unwatched] {
                    world.run_until(at).unwrap();
                }
                let context = format!("path {path}, seed {seed}, at {at}");
                assert_eq!(unwatched.results(), watched.results(), "{context}");
                assert_eq!(unwatched.totals(), watched.totals(), "{context}");
                assert_eq!(unwatched.path().stats(), watched.path().stats(), "{context}");
                assert_eq!(unwatched.path().held(), watched.path().held(), "{context}");
            }
        }
    }
}

/// The run ends between two events at the hosts.
#[test]
fn lazy_run_reports_path_state_at_end_time() {
    let ends = sample("ends", (0..25).map(|n| Instant::from_micros(6_000_123 + 1_711 * n)), 5);
    for (path, scenario) in scenarios().iter().enumerate() {
        for end in ends.iter().copied() {
            let reports = [Watch::Decisions, Watch::Results].map(|watch| {
                let recipe = "newreno".parse().expect("a valid recipe");
                let run_of = Run {
                    scenario: scenario.clone(),
                    seed: 1,
                    fixed: HostSpec::sender(recipe),
                    mobile: HostSpec::receiver(),
                    flows: vec![Flow { watch, ..Flow::down(Length::Endless) }],
                    until: Until::At(end),
                    from: Instant::ZERO,
                    score: false,
                };
                run(&run_of).unwrap()
            });
            assert_eq!(reports[0], reports[1], "path {path}, at {end}");
        }
    }
}

/// This includes the last packets, whose loss the sender has not detected yet.
#[test]
fn observed_world_records_losses_immediately() {
    let scenario = Scenario::parse(
        "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"2Mbit\", delay = \"50ms\" }\n\
         [[stage]]\nkind = \"loss\"\ndown = { model = \"uniform\", per = \"10%\", affects = \"data\" }\n",
        "test",
    );
    let sender = HostSpec::sender("sack".parse().expect("a valid recipe"));
    let flows = vec![Flow { watch: Watch::Decisions, ..Flow::down(Length::Endless) }];
    let (scenario, mobile) = (scenario.unwrap(), HostSpec::receiver());
    let mut world = World::new(WorldConfig { scenario, seed: 1, fixed: sender, mobile, flows }).unwrap();
    let mut most = 0;
    for step in 1..10_000 {
        world.run_until(Instant::ZERO + Duration::from_millis(3) * step).unwrap();
        let lost = world.losses(0).as_slice().len() as u64;
        assert_eq!(lost, world.totals().down.dropped_for(DropReason::Loss), "at {}", world.now());
        most = most.max(lost);
    }
    assert!(most > 20, "{most} losses");
}

#[test]
fn step_runs_until_next_host_event() {
    let scenario = &scenarios()[0];
    let [mut watched, mut unwatched] =
        [Watch::Decisions, Watch::Results].map(|watch| world(scenario, 1, watch));
    let mut steps = 0;
    while watched.now() < Instant::from_secs(30) {
        assert!(watched.step().unwrap() && unwatched.step().unwrap());
        assert_eq!(watched.now(), unwatched.now());
        assert_eq!(watched.results(), unwatched.results());
        steps += 1;
    }
    // Each packet of the voice traffic alone causes seven events on the path.
    let voice = watched.path().background().down.entered;
    assert!(steps < 2 * voice, "{steps} steps for {voice} packets of the voice stream");
}

#[test]
fn step_by_event_stops_at_each_path_event() {
    let scenario = &scenarios()[0];
    let mut world = world(scenario, 1, Watch::Results);
    world.step_by_event();
    let mut steps = 0;
    while world.now() < Instant::from_secs(30) {
        assert!(world.step().unwrap());
        steps += 1;
    }
    let voice = world.path().background().down.entered;
    assert!(steps > 5 * voice, "{steps} steps for {voice} packets of the voice stream");
}
