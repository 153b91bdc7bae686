//! Outages during which no packet gets through, such as coverage holes and handovers.

use airwire::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::duplex::{OneWay, OneWaySettings};
use super::queue::{Bounds, Queue};
use super::times::Intervals;
use crate::packet::{Direction, Packet};
use crate::settings::{Invalid, Position};
use crate::stage::{DropReason, Event, IncidentKind, Outbox};

/// The settings of one direction. An outage affects packets that arrive from its beginning until just before
/// its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutageConfig {
    /// Start times of the outages, relative to the start of the run, in ascending order.
    pub at: Vec<Duration>,
    /// Length of each outage.
    pub lasts: Duration,
    /// Period after which all outages repeat. By default they do not repeat.
    pub every: Option<Duration>,
    /// Treatment of packets that arrive during an outage.
    pub packets: DuringOutage,
    /// Bounds of the queue that holds packets with `packets = "requeued"`.
    #[serde(default)]
    pub queue: Bounds,
}

/// Treatment of packets that arrive during an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DuringOutage {
    /// Packets are dropped.
    Dropped,
    /// Packets wait in a queue at the new cell. When the outage ends, all are forwarded in order.
    Requeued,
}

impl OneWaySettings for OutageConfig {
    type Stage = Outage;

    fn validate(&self) -> Result<(), Invalid> {
        self.intervals().validate("outage")?;
        self.queue.validate().map_err(|invalid| invalid.within("queue"))
    }

    fn build(&self, _direction: Direction, _position: Position<'_>, _seed: u64) -> Result<Outage, String> {
        Outage::new(self).map_err(|invalid| invalid.to_string())
    }
}

impl OutageConfig {
    fn intervals(&self) -> Intervals {
        Intervals { at: self.at.clone(), lasts: self.lasts, every: self.every }
    }
}

/// One direction of the stage.
#[derive(Debug)]
pub struct Outage {
    intervals: Intervals,
    packets: DuringOutage,
    queue: Queue,
    /// Time at which the queued packets are forwarded.
    release_at: Option<Instant>,
    /// End of the last outage that was reported.
    reported_end: Option<Instant>,
    packets_in: u64,
    packets_out: u64,
    dropped: u64,
}

impl Outage {
    /// Creates the stage, or returns an error if the settings are invalid.
    pub fn new(config: &OutageConfig) -> Result<Self, Invalid> {
        config.validate()?;
        Ok(Self {
            intervals: config.intervals(),
            packets: config.packets,
            queue: Queue::bounded(config.queue),
            release_at: None,
            reported_end: None,
            packets_in: 0,
            packets_out: 0,
            dropped: 0,
        })
    }

    fn release(&mut self, now: Instant, out: &mut Outbox) {
        while let Some((_, packet)) = self.queue.pop(now, out) {
            self.packets_out += 1;
            out.forward(packet);
        }
    }
}

impl OneWay for Outage {
    type Config = OutageConfig;

    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        // The previous stage may forward a packet exactly at the end of an outage, before the deadline is
        // handled here.
        self.handle_deadline(now, out);
        self.packets_in += 1;
        let end = self.intervals.end(now);
        if let Some(until) = end.filter(|_| end != self.reported_end) {
            self.reported_end = end;
            out.report_incident(IncidentKind::Outage { direction: packet.direction, until });
        }
        match (end, self.packets) {
            (None, _) => {
                self.packets_out += 1;
                out.forward(packet);
            }
            (Some(_), DuringOutage::Dropped) => {
                self.dropped += 1;
                out.drop(packet, DropReason::Outage);
            }
            (Some(until), DuringOutage::Requeued) => {
                if self.queue.has_room_for(packet.len()) {
                    out.note(&packet, Event::Held { until });
                    self.release_at = Some(until);
                }
                self.queue.push(now, packet, out);
            }
        }
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        if self.release_at.is_some_and(|release_at| release_at <= now) {
            // The next outage may begin exactly when this one ends.
            self.release_at = self.intervals.end(now);
            if self.release_at.is_none() {
                self.release(now, out);
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.release_at
    }

    fn held(&self) -> usize {
        self.queue.len()
    }

    fn stats(&self) -> Value {
        json!({
            "packets_in": self.packets_in,
            "packets_out": self.packets_out,
            "dropped": self.dropped,
            "queue": self.queue.stats(),
        })
    }

    /// Queued packets wait for the end of the outage that is in progress according to the new settings. If
    /// there is none, they are forwarded at once.
    fn reconfigure(&mut self, now: Instant, config: &OutageConfig, out: &mut Outbox) {
        self.intervals = config.intervals();
        self.packets = config.packets;
        self.queue.reconfigure(now, config.queue.into(), out);
        if !self.queue.is_empty() {
            self.release_at = self.intervals.end(now);
            if self.release_at.is_none() {
                self.release(now, out);
            }
        }
    }
}
