//! ICMP errors about TCP packets: who says that a packet went no further, and why.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

use super::encapsulation::{End, Layer, Octets, Walk};
use super::ip;

/// What an error says. `Display` says it to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IcmpKind {
    /// There is no way to the network.
    NetUnreachable,
    /// There is no way to the host.
    HostUnreachable,
    /// The host has no TCP.
    ProtocolUnreachable,
    /// Nobody listens, says a firewall more often than a host.
    PortUnreachable,
    /// Fragmentation needed (RFC 1191 §4), packet too big (RFC 4443 §3.2): longer than the next link's MTU.
    PacketTooBig,
    /// A source route cannot be followed.
    SourceRouteFailed,
    /// An administrator forbids it.
    Prohibited,
    /// It had passed as many routers as it may.
    TtlExceeded,
    /// Not all of its fragments came.
    ReassemblyTimeExceeded,
    /// A header that cannot be.
    ParameterProblem,
    /// Too much at a time; nobody sends that any more (RFC 6633).
    SourceQuench,
}

impl IcmpKind {
    /// RFC 792, RFC 1122 §3.2.2.1, RFC 1812 §5.2.7.1.
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

    /// RFC 4443 §3.
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

    /// Whether a SYN that meets it goes nowhere.
    pub fn is_unreachable(self) -> bool {
        !matches!(self, Self::PacketTooBig | Self::SourceQuench)
    }
}

impl fmt::Display for IcmpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NetUnreachable => "network unreachable",
            Self::HostUnreachable => "host unreachable",
            Self::ProtocolUnreachable => "protocol unreachable",
            Self::PortUnreachable => "port unreachable",
            Self::PacketTooBig => "packet too big",
            Self::SourceRouteFailed => "source route failed",
            Self::Prohibited => "prohibited",
            Self::TtlExceeded => "TTL exceeded",
            Self::ReassemblyTimeExceeded => "fragments missing",
            Self::ParameterProblem => "parameter problem",
            Self::SourceQuench => "source quench",
        })
    }
}

/// An error about a TCP packet, of which it has the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// What it says.
    pub kind: IcmpKind,
    /// The type, as it stands in the message.
    pub icmp_type: u8,
    /// The code, as it stands in the message.
    pub code: u8,
    /// Who says so.
    pub from: IpAddr,
    /// The MTU of the next link, if the packet was too big for it. Routers before RFC 1191 left it out.
    pub mtu: Option<u32>,
    /// From where the packet came, and where it was going.
    pub about: [SocketAddr; 2],
}

pub(crate) const ICMP: u8 = 1;
pub(crate) const ICMP_V6: u8 = 58;

/// Reads a message of this protocol, from `from`. `None` unless it is an error about TCP.
pub(crate) fn read(protocol: u8, from: IpAddr, message: &[u8]) -> Option<IcmpError> {
    let [icmp_type, code, _, _, rest @ ..]: [u8; 8] = *message.first_chunk::<8>()?;
    let (kind, mtu) = match protocol {
        ICMP => (IcmpKind::v4(icmp_type, code)?, u32::from(u16::from_be_bytes([rest[2], rest[3]]))),
        _ => (IcmpKind::v6(icmp_type, code)?, u32::from_be_bytes(rest)),
    };
    // Of the packet that it is about a message has only the beginning (RFC 792, RFC 4443 §2.4).
    let about = Octets::new(&message[8..], usize::from(u16::MAX));
    let (ip, tcp) = match Walk::default().follow(Layer::Ip, about).ok()? {
        End::Tcp(ip, octets) => (ip, octets),
        End::Fragment(piece) if piece.offset == 0 && piece.protocol == ip::TCP => (piece.ip, piece.octets),
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
    fn no_beginning_of_an_error_makes_it_fail() {
        let inner = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 15, 160, 0, 80];
        let icmp = [3, 4, 0, 0, 0, 0, 5, 120];
        let whole = [&icmp[..], &inner].concat();
        let router = IpAddr::from([10, 0, 0, 9]);
        let error = read(ICMP, router, &whole).unwrap();
        assert_eq!((error.kind, error.mtu), (IcmpKind::PacketTooBig, Some(1400)));
        assert_eq!(error.about.map(|end| end.to_string()), ["10.0.0.1:4000", "10.0.0.2:80"]);
        for len in 0..whole.len() {
            assert_eq!(read(ICMP, router, &whole[..len]), None, "{len}");
        }
    }
}
