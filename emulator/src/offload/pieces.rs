//! Splits a large packet from the kernel into the segments that the wire would have carried.

use std::ops::Range;

use airwire::checksum;
use airwire::segment::Verified;

use super::Header;
use super::tcp::{CWR, FIN, Headers, PSH, be16};

/// Packets as on the wire, created one by one from a read.
#[derive(Debug)]
pub struct Pieces {
    /// Buffer of the last read, and the length of its contents.
    packet: Box<[u8]>,
    len: usize,
    /// The headers of a packet to be split. Each segment gets a copy in front of its data, over the data of
    /// the one before.
    headers: Vec<u8>,
    rest: Rest,
}

/// The part of the last read that was not returned yet.
#[derive(Clone, Copy, Debug)]
enum Rest {
    Nothing,
    Whole(Sum),
    /// Data from `at` on. `cut` segments precede it.
    Segments {
        headers: Headers,
        mss: usize,
        at: usize,
        cut: u16,
    },
}

/// State of a packet's checksum.
#[derive(Clone, Copy, Debug)]
enum Sum {
    /// The checksum that the sender wrote.
    Written,
    /// The sum of the pseudo-header, `offset` bytes after `start`. The kernel leaves the rest to the device.
    Partial { start: usize, offset: usize },
    /// Unusable, because the packet was split.
    Missing(Headers),
}

impl Pieces {
    /// Creates a buffer for packets of up to `largest` bytes.
    pub fn new(largest: usize) -> Self {
        Self { packet: vec![0; largest].into(), len: 0, headers: Vec::new(), rest: Rest::Nothing }
    }

    /// Returns the buffer for the next read. The rest of the last read is discarded.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.rest = Rest::Nothing;
        &mut self.packet
    }

    /// Accepts a read of `len` bytes that was preceded by `header`.
    pub(crate) fn filled(&mut self, len: usize, header: Header) {
        self.len = len;
        let packet = &self.packet[..len];
        self.rest = match header {
            Header::Whole => Rest::Whole(Sum::Written),
            Header::Unsummed { start, offset } => {
                Rest::Whole(Sum::Partial { start: usize::from(start), offset: usize::from(offset) })
            }
            Header::Segments { mss, .. } => match Headers::of(packet) {
                Some(headers) => {
                    self.headers.clear();
                    self.headers.extend_from_slice(&packet[..headers.all()]);
                    Rest::Segments { headers, mss: usize::from(mss), at: headers.all(), cut: 0 }
                }
                // Pass it on unchanged. The reader reports the error.
                None => Rest::Whole(Sum::Written),
            },
        };
    }

    /// Returns the next packet.
    pub fn next_packet(&mut self) -> Option<&[u8]> {
        let (place, sum) = self.next_place()?;
        let packet = &mut self.packet[place];
        match sum {
            Sum::Written => {}
            Sum::Partial { start, offset } => complete(packet, start, offset),
            Sum::Missing(headers) => headers.set_checksum(packet),
        }
        Some(packet)
    }

    /// Returns the next packet for a host that trusts the kernel. Checksums that the kernel left to the
    /// device are not computed, because they are correct by definition.
    pub fn next_unsummed(&mut self) -> Option<(&[u8], Verified)> {
        let (place, sum) = self.next_place()?;
        let verified = match sum {
            Sum::Written => Verified::NotYet,
            Sum::Partial { .. } | Sum::Missing(_) => Verified::ByDevice,
        };
        Some((&self.packet[place], verified))
    }

    /// Length of the next packet. `None`: there is none.
    pub fn next_len(&self) -> Option<usize> {
        match self.rest {
            Rest::Nothing => None,
            Rest::Whole(_) => Some(self.len),
            Rest::Segments { headers, mss, at, .. } => Some(headers.all() + mss.min(self.len - at)),
        }
    }

    /// Replaces the contents of `packet` with the next packet. `false`: there is none.
    pub fn next_into(&mut self, packet: &mut Vec<u8>) -> bool {
        let Some(next) = self.next_packet() else { return false };
        packet.clear();
        packet.extend_from_slice(next);
        true
    }

    /// Position of the next packet.
    fn next_place(&mut self) -> Option<(Range<usize>, Sum)> {
        match self.rest {
            Rest::Nothing => None,
            Rest::Whole(sum) => {
                self.rest = Rest::Nothing;
                Some((0..self.len, sum))
            }
            Rest::Segments { headers, mss, at, cut } => {
                let end = self.len.min(at + mss);
                let more = end < self.len;
                self.rest =
                    if more { Rest::Segments { headers, mss, at: end, cut: cut + 1 } } else { Rest::Nothing };
                let place = at - headers.all()..end;
                let piece = &mut self.packet[place.clone()];
                piece[..headers.all()].copy_from_slice(&self.headers);
                if headers.is_v4(piece) {
                    let ident = be16(piece, 4).wrapping_add(cut);
                    piece[4..6].copy_from_slice(&ident.to_be_bytes());
                }
                let seq = headers.seq(piece).wrapping_add((at - headers.all()) as u32);
                piece[headers.ip + 4..headers.ip + 8].copy_from_slice(&seq.to_be_bytes());
                let flags = &mut piece[headers.ip + 13];
                *flags &= if cut > 0 { !CWR } else { !0 };
                *flags &= if more { !(PSH | FIN) } else { !0 };
                headers.set_length(piece, piece.len());
                Some((place, Sum::Missing(headers)))
            }
        }
    }
}

/// Offset of the checksum in a UDP header.
const UDP_CHECKSUM: usize = 6;

/// Completes a checksum that so far contains only the sum of the pseudo-header.
fn complete(packet: &mut [u8], start: usize, offset: usize) {
    if packet.len() < start + offset + 2 {
        return;
    }
    let sum = checksum::plain(&packet[start..]);
    // RFC 768: a UDP checksum of 0 means that there is none. 0xffff has the same value in one's complement.
    let sum = if sum == 0 && offset == UDP_CHECKSUM { 0xffff } else { sum };
    packet[start + offset..start + offset + 2].copy_from_slice(&sum.to_be_bytes());
}
