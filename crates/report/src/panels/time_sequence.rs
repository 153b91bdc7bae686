//! Sequence numbers over time: segments and why they were sent, ACKs, and losses.

use std::collections::BTreeMap;

use airtcp_analyze::trace::{AckSeen, Fate, Loss, Sending, SentSegment, Trace};
use airwire::Cause;

use super::{View, seconds};
use crate::looks::{self, Look};
use crate::plot::axis::{Axis, Unit};
use crate::plot::figure::{Note, Panel};
use crate::plot::{Data, Series};

/// The looks of retransmissions, in the order of the legend and of drawing. Squares come before triangles,
/// because a square would hide a triangle.
const RETRANSMISSIONS: [(Sending, Look); 5] = [
    (Sending::Timeout, looks::TIMEOUT),
    (Sending::Fast, looks::FAST),
    (Sending::Tail, looks::TAIL),
    (Sending::Probe, looks::PROBE),
    (Sending::Unexplained, looks::UNEXPLAINED),
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
    // The axis extends to the window only if that does not compress the data.
    if highest_edge <= y.min + (y.max - y.min) * 1.3 {
        y.max = y.max.max(highest_edge + (y.max - y.min) * 0.03);
    }
    let above = if lowest_edge > y.max { " (above the graph)" } else { "" };
    let spans = trace
        .idle
        .iter()
        .map(|idle| (seconds(idle.from), seconds(idle.to)))
        .filter(|(from, to)| *to >= view.from && *from <= view.to)
        .collect();
    let window = looks::WINDOW.steps(edges, 1.2);
    let mut series = vec![
        looks::IDLE.series(Data::Spans { spans, opacity: 0.16 }),
        Series { name: Some(format!("{}{above}", looks::WINDOW.label)), ..window },
        looks::ACK.steps(acks, 1.3),
    ];
    series.extend(ack_series(&trace.acks, view));
    series.extend(segments(&shown));
    let notes = trace.decisions.iter().map(|decision| {
        let Look { label, colour, sign, .. } = looks::decision(&decision.what);
        let text = format!("{}: {}", decision.by, decision.what);
        Note { at: decision.at, text, kind: label, colour, mark: sign.mark() }
    });
    Some(Panel { y, height, series, notes: notes.collect() })
}

fn ack_series(acks: &[AckSeen], view: View) -> [Series; 2] {
    let shown = || acks.iter().filter(move |ack| view.contains(seconds(ack.at)));
    let duplicates = shown().filter(|ack| ack.duplicate);
    let blocks =
        shown().flat_map(|ack| ack.sack.iter().map(|(from, to)| (seconds(ack.at), *from as f64, *to as f64)));
    [
        looks::DUPLICATE_ACK.marks(duplicates.map(|ack| (seconds(ack.at), ack.ack as f64)).collect()),
        looks::SACK.bars(blocks.collect(), 1.0),
    ]
}

fn bars<'a>(segments: impl Iterator<Item = &'a SentSegment>) -> Vec<(f64, f64, f64)> {
    segments.map(|segment| (seconds(segment.at), segment.start as f64, segment.end as f64)).collect()
}

fn middles<'a>(segments: impl Iterator<Item = &'a SentSegment>) -> Vec<(f64, f64)> {
    bars(segments).into_iter().map(|(at, start, end)| (at, f64::midpoint(start, end))).collect()
}

/// Appends the number of segments to the legend entry, because marks may overlap. As in the findings, SYNs
/// are counted separately.
fn counted<'a>(label: &str, segments: impl Iterator<Item = &'a SentSegment>) -> String {
    let (syns, data): (Vec<_>, Vec<_>) = segments.partition(|segment| segment.start == 0);
    match (data.len(), syns.len()) {
        (count, 0) => format!("{label} ({count})"),
        (0, _) => format!("{label} (the SYN)"),
        (count, _) => format!("{label} ({count}, and the SYN)"),
    }
}

fn segments(shown: &[&SentSegment]) -> Vec<Series> {
    let of = |sending| shown.iter().copied().filter(move |segment| segment.sending == sending);
    let mut series = vec![looks::NEW.bars(bars(of(Sending::New)), 1.3)];
    // The mark remains visible if the extent of the segment is small.
    series.extend(
        RETRANSMISSIONS.map(|(sending, look)| Series { name: None, ..look.bars(bars(of(sending)), 1.8) }),
    );
    for (sending, look) in RETRANSMISSIONS {
        let name = Some(counted(look.label, of(sending)));
        series.push(Series { name, ..look.marks(middles(of(sending))) });
    }
    let spurious = || shown.iter().copied().filter(|segment| matches!(segment.fate, Fate::Spurious { .. }));
    let name = Some(counted(looks::SPURIOUS.label, spurious()));
    series.push(Series { name, ..looks::SPURIOUS.marks(middles(spurious())) });
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
        let (look, name) = match loss {
            Loss::Airlink(Cause::Congestion) => (looks::LOST_QUEUE, looks::LOST_QUEUE.label.to_owned()),
            Loss::Airlink(Cause::Radio) => (looks::LOST_RADIO, looks::LOST_RADIO.label.to_owned()),
            Loss::Between { before } => (looks::LOST_BETWEEN, format!("lost before capture {}", before + 1)),
        };
        let mut name = Some(counted(&name, segments.iter().copied()));
        // The mark of a lost retransmission is below the mark that shows the reason for sending it.
        let (first, again): (Vec<&SentSegment>, Vec<&SentSegment>) =
            segments.into_iter().partition(|segment| segment.sending == Sending::New);
        for (segments, below) in [(first, 0.0), (again, 7.0)] {
            if !segments.is_empty() {
                let marks =
                    Data::Marks { points: middles(segments.into_iter()), mark: look.sign.mark(), below };
                series.push(Series { name: name.take(), ..look.series(marks) });
            }
        }
    }
    series
}
