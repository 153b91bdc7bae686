//! The rates of acknowledged and of sent data.

use airtcp_analyze::trace::Trace;

use super::{View, median_rtt, seconds};
use crate::looks;
use crate::plot::Series;
use crate::plot::axis::{Axis, Unit};
use crate::plot::breaks::in_words;
use crate::plot::figure::Panel;

/// Maximum and minimum number of bins.
const MOST: f64 = 80.0;
const FEWEST: f64 = 20.0;

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
        points.iter().filter(|(at, _)| view.contains(*at)).map(|(_, octets)| octets).sum()
    };
    let (from, to) = (view.from.max(0.0), view.to);
    let span = to - from;
    if inside(&progress) <= 0.0 || span <= 0.0 || !takes_time(sent.iter().chain(&progress), view) {
        return None;
    }
    // Bins shorter than two round trips would show the bursts of ACKs.
    let bins = (span / (2.0 * median_rtt(trace)).max(span / MOST)).clamp(FEWEST, MOST).round();
    let width = span / bins;
    let rates = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        let mut octets = vec![0.0; bins as usize];
        let last = octets.len() - 1;
        for (at, count) in points.iter().filter(|(at, _)| (from..=to).contains(at)) {
            octets[(((at - from) / width) as usize).min(last)] += count;
        }
        let begin = |bin: usize| from + bin as f64 * width;
        let steps = octets.iter().enumerate().map(|(bin, octets)| (begin(bin), octets * 8.0 / width));
        steps.chain([(to, octets[last] * 8.0 / width)]).collect()
    };
    let (good, all) = (rates(&progress), rates(&sent));
    let mean = inside(&progress) * 8.0 / span;
    let y = Axis::from_zero("rate", Unit::BitPerSecond, good.iter().chain(&all).map(|(_, rate)| *rate));
    let sent = looks::SENT_RATE.steps(all, 1.1);
    let series = vec![
        Series {
            name: Some(format!("{} (averaged over {})", looks::SENT_RATE.words, in_words(width))),
            ..sent
        },
        looks::GOODPUT.steps(good, 1.5),
        looks::MEAN.line(vec![(from, mean), (to, mean)], 0.9),
    ];
    Some(Panel { y, height, series, notes: Vec::new() })
}

/// Returns false if all points have the same time, as in some captures. A rate needs a duration.
fn takes_time<'a>(points: impl Iterator<Item = &'a (f64, f64)>, view: View) -> bool {
    let mut times = points.map(|(at, _)| *at).filter(|at| view.contains(*at));
    times.next().is_some_and(|first| times.any(|at| at != first))
}
