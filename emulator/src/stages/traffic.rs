//! Background traffic: simulated packets that share the queues.
//!
//! The packets are UDP over IPv4 to the discard port, between two addresses reserved for documentation (RFC
//! 5737). They do not reach a host: each leaves the path after the stage that `leaves_after` names.

use std::sync::Arc;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::{Rate, Size};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{IpProtocol, Ipv4Address, Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr};

use super::duplex::{OneWay, OneWaySettings};
use super::pace::Pace;
use crate::maths;
use crate::packet::{Direction, Origin, Packet};
use crate::settings::{Invalid, InvalidInPath, Position, Variant};
use crate::stage::{Ahead, Background, Emitter, Outbox, ReconfigureError};
use crate::suggest::suggest;

/// The settings of one direction. `source` determines which of the other settings apply:
///
/// - `cbr`: each of `sources` sends at `rate` all the time
/// - `pareto-on-off`: each of `sources` sends at `rate` while it is on. The on and off times have Pareto
///   distributions with the given `shape` and the means `mean_on` and `mean_off`. `begins` selects the first
///   of the two states
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficConfig {
    /// The sending pattern.
    pub source: Source,
    /// Number of independent sources. Their starts are spread over the time between two packets.
    #[serde(default = "one")]
    pub sources: u32,
    /// Rate of each source while it is on, including IP headers.
    pub rate: Rate,
    /// Length of each packet, including the IP header.
    pub packet: Size,
    /// For `pareto-on-off`: shape of the distributions. Smaller values have a heavier tail. At 1 and below
    /// the mean is infinite.
    pub shape: Option<f64>,
    /// For `pareto-on-off`: mean on time of a source.
    pub mean_on: Option<Duration>,
    /// For `pareto-on-off`: mean off time of a source.
    pub mean_off: Option<Duration>,
    /// For `pareto-on-off`: whether a source is on or off at first.
    #[serde(default, skip_serializing_if = "Begins::is_on")]
    pub begins: Begins,
    /// Name of the stage after which the packets leave the path.
    pub leaves_after: String,
    /// Start of the first source, relative to the start of the run.
    #[serde(default)]
    pub starts: Duration,
}

fn one() -> u32 {
    1
}

/// The sending pattern of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Constant bit rate.
    Cbr,
    /// Alternating on and off times with Pareto distributions.
    ParetoOnOff,
}

/// The settings of each sending pattern, in the order of [`Source`].
const SOURCES: [Variant; 2] = [
    Variant::new("cbr", &[], &[]),
    Variant::new("pareto-on-off", &["shape", "mean_on", "mean_off"], &["begins"]),
];

/// The first state of an on-off source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Begins {
    /// The source sends at once.
    #[default]
    On,
    /// The source waits for an off time first, as in ns-2.
    Off,
}

impl Begins {
    fn is_on(&self) -> bool {
        *self == Self::On
    }
}

/// Length of the IPv4 and UDP headers in bytes.
const HEADERS: u64 = 28;
/// Far more than the papers' 5, and few enough to check all sources at each deadline.
const MAX_SOURCES: u32 = 1000;

impl OneWaySettings for TrafficConfig {
    type Stage = Traffic;

    fn validate(&self) -> Result<(), Invalid> {
        let packet = self.packet.as_bytes();
        if !(HEADERS..=65_535).contains(&packet) {
            return Err(Invalid::new(
                "packet",
                format!("an IP packet with UDP has from {HEADERS} to 65535 bytes, not {packet}"),
            ));
        }
        if !(1..=MAX_SOURCES).contains(&self.sources) {
            return Err(Invalid::new("sources", format!("write a number from 1 to {MAX_SOURCES}")));
        }
        let settings = [
            ("shape", self.shape.is_some()),
            ("mean_on", self.mean_on.is_some()),
            ("mean_off", self.mean_off.is_some()),
            ("begins", self.begins != Begins::On),
        ];
        SOURCES[self.source as usize].check("source", &SOURCES, settings)?;
        // At 1.01 the mean is 101 times the minimum. Below that, values that are too rare to occur in a run
        // dominate the mean.
        if self.shape.is_some_and(|shape| !(1.01..=100.0).contains(&shape)) {
            return Err(Invalid::new("shape", "must be from 1.01 to 100; 1.5 is common for web traffic"));
        }
        for (key, mean) in [("mean_on", self.mean_on), ("mean_off", self.mean_off)] {
            if mean.is_some_and(|mean| mean < MIN_MEAN) {
                return Err(Invalid::new(key, format!("must be at least {MIN_MEAN}, such as \"1s\"")));
            }
        }
        Ok(())
    }

    fn check_in_path(&self, direction: Direction, position: Position<'_>) -> Result<(), InvalidInPath> {
        self.last_stage(direction, position).map(|_index| ())
    }

    fn build(&self, direction: Direction, position: Position<'_>, seed: u64) -> Result<Traffic, String> {
        let last = self.last_stage(direction, position).map_err(|invalid| invalid.message)?;
        let stream = position.stream(seed, direction, "traffic");
        Traffic::new(self, direction, last, stream).map_err(|invalid| invalid.to_string())
    }
}

impl TrafficConfig {
    /// Returns the index of the stage after which the packets leave. It must be ahead in their direction.
    fn last_stage(&self, direction: Direction, position: Position<'_>) -> Result<u16, InvalidInPath> {
        let (name, Position { index, names }) = (&self.leaves_after, position);
        let invalid =
            |message, help| InvalidInPath { key: "leaves_after".to_owned(), message, help: Some(help) };
        let Some(last) = names.iter().position(|other| other == name) else {
            return Err(invalid(
                format!("`leaves_after` names an unknown stage `{name}`"),
                suggest(name, "stages", names),
            ));
        };
        let (is_behind, ahead) = match direction {
            Direction::Down => (last < index, &names[index + 1..]),
            Direction::Up => (last > index, &names[..index]),
        };
        if is_behind || last == index {
            return Err(invalid(
                format!("packets that go {direction} from here do not pass the stage `{name}`"),
                format!("stages on their way: {}", ahead.join(", ")),
            ));
        }
        u16::try_from(last).map_err(|_| {
            invalid(
                format!("the stage `{name}` is too far away"),
                "it must be one of the first 65536 stages of the path".to_owned(),
            )
        })
    }
}

const MIN_MEAN: Duration = Duration::from_micros(100);

/// The sources of one direction. Packets from hosts pass unchanged.
#[derive(Debug)]
pub struct Traffic {
    config: TrafficConfig,
    direction: Direction,
    /// Index of the stage after which the packets leave the path.
    leaves_after: u16,
    sources: Vec<Transmitter>,
    /// The content of every packet except its number.
    template: Vec<u8>,
    /// Time of the next event of any source, and the index of the first source that has an event at that time.
    next_event: Option<(Instant, usize)>,
    stream: Stream,
    packets: u64,
    bytes: u64,
    /// Whether the path looks ahead. The stage then has no deadlines.
    looks_ahead: bool,
}

#[derive(Debug)]
struct Transmitter {
    pace: Pace,
    phase: Phase,
}

/// The state of a source. Its packets are evenly spaced in on time, which does not advance while the source
/// is off. The rate while on is therefore exact, although a burst need not be a whole number of packets.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Sends at `at`, unless the source switches off earlier, at `until`. Without `until` it is always on.
    On { at: Instant, until: Option<Instant> },
    /// Switches on at `until`, and sends `rest` later.
    Off { until: Instant, rest: Duration },
}

impl Traffic {
    /// Creates the sources, or returns an error if the settings are invalid. `leaves_after` is the index of
    /// the stage that `config` names.
    pub fn new(
        config: &TrafficConfig,
        direction: Direction,
        leaves_after: u16,
        stream: Stream,
    ) -> Result<Self, Invalid> {
        config.validate()?;
        let mut traffic = Self {
            config: config.clone(),
            direction,
            leaves_after,
            sources: Vec::new(),
            template: udp_to_discard(config.packet.as_bytes() as usize),
            next_event: None,
            stream,
            packets: 0,
            bytes: 0,
            looks_ahead: false,
        };
        let spacing = config.rate.time_for(config.packet.as_bytes() as usize);
        for index in 0..config.sources {
            let at = Instant::ZERO + config.starts + spacing * u64::from(index) / u64::from(config.sources);
            let phase = match config.begins {
                Begins::On => Phase::On { at, until: traffic.draw(config.mean_on).map(|on| at + on) },
                Begins::Off => {
                    let off = traffic.draw(config.mean_off).unwrap_or_default();
                    Phase::Off { until: at + off, rest: Duration::ZERO }
                }
            };
            traffic.sources.push(Transmitter { pace: Pace::new(config.rate), phase });
        }
        traffic.next_event = traffic.earliest_event();
        Ok(traffic)
    }

    /// Draws an on or off time with this mean. `None`: the sources are always on.
    fn draw(&mut self, mean: Option<Duration>) -> Option<Duration> {
        Some(pareto(self.config.shape?, mean?, &mut self.stream))
    }

    fn earliest_event(&self) -> Option<(Instant, usize)> {
        self.sources.iter().map(|source| source.phase.next_event()).zip(0..).min()
    }

    fn packet(&mut self, out: &mut Outbox) -> Packet {
        let bytes = numbered(&self.template, self.packets, out.buffer());
        self.packets += 1;
        self.bytes += bytes.len() as u64;
        out.originate(self.direction, Origin::Background { leaves_after: self.leaves_after }, bytes)
    }

    /// Handles the next event of a source: it sends, switches off or switches on.
    fn handle_event(&mut self, index: usize, out: &mut Outbox) {
        self.sources[index].phase = match self.sources[index].phase {
            Phase::On { at, until: Some(until) } if until <= at => match self.draw(self.config.mean_off) {
                Some(off) => Phase::Off { until: until + off, rest: at - until },
                None => Phase::On { at, until: None },
            },
            Phase::On { at, until } => {
                let packet = self.packet(out);
                let spacing = self.sources[index].pace.next(packet.len());
                out.forward(packet);
                Phase::On { at: at + spacing, until }
            }
            Phase::Off { until, rest } => {
                Phase::On { at: until + rest, until: self.draw(self.config.mean_on).map(|on| until + on) }
            }
        };
    }
}

impl Phase {
    fn next_event(&self) -> Instant {
        match *self {
            Self::On { at, until } => until.map_or(at, |until| at.min(until)),
            Self::Off { until, .. } => until,
        }
    }
}

impl Emitter for Traffic {
    fn prepare(&mut self) -> Arc<[u8]> {
        self.looks_ahead = true;
        numbered(&self.template, 0, Vec::new()).into()
    }

    fn next(&self) -> Instant {
        self.next_event.map_or(Instant::ZERO + Duration::MAX, |(at, _)| at)
    }

    fn emit(&mut self) -> Instant {
        let length = self.template.len();
        if let Some((at, first)) = self.next_event {
            let Transmitter { pace, phase } = &mut self.sources[first];
            *phase = Phase::On { at: at + pace.next(length), until: None };
            self.packets += 1;
            self.bytes += length as u64;
        }
        self.next_event = self.earliest_event();
        self.next()
    }
}

impl OneWay for Traffic {
    type Config = TrafficConfig;

    fn handle_packet(&mut self, _now: Instant, packet: Packet, out: &mut Outbox) {
        out.forward(packet);
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        while let Some((at, _)) = self.next_event.filter(|(at, _)| *at <= now) {
            for index in 0..self.sources.len() {
                if self.sources[index].phase.next_event() <= at {
                    self.handle_event(index, out);
                }
            }
            self.next_event = self.earliest_event();
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.next_event.filter(|_| !self.looks_ahead).map(|(at, _)| at)
    }

    /// On-off sources cannot look ahead, because their random numbers are drawn at the times of their changes.
    fn lookahead(&mut self) -> Ahead<'_> {
        match self.config.source {
            Source::Cbr => Ahead::Emits(self),
            Source::ParetoOnOff => Ahead::No,
        }
    }

    fn background(&self) -> Option<Background> {
        Some(Background {
            rate: self.config.rate.as_bits_per_second().saturating_mul(self.config.sources.into()),
            leaves_after: self.leaves_after.into(),
        })
    }

    fn stats(&self) -> Value {
        let on = self.sources.iter().filter(|source| matches!(source.phase, Phase::On { .. })).count();
        json!({ "packets": self.packets, "bytes": self.bytes, "sources": self.sources.len(), "on": on })
    }

    fn check(&self, config: &TrafficConfig) -> Result<(), ReconfigureError> {
        config.validate()?;
        let fixed = [
            ("source", config.source != self.config.source),
            ("sources", config.sources != self.config.sources),
            ("begins", config.begins != self.config.begins),
            ("leaves_after", config.leaves_after != self.config.leaves_after),
            ("starts", config.starts != self.config.starts),
        ];
        match fixed.into_iter().find(|(_, changes)| *changes) {
            Some((setting, _)) => {
                Err(ReconfigureError::new(setting, "the sources are created when the link starts"))
            }
            None => Ok(()),
        }
    }

    /// New settings apply from each source's next packet, and from its next on or off time.
    fn reconfigure(&mut self, _now: Instant, config: &TrafficConfig, _out: &mut Outbox) {
        if config.rate != self.config.rate {
            for source in &mut self.sources {
                source.pace = Pace::new(config.rate);
            }
        }
        self.template = udp_to_discard(config.packet.as_bytes() as usize);
        self.config = config.clone();
    }
}

/// Draws from a Pareto distribution by inversion: m · u^(−1/shape), where the minimum m yields the given
/// mean.
fn pareto(shape: f64, mean: Duration, stream: &mut Stream) -> Duration {
    // u is in (0, 1].
    let u = 1.0 - stream.unit();
    let minimum = mean.as_secs_f64() * (shape - 1.0) / shape;
    Duration::from_secs_f64(minimum * maths::pow(u, -1.0 / shape))
}

const DISCARD: u16 = 9;
const FROM: Ipv4Address = Ipv4Address::new(192, 0, 2, 1);
const TO: Ipv4Address = Ipv4Address::new(192, 0, 2, 2);

/// Writes the n-th packet of a template into an empty `buffer` and returns it.
pub(crate) fn numbered(template: &[u8], n: u64, buffer: Vec<u8>) -> Vec<u8> {
    let mut bytes = buffer;
    bytes.extend_from_slice(template);
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    packet.set_ident(n as u16);
    packet.fill_checksum();
    bytes
}

/// Returns a packet of `size` bytes, at least `HEADERS`, whose IP header checksum must still be filled in.
pub(crate) fn udp_to_discard(size: usize) -> Vec<u8> {
    let udp = UdpRepr { src_port: DISCARD, dst_port: DISCARD };
    let ip = Ipv4Repr {
        src_addr: FROM,
        dst_addr: TO,
        next_header: IpProtocol::Udp,
        payload_len: size - 20,
        hop_limit: 64,
    };
    let mut bytes = vec![0; size];
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    ip.emit(&mut packet, &ChecksumCapabilities::default());
    udp.emit(
        &mut UdpPacket::new_unchecked(packet.payload_mut()),
        &FROM.into(),
        &TO.into(),
        size - HEADERS as usize,
        |_payload| {},
        &ChecksumCapabilities::default(),
    );
    bytes
}
