//! Virtual time: runs a path between two simple packet sources. The clock jumps from deadline to deadline.

use std::str::FromStr;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::Rate;
use airwire::view::{TCP, View};
use serde::Serialize;
use smoltcp::wire::{
    IpAddress, IpProtocol, Ipv4Address, Ipv4Packet, Ipv6Address, Ipv6Packet, TcpPacket, TcpSeqNumber,
    UdpPacket,
};

use crate::machine::{Machine, Port, drain};
use crate::maths;
use crate::packet::{Direction, PerDirection};
use crate::path::{FIXED, MOBILE, Path};

/// Packets that one side sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// No packets.
    None,
    /// As many packets as the path accepts.
    Saturate {
        /// Number of packets to keep inside the path.
        packets: u64,
    },
    /// Constant bit rate: each packet is sent when the previous one would have been transmitted at this rate.
    Cbr(Rate),
    /// This rate on average, with exponentially distributed intervals between packets.
    Poisson(Rate),
    /// One TCP ACK of 40 bytes (60 with IPv6) for every second packet that arrives from the other side.
    Acks,
}

/// Packet lengths, including the IP header. [`Load::Acks`] has its own length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// The same length for all packets, in bytes.
    Fixed(u16),
    /// Lengths that are difficult for a radio link: the smallest packets, lengths within 1 of a multiple of
    /// 40, and any length up to 1500.
    Mix,
}

/// Version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Packets that both sides send, and for how long.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Load per direction. The fixed side sends `down`.
    pub loads: PerDirection<Load>,
    /// Packet lengths in both directions.
    pub sizes: Sizes,
    /// IP version in both directions.
    pub family: Family,
    /// Seed for lengths and intervals. The path has its own seed.
    pub seed: u64,
    /// End of sending.
    pub until: Instant,
    /// Time after `until` during which packets may still leave the path.
    pub drain: Duration,
}

/// Observer of a run in virtual time.
pub trait PacketObserver {
    /// Error that ends the run early.
    type Error;
    /// Called when a packet enters or leaves the path at this end.
    fn packet(&mut self, at: Instant, end: Port, packet: &[u8]);
    /// Called after all events at `now`.
    fn after(&mut self, now: Instant, path: &mut Path) -> Result<(), Self::Error>;
}

/// Comparison of the packets that arrived with those that were sent. ACKs are not compared, since stages may
/// write into them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Arrived {
    /// Packets that arrived unchanged.
    pub intact: u64,
    /// Packets that arrived with other bytes.
    pub damaged: u64,
    /// Packets among `intact` that arrived after a packet that was sent later.
    pub late: u64,
}

/// Runs until all packets have left the path or `drain` is over. Returns the end time and the comparison of
/// packets.
pub fn run<O: PacketObserver>(
    path: &mut Path,
    workload: &Workload,
    observer: &mut O,
) -> Result<(Instant, PerDirection<Arrived>), O::Error> {
    let mut sources = PerDirection::from_fn(|direction| LoadSource::new(direction, workload));
    let mut now = Instant::ZERO;
    loop {
        let next_load = Direction::BOTH
            .into_iter()
            .filter_map(|direction| Some((sources[direction].next()?, direction)))
            .filter(|(at, _)| *at < workload.until)
            .min_by_key(|(at, _)| *at);
        // Without packets, the timers of a path could run forever.
        let is_busy = next_load.is_some()
            || packets_inside(path, Direction::Down) + packets_inside(path, Direction::Up) > 0;
        let path_at = path.next_deadline().filter(|at| is_busy && *at <= workload.until + workload.drain);
        match (path_at, next_load) {
            // At the same instant, deadlines are handled before packets.
            (Some(at), load) if load.is_none_or(|(load, _)| at <= load) => {
                now = at;
                path.handle_deadline(at);
            }
            (_, Some((at, direction))) => {
                now = at;
                sources[direction].handle_deadline(at, path, observer);
            }
            _ => break,
        }
        // An ACK may cross the path at once. It is not acknowledged itself, so this loop ends.
        loop {
            let mut acks = PerDirection::<u64>::default();
            let mut left = 0;
            drain(path, now, |at, port, packet| {
                observer.packet(at, port, &packet);
                let direction = if port == MOBILE { Direction::Down } else { Direction::Up };
                acks[direction.reversed()] += u64::from(sources[direction].arrived(&packet));
                left += 1;
            });
            if left == 0 {
                break;
            }
            for direction in Direction::BOTH.into_iter().filter(|_| now < workload.until) {
                sources[direction].acknowledge(acks[direction], now, path, observer);
            }
        }
        for direction in Direction::BOTH {
            sources[direction].refill(now);
        }
        observer.after(now, path)?;
    }
    Ok((now, sources.map(|source| source.arrived)))
}

/// Number of host packets inside the path.
fn packets_inside(path: &Path, direction: Direction) -> u64 {
    path.totals()[direction].inside()
}

/// Sender of the packets of one direction. It also counts the packets when they arrive on the other side.
struct LoadSource {
    direction: Direction,
    family: Family,
    load: Load,
    sizes: Sizes,
    stream: Stream,
    /// Number of the next packet.
    sequence: u64,
    /// Time at which a timed load sends its next packet, or a saturating load retries after a refusal.
    next: Option<Instant>,
    /// Time at which a saturating load last offered packets, which it does once per instant.
    last_offer: Option<Instant>,
    /// Packets of the other direction that `Load::Acks` has counted.
    acknowledged: u64,
    arrived: Arrived,
    /// Highest packet number that has arrived, plus one.
    highest: u64,
}

/// Minimum time between two packets of a timed load, so that the clock advances.
const MIN_INTERVAL: Duration = Duration::from_nanos(1);
/// Retry interval of a saturating load, on a path that refused a packet.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

impl LoadSource {
    fn new(direction: Direction, workload: &Workload) -> Self {
        let load = workload.loads[direction];
        Self {
            direction,
            family: workload.family,
            load,
            sizes: workload.sizes,
            stream: Stream::new(workload.seed, &format!("sim/{direction}")),
            sequence: 0,
            next: (!matches!(load, Load::None | Load::Acks)).then_some(Instant::ZERO),
            last_offer: None,
            acknowledged: 0,
            arrived: Arrived::default(),
            highest: 0,
        }
    }

    fn next(&self) -> Option<Instant> {
        self.next
    }

    fn handle_deadline<O: PacketObserver>(&mut self, now: Instant, path: &mut Path, observer: &mut O) {
        match self.load {
            Load::None | Load::Acks => self.next = None,
            Load::Cbr(rate) => {
                let len = self.send(now, path, observer);
                self.next = Some(now + rate.time_for(len).max(MIN_INTERVAL));
            }
            Load::Poisson(rate) => {
                let len = self.send(now, path, observer);
                let mean = rate.time_for(len).max(MIN_INTERVAL).as_nanos() as f64;
                let distance = -mean * maths::ln(1.0 - self.stream.unit());
                self.next = Some(now + Duration::from_nanos(distance.round() as u64));
            }
            Load::Saturate { packets } => {
                self.last_offer = Some(now);
                let mut before = packets_inside(path, self.direction);
                while before < packets {
                    self.send(now, path, observer);
                    let after = packets_inside(path, self.direction);
                    // The packet was refused, or has already left.
                    if after <= before {
                        break;
                    }
                    before = after;
                }
                self.next = Some(now + RETRY_INTERVAL);
            }
        }
    }

    /// Makes a saturating load offer packets at once, since a packet may have left.
    fn refill(&mut self, now: Instant) {
        if matches!(self.load, Load::Saturate { .. }) && self.last_offer != Some(now) {
            self.next = Some(now);
        }
    }

    fn send<O: PacketObserver>(&mut self, now: Instant, path: &mut Path, observer: &mut O) -> usize {
        let len = self.len();
        let packet = sequenced(self.family, self.direction, self.sequence, len);
        self.sequence += 1;
        self.enter(now, packet, path, observer);
        len
    }

    fn enter<O: PacketObserver>(&self, now: Instant, packet: Vec<u8>, path: &mut Path, observer: &mut O) {
        let port = match self.direction {
            Direction::Down => FIXED,
            Direction::Up => MOBILE,
        };
        observer.packet(now, port, &packet);
        path.handle_packet(now, port, packet);
    }

    fn len(&mut self) -> usize {
        let len = match self.sizes {
            Sizes::Fixed(len) => usize::from(len),
            Sizes::Mix => match self.stream.below(4) {
                0 => 20 + self.stream.below(19) as usize,
                1 => (40 * (1 + self.stream.below(37)) + self.stream.below(3)) as usize - 1,
                _ => 20 + self.stream.below(1481) as usize,
            },
        };
        len.max(self.family.header())
    }

    /// Compares a packet that arrived on the other side. Returns whether `Load::Acks` counts it there.
    fn arrived(&mut self, packet: &[u8]) -> bool {
        let Some(low) = sequence_bits(packet) else { return false };
        let ahead = (low.wrapping_sub(self.highest as u16)) as i16;
        let sequence = self.highest.saturating_add_signed(i64::from(ahead));
        if packet == sequenced(self.family, self.direction, sequence, packet.len()) {
            self.arrived.intact += 1;
            self.arrived.late += u64::from(sequence + 1 < self.highest);
            self.highest = self.highest.max(sequence + 1);
        } else {
            self.arrived.damaged += 1;
        }
        true
    }

    /// Counts `packets` of the other direction that arrived on this side, and sends the ACKs that are due.
    fn acknowledge<O: PacketObserver>(
        &mut self,
        packets: u64,
        now: Instant,
        path: &mut Path,
        observer: &mut O,
    ) {
        if self.load != Load::Acks {
            return;
        }
        for _ in 0..packets {
            self.acknowledged += 1;
            if self.acknowledged.is_multiple_of(2) {
                let packet = acknowledgment(self.family, self.direction, self.acknowledged as u32);
                self.enter(now, packet, path, observer);
            }
        }
    }
}

impl Family {
    /// Length of the IP header in bytes. It is also the length of the shortest packet.
    pub const fn header(self) -> usize {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}

/// The packet with this number and length: UDP to the discard port, or an IP header with up to 7 bytes of
/// payload. The same arguments always yield the same packet.
pub fn sequenced(family: Family, direction: Direction, sequence: u64, len: usize) -> Vec<u8> {
    let header = family.header();
    let udp = len >= header + UDP_HEADER;
    // RFC 3692: protocol number 253 is for experiments.
    let protocol = if udp { IpProtocol::Udp } else { IpProtocol::Unknown(253) };
    let mut bytes = ip_packet(family, direction, protocol, sequence as u16, len);
    let payload = &mut bytes[header..];
    for (index, octet) in payload.iter_mut().enumerate() {
        let mixed = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index as u64);
        *octet = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).to_be_bytes()[0];
    }
    if udp {
        if payload.len() >= UDP_HEADER + 8 {
            payload[UDP_HEADER..UDP_HEADER + 8].copy_from_slice(&sequence.to_be_bytes());
        }
        let mut datagram = UdpPacket::new_unchecked(payload);
        datagram.set_src_port(DISCARD);
        datagram.set_dst_port(DISCARD);
        datagram.set_len((len - header) as u16);
        let (from, to) = addresses(family, direction);
        datagram.fill_checksum(&from, &to);
    }
    bytes
}

const UDP_HEADER: usize = 8;
const DISCARD: u16 = 9;

/// The last 16 bits of the packet's number. `None`: an ACK, or not an IP packet.
fn sequence_bits(packet: &[u8]) -> Option<u16> {
    let view = View::complete(packet)?;
    let flow_label = u16::from_be_bytes([packet[2], packet[3]]);
    (view.protocol != TCP).then(|| view.ident().unwrap_or(flow_label))
}

/// An ACK for `packets` packets of 1460 bytes.
fn acknowledgment(family: Family, direction: Direction, packets: u32) -> Vec<u8> {
    let header = family.header();
    let mut bytes = ip_packet(family, direction, IpProtocol::Tcp, packets as u16, header + 20);
    let (from, to) = addresses(family, direction);
    let mut segment = TcpPacket::new_unchecked(&mut bytes[header..]);
    segment.set_src_port(5001);
    segment.set_dst_port(5001);
    segment.set_seq_number(TcpSeqNumber(1));
    segment.set_ack_number(TcpSeqNumber(packets.wrapping_mul(1460) as i32));
    segment.set_header_len(20);
    segment.set_ack(true);
    segment.set_window_len(65_535);
    segment.fill_checksum(&from, &to);
    bytes
}

fn ip_packet(family: Family, direction: Direction, protocol: IpProtocol, number: u16, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    match (family, addresses(family, direction)) {
        (Family::V4, (IpAddress::Ipv4(from), IpAddress::Ipv4(to))) => {
            let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
            packet.set_version(4);
            packet.set_header_len(20);
            packet.set_total_len(len as u16);
            packet.set_ident(number);
            packet.set_dont_frag(true);
            packet.set_hop_limit(64);
            packet.set_next_header(protocol);
            packet.set_src_addr(from);
            packet.set_dst_addr(to);
            packet.fill_checksum();
        }
        (_, (IpAddress::Ipv6(from), IpAddress::Ipv6(to))) => {
            let mut packet = Ipv6Packet::new_unchecked(&mut bytes);
            packet.set_version(6);
            packet.set_flow_label(u32::from(number));
            packet.set_payload_len((len - 40) as u16);
            packet.set_hop_limit(64);
            packet.set_next_header(protocol);
            packet.set_src_addr(from);
            packet.set_dst_addr(to);
        }
        _ => unreachable!("both addresses are of the family asked for"),
    }
    bytes
}

/// Source and destination. 10.0.0.1 and fd00::1 are on the fixed side, 10.0.0.2 and fd00::2 on the mobile
/// side.
fn addresses(family: Family, direction: Direction) -> (IpAddress, IpAddress) {
    let host = |number: u16| match family {
        Family::V4 => IpAddress::Ipv4(Ipv4Address::new(10, 0, 0, number as u8)),
        Family::V6 => IpAddress::Ipv6(Ipv6Address::new(0xfd00, 0, 0, 0, 0, 0, 0, number)),
    };
    match direction {
        Direction::Down => (host(1), host(2)),
        Direction::Up => (host(2), host(1)),
    }
}

/// Reason why a text is not a [`Load`] or [`Sizes`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The text does not have the form of any load.
    #[error(
        "`{0}` is not a load: write none, acks, saturate, saturate:PACKETS, cbr:RATE or poisson:RATE, such as \
         cbr:64kbit"
    )]
    Unknown(String),
    /// The rate of `cbr` or `poisson` is invalid.
    #[error("{0}")]
    Rate(#[from] airwire::units::UnitError),
    /// The number of packets of `saturate` is invalid.
    #[error("`{0}` is not a number of packets: write a number from 1 to 1000000, such as saturate:64")]
    Packets(String),
    /// The packet size is invalid.
    #[error("`{0}` is not a size: write mix, or a number of bytes from 20 to 65535, such as 1500")]
    Size(String),
}

/// Default number of packets for `saturate`: about 2 s on a link with 384 kbit/s.
const DEFAULT_SATURATION: u64 = 64;

impl FromStr for Load {
    type Err = LoadError;
    fn from_str(text: &str) -> Result<Self, LoadError> {
        let (kind, value) = text.split_once(':').map_or((text, None), |(kind, value)| (kind, Some(value)));
        match (kind, value) {
            ("none", None) => Ok(Self::None),
            ("acks", None) => Ok(Self::Acks),
            ("saturate", None) => Ok(Self::Saturate { packets: DEFAULT_SATURATION }),
            ("saturate", Some(packets)) => match packets.parse() {
                Ok(packets) if (1..=1_000_000).contains(&packets) => Ok(Self::Saturate { packets }),
                _ => Err(LoadError::Packets(packets.to_owned())),
            },
            ("cbr", Some(rate)) => Ok(Self::Cbr(rate.parse()?)),
            ("poisson", Some(rate)) => Ok(Self::Poisson(rate.parse()?)),
            _ => Err(LoadError::Unknown(text.to_owned())),
        }
    }
}

impl FromStr for Sizes {
    type Err = LoadError;
    fn from_str(text: &str) -> Result<Self, LoadError> {
        match (text, text.parse()) {
            ("mix", _) => Ok(Self::Mix),
            (_, Ok(len)) if len >= 20 => Ok(Self::Fixed(len)),
            _ => Err(LoadError::Size(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests;
