//! Helpers for tests of queues.

use std::ops::Range;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};

use super::{Bounds, Discipline, Queue, QueueConfig};
use crate::packet::Direction::Down;
use crate::stage::{DropReason, Event, Mark, Outbox, Recording};
use crate::stages::testing::packet;

/// Returns a Not-ECT packet of `octets` bytes with a UDP datagram of this flow.
pub(super) fn udp(host: u8, port: u16, octets: usize) -> Vec<u8> {
    let mut bytes = vec![0; octets.max(28)];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&(octets.max(28) as u16).to_be_bytes());
    bytes[8] = 64;
    bytes[9] = 17;
    bytes[12..16].copy_from_slice(&[10, 0, 0, host]);
    bytes[16..20].copy_from_slice(&[10, 1, 0, 1]);
    bytes[20..22].copy_from_slice(&port.to_be_bytes());
    bytes[22..24].copy_from_slice(&7_u16.to_be_bytes());
    bytes
}

/// Like [`udp`], with IPv6.
pub(super) fn udp6(host: u8, port: u16, octets: usize) -> Vec<u8> {
    let mut bytes = vec![0; octets.max(48)];
    bytes[0] = 0x60;
    bytes[4..6].copy_from_slice(&(octets.max(48) as u16 - 40).to_be_bytes());
    bytes[6] = 17;
    bytes[23] = host;
    bytes[40..42].copy_from_slice(&port.to_be_bytes());
    bytes
}

/// A queue and its records. Packets are numbered from 0.
pub(super) struct Bench {
    pub(super) queue: Queue,
    out: Outbox,
    pushed: u64,
}

impl Bench {
    pub(super) fn new(discipline: Discipline) -> Self {
        Self::with(discipline.into(), 1)
    }

    /// Creates a queue for at most this number of packets.
    pub(super) fn bounded(packets: usize, discipline: Discipline) -> Self {
        Self::with(QueueConfig { bounds: Bounds { packets: Some(packets), bytes: None }, discipline }, 1)
    }

    pub(super) fn with(config: QueueConfig, seed: u64) -> Self {
        config.validate().unwrap();
        let queue = Queue::new(config, Stream::new(seed, "queue"));
        Self { queue, out: Outbox::new(Recording::Events, false), pushed: 0 }
    }

    /// Queues a packet and returns its number.
    pub(super) fn push(&mut self, now: Instant, bytes: Vec<u8>) -> u64 {
        let id = self.pushed;
        self.pushed += 1;
        self.out.begin(now, Some(0));
        self.queue.push(now, packet(id, Down, now, bytes), &mut self.out);
        id
    }

    /// Queues this number of packets of 1000 bytes of one flow.
    pub(super) fn fill(&mut self, now: Instant, packets: usize) {
        for _ in 0..packets {
            self.push(now, udp(1, 1, 1000));
        }
    }

    /// Removes one packet in each of these milliseconds.
    pub(super) fn pop_each(&mut self, milliseconds: Range<u64>) {
        for at in milliseconds {
            self.pop(Instant::from_millis(at));
        }
    }

    pub(super) fn pop(&mut self, now: Instant) -> Option<(u64, Duration)> {
        self.out.begin(now, Some(0));
        self.queue.pop(now, &mut self.out).map(|(waited, packet)| (packet.id.0, waited))
    }

    pub(super) fn reconfigure(&mut self, now: Instant, config: QueueConfig) {
        self.out.begin(now, Some(0));
        self.queue.reconfigure(now, config, &mut self.out);
    }

    /// Returns the drops since the last call: packet, time and reason.
    pub(super) fn drops(&mut self) -> Vec<(u64, Instant, DropReason)> {
        let records = self.out.take_records().into_iter();
        records
            .filter_map(|record| match record.event {
                Event::Dropped { why } => Some((record.packet.0, record.at, why)),
                _ => None,
            })
            .collect()
    }

    /// Returns the packets that were marked since the last call.
    pub(super) fn marks(&mut self) -> Vec<u64> {
        let records = self.out.take_records().into_iter();
        let marked = Event::Marked { mark: Mark::Congestion };
        records.filter(|record| record.event == marked).map(|record| record.packet.0).collect()
    }
}

/// Sets ECT(0), as an ECN-capable sender does.
pub(super) fn ect(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[1] |= 2;
    bytes
}
