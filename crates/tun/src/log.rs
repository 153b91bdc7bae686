//! Turns the events of hosts into events of the crate `tracing`, with a span for each connection and a target for
//! each subject. `docs/reference/logs.md` lists them.
//!
//! The field `at` of every event is the host's time of the event in nanoseconds since 1970. So log lines show when
//! an event happened, not when its line was written.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::SystemTime;

use airtcp::events::{Agreement, Event, EventKind, Offer, Refused};
use airtcp::host::Host;
use airtcp::recovery::{Decision, What as Decided};
use airtcp::tcp::IcmpError;
use airwire::dump::Conversations;
use airwire::time::Instant;
use tracing::{Level, Span, debug, error_span, info, trace};

/// The addresses of our end and of the peer.
type Ends = (SocketAddr, SocketAddr);

/// Logs the events of a host.
pub struct Log {
    /// Nanoseconds since 1970 at `Instant::ZERO`.
    zero: u64,
    /// Spans of the open connections.
    spans: BTreeMap<Ends, Span>,
    /// `None` if no subscriber is interested in segments.
    segments: Option<Conversations>,
}

impl Log {
    /// Creates the log. `None`: no subscriber shows any of the events. `zero` is the wall-clock time at
    /// `Instant::ZERO`.
    pub fn if_enabled(zero: SystemTime) -> Option<Self> {
        let segments = tracing::enabled!(target: "airtcp::segment", Level::TRACE);
        let events = [
            tracing::enabled!(target: "airtcp::connection", Level::INFO),
            tracing::enabled!(target: "airtcp::recovery", Level::DEBUG),
            tracing::enabled!(target: "airtcp::refused", Level::DEBUG),
            tracing::enabled!(target: "airtcp::timer", Level::DEBUG),
            tracing::enabled!(target: "airtcp::window", Level::DEBUG),
            tracing::enabled!(target: "airtcp::path", Level::INFO),
        ];
        let zero = zero.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        (segments || events.contains(&true)).then(|| Self {
            zero: zero.as_nanos() as u64,
            spans: BTreeMap::new(),
            segments: segments.then(Conversations::default),
        })
    }

    fn wall(&self, at: Instant) -> u64 {
        self.zero + at.as_nanos()
    }

    /// Logs a packet that the host has sent or received.
    pub fn packet(&mut self, at: Instant, direction: HostDirection, packet: &[u8]) {
        let at = self.wall(at);
        let Some(conversations) = &mut self.segments else { return };
        let dump = conversations.read(packet);
        let Some(tcp) = dump.tcp() else {
            trace!(target: "airtcp::segment", at, line = %dump, way = direction.name(), octets = packet.len());
            return;
        };
        let ends = match direction {
            HostDirection::Out => (tcp.src, tcp.dst),
            HostDirection::In => (tcp.dst, tcp.src),
        };
        let _inside = self.spans.get(&ends).map(Span::enter);
        let acks = tcp.flags.contains(airwire::segment::Flags::ACK);
        trace!(
            target: "airtcp::segment",
            at,
            line = %dump,
            way = direction.name(),
            src = %tcp.src,
            dst = %tcp.dst,
            flags = %tcp.letters(),
            seq = tcp.seq,
            ack = acks.then_some(tcp.ack),
            win = tcp.window,
            options = %tcp.options(),
            length = tcp.length,
        );
    }

    /// Logs the events of a host since the last call.
    pub fn log_events(&mut self, host: &mut Host) {
        while let Some(event) = host.poll_event() {
            self.event(event);
        }
    }

    /// Logs one event of a host.
    pub fn event(&mut self, Event { at, ends, kind }: Event) {
        let wall = self.wall(at);
        let Some(ends) = ends else { return log_event(wall, at, kind) };
        let is_over = matches!(kind, EventKind::Ended(_));
        if is_first(&kind) {
            self.spans.entry(ends).or_insert_with(|| span_of(ends));
        }
        match self.spans.get(&ends) {
            Some(span) => span.in_scope(|| log_event(wall, at, kind)),
            // The segment does not belong to any connection.
            None => span_of(ends).in_scope(|| log_event(wall, at, kind)),
        }
        if is_over {
            self.spans.remove(&ends);
        }
    }
}

/// Direction of a packet, from the host's point of view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostDirection {
    /// Sent by the host.
    Out,
    /// Received by the host.
    In,
}

impl HostDirection {
    const fn name(self) -> &'static str {
        match self {
            Self::Out => "out",
            Self::In => "in",
        }
    }
}

/// Creates the span of a connection, which identifies the connection of an event. Its level is `ERROR`, so that it
/// is enabled at every log level.
fn span_of((local, remote): Ends) -> Span {
    error_span!(target: "airtcp", "connection", %local, %remote)
}

/// Returns whether this is the first event of a connection.
fn is_first(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Offered(_) | EventKind::PeerOffered(_))
}

fn log_event(at: u64, now: Instant, kind: EventKind) {
    match kind {
        EventKind::Offered(offer) => log_offer(at, "offered", offer),
        EventKind::PeerOffered(offer) => log_offer(at, "the peer offered", offer),
        EventKind::Agreed(Agreement { smss, own_scale, peer_scale, sack, timestamps, ecn }) => info!(
            target: "airtcp::connection",
            at, smss, own_scale, peer_scale, sack, timestamps, ecn, "established"
        ),
        EventKind::State { from, to } => {
            debug!(target: "airtcp::connection", at, from = from.name(), to = to.name(), "state");
        }
        EventKind::Ended(None) => info!(target: "airtcp::connection", at, "closed"),
        EventKind::Ended(Some(why)) => info!(target: "airtcp::connection", at, %why, "ended"),
        EventKind::Decided(decision) => log_decision(at, &decision),
        EventKind::TimerSet { timer, until } => {
            trace!(target: "airtcp::timer", at, timer = timer.name(), after = %(until - now), "set");
        }
        EventKind::TimerStopped { timer } => {
            trace!(target: "airtcp::timer", at, timer = timer.name(), "stopped");
        }
        EventKind::TimerFired { timer } => debug!(target: "airtcp::timer", at, timer = timer.name(), "fired"),
        EventKind::Refused { why, segment: Refused { flags, seq, ack, len } } => debug!(
            target: "airtcp::refused",
            at, reason = why.name(), ?flags, seq, ack, length = len, why = why.why(), "segment refused"
        ),
        EventKind::Bad(why) => debug!(target: "airtcp::refused", at, %why, "packet refused"),
        EventKind::PeerWindow { bytes: 0 } => {
            debug!(target: "airtcp::window", at, "the peer's window has closed");
        }
        EventKind::PeerWindow { bytes } => {
            debug!(target: "airtcp::window", at, octets = bytes, "the peer's window has opened");
        }
        EventKind::OwnWindow { bytes: 0 } => debug!(target: "airtcp::window", at, "our window has closed"),
        EventKind::OwnWindow { bytes } => {
            debug!(target: "airtcp::window", at, octets = bytes, "our window has opened");
        }
        EventKind::Pmtu { from, to } => info!(target: "airtcp::path", at, from, to, "path MTU"),
        EventKind::Icmp { error: IcmpError::TooBig { mtu }, believed } => {
            info!(target: "airtcp::path", at, mtu, believed, "ICMP: a packet was too big");
        }
        EventKind::Icmp { error: IcmpError::Unreachable(why), believed } => {
            info!(target: "airtcp::path", at, %why, believed, "ICMP: not delivered");
        }
    }
}

fn log_offer(at: u64, message: &str, offer: Offer) {
    let Offer { mss, window_scale, sack, timestamps, ecn } = offer;
    debug!(
        target: "airtcp::connection",
        at, mss, window_scale, sack, timestamps, ecn, "{message}"
    );
}

/// Logs a decision, with the names and fields of `--decisions` in an order suited to reading.
fn log_decision(at: u64, decision: &Decision) {
    let Decision { at: _, state: episode, question, by, ref what, why } = *decision;
    let mut fields = DecisionFields::default();
    match *what {
        Decided::Lost { offset, segments } => {
            (fields.offset, fields.segments) = (Some(offset), Some(segments));
        }
        Decided::Cause { offset, cause } | Decided::Judged { offset, cause } => {
            (fields.offset, fields.cause) = (Some(offset), Some(cause.name()));
        }
        Decided::Enter { state, recover } => {
            (fields.phase, fields.recover) = (Some(state.name()), Some(recover));
        }
        Decided::Extend { recover } => fields.recover = Some(recover),
        Decided::Leave { state } => fields.phase = Some(state.name()),
        Decided::Window { cwnd, ssthresh, was_cwnd, was_ssthresh } => {
            let [cwnd, ssthresh, was_cwnd, was_ssthresh] =
                [cwnd, ssthresh, was_cwnd, was_ssthresh].map(thousandths);
            (fields.cwnd, fields.was_cwnd) = (cwnd, was_cwnd);
            (fields.ssthresh, fields.was_ssthresh) = (ssthresh, was_ssthresh);
        }
        Decided::Resend { offset }
        | Decided::Probe { offset }
        | Decided::Timeout { offset }
        | Decided::Resume { at: offset } => fields.offset = Some(offset),
        Decided::Fallback { to } => fields.to = Some(to),
    }
    let DecisionFields {
        offset,
        segments,
        cause,
        phase,
        recover,
        cwnd,
        was_cwnd,
        ssthresh,
        was_ssthresh,
        to,
    } = fields;
    debug!(
        target: "airtcp::recovery",
        at, offset, segments, cause, phase, recover, cwnd, was_cwnd, ssthresh, was_ssthresh, to,
        question = question.name(), by, why, episode = episode.name(), "{}", what.name()
    );
}

/// Fields of a decision. Fields that are `None` are not written.
#[derive(Default)]
struct DecisionFields {
    offset: Option<u64>,
    segments: Option<u64>,
    cause: Option<&'static str>,
    phase: Option<&'static str>,
    recover: Option<u64>,
    cwnd: Option<f64>,
    was_cwnd: Option<f64>,
    ssthresh: Option<f64>,
    was_ssthresh: Option<f64>,
    to: Option<&'static str>,
}

/// Rounds to three decimals. `None`: infinity, the initial ssthresh.
fn thousandths(segments: f64) -> Option<f64> {
    segments.is_finite().then(|| (segments * 1e3).round() / 1e3)
}
