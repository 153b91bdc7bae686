//! Changes of headers in place. Checksums are updated incrementally (RFC 1624, equation 3), so a wrong
//! checksum stays wrong.

use std::net::SocketAddr;
use std::ops::Range;

use crate::segment::Flags;
use crate::view::{TcpHeader, View};

/// The result of an attempt to mark a packet instead of dropping it (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// The codepoint was ECT(0) or ECT(1) and is now CE.
    Marked,
    /// The packet already had the CE codepoint. It is unchanged.
    AlreadyMarked,
    /// The packet cannot be marked: it is Not-ECT, or not an IP packet.
    Impossible,
}

const CE: u8 = 3;

/// Sets the CE codepoint if the packet is ECN-capable.
pub fn mark_ce(packet: &mut [u8]) -> Marking {
    // The traffic class of IPv6 begins in the middle of the first byte.
    let (is_v4, shift) = match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => (true, 0),
        Some(6) if packet.len() >= 40 => (false, 4),
        _ => return Marking::Impossible,
    };
    match packet[1] >> shift & CE {
        0 => Marking::Impossible,
        CE => Marking::AlreadyMarked,
        _ if is_v4 => {
            let mut checksum = Checksum::of(packet, IPV4_CHECKSUM);
            let marked = u16::from_be_bytes([packet[0], packet[1] | CE]);
            checksum.replace(packet, 0, marked);
            checksum.store(packet, IPV4_CHECKSUM);
            Marking::Marked
        }
        _ => {
            packet[1] |= CE << shift;
            Marking::Marked
        }
    }
}

/// Offsets in the IPv4 header and in the TCP header.
const IPV4_CHECKSUM: usize = 10;
const DATA_OFFSET: usize = 12;
const TCP_CHECKSUM: usize = 16;
/// Length of a TCP header without options.
const TCP_HEADER: usize = 20;

/// Maximum length of TCP options in bytes (RFC 9293 §3.1).
pub const MAX_OPTIONS: usize = 40;

/// A TCP header and its position in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInPacket {
    is_v4: bool,
    /// Offset of the TCP header.
    tcp: usize,
    /// End of the IP packet. Padding may follow.
    end: usize,
    ends: (SocketAddr, SocketAddr),
    header: TcpHeader,
}

impl TcpInPacket {
    /// Finds the header. Returns `None` if the packet is incomplete or does not contain a TCP header.
    pub fn of(view: &View<'_>) -> Option<Self> {
        let header = view.tcp().filter(|_| view.is_complete())?.header;
        let source = SocketAddr::new(view.source(), header.src_port);
        let destination = SocketAddr::new(view.destination(), header.dst_port);
        let ends = (source, destination);
        Some(Self { is_v4: view.is_v4(), tcp: view.transport, end: view.end, ends, header })
    }

    /// Returns the source and the destination.
    pub const fn ends(&self) -> (SocketAddr, SocketAddr) {
        self.ends
    }

    /// Returns the fields of the header.
    pub const fn header(&self) -> &TcpHeader {
        &self.header
    }

    /// Returns the position of the segment, from its header to its end.
    pub const fn range(&self) -> Range<usize> {
        self.tcp..self.end
    }

    /// Returns the length of the payload in bytes.
    pub const fn payload_len(&self) -> usize {
        self.end - self.payload()
    }

    const fn payload(&self) -> usize {
        self.tcp + self.header.len
    }

    /// Returns the length of the IP packet if it had this many bytes of options.
    pub const fn length_with(&self, options: usize) -> usize {
        self.tcp + TCP_HEADER + options + self.payload_len()
    }

    /// Returns the options in the packet.
    pub fn options<'p>(&self, packet: &'p [u8]) -> &'p [u8] {
        &packet[self.tcp + TCP_HEADER..self.payload()]
    }

    /// Replaces the flags.
    pub fn set_flags(&mut self, packet: &mut [u8], flags: Flags) {
        self.header.flags = flags;
        let mut checksum = Checksum::of(packet, self.tcp + TCP_CHECKSUM);
        checksum.replace(packet, self.tcp + DATA_OFFSET, self.offset_and_flags());
        checksum.store(packet, self.tcp + TCP_CHECKSUM);
    }

    const fn offset_and_flags(&self) -> u16 {
        (self.header.len as u16 / 4) << 12 | self.header.flags.0 & 0x0fff
    }

    /// Replaces the options, and updates the lengths in the IP header.
    ///
    /// # Panics
    /// If `options` is not a multiple of 32 bits or is too long.
    pub fn set_options(&mut self, packet: &mut Vec<u8>, options: &[u8]) {
        assert!(options.len().is_multiple_of(4) && options.len() <= MAX_OPTIONS, "not legal as options");
        let from = self.tcp + TCP_HEADER;
        let old_range = self.range();
        let mut checksum = Checksum::of(packet, self.tcp + TCP_CHECKSUM);
        checksum.subtract(self.options(packet));
        checksum.add(options);

        self.end = self.length_with(options.len());
        packet.splice(from..self.payload(), options.iter().copied());
        self.header.len = TCP_HEADER + options.len();
        checksum.replace(packet, self.tcp + DATA_OFFSET, self.offset_and_flags());
        // The pseudo-header includes the length of the segment (RFC 9293 §3.1, RFC 8200 §8.1).
        checksum.change(old_range.len() as u16, self.range().len() as u16);
        checksum.store(packet, self.tcp + TCP_CHECKSUM);

        if self.is_v4 {
            let mut checksum = Checksum::of(packet, IPV4_CHECKSUM);
            checksum.replace(packet, 2, self.end as u16);
            checksum.store(packet, IPV4_CHECKSUM);
        } else {
            packet[4..6].copy_from_slice(&((self.end - 40) as u16).to_be_bytes());
        }
    }
}

/// An incrementally updated checksum: HC' = ~(~HC + ~m + m') for each 16-bit word m.
struct Checksum(u32);

impl Checksum {
    fn of(packet: &[u8], at: usize) -> Self {
        let checksum = u16::from_be_bytes([packet[at], packet[at + 1]]);
        Self(u32::from(!checksum))
    }

    fn change(&mut self, from: u16, to: u16) {
        self.0 += u32::from(!from) + u32::from(to);
    }

    /// Subtracts bytes that are removed from the packet. Their number must be even.
    fn subtract(&mut self, bytes: &[u8]) {
        for word in bytes.as_chunks().0 {
            self.change(u16::from_be_bytes(*word), 0);
        }
    }

    /// Adds bytes that are inserted into the packet. Their number must be even.
    fn add(&mut self, bytes: &[u8]) {
        for word in bytes.as_chunks().0 {
            self.change(0, u16::from_be_bytes(*word));
        }
    }

    /// Writes a word into the packet and updates the checksum.
    fn replace(&mut self, packet: &mut [u8], at: usize, value: u16) {
        let old = u16::from_be_bytes([packet[at], packet[at + 1]]);
        self.change(old, value);
        packet[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

    fn store(self, packet: &mut [u8], at: usize) {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        packet[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
