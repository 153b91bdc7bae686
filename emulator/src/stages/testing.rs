//! A test bench for one direction of a stage, and packets for the bench.

use airwire::segment::{self, Ecn, Flags, Header};
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

use crate::packet::{Content, Direction, Origin, Packet, PacketId};
use crate::stage::{Event, Outbox, Record, Recording};
use crate::stages::duplex::OneWay;

/// 99.9 % of a normal distribution lies within this number of standard deviations.
pub(crate) const SIGMAS: f64 = 3.2905;

/// Asserts that `count` of `n` independent events is plausible if each event has this probability.
#[track_caller]
pub(crate) fn within_binomial(count: usize, n: usize, probability: f64) {
    within(count, n, probability, probability * (1.0 - probability));
}

/// Asserts that `count` of `n` events is plausible if each has this probability and adds this variance.
#[track_caller]
pub(crate) fn within(count: usize, n: usize, probability: f64, variance: f64) {
    let (mean, bound) = (n as f64 * probability, SIGMAS * (n as f64 * variance).sqrt());
    assert!((count as f64 - mean).abs() <= bound, "{count} of {n}, expected {mean:.1} ± {bound:.1}");
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A stage and its output.
pub(crate) struct Bench<S> {
    pub(crate) stage: S,
    pub(crate) out: Outbox,
    /// Packets that have left the stage, in order.
    pub(crate) departures: Vec<(Instant, Packet)>,
    sent: u64,
}

impl<S: OneWay> Bench<S> {
    pub(crate) fn new(stage: S) -> Self {
        Self { stage, out: Outbox::new(Recording::Events, false), departures: Vec::new(), sent: 0 }
    }

    fn take(&mut self, now: Instant) {
        self.departures.extend(self.out.take().into_iter().map(|packet| (now, packet)));
    }

    /// Handles all deadlines up to `until`, each at its own time.
    pub(crate) fn advance(&mut self, until: Instant) {
        while let Some(at) = self.stage.next_deadline().filter(|at| *at <= until) {
            self.out.begin(at, Some(0));
            self.stage.handle_deadline(at, &mut self.out);
            self.take(at);
        }
    }

    /// Sends a packet after handling all earlier deadlines.
    pub(crate) fn send(&mut self, at: Instant, bytes: Vec<u8>) {
        if let Some(before) = at.as_nanos().checked_sub(1) {
            self.advance(Instant::from_nanos(before));
        }
        self.out.begin(at, Some(0));
        let packet = self.out.originate(Direction::Down, Origin::Host, bytes);
        self.sent += 1;
        self.stage.handle_packet(at, packet, &mut self.out);
        self.take(at);
    }

    /// Sends packets of 40 bytes at equal intervals, from time 0 on.
    pub(crate) fn stream(&mut self, packets: u64, spacing: Duration) {
        for n in 0..packets {
            self.send(Instant::ZERO + spacing * n, vec![0; 40]);
        }
    }

    /// Returns the numbers of the packets in the order in which they left.
    pub(crate) fn order(&self) -> Vec<u64> {
        self.departures.iter().map(|(_, packet)| packet.id.0).collect()
    }

    /// Returns the lengths of the packets that have left, in order.
    pub(crate) fn lengths(&self) -> Vec<usize> {
        self.departures.iter().map(|(_, packet)| packet.len()).collect()
    }

    pub(crate) fn records(&mut self) -> Vec<Record> {
        self.out.take_records()
    }

    /// Returns all events except `Entered`, with the packets' numbers.
    pub(crate) fn events(&mut self) -> Vec<(u64, Event)> {
        let records = self.records().into_iter();
        let later = records.filter(|record| !matches!(record.event, Event::Entered { .. }));
        later.map(|record| (record.packet.0, record.event)).collect()
    }
}

/// Creates a host's packet.
pub(crate) fn packet(id: u64, direction: Direction, entered: Instant, bytes: Vec<u8>) -> Packet {
    Content { id: PacketId(id), direction, origin: Origin::Host, entered, bytes }.into()
}

/// Returns the header of an ACK between two IPv4 or IPv6 addresses.
pub(crate) fn header(is_v4: bool) -> Header {
    let ends =
        if is_v4 { ["10.9.8.7:5001", "10.1.2.3:443"] } else { ["[2001:db8::1]:5001", "[2001:db8::2]:443"] };
    let [src, dst] = ends.map(|end| end.parse().unwrap());
    Header {
        src,
        dst,
        seq: Seq(0x1234_5678),
        ack: Seq(0x9abc_def0),
        flags: Flags::ACK,
        window: 0x4321,
        ecn: Ecn::NotEct,
        tos: 0,
        ttl: 64,
        dont_fragment: true,
        ident: 77,
    }
}

/// Returns a packet with this TCP segment.
pub(crate) fn segment(header: &Header, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    segment::emit(&mut packet, header, &[], (payload, &[]));
    packet
}

/// Returns a packet with a TCP segment that carries this payload.
pub(crate) fn tcp(is_v4: bool, payload: &[u8]) -> Vec<u8> {
    segment(&header(is_v4), payload)
}
