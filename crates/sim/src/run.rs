//! One run in virtual time: who sends what to whom over which path, and the numbers that came of it.
//!
//! Everything else (`airtcp sim`, sweeps, the papers' figures) is many of these. A run depends on what stands in
//! [`Run`] alone, so two equal ones have equal reports, to the bit.

use airlink::packet::Direction;
use airlink::scenario::Scenario;
use airlink::stage::Why;
use airtcp::recovery::confusion::Confusion;
use airtcp::recovery::engine::Counters;
use airwire::Cause;
use airwire::time::{Duration, Instant};
use serde::Serialize;

use super::world::{Flow, HostSpec, Watch, World, WorldConfig, WorldError, judges};

#[derive(Clone)]
pub struct Run {
    pub scenario: Scenario,
    pub seed: u64,
    /// Senders on the fixed side, and receivers of what comes up.
    pub fixed: HostSpec,
    pub mobile: HostSpec,
    pub flows: Vec<Flow>,
    pub until: Until,
    /// Goodput is measured from here on, so that a beginning can be left out.
    pub from: Instant,
    /// Keep every judge's verdicts and score them: costs time and memory.
    pub score: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// All flows that have an end are complete, or so much time has passed.
    Complete(Duration),
    At(Instant),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub seconds: f64,
    /// Every flow that has an end is complete.
    pub complete: bool,
    pub flows: Vec<FlowReport>,
    /// Of the flows' goodput (Jain, Chiu, Hawe 1984).
    pub jain: f64,
    /// The hosts' packets that were dropped, in both directions.
    pub dropped_by_queues: u64,
    pub dropped_by_radio: u64,
    /// Each stage's own counters.
    pub stages: serde_json::Value,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowReport {
    pub recipe: String,
    pub direction: Direction,
    /// Octets that the receiving application has read, from the beginning, and from the start of the measurement.
    pub delivered: u64,
    pub measured: u64,
    pub goodput_bit_per_s: f64,
    /// Octets acknowledged to the sender.
    pub acked: u64,
    /// From the first SYN to the last octet, of a flow that has an end and is complete.
    pub took_seconds: Option<f64>,
    /// Why the connection was given up.
    pub ended: Option<String>,
    pub data_segments: u64,
    pub counters: Counters,
    /// Judges of causes, and how often they were right.
    pub judges: Vec<Judge>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judge {
    pub name: &'static str,
    pub confusion: Confusion,
}

pub fn run(run: &Run) -> Result<Report, WorldError> {
    run_watched(run, |_| {}).map(|(report, _)| report)
}

/// Also hands back the world, for those who want to know more; `look` sees it after every event.
pub fn run_watched(run: &Run, look: impl FnMut(&World)) -> Result<(Report, World), WorldError> {
    run_prepared(run, |_| {}, look)
}

/// `prepare` gets the world before anything has happened.
pub fn run_prepared(
    run: &Run,
    prepare: impl FnOnce(&mut World),
    mut look: impl FnMut(&World),
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
    let mut advance = |world: &mut World, until: Instant, at_completion: bool| {
        while !(at_completion && world.is_closed()) && world.step_until(until)? {
            look(world);
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
    let end = if at_completion { world.now() } else { end };
    let report = report(run, &mut world, &before, end);
    Ok((report, world))
}

fn report(run: &Run, world: &mut World, before: &[u64], end: Instant) -> Report {
    let flows: Vec<_> =
        (0..world.flows()).map(|flow| flow_report(run, world, flow, before[flow], end)).collect();
    let goodputs: Vec<_> = flows.iter().map(|flow| flow.goodput_bit_per_s).collect();
    let totals = world.path().totals();
    let dropped = |cause| {
        let because = Why::ALL.into_iter().filter(|why| why.cause() == Some(cause));
        because.map(|why| totals.down.dropped_for(why) + totals.up.dropped_for(why)).sum()
    };
    Report {
        seconds: end.as_secs_f64(),
        complete: world.is_complete(),
        jain: jain(&goodputs),
        dropped_by_queues: dropped(Cause::Congestion),
        dropped_by_radio: dropped(Cause::Radio),
        stages: world.path().stats(),
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

/// (Σx)² / nΣx²: 1 if all have the same, 1/n if one has everything.
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
    fn jains_index_is_one_for_equals_and_one_nth_for_a_monopoly() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[]), 1.0);
    }
}
