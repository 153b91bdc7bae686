//! A large segment from the kernel, cut into the segments that the wire would have carried.

use std::ops::Range;

use airwire::checksum;
use airwire::segment::Verified;

use super::Header;
use super::tcp::{CWR, FIN, Headers, PSH, be16};

/// Packets as they are on the wire, made one by one of what the kernel has handed over.
#[derive(Debug)]
pub struct Pieces {
    /// What was read, and its length.
    packet: Box<[u8]>,
    len: usize,
    /// The headers in front of segments: each gets its own in front of its text, where the text of the one before was.
    headers: Vec<u8>,
    rest: Rest,
}

/// What has not been handed on.
#[derive(Clone, Copy, Debug)]
enum Rest {
    Nothing,
    Whole(Sum),
    /// Text from `at` on; `cut` segments were made of what is before.
    Segments {
        headers: Headers,
        mss: usize,
        at: usize,
        cut: u16,
    },
}

/// What is in the place of a packet's checksum.
#[derive(Clone, Copy, Debug)]
enum Sum {
    /// Whatever its sender has written.
    Written,
    /// The sum of the pseudo-header, `offset` behind `start`: the kernel leaves the rest to the device.
    Partial { start: usize, offset: usize },
    /// Nothing of use, in a segment that was cut.
    Missing(Headers),
}

impl Pieces {
    /// Room for packets of up to `largest` octets.
    pub fn new(largest: usize) -> Self {
        Self { packet: vec![0; largest].into(), len: 0, headers: Vec::new(), rest: Rest::Nothing }
    }

    /// Where a device writes the next packet. What was left of the last one is gone.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.rest = Rest::Nothing;
        &mut self.packet
    }

    /// So many octets are there now, with this in front.
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
                // Whoever reads it says what is wrong with it.
                None => Rest::Whole(Sum::Written),
            },
        };
    }

    /// The next packet.
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

    /// The next packet, for a host that takes the kernel's word for it: a checksum that the kernel has left to the device is not
    /// computed, since it is right by definition.
    pub fn next_unsummed(&mut self) -> Option<(&[u8], Verified)> {
        let (place, sum) = self.next_place()?;
        let verified = match sum {
            Sum::Written => Verified::NotYet,
            Sum::Partial { .. } | Sum::Missing(_) => Verified::ByDevice,
        };
        Some((&self.packet[place], verified))
    }

    /// The length of the next packet; `None` if there is none.
    pub fn next_len(&self) -> Option<usize> {
        match self.rest {
            Rest::Nothing => None,
            Rest::Whole(_) => Some(self.len),
            Rest::Segments { headers, mss, at, .. } => Some(headers.all() + mss.min(self.len - at)),
        }
    }

    /// Writes the next packet over what is in `packet`; `false` if there is none.
    pub fn next_into(&mut self, packet: &mut Vec<u8>) -> bool {
        let Some(next) = self.next_packet() else { return false };
        packet.clear();
        packet.extend_from_slice(next);
        true
    }

    /// Where the next packet is.
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

/// From the beginning of a UDP header to its checksum.
const UDP_CHECKSUM: usize = 6;

/// Adds what the sum of the pseudo-header at its place lacks.
fn complete(packet: &mut [u8], start: usize, offset: usize) {
    if packet.len() < start + offset + 2 {
        return;
    }
    let sum = checksum::plain(&packet[start..]);
    // RFC 768: to UDP zero says that there is none; it has the same number in another way.
    let sum = if sum == 0 && offset == UDP_CHECKSUM { 0xffff } else { sum };
    packet[start + offset..start + offset + 2].copy_from_slice(&sum.to_be_bytes());
}
