//! Times at which nothing gets through: coverage holes and handovers.

use airwire::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::duplex::OneWaySettings;
use super::queue::{Bounds, Queue};
use super::times::Spells;
use crate::packet::{Direction, Packet};
use crate::settings::{Invalid, Position};
use crate::stage::{Event, Mishap, NotLive, OneWay, Outbox, Why};

/// The settings of one direction. An outage concerns the packets that arrive at or after its beginning and before
/// its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutageConfig {
    /// When each begins, since the start, in ascending order.
    pub at: Vec<Duration>,
    /// How long each of them is.
    pub lasts: Duration,
    /// All of them begin again after this time, for ever. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// What becomes of packets that arrive meanwhile.
    pub packets: Meanwhile,
    /// How many packets can be kept with `packets = "requeued"`.
    #[serde(default)]
    pub queue: Bounds,
}

/// What becomes of packets that arrive during an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Meanwhile {
    /// They are lost.
    Dropped,
    /// They are queued again at the new cell: all go on when it is over, in order, as fast as the stage behind
    /// takes them.
    Requeued,
}

impl OneWaySettings for OutageConfig {
    type Stage = Outage;

    fn validate(&self) -> Result<(), Invalid> {
        self.spells().validate("outage")?;
        self.queue.validate().map_err(|invalid| invalid.within("queue"))
    }

    fn build(&self, _direction: Direction, _position: Position<'_>, _seed: u64) -> Result<Outage, String> {
        Outage::new(self).map_err(|invalid| invalid.to_string())
    }
}

impl OutageConfig {
    fn spells(&self) -> Spells {
        Spells { at: self.at.clone(), lasts: self.lasts, every: self.every }
    }
}

/// One direction of the stage.
#[derive(Debug)]
pub struct Outage {
    spells: Spells,
    packets: Meanwhile,
    kept: Queue,
    /// When what is kept goes on.
    over: Option<Instant>,
    /// The end of the last outage that a packet has met.
    met: Option<Instant>,
    packets_in: u64,
    packets_out: u64,
    dropped: u64,
}

impl Outage {
    /// An error if the settings are not valid.
    pub fn new(config: &OutageConfig) -> Result<Self, Invalid> {
        config.validate()?;
        Ok(Self {
            spells: config.spells(),
            packets: config.packets,
            kept: Queue::bounded(config.queue),
            over: None,
            met: None,
            packets_in: 0,
            packets_out: 0,
            dropped: 0,
        })
    }

    fn release(&mut self, now: Instant, out: &mut Outbox) {
        while let Some((_, packet)) = self.kept.pop(now, out) {
            self.packets_out += 1;
            out.forward(packet);
        }
    }
}

impl OneWay for Outage {
    type Config = OutageConfig;

    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        // A stage before this one may hand on a packet just when it is over, before the deadline is handed in here.
        self.handle_deadline(now, out);
        self.packets_in += 1;
        let end = self.spells.end(now);
        if let Some(until) = end.filter(|_| end != self.met) {
            self.met = end;
            out.befall(Mishap::Outage { direction: packet.direction, until });
        }
        match (end, self.packets) {
            (None, _) => {
                self.packets_out += 1;
                out.forward(packet);
            }
            (Some(_), Meanwhile::Dropped) => {
                self.dropped += 1;
                out.drop(packet, Why::Outage);
            }
            (Some(until), Meanwhile::Requeued) => {
                if self.kept.has_room_for(packet.len()) {
                    out.note(&packet, Event::Held { until });
                    self.over = Some(until);
                }
                self.kept.push(now, packet, out);
            }
        }
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        if self.over.is_some_and(|over| over <= now) {
            // The next one may begin just as this one ends.
            self.over = self.spells.end(now);
            if self.over.is_none() {
                self.release(now, out);
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.over
    }

    fn held(&self) -> usize {
        self.kept.len()
    }

    fn stats(&self) -> Value {
        json!({
            "packets_in": self.packets_in,
            "packets_out": self.packets_out,
            "dropped": self.dropped,
            "queue": self.kept.stats(),
        })
    }

    fn check(&self, config: &OutageConfig) -> Result<(), NotLive> {
        config.validate().map_err(|invalid| NotLive::new(invalid.key, invalid.message))
    }

    /// What is kept waits for the end of the outage that the new settings say is now; if they say that there is
    /// none, it goes on at once.
    fn reconfigure(&mut self, now: Instant, config: &OutageConfig, out: &mut Outbox) {
        self.spells = config.spells();
        self.packets = config.packets;
        self.kept.reconfigure(now, config.queue.into(), out);
        if !self.kept.is_empty() {
            self.over = self.spells.end(now);
            if self.over.is_none() {
                self.release(now, out);
            }
        }
    }
}
