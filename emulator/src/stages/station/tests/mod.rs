//! Tests of stations in paths, with scripted connections.

use std::collections::BTreeSet;

use airwire::Cause;
use airwire::experiment::LossRate;
use airwire::marks::{DB, OB, RadioPath};
use smoltcp::wire::{IpAddress, Ipv4Packet, Ipv6Packet, TcpPacket};

use super::*;
use crate::capture::{Capture, Tap};
use crate::machine::{Machine, Port, drain};
use crate::path::{FIXED, MOBILE, NamedStage, Path};
use crate::stage::{DropReason, Record, Recording};
use crate::stages::testing::packet;

mod external_tools;
mod forged;
mod learning;
mod loss_rates;
mod marks;
mod unchanged;

const FIN: u16 = Flags::FIN.0;
const SYN: u16 = Flags::SYN.0;
const RST: u16 = Flags::RST.0;
pub(super) const ACK: u16 = Flags::ACK.0;
const PSH_ACK: u16 = 0x018;
const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ip {
    V4,
    V6,
}

/// A TCP segment to be put into a packet.
#[derive(Clone, Debug)]
pub(super) struct Tcp {
    pub(super) ip: Ip,
    pub(super) from: Port,
    /// Port of the mobile side. The fixed side has port 80.
    pub(super) port: u16,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u16,
    pub(super) options: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

impl Tcp {
    pub(super) fn new(ip: Ip, from: Port, flags: u16, seq: u32, ack: u32) -> Self {
        Self { ip, from, port: 5000, seq, ack, flags, options: Vec::new(), payload: Vec::new() }
    }

    /// Returns the data segment with this index.
    fn data(from: Port, index: u32) -> Self {
        Self::new(Ip::V4, from, PSH_ACK, seq(index), PEER + 1).payload(&[0; SIZE as usize])
    }

    fn direction(&self) -> Direction {
        direction_from(self.from)
    }

    fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    pub(super) fn options(self, options: &[u8]) -> Self {
        Self { options: options.to_vec(), ..self }
    }

    pub(super) fn payload(self, payload: &[u8]) -> Self {
        Self { payload: payload.to_vec(), ..self }
    }

    fn addresses(&self) -> [IpAddress; 2] {
        let mut addresses = match self.ip {
            Ip::V4 => [IpAddress::v4(10, 1, 0, 1), IpAddress::v4(10, 2, 0, 1)],
            Ip::V6 => {
                [IpAddress::v6(0xfd01, 0, 0, 0, 0, 0, 0, 1), IpAddress::v6(0xfd02, 0, 0, 0, 0, 0, 0, 1)]
            }
        };
        if self.from == MOBILE {
            addresses.reverse();
        }
        addresses
    }

    /// Returns the TCP segment with its checksum.
    fn segment(&self) -> Vec<u8> {
        let (source, destination) = if self.from == FIXED { (80, self.port) } else { (self.port, 80) };
        let offset = (5 + self.options.len() as u16 / 4) << 12;
        let mut bytes = [source, destination].map(u16::to_be_bytes).concat();
        bytes.extend([self.seq, self.ack].map(u32::to_be_bytes).concat());
        bytes.extend([offset | self.flags, 0xfaf0, 0, 0].map(u16::to_be_bytes).concat());
        bytes.extend(&self.options);
        bytes.extend(&self.payload);
        let [source, destination] = self.addresses();
        TcpPacket::new_unchecked(&mut bytes).fill_checksum(&source, &destination);
        bytes
    }

    pub(super) fn packet(&self) -> Vec<u8> {
        match self.ip {
            Ip::V4 => self.v4(&[], 0x4000),
            Ip::V6 => self.v6(6, &[]),
        }
    }

    /// Returns an IPv4 packet with these IP options and this field of flags and fragment offset.
    pub(super) fn v4(&self, options: &[u8], fragment: u16) -> Vec<u8> {
        let segment = self.segment();
        let header = 20 + options.len();
        let mut bytes = vec![0x40 | (header / 4) as u8, 0];
        bytes.extend([(header + segment.len()) as u16, 1, fragment].map(u16::to_be_bytes).concat());
        bytes.extend([64, 6, 0, 0]);
        for address in self.addresses() {
            let IpAddress::Ipv4(address) = address else { unreachable!("it is IPv4") };
            bytes.extend(address.octets());
        }
        bytes.extend(options);
        Ipv4Packet::new_unchecked(&mut bytes).fill_checksum();
        bytes.extend(segment);
        bytes
    }

    /// Returns an IPv6 packet with these extension headers, the first of which has the type `next`.
    pub(super) fn v6(&self, next: u8, extensions: &[u8]) -> Vec<u8> {
        let segment = self.segment();
        let mut bytes = vec![0x60, 0, 0, 0];
        bytes.extend(((extensions.len() + segment.len()) as u16).to_be_bytes());
        bytes.extend([next, 64]);
        for address in self.addresses() {
            let IpAddress::Ipv6(address) = address else { unreachable!("it is IPv6") };
            bytes.extend(address.octets());
        }
        bytes.extend(extensions);
        bytes.extend(segment);
        bytes
    }
}

/// Returns the segment in a packet and its options. Panics if a checksum or length is wrong.
pub(super) fn read(packet: &[u8]) -> (TcpInPacket, Vec<u8>) {
    let (Parsed::Segment(segment) | Parsed::FirstFragment(segment)) = header::parse(packet) else {
        panic!("not a TCP segment: {packet:02x?}");
    };
    let mut fresh = packet.to_vec();
    let tcp = segment.range();
    let (end, source, destination) = match packet[0] >> 4 {
        4 => {
            let mut ip = Ipv4Packet::new_checked(&mut fresh[..]).unwrap();
            ip.fill_checksum();
            (usize::from(ip.total_len()), ip.src_addr().into(), ip.dst_addr().into())
        }
        _ => {
            let ip = Ipv6Packet::new_checked(packet).unwrap();
            (40 + usize::from(ip.payload_len()), IpAddress::from(ip.src_addr()), ip.dst_addr().into())
        }
    };
    assert_eq!((tcp.end, packet.len()), (end, end));
    TcpPacket::new_checked(&mut fresh[tcp]).unwrap().fill_checksum(&source, &destination);
    assert_eq!(fresh, packet, "wrong checksum in a packet");
    (segment, segment.options(packet).to_vec())
}

/// A stage that drops the packets for which a function returns a reason. It takes no time.
struct Losing<F>(F);

impl<F: FnMut(&Packet) -> Option<DropReason>> Stage for Losing<F> {
    fn handle_packet(&mut self, _: Instant, packet: Packet, out: &mut Outbox) {
        match (self.0)(&packet) {
            Some(why) => out.drop(packet, why),
            None => out.forward(packet),
        }
    }
    fn stats(&self) -> Value {
        Value::Null
    }
    fn reconfigure(&mut self, _: Instant, _: &dyn Any, _: &mut Outbox) -> Result<(), ReconfigureError> {
        Ok(())
    }
}

fn named(name: &str, stage: impl Stage + 'static) -> NamedStage {
    NamedStage { name: name.to_owned(), stage: Box::new(stage) }
}

fn marks(radio: Side) -> StationConfig {
    StationConfig { transit_marks: true, radio, ..StationConfig::default() }
}

fn reports(radio: Side) -> StationConfig {
    StationConfig { loss_report: true, radio, ..StationConfig::default() }
}

/// A path in which nothing takes time.
struct Net(Path);

impl Net {
    fn of(stages: Vec<NamedStage>) -> Self {
        Self(Path::new(stages, Recording::Events, false))
    }

    fn station(config: &StationConfig) -> Self {
        Self::of(vec![named("station", Station::new(config))])
    }

    fn send(&mut self, from: Port, packet: &[u8]) -> Option<Vec<u8>> {
        self.0.handle_packet(Instant::ZERO, from, packet.to_vec());
        let mut left = Vec::new();
        drain(&mut self.0, Instant::ZERO, |_, port, packet| {
            assert_ne!(port, from);
            left.push(packet);
        });
        assert!(left.len() < 2);
        left.pop()
    }

    /// Sends a segment and returns what arrives. Panics if a checksum is wrong.
    fn pass(&mut self, tcp: &Tcp) -> Option<(TcpInPacket, Vec<u8>)> {
        self.send(tcp.from, &tcp.packet()).map(|packet| read(&packet))
    }

    fn flags(&mut self, tcp: &Tcp) -> u16 {
        self.pass(tcp).expect("the segment arrives").0.header().flags.0
    }

    fn stats(&self) -> Value {
        self.0.stats()
    }
}

fn direction_from(port: Port) -> Direction {
    if port == FIXED { Direction::Down } else { Direction::Up }
}

fn other(port: Port) -> Port {
    if port == FIXED { MOBILE } else { FIXED }
}

/// A sender at one end of a path, and a receiver at the other end that acknowledges each segment at once.
struct Connection {
    net: Net,
    ip: Ip,
    sender: Port,
    port: u16,
    isn: u32,
    /// As announced on the receiver's SYN.
    radio_path: Option<RadioPath>,
    /// Segments that have arrived, by index.
    arrived: BTreeSet<u64>,
    rcv_nxt: u64,
}

const PEER: u32 = 7_000_000;
const SIZE: u32 = 100;

impl Connection {
    fn open(net: Net, ip: Ip, sender: Port, isn: u32) -> Self {
        let mut connection = Self::under_way(net, ip, sender, isn);
        connection.handshake();
        connection
    }

    /// Creates a connection whose SYN did not pass any station on this path.
    fn under_way(net: Net, ip: Ip, sender: Port, isn: u32) -> Self {
        Self { net, ip, sender, port: 5000, isn, radio_path: None, arrived: BTreeSet::new(), rcv_nxt: 0 }
    }

    fn handshake(&mut self) {
        let tcp = |from, flags, seq, ack| Tcp::new(self.ip, from, flags, seq, ack).port(self.port);
        let first = self.isn.wrapping_add(1);
        let syn = tcp(self.sender, SYN, self.isn, 0);
        let syn_ack = tcp(other(self.sender), SYN | ACK, PEER, first);
        let ack = tcp(self.sender, ACK, first, PEER + 1);
        self.net.flags(&syn);
        self.radio_path = RadioPath::announced(self.net.flags(&syn_ack));
        self.net.flags(&ack);
    }

    /// Returns the sequence number of the segment with this index, counted from 0.
    fn seq(&self, index: u32) -> u32 {
        self.isn.wrapping_add(1).wrapping_add(index * SIZE)
    }

    /// Sends a segment. Returns the segment that the ACK asks for, and the flags of the ACK.
    fn data(&mut self, index: u32) -> Option<(u32, u16)> {
        let data = Tcp::new(self.ip, self.sender, PSH_ACK, self.seq(index), PEER + 1)
            .port(self.port)
            .payload(&[index as u8; SIZE as usize]);
        self.net.pass(&data)?;
        self.arrive(index.into());
        Some(self.ack())
    }

    fn send(&mut self, segments: impl IntoIterator<Item = u32>) {
        for index in segments {
            self.data(index);
        }
    }

    /// Sends a segment, and retransmits each one that an ACK asks for. Returns the verdicts about those.
    fn send_and_repair(&mut self, index: u32) -> Vec<(u32, Cause)> {
        let mut verdicts = Vec::new();
        let mut ack = self.data(index);
        while let Some((missing, flags)) = ack.take_if(|(missing, _)| *missing <= index) {
            verdicts.push((missing, self.cause(flags)));
            ack = self.data(missing);
        }
        verdicts
    }

    fn arrive(&mut self, index: u64) {
        self.arrived.insert(index);
        while self.arrived.contains(&self.rcv_nxt) {
            self.rcv_nxt += 1;
        }
    }

    /// Sends an ACK. Returns the segment that it asks for, and its flags.
    fn ack(&mut self) -> (u32, u16) {
        let missing = self.rcv_nxt as u32;
        let ack = Tcp::new(self.ip, other(self.sender), ACK, PEER + 1, self.seq(missing)).port(self.port);
        (missing, self.net.flags(&ack))
    }

    /// Sends an ACK. Returns the segment that the ACK requests, and the cause that the sender derives.
    fn verdict(&mut self) -> (u32, Cause) {
        let (missing, flags) = self.ack();
        (missing, self.cause(flags))
    }

    fn cause(&self, flags: u16) -> Cause {
        self.radio_path.expect("a station announced itself").cause(flags)
    }
}

/// Returns a stage that loses the segments with these sequence numbers, once each.
fn hole(sender: Port, lose: &[u32], why: DropReason) -> impl Stage + use<> {
    let (direction, mut lose) = (direction_from(sender), lose.to_vec());
    Losing(move |packet: &Packet| {
        let seq = match header::parse(&packet.bytes) {
            Parsed::Segment(segment) if packet.direction == direction => segment.header().seq.0,
            _ => return None,
        };
        lose.remove(lose.iter().position(|lost| *lost == seq)?);
        Some(why)
    })
}

/// fixed — wire — station — radio — mobile
fn one_station(sender: Port, on_wire: &[u32], on_radio: &[u32]) -> Net {
    one_station_of(&marks(Side::Mobile), sender, on_wire, on_radio)
}

fn one_station_of(config: &StationConfig, sender: Port, on_wire: &[u32], on_radio: &[u32]) -> Net {
    Net::of(vec![
        named("wire", hole(sender, on_wire, DropReason::QueueFull)),
        named("station", Station::new(config)),
        named("radio", hole(sender, on_radio, DropReason::Loss)),
    ])
}

/// mobile — radio — station — wire — station — radio — mobile
fn two_stations(sender: Port, lose: [&[u32]; 3]) -> Net {
    two_stations_of([Side::Fixed, Side::Mobile].map(|side| Station::new(&marks(side))), sender, lose)
}

fn two_stations_of([station1, station2]: [Station; 2], sender: Port, lose: [&[u32]; 3]) -> Net {
    Net::of(vec![
        named("radio1", hole(sender, lose[0], DropReason::Loss)),
        named("station1", station1),
        named("wire", hole(sender, lose[1], DropReason::QueueFull)),
        named("station2", station2),
        named("radio2", hole(sender, lose[2], DropReason::Loss)),
    ])
}

/// Opens and uses a connection between other ports.
fn another_connection(net: Net) -> Net {
    let mut other = Connection { port: 6000, ..Connection::under_way(net, Ip::V4, FIXED, 50) };
    other.handshake();
    other.data(0);
    other.net
}

const ISN: u32 = 1000;

fn seq(index: u32) -> u32 {
    ISN + 1 + index * SIZE
}

/// Loses segment 1 and sends segments 2 to 4, which cause three duplicate ACKs. Returns the announced path
/// and the marks.
fn duplicates(net: Net, ip: Ip, sender: Port) -> (Option<RadioPath>, u16) {
    let mut connection = Connection::open(net, ip, sender, ISN);
    assert!(connection.data(0).is_some());
    assert_eq!(connection.data(1), None, "segment 1 is lost");
    let acks: Vec<_> = (2..5).map(|index| connection.data(index).unwrap()).collect();
    assert!(acks.iter().all(|(missing, flags)| *missing == 1 && *flags == acks[0].1), "{acks:?}");
    (connection.radio_path, acks[0].1 & (OB | DB))
}
