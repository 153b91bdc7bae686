//! Link-layer retransmission of whole packets, with a retry limit and without in-order delivery (P3 §VI,
//! LLRTX).
//!
//! The transmitter sends one packet at a time. It learns that a packet was damaged when the receiver's
//! feedback arrives. It then retransmits the packet after the current transmission, ahead of all packets that
//! wait for their first transmission. The receiver delivers each packet on arrival, so later packets overtake
//! a damaged one. The fraction of reordered packets is about the packet error rate.

use std::collections::VecDeque;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::{Probability, Rate};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::duplex::{OneWay, OneWaySettings};
use super::pace::Pace;
use super::queue::{Queue, QueueConfig};
use crate::packet::{Direction, Packet};
use crate::settings::{Invalid, Position};
use crate::stage::{DropReason, Event, Outbox};

/// The settings of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArqConfig {
    /// Packet error rate, applied independently to each transmission.
    pub per: Probability,
    /// Maximum number of retransmissions per packet. With 3, a packet is transmitted up to 4 times.
    pub retries: u32,
    /// Rate of the transmitter, which first transmissions and retransmissions share.
    pub rate: Rate,
    /// Propagation delay.
    #[serde(default)]
    pub delay: Duration,
    /// Time from the arrival of a damaged packet until the transmitter learns of the damage. Defaults to
    /// `delay`.
    pub feedback: Option<Duration>,
    /// Queue for packets that wait for their first transmission. Packets that wait for a retransmission do
    /// not count.
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
    /// End of the previous transmission.
    free_since: Instant,
    /// Undamaged packets on the way to the receiver, with their arrival times.
    arriving: VecDeque<(Instant, Packet)>,
    /// Damaged packets, with the time at which the transmitter learns of the damage.
    awaiting_feedback: VecDeque<(Instant, Attempt)>,
    /// Packets that wait for a retransmission, and the time at which each began to wait.
    to_retransmit: VecDeque<(Instant, Attempt)>,
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
    /// Number of this transmission of the packet, from 1.
    number: u32,
    packet: Packet,
}

impl Arq {
    /// Creates the stage, or returns an error if the settings are invalid. `damage` decides which
    /// transmissions are damaged. `queue` is for queue disciplines that make random decisions.
    pub fn new(config: &ArqConfig, damage: Stream, queue: Stream) -> Result<Self, Invalid> {
        config.validate()?;
        Ok(Self {
            pace: Pace::new(config.rate),
            queue: Queue::new(config.queue, queue),
            config: config.clone(),
            sending: None,
            free_since: Instant::ZERO,
            arriving: VecDeque::new(),
            awaiting_feedback: VecDeque::new(),
            to_retransmit: VecDeque::new(),
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

    /// Handles the end of a transmission: decides whether the packet arrives or is damaged.
    fn finish_transmission(&mut self, end: Instant, attempt: Attempt) {
        self.free_since = end;
        let arrival = end + self.config.delay;
        if self.damage.chance(self.config.per.value()) {
            self.damaged += 1;
            let known = arrival + self.config.feedback.unwrap_or(self.config.delay);
            // If the delay was shortened at run time, neither feedback nor packets (below) overtake earlier
            // ones.
            let known = self.awaiting_feedback.back().map_or(known, |(last, _)| known.max(*last));
            self.awaiting_feedback.push_back((known, attempt));
        } else {
            let arrival = self.arriving.back().map_or(arrival, |(last, _)| arrival.max(*last));
            self.arriving.push_back((arrival, attempt.packet));
        }
    }

    /// Handles feedback about a damaged packet: schedules a retransmission or gives up.
    fn handle_feedback(&mut self, now: Instant, attempt: Attempt, out: &mut Outbox) {
        if attempt.number > self.config.retries {
            self.given_up += 1;
            out.drop(attempt.packet, DropReason::RetryLimit);
        } else {
            self.to_retransmit.push_back((now, Attempt { number: attempt.number + 1, ..attempt }));
        }
    }

    /// Forwards the packets that have arrived by `now`.
    fn deliver_due(&mut self, now: Instant, out: &mut Outbox) {
        while let Some((_, packet)) = self.arriving.pop_front_if(|(at, _)| *at <= now) {
            self.packets_out += 1;
            out.forward(packet);
        }
    }

    /// Starts the next transmission if the transmitter is free.
    fn start_next(&mut self, now: Instant, out: &mut Outbox) {
        if self.sending.is_some() {
            return;
        }
        if let Some((since, attempt)) = self.to_retransmit.pop_front() {
            self.send(now, attempt, now - since, out);
        } else if let Some((waited, packet)) = self.queue.pop(now, out) {
            self.send(now, Attempt { number: 1, packet }, waited, out);
        }
    }
}

impl OneWay for Arq {
    type Config = ArqConfig;

    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        // Handle events that are due at `now` first: the driver may pass in the packet before the deadline
        // call.
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
        // Handle events in the order of their times, even if the driver calls late. Events of the same time
        // are handled in causal order.
        while let Some(at) = self.next_deadline().filter(|at| *at <= now) {
            self.deliver_due(at, out);
            if let Some((_, attempt)) = self.sending.take_if(|(end, _)| *end <= at) {
                self.finish_transmission(at, attempt);
            }
            while let Some((_, attempt)) = self.awaiting_feedback.pop_front_if(|(known, _)| *known <= at) {
                self.handle_feedback(at, attempt, out);
            }
            self.start_next(at, out);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let transmission = self.sending.as_ref().map(|(end, _)| *end);
        let arrival = self.arriving.front().map(|(at, _)| *at);
        let feedback = self.awaiting_feedback.front().map(|(at, _)| *at);
        [transmission, arrival, feedback].into_iter().flatten().min()
    }

    fn held(&self) -> usize {
        self.queue.len()
            + usize::from(self.sending.is_some())
            + self.arriving.len()
            + self.awaiting_feedback.len()
            + self.to_retransmit.len()
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
            "awaiting_retransmission": self.awaiting_feedback.len() + self.to_retransmit.len(),
            "on_the_wire": self.arriving.len(),
        })
    }

    /// A new rate applies to the rest of the current transmission, a new retry limit from the next feedback
    /// on.
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
