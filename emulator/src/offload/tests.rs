//! Tests that joining and splitting preserves packets byte for byte.

use std::net::SocketAddr;
use std::sync::Arc;

use airtcp_testkit::sample::cases;
use airwire::options::{Layout, Options, Timestamps};
use airwire::piece::{Payload, Piece};
use airwire::segment::{self, Ecn, Flags, Header as Segment, Verified};
use airwire::seq::Seq;
use proptest::prelude::*;

use super::{Batch, Header, Segmenter, prepare};

const MSS: usize = 1448;

/// A sending connection. Each segment has the next sequence number and identification.
#[derive(Clone)]
struct Sender {
    header: Segment,
    options: Options,
}

/// A segment as the sender's host builds it.
#[derive(Clone)]
struct Sent {
    header: Segment,
    options: Options,
    data: Arc<Vec<u8>>,
}

impl Sent {
    fn packet(&self) -> Vec<u8> {
        let (mut packet, mut options) = (Vec::new(), Vec::new());
        self.options.write(Layout::Linux, &mut options);
        segment::emit(&mut packet, &self.header, &options, (&self.data, &[]));
        packet
    }

    /// Returns the data in copied and in shared parts.
    fn text(&self) -> impl Iterator<Item = Payload<'_>> {
        let (begin, end) = (self.data.len() / 3, self.data.len());
        let middle = (begin + end) / 2;
        [
            Payload::Copied(&self.data[..begin]),
            Payload::Shared(&self.data, begin..middle),
            Payload::Shared(&self.data, middle..end),
        ]
        .into_iter()
    }
}

fn packets(sent: &[Sent]) -> Vec<Vec<u8>> {
    sent.iter().map(Sent::packet).collect()
}

impl Sender {
    fn new(src: &str, dst: &str) -> Self {
        let (src, dst): (SocketAddr, SocketAddr) = (src.parse().unwrap(), dst.parse().unwrap());
        // Both numbers wrap during the test.
        let (seq, ident) = (Seq(u32::MAX - 3000), u16::MAX - 1);
        let (ecn, flags) = (Ecn::NotEct, Flags::ACK);
        let header = Segment {
            src,
            dst,
            seq,
            ack: Seq(77),
            flags,
            window: 500,
            ecn,
            tos: 8,
            ttl: 64,
            dont_fragment: true,
            ident,
        };
        let timestamps = Some(Timestamps { val: 5, ecr: 6 });
        Self { header, options: Options { timestamps, ..Options::default() } }
    }

    fn v4() -> Self {
        Self::new("10.7.0.2:80", "10.8.0.9:40000")
    }

    fn v6() -> Self {
        Self::new("[fd07::2]:80", "[fd08::9]:40000")
    }

    fn segment(&mut self, len: usize, more: Flags) -> Sent {
        let seq = self.header.seq;
        let data = (0..len).map(|at| (seq.0 as usize + at) as u8).collect();
        let header = Segment { flags: self.header.flags.with(more), ..self.header.clone() };
        self.header.seq = seq.at(len as u64);
        self.header.ident = self.header.ident.wrapping_add(1);
        Sent { header, options: self.options, data: Arc::new(data) }
    }

    fn packet(&mut self, len: usize, more: Flags) -> Vec<u8> {
        self.segment(len, more).packet()
    }

    fn tick(&mut self) {
        self.options.timestamps.as_mut().unwrap().ecr += 1;
    }
}

/// A device that splits its input as the kernel does.
struct Device {
    segmenter: Segmenter,
    writes: usize,
    out: Vec<Vec<u8>>,
}

impl Device {
    fn new() -> Self {
        Self { segmenter: Segmenter::new(70_000), writes: 0, out: Vec::new() }
    }

    /// Takes a write that contains `count` packets with `octets` bytes in total.
    fn write(&mut self, header: Header, packet: &[u8], count: usize, octets: usize) {
        assert_eq!(Header::from_bytes(header.to_bytes()), Ok(header));
        self.segmenter.read_buffer()[..packet.len()].copy_from_slice(packet);
        self.segmenter.accept_read(packet.len(), header);
        let packets: Vec<Vec<u8>> = std::iter::from_fn(|| {
            let len = self.segmenter.next_len();
            let packet = self.segmenter.next_packet().map(<[u8]>::to_vec);
            assert_eq!(len, packet.as_ref().map(Vec::len));
            packet
        })
        .collect();
        assert_eq!((packets.len(), packets.iter().map(Vec::len).sum::<usize>()), (count, octets));
        self.out.extend(packets);
        self.writes += 1;
    }
}

/// Number of writes that a host needs for these segments, and the packets after splitting.
fn write_segments(sent: &[Sent]) -> (usize, Vec<Vec<u8>>) {
    let mut device = Device::new();
    let mut piece = Piece::default();
    let mut write = |piece: &mut Piece| {
        let header = prepare(piece);
        let packet = piece.parts().collect::<Vec<_>>().concat();
        device.write(header, &packet, piece.count(), piece.wire_bytes());
        piece.clear();
    };
    for sent in sent {
        let Sent { header, options, data } = sent;
        if piece.can_append(header, options, data.len()) {
            assert!(!piece.is_complete());
            piece.append(header, data.len(), sent.text());
        } else {
            if !piece.is_empty() {
                write(&mut piece);
            }
            piece.begin(header, options, Layout::Linux, data.len(), sent.text());
        }
    }
    write(&mut piece);
    (device.writes, device.out)
}

/// The same for segments that other hosts have sent.
fn write_packets(packets: &[Vec<u8>]) -> (usize, Vec<Vec<u8>>) {
    let mut device = Device::new();
    let mut batch = Batch::default();
    let mut write = |batch: &mut Batch| {
        let (count, octets) = (batch.count(), batch.octets());
        let (header, parts) = batch.parts();
        device.write(header, &parts.iter().collect::<Vec<_>>().concat(), count, octets);
        batch.clear();
    };
    for packet in packets {
        if !batch.join(&mut packet.clone()) {
            write(&mut batch);
            assert!(batch.join(&mut packet.clone()), "an empty batch takes any packet");
        }
    }
    write(&mut batch);
    (device.writes, device.out)
}

/// Asserts that both methods need this number of writes and preserve the packets.
fn assert_writes(writes: usize, sent: &[Sent], what: &str) {
    let packets = packets(sent);
    assert_eq!(write_segments(sent), (writes, packets.clone()), "{what}");
    assert_eq!(write_packets(&packets), (writes, packets), "{what}, from other hosts");
}

#[test]
fn consecutive_segments_are_joined_into_one_write() {
    for mut sender in [Sender::v4(), Sender::v6()] {
        let mut sent: Vec<_> = (0..9).map(|_| sender.segment(MSS, Flags(0))).collect();
        sent.push(sender.segment(100, Flags::PSH));
        assert_writes(1, &sent, "nine full segments and a short one");
    }
}

/// A device would write a correct checksum into the damaged packet, so the receiver could not detect the
/// damage.
#[test]
fn damaged_packets_are_neither_repaired_nor_joined() {
    type Damage = (&'static str, fn() -> Sender, fn(&mut Vec<u8>));
    let damages: [Damage; 8] = [
        ("data", Sender::v4, |packet| *packet.last_mut().unwrap() ^= 1),
        ("TCP checksum", Sender::v4, |packet| packet[20 + 16] ^= 1),
        ("IP checksum", Sender::v4, |packet| packet[10] ^= 1),
        ("IP length", Sender::v4, |packet| packet[3] ^= 1),
        ("truncated packet", Sender::v4, |packet| packet.truncate(1000)),
        ("data of IPv6", Sender::v6, |packet| *packet.last_mut().unwrap() ^= 1),
        ("IPv6 length", Sender::v6, |packet| packet[5] ^= 1),
        ("truncated IPv6 packet", Sender::v6, |packet| packet.truncate(1000)),
    ];
    for (what, sender, damage) in damages {
        for (at, writes) in [(0, 2), (1, 3), (3, 2)] {
            let mut sender = sender();
            let mut packets = [(); 4].map(|()| sender.packet(MSS, Flags(0)));
            damage(&mut packets[at]);
            assert_eq!(write_packets(&packets), (writes, packets.to_vec()), "{what} of packet {at}");
        }
    }
}

#[test]
fn short_psh_or_fin_segment_ends_piece() {
    for (len, flags) in [(100, Flags(0)), (MSS, Flags::PSH), (10, Flags::FIN)] {
        let mut sender = Sender::v4();
        let sent = [(MSS, Flags(0)), (len, flags), (MSS, Flags(0)), (MSS, Flags(0))]
            .map(|(len, flags)| sender.segment(len, flags));
        assert_writes(2, &sent, "the second segment ends the piece");
    }
}

#[test]
fn piece_does_not_exceed_maximum_ip_length() {
    let mut sender = Sender::v4();
    let sent: Vec<_> = (0..100).map(|_| sender.segment(MSS, Flags(0))).collect();
    // 45 segments of 1448 bytes and one header are 65,212 bytes.
    assert_writes(3, &sent, "a hundred segments");
}

type Change = (&'static str, fn(&mut Sender));

#[test]
fn segments_with_different_headers_are_not_joined() {
    let changes: [Change; 13] = [
        ("source", |sender| sender.header.src.set_port(81)),
        ("destination", |sender| sender.header.dst.set_ip("10.8.0.10".parse().unwrap())),
        ("a gap", |sender| sender.header.seq = Seq(sender.header.seq.0 + 1)),
        ("retransmission", |sender| sender.header.seq = Seq(sender.header.seq.0 - MSS as u32)),
        ("acknowledgement", |sender| sender.header.ack = Seq(78)),
        ("flags", |sender| sender.header.flags = Flags::ACK.with(Flags::ECE)),
        ("window", |sender| sender.header.window = 499),
        ("ECN", |sender| sender.header.ecn = Ecn::Ect0),
        ("type of service", |sender| sender.header.tos = 16),
        ("time to live", |sender| sender.header.ttl = 63),
        ("fragments allowed", |sender| sender.header.dont_fragment = false),
        ("identification", |sender| sender.header.ident = 7),
        ("a timestamp", Sender::tick),
    ];
    for (what, change) in changes {
        let mut sender = Sender::v4();
        let first = sender.segment(MSS, Flags(0));
        change(&mut sender);
        assert_writes(2, &[first, sender.segment(MSS, Flags(0))], what);
    }
}

#[test]
fn control_segments_and_other_packets_are_not_joined() {
    let mut sender = Sender::v4();
    let sent =
        [Flags::SYN, Flags::RST, Flags::URG, Flags::CWR, Flags(0)].map(|flags| sender.segment(0, flags));
    assert_writes(sent.len(), &sent, "without data");
    let sent = [Flags::SYN, Flags::RST, Flags::URG, Flags::CWR].map(|flags| sender.segment(MSS, flags));
    assert_writes(sent.len(), &sent, "with data");
    let packets = [packets(&sent), vec![Vec::new(), vec![0x45], vec![0x60; 39], vec![0; 60]]].concat();
    assert_eq!(write_packets(&packets), (packets.len(), packets));
}

#[test]
fn zero_checksum_is_preserved() {
    let mut sender = Sender::v6();
    let sent = sender.segment(100, Flags(0));
    // A segment whose payload contains the checksum of the same segment without these two bytes. Its own
    // checksum is then zero.
    let with = |first: [u8; 2]| {
        let data = [&first, &sent.data[2..]].concat();
        Sent { data: Arc::new(data), ..sent.clone() }
    };
    let sum = 40 + 16;
    let packet = with([0, 0]).packet();
    let sent = with([packet[sum], packet[sum + 1]]);
    assert_eq!(sent.packet()[sum..sum + 2], [0, 0]);
    assert_writes(1, &[sent], "a checksum of zero");
}

#[test]
fn number_of_segments_per_write_is_limited() {
    let mut sender = Sender::v4();
    let sent: Vec<_> = (0..300).map(|_| sender.segment(8, Flags(0))).collect();
    assert_writes(5, &sent, "segments of eight bytes");
}

#[test]
fn whole_packet_is_written_unchanged() {
    let packet = Sender::v4().packet(MSS, Flags(0));
    let mut piece = Piece::default();
    assert!(piece.fill(|octets| {
        octets.extend_from_slice(&packet);
        true
    }));
    assert_eq!((prepare(&mut piece), piece.single_packet()), (Header::Whole, Some(&packet[..])));
    assert_eq!(piece.parts().collect::<Vec<_>>(), [&packet[..]]);
}

/// A segment that did not fit into a piece may leave through a device without checksum offload.
#[test]
fn piece_of_one_segment_becomes_packet() {
    let mut sender = Sender::v6();
    let sent = [(); 2].map(|()| sender.segment(MSS, Flags::NONE));
    let mut piece = Piece::default();
    assert_eq!(piece.single_packet(), None);
    piece.begin(&sent[0].header, &sent[0].options, Layout::Linux, MSS, sent[0].text());
    assert_eq!((piece.count(), piece.single_packet()), (1, None), "the checksum is not computed yet");
    assert_eq!(piece.into_packet(), Some(sent[0].packet()));
    let mut piece = Piece::default();
    piece.begin(&sent[0].header, &sent[0].options, Layout::Linux, MSS, sent[0].text());
    piece.append(&sent[1].header, MSS, sent[1].text());
    assert_eq!(piece.into_packet(), None, "two segments are not one packet");
}

#[test]
fn partial_checksum_from_kernel_is_completed() {
    let mut whole = Sender::v6().packet(500, Flags::PSH);
    let expected = whole.clone();
    let len = whole.len();
    super::tcp::Headers::of(&whole).unwrap().set_partial_checksum(&mut whole, len);
    assert_ne!(whole, expected);
    let mut segmenter = Segmenter::new(2000);
    segmenter.read_buffer()[..whole.len()].copy_from_slice(&whole);
    segmenter.accept_read(whole.len(), Header::Unsummed { start: 40, offset: 16 });
    assert_eq!(segmenter.next_packet(), Some(&expected[..]));
    assert_eq!(segmenter.next_packet(), None);
}

/// A host that trusts the kernel gets the same packets, except for checksums that were never computed.
#[test]
fn unsummed_packets_differ_only_in_checksums() {
    for (mut sender, tcp) in [(Sender::v4(), 20), (Sender::v6(), 40)] {
        // The second size is shorter than the headers.
        for size in [MSS, 8] {
            let mut piece = Piece::default();
            let sent: Vec<_> = (0..7).map(|_| sender.segment(size, Flags::NONE)).collect();
            piece.begin(&sent[0].header, &sent[0].options, Layout::Linux, size, sent[0].text());
            sent[1..].iter().for_each(|next| piece.append(&next.header, size, next.text()));
            let header = prepare(&mut piece);
            let whole = piece.parts().collect::<Vec<_>>().concat();
            let mut segmenter = Segmenter::new(70_000);
            segmenter.read_buffer()[..whole.len()].copy_from_slice(&whole);
            segmenter.accept_read(whole.len(), header);
            for sent in &sent {
                let (packet, verified) = segmenter.next_unsummed().unwrap();
                let (mut packet, mut expected) = (packet.to_vec(), sent.packet());
                packet[tcp + 16..tcp + 18].fill(0);
                expected[tcp + 16..tcp + 18].fill(0);
                assert_eq!((packet, verified), (expected, Verified::ByDevice));
            }
            assert!(segmenter.next_unsummed().is_none());
        }
    }
    let read = |header| {
        let packet = Sender::v4().packet(100, Flags::NONE);
        let mut segmenter = Segmenter::new(2000);
        segmenter.read_buffer()[..packet.len()].copy_from_slice(&packet);
        segmenter.accept_read(packet.len(), header);
        let (read, verified) = segmenter.next_unsummed().unwrap();
        assert_eq!(read, packet);
        verified
    };
    assert_eq!(read(Header::Whole), Verified::NotYet, "a whole packet may come from another host");
    assert_eq!(read(Header::Unsummed { start: 20, offset: 16 }), Verified::ByDevice);
}

#[derive(Clone, Debug)]
enum Step {
    Send {
        who: usize,
        len: usize,
        flags: u16,
    },
    Skip {
        who: usize,
        octets: u32,
    },
    Tick {
        who: usize,
    },
    /// Flips a bit of the last packet.
    Damage {
        bit: prop::sample::Index,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![4 => Just(MSS), 1 => 0..=MSS];
    let flags =
        prop_oneof![6 => Just(0), 1 => Just(Flags::PSH.0), 1 => Just(Flags::FIN.0), 1 => any::<u16>()];
    prop_oneof![
        12 => (0..2_usize, len, flags).prop_map(|(who, len, flags)| Step::Send { who, len, flags: flags & 0xfff }),
        1 => (0..2_usize, 0..3000_u32).prop_map(|(who, octets)| Step::Skip { who, octets }),
        1 => (0..2_usize).prop_map(|who| Step::Tick { who }),
    ]
}

fn step_or_damage() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => step(),
        1 => any::<prop::sample::Index>().prop_map(|bit| Step::Damage { bit }),
    ]
}

/// Returns the segments that two connections send.
fn segments_of(steps: &[Step]) -> Vec<Sent> {
    let mut senders = [Sender::v4(), Sender::v6()];
    let mut sent = Vec::new();
    for step in steps {
        match *step {
            Step::Send { who, len, flags } => sent.push(senders[who].segment(len, Flags(flags))),
            Step::Skip { who, octets } => {
                let seq = &mut senders[who].header.seq;
                *seq = seq.at(octets.into());
            }
            Step::Tick { who } => senders[who].tick(),
            Step::Damage { .. } => {}
        }
    }
    sent
}

/// Returns the packets after the path has damaged them.
fn packets_of(steps: &[Step]) -> Vec<Vec<u8>> {
    let mut packets = packets(&segments_of(steps));
    let mut sent = 0;
    for step in steps {
        match step {
            Step::Send { .. } => sent += 1,
            Step::Damage { bit } if sent > 0 => {
                let packet = &mut packets[sent - 1];
                let bit = bit.index(8 * packet.len());
                packet[bit / 8] ^= 1 << (bit % 8);
            }
            _ => {}
        }
    }
    packets
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn joining_own_segments_preserves_packets(steps in prop::collection::vec(step(), 1..120)) {
        let sent = segments_of(&steps);
        prop_assume!(!sent.is_empty());
        prop_assert_eq!(write_segments(&sent).1, packets(&sent));
    }

    #[test]
    fn joining_packets_of_other_hosts_preserves_them(
        steps in prop::collection::vec(step_or_damage(), 1..120)
    ) {
        let packets = packets_of(&steps);
        prop_assume!(!packets.is_empty());
        prop_assert_eq!(write_packets(&packets).1, packets);
    }

    /// Reading must end without a panic for any data from the device.
    #[test]
    fn reading_any_input_terminates_without_panic(
        packet in prop::collection::vec(any::<u8>(), 0..300), header in any::<[u8; Header::LEN]>()
    ) {
        let mut segmenter = Segmenter::new(300);
        if let Ok(header) = Header::from_bytes(header) {
            segmenter.read_buffer()[..packet.len()].copy_from_slice(&packet);
            segmenter.accept_read(packet.len(), header);
            let mut count = 0;
            while segmenter.next_packet().is_some() {
                count += 1;
                prop_assert!(count <= packet.len().max(1));
            }
        }
    }
}
