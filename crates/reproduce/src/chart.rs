//! A figure as the paper draws it: the same axes and curves, with our intervals and the paper's printed numbers.

use airtcp_numbers::statistics::Mean;
use serde::{Deserialize, Serialize};

/// A picture with one pair of axes. A figure with panels has several.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Chart {
    /// The paper's caption, or what tells it from the figure's other charts.
    pub title: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// In the order of the legend.
    pub curves: Vec<Curve>,
}

/// What an axis shows.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Axis {
    /// With its unit.
    pub caption: String,
    /// How values lie on it.
    pub scale: Scale,
}

/// How values lie on an axis.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// From zero.
    FromZero,
    /// Around the values.
    Around,
    /// Each decade as long as another.
    Logarithmic,
    /// The value `n` is the n-th of these, counted from 0.
    Names(Vec<String>),
}

impl Axis {
    /// An axis.
    pub fn new(caption: impl Into<String>, scale: Scale) -> Self {
        Self { caption: caption.into(), scale }
    }
}

/// One of the lines.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Curve {
    /// As the paper's legend has it.
    pub name: String,
    /// How its points are drawn.
    pub drawn: Drawn,
    /// Means, with the half width of their interval where there is one.
    pub points: Vec<(f64, Mean)>,
    /// Numbers that the paper prints, as marks beside the curve.
    pub paper: Vec<(f64, f64)>,
}

/// How the points of a curve are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drawn {
    /// Joined, with the intervals as a band.
    Line,
    /// Each by itself (the segments of a sequence trace).
    Dots,
    /// From zero, with the interval as a whisker (categories).
    Bars,
}

impl Curve {
    /// Points that are joined, from samples by point and seed. Points without samples are left out.
    pub fn line<'a>(name: impl Into<String>, points: impl IntoIterator<Item = (f64, &'a [f64])>) -> Self {
        let points = points.into_iter().filter_map(|(x, samples)| Some((x, Mean::of(samples)?)));
        Self { name: name.into(), drawn: Drawn::Line, points: points.collect(), paper: Vec::new() }
    }

    /// The same as bars.
    pub fn bars<'a>(name: impl Into<String>, points: impl IntoIterator<Item = (f64, &'a [f64])>) -> Self {
        Self { drawn: Drawn::Bars, ..Self::line(name, points) }
    }

    /// Single values of one run.
    pub fn dots(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let one = |(x, y)| (x, Mean { mean: y, half_width: None, samples: 1 });
        let points = points.into_iter().map(one).collect();
        Self { name: name.into(), drawn: Drawn::Dots, points, paper: Vec::new() }
    }

    /// Numbers that the paper prints for it.
    pub fn beside(self, paper: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { paper: paper.into_iter().collect(), ..self }
    }
}
