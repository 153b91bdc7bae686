//! Measurements of the runs, and their formatting.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::run::{Report, Run};
use airtcp_sim::world::{World, WorldError};
use airwire::time::Duration;
use serde::Serialize;

use super::setting::{MSS, Setting};
use crate::{Effort, shown};

/// The counts of one run.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Received {
    #[serde(rename = "packets received")]
    pub(super) packets: f64,
    pub(super) timeouts: f64,
    /// Segments sent, including retransmissions.
    #[serde(rename = "segments sent")]
    pub(super) sent: f64,
}

pub(super) fn packets(counts: &Received) -> f64 {
    counts.packets
}

pub(super) fn received(report: &Report) -> f64 {
    (report.flows[0].delivered / u64::from(MSS)) as f64
}

/// Runs every setting with every seed. `prepare` can change what a run records, and `measure` reads each finished run.
/// Returns the measurements by setting, then by seed.
pub(super) fn watch<T: Clone + Send + Serialize + 'static>(
    effort: &Effort,
    settings: &[Setting],
    length: Duration,
    prepare: impl Fn(&mut Run) + Sync,
    measure: impl Fn(&Report, &mut World) -> T + Sync,
) -> Result<Vec<Vec<T>>, WorldError> {
    let points = settings.iter().map(|setting| setting.plan(length)).collect::<Result<Vec<_>, _>>()?;
    let plan = |point: &Run, seed| {
        let mut run = Run { seed, ..point.clone() };
        prepare(&mut run);
        run
    };
    effort.watch(&points, plan, |_, report, world| measure(report, world))
}

/// Runs every setting with every seed and counts packets and timeouts.
pub(super) fn count(
    effort: &Effort,
    settings: &[Setting],
    length: Duration,
) -> Result<Vec<Vec<Received>>, WorldError> {
    watch(
        effort,
        settings,
        length,
        |_| {},
        |report, _| {
            let flow = &report.flows[0];
            let (timeouts, sent) = (flow.counters.timeouts as f64, flow.data_segments as f64);
            Received { packets: received(report), timeouts, sent }
        },
    )
}

/// A share in percent.
pub(super) fn share(share: &Mean) -> String {
    let percent = |value: f64| 100.0 * value;
    let share = Mean { mean: percent(share.mean), half_width: share.half_width.map(percent), ..*share };
    format!("{} %", shown(&share, 1))
}

/// A gain in percent, with its sign.
pub(super) fn percent(gain: &Mean) -> String {
    let sign = if gain.mean > 0.0 { "+" } else { "" };
    format!("{sign}{}", share(gain))
}

/// Several gains with their names.
pub(super) fn listed<'a>(shares: impl IntoIterator<Item = (&'a str, Mean)>) -> String {
    let named = shares.into_iter().map(|(name, share)| format!("{} {name}", percent(&share)));
    named.collect::<Vec<_>>().join(", ")
}
