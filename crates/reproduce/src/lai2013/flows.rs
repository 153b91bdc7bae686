//! Measures twelve flows that share one radio link, in the quantities of the model: throughput, round-trip time D and
//! rate of congestion losses q^c.

use airlink::stage::DropReason;
use airtcp_numbers::statistics::Mean;
use airtcp_sim::run::{Report, Run, Until, run_prepared};
use airtcp_sim::world::{World, WorldError};
use airwire::Cause;
use airwire::time::{Duration, Instant};
use serde::Serialize;

use super::setting::{Extent, Radio, Site, Variant, plan};
use crate::finding::Column;
use crate::grid::Grid;
use crate::{Effort, cell, column};

/// Twelve flows cause congestion losses at most error rates. Without congestion losses the model has no bound.
pub(super) const FLOWS: usize = 12;
/// Sampling interval of the round-trip times.
const EVERY: Duration = Duration::from_secs(1);

/// A path with its name.
pub(super) type Path = (&'static str, Site);
/// A sender at an error rate in percent.
pub(super) type Point = (Variant, u32);
/// A row of a table.
pub(super) type Row = (Path, Point);
pub(super) type Cells = Grid<Path, Point, Sample>;

/// Paths with large windows. At 2 Mbit/s the windows of twelve flows are only five to seven packets each.
pub(super) const LARGE: [Path; 2] = [
    ("10 Mbit/s", Site { radio_mbit: 10, queue: 100, ..Site::DUMBBELL }),
    ("20 Mbit/s", Site { radio_mbit: 20, queue: 200, ..Site::DUMBBELL }),
];

/// The result of one run: means over its flows.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Sample {
    /// The rate of sent packets, including retransmissions.
    #[serde(rename = "throughput, packets/s")]
    pub(super) throughput: f64,
    /// The paper's D.
    #[serde(rename = "RTT, s")]
    pub(super) round_trip: f64,
    /// The paper's q^c: the share of all packets that queues dropped.
    #[serde(rename = "congestion losses, share of packets")]
    pub(super) congestion: f64,
}

/// Runs twelve flows of each sender at each error rate.
pub(super) fn measure(
    effort: &Effort,
    paths: &[Path],
    points: &[Point],
    extent: &Extent,
) -> Result<Cells, WorldError> {
    let plan = |(_, site): Path, (sender, percent): Point| {
        plan(Radio::Shared, site, percent, &[sender; FLOWS], extent)
    };
    Grid::run(paths, points, plan, |runs| {
        effort.execute(
            runs,
            |run, seed| effort.apply_reading(Run { seed, ..run.clone() }),
            |_, run| measure_one(run),
        )
    })
}

/// The values of a formula by seed. `value` receives the sample and the tax. Without drops, the formulas are not
/// finite. The result is empty if any run is without drops, because the mean of the other runs would mislead.
pub(super) fn modelled(cells: &Cells, (path, point): Row, value: impl Fn(&Sample, f64) -> f64) -> Vec<f64> {
    let samples = cells.samples(path, point);
    let all_drop = samples.iter().all(|sample| sample.congestion > 0.0);
    let tax = f64::from(point.1) / 100.0;
    if all_drop { samples.iter().map(|sample| value(sample, tax)).collect() } else { Vec::new() }
}

/// A column of measurements.
pub(super) fn measured<'a>(
    cells: &'a Cells,
    heading: &str,
    digits: usize,
    value: fn(&Sample) -> f64,
) -> Column<'a, Row> {
    column(heading, move |(path, point): &Row| cell(&cells.at(*path, *point, value), digits))
}

/// A column of values that involve a formula.
pub(super) fn calculated<'a>(
    cells: &'a Cells,
    heading: &str,
    value: fn(&Sample, f64) -> f64,
) -> Column<'a, Row> {
    column(heading, move |row: &Row| cell(&modelled(cells, *row, value), 2))
}

fn measure_one(run: &Run) -> Result<(Report, Sample), WorldError> {
    let (mut next, mut sum, mut samples) = (run.from, 0.0, 0_u32);
    let mut at_start = None;
    let (report, world) = run_prepared(run, World::step_by_event, |world| {
        if world.now() < next {
            return;
        }
        next += EVERY;
        at_start.get_or_insert_with(|| (sent(world), dropped(world)));
        let rtts = (0..world.flows()).filter_map(|flow| world.sender(flow)?.rtt().srtt());
        for rtt in rtts {
            sum += rtt.as_secs_f64();
            samples += 1;
        }
    })?;
    let (sent_before, dropped_before) = at_start.unwrap_or_default();
    let packets = (sent(&world) - sent_before) as f64;
    let end = match run.until {
        Until::At(end) => end,
        Until::Complete(limit) => Instant::ZERO + limit,
    };
    let seconds = end.saturating_since(run.from).as_secs_f64();
    let sample = Sample {
        throughput: packets / seconds / FLOWS as f64,
        round_trip: sum / f64::from(samples),
        congestion: (dropped(&world) - dropped_before) as f64 / packets,
    };
    Ok((report, sample))
}

/// A calculated value. It does not depend on the seed, so its interval has no width.
pub(super) fn exact(value: f64) -> Mean {
    Mean { mean: value, half_width: Some(0.0), samples: 1 }
}

/// Data packets sent, with retransmissions.
fn sent(world: &World) -> u64 {
    (0..world.flows()).map(|flow| world.result(flow).statistics.data_segments_out).sum()
}

/// Downlink packets that queues dropped.
fn dropped(world: &World) -> u64 {
    let reasons = DropReason::ALL.into_iter().filter(|reason| reason.cause() == Some(Cause::Congestion));
    reasons.map(|reason| world.totals().down.dropped_for(reason)).sum()
}
