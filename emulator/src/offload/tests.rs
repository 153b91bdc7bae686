//! What is joined and cut again is what it was, octet for octet.

use std::net::SocketAddr;

use airwire::options::{Layout, Options, Timestamps};
use airwire::segment::{self, Ecn, Flags, Header as Segment};
use airwire::seq::Seq;
use proptest::prelude::*;

use super::{Batch, Header, Pieces};

const MSS: usize = 1448;

/// A connection that sends: each packet has the next sequence number and identification.
#[derive(Clone)]
struct Sender {
    header: Segment,
    options: Vec<u8>,
}

impl Sender {
    fn new(src: &str, dst: &str) -> Self {
        let (src, dst): (SocketAddr, SocketAddr) = (src.parse().unwrap(), dst.parse().unwrap());
        // Both wrap on the way.
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
        let mut options = Vec::new();
        let timestamps = Some(Timestamps { val: 5, ecr: 6 });
        Options { timestamps, ..Options::default() }.write(Layout::Linux, &mut options);
        Self { header, options }
    }

    fn v4() -> Self {
        Self::new("10.7.0.2:80", "10.8.0.9:40000")
    }

    fn v6() -> Self {
        Self::new("[fd07::2]:80", "[fd08::9]:40000")
    }

    fn packet(&mut self, len: usize, more: Flags) -> Vec<u8> {
        let seq = self.header.seq;
        let data: Vec<u8> = (0..len).map(|at| (seq.0 as usize + at) as u8).collect();
        let mut packet = Vec::new();
        let header = Segment { flags: self.header.flags.with(more), ..self.header.clone() };
        segment::emit(&mut packet, &header, &self.options, (&data, &[]));
        self.header.seq = Seq(seq.0.wrapping_add(len as u32));
        self.header.ident = self.header.ident.wrapping_add(1);
        packet
    }
}

/// How many writes these need, and what comes out of them when they are cut.
fn carried(packets: &[Vec<u8>]) -> (usize, Vec<Vec<u8>>) {
    carried_in(Batch::joining(), packets)
}

/// The same, if others have sent them.
fn carried_of_others(packets: &[Vec<u8>]) -> (usize, Vec<Vec<u8>>) {
    carried_in(Batch::faithful(), packets)
}

fn carried_in(mut batch: Batch, packets: &[Vec<u8>]) -> (usize, Vec<Vec<u8>>) {
    let (mut pieces, mut writes, mut out) = (Pieces::new(70_000), 0, Vec::new());
    let mut write = |batch: &mut Batch| {
        let (count, octets) = (batch.count(), batch.octets());
        let (header, parts) = batch.written();
        let packet = parts.iter().collect::<Vec<_>>().concat();
        assert_eq!(Header::from_bytes(header.to_bytes()), Ok(header));
        pieces.room()[..packet.len()].copy_from_slice(&packet);
        pieces.filled(packet.len(), header);
        let cut: Vec<Vec<u8>> = std::iter::from_fn(|| {
            let len = pieces.next_len();
            let piece = pieces.next_packet().map(<[u8]>::to_vec);
            assert_eq!(len, piece.as_ref().map(Vec::len));
            piece
        })
        .collect();
        assert_eq!((cut.len(), cut.iter().map(Vec::len).sum::<usize>()), (count, octets));
        out.extend(cut);
        batch.clear();
        writes += 1;
    };
    for packet in packets {
        if !batch.join(&mut packet.clone()) {
            write(&mut batch);
            assert!(batch.join(&mut packet.clone()), "an empty batch takes any packet");
        }
    }
    write(&mut batch);
    (writes, out)
}

#[test]
fn segments_that_follow_each_other_are_one_write() {
    for mut sender in [Sender::v4(), Sender::v6()] {
        let mut packets: Vec<_> = (0..9).map(|_| sender.packet(MSS, Flags(0))).collect();
        packets.push(sender.packet(100, Flags::PSH));
        assert_eq!(carried(&packets), (1, packets.clone()));
        assert_eq!(carried_of_others(&packets), (1, packets.clone()));
    }
}

/// A device would write the checksum that the damaged packet should have, and nobody would find the damage.
#[test]
fn what_was_damaged_on_the_way_stays_so_and_alone() {
    type Damage = (&'static str, fn() -> Sender, fn(&mut Vec<u8>));
    let damages: [Damage; 8] = [
        ("data", Sender::v4, |packet| *packet.last_mut().unwrap() ^= 1),
        ("TCP checksum", Sender::v4, |packet| packet[20 + 16] ^= 1),
        ("IP checksum", Sender::v4, |packet| packet[10] ^= 1),
        ("IP length", Sender::v4, |packet| packet[3] ^= 1),
        ("its end is missing", Sender::v4, |packet| packet.truncate(1000)),
        ("data of IPv6", Sender::v6, |packet| *packet.last_mut().unwrap() ^= 1),
        ("IPv6 length", Sender::v6, |packet| packet[5] ^= 1),
        ("its end is missing in IPv6", Sender::v6, |packet| packet.truncate(1000)),
    ];
    for (what, sender, damage) in damages {
        for (at, writes) in [(0, 2), (1, 3), (3, 2)] {
            let mut sender = sender();
            let mut packets = [(); 4].map(|()| sender.packet(MSS, Flags(0)));
            damage(&mut packets[at]);
            assert_eq!(carried_of_others(&packets), (writes, packets.to_vec()), "{what} of {at}");
        }
    }
}

#[test]
fn the_last_of_a_batch_is_short_or_pushes_or_ends_the_stream() {
    for (len, flags) in [(100, Flags(0)), (MSS, Flags::PSH), (10, Flags::FIN)] {
        let mut sender = Sender::v4();
        let packets = [(MSS, Flags(0)), (len, flags), (MSS, Flags(0)), (MSS, Flags(0))]
            .map(|(len, flags)| sender.packet(len, flags));
        assert_eq!(carried(&packets), (2, packets.to_vec()));
    }
}

#[test]
fn a_batch_is_no_larger_than_an_ip_packet_can_be() {
    let mut sender = Sender::v4();
    let packets: Vec<_> = (0..100).map(|_| sender.packet(MSS, Flags(0))).collect();
    // 45 of 1448 octets and a header are 65,212 octets.
    assert_eq!(carried(&packets), (3, packets.clone()));
}

type Change = (&'static str, fn(&mut Sender));

#[test]
fn what_differs_in_anything_but_its_place_is_not_joined() {
    let changes: [Change; 12] = [
        ("source", |sender| sender.header.src.set_port(81)),
        ("destination", |sender| sender.header.dst.set_ip("10.8.0.10".parse().unwrap())),
        ("a gap", |sender| sender.header.seq = Seq(sender.header.seq.0 + 1)),
        ("sent again", |sender| sender.header.seq = Seq(sender.header.seq.0 - MSS as u32)),
        ("acknowledgement", |sender| sender.header.ack = Seq(78)),
        ("flags", |sender| sender.header.flags = Flags::ACK.with(Flags::ECE)),
        ("window", |sender| sender.header.window = 499),
        ("ECN", |sender| sender.header.ecn = Ecn::Ect0),
        ("time to live", |sender| sender.header.ttl = 63),
        ("fragments allowed", |sender| sender.header.dont_fragment = false),
        ("identification", |sender| sender.header.ident = 7),
        ("a timestamp", |sender| *sender.options.last_mut().unwrap() += 1),
    ];
    for (what, change) in changes {
        let mut sender = Sender::v4();
        let first = sender.packet(MSS, Flags(0));
        change(&mut sender);
        let packets = [first, sender.packet(MSS, Flags(0))];
        assert_eq!(carried(&packets), (2, packets.to_vec()), "{what}");
    }
}

#[test]
fn whatever_is_no_segment_of_data_leaves_alone() {
    let mut sender = Sender::v4();
    let mut packets: Vec<_> = [Flags::SYN, Flags::RST, Flags::URG, Flags::CWR, Flags(0)]
        .map(|flags| sender.packet(0, flags))
        .into();
    packets.extend([Vec::new(), vec![0x45], vec![0x60; 39], vec![0; 60]]);
    let count = packets.len();
    assert_eq!(carried(&packets), (count, packets));
}

/// A host that leaves checksums to the device has nothing there.
#[test]
fn what_stands_for_a_checksum_does_not_matter() {
    let mut sender = Sender::v6();
    let packets = [MSS, MSS, 0, 100].map(|len| sender.packet(len, Flags(0)));
    let unsummed = packets.clone().map(|mut packet| {
        packet[40 + 16..40 + 18].fill(0xa5);
        packet
    });
    assert_eq!(carried(&unsummed).1, packets);
}

#[test]
fn a_checksum_that_is_zero_stays_so() {
    let mut packet = Sender::v6().packet(100, Flags(0));
    let (sum, text) = (40 + 16, 40 + 32);
    // Where there was nothing, the checksum: now the sum over all is 0xffff without one.
    packet[text..text + 2].fill(0);
    packet[sum..sum + 2].fill(0);
    let headers = super::tcp::Headers::of(&packet).unwrap();
    headers.set_checksum(&mut packet);
    packet.copy_within(sum..sum + 2, text);
    headers.set_checksum(&mut packet);
    assert_eq!(packet[sum..sum + 2], [0, 0]);
    assert_eq!(carried(&[packet.clone()]).1, [packet]);
}

#[test]
fn segments_however_small_are_no_more_than_a_write_takes() {
    let mut sender = Sender::v4();
    let packets: Vec<_> = (0..300).map(|_| sender.packet(8, Flags(0))).collect();
    assert_eq!(carried(&packets), (5, packets.clone()));
}

#[test]
fn without_offload_a_batch_is_one_packet() {
    let (mut batch, mut sender) = (Batch::single(), Sender::v4());
    let packets = [sender.packet(MSS, Flags(0)), sender.packet(MSS, Flags(0))];
    assert!(batch.join(&mut packets[0].clone()) && !batch.join(&mut packets[1].clone()));
    assert_eq!(batch.only(), Some(&packets[0][..]));
    let (header, parts) = batch.written();
    assert_eq!((header, parts.iter().collect::<Vec<_>>()), (Header::Whole, vec![&packets[0][..]]));
}

#[test]
fn a_checksum_that_the_kernel_has_left_is_completed() {
    let mut whole = Sender::v6().packet(500, Flags::PSH);
    let expected = whole.clone();
    let len = whole.len();
    super::tcp::Headers::of(&whole).unwrap().set_partial_checksum(&mut whole, len);
    assert_ne!(whole, expected);
    let mut pieces = Pieces::new(2000);
    pieces.room()[..whole.len()].copy_from_slice(&whole);
    pieces.filled(whole.len(), Header::Unsummed { start: 40, offset: 16 });
    assert_eq!(pieces.next_packet(), Some(&expected[..]));
    assert_eq!(pieces.next_packet(), None);
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
    /// A bit of the last packet.
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

fn step_on_the_way() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => step(),
        1 => any::<prop::sample::Index>().prop_map(|bit| Step::Damage { bit }),
    ]
}

fn packets_of(steps: Vec<Step>) -> Vec<Vec<u8>> {
    let mut senders = [Sender::v4(), Sender::v6()];
    let mut packets: Vec<Vec<u8>> = Vec::new();
    for step in steps {
        match step {
            Step::Send { who, len, flags } => packets.push(senders[who].packet(len, Flags(flags))),
            Step::Skip { who, octets } => {
                let seq = &mut senders[who].header.seq;
                *seq = Seq(seq.0.wrapping_add(octets));
            }
            Step::Tick { who } => *senders[who].options.last_mut().unwrap() ^= 1,
            Step::Damage { bit } => {
                if let Some(packet) = packets.last_mut() {
                    let bit = bit.index(8 * packet.len());
                    packet[bit / 8] ^= 1 << (bit % 8);
                }
            }
        }
    }
    packets
}

proptest! {
    #[test]
    fn whatever_two_connections_send_comes_out_as_it_was(steps in prop::collection::vec(step(), 1..120)) {
        let packets = packets_of(steps);
        prop_assume!(!packets.is_empty());
        prop_assert_eq!(carried(&packets).1, packets);
    }

    #[test]
    fn whatever_others_send_comes_out_as_it_was_damaged_or_not(
        steps in prop::collection::vec(step_on_the_way(), 1..120)
    ) {
        let packets = packets_of(steps);
        prop_assume!(!packets.is_empty());
        prop_assert_eq!(carried_of_others(&packets).1, packets);
    }

    /// Whatever a device hands over: no panic, and an end.
    #[test]
    fn anything_with_any_header_is_read(
        packet in prop::collection::vec(any::<u8>(), 0..300), header in any::<[u8; Header::LEN]>()
    ) {
        let mut pieces = Pieces::new(300);
        if let Ok(header) = Header::from_bytes(header) {
            pieces.room()[..packet.len()].copy_from_slice(&packet);
            pieces.filled(packet.len(), header);
            let mut count = 0;
            while pieces.next_packet().is_some() {
                count += 1;
                prop_assert!(count <= packet.len().max(1));
            }
        }
    }
}
