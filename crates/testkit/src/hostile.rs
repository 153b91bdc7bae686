//! An attacker on the path that overhears a connection and forges its packets.
//!
//! Property tests and fuzz targets share it. They differ in the source of its random choices.

use std::net::{IpAddr, SocketAddr};

use airwire::checksum;
use airwire::options::{Options, SackBlocks, Timestamps};
use airwire::rng::Stream;
use airwire::segment::{self, Ecn, Flags, Header};
use airwire::seq::Seq;

use super::frames::{Tcp, header};
use super::pair::{Peer, stream_byte};

/// Returns a segment from one end to the other, with Linux's option layout. The numbers are the sequence
/// number and the acknowledgment number.
pub fn segment_of(
    (src, dst): (SocketAddr, SocketAddr),
    flags: Flags,
    (seq, ack): (Seq, Seq),
    options: &Options,
    payload: &[u8],
) -> Vec<u8> {
    Tcp { options: *options, ..Tcp::new(src, dst, flags, seq.0, ack.0, 0) }.carrying(65_535, payload)
}

/// A source of random choices: a seeded stream, or the input of a fuzzer.
pub trait Draw {
    /// Returns a number in `0..n`, or 0 if `n` is 0.
    fn below(&mut self, n: u64) -> u64;

    /// Returns true with probability 1/`n`.
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Returns an element of `from`, which must not be empty.
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

impl Draw for Stream {
    fn below(&mut self, n: u64) -> u64 {
        Self::below(self, n)
    }
}

/// The packets that the attacker may forge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForgeryScope {
    /// Only packets that a TCP must survive, so the streams must arrive unchanged. This excludes packets that
    /// the victim cannot distinguish from genuine ones: foreign data or a FIN in its window, a reset with the
    /// next sequence number, an ACK of data that the receiver never got, and timestamps that are moved
    /// forward.
    Survivable,
    /// Any packets.
    Any,
}

/// The attacker's knowledge about one end of a connection, as stream offsets.
#[derive(Clone, Copy, Debug)]
struct EndState {
    addr: SocketAddr,
    isn: Seq,
    /// One past the highest offset sent.
    nxt: u64,
    /// Highest acknowledgment of the other end's stream.
    ack: u64,
    /// End of its stream, once it is known.
    fin: Option<u64>,
    window: u16,
    scale: u8,
    sack: bool,
    timestamps: Option<Timestamps>,
}

/// The attacker's knowledge about both ends of a connection.
#[derive(Debug, Default)]
pub struct Eavesdropper {
    ends: [Option<EndState>; 2],
}

impl Eavesdropper {
    /// Learns from a packet that `from` has sent.
    pub fn observe(&mut self, from: Peer, packet: &[u8]) {
        let Ok(segment) = segment::parse(packet) else { return };
        let end = &mut self.ends[from as usize];
        if segment.flags.contains(Flags::SYN) {
            *end = Some(EndState {
                addr: segment.src,
                isn: segment.seq,
                nxt: 1,
                ack: 0,
                fin: None,
                window: segment.window,
                scale: segment.options.window_scale.unwrap_or(0),
                sack: segment.options.sack_permitted,
                timestamps: segment.options.timestamps,
            });
        }
        let other_isn = self.ends[from.other() as usize].map(|other| other.isn);
        let Some(end) = &mut self.ends[from as usize] else { return };
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if let Some(start) = segment.seq.offset(end.isn, end.nxt) {
            end.nxt = end.nxt.max(start + segment.seq_len());
            if segment.flags.contains(Flags::FIN) {
                end.fin = Some(start + segment.payload.len() as u64);
            }
        }
        if segment.flags.contains(Flags::ACK)
            && let Some(ack) = other_isn.and_then(|isn| segment.ack.offset(isn, end.ack))
        {
            end.ack = end.ack.max(ack);
        }
        end.window = segment.window;
        end.timestamps = segment.options.timestamps.or(end.timestamps);
    }

    /// Forges a packet with `from` as its sender. Returns `None` until the handshake has been overheard.
    pub fn forge(&self, draw: &mut impl Draw, from: Peer, scope: ForgeryScope) -> Option<Vec<u8>> {
        let (me, you) = (self.ends[from as usize]?, self.ends[from.other() as usize]?);
        let forger = Forger { draw, from, me, you };
        Some(match scope {
            ForgeryScope::Survivable => forger.survivable(),
            ForgeryScope::Any => forger.any(),
        })
    }
}

struct Forger<'a, D> {
    draw: &'a mut D,
    from: Peer,
    /// The end that the attacker impersonates.
    me: EndState,
    /// The victim.
    you: EndState,
}

/// A segment to forge. Its offsets can have any value.
struct Forgery {
    seq: u64,
    ack: u64,
    flags: Flags,
    window: u16,
    ecn: Ecn,
    options: Vec<u8>,
    payload: Vec<u8>,
}

impl<D: Draw> Forger<'_, D> {
    /// Returns the ACK that the genuine end would send now.
    fn genuine_ack(&mut self) -> Forgery {
        let options = self.timestamps(0);
        Forgery {
            seq: self.me.nxt,
            ack: self.me.ack,
            flags: Flags::ACK,
            window: self.me.window,
            ecn: Ecn::NotEct,
            options,
            payload: Vec::new(),
        }
    }

    fn survivable(mut self) -> Vec<u8> {
        let mut forgery = self.genuine_ack();
        match self.draw.below(14) {
            0 => return self.noise(),
            1 => return self.damaged(forgery),
            2 => forgery.options = self.invalid_options(),
            3 => self.outside_the_window(&mut forgery),
            4 => forgery.ack = self.false_ack_number(),
            5 => forgery.options.extend(self.false_sack_blocks()),
            6 => forgery.window = self.some_window(),
            7 => {
                forgery.flags = self.draw.pick(&[Flags::SYN, Flags::SYN.with(Flags::ACK)]);
                forgery.seq = self.some_offset();
                forgery.options = self.invalid_options();
            }
            8 => {
                forgery.flags = self.draw.pick(&[Flags::RST, Flags::RST.with(Flags::ACK)]);
                forgery.seq = self.ineffective_reset_number();
            }
            9 => self.make_old(&mut forgery),
            10 => return self.icmp(),
            11 | 12 => self.resegment_genuine_data(&mut forgery),
            _ => self.set_unusual_flags(&mut forgery),
        }
        self.write(&forgery)
    }

    /// Returns a number that acknowledges data that was never sent, or that was acknowledged long ago.
    fn false_ack_number(&mut self) -> u64 {
        match self.draw.below(4) {
            0 => self.you.nxt + 1 + self.draw.below(3),
            1 => self.you.nxt + 1 + self.draw.below(1 << 31),
            2 => self.me.ack.saturating_sub(1 + self.draw.below(3000)),
            _ => self.me.ack.wrapping_sub(self.draw.below(1 << 31)),
        }
    }

    /// Returns a sequence number other than the next one that the victim expects, which would reset the
    /// connection.
    fn ineffective_reset_number(&mut self) -> u64 {
        match self.draw.below(3) {
            0 => self.me.nxt + 2 + self.draw.below(1 << 16),
            1 => self.you.ack.wrapping_sub(1 + self.draw.below(1 << 16)),
            _ => self.me.nxt + 2 + self.draw.below(1 << 30),
        }
    }

    /// Adds data and an old timestamp, so that PAWS must drop the segment (RFC 7323 §5).
    fn make_old(&mut self, forgery: &mut Forgery) {
        let back = (1 << 22) + self.draw.below(1 << 30);
        forgery.options = self.timestamps(back.wrapping_neg() as u32);
        let len = self.draw.below(100);
        forgery.payload = self.noise_bytes(len);
        if self.me.timestamps.is_none() {
            forgery.payload.clear();
        }
    }

    /// Retransmits genuine data, in segments with other boundaries.
    fn resegment_genuine_data(&mut self, forgery: &mut Forgery) {
        let lowest = self.you.ack.saturating_sub(3000).max(1);
        let end = self.me.fin.unwrap_or(self.me.nxt);
        forgery.seq = lowest + self.draw.below(end.saturating_sub(lowest));
        let max_len = end.saturating_sub(forgery.seq).min(1400);
        let len = self.draw.below(max_len + 1);
        forgery.payload = self.genuine_bytes(forgery.seq, len);
    }

    fn set_unusual_flags(&mut self, forgery: &mut Forgery) {
        forgery.flags = match self.draw.below(4) {
            0 => Flags::NONE,
            1 => Flags::ACK.with(Flags::URG),
            2 => Flags::ACK.with(Flags::RESERVED).with(Flags::AE),
            _ => Flags::ACK.with(self.draw.pick(&[Flags::ECE, Flags::CWR])),
        };
        forgery.ecn = self.draw.pick(&[Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
        if self.draw.one_in(3) {
            forgery.options.clear();
        }
    }

    fn any(mut self) -> Vec<u8> {
        if self.draw.one_in(4) {
            return self.survivable();
        }
        let mut forgery = self.genuine_ack();
        forgery.flags = Flags(self.draw.below(1 << 12) as u16);
        if self.draw.one_in(2) {
            forgery.flags = Flags::ACK;
        }
        forgery.seq = self.some_offset();
        forgery.ack = match self.draw.below(4) {
            0 => self.draw.below(1 << 32),
            1 => self.me.ack + self.draw.below(self.you.nxt.saturating_sub(self.me.ack) + 2),
            _ => self.me.ack,
        };
        forgery.window = self.some_window();
        if self.draw.one_in(2) {
            let len = self.draw.below(1461);
            forgery.payload = self.noise_bytes(len);
        }
        match self.draw.below(4) {
            0 => forgery.options = self.invalid_options(),
            1 => {
                let shift = self.draw.below(1 << 32) as u32;
                forgery.options = self.timestamps(shift);
            }
            2 => forgery.options.extend(self.false_sack_blocks()),
            _ => {}
        }
        forgery.ecn = Ecn::from_bits(self.draw.below(4) as u8);
        self.write(&forgery)
    }

    fn some_window(&mut self) -> u16 {
        match self.draw.below(4) {
            0 => 0,
            1 => 1,
            2 => 65_535,
            _ => self.draw.below(65_536) as u16,
        }
    }

    /// Returns an offset near the limits of what the victim accepts, or any offset.
    fn some_offset(&mut self) -> u64 {
        let window = u64::from(self.you.window) << self.you.scale;
        let near = match self.draw.below(5) {
            0 => self.me.nxt,
            1 => self.you.ack,
            2 => self.you.ack + window,
            3 => 0,
            _ => return self.draw.below(1 << 32),
        };
        near.wrapping_add(self.draw.below(5)).wrapping_sub(2)
    }

    fn outside_the_window(&mut self, forgery: &mut Forgery) {
        let window = u64::from(self.you.window) << self.you.scale;
        let len = self.draw.below(1461);
        forgery.payload = self.noise_bytes(len);
        let (below, far) = (self.draw.below(4000), self.draw.below(1 << 30));
        forgery.seq = match self.draw.below(4) {
            // Completely old: its last byte is directly before the next one that the victim expects.
            0 => self.you.ack.wrapping_sub(len + 1),
            1 => self.you.ack.wrapping_sub(len + 1 + below),
            2 => self.you.ack + window + (1 << 16) + below,
            _ => self.you.ack + window + (1 << 16) + far,
        };
        if self.draw.one_in(3) {
            forgery.flags = forgery.flags.with(Flags::FIN);
        }
        if self.draw.one_in(3) {
            let shift = self.draw.below(1 << 32) as u32;
            // Linux takes the timestamp of a duplicate that ends at its last ACK (tcp_replace_ts_recent()).
            let end = forgery.seq.wrapping_add(len + u64::from(forgery.flags.contains(Flags::FIN)));
            forgery.options = self.timestamps(if end == self.you.ack { 0 } else { shift });
        }
    }

    fn genuine_bytes(&self, seq: u64, len: u64) -> Vec<u8> {
        // The SYN is at offset 0, and the first byte at offset 1.
        (seq..seq + len).map(|offset| stream_byte(self.from, offset - 1)).collect()
    }

    fn noise_bytes(&mut self, len: u64) -> Vec<u8> {
        let pattern = self.draw.below(256) as u8;
        (0..len).map(|i| pattern ^ (i as u8).wrapping_mul(29)).collect()
    }

    /// Returns a timestamps option that is moved forward by `shift`. Empty if the connection does not use
    /// timestamps.
    fn timestamps(&mut self, shift: u32) -> Vec<u8> {
        let Some(ts) = self.me.timestamps.filter(|_| self.you.timestamps.is_some()) else {
            return Vec::new();
        };
        let ecr = if self.draw.one_in(8) { self.draw.below(1 << 32) as u32 } else { ts.ecr };
        let mut out = vec![1, 1, 8, 10];
        out.extend(ts.val.wrapping_add(shift).to_be_bytes());
        out.extend(ecr.to_be_bytes());
        out
    }

    /// Returns SACK blocks for outstanding data, received or not. Some are reversed, empty, overlapping, or
    /// far outside.
    fn false_sack_blocks(&mut self) -> Vec<u8> {
        if !(self.me.sack && self.you.sack) {
            return Vec::new();
        }
        let mut blocks = SackBlocks::default();
        for _ in 0..1 + self.draw.below(3) {
            let around = self.me.ack.saturating_sub(2000);
            let span = self.you.nxt.saturating_sub(around) + 2000;
            let left = around + self.draw.below(span);
            let right = match self.draw.below(6) {
                0 => left,
                1 => left.saturating_sub(self.draw.below(3000)),
                2 => left + 1,
                _ => left + self.draw.below(span),
            };
            blocks.push(self.you.isn.at(left), self.you.isn.at(right));
        }
        let blocks = blocks.as_slice();
        let mut out = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
        for (left, right) in blocks {
            out.extend(left.0.to_be_bytes());
            out.extend(right.0.to_be_bytes());
        }
        out
    }

    fn invalid_options(&mut self) -> Vec<u8> {
        const OPTIONS: [&[u8]; 12] = [
            &[2, 0, 0, 0],
            &[8, 1, 0, 0],
            &[3, 200, 0, 0],
            &[1, 1, 1, 8],
            &[2, 4, 0, 0],
            &[3, 3, 255, 0],
            &[4, 2, 4, 2],
            &[254, 4, 1, 2],
            &[0, 8, 10, 0],
            &[2, 3, 5, 1],
            &[5, 10, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0],
            &[
                5, 38, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                0, 0, 0, 0, 0, 0, 0, 0, 0,
            ],
        ];
        let mut out = Vec::new();
        for _ in 0..1 + self.draw.below(3) {
            let option = self.draw.pick(&OPTIONS);
            if out.len() + option.len() <= 40 {
                out.extend(option);
            }
        }
        out
    }

    /// Returns random bytes, some of which may look like an IPv4 header.
    fn noise(&mut self) -> Vec<u8> {
        let len = self.draw.below(120);
        let mut packet = self.noise_bytes(len);
        for (at, value) in [(0, 0x45), (2, 0), (3, len as u8), (9, 6)] {
            if let Some(byte) = packet.get_mut(at).filter(|_| self.draw.one_in(2)) {
                *byte = value;
            }
        }
        packet
    }

    /// Returns a segment with data in the window that is truncated or has a flipped bit, so that its checksum
    /// or length is wrong.
    fn damaged(&mut self, mut forgery: Forgery) -> Vec<u8> {
        let len = 1 + self.draw.below(1400);
        forgery.payload = self.noise_bytes(len);
        let mut packet = self.write(&forgery);
        let at = self.draw.below(packet.len() as u64) as usize;
        if self.draw.one_in(2) {
            packet.truncate(at);
        } else {
            packet[at] ^= 1 << self.draw.below(8);
        }
        packet
    }

    /// Returns an ICMP error that quotes a packet of the victim, correctly or incorrectly.
    fn icmp(&mut self) -> Vec<u8> {
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (self.me.addr.ip(), self.you.addr.ip()) else {
            return Vec::new();
        };
        let seq = match self.draw.below(3) {
            0 => self.me.ack,
            1 => self.you.nxt.saturating_sub(1),
            _ => self.draw.below(1 << 32),
        };
        let quoted =
            Header { seq: self.you.isn.at(seq), ..header((self.you.addr, self.me.addr), Flags::ACK, 0) };
        let mut quote = Vec::new();
        segment::emit(&mut quote, &quoted, &[], (&[], &[]));
        quote.truncate(20 + self.draw.below(21) as usize);
        let (kind, code) =
            self.draw.pick(&[(3, 0), (3, 1), (3, 3), (3, 4), (3, 13), (4, 0), (11, 0), (12, 0), (5, 1)]);
        let mut message = vec![kind, code, 0, 0, 0, 0];
        message.extend((self.draw.below(2000) as u16).to_be_bytes());
        message.extend(quote);
        let sum = checksum::plain(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 1, 0, 0];
        packet.extend(src.octets());
        packet.extend(dst.octets());
        packet[2..4].copy_from_slice(&(20 + message.len() as u16).to_be_bytes());
        let sum = checksum::plain(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(message);
        packet
    }

    fn write(&self, forgery: &Forgery) -> Vec<u8> {
        let header = Header {
            seq: self.me.isn.at(forgery.seq),
            ack: self.you.isn.at(forgery.ack),
            ecn: forgery.ecn,
            ..header((self.me.addr, self.you.addr), forgery.flags, forgery.window)
        };
        let mut options = forgery.options.clone();
        options.truncate(40);
        options.resize(options.len().next_multiple_of(4), 0);
        let mut packet = Vec::new();
        segment::emit(&mut packet, &header, &options, (&forgery.payload, &[]));
        packet
    }
}
