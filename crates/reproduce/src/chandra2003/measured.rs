//! Measurements of the runs, and their formatting.

use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::run::{Report, Run};
use airtcp_sim::world::{World, WorldError};
use airwire::time::Duration;

use super::setting::{MSS, Setting};
use crate::{Effort, mean, shown};

/// Counts of several settings, each by setting, then by seed.
pub(super) struct Counts {
    pub(super) packets: Vec<Vec<f64>>,
    pub(super) timeouts: Vec<Vec<f64>>,
    /// Segments sent, including retransmissions.
    pub(super) sent: Vec<Vec<f64>>,
}

pub(super) fn received(report: &Report) -> f64 {
    (report.flows[0].delivered / u64::from(MSS)) as f64
}

/// Runs every setting with every seed. `prepare` can request more recording, and `measure` reads the end of each run.
/// Returns the measurements by setting, then by seed.
pub(super) fn watch<T: Clone + Send + 'static>(
    effort: &Effort,
    settings: impl IntoIterator<Item = Setting>,
    length: Duration,
    prepare: impl Fn(&mut Run) + Sync,
    measure: impl Fn(&Report, &mut World) -> T + Sync,
) -> Result<Vec<Vec<T>>, WorldError> {
    let points: Vec<_> =
        settings.into_iter().map(|setting| setting.plan(length)).collect::<Result<_, WorldError>>()?;
    let plan = |point: &Run, seed| {
        let mut run = Run { seed, ..point.clone() };
        prepare(&mut run);
        run
    };
    effort.watch(&points, plan, |_, report, world| measure(report, world))
}

pub(super) fn count(effort: &Effort, settings: &[Setting], length: Duration) -> Result<Counts, WorldError> {
    let found = watch(
        effort,
        settings.iter().copied(),
        length,
        |_| {},
        |report, _| {
            let flow = &report.flows[0];
            [received(report), flow.counters.timeouts as f64, flow.data_segments as f64]
        },
    )?;
    let each =
        |value: usize| found.iter().map(|point| point.iter().map(|sample| sample[value]).collect()).collect();
    Ok(Counts { packets: each(0), timeouts: each(1), sent: each(2) })
}

/// The gain of `with` over `without`, as a share.
pub(super) fn gain(with: &[f64], without: &[f64]) -> Mean {
    mean(&gains(with, without))
}

/// A share in percent.
pub(super) fn share(share: &Mean) -> String {
    let times = |value: f64| 100.0 * value;
    let share = Mean { mean: times(share.mean), half_width: share.half_width.map(times), ..*share };
    format!("{} %", shown(&share, 1))
}

/// A gain in percent, with its sign.
pub(super) fn percent(gain: &Mean) -> String {
    let sign = if gain.mean > 0.0 { "+" } else { "" };
    format!("{sign}{}", share(gain))
}

/// Several gains with their names.
pub(super) fn listed<'a>(shares: impl IntoIterator<Item = (&'a str, Mean)>) -> String {
    let each = shares.into_iter().map(|(name, share)| format!("{} {name}", percent(&share)));
    each.collect::<Vec<_>>().join(", ")
}
