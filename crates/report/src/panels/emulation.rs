//! The emulated path: its queues, and the transmissions of its radio link.

use std::collections::BTreeMap;

use super::View;
use crate::emulation::{Bins, DropCount, EmulatedPath, Queue, RadioDirection};
use crate::looks::{self, Look};
use crate::plot::Series;
use crate::plot::axis::{Axis, Unit};
use crate::plot::figure::Panel;

pub(super) fn panels(origin: i64, emulated: &EmulatedPath, view: View, height: f64) -> Vec<Panel> {
    let queues = emulated.queues.as_ref().and_then(|events| {
        // The seconds from the origin of the trace to the start of the events.
        let clock_offset = (events.wall_zero as i128 - i128::from(origin)) as f64 / 1e9;
        occupancy(&events.queues, &events.drops, clock_offset, view, height)
    });
    let radio = emulated.radio.iter().flat_map(|radio| radio.sides()).filter_map(|(name, side)| {
        let clock_offset = -(origin as f64) / 1e9;
        transmissions(name, side, clock_offset, view, height)
    });
    queues.into_iter().chain(radio).collect()
}

/// The length of one queue over time, in bytes.
struct Line {
    name: String,
    max: f64,
    points: Vec<(f64, f64)>,
}

impl Line {
    /// Returns whether the time span of the line overlaps the view. A line that ends before the view is not
    /// drawn.
    fn overlaps(&self, view: View) -> bool {
        let [first, last] = [self.points.first(), self.points.last()];
        first.is_some_and(|(at, _)| *at <= view.to) && last.is_some_and(|(at, _)| *at >= view.from)
    }
}

fn occupancy(
    queues: &[Queue],
    drops: &[DropCount],
    clock_offset: f64,
    view: View,
    height: f64,
) -> Option<Panel> {
    let mut lines: Vec<Line> = queues
        .iter()
        .map(|queue| {
            let points: Vec<(f64, f64)> =
                queue.points().map(|(at, bytes)| (at + clock_offset, bytes)).collect();
            let max = view.values(&points).fold(0.0, f64::max);
            Line { name: format!("{} {}", queue.stage, queue.direction), max, points }
        })
        .filter(|line| line.max > 0.0 && line.overlaps(view))
        .collect();
    lines.sort_by(|one, other| other.max.total_cmp(&one.max).then_with(|| one.name.cmp(&other.name)));
    lines.truncate(looks::QUEUES);
    let y = Axis::from_zero("queued", Unit::Octets, lines.iter().map(|line| line.max));
    let queues = lines
        .into_iter()
        .enumerate()
        .map(|(index, line)| Series { name: Some(line.name), ..looks::queue(index).steps(line.points, 1.2) });
    let drops = drops.iter().map(|count| {
        let look = if count.cause == "radio" { looks::LOST_RADIO } else { looks::LOST_QUEUE };
        let times = count.bins.points().map(|(at, _)| (at + clock_offset, 0.0));
        let marks =
            Look { name: "dropped", ..look }.marks(times.filter(|(at, _)| view.contains(*at)).collect());
        Series { name: Some(format!("dropped: {}", count.cause)), ..marks }
    });
    let series: Vec<Series> = queues.chain(drops).filter(|series| !series.data.is_empty()).collect();
    (!series.is_empty()).then_some(Panel { y, height, series, notes: Vec::new() })
}

fn transmissions(
    name: &str,
    side: &RadioDirection,
    clock_offset: f64,
    view: View,
    height: f64,
) -> Option<Panel> {
    let width = side.sent.width().max((view.to - view.from) / 160.0);
    let bin = |at: f64| ((at + clock_offset - view.from) / width).floor() as i64;
    let within = |bin: &i64| (0..(view.to - view.from).div_euclid(width) as i64).contains(bin);
    // The rates from the first to the last PDU, with zeros for bins without PDUs.
    let rates = |bins: &Bins| -> Vec<(f64, f64)> {
        let mut sums: BTreeMap<i64, f64> = BTreeMap::new();
        for (at, sum) in bins.points().map(|(at, sum)| (bin(at), sum)).filter(|(bin, _)| within(bin)) {
            *sums.entry(at).or_default() += sum;
        }
        let (Some((first, _)), Some((last, _))) = (sums.first_key_value(), sums.last_key_value()) else {
            return Vec::new();
        };
        let rate =
            |bin: i64| (view.from + bin as f64 * width, sums.get(&bin).copied().unwrap_or_default() / width);
        (*first..=last + 1).map(rate).collect()
    };
    let [sent, retransmitted, damaged] = [&side.sent, &side.retransmitted, &side.damaged].map(rates);
    let y = Axis::from_zero(&format!("PDUs/s, {name}"), Unit::None, sent.iter().map(|(_, rate)| *rate));
    let series: Vec<Series> =
        [(looks::PDUS, sent), (looks::PDUS_RETRANSMITTED, retransmitted), (looks::PDUS_DAMAGED, damaged)]
            .into_iter()
            .map(|(look, points)| look.steps(points, 1.2))
            .filter(|series| !series.data.is_empty())
            .collect();
    (!series.is_empty()).then_some(Panel { y, height, series, notes: Vec::new() })
}
