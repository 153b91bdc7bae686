//! Synthetic captures: packets, frames that contain them, and files of frames.

pub mod bulk;
pub mod encapsulation;

use std::net::SocketAddr;

use airwire::options::{Layout, Options, Timestamps};
use airwire::segment::{self, Ecn, Flags, Header};
use airwire::seq::Seq;

/// Link type of Ethernet in a capture file.
pub const ETHERNET: u32 = 1;
/// Flag of a SYN.
pub const SYN: Flags = Flags::SYN;
/// Flag of an ordinary segment.
pub const ACK: Flags = Flags::ACK;
/// Flags of a SYN,ACK.
pub const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);
/// Flags of the last segment of a stream.
pub const FIN_ACK: Flags = Flags::FIN.with(Flags::ACK);
/// Flag of a reset.
pub const RST: Flags = Flags::RST;

/// A TCP packet. Both addresses belong to the same family.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// Sender.
    pub src: SocketAddr,
    /// Receiver.
    pub dst: SocketAddr,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Flags.
    pub flags: Flags,
    /// Number of data bytes, which are all zero.
    pub len: usize,
    /// Identification in the IPv4 header.
    pub ident: u16,
    /// TCP options.
    pub options: Options,
}

impl Tcp {
    /// Creates a packet without options.
    pub fn new(src: SocketAddr, dst: SocketAddr, flags: Flags, seq: u32, ack: u32, len: usize) -> Self {
        Self { src, dst, seq, ack, flags, len, ident: 0, options: Options::default() }
    }

    /// Adds the timestamps option.
    pub fn stamped(mut self, val: u32, ecr: u32) -> Self {
        self.options.timestamps = Some(Timestamps { val, ecr });
        self
    }

    /// Returns the packet, starting with the IP header.
    pub fn packet(&self) -> Vec<u8> {
        self.carrying(0xffff, &vec![0; self.len])
    }

    /// Returns the packet with the given window and payload.
    pub fn carrying(&self, window: u16, payload: &[u8]) -> Vec<u8> {
        let mut options = Vec::new();
        self.options.write(Layout::Linux, &mut options);
        let header = Header {
            seq: Seq(self.seq),
            ack: Seq(self.ack),
            ident: self.ident,
            ..header((self.src, self.dst), self.flags, window)
        };
        let mut packet = Vec::new();
        segment::emit(&mut packet, &header, &options, (payload, &[]));
        packet
    }

    /// Returns the packet in an Ethernet frame.
    pub fn ethernet(&self) -> Vec<u8> {
        ethernet(&self.packet())
    }
}

/// Returns a header whose numbers are zero.
pub(crate) fn header((src, dst): (SocketAddr, SocketAddr), flags: Flags, window: u16) -> Header {
    Header {
        src,
        dst,
        seq: Seq(0),
        ack: Seq(0),
        flags,
        window,
        ecn: Ecn::NotEct,
        tos: 0,
        ttl: 64,
        dont_fragment: true,
        ident: 0,
    }
}

/// Returns a port of 10.0.0.`host`.
pub fn v4(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

/// Returns a port of fd83::`host`.
pub fn v6(host: u16, port: u16) -> SocketAddr {
    SocketAddr::from(([0xfd83, 0, 0, 0, 0, 0, 0, host], port))
}

/// Returns the EtherType of an IP packet.
pub fn ethertype(packet: &[u8]) -> [u8; 2] {
    if packet.first().is_some_and(|first| first >> 4 == 6) { [0x86, 0xdd] } else { [0x08, 0] }
}

/// Returns an Ethernet frame around a packet, padded to 60 bytes as on the wire.
pub fn ethernet(packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(ethertype(packet));
    frame.extend(packet);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Returns the nanoseconds since 1970 of `seconds` after 2001-09-09 01:46:40 UTC.
fn nanoseconds(seconds: f64) -> u64 {
    1_000_000_000_000_000_000 + (seconds * 1e9).round() as u64
}

/// A pcap file with nanosecond timestamps, in little-endian byte order.
pub struct Pcap {
    /// Content written so far.
    pub file: Vec<u8>,
    snap_length: usize,
}

impl Pcap {
    /// Creates a file without frames.
    pub fn new(link_type: u32) -> Self {
        Self::with_snap_length(link_type, 262_144)
    }

    /// Creates a file that keeps at most `snap_length` bytes of each frame.
    pub fn with_snap_length(link_type: u32, snap_length: u32) -> Self {
        let mut file = Vec::new();
        file.extend(0xa1b2_3c4d_u32.to_le_bytes());
        file.extend([2, 0, 4, 0]);
        file.extend([0; 8]);
        file.extend(snap_length.to_le_bytes());
        file.extend(link_type.to_le_bytes());
        Self { file, snap_length: snap_length as usize }
    }

    /// Adds a frame, `at` seconds after 2001-09-09 01:46:40 UTC.
    pub fn frame(&mut self, at: f64, frame: &[u8]) {
        let captured = &frame[..frame.len().min(self.snap_length)];
        self.header(nanoseconds(at), captured.len() as u32, frame.len() as u32);
        self.file.extend(captured);
    }

    /// Adds the header of a frame, with nanoseconds since 1970, captured length and original length.
    pub fn header(&mut self, nanos: u64, captured: u32, length: u32) {
        for word in [(nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000) as u32, captured, length] {
            self.file.extend(word.to_le_bytes());
        }
    }
}

/// A pcapng file in either byte order.
pub struct Pcapng {
    /// Content written so far.
    pub file: Vec<u8>,
    big: bool,
}

impl Pcapng {
    /// Creates a file with only a section header. `big` selects big-endian byte order.
    pub fn new(big: bool) -> Self {
        let mut new = Self { file: Vec::new(), big };
        let mut body = new.long(0x1a2b_3c4d).to_vec();
        body.extend(if big { [0, 1, 0, 0] } else { [1, 0, 0, 0] });
        body.extend([0xff; 8]);
        new.block(0x0a0d_0d0a, &body);
        new
    }

    fn long(&self, value: u32) -> [u8; 4] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    /// Adds a block.
    pub fn block(&mut self, kind: u32, body: &[u8]) {
        let padded = body.len().next_multiple_of(4);
        let length = self.long(padded as u32 + 12);
        self.file.extend(self.long(kind));
        self.file.extend(length);
        self.file.extend(body);
        self.file.resize(self.file.len() + padded - body.len(), 0);
        self.file.extend(length);
    }

    /// Adds an interface with nanosecond timestamps.
    pub fn interface(&mut self, link_type: u16, snap_length: u32) {
        let word = |value: u16| if self.big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut body = [word(link_type), [0, 0]].concat();
        body.extend(self.long(snap_length));
        body.extend([word(9), word(1)].concat());
        body.extend([9, 0, 0, 0]);
        body.extend([0; 4]);
        self.block(1, &body);
    }

    /// Adds a frame of this interface, `at` seconds after 2001-09-09 01:46:40 UTC.
    pub fn frame(&mut self, interface: u32, at: f64, frame: &[u8]) {
        let nanos = nanoseconds(at);
        let len = frame.len() as u32;
        let mut body = Vec::new();
        for value in [interface, (nanos >> 32) as u32, nanos as u32, len, len] {
            body.extend(self.long(value));
        }
        body.extend(frame);
        self.block(6, &body);
    }
}
