//! A run in virtual time: its input [`Run`] and its result [`Report`].
//!
//! `airtcp sim`, sweeps and the reproductions of the papers' figures execute such runs. A run
//! depends on its [`Run`] alone, so equal inputs give bit-identical reports.

mod json;

use std::ops::ControlFlow;

use airlink::packet::Direction;
use airlink::scenario::Scenario;
use airlink::stage::DropReason;
use airtcp::recovery::Counters;
use airtcp::recovery::confusion::Confusion;
use airtcp::recovery::inputs::merged;
use airwire::Cause;
use airwire::time::{Duration, Instant};
pub use json::RunFileError;
use serde::{Deserialize, Serialize};

use super::inputs;
use super::world::{Flow, HostSpec, Watch, World, WorldConfig, WorldError, judges};

/// The complete input of a run. [`Run::to_json`] writes it to a file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The path between the two sides.
    #[serde(with = "json::scenario")]
    pub scenario: Scenario,
    /// Seed of all random choices: the path's losses and the hosts' random numbers.
    pub seed: u64,
    /// The hosts on the fixed side, which send the flows down and receive the flows up.
    pub fixed: HostSpec,
    /// The hosts on the mobile side, which send the flows up and receive the flows down.
    pub mobile: HostSpec,
    /// The flows. The report has the same order.
    pub flows: Vec<Flow>,
    /// The end of the run.
    pub until: Until,
    /// Start of the goodput measurement, so that an initial phase can be excluded.
    pub from: Instant,
    /// Whether to keep and score the verdicts of all judges, which costs time and memory.
    pub score: bool,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// The run ends when all finite flows are complete and closed, but at the latest after this time.
    Complete(Duration),
    /// The run ends at this time.
    At(Instant),
}

/// The numbers of a run. Sweeps store them as JSON, from which metrics are read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Virtual time from zero to the end of the run, in seconds.
    pub seconds: f64,
    /// Whether all finite flows are complete.
    pub complete: bool,
    /// Results of the flows, in the order of [`Run::flows`].
    pub flows: Vec<FlowReport>,
    /// Jain's fairness index of the flows' goodput (Jain, Chiu, Hawe 1984), from [`jain`].
    pub jain: f64,
    /// Packets of the hosts that were dropped by queues, in both directions.
    pub dropped_by_queues: u64,
    /// Packets of the hosts that were lost on the radio link, in both directions.
    pub dropped_by_radio: u64,
    /// The stages' own counters, by the stage's name.
    pub stages: serde_json::Value,
}

/// The numbers of one flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowReport {
    /// The sender's recipe as the user typed it.
    pub recipe: String,
    /// Name of the sender's profile.
    pub profile: &'static str,
    /// Direction of the data.
    pub direction: Direction,
    /// Bytes read by the receiving application since the start.
    pub delivered: u64,
    /// The part of `delivered` that was read since [`Run::from`].
    pub measured: u64,
    /// Goodput: `measured` divided by the time from [`Run::from`], or from the flow's start if that
    /// is later, to its completion or the end of the run. Zero if this time is zero.
    pub goodput_bit_per_s: f64,
    /// Bytes acknowledged to the sender.
    pub acked: u64,
    /// Time from the first SYN to the last byte. `None` if the flow is endless or not complete.
    pub took_seconds: Option<f64>,
    /// The reason why an end gave the connection up. `None` if neither end did, or if the flow was
    /// complete before.
    pub ended: Option<String>,
    /// Data segments that the sender sent, including retransmissions.
    pub data_segments: u64,
    /// Counters of the sender's loss recovery.
    pub counters: Counters,
    /// A sentence for each part of the recipe whose information did not arrive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Judges with at least one verdict on a loss whose true cause is known. Empty unless
    /// [`Run::score`] is set.
    pub judges: Vec<Judge>,
}

/// The verdicts of one judge compared with the ground truth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judge {
    /// Name of the judge in recipes.
    pub name: &'static str,
    /// Counts of the verdicts by true cause.
    pub confusion: Confusion,
}

impl Report {
    /// Returns the notices of all flows, each with its recipe.
    pub fn notices(&self) -> Vec<String> {
        let mut recipes: Vec<&str> = Vec::new();
        for flow in &self.flows {
            if !recipes.contains(&flow.recipe.as_str()) {
                recipes.push(&flow.recipe);
            }
        }
        let of = |recipe: &str| {
            let flows = self.flows.iter().filter(|flow| flow.recipe == recipe);
            let notices = merged(flows.map(|flow| flow.notices.as_slice()), "flows");
            notices.into_iter().map(|notice| format!("{recipe}: {notice}")).collect::<Vec<_>>()
        };
        recipes.into_iter().flat_map(of).collect()
    }
}

/// Executes a run to its end.
pub fn run(run: &Run) -> Result<Report, WorldError> {
    run_watched(run, |_| {}).map(|(report, _)| report)
}

/// Like [`run()`], but calls `on_step` after every step, and also returns the final world.
pub fn run_watched(run: &Run, on_step: impl FnMut(&World)) -> Result<(Report, World), WorldError> {
    run_prepared(run, |_| {}, on_step)
}

/// Like [`run_watched`], but calls `prepare` on the world before the first step.
pub fn run_prepared(
    run: &Run,
    prepare: impl FnOnce(&mut World),
    mut on_step: impl FnMut(&World),
) -> Result<(Report, World), WorldError> {
    run_stoppable(run, prepare, |world| {
        on_step(world);
        ControlFlow::Continue(())
    })
}

/// Like [`run_prepared`], but the run ends when `on_step` returns `Break`.
pub fn run_stoppable(
    run: &Run,
    prepare: impl FnOnce(&mut World),
    mut on_step: impl FnMut(&World) -> ControlFlow<()>,
) -> Result<(Report, World), WorldError> {
    let mut flows = run.flows.clone();
    if run.score {
        for flow in &mut flows {
            flow.watch = flow.watch.max(Watch::Decisions);
        }
    }
    let mut world = World::new(WorldConfig {
        scenario: run.scenario.clone(),
        seed: run.seed,
        fixed: run.fixed.clone(),
        mobile: run.mobile.clone(),
        flows,
    })?;
    prepare(&mut world);
    let mut flow = ControlFlow::Continue(());
    let mut advance = |world: &mut World, until: Instant, at_completion: bool| {
        while flow.is_continue() && !(at_completion && world.is_closed()) && world.step_until(until)? {
            flow = on_step(world);
        }
        Ok::<_, WorldError>(())
    };
    let (end, at_completion) = match run.until {
        Until::Complete(limit) => (Instant::ZERO + limit, true),
        Until::At(at) => (at, false),
    };
    advance(&mut world, run.from.min(end), at_completion)?;
    let before: Vec<u64> = world.results().iter().map(|result| result.delivered).collect();
    advance(&mut world, end, at_completion)?;
    let end = if at_completion || flow.is_break() { world.now() } else { end };
    let report = report(run, &mut world, &before, end);
    Ok((report, world))
}

fn report(run: &Run, world: &mut World, before: &[u64], end: Instant) -> Report {
    let flows: Vec<_> =
        (0..world.flows()).map(|flow| flow_report(run, world, flow, before[flow], end)).collect();
    let goodputs: Vec<_> = flows.iter().map(|flow| flow.goodput_bit_per_s).collect();
    let complete = world.is_complete();
    let path = world.path();
    let totals = path.totals();
    let dropped = |cause| {
        let because = DropReason::ALL.into_iter().filter(|why| why.cause() == Some(cause));
        because.map(|why| totals.down.dropped_for(why) + totals.up.dropped_for(why)).sum()
    };
    Report {
        seconds: end.as_secs_f64(),
        complete,
        jain: jain(&goodputs),
        dropped_by_queues: dropped(Cause::Congestion),
        dropped_by_radio: dropped(Cause::Radio),
        stages: path.stats(),
        flows,
    }
}

fn flow_report(run: &Run, world: &mut World, flow: usize, before: u64, end: Instant) -> FlowReport {
    let result = world.result(flow);
    let spec = &run.flows[flow];
    let judges = if run.score { judges(world.decisions(flow)) } else { Vec::new() };
    let judges = judges
        .into_iter()
        .map(|name| Judge { name, confusion: world.confusion(flow, name) })
        .filter(|judge| judge.confusion.total() > 0)
        .collect();
    let from = run.from.max(spec.start);
    let until = result.completed.unwrap_or(end);
    let seconds = until.saturating_since(from).as_secs_f64();
    let measured = result.delivered - before;
    let side = match spec.direction {
        Direction::Down => &run.fixed,
        Direction::Up => &run.mobile,
    };
    let recipe = spec.recipe.as_ref().unwrap_or(&side.recipe);
    FlowReport {
        recipe: recipe.to_string(),
        profile: spec.profile.as_ref().unwrap_or(&side.profile).name,
        direction: spec.direction,
        delivered: result.delivered,
        measured,
        goodput_bit_per_s: if seconds > 0.0 { measured as f64 * 8.0 / seconds } else { 0.0 },
        acked: result.statistics.bytes_acked,
        took_seconds: result.took().map(|took| took.as_secs_f64()),
        ended: result.ended.map(|why| why.to_string()).filter(|_| result.completed.is_none()),
        data_segments: result.statistics.data_segments_out,
        counters: result.counters,
        notices: inputs::observed(&run.scenario, spec.direction, result.inputs, recipe),
        judges,
    }
}

/// Returns Jain's fairness index, (Σx)² / nΣx²: 1 if all shares are equal (also if all are zero),
/// and 1/n if one flow has everything.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use airwire::time::Duration;

    use super::*;
    use crate::world::Length;

    const PATH: &str = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"1Mbit\", delay = \"20ms\", queue = { packets = 20 } }\n\
                        [[stage]]\nkind = \"loss\"\ndown = { model = \"uniform\", per = \"2%\" }\n";

    fn plan(flows: Vec<Flow>, until: Until) -> Run {
        Run {
            scenario: Scenario::parse(PATH, "test").unwrap(),
            seed: 7,
            fixed: HostSpec::sender("newreno+judges".parse().unwrap()),
            mobile: HostSpec::receiver(),
            flows,
            until,
            from: Instant::ZERO,
            score: true,
        }
    }

    #[test]
    fn identical_runs_give_identical_reports() {
        let plan = plan(vec![Flow::down(Length::Octets(300_000))], Until::Complete(Duration::from_secs(600)));
        let [first, second] = [run(&plan).unwrap(), run(&plan).unwrap()];
        assert_eq!(first, second);
        assert!(first.complete && first.flows[0].took_seconds.is_some());
        assert_eq!(first.flows[0].delivered, 300_000);
        assert!(first.dropped_by_radio > 0);
        let judges: Vec<_> = first.flows[0].judges.iter().map(|judge| judge.name).collect();
        assert!(judges.contains(&"vegas") && judges.contains(&"ncpld"), "{judges:?}");
    }

    #[test]
    fn data_before_measurement_is_not_counted() {
        let mut plan = plan(vec![Flow::down(Length::Endless); 2], Until::At(Instant::from_secs(60)));
        let whole = run(&plan).unwrap();
        plan.from = Instant::from_secs(30);
        let half = run(&plan).unwrap();
        for (whole, half) in whole.flows.iter().zip(&half.flows) {
            assert_eq!(whole.delivered, half.delivered, "the measured period does not change the run");
            assert!(half.measured < whole.measured);
        }
        assert_eq!(half.seconds, 60.0);
        assert!(half.jain > 0.5 && half.jain <= 1.0);
    }

    #[test]
    fn aborted_run_reports_numbers_up_to_abort() {
        let plan = plan(vec![Flow::down(Length::Endless)], Until::At(Instant::from_secs(60)));
        let stop = |world: &World| match world.now() >= Instant::from_secs(20) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let (report, mut world) = run_stoppable(&plan, |_| {}, stop).unwrap();
        assert!((20.0..21.0).contains(&report.seconds), "{}", report.seconds);
        let goodput = report.flows[0].measured as f64 * 8.0 / report.seconds;
        assert!((report.flows[0].goodput_bit_per_s - goodput).abs() < 1e-6 * goodput);
        assert!(!world.decisions(0).is_empty());
    }

    #[test]
    fn report_says_which_information_did_not_arrive() {
        let until = Until::Complete(Duration::from_secs(600));
        let notices_from = |receiver: &str, recipes: &[&str], stages: &str| {
            let flow = |recipe: &&str| Flow {
                recipe: Some(recipe.parse().unwrap()),
                ..Flow::down(Length::Octets(20_000))
            };
            let mut plan = plan(recipes.iter().map(flow).collect(), until);
            plan.scenario = Scenario::parse(&format!("{PATH}{stages}"), "test").unwrap();
            plan.mobile.profile =
                receiver.parse::<airtcp::recovery::Recipe>().unwrap().tune(&plan.mobile.profile);
            run(&plan).unwrap().notices()
        };
        let notices = |recipes: &[&str], station: &str| notices_from("newreno", recipes, station);
        let station = "[[stage]]\nkind = \"station\"\ntransit_marks = true\n";
        let missing = "etcp: transit-marks: 0 transit marks received; it works like `always-congestion`";
        assert_eq!(notices(&["etcp", "reno", "etcp"], ""), [missing]);
        assert_eq!(notices(&["etcp", "sack+ecn"], station), ["sack+ecn: ecn: ECN was not negotiated"]);
        // Without congestion, no mark is needed.
        let queue = |ecn: bool| {
            format!(
                "[[stage]]\nkind = \"link\"\nname = \"core\"\nboth = {{ rate = \"1Gbit\", queue = {{ discipline = \"codel\", ecn = {ecn} }} }}\n"
            )
        };
        let ecn = |queue: &str| notices_from("ecn", &["newreno+ecn"], queue);
        assert_eq!(ecn(&queue(true)), [""; 0]);
        let unmarked =
            "newreno+ecn: ecn: 0 ECN marks received: no queue on the way of the data has `ecn = true`";
        assert_eq!(ecn(&queue(false)), [unmarked]);
        // Virtual time has the ground truth, and the receiver accepts SACK and timestamps.
        assert_eq!(notices(&["sack+eifel+oracle"], ""), [""; 0]);
    }

    #[test]
    fn jain_index_is_one_for_equal_shares() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[]), 1.0);
    }
}
