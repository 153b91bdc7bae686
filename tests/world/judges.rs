//! Attribution of losses by base stations and by round-trip times, compared with the ground truth.

use airtcp::recovery::catalogue::Question;
use airtcp::recovery::confusion::{Confusion, Truth};
use airtcp::recovery::{Decision, What};
use airtcp_sim::world::{Flow, FlowResult, Length, World};
use airtcp_testkit::sample::{sample, size};
use airwire::Cause;

use crate::etcp::{EtcpPath, FIXED_TO_MOBILE, extended, run};

const REPAIRS: [&str; 4] = ["tahoe", "reno", "newreno", "sack"];

/// Returns this many combinations of direction and recipe. In `make nightly`, returns all combinations.
fn paths_and_repairs(draw: &str, count: usize) -> Vec<(&'static EtcpPath, &'static str)> {
    sample(draw, EtcpPath::ALL.into_iter().flat_map(|path| REPAIRS.map(|repair| (path, repair))), count)
}

fn run_path(path: &EtcpPath, per: &str, recipe: &str, seed: u64, seconds: u64) -> World {
    run(&path.scenario(per), recipe, path.flow(), seed, seconds)
}

fn down() -> Flow {
    Flow::down(Length::Endless)
}

/// Returns the bytes delivered, summed over several seeds.
fn delivered(seeds: u64, run: impl Fn(u64) -> World) -> u64 {
    (1..=seeds).map(|seed| run(seed).result(0).delivered).sum()
}

/// Returns the result and the decisions, with all attributions renamed to `always-congestion` so that they
/// can be compared.
fn as_if_always_congestion(world: &mut World) -> (FlowResult, Vec<Decision>) {
    let mut decisions = world.decisions(0).to_vec();
    for decision in decisions.iter_mut().filter(|decision| decision.question == Question::Attribute) {
        decision.by = "always-congestion";
        decision.why = "every loss is treated as congestion";
    }
    (world.result(0), decisions)
}

// Transit marks

#[test]
fn stations_distinguish_radio_loss_from_queue_drop() {
    for (path, repair) in paths_and_repairs("stations", 6) {
        let recipe = format!("{repair}+transit-marks");
        let mut confusion = Confusion::default();
        let seeds = size(1, 3);
        for seed in 1..=seeds {
            let mut world = run_path(path, "1%", &recipe, seed, 120);
            confusion += world.confusion(0, "transit-marks");
            check_reductions(&mut world, &format!("{} {recipe}, seed {seed}", path.preset));
        }
        println!("{:<18} {recipe:<22} {confusion}", path.preset);
        let lost = [Cause::Radio, Cause::Congestion].map(|cause| confusion.of(Truth::Lost(cause)));
        assert!(lost[0] > 33 * seeds && lost[1] > seeds, "{confusion}");
        assert_eq!(
            confusion.count(Cause::Radio, Truth::Lost(Cause::Congestion)),
            0,
            "{} {recipe}",
            path.preset
        );
        // If SACK retransmits two holes at once, the mark for the second one refers to its retransmission.
        let wrong = confusion.count(Cause::Congestion, Truth::Lost(Cause::Radio));
        assert!(wrong == 0 || (repair == "sack" && wrong <= 10), "{} {recipe}: {confusion}", path.preset);
    }
}

/// Checks that a loss on the radio link keeps the window, and that each queue drop reduces it once.
fn check_reductions(world: &mut World, context: &str) {
    let counters = world.result(0).counters;
    let sequence = world.time_sequence(0);
    let decisions = world.decisions(0);
    let cause_of = |it: &Decision| match it.what {
        What::Cause { cause, .. } => Some(cause),
        _ => None,
    };
    let cause = |cause| decisions.iter().filter(|d| cause_of(d) == Some(cause)).count() as u64;
    let first_timeouts = {
        let mut last = None;
        let offsets = decisions.iter().filter_map(|d| match d.what {
            What::Timeout { offset } => Some(offset),
            _ => None,
        });
        offsets.filter(|offset| last.replace(*offset) != Some(*offset)).count() as u64
    };
    let reasons = cause(Cause::Congestion) + first_timeouts;
    assert_eq!(counters.window_reductions, reasons, "{context}\n{sequence}");
    assert!(
        cause(Cause::Radio) >= counters.attributed_to_radio && counters.attributed_to_radio > 20,
        "{context}"
    );
    for (i, decision) in decisions.iter().enumerate() {
        if cause_of(decision) != Some(Cause::Radio) {
            continue;
        }
        let reduced = decisions[i..].iter().take_while(|later| later.at == decision.at).find(|later| {
            matches!(later.what, What::Window { cwnd, ssthresh, was_cwnd, was_ssthresh }
                if later.question == Question::Window && (cwnd < was_cwnd || ssthresh < was_ssthresh))
        });
        assert_eq!(reduced, None, "{context} at {}\n{sequence}", decision.at);
    }
}

/// P4 §IV, Figs. 6 to 8: the gain from the marks increases with the losses on the radio link.
#[test]
fn transit_mark_gain_grows_with_radio_loss() {
    for (path, repair) in paths_and_repairs("worth", 2) {
        let gain = |per| {
            let total = |recipe: &str| delivered(2, |seed| run_path(path, per, recipe, seed, 60)) as f64;
            total(&format!("{repair}+transit-marks")) / total(repair)
        };
        let (one, four) = (gain("1%"), gain("4%"));
        println!("{:<18} {repair:<8} 1 %: x {one:.2}, 4 %: x {four:.2}", path.preset);
        assert!(one > 1.05 && four > 1.5 && four > one, "{} {repair}: {one} {four}", path.preset);
    }
}

#[test]
fn transit_marks_change_nothing_without_radio_loss() {
    for (path, repair) in paths_and_repairs("queues only", 4) {
        let mut plain = run_path(path, "0%", repair, 1, 60);
        let mut marked = run_path(path, "0%", &format!("{repair}+transit-marks"), 1, 60);
        let expected = as_if_always_congestion(&mut plain);
        assert!(expected.0.counters.window_reductions > 0, "{} {repair}", path.preset);
        assert!(as_if_always_congestion(&mut marked) == expected, "{} {repair}", path.preset);
    }
}

#[test]
fn transit_marks_change_nothing_without_station() {
    let scenario = |per: &str| {
        let without = "[[stage]]\nname = \"station\"\nremove = true\n";
        format!("{}{without}", FIXED_TO_MOBILE.scenario(per))
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
fn measuring_station_sets_no_transit_marks() {
    let path = FIXED_TO_MOBILE.scenario("3%").replace(
        "[[stage]]\nname = \"wire\"",
        "[[stage]]\nname = \"station\"\ntransit_marks = false\nloss_report = true\n[[stage]]\nname = \"wire\"",
    );
    let play = |recipe: &str| as_if_always_congestion(&mut run(&path, recipe, down(), 1, 60));
    assert!(play("etcp") == play("reno"));
}

// Early marks

/// P4's wire of 56 kbit/s holds less than two segments, so three duplicate ACKs are rare.
#[test]
fn early_marks_reduce_timeouts_with_small_windows() {
    for path in EtcpPath::ALL {
        let total = |recipe: &str| {
            let results: Vec<_> = (1..=3)
                .map(|seed| run(&extended(path.preset, ""), recipe, path.flow(), seed, 300).result(0))
                .collect();
            let timeouts: u64 = results.iter().map(|result| result.counters.timeouts).sum();
            (results.iter().map(|result| result.delivered).sum::<u64>(), timeouts)
        };
        let (late, early) = (total("etcp"), total("etcp+early-marks"));
        println!("{:<18} etcp {late:?}, early {early:?} (bytes, timeouts)", path.preset);
        assert!(early.0 > late.0 && early.1 < late.1, "{late:?} {early:?}");
    }
}

/// On a radio link that retransmits damaged packets, later packets overtake them. Early marks misread this.
#[test]
fn early_marks_retransmit_spuriously_under_reordering() {
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
            assert_eq!(radio_lost, 0, "the link only reorders");
            let result = world.result(0);
            total.0 += result.counters.attributed_to_radio;
            total.1 += result.delivered;
        }
    }
    let [late, early] = total;
    println!("mistakes and bytes: etcp {late:?}, early {early:?}");
    assert!(early.0 > 10 * late.0.max(1), "{late:?} {early:?}");
    // Each mistake costs one segment, but no window reduction.
    assert!(early.1 as f64 > 0.9 * late.1 as f64, "{late:?} {early:?}");
}

// Judges by round-trip time

const JUDGES: [&str; 4] = ["vegas", "ntg", "ndg", "ncpld"];

/// Returns the attributions of the four judges over one path, summed over three seeds.
fn matrices(name: &str, scenario: &str, flow: &Flow) -> [Confusion; 4] {
    matrices_of(name, scenario, flow, 200)
}

/// Like [`matrices`], with runs of this many seconds.
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
    confusion.congestion_accuracy().expect("at least one queue drop")
}

/// Returns the mean of the accuracies for both causes. Random guessing gives 0.5.
fn balanced(confusion: &Confusion) -> f64 {
    let wireless = confusion.radio_accuracy().expect("at least one loss on the radio link");
    (congestion_accuracy(confusion) + wireless) / 2.0
}

/// Returns P1's last hop with links that hold the whole window, so that no queue builds up.
fn clear_last_hop() -> String {
    let fast = "[[stage]]\nname = \"wire\"\nboth.rate = \"10Mbit\"\n[[stage]]\nname = \"radio\"\nboth.rate = \"10Mbit\"\n";
    extended("rtt-last-hop", fast)
}

/// P1 Fig. 12: "the RTT will not increase considerably with only wireless loss existing".
#[test]
fn vegas_attributes_uncongested_losses_to_radio() {
    let narrow = Flow { receive_buffer: Some(12_000), ..down() };
    let [vegas, ntg, ndg, ncpld] = matrices("last hop, no queue", &clear_last_hop(), &narrow);
    assert!(
        vegas.of(Truth::Lost(Cause::Radio)) > 300 && vegas.of(Truth::Lost(Cause::Congestion)) == 0,
        "{vegas}"
    );
    assert!(vegas.radio_accuracy() > Some(0.98), "{vegas}");
    // The others are sensitive to noise: one packet more or less in the queue ahead changes their verdict.
    assert!(ntg.radio_accuracy() > Some(0.6), "{ntg}");
    assert!(ndg.radio_accuracy() > Some(0.3), "{ndg}");
    assert!(ncpld.radio_accuracy() > Some(0.3), "{ncpld}");
}

/// A single sender fills a long drop-tail queue.
#[test]
fn three_judges_detect_long_queue_overflow() {
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
    // A full queue adds a constant delay, however the window grows.
    assert!(congestion_accuracy(&ndg) < 0.7, "{ndg}");
}

/// P1 §4.2.2, Figs. 13, 17, 18, 19: "a small queue length will not result in considerable increase in RTT".
/// Over a narrow backbone, the RTT rises, falls or stays constant during congestion.
#[test]
fn short_queues_and_narrow_backbones_confuse_judges() {
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
        // No judge is reliable.
        assert!(
            balanced(&short[i]) < 0.7 && balanced(&narrow[i]) < 0.75,
            "{judge} {} {}",
            short[i],
            narrow[i]
        );
    }
}

#[test]
fn passive_judges_do_not_change_sender() {
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
fn every_judge_judges_every_loss_and_timeout() {
    let mut world = run(&extended("rtt-last-hop-congestion", ""), "newreno+judges", down(), 1, 100);
    let decisions = world.decisions(0).to_vec();
    let has_cause = |d: &&Decision| matches!(d.what, What::Cause { .. } | What::Timeout { .. });
    let times: Vec<_> = decisions.iter().filter(has_cause).map(|d| d.at).collect();
    assert!(times.len() > 20 && decisions.iter().any(|d| matches!(d.what, What::Timeout { .. })));
    for judge in JUDGES {
        let judged = decisions.iter().filter(|d| d.by == judge && matches!(d.what, What::Judged { .. }));
        assert_eq!(judged.map(|d| d.at).collect::<Vec<_>>(), times, "{judge}");
        assert_eq!(world.confusion(0, judge).total(), times.len() as u64, "{judge}");
    }
}

#[test]
fn vegas_gains_goodput_but_overflows_short_queues() {
    let total = |scenario: &str, recipe: &str| {
        let worlds = (1..=size(2, 3)).map(|seed| run(scenario, recipe, down(), seed, 100));
        worlds.fold((0, 0), |(bytes, drops), world| {
            (bytes + world.result(0).delivered, drops + world.losses(0).count(Cause::Congestion))
        })
    };
    let (plain, vegas) = (total(&clear_last_hop(), "newreno"), total(&clear_last_hop(), "newreno+vegas"));
    println!("last hop: newreno {plain:?}, newreno+vegas {vegas:?} (bytes, congestion drops)");
    assert!(vegas.0 as f64 > 1.5 * plain.0 as f64);
    // The judge attributes the overflow of a short queue to the radio link, and keeps its rate.
    let short = extended("rtt-broad-backbone-short", "");
    let (plain, vegas) = (total(&short, "newreno"), total(&short, "newreno+vegas"));
    println!("short queues: newreno {plain:?}, newreno+vegas {vegas:?}");
    assert!(vegas.1 > plain.1);
}
