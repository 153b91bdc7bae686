//! Packet-level local retransmission with a limit and without in-order delivery (P3 §VI, LLRTX).
//!
//! The transmitter sends one packet at a time. One that the channel damages is known to be so when the receiver's
//! feedback is back; it is then sent again before any packet that waits for its first transmission, but behind
//! what is under transmission. Meanwhile later packets have passed it: the receiver hands each one on as it comes,
//! so packets are reordered at about the packet error rate.

use std::collections::VecDeque;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::{Probability, Rate};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::duplex::OneWaySettings;
use super::pace::Pace;
use super::queue::{Queue, QueueConfig};
use crate::packet::{Direction, Packet};
use crate::settings::{Invalid, Position};
use crate::stage::{Event, NotLive, OneWay, Outbox, Why};

/// The settings of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArqConfig {
    /// The packet error rate, of each transmission on its own.
    pub per: Probability,
    /// Retransmissions of one packet, at most: with 3 a packet is transmitted up to 4 times. With 0, none.
    pub retries: u32,
    /// Of the transmitter. Retransmissions take their time too.
    pub rate: Rate,
    /// Propagation.
    #[serde(default)]
    pub delay: Duration,
    /// From the arrival of a damaged packet until the transmitter knows. Absent: as long as `delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Duration>,
    /// Packets that wait for their first transmission. Those that wait for another one do not count.
    #[serde(default)]
    pub queue: QueueConfig,
}

impl OneWaySettings for ArqConfig {
    type Stage = Arq;

    fn validate(&self) -> Result<(), Invalid> {
        self.queue.validate().map_err(|invalid| invalid.within("queue"))
    }

    fn build(&self, direction: Direction, position: Position<'_>, seed: u64) -> Result<Arq, String> {
        let stream = |purpose| position.stream(seed, direction, purpose);
        Arq::new(self, stream("damage"), stream("queue")).map_err(|invalid| invalid.to_string())
    }
}

/// One direction of the stage.
#[derive(Debug)]
pub struct Arq {
    config: ArqConfig,
    pace: Pace,
    queue: Queue,
    sending: Option<(Instant, Attempt)>,
    /// When the transmission before ended.
    free_since: Instant,
    /// On the way to the receiver, undamaged.
    arriving: VecDeque<(Instant, Packet)>,
    /// Damaged; with the time at which the transmitter knows.
    awaiting: VecDeque<(Instant, Attempt)>,
    /// To be sent again, with the time since when.
    again: VecDeque<(Instant, Attempt)>,
    damage: Stream,
    packets_in: u64,
    packets_out: u64,
    transmissions: u64,
    retransmissions: u64,
    damaged: u64,
    given_up: u64,
}

#[derive(Debug)]
struct Attempt {
    /// 1 is the first transmission of the packet.
    number: u32,
    packet: Packet,
}

impl Arq {
    /// `damage` decides about each transmission. `queue` is for disciplines that decide by chance.
    pub fn new(config: &ArqConfig, damage: Stream, queue: Stream) -> Result<Self, Invalid> {
        config.validate()?;
        Ok(Self {
            pace: Pace::new(config.rate),
            queue: Queue::new(config.queue, queue),
            config: config.clone(),
            sending: None,
            free_since: Instant::ZERO,
            arriving: VecDeque::new(),
            awaiting: VecDeque::new(),
            again: VecDeque::new(),
            damage,
            packets_in: 0,
            packets_out: 0,
            transmissions: 0,
            retransmissions: 0,
            damaged: 0,
            given_up: 0,
        })
    }

    fn send(&mut self, now: Instant, attempt: Attempt, waited: Duration, out: &mut Outbox) {
        self.transmissions += 1;
        if attempt.number == 1 {
            out.note(&attempt.packet, Event::Sent { waited });
        } else {
            self.retransmissions += 1;
            out.note(&attempt.packet, Event::Resent { attempt: attempt.number });
        }
        if self.free_since != now {
            self.pace = Pace::new(self.pace.rate());
        }
        self.sending = Some((now + self.pace.next(attempt.packet.len()), attempt));
    }

    /// The transmission that ended at `end` either arrives, or is heard to have failed.
    fn sent(&mut self, end: Instant, attempt: Attempt) {
        self.free_since = end;
        let arrival = end + self.config.delay;
        if self.damage.chance(self.config.per.value()) {
            self.damaged += 1;
            let known = arrival + self.config.feedback.unwrap_or(self.config.delay);
            // A shorter delay, set under way, does not let the feedback overtake itself, nor the packets below.
            let known = self.awaiting.back().map_or(known, |(last, _)| known.max(*last));
            self.awaiting.push_back((known, attempt));
        } else {
            let arrival = self.arriving.back().map_or(arrival, |(last, _)| arrival.max(*last));
            self.arriving.push_back((arrival, attempt.packet));
        }
    }

    fn heard(&mut self, now: Instant, attempt: Attempt, out: &mut Outbox) {
        if attempt.number > self.config.retries {
            self.given_up += 1;
            out.drop(attempt.packet, Why::RetryLimit);
        } else {
            self.again.push_back((now, Attempt { number: attempt.number + 1, ..attempt }));
        }
    }

    fn arrive(&mut self, now: Instant, out: &mut Outbox) {
        while self.arriving.front().is_some_and(|(at, _)| *at <= now) {
            let (_, packet) = self.arriving.pop_front().expect("it was just looked at");
            self.packets_out += 1;
            out.forward(packet);
        }
    }

    /// If the transmitter is free, it takes the next one.
    fn go_on(&mut self, now: Instant, out: &mut Outbox) {
        if self.sending.is_some() {
            return;
        }
        if let Some((since, attempt)) = self.again.pop_front() {
            self.send(now, attempt, now - since, out);
        } else if let Some((waited, packet)) = self.queue.pop(now, out) {
            self.send(now, Attempt { number: 1, packet }, waited, out);
        }
    }
}

impl OneWay for Arq {
    type Config = ArqConfig;

    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        // What is due at this very time comes first, whether its deadline has been handed in or not.
        self.handle_deadline(now, out);
        self.packets_in += 1;
        if self.sending.is_none() {
            if let Some(packet) = self.queue.pass(now, packet, out) {
                self.send(now, Attempt { number: 1, packet }, Duration::ZERO, out);
            }
        } else {
            self.queue.push(now, packet, out);
        }
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        // In the order of their times, whatever the driver's delay; at one time, in the order of cause and effect.
        while let Some(at) = self.next_deadline().filter(|at| *at <= now) {
            self.arrive(at, out);
            if let Some((_, attempt)) = self.sending.take_if(|(end, _)| *end <= at) {
                self.sent(at, attempt);
            }
            while let Some((_, attempt)) = self.awaiting.pop_front_if(|(known, _)| *known <= at) {
                self.heard(at, attempt, out);
            }
            self.go_on(at, out);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let sent = self.sending.as_ref().map(|(end, _)| *end);
        let arrives = self.arriving.front().map(|(at, _)| *at);
        let heard = self.awaiting.front().map(|(at, _)| *at);
        [sent, arrives, heard].into_iter().flatten().min()
    }

    fn held(&self) -> usize {
        self.queue.len()
            + usize::from(self.sending.is_some())
            + self.arriving.len()
            + self.awaiting.len()
            + self.again.len()
    }

    fn stats(&self) -> Value {
        json!({
            "packets_in": self.packets_in,
            "packets_out": self.packets_out,
            "transmissions": self.transmissions,
            "retransmissions": self.retransmissions,
            "damaged": self.damaged,
            "given_up": self.given_up,
            "queue": self.queue.stats(),
            "awaiting_retransmission": self.awaiting.len() + self.again.len(),
            "on_the_wire": self.arriving.len(),
        })
    }

    fn check(&self, config: &ArqConfig) -> Result<(), NotLive> {
        config.validate().map_err(|invalid| NotLive::new(invalid.key, invalid.message))
    }

    /// A new rate holds for the rest of the packet under transmission; a new limit when the next feedback comes in.
    fn reconfigure(&mut self, now: Instant, config: &ArqConfig, out: &mut Outbox) {
        if config.rate != self.config.rate {
            match &mut self.sending {
                Some((end, _)) => *end = now + self.pace.change(config.rate, *end - now),
                None => self.pace = Pace::new(config.rate),
            }
        }
        self.queue.reconfigure(now, config.queue, out);
        self.config = config.clone();
    }
}
