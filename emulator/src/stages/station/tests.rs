//! Stations in paths, with scripted connections going past.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::SystemTime;

use smoltcp::wire::{IpAddress, Ipv4Packet, Ipv6Packet, TcpPacket};

use super::agent::{DB, OB, Scenario};
use super::header::FIN;
use super::report::LossRate;
use super::*;
use crate::capture::{Capture, Tap};
use crate::machine::{Machine, Port, drain};
use crate::packet::PacketId;
use crate::path::{FIXED, MOBILE, Named, Path};
use crate::stage::{Cause, Record, Recording, Why};

const PSH_ACK: u16 = 0x018;
const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ip {
    V4,
    V6,
}

/// A TCP segment, to be put into a packet.
#[derive(Clone, Debug)]
pub(super) struct Tcp {
    pub(super) ip: Ip,
    pub(super) from: Port,
    /// Of the mobile side; that of the fixed side is 80.
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

    /// The TCP segment with its checksum.
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

    /// With options of IPv4 and the field of flags and fragment offset.
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

    /// With extension headers, the first of which is `next`.
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

/// The segment in a packet. Its checksums and lengths must be what a full computation gives.
pub(super) fn read(packet: &[u8]) -> (Segment, Vec<u8>) {
    let (Parsed::Segment(segment) | Parsed::FirstFragment(segment)) = header::parse(packet) else {
        panic!("no TCP segment: {packet:02x?}");
    };
    let mut fresh = packet.to_vec();
    let tcp = segment.place();
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
    assert_eq!(fresh, packet, "the checksums");
    (segment, segment.options(packet).to_vec())
}

/// Loses the segments with these sequence numbers, once each.
struct Hole {
    direction: Direction,
    lose: Vec<u32>,
    why: Why,
}

impl Stage for Hole {
    fn handle_packet(&mut self, _: Instant, packet: Packet, out: &mut Outbox) {
        let seq = match header::parse(&packet.bytes) {
            Parsed::Segment(segment) if packet.direction == self.direction => Some(segment.seq),
            _ => None,
        };
        match self.lose.iter().position(|lost| Some(*lost) == seq) {
            Some(index) => {
                self.lose.remove(index);
                out.drop(packet, self.why);
            }
            None => out.forward(packet),
        }
    }
    fn handle_deadline(&mut self, _: Instant, _: &mut Outbox) {}
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn held(&self) -> usize {
        0
    }
    fn stats(&self) -> Value {
        Value::Null
    }
    fn reconfigure(&mut self, _: Instant, _: &StageConfig, _: &mut Outbox) -> Result<(), NotLive> {
        Ok(())
    }
}

fn named(name: &str, stage: impl Stage + 'static) -> Named {
    Named { name: name.to_owned(), stage: Box::new(stage) }
}

fn marks(radio: Side) -> StationConfig {
    StationConfig { transit_marks: true, radio, ..StationConfig::default() }
}

fn reports(radio: Side) -> StationConfig {
    StationConfig { loss_report: true, radio, ..StationConfig::default() }
}

/// A path at one instant: nothing in it takes time.
struct Net(Path);

impl Net {
    fn of(stages: Vec<Named>) -> Self {
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

    /// What arrives of a segment. Its checksums are right.
    fn pass(&mut self, tcp: &Tcp) -> Option<(Segment, Vec<u8>)> {
        self.send(tcp.from, &tcp.packet()).map(|packet| read(&packet))
    }

    fn flags(&mut self, tcp: &Tcp) -> u16 {
        self.pass(tcp).expect("it arrives").0.flags
    }

    fn stats(&self) -> Value {
        self.0.stats()
    }
}

fn other(port: Port) -> Port {
    if port == FIXED { MOBILE } else { FIXED }
}

/// A sender at one end of a path, and at the other a receiver that acknowledges each segment as it comes.
struct Connection {
    net: Net,
    ip: Ip,
    sender: Port,
    port: u16,
    isn: u32,
    /// From the SYN of the receiver.
    scenario: Option<Scenario>,
    arrived: BTreeMap<u64, u64>,
    rcv_nxt: u64,
}

const PEER: u32 = 7_000_000;
const SIZE: u32 = 100;

impl Connection {
    fn open(net: Net, ip: Ip, sender: Port, isn: u32) -> Self {
        let mut connection =
            Self { net, ip, sender, port: 5000, isn, scenario: None, arrived: BTreeMap::new(), rcv_nxt: 0 };
        connection.handshake();
        connection
    }

    fn handshake(&mut self) {
        let tcp = |from, flags, seq, ack| Tcp::new(self.ip, from, flags, seq, ack).port(self.port);
        let first = self.isn.wrapping_add(1);
        let syn = tcp(self.sender, SYN, self.isn, 0);
        let syn_ack = tcp(other(self.sender), SYN | ACK, PEER, first);
        let ack = tcp(self.sender, ACK, first, PEER + 1);
        self.net.flags(&syn);
        self.scenario = Scenario::announced(self.net.flags(&syn_ack));
        self.net.flags(&ack);
    }

    /// The sequence number of the `index`th segment, from 0.
    fn seq(&self, index: u32) -> u32 {
        self.isn.wrapping_add(1).wrapping_add(index * SIZE)
    }

    /// Sends a segment. What the sender gets back: which segment is asked for, and the flags.
    fn data(&mut self, index: u32) -> Option<(u32, u16)> {
        let data = Tcp::new(self.ip, self.sender, PSH_ACK, self.seq(index), PEER + 1)
            .port(self.port)
            .payload(&[index as u8; SIZE as usize]);
        self.net.pass(&data)?;
        let begin = u64::from(index);
        self.arrived.insert(begin, begin + 1);
        while self.arrived.contains_key(&self.rcv_nxt) {
            self.rcv_nxt += 1;
        }
        Some(self.ack())
    }

    fn ack(&mut self) -> (u32, u16) {
        let asked = self.rcv_nxt as u32;
        let ack = Tcp::new(self.ip, other(self.sender), ACK, PEER + 1, self.seq(asked)).port(self.port);
        (asked, self.net.flags(&ack))
    }

    fn cause(&self, flags: u16) -> Cause {
        self.scenario.expect("there is an agent").cause(flags)
    }
}

fn hole(sender: Port, lose: &[u32], why: Why) -> Hole {
    let direction = if sender == FIXED { Direction::Down } else { Direction::Up };
    Hole { direction, lose: lose.to_vec(), why }
}

/// fixed — wire — station — radio — mobile
fn one_station(sender: Port, on_wire: &[u32], on_radio: &[u32]) -> Net {
    Net::of(vec![
        named("wire", hole(sender, on_wire, Why::QueueFull)),
        named("station", Station::new(&marks(Side::Mobile))),
        named("radio", hole(sender, on_radio, Why::Loss)),
    ])
}

/// mobile — radio — station — wire — station — radio — mobile
fn two_stations(sender: Port, lose: [&[u32]; 3]) -> Net {
    Net::of(vec![
        named("radio1", hole(sender, lose[0], Why::Loss)),
        named("station1", Station::new(&marks(Side::Fixed))),
        named("wire", hole(sender, lose[1], Why::QueueFull)),
        named("station2", Station::new(&marks(Side::Mobile))),
        named("radio2", hole(sender, lose[2], Why::Loss)),
    ])
}

const ISN: u32 = 1000;

fn seq(index: u32) -> u32 {
    ISN + 1 + index * SIZE
}

/// Segment 1 is lost, and segments 2 to 4 bring three duplicate ACKs.
fn duplicates(net: Net, ip: Ip, sender: Port) -> (Option<Scenario>, u16) {
    let mut connection = Connection::open(net, ip, sender, ISN);
    assert!(connection.data(0).is_some());
    assert_eq!(connection.data(1), None, "lost");
    let acks: Vec<_> = (2..5).map(|index| connection.data(index).unwrap()).collect();
    assert!(acks.iter().all(|(asked, flags)| *asked == 1 && *flags == acks[0].1), "{acks:?}");
    (connection.scenario, acks[0].1 & (OB | DB))
}

#[test]
fn from_fixed_to_mobile_ob_says_that_the_radio_lost_it() {
    for ip in [Ip::V4, Ip::V6] {
        let scenario = Some(Scenario::FixedToMobile);
        assert_eq!(duplicates(one_station(FIXED, &[seq(1)], &[]), ip, FIXED), (scenario, 0));
        assert_eq!(duplicates(one_station(FIXED, &[], &[seq(1)]), ip, FIXED), (scenario, OB));
    }
}

#[test]
fn from_mobile_to_fixed_ob_says_that_the_wire_lost_it() {
    for ip in [Ip::V4, Ip::V6] {
        let scenario = Some(Scenario::MobileToFixed);
        assert_eq!(duplicates(one_station(MOBILE, &[seq(1)], &[]), ip, MOBILE), (scenario, OB));
        assert_eq!(duplicates(one_station(MOBILE, &[], &[seq(1)]), ip, MOBILE), (scenario, 0));
    }
}

#[test]
fn from_mobile_to_mobile_two_bits_tell_three_cases() {
    let lost: [&[u32]; 3] = [&[seq(1)], &[], &[]];
    for ip in [Ip::V4, Ip::V6] {
        for (case, bits) in [(0, 0), (1, OB), (2, OB | DB)] {
            let scenario = Some(Scenario::MobileToMobile);
            // The lost segment, in the order in which the data cross the links.
            let mut lose = lost;
            lose.rotate_right(case);
            assert_eq!(
                duplicates(two_stations(FIXED, lose), ip, FIXED),
                (scenario, bits),
                "case {}",
                case + 1
            );
            lose.reverse();
            assert_eq!(
                duplicates(two_stations(MOBILE, lose), ip, MOBILE),
                (scenario, bits),
                "case {}",
                case + 1
            );
        }
    }
}

#[test]
fn the_senders_reading_is_the_papers() {
    use Cause::{Congestion, Radio};
    let both = OB | DB;
    for (scenario, flags, cause) in [
        (Scenario::FixedToMobile, OB, Radio),
        (Scenario::FixedToMobile, 0, Congestion),
        (Scenario::MobileToFixed, OB, Congestion),
        (Scenario::MobileToFixed, 0, Radio),
        (Scenario::MobileToMobile, 0, Radio),
        (Scenario::MobileToMobile, OB, Congestion),
        (Scenario::MobileToMobile, both, Radio),
        (Scenario::MobileToMobile, DB, Congestion),
    ] {
        assert_eq!(scenario.cause(flags | ACK), cause, "{scenario:?} {flags:x}");
    }
}

#[test]
fn every_verdict_on_many_losses_is_the_truth() {
    // Lost on each link in turn: segments 1, 4, 7, … here, 2, 5, 8, … there.
    let [first, second, third] = [1, 2, 3].map(|from| (from..100).step_by(3).map(seq).collect::<Vec<_>>());
    let link = |lost: &Vec<u32>, cause| (lost.clone(), cause);
    let (radio, queue) = (Cause::Radio, Cause::Congestion);
    for (net, sender, causes) in [
        (one_station(FIXED, &first, &second), FIXED, vec![link(&first, queue), link(&second, radio)]),
        (one_station(MOBILE, &first, &second), MOBILE, vec![link(&first, queue), link(&second, radio)]),
        (
            two_stations(FIXED, [&first, &second, &third]),
            FIXED,
            vec![link(&first, radio), link(&second, queue), link(&third, radio)],
        ),
        (
            two_stations(MOBILE, [&first, &second, &third]),
            MOBILE,
            vec![link(&first, radio), link(&second, queue), link(&third, radio)],
        ),
    ] {
        let mut connection = Connection::open(net, Ip::V4, sender, ISN);
        for index in 0..101 {
            let _ = connection.data(index);
        }
        // Each was lost once; now each hole is asked for, judged and filled.
        let mut judged = 0;
        while connection.rcv_nxt < 101 {
            let (asked, flags) = connection.ack();
            let truth = causes.iter().find(|(lost, _)| lost.contains(&seq(asked))).map(|(_, cause)| *cause);
            assert_eq!(Some(connection.cause(flags)), truth, "segment {asked}, sender {sender:?}");
            judged += 1;
            connection.data(asked).expect("a retransmission arrives");
        }
        assert_eq!(judged, causes.iter().map(|(lost, _)| lost.len()).sum::<usize>());
    }
}

#[test]
fn a_connection_that_wraps_is_marked_like_any_other() {
    let isn = u32::MAX - 150;
    let lost = isn.wrapping_add(1).wrapping_add(SIZE);
    let mut connection = Connection::open(one_station(FIXED, &[lost], &[]), Ip::V4, FIXED, isn);
    connection.data(0);
    assert_eq!(connection.data(1), None);
    let (asked, flags) = connection.data(2).unwrap();
    assert_eq!((asked, flags & OB), (1, 0));
    connection.data(1);
    let (asked, flags) = connection.ack();
    assert_eq!((asked, flags & OB), (3, 0), "nothing of it has been sent");
}

#[test]
fn lost_acks_and_segments_out_of_order_change_no_answer() {
    let mut connection = Connection::open(one_station(FIXED, &[seq(3)], &[]), Ip::V6, FIXED, ISN);
    for index in [2, 0, 1, 5, 4] {
        // No ACK of these ever reaches the station.
        let rcv_nxt = connection.rcv_nxt;
        let data = Tcp::new(Ip::V6, FIXED, PSH_ACK, connection.seq(index), PEER + 1).payload(&[0; 100]);
        connection.net.pass(&data);
        assert_eq!(connection.rcv_nxt, rcv_nxt);
    }
    connection.arrived = [0, 1, 2, 4, 5].map(|index| (index, index + 1)).into();
    connection.rcv_nxt = 2;
    assert_eq!(connection.ack().1 & OB, OB, "an old ACK asks for what has gone past");
    connection.rcv_nxt = 3;
    assert_eq!(connection.ack().1 & OB, 0, "the hole is on the wire");
    connection.rcv_nxt = 2;
    assert_eq!(connection.ack().1 & OB, OB, "an ACK that was overtaken");
}

#[test]
fn the_fin_has_a_sequence_number_of_its_own() {
    let mut connection = Connection::open(one_station(FIXED, &[], &[]), Ip::V4, FIXED, ISN);
    connection.data(0);
    let fin = Tcp::new(Ip::V4, FIXED, FIN | ACK, seq(1), PEER + 1);
    assert_eq!(connection.ack().1 & OB, 0);
    connection.net.pass(&fin);
    assert_eq!(connection.ack().1 & OB, OB, "it asks for the FIN, which has gone past");
}

#[test]
fn a_keep_alive_is_nothing_new() {
    let mut connection = Connection::open(one_station(FIXED, &[], &[]), Ip::V4, FIXED, ISN);
    connection.data(0);
    for payload in [&[][..], &[0]] {
        let probe = Tcp::new(Ip::V4, FIXED, ACK, seq(1) - 1, PEER + 1).payload(payload);
        connection.net.pass(&probe);
        assert_eq!(connection.ack().1 & (OB | DB), 0);
    }
    assert_eq!(connection.net.stats()["station"]["transit"]["given_up"], 0);
}

#[test]
fn the_same_ports_again_make_a_new_connection() {
    let mut connection = Connection::open(one_station(FIXED, &[], &[]), Ip::V4, FIXED, ISN);
    for index in 0..20 {
        connection.data(index);
    }
    connection.isn = ISN + 1000;
    connection.rcv_nxt = 0;
    connection.arrived.clear();
    connection.handshake();
    assert_eq!(connection.ack().1 & OB, 0, "what the old connection sent there does not count");
    assert_eq!(connection.data(0).map(|(asked, flags)| (asked, flags & OB)), Some((1, 0)));
}

#[test]
fn an_old_syn_does_not_make_a_connection_forgotten() {
    let mut connection = Connection::open(one_station(FIXED, &[seq(1)], &[seq(4)]), Ip::V4, FIXED, ISN);
    connection.data(0);
    connection.data(1);
    connection.net.pass(&Tcp::new(Ip::V4, FIXED, SYN, 0x5000_0000, 0));
    assert_eq!(connection.data(2).unwrap().1 & OB, 0);
    connection.data(3);
    connection.data(4);
    connection.data(1);
    assert_eq!(connection.ack(), (4, ACK | OB));
}

#[test]
fn of_a_connection_that_it_does_not_know_a_station_says_congestion() {
    let cause = |radio, sender: Port, scenario: Scenario| {
        let mut net = Net::station(&marks(radio));
        net.pass(&Tcp::new(Ip::V4, sender, PSH_ACK, 500, 1).payload(&[0; 100]));
        scenario.cause(net.flags(&Tcp::new(Ip::V4, other(sender), ACK | OB | DB, 1, 400)))
    };
    assert_eq!(cause(Side::Mobile, FIXED, Scenario::FixedToMobile), Cause::Congestion);
    assert_eq!(cause(Side::Mobile, MOBILE, Scenario::MobileToFixed), Cause::Congestion);
}

#[test]
fn a_forgotten_connection_is_judged_as_congestion_in_every_direction() {
    let few = |radio| StationConfig { max_flows: NonZeroU32::new(1).unwrap(), ..marks(radio) };
    for forgetful in [0, 1] {
        for sender in [FIXED, MOBILE] {
            let config = |index, side| if index == forgetful { few(side) } else { marks(side) };
            // Lost on the wire, between the two.
            let net = Net::of(vec![
                named("station1", Station::new(&config(0, Side::Fixed))),
                named("wire", hole(sender, &[seq(1)], Why::QueueFull)),
                named("station2", Station::new(&config(1, Side::Mobile))),
            ]);
            let mut connection = Connection::open(net, Ip::V4, sender, ISN);
            for index in 0..4 {
                connection.data(index);
            }
            let (_, flags) = connection.ack();
            assert_eq!(connection.cause(flags), Cause::Congestion);
            // Another connection pushes it out.
            connection.net.pass(&Tcp::new(Ip::V4, FIXED, SYN, 1, 0).port(6000));
            let (_, flags) = connection.ack();
            assert_eq!(connection.cause(flags), Cause::Congestion, "{forgetful} {sender:?}");
        }
    }
}

#[test]
fn a_receiver_that_acknowledges_what_never_came_ends_the_verdicts() {
    let mut connection = Connection::open(one_station(MOBILE, &[], &[seq(1)]), Ip::V4, MOBILE, ISN);
    connection.data(0);
    connection.data(1);
    assert_eq!(connection.data(2).unwrap().1 & OB, 0, "the radio lost it");
    connection.rcv_nxt = 9;
    let (_, flags) = connection.ack();
    assert_eq!(connection.cause(flags), Cause::Congestion);
    connection.rcv_nxt = 1;
    let (_, flags) = connection.ack();
    assert_eq!(connection.cause(flags), Cause::Congestion);
    assert_eq!(connection.net.stats()["station"]["transit"]["given_up"], 1);
}

#[test]
fn bits_that_a_host_sets_by_itself_do_not_get_through() {
    let mut connection = Connection::open(one_station(FIXED, &[], &[]), Ip::V4, FIXED, ISN);
    let from_mobile = Tcp::new(Ip::V4, MOBILE, ACK | OB | DB, PEER + 1, seq(0));
    assert_eq!(connection.net.flags(&from_mobile), ACK);
    let from_fixed = Tcp::new(Ip::V4, FIXED, ACK | DB, seq(0), PEER + 1);
    assert_eq!(connection.net.flags(&from_fixed), ACK);
    let syn = Tcp::new(Ip::V4, MOBILE, SYN | OB, 5, 0).port(1);
    assert_eq!(connection.net.flags(&syn), SYN | DB, "nobody serves the fixed host");
    // The third reserved bit and those of ECN are others' business.
    let others = Tcp::new(Ip::V4, MOBILE, ACK | 0x200 | 0x1c0, PEER + 1, seq(0));
    assert_eq!(connection.net.flags(&others), ACK | 0x200 | 0x1c0);
}

#[test]
fn without_marks_no_bit_is_touched() {
    let mut net = Net::station(&StationConfig::default());
    for flags in [SYN, SYN | ACK, ACK, ACK | OB | DB, RST] {
        let tcp = Tcp::new(Ip::V4, MOBILE, flags, 1, 1);
        assert_eq!(net.send(MOBILE, &tcp.packet()), Some(tcp.packet()));
    }
}

#[test]
fn marks_are_put_on_record() {
    let mut connection = Connection::open(one_station(FIXED, &[], &[]), Ip::V4, FIXED, ISN);
    connection.data(0);
    let records = connection.net.0.take_records();
    let marks: Vec<_> = records
        .iter()
        .filter_map(|Record { stage, event, .. }| match event {
            Event::Marked { what } => Some((*stage, *what)),
            _ => None,
        })
        .collect();
    let unseen = (Some(1), Mark::Transit { ob: false, db: false });
    let announced = (Some(1), Mark::Announced);
    // SYN, SYN-ACK, ACK; data (which acknowledges, too), ACK. To the mobile an answer of "no" is said with data
    // from the mobile in mind.
    assert_eq!(marks, [announced, announced, unseen, unseen, unseen]);
}

// --- the loss-rate report ---

/// Loses every `n`th packet of a direction.
struct EveryNth {
    direction: Direction,
    n: u32,
    seen: u32,
}

impl Stage for EveryNth {
    fn handle_packet(&mut self, _: Instant, packet: Packet, out: &mut Outbox) {
        self.seen += u32::from(packet.direction == self.direction);
        if packet.direction == self.direction && self.seen.is_multiple_of(self.n) {
            out.drop(packet, Why::Loss);
        } else {
            out.forward(packet);
        }
    }
    fn handle_deadline(&mut self, _: Instant, _: &mut Outbox) {}
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn held(&self) -> usize {
        0
    }
    fn stats(&self) -> Value {
        Value::Null
    }
    fn reconfigure(&mut self, _: Instant, _: &StageConfig, _: &mut Outbox) -> Result<(), NotLive> {
        Ok(())
    }
}

/// 1000 segments from `sender`, then one ACK back: the rate that it carries.
fn reported(stages: Vec<Named>, sender: Port) -> f64 {
    let mut net = Net::of(stages);
    for index in 0..1000 {
        net.pass(&Tcp::new(Ip::V4, sender, PSH_ACK, index * 100, 1).payload(&[0; 100]));
    }
    let ack = Tcp::new(Ip::V4, other(sender), ACK, 1, 1).options(&TIMESTAMPS);
    let (_, options) = net.pass(&ack).unwrap();
    assert!(options.starts_with(&TIMESTAMPS));
    report::find(&options).expect("it is reported").ratio()
}

fn lossy(direction: Direction, n: u32) -> EveryNth {
    EveryNth { direction, n, seen: 0 }
}

fn is_about(rate: f64, expected: f64) -> bool {
    // Half a unit of 2^-16 for each station.
    (rate - expected).abs() <= 1.0 / 65_536.0
}

#[test]
fn an_ack_tells_the_loss_rate_of_the_link_that_the_data_crossed() {
    let stages = |direction| {
        vec![named("station", Station::new(&reports(Side::Mobile))), named("radio", lossy(direction, 50))]
    };
    assert!(is_about(reported(stages(Direction::Down), FIXED), 0.02));
    assert!(is_about(reported(stages(Direction::Up), MOBILE), 0.02));
    // The other direction's losses are not this sender's.
    assert!(is_about(reported(stages(Direction::Up), FIXED), 0.0));
}

#[test]
fn two_radio_links_add_up() {
    let stages = vec![
        named("radio1", lossy(Direction::Down, 20)),
        named("station1", Station::new(&reports(Side::Fixed))),
        named("station2", Station::new(&reports(Side::Mobile))),
        named("radio2", lossy(Direction::Down, 50)),
    ];
    let rate = reported(stages, FIXED);
    assert!(is_about(rate, 0.05 + 0.02), "{rate}");
}

#[test]
fn a_radio_link_of_several_stages_is_one_link() {
    let stages = vec![
        named("station", Station::new(&reports(Side::Mobile))),
        named("one", lossy(Direction::Down, 10)),
        named("wire", hole(FIXED, &[], Why::QueueFull)),
        named("two", lossy(Direction::Down, 10)),
    ];
    let rate = reported(stages, FIXED);
    assert!(is_about(rate, 1.0 - 0.9 * 0.9), "{rate}");
}

#[test]
fn losses_to_congestion_and_on_the_other_side_are_no_tax() {
    let full: Vec<u32> = (0..1000).step_by(10).map(|index| index * 100).collect();
    let stages = vec![
        named("before", lossy(Direction::Down, 10)),
        named("station", Station::new(&reports(Side::Mobile))),
        named("queue", hole(FIXED, &full, Why::QueueFull)),
    ];
    assert!(is_about(reported(stages, FIXED), 0.0));
}

#[test]
fn where_there_is_no_room_the_segment_goes_as_it_came_and_the_next_one_tells() {
    let mut net = Net::station(&reports(Side::Mobile));
    let sack = |blocks: u8| {
        let mut option = vec![1, 1, 5, 2 + 8 * blocks];
        option.resize(usize::from(4 + 8 * blocks), 9);
        [&TIMESTAMPS[..], &option].concat()
    };
    let full = Tcp::new(Ip::V4, MOBILE, ACK, 1, 1).options(&sack(3));
    assert_eq!(net.send(MOBILE, &full.packet()), Some(full.packet()));
    let room = Tcp::new(Ip::V4, MOBILE, ACK, 1, 1).options(&sack(2));
    assert_eq!(report::find(&net.pass(&room).unwrap().1), Some(LossRate(0)));

    let large = Tcp::new(Ip::V6, MOBILE, PSH_ACK, 1, 1).payload(&[7; 1440]);
    assert_eq!(net.send(MOBILE, &large.packet()), Some(large.packet()), "as long as the MTU");
    let fits = Tcp::new(Ip::V6, MOBILE, PSH_ACK, 1, 1).payload(&[7; 1432]);
    assert_eq!(net.send(MOBILE, &fits.packet()).unwrap().len(), 1500);
    let counters = &net.stats()["station"]["counters"];
    assert_eq!(
        (&counters["options_full"], &counters["over_mtu"], &counters["inserted"]),
        (&json!(1), &json!(1), &json!(2))
    );
}

#[test]
fn a_report_leaves_all_else_of_the_packet_in_its_place() {
    let mut net = Net::station(&StationConfig { transit_marks: true, ..reports(Side::Mobile) });
    for ip in [Ip::V4, Ip::V6] {
        let tcp = Tcp::new(ip, MOBILE, PSH_ACK, 77, 88).options(&TIMESTAMPS).payload(b"an odd payload!");
        let packet = tcp.packet();
        // Some links pad what they carry.
        let mut padded = packet.clone();
        padded.extend([0xee; 3]);
        let arrived = net.send(MOBILE, &padded).unwrap();
        assert_eq!(arrived.len(), padded.len() + 8);
        assert!(arrived.ends_with(b"an odd payload!\xee\xee\xee"));
        let (segment, options) = read(&arrived[..arrived.len() - 3]);
        assert_eq!((segment.seq, segment.ack, segment.flags), (77, 88, PSH_ACK));
        assert_eq!((options.len(), &options[..12]), (20, &TIMESTAMPS[..]));
    }
}

// --- what is not touched ---

#[test]
fn what_is_not_a_whole_tcp_segment_passes_octet_for_octet() {
    let mut net = Net::station(&StationConfig { transit_marks: true, ..reports(Side::Mobile) });
    let tcp = Tcp::new(Ip::V4, MOBILE, ACK, 1, 1).payload(&[1; 40]);
    let v6 = Tcp::new(Ip::V6, MOBILE, ACK, 1, 1).payload(&[1; 40]);
    let edited = |mut packet: Vec<u8>, at: usize, octet: u8| {
        packet[at] = octet;
        packet
    };
    let mut packets = vec![
        vec![],
        vec![0x45],
        vec![0x60; 39],
        vec![0xff; 100],
        edited(tcp.packet(), 9, 17),
        edited(tcp.packet(), 0, 0x44),
        edited(tcp.packet(), 32, 0x40),
        edited(Tcp::new(Ip::V4, MOBILE, ACK, 1, 1).packet(), 32, 0x60),
        tcp.v4(&[], 0x2000),
        tcp.v4(&[], 0x0003),
        tcp.v4(&[], 0x2003),
        v6.v6(44, &[6, 0, 0, 1, 0, 0, 0, 9]),
        v6.v6(44, &[6, 0, 0, 8, 0, 0, 0, 9]),
        v6.v6(43, &[6, 0, 0, 1, 0, 0, 0, 0]),
        v6.v6(51, &[6, 1, 0, 0, 0, 0, 0, 0]),
        v6.v6(58, &[]),
        v6.v6(0, &[6, 200, 0, 0, 0, 0, 0, 0]),
        Tcp::new(Ip::V4, MOBILE, RST | ACK, 1, 1).packet(),
        Tcp::new(Ip::V4, MOBILE, ACK, 1, 1).options(&[&[1, 1, 19, 18][..], &[7; 16]].concat()).packet(),
    ];
    packets.extend((0..tcp.packet().len()).map(|length| tcp.packet()[..length].to_vec()));
    packets.extend((0..v6.packet().len()).map(|length| v6.packet()[..length].to_vec()));
    for packet in packets {
        assert_eq!(net.send(MOBILE, &packet), Some(packet));
    }
}

#[test]
fn options_of_ipv4_and_extension_headers_of_ipv6_are_walked() {
    let mut net = Net::station(&StationConfig { transit_marks: true, ..reports(Side::Mobile) });
    let v4 = Tcp::new(Ip::V4, FIXED, SYN, 9, 0);
    let v6 = Tcp::new(Ip::V6, FIXED, SYN, 9, 0);
    let atomic =
        [60, 0, 1, 4, 0, 0, 0, 0, 44, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 1, 2, 3, 4];
    for packet in [v4.v4(&[1, 1, 1, 0], 0), v6.v6(0, &atomic)] {
        assert_eq!(read(&net.send(FIXED, &packet).unwrap()).0.flags, SYN | OB);
    }
    let ack = Tcp::new(Ip::V6, MOBILE, ACK, 9, 9);
    let (_, options) = read(&net.send(MOBILE, &ack.v6(0, &atomic)).unwrap());
    assert!(report::find(&options).is_some());
    let ack = Tcp::new(Ip::V4, MOBILE, ACK, 9, 9);
    let (_, options) = read(&net.send(MOBILE, &ack.v4(&[1; 40], 0)).unwrap());
    assert!(report::find(&options).is_some());
}

#[test]
fn a_fragmented_segment_makes_the_answer_congestion() {
    let mut connection = Connection::open(one_station(MOBILE, &[], &[]), Ip::V4, MOBILE, ISN);
    connection.data(0);
    assert_eq!(connection.ack().1 & OB, 0, "segment 1 has not gone past");
    let head = Tcp::new(Ip::V4, MOBILE, PSH_ACK, seq(1), PEER + 1).payload(&[0; 80]);
    connection.net.send(MOBILE, &head.v4(&[], 0x2000)).unwrap();
    let (_, flags) = connection.ack();
    assert_eq!(connection.cause(flags), Cause::Congestion);
}

#[test]
fn background_packets_pass_untouched() {
    let mut station = Station::new(&marks(Side::Mobile));
    let mut out = Outbox::new(Recording::Events, false);
    let packet = Packet {
        id: PacketId(1),
        direction: Direction::Up,
        origin: Origin::Background { leaves_after: 3 },
        entered: Instant::ZERO,
        bytes: Tcp::new(Ip::V4, MOBILE, SYN, 1, 1).packet(),
    };
    station.handle_packet(Instant::ZERO, packet.clone(), &mut out);
    assert_eq!(out.take(), [packet]);
}

// --- what others see ---

/// The commands of `docs/wire-extensions.md`.
#[test]
fn tshark_and_tcpdump_show_bits_and_option() {
    let path = std::env::temp_dir().join(format!("airlink-{}-wire-extensions.pcap", std::process::id()));
    let mut net = Net::of(vec![
        named("station", Station::new(&StationConfig { transit_marks: true, ..reports(Side::Mobile) })),
        named("radio", hole(FIXED, &[seq(1)], Why::Loss)),
    ]);
    let data = |index| Tcp::new(Ip::V4, FIXED, PSH_ACK, seq(index), PEER + 1).payload(&[0; SIZE as usize]);
    let ack = Tcp::new(Ip::V4, MOBILE, ACK, PEER + 1, seq(1)).options(&TIMESTAMPS);
    let packets = [
        Tcp::new(Ip::V4, FIXED, SYN, ISN, 0),
        Tcp::new(Ip::V4, MOBILE, SYN | ACK, PEER, seq(0)),
        data(0),
        data(1),
        data(2),
        ack,
    ];
    let mut capture = Capture::create(&path, SystemTime::UNIX_EPOCH).unwrap();
    for packet in packets {
        if let Some(arrived) = net.send(packet.from, &packet.packet()) {
            capture.packet(Instant::ZERO, &arrived);
        }
    }
    drop(capture);
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).arg("-r").arg(&path).output();
        let output =
            output.unwrap_or_else(|_| panic!("this test needs {program}: apt-get install {program}"));
        String::from_utf8(output.stdout).unwrap()
    };
    let tshark = |filter: &str, field: &str| {
        let checked = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
        run("tshark", &[&checked[..], &["-Y", filter, "-T", "fields", "-e", field]].concat())
    };
    let reserved = tshark("tcp.flags.res == 1", "tcp.flags");
    let ob = tshark("tcp.flags & 0x800 && tcp.flags.syn == 0", "tcp.flags");
    let db = tshark("tcp.flags & 0x400", "tcp.flags");
    let rate = tshark(
        "tcp.options.experimental.exid == 0x7177 && ip.src == 10.2.0.1",
        "tcp.options.experimental.data",
    );
    let good = tshark("tcp.checksum.status == 1 && ip.checksum.status == 1", "frame.number");
    let dumped_ob = run("tcpdump", &["-n", "-t", "-v", "tcp[12] & 0x08 != 0 and tcp[13] & 0x02 = 0"]);
    let dumped_db = run("tcpdump", &["-n", "-t", "-v", "tcp[12] & 0x04 != 0"]);
    std::fs::remove_file(&path).unwrap();
    // SYN: the mobile that reads it is served by a station. SYN-ACK: the mobile that sent it is.
    assert_eq!(reserved.lines().collect::<Vec<_>>(), ["0x0802", "0x0412", "0x0810"]);
    assert_eq!(ob.lines().last(), Some("0x0810"), "the lost segment has gone past the station");
    assert_eq!(db, "0x0412\n");
    assert_eq!(rate, "4000\n", "one of four was lost");
    assert_eq!(good.lines().count(), 5);
    assert!(dumped_ob.contains("exp-7177") && dumped_ob.contains("(correct)"), "{dumped_ob}");
    assert!(dumped_db.contains("Flags [S.]"), "{dumped_db}");
}

// --- settings ---

#[test]
fn a_scenario_says_what_a_station_does() {
    let config: StationConfig = toml::from_str("transit_marks = true\nradio = \"fixed\"").unwrap();
    assert_eq!(config, marks(Side::Fixed));
    let text = toml::to_string(&config).unwrap();
    assert_eq!(toml::from_str::<StationConfig>(&text).unwrap(), config);
    let wrong = |text| toml::from_str::<StationConfig>(text).unwrap_err().to_string();
    assert!(wrong("max_flows = 0").contains("nonzero"), "{}", wrong("max_flows = 0"));
    assert!(wrong("marks = true").contains("transit_marks"), "{}", wrong("marks = true"));
}

#[test]
fn the_report_can_be_switched_while_the_link_runs_but_not_the_marks() {
    let mut net = Net::station(&marks(Side::Mobile));
    let mut change =
        |config: StationConfig| net.0.reconfigure(Instant::ZERO, 0, &StageConfig::Station(config));
    change(StationConfig { loss_report: true, ..marks(Side::Mobile) }).unwrap();
    assert!(change(StationConfig::default()).unwrap_err().to_string().contains("transit_marks"));
    let (_, options) = net.pass(&Tcp::new(Ip::V4, MOBILE, ACK, 1, 1)).unwrap();
    assert!(report::find(&options).is_some());
}
