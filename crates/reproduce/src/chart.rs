//! Charts with the axes and curves of the paper's figures, our intervals and the numbers that the paper prints.

use airtcp_numbers::statistics::Mean;
use serde::{Deserialize, Serialize};

/// A chart with one pair of axes. A figure with several panels has several charts.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Chart {
    /// The paper's caption, or a title that distinguishes it from the figure's other charts.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves, in the order of the legend.
    pub curves: Vec<Curve>,
}

/// An axis of a chart.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Axis {
    /// The quantity, with its unit.
    pub caption: String,
    /// The scale.
    pub scale: Scale,
}

/// The scale of an axis.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Linear, starting at zero.
    FromZero,
    /// Linear, over the range of the values.
    #[serde(rename = "around")]
    ValueRange,
    /// Logarithmic.
    Logarithmic,
    /// Categories: the value `n` is the n-th name, counted from 0.
    Names(Vec<String>),
}

impl Axis {
    /// Creates an axis.
    pub fn new(caption: impl Into<String>, scale: Scale) -> Self {
        Self { caption: caption.into(), scale }
    }
}

/// One curve of a chart.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Curve {
    /// The name in the paper's legend.
    pub name: String,
    /// The style of the points.
    #[serde(rename = "drawn")]
    pub style: Style,
    /// Pairs of an x value and a mean.
    pub points: Vec<(f64, Mean)>,
    /// Numbers that the paper prints, drawn as separate marks.
    pub paper: Vec<(f64, f64)>,
}

/// The style of the points of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// Connected by a line, with the intervals as a band.
    Line,
    /// Separate dots, such as the segments of a sequence trace.
    Dots,
    /// Bars from zero with the interval as a whisker, for categories.
    Bars,
}

impl Curve {
    /// A line through the means of samples by point and seed. Points without samples are left out.
    pub fn line<'a>(name: impl Into<String>, points: impl IntoIterator<Item = (f64, &'a [f64])>) -> Self {
        let points = points.into_iter().filter_map(|(x, samples)| Some((x, Mean::of(samples)?)));
        Self { name: name.into(), style: Style::Line, points: points.collect(), paper: Vec::new() }
    }

    /// Like [`Curve::line`], as bars.
    pub fn bars<'a>(name: impl Into<String>, points: impl IntoIterator<Item = (f64, &'a [f64])>) -> Self {
        Self { style: Style::Bars, ..Self::line(name, points) }
    }

    /// Single values of one run, as dots.
    pub fn dots(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let point = |(x, y)| (x, Mean { mean: y, half_width: None, samples: 1 });
        let points = points.into_iter().map(point).collect();
        Self { name: name.into(), style: Style::Dots, points, paper: Vec::new() }
    }

    /// Adds the numbers that the paper prints for this curve.
    pub fn with_paper_values(self, paper: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { paper: paper.into_iter().collect(), ..self }
    }
}
