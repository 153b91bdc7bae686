//! ns-2's links in virtual time: a drop-tail queue with store-and-forward transmission.
//!
//! ns-2 represents time as seconds in double precision, and the last bit of a sum can decide the order of two
//! simultaneous events. This model therefore uses doubles instead of `airwire::time`.

use std::collections::{BTreeMap, VecDeque};

use crate::sink::Ack;
use crate::vector::{Hop, QueueLimit};

/// Events in order of time. Simultaneous events keep the order in which they were scheduled.
pub(crate) struct Events<E> {
    /// Keyed by the bits of the time: non-negative doubles sort like their bits.
    queue: BTreeMap<(u64, u64), E>,
    scheduled: u64,
}

impl<E> Events<E> {
    pub(crate) fn new() -> Self {
        Self { queue: BTreeMap::new(), scheduled: 0 }
    }

    pub(crate) fn at(&mut self, time: f64, event: E) {
        assert!(time >= 0.0);
        self.scheduled += 1;
        self.queue.insert((time.to_bits(), self.scheduled), event);
    }

    pub(crate) fn next_time(&self) -> Option<f64> {
        self.queue.keys().next().map(|&(bits, _)| f64::from_bits(bits))
    }

    pub(crate) fn pop(&mut self) -> Option<(f64, E)> {
        self.queue.pop_first().map(|((bits, _), event)| (f64::from_bits(bits), event))
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// `nth` is 1 for the first transmission of this segment.
    Segment { segment: u32, nth: u32, tsval: Option<u32> },
    /// `index` counts the ACKs that this receiver has sent.
    Ack { index: usize, ack: Ack },
}

#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Index into the scenario's flows.
    pub(crate) flow: usize,
    pub(crate) bytes: u32,
    pub(crate) content: Content,
}

/// An event that a link schedules.
pub(crate) enum LinkEvent {
    /// The packet reaches the far end.
    Arrive(Packet),
    /// The transmitter becomes idle.
    Free,
}

pub(crate) struct Link {
    hop: Hop,
    waiting: VecDeque<Packet>,
    transmitting: bool,
    pause: Option<(f64, f64)>,
}

impl Link {
    pub(crate) fn new(hop: Hop, pause: Option<(f64, f64)>) -> Self {
        Self { hop, waiting: VecDeque::new(), transmitting: false, pause }
    }

    /// Enqueues a packet. ns-2's queue limit includes the packet being transmitted, so `limit - 1` packets
    /// can wait.
    #[must_use = "the link has something to schedule"]
    pub(crate) fn offer(&mut self, now: f64, packet: Packet) -> Vec<(f64, LinkEvent)> {
        if let QueueLimit::Packets(limit) = self.hop.2
            && self.waiting.len() + 1 >= limit
        {
            return Vec::new();
        }
        self.waiting.push_back(packet);
        if self.transmitting { Vec::new() } else { self.transmit(now) }
    }

    #[must_use = "the link has something to schedule"]
    pub(crate) fn free(&mut self, now: f64) -> Vec<(f64, LinkEvent)> {
        self.transmitting = false;
        if self.waiting.is_empty() { Vec::new() } else { self.transmit(now) }
    }

    fn transmit(&mut self, now: f64) -> Vec<(f64, LinkEvent)> {
        self.transmitting = true;
        if let Some((from, until)) = self.pause
            && (from..until).contains(&now)
        {
            return vec![(until, LinkEvent::Free)];
        }
        let Some(packet) = self.waiting.pop_front() else {
            unreachable!("the callers check that a packet waits")
        };
        let Hop(rate, delay, _) = self.hop;
        let transmission = f64::from(packet.bytes * 8) / rate;
        vec![(now + transmission + delay, LinkEvent::Arrive(packet)), (now + transmission, LinkEvent::Free)]
    }
}
