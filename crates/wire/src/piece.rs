//! The unit that a host writes to its device: one packet, or consecutive segments of one connection, joined
//! for a device with segmentation offload.

use std::ops::Range;
use std::sync::Arc;

use crate::options::{Layout, Options};
use crate::segment::{self, Flags, Header};
use crate::text::Known;

/// Payload that is to be placed into packets.
#[derive(Clone, Debug)]
pub enum Payload<'a> {
    /// The bytes must be copied.
    Copied(&'a [u8]),
    /// This range of immutable memory can be referenced instead of copied.
    Shared(&'a Arc<Vec<u8>>, Range<usize>),
    /// The bytes are not stored.
    Known(Known),
}

impl Payload<'_> {
    /// Number of bytes.
    pub const fn len(&self) -> usize {
        match self {
            Self::Copied(bytes) => bytes.len(),
            Self::Shared(_, range) => range.end - range.start,
            Self::Known(known) => known.len(),
        }
    }

    /// Whether it is empty.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the first `len` bytes, or all if there are fewer.
    #[must_use]
    pub fn truncated(self, len: usize) -> Self {
        let len = len.min(self.len());
        match self {
            Self::Copied(bytes) => Self::Copied(&bytes[..len]),
            Self::Shared(memory, range) => Self::Shared(memory, range.start..range.start + len),
            Self::Known(known) => Self::Known(known.slice(0..len)),
        }
    }

    /// Appends the bytes to `out`.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Copied(bytes) => out.extend_from_slice(bytes),
            Self::Shared(memory, range) => out.extend_from_slice(&memory[range.clone()]),
            Self::Known(known) => known.copy_to(out),
        }
    }
}

/// One packet, or one segment's headers followed by the payload of consecutive segments. The headers of these
/// segments differ only in sequence number and IPv4 identification.
#[derive(Debug, Default)]
pub struct Piece {
    /// The headers and the copied payload.
    own: Vec<u8>,
    /// The complete contents, in order.
    parts: Vec<Part>,
    len: usize,
    contents: Contents,
}

#[derive(Debug)]
enum Part {
    Own(Range<usize>),
    Shared(Arc<Vec<u8>>, Range<usize>),
}

#[expect(clippy::large_enum_variant, reason = "a box would be allocated for every piece")]
#[derive(Debug, Default)]
enum Contents {
    #[default]
    Empty,
    /// A packet in its wire format.
    Packet,
    /// Segments of one connection. The device fills in their checksums.
    Segments(Segments),
}

#[derive(Debug)]
struct Segments {
    count: usize,
    /// Payload bytes in each segment except the last.
    size: usize,
    /// Offset at which the TCP header begins.
    tcp: usize,
    /// Length of all headers, and so the offset at which the TCP header ends.
    headers: usize,
    /// The headers and options that the next segment must have.
    expected: (Header, Options),
    /// Whether another segment may follow.
    open: bool,
}

/// Largest packet: the length fields of IP have 16 bits.
const MAX_PACKET: usize = 65_535;
/// Flags of segments that must be sent alone: segmentation would copy the flag into every segment, or move it
/// to the first or the last segment.
const ALONE: Flags =
    Flags::FIN.with(Flags::SYN).with(Flags::RST).with(Flags::PSH).with(Flags::URG).with(Flags::CWR);
/// Flags that the kernel sets only in the last segment (`tcp_gso_segment`).
const LAST: Flags = Flags::PSH.with(Flags::FIN);

impl Piece {
    /// Maximum number of segments in one piece. 45 segments of 1500 bytes fit into the largest packet. With
    /// smaller segments, the limit keeps one connection from delaying all other connections.
    pub const MAX_SEGMENTS: usize = 64;

    /// Returns whether the piece is empty.
    pub const fn is_empty(&self) -> bool {
        matches!(self.contents, Contents::Empty)
    }

    /// Returns the number of packets on the wire.
    pub const fn count(&self) -> usize {
        match &self.contents {
            Contents::Empty => 0,
            Contents::Packet => 1,
            Contents::Segments(segments) => segments.count,
        }
    }

    /// Returns the total length of the IP packets on the wire, in bytes.
    pub fn wire_bytes(&self) -> usize {
        match &self.contents {
            Contents::Empty => 0,
            Contents::Packet => self.len,
            Contents::Segments(Segments { count, headers, .. }) => self.len + (count - 1) * headers,
        }
    }

    /// Returns the packet, if the piece is one complete packet with its checksum.
    pub fn single_packet(&self) -> Option<&[u8]> {
        matches!(self.contents, Contents::Packet).then_some(&self.own)
    }

    /// Returns the payload bytes of each segment except the last. Returns `None` for a complete packet and
    /// for an empty piece.
    pub const fn segment_size(&self) -> Option<usize> {
        match &self.contents {
            Contents::Empty | Contents::Packet => None,
            Contents::Segments(segments) => Some(segments.size),
        }
    }

    /// Returns the length of the piece in bytes: the headers, counted once, and the payload.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns the headers of the first segment, in which the device may fill in its fields.
    pub fn headers_mut(&mut self) -> &mut [u8] {
        &mut self.own
    }

    /// Returns the contents as consecutive slices.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(|part| match part {
            Part::Own(range) => &self.own[range.clone()],
            Part::Shared(memory, range) => &memory[range.clone()],
        })
    }

    /// Empties the piece after transmission, and keeps its memory for reuse.
    pub fn clear(&mut self) {
        self.own.clear();
        self.parts.clear();
        self.len = 0;
        self.contents = Contents::Empty;
    }

    /// Replaces the contents with the packet that `write` writes. Returns the result of `write`: whether it
    /// wrote a packet.
    pub fn fill(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        self.clear();
        let written = write(&mut self.own);
        if written {
            self.extend_parts_from(0);
            self.contents = Contents::Packet;
        }
        written
    }

    /// Replaces the contents with a segment of `len` bytes of payload. More segments may follow.
    ///
    /// # Panics
    /// If the header's addresses are not of one family.
    pub fn begin<'a>(
        &mut self,
        header: &Header,
        options: &Options,
        layout: Layout,
        len: usize,
        payload: impl Iterator<Item = Payload<'a>>,
    ) {
        self.clear();
        let write_options = |bytes: &mut Vec<u8>| options.write(layout, bytes);
        segment::reserve(&mut self.own, len);
        let tcp = segment::emit_headers(&mut self.own, header, write_options, len);
        self.extend_parts_from(0);
        let segments = Segments {
            count: 1,
            size: len,
            tcp,
            headers: self.own.len(),
            expected: (next_header(header, len), *options),
            open: len > 0 && !header.flags.intersects(ALONE),
        };
        self.contents = Contents::Segments(segments);
        payload.for_each(|part| self.push(part));
    }

    /// Returns whether a segment with these headers and `len` bytes of payload can be joined to this piece.
    pub fn can_append(&self, header: &Header, options: &Options, len: usize) -> bool {
        let Contents::Segments(segments) = &self.contents else { return false };
        let (expected, same_options) = &segments.expected;
        let Header { src, dst, seq, ack, flags, window, ecn, tos, ttl, dont_fragment, ident } = header;
        segments.open
            && segments.count < Self::MAX_SEGMENTS
            && (1..=segments.size).contains(&len)
            && self.len + len <= MAX_PACKET
            && (*seq, *ident) == (expected.seq, expected.ident)
            && (*ack, *window, flags.without(LAST)) == (expected.ack, expected.window, expected.flags)
            && (*ecn, *tos, *ttl, *dont_fragment)
                == (expected.ecn, expected.tos, expected.ttl, expected.dont_fragment)
            && (*src, *dst) == (expected.src, expected.dst)
            && options == same_options
    }

    /// Appends a segment for which [`Self::can_append`] is true.
    pub fn append<'a>(&mut self, header: &Header, len: usize, payload: impl Iterator<Item = Payload<'a>>) {
        if let Contents::Segments(segments) = &mut self.contents {
            let last = header.flags.0 & LAST.0;
            self.own[segments.tcp + 13] |= last as u8;
            segments.open = last == 0 && len == segments.size;
        }
        self.append_many(1, payload);
    }

    /// Returns how many more segments can follow the last one, if they have `len` bytes of payload and the headers
    /// that are expected of the next segment.
    pub fn room_for(&self, len: usize) -> usize {
        match &self.contents {
            Contents::Segments(segments) if segments.open && segments.size == len => {
                (MAX_PACKET.saturating_sub(self.len) / len).min(Self::MAX_SEGMENTS - segments.count)
            }
            _ => 0,
        }
    }

    /// Appends `count` segments, of which [`Self::room_for`] permits at least as many. `payload` is the text of all.
    pub fn append_many<'a>(&mut self, count: usize, payload: impl Iterator<Item = Payload<'a>>) {
        if let Contents::Segments(segments) = &mut self.contents {
            segments.count += count;
            let (expected, _) = &mut segments.expected;
            expected.seq = expected.seq.at((count * segments.size) as u64);
            expected.ident = expected.ident.wrapping_add(count as u16);
        }
        payload.for_each(|part| self.push(part));
    }

    fn push(&mut self, payload: Payload<'_>) {
        match payload {
            Payload::Copied(_) | Payload::Known(_) => {
                let from = self.own.len();
                payload.copy_to(&mut self.own);
                self.extend_parts_from(from);
            }
            Payload::Shared(memory, range) => {
                self.len += range.len();
                match self.parts.last_mut() {
                    Some(Part::Shared(last, before))
                        if Arc::ptr_eq(last, memory) && before.end == range.start =>
                    {
                        before.end = range.end;
                    }
                    _ => self.parts.push(Part::Shared(Arc::clone(memory), range)),
                }
            }
        }
    }

    fn extend_parts_from(&mut self, from: usize) {
        let to = self.own.len();
        self.len += to - from;
        match self.parts.last_mut() {
            Some(Part::Own(range)) => range.end = to,
            _ => self.parts.push(Part::Own(from..to)),
        }
    }

    /// Returns whether the piece cannot take another segment.
    pub const fn is_complete(&self) -> bool {
        match &self.contents {
            Contents::Empty => false,
            Contents::Packet => true,
            Contents::Segments(Segments { open, count, size, .. }) => {
                !*open || *count == Self::MAX_SEGMENTS || self.len + *size > MAX_PACKET
            }
        }
    }

    /// Returns the packet, with its checksum. Returns `None` if the piece is empty or has several segments.
    pub fn into_packet(self) -> Option<Vec<u8>> {
        match &self.contents {
            Contents::Packet => Some(self.own),
            Contents::Segments(Segments { count: 1, tcp, expected: (header, _), .. }) => {
                let mut packet = self.parts().collect::<Vec<_>>().concat();
                segment::fill_checksum(&mut packet, *tcp, header);
                Some(packet)
            }
            Contents::Empty | Contents::Segments(_) => None,
        }
    }
}

/// Returns the headers of the segment that follows one with these headers and `len` bytes of payload. They
/// match the headers that the kernel writes when it splits the piece.
fn next_header(header: &Header, len: usize) -> Header {
    Header { seq: header.seq.at(len as u64), ident: header.ident.wrapping_add(1), ..header.clone() }
}
