//! The shape of most figures: several senders at several points, with all seeds. A point is one value of the settings
//! that the figure varies, such as a loss rate.

use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::world::WorldError;

use crate::chart::Curve;
use crate::finding::Column;
use crate::judge::across;
use crate::{cell, column, mean};

/// Measurements `M` of each sender `S` at each point `X`, by seed.
pub(crate) struct Grid<S, X, M> {
    senders: Vec<S>,
    points: Vec<X>,
    /// By sender, then by point, then by seed.
    samples: Vec<Vec<Vec<M>>>,
}

/// A quantity by point, then by seed.
pub(crate) type Series = Vec<Vec<f64>>;

impl<S: Copy + PartialEq, X: Copy + PartialEq, M> Grid<S, X, M> {
    /// Measures each sender at each point. `plan` prepares one sender at one point, and `run` runs all plans with all
    /// seeds.
    pub(crate) fn run<P>(
        senders: &[S],
        points: &[X],
        plan: impl Fn(S, X) -> Result<P, WorldError>,
        run: impl FnOnce(&[P]) -> Result<Vec<Vec<M>>, WorldError>,
    ) -> Result<Self, WorldError> {
        let all = senders.iter().flat_map(|sender| points.iter().map(|point| (*sender, *point)));
        let plans = all.map(|(sender, point)| plan(sender, point)).collect::<Result<Vec<_>, _>>()?;
        let mut found = run(&plans)?.into_iter();
        let samples = senders.iter().map(|_| found.by_ref().take(points.len()).collect()).collect();
        Ok(Self { senders: senders.to_vec(), points: points.to_vec(), samples })
    }

    pub(crate) fn senders(&self) -> &[S] {
        &self.senders
    }

    pub(crate) fn points(&self) -> &[X] {
        &self.points
    }

    /// All measurements of a sender, by point, then by seed.
    pub(crate) fn row(&self, sender: S) -> &[Vec<M>] {
        let index = self.senders.iter().position(|known| *known == sender).expect("a sender that was run");
        &self.samples[index]
    }

    /// The measurements of a sender at one point, by seed.
    pub(crate) fn samples(&self, sender: S, point: X) -> &[M] {
        let index = self.points.iter().position(|known| *known == point).expect("a point that was run");
        &self.row(sender)[index]
    }

    /// One quantity of a sender at one point, by seed.
    pub(crate) fn at(&self, sender: S, point: X, value: impl Fn(&M) -> f64) -> Vec<f64> {
        self.samples(sender, point).iter().map(value).collect()
    }

    /// One quantity of a sender, by point, then by seed.
    pub(crate) fn of(&self, sender: S, value: impl Fn(&M) -> f64) -> Series {
        self.row(sender).iter().map(|seeds| seeds.iter().map(&value).collect()).collect()
    }

    /// The gain of one sender over another at each point, paired by seed.
    pub(crate) fn gains(&self, more: S, less: S, value: impl Fn(&M) -> f64) -> Series {
        self.of(more, &value)
            .iter()
            .zip(self.of(less, &value))
            .map(|(more, less)| gains(more, &less))
            .collect()
    }

    /// The gain at one point.
    pub(crate) fn gain(&self, more: S, less: S, point: X, value: impl Fn(&M) -> f64) -> Mean {
        mean(&gains(&self.at(more, point, &value), &self.at(less, point, &value)))
    }

    /// The gain, averaged over all points.
    pub(crate) fn pooled(&self, more: S, less: S, value: impl Fn(&M) -> f64) -> Mean {
        mean(&across(&self.gains(more, less, value)))
    }

    /// A line over the points. `x` is the position of a point on the axis.
    pub(crate) fn line(
        &self,
        sender: S,
        name: impl Into<String>,
        x: impl Fn(X) -> f64,
        value: impl Fn(&M) -> f64,
    ) -> Curve {
        let values = self.of(sender, value);
        Curve::line(name, self.points.iter().map(|point| x(*point)).zip(values.iter().map(Vec::as_slice)))
    }

    /// A column of means with intervals, for a table by point.
    pub(crate) fn column<'a>(
        &'a self,
        heading: impl Into<String>,
        sender: S,
        digits: usize,
        value: impl Fn(&M) -> f64 + 'a,
    ) -> Column<'a, X> {
        column(heading, move |point: &X| cell(&self.at(sender, *point, &value), digits))
    }

    /// A bar for each point.
    pub(crate) fn bars(&self, sender: S, name: impl Into<String>, value: impl Fn(&M) -> f64) -> Curve {
        let values = self.of(sender, value);
        Curve::bars(name, values.iter().enumerate().map(|(at, seeds)| (at as f64, &seeds[..])))
    }
}

impl<S: Copy + PartialEq, X: Copy + PartialEq, M: Clone> Grid<S, X, M> {
    /// The part with the points that are `wanted`.
    pub(crate) fn only(&self, wanted: impl Fn(X) -> bool) -> Self {
        let chosen: Vec<bool> = self.points.iter().map(|point| wanted(*point)).collect();
        let keep = |seeds: &Vec<Vec<M>>| {
            seeds.iter().zip(&chosen).filter(|(_, chosen)| **chosen).map(|(seeds, _)| seeds.clone()).collect()
        };
        Self {
            senders: self.senders.clone(),
            points: self.points.iter().copied().filter(|point| wanted(*point)).collect(),
            samples: self.samples.iter().map(keep).collect(),
        }
    }
}
