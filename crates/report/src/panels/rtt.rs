//! Round-trip times as they were measured.

use airtcp_analyze::trace::Trace;

use super::{View, seconds};
use crate::plot::axis::{Axis, Unit};
use crate::plot::figure::Panel;
use crate::plot::palette::{BLUE, Mark, VERMILION};
use crate::plot::{Data, Series};

pub(super) fn panel(trace: &Trace, view: View, height: f64) -> Option<Panel> {
    let samples = |timestamps: bool| -> Vec<(f64, f64)> {
        let samples = trace.rtt.iter().filter(|sample| sample.timestamps == timestamps);
        let points = samples.map(|sample| (seconds(sample.at), sample.seconds));
        points.filter(|(at, _)| view.contains(*at)).collect()
    };
    let (by_timestamps, by_segments) = (samples(true), samples(false));
    let all = || by_timestamps.iter().chain(&by_segments).map(|(_, seconds)| *seconds);
    all().next()?;
    let y = Axis::from_zero("round-trip time", Unit::Seconds, all());
    // If there are two kinds of samples, their marks differ in shape.
    let mark = if by_timestamps.is_empty() { Mark::Dot } else { Mark::Tick };
    let marks = |name: &str, class, colour, points, mark| Series {
        name: Some(name.to_owned()),
        class,
        colour,
        data: Data::Marks { points, mark, below: 0.0 },
    };
    let series = vec![
        marks("segments sent once (Karn)", "rtt-karn", VERMILION, by_segments, mark),
        marks("by timestamps", "rtt-timestamps", BLUE, by_timestamps, Mark::Dot),
    ];
    Some(Panel { y, height, series, notes: Vec::new() })
}
