//! The rates of acknowledged and of sent data.

use airtcp_analyze::trace::Trace;

use super::{View, median_rtt, seconds};
use crate::looks;
use crate::plot::Series;
use crate::plot::axis::{Axis, Unit};
use crate::plot::breaks::format_duration;
use crate::plot::figure::Panel;

/// Maximum and minimum number of bins.
const MAX_BINS: f64 = 80.0;
const MIN_BINS: f64 = 20.0;

pub(super) fn panel(trace: &Trace, view: View, height: f64) -> Option<Panel> {
    let mut acked = 0;
    let mut progress = Vec::new();
    for ack in &trace.acks {
        if ack.ack > acked {
            progress.push((seconds(ack.at), (ack.ack - acked) as f64));
            acked = ack.ack;
        }
    }
    let sent: Vec<(f64, f64)> = trace
        .segments
        .iter()
        .map(|segment| (seconds(segment.at), segment.end.saturating_sub(segment.start) as f64))
        .collect();
    let inside = |points: &[(f64, f64)]| -> f64 {
        points.iter().filter(|(at, _)| view.contains(*at)).map(|(_, bytes)| bytes).sum()
    };
    let (from, to) = (view.from.max(0.0), view.to);
    let span = to - from;
    if inside(&progress) <= 0.0 || span <= 0.0 || !has_duration(sent.iter().chain(&progress), view) {
        return None;
    }
    // Bins shorter than two round-trip times would show the bursts of ACKs.
    let bins = (span / (2.0 * median_rtt(trace)).max(span / MAX_BINS)).clamp(MIN_BINS, MAX_BINS).round();
    let width = span / bins;
    let rates = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        let mut bytes = vec![0.0; bins as usize];
        let last = bytes.len() - 1;
        for (at, count) in points.iter().filter(|(at, _)| (from..=to).contains(at)) {
            bytes[(((at - from) / width) as usize).min(last)] += count;
        }
        let begin = |bin: usize| from + bin as f64 * width;
        let steps = bytes.iter().enumerate().map(|(bin, bytes)| (begin(bin), bytes * 8.0 / width));
        steps.chain([(to, bytes[last] * 8.0 / width)]).collect()
    };
    let (good, all) = (rates(&progress), rates(&sent));
    let mean = inside(&progress) * 8.0 / span;
    let y = Axis::from_zero("rate", Unit::BitPerSecond, good.iter().chain(&all).map(|(_, rate)| *rate));
    let sent = looks::SENT_RATE.steps(all, 1.1);
    let series = vec![
        Series {
            name: Some(format!("{} (averaged over {})", looks::SENT_RATE.label, format_duration(width))),
            ..sent
        },
        looks::GOODPUT.steps(good, 1.5),
        looks::MEAN.line(vec![(from, mean), (to, mean)], 0.9),
    ];
    Some(Panel { y, height, series, notes: Vec::new() })
}

/// Returns whether two points have different times. In some captures all times are equal, and no rate is
/// defined.
fn has_duration<'a>(points: impl Iterator<Item = &'a (f64, f64)>, view: View) -> bool {
    let mut times = points.map(|(at, _)| *at).filter(|at| view.contains(*at));
    times.next().is_some_and(|first| times.any(|at| at != first))
}
