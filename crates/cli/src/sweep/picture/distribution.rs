//! Distributions of a metric over the runs of a point: box plots and empirical distribution functions.

use airtcp_numbers::statistics::quantile;
use airtcp_report::plot::axis::{Axis, Unit};
use airtcp_report::plot::figure::{Figure, Panel};
use airtcp_report::plot::palette::{BLACK, LINES, Mark, SILVER};
use airtcp_report::plot::{Data, Series};
use airtcp_sim::sweep::summary::Line;

use super::{
    INTERVAL_WIDTH, PictureError, PictureSpec, Runs, XAxis, caption_and_unit, dash, no_number, of_group,
    subtitle, values, y_axis_of,
};

/// Width of a box in points.
const BOX_WIDTH: f64 = 8.0;

/// The numbers of the runs of a line. Empty if no run has the metric.
fn runs_of<'a>(runs: &'a [Runs], line: &Line) -> &'a [f64] {
    runs.iter().find(|(point, _)| *point == line.point).map_or(&[], |(_, values)| values)
}

/// Draws a box for each point. All positions are names, because boxes need room next to each other.
pub(super) fn boxes(
    chosen: &[&Line],
    runs: &[Runs],
    groups: &[String],
    x: &str,
    comparison: &PictureSpec,
) -> Result<Figure, PictureError> {
    let x_axis = XAxis::names(x, &values(chosen, x));
    let (mut series, mut all) = (Vec::new(), Vec::new());
    for (index, group) in groups.iter().enumerate() {
        let (mut whiskers, mut quartiles, mut medians) = (Vec::new(), Vec::new(), Vec::new());
        for line in of_group(chosen, group, comparison) {
            let values = runs_of(runs, line);
            let position = line.point.of(x).and_then(|label| x_axis.position(label, index, groups.len()));
            let at = |p| quantile(values, p);
            let (Some(position), Some(low), Some(first), Some(median), Some(third), Some(high)) =
                (position, at(0.0), at(0.25), at(0.5), at(0.75), at(1.0))
            else {
                continue;
            };
            whiskers.push((position, low, high));
            quartiles.push((position, first, third));
            medians.push((position, median));
            all.extend([low, high]);
        }
        let colour = match LINES[index % LINES.len()] {
            // The median is black, and would be invisible on a black box.
            BLACK => SILVER,
            colour => colour,
        };
        let name = (!group.is_empty()).then(|| group.clone());
        let bars =
            |name, class, bars, width| Series { name, class, colour, data: Data::Bars { bars, width } };
        series.push(bars(None, "whiskers", whiskers, INTERVAL_WIDTH));
        series.push(bars(name, "box", quartiles, BOX_WIDTH));
        let data = Data::Marks { points: medians, mark: Mark::Disc, below: 0.0 };
        series.push(Series { name: None, class: "median", colour: BLACK, data });
    }
    if all.is_empty() {
        return Err(no_number(comparison));
    }
    let below_zero = all.iter().any(|value| *value < 0.0);
    let y = y_axis_of(comparison, all.into_iter(), below_zero)?;
    let panel = Panel { y, height: 280.0, series, notes: Vec::new() };
    let shows =
        "boxes from the first to the third quartile, dots at the median, lines from minimum to maximum";
    let subtitle = subtitle(comparison, true, shows);
    Ok(Figure { title: comparison.title.clone(), subtitle, x: x_axis.axis, panels: vec![panel] })
}

/// Draws the share of runs up to each value, with a line per group.
pub(super) fn ecdf(
    chosen: &[&Line],
    runs: &[Runs],
    groups: &[String],
    comparison: &PictureSpec,
) -> Result<Figure, PictureError> {
    let (mut series, mut all) = (Vec::new(), Vec::new());
    for (index, group) in groups.iter().enumerate() {
        let lines = of_group(chosen, group, comparison);
        let mut sorted: Vec<f64> = lines.flat_map(|line| runs_of(runs, line)).copied().collect();
        sorted.sort_by(f64::total_cmp);
        let Some(first) = sorted.first() else { continue };
        let count = sorted.len() as f64;
        let steps = sorted.iter().zip(1..).map(|(value, runs)| (*value, f64::from(runs) / count));
        let points = [(*first, 0.0)].into_iter().chain(steps).collect();
        all.extend(&sorted);
        let name = (!group.is_empty()).then(|| group.clone());
        let data = Data::Steps { points, width: 1.4, dash: dash(index) };
        series.push(Series { name, class: "ecdf", colour: LINES[index % LINES.len()], data });
    }
    if all.is_empty() {
        return Err(no_number(comparison));
    }
    let (caption, unit) = caption_and_unit(&comparison.y);
    let x = if comparison.log_x {
        let values = all.into_iter().filter(|value| *value > 0.0);
        Axis::logarithmic(&caption, unit, values).ok_or(PictureError::NotLogarithmic(caption))?
    } else {
        Axis::around(&caption, unit, all)
    };
    let y = Axis { max: 1.0, ..Axis::from_zero("share of runs", Unit::None, [1.0]) };
    let panel = Panel { y, height: 280.0, series, notes: Vec::new() };
    let subtitle = subtitle(comparison, false, "share of the runs with at most this value");
    Ok(Figure { title: comparison.title.clone(), subtitle, x, panels: vec![panel] })
}
