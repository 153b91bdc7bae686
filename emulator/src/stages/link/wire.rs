//! Propagation of any number of packets at once, in order.

use std::collections::VecDeque;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::LinkConfig;
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
    cached: Option<(u64, f64)>,
}

impl Steps {
    pub(super) fn new(mut stream: Stream) -> Self {
        Self { seed: stream.bits(), cached: None }
    }

    fn delay_at(&mut self, now: Instant, config: &StepsConfig) -> Duration {
        let step = config.count(now);
        let fraction = match self.cached {
            Some((cached, fraction)) if cached == step => fraction,
            _ => Stream::new(self.seed, &format!("step/{step}")).unit(),
        };
        self.cached = Some((step, fraction));
        Duration::from_nanos((fraction * (config.within.as_nanos() as f64 + 1.0)) as u64)
    }
}

#[derive(Debug)]
pub(super) struct Wire {
    delay: Duration,
    jitter: Duration,
    steps_config: Option<StepsConfig>,
    steps: Steps,
    /// Replaces `delay`.
    schedule: Option<Schedule>,
    /// Whether all packets spend `delay` on the wire.
    has_constant_delay: bool,
    stream: Stream,
    /// Packets on the wire with their arrival times, which never decrease.
    in_transit: VecDeque<(Instant, Packet)>,
    pub(super) packets_out: u64,
    pub(super) bytes_out: u64,
}

impl Wire {
    pub(super) fn new(config: &LinkConfig, schedule: Option<Schedule>, steps: Steps, stream: Stream) -> Self {
        Self {
            delay: config.delay,
            jitter: config.jitter,
            steps_config: config.steps,
            steps,
            has_constant_delay: schedule.is_none() && config.has_constant_delay(),
            schedule,
            stream,
            in_transit: VecDeque::new(),
            packets_out: 0,
            bytes_out: 0,
        }
    }

    /// Applies new settings to packets that are sent from now on.
    pub(super) fn configure(&mut self, config: &LinkConfig) {
        (self.delay, self.jitter, self.steps_config) = (config.delay, config.jitter, config.steps);
        self.has_constant_delay = self.schedule.is_none() && config.has_constant_delay();
    }

    pub(super) fn in_transit(&self) -> usize {
        self.in_transit.len()
    }

    /// Returns a lower bound on the time that a packet spends on the wire.
    pub(super) fn least_delay(&self) -> Duration {
        if self.schedule.is_some() { Duration::ZERO } else { self.delay }
    }

    /// Returns an upper bound on the time that a packet spends on a wire without schedule.
    pub(super) fn max_delay(&self) -> Duration {
        self.delay + self.jitter + self.steps_config.map_or(Duration::ZERO, |steps| steps.within)
    }

    /// Returns when a packet whose transmission ends at `at` reaches the far end, if it does not have to stay
    /// behind an earlier one.
    #[inline]
    pub(super) fn arrival(&mut self, at: Instant) -> Instant {
        match self.has_constant_delay {
            true => at + self.delay,
            false => self.variable_arrival(at),
        }
    }

    fn variable_arrival(&mut self, at: Instant) -> Instant {
        let mut arrival = at + self.schedule.as_ref().map_or(self.delay, |schedule| schedule.delay_at(at));
        if let Some(steps_config) = &self.steps_config {
            arrival += self.steps.delay_at(at, steps_config);
        }
        if !self.jitter.is_zero() {
            arrival += Duration::from_nanos(self.stream.below(self.jitter.as_nanos() + 1));
        }
        arrival
    }

    /// Puts a packet on the wire. Its transmission ended at `at`.
    pub(super) fn send(&mut self, at: Instant, packet: Packet, out: &mut Outbox) {
        let arrival = self.arrival(at);
        match self.in_transit.back() {
            Some((last, _)) => self.in_transit.push_back((arrival.max(*last), packet)),
            None if arrival == at => self.forward(packet, out),
            None => self.in_transit.push_back((arrival, packet)),
        }
    }

    pub(super) fn deliver(&mut self, now: Instant, out: &mut Outbox) {
        while let Some((_, packet)) = self.in_transit.pop_front_if(|(arrival, _)| *arrival <= now) {
            self.forward(packet, out);
        }
    }

    fn forward(&mut self, packet: Packet, out: &mut Outbox) {
        self.packets_out += 1;
        self.bytes_out += packet.len() as u64;
        out.forward(packet);
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.in_transit.front().map(|(arrival, _)| *arrival)
    }
}
