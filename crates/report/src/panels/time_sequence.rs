//! Sequence numbers over time: what was sent and why, what was acknowledged, what was lost.

use std::collections::BTreeMap;

use airtcp_analyze::trace::{AckSeen, Fate, Loss, Sending, SentSegment, Trace};
use airwire::Cause;

use super::{View, seconds};
use crate::plot::axis::{Axis, Unit};
use crate::plot::draw::{Colour, Dash};
use crate::plot::figure::{Note, Panel};
use crate::plot::palette::{BLACK, BLUE, GREEN, GREY, Mark, ORANGE, PURPLE, SKY, VERMILION};
use crate::plot::{Data, Series};

/// How retransmissions of one kind are drawn.
struct SendingStyle {
    sending: Sending,
    name: &'static str,
    class: &'static str,
    colour: Colour,
    mark: Mark,
}

/// In the order of the legend.
const STYLES: [SendingStyle; 5] = [
    SendingStyle {
        sending: Sending::Fast,
        name: "fast retransmission",
        class: "fast",
        colour: BLUE,
        mark: Mark::Up,
    },
    SendingStyle {
        sending: Sending::Timeout,
        name: "after a timeout",
        class: "timeout",
        colour: VERMILION,
        mark: Mark::Square,
    },
    SendingStyle {
        sending: Sending::Tail,
        name: "tail probe",
        class: "tail",
        colour: GREEN,
        mark: Mark::Diamond,
    },
    SendingStyle {
        sending: Sending::Probe,
        name: "window probe",
        class: "probe",
        colour: GREY,
        mark: Mark::Plus,
    },
    SendingStyle {
        sending: Sending::Unexplained,
        name: "sent again, unexplained",
        class: "unexplained",
        colour: PURPLE,
        mark: Mark::OpenSquare,
    },
];

pub(super) fn panel(trace: &Trace, view: View, height: f64) -> Option<Panel> {
    let shown: Vec<&SentSegment> =
        trace.segments.iter().filter(|segment| view.contains(seconds(segment.at))).collect();
    let acks: Vec<(f64, f64)> = trace.acks.iter().map(|ack| (seconds(ack.at), ack.ack as f64)).collect();
    if shown.is_empty() && !acks.iter().any(|(at, _)| view.contains(*at)) {
        return None;
    }
    let sent = shown.iter().flat_map(|segment| [segment.start as f64, segment.end as f64]);
    let inside = trace.acks.iter().filter(|ack| view.contains(seconds(ack.at)));
    let blocks = inside.flat_map(|ack| ack.sack.iter().map(|(_, to)| *to as f64));
    let mut y = Axis::around("sequence number", Unit::Octets, sent.chain(view.values(&acks)).chain(blocks));
    let edges: Vec<(f64, f64)> = trace.acks.iter().map(|ack| (seconds(ack.at), ack.edge as f64)).collect();
    let lowest_edge = view.values(&edges).fold(f64::INFINITY, f64::min);
    let highest_edge = view.values(&edges).fold(0.0, f64::max);
    // A window much larger than what is sent would press that flat.
    if highest_edge <= y.min + (y.max - y.min) * 1.3 {
        y.max = y.max.max(highest_edge + (y.max - y.min) * 0.03);
    }
    let edge = if lowest_edge > y.max { "receiver's window (further up)" } else { "receiver's window" };
    let mut series = vec![
        Series {
            name: Some("idle until a timeout".to_owned()),
            class: "idle",
            colour: GREY,
            data: Data::Spans {
                spans: trace
                    .idle
                    .iter()
                    .map(|idle| (seconds(idle.from), seconds(idle.to)))
                    .filter(|(from, to)| *to >= view.from && *from <= view.to)
                    .collect(),
                opacity: 0.16,
            },
        },
        Series {
            name: Some(edge.to_owned()),
            class: "window",
            colour: ORANGE,
            data: Data::Steps { points: edges, width: 1.2, dash: Dash::Long },
        },
        Series {
            name: Some("acknowledged".to_owned()),
            class: "ack",
            colour: GREEN,
            data: Data::Steps { points: acks, width: 1.3, dash: Dash::Solid },
        },
    ];
    series.extend(answers(&trace.acks, view));
    series.extend(segments(&shown));
    let notes = trace
        .decisions
        .iter()
        .map(|decision| Note { at: decision.at, text: format!("{}: {}", decision.by, decision.what) });
    Some(Panel { y, height, series, notes: notes.collect() })
}

fn answers(acks: &[AckSeen], view: View) -> [Series; 2] {
    let shown = || acks.iter().filter(move |ack| view.contains(seconds(ack.at)));
    let duplicates = shown().filter(|ack| ack.duplicate);
    let blocks =
        shown().flat_map(|ack| ack.sack.iter().map(|(from, to)| (seconds(ack.at), *from as f64, *to as f64)));
    [
        Series {
            name: Some("duplicate ACK".to_owned()),
            class: "duplicate-ack",
            colour: GREEN,
            data: Data::Marks {
                points: duplicates.map(|ack| (seconds(ack.at), ack.ack as f64)).collect(),
                mark: Mark::Tick,
                below: 0.0,
            },
        },
        Series {
            name: Some("SACK".to_owned()),
            class: "sack",
            colour: SKY,
            data: Data::Bars { bars: blocks.collect(), width: 1.0 },
        },
    ]
}

fn bars<'a>(segments: impl Iterator<Item = &'a SentSegment>) -> Vec<(f64, f64, f64)> {
    segments.map(|segment| (seconds(segment.at), segment.start as f64, segment.end as f64)).collect()
}

fn middles<'a>(segments: impl Iterator<Item = &'a SentSegment>) -> Vec<(f64, f64)> {
    bars(segments).into_iter().map(|(at, start, end)| (at, f64::midpoint(start, end))).collect()
}

fn segments(shown: &[&SentSegment]) -> Vec<Series> {
    let of = |sending| shown.iter().copied().filter(move |segment| segment.sending == sending);
    let mut series = vec![Series {
        name: Some("sent".to_owned()),
        class: "new",
        colour: BLACK,
        data: Data::Bars { bars: bars(of(Sending::New)), width: 1.3 },
    }];
    for SendingStyle { sending, name, class, colour, mark } in STYLES {
        // Its extent, and a mark, which is seen even if the extent is small.
        series.push(Series {
            name: None,
            class,
            colour,
            data: Data::Bars { bars: bars(of(sending)), width: 1.8 },
        });
        series.push(Series {
            name: Some(name.to_owned()),
            class,
            colour,
            data: Data::Marks { points: middles(of(sending)), mark, below: 0.0 },
        });
    }
    let unneeded = shown.iter().copied().filter(|segment| matches!(segment.fate, Fate::Unneeded { .. }));
    series.push(Series {
        name: Some("was not needed".to_owned()),
        class: "spurious",
        colour: PURPLE,
        data: Data::Marks { points: middles(unneeded), mark: Mark::Ring, below: 0.0 },
    });
    series.extend(losses(shown));
    series
}

fn losses(shown: &[&SentSegment]) -> Vec<Series> {
    let mut kinds: BTreeMap<usize, (Loss, Vec<&SentSegment>)> = BTreeMap::new();
    for segment in shown {
        if let Fate::Lost(loss) = segment.fate {
            let order = match loss {
                Loss::Airlink(Cause::Congestion) => 0,
                Loss::Airlink(Cause::Radio) => 1,
                Loss::Between { before } => 2 + before,
            };
            kinds.entry(order).or_insert((loss, Vec::new())).1.push(segment);
        }
    }
    let mut series = Vec::new();
    for (loss, segments) in kinds.into_values() {
        let (name, class, colour, mark) = match loss {
            Loss::Airlink(Cause::Congestion) => {
                ("lost in a queue".to_owned(), "lost-congestion", ORANGE, Mark::Plus)
            }
            Loss::Airlink(Cause::Radio) => {
                ("lost on the radio link".to_owned(), "lost-radio", BLACK, Mark::Cross)
            }
            Loss::Between { before } => {
                (format!("lost before capture {}", before + 1), "lost-between", BLACK, Mark::Cross)
            }
        };
        // A lost retransmission has its mark below the one that says why it was sent.
        let (first, again): (Vec<&SentSegment>, Vec<&SentSegment>) =
            segments.into_iter().partition(|segment| segment.sending == Sending::New);
        let mut name = Some(name);
        for (segments, below) in [(first, 0.0), (again, 7.0)] {
            if !segments.is_empty() {
                let data = Data::Marks { points: middles(segments.into_iter()), mark, below };
                series.push(Series { name: name.take(), class, colour, data });
            }
        }
    }
    series
}
