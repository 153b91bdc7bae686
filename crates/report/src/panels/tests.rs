use airlink::scenario::Scenario;
use airtcp_analyze::trace::{AckSeen, DecisionSeen, Fate, Loss, Proof, Sending, SentSegment};
use airtcp_sim::world::World;
use airtcp_testkit::markup::well_formed;
use airwire::Cause;
use airwire::time::Duration;

use super::traced;
use super::*;
use crate::Format;
use crate::plot::draw::{Item, Point, Step};
use crate::plot::palette::Mark;
use crate::plot::tests::svg;

const SECOND: Offset = 1_000_000_000;

fn segment(at: Offset, start: u64, sending: Sending, fate: Fate) -> SentSegment {
    SentSegment { at, number: 1, start, end: start + 1000, sending, dupacks: 0, in_flight: 1, fate }
}

/// One segment per second. Segments 3, 5, 7 and 9 are retransmitted, each for a different reason.
fn scene() -> Trace {
    let mut trace = Trace { name: "a → b".to_owned(), ..Trace::default() };
    for index in 0..10 {
        let (at, start) = (index * SECOND, index as u64 * 1000);
        let fate = match index {
            3 => Fate::Lost(Loss::Airlink(Cause::Congestion)),
            5 => Fate::Lost(Loss::Airlink(Cause::Radio)),
            _ => Fate::Unknown,
        };
        trace.segments.push(segment(at, start, Sending::New, fate));
        let again = match index {
            3 => Some((Sending::Fast, Fate::Unknown)),
            5 => Some((Sending::Timeout, Fate::Lost(Loss::Between { before: 1 }))),
            7 => Some((Sending::Tail, Fate::Spurious { proof: Proof::Dsack })),
            9 => Some((Sending::Probe, Fate::Unknown)),
            _ => None,
        };
        trace.segments.extend(again.map(|(sending, fate)| segment(at + SECOND / 2, start, sending, fate)));
        let (ack, sack) = (start + 1000, Vec::new());
        let duplicate = index == 4;
        trace.acks.push(AckSeen { at: at + SECOND / 4, number: 2, ack, edge: ack + 3000, duplicate, sack });
    }
    trace
}

fn drawn(trace: &Trace, pictures: &[Picture], range: Range) -> String {
    let text = svg(&figure(trace, pictures, &EmulatedPath::default(), range).expect("the figure has panels"));
    well_formed(&text);
    text
}

/// Number of strokes in all groups with the class.
fn strokes(text: &str, class: &str) -> usize {
    let opening = format!("<g class=\"{class}\">");
    text.split(&opening).skip(1).map(|group| group.split("</g>").next().unwrap().matches('M').count()).sum()
}

#[test]
fn retransmissions_and_losses_are_drawn_by_cause() {
    let text = drawn(&scene(), &[Picture::TimeSequence], Range::default());
    assert_eq!(strokes(&text, "new"), 10);
    // A stroke for the extent, and a mark.
    for (class, expected) in [("fast", 2), ("timeout", 2), ("tail", 2), ("probe", 2), ("spurious", 1)] {
        assert_eq!(strokes(&text, class), expected, "{class}");
    }
    // A cross consists of two strokes, and of three if the place of the loss is known.
    for (class, expected) in [("lost-congestion", 3), ("lost-radio", 3), ("lost-between", 2)] {
        assert_eq!(strokes(&text, class), expected, "{class}");
    }
    assert_eq!(strokes(&text, "duplicate-ack"), 1);
    for words in ["fast retransmission (1)", "lost before capture 2 (1)", "spurious (1)"] {
        assert!(text.contains(words), "{words}");
    }
}

#[test]
fn legend_counts_retransmissions_and_lists_syn_separately() {
    let mut trace = scene();
    let text = drawn(&trace, &[Picture::TimeSequence], Range::default());
    assert!(text.contains("after a timeout (1)"));
    // A hundred marks in one place look like one; the legend shows the number.
    for index in 0..100 {
        trace.segments.push(segment(7 * SECOND + index, 7000, Sending::Timeout, Fate::Unknown));
    }
    trace.segments.push(segment(SECOND / 2, 0, Sending::Timeout, Fate::Unknown));
    let text = drawn(&trace, &[Picture::TimeSequence], Range::default());
    assert!(text.contains("after a timeout (101, and the SYN)"));
}

/// The content of the first group with this class.
fn group<'a>(text: &'a str, class: &str) -> &'a str {
    let opening = format!("<g class=\"{class}\">");
    text.split(&opening).nth(1).unwrap().split("</g>").next().unwrap()
}

#[test]
fn legend_names_decision_marks_and_colours_match_page() {
    let mut trace = scene();
    for (index, what) in ["timeout", "window", "opened", "lost", "judged", "whatever"].into_iter().enumerate()
    {
        trace.decisions.push(DecisionSeen {
            at: index as Offset * SECOND,
            by: "test".to_owned(),
            what: what.to_owned(),
            text: what.to_owned(),
            about: None,
        });
    }
    let text = drawn(&trace, &[Picture::TimeSequence], Range::default());
    let legend = group(&text, "legend");
    for words in [
        "timer expired",
        "window reduced",
        "window increased",
        "declared lost",
        "loss attributed",
        "other decision",
    ] {
        assert!(legend.contains(words), "{words} in {legend}");
    }
    let page = crate::html::Page::default().html();
    for class in
        ["new", "fast", "timeout", "tail", "probe", "lost-radio", "lost-congestion", "spurious", "ack"]
    {
        let path = group(&text, class);
        let colour = &path[path.find("=\"#").unwrap() + 2..][..7];
        let name = format!("\"name\":\"{class}\"");
        let look = page.split('{').find(|look| look.contains(&name)).unwrap().split('}').next().unwrap();
        assert!(look.contains(&format!("\"light\":\"{colour}\"")), "{class} is {colour}, on the page {look}");
    }
}

#[test]
fn legend_lists_only_visible_marks() {
    let early = Range { from: None, to: Some(3.2), fold: false };
    let text = drawn(&scene(), &[Picture::TimeSequence], early);
    assert_eq!((strokes(&text, "new"), strokes(&text, "fast")), (4, 0));
    assert!(!text.contains("fast retransmission") && !text.contains("SACK"));
    assert!(
        figure(
            &scene(),
            &Picture::ALL,
            &EmulatedPath::default(),
            Range { from: Some(9.0), to: Some(8.0), fold: false }
        )
        .is_none()
    );
    assert!(figure(&Trace::default(), &Picture::ALL, &EmulatedPath::default(), Range::default()).is_none());
}

#[test]
fn time_axis_ends_at_last_new_ack() {
    let mut trace = scene();
    let end = View::of(&trace, Range::default()).unwrap().to;
    let last = trace.acks.last().unwrap().clone();
    trace.acks.push(AckSeen { at: 600 * SECOND, ..last });
    assert_eq!(View::of(&trace, Range::default()).unwrap().to, end);
}

#[test]
fn distant_receive_window_does_not_compress_data() {
    let mut trace = scene();
    assert!(drawn(&trace, &[Picture::TimeSequence], Range::default()).contains("window</text>"));
    trace.acks.iter_mut().for_each(|ack| ack.edge += 10_000_000);
    assert!(drawn(&trace, &[Picture::TimeSequence], Range::default()).contains("window (above the graph)"));
}

#[test]
fn goodput_integrates_to_acknowledged_bytes() {
    let trace = scene();
    let view = View::of(&trace, Range { from: Some(0.0), to: Some(10.0), fold: false }).unwrap();
    let panel = goodput::panel(&trace, view, 100.0).unwrap();
    let Some(crate::plot::Data::Steps { points, .. }) =
        panel.series.iter().find(|series| series.class == "goodput").map(|series| &series.data)
    else {
        panic!("goodput is drawn in steps");
    };
    let octets: f64 = points.windows(2).map(|pair| pair[0].1 * (pair[1].0 - pair[0].0) / 8.0).sum();
    assert!((octets - 10_000.0).abs() < 1e-6, "{octets}");
}

#[test]
fn virtual_flow_fills_all_trace_panels() {
    let scenario = Scenario::source("sifest-heavy").unwrap();
    let mut world = World::one_flow(&scenario, "newreno", 150_000, 3).unwrap();
    assert!(world.run_to_end(Duration::from_secs(3600)).unwrap());
    let trace = traced::trace(&mut world);
    let text = drawn(&trace, &Picture::ALL, Range::default());
    assert_eq!(text.matches("<g class=\"panel\">").count(), 4);
    for class in ["new", "fast", "timeout", "lost-radio", "ack", "cwnd", "in-flight", "rtt-karn", "goodput"] {
        assert!(strokes(&text, class) > 0, "{class}");
    }
    assert!(text.contains(": timeout</text>"));
}

#[test]
fn folded_silence_becomes_break_with_duration() {
    let mut trace = scene();
    let last =
        trace.segments.iter().map(|segment| segment.at).chain(trace.acks.iter().map(|ack| ack.at)).max();
    let later = last.unwrap() + 60_000_000_000;
    trace.segments.push(SentSegment { at: later, ..trace.segments[0].clone() });
    let drawn = |fold: bool| {
        let range = Range { fold, ..Range::default() };
        let figure = figure(&trace, &[Picture::TimeSequence], &EmulatedPath::default(), range).unwrap();
        String::from_utf8(Format::Svg.render(&figure.draw()).unwrap()).unwrap()
    };
    assert!(!drawn(false).contains("breaks"));
    let folded = drawn(true);
    assert!(folded.contains("class=\"breaks\"") && folded.contains(">60 s</text>"), "{folded}");
}

/// The lowest and highest x of each stroke in groups with this class.
fn extents(items: &[Item], class: &str, inside: bool, found: &mut Vec<(f64, f64)>) {
    for item in items {
        match item {
            Item::Group { class: name, items, .. } => extents(items, class, inside || *name == class, found),
            Item::Shape(shape) if inside => {
                for step in &shape.steps {
                    match *step {
                        Step::Move(Point { x, .. }) => found.push((x, x)),
                        Step::Circle(Point { x, .. }, r) => found.push((x - r, x + r)),
                        Step::Line(Point { x, .. }) => {
                            let (from, to) = found.last_mut().expect("a stroke begins with a move");
                            (*from, *to) = (from.min(x), to.max(x));
                        }
                        Step::Close => {}
                    }
                }
            }
            Item::Shape(_) | Item::Text(_) => {}
        }
    }
}

#[test]
fn marks_near_silence_do_not_overlap_break_edges() {
    let mut trace = scene();
    // The segment is lost and retransmitted after each silence, so there are also marks between two breaks.
    for again in 0..4 {
        let at = (20 + 30 * again) * SECOND;
        let unneeded = Fate::Spurious { proof: Proof::Dsack };
        trace.segments.push(segment(at, 9000, Sending::Timeout, unneeded));
    }
    let range = Range { fold: true, ..Range::default() };
    let figure = figure(&trace, &[Picture::TimeSequence], &EmulatedPath::default(), range).unwrap();
    let items = figure.draw().items;
    let of = |class| {
        let mut found = Vec::new();
        extents(&items, class, false, &mut found);
        found
    };
    let (breaks, timeouts, rings) = (of("breaks"), of("timeout"), of("spurious"));
    // The gap and its two edges.
    assert_eq!(breaks.len(), 4 * 3, "{breaks:?}");
    let marks: Vec<_> = timeouts.iter().chain(&rings).filter(|(from, to)| from < to).collect();
    // The samples in the legend are in a group of their own.
    assert!(marks.len() > 2 * 4, "{marks:?}");
    for (from, to) in marks {
        let clear = breaks.iter().all(|(left, right)| to < left || from > right);
        assert!(clear, "a mark from {from} to {to}, breaks {breaks:?}");
    }
    assert!(rings.iter().all(|(from, to)| (to - from - 2.0 * Mark::Ring.radius()).abs() < 1e-9));
}

#[test]
fn goodput_panel_is_omitted_without_duration() {
    let mut trace = scene();
    assert!(drawn(&trace, &[Picture::Goodput], Range::default()).contains("rate (kbit/s)"));
    trace.segments.iter_mut().for_each(|segment| segment.at = 0);
    trace.acks.iter_mut().for_each(|ack| ack.at = 0);
    assert!(figure(&trace, &[Picture::Goodput], &EmulatedPath::default(), Range::default()).is_none());
}

#[test]
fn folded_picture_has_small_margins() {
    let mut trace = scene();
    trace.segments.push(segment(3600 * SECOND, 0, Sending::Timeout, Fate::Unknown));
    let view = View::of(&trace, Range { fold: true, ..Range::default() }).unwrap();
    // The ten seconds of the scene, and the visible remainder of the hour.
    assert!((-0.3..0.0).contains(&view.from) && view.to < 3600.3, "{view:?}");
}

#[test]
fn extreme_times_and_offsets_yield_finite_coordinates() {
    let day = 86_400 * SECOND;
    let times: [&[Offset]; 8] = [
        &[0],
        &[0, 0, 0],
        &[0, 1, 2],
        &[0, -3600 * SECOND, SECOND],
        &[20_000 * day, 20_000 * day + 1],
        &[0, 1, 50_000 * day, 50_000 * day + 1],
        &[Offset::MIN / 2, 0, Offset::MAX / 2],
        &[0, SECOND, 2 * SECOND, 3600 * SECOND, 7200 * SECOND],
    ];
    for at in times {
        for (first, step) in [(0, 0), (0, 1), (0, 1 << 40), (u64::from(u32::MAX) << 20, 1000)] {
            let mut trace = Trace { name: "strange".to_owned(), ..Trace::default() };
            for (index, at) in at.iter().enumerate() {
                let start = first + step * index as u64;
                trace.segments.push(segment(*at, start, Sending::New, Fate::Unknown));
                trace.segments.push(segment(*at, start, Sending::Timeout, Fate::Unknown));
                let ack = AckSeen {
                    at: *at,
                    number: 2,
                    ack: start,
                    edge: 0,
                    duplicate: true,
                    sack: vec![(start, 0)],
                };
                trace.acks.push(ack);
            }
            for fold in [false, true] {
                let range = Range { fold, ..Range::default() };
                let figure = figure(&trace, &Picture::ALL, &EmulatedPath::default(), range);
                let text = figure.map(|figure| svg(&figure)).unwrap_or_default();
                let numbers = !text.contains("NaN") && !text.contains("inf\"") && !text.contains("inf ");
                assert!(numbers, "{at:?} from {first} by {step}: {text}");
            }
        }
    }
}
