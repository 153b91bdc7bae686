//! Draws a metric over an axis of a sweep, with one line per value of another axis.

mod distribution;

use airtcp_report::plot::axis::{Axis, Scale, Unit};
use airtcp_report::plot::draw::Dash;
use airtcp_report::plot::figure::{Figure, Panel};
use airtcp_report::plot::palette::{LINES, Mark};
use airtcp_report::plot::{Data, Series};
use airtcp_sim::sweep::labels::Labels;
use airtcp_sim::sweep::metric::{self, Metric};
use airtcp_sim::sweep::summary::Line;

/// The content of a picture.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PictureSpec {
    pub(super) title: String,
    /// The path and the number of runs.
    pub(super) about: String,
    pub(super) kind: Kind,
    pub(super) y: Metric,
    pub(super) captions: Captions,
    /// The axis that has one line per value.
    pub(super) by: Option<String>,
    /// Draws only the points with these values.
    pub(super) only: Vec<(String, String)>,
    pub(super) log_x: bool,
    pub(super) log_y: bool,
    /// Starts the vertical axis near the smallest number instead of at zero.
    pub(super) from_data: bool,
}

/// The statistics of a point's runs that the picture shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The mean with its 95 % interval, over this axis of the sweep.
    Means(String),
    /// Minimum, quartiles, median and maximum, over this axis of the sweep.
    Boxes(String),
    /// The share of runs up to each value of the metric, which has the horizontal axis.
    Ecdf,
}

impl Kind {
    /// The axis of the sweep that is the horizontal axis.
    fn x(&self) -> Option<&String> {
        match self {
            Self::Means(x) | Self::Boxes(x) => Some(x),
            Self::Ecdf => None,
        }
    }
}

/// Texts that replace the usual ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Captions {
    /// Captions of the axes, to which the unit is appended.
    pub(super) x: Option<String>,
    pub(super) y: Option<String>,
    /// Names in the legend: a value of the axis of the lines, and its text.
    pub(super) legend: Vec<(String, String)>,
}

impl Captions {
    fn named(&self, value: &str) -> String {
        let text = self.legend.iter().find(|(known, _)| known == value).map(|(_, text)| text.as_str());
        text.unwrap_or(value).to_owned()
    }
}

/// The numbers of the runs of a point.
pub(super) type Runs = (Labels, Vec<f64>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PictureError {
    #[error("the sweep has no axis `{name}`; its axes are {}", .known.join(", "))]
    NoAxis { name: String, known: Vec<String> },
    #[error("axis `{axis}` has no value `{value}`; its values are {}", .known.join(", "))]
    NoValue { axis: String, value: String, known: Vec<String> },
    #[error("{} varies, too: choose one value (`--only {}={}`), or draw one line per value with --by", .axis, .axis, .value)]
    Varies { axis: String, value: String },
    #[error("no run has the metric `{metric}`; choose one of {}", .known.join(", "))]
    NoNumber { metric: String, known: Vec<String> },
    #[error("{0} lines are too many to distinguish: select some with --only AXIS=VALUE")]
    TooMany(usize),
    #[error("axis `{0}` has no numbers above zero, as a logarithmic scale requires")]
    NotLogarithmic(String),
}

/// Maximum number of lines. Marks distinguish them in grey print, and each dash pattern occurs at most twice.
const MAX_LINES: usize = LINES.len() * 2;

/// Draws the picture. `lines` contain the means of one metric, [`PictureSpec::y`], and `runs` all its
/// numbers.
pub(super) fn figure(
    lines: &[Line],
    runs: &[Runs],
    comparison: &PictureSpec,
) -> Result<Figure, PictureError> {
    let chosen = choose(lines, comparison)?;
    let groups = match &comparison.by {
        Some(by) => values(&chosen, by),
        None => vec![String::new()],
    };
    if groups.len() > MAX_LINES {
        return Err(PictureError::TooMany(groups.len()));
    }
    if let Some((value, _)) = comparison.captions.legend.iter().find(|(value, _)| !groups.contains(value)) {
        let axis = comparison.by.clone().unwrap_or_default();
        return Err(PictureError::NoValue { axis, value: value.clone(), known: groups });
    }
    let figure = match &comparison.kind {
        Kind::Means(x) => means(&chosen, &groups, x, comparison)?,
        Kind::Boxes(x) => distribution::boxes(&chosen, runs, &groups, x, comparison)?,
        Kind::Ecdf => distribution::ecdf(&chosen, runs, &groups, comparison)?,
    };
    Ok(with_captions(figure, &comparison.captions))
}

/// Replaces the captions of the axes.
fn with_captions(mut figure: Figure, captions: &Captions) -> Figure {
    if let Some(x) = &captions.x {
        figure.x.caption.clone_from(x);
    }
    for panel in &mut figure.panels {
        if let Some(y) = &captions.y {
            panel.y.caption.clone_from(y);
        }
        for name in panel.series.iter_mut().filter_map(|series| series.name.as_mut()) {
            *name = captions.named(name);
        }
    }
    figure
}

/// The lines of a group: those with this value on the axis of the lines.
fn of_group<'a>(
    chosen: &'a [&'a Line],
    group: &'a str,
    comparison: &'a PictureSpec,
) -> impl Iterator<Item = &'a Line> {
    let is_in_group =
        move |line: &&Line| comparison.by.as_ref().is_none_or(|by| line.point.of(by) == Some(group));
    chosen.iter().copied().filter(is_in_group)
}

fn no_number(comparison: &PictureSpec) -> PictureError {
    let known = Metric::known().filter(|metric| *metric != comparison.y);
    let known = known.map(|metric| metric.to_string()).collect();
    PictureError::NoNumber { metric: comparison.y.to_string(), known }
}

fn means(
    chosen: &[&Line],
    groups: &[String],
    x: &str,
    comparison: &PictureSpec,
) -> Result<Figure, PictureError> {
    let x_axis = XAxis::of(x, &values(chosen, x), comparison.log_x)?;
    let mut series = Vec::new();
    let mut all: Vec<Interval> = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let mut points: Vec<Interval> = of_group(chosen, group, comparison)
            .filter_map(|line| {
                let mean = line.numbers.first().copied().flatten()?.mean;
                let x = x_axis.position(line.point.of(x)?, index, groups.len())?;
                Some(Interval { x, mean: mean.mean, half: mean.half_width })
            })
            .collect();
        points.sort_by(|first, second| first.x.total_cmp(&second.x));
        all.extend(&points);
        series.extend(curve(group, (index, groups.len()), &points, &x_axis));
    }
    if all.is_empty() {
        return Err(no_number(comparison));
    }
    // Intervals are below the lines, so that a mean remains visible where intervals of other lines cross it.
    series.sort_by_key(|series| !matches!(series.data, Data::Bars { .. }));
    let ends = all.iter().flat_map(|point| {
        let (low, high) = point.ends().unwrap_or((point.mean, point.mean));
        [low, point.mean, high]
    });
    let below_zero = all.iter().any(|point| point.mean < 0.0);
    let y = y_axis_of(comparison, ends, below_zero)?;
    let panel = Panel { y, height: 280.0, series, notes: Vec::new() };
    let shows = match all.iter().any(|point| point.half.is_some()) {
        true => "means, and bars for their 95 % confidence intervals (Student's t)",
        false => "means",
    };
    let (title, subtitle) = (comparison.title.clone(), subtitle(comparison, x_axis.has_names(), shows));
    Ok(Figure { title, subtitle, x: x_axis.axis, panels: vec![panel] })
}

/// A mean at a position, and half the width of its interval. A single run has no interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    x: f64,
    mean: f64,
    half: Option<f64>,
}

impl Interval {
    fn ends(&self) -> Option<(f64, f64)> {
        self.half.map(|half| (self.mean - half, self.mean + half))
    }
}

/// Caption and unit of the metric.
fn caption_and_unit(metric: &Metric) -> (String, Unit) {
    let caption = match (metric.meaning(), metric.unit()) {
        (_, metric::Unit::Number) => format!("{metric} per run"),
        ("" | "of this flow", _) => metric.to_string(),
        (meaning, _) => format!("{metric} {}", meaning.split(',').next().unwrap_or_default()),
    };
    let unit = match metric.unit() {
        metric::Unit::BitPerSecond => Unit::BitPerSecond,
        metric::Unit::Seconds => Unit::Seconds,
        metric::Unit::Octets => Unit::Octets,
        metric::Unit::Number | metric::Unit::None => Unit::None,
    };
    (caption, unit)
}

/// The vertical axis around these values.
fn y_axis_of(
    comparison: &PictureSpec,
    values: impl Iterator<Item = f64>,
    below_zero: bool,
) -> Result<Axis, PictureError> {
    let (caption, unit) = caption_and_unit(&comparison.y);
    if comparison.log_y {
        // An interval can reach below zero even if all means are positive.
        return Axis::logarithmic(&caption, unit, values.filter(|value| *value > 0.0))
            .ok_or(PictureError::NotLogarithmic(caption));
    }
    Ok(if comparison.from_data || below_zero {
        Axis::around(&caption, unit, values)
    } else {
        Axis::from_zero(&caption, unit, values)
    })
}

/// Describes the path, the number of runs, and the elements of the picture.
fn subtitle(comparison: &PictureSpec, named: bool, shows: &str) -> String {
    let mut first = comparison.about.clone();
    for (axis, value) in &comparison.only {
        first += &format!(", {axis} = {value}");
    }
    let mut second = shows.to_owned();
    if let Some(by) = &comparison.by {
        let mark = if named { "mark" } else { "line" };
        second += &format!("; one {mark} per {by}");
    }
    if comparison.from_data && !comparison.log_y {
        first += "; the vertical axis does not start at zero";
    }
    [first, second].join("\n").trim_start().to_owned()
}

/// Returns the values of an axis in the order of the plan.
pub(super) fn values(lines: &[&Line], axis: &str) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for value in lines.iter().filter_map(|line| line.point.of(axis)) {
        if !values.iter().any(|known| known == value) {
            values.push(value.to_owned());
        }
    }
    values
}

/// Selects the points to draw. Each position has at most one point per line.
fn choose<'a>(lines: &'a [Line], comparison: &PictureSpec) -> Result<Vec<&'a Line>, PictureError> {
    let all: Vec<&Line> = lines.iter().collect();
    let axes: Vec<String> =
        lines.first().iter().flat_map(|line| line.point.0.iter().map(|(name, _)| name.clone())).collect();
    let named = comparison.kind.x().into_iter().chain(&comparison.by);
    for name in named.chain(comparison.only.iter().map(|(name, _)| name)) {
        if !axes.contains(name) {
            return Err(PictureError::NoAxis { name: name.clone(), known: axes });
        }
    }
    for (axis, value) in &comparison.only {
        let known = values(&all, axis);
        if !known.contains(value) {
            let (axis, value) = (axis.clone(), value.clone());
            return Err(PictureError::NoValue { axis, value, known });
        }
    }
    let is_included =
        |line: &&Line| comparison.only.iter().all(|(axis, value)| line.point.of(axis) == Some(value));
    let chosen: Vec<&Line> = all.into_iter().filter(is_included).collect();
    for axis in
        axes.iter().filter(|axis| ![comparison.kind.x(), comparison.by.as_ref()].contains(&Some(*axis)))
    {
        if let [first, _, ..] = &values(&chosen, axis)[..] {
            return Err(PictureError::Varies { axis: axis.clone(), value: first.clone() });
        }
    }
    Ok(chosen)
}

/// The dash pattern of a line, so that lines of one colour differ.
fn dash(index: usize) -> Dash {
    Dash::ALL[(index + index / LINES.len()) % Dash::ALL.len()]
}

fn curve(group: &str, (index, lines): (usize, usize), points: &[Interval], x: &XAxis) -> Vec<Series> {
    let colour = LINES[index % LINES.len()];
    let mark = Mark::LINES[index % Mark::LINES.len()];
    let dash = dash(index);
    let name = (!group.is_empty()).then(|| group.to_owned());
    let means: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.mean)).collect();
    let marks = Data::Marks { points: means.clone(), mark, below: 0.0 };
    let bars = points.iter().filter_map(|point| point.ends().map(|(low, high)| (point.x, low, high)));
    let bars: Vec<_> = bars.collect();
    let of = |name, class, data| Series { name, class, colour, data };
    // On an axis of numbers, the intervals of several lines overlap. Those of earlier lines are drawn wider,
    // so that each remains visible.
    let width =
        if x.has_names() { INTERVAL_WIDTH } else { (INTERVAL_WIDTH * (lines - index) as f64).min(6.0) };
    let intervals = (!bars.is_empty()).then(|| of(None, "interval", Data::Bars { bars, width }));
    let line = Data::Line { points: means, width: 1.4, dash };
    let mean = match x.has_names() {
        true => vec![of(name, "mean", marks)],
        false => vec![of(name, "mean", line), of(None, "mean", marks)],
    };
    intervals.into_iter().chain(mean).collect()
}

/// Width of the stroke of an interval, in points.
const INTERVAL_WIDTH: f64 = 1.2;

/// The horizontal axis: numbers with one unit, or names.
struct XAxis {
    axis: Axis,
    names: Vec<String>,
}

impl XAxis {
    fn of(name: &str, values: &[String], log: bool) -> Result<Self, PictureError> {
        let numbers: Option<Vec<Number>> = values.iter().map(|value| Number::parse(value)).collect();
        // Zero is the same in every unit.
        let quantity = numbers
            .iter()
            .flatten()
            .find(|number| number.value != 0.0)
            .map_or(Quantity::Plain, |number| number.quantity);
        let alike = |number: &Number| number.quantity == quantity || number.value == 0.0;
        let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty() && numbers.iter().all(alike)) else {
            if log {
                return Err(PictureError::NotLogarithmic(name.to_owned()));
            }
            return Ok(Self::names(name, values));
        };
        let (caption, unit) = match quantity {
            Quantity::Plain => (name.to_owned(), Unit::None),
            Quantity::Percent => (format!("{name} (%)"), Unit::None),
            Quantity::Seconds => (name.to_owned(), Unit::Seconds),
            Quantity::BitPerSecond => (name.to_owned(), Unit::BitPerSecond),
            Quantity::Bytes => (name.to_owned(), Unit::Octets),
        };
        let all = numbers.iter().map(|number| number.value);
        let axis = if log {
            Axis::logarithmic(&caption, unit, all)
                .ok_or_else(|| PictureError::NotLogarithmic(name.to_owned()))?
        } else {
            Axis::around(&caption, unit, all)
        };
        Ok(Self { axis, names: Vec::new() })
    }

    fn has_names(&self) -> bool {
        matches!(self.axis.scale, Scale::Names(_))
    }

    /// An axis that treats all values as names.
    fn names(name: &str, values: &[String]) -> Self {
        Self { axis: Axis::names(name, values.to_vec()), names: values.to_vec() }
    }

    /// Returns the position of a point: exactly at its number, and at a name next to the other lines.
    fn position(&self, label: &str, index: usize, lines: usize) -> Option<f64> {
        if !self.has_names() {
            return Number::parse(label).map(|number| number.value);
        }
        let offset = (index as f64 + 0.5) / lines as f64 - 0.5;
        let name = self.names.iter().position(|name| name == label)? as f64;
        Some(name + offset * 0.7)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Number {
    value: f64,
    quantity: Quantity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Plain,
    Percent,
    Seconds,
    BitPerSecond,
    Bytes,
}

impl Number {
    /// Parses a value as sweeps and scenarios write it.
    fn parse(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && !".-+".contains(c)).unwrap_or(text.len());
        // The exponent of a number such as 1e-5 is not a unit.
        if let Ok(value) = text.parse::<f64>() {
            return value.is_finite().then_some(Self { value, quantity: Quantity::Plain });
        }
        let (number, unit) = text.split_at(end);
        let (factor, quantity) = match unit.trim() {
            "%" => (1.0, Quantity::Percent),
            "ns" => (1e-9, Quantity::Seconds),
            "us" | "µs" => (1e-6, Quantity::Seconds),
            "ms" => (1e-3, Quantity::Seconds),
            "s" => (1.0, Quantity::Seconds),
            "m" | "min" => (60.0, Quantity::Seconds),
            "h" => (3600.0, Quantity::Seconds),
            "bit" => (1.0, Quantity::BitPerSecond),
            "kbit" => (1e3, Quantity::BitPerSecond),
            "Mbit" => (1e6, Quantity::BitPerSecond),
            "Gbit" => (1e9, Quantity::BitPerSecond),
            "B" => (1.0, Quantity::Bytes),
            "k" | "K" | "kB" => (1e3, Quantity::Bytes),
            "M" | "MB" => (1e6, Quantity::Bytes),
            "G" | "GB" => (1e9, Quantity::Bytes),
            "Ki" | "KiB" => (1024.0, Quantity::Bytes),
            "Mi" | "MiB" => (1024.0 * 1024.0, Quantity::Bytes),
            "Gi" | "GiB" => (1024.0 * 1024.0 * 1024.0, Quantity::Bytes),
            _ => return None,
        };
        Some(Self { value: number.parse::<f64>().ok()? * factor, quantity })
    }
}

#[cfg(test)]
mod tests;
