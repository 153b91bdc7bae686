//! Builds a trace from a flow in virtual time, with the ground truth about its losses.

use airtcp::recovery::What;
use airtcp_analyze::trace::{
    AckSeen, DecisionSeen, Fate, Idle, Loss, Offset, Proof, RttSample, Sending, SentSegment, Trace,
    WindowPoint,
};
use airtcp_sim::world::{PacketKind, World};
use airwire::Cause;
use airwire::time::Instant;

const MSS: f64 = 1448.0;
const WINDOW: u64 = 65_535;

fn offset(at: Instant) -> Offset {
    at.as_nanos() as Offset
}

pub(super) fn trace(world: &mut World) -> Trace {
    let mut trace = Trace { name: "10.0.0.1:10000 → 10.1.0.1:80".to_owned(), ..Trace::default() };
    decisions(world, &mut trace);
    let timeouts: Vec<Offset> = trace
        .decisions
        .iter()
        .filter(|decision| decision.what == "timeout")
        .map(|decision| decision.at)
        .collect();
    let (mut una, mut max, mut dupacks) = (0, 0, 0);
    // A timeout causes all retransmissions below this offset.
    let mut repaired = 0;
    let mut last_timeout = None;
    let mut last_sent = 0;
    for packet in world.device_packets(0) {
        let at = offset(packet.at);
        let number = (trace.segments.len() + trace.acks.len()) as u64 + 1;
        match &packet.kind {
            PacketKind::Sent { offset: start, len, copy } => {
                let timeout = timeouts.iter().rev().find(|timeout| **timeout <= at);
                if timeout.is_some() && timeout != last_timeout.as_ref() {
                    (last_timeout, repaired) = (timeout.copied(), max);
                    trace.idle.push(Idle { from: last_sent, to: at });
                }
                let sending = match *copy {
                    1 => Sending::New,
                    _ if *start < repaired => Sending::Timeout,
                    _ => Sending::Fast,
                };
                let fate = fate(world, packet.at, *start);
                let in_flight = ((max - una) as f64 / MSS).ceil() as u32;
                trace.segments.push(SentSegment {
                    at,
                    number,
                    start: *start,
                    end: start + len,
                    sending,
                    dupacks,
                    in_flight,
                    fate,
                });
                max = max.max(start + len);
                last_sent = at;
            }
            PacketKind::Ack { ack, duplicate, sacked } => {
                dupacks = if *duplicate { dupacks + 1 } else { 0 };
                let of = |segment: &&SentSegment| segment.end == *ack;
                let copies: Vec<&SentSegment> = trace.segments.iter().filter(of).collect();
                if let ([once], true) = (&copies[..], *ack > una) {
                    let seconds = (at - once.at) as f64 / 1e9;
                    trace.rtt.push(RttSample { at, seconds, timestamps: false });
                }
                una = una.max(*ack);
                trace.acks.push(AckSeen {
                    at,
                    number,
                    ack: *ack,
                    edge: ack + WINDOW,
                    duplicate: *duplicate,
                    sack: sacked.clone(),
                });
            }
        }
        let window = window_point(&trace, at, max - una);
        trace.windows.push(window);
    }
    mark_spurious(&mut trace);
    trace.decisions.retain(|decision| decision.by != "aimd" || decision.what != "window");
    trace
}

fn fate(world: &World, sent: Instant, offset: u64) -> Fate {
    let losses = world.losses(0).as_slice();
    match losses.iter().find(|loss| loss.sent == sent && loss.offset == offset) {
        Some(loss) => Fate::Lost(Loss::Airlink(loss.cause().unwrap_or(Cause::Radio))),
        None => Fate::Unknown,
    }
}

/// Returns the windows after the last decision about them.
fn window_point(trace: &Trace, at: Offset, in_flight: u64) -> WindowPoint {
    let last = trace.decisions.iter().rev().find(|decision| decision.at <= at && decision.what == "window");
    let numbers = last.and_then(|decision| decision.text.split_once('/'));
    let window = |text: &str| text.parse::<f64>().ok().map(|segments| segments * MSS);
    WindowPoint {
        at,
        in_flight,
        estimated: in_flight,
        cwnd: numbers.and_then(|(cwnd, _)| window(cwnd)),
        ssthresh: numbers.and_then(|(_, ssthresh)| window(ssthresh)),
    }
}

fn decisions(world: &mut World, trace: &mut Trace) {
    trace.decisions = world
        .decisions(0)
        .iter()
        .map(|decision| {
            let (what, text) = match &decision.what {
                What::Window { cwnd, ssthresh, .. } => ("window", format!("{cwnd}/{ssthresh}")),
                What::Timeout { offset } => ("timeout", offset.to_string()),
                What::Lost { offset, .. } => ("lost", offset.to_string()),
                What::Resend { offset } => ("resend", offset.to_string()),
                What::Enter { .. } => ("enter", String::new()),
                What::Leave { .. } => ("leave", String::new()),
                other => ("other", format!("{other:?}")),
            };
            DecisionSeen {
                at: offset(decision.at),
                by: decision.by.to_owned(),
                what: what.to_owned(),
                text,
                about: None,
            }
        })
        .collect();
}

/// Marks a retransmission as spurious if an earlier copy of the segment was not lost.
fn mark_spurious(trace: &mut Trace) {
    for index in 0..trace.segments.len() {
        let SentSegment { start, sending, fate, .. } = trace.segments[index];
        let earlier = &trace.segments[..index];
        let lost = |segment: &SentSegment| matches!(segment.fate, Fate::Lost(_));
        if sending != Sending::New
            && fate == Fate::Unknown
            && earlier.iter().any(|segment| segment.start == start && !lost(segment))
        {
            trace.segments[index].fate = Fate::Spurious { proof: Proof::Arrival };
        }
    }
}
