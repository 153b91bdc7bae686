//! Reads and writes segments: IPv4, IPv6 and TCP headers, with every check that a receiver must make.
//!
//! [`crate::view`] finds the headers, and [`crate::options`] handles the TCP options. smoltcp
//! (`smoltcp::wire`) names the protocols and writes IPv6 headers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use smoltcp::wire::{IpProtocol, Ipv6Packet};

pub use crate::flags::{Ecn, Flags};
use crate::options::Options;
use crate::seq::Seq;
use crate::text::{Known, Text};
use crate::view::{NoHeader, TCP, Tcp, View};

/// A received TCP segment, which still points into the packet.
#[derive(Clone, Debug)]
pub struct Segment<'a> {
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
    /// SEG.SEQ: the sequence number of the SYN, if the segment has one, otherwise of the first byte of
    /// `payload`.
    pub seq: Seq,
    /// SEG.ACK: the next byte that the sender of this segment expects. Valid only with the ACK flag.
    pub ack: Seq,
    /// All twelve bits that share bytes 12 and 13 with the data offset.
    pub flags: Flags,
    /// The window field of the header, not scaled.
    pub window: u16,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// The known options. Unknown options are dropped.
    pub options: Options,
    /// The payload.
    pub payload: Text<'a>,
}

impl Segment<'_> {
    /// SEG.LEN: the number of payload bytes, plus one each for SYN and FIN.
    pub fn seq_len(&self) -> u64 {
        self.payload.len() as u64
            + u64::from(self.flags.contains(Flags::SYN))
            + u64::from(self.flags.contains(Flags::FIN))
    }
}

/// The reason why a packet was not passed to any connection. The host counts each reason.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum BadPacket {
    /// The packet is shorter than its headers, or than their length fields say.
    #[error("shorter than its headers say")]
    Truncated,
    /// The version field is neither 4 nor 6.
    #[error("neither IPv4 nor IPv6")]
    NotIp,
    /// The IPv4 header's checksum is wrong. An IPv6 header does not have a checksum.
    #[error("wrong IPv4 header checksum")]
    IpChecksum,
    /// The packet is a fragment. Fragments are not reassembled.
    #[error("a fragment: the path below must not fragment")]
    Fragment,
    /// The TCP checksum is wrong.
    #[error("wrong TCP checksum")]
    TcpChecksum,
    /// The checksum of an ICMP or ICMPv6 message is wrong.
    #[error("wrong ICMP checksum")]
    IcmpChecksum,
    /// The length of an option is invalid: see [`Options::parse`].
    #[error("malformed TCP options")]
    Options,
    /// Port 0, or an address that is not unicast: see [`is_unicast`].
    #[error("source or destination that no TCP host can have")]
    Address,
    /// The protocol is neither TCP nor ICMP.
    #[error("a protocol this host does not speak")]
    Protocol,
}

/// A packet whose IP headers have been parsed and removed.
pub struct Ip<'a> {
    /// The source address.
    pub src: IpAddr,
    /// The destination address.
    pub dst: IpAddr,
    /// The protocol of `payload`. With IPv6, this is the protocol after the extension headers.
    pub protocol: IpProtocol,
    /// The ECN field, from the TOS or traffic class byte.
    pub ecn: Ecn,
    /// The bytes after the IP header and its extension headers, without padding that the link added.
    pub payload: &'a [u8],
    /// Length of the payload on the wire. An abbreviated packet has fewer bytes in `payload`.
    len: usize,
}

/// Checks and removes the IP header, including IPv6 extension headers.
///
/// # Errors
/// If the headers are truncated or damaged, or the packet is a fragment.
#[inline]
pub fn parse_ip(packet: &[u8]) -> Result<Ip<'_>, BadPacket> {
    let view = view(packet)?;
    if !view.is_complete() {
        return Err(BadPacket::Truncated);
    }
    if view.is_header_damaged() {
        return Err(BadPacket::IpChecksum);
    }
    ip(&view)
}

/// Like [`parse_ip`], for a packet of this process that may be [abbreviated](abbreviate). Does not verify the
/// checksum of the header.
///
/// # Errors
/// If the headers are truncated, or the packet is a fragment.
#[inline]
pub fn parse_abbreviated_ip(packet: &[u8]) -> Result<Ip<'_>, BadPacket> {
    ip(&view(packet)?)
}

#[inline]
fn view(packet: &[u8]) -> Result<View<'_>, BadPacket> {
    View::of(packet).map_err(|error| match error {
        NoHeader::Truncated(_) => BadPacket::Truncated,
        NoHeader::NotIp => BadPacket::NotIp,
    })
}

#[inline]
fn ip<'a>(view: &View<'a>) -> Result<Ip<'a>, BadPacket> {
    if view.fragment.is_some() {
        return Err(BadPacket::Fragment);
    }
    if view.is_cut_in_extensions() {
        return Err(BadPacket::Truncated);
    }
    Ok(Ip {
        src: view.source(),
        dst: view.destination(),
        protocol: view.protocol.into(),
        ecn: view.ecn(),
        payload: view.payload(),
        len: view.end - view.transport,
    })
}

/// Ends an abbreviated packet, of which only the headers have been written: appends the position of its text
/// instead of the text. The length field of the IP header counts the text. The text must be longer than the
/// position, because this is how [`parse_tcp`] recognises an abbreviated packet.
#[inline]
pub fn abbreviate(packet: &mut Vec<u8>, text: Known) {
    packet.extend_from_slice(&text.start().to_be_bytes());
}

/// Whether the TCP checksum of a packet has been verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verified {
    /// The checksum has not been verified yet.
    NotYet,
    /// The network device has verified the checksum, so the content of the field does not matter.
    ByDevice,
}

/// Parses a packet with a TCP segment, and verifies all checksums.
///
/// # Errors
/// As [`parse_ip`] and [`parse_tcp`], and if the protocol is not TCP.
pub fn parse(packet: &[u8]) -> Result<Segment<'_>, BadPacket> {
    let ip = parse_ip(packet)?;
    if ip.protocol != IpProtocol::Tcp {
        return Err(BadPacket::Protocol);
    }
    parse_tcp(&ip, Verified::NotYet)
}

/// Parses the TCP segment inside `ip`, and verifies its checksum unless the device has done so.
///
/// # Errors
/// If the header is truncated or malformed, the checksum is wrong, or no TCP host can have the addresses.
#[inline]
pub fn parse_tcp<'a>(ip: &Ip<'a>, verified: Verified) -> Result<Segment<'a>, BadPacket> {
    let Tcp { header, options, payload, .. } = Tcp::read(ip.payload).ok_or(BadPacket::Truncated)?;
    if verified == Verified::NotYet && !crate::checksum::verify_transport(ip.src, ip.dst, TCP, ip.payload) {
        return Err(BadPacket::TcpChecksum);
    }
    if header.src_port == 0 || header.dst_port == 0 || !is_unicast(ip.src) || !is_unicast(ip.dst) {
        return Err(BadPacket::Address);
    }
    Ok(Segment {
        src: SocketAddr::new(ip.src, header.src_port),
        dst: SocketAddr::new(ip.dst, header.dst_port),
        seq: header.seq,
        ack: header.ack,
        flags: header.flags,
        window: header.window,
        ecn: ip.ecn,
        options: Options::parse(options).ok_or(BadPacket::Options)?,
        payload: text(payload, ip.len.saturating_sub(header.len)),
    })
}

/// Returns the text of a segment. `len` is its length on the wire.
#[inline]
fn text(payload: &[u8], len: usize) -> Text<'_> {
    match payload.first_chunk() {
        Some(position) if len > payload.len() => {
            let start = u64::from_be_bytes(*position);
            Text::Known(Known::new(start..start.saturating_add(len as u64)))
        }
        _ => Text::Bytes(payload),
    }
}

/// Parses a packet of this process that may be [abbreviated](abbreviate), in the usual form: IPv4 without options,
/// and TCP. Returns `None` for any other packet, which [`parse_abbreviated_ip`] and [`parse_tcp`] parse.
///
/// Takes half the instructions of these functions, because the addresses are not moved.
#[inline]
pub fn parse_usual_abbreviated(packet: &[u8]) -> Option<Segment<'_>> {
    let (ip, segment) = packet.split_first_chunk::<20>()?;
    // The length of the text, without padding that the link added, is at least the length of its position.
    let len = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let is_fragment = ip[6] & 0x3f != 0 || ip[7] != 0;
    if ip[0] != 0x45 || ip[9] != TCP || is_fragment || len < packet.len() {
        return None;
    }
    let Tcp { header, options, payload, .. } = Tcp::read(segment)?;
    let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
    let (src, dst) = (address(12), address(16));
    let is_unicast = is_unicast(src.into()) && is_unicast(dst.into());
    if header.src_port == 0 || header.dst_port == 0 || !is_unicast {
        return None;
    }
    Some(Segment {
        src: SocketAddrV4::new(src, header.src_port).into(),
        dst: SocketAddrV4::new(dst, header.dst_port).into(),
        seq: header.seq,
        ack: header.ack,
        flags: header.flags,
        window: header.window,
        ecn: Ecn::from_bits(ip[1]),
        options: Options::parse(options)?,
        payload: text(payload, len - ip.len() - header.len),
    })
}

/// Returns whether a TCP host can have this address. RFC 9293 §3.9.2.3 requires SYNs from or to a broadcast
/// or multicast address to be silently discarded.
pub fn is_unicast(addr: IpAddr) -> bool {
    match addr {
        IpAddr::V4(a) => !(a.is_broadcast() || a.is_multicast() || a.is_unspecified()),
        IpAddr::V6(a) => !(a.is_multicast() || a.is_unspecified()),
    }
}

/// The headers of an outgoing segment: everything except options and payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port, of the same family as `src`.
    pub dst: SocketAddr,
    /// SEG.SEQ.
    pub seq: Seq,
    /// SEG.ACK; 0 by convention if the ACK flag is not set.
    pub ack: Seq,
    /// All twelve bits that share bytes 12 and 13 with the data offset, including the reserved bits.
    pub flags: Flags,
    /// The window field of the header, already scaled.
    pub window: u16,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// The TOS or traffic class byte that the application set. Its ECN bits are ignored in favour of `ecn`.
    pub tos: u8,
    /// IPv4 time to live, IPv6 hop limit.
    pub ttl: u8,
    /// The don't-fragment flag (RFC 1191). IPv4 only.
    pub dont_fragment: bool,
    /// The IPv4 identification field.
    pub ident: u16,
}

/// Maximum length of a TCP header.
const LONGEST_HEADER: usize = 60;

/// Overwrites `packet` with one complete IP packet: headers, `options` (already padded), then `payload`,
/// which consists of two slices because a ring buffer wraps.
///
/// # Panics
/// If `src` and `dst` are not of one address family.
pub fn emit(packet: &mut Vec<u8>, header: &Header, options: &[u8], payload: (&[u8], &[u8])) {
    let len = payload.0.len() + payload.1.len();
    reserve(packet, len);
    let tcp = emit_headers(packet, header, |packet| packet.extend_from_slice(options), len);
    packet.extend_from_slice(payload.0);
    packet.extend_from_slice(payload.1);
    fill_checksum(packet, tcp, header);
}

/// Clears `packet`, and reserves memory for the longest headers and `len` bytes of payload.
pub fn reserve(packet: &mut Vec<u8>, len: usize) {
    packet.clear();
    packet.reserve(40 + LONGEST_HEADER + len);
}

/// Writes the checksum into the TCP header that begins at `tcp`, the offset that [`emit_headers`] returns.
pub fn fill_checksum(packet: &mut [u8], tcp: usize, header: &Header) {
    let segment = &mut packet[tcp..];
    let sum = crate::checksum::transport(header.src.ip(), header.dst.ip(), TCP, segment);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
}

/// Overwrites `packet` with the headers of one IP packet, and returns the offset of the TCP header.
///
/// `options` appends the padded options. The caller appends the `len` bytes of payload, for which it may
/// [reserve] memory before. The TCP checksum is zero: [`fill_checksum`] or a device must fill it in.
///
/// # Panics
/// If `src` and `dst` are not of one address family.
pub fn emit_headers(
    packet: &mut Vec<u8>,
    header: &Header,
    options: impl FnOnce(&mut Vec<u8>),
    len: usize,
) -> usize {
    let tcp = if header.src.is_ipv4() { 20 } else { 40 };
    packet.clear();
    packet.reserve(tcp + LONGEST_HEADER);
    match header.src {
        SocketAddr::V4(_) => packet.extend_from_slice(&[0; 40]),
        SocketAddr::V6(_) => packet.extend_from_slice(&[0; 60]),
    }
    options(packet);
    let tcp_len = packet.len() - tcp;
    let total = packet.len() + len;
    let tos = header.tos & 0xfc | header.ecn.bits();
    match (header.src.ip(), header.dst.ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            packet[..20].copy_from_slice(&ipv4_header(header, tos, total as u16, src, dst));
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let mut ip = Ipv6Packet::new_unchecked(&mut packet[..]);
            ip.set_version(6);
            ip.set_traffic_class(tos);
            ip.set_flow_label(0);
            ip.set_payload_len((total - 40) as u16);
            ip.set_next_header(IpProtocol::Tcp);
            ip.set_hop_limit(header.ttl);
            ip.set_src_addr(src);
            ip.set_dst_addr(dst);
        }
        // Excluded by the contract (see Panics): both ends of a connection have the same family.
        _ => unreachable!("mixed address families"),
    }
    packet[tcp..tcp + 20].copy_from_slice(&tcp_header(header, tcp_len));
    tcp
}

/// Returns an IPv4 header without options (RFC 791 §3.1).
#[inline]
fn ipv4_header(header: &Header, tos: u8, total: u16, src: Ipv4Addr, dst: Ipv4Addr) -> [u8; 20] {
    const DONT_FRAGMENT: u8 = 0x40;
    let [len_high, len_low] = total.to_be_bytes();
    let [ident_high, ident_low] = header.ident.to_be_bytes();
    let flags = if header.dont_fragment { DONT_FRAGMENT } else { 0 };
    let mut out = [0; 20];
    out[..9].copy_from_slice(&[0x45, tos, len_high, len_low, ident_high, ident_low, flags, 0, header.ttl]);
    out[9] = TCP;
    out[12..16].copy_from_slice(&src.octets());
    out[16..].copy_from_slice(&dst.octets());
    let sum = crate::checksum::ipv4_header(&out);
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    out
}

/// Returns a TCP header without options (RFC 9293 §3.1). The checksum and the urgent pointer are zero.
#[inline]
fn tcp_header(header: &Header, len: usize) -> [u8; 20] {
    let mut out = [0; 20];
    out[..2].copy_from_slice(&header.src.port().to_be_bytes());
    out[2..4].copy_from_slice(&header.dst.port().to_be_bytes());
    out[4..8].copy_from_slice(&header.seq.0.to_be_bytes());
    out[8..12].copy_from_slice(&header.ack.0.to_be_bytes());
    out[12] = (len as u8 / 4) << 4 | (header.flags.0 >> 8) as u8 & 0x0f;
    out[13] = header.flags.0 as u8;
    out[14..16].copy_from_slice(&header.window.to_be_bytes());
    out
}
