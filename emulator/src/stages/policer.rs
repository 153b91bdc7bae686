//! A policer: a token bucket without a queue. Packets that find too few tokens are dropped at once.
//!
//! The policer follows RFC 2697 §3 in colour-blind mode, with one bucket and two colours. The bucket is full
//! at first. A packet of B bytes conforms if there are B tokens. Other packets take no tokens.

use airwire::time::{Duration, Instant};
use airwire::units::{Rate, Size};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::duplex::{OneWay, OneWaySettings};
use crate::packet::{Direction, Packet};
use crate::settings::{Invalid, Position};
use crate::stage::{DropReason, Outbox};

/// The settings of one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicerConfig {
    /// CIR: rate at which tokens arrive. IP headers count.
    pub rate: Rate,
    /// CBS: maximum number of tokens, in bytes. A longer packet never passes.
    pub burst: Size,
}

/// Larger than any real buffer, and small enough to rule out overflow.
const MAX_BURST: u64 = 1_000_000_000_000;

impl OneWaySettings for PolicerConfig {
    type Stage = Policer;

    fn validate(&self) -> Result<(), Invalid> {
        match self.burst.as_bytes() {
            0 => Err(Invalid::new(
                "burst",
                "no packet would pass: write at least the length of the longest packet, such as \"1500B\"",
            )),
            1..=MAX_BURST => Ok(()),
            _ => Err(Invalid::new("burst", "must be at most 1000G")),
        }
    }

    fn build(&self, _direction: Direction, _position: Position<'_>, _seed: u64) -> Result<Policer, String> {
        Policer::new(self).map_err(|invalid| invalid.to_string())
    }
}

/// One direction of the stage.
#[derive(Debug)]
pub struct Policer {
    bucket: Bucket,
    packets_in: u64,
    bytes_in: u64,
    dropped: u64,
    bytes_dropped: u64,
}

/// A token bucket that counts billionths of a bit. At R bit/s, R billionths of a bit arrive per nanosecond,
/// so no rounding is needed.
#[derive(Debug)]
struct Bucket {
    rate: Rate,
    full: u128,
    tokens: u128,
    /// Time of the last update.
    at: Instant,
}

const PER_OCTET: u128 = 8 * 1_000_000_000;

impl Bucket {
    fn new(config: &PolicerConfig) -> Self {
        let full = u128::from(config.burst.as_bytes()) * PER_OCTET;
        Self { rate: config.rate, full, tokens: full, at: Instant::ZERO }
    }

    fn fill(&mut self, now: Instant) {
        let elapsed: Duration = now - self.at;
        let arrived = u128::from(elapsed.as_nanos()) * u128::from(self.rate.as_bits_per_second());
        self.tokens = self.full.min(self.tokens + arrived);
        self.at = now;
    }

    fn take(&mut self, now: Instant, octets: usize) -> bool {
        self.fill(now);
        let needed = octets as u128 * PER_OCTET;
        let conforms = needed <= self.tokens;
        if conforms {
            self.tokens -= needed;
        }
        conforms
    }
}

impl Policer {
    /// Creates the stage, or returns an error if the settings are invalid.
    pub fn new(config: &PolicerConfig) -> Result<Self, Invalid> {
        config.validate()?;
        Ok(Self { bucket: Bucket::new(config), packets_in: 0, bytes_in: 0, dropped: 0, bytes_dropped: 0 })
    }
}

impl OneWay for Policer {
    type Config = PolicerConfig;

    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        self.packets_in += 1;
        self.bytes_in += packet.len() as u64;
        if self.bucket.take(now, packet.len()) {
            out.forward(packet);
        } else {
            self.dropped += 1;
            self.bytes_dropped += packet.len() as u64;
            out.drop(packet, DropReason::Policed);
        }
    }

    fn stats(&self) -> Value {
        json!({
            "packets_in": self.packets_in,
            "bytes_in": self.bytes_in,
            "packets_out": self.packets_in - self.dropped,
            "bytes_out": self.bytes_in - self.bytes_dropped,
            "dropped": self.dropped,
            // At the time of the last packet.
            "tokens": (self.bucket.tokens / PER_OCTET) as u64,
        })
    }

    /// Tokens arrive at the old rate until now. A smaller bucket discards excess tokens, and a larger one is
    /// not filled up.
    fn reconfigure(&mut self, now: Instant, config: &PolicerConfig, _out: &mut Outbox) {
        self.bucket.fill(now);
        let tokens = self.bucket.tokens;
        self.bucket = Bucket { at: now, ..Bucket::new(config) };
        self.bucket.tokens = tokens.min(self.bucket.full);
    }
}

#[cfg(test)]
mod tests;
