//! Segments on the wire: IPv4/IPv6 and TCP headers in and out, with every check that a receiver owes.
//!
//! What comes in and IPv6 are read and written by smoltcp (`smoltcp::wire`); options are [`crate::options`].

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use smoltcp::wire::{IpProtocol, Ipv4Packet, Ipv6Packet, TcpPacket};

use crate::options::Options;
use crate::seq::Seq;

/// The number of the protocol.
const TCP: u8 = 6;

/// The flag bits of octets 12 and 13 of the TCP header, reserved ones included: RFC 9293 §3.1 says to ignore
/// what one does not understand, but a transit agent writes there (E-TCP §III.A).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// No flag is set.
    pub const NONE: Self = Self(0);
    /// The sender has no more data.
    pub const FIN: Self = Self(0x001);
    /// The sequence number is the initial one.
    pub const SYN: Self = Self(0x002);
    /// The connection is reset.
    pub const RST: Self = Self(0x004);
    /// The application is to get the data at once.
    pub const PSH: Self = Self(0x008);
    /// The acknowledgment number means something.
    pub const ACK: Self = Self(0x010);
    /// The urgent pointer means something.
    pub const URG: Self = Self(0x020);
    /// The receiver has seen congestion marked (RFC 3168 §6.1); in a SYN, ECN is asked for.
    pub const ECE: Self = Self(0x040);
    /// The sender has answered an ECE by reducing its window (RFC 3168 §6.1).
    pub const CWR: Self = Self(0x080);
    /// Accurate ECN's AE, once NS.
    pub const AE: Self = Self(0x100);
    /// The three bits still reserved.
    pub const RESERVED: Self = Self(0xe00);

    /// All flags of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// At least one flag of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These flags and those of `other`.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These flags, except those of `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl std::fmt::Debug for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut any = false;
        for (bit, letter) in [
            (0x002, 'S'),
            (0x001, 'F'),
            (0x004, 'R'),
            (0x008, 'P'),
            (0x040, 'E'),
            (0x080, 'W'),
            (0x020, 'U'),
            (0x010, '.'),
        ] {
            if self.0 & bit != 0 {
                write!(f, "{letter}")?;
                any = true;
            }
        }
        if !any {
            write!(f, "-")?;
        }
        Ok(())
    }
}

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// The sender does not use ECN for this packet.
    #[default]
    NotEct,
    /// ECN-capable, the codepoint ECT(1).
    Ect1,
    /// ECN-capable, the codepoint ECT(0): what RFC 3168 senders use.
    Ect0,
    /// Congestion experienced: a queue has marked the packet instead of dropping it.
    Ce,
}

impl Ecn {
    /// From the two lowest bits; the others, the DSCP, are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The two bits as they stand in the header.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Ce => 3,
        }
    }
}

/// A TCP segment as it arrived, still pointing into the packet.
#[derive(Clone, Debug)]
pub struct Segment<'a> {
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
    /// SEG.SEQ: the number of the SYN, or else of the first octet of `payload`.
    pub seq: Seq,
    /// SEG.ACK: the next octet that the sender expects. Means something with the ACK flag only.
    pub ack: Seq,
    /// All twelve bits beside the data offset.
    pub flags: Flags,
    /// As it stands in the header, not scaled.
    pub window: u16,
    /// From the IP header.
    pub ecn: Ecn,
    /// Those that are understood; unknown ones are gone.
    pub options: Options,
    /// The octets of data.
    pub payload: &'a [u8],
}

impl Segment<'_> {
    /// SEG.LEN: data octets, and one each for SYN and FIN.
    pub fn seq_len(&self) -> u64 {
        self.payload.len() as u64
            + u64::from(self.flags.contains(Flags::SYN))
            + u64::from(self.flags.contains(Flags::FIN))
    }
}

/// Why a packet was not handed to any connection. Each is a counter of the host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum BadPacket {
    /// The packet ends before its headers, or what their length fields promise.
    #[error("shorter than its headers say")]
    Truncated,
    /// The version field is neither 4 nor 6.
    #[error("neither IPv4 nor IPv6")]
    NotIp,
    /// The IPv4 header's checksum is wrong. IPv6 has none.
    #[error("wrong IPv4 header checksum")]
    IpChecksum,
    /// Fragments are not put together again.
    #[error("a fragment: the path below must not fragment")]
    Fragment,
    /// The TCP checksum is wrong.
    #[error("wrong TCP checksum")]
    TcpChecksum,
    /// The checksum of an ICMP or ICMPv6 message is wrong.
    #[error("wrong ICMP checksum")]
    IcmpChecksum,
    /// An option's length does not fit: see [`Options::parse`].
    #[error("malformed TCP options")]
    Options,
    /// Port 0, or an address that is not unicast: see [`is_unicast`].
    #[error("source or destination that no TCP host can have")]
    Address,
    /// Neither TCP nor ICMP.
    #[error("a protocol this host does not speak")]
    Protocol,
}

/// The IP layer of a packet, taken off.
pub struct Ip<'a> {
    /// The source address.
    pub src: IpAddr,
    /// The destination address.
    pub dst: IpAddr,
    /// What `payload` is: behind the extension headers, if it is IPv6.
    pub protocol: IpProtocol,
    /// Of the traffic class or TOS octet.
    pub ecn: Ecn,
    /// What follows the IP header and its extensions, without padding that the link added.
    pub payload: &'a [u8],
}

/// Takes the IP header off, IPv6 extension headers included, after checking it. Fragments are refused.
pub fn parse_ip(packet: &[u8]) -> Result<Ip<'_>, BadPacket> {
    match packet.first().map(|b| b >> 4) {
        Some(4) => {
            let ip = Ipv4Packet::new_checked(packet).map_err(|_| BadPacket::Truncated)?;
            let header = usize::from(ip.header_len());
            if header < 20 {
                return Err(BadPacket::Truncated);
            }
            // Not smoltcp's own check, which is left out of fuzzing builds.
            let wrong = match packet.first_chunk() {
                Some(fixed) if header == 20 => crate::checksum::ipv4_header(fixed) != 0,
                _ => crate::checksum::plain(&packet[..header]) != 0,
            };
            if wrong {
                return Err(BadPacket::IpChecksum);
            }
            if ip.more_frags() || ip.frag_offset() != 0 {
                return Err(BadPacket::Fragment);
            }
            let total = usize::from(ip.total_len());
            Ok(Ip {
                src: IpAddr::V4(ip.src_addr()),
                dst: IpAddr::V4(ip.dst_addr()),
                protocol: ip.next_header(),
                ecn: Ecn::from_bits(ip.ecn()),
                payload: &packet[header..total],
            })
        }
        Some(6) => {
            let ip = Ipv6Packet::new_checked(packet).map_err(|_| BadPacket::Truncated)?;
            let end = 40 + usize::from(ip.payload_len());
            let (protocol, at) = skip_extension_headers(ip.next_header(), &packet[..end])?;
            Ok(Ip {
                src: IpAddr::V6(ip.src_addr()),
                dst: IpAddr::V6(ip.dst_addr()),
                protocol,
                ecn: Ecn::from_bits(ip.traffic_class()),
                payload: &packet[at..end],
            })
        }
        Some(_) => Err(BadPacket::NotIp),
        None => Err(BadPacket::Truncated),
    }
}

/// RFC 8200 §4: hop-by-hop, routing and destination options are stepped over.
fn skip_extension_headers(first: IpProtocol, packet: &[u8]) -> Result<(IpProtocol, usize), BadPacket> {
    let (mut protocol, mut at) = (first, 40);
    loop {
        match protocol {
            IpProtocol::HopByHop | IpProtocol::Ipv6Route | IpProtocol::Ipv6Opts => {
                let header = packet.get(at..at + 8).ok_or(BadPacket::Truncated)?;
                protocol = IpProtocol::from(header[0]);
                at += 8 * (usize::from(header[1]) + 1);
                if at > packet.len() {
                    return Err(BadPacket::Truncated);
                }
            }
            IpProtocol::Ipv6Frag => return Err(BadPacket::Fragment),
            _ => return Ok((protocol, at)),
        }
    }
}

/// Who has verified the TCP checksum of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verified {
    /// Nobody yet.
    NotYet,
    /// The device that brought it, whatever the field says.
    ByDevice,
}

/// Parses the TCP segment inside `ip`, checksum included.
pub fn parse_tcp<'a>(ip: &Ip<'a>) -> Result<Segment<'a>, BadPacket> {
    parse_tcp_of(ip, Verified::NotYet)
}

/// The same, where somebody else may have verified the checksum.
pub fn parse_tcp_of<'a>(ip: &Ip<'a>, verified: Verified) -> Result<Segment<'a>, BadPacket> {
    let tcp = TcpPacket::new_checked(ip.payload).map_err(|_| BadPacket::Truncated)?;
    if verified == Verified::NotYet && !crate::checksum::verify_transport(ip.src, ip.dst, TCP, ip.payload) {
        return Err(BadPacket::TcpChecksum);
    }
    if tcp.src_port() == 0 || tcp.dst_port() == 0 || !is_unicast(ip.src) || !is_unicast(ip.dst) {
        return Err(BadPacket::Address);
    }
    let header = usize::from(tcp.header_len());
    let options = Options::parse(&ip.payload[20..header]).ok_or(BadPacket::Options)?;
    Ok(Segment {
        src: SocketAddr::new(ip.src, tcp.src_port()),
        dst: SocketAddr::new(ip.dst, tcp.dst_port()),
        seq: Seq(tcp.seq_number().0 as u32),
        ack: Seq(tcp.ack_number().0 as u32),
        flags: Flags(u16::from(ip.payload[12] & 0x0f) << 8 | u16::from(ip.payload[13])),
        window: tcp.window_len(),
        ecn: ip.ecn,
        options,
        payload: &ip.payload[header..],
    })
}

/// RFC 9293 §3.9.2.3: a SYN from or to a broadcast or multicast address is dropped silently.
pub fn is_unicast(addr: IpAddr) -> bool {
    match addr {
        IpAddr::V4(a) => !(a.is_broadcast() || a.is_multicast() || a.is_unspecified()),
        IpAddr::V6(a) => !(a.is_multicast() || a.is_unspecified()),
    }
}

/// What leaves: everything about a segment but its payload.
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
    /// All twelve bits beside the data offset, reserved ones as they are given.
    pub flags: Flags,
    /// As it will stand in the header, scaled already.
    pub window: u16,
    /// For the IP header.
    pub ecn: Ecn,
    /// DSCP and ECN octet as the application set it; the ECN bits come from `ecn`.
    pub tos: u8,
    /// IPv4 time to live, IPv6 hop limit.
    pub ttl: u8,
    /// Don't fragment (RFC 1191). IPv4 only.
    pub dont_fragment: bool,
    /// IPv4 identification.
    pub ident: u16,
}

/// Overwrites `packet` with one whole IP packet: header, `options` (already padded), then `payload`, which may lie
/// in two pieces because a ring buffer wraps.
///
/// # Panics
/// If `src` and `dst` are not of one address family.
pub fn emit(packet: &mut Vec<u8>, header: &Header, options: &[u8], payload: (&[u8], &[u8])) {
    let len = payload.0.len() + payload.1.len();
    let tcp = emit_headers(packet, header, |packet| packet.extend_from_slice(options), len);
    packet.extend_from_slice(payload.0);
    packet.extend_from_slice(payload.1);
    sum(packet, tcp, header);
}

/// Puts the checksum into the TCP header that begins at `tcp`, as [`emit_headers`] returns it.
pub fn sum(packet: &mut [u8], tcp: usize, header: &Header) {
    let segment = &mut packet[tcp..];
    let sum = crate::checksum::transport(header.src.ip(), header.dst.ip(), TCP, segment);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
}

/// Overwrites `packet` with the headers of one whole IP packet, to which the caller appends the `len` octets of text. Its TCP
/// checksum is zero: [`sum`] or a device is to fill it in. `options` appends those, padded. Returns where the TCP header begins.
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
    // Timestamps are the only options of nearly all segments.
    packet.reserve(tcp + 32 + len);
    packet.extend_from_slice(&[0; 60][..tcp + 20]);
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
        // See Panics: a connection's two ends are of one family.
        _ => unreachable!("mixed address families"),
    }
    packet[tcp..tcp + 20].copy_from_slice(&tcp_header(header, tcp_len));
    tcp
}

/// RFC 791 §3.1, without options.
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

/// RFC 9293 §3.1, up to the options. There is no checksum yet, and no urgent pointer.
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
