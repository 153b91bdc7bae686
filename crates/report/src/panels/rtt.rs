//! Measured round-trip times.

use airtcp_analyze::trace::Trace;

use super::{View, seconds};
use crate::looks;
use crate::plot::axis::{Axis, Unit};
use crate::plot::figure::Panel;

pub(super) fn panel(trace: &Trace, view: View, height: f64) -> Option<Panel> {
    let samples = |timestamps: bool| -> Vec<(f64, f64)> {
        let samples = trace.rtt.iter().filter(|sample| sample.timestamps == timestamps);
        let points = samples.map(|sample| (seconds(sample.at), sample.seconds));
        points.filter(|(at, _)| view.contains(*at)).collect()
    };
    let (by_timestamps, by_segments) = (samples(true), samples(false));
    let all = || by_timestamps.iter().chain(&by_segments).map(|(_, seconds)| *seconds);
    all().next()?;
    let y = Axis::from_zero(trace.rtt_of.name(), Unit::Seconds, all());
    let series = vec![looks::RTT_KARN.marks(by_segments), looks::RTT_TIMESTAMPS.marks(by_timestamps)];
    Some(Panel { y, height, series, notes: Vec::new() })
}
