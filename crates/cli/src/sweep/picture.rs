//! Draws a metric over an axis of a sweep, with one line per value of another axis.

use airtcp_report::plot::axis::{Axis, Scale, Unit};
use airtcp_report::plot::draw::Dash;
use airtcp_report::plot::figure::{Figure, Panel};
use airtcp_report::plot::palette::{LINES, Mark};
use airtcp_report::plot::{Data, Series};
use airtcp_sim::sweep::metric::{self, Metric};
use airtcp_sim::sweep::summary::Line;

/// The content of a picture.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    pub(super) title: String,
    /// The path and the number of runs.
    pub(super) about: String,
    pub(super) x: String,
    pub(super) y: Metric,
    /// The axis that has one line per value.
    pub(super) by: Option<String>,
    /// Draws only the points with these values.
    pub(super) only: Vec<(String, String)>,
    pub(super) log_x: bool,
    pub(super) log_y: bool,
    /// Whether the vertical axis starts near the smallest number instead of at zero.
    pub(super) from_data: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ComparisonError {
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
const MOST: usize = LINES.len() * 2;

/// Draws the picture. `lines` contain the means of one metric, [`Comparison::y`].
pub(super) fn figure(lines: &[Line], comparison: &Comparison) -> Result<Figure, ComparisonError> {
    let chosen = choose(lines, comparison)?;
    let x_values = values(&chosen, &comparison.x);
    let x_axis = Abscissa::of(&comparison.x, &x_values, comparison.log_x)?;
    let groups = match &comparison.by {
        Some(by) => values(&chosen, by),
        None => vec![String::new()],
    };
    if groups.len() > MOST {
        return Err(ComparisonError::TooMany(groups.len()));
    }
    let mut series = Vec::new();
    let mut all: Vec<Interval> = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let mine = |line: &&&Line| comparison.by.as_ref().is_none_or(|by| line.point.of(by) == Some(group));
        let mut points: Vec<Interval> = chosen
            .iter()
            .filter(mine)
            .filter_map(|line| {
                let mean = line.numbers.first().copied().flatten()?.mean;
                let x = x_axis.place(line.point.of(&comparison.x)?, index, groups.len())?;
                Some(Interval { x, mean: mean.mean, half: mean.half_width })
            })
            .collect();
        points.sort_by(|first, second| first.x.total_cmp(&second.x));
        all.extend(&points);
        series.extend(curve(group, index, &points, &x_axis));
    }
    if all.is_empty() {
        let known = Metric::known().filter(|metric| *metric != comparison.y);
        let known = known.map(|metric| metric.to_string()).collect();
        return Err(ComparisonError::NoNumber { metric: comparison.y.to_string(), known });
    }
    // Intervals are below the lines, so that a mean remains visible where intervals of other lines cross it.
    series.sort_by_key(|series| !matches!(series.data, Data::Bars { .. }));
    let panel = Panel { y: ordinate(comparison, &all)?, height: 280.0, series, notes: Vec::new() };
    let with_bars = all.iter().any(|point| point.half.is_some());
    let (title, subtitle) = (comparison.title.clone(), subtitle(comparison, x_axis.named(), with_bars));
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

fn ordinate(comparison: &Comparison, all: &[Interval]) -> Result<Axis, ComparisonError> {
    let metric = &comparison.y;
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
    let ends = all.iter().flat_map(|point| {
        let (low, high) = point.ends().unwrap_or((point.mean, point.mean));
        [low, point.mean, high]
    });
    if comparison.log_y {
        // An interval can reach below zero even if all means are positive.
        return Axis::logarithmic(&caption, unit, ends.filter(|value| *value > 0.0))
            .ok_or(ComparisonError::NotLogarithmic(caption));
    }
    let below_zero = all.iter().any(|point| point.mean < 0.0);
    Ok(if comparison.from_data || below_zero {
        Axis::around(&caption, unit, ends)
    } else {
        Axis::from_zero(&caption, unit, ends)
    })
}

/// Describes the path, the number of runs, and the elements of the picture.
fn subtitle(comparison: &Comparison, named: bool, with_bars: bool) -> String {
    let mut first = comparison.about.clone();
    for (axis, value) in &comparison.only {
        first += &format!(", {axis} = {value}");
    }
    let mut second = match with_bars {
        true => "means, and bars for their 95 % confidence intervals (Student's t)".to_owned(),
        false => "means".to_owned(),
    };
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
fn values(lines: &[&Line], axis: &str) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for value in lines.iter().filter_map(|line| line.point.of(axis)) {
        if !values.iter().any(|known| known == value) {
            values.push(value.to_owned());
        }
    }
    values
}

/// Selects the points to draw. Each position has at most one point per line.
fn choose<'a>(lines: &'a [Line], comparison: &Comparison) -> Result<Vec<&'a Line>, ComparisonError> {
    let all: Vec<&Line> = lines.iter().collect();
    let axes: Vec<String> =
        lines.first().iter().flat_map(|line| line.point.0.iter().map(|(name, _)| name.clone())).collect();
    let named = [&comparison.x].into_iter().chain(&comparison.by);
    for name in named.chain(comparison.only.iter().map(|(name, _)| name)) {
        if !axes.contains(name) {
            return Err(ComparisonError::NoAxis { name: name.clone(), known: axes });
        }
    }
    for (axis, value) in &comparison.only {
        let known = values(&all, axis);
        if !known.contains(value) {
            let (axis, value) = (axis.clone(), value.clone());
            return Err(ComparisonError::NoValue { axis, value, known });
        }
    }
    let wanted =
        |line: &&Line| comparison.only.iter().all(|(axis, value)| line.point.of(axis) == Some(value));
    let chosen: Vec<&Line> = all.into_iter().filter(wanted).collect();
    for axis in axes.iter().filter(|axis| **axis != comparison.x && Some(*axis) != comparison.by.as_ref()) {
        if let [first, _, ..] = &values(&chosen, axis)[..] {
            return Err(ComparisonError::Varies { axis: axis.clone(), value: first.clone() });
        }
    }
    Ok(chosen)
}

fn curve(group: &str, index: usize, points: &[Interval], x: &Abscissa) -> Vec<Series> {
    let colour = LINES[index % LINES.len()];
    let mark = Mark::LINES[index % Mark::LINES.len()];
    let dash = Dash::ALL[(index + index / LINES.len()) % Dash::ALL.len()];
    let name = (!group.is_empty()).then(|| group.to_owned());
    let means: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.mean)).collect();
    let marks = Data::Marks { points: means.clone(), mark, below: 0.0 };
    let bars = points.iter().filter_map(|point| point.ends().map(|(low, high)| (point.x, low, high)));
    let bars: Vec<_> = bars.collect();
    let of = |name, class, data| Series { name, class, colour, data };
    let intervals = (!bars.is_empty()).then(|| of(None, "interval", Data::Bars { bars, width: 1.2 }));
    let line = Data::Line { points: means, width: 1.4, dash };
    let mean = match x.named() {
        true => vec![of(name, "mean", marks)],
        false => vec![of(name, "mean", line), of(None, "mean", marks)],
    };
    intervals.into_iter().chain(mean).collect()
}

/// Distance between neighbouring lines, as a share of the axis's length (three points in the picture).
const BESIDE: f64 = 0.005;

/// The horizontal axis: numbers with one unit, or names.
struct Abscissa {
    axis: Axis,
    names: Vec<String>,
}

impl Abscissa {
    fn of(name: &str, values: &[String], log: bool) -> Result<Self, ComparisonError> {
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
                return Err(ComparisonError::NotLogarithmic(name.to_owned()));
            }
            return Ok(Self { axis: Axis::names(name, values.to_vec()), names: values.to_vec() });
        };
        let (caption, unit) = match quantity {
            Quantity::Plain => (name.to_owned(), Unit::None),
            Quantity::Percent => (format!("{name} (%)"), Unit::None),
            Quantity::Seconds => (name.to_owned(), Unit::Seconds),
            Quantity::BitPerSecond => (name.to_owned(), Unit::BitPerSecond),
            Quantity::Octets => (name.to_owned(), Unit::Octets),
        };
        let all = numbers.iter().map(|number| number.value);
        let axis = if log {
            Axis::logarithmic(&caption, unit, all)
                .ok_or_else(|| ComparisonError::NotLogarithmic(name.to_owned()))?
        } else {
            Axis::around(&caption, unit, all)
        };
        Ok(Self { axis, names: Vec::new() })
    }

    fn named(&self) -> bool {
        matches!(self.axis.scale, Scale::Names(_))
    }

    /// Returns the position of a point. Lines are next to each other at a name, and slightly shifted at a
    /// number, because intervals at the same position would cover each other.
    fn place(&self, label: &str, index: usize, lines: usize) -> Option<f64> {
        let aside = (index as f64 + 0.5) / lines as f64 - 0.5;
        if self.named() {
            let name = self.names.iter().position(|name| name == label)? as f64;
            return Some(name + aside * 0.7);
        }
        let value = Number::parse(label)?.value;
        let aside = aside * lines as f64 * BESIDE;
        let Axis { min, max, .. } = self.axis;
        Some(match self.axis.scale {
            Scale::Log => value * (max / min).powf(aside),
            Scale::Linear | Scale::Broken(_) | Scale::Names(_) => value + aside * (max - min),
        })
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
    Octets,
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
            "B" => (1.0, Quantity::Octets),
            "k" | "K" | "kB" => (1e3, Quantity::Octets),
            "M" | "MB" => (1e6, Quantity::Octets),
            "G" | "GB" => (1e9, Quantity::Octets),
            "Ki" | "KiB" => (1024.0, Quantity::Octets),
            "Mi" | "MiB" => (1024.0 * 1024.0, Quantity::Octets),
            "Gi" | "GiB" => (1024.0 * 1024.0 * 1024.0, Quantity::Octets),
            _ => return None,
        };
        Some(Self { value: number.parse::<f64>().ok()? * factor, quantity })
    }
}

#[cfg(test)]
mod tests;
