//! Breaks of an axis: spans in which nothing happens take hardly any room, and are seen to be left out.

use super::draw::{Dash, Fill, Item, Point, Rect, Shape, Step, Stroke, Text, Turn};
use super::palette::{GREY, WHITE};

/// The room of a break, as a share of what is left of the axis.
const ROOM: f64 = 0.022;
const SIZE: f64 = 7.5;
/// Half the height of a tooth of a torn edge.
const TOOTH: f64 = 3.0;

/// Spans that are left out, in order, each within the axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Breaks(Vec<(f64, f64)>);

impl Breaks {
    /// Of spans from `min` to `max`, in any order.
    pub fn new(mut spans: Vec<(f64, f64)>, min: f64, max: f64) -> Self {
        spans.retain(|(from, to)| *from > min && *to < max && from < to);
        spans.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut last = min;
        spans.retain(|(from, to)| {
            let is_apart = *from >= last;
            last = if is_apart { *to } else { last };
            is_apart
        });
        Self(spans)
    }

    /// Whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn left_out(&self) -> f64 {
        self.0.iter().map(|(from, to)| to - from).sum()
    }

    /// What the axis would be long without the room of the breaks.
    pub(super) fn shown(&self, min: f64, max: f64) -> f64 {
        max - min - self.left_out()
    }

    /// The length of the axis, in its unit.
    pub(super) fn length(&self, min: f64, max: f64) -> f64 {
        self.shown(min, max) * (1.0 + ROOM * self.0.len() as f64)
    }

    /// How far a value is from the begin of the axis.
    pub(super) fn along(&self, value: f64, min: f64, max: f64) -> f64 {
        let room = self.shown(min, max) * ROOM;
        let before = self.0.iter().take_while(|(from, _)| *from < value);
        before.fold(value - min, |at, (from, to)| {
            let inside = (value.min(*to) - from) / (to - from);
            at - (value.min(*to) - from) + room * inside
        })
    }

    /// The parts of the axis that are shown.
    pub(super) fn parts(&self, min: f64, max: f64) -> impl Iterator<Item = (f64, f64)> {
        let begins = [min].into_iter().chain(self.0.iter().map(|(_, to)| *to));
        begins.zip(self.0.iter().map(|(from, _)| *from).chain([max]))
    }

    /// Torn edges over a plot, and, if it is the first one, how much is left out.
    pub(super) fn items(&self, plot: Rect, place: &dyn Fn(f64) -> f64, says: bool) -> Vec<Item> {
        let mut items = Vec::new();
        for (from, to) in &self.0 {
            let [left, right] = [from, to].map(|value| plot.left + place(*value) * plot.width);
            let gap = Rect { left, top: plot.top - 1.0, width: right - left, height: plot.height + 2.0 };
            let fill = Some(Fill { colour: WHITE, opacity: 1.0 });
            items.push(Item::Shape(Shape { steps: gap.steps().to_vec(), stroke: None, fill }));
            for x in [left, right] {
                let stroke = Stroke { colour: GREY, width: 0.7, dash: Dash::Solid, round: false };
                let steps = torn(x, plot.top - 1.0, plot.bottom() + 1.0);
                items.push(Item::Shape(Shape { steps, stroke: Some(stroke), fill: None }));
            }
            if says {
                let middle = f64::midpoint(left, right) + SIZE * 0.36;
                let text = Text::new(middle, plot.bottom() - 4.0, SIZE, GREY, in_words(to - from));
                items.push(Item::Text(Text { turn: Turn::Upwards, ..text }));
            }
        }
        items
    }
}

fn torn(x: f64, top: f64, bottom: f64) -> Vec<Step> {
    let teeth = ((bottom - top) / (2.0 * TOOTH)).ceil() as usize;
    let point = |tooth: usize| Point {
        x: x + if tooth.is_multiple_of(2) { -1.2 } else { 1.2 },
        y: (top + tooth as f64 * 2.0 * TOOTH).min(bottom),
    };
    let lines = (1..=teeth).map(|tooth| Step::Line(point(tooth)));
    [Step::Move(point(0))].into_iter().chain(lines).collect()
}

fn in_words(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 10.0 => format!("{seconds:.0} s"),
        seconds if seconds >= 1.0 => format!("{seconds:.1} s"),
        seconds if seconds >= 1e-3 => format!("{:.0} ms", seconds * 1e3),
        seconds => format!("{:.0} µs", seconds * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_takes_hardly_any_room_and_the_rest_is_to_scale() {
        let breaks = Breaks::new(vec![(20.0, 90.0), (2.0, 12.0), (5.0, 30.0), (95.0, 200.0)], 0.0, 100.0);
        assert_eq!(breaks, Breaks(vec![(2.0, 12.0), (20.0, 90.0)]));
        assert_eq!(breaks.shown(0.0, 100.0), 20.0);
        let room = 20.0 * ROOM;
        for (value, along) in [
            (0.0, 0.0),
            (2.0, 2.0),
            (7.0, 2.0 + room / 2.0),
            (12.0, 2.0 + room),
            (20.0, 10.0 + room),
            (90.0, 10.0 + 2.0 * room),
            (100.0, 20.0 + 2.0 * room),
        ] {
            assert!((breaks.along(value, 0.0, 100.0) - along).abs() < 1e-9, "{value}");
        }
        assert!((breaks.length(0.0, 100.0) - breaks.along(100.0, 0.0, 100.0)).abs() < 1e-9);
        let parts: Vec<_> = breaks.parts(0.0, 100.0).collect();
        assert_eq!(parts, [(0.0, 2.0), (12.0, 20.0), (90.0, 100.0)]);
    }
}
