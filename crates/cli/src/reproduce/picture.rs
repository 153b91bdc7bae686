//! Draws a chart with the paper's axes and curves, the intervals of the reproduction, and marks for the
//! numbers that the paper prints.

use airtcp_report::plot::axis::{Axis, Unit};
use airtcp_report::plot::draw::Dash;
use airtcp_report::plot::figure::{Figure, Panel};
use airtcp_report::plot::palette::{BLACK, LINES, Mark, WHITE};
use airtcp_report::plot::{Data, Series};
use airtcp_reproduce::chart::{self, Chart, Curve, Scale, Style};

/// The mark for the paper's numbers. No curve uses it. A white plate below it separates it from bars and lines.
const PAPER_MARK: Mark = Mark::CrossInRing;
const PAPER: &str = "paper";
/// Curves with fewer single values than this get larger marks.
const FEW_VALUES: usize = 30;
/// Opacity of a band. Bands of several curves overlap.
const BAND_OPACITY: f64 = 0.16;
/// Share of a category's width that its bars cover.
const BAR_SHARE: f64 = 0.8;

/// Draws the chart. `paper` is the citation of the paper. `seeds` is `None` if nothing in the runs is random.
pub(super) fn figure(chart: &Chart, paper: &str, seeds: Option<u32>) -> Figure {
    let all_dots = chart.curves.iter().all(|curve| curve.style == Style::Dots);
    let subtitle = match seeds.filter(|_| !all_dots) {
        None => format!("{paper}: one run"),
        Some(seeds) => format!("{paper}: means of {seeds} seeds with 95 % intervals"),
    };
    let bars = chart.curves.iter().filter(|curve| curve.style == Style::Bars).count();
    let mut series: Vec<Series> = Vec::new();
    let mut nth_bar = 0;
    for (index, curve) in chart.curves.iter().enumerate() {
        let shift = match curve.style {
            Style::Bars => {
                nth_bar += 1;
                ((nth_bar as f64 - 0.5) / bars as f64 - 0.5) * BAR_SHARE
            }
            Style::Line | Style::Dots => 0.0,
        };
        series.extend(of_curve(curve, index, shift, bars));
    }
    // Intervals are below the lines, so that a mean remains visible where intervals of other curves cross it.
    // The paper's marks are on top.
    series.sort_by_key(|series| match series.data {
        _ if series.class == PAPER => 2,
        Data::Bars { .. } | Data::Band { .. } => 0,
        _ => 1,
    });
    // On bars all marks are black, and one entry of the legend is enough.
    let mut named = false;
    for series in series.iter_mut().filter(|series| series.name.as_deref() == Some(PAPER)) {
        if std::mem::replace(&mut named, true) {
            series.name = None;
        }
    }
    let panel = Panel { y: vertical(chart), height: 260.0, series, notes: Vec::new() };
    Figure { title: chart.title.clone(), subtitle, x: horizontal(chart), panels: vec![panel] }
}

fn of_curve(curve: &Curve, index: usize, shift: f64, bars: usize) -> Vec<Series> {
    let colour = LINES[index % LINES.len()];
    let mark = Mark::LINES[index % Mark::LINES.len()];
    let dash = Dash::ALL[(index + index / LINES.len()) % Dash::ALL.len()];
    let of = |name: Option<String>, class, data| Series { name, class, colour, data };
    let name = Some(curve.name.clone());
    let means: Vec<(f64, f64)> = curve.points.iter().map(|(x, mean)| (x + shift, mean.mean)).collect();
    let ends = curve.points.iter().filter_map(|(x, mean)| {
        let half = mean.half_width?;
        Some((x + shift, mean.mean - half, mean.mean + half))
    });
    let ends: Vec<_> = ends.collect();
    let mut series = match curve.style {
        Style::Line => vec![
            of(name, "mean", Data::Line { points: means.clone(), width: 1.4, dash }),
            of(None, "mean", Data::Marks { points: means, mark, below: 0.0 }),
            of(None, "interval", Data::Band { edges: ends, opacity: BAND_OPACITY }),
        ],
        Style::Dots => {
            // Rare values must be visible among many others.
            let mark = if means.len() < FEW_VALUES { Mark::Cross } else { Mark::Dot };
            vec![of(name, "value", Data::Marks { points: means, mark, below: 0.0 })]
        }
        Style::Bars => {
            let from_zero = means.iter().map(|(x, y)| (*x, 0.0_f64.min(*y), 0.0_f64.max(*y)));
            let width = (400.0 / (bars * curve.points.len().max(1)) as f64).clamp(3.0, 14.0);
            vec![
                of(name, "bar", Data::Bars { bars: from_zero.collect(), width }),
                // Dark on the bar, so that both ends of the interval are visible.
                Series { colour: LINES[5], ..of(None, "interval", Data::Bars { bars: ends, width: 1.2 }) },
            ]
        }
    };
    if !curve.paper.is_empty() {
        let points: Vec<_> = curve.paper.iter().map(|(x, y)| (x + shift, *y)).collect();
        let marks = |mark| Data::Marks { points: points.clone(), mark, below: 0.0 };
        series.push(Series { colour: WHITE, ..of(None, PAPER, marks(Mark::Plate)) });
        series.push(match curve.style {
            Style::Bars => Series { colour: BLACK, ..of(Some(PAPER.to_owned()), PAPER, marks(PAPER_MARK)) },
            _ => of(Some(format!("{} (paper)", curve.name)), PAPER, marks(PAPER_MARK)),
        });
    }
    series
}

fn horizontal(chart: &Chart) -> Axis {
    let marks = chart.curves.iter().flat_map(|curve| curve.paper.iter().map(|(x, _)| *x));
    let values = chart.curves.iter().flat_map(|curve| curve.points.iter().map(|(x, _)| *x)).chain(marks);
    axis(&chart.x, values.collect())
}

fn vertical(chart: &Chart) -> Axis {
    let marks = chart.curves.iter().flat_map(|curve| curve.paper.iter().map(|(_, y)| *y));
    let ends = chart.curves.iter().flat_map(|curve| &curve.points).flat_map(|(_, mean)| {
        let half = mean.half_width.unwrap_or(0.0);
        [mean.mean - half, mean.mean, mean.mean + half]
    });
    let mut values: Vec<f64> = ends.chain(marks).collect();
    if chart.curves.iter().any(|curve| curve.style == Style::Bars) {
        values.push(0.0);
    }
    axis(&chart.y, values)
}

fn axis(axis: &chart::Axis, values: Vec<f64>) -> Axis {
    let caption = &axis.caption;
    match &axis.scale {
        Scale::Names(names) => Axis::names(caption, names.clone()),
        Scale::FromZero if values.iter().all(|value| *value >= 0.0) => {
            Axis::from_zero(caption, Unit::None, values)
        }
        Scale::FromZero | Scale::ValueRange => Axis::around(caption, Unit::None, values),
        Scale::Logarithmic => {
            // An interval can reach below zero even if all means are positive.
            let above = values.iter().copied().filter(|value| *value > 0.0);
            Axis::logarithmic(caption, Unit::None, above)
                .unwrap_or_else(|| Axis::around(caption, Unit::None, values))
        }
    }
}

#[cfg(test)]
mod tests {
    use airtcp_numbers::statistics::Mean;
    use airtcp_report::plot::Format;

    use super::*;

    fn chart(style: Style) -> Chart {
        let at = |x: f64, mean: f64| (x, Mean { mean, half_width: Some(2.0), samples: 30 });
        let curve = |name: &str, mean: f64| Curve {
            name: name.to_owned(),
            style,
            points: vec![at(0.0, mean), at(1.0, mean + 5.0)],
            paper: Vec::new(),
        };
        let tahoe = curve("Tahoe", 10.0).with_paper_values([(1.0, 30.0)]);
        Chart {
            title: "Fig. 5".to_owned(),
            x: chart::Axis::new("z in %", Scale::ValueRange),
            y: chart::Axis::new("packets", Scale::FromZero),
            curves: vec![tahoe, curve("Reno", 20.0)],
        }
    }

    #[test]
    fn picture_names_each_curve_and_paper_values() {
        let image = Format::Svg.render(&figure(&chart(Style::Line), "Pan et al.", Some(30)).draw()).unwrap();
        let svg = String::from_utf8(image).unwrap();
        for words in [
            "Fig. 5",
            "Pan et al.: means of 30 seeds with 95 % intervals",
            "z in %",
            "packets",
            "Tahoe",
            "Reno",
            "Tahoe (paper)",
        ] {
            assert!(svg.contains(&format!(">{words}<")), "no `{words}` in {svg}");
        }
    }

    #[test]
    fn y_axis_includes_paper_values() {
        let figure = figure(&chart(Style::Line), "", Some(30));
        let Axis { min, max, .. } = figure.panels[0].y;
        assert!(min == 0.0 && max > 30.0, "{min} to {max}");
    }

    #[test]
    fn bars_are_grouped_and_start_at_zero() {
        let figure = figure(&chart(Style::Bars), "", Some(30));
        let bars: Vec<_> = figure.panels[0].series.iter().filter(|series| series.class == "bar").collect();
        let places = bars.iter().map(|series| match &series.data {
            Data::Bars { bars, .. } => bars[0],
            other => panic!("{other:?}"),
        });
        let places: Vec<_> = places.collect();
        assert_eq!(places.len(), 2);
        assert!(places[0].0 < 0.0 && places[1].0 > 0.0, "{places:?}");
        assert!(places.iter().all(|(_, from, _)| *from == 0.0));
    }

    #[test]
    fn paper_values_are_drawn_above_all_bars() {
        let mut chart = chart(Style::Bars);
        chart.curves[1] = chart.curves[1].clone().with_paper_values([(0.0, 5.0)]);
        let figure = figure(&chart, "", Some(30));
        let series = &figure.panels[0].series;
        let (marks, others): (Vec<&Series>, Vec<&Series>) =
            series.iter().partition(|series| series.class == PAPER);
        assert_eq!(
            marks.iter().map(|series| series.colour).collect::<Vec<_>>(),
            [WHITE, BLACK, WHITE, BLACK]
        );
        assert!(
            series[..others.len()].iter().all(|series| series.class != PAPER),
            "the marks are drawn last"
        );
        let names: Vec<_> = marks.iter().filter_map(|series| series.name.as_deref()).collect();
        assert_eq!(names, [PAPER]);
    }
}
