//! A large segment from the kernel, cut into the segments that the wire would have carried.

use airwire::checksum;

use super::Header;
use super::tcp::{CWR, FIN, Headers, PSH, be16};

/// Packets as they are on the wire, made one by one of what the kernel has handed over.
#[derive(Debug)]
pub struct Pieces {
    /// What was read, and its length.
    packet: Box<[u8]>,
    len: usize,
    rest: Rest,
    /// The segment that was cut last.
    piece: Vec<u8>,
}

/// What has not been handed on.
#[derive(Clone, Copy, Debug)]
enum Rest {
    Nothing,
    Whole,
    /// Data from `at` on; `cut` segments were made of what is before.
    Segments {
        headers: Headers,
        mss: usize,
        at: usize,
        cut: u16,
    },
}

impl Pieces {
    /// Room for packets of up to `largest` octets.
    pub fn new(largest: usize) -> Self {
        Self { packet: vec![0; largest].into(), len: 0, rest: Rest::Nothing, piece: Vec::new() }
    }

    /// Where a device writes the next packet. What was left of the last one is gone.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.rest = Rest::Nothing;
        &mut self.packet
    }

    /// So many octets are there now, with this in front.
    pub(crate) fn filled(&mut self, len: usize, header: Header) {
        self.len = len;
        let packet = &mut self.packet[..len];
        self.rest = match header {
            Header::Whole => Rest::Whole,
            Header::Unsummed { start, offset } => {
                complete(packet, usize::from(start), usize::from(offset));
                Rest::Whole
            }
            Header::Segments { mss, .. } => match Headers::of(packet) {
                Some(headers) => Rest::Segments { headers, mss: usize::from(mss), at: headers.all(), cut: 0 },
                // Whoever reads it says what is wrong with it.
                None => Rest::Whole,
            },
        };
    }

    /// The next packet.
    pub fn next_packet(&mut self) -> Option<&[u8]> {
        match self.rest {
            Rest::Whole => {
                self.rest = Rest::Nothing;
                Some(&self.packet[..self.len])
            }
            Rest::Nothing | Rest::Segments { .. } => {
                let mut piece = std::mem::take(&mut self.piece);
                let found = self.next_into(&mut piece);
                self.piece = piece;
                found.then_some(&self.piece)
            }
        }
    }

    /// The length of the next packet; `None` if there is none.
    pub fn next_len(&self) -> Option<usize> {
        match self.rest {
            Rest::Nothing => None,
            Rest::Whole => Some(self.len),
            Rest::Segments { headers, mss, at, .. } => Some(headers.all() + mss.min(self.len - at)),
        }
    }

    /// Writes the next packet over what is in `packet`; `false` if there is none.
    pub fn next_into(&mut self, packet: &mut Vec<u8>) -> bool {
        match self.rest {
            Rest::Nothing => return false,
            Rest::Whole => {
                self.rest = Rest::Nothing;
                packet.clear();
                packet.extend_from_slice(&self.packet[..self.len]);
            }
            Rest::Segments { headers, mss, at, cut } => {
                let end = self.len.min(at + mss);
                let more = end < self.len;
                self.rest =
                    if more { Rest::Segments { headers, mss, at: end, cut: cut + 1 } } else { Rest::Nothing };
                packet.clear();
                packet.extend_from_slice(&self.packet[..headers.all()]);
                packet.extend_from_slice(&self.packet[at..end]);
                let piece = &mut packet[..];
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
                headers.set_checksum(piece);
            }
        }
        true
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
