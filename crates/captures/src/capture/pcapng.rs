//! Reads pcapng files (draft-ietf-opsawg-pcapng), including files with several interfaces or damaged blocks.

use std::io::{self, Read};
use std::ops::Range;

use super::buffer::{Buffer, Order};
use super::{Frame, Next};
use crate::link_layer::LinkType;
use crate::packet::Timestamp;
use crate::problem::Problem;

/// The type of a section header block, which is a palindrome and so reads the same in both byte orders.
pub(super) const MAGIC: [u8; 4] = SECTION.to_be_bytes();

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// Longest accepted block; longer blocks are treated as garbage. The longest frames that libpcap writes have
/// 256 KiB, but name tables and TLS keys may be longer.
const MAX_BLOCK: usize = 16 << 20;
/// Maximum number of interfaces per section, which bounds the memory.
const MAX_INTERFACES: usize = 1 << 16;

pub(super) struct Reader<R> {
    buffer: Buffer<R>,
    order: Order,
    interfaces: Vec<Interface>,
    /// The timestamp of the last frame. A simple packet block does not have a timestamp and gets this one.
    last: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    snap_length: Option<u32>,
    resolution: Resolution,
    /// `if_tsoffset`, in seconds.
    offset: i64,
}

/// `if_tsresol`: the timestamp unit, as a power of 10 or of 2.
#[derive(Clone, Copy, Debug)]
enum Resolution {
    Decimal(u8),
    Binary(u8),
}

impl Interface {
    fn time(&self, units: u64) -> Timestamp {
        let units = u128::from(units);
        let nanos = match self.resolution {
            Resolution::Decimal(digits @ 0..=9) => units * 10_u128.pow(u32::from(9 - digits)),
            Resolution::Decimal(digits) => {
                10_u128.checked_pow(u32::from(digits - 9)).map_or(0, |per| units / per)
            }
            Resolution::Binary(bits) => (units * 1_000_000_000) >> bits,
        };
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        Timestamp(nanos.saturating_add(self.offset.saturating_mul(1_000_000_000)))
    }
}

/// The position of a frame in the buffer.
struct FrameSpan {
    interface: usize,
    units: Option<u64>,
    from: usize,
    captured: u32,
    length: u32,
}

/// The contents of a block.
enum Block {
    Frame(FrameSpan),
    Nothing,
    /// The lengths of the block are consistent, but its contents are invalid. The text describes them.
    Garbage(&'static str),
}

impl<R: Read> Reader<R> {
    pub(super) fn new(input: R) -> Self {
        let order = Order::Little;
        let interfaces = Vec::new();
        Self { buffer: Buffer::new(input), order, interfaces, last: Timestamp::default() }
    }

    pub(super) fn read(&mut self, number: &mut u64) -> Next<'_> {
        loop {
            let (length, skipped) = match self.find_block() {
                Ok(Some(found)) => found,
                Ok(None) => return Next::End,
                Err(detail) => return Next::Damaged { frame: *number + 1, detail },
            };
            if skipped > 0 {
                let detail = format!("{skipped} bytes");
                return Next::Flaw { problem: Problem::Garbage, frame: *number + 1, detail };
            }
            let range = self.buffer.take(length);
            match self.parse_block(range) {
                Block::Nothing => {}
                Block::Garbage(detail) => {
                    let (problem, frame) = (Problem::Garbage, *number + 1);
                    return Next::Flaw { problem, frame, detail: detail.to_owned() };
                }
                Block::Frame(span) => {
                    *number += 1;
                    let interface = self.interfaces[span.interface];
                    self.last = span.units.map_or(self.last, |units| interface.time(units));
                    return Next::Frame(Frame {
                        number: *number,
                        at: self.last,
                        link: interface.link,
                        data: &self.buffer.bytes()[span.from..span.from + span.captured as usize],
                        length: span.length.max(span.captured),
                        snap_length: interface.snap_length,
                    });
                }
            }
        }
    }

    /// Reads the next block into the buffer. Returns its length, and the number of skipped bytes.
    fn find_block(&mut self) -> Result<Option<(usize, u64)>, String> {
        let mut skipped = 0;
        let failed = |error: io::Error| error.to_string();
        if !self.buffer.fill(1).map_err(failed)? {
            return Ok(None);
        }
        loop {
            if let Some(length) = self.block_here(skipped > 0).map_err(failed)? {
                return Ok(Some((length, skipped)));
            }
            self.buffer.take(1);
            skipped += 1;
            if !self.buffer.fill(12).map_err(failed)? {
                return Err("the file ends in the middle of a block".to_owned());
            }
        }
    }

    /// Returns the length of the block that begins here, which must be the same at both ends of the block. If
    /// `lost` is set, the previous block's end is unknown, and only known block types are accepted to avoid
    /// false matches.
    fn block_here(&mut self, lost: bool) -> io::Result<Option<usize>> {
        if !self.buffer.fill(12)? {
            return Ok(None);
        }
        let here = self.buffer.rest();
        let is_section = here.starts_with(&MAGIC);
        let order = match is_section {
            false => self.order,
            true if Order::Big.long(here, 8) == Some(BYTE_ORDER) => Order::Big,
            true if Order::Little.long(here, 8) == Some(BYTE_ORDER) => Order::Little,
            true => return Ok(None),
        };
        let (Some(kind), Some(length)) = (order.long(here, 0), order.long(here, 4)) else { return Ok(None) };
        let length = length as usize;
        let is_known = is_section || (INTERFACE..=ENHANCED_PACKET).contains(&kind);
        if length < 12
            || !length.is_multiple_of(4)
            || length > MAX_BLOCK
            || (lost && !is_known)
            || !self.buffer.fill(length)?
        {
            return Ok(None);
        }
        let end = order.long(self.buffer.rest(), length - 4);
        Ok((end == Some(length as u32)).then_some(length))
    }

    fn parse_block(&mut self, range: Range<usize>) -> Block {
        let begin = range.start;
        let block = &self.buffer.bytes()[range];
        let body = &block[8..block.len() - 4];
        let order = self.order;
        let kind = order.long(block, 0).unwrap_or_default();
        match kind {
            _ if block.starts_with(&MAGIC) => {
                let little = Order::Little.long(body, 0) == Some(BYTE_ORDER);
                self.order = if little { Order::Little } else { Order::Big };
                self.interfaces.clear();
                Block::Nothing
            }
            INTERFACE => match interface(order, body).filter(|_| self.interfaces.len() < MAX_INTERFACES) {
                Some(interface) => {
                    self.interfaces.push(interface);
                    Block::Nothing
                }
                None => Block::Garbage("an invalid interface block"),
            },
            ENHANCED_PACKET | PACKET | SIMPLE_PACKET => self
                .frame(kind, body)
                .map(|span| Block::Frame(FrameSpan { from: begin + 8 + span.from, ..span }))
                .unwrap_or(Block::Garbage("an invalid packet block")),
            // Name resolution, statistics, decryption secrets and custom blocks.
            _ => Block::Nothing,
        }
    }

    /// Parses a packet block. `from` in the result is relative to the body.
    fn frame(&self, kind: u32, body: &[u8]) -> Option<FrameSpan> {
        let long = |at| self.order.long(body, at);
        let span = if kind == SIMPLE_PACKET {
            let length = long(0)?;
            let room = body.len() as u32 - 4;
            let captured = length.min(room).min(self.interfaces.first()?.snap_length.unwrap_or(u32::MAX));
            FrameSpan { interface: 0, units: None, from: 4, captured, length }
        } else {
            // The obsolete packet block has a 16-bit interface number, followed by a drop count.
            let interface =
                if kind == PACKET { u32::from(self.order.word(body, 0)?) } else { long(0)? } as usize;
            let units = u64::from(long(4)?) << 32 | u64::from(long(8)?);
            FrameSpan { interface, units: Some(units), from: 20, captured: long(12)?, length: long(16)? }
        };
        let fits = span.from + span.captured as usize <= body.len();
        (fits && span.interface < self.interfaces.len()).then_some(span)
    }
}

fn interface(order: Order, body: &[u8]) -> Option<Interface> {
    let link = LinkType(i32::from(order.word(body, 0)?));
    let snap_length = order.long(body, 4).filter(|length| *length > 0);
    let mut interface = Interface { link, snap_length, resolution: Resolution::Decimal(6), offset: 0 };
    let mut options = &body[8.min(body.len())..];
    while let (Some(code @ 1..), Some(length)) = (order.word(options, 0), order.word(options, 2)) {
        let length = usize::from(length);
        let value = options.get(4..4 + length)?;
        match (code, value) {
            (9, [resolution]) if resolution & 0x80 != 0 => {
                interface.resolution = Resolution::Binary(resolution & 0x7f);
            }
            (9, [resolution]) => interface.resolution = Resolution::Decimal(*resolution),
            (14, value) => {
                let offset = <[u8; 8]>::try_from(value).ok()?;
                interface.offset = match order {
                    Order::Big => i64::from_be_bytes(offset),
                    Order::Little => i64::from_le_bytes(offset),
                };
            }
            _ => {}
        }
        options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(interface)
}

#[cfg(test)]
mod tests;
