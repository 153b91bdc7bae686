//! Frames of every link type. Packets are in nested tunnels, fragmented, or have modified and truncated
//! bytes. Other frames consist of arbitrary bytes.
//!
//! In all cases, a packet is not longer than the frame on the wire. If a shorter capture of the
//! same frames yields a packet, its length is the same. Every frame is counted once.

#![cfg_attr(fuzzing, no_main)]

mod draw;
mod target;

use std::net::SocketAddr;

use aircaptures::capture::Frame;
use aircaptures::fragments::Fragments;
use aircaptures::ip::Found;
use aircaptures::link_layer::LinkType;
use aircaptures::packet::{Packet, Timestamp};
use aircaptures::problem::{Problem, Problems};
use airtcp_testkit::frames::encapsulation::{self, Encapsulation};
use airtcp_testkit::frames::{ACK, SYN, Tcp, v4, v6};
use airtcp_testkit::hostile::Draw;
use airwire::seq::Seq;
use arbitrary::Unstructured;

target::run!(run);

const LINKS: [i32; 24] = [
    0, 1, 9, 11, 12, 14, 50, 51, 100, 101, 104, 105, 108, 109, 113, 117, 127, 192, 204, 228, 229, 239, 242,
    276,
];
/// NFLOG: the IP header alone determines packet lengths.
const NFLOG: i32 = 239;
const RAW: u32 = 101;

struct GeneratedFrame {
    link: i32,
    bytes: Vec<u8>,
}

fn run(data: &[u8]) {
    let mut draw = draw::Input(Unstructured::new(data));
    let (mut whole, mut cut) = (Reading::default(), Reading::default());
    let cut_to = draw.pick(&[34, 64, 96, 128, 256, 65_535]);
    let (mut frames, mut on_wire, mut at) = (0, 0, 0);
    while !draw.0.is_empty() && frames < 200 {
        at += draw.pick(&[0, 1_000_000, 40_000_000_000, -1_000_000_000]);
        for generated in generate(&mut draw) {
            frames += 1;
            // The reported length of a frame may exceed its actual length.
            let length = generated.bytes.len() + draw.pick(&[0, 0, 0, 4, 1000]);
            on_wire += length;
            let most = if generated.link == NFLOG { usize::MAX } else { on_wire };
            let found = whole.read(frames, at, generated.link, &generated.bytes, length);
            if let Found::Tcp(packet) | Found::Flawed(packet, _) = &found {
                assert!(packet.len as usize <= most, "{packet:?} is longer than {most} bytes");
            }
            let shorter = &generated.bytes[..generated.bytes.len().min(cut_to)];
            cut.read(frames, at, generated.link, shorter, length);
            let alone = [&generated.bytes, shorter]
                .map(|data| frame(frames, at, generated.link, data, length).packet());
            if let [Some(packet), Some(short)] = alone.each_ref().map(identity) {
                assert!(generated.link == NFLOG || packet == short, "{alone:?}");
            }
        }
    }
    whole.finish(frames);
    cut.finish(frames);
}

fn frame(number: u64, at: i64, link: i32, data: &[u8], length: usize) -> Frame<'_> {
    let (at, link, length) = (Timestamp(at), LinkType(link), length as u32);
    Frame { number, at, link, data, length, snap_length: None }
}

fn identity(found: &Found) -> Option<(SocketAddr, Seq, u32)> {
    match found {
        Found::Tcp(packet) | Found::Flawed(packet, _) => Some((packet.src, packet.seq, packet.len)),
        _ => None,
    }
}

#[derive(Default)]
struct Reading {
    fragments: Fragments,
    problems: Problems,
    packets: Vec<Packet>,
    others: u64,
    pending: u64,
}

impl Reading {
    fn read(&mut self, number: u64, at: i64, link: i32, data: &[u8], length: usize) -> Found {
        let frame = frame(number, at, link, data, length);
        let found = self.fragments.packet(&frame, &mut self.problems);
        // Without reassembly the result is the same, except for fragments.
        let alone = frame.packet();
        match &found {
            Found::Tcp(packet) | Found::Flawed(packet, _) => {
                assert!(
                    alone == found || alone == Found::Unreadable(Problem::Fragment),
                    "{alone:?}, {found:?}"
                );
                self.packets.push(packet.clone());
            }
            Found::Unreadable(_) | Found::Other(_) => self.others += 1,
            Found::Fragment => {
                assert_eq!(alone, Found::Unreadable(Problem::Fragment));
                self.pending += 1;
            }
        }
        found
    }

    fn finish(mut self, frames: u64) -> Vec<Packet> {
        self.fragments.finish(&mut self.problems);
        assert_eq!(self.packets.len() as u64 + self.others + self.pending, frames);
        let lost = [Problem::Fragment, Problem::FragmentOverlap].map(|problem| self.problems.count(problem));
        assert!(lost.iter().sum::<u64>() <= self.pending, "lost fragments {lost:?} of {}", self.pending);
        self.packets
    }
}

/// Generates one frame, or one frame per fragment.
fn generate(draw: &mut draw::Input<'_>) -> Vec<GeneratedFrame> {
    if draw.one_in(4) {
        let link = draw.pick(&LINKS);
        let len = draw.below(200) as usize;
        return vec![GeneratedFrame { link, bytes: (0..len).map(|_| draw.below(256) as u8).collect() }];
    }
    let (src, dst) = if draw.one_in(2) { (v6(1, 4000), v6(2, 80)) } else { (v4(1, 4000), v4(2, 80)) };
    let mut tcp = Tcp::new(src, dst, draw.pick(&[ACK, SYN]), 7, 8, draw.below(600) as usize);
    tcp.ident = draw.below(4) as u16;
    if draw.one_in(2) {
        tcp = tcp.stamped(1, 2);
    }
    let mut packets = vec![tcp.packet()];
    let inner: Vec<_> = encapsulation::ALL.iter().filter(|it| it.link_type == RAW).collect();
    for _ in 0..draw.below(4) {
        if draw.one_in(3) {
            let length = 8 * (1 + draw.below(40) as usize);
            packets = packets.iter().flat_map(|packet| split(packet, length)).collect();
        }
        let encapsulation = inner[draw.below(inner.len() as u64) as usize];
        // Length fields in headers have 16 bits.
        packets = packets
            .iter()
            .filter(|packet| packet.len() < 60_000)
            .map(|packet| (encapsulation.wrap)(packet))
            .collect();
    }
    let encapsulation: &Encapsulation =
        &encapsulation::ALL[draw.below(encapsulation::ALL.len() as u64) as usize];
    packets.truncate(150);
    if draw.one_in(4) {
        packets.reverse();
    }
    let mut frames: Vec<_> = packets.iter().map(|packet| (encapsulation.wrap)(packet)).collect();
    for frame in &mut frames {
        for _ in 0..draw.below(3) {
            let at = draw.below(frame.len() as u64) as usize;
            frame[at] = draw.below(256) as u8;
        }
    }
    let link = encapsulation.link_type as i32;
    frames.into_iter().map(|bytes| GeneratedFrame { link, bytes }).collect()
}

/// Splits a packet into IP fragments with `length` bytes of payload each.
fn split(packet: &[u8], length: usize) -> Vec<Vec<u8>> {
    let is_v6 = packet[0] >> 4 == 6;
    let (header, payload) = packet.split_at(if is_v6 { 40 } else { 20 });
    let last = payload.len().div_ceil(length).saturating_sub(1);
    let piece = |(index, piece): (usize, &[u8])| {
        let (mut header, is_more) = (header.to_vec(), u16::from(index < last));
        let space = (index * length) as u16;
        if is_v6 {
            let next = std::mem::replace(&mut header[6], 44);
            header[4..6].copy_from_slice(&(piece.len() as u16 + 8).to_be_bytes());
            let space = (space | is_more).to_be_bytes();
            header.extend([next, 0, space[0], space[1], 0, 0, 0, 9]);
        } else {
            header[2..4].copy_from_slice(&(piece.len() as u16 + 20).to_be_bytes());
            header[6..8].copy_from_slice(&((space / 8) | (is_more << 13)).to_be_bytes());
        }
        [&header, piece].concat()
    };
    payload.chunks(length).enumerate().map(piece).collect()
}
