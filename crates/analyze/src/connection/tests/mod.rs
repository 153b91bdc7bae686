//! Time-sequence diagrams, defined packet by packet, and the expected findings.

mod imperfect_captures;
mod measures;
mod packet_classes;
mod presets;
mod sender_and_receiver;
mod sender_counters;
mod unusual_connections;
mod verdict_thresholds;
mod verdicts;

use std::net::SocketAddr;
use std::ops::Range;

use aircaptures::packet::{Packet, Timestamp};
use airwire::options::{Options, Timestamps};
use airwire::segment::{Ecn, Flags};
use airwire::seq::Seq;

use super::findings::*;
use super::{Connection, Ended, Keep};
use crate::test_support;
use crate::trace::{Fate, Proof, Sending};

/// Initial sequence numbers at which both streams wrap soon.
const ISNS: [u32; 2] = [u32::MAX - 5000, u32::MAX - 1];

/// A connection between a sender, `A`, and a receiver, `B`. Times are in seconds, and data positions are
/// offsets.
struct Diagram {
    packets: Vec<Packet>,
    timestamps: bool,
    window: u16,
    ids: [u16; 2],
}

impl Diagram {
    /// A connection with handshake, captured at `A`. The RTT to `B` is 100 ms. The data begins at 0 s.
    fn new() -> Self {
        Self::cut().with_handshake()
    }

    fn with_timestamps() -> Self {
        Self { timestamps: true, ..Self::cut() }.with_handshake()
    }

    fn with_window(window: u16) -> Self {
        Self { window, ..Self::cut() }.with_handshake()
    }

    fn with_handshake(mut self) -> Self {
        self.syn(-0.2, Some(1460));
        self.syn_ack(-0.1, Some(1460));
        self.ack_of_a(-0.1, 1);
        self
    }

    /// A connection without a handshake.
    fn cut() -> Self {
        Self { packets: Vec::new(), timestamps: false, window: 60_000, ids: [100, 500] }
    }

    fn packet(&mut self, at: f64, from: usize, seq: u64, ack: u64, len: u32) -> &mut Packet {
        let ends: [SocketAddr; 2] = ["10.0.0.1:1000".parse().unwrap(), "10.0.0.2:80".parse().unwrap()];
        self.ids[from] += 1;
        let mut options = Options::default();
        if self.timestamps {
            let now = (at * 1000.0) as i64 + 10_000;
            // Echo the timestamp of the last packet of the other side.
            let last = self.packets.iter().rev().find(|packet| packet.src != ends[from]);
            let ecr = last.and_then(|packet| Some(packet.options.timestamps?.val)).unwrap_or(0);
            options.timestamps = Some(Timestamps { val: now as u32, ecr });
        }
        self.packets.push(Packet {
            number: self.packets.len() as u64 + 1,
            at: Timestamp((at * 1e9).round() as i64 + 1_700_000_000_000_000_000),
            seq: Seq(ISNS[from]).at(seq),
            ack: Some(Seq(ISNS[1 - from]).at(ack)),
            window: self.window,
            len,
            ip_id: Some(self.ids[from]),
            options,
            ..test_support::packet(ends[from], ends[1 - from])
        });
        self.packets.last_mut().unwrap()
    }

    fn syn(&mut self, at: f64, mss: Option<u16>) {
        let packet = self.packet(at, 0, 0, 0, 0);
        (packet.flags, packet.ack, packet.options.mss) = (Flags::SYN, None, mss);
        (packet.options.sack_permitted, packet.options.window_scale) = (true, Some(0));
    }

    fn syn_ack(&mut self, at: f64, mss: Option<u16>) {
        let packet = self.packet(at, 1, 0, 1, 0);
        (packet.flags, packet.options.mss) = (Flags::SYN.with(Flags::ACK), mss);
        (packet.options.sack_permitted, packet.options.window_scale) = (true, Some(0));
    }

    fn ack_of_a(&mut self, at: f64, ack: u64) {
        self.packet(at, 0, 1, ack, 0);
    }

    fn data(&mut self, at: f64, range: Range<u64>) -> &mut Packet {
        self.packet(at, 0, range.start, 1, (range.end - range.start) as u32)
    }

    /// Sends consecutive segments of 1000 bytes.
    fn burst(&mut self, at: f64, range: Range<u64>) {
        for start in range.clone().step_by(1000) {
            self.data(at, start..(start + 1000).min(range.end));
        }
    }

    fn fin(&mut self, at: f64, seq: u64) {
        let packet = self.packet(at, 0, seq, 1, 0);
        packet.flags = Flags::FIN.with(Flags::ACK);
    }

    fn ack(&mut self, at: f64, ack: u64) -> &mut Packet {
        self.packet(at, 1, 1, ack, 0)
    }

    fn dupacks(&mut self, at: f64, ack: u64, count: u32) {
        for i in 0..count {
            self.ack(at + f64::from(i) * 0.001, ack);
        }
    }

    fn sack(&mut self, at: f64, ack: u64, blocks: &[Range<u64>]) -> &mut Packet {
        let packet = self.ack(at, ack);
        for block in blocks {
            let number = |offset| Seq(ISNS[0]).at(offset);
            packet.options.sack.push(number(block.start), number(block.end));
        }
        packet
    }

    fn ended(&self) -> Ended {
        let mut connection = Connection::new(&self.packets[0], Keep::Trace);
        for packet in &self.packets {
            connection.process(packet);
        }
        connection.finish(0)
    }

    /// Returns the findings for A's data.
    fn findings(&self) -> DirectionFindings {
        let [a, _] = self.ended().findings.directions;
        a
    }

    /// Returns the ranges of A's segments that are not new data, and their reasons.
    fn sendings(&self) -> Vec<(u64, u64, Sending)> {
        let [a, _] = self.ended().traces.unwrap();
        let again = a.segments.iter().filter(|segment| segment.sending != Sending::New);
        again.map(|segment| (segment.start, segment.end, segment.sending)).collect()
    }
}
