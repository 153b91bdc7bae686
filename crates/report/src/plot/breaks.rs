//! Breaks of an axis: a mark replaces a span without events.

use super::draw::{Dash, Fill, Item, Point, Rect, Shape, Step, Stroke, Text, TextDirection};
use super::palette::{GREY, WHITE};

/// The width of a break as a share of the axis, enough for its text.
const BREAK_WIDTH: f64 = 0.022;
/// The part of a silence that remains visible on each side of its break, as a share of the axis. It separates
/// the break from the marks on both sides.
const MARGIN: f64 = 0.012;
/// The maximum share of the axis for all breaks, including the visible parts of the silences.
const MAX_SHARE: f64 = 0.6;
/// If less than this share of the range is outside silences, the axis gets no breaks.
const MIN_SHARE: f64 = 1e-9;
const TEXT_SIZE: f64 = 7.5;
/// Half the height of a tooth in a torn edge.
const TOOTH: f64 = 3.0;

/// The omitted spans of an axis, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Breaks {
    cuts: Vec<(f64, f64)>,
    /// The visible part of the silence on each side of a cut.
    margin: f64,
}

impl Breaks {
    /// Chooses the breaks for silences from `min` to `max`, in any order. A silence gets a break only if it
    /// is longer than the break. If there are too many such silences, only the longest ones get a break.
    pub fn new(mut silences: Vec<(f64, f64)>, min: f64, max: f64) -> Self {
        const EACH: f64 = BREAK_WIDTH + 2.0 * MARGIN;
        silences.retain(|(from, to)| *from >= min && *to <= max && from < to);
        silences.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut last = min;
        silences.retain(|(from, to)| {
            let is_apart = *from >= last;
            last = if is_apart { *to } else { last };
            is_apart
        });
        silences.sort_by(|one, other| (other.1 - other.0).total_cmp(&(one.1 - one.0)));
        silences.truncate((MAX_SHARE / EACH) as usize);
        // After a break is removed, the axis shows a longer time, and so does the width of each other break.
        // The remaining silences are therefore checked again.
        loop {
            let silent: f64 = silences.iter().map(|(from, to)| to - from).sum();
            let rest = max - min - silent;
            if rest <= MIN_SHARE * (max - min) {
                return Self::default();
            }
            let length = rest / (1.0 - EACH * silences.len() as f64);
            let before = silences.len();
            silences.retain(|(from, to)| to - from > EACH * length);
            if silences.len() == before {
                silences.sort_by(|one, other| one.0.total_cmp(&other.0));
                let margin = MARGIN * length;
                let cuts = silences.into_iter().map(|(from, to)| (from + margin, to - margin));
                return Self { cuts: cuts.collect(), margin };
            }
        }
    }

    /// Returns whether no span is omitted.
    pub fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    fn hidden_length(&self) -> f64 {
        self.cuts.iter().map(|(from, to)| to - from).sum()
    }

    /// Returns the length of the axis without the width of the breaks.
    pub(super) fn visible_length(&self, min: f64, max: f64) -> f64 {
        max - min - self.hidden_length()
    }

    /// Returns the length of the axis, in its unit.
    pub(crate) fn length(&self, min: f64, max: f64) -> f64 {
        self.visible_length(min, max) / (1.0 - BREAK_WIDTH * self.cuts.len() as f64)
    }

    /// Returns the distance of a value from the start of the axis.
    pub(super) fn distance(&self, value: f64, min: f64, max: f64) -> f64 {
        let room = self.length(min, max) * BREAK_WIDTH;
        let before = self.cuts.iter().take_while(|(from, _)| *from < value);
        before.fold(value - min, |at, (from, to)| {
            let inside = (value.min(*to) - from) / (to - from);
            at - (value.min(*to) - from) + room * inside
        })
    }

    /// Returns the visible parts of the axis.
    pub(super) fn parts(&self, min: f64, max: f64) -> impl Iterator<Item = (f64, f64)> {
        let begins = [min].into_iter().chain(self.cuts.iter().map(|(_, to)| *to));
        begins.zip(self.cuts.iter().map(|(from, _)| *from).chain([max]))
    }

    /// Draws torn edges over a plot, and the duration of each silence if `labelled` is set.
    pub(super) fn items(&self, plot: Rect, position: &dyn Fn(f64) -> f64, labelled: bool) -> Vec<Item> {
        let mut items = Vec::new();
        for (from, to) in &self.cuts {
            let [left, right] = [from, to].map(|value| plot.left + position(*value) * plot.width);
            let gap = Rect { left, top: plot.top - 1.0, width: right - left, height: plot.height + 2.0 };
            let fill = Some(Fill { colour: WHITE, opacity: 1.0 });
            items.push(Item::Shape(Shape { steps: gap.steps().to_vec(), stroke: None, fill }));
            for x in [left, right] {
                let stroke = Stroke { colour: GREY, width: 0.7, dash: Dash::Solid, round: false };
                let steps = torn(x, plot.top - 1.0, plot.bottom() + 1.0);
                items.push(Item::Shape(Shape { steps, stroke: Some(stroke), fill: None }));
            }
            if labelled {
                let middle = f64::midpoint(left, right) + TEXT_SIZE * 0.36;
                let text = Text::new(
                    middle,
                    plot.bottom() - 4.0,
                    TEXT_SIZE,
                    GREY,
                    format_duration(to - from + 2.0 * self.margin),
                );
                items.push(Item::Text(Text { direction: TextDirection::Upwards, ..text }));
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

/// Formats a duration with about three digits.
pub(crate) fn format_duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 2.0 * 86_400.0 => format!("{:.1} days", seconds / 86_400.0),
        seconds if seconds >= 2.0 * 3600.0 => format!("{:.1} h", seconds / 3600.0),
        seconds if seconds >= 600.0 => format!("{:.1} min", seconds / 60.0),
        seconds if seconds >= 10.0 => format!("{seconds:.0} s"),
        seconds if seconds >= 1.0 => format!("{seconds:.1} s"),
        seconds if seconds >= 0.01 => format!("{:.0} ms", seconds * 1e3),
        seconds if seconds >= 1e-3 => format!("{:.1} ms", seconds * 1e3),
        seconds if seconds >= 1e-5 => format!("{:.0} µs", seconds * 1e6),
        seconds if seconds >= 1e-6 => format!("{:.1} µs", seconds * 1e6),
        seconds => format!("{:.1} ns", seconds * 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_shorten_silences_and_keep_scale_elsewhere() {
        let breaks = Breaks::new(vec![(20.0, 90.0), (2.0, 12.0), (5.0, 30.0), (95.0, 200.0)], 0.0, 100.0);
        let length = breaks.length(0.0, 100.0);
        let (room, margin) = (length * BREAK_WIDTH, length * MARGIN);
        let around = |(from, to): (f64, f64)| (from + margin, to - margin);
        let expected = [(2.0, 12.0), (20.0, 90.0)].map(around);
        for (is, should) in breaks.cuts.iter().zip(expected) {
            assert!((is.0 - should.0).abs() < 1e-9 && (is.1 - should.1).abs() < 1e-9, "{is:?} {should:?}");
        }
        let [first, second] = expected;
        for (value, distance) in [
            (0.0, 0.0),
            (2.0, 2.0),
            (first.0, 2.0 + margin),
            (7.0, 2.0 + margin + room / 2.0),
            (first.1, 2.0 + margin + room),
            (12.0, 2.0 + 2.0 * margin + room),
            (20.0, 10.0 + 2.0 * margin + room),
            (second.1, 10.0 + 3.0 * margin + 2.0 * room),
            (100.0, length),
        ] {
            assert!((breaks.distance(value, 0.0, 100.0) - distance).abs() < 1e-9, "{value}");
        }
        let parts: Vec<_> = breaks.parts(0.0, 100.0).collect();
        assert_eq!(
            parts,
            [(0.0, breaks.cuts[0].0), (breaks.cuts[0].1, breaks.cuts[1].0), (breaks.cuts[1].1, 100.0)]
        );
    }

    #[test]
    fn only_longest_silences_become_breaks() {
        // An event lasts a millisecond each second; every tenth silence is ten times as long.
        let mut at = 0.0;
        let silences: Vec<(f64, f64)> = (1..=100)
            .map(|index| {
                let from = at + 0.001;
                at = from + if index % 10 == 0 { 10.0 } else { 1.0 };
                (from, at)
            })
            .collect();
        let breaks = Breaks::new(silences, 0.0, at + 0.001);
        assert_eq!(breaks.cuts.len(), 10);
        assert!(breaks.cuts.iter().all(|(from, to)| to - from > 5.0), "{breaks:?}");
        // All breaks together stay within the limit.
        let seconds: Vec<(f64, f64)> =
            (0..45).map(|at| (f64::from(at) + 0.01, f64::from(at) + 1.0)).collect();
        assert!(
            Breaks::new(seconds, 0.0, 45.0).cuts.len() as f64 * (BREAK_WIDTH + 2.0 * MARGIN) <= MAX_SHARE
        );
        assert!(
            Breaks::new(vec![(0.0, 10.0), (10.0, 20.0)], 0.0, 20.0).is_empty(),
            "the whole range is silent"
        );
    }

    #[test]
    fn break_durations_use_readable_units() {
        for (seconds, words) in [
            (287_654_394.0, "3329.3 days"),
            (9000.0, "2.5 h"),
            (59.7, "60 s"),
            (0.432, "432 ms"),
            (0.0021, "2.1 ms"),
            (31e-9, "31.0 ns"),
        ] {
            assert_eq!(format_duration(seconds), words);
        }
    }
}
