//! Reads pcap files of version 2.4 (draft-ietf-opsawg-pcap), which libpcap has written since its version 0.4,
//! in both byte orders.
//!
//! libpcap itself takes twice the time, since it reads 4 KiB at a time.

use std::io::Read;

use super::buffer::{Buffer, Order};
use super::{Frame, Next};
use crate::link_layer::LinkType;
use crate::packet::Timestamp;

pub(super) const HEADER: usize = 24;
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Longest accepted frame; longer frames are treated as damage. It is libpcap's own limit.
const MAX_FRAME: u32 = 262_144;

pub(super) struct Reader<R> {
    buffer: Buffer<R>,
    header: Header,
}

#[derive(Clone, Copy)]
pub(super) struct Header {
    order: Order,
    /// Nanoseconds per unit of the timestamp's fraction field.
    unit: i64,
    snap_length: Option<u32>,
    pub(super) link: LinkType,
}

impl Header {
    /// Parses a file header. Returns `None` if it is not pcap, or a variant that only libpcap can read.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let kinds = [Order::Little, Order::Big]
            .into_iter()
            .flat_map(|order| [(MICROSECONDS, order, 1000), (NANOSECONDS, order, 1)]);
        let magic = |order: Order| order.long(bytes, 0);
        let (_, order, unit) = kinds.into_iter().find(|(kind, order, _)| magic(*order) == Some(*kind))?;
        let version = (order.word(bytes, 4)?, order.word(bytes, 6)?);
        // The upper bits contain the length of the frame check sequence.
        let link = LinkType((order.long(bytes, 20)? & 0x03ff_ffff) as i32);
        let snap_length = order.long(bytes, 16).filter(|length| *length > 0);
        (version == (2, 4)).then_some(Self { order, unit, snap_length, link })
    }
}

impl<R: Read> Reader<R> {
    /// Creates a reader. `input` begins after the file header.
    pub(super) fn new(input: R, header: Header) -> Self {
        Self { buffer: Buffer::new(input), header }
    }

    pub(super) fn read(&mut self, number: &mut u64) -> Next<'_> {
        let frame = *number + 1;
        let damaged = |detail: String| Next::Damaged { frame, detail };
        let Header { order, unit, snap_length, link } = self.header;
        match self.buffer.fill(16) {
            Ok(true) => {}
            Ok(false) if self.buffer.rest().is_empty() => return Next::End,
            Ok(false) => return damaged("the file ends in the middle of a frame".to_owned()),
            Err(error) => return damaged(error.to_string()),
        }
        let long = |at| order.long(self.buffer.rest(), at).unwrap_or_default();
        let [seconds, fraction, captured, length] = [0, 4, 8, 12].map(long);
        if captured > MAX_FRAME {
            return damaged(format!("a frame of {captured} bytes"));
        }
        match self.buffer.fill(16 + captured as usize) {
            Ok(true) => {}
            Ok(false) => return damaged("the file ends in the middle of a frame".to_owned()),
            Err(error) => return damaged(error.to_string()),
        }
        self.buffer.take(16);
        let range = self.buffer.take(captured as usize);
        *number = frame;
        Next::Frame(Frame {
            number: frame,
            at: Timestamp(i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * unit),
            link,
            data: &self.buffer.bytes()[range],
            length: length.max(captured),
            snap_length,
        })
    }
}
