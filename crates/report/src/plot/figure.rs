//! A figure: panels below each other that share one horizontal axis.

use super::axis::{Axis, Scale, Tick};
use super::draw::{Anchor, Dash, Drawing, Fill, Item, Point, Rect, Shape, Step, Stroke, Text, TextDirection};
use super::font;
use super::layer::{Data, Map, Series, mark_shape};
use super::notes;
pub use super::notes::Note;
use super::palette::{BLACK, GREY, PALE, WHITE};

/// Width of all figures in points of 1/96 inch. It is 170 mm, the text width of a page.
pub const WIDTH: f64 = 642.52;
const TITLE: f64 = 13.0;
/// The smallest size of a title. Longer titles are truncated.
const MIN_TITLE: f64 = 8.5;
/// 7.5 pt in print.
pub(super) const TEXT: f64 = 10.0;
const RIGHT: f64 = 14.0;
/// The distance between text and the edge of the picture, and between two labels.
const EDGE: f64 = 3.0;
const TICK: f64 = 4.0;
const LEGEND_ROW: f64 = 14.0;
const SAMPLE: f64 = 20.0;
/// Bars up to this width do not touch in the legend.
const NARROW_BAR: f64 = 3.5;
const GAP: f64 = 10.0;

/// The content of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Shown above all panels; may be empty.
    pub title: String,
    /// Lines of small text below the title; may be empty.
    pub subtitle: String,
    /// The horizontal axis of all panels.
    pub x: Axis,
    /// The panels, from top to bottom.
    pub panels: Vec<Panel>,
}

/// A plot with its own vertical axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The vertical axis.
    pub y: Axis,
    /// Height of the plot area without labels, in points of 1/96 inch.
    pub height: f64,
    /// The series in drawing order; later ones cover earlier ones.
    pub series: Vec<Series>,
    /// Marks above the plot, with text where there is room.
    pub notes: Vec<Note>,
}

impl Figure {
    /// Computes the layout and returns the drawing.
    pub fn draw(&self) -> Drawing {
        let left = self.left();
        let width = WIDTH - left - RIGHT;
        let mut items = Vec::new();
        let mut y = 0.0;
        let title = [(self.title.as_str(), TITLE, BLACK)];
        let small = self.subtitle.lines().map(|line| (line, TEXT, GREY));
        for (text, size, colour) in title.into_iter().chain(small).filter(|(text, ..)| !text.is_empty()) {
            y += size * 1.45;
            let room = WIDTH - left - 4.0;
            let size = size.min((size * room / font::width(text, size)).max(MIN_TITLE));
            let text = font::fitted(text, size, room);
            items.push(Item::Text(Text::new(left, y, size, colour, text)));
        }
        y += 6.0;
        let mut ticks = self.x.ticks(|ticks, share| {
            let room = share * width - 14.0;
            let labels = ticks.iter().filter_map(|tick| tick.label.as_deref());
            let mut lines = labels.flat_map(|label| wrapped(label, room));
            lines.all(|line| font::width(&line, TEXT) <= room)
        });
        let lines = wrap_labels(&mut ticks, |tick| self.x.position(tick.at) * width);
        for (index, panel) in self.panels.iter().enumerate() {
            y = self.legend(panel, left, width, y, &mut items);
            y = notes::strip(&panel.notes, &self.x, (left, width), y, &mut items);
            let plot = Rect { left, top: y + 2.0, width, height: panel.height };
            let last = index + 1 == self.panels.len();
            items.push(self.panel(panel, plot, &ticks, last));
            if let Scale::Broken(breaks) = &self.x.scale {
                let items_of_breaks = breaks.items(plot, &|value| self.x.position(value), index == 0);
                items.push(Item::Group { class: "breaks", clip: None, items: items_of_breaks });
            }
            y = plot.bottom() + if last { 0.0 } else { GAP };
        }
        y += TICK + TEXT * 1.3 * lines as f64;
        y += TEXT * 1.5;
        items.push(Item::Text(
            Text::new(left + width / 2.0, y, TEXT, BLACK, self.x.title()).anchored(Anchor::Middle),
        ));
        let title = if self.title.is_empty() { &self.subtitle } else { &self.title };
        Drawing { width: WIDTH, height: (y + 7.0).ceil(), title: title.clone(), items }
    }

    /// Returns the width of the vertical axes with their labels and captions.
    fn left(&self) -> f64 {
        let labels = self.panels.iter().flat_map(|panel| vertical_ticks(&panel.y, panel.height));
        let widths = labels.filter_map(|tick| tick.label).map(|label| font::width(&label, TEXT));
        (TEXT * 2.0 + TICK + 5.0 + widths.fold(0.0, f64::max)).ceil()
    }

    /// Adds rows of samples with their names. Returns the y coordinate of their lower end.
    fn legend(&self, panel: &Panel, left: f64, width: f64, top: f64, items: &mut Vec<Item>) -> f64 {
        let (mut x, mut y) = (left, top + LEGEND_ROW - 4.0);
        let mut entries = Vec::new();
        // Adds a name. Returns the position of its sample.
        let mut entry = |words: &str, entries: &mut Vec<Item>| {
            let words = font::fitted(words, TEXT, width - SAMPLE - 4.0);
            let wide = SAMPLE + 4.0 + font::width(&words, TEXT);
            if x > left && x + wide > left + width {
                (x, y) = (left, y + LEGEND_ROW);
            }
            let at = Point { x, y: y - TEXT * 0.36 };
            entries.push(Item::Text(Text::new(x + SAMPLE + 4.0, y, TEXT, BLACK, words)));
            x += wide + 13.0;
            at
        };
        let shown = panel.series.iter().filter(|series| !series.data.is_empty());
        let mut line: Option<Point> = None;
        for series in shown {
            let Some(name) = &series.name else {
                // A series without a name belongs to the previous line.
                if let (Some(at), Data::Marks { .. }) = (line.take(), &series.data) {
                    entries.extend(sample(series, at.x, at.y).into_iter().map(Item::Shape));
                }
                continue;
            };
            let at = entry(name, &mut entries);
            line = matches!(series.data, Data::Line { .. }).then_some(at);
            entries.extend(sample(series, at.x, at.y).into_iter().map(Item::Shape));
        }
        let mut listed: Vec<&str> = Vec::new();
        for (_, note) in notes::visible(&panel.notes, &self.x, (left, width)) {
            if !listed.contains(&note.kind) {
                listed.push(note.kind);
                let at = entry(note.kind, &mut entries);
                entries.push(Item::Shape(note.sample(Point { x: at.x + SAMPLE / 2.0, ..at })));
            }
        }
        if entries.is_empty() {
            return top;
        }
        items.push(Item::Group { class: "legend", clip: None, items: entries });
        y + 4.0
    }

    fn panel(&self, panel: &Panel, plot: Rect, ticks: &[Tick], last: bool) -> Item {
        let x = |value: f64| self.x.position(value);
        let y = |value: f64| panel.y.position(value);
        let map = Map { plot, x: &x, y: &y };
        let across: Vec<(f64, Option<String>)> =
            ticks.iter().map(|tick| (plot.left + x(tick.at) * plot.width, tick.label.clone())).collect();
        let up: Vec<(f64, Option<String>)> = vertical_ticks(&panel.y, panel.height)
            .into_iter()
            .map(|tick| (plot.bottom() - y(tick.at) * plot.height, tick.label))
            .collect();
        let (mut grid, mut ends, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        let line = |steps: &mut Vec<Step>, from: (f64, f64), to: (f64, f64)| {
            steps.push(Step::Move(Point { x: from.0, y: from.1 }));
            steps.push(Step::Line(Point { x: to.0, y: to.1 }));
        };
        let mut before = f64::NEG_INFINITY;
        for (x, label) in across {
            if label.is_some() {
                line(&mut grid, (x, plot.top), (x, plot.bottom()));
            }
            let length = if label.is_some() { TICK } else { TICK / 2.0 };
            line(&mut ends, (x, plot.bottom()), (x, plot.bottom() + length));
            if let Some(label) = label.filter(|_| last) {
                let half = label.lines().map(|line| font::width(line, TEXT) / 2.0).fold(0.0, f64::max);
                // The last label may be wider than the margin.
                let middle = x.min(WIDTH - EDGE - half);
                if middle - half < before {
                    continue;
                }
                before = middle + half + EDGE;
                for (line, below) in label.lines().zip(1..) {
                    let y = plot.bottom() + TICK + TEXT * (1.3 * f64::from(below) - 0.3);
                    labels.push(Item::Text(Text::new(middle, y, TEXT, BLACK, line).anchored(Anchor::Middle)));
                }
            }
        }
        for (y, label) in up {
            if label.is_some() {
                line(&mut grid, (plot.left, y), (plot.right(), y));
            }
            let length = if label.is_some() { TICK } else { TICK / 2.0 };
            line(&mut ends, (plot.left - length, y), (plot.left, y));
            if let Some(label) = label {
                let x = plot.left - TICK - 3.0;
                labels.push(Item::Text(
                    Text::new(x, y + TEXT * 0.36, TEXT, BLACK, label).anchored(Anchor::End),
                ));
            }
        }
        let caption = font::fitted(&panel.y.title(), TEXT, plot.height + 20.0);
        let middle = plot.top + plot.height / 2.0;
        labels.push(Item::Text(Text {
            direction: TextDirection::Upwards,
            ..Text::new(TEXT * 1.2, middle, TEXT, BLACK, caption).anchored(Anchor::Middle)
        }));
        let data = panel.series.iter().map(|series| Item::Group {
            class: series.class,
            clip: None,
            items: map.shapes(series).into_iter().map(Item::Shape).collect(),
        });
        let drawn = |steps, colour, width| {
            Item::Shape(Shape { steps, stroke: Some(Stroke::solid(colour, width)), fill: None })
        };
        let mut items = vec![
            drawn(grid, PALE, 0.6),
            Item::Group { class: "data", clip: Some(plot), items: data.collect() },
            drawn(plot.steps().to_vec(), GREY, 0.8),
            drawn(ends, GREY, 0.8),
        ];
        items.extend(labels);
        Item::Group { class: "panel", clip: None, items }
    }
}

/// Wraps labels that are wider than the distance to the next label. Returns the maximum number of lines.
fn wrap_labels(ticks: &mut [Tick], place: impl Fn(&Tick) -> f64) -> usize {
    let places: Vec<f64> = ticks.iter().filter(|tick| tick.label.is_some()).map(place).collect();
    let room = places.windows(2).map(|pair| pair[1] - pair[0] - 14.0).fold(f64::INFINITY, f64::min);
    let mut most = 1;
    for label in ticks.iter_mut().filter_map(|tick| tick.label.as_mut()) {
        let lines = wrapped(label, room);
        most = most.max(lines.len());
        *label = lines.join("\n");
    }
    most
}

/// Splits a name into lines that fit into `room` if possible. Lines end after a `+` or a space.
fn wrapped(name: &str, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for part in name.split_inclusive(['+', ' ']) {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && font::width(&(lines[last].clone() + part.trim_end()), TEXT) > room {
            lines.push(part.to_owned());
        } else {
            lines[last].push_str(part);
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

fn vertical_ticks(axis: &Axis, height: f64) -> Vec<Tick> {
    axis.ticks(|_, share| share * height >= TEXT * 2.5)
}

fn sample(series: &Series, left: f64, y: f64) -> Vec<Shape> {
    let at = |dx: f64, dy: f64| Point { x: left + dx, y: y + dy };
    let colour = series.colour;
    let stroke = |steps, width, dash| Shape {
        steps,
        stroke: Some(Stroke { colour, width, dash, round: false }),
        fill: None,
    };
    match &series.data {
        Data::Bars { width, .. } => {
            let bar = |x| [Step::Move(at(x, 4.5)), Step::Line(at(x, -4.5))];
            // One broad bar, or three narrow bars with gaps.
            let middles: &[f64] = if *width > NARROW_BAR {
                &[SAMPLE / 2.0]
            } else {
                &[SAMPLE - 10.0, SAMPLE - 6.0, SAMPLE - 2.0]
            };
            let steps: Vec<Step> = middles.iter().copied().flat_map(bar).collect();
            vec![stroke(steps, width.min(SAMPLE), Dash::Solid)]
        }
        Data::Line { width, dash, .. } | Data::Steps { width, dash, .. } => {
            vec![stroke(vec![Step::Move(at(0.0, 0.0)), Step::Line(at(SAMPLE, 0.0))], *width, *dash)]
        }
        Data::Marks { mark, .. } => {
            let mut steps = Vec::new();
            if *mark == super::palette::Mark::Dot {
                [(8.0, 2.0), (12.0, -2.0), (17.0, 1.0)]
                    .into_iter()
                    .for_each(|(dx, dy)| mark.steps(at(dx, dy), &mut steps));
            } else {
                mark.steps(at(SAMPLE / 2.0, 0.0), &mut steps);
            }
            vec![mark_shape(steps, *mark, colour)]
        }
        Data::Band { opacity, .. } | Data::Spans { opacity, .. } => {
            let rect = Rect { left: left + 4.0, top: y - 4.5, width: SAMPLE - 4.0, height: 9.0 };
            let under = Fill { colour: WHITE, opacity: 1.0 };
            let fill = Fill { colour, opacity: *opacity };
            let steps = rect.steps().to_vec();
            vec![
                Shape { steps: steps.clone(), stroke: None, fill: Some(under) },
                Shape { steps, stroke: None, fill: Some(fill) },
            ]
        }
    }
}
