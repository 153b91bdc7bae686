//! The headers of an IP packet: their positions and their fields.
//!
//! This is the only header parser. It accepts truncated and damaged packets and reports what they contain.
//! [`crate::segment`] adds the checks of a receiver, and [`crate::rewrite`] changes headers in place.
//!
//! ```
//! use airwire::view::{TCP, View};
//!
//! // An ICMP error quotes only the beginning of a packet.
//! let quoted = [0x45, 0, 5, 220, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 19, 136];
//! let view = View::of(&quoted).unwrap();
//! assert_eq!((view.protocol, view.ports(), view.end), (TCP, Some([80, 5000]), 1500));
//! assert!(view.tcp().is_none() && !view.is_complete());
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum;
use crate::flags::{Ecn, Flags};
use crate::seq::Seq;

/// The IP protocol number of ICMP.
pub const ICMP: u8 = 1;
/// The IP protocol number of TCP.
pub const TCP: u8 = 6;
/// The IP protocol number of UDP.
pub const UDP: u8 = 17;
/// The IP protocol number of ICMPv6.
pub const ICMP_V6: u8 = 58;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;

/// The shortest IPv4 header.
const IPV4: usize = 20;
/// The IPv6 header without extension headers.
const IPV6: usize = 40;
/// The TCP header without options.
const TCP_HEADER: usize = 20;

/// An IP packet of which at least the fixed part of the IP header is present.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    bytes: &'a [u8],
    fixed: Fixed<'a>,
    /// Whether the packet has a routing header. The destination may then be an intermediate node.
    pub is_routed: bool,
    /// The protocol of the payload. It is an extension header if that header is truncated.
    pub protocol: u8,
    /// Offset of the payload, after the IP header and its extension headers.
    pub transport: usize,
    /// End of the packet according to its length field.
    pub end: usize,
    /// The fragment that the packet is. With IPv6, it may be atomic.
    pub fragment: Option<Fragment>,
}

/// The fixed part of the IP header.
#[derive(Clone, Copy, Debug)]
enum Fixed<'a> {
    V4(&'a [u8; IPV4]),
    V6(&'a [u8; IPV6]),
}

/// The reason why the bytes do not begin with an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHeader {
    /// The header is truncated: this number of bytes is required.
    Truncated(usize),
    /// The version is neither 4 nor 6.
    NotIp,
}

/// The position of a fragment in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The identification field.
    pub ident: u32,
    /// Offset of the data in bytes.
    pub offset: usize,
    /// Whether no fragment follows.
    pub is_last: bool,
}

impl Fragment {
    /// Returns whether the packet has only this fragment (RFC 6946).
    pub const fn is_atomic(self) -> bool {
        self.offset == 0 && self.is_last
    }
}

impl<'a> View<'a> {
    /// Reads the IP header, including the extension headers of IPv6 (RFC 8200 §4).
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Result<Self, NoHeader> {
        let mut view = Self::without_extensions(bytes)?;
        if !view.is_v4() {
            view.skip_extensions();
        }
        Ok(view)
    }

    /// Reads the IP header. An IPv6 extension header counts as the transport protocol.
    #[inline]
    pub fn without_extensions(bytes: &'a [u8]) -> Result<Self, NoHeader> {
        match bytes.first().map(|first| first >> 4) {
            Some(4) => {
                let header: &[u8; IPV4] = bytes.first_chunk().ok_or(NoHeader::Truncated(IPV4))?;
                let (ident, field) = (be16(header, 4), be16(header, 6));
                let (offset, is_last) = (usize::from(field & 0x1fff) * 8, field & 0x2000 == 0);
                let fragment = Fragment { ident: ident.into(), offset, is_last };
                Ok(Self {
                    bytes,
                    fixed: Fixed::V4(header),
                    is_routed: false,
                    protocol: header[9],
                    transport: usize::from(header[0] & 0x0f) * 4,
                    end: be16(header, 2).into(),
                    fragment: (!fragment.is_atomic()).then_some(fragment),
                })
            }
            Some(6) => {
                let header: &[u8; IPV6] = bytes.first_chunk().ok_or(NoHeader::Truncated(IPV6))?;
                Ok(Self {
                    bytes,
                    fixed: Fixed::V6(header),
                    is_routed: false,
                    protocol: header[6],
                    transport: IPV6,
                    end: IPV6 + usize::from(be16(header, 4)),
                    fragment: None,
                })
            }
            Some(_) => Err(NoHeader::NotIp),
            None => Err(NoHeader::Truncated(1)),
        }
    }

    /// Like [`Self::without_extensions`]. Returns `None` if the packet is not [complete](Self::is_complete).
    pub fn complete(bytes: &'a [u8]) -> Option<Self> {
        Self::without_extensions(bytes).ok().filter(Self::is_complete)
    }

    fn skip_extensions(&mut self) {
        while self.is_at_extension()
            && let Some(header) = self.payload().first_chunk()
        {
            let (next, len, fragment) = extension(self.protocol, header);
            self.is_routed |= self.protocol == ROUTING;
            self.protocol = next;
            self.transport += len;
            self.fragment = fragment.or(self.fragment);
            if self.is_later_fragment() {
                return;
            }
        }
    }

    fn is_at_extension(&self) -> bool {
        !self.is_v4() && matches!(self.protocol, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS)
    }

    /// Returns whether the packet is IPv4. Otherwise it is IPv6.
    #[inline]
    pub const fn is_v4(&self) -> bool {
        matches!(self.fixed, Fixed::V4(_))
    }

    /// Returns the source address.
    #[inline]
    pub fn source(&self) -> IpAddr {
        match self.fixed {
            Fixed::V4(header) => Ipv4Addr::from_bits(be32(header, 12)).into(),
            Fixed::V6(header) => Ipv6Addr::from_octets(std::array::from_fn(|byte| header[8 + byte])).into(),
        }
    }

    /// Returns the destination address.
    #[inline]
    pub fn destination(&self) -> IpAddr {
        match self.fixed {
            Fixed::V4(header) => Ipv4Addr::from_bits(be32(header, 16)).into(),
            Fixed::V6(header) => Ipv6Addr::from_octets(std::array::from_fn(|byte| header[24 + byte])).into(),
        }
    }

    /// Returns the bytes of both addresses, the source first.
    pub fn address_bytes(&self) -> &'a [u8] {
        match self.fixed {
            Fixed::V4(header) => &header[12..],
            Fixed::V6(header) => &header[8..],
        }
    }

    /// Returns the ECN field.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        match self.fixed {
            Fixed::V4(header) => Ecn::from_bits(header[1]),
            // The traffic class begins in the middle of the first byte.
            Fixed::V6(header) => Ecn::from_bits(header[1] >> 4),
        }
    }

    /// Returns the Differentiated Services Codepoint (RFC 2474).
    #[inline]
    pub fn dscp(&self) -> u8 {
        match self.fixed {
            Fixed::V4(header) => header[1] >> 2,
            Fixed::V6(header) => (header[0] << 4 | header[1] >> 4) >> 2,
        }
    }

    /// Returns the identification field. IPv4 only.
    #[inline]
    pub fn ident(&self) -> Option<u16> {
        match self.fixed {
            Fixed::V4(header) => Some(be16(header, 4)),
            Fixed::V6(_) => None,
        }
    }

    /// Returns whether the length field is zero, as in a jumbogram (RFC 2675).
    pub const fn is_length_zero(&self) -> bool {
        self.end == if self.is_v4() { 0 } else { IPV6 }
    }

    /// Returns whether the packet is a fragment without the transport header.
    pub fn is_later_fragment(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.offset > 0)
    }

    /// Returns whether all bytes that the length fields of the IP header promise are present. Extension
    /// headers are not considered.
    pub fn is_complete(&self) -> bool {
        let header = if self.is_v4() { self.transport } else { IPV6 };
        header >= IPV4 && header <= self.end && self.end <= self.bytes.len()
    }

    /// Returns whether the packet ends within its extension headers.
    pub fn is_cut_in_extensions(&self) -> bool {
        self.transport > self.end || !self.is_later_fragment() && self.is_at_extension()
    }

    /// Returns whether the IPv4 header is complete and has a wrong checksum.
    #[inline]
    pub fn is_header_damaged(&self) -> bool {
        match self.fixed {
            Fixed::V4(header) if self.transport == IPV4 => checksum::ipv4_header(header) != 0,
            Fixed::V4(_) => {
                self.bytes.get(..self.transport).is_some_and(|header| checksum::plain(header) != 0)
            }
            Fixed::V6(_) => false,
        }
    }

    /// Returns the bytes after the IP header and its extension headers, without padding that the link added.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        if self.transport < IPV4 {
            return &[];
        }
        self.bytes.get(self.transport..self.end.min(self.bytes.len())).unwrap_or_default()
    }

    /// Returns the source and destination ports of TCP or UDP.
    pub fn ports(&self) -> Option<[u16; 2]> {
        let has_ports = matches!(self.protocol, TCP | UDP) && !self.is_later_fragment();
        let ports = self.payload().get(..4).filter(|_| has_ports)?;
        Some([be16(ports, 0), be16(ports, 2)])
    }

    /// Returns the TCP segment, if its header is complete.
    #[inline]
    pub fn tcp(&self) -> Option<Tcp<'a>> {
        if self.protocol != TCP || self.is_later_fragment() {
            return None;
        }
        Tcp::read(self.payload())
    }
}

/// Reads an extension header of type `protocol`, or an authentication header, from its first eight bytes.
/// Returns the next protocol, the length in bytes, and the contents of a Fragment header.
pub fn extension(protocol: u8, header: &[u8; 8]) -> (u8, usize, Option<Fragment>) {
    let [next, units, ..] = *header;
    let field = be16(header, 2);
    let fragment =
        Fragment { ident: be32(header, 4), offset: usize::from(field & 0xfff8), is_last: field & 1 == 0 };
    match protocol {
        FRAGMENT => (next, 8, Some(fragment)),
        // RFC 4302 §2.2.
        AUTHENTICATION => (next, 4 * (usize::from(units) + 2), None),
        _ => (next, 8 * (usize::from(units) + 1), None),
    }
}

/// The fields of a TCP header up to the window (RFC 9293 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHeader {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: Seq,
    /// Acknowledgment number. Valid only with the ACK flag.
    pub ack: Seq,
    /// Length of the header with options, in bytes, according to the data offset.
    pub len: usize,
    /// All twelve bits that share bytes 12 and 13 with the data offset.
    pub flags: Flags,
    /// The window field, not scaled.
    pub window: u16,
}

impl TcpHeader {
    /// Reads the first 16 bytes of a header.
    #[inline]
    pub fn read(header: &[u8; 16]) -> Self {
        Self {
            src_port: be16(header, 0),
            dst_port: be16(header, 2),
            seq: Seq(be32(header, 4)),
            ack: Seq(be32(header, 8)),
            len: usize::from(header[12] >> 4) * 4,
            flags: Flags(be16(header, 12) & 0x0fff),
            window: be16(header, 14),
        }
    }
}

/// A TCP segment with a complete header. Its checksum is not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp<'a> {
    /// The fields up to the window.
    pub header: TcpHeader,
    /// The urgent pointer. Valid only with the URG flag.
    pub urgent: u16,
    /// The options with their padding.
    pub options: &'a [u8],
    /// The payload bytes.
    pub payload: &'a [u8],
}

impl<'a> Tcp<'a> {
    /// Reads a segment. Returns `None` if the header is shorter than 20 bytes or truncated.
    #[inline]
    pub fn read(segment: &'a [u8]) -> Option<Self> {
        let fixed: &[u8; TCP_HEADER] = segment.first_chunk()?;
        let header = TcpHeader::read(fixed.first_chunk()?);
        let options = segment.get(TCP_HEADER..header.len)?;
        Some(Self { header, urgent: be16(fixed, 18), options, payload: &segment[header.len..] })
    }

    /// Returns whether the segment only acknowledges: it has no payload, and is not a SYN, FIN or RST.
    pub fn is_pure_ack(&self) -> bool {
        let others = Flags::SYN.with(Flags::FIN).with(Flags::RST);
        let flags = self.header.flags;
        flags.contains(Flags::ACK) && !flags.intersects(others) && self.payload.is_empty()
    }
}

#[inline]
fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests;
