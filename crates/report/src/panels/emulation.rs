//! The emulated path: its queues, and the transmissions of its radio link.

use std::collections::BTreeMap;

use super::View;
use crate::emulation::{Count, EmulatedPath, Queue, RadioDirection};
use crate::looks::{self, Look};
use crate::plot::Series;
use crate::plot::axis::{Axis, Unit};
use crate::plot::figure::Panel;

pub(super) fn panels(origin: i64, emulated: &EmulatedPath, view: View, height: f64) -> Vec<Panel> {
    let queues = emulated.queues.as_ref().and_then(|events| {
        // Offset in seconds from the events' clock to the trace's clock.
        let ahead = (events.wall_zero as i128 - i128::from(origin)) as f64 / 1e9;
        occupancy(&events.queues, &events.drops, ahead, view, height)
    });
    let radio = emulated.radio.iter().flat_map(|radio| radio.sides()).filter_map(|(name, side)| {
        let ahead = -(origin as f64) / 1e9;
        transmissions(name, side, ahead, view, height)
    });
    queues.into_iter().chain(radio).collect()
}

/// The length of one queue over time.
struct Line {
    name: String,
    most: f64,
    points: Vec<(f64, f64)>,
}

impl Line {
    /// Returns true if the line's time span overlaps the view. A line that ends before the view is not
    /// continued into it.
    fn overlaps(&self, view: View) -> bool {
        let [first, last] = [self.points.first(), self.points.last()];
        first.is_some_and(|(at, _)| *at <= view.to) && last.is_some_and(|(at, _)| *at >= view.from)
    }
}

fn occupancy(queues: &[Queue], drops: &[Count], ahead: f64, view: View, height: f64) -> Option<Panel> {
    let mut lines: Vec<Line> = queues
        .iter()
        .map(|queue| {
            let points: Vec<(f64, f64)> = queue.points().map(|(at, octets)| (at + ahead, octets)).collect();
            let most = view.values(&points).fold(0.0, f64::max);
            Line { name: format!("{} {}", queue.stage, queue.direction), most, points }
        })
        .filter(|line| line.most > 0.0 && line.overlaps(view))
        .collect();
    lines.sort_by(|one, other| other.most.total_cmp(&one.most).then_with(|| one.name.cmp(&other.name)));
    lines.truncate(looks::QUEUES);
    let y = Axis::from_zero("queued", Unit::Octets, lines.iter().map(|line| line.most));
    let queues = lines
        .into_iter()
        .enumerate()
        .map(|(index, line)| Series { name: Some(line.name), ..looks::queue(index).steps(line.points, 1.2) });
    let drops = drops.iter().map(|count| {
        let look = if count.what == "radio" { looks::LOST_RADIO } else { looks::LOST_QUEUE };
        let times = count.bins.points().map(|(at, _)| (at + ahead, 0.0));
        let marks =
            Look { name: "dropped", ..look }.marks(times.filter(|(at, _)| view.contains(*at)).collect());
        Series { name: Some(format!("dropped: {}", count.what)), ..marks }
    });
    let series: Vec<Series> = queues.chain(drops).filter(|series| !series.data.is_empty()).collect();
    (!series.is_empty()).then_some(Panel { y, height, series, notes: Vec::new() })
}

fn transmissions(name: &str, side: &RadioDirection, ahead: f64, view: View, height: f64) -> Option<Panel> {
    let width = side.all.bins.width().max((view.to - view.from) / 160.0);
    let bin = |at: f64| ((at + ahead - view.from) / width).floor() as i64;
    let within = |bin: &i64| (0..(view.to - view.from).div_euclid(width) as i64).contains(bin);
    // Rates from the first to the last PDU, with zeros where nothing was sent.
    let rates = |count: &Count| -> Vec<(f64, f64)> {
        let mut sums: BTreeMap<i64, f64> = BTreeMap::new();
        for (at, sum) in count.bins.points().map(|(at, sum)| (bin(at), sum)).filter(|(bin, _)| within(bin)) {
            *sums.entry(at).or_default() += sum;
        }
        let (Some((first, _)), Some((last, _))) = (sums.first_key_value(), sums.last_key_value()) else {
            return Vec::new();
        };
        let rate =
            |bin: i64| (view.from + bin as f64 * width, sums.get(&bin).copied().unwrap_or_default() / width);
        (*first..=last + 1).map(rate).collect()
    };
    let [all, again, damaged] = [&side.all, &side.again, &side.damaged].map(rates);
    let y = Axis::from_zero(&format!("PDUs/s, {name}"), Unit::None, all.iter().map(|(_, rate)| *rate));
    let series: Vec<Series> =
        [(looks::PDUS, all), (looks::PDUS_AGAIN, again), (looks::PDUS_DAMAGED, damaged)]
            .into_iter()
            .map(|(look, points)| look.steps(points, 1.2))
            .filter(|series| !series.data.is_empty())
            .collect();
    (!series.is_empty()).then_some(Panel { y, height, series, notes: Vec::new() })
}
