//! A queue, the transmitter that empties it at a rate or by a trace, and the wire behind that.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::Rate;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::duplex::OneWaySettings;
use super::pace::Pace;
use super::queue::{Queue, QueueConfig};
use super::trace::{Cursor, OPPORTUNITY, TUN_HEADER, Trace, TraceError};
use crate::packet::{Direction, Packet};
use crate::settings::{Invalid, Misplaced, Position};
use crate::stage::{Event, NotLive, OneWay, Outbox};

/// The settings of one direction: `rate`, `trace` or neither. With neither, a packet is on the wire at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Of the transmitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Delivery opportunities in mahimahi's format, in place of a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
    /// Propagation.
    #[serde(default)]
    pub delay: Duration,
    /// Up to so much more propagation, uniformly distributed. A packet never overtakes another.
    #[serde(default)]
    pub jitter: Duration,
    /// Where packets wait for the transmitter. Without a rate and without a trace none ever waits.
    #[serde(default)]
    pub queue: QueueConfig,
}

impl OneWaySettings for LinkConfig {
    type Stage = Link;

    fn validate(&self) -> Result<(), Invalid> {
        if self.rate.is_some() && self.trace.is_some() {
            return Err(Invalid::new(
                "trace",
                "a link has either a `rate` or a `trace` of delivery opportunities: leave one out",
            ));
        }
        self.queue.validate().map_err(|invalid| invalid.within("queue"))
    }

    fn check_in_path(&self, _direction: Direction, _position: Position<'_>) -> Result<(), Misplaced> {
        match self.trace.as_deref().map(load_trace) {
            Some(Err(message)) => Err(Misplaced { key: "trace".to_owned(), message, help: None }),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    fn build(&self, direction: Direction, position: Position<'_>, seed: u64) -> Result<Link, String> {
        let trace = self.trace.as_deref().map(load_trace).transpose()?;
        let jitter = position.stream(seed, direction, "jitter");
        Link::new(self, trace, jitter).map_err(|invalid| invalid.to_string())
    }
}

fn load_trace(path: &Path) -> Result<Trace, String> {
    Trace::load(path).map_err(|error| match error {
        TraceError::Line { line, wrong } => format!("{}:{line}: {wrong}", path.display()),
        TraceError::Unreadable(..) => error.to_string(),
        other => format!("{}: {other}", path.display()),
    })
}

/// One direction of a link.
#[derive(Debug)]
pub struct Link {
    /// Remembered to tell what changes.
    trace: Option<PathBuf>,
    queue: Queue,
    transmitter: Transmitter,
    wire: Wire,
    packets_in: u64,
    bytes_in: u64,
}

#[derive(Debug)]
enum Transmitter {
    /// Takes no time.
    Immediate,
    AtRate {
        pace: Pace,
        /// What is under transmission, and when it ends.
        sending: Option<(Instant, Packet)>,
        /// When the one before ended: if the next one begins just then, fractions of nanoseconds carry over.
        free_since: Instant,
    },
    ByTrace {
        cursor: Cursor,
        /// What an opportunity has begun, and the octets it still needs.
        sending: Option<(usize, Packet)>,
    },
}

impl Link {
    /// `trace` is the content of the file that `config` names, if it names one.
    pub fn new(config: &LinkConfig, trace: Option<Trace>, jitter: Stream) -> Result<Self, Invalid> {
        config.validate()?;
        let transmitter = match (config.rate, trace) {
            (_, Some(trace)) => Transmitter::ByTrace { cursor: Cursor::new(trace), sending: None },
            (rate, None) => Transmitter::for_rate(rate),
        };
        Ok(Self {
            trace: config.trace.clone(),
            queue: Queue::new(config.queue),
            transmitter,
            wire: Wire::new(config.delay, config.jitter, jitter),
            packets_in: 0,
            bytes_in: 0,
        })
    }

    /// Does what the transmitter does up to `now`: each step at its own time.
    fn transmit(&mut self, now: Instant, out: &mut Outbox) {
        match &mut self.transmitter {
            Transmitter::Immediate => {
                while let Some((waited, packet)) = self.queue.pop(now) {
                    out.note(&packet, Event::Sent { waited });
                    self.wire.launch(now, packet, out);
                }
            }
            Transmitter::AtRate { pace, sending, free_since } => {
                while let Some((end, packet)) = sending.take_if(|(end, _)| *end <= now) {
                    self.wire.launch(end, packet, out);
                    *free_since = end;
                    if let Some((waited, packet)) = self.queue.pop(end) {
                        out.note(&packet, Event::Sent { waited });
                        *sending = Some((end + pace.next(packet.len()), packet));
                    }
                }
            }
            Transmitter::ByTrace { cursor, sending } => {
                while (sending.is_some() || !self.queue.is_empty()) && cursor.next() <= now {
                    let at = cursor.next();
                    cursor.advance();
                    let mut room = OPPORTUNITY;
                    while room > 0 {
                        let Some((need, packet)) = sending.take().or_else(|| {
                            let (waited, packet) = self.queue.pop(at)?;
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
                        self.wire.launch(at, packet, out);
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

    fn busy(&self) -> bool {
        match self {
            Self::Immediate => false,
            Self::AtRate { sending, .. } => sending.is_some(),
            Self::ByTrace { sending, .. } => sending.is_some(),
        }
    }
}

impl OneWay for Link {
    type Config = LinkConfig;

    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        // What is due at this very time comes first, whether its deadline has been handed in or not.
        self.handle_deadline(now, out);
        self.packets_in += 1;
        self.bytes_in += packet.len() as u64;
        match &mut self.transmitter {
            Transmitter::Immediate => {
                out.note(&packet, Event::Sent { waited: Duration::ZERO });
                self.wire.launch(now, packet, out);
            }
            Transmitter::AtRate { pace, sending: sending @ None, free_since } => {
                if *free_since != now {
                    *pace = Pace::new(pace.rate());
                }
                out.note(&packet, Event::Sent { waited: Duration::ZERO });
                *sending = Some((now + pace.next(packet.len()), packet));
            }
            Transmitter::AtRate { .. } => self.queue.push(now, packet, out),
            Transmitter::ByTrace { cursor, sending } => {
                // Nobody made use of what went by while nothing waited. As in mm-link, a packet that arrives at the
                // very time of an opportunity misses it.
                if sending.is_none() && self.queue.is_empty() {
                    cursor.skip_through(now);
                }
                self.queue.push(now, packet, out);
            }
        }
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        self.wire.land(now, out);
        self.transmit(now, out);
        self.wire.land(now, out);
    }

    fn next_deadline(&self) -> Option<Instant> {
        let sent = match &self.transmitter {
            Transmitter::Immediate => None,
            Transmitter::AtRate { sending, .. } => sending.as_ref().map(|(end, _)| *end),
            Transmitter::ByTrace { cursor, sending } => {
                (sending.is_some() || !self.queue.is_empty()).then(|| cursor.next())
            }
        };
        match (sent, self.wire.next_landing()) {
            (Some(sent), Some(landing)) => Some(sent.min(landing)),
            (one, other) => one.or(other),
        }
    }

    fn held(&self) -> usize {
        self.queue.len() + usize::from(self.transmitter.busy()) + self.wire.flying.len()
    }

    fn stats(&self) -> Value {
        json!({
            "packets_in": self.packets_in,
            "bytes_in": self.bytes_in,
            "packets_out": self.wire.packets_out,
            "bytes_out": self.wire.bytes_out,
            "queue": self.queue.stats(),
            "transmitting": usize::from(self.transmitter.busy()),
            "on_the_wire": self.wire.flying.len(),
        })
    }

    fn check(&self, config: &LinkConfig) -> Result<(), NotLive> {
        if config.trace != self.trace {
            return Err(NotLive::new("trace", "a trace is read before the link starts"));
        }
        config.validate().map_err(|invalid| NotLive::new(invalid.key, invalid.message))
    }

    /// The packet under transmission keeps what it has already sent: its remaining bits go at the new rate. Packets
    /// on the wire keep their time of arrival, and those behind them do not overtake them.
    fn reconfigure(&mut self, now: Instant, config: &LinkConfig, out: &mut Outbox) {
        self.wire.delay = config.delay;
        self.wire.jitter = config.jitter;
        self.queue.set_bounds(config.queue);
        match (&mut self.transmitter, config.rate) {
            (Transmitter::AtRate { pace, sending, .. }, Some(rate)) if pace.rate() != rate => match sending {
                Some((end, _)) => *end = now + pace.change(rate, *end - now),
                None => *pace = Pace::new(rate),
            },
            (Transmitter::AtRate { sending, .. }, None) => {
                if let Some((_, packet)) = sending.take() {
                    self.wire.launch(now, packet, out);
                }
                self.transmitter = Transmitter::Immediate;
                self.transmit(now, out);
            }
            (Transmitter::Immediate, rate) => self.transmitter = Transmitter::for_rate(rate),
            (Transmitter::AtRate { .. } | Transmitter::ByTrace { .. }, _) => {}
        }
    }
}

/// Propagation: any number of packets at once, in their order.
#[derive(Debug)]
struct Wire {
    delay: Duration,
    jitter: Duration,
    stream: Stream,
    /// With the time at which each leaves; these never go back.
    flying: VecDeque<(Instant, Packet)>,
    packets_out: u64,
    bytes_out: u64,
}

impl Wire {
    fn new(delay: Duration, jitter: Duration, stream: Stream) -> Self {
        Self { delay, jitter, stream, flying: VecDeque::new(), packets_out: 0, bytes_out: 0 }
    }

    /// `packet` is wholly on the wire at `at`.
    fn launch(&mut self, at: Instant, packet: Packet, out: &mut Outbox) {
        let mut landing = at + self.delay;
        if !self.jitter.is_zero() {
            landing += Duration::from_nanos(self.stream.below(self.jitter.as_nanos() + 1));
        }
        match self.flying.back() {
            Some((last, _)) => self.flying.push_back((landing.max(*last), packet)),
            None if landing == at => self.exit(packet, out),
            None => self.flying.push_back((landing, packet)),
        }
    }

    fn land(&mut self, now: Instant, out: &mut Outbox) {
        while self.flying.front().is_some_and(|(landing, _)| *landing <= now) {
            let (_, packet) = self.flying.pop_front().expect("it was just looked at");
            self.exit(packet, out);
        }
    }

    fn exit(&mut self, packet: Packet, out: &mut Outbox) {
        self.packets_out += 1;
        self.bytes_out += packet.len() as u64;
        out.forward(packet);
    }

    fn next_landing(&self) -> Option<Instant> {
        self.flying.front().map(|(landing, _)| *landing)
    }
}
