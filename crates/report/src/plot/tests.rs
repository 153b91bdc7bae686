use airtcp_testkit::markup::well_formed;

use super::axis::{Axis, Unit};
use super::draw::{Anchor, Dash, Item, Step, Text};
use super::figure::{Figure, Note, Panel, WIDTH};
use super::palette::{BLUE, GREY, Mark};
use super::*;

fn figure(series: Vec<Series>, x: Axis, notes: Vec<Note>) -> Figure {
    let y = Axis::around("octets", Unit::Octets, [0.0, 3e5]);
    let panel = || Panel { y: y.clone(), height: 150.0, series: series.clone(), notes: notes.clone() };
    Figure { title: "a < b & \"c\"".to_owned(), subtitle: String::new(), x, panels: vec![panel(), panel()] }
}

fn series(name: &str, data: Data) -> Series {
    Series { name: Some(name.to_owned()), class: "test", colour: BLUE, data }
}

fn time(to: f64) -> Axis {
    Axis::around("time", Unit::Seconds, [0.0, to])
}

pub(crate) fn svg(figure: &Figure) -> String {
    String::from_utf8(Format::Svg.render(&figure.draw()).unwrap()).unwrap()
}

fn note(milliseconds: i64, text: &str) -> Note {
    let text = text.to_owned();
    Note { at: milliseconds * 1_000_000, text, kind: "decided", colour: GREY, mark: Mark::Down }
}

/// Pseudo-random values in every kind of series.
fn busy(points: u32) -> Vec<Series> {
    let at = |index: u32| f64::from(index) * 1e-3;
    let value = |index: u32| f64::from(index.wrapping_mul(2_654_435_761) >> 8) / 56.0;
    let all = || (0..points).map(move |index| (at(index), value(index)));
    let wide = || all().map(|(x, y)| (x, y, y + 1500.0)).collect();
    vec![
        series("spans", Data::Spans { spans: vec![(1.0, 2.0)], opacity: 0.2 }),
        series("bars", Data::Bars { bars: wide(), width: 1.0 }),
        series("band", Data::Band { edges: wide(), opacity: 0.2 }),
        series("line", Data::Line { points: all().collect(), width: 1.0, dash: Dash::Long }),
        series("steps", Data::Steps { points: all().collect(), width: 1.0, dash: Dash::Solid }),
        series("dots", Data::Marks { points: all().collect(), mark: Mark::Dot, below: 0.0 }),
    ]
}

#[test]
fn equal_data_give_equal_files() {
    let make = |format: Format| format.render(&figure(busy(100), time(0.1), Vec::new()).draw()).unwrap();
    for format in Format::ALL {
        assert_eq!(make(format), make(format));
    }
}

#[test]
fn svg_with_special_characters_is_well_formed() {
    let notes = vec![note(1000, "<lost> & \"found\"")];
    let text = svg(&figure(busy(100), time(2.0), notes));
    well_formed(&text);
    assert!(text.contains("<title>a &lt; b &amp; &quot;c&quot;</title>") && text.contains("&lt;lost&gt;"));
    assert!(text.contains("width=\"170mm\""), "{}", &text[..300]);
}

#[test]
fn png_has_print_resolution() {
    let drawing = figure(busy(100), time(2.0), Vec::new()).draw();
    let file = Format::Png.render(&drawing).unwrap();
    let reader = ::png::Decoder::new(io::Cursor::new(&file)).read_info().unwrap();
    let info = reader.info();
    assert_eq!((info.width, info.height), (1928, (drawing.height * 3.0) as u32));
    assert_eq!(info.pixel_dims.unwrap().xppu, 11_339);
}

#[test]
fn series_is_drawn_in_its_colour() {
    let line =
        series("line", Data::Line { points: vec![(0.0, 0.0), (2.0, 3e5)], width: 2.0, dash: Dash::Solid });
    let coloured = |series: Vec<Series>| {
        let file = Format::Png.render(&figure(series, time(2.0), Vec::new()).draw()).unwrap();
        let mut reader = ::png::Decoder::new(io::Cursor::new(&file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        pixels.chunks(3).filter(|pixel| *pixel == [BLUE.0, BLUE.1, BLUE.2]).count()
    };
    assert_eq!(coloured(Vec::new()), 0);
    assert!(coloured(vec![line]) > 5000);
}

#[test]
fn bar_in_legend_does_not_touch_its_name() {
    for width in [1.0, 3.5, 6.0, 14.0, 30.0] {
        let bars = series("bars", Data::Bars { bars: vec![(1.0, 0.0, 1e5)], width });
        let drawing = figure(vec![bars], time(2.0), Vec::new()).draw();
        let legend = drawing.items.iter().find_map(|item| match item {
            Item::Group { class: "legend", items, .. } => Some(items),
            _ => None,
        });
        let (mut name, mut end) = (f64::NAN, f64::NEG_INFINITY);
        for item in legend.unwrap() {
            match item {
                Item::Text(text) => name = text.at.x,
                Item::Shape(shape) => {
                    let half = shape.stroke.as_ref().unwrap().width / 2.0;
                    let ends = shape.steps.iter().map(|step| match step {
                        Step::Move(at) | Step::Line(at) => at.x + half,
                        other => panic!("{other:?}"),
                    });
                    end = ends.fold(end, f64::max);
                }
                Item::Group { .. } => panic!("the legend has no groups"),
            }
        }
        assert!(end + 2.0 <= name, "bars of {width} end at {end}, the name begins at {name}");
    }
}

/// Random values are the worst case, because they cover every pixel.
#[test]
fn svg_size_grows_sublinearly_with_points() {
    let size = |points: u32| svg(&figure(busy(points), time(f64::from(points) * 1e-3), Vec::new())).len();
    let (small, large) = (size(2000), size(200_000));
    assert!(large < 2_500_000 && large < 20 * small, "{small} {large}");
}

#[test]
fn line_within_pixel_column_keeps_extremes() {
    let points = (0..1000).map(|index| (1.0 + f64::from(index) * 1e-9, if index == 500 { 3e5 } else { 1e5 }));
    let line = Data::Line { points: points.collect(), width: 1.0, dash: Dash::Solid };
    let text = svg(&figure(vec![series("line", line)], time(2.0), Vec::new()));
    let path = text.lines().find(|line| line.contains("stroke=\"#0072b2\"") && line.contains("M"));
    let data = text.split("<g class=\"test\">").nth(1).unwrap().lines().nth(1).unwrap();
    assert!(path.is_some() && data.contains('V') && data.len() < 200, "{data}");
}

#[test]
fn marks_outside_view_are_dropped_but_lines_kept() {
    let far = || vec![(-100.0, 1e5), (-50.0, 1e5), (1.0, 2e5), (50.0, 1e5), (100.0, 1e5)];
    let marks = Data::Marks { points: far(), mark: Mark::Disc, below: 0.0 };
    let line = Data::Line { points: far(), width: 1.0, dash: Dash::Solid };
    let text = svg(&figure(vec![series("marks", marks), series("line", line)], time(2.0), Vec::new()));
    let groups: Vec<&str> =
        text.split("<g class=\"test\">").skip(1).map(|group| group.lines().nth(1).unwrap()).collect();
    assert_eq!(groups[0].matches('M').count(), 1);
    assert_eq!(groups[1].matches('L').count(), 2, "{}", groups[1]);
}

#[test]
fn crowded_notes_lose_text_but_keep_marks() {
    let mut notes: Vec<Note> = (0..200).map(|index| note(index * 10, "window: grows")).collect();
    notes.push(note(1001, "restart: timeout"));
    let text = svg(&figure(Vec::new(), time(2.0), notes));
    let strip = text.split("<g class=\"decisions\">").nth(1).unwrap();
    let words = strip.split("</g>").next().unwrap();
    // The rarest note always gets its text.
    assert!(words.contains("restart: timeout"));
    assert!((4..40).contains(&words.matches("window: grows").count()));
    assert_eq!(words.matches("zM").count(), 200);
}

#[test]
fn format_is_derived_from_file_extension() {
    assert_eq!(Format::of("a/b.PNG".as_ref()), Some(Format::Png));
    assert_eq!(Format::of("a.gif".as_ref()), None);
    assert_eq!((Format::of("svg".as_ref()), Format::of("a.pdf".as_ref())), (None, Some(Format::Pdf)));
}

fn texts<'a>(items: &'a [Item], found: &mut Vec<&'a Text>) {
    for item in items {
        match item {
            Item::Group { items, .. } => texts(items, found),
            Item::Text(text) => found.push(text),
            Item::Shape(_) => {}
        }
    }
}

#[test]
fn axis_labels_fit_inside_picture_without_overlap() {
    for (min, max) in [(0.0, 100.0), (-2e6, 2.91e8), (1e9, 1e9 + 1.0), (287_654_393.0, 287_654_395.0)] {
        let axis = Axis { min, max, ..time(1.0) };
        let drawing = figure(Vec::new(), axis, Vec::new()).draw();
        let mut all = Vec::new();
        texts(&drawing.items, &mut all);
        let lowest = all.iter().map(|text| text.at.y).fold(0.0, f64::max);
        // The axis caption is the lowest text; the labels are above it.
        let labels: Vec<_> = all
            .iter()
            .filter(|text| text.anchor == Anchor::Middle && text.at.y < lowest && text.at.y > lowest - 20.0)
            .map(|text| (text.at.x, font::width(&text.text, text.size) / 2.0))
            .collect();
        assert!(labels.len() >= 2, "{min} to {max}: {labels:?}");
        assert!(
            labels.iter().all(|(x, half)| x + half < WIDTH && x - half > 0.0),
            "{min} to {max}: {labels:?}"
        );
        let apart = labels.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0 - pair[1].1);
        assert!(apart, "{min} to {max}: {labels:?}");
    }
}

#[test]
fn long_title_is_shrunk_before_truncation() {
    let [one, other] = ["ffff", "eeee"].map(|part| [part; 8].join(":"));
    let name = format!("[{one}]:65535 → [{other}]:65534");
    let named = |title: String| svg(&Figure { title, ..figure(Vec::new(), time(1.0), Vec::new()) });
    assert!(named(name.clone()).contains(&format!(">{name}</text>")));
    let cut = named("much longer ".repeat(20));
    assert!(cut.contains("…</text>"), "{}", &cut[..800]);
}

/// The horizontal lengths of the strokes in groups with this class.
fn lengths(items: &[Item], class: &str, inside: bool, found: &mut Vec<f64>) {
    for item in items {
        match item {
            Item::Group { class: name, items, .. } => lengths(items, class, inside || *name == class, found),
            Item::Shape(shape) if inside => {
                if let [Step::Move(from), Step::Line(to)] = shape.steps[..] {
                    found.push(to.x - from.x);
                }
            }
            Item::Shape(_) | Item::Text(_) => {}
        }
    }
}

#[test]
fn single_value_line_is_visible() {
    for points in [vec![(1.0, 1e5)], vec![(1.0, 1e5); 30]] {
        let data = Data::Steps { points, width: 1.0, dash: Dash::Solid };
        let drawing = figure(vec![series("one", data)], time(2.0), Vec::new()).draw();
        let mut found = Vec::new();
        lengths(&drawing.items, "test", false, &mut found);
        // One line in each panel.
        assert!(found.len() == 2 && found.iter().all(|length| *length > 2.0), "{found:?}");
    }
}
