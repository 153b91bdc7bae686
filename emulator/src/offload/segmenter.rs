//! Splits a large packet from the kernel into the segments that the wire would have carried.

use std::ops::Range;

use airwire::checksum;
use airwire::segment::Verified;

use super::Header;
use super::tcp::{CWR, FIN, Headers, PSH, be16};

/// Packets as on the wire, created one by one from a read.
#[derive(Debug)]
pub struct Segmenter {
    /// Buffer of the last read, and the length of its contents.
    packet: Box<[u8]>,
    len: usize,
    /// The headers of a packet to be split. Each segment needs a copy directly before its data, where it
    /// overwrites the data of the previous segment.
    headers: Vec<u8>,
    remaining: Remaining,
}

/// The part of the last read that has not been returned.
#[derive(Clone, Copy, Debug)]
enum Remaining {
    Nothing,
    Whole(Checksum),
    /// The data that starts at `at`, after `count` segments.
    Segments {
        headers: Headers,
        mss: usize,
        at: usize,
        count: u16,
    },
}

/// State of a packet's checksum.
#[derive(Clone, Copy, Debug)]
enum Checksum {
    /// The checksum that the sender wrote.
    Written,
    /// The sum of the pseudo-header, `offset` bytes after `start`. The device computes the rest.
    Partial { start: usize, offset: usize },
    /// Unusable, because the packet was split.
    Missing(Headers),
}

impl Segmenter {
    /// Creates a buffer for packets of up to `max_len` bytes.
    pub fn new(max_len: usize) -> Self {
        Self { packet: vec![0; max_len].into(), len: 0, headers: Vec::new(), remaining: Remaining::Nothing }
    }

    /// Returns the buffer for the next read, and discards the remaining data of the last one.
    pub(crate) fn read_buffer(&mut self) -> &mut [u8] {
        self.remaining = Remaining::Nothing;
        &mut self.packet
    }

    /// Accepts a read of `len` bytes that was preceded by `header`.
    pub(crate) fn accept_read(&mut self, len: usize, header: Header) {
        self.len = len;
        let packet = &self.packet[..len];
        self.remaining = match header {
            Header::Whole => Remaining::Whole(Checksum::Written),
            Header::Unsummed { start, offset } => {
                Remaining::Whole(Checksum::Partial { start: usize::from(start), offset: usize::from(offset) })
            }
            Header::Segments { mss, .. } => match Headers::of(packet) {
                Some(headers) => {
                    self.headers.clear();
                    self.headers.extend_from_slice(&packet[..headers.len()]);
                    Remaining::Segments { headers, mss: usize::from(mss), at: headers.len(), count: 0 }
                }
                // Pass it on unchanged. The reader reports the error.
                None => Remaining::Whole(Checksum::Written),
            },
        };
    }

    /// Returns the next packet.
    pub fn next_packet(&mut self) -> Option<&[u8]> {
        let (range, sum) = self.next_range()?;
        let packet = &mut self.packet[range];
        match sum {
            Checksum::Written => {}
            Checksum::Partial { start, offset } => complete(packet, start, offset),
            Checksum::Missing(headers) => headers.set_checksum(packet),
        }
        Some(packet)
    }

    /// Returns the next packet for a host that trusts the kernel. Checksums that the kernel left to the
    /// device are not computed, because they are correct by definition.
    pub fn next_unsummed(&mut self) -> Option<(&[u8], Verified)> {
        let (range, sum) = self.next_range()?;
        let verified = match sum {
            Checksum::Written => Verified::NotYet,
            Checksum::Partial { .. } | Checksum::Missing(_) => Verified::ByDevice,
        };
        Some((&self.packet[range], verified))
    }

    /// Length of the next packet. `None`: there is none.
    pub fn next_len(&self) -> Option<usize> {
        match self.remaining {
            Remaining::Nothing => None,
            Remaining::Whole(_) => Some(self.len),
            Remaining::Segments { headers, mss, at, .. } => Some(headers.len() + mss.min(self.len - at)),
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
    fn next_range(&mut self) -> Option<(Range<usize>, Checksum)> {
        match self.remaining {
            Remaining::Nothing => None,
            Remaining::Whole(sum) => {
                self.remaining = Remaining::Nothing;
                Some((0..self.len, sum))
            }
            Remaining::Segments { headers, mss, at, count } => {
                let end = self.len.min(at + mss);
                let more = end < self.len;
                self.remaining = if more {
                    Remaining::Segments { headers, mss, at: end, count: count + 1 }
                } else {
                    Remaining::Nothing
                };
                let range = at - headers.len()..end;
                let segment = &mut self.packet[range.clone()];
                segment[..headers.len()].copy_from_slice(&self.headers);
                if headers.is_v4(segment) {
                    let ident = be16(segment, 4).wrapping_add(count);
                    segment[4..6].copy_from_slice(&ident.to_be_bytes());
                }
                let seq = headers.seq(segment).wrapping_add((at - headers.len()) as u32);
                segment[headers.ip + 4..headers.ip + 8].copy_from_slice(&seq.to_be_bytes());
                let flags = &mut segment[headers.ip + 13];
                *flags &= if count > 0 { !CWR } else { !0 };
                *flags &= if more { !(PSH | FIN) } else { !0 };
                headers.set_length(segment, segment.len());
                Some((range, Checksum::Missing(headers)))
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
