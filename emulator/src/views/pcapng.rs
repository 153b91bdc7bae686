//! Writer for pcapng files (draft-ietf-opsawg-pcapng), which libpcap reads but cannot write.
//!
//! libpcap refuses files whose interfaces differ in link type or snaplen, and files with two interfaces of
//! LINKTYPE_RAW. Therefore all points of a path have LINKTYPE_NULL and the same snaplen. Four bytes in front
//! of each packet distinguish IPv4 and IPv6. Frames from other captures keep their link type.

use airwire::time::Instant;

const LINKTYPE_NULL: u16 = 0;
/// The longest IP packet, plus four bytes for the address family.
const SNAPLEN: u32 = 65_575 + 4;

/// Address families in front of packets with LINKTYPE_NULL. The values are from the BSDs.
const AF_INET: u32 = 2;
const AF_INET6: u32 = 30;

const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;

/// Whether a packet was received or sent at its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDirection {
    /// Received.
    Inbound,
    /// Sent.
    Outbound,
}

/// Appends blocks to a buffer, which the caller writes out and clears.
#[derive(Debug, Default)]
pub struct Writer {
    /// The blocks written so far.
    pub buffer: Vec<u8>,
}

/// An IP packet at a point of a path.
pub(super) struct PathPacket<'a> {
    pub(super) interface: u32,
    /// Nanoseconds since 1970.
    pub(super) wall: u64,
    pub(super) bytes: &'a [u8],
    pub(super) direction: PacketDirection,
    pub(super) comment: &'a str,
}

/// A frame of any link type, possibly truncated.
pub struct Frame<'a> {
    /// Index of the interface, in order of declaration.
    pub interface: u32,
    /// Nanoseconds since 1970.
    pub wall: u64,
    /// The captured bytes, in two parts.
    pub bytes: [&'a [u8]; 2],
    /// Length on the wire, in bytes.
    pub length: u32,
    /// The packet's direction at the interface. `None`: unknown.
    pub direction: Option<PacketDirection>,
    /// A comment of at most 65535 bytes.
    pub comment: Option<&'a str>,
}

impl Writer {
    /// Appends the first block of a file. `program` is the name of the writing program.
    pub fn section_header(&mut self, program: &str) {
        self.block(0x0a0d_0d0a, |body| {
            body.extend(0x1a2b_3c4d_u32.to_le_bytes());
            body.extend(1_u16.to_le_bytes());
            body.extend(0_u16.to_le_bytes());
            // Unspecified section length.
            body.extend((-1_i64).to_le_bytes());
            option(body, SHB_USERAPPL, program.as_bytes());
            option(body, OPT_END, &[]);
        });
    }

    /// Declares a point of a path.
    pub(super) fn interface(&mut self, name: &str) {
        self.interface_of(LINKTYPE_NULL, SNAPLEN, Some(name));
    }

    /// Declares an interface. The first one has the index 0.
    pub fn interface_of(&mut self, link_type: u16, snap_length: u32, name: Option<&str>) {
        self.block(1, |body| {
            body.extend(link_type.to_le_bytes());
            body.extend(0_u16.to_le_bytes());
            body.extend(snap_length.to_le_bytes());
            if let Some(name) = name {
                option(body, IF_NAME, name.as_bytes());
            }
            // Timestamp resolution 10^-9 s.
            option(body, IF_TSRESOL, &[9]);
            option(body, OPT_END, &[]);
        });
    }

    /// Appends an IP packet, with the address family that LINKTYPE_NULL requires.
    pub(super) fn packet(&mut self, packet: &PathPacket<'_>) {
        let &PathPacket { interface, wall, bytes, direction, comment } = packet;
        let family = family(bytes).to_le_bytes();
        let length = bytes.len() as u32 + 4;
        let (direction, comment) = (Some(direction), Some(comment));
        self.frame(&Frame { interface, wall, bytes: [&family, bytes], length, direction, comment });
    }

    /// Appends an Enhanced Packet Block.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        self.block(6, |body| {
            let kept = frame.bytes.iter().map(|piece| piece.len() as u32).sum::<u32>();
            body.extend(frame.interface.to_le_bytes());
            body.extend(((frame.wall >> 32) as u32).to_le_bytes());
            body.extend((frame.wall as u32).to_le_bytes());
            body.extend(kept.to_le_bytes());
            body.extend(frame.length.to_le_bytes());
            body.extend(frame.bytes.iter().copied().flatten());
            pad(body);
            if let Some(comment) = frame.comment {
                option(body, OPT_COMMENT, comment.as_bytes());
            }
            if let Some(direction) = frame.direction {
                let flags: u32 = if direction == PacketDirection::Inbound { 1 } else { 2 };
                option(body, EPB_FLAGS, &flags.to_le_bytes());
            }
            if frame.comment.is_some() || frame.direction.is_some() {
                option(body, OPT_END, &[]);
            }
        });
    }

    /// Appends a block, which consists of type, length, body and the length again.
    fn block(&mut self, block_type: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.buffer.len();
        self.buffer.extend(block_type.to_le_bytes());
        self.buffer.extend([0; 4]);
        fill(&mut self.buffer);
        let total = (self.buffer.len() - start + 4) as u32;
        self.buffer[start + 4..start + 8].copy_from_slice(&total.to_le_bytes());
        self.buffer.extend(total.to_le_bytes());
    }
}

/// Returns the address family. Data other than IP counts as IPv4, and readers show it as malformed.
fn family(bytes: &[u8]) -> u32 {
    match bytes.first().map(|first| first >> 4) {
        Some(6) => AF_INET6,
        _ => AF_INET,
    }
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

/// Pads to a multiple of 4 bytes, which options and blocks require.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Nanoseconds since 1970. `zero` is the wall-clock time at `Instant::ZERO`.
pub(super) fn wall(zero: u64, at: Instant) -> u64 {
    zero + at.as_nanos()
}
