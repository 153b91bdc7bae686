//! A drop-tail queue, bounded by packets, by octets, or by both. It belongs to whatever transmits behind it.

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};
use airwire::units::Size;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::packet::Packet;
use crate::settings::Invalid;
use crate::stage::{Event, Outbox, Why};

/// `{ packets = 50 }`, `{ bytes = "64kB" }`, both, or `{}` for a queue without an end.
///
/// Only packets that wait count. The one under transmission has left the queue, as in ns-2: `packets = 50` is 50
/// packets behind the one on the wire. (ns-2's DropTail refuses a packet that would *reach* its limit: its
/// `set limit_ 50` is `packets = 49` here.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    /// Packets that can wait. Absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<usize>,
    /// Octets of packets that can wait. Absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
}

impl QueueConfig {
    /// Refuses bounds that let no packet wait.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.packets == Some(0) {
            return Err(Invalid::new(
                "packets",
                "a queue of 0 packets lets none wait: write 1 for the shortest one, or leave `packets` out for \
                 one without an end",
            ));
        }
        if self.bytes.is_some_and(|size| size.as_bytes() == 0) {
            return Err(Invalid::new(
                "bytes",
                "a queue of 0 octets lets no packet wait: write the size of at least one packet, such as \
                 \"1500B\", or leave `bytes` out for one without an end",
            ));
        }
        Ok(())
    }
}

/// Packets that wait, in their order.
#[derive(Debug, Default)]
pub struct Queue {
    config: QueueConfig,
    waiting: VecDeque<(Instant, Packet)>,
    bytes: u64,
    most_packets: usize,
    most_bytes: u64,
    refused: u64,
}

impl Queue {
    /// Empty. `config` need not be valid.
    pub fn new(config: QueueConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// New bounds hold for packets that come from now on: those that wait already go on waiting.
    pub fn set_bounds(&mut self, config: QueueConfig) {
        self.config = config;
    }

    /// Packets that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// No packet waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Octets of the packets that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a packet of this length may wait, too.
    pub fn has_room_for(&self, octets: usize) -> bool {
        self.config.packets.is_none_or(|limit| self.waiting.len() < limit)
            && self.config.bytes.is_none_or(|limit| self.bytes + octets as u64 <= limit.as_bytes())
    }

    /// Queues the packet, or drops it if there is no room, and records which.
    pub fn push(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        if self.has_room_for(packet.len()) {
            out.note(&packet, Event::Queued { packets: self.waiting.len(), bytes: self.bytes });
            self.append(now, packet);
        } else {
            self.refused += 1;
            out.drop(packet, Why::QueueFull);
        }
    }

    /// Queues the packet whatever the bounds, and records nothing.
    pub(super) fn append(&mut self, now: Instant, packet: Packet) {
        self.bytes += packet.len() as u64;
        self.waiting.push_back((now, packet));
        self.most_packets = self.most_packets.max(self.waiting.len());
        self.most_bytes = self.most_bytes.max(self.bytes);
    }

    /// The first packet, and how long it has waited.
    pub fn pop(&mut self, now: Instant) -> Option<(Duration, Packet)> {
        let (since, packet) = self.waiting.pop_front()?;
        self.bytes -= packet.len() as u64;
        Some((now - since, packet))
    }

    /// Its counters since the start, for `Stage::stats`.
    pub fn stats(&self) -> Value {
        json!({
            "packets": self.len(),
            "bytes": self.bytes,
            "most_packets": self.most_packets,
            "most_bytes": self.most_bytes,
            "refused": self.refused,
        })
    }
}
