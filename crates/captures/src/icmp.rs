//! ICMP errors about TCP packets: the sender of the error and its reason.

use std::net::{IpAddr, SocketAddr};

use airwire::view::{ICMP, TCP};
use serde::Serialize;

use super::encapsulation::{Bytes, End, HeaderParser, Layer};

text_enum! {
    /// The reason that an ICMP error states. `Display` describes it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum IcmpKind {
        /// The router does not have a route to the network.
        NetUnreachable => "network unreachable",
        /// The router does not have a route to the host.
        HostUnreachable => "host unreachable",
        /// The host does not support TCP.
        ProtocolUnreachable => "protocol unreachable",
        /// No process listens on the port. Firewalls send this error more often than hosts.
        PortUnreachable => "port unreachable",
        /// The packet exceeds the MTU of the next link: fragmentation needed (RFC 1191 §4) or packet too big (RFC
        /// 4443 §3.2).
        PacketTooBig => "packet too big",
        /// A source route cannot be followed.
        SourceRouteFailed => "source route failed",
        /// A policy prohibits the communication.
        Prohibited => "prohibited",
        /// The packet's TTL or hop limit expired.
        TtlExceeded => "TTL exceeded",
        /// Some fragments of the packet did not arrive in time.
        ReassemblyTimeExceeded => "fragments missing",
        /// A header of the packet is invalid.
        ParameterProblem => "parameter problem",
        /// The packet rate is too high. RFC 6633 deprecates this error.
        SourceQuench => "source quench",
    }
}

impl IcmpKind {
    /// Maps an ICMP type and code (RFC 792, RFC 1122 §3.2.2.1, RFC 1812 §5.2.7.1).
    fn v4(icmp_type: u8, code: u8) -> Option<Self> {
        Some(match (icmp_type, code) {
            (3, 0 | 6 | 11) => Self::NetUnreachable,
            (3, 1 | 7 | 8 | 12) => Self::HostUnreachable,
            (3, 2) => Self::ProtocolUnreachable,
            (3, 3) => Self::PortUnreachable,
            (3, 4) => Self::PacketTooBig,
            (3, 5) => Self::SourceRouteFailed,
            (3, 9 | 10 | 13..=15) => Self::Prohibited,
            (4, _) => Self::SourceQuench,
            (11, 0) => Self::TtlExceeded,
            (11, 1) => Self::ReassemblyTimeExceeded,
            (12, _) => Self::ParameterProblem,
            _ => return None,
        })
    }

    /// Maps an ICMPv6 type and code (RFC 4443 §3).
    fn v6(icmp_type: u8, code: u8) -> Option<Self> {
        Some(match (icmp_type, code) {
            (1, 0 | 2) => Self::NetUnreachable,
            (1, 3) => Self::HostUnreachable,
            (1, 4) => Self::PortUnreachable,
            (1, 1 | 5 | 6) => Self::Prohibited,
            (1, 7) => Self::SourceRouteFailed,
            (2, _) => Self::PacketTooBig,
            (3, 0) => Self::TtlExceeded,
            (3, 1) => Self::ReassemblyTimeExceeded,
            (4, _) => Self::ParameterProblem,
            _ => return None,
        })
    }

    /// Returns whether the error means that a SYN cannot reach its destination.
    pub fn is_unreachable(self) -> bool {
        !matches!(self, Self::PacketTooBig | Self::SourceQuench)
    }
}

/// An ICMP error about a TCP packet. It quotes the beginning of that packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// The reason.
    pub kind: IcmpKind,
    /// The ICMP type.
    pub icmp_type: u8,
    /// The ICMP code.
    pub code: u8,
    /// The address that sent the error.
    pub from: IpAddr,
    /// The MTU of the next link, if the packet was too big for this link. Routers older than RFC 1191 do not
    /// report the MTU.
    pub mtu: Option<u32>,
    /// Source and destination of the TCP packet.
    pub about: [SocketAddr; 2],
}

/// Parses a message of this protocol. Returns `None` unless it is an error about a TCP packet.
pub(crate) fn read(protocol: u8, from: IpAddr, message: &[u8]) -> Option<IcmpError> {
    let [icmp_type, code, _, _, rest @ ..]: [u8; 8] = *message.first_chunk::<8>()?;
    let (kind, mtu) = match protocol {
        ICMP => (IcmpKind::v4(icmp_type, code)?, u32::from(u16::from_be_bytes([rest[2], rest[3]]))),
        _ => (IcmpKind::v6(icmp_type, code)?, u32::from_be_bytes(rest)),
    };
    // The message quotes only the beginning of the packet (RFC 792, RFC 4443 §2.4).
    let about = Bytes::new(&message[8..], usize::from(u16::MAX));
    let (ip, tcp) = match HeaderParser::default().parse(Layer::Ip, about).ok()? {
        End::Tcp(ip, bytes) => (ip, bytes),
        End::Fragment(fragment) if fragment.header.offset == 0 && fragment.protocol == TCP => {
            (fragment.ip, fragment.bytes)
        }
        End::Fragment(_) => return None,
    };
    let about = [SocketAddr::new(ip.src, tcp.word(0).ok()?), SocketAddr::new(ip.dst, tcp.word(2).ok()?)];
    let mtu = (kind == IcmpKind::PacketTooBig && mtu > 0).then_some(mtu);
    Some(IcmpError { kind, icmp_type, code, from, mtu, about })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_icmp_error_is_ignored() {
        let inner = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 15, 160, 0, 80];
        let icmp = [3, 4, 0, 0, 0, 0, 5, 120];
        let complete = [&icmp[..], &inner].concat();
        let router = IpAddr::from([10, 0, 0, 9]);
        let error = read(ICMP, router, &complete).unwrap();
        assert_eq!((error.kind, error.mtu), (IcmpKind::PacketTooBig, Some(1400)));
        assert_eq!(error.about.map(|end| end.to_string()), ["10.0.0.1:4000", "10.0.0.2:80"]);
        for len in 0..complete.len() {
            assert_eq!(read(ICMP, router, &complete[..len]), None, "{len}");
        }
    }
}
