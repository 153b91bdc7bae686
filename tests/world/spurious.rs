//! Spurious retransmissions end to end: delay spikes and reordering in virtual time, with a receiver that
//! behaves like a common kernel.

use airlink::scenario::Scenario;
use airtcp::profile::SackOffer;
use airtcp::recovery::{Decision, What};
use airtcp_sim::world::{Flow, FlowResult, HostSpec, Length, Watch, World, WorldConfig};
use airtcp_testkit::sample::size;
use airwire::time::Duration;

const LIMIT: Duration = Duration::from_secs(3600);

fn link(more: &str) -> String {
    format!(
        "schema = 1\n[[stage]]\nkind = \"link\"\nname = \"wire\"\nboth = {{ rate = \"2Mbit\", delay = \"50ms\" }}\n{more}"
    )
}

/// Returns a path that stalls for two seconds in every ten, without loss.
fn spikes() -> String {
    link(
        "[[stage]]\nkind = \"outage\"\ndown = { at = [\"3s\"], lasts = \"2s\", every = \"10s\", packets = \"requeued\" }\n",
    )
}

fn lossy() -> String {
    link("[[stage]]\nkind = \"loss\"\ndown = { model = \"uniform\", per = \"1%\", affects = \"data\" }\n")
}

struct Run {
    result: FlowResult,
    decisions: Vec<Decision>,
    sequence: String,
}

impl Run {
    fn took(&self) -> f64 {
        self.result.took().expect("the transfer is complete").as_secs_f64()
    }
}

/// Runs a transfer with a window of at most 64 kB, so that the queue of the link causes no spikes.
fn run(scenario: &str, recipe: &str, bytes: u64, seed: u64, receiver: &HostSpec) -> Run {
    let receive_buffer = Some(65_536);
    run_flow(scenario, recipe, seed, receiver, Flow { receive_buffer, ..Flow::down(Length::Octets(bytes)) })
}

fn run_flow(scenario: &str, recipe: &str, seed: u64, receiver: &HostSpec, flow: Flow) -> Run {
    let Length::Octets(bytes) = flow.length else { panic!("the flow needs a length") };
    let config = WorldConfig {
        scenario: Scenario::parse(scenario, "test").unwrap(),
        seed,
        fixed: HostSpec::sender(recipe.parse().unwrap()),
        mobile: receiver.clone(),
        flows: vec![Flow { watch: Watch::Packets, ..flow }],
    };
    let mut world = World::new(config).unwrap();
    let complete = world.run_to_end(LIMIT).unwrap_or_else(|error| panic!("{recipe}: {error}"));
    let sequence = world.time_sequence(0);
    assert!(complete, "{recipe}, seed {seed}:\n{sequence}");
    let result = world.result(0);
    assert_eq!((result.delivered, result.ended.is_none()), (bytes, true), "{recipe}, seed {seed}");
    Run { result, decisions: world.decisions(0).to_vec(), sequence }
}

fn run_with_default_receiver(scenario: &str, recipe: &str, bytes: u64, seed: u64) -> Run {
    run(scenario, recipe, bytes, seed, &HostSpec::receiver())
}

/// Sums over the runs of a recipe.
#[derive(Default, Debug)]
struct Sum {
    took: f64,
    timeouts: u64,
    fast_retransmits: u64,
    mistakes: u64,
    undone: u64,
    resent: u64,
    dsacks: u64,
}

fn sum(scenario: &str, recipe: &str, bytes: u64, seeds: std::ops::RangeInclusive<u64>) -> Sum {
    seeds.fold(Sum::default(), |mut sum, seed| {
        let run = run_with_default_receiver(scenario, recipe, bytes, seed);
        let counters = &run.result.counters;
        sum.took += run.took();
        sum.timeouts += counters.timeouts;
        sum.fast_retransmits += counters.fast_retransmits;
        sum.mistakes += counters.spurious_timeouts + counters.spurious_fast_retransmits;
        sum.undone += counters.undone;
        sum.resent += counters.resent();
        sum.dsacks += counters.dsacks;
        sum
    })
}

#[test]
fn delay_spike_timeout_is_detected_and_undone() {
    for repair in ["newreno", "sack"] {
        let of = |more: &str| sum(&spikes(), &format!("{repair}{more}"), 6_000_000, 1..=1);
        let plain = of("");
        assert_eq!((plain.timeouts, plain.mistakes, plain.undone), (3, 3, 0), "{repair}: {plain:?}");
        assert!(plain.resent > 30 * plain.timeouts, "go-back-N retransmits the whole window: {plain:?}");
        for answer in ["+eifel", "+frto", "+frto+eifel"] {
            let run = of(answer);
            assert_eq!((run.timeouts, run.undone, run.resent), (3, 3, 3), "{repair}{answer}: {run:?}");
            // Nothing is retransmitted unnecessarily and the window is full, so the three spikes cost only
            // their six seconds.
            assert!(run.took < plain.took - 0.5, "{repair}{answer}: {run:?} against {plain:?}");
        }
        // With `dsack`, reductions are undone only after every retransmission was reported as a duplicate.
        let run = of("+dsack");
        assert_eq!((run.timeouts, run.undone), (3, 3), "{repair}: {run:?}");
        assert_eq!(run.dsacks, run.resent, "{repair}");
        assert!(run.took <= plain.took + 0.1, "{repair}: {run:?} against {plain:?}");
    }
}

#[test]
fn coverage_hole_timeout_is_not_undone() {
    let hole = spikes().replace("requeued", "dropped");
    for repair in ["newreno", "sack"] {
        let plain = sum(&hole, repair, 4_000_000, 1..=1);
        assert!(plain.timeouts >= 2 && plain.mistakes == 0, "{plain:?}");
        for answer in ["+eifel", "+frto", "+dsack", "+frto+eifel"] {
            let run = sum(&hole, &format!("{repair}{answer}"), 4_000_000, 1..=1);
            assert_eq!(run.undone, 0, "{repair}{answer}: {run:?}");
            assert!(
                (run.took - plain.took).abs() < 0.05 * plain.took,
                "{repair}{answer}: {run:?}, {plain:?}"
            );
        }
    }
}

/// Slow start overflows a queue, and NewReno's repair of one hole per round trip takes longer than its timer.
#[test]
fn timeout_during_recovery_is_not_undone() {
    let narrow = link("").replace("delay = \"50ms\"", "delay = \"50ms\", queue = { packets = 40 }");
    let of = |recipe: &str| {
        let flow = Flow::down(Length::Octets(2_000_000));
        let run = run_flow(&narrow, recipe, 1, &HostSpec::receiver(), flow);
        (run.took(), run.result.counters.clone())
    };
    let plain = of("newreno");
    assert!(plain.1.timeouts > 0 && plain.1.spurious_timeouts > 0, "{plain:?}");
    assert_eq!(of("newreno+eifel"), plain);
}

/// P2 Fig. 7: BLER 10 %, TSP 500 ms, MaxDAT 10.
#[test]
fn undoing_timeouts_gains_time_on_jittery_wcdma() {
    let source = Scenario::source("wcdma-384-tsp").unwrap();
    let jittery = source.replace("= \"100ms\"", "= \"500ms\"").replace("max_dat = 40", "max_dat = 10");
    assert_ne!(jittery, source);
    let of = |recipe: &str| sum(&jittery, recipe, 500_000, 1..=8);
    let plain = of("newreno+timer-linux24");
    assert!(plain.mistakes >= 1 && plain.mistakes == plain.timeouts, "{plain:?}");
    for answer in ["eifel", "frto", "dsack"] {
        let run = of(&format!("newreno+timer-linux24+{answer}"));
        assert!(run.undone >= 1 && run.took < plain.took, "{answer}: {run:?} against {plain:?}");
    }
}

/// P3 Fig. 2c: 5 % of the packets are reordered, and almost none is lost.
#[test]
fn reordering_robust_senders_avoid_slowdown() {
    let llrtx = Scenario::source("tax-rebate-llrtx").unwrap();
    for repair in ["newreno", "sack"] {
        let seeds = size(1, 3);
        let of = |more: &str| sum(&llrtx, &format!("{repair}{more}"), 3_000_000, 1..=seeds);
        let plain = of("");
        assert!(plain.mistakes > 17 * seeds, "{plain:?}");
        for answer in ["+rr", "+blanton-allman", "+blanton-allman+ba-average", "+blanton-allman+ba-ewma"] {
            let run = of(answer);
            assert!(2 * run.mistakes < plain.mistakes, "{repair}{answer}: {run:?} against {plain:?}");
            assert!(run.took < 0.8 * plain.took, "{repair}{answer}: {run:?} against {plain:?}");
        }
        let run = of("+dcr");
        assert_eq!(run.mistakes, 0, "{repair}: the link layer takes less than a round trip");
        assert!(run.took < 0.6 * plain.took, "{repair}: {run:?} against {plain:?}");
        // Senders that still retransmit spuriously can undo the reduction.
        for answer in ["+eifel", "+dsack", "+rr+dsack", "+blanton-allman+dsack"] {
            let run = of(answer);
            assert!(run.undone > 0 && run.took < plain.took, "{repair}{answer}: {run:?} against {plain:?}");
        }
    }
}

#[test]
fn real_loss_repair_is_not_slowed_or_undone() {
    for repair in ["newreno", "sack"] {
        let seeds = size(2, 4);
        let plain = sum(&lossy(), repair, 1_000_000, 1..=seeds);
        assert!(plain.fast_retransmits > 5 * seeds && plain.mistakes == 0, "{plain:?}");
        let answers = ["eifel", "dsack", "frto", "rr", "blanton-allman", "dcr", "rr+dsack", "dcr+eifel+frto"];
        for answer in answers {
            let run = sum(&lossy(), &format!("{repair}+{answer}"), 1_000_000, 1..=seeds);
            assert_eq!((run.mistakes, run.undone), (0, 0), "{repair}+{answer}: {run:?}");
            // `dcr` takes one more round trip for every loss.
            assert!(run.took < 1.15 * plain.took, "{repair}+{answer}: {run:?} against {plain:?}");
        }
    }
}

/// The last three segments are lost. F-RTO has no new data to send, so it cannot decide.
#[test]
fn frto_does_not_delay_tail_loss_repair() {
    let tail = link(
        "[[stage]]\nkind = \"loss\"\ndown = { model = \"list\", drop = [\"segment 18\", \"segment 19\", \"segment 20\"] }\n",
    );
    for repair in ["newreno", "sack"] {
        let of = |recipe: &str| {
            let run = run_with_default_receiver(&tail, recipe, 20 * 1448, 1);
            (run.took(), run.result.counters.timeouts, run.result.counters.resent())
        };
        assert_eq!(of(&format!("{repair}+frto")), of(repair));
        assert_eq!(of(repair).1, 1);
    }
}

#[test]
fn algorithms_fall_back_without_required_options() {
    let ordinary = HostSpec::receiver();
    let no_timestamps = HostSpec {
        profile: ordinary.profile.clone().with(|it| it.handshake.timestamps = false),
        ..ordinary.clone()
    };
    let no_sack = HostSpec {
        profile: ordinary.profile.clone().with(|it| it.handshake.sack = SackOffer::Never),
        ..ordinary
    };
    let cases = [
        ("newreno+eifel", "newreno", &no_timestamps, 1),
        ("sack+eifel", "sack", &no_timestamps, 1),
        ("newreno+dsack", "newreno", &no_sack, 1),
        ("newreno+rr", "newreno", &no_sack, 1),
        ("reno+blanton-allman+dsack", "reno", &no_sack, 2),
    ];
    let rough =
        format!("{}[[stage]]\nkind = \"loss\"\ndown = {{ model = \"uniform\", per = \"1%\" }}\n", spikes());
    for (recipe, without, receiver, fallbacks) in cases {
        let with = run(&rough, recipe, 1_500_000, 1, receiver);
        let plain = run(&rough, without, 1_500_000, 1, receiver);
        let is_fallback = |decision: &&Decision| matches!(decision.what, What::Fallback { .. });
        assert_eq!(with.decisions.iter().filter(is_fallback).count(), fallbacks, "{recipe}");
        let others: Vec<_> = with.decisions.iter().filter(|decision| !is_fallback(decision)).collect();
        assert!(plain.result.counters.timeouts > 0 && plain.result.counters.fast_retransmits > 0);
        assert!(others.into_iter().eq(&plain.decisions), "{recipe}:\n{}", with.sequence);
    }
}
