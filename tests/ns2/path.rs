//! ns-2's links in virtual time: store and forward behind a drop-tail queue.
//!
//! ns-2 counts time in double-precision seconds, and the last bit of a sum can decide which of two events "at the same
//! time" comes first. So this model counts the same way instead of in `airwire::time`.

use std::collections::{BTreeMap, VecDeque};

use crate::sink::Ack;
use crate::vector::{Hop, QueueLimit};

/// Events by time; those of equal time in the order in which they were scheduled.
pub(crate) struct Events<E> {
    /// A non-negative double sorts like its bits.
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
pub(crate) enum Load {
    /// `nth`: 1 for the first transmission of this segment.
    Segment { segment: u32, nth: u32, tsval: Option<u32> },
    /// `index`: counts the ACKs that this receiver has sent.
    Ack { index: usize, ack: Ack },
}

#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Index into the scenario's flows.
    pub(crate) flow: usize,
    pub(crate) bytes: u32,
    pub(crate) load: Load,
}

/// What a link wants to happen.
pub(crate) enum LinkEvent {
    /// The packet reaches the far end.
    Arrive(Packet),
    /// The transmitter is free again.
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

    /// ns-2's limit counts the place in the transmitter: `limit - 1` packets may wait.
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
        let Some(packet) = self.waiting.pop_front() else { unreachable!("the callers look first") };
        let Hop(rate, delay, _) = self.hop;
        let transmission = f64::from(packet.bytes * 8) / rate;
        vec![(now + transmission + delay, LinkEvent::Arrive(packet)), (now + transmission, LinkEvent::Free)]
    }
}
