//! Why was it lost? What base stations and round-trip times say, held against what happened.

use airlink::scenario::Scenario;
use airtcp::recovery::catalogue::Question;
use airtcp::recovery::confusion::{Confusion, Truth};
use airtcp::recovery::{Decision, What};
use airtcp_sim::world::{Flow, FlowResult, HostSpec, Length, Watch, World, WorldConfig};
use airtcp_testkit::sample::{sample, size};
use airwire::Cause;
use airwire::time::Instant;

/// A row of P4's Table 1: the preset, its lossy stages, and which way the data go.
#[derive(Clone, Copy)]
struct Way {
    preset: &'static str,
    radio: &'static [&'static str],
    direction: &'static str,
}

const FIXED_TO_MOBILE: Way = Way { preset: "etcp-fixed-mobile", radio: &["radio-errors"], direction: "down" };
const MOBILE_TO_FIXED: Way =
    Way { preset: "etcp-mobile-fixed", radio: &["radio-errors-up"], direction: "up" };
const MOBILE_TO_MOBILE: Way =
    Way { preset: "etcp-mobile-mobile", radio: &["radio-errors-1", "radio-errors-2"], direction: "down" };

const REPAIRS: [&str; 4] = ["tahoe", "reno", "newreno", "sack"];

impl Way {
    const ALL: [Self; 3] = [FIXED_TO_MOBILE, MOBILE_TO_FIXED, MOBILE_TO_MOBILE];

    /// P4's path with this packet error rate on each radio link. Of 1 Mbit/s, so that there is a window to lose, and
    /// without the errors of the wire, which are neither congestion nor the radio.
    fn path(&self, per: &str) -> String {
        let mut text = extended(
            self.preset,
            "[[stage]]\nname = \"wire-errors\"\nremove = true\n[[stage]]\nname = \"wire\"\nboth.rate = \"1Mbit\"\n",
        );
        for stage in self.radio {
            text += &format!("[[stage]]\nname = \"{stage}\"\n{}.per = \"{per}\"\n", self.direction);
        }
        text
    }

    fn flow(&self) -> Flow {
        if self.direction == "up" { Flow::up(Length::Endless) } else { Flow::down(Length::Endless) }
    }

    fn run(&self, per: &str, recipe: &str, seed: u64, seconds: u64) -> World {
        run(&self.path(per), recipe, self.flow(), seed, seconds)
    }
}

/// This many of the ways with a repair each, or all of them in `make nightly`.
fn ways_and_repairs(draw: &str, count: usize) -> Vec<(Way, &'static str)> {
    sample(draw, Way::ALL.into_iter().flat_map(|way| REPAIRS.map(|repair| (way, repair))), count)
}

fn extended(preset: &str, changes: &str) -> String {
    format!("schema = 1\nextends = \"{preset}\"\n{changes}")
}

/// Both hosts have the recipe, and one of them all there is to send.
fn run(scenario: &str, recipe: &str, flow: Flow, seed: u64, seconds: u64) -> World {
    let host = || HostSpec::sender(recipe.parse().unwrap());
    let config = WorldConfig {
        scenario: Scenario::parse(scenario, "test").unwrap(),
        seed,
        fixed: host(),
        mobile: host(),
        flows: vec![Flow { watch: Watch::Decisions, ..flow }],
    };
    let mut world = World::new(config).unwrap();
    if let Err(error) = world.run_until(Instant::from_secs(seconds)) {
        panic!("{error}\n{}", world.time_sequence(0));
    }
    world
}

fn down() -> Flow {
    Flow::down(Length::Endless)
}

/// The same of several seeds.
fn delivered(seeds: u64, run: impl Fn(u64) -> World) -> u64 {
    (1..=seeds).map(|seed| run(seed).result(0).delivered).sum()
}

/// The decisions, and what came of them, as if `always-congestion` had said the same as `transit-marks`.
fn as_if_always_congestion(world: &mut World) -> (FlowResult, Vec<Decision>) {
    let mut decisions = world.decisions(0).to_vec();
    for decision in decisions.iter_mut().filter(|decision| decision.question == Question::Attribute) {
        decision.by = "always-congestion";
        decision.why = "every loss is treated as congestion";
    }
    (world.result(0), decisions)
}

// ----- transit marks -----

#[test]
fn stations_tell_the_radio_from_a_queue_whichever_way_the_data_go() {
    for (way, repair) in ways_and_repairs("stations", 6) {
        let recipe = format!("{repair}+transit-marks");
        let mut confusion = Confusion::default();
        let seeds = size(1, 3);
        for seed in 1..=seeds {
            let mut world = way.run("1%", &recipe, seed, 120);
            confusion += world.confusion(0, "transit-marks");
            check_reductions(&mut world, &format!("{} {recipe}, seed {seed}", way.preset));
        }
        println!("{:<18} {recipe:<22} {confusion}", way.preset);
        let lost = [Cause::Radio, Cause::Congestion].map(|cause| confusion.of(Truth::Lost(cause)));
        assert!(lost[0] > 33 * seeds && lost[1] > seeds, "{confusion}");
        assert_eq!(
            confusion.count(Cause::Radio, Truth::Lost(Cause::Congestion)),
            0,
            "{} {recipe}",
            way.preset
        );
        // Where SACK sends two holes again at once, the mark about the second is about its copy.
        let wrong = confusion.count(Cause::Congestion, Truth::Lost(Cause::Radio));
        assert!(wrong == 0 || (repair == "sack" && wrong <= 10), "{} {recipe}: {confusion}", way.preset);
    }
}

/// A loss on the radio keeps the window, and a drop of a queue reduces it once.
fn check_reductions(world: &mut World, place: &str) {
    let counters = world.result(0).counters;
    let sequence = world.time_sequence(0);
    let decisions = world.decisions(0);
    let of = |it: &Decision| match it.what {
        What::Cause { cause, .. } => Some(cause),
        _ => None,
    };
    let cause = |cause| decisions.iter().filter(|d| of(d) == Some(cause)).count() as u64;
    let first_timeouts = {
        let mut last = None;
        let offsets = decisions.iter().filter_map(|d| match d.what {
            What::Timeout { offset } => Some(offset),
            _ => None,
        });
        offsets.filter(|offset| last.replace(*offset) != Some(*offset)).count() as u64
    };
    let reasons = cause(Cause::Congestion) + first_timeouts;
    assert_eq!(counters.window_reductions, reasons, "{place}\n{sequence}");
    assert!(cause(Cause::Radio) >= counters.put_down_to_radio && counters.put_down_to_radio > 20, "{place}");
    for (i, decision) in decisions.iter().enumerate() {
        if of(decision) != Some(Cause::Radio) {
            continue;
        }
        let reduced = decisions[i..].iter().take_while(|later| later.at == decision.at).find(|later| {
            matches!(later.what, What::Window { cwnd, ssthresh, was_cwnd, was_ssthresh }
                if later.question == Question::Window && (cwnd < was_cwnd || ssthresh < was_ssthresh))
        });
        assert_eq!(reduced, None, "{place} at {}\n{sequence}", decision.at);
    }
}

/// P4 §IV, Figs 6 to 8: the more the radio loses, the more the marks are worth.
#[test]
fn marks_are_worth_the_more_the_more_the_radio_loses() {
    for (way, repair) in ways_and_repairs("worth", 2) {
        let gain = |per| {
            let total = |recipe: &str| delivered(2, |seed| way.run(per, recipe, seed, 60)) as f64;
            total(&format!("{repair}+transit-marks")) / total(repair)
        };
        let (one, four) = (gain("1%"), gain("4%"));
        println!("{:<18} {repair:<8} 1 %: x {one:.2}, 4 %: x {four:.2}", way.preset);
        assert!(one > 1.05 && four > 1.5 && four > one, "{} {repair}: {one} {four}", way.preset);
    }
}

#[test]
fn where_only_queues_drop_marks_change_nothing() {
    for (way, repair) in ways_and_repairs("queues only", 4) {
        let mut plain = way.run("0%", repair, 1, 60);
        let mut marked = way.run("0%", &format!("{repair}+transit-marks"), 1, 60);
        let expected = as_if_always_congestion(&mut plain);
        assert!(expected.0.counters.window_reductions > 0, "{} {repair}", way.preset);
        assert!(as_if_always_congestion(&mut marked) == expected, "{} {repair}", way.preset);
    }
}

#[test]
fn without_a_station_a_sender_that_reads_marks_is_an_ordinary_one() {
    let scenario = |per: &str| {
        let without = "[[stage]]\nname = \"station\"\nremove = true\n";
        format!("{}{without}", FIXED_TO_MOBILE.path(per))
    };
    let losses = [(1, "1%"), (2, "5%"), (3, "15%")];
    let cases = REPAIRS.into_iter().flat_map(|repair| losses.map(|(seed, per)| (repair, seed, per)));
    for (repair, seed, per) in sample("no station", cases, 4) {
        let play = |recipe: &str| as_if_always_congestion(&mut run(&scenario(per), recipe, down(), seed, 60));
        let expected = play(repair);
        assert!(!expected.1.is_empty() && expected.0.delivered > 0);
        for extra in ["transit-marks", "early-marks"] {
            assert!(play(&format!("{repair}+{extra}")) == expected, "{repair}+{extra} seed {seed}");
        }
    }
}

#[test]
fn a_station_that_only_measures_is_no_transit_agent() {
    let path = FIXED_TO_MOBILE.path("3%").replace(
        "[[stage]]\nname = \"wire\"",
        "[[stage]]\nname = \"station\"\ntransit_marks = false\nloss_report = true\n[[stage]]\nname = \"wire\"",
    );
    let play = |recipe: &str| as_if_always_congestion(&mut run(&path, recipe, down(), 1, 60));
    assert!(play("etcp") == play("reno"));
}

// ----- early marks -----

/// P4's own wire of 56 kbit/s holds less than two segments: three duplicates rarely come.
#[test]
fn a_window_of_few_segments_needs_fewer_timeouts_with_early_marks() {
    for way in [FIXED_TO_MOBILE, MOBILE_TO_FIXED, MOBILE_TO_MOBILE] {
        let total = |recipe: &str| {
            let results: Vec<_> = (1..=3)
                .map(|seed| run(&extended(way.preset, ""), recipe, way.flow(), seed, 300).result(0))
                .collect();
            let timeouts: u64 = results.iter().map(|result| result.counters.timeouts).sum();
            (results.iter().map(|result| result.delivered).sum::<u64>(), timeouts)
        };
        let (late, early) = (total("etcp"), total("etcp+early-marks"));
        println!("{:<18} etcp {late:?}, early {early:?} (octets, timeouts)", way.preset);
        assert!(early.0 > late.0 && early.1 < late.1, "{late:?} {early:?}");
    }
}

/// The danger that the file speaks of: a radio that repeats damaged packets itself and lets others overtake.
#[test]
fn over_a_radio_that_reorders_early_marks_send_again_what_only_comes_late() {
    let scenario = r#"
schema = 1
[[stage]]
kind = "link"
both = { rate = "1Mbit", delay = "30ms", queue = { packets = 50 } }
[[stage]]
kind = "station"
transit_marks = true
[[stage]]
kind = "arq"
down = { per = "5%", retries = 10, rate = "2Mbit", delay = "3ms" }
up = { per = "0%", retries = 10, rate = "2Mbit", delay = "3ms" }
"#;
    let mut total = [(0, 0); 2];
    for (recipe, total) in ["etcp", "etcp+early-marks"].into_iter().zip(&mut total) {
        for seed in 1..=3 {
            let world = run(scenario, recipe, down(), seed, 60);
            let radio_lost = world.losses(0).count(Cause::Radio);
            assert_eq!(radio_lost, 0, "it only reorders");
            let result = world.result(0);
            total.0 += result.counters.put_down_to_radio;
            total.1 += result.delivered;
        }
    }
    let [late, early] = total;
    println!("mistakes and octets: etcp {late:?}, early {early:?}");
    assert!(early.0 > 10 * late.0.max(1), "{late:?} {early:?}");
    // Each costs a segment, not a window.
    assert!(early.1 as f64 > 0.9 * late.1 as f64, "{late:?} {early:?}");
}

// ----- judges by round-trip time -----

const JUDGES: [&str; 4] = ["vegas", "ntg", "ndg", "ncpld"];

/// What the four say about one path, over three seeds, while they only watch.
fn matrices(name: &str, scenario: &str, flow: &Flow) -> [Confusion; 4] {
    matrices_of(name, scenario, flow, 200)
}

/// The same, of senders that run for this many seconds.
fn matrices_of(name: &str, scenario: &str, flow: &Flow, seconds: u64) -> [Confusion; 4] {
    let mut all = [Confusion::default(); 4];
    for seed in 1..=3 {
        let mut world = run(scenario, "newreno+judges", flow.clone(), seed, seconds);
        for (judge, confusion) in JUDGES.iter().zip(&mut all) {
            *confusion += world.confusion(0, judge);
        }
    }
    for (judge, confusion) in JUDGES.iter().zip(&all) {
        println!("{name:<26} {judge:<6} {confusion}");
    }
    all
}

fn congestion_accuracy(confusion: &Confusion) -> f64 {
    confusion.congestion_accuracy().expect("queues have dropped something")
}

/// Right in either truth, on average. A coin has 0.5.
fn balanced(confusion: &Confusion) -> f64 {
    let wireless = confusion.radio_accuracy().expect("the radio has lost something");
    (congestion_accuracy(confusion) + wireless) / 2.0
}

/// P1's last hop, with wires that hold the whole window: nothing waits anywhere.
fn clear_last_hop() -> String {
    let fast = "[[stage]]\nname = \"wire\"\nboth.rate = \"10Mbit\"\n[[stage]]\nname = \"radio\"\nboth.rate = \"10Mbit\"\n";
    extended("rtt-last-hop", fast)
}

/// P1 Fig. 12: "the RTT will not increase considerably with only wireless loss existing".
#[test]
fn on_a_last_hop_without_congestion_vegas_puts_everything_down_to_the_radio() {
    let narrow = Flow { receive_buffer: Some(12_000), ..down() };
    let [vegas, ntg, ndg, ncpld] = matrices("last hop, no queue", &clear_last_hop(), &narrow);
    assert!(
        vegas.of(Truth::Lost(Cause::Radio)) > 300 && vegas.of(Truth::Lost(Cause::Congestion)) == 0,
        "{vegas}"
    );
    assert!(vegas.radio_accuracy() > Some(0.98), "{vegas}");
    // The others have no room for noise: a packet more or less before the own one decides.
    assert!(ntg.radio_accuracy() > Some(0.6), "{ntg}");
    assert!(ndg.radio_accuracy() > Some(0.3), "{ndg}");
    assert!(ncpld.radio_accuracy() > Some(0.3), "{ncpld}");
}

/// A sender that fills a long drop-tail queue alone.
#[test]
fn three_of_four_see_a_long_queue_overflow() {
    let scenario = r#"
schema = 1
[[stage]]
kind = "link"
both = { rate = "500kbit", delay = "30ms", queue = { packets = 19 } }
[[stage]]
kind = "link"
both = { rate = "2Mbit", delay = "10ms" }
"#;
    let [vegas, ntg, ndg, ncpld] = matrices_of("long queue", scenario, &down(), 500);
    assert!(vegas.of(Truth::Lost(Cause::Congestion)) > 100, "{vegas}");
    assert!(congestion_accuracy(&vegas) > 0.95, "{vegas}");
    assert!(congestion_accuracy(&ntg) > 0.95, "{ntg}");
    assert!(congestion_accuracy(&ncpld) > 0.75, "{ncpld}");
    // A queue that is full delays no more than before, however the window grows.
    assert!(congestion_accuracy(&ndg) < 0.7, "{ndg}");
}

/// P1 §4.2.2, Figs 13, 17, 18, 19: "a small queue length will not result in considerable increase in RTT", and
/// over a narrow backbone it rises, falls and stays the same during congestion.
#[test]
fn a_long_queue_shows_a_short_one_does_not_and_a_narrow_backbone_confuses() {
    let of = |preset| matrices(preset, &extended(preset, ""), &down());
    let last_hop = of("rtt-last-hop-congestion");
    let long = of("rtt-broad-backbone-long");
    let short = of("rtt-broad-backbone-short");
    let narrow = of("rtt-narrow-backbone");
    assert!(congestion_accuracy(&last_hop[0]) > 0.75, "{}", last_hop[0]);
    assert!(congestion_accuracy(&long[0]) > 0.6, "{}", long[0]);
    assert!(congestion_accuracy(&short[0]) < 0.2, "{}", short[0]);
    for i in 0..4 {
        let judge = JUDGES[i];
        assert!(
            congestion_accuracy(&short[i]) < congestion_accuracy(&long[i]),
            "{judge} {} {}",
            long[i],
            short[i]
        );
        // Nobody can be relied on.
        assert!(
            balanced(&short[i]) < 0.7 && balanced(&narrow[i]) < 0.75,
            "{judge} {} {}",
            short[i],
            narrow[i]
        );
    }
}

#[test]
fn judges_that_watch_change_nothing() {
    for repair in REPAIRS {
        let play = |recipe: &str| {
            let mut world = run(&extended("rtt-last-hop-congestion", ""), recipe, down(), 1, 60);
            let decisions =
                world.decisions(0).iter().filter(|d| !matches!(d.what, What::Judged { .. })).cloned();
            (decisions.collect::<Vec<_>>(), world.result(0))
        };
        assert!(play(repair) == play(&format!("{repair}+judges")), "{repair}");
    }
}

#[test]
fn every_loss_and_every_timeout_is_judged_by_all_four() {
    let mut world = run(&extended("rtt-last-hop-congestion", ""), "newreno+judges", down(), 1, 100);
    let decisions = world.decisions(0).to_vec();
    let asked = |d: &&Decision| matches!(d.what, What::Cause { .. } | What::Timeout { .. });
    let times: Vec<_> = decisions.iter().filter(asked).map(|d| d.at).collect();
    assert!(times.len() > 20 && decisions.iter().any(|d| matches!(d.what, What::Timeout { .. })));
    for judge in JUDGES {
        let judged = decisions.iter().filter(|d| d.by == judge && matches!(d.what, What::Judged { .. }));
        assert_eq!(judged.map(|d| d.at).collect::<Vec<_>>(), times, "{judge}");
        assert_eq!(world.confusion(0, judge).total(), times.len() as u64, "{judge}");
    }
}

#[test]
fn in_charge_vegas_wins_where_it_is_right_and_pushes_where_it_is_wrong() {
    let total = |scenario: &str, recipe: &str| {
        let worlds = (1..=size(2, 3)).map(|seed| run(scenario, recipe, down(), seed, 100));
        worlds.fold((0, 0), |(octets, drops), world| {
            (octets + world.result(0).delivered, drops + world.losses(0).count(Cause::Congestion))
        })
    };
    let (plain, vegas) = (total(&clear_last_hop(), "newreno"), total(&clear_last_hop(), "newreno+vegas"));
    println!("last hop: newreno {plain:?}, newreno+vegas {vegas:?} (octets, congestion drops)");
    assert!(vegas.0 as f64 > 1.5 * plain.0 as f64);
    // It takes the overflow of a short queue for the radio, and goes on at the same speed.
    let short = extended("rtt-broad-backbone-short", "");
    let (plain, vegas) = (total(&short, "newreno"), total(&short, "newreno+vegas"));
    println!("short queues: newreno {plain:?}, newreno+vegas {vegas:?}");
    assert!(vegas.1 > plain.1);
}
