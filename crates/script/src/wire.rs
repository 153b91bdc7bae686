//! Conversion between bytes and the script's segments, with smoltcp. It shares no code with the host's own
//! codec, so that each checks the other.

use std::net::{IpAddr, SocketAddr};

use smoltcp::wire::{IpAddress, IpProtocol, IpVersion, Ipv4Packet, Ipv6Packet, TcpPacket, checksum};

use super::ast::{Flags, IcmpKind, TcpOption};

const TCP_HEADER: usize = 20;

/// A TCP packet with the numbers that it has on the wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
    /// Type of service or traffic class, including the ECN bits.
    pub tos: u8,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Nine bits: the flags of RFC 9293, and AE.
    pub flags: Flags,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number, whether or not ACK is set.
    pub ack: u32,
    /// The window field, unscaled.
    pub win: u16,
    /// The urgent pointer.
    pub urg: u16,
    /// Options in the order of the header.
    pub options: Vec<TcpOption>,
    /// The data.
    pub payload: Vec<u8>,
}

impl Packet {
    /// Parses an IP packet and verifies the IP and TCP checksums.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (src, dst, tos, ttl, segment) = split_ip(bytes)?;
        let tcp = TcpPacket::new_checked(segment).map_err(|_| "the TCP header is truncated".to_owned())?;
        if !tcp.verify_checksum(&IpAddress::from(src), &IpAddress::from(dst)) {
            return Err("the TCP checksum is wrong".to_owned());
        }
        Ok(Self {
            src: SocketAddr::new(src, tcp.src_port()),
            dst: SocketAddr::new(dst, tcp.dst_port()),
            tos,
            ttl,
            flags: Flags(u16::from(segment[13]) | u16::from(segment[12] & 1) << 8),
            seq: tcp.seq_number().0 as u32,
            ack: tcp.ack_number().0 as u32,
            win: tcp.window_len(),
            urg: tcp.urgent_at(),
            options: parse_options(&segment[TCP_HEADER..usize::from(tcp.header_len())])?,
            payload: segment[usize::from(tcp.header_len())..].to_vec(),
        })
    }

    /// Returns the IP packet with valid checksums.
    pub fn bytes(&self) -> Vec<u8> {
        let mut segment = vec![0; TCP_HEADER];
        segment[0..2].copy_from_slice(&self.src.port().to_be_bytes());
        segment[2..4].copy_from_slice(&self.dst.port().to_be_bytes());
        segment[4..8].copy_from_slice(&self.seq.to_be_bytes());
        segment[8..12].copy_from_slice(&self.ack.to_be_bytes());
        segment[14..16].copy_from_slice(&self.win.to_be_bytes());
        segment[18..20].copy_from_slice(&self.urg.to_be_bytes());
        for option in &self.options {
            push_option(&mut segment, option);
        }
        segment.resize(segment.len().next_multiple_of(4), 0);
        segment[12] = (segment.len() as u8 / 4) << 4 | (self.flags.0 >> 8) as u8;
        segment[13] = self.flags.0 as u8;
        segment.extend_from_slice(&self.payload);
        let (src, dst) = (self.src.ip(), self.dst.ip());
        TcpPacket::new_unchecked(&mut segment).fill_checksum(&IpAddress::from(src), &IpAddress::from(dst));
        wrap_ip(src, dst, self.tos, self.ttl, IpProtocol::Tcp, &segment)
    }
}

/// Clears PSH in a TCP packet, for comparisons that ignore it.
pub fn clear_push(bytes: &mut [u8]) {
    let Ok((src, dst, .., segment)) = split_ip(bytes) else { return };
    let start = bytes.len() - segment.len();
    if segment.len() < TCP_HEADER {
        return;
    }
    bytes[start + 13] &= !(Flags::PSH.0 as u8);
    TcpPacket::new_unchecked(&mut bytes[start..]).fill_checksum(&IpAddress::from(src), &IpAddress::from(dst));
}

/// An ICMP error from `router` about a packet from `host` to `peer`, whose header it quotes.
pub(crate) struct IcmpError {
    pub(crate) router: IpAddr,
    pub(crate) host: SocketAddr,
    pub(crate) peer: SocketAddr,
    /// Type and code.
    pub(crate) numbers: (u8, u8),
    pub(crate) mtu: u32,
    pub(crate) quoted_seq: u32,
    pub(crate) quoted_len: u32,
}

impl IcmpError {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let quoted = Packet {
            src: self.host,
            dst: self.peer,
            tos: 0,
            ttl: 64,
            flags: Flags::ACK,
            seq: self.quoted_seq,
            ack: 0,
            win: 0,
            urg: 0,
            options: Vec::new(),
            payload: vec![0; self.quoted_len as usize],
        }
        .bytes();
        let (v6, header) = (self.host.is_ipv6(), if self.host.is_ipv6() { 40 } else { 20 });
        // Quote the minimum of RFC 792: the IP header and eight more bytes.
        let mut message = vec![self.numbers.0, self.numbers.1, 0, 0];
        message.extend_from_slice(&self.mtu.to_be_bytes());
        message.extend_from_slice(&quoted[..header + 8]);
        let protocol = if v6 { IpProtocol::Icmpv6 } else { IpProtocol::Icmp };
        let pseudo_header = match v6 {
            true => {
                let (src, dst) = (IpAddress::from(self.router), IpAddress::from(self.host.ip()));
                checksum::pseudo_header(&src, &dst, protocol, message.len() as u32)
            }
            false => 0,
        };
        let sum = !checksum::combine(&[pseudo_header, checksum::data(&message)]);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        wrap_ip(self.router, self.host.ip(), 0, 64, protocol, &message)
    }
}

/// Returns type and code of an ICMP line. `None` if the message does not exist in this IP version.
/// `type_3 code_4` gives the numbers directly.
pub(crate) fn icmp_numbers(kind: &IcmpKind, v6: bool) -> Option<(u8, u8)> {
    const V4_UNREACHABLE: [(&str, u8); 16] = [
        ("net_unreachable", 0),
        ("host_unreachable", 1),
        ("protocol_unreachable", 2),
        ("port_unreachable", 3),
        ("frag_needed", 4),
        ("source_route_failed", 5),
        ("net_unknown", 6),
        ("host_unknown", 7),
        ("source_host_isolated", 8),
        ("net_prohibited", 9),
        ("host_prohibited", 10),
        ("net_unreachable_for_tos", 11),
        ("host_unreachable_for_tos", 12),
        ("packet_filtered", 13),
        ("precedence_violation", 14),
        ("precedence_cutoff", 15),
    ];
    // packetdrill's names, and three of RFC 4443.
    const V6_UNREACHABLE: [(&str, u8); 9] = [
        ("net_unreachable", 0),
        ("no_route", 0),
        ("admin_prohibited", 1),
        ("not_neighbour", 2),
        ("beyond_scope", 2),
        ("address_unreachable", 3),
        ("host_unreachable", 3),
        ("port_unreachable", 4),
        ("policy_failed", 5),
    ];
    const TIME_EXCEEDED: [(&str, u8); 4] = [
        ("ttl_exceeded", 0),
        ("exceeded_hop_limit", 0),
        ("frag_time_exceeded", 1),
        ("exceeded_frag_time", 1),
    ];
    const V6_PARAMETER: [(&str, u8); 3] =
        [("header_field", 0), ("unknown_next_header", 1), ("unknown_option", 2)];
    let (number, codes): (u8, &[(&str, u8)]) = match (kind.kind.as_str(), v6) {
        ("unreachable", false) => (3, &V4_UNREACHABLE),
        ("unreachable", true) => (1, &V6_UNREACHABLE),
        ("source_quench", false) => (4, &[]),
        ("redirect", false) => (5, &[]),
        ("time_exceeded", false) => (11, &TIME_EXCEEDED),
        ("time_exceeded", true) => (3, &TIME_EXCEEDED),
        ("parameter_problem", false) => (12, &[]),
        ("parameter_problem", true) => (4, &V6_PARAMETER),
        ("packet_too_big", true) => (2, &[]),
        (other, _) => (other.strip_prefix("type_")?.parse().ok()?, &[]),
    };
    let code = match &kind.code {
        None => 0,
        Some(name) => match codes.iter().find(|(known, _)| known == name) {
            Some((_, code)) => *code,
            None => name.strip_prefix("code_")?.parse().ok()?,
        },
    };
    Some((number, code))
}

/// Returns the length of these options in a header, without padding.
pub(crate) fn options_len(options: &[TcpOption]) -> usize {
    let mut bytes = Vec::new();
    options.iter().for_each(|option| push_option(&mut bytes, option));
    bytes.len()
}

fn push_option(into: &mut Vec<u8>, option: &TcpOption) {
    match option {
        TcpOption::Eol => into.push(0),
        TcpOption::Nop => into.push(1),
        TcpOption::Mss(mss) => {
            into.extend_from_slice(&[2, 4]);
            into.extend_from_slice(&mss.to_be_bytes());
        }
        TcpOption::WindowScale(shift) => into.extend_from_slice(&[3, 3, *shift]),
        TcpOption::SackPermitted => into.extend_from_slice(&[4, 2]),
        TcpOption::Sack(blocks) => {
            into.extend_from_slice(&[5, (2 + 8 * blocks.len()) as u8]);
            for (left, right) in blocks {
                into.extend_from_slice(&left.to_be_bytes());
                into.extend_from_slice(&right.to_be_bytes());
            }
        }
        TcpOption::Timestamps { val, ecr } => {
            into.extend_from_slice(&[8, 10]);
            into.extend_from_slice(&val.unwrap_or(0).to_be_bytes());
            into.extend_from_slice(&ecr.unwrap_or(0).to_be_bytes());
        }
        TcpOption::Unknown { kind, data } => {
            into.extend_from_slice(&[*kind, (2 + data.len()) as u8]);
            into.extend_from_slice(data);
        }
    }
}

fn parse_options(mut bytes: &[u8]) -> Result<Vec<TcpOption>, String> {
    let word = |data: &[u8]| u32::from_be_bytes([data[0], data[1], data[2], data[3]]);
    let mut options = Vec::new();
    while let Some(&kind) = bytes.first() {
        if kind < 2 {
            options.push(if kind == 0 { TcpOption::Eol } else { TcpOption::Nop });
            bytes = &bytes[1..];
            continue;
        }
        let length = bytes.get(1).map_or(0, |&length| usize::from(length));
        if length < 2 || length > bytes.len() {
            return Err(format!("TCP option {kind} extends beyond the header"));
        }
        let data = &bytes[2..length];
        options.push(match (kind, data.len()) {
            (2, 2) => TcpOption::Mss(u16::from_be_bytes([data[0], data[1]])),
            (3, 1) => TcpOption::WindowScale(data[0]),
            (4, 0) => TcpOption::SackPermitted,
            (5, n) if n > 0 && n % 8 == 0 => {
                TcpOption::Sack(data.chunks(8).map(|block| (word(block), word(&block[4..]))).collect())
            }
            (8, 8) => TcpOption::Timestamps { val: Some(word(data)), ecr: Some(word(&data[4..])) },
            _ => TcpOption::Unknown { kind, data: data.to_vec() },
        });
        bytes = &bytes[length..];
    }
    Ok(options)
}

fn split_ip(bytes: &[u8]) -> Result<(IpAddr, IpAddr, u8, u8, &[u8]), String> {
    let (version, src, dst, tos, ttl, protocol, header, total) = match IpVersion::of_packet(bytes) {
        Ok(IpVersion::Ipv4) => {
            let ip = Ipv4Packet::new_checked(bytes).map_err(|_| "the IPv4 header is truncated".to_owned())?;
            if !ip.verify_checksum() {
                return Err("the IPv4 header checksum is wrong".to_owned());
            }
            let (src, dst) = (IpAddr::V4(ip.src_addr()), IpAddr::V4(ip.dst_addr()));
            let (header, total) = (usize::from(ip.header_len()), usize::from(ip.total_len()));
            ("IPv4", src, dst, bytes[1], ip.hop_limit(), ip.next_header(), header, total)
        }
        Ok(IpVersion::Ipv6) => {
            let ip = Ipv6Packet::new_checked(bytes).map_err(|_| "the IPv6 header is truncated".to_owned())?;
            let (src, dst) = (IpAddr::V6(ip.src_addr()), IpAddr::V6(ip.dst_addr()));
            let (header, total) = (ip.header_len(), ip.total_len());
            ("IPv6", src, dst, ip.traffic_class(), ip.hop_limit(), ip.next_header(), header, total)
        }
        Err(_) => return Err("the packet is neither IPv4 nor IPv6".to_owned()),
    };
    if total != bytes.len() {
        let len = bytes.len();
        return Err(format!(
            "the {version} header gives a length of {total} bytes, but the packet has {len}"
        ));
    }
    if protocol != IpProtocol::Tcp {
        return Err(format!("the packet is {protocol}, not TCP"));
    }
    Ok((src, dst, tos, ttl, &bytes[header..]))
}

/// Adds an IP header. Both addresses have the same IP version, because a script uses only one.
fn wrap_ip(src: IpAddr, dst: IpAddr, tos: u8, ttl: u8, protocol: IpProtocol, payload: &[u8]) -> Vec<u8> {
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut bytes = vec![0; 20 + payload.len()];
            bytes[1] = tos;
            let mut ip = Ipv4Packet::new_unchecked(&mut bytes);
            ip.set_version(4);
            ip.set_header_len(20);
            ip.set_total_len((20 + payload.len()) as u16);
            ip.set_dont_frag(true);
            ip.set_hop_limit(ttl);
            ip.set_next_header(protocol);
            ip.set_src_addr(src);
            ip.set_dst_addr(dst);
            ip.fill_checksum();
            ip.payload_mut().copy_from_slice(payload);
            bytes
        }
        (src, dst) => {
            let v6 = |addr| match addr {
                IpAddr::V4(addr) => std::net::Ipv4Addr::to_ipv6_mapped(&addr),
                IpAddr::V6(addr) => addr,
            };
            let mut bytes = vec![0; 40 + payload.len()];
            let mut ip = Ipv6Packet::new_unchecked(&mut bytes);
            ip.set_version(6);
            ip.set_traffic_class(tos);
            ip.set_payload_len(payload.len() as u16);
            ip.set_next_header(protocol);
            ip.set_hop_limit(ttl);
            ip.set_src_addr(v6(src));
            ip.set_dst_addr(v6(dst));
            ip.payload_mut().copy_from_slice(payload);
            bytes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(src: &str, dst: &str) -> Packet {
        Packet {
            src: src.parse().unwrap(),
            dst: dst.parse().unwrap(),
            tos: 0x12,
            ttl: 63,
            flags: Flags::ACK.with(Flags::PSH).with(Flags::AE),
            seq: 0xffff_fff0,
            ack: 7,
            win: 1000,
            urg: 3,
            options: vec![
                TcpOption::Mss(1460),
                TcpOption::SackPermitted,
                TcpOption::Timestamps { val: Some(1), ecr: Some(2) },
                TcpOption::Nop,
                TcpOption::WindowScale(8),
                TcpOption::Sack(vec![(1, 2)]),
                TcpOption::Unknown { kind: 254, data: vec![1, 2] },
                TcpOption::Eol,
            ],
            payload: b"payload".to_vec(),
        }
    }

    #[test]
    fn packet_round_trips_in_ipv4_and_ipv6() {
        for (src, dst) in [("192.0.2.1:80", "192.168.0.1:8080"), ("[2001:db8::1]:80", "[fd3d::1]:8080")] {
            let mut packet = packet(src, dst);
            let read = Packet::parse(&packet.bytes()).unwrap();
            // The header is padded to a multiple of 4 bytes with end-of-list options.
            packet.options.extend(vec![TcpOption::Eol; read.options.len() - packet.options.len()]);
            assert_eq!(read, packet);
        }
    }

    #[test]
    fn flipped_bit_fails_tcp_checksum() {
        let bytes = packet("192.0.2.1:80", "192.168.0.1:8080").bytes();
        for at in [20, 24, 33, bytes.len() - 1] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            assert_eq!(Packet::parse(&bytes).unwrap_err(), "the TCP checksum is wrong", "byte {at}");
        }
        let mut short = bytes.clone();
        short.pop();
        assert!(Packet::parse(&short).is_err());
    }

    #[test]
    fn clearing_psh_keeps_checksum_valid() {
        let mut packet = packet("[2001:db8::1]:80", "[fd3d::1]:8080");
        let mut bytes = packet.bytes();
        clear_push(&mut bytes);
        packet.flags = packet.flags.without(Flags::PSH);
        assert_eq!(bytes, packet.bytes());
    }

    #[test]
    fn icmp_error_has_valid_checksum_and_quotes_ports() {
        let error = IcmpError {
            router: "192.0.2.9".parse().unwrap(),
            host: "192.168.0.1:8080".parse().unwrap(),
            peer: "192.0.2.1:5000".parse().unwrap(),
            numbers: (3, 4),
            mtu: 1000,
            quoted_seq: 0x0102_0304,
            quoted_len: 1460,
        };
        let bytes = error.bytes();
        assert_eq!(checksum::data(&bytes[20..]), 0xffff);
        assert_eq!(bytes[26..28], [3, 232]);
        assert_eq!(bytes[48..56], [0x1f, 0x90, 0x13, 0x88, 1, 2, 3, 4]);
    }
}
