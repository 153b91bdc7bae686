//! One run in virtual time: who sends what to whom over which path, and the numbers that come of it.
//!
//! `airtcp sim`, sweeps and the papers' figures are made of these. A run depends on its [`Run`] alone, so equal runs
//! have equal reports, to the bit.

use std::ops::ControlFlow;

use airlink::packet::Direction;
use airlink::scenario::Scenario;
use airlink::stage::Why;
use airtcp::recovery::Counters;
use airtcp::recovery::confusion::Confusion;
use airwire::Cause;
use airwire::time::{Duration, Instant};
use serde::Serialize;

use super::world::{Flow, HostSpec, Watch, World, WorldConfig, WorldError, judges};

/// Everything that a run depends on.
#[derive(Clone)]
pub struct Run {
    /// The path between the two sides.
    pub scenario: Scenario,
    /// Where all chance comes from: the path's losses and the hosts' own numbers.
    pub seed: u64,
    /// The hosts that send downwards, and receive what comes up.
    pub fixed: HostSpec,
    /// The hosts that send upwards, and receive what comes down.
    pub mobile: HostSpec,
    /// The report has them in this order.
    pub flows: Vec<Flow>,
    /// When the run is over.
    pub until: Until,
    /// Goodput is measured from here on, so that a beginning can be left out.
    pub from: Instant,
    /// Keep every judge's verdicts and score them: costs time and memory.
    pub score: bool,
}

/// When a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// When all flows that have an end are complete and closed, at the latest after this time.
    Complete(Duration),
    /// At this instant, whatever is going on.
    At(Instant),
}

/// The numbers of a run. As JSON they are what a sweep keeps of it, and what metrics read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Virtual time from zero to the end of the run.
    pub seconds: f64,
    /// Every flow that has an end is complete.
    pub complete: bool,
    /// In the order of [`Run::flows`].
    pub flows: Vec<FlowReport>,
    /// Jain's index of the flows' goodput (Jain, Chiu, Hawe 1984), from [`jain`].
    pub jain: f64,
    /// Packets of the hosts that a queue dropped, in both directions.
    pub dropped_by_queues: u64,
    /// Packets of the hosts that the radio lost, in both directions.
    pub dropped_by_radio: u64,
    /// Each stage's own counters, by the stage's name.
    pub stages: serde_json::Value,
}

/// The numbers of one flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowReport {
    /// The sender's, as it was typed.
    pub recipe: String,
    /// The name of the sender's profile.
    pub profile: &'static str,
    /// Which way the data goes.
    pub direction: Direction,
    /// Octets that the receiving application has read since the beginning.
    pub delivered: u64,
    /// Those of them that it has read since [`Run::from`].
    pub measured: u64,
    /// `measured` over the time from [`Run::from`], or from the flow's later start, to its last octet or the end; 0 if none passed.
    pub goodput_bit_per_s: f64,
    /// Octets acknowledged to the sender.
    pub acked: u64,
    /// From the first SYN to the last octet. `None`: the flow has no end, or has not come to it.
    pub took_seconds: Option<f64>,
    /// Why the connection was given up. `None`: it was not, or the flow was complete by then.
    pub ended: Option<String>,
    /// Segments with data that the sender sent, each copy counted.
    pub data_segments: u64,
    /// What the sender's loss recovery counted.
    pub counters: Counters,
    /// Those who judged a loss of which the truth is known. Empty unless [`Run::score`] is set.
    pub judges: Vec<Judge>,
}

/// How often one judge of causes was right.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judge {
    /// As recipes call it.
    pub name: &'static str,
    /// What it said against what happened.
    pub confusion: Confusion,
}

/// Runs it to its end.
pub fn run(run: &Run) -> Result<Report, WorldError> {
    run_watched(run, |_| {}).map(|(report, _)| report)
}

/// Like [`run()`], with a `look` at the world after every step; also hands back the world as it is at the end.
pub fn run_watched(run: &Run, look: impl FnMut(&World)) -> Result<(Report, World), WorldError> {
    run_prepared(run, |_| {}, look)
}

/// Like [`run_watched`]; `prepare` gets the world before anything has happened.
pub fn run_prepared(
    run: &Run,
    prepare: impl FnOnce(&mut World),
    mut look: impl FnMut(&World),
) -> Result<(Report, World), WorldError> {
    run_stoppable(run, prepare, |world| {
        look(world);
        ControlFlow::Continue(())
    })
}

/// Like [`run_prepared`]; the run ends where `look` breaks off.
pub fn run_stoppable(
    run: &Run,
    prepare: impl FnOnce(&mut World),
    mut look: impl FnMut(&World) -> ControlFlow<()>,
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
            flow = look(world);
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
        let because = Why::ALL.into_iter().filter(|why| why.cause() == Some(cause));
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
    FlowReport {
        recipe: spec.recipe.as_ref().unwrap_or(&side.recipe).to_string(),
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
        judges,
    }
}

/// Jain's index of fairness, (Σx)² / nΣx²: 1 if all have the same, also of nothing at all; 1/n if one has everything.
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
    fn equal_runs_have_equal_reports() {
        let plan = plan(vec![Flow::down(Length::Octets(300_000))], Until::Complete(Duration::from_secs(600)));
        let [first, second] = [run(&plan).unwrap(), run(&plan).unwrap()];
        assert_eq!(first, second);
        assert!(first.complete && first.flows[0].took_seconds.is_some());
        assert_eq!(first.flows[0].delivered, 300_000);
        assert!(first.dropped_by_radio > 0);
        let named: Vec<_> = first.flows[0].judges.iter().map(|judge| judge.name).collect();
        assert!(named.contains(&"vegas") && named.contains(&"ncpld"), "{named:?}");
    }

    #[test]
    fn what_came_before_the_measurement_does_not_count() {
        let mut plan = plan(vec![Flow::down(Length::Endless); 2], Until::At(Instant::from_secs(60)));
        let whole = run(&plan).unwrap();
        plan.from = Instant::from_secs(30);
        let half = run(&plan).unwrap();
        for (whole, half) in whole.flows.iter().zip(&half.flows) {
            assert_eq!(whole.delivered, half.delivered, "measuring changes nothing");
            assert!(half.measured < whole.measured);
        }
        assert_eq!(half.seconds, 60.0);
        assert!(half.jain > 0.5 && half.jain <= 1.0);
    }

    #[test]
    fn a_run_that_is_broken_off_has_numbers_up_to_there() {
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
    fn jains_index_is_one_for_equals_and_one_nth_for_a_monopoly() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[]), 1.0);
    }
}
