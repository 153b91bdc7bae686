use airtcp_testkit::frames::encapsulation::{self, udp, v4};
use airtcp_testkit::frames::{ACK, Tcp, v4 as v4_at, v6 as v6_at};

use super::*;
use crate::link_layer::LinkType;
use crate::packet::Packet;

const PAYLOAD: usize = 4000;

/// Reads frames of raw IP, by default 1 ms apart.
#[derive(Default)]
struct FrameReader {
    fragments: Fragments,
    problems: Problems,
    number: u64,
}

impl FrameReader {
    fn at(&mut self, ms: i64, data: &[u8], length: usize) -> Found {
        self.number += 1;
        let (number, at) = (self.number, Timestamp(ms * 1_000_000));
        let frame = Frame { number, at, link: LinkType::RAW, data, length: length as u32, snap_length: None };
        self.fragments.packet(&frame, &mut self.problems)
    }

    fn read(&mut self, data: &[u8]) -> Found {
        let ms = self.number as i64;
        self.at(ms, data, data.len())
    }

    /// Reads all frames. Only the last one may complete a packet.
    fn all(&mut self, frames: &[Vec<u8>]) -> Packet {
        let (last, others) = frames.split_last().unwrap();
        for frame in others {
            assert_eq!(self.read(frame), Found::Fragment);
        }
        tcp(self.read(last))
    }

    fn missing(mut self) -> [u64; 2] {
        self.fragments.finish(&mut self.problems);
        [Problem::Fragment, Problem::FragmentOverlap].map(|problem| self.problems.count(problem))
    }
}

fn tcp(found: Found) -> Packet {
    let Found::Tcp(packet) = found else { panic!("{found:?}") };
    packet
}

fn packet(is_v6: bool) -> Vec<u8> {
    let (src, dst) = if is_v6 { (v6_at(1, 4000), v6_at(2, 80)) } else { (v4_at(1, 4000), v4_at(2, 80)) };
    let mut tcp = Tcp::new(src, dst, ACK, 7, 8, PAYLOAD);
    tcp.ident = 99;
    tcp.packet()
}

/// Splits a packet into fragments of this number of bytes.
fn split(packet: &[u8], bytes: usize) -> Vec<Vec<u8>> {
    let is_v6 = packet[0] >> 4 == 6;
    let header = if is_v6 { 40 } else { 20 };
    let (header, payload) = packet.split_at(header);
    let pieces: Vec<_> = payload.chunks(bytes).collect();
    let mut frames = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let more = index + 1 < pieces.len();
        let mut header = header.to_vec();
        if is_v6 {
            let offset = ((index * bytes) as u16 | u16::from(more)).to_be_bytes();
            let len = (piece.len() as u16 + 8).to_be_bytes();
            header[4..6].copy_from_slice(&len);
            let next = std::mem::replace(&mut header[6], 44);
            header.extend([next, 0, offset[0], offset[1], 0, 0, 0, 99]);
        } else {
            let offset = ((index * bytes / 8) as u16 | u16::from(more) << 13).to_be_bytes();
            let len = (piece.len() as u16 + 20).to_be_bytes();
            header[2..4].copy_from_slice(&len);
            header[6..8].copy_from_slice(&offset);
            // The device would fill in the checksum.
            header[10..12].fill(0);
        }
        frames.push([&header, *piece].concat());
    }
    frames
}

#[test]
fn fragments_are_reassembled_in_any_order() {
    for is_v6 in [false, true] {
        for bytes in [8, 16, 1480, 4016] {
            let mut frames = split(&packet(is_v6), bytes);
            // Reassembly keeps at most this number of fragments.
            if frames.len() > MAX_FRAGMENTS {
                continue;
            }
            for order in 0..3 {
                match order {
                    1 => frames.reverse(),
                    2 => frames.rotate_left(1),
                    _ => {}
                }
                let mut reader = FrameReader::default();
                let read = reader.all(&frames);
                assert_eq!((read.len as usize, read.seq.0, read.dst.port()), (PAYLOAD, 7, 80));
                assert_eq!((read.number, read.ip_id), (frames.len() as u64, (!is_v6).then_some(99)));
                assert_eq!(reader.missing(), [0, 0]);
            }
        }
    }
}

/// A short snap length, at which the first fragment still contains all headers.
#[test]
fn truncated_fragments_keep_packet_length() {
    for is_v6 in [false, true] {
        let frames = split(&packet(is_v6), 1480);
        let mut reader = FrameReader::default();
        let found: Vec<_> = frames.iter().map(|frame| reader.at(0, &frame[..72], frame.len())).collect();
        let Some(Found::Flawed(read, Problem::PayloadCut)) = found.last() else { panic!("{found:?}") };
        assert_eq!(read.len as usize, PAYLOAD);
        // With a shorter one, the headers are reported as cut, not as malformed.
        let captured = if is_v6 { 60 } else { 32 };
        let mut reader = FrameReader::default();
        let found: Vec<_> =
            frames.iter().map(|frame| reader.at(0, &frame[..captured], frame.len())).collect();
        assert_eq!(found.last(), Some(&Found::Unreadable(Problem::HeadersCut)));
    }
}

#[test]
fn duplicate_fragments_are_accepted_and_overlaps_discarded() {
    let frames = split(&packet(false), 1480);
    let mut reader = FrameReader::default();
    let twice =
        [frames[0].clone(), frames[0].clone(), frames[1].clone(), frames[1].clone(), frames[2].clone()];
    assert_eq!(reader.all(&twice).len as usize, PAYLOAD);
    // The second fragment begins eight bytes early, or claims to be the last. The packet is discarded.
    for bytes in [[0x20, 184], [0, 185]] {
        let mut reader = FrameReader::default();
        let mut second = frames[1].clone();
        second[6..8].copy_from_slice(&bytes);
        for frame in [&frames[0], &frames[2], &second, &frames[1]] {
            assert_eq!(reader.read(frame), Found::Fragment, "{bytes:?}");
        }
        assert_eq!(reader.missing(), [0, 4], "{bytes:?}");
    }
    // A length that only a last fragment may have, and an end beyond the longest packet.
    for (offset, len) in [([0x20, 0], 1479_u16), ([0x1f, 0xff], 1480)] {
        let mut reader = FrameReader::default();
        let mut frame = frames[0].clone();
        frame[2..4].copy_from_slice(&(len + 20).to_be_bytes());
        frame[6..8].copy_from_slice(&offset);
        assert_eq!(reader.read(&frame), Found::Fragment);
        assert_eq!(reader.missing(), [0, 1]);
    }
}

#[test]
fn missing_fragments_are_reported() {
    let frames = split(&packet(true), 1448);
    let mut reader = FrameReader::default();
    reader.read(&frames[2]);
    reader.read(&frames[0]);
    assert_eq!(reader.missing(), [2, 0]);
}

/// An identification that reappears after a minute belongs to another packet.
#[test]
fn fragments_expire_after_one_minute() {
    let frames = split(&packet(false), 1480);
    for (pause, is_one) in [(59_000, true), (-59_000, true), (61_000, false), (-61_000, false)] {
        let mut reader = FrameReader::default();
        reader.at(100_000, &frames[0], frames[0].len());
        reader.at(100_000, &frames[1], frames[1].len());
        let found = reader.at(100_000 + pause, &frames[2], frames[2].len());
        assert_eq!(matches!(found, Found::Tcp(_)), is_one, "{pause}");
        assert_eq!(reader.missing(), [if is_one { 0 } else { 3 }, 0]);
    }
}

#[test]
fn memory_is_bounded() {
    let first = &split(&packet(false), 1480)[0];
    let mut reader = FrameReader::default();
    for ident in 0..3000_u16 {
        let mut frame = first.clone();
        frame[4..6].copy_from_slice(&ident.to_be_bytes());
        assert_eq!(reader.read(&frame), Found::Fragment);
        assert!(reader.fragments.partial.len() <= MAX_PACKETS);
    }
    assert_eq!(reader.problems.count(Problem::Fragment), 3000 - MAX_PACKETS as u64);
    // More fragments than the maximum.
    let mut reader = FrameReader::default();
    let mut all = split(&v4(6, &[0; 8 * 600]), 8);
    all.reverse();
    for frame in &all {
        assert_eq!(reader.read(frame), Found::Fragment);
    }
    assert_eq!(reader.missing(), [0, 600]);
}

/// Fragmentation of the tunnel's packets, and fragmentation before the tunnel.
#[test]
fn fragments_are_reassembled_inside_and_outside_tunnels() {
    let vxlan = encapsulation::ALL.iter().find(|it| it.name == "VXLAN").unwrap();
    let tunnelled = (vxlan.wrap)(&packet(true));
    assert_eq!(FrameReader::default().all(&split(&tunnelled, 1480)).len as usize, PAYLOAD);
    let inside: Vec<_> = split(&packet(false), 1480).iter().map(|piece| (vxlan.wrap)(piece)).collect();
    assert_eq!(FrameReader::default().all(&inside).len as usize, PAYLOAD);
    // Both kinds of fragmentation.
    let both: Vec<_> = inside.iter().flat_map(|frame| split(frame, 800)).collect();
    let mut reader = FrameReader::default();
    // The tunnel's packets have the same identification here. Each is complete before the next one begins.
    assert_eq!(reader.all(&both).len as usize, PAYLOAD);
    // A reassembled packet that is not TCP is reported by its name.
    let frames = split(&v4(17, &udp([53, 53], &[0; 2000])), 1480);
    let mut reader = FrameReader::default();
    assert_eq!(reader.read(&frames[0]), Found::Fragment);
    assert_eq!(reader.read(&frames[1]), Found::Other(crate::other::Other::Udp));
}

#[test]
fn ecn_mark_on_fragment_applies_to_packet() {
    let mut frames = split(&packet(false), 1480);
    frames[1][1] |= 3;
    assert_eq!(FrameReader::default().all(&frames).ecn, Ecn::Ce);
}
