//! Propagation of any number of packets at once, in order.

use std::collections::VecDeque;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::schedule::Schedule;
use crate::packet::Packet;
use crate::settings::Invalid;
use crate::stage::Outbox;

/// An additional delay that steps to a new value at regular intervals, as when a terminal changes satellites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepsConfig {
    /// Time between steps.
    pub every: Duration,
    /// Maximum additional delay. Each step draws a new value uniformly between 0 and this maximum. Both
    /// directions step to the same fraction of their maximum.
    pub within: Duration,
    /// Time of the first step. Defaults to `every`.
    pub at: Option<Duration>,
}

impl StepsConfig {
    pub(super) fn validate(&self) -> Result<(), Invalid> {
        if self.every.is_zero() {
            return Err(Invalid::new("every", "must be above 0: write for example \"15s\""));
        }
        if self.within.is_zero() {
            return Err(Invalid::new("within", "must be above 0: write for example \"20ms\""));
        }
        Ok(())
    }

    /// Returns the number of steps up to `now`.
    fn count(&self, now: Instant) -> u64 {
        let first = Instant::ZERO + self.at.unwrap_or(self.every);
        if now < first { 0 } else { 1 + (now - first).as_nanos() / self.every.as_nanos() }
    }
}

/// The steps of one link, as a function of time alone.
#[derive(Debug)]
pub(super) struct Steps {
    seed: u64,
    /// The last step that was looked up, and its value from 0 to 1.
    known: Option<(u64, f64)>,
}

impl Steps {
    pub(super) fn new(mut stream: Stream) -> Self {
        Self { seed: stream.bits(), known: None }
    }

    fn delay_at(&mut self, now: Instant, config: &StepsConfig) -> Duration {
        let step = config.count(now);
        let place = match self.known {
            Some((known, place)) if known == step => place,
            _ => Stream::new(self.seed, &format!("step/{step}")).unit(),
        };
        self.known = Some((step, place));
        Duration::from_nanos((place * (config.within.as_nanos() as f64 + 1.0)) as u64)
    }
}

#[derive(Debug)]
pub(super) struct Wire {
    pub(super) delay: Duration,
    pub(super) jitter: Duration,
    pub(super) stepping: Option<StepsConfig>,
    steps: Steps,
    /// Replaces `delay`.
    follows: Option<Schedule>,
    stream: Stream,
    /// Packets on the wire with their arrival times, which never decrease.
    flying: VecDeque<(Instant, Packet)>,
    pub(super) packets_out: u64,
    pub(super) bytes_out: u64,
}

impl Wire {
    pub(super) fn new(delay: Duration, follows: Option<Schedule>, steps: Steps, stream: Stream) -> Self {
        Self {
            delay,
            jitter: Duration::ZERO,
            stepping: None,
            steps,
            follows,
            stream,
            flying: VecDeque::new(),
            packets_out: 0,
            bytes_out: 0,
        }
    }

    pub(super) fn flying(&self) -> usize {
        self.flying.len()
    }

    /// Returns a lower bound on the time that a packet spends on the wire.
    pub(super) fn least_delay(&self) -> Duration {
        if self.follows.is_some() { Duration::ZERO } else { self.delay }
    }

    /// Puts a packet on the wire. Its transmission ended at `at`.
    pub(super) fn launch(&mut self, at: Instant, packet: Packet, out: &mut Outbox) {
        let mut landing = at + self.follows.as_ref().map_or(self.delay, |schedule| schedule.delay_at(at));
        if let Some(stepping) = &self.stepping {
            landing += self.steps.delay_at(at, stepping);
        }
        if !self.jitter.is_zero() {
            landing += Duration::from_nanos(self.stream.below(self.jitter.as_nanos() + 1));
        }
        match self.flying.back() {
            Some((last, _)) => self.flying.push_back((landing.max(*last), packet)),
            None if landing == at => self.exit(packet, out),
            None => self.flying.push_back((landing, packet)),
        }
    }

    pub(super) fn land(&mut self, now: Instant, out: &mut Outbox) {
        while let Some((_, packet)) = self.flying.pop_front_if(|(landing, _)| *landing <= now) {
            self.exit(packet, out);
        }
    }

    fn exit(&mut self, packet: Packet, out: &mut Outbox) {
        self.packets_out += 1;
        self.bytes_out += packet.len() as u64;
        out.forward(packet);
    }

    pub(super) fn next_landing(&self) -> Option<Instant> {
        self.flying.front().map(|(landing, _)| *landing)
    }
}
