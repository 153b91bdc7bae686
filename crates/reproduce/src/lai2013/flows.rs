//! Measures twelve flows that share one radio link, in the quantities of the model: throughput, round-trip time D and
//! rate of congestion losses q^c.

use airlink::stage::Why;
use airtcp_numbers::statistics::Mean;
use airtcp_sim::run::{Run, Until, run_prepared};
use airtcp_sim::world::{World, WorldError};
use airwire::Cause;
use airwire::time::{Duration, Instant};

use super::setting::{Extent, Radio, Site, Variant, plan};
use crate::Effort;

/// Twelve flows cause congestion losses at most error rates. Without congestion losses the model has no bound.
pub(super) const FLOWS: usize = 12;
/// Sampling interval of the round-trip times.
const EVERY: Duration = Duration::from_secs(1);

/// Paths with large windows. At 2 Mbit/s the windows of twelve flows are only five to seven packets each.
pub(super) const LARGE: [(&str, Site); 2] = [
    ("10 Mbit/s", Site { radio_mbit: 10, queue: 100, ..Site::DUMBBELL }),
    ("20 Mbit/s", Site { radio_mbit: 20, queue: 200, ..Site::DUMBBELL }),
];

/// The result of one run: means over its flows.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    /// In packets per second, with retransmissions.
    pub(super) throughput: f64,
    /// D, in seconds.
    pub(super) round_trip: f64,
    /// q^c: the share of all packets that queues dropped.
    pub(super) congestion: f64,
}

/// Runs twelve flows of each sender at each error rate. The samples are by point, then by seed.
pub(super) fn measure(
    effort: &Effort,
    site: Site,
    points: &[(Variant, u32)],
    over: &Extent,
) -> Result<Vec<Vec<Sample>>, WorldError> {
    let runs: Vec<_> = points
        .iter()
        .map(|(sender, percent)| plan(Radio::Shared, site, *percent, &[*sender; FLOWS], over))
        .collect::<Result<_, WorldError>>()?;
    effort.each(&runs, |run, seed| measure_one(&Run { seed, ..run.clone() }))
}

fn measure_one(run: &Run) -> Result<Sample, WorldError> {
    let (mut next, mut sum, mut looks) = (run.from, 0.0, 0_u32);
    let mut at_start = None;
    let (_, world) = run_prepared(run, World::step_by_event, |world| {
        if world.now() < next {
            return;
        }
        next += EVERY;
        at_start.get_or_insert_with(|| (sent(world), dropped(world)));
        let rtts = (0..world.flows()).filter_map(|flow| world.sender(flow)?.rtt().srtt());
        for rtt in rtts {
            sum += rtt.as_secs_f64();
            looks += 1;
        }
    })?;
    let (sent_before, dropped_before) = at_start.unwrap_or_default();
    let packets = (sent(&world) - sent_before) as f64;
    let end = match run.until {
        Until::At(end) => end,
        Until::Complete(limit) => Instant::ZERO + limit,
    };
    let seconds = end.saturating_since(run.from).as_secs_f64();
    Ok(Sample {
        throughput: packets / seconds / FLOWS as f64,
        round_trip: sum / f64::from(looks),
        congestion: (dropped(&world) - dropped_before) as f64 / packets,
    })
}

/// A calculated value: it does not depend on the seed, so its interval has no width.
pub(super) fn exact(value: f64) -> Mean {
    Mean { mean: value, half_width: Some(0.0), samples: 1 }
}

/// Data packets sent, with retransmissions.
fn sent(world: &World) -> u64 {
    (0..world.flows()).map(|flow| world.result(flow).statistics.data_segments_out).sum()
}

/// Packets that queues dropped in the direction down.
fn dropped(world: &World) -> u64 {
    let whys = Why::ALL.into_iter().filter(|why| why.cause() == Some(Cause::Congestion));
    whys.map(|why| world.totals().down.dropped_for(why)).sum()
}
