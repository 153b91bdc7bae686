//! What leaves a host in one write: a packet, or segments of a connection that follow each other, joined for a device with
//! offload, which cuts them.

use std::ops::Range;
use std::sync::Arc;

use crate::options::{Layout, Options};
use crate::segment::{self, Flags, Header};

/// Octets of text on their way into packets.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// They have to be copied.
    Copied(&'a [u8]),
    /// This part of memory that nobody writes to any more, which may be kept instead.
    Shared(&'a Arc<Vec<u8>>, Range<usize>),
}

impl Text<'_> {
    /// Appends them.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self {
            Self::Copied(octets) => octets,
            Self::Shared(memory, range) => &memory[range.clone()],
        });
    }
}

/// A packet, or the headers of a segment with the text of those behind it that differ from it only in their place in the stream.
#[derive(Debug, Default)]
pub struct Piece {
    /// The headers, and the octets that were copied.
    own: Vec<u8>,
    /// All of it, in order.
    parts: Vec<Part>,
    len: usize,
    contents: Contents,
}

#[derive(Debug)]
enum Part {
    Own(Range<usize>),
    Shared(Arc<Vec<u8>>, Range<usize>),
}

#[derive(Debug, Default)]
enum Contents {
    #[default]
    Nothing,
    /// A packet as it is on the wire.
    Whole,
    /// Of one connection. Their checksums are for the device.
    Segments(Segments),
}

#[derive(Debug)]
struct Segments {
    count: usize,
    /// Octets of text in each but the last.
    size: usize,
    /// Where the TCP header begins, and where it ends.
    tcp: usize,
    headers: usize,
    /// The headers of a segment that continues them, and its options.
    expected: (Header, Options),
    /// One may follow.
    open: bool,
}

/// The length fields of IP have sixteen bits.
const LARGEST: usize = 65_535;
/// The kernel would set these in each segment but the last, or wants them in the first only.
const ALONE: Flags =
    Flags::FIN.with(Flags::SYN).with(Flags::RST).with(Flags::PSH).with(Flags::URG).with(Flags::CWR);
/// The kernel sets these in the last segment only (`tcp_gso_segment`).
const LAST: Flags = Flags::PSH.with(Flags::FIN);

impl Piece {
    /// The most segments in one: of 1500 octets 45 fit, and others are to have their turn.
    pub const MOST: usize = 64;

    /// There is nothing in it.
    pub const fn is_empty(&self) -> bool {
        matches!(self.contents, Contents::Nothing)
    }

    /// How many packets it is on the wire.
    pub const fn count(&self) -> usize {
        match &self.contents {
            Contents::Nothing => 0,
            Contents::Whole => 1,
            Contents::Segments(segments) => segments.count,
        }
    }

    /// How many octets of IP packets it is on the wire.
    pub fn octets_on_the_wire(&self) -> usize {
        match &self.contents {
            Contents::Nothing => 0,
            Contents::Whole => self.len,
            Contents::Segments(Segments { count, headers, .. }) => self.len + (count - 1) * headers,
        }
    }

    /// The packet in it, if it is one with nothing left for the device.
    pub fn whole(&self) -> Option<&[u8]> {
        matches!(self.contents, Contents::Whole).then_some(&self.own)
    }

    /// The octets of text in each segment but the last. `None`: it is a whole packet, or nothing.
    pub const fn segment_size(&self) -> Option<usize> {
        match &self.contents {
            Contents::Nothing | Contents::Whole => None,
            Contents::Segments(segments) => Some(segments.size),
        }
    }

    /// Octets of headers and text as they stand here: the headers once.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// It begins with the headers of the first segment, of which the device may fill in its part.
    pub fn headers_mut(&mut self) -> &mut [u8] {
        &mut self.own
    }

    /// As it stands, part behind part.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(|part| match part {
            Part::Own(range) => &self.own[range.clone()],
            Part::Shared(memory, range) => &memory[range.clone()],
        })
    }

    /// It has left. Its memory is used again.
    pub fn clear(&mut self) {
        self.own.clear();
        self.parts.clear();
        self.len = 0;
        self.contents = Contents::Nothing;
    }

    /// Has `write` overwrite it with a packet, if there is one. Returns what `write` does.
    pub fn fill(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        self.clear();
        let written = write(&mut self.own);
        if written {
            self.own_grows_from(0);
            self.contents = Contents::Whole;
        }
        written
    }

    /// Overwrites it with a segment of `len` octets of text. Another one may follow.
    ///
    /// # Panics
    /// If the header's addresses are not of one family.
    pub fn begin<'a>(
        &mut self,
        header: &Header,
        options: &Options,
        layout: Layout,
        len: usize,
        text: impl Iterator<Item = Text<'a>>,
    ) {
        self.clear();
        let write_options = |octets: &mut Vec<u8>| options.write(layout, octets);
        let tcp = segment::emit_headers(&mut self.own, header, write_options, len);
        self.own_grows_from(0);
        let segments = Segments {
            count: 1,
            size: len,
            tcp,
            headers: self.own.len(),
            expected: (following(header, len), *options),
            open: len > 0 && !header.flags.intersects(ALONE),
        };
        self.contents = Contents::Segments(segments);
        text.for_each(|text| self.push(text));
    }

    /// A segment with these headers and so much text continues those that are here. Otherwise it has to be in another piece.
    pub fn is_continued_by(&self, header: &Header, options: &Options, len: usize) -> bool {
        let Contents::Segments(segments) = &self.contents else { return false };
        let (expected, same_options) = &segments.expected;
        let Header { src, dst, seq, ack, flags, window, ecn, tos, ttl, dont_fragment, ident } = header;
        segments.open
            && segments.count < Self::MOST
            && (1..=segments.size).contains(&len)
            && self.len + len <= LARGEST
            && (*seq, *ident) == (expected.seq, expected.ident)
            && (*ack, *window, flags.without(LAST)) == (expected.ack, expected.window, expected.flags)
            && (*ecn, *tos, *ttl, *dont_fragment)
                == (expected.ecn, expected.tos, expected.ttl, expected.dont_fragment)
            && (*src, *dst) == (expected.src, expected.dst)
            && options == same_options
    }

    /// Takes a segment that continues those that are here.
    pub fn go_on<'a>(&mut self, header: &Header, len: usize, text: impl Iterator<Item = Text<'a>>) {
        if let Contents::Segments(segments) = &mut self.contents {
            let last = header.flags.0 & LAST.0;
            self.own[segments.tcp + 13] |= last as u8;
            segments.count += 1;
            segments.open = last == 0 && len == segments.size;
            let (expected, _) = &mut segments.expected;
            expected.seq = expected.seq.at(len as u64);
            expected.ident = expected.ident.wrapping_add(1);
        }
        text.for_each(|text| self.push(text));
    }

    fn push(&mut self, text: Text<'_>) {
        match text {
            Text::Copied(octets) => {
                let from = self.own.len();
                self.own.extend_from_slice(octets);
                self.own_grows_from(from);
            }
            Text::Shared(memory, range) => {
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

    fn own_grows_from(&mut self, from: usize) {
        let to = self.own.len();
        self.len += to - from;
        match self.parts.last_mut() {
            Some(Part::Own(range)) => range.end = to,
            _ => self.parts.push(Part::Own(from..to)),
        }
    }

    /// No segment can continue it, whatever it is.
    pub const fn is_complete(&self) -> bool {
        match &self.contents {
            Contents::Nothing => false,
            Contents::Whole => true,
            Contents::Segments(Segments { open, count, size, .. }) => {
                !*open || *count == Self::MOST || self.len + *size > LARGEST
            }
        }
    }

    /// The packet in it, with its checksum. `None`: it is nothing, or several.
    pub fn into_packet(self) -> Option<Vec<u8>> {
        match &self.contents {
            Contents::Whole => Some(self.own),
            Contents::Segments(Segments { count: 1, tcp, expected: (header, _), .. }) => {
                let mut packet = self.parts().collect::<Vec<_>>().concat();
                segment::sum(&mut packet, *tcp, header);
                Some(packet)
            }
            Contents::Nothing | Contents::Segments(_) => None,
        }
    }
}

/// The headers of a segment that follows one with these and `len` octets of text, as the kernel makes them of it.
fn following(header: &Header, len: usize) -> Header {
    Header { seq: header.seq.at(len as u64), ident: header.ident.wrapping_add(1), ..header.clone() }
}
