use airtcp_numbers::statistics::{Mean, Median};
use airtcp_report::plot::Format;
use airtcp_sim::sweep::labels::Labels;
use airtcp_sim::sweep::summary::Values;
use airtcp_testkit::markup::well_formed;

use super::*;

fn svg(figure: &Figure) -> String {
    String::from_utf8(Format::Svg.render(&figure.draw()).unwrap()).unwrap()
}

/// Returns the lines of two recipes over three loss rates, with three runs each.
fn lines() -> Vec<Line> {
    let line = |recipe: &str, loss: &str, mean: f64| Line {
        point: Labels(vec![
            ("recipe".to_owned(), recipe.to_owned()),
            ("air.down.per".to_owned(), loss.to_owned()),
        ]),
        profiles: vec!["default".to_owned()],
        runs: 3,
        notices: std::collections::BTreeMap::new(),
        numbers: vec![Mean::of(&[mean * 0.9, mean, mean * 1.1]).map(|it| Values {
            mean: it,
            median: Median { median: mean, interval: None, quartiles: (mean * 0.95, mean * 1.05) },
            against: None,
        })],
    };
    let rates = [("0.1%", 3e5), ("1%", 2e5), ("10%", 1e5)];
    let of = |recipe: &'static str, factor: f64| rates.map(|(rate, mean)| line(recipe, rate, mean * factor));
    [of("reno", 1.0), of("newreno", 1.2)].concat()
}

fn comparison() -> PictureSpec {
    PictureSpec {
        title: "what losses cost".to_owned(),
        about: "over leo, 3 runs each".to_owned(),
        kind: Kind::Means("air.down.per".to_owned()),
        y: "goodput".parse().unwrap(),
        captions: Captions::default(),
        by: Some("recipe".to_owned()),
        only: Vec::new(),
        log_x: true,
        log_y: false,
        from_data: false,
    }
}

fn figure_error(change: impl FnOnce(&mut PictureSpec)) -> String {
    let mut comparison = comparison();
    change(&mut comparison);
    figure(&lines(), &[], &comparison).unwrap_err().to_string()
}

#[test]
fn figure_has_line_intervals_and_marks_per_value() {
    let figure = figure(&lines(), &[], &comparison()).unwrap();
    let text = svg(&figure);
    well_formed(&text);
    assert_eq!(text.matches("<g class=\"interval\">").count(), 2);
    assert_eq!(text.matches("<g class=\"mean\">").count(), 4);
    for words in [">reno<", ">newreno<", "goodput of all flows (kbit/s)", "air.down.per (%)", ">0.1<", ">10<"]
    {
        assert!(text.contains(words), "{words}");
    }
    for words in ["over leo, 3 runs each", "bars for their 95 % confidence intervals", "one line per recipe"]
    {
        assert!(text.contains(words), "{words}");
    }
    // Intervals are below the lines.
    let last_bar = text.rfind("class=\"interval\"").unwrap();
    assert!(last_bar < text.find("class=\"mean\"").unwrap());
}

#[test]
fn intervals_use_student_t() {
    let figure = figure(&lines(), &[], &comparison()).unwrap();
    let Data::Bars { bars, width: wide } = &figure.panels[0].series[0].data else {
        panic!("the series consists of bars")
    };
    let (x, low, high) = bars[0];
    let half = Mean::of(&[2.7e5, 3e5, 3.3e5]).unwrap().half_width.unwrap();
    assert!((low - (3e5 - half)).abs() < 1e-3 && (high - (3e5 + half)).abs() < 1e-3);
    let Data::Bars { bars, width: narrow } = &figure.panels[0].series[1].data else {
        panic!("the series consists of bars")
    };
    assert_eq!((x, bars[0].0), (0.1, 0.1), "points of all lines are exactly at their numbers");
    assert!(wide > narrow, "the interval that is drawn first remains visible");
}

#[test]
fn y_axis_starts_at_zero_unless_from_data() {
    let lines: Vec<Line> =
        lines().into_iter().filter(|line| line.point.of("air.down.per") != Some("10%")).collect();
    let axis = |from_data| {
        figure(&lines, &[], &PictureSpec { from_data, ..comparison() }).unwrap().panels[0].y.clone()
    };
    assert_eq!(axis(false).min, 0.0);
    // The lowest end of an interval is about 1.5e5.
    assert!((1e5..2e5).contains(&axis(true).min), "{:?}", axis(true));
}

#[test]
fn bars_on_category_axis_do_not_overlap() {
    let by_name = PictureSpec {
        kind: Kind::Means("recipe".to_owned()),
        by: Some("air.down.per".to_owned()),
        log_x: false,
        ..comparison()
    };
    let figure = figure(&lines(), &[], &by_name).unwrap();
    let places: Vec<f64> = figure.panels[0]
        .series
        .iter()
        .filter_map(|series| match &series.data {
            Data::Bars { bars, .. } => Some(bars[0].0),
            _ => None,
        })
        .collect();
    assert!(places.len() == 3 && places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?}");
}

#[test]
fn undrawable_comparison_reports_valid_choices() {
    let text = figure_error(|it| it.kind = Kind::Means("per".to_owned()));
    assert!(text.contains("no axis `per`") && text.contains("recipe, air.down.per"), "{text}");
    let text = figure_error(|it| it.by = None);
    assert!(text.contains("--only recipe=reno") && text.contains("--by"), "{text}");
    let text = figure_error(|it| it.only = vec![("recipe".to_owned(), "sack".to_owned())]);
    assert!(text.contains("no value `sack`") && text.contains("reno, newreno"), "{text}");
    let text = figure_error(|it| {
        (it.kind, it.by) = (Kind::Means("recipe".to_owned()), Some("air.down.per".to_owned()))
    });
    assert!(text.contains("above zero"), "{text}");
    let mut nothing = lines();
    nothing.iter_mut().for_each(|line| line.numbers = vec![None]);
    let text = figure(&nothing, &[], &comparison()).unwrap_err().to_string();
    assert!(text.contains("`goodput`") && text.contains("took, "), "{text}");
}

#[test]
fn comparison_can_be_limited_to_one_value() {
    let only = vec![("recipe".to_owned(), "newreno".to_owned())];
    let figure = figure(&lines(), &[], &PictureSpec { by: None, only, ..comparison() }).unwrap();
    assert_eq!(figure.panels[0].series.len(), 3);
    assert!(figure.subtitle.contains("recipe = newreno"));
}

#[test]
fn line_skips_points_without_numbers() {
    let mut lines = lines();
    lines[1].numbers = vec![None];
    let figure = figure(&lines, &[], &comparison()).unwrap();
    let longest = figure.panels[0].series.iter().filter_map(|series| match &series.data {
        Data::Line { points, .. } => Some(points.len()),
        _ => None,
    });
    assert_eq!(longest.collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn axis_values_parse_with_units() {
    for (text, value, quantity) in [
        ("1%", 1.0, Quantity::Percent),
        ("150ms", 0.15, Quantity::Seconds),
        ("384kbit", 384e3, Quantity::BitPerSecond),
        ("1.5 Mbit", 1.5e6, Quantity::BitPerSecond),
        ("64Ki", 65_536.0, Quantity::Bytes),
        ("-3", -3.0, Quantity::Plain),
        ("1e-5", 1e-5, Quantity::Plain),
    ] {
        let number = Number::parse(text).unwrap();
        assert!(
            (number.value - value).abs() <= value.abs() * 1e-12 && number.quantity == quantity,
            "{text}: {number:?}"
        );
    }
    for text in ["", "reno", "12 parrots", "nan", "inf", "1.2.3ms"] {
        assert_eq!(Number::parse(text), None, "{text}");
    }
}

/// The runs of both recipes without loss rates: a bimodal goodput, and one that is always the same.
fn runs() -> Vec<Runs> {
    let lines = lines();
    let of = |line: &Line| match line.point.of("recipe") {
        Some("reno") => vec![1e5, 9e5, 1e5, 8e5],
        _ => vec![4e5; 3],
    };
    lines.iter().map(|line| (line.point.clone(), of(line))).collect()
}

#[test]
fn boxes_show_quartiles_median_and_extremes() {
    let boxes = PictureSpec { kind: Kind::Boxes("air.down.per".to_owned()), log_x: false, ..comparison() };
    let figure = figure(&lines(), &runs(), &boxes).unwrap();
    let [whiskers, quartiles, medians] = &figure.panels[0].series[..3] else { panic!("too few series") };
    let Data::Bars { bars: whiskers, .. } = &whiskers.data else { panic!("{whiskers:?}") };
    let Data::Bars { bars: quartiles, .. } = &quartiles.data else { panic!("{quartiles:?}") };
    let Data::Marks { points: medians, .. } = &medians.data else { panic!("{medians:?}") };
    assert_eq!((whiskers[0].1, whiskers[0].2), (1e5, 9e5));
    assert_eq!((quartiles[0].1, quartiles[0].2), (1e5, 8.25e5));
    assert_eq!(medians[0].1, 4.5e5);
    assert_eq!(figure.panels[0].series.len(), 6, "three series for each recipe");
    well_formed(&svg(&figure));
}

#[test]
fn ecdf_steps_at_each_run_up_to_one() {
    let only = vec![("air.down.per".to_owned(), "1%".to_owned())];
    let ecdf = PictureSpec { kind: Kind::Ecdf, log_x: false, only, ..comparison() };
    let figure = figure(&lines(), &runs(), &ecdf).unwrap();
    let Data::Steps { points, .. } = &figure.panels[0].series[0].data else { panic!("no steps") };
    assert_eq!(points[..], [(1e5, 0.0), (1e5, 0.25), (1e5, 0.5), (8e5, 0.75), (9e5, 1.0)]);
    assert_eq!(figure.panels[0].series.len(), 2);
    assert!(figure.x.caption.contains("goodput") && figure.panels[0].y.max == 1.0);
}

#[test]
fn captions_and_legend_can_be_set() {
    let captions = Captions {
        x: Some("loss rate".to_owned()),
        y: Some("Goodput".to_owned()),
        legend: vec![("reno".to_owned(), "Reno (1990)".to_owned())],
    };
    let text = svg(&figure(&lines(), &[], &PictureSpec { captions, ..comparison() }).unwrap());
    for part in [">loss rate<", ">Goodput (kbit/s)<", ">Reno (1990)<", ">newreno<"] {
        assert!(text.contains(part), "{part}");
    }
    let legend = vec![("sack".to_owned(), "SACK".to_owned())];
    let captions = Captions { legend, ..Captions::default() };
    let error = figure(&lines(), &[], &PictureSpec { captions, ..comparison() }).unwrap_err().to_string();
    assert!(error.contains("no value `sack`") && error.contains("reno, newreno"), "{error}");
}
