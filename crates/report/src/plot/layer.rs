//! Draws the series of a panel with few strokes. Data that falls on the same pixel is drawn once, so the size
//! of a picture does not grow with its data.

use std::collections::{BTreeMap, BTreeSet};

use super::draw::{Colour, Dash, Fill, Point, Rect, Shape, Step, Stroke};
use super::palette::Mark;

/// Data with one look.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name in the legend. `None`: the series belongs to the previous entry.
    pub name: Option<String>,
    /// The class in the SVG.
    pub class: &'static str,
    /// The colour of the series.
    pub colour: Colour,
    /// The data.
    pub data: Data,
}

/// Data in the units of the axes, in order from left to right.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Vertical strokes.
    Bars {
        /// Position on the horizontal axis, lower and upper end.
        bars: Vec<(f64, f64, f64)>,
        /// Width of a stroke, in points.
        width: f64,
    },
    /// A straight line from point to point.
    Line {
        /// Horizontal and vertical position.
        points: Vec<(f64, f64)>,
        /// Width of the line, in points.
        width: f64,
        /// The dash pattern.
        dash: Dash,
    },
    /// A step line: each value holds until the next one.
    Steps {
        /// Horizontal and vertical position.
        points: Vec<(f64, f64)>,
        /// Width of the line, in points.
        width: f64,
        /// The dash pattern.
        dash: Dash,
    },
    /// A mark at each point.
    Marks {
        /// Horizontal and vertical position.
        points: Vec<(f64, f64)>,
        /// The mark of all points.
        mark: Mark,
        /// The distance of each mark below its point, in points of the picture.
        below: f64,
    },
    /// The area between a lower and an upper line.
    Band {
        /// Position on the horizontal axis, lower and upper edge.
        edges: Vec<(f64, f64, f64)>,
        /// Opacity from 0 to 1.
        opacity: f64,
    },
    /// Areas over the full height.
    Spans {
        /// Start and end.
        spans: Vec<(f64, f64)>,
        /// Opacity from 0 to 1.
        opacity: f64,
    },
}

impl Data {
    /// Returns whether the series has no data.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Bars { bars, .. } => bars.is_empty(),
            Self::Band { edges, .. } => edges.is_empty(),
            Self::Line { points, .. } | Self::Steps { points, .. } | Self::Marks { points, .. } => {
                points.is_empty()
            }
            Self::Spans { spans, .. } => spans.is_empty(),
        }
    }
}

/// The resolution of paths: half a point, which is 1.5 pixels of the PNG.
const GRID: f64 = 0.5;

/// Half the length of the line that represents a single point.
const STUB: f64 = 3.0;

fn cell(value: f64) -> i64 {
    (value / GRID).round() as i64
}

fn on_grid(cell: i64) -> f64 {
    cell as f64 * GRID
}

/// Limits coordinates far outside the picture, where the exact position does not matter.
fn clamped(value: f64) -> f64 {
    if value.is_nan() { -1e4 } else { value.clamp(-1e4, 1e4) }
}

/// The mapping from data to positions in the picture.
pub(super) struct Map<'a> {
    pub(super) plot: Rect,
    pub(super) x: &'a dyn Fn(f64) -> f64,
    pub(super) y: &'a dyn Fn(f64) -> f64,
}

impl Map<'_> {
    fn x(&self, value: f64) -> f64 {
        clamped(self.plot.left + (self.x)(value) * self.plot.width)
    }

    fn y(&self, value: f64) -> f64 {
        clamped(self.plot.bottom() - (self.y)(value) * self.plot.height)
    }

    fn point(&self, (x, y): (f64, f64)) -> Point {
        Point { x: self.x(x), y: self.y(y) }
    }

    fn is_visible(&self, x: f64) -> bool {
        (self.plot.left - 1.0..=self.plot.right() + 1.0).contains(&x)
    }

    /// Returns the shapes of a series.
    pub(super) fn shapes(&self, series: &Series) -> Vec<Shape> {
        let colour = series.colour;
        let line = |steps, width, dash| Shape {
            steps,
            stroke: Some(Stroke { colour, width, dash, round: false }),
            fill: None,
        };
        let area = |steps, opacity| Shape { steps, stroke: None, fill: Some(Fill { colour, opacity }) };
        let shape = match &series.data {
            Data::Bars { bars, width } => line(self.bars(bars), *width, Dash::Solid),
            Data::Line { points, width, dash } => {
                let points = points.iter().map(|point| self.point(*point));
                line(polyline(&self.thinned(points)), *width, *dash)
            }
            Data::Steps { points, width, dash } => line(polyline(&self.steps(points)), *width, *dash),
            Data::Marks { points, mark: Mark::Dot, .. } => mark_shape(self.dots(points), Mark::Dot, colour),
            Data::Marks { points, mark, below } => {
                mark_shape(self.marks(points, *mark, *below), *mark, colour)
            }
            Data::Band { edges, opacity } => area(self.band(edges), *opacity),
            Data::Spans { spans, opacity } => area(self.spans(spans), *opacity),
        };
        if shape.steps.is_empty() { Vec::new() } else { vec![shape] }
    }

    fn bars(&self, bars: &[(f64, f64, f64)]) -> Vec<Step> {
        let mut columns: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
        let (top, bottom) = (cell(self.plot.top) - 1, cell(self.plot.bottom()) + 1);
        for (x, low, high) in bars {
            let (x, low, high) = (self.x(*x), cell(self.y(*low)), cell(self.y(*high)));
            if self.is_visible(x) && low >= top && high <= bottom {
                // Even a single byte must be visible.
                let (high, low) = (high.min(low - 2).max(top), low.min(bottom));
                columns.entry(cell(x)).or_default().push((high, low));
            }
        }
        let mut steps = Vec::new();
        for (x, mut spans) in columns {
            spans.sort_unstable();
            for (high, low) in merged(&spans) {
                steps.push(Step::Move(Point { x: on_grid(x), y: on_grid(low) }));
                steps.push(Step::Line(Point { x: on_grid(x), y: on_grid(high) }));
            }
        }
        steps
    }

    fn steps(&self, points: &[(f64, f64)]) -> Vec<Point> {
        let mut last: Option<Point> = None;
        let corners = points.iter().flat_map(|point| {
            let here = self.point(*point);
            let corner = last.map(|last| Point { x: here.x, y: last.y });
            last = Some(here);
            corner.into_iter().chain([here])
        });
        self.thinned(corners)
    }

    /// Keeps the first, lowest, highest and last point of each column: a line through them covers the same
    /// pixels. On each side of the plot, only the nearest outside point remains, because the line enters from
    /// there.
    fn thinned(&self, points: impl Iterator<Item = Point>) -> Vec<Point> {
        let mut thin: Vec<Point> = Vec::new();
        let mut column: Option<(i64, [Point; 4])> = None;
        let flush = |column: &mut Option<(i64, [Point; 4])>, thin: &mut Vec<Point>| {
            if let Some((_, [first, low, high, last])) = column.take() {
                for point in [first, low, high, last] {
                    if thin.last() != Some(&point) {
                        thin.push(point);
                    }
                }
            }
        };
        let (left, right) = (cell(self.plot.left) - 2, cell(self.plot.right()) + 2);
        for point in points {
            let x = cell(point.x).clamp(left, right);
            match &mut column {
                Some((same, [_, low, high, last])) if *same == x => {
                    if x == left {
                        column = Some((x, [point; 4]));
                    } else if x < right {
                        if point.y < low.y {
                            *low = point;
                        }
                        if point.y > high.y {
                            *high = point;
                        }
                        *last = point;
                    }
                }
                _ => {
                    flush(&mut column, &mut thin);
                    column = Some((x, [point; 4]));
                }
            }
        }
        flush(&mut column, &mut thin);
        thin
    }

    /// Dots of one pixel each. Vertically adjacent dots become one stroke.
    fn dots(&self, points: &[(f64, f64)]) -> Vec<Step> {
        let mut columns: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        let (top, bottom) = (self.plot.top - 1.0, self.plot.bottom() + 1.0);
        for Point { x, y } in points.iter().map(|point| self.point(*point)) {
            if self.is_visible(x) && (top..=bottom).contains(&y) {
                columns.entry(x.round() as i64).or_default().insert(y.round() as i64);
            }
        }
        let mut steps = Vec::new();
        for (x, column) in columns {
            let spans: Vec<(i64, i64)> = column.into_iter().map(|y| (y, y + 1)).collect();
            for (from, to) in merged(&spans) {
                steps.push(Step::Move(Point { x: x as f64, y: from as f64 }));
                steps.push(Step::Line(Point { x: x as f64, y: (to - 1) as f64 }));
            }
        }
        steps
    }

    fn marks(&self, points: &[(f64, f64)], mark: Mark, below: f64) -> Vec<Step> {
        // Marks that nearly cover each other are drawn once.
        let room = mark.radius().min(2.0);
        let mut drawn = BTreeSet::new();
        let mut steps = Vec::new();
        for point in points {
            let Point { x, y } = self.point(*point);
            let outside = !self.is_visible(x) || y < self.plot.top - 1.0 || y > self.plot.bottom() + 1.0;
            if !outside && drawn.insert(((x / room).round() as i64, (y / room).round() as i64)) {
                let y = (y + below).min(self.plot.bottom() - mark.radius());
                mark.steps(Point { x, y }, &mut steps);
            }
        }
        steps
    }

    fn band(&self, edges: &[(f64, f64, f64)]) -> Vec<Step> {
        let lower = self.thinned(edges.iter().map(|(x, low, _)| self.point((*x, *low))));
        let upper = self.thinned(edges.iter().map(|(x, _, high)| self.point((*x, *high))));
        let mut outline = lower.into_iter().chain(upper.into_iter().rev());
        let Some(first) = outline.next() else { return Vec::new() };
        [Step::Move(first)].into_iter().chain(outline.map(Step::Line)).chain([Step::Close]).collect()
    }

    fn spans(&self, spans: &[(f64, f64)]) -> Vec<Step> {
        let inside = |x: f64| x.clamp(self.plot.left, self.plot.right());
        let mut cells: Vec<(i64, i64)> = spans
            .iter()
            .map(|(from, to)| (self.x(*from), self.x(*to)))
            .filter(|(from, to)| *to >= self.plot.left && *from <= self.plot.right())
            .map(|(from, to)| (cell(inside(from)), cell(inside(to)).max(cell(inside(from)) + 1)))
            .collect();
        cells.sort_unstable();
        let Rect { top, height, .. } = self.plot;
        let rect =
            |(from, to): (i64, i64)| Rect { left: on_grid(from), top, width: on_grid(to - from), height };
        merged(&cells).into_iter().flat_map(|cells| rect(cells).steps()).collect()
    }
}

pub(super) fn mark_shape(steps: Vec<Step>, mark: Mark, colour: Colour) -> Shape {
    let stroke = |width, round| Some(Stroke { colour, width, dash: Dash::Solid, round });
    match mark {
        Mark::Dot => Shape { steps, stroke: stroke(2.0 * mark.radius(), true), fill: None },
        mark if mark.filled() => Shape { steps, stroke: None, fill: Some(Fill { colour, opacity: 1.0 }) },
        _ => Shape { steps, stroke: stroke(1.2, false), fill: None },
    }
}

/// Merges sorted spans that touch or overlap.
fn merged(spans: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut merged: Vec<(i64, i64)> = Vec::new();
    for (from, to) in spans {
        match merged.last_mut() {
            Some((_, end)) if from <= end => *end = (*end).max(*to),
            _ => merged.push((*from, *to)),
        }
    }
    merged
}

fn polyline(points: &[Point]) -> Vec<Step> {
    // A single value must also be visible.
    if let Some(Point { x, y }) = points.first().copied().filter(|first| points.iter().all(|it| it == first))
    {
        return vec![Step::Move(Point { x: x - STUB, y }), Step::Line(Point { x: x + STUB, y })];
    }
    let step =
        |(index, point): (usize, &Point)| if index == 0 { Step::Move(*point) } else { Step::Line(*point) };
    points.iter().enumerate().map(step).collect()
}
