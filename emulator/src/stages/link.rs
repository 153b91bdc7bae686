//! A link: a queue, a transmitter that serves it at a rate or by a trace, and the wire.

use std::path::PathBuf;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::Rate;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::duplex::{OneWay, OneWaySettings};
use super::pace::Pace;
use super::queue::{Queue, QueueConfig};
use super::trace::{Cursor, OPPORTUNITY, TUN_HEADER, Trace};
use crate::packet::{Direction, Packet};
use crate::settings::{Invalid, InvalidInPath, Position};
use crate::stage::{Ahead, Event, Outbox, ReconfigureError};

mod forecast;
pub mod schedule;
mod scheduled;
mod wire;

use forecast::Forecast;
use schedule::Schedule;
use scheduled::ScheduledTransmitter;
pub use wire::StepsConfig;
use wire::{Steps, Wire};

/// The settings of one direction. Without `rate`, `trace` and a schedule of rates, transmission takes no
/// time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Rate of the transmitter.
    pub rate: Option<Rate>,
    /// File of delivery opportunities in mahimahi's format, in place of a rate.
    pub trace: Option<PathBuf>,
    /// File with a schedule for the rate, the delay or both, in place of fixed values.
    pub follow: Option<PathBuf>,
    /// With `follow`: whether the schedule repeats. By default its last line stays in effect.
    #[serde(rename = "loop")]
    pub is_looped: Option<bool>,
    /// Propagation delay.
    #[serde(default)]
    pub delay: Duration,
    /// Maximum additional delay of a packet, uniformly distributed. Packets are not reordered.
    #[serde(default)]
    pub jitter: Duration,
    /// Additional delay that changes in steps.
    pub steps: Option<StepsConfig>,
    /// Queue for packets that wait for the transmitter. It stays empty if transmission takes no time.
    #[serde(default)]
    pub queue: QueueConfig,
}

impl OneWaySettings for LinkConfig {
    type Stage = Link;

    fn validate(&self) -> Result<(), Invalid> {
        if self.rate.is_some() && self.trace.is_some() {
            return Err(Invalid::new("trace", "a link has either a `rate` or a `trace`: remove one of them"));
        }
        if self.trace.is_some() && self.follow.is_some() {
            return Err(Invalid::new(
                "follow",
                "a link has either a `trace` or a schedule (`follow`): remove one of them",
            ));
        }
        if self.is_looped.is_some() && self.follow.is_none() {
            return Err(Invalid::new("loop", "valid only with a schedule (`follow`): remove it"));
        }
        if let Some(steps) = &self.steps {
            steps.validate().map_err(|invalid| invalid.within("steps"))?;
        }
        self.queue.validate().map_err(|invalid| invalid.within("queue"))
    }

    fn check_in_path(&self, _direction: Direction, _position: Position<'_>) -> Result<(), InvalidInPath> {
        let invalid = |key: &str| {
            let key = key.to_owned();
            move |message| InvalidInPath { key, message, help: None }
        };
        self.load_trace().map_err(invalid("trace"))?;
        if let Some(schedule) = self.load_schedule().map_err(invalid("follow"))? {
            self.check_with_schedule(&schedule).map_err(|Invalid { key, message }| invalid(&key)(message))?;
        }
        Ok(())
    }

    fn build(&self, direction: Direction, position: Position<'_>, seed: u64) -> Result<Link, String> {
        let inputs = LinkInputs {
            trace: self.load_trace()?,
            schedule: self.load_schedule()?,
            jitter: position.stream(seed, direction, "jitter"),
            queue: position.stream(seed, direction, "queue"),
            // Both directions share this stream: their delays change together when the satellite moves.
            steps: position.stream(seed, Direction::Down, "steps"),
        };
        Link::new(self, inputs).map_err(|invalid| invalid.to_string())
    }
}

impl LinkConfig {
    /// Loads the trace that `trace` names.
    fn load_trace(&self) -> Result<Option<Trace>, String> {
        let Some(path) = self.trace.as_deref() else { return Ok(None) };
        Trace::load(path).map(Some).map_err(|error| error.in_file(path))
    }

    /// Loads the schedule that `follow` names.
    fn load_schedule(&self) -> Result<Option<Schedule>, String> {
        let Some(path) = self.follow.as_deref() else { return Ok(None) };
        let schedule = Schedule::load(path, self.is_looped.unwrap_or_default());
        schedule.map(Some).map_err(|error| error.in_file(path))
    }

    /// Whether the settings delay all packets equally.
    fn has_constant_delay(&self) -> bool {
        self.jitter.is_zero() && self.steps.is_none()
    }

    /// Refuses settings for which the schedule has a column.
    fn check_with_schedule(&self, schedule: &Schedule) -> Result<(), Invalid> {
        let conflict = |key: &str| {
            Err(Invalid::new(
                key,
                format!("the schedule (`follow`) has a column `{key}`: remove one of them"),
            ))
        };
        if schedule.has_rate() && self.rate.is_some() {
            return conflict("rate");
        }
        if schedule.has_delay() && !self.delay.is_zero() {
            return conflict("delay");
        }
        Ok(())
    }
}

/// The inputs of a link besides its settings.
#[derive(Clone, Debug)]
pub struct LinkInputs {
    /// The content of the file that `trace` names.
    pub trace: Option<Trace>,
    /// The content of the file that `follow` names.
    pub schedule: Option<Schedule>,
    /// Random numbers for jitter.
    pub jitter: Stream,
    /// Random numbers for queue disciplines.
    pub queue: Stream,
    /// Random numbers for the steps of the delay.
    pub steps: Stream,
}

impl From<Stream> for LinkInputs {
    /// No files, and one stream for all random numbers.
    fn from(stream: Stream) -> Self {
        Self { trace: None, schedule: None, jitter: stream.clone(), queue: stream.clone(), steps: stream }
    }
}

/// One direction of a link.
#[derive(Debug)]
pub struct Link {
    /// The current settings, kept to detect changes.
    config: LinkConfig,
    schedule: Option<Schedule>,
    queue: Queue,
    transmitter: Transmitter,
    wire: Wire,
    /// In lazy mode the end of a transmission does not set a deadline. It is handled when the packet arrives
    /// at the far end or the next one enters.
    is_lazy: bool,
    /// Replaces the queue and the wire in a path that looks ahead.
    forecast: Option<Box<Forecast>>,
    packets_in: u64,
    bytes_in: u64,
}

#[derive(Debug)]
enum Transmitter {
    /// Transmission takes no time.
    Immediate,
    AtRate {
        pace: Pace,
        /// The packet in transmission, and the time at which its transmission ends.
        sending: Option<(Instant, Packet)>,
        /// End of the previous transmission. If the next one begins at this time, fractions of nanoseconds
        /// carry over.
        free_since: Instant,
    },
    ByTrace {
        cursor: Cursor,
        /// A packet that an opportunity has sent in part, and the number of its remaining bytes.
        sending: Option<(usize, Packet)>,
    },
    Scheduled(ScheduledTransmitter),
}

impl Link {
    /// Creates the link, or returns an error if the settings are invalid or conflict with the schedule.
    pub fn new(config: &LinkConfig, inputs: LinkInputs) -> Result<Self, Invalid> {
        config.validate()?;
        let LinkInputs { trace, schedule, jitter, queue, steps } = inputs;
        if let Some(schedule) = &schedule {
            config.check_with_schedule(schedule)?;
        }
        let transmitter = match (config.rate, trace, &schedule) {
            (_, Some(trace), _) => Transmitter::ByTrace { cursor: Cursor::new(trace), sending: None },
            (_, None, Some(schedule)) if schedule.has_rate() => {
                Transmitter::Scheduled(ScheduledTransmitter::new(schedule.clone()))
            }
            (rate, None, _) => Transmitter::for_rate(rate),
        };
        let delays = schedule.clone().filter(Schedule::has_delay);
        let wire = Wire::new(config, delays, Steps::new(steps), jitter);
        Ok(Self {
            config: config.clone(),
            schedule,
            queue: Queue::new(config.queue, queue),
            transmitter,
            wire,
            is_lazy: false,
            forecast: None,
            packets_in: 0,
            bytes_in: 0,
        })
    }

    #[cfg(test)]
    pub(super) fn queue(&mut self) -> &mut Queue {
        &mut self.queue
    }

    /// Returns the time of the next arrival at the far end or end of a transmission.
    fn next_event(&self) -> Option<Instant> {
        let sent = match &self.transmitter {
            Transmitter::Immediate => None,
            Transmitter::AtRate { sending, .. } => sending.as_ref().map(|(end, _)| *end),
            Transmitter::Scheduled(scheduled) => scheduled.next_deadline(&self.queue),
            Transmitter::ByTrace { cursor, sending } => {
                (sending.is_some() || !self.queue.is_empty()).then(|| cursor.next())
            }
        };
        match (sent, self.wire.next_arrival()) {
            (Some(sent), Some(arrival)) => Some(sent.min(arrival)),
            (first, second) => first.or(second),
        }
    }

    /// Runs the transmitter up to `now`, each step at its own time.
    fn transmit(&mut self, now: Instant, out: &mut Outbox) {
        match &mut self.transmitter {
            Transmitter::Immediate => {
                while let Some((waited, packet)) = self.queue.pop(now, out) {
                    out.note(&packet, Event::Sent { waited });
                    self.wire.send(now, packet, out);
                }
            }
            Transmitter::AtRate { pace, sending, free_since } => {
                while let Some((end, packet)) = sending.take_if(|(end, _)| *end <= now) {
                    self.wire.send(end, packet, out);
                    *free_since = end;
                    if let Some((waited, packet)) = self.queue.pop(end, out) {
                        out.note(&packet, Event::Sent { waited });
                        *sending = Some((end + pace.next(packet.len()), packet));
                    }
                }
            }
            Transmitter::Scheduled(scheduled) => {
                scheduled.transmit(now, &mut self.queue, &mut self.wire, out)
            }
            Transmitter::ByTrace { cursor, sending } => {
                while (sending.is_some() || !self.queue.is_empty()) && cursor.next() <= now {
                    let at = cursor.next();
                    cursor.advance();
                    let mut room = OPPORTUNITY;
                    while room > 0 {
                        let Some((need, packet)) = sending.take().or_else(|| {
                            let (waited, packet) = self.queue.pop(at, out)?;
                            out.note(&packet, Event::Sent { waited });
                            Some((packet.len() + TUN_HEADER, packet))
                        }) else {
                            break;
                        };
                        if need > room {
                            *sending = Some((need - room, packet));
                            break;
                        }
                        room -= need;
                        self.wire.send(at, packet, out);
                    }
                }
            }
        }
    }
}

impl Transmitter {
    fn for_rate(rate: Option<Rate>) -> Self {
        rate.map_or(Self::Immediate, |rate| Self::AtRate {
            pace: Pace::new(rate),
            sending: None,
            free_since: Instant::ZERO,
        })
    }

    fn is_busy(&self) -> bool {
        match self {
            Self::Immediate => false,
            Self::AtRate { sending, .. } => sending.is_some(),
            Self::ByTrace { sending, .. } => sending.is_some(),
            Self::Scheduled(scheduled) => scheduled.is_busy(),
        }
    }
}

impl OneWay for Link {
    type Config = LinkConfig;

    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        // Handle events that are due at `now` first: the driver may pass in the packet before the deadline
        // call.
        if self.next_event().is_some_and(|at| at <= now) {
            self.handle_deadline(now, out);
        }
        self.packets_in += 1;
        self.bytes_in += packet.len() as u64;
        match &mut self.transmitter {
            Transmitter::Immediate => {
                out.note(&packet, Event::Sent { waited: Duration::ZERO });
                self.wire.send(now, packet, out);
            }
            Transmitter::AtRate { pace, sending: sending @ None, free_since } => {
                let Some(packet) = self.queue.pass(now, packet, out) else { return };
                if *free_since != now {
                    *pace = Pace::new(pace.rate());
                }
                out.note(&packet, Event::Sent { waited: Duration::ZERO });
                *sending = Some((now + pace.next(packet.len()), packet));
            }
            Transmitter::AtRate { .. } => self.queue.push(now, packet, out),
            Transmitter::Scheduled(scheduled) => scheduled.take(now, packet, &mut self.queue, out),
            Transmitter::ByTrace { cursor, sending } => {
                // Opportunities that pass while the queue is empty are wasted. As in mm-link, a packet that
                // arrives exactly at the time of an opportunity misses it.
                if sending.is_none() && self.queue.is_empty() {
                    cursor.skip_through(now);
                }
                self.queue.push(now, packet, out);
            }
        }
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        self.wire.deliver(now, out);
        self.transmit(now, out);
        self.wire.deliver(now, out);
    }

    fn next_deadline(&self) -> Option<Instant> {
        // Queue disciplines act at the end of a transmission. With drop-tail that moment has no visible
        // effect.
        if let Transmitter::AtRate { sending, .. } = &self.transmitter
            && self.is_lazy
            && self.queue.is_drop_tail()
        {
            // Packets are not reordered, so the packets on the wire arrive first.
            let arrival = self.wire.next_arrival();
            return arrival.or_else(|| sending.as_ref().map(|(end, _)| *end + self.wire.least_delay()));
        }
        self.next_event()
    }

    fn be_lazy(&mut self, is_lazy: bool) {
        self.is_lazy = is_lazy;
    }

    fn catch_up(&mut self, now: Instant, out: &mut Outbox) {
        self.transmit(now, out);
    }

    fn lookahead(&mut self) -> Ahead<'_> {
        // The role of a link that looks ahead does not change.
        if self.forecast.is_some() {
            return Ahead::Carries(self);
        }
        match self.transmitter {
            Transmitter::Immediate | Transmitter::AtRate { .. }
                if self.queue.is_drop_tail() && self.schedule.is_none() =>
            {
                Ahead::Carries(self)
            }
            _ => Ahead::No,
        }
    }

    fn held(&self) -> usize {
        if let Some(forecast) = &self.forecast {
            return forecast.held();
        }
        self.queue.len() + usize::from(self.transmitter.is_busy()) + self.wire.in_transit()
    }

    fn stats(&self) -> Value {
        if let Some(forecast) = &self.forecast {
            return forecast.stats();
        }
        json!({
            "packets_in": self.packets_in,
            "bytes_in": self.bytes_in,
            "packets_out": self.wire.packets_out,
            "bytes_out": self.wire.bytes_out,
            "queue": self.queue.stats(),
            "transmitting": usize::from(self.transmitter.is_busy()),
            "on_the_wire": self.wire.in_transit(),
        })
    }

    fn check(&self, config: &LinkConfig) -> Result<(), ReconfigureError> {
        if config.trace != self.config.trace {
            return Err(ReconfigureError::new("trace", "the trace is read when the link starts"));
        }
        if config.follow != self.config.follow {
            return Err(ReconfigureError::new("follow", "the schedule is read when the link starts"));
        }
        if config.is_looped != self.config.is_looped {
            return Err(ReconfigureError::new("loop", "the schedule is fixed when the link starts"));
        }
        config.validate()?;
        Ok(self.schedule.as_ref().map_or(Ok(()), |schedule| config.check_with_schedule(schedule))?)
    }

    /// A new rate applies to the rest of the packet in transmission. Packets on the wire keep their arrival
    /// times, and later packets do not overtake them.
    fn reconfigure(&mut self, now: Instant, config: &LinkConfig, out: &mut Outbox) {
        self.transmit(now, out);
        self.wire.configure(config);
        self.config = config.clone();
        self.queue.reconfigure(now, config.queue, out);
        match (&mut self.transmitter, config.rate) {
            (Transmitter::AtRate { pace, sending, .. }, Some(rate)) if pace.rate() != rate => match sending {
                Some((end, _)) => *end = now + pace.change(rate, *end - now),
                None => *pace = Pace::new(rate),
            },
            (Transmitter::AtRate { sending, .. }, None) => {
                if let Some((_, packet)) = sending.take() {
                    self.wire.send(now, packet, out);
                }
                self.transmitter = Transmitter::Immediate;
                self.transmit(now, out);
            }
            (Transmitter::Immediate, rate) => self.transmitter = Transmitter::for_rate(rate),
            (Transmitter::AtRate { .. } | Transmitter::ByTrace { .. } | Transmitter::Scheduled(_), _) => {}
        }
    }
}

#[cfg(test)]
mod tests;
