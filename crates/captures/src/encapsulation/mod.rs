//! Removes the headers around a TCP packet one by one: link layers, tags and tunnels in any order.
//!
//! The parsers are hand-written. etherparse is well maintained, but it supports none of the tunnels, and only
//! two of these link layers (Ethernet and Linux cooked). Using it for the rest would need more code than it
//! saves. pnet_packet has been inactive since 2024.

mod ethernet;
mod octets;
mod tunnel;
mod wireless;

pub(crate) use octets::Octets;
pub(crate) use wireless::{ppi, radiotap};

use airwire::view::{Fragment, ICMP, ICMP_V6, TCP, UDP};

use super::ip::{self, Ip};
use super::link_layer::LinkType;
use super::other::Other;
use super::problem::Problem;

/// The type of the next header in a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layer {
    Link(LinkType),
    Ethernet,
    /// The data after an EtherType, or after the 802.3 length field in its place.
    EtherType(u16),
    Llc,
    Ppp,
    Mpls,
    Wlan,
    Ip,
    /// The data after an IP header, with its protocol.
    Transport(u8, Ip),
}

/// The result of parsing one header.
pub(crate) enum Next<'a> {
    Layer(Layer, Octets<'a>),
    End(End<'a>),
}

/// The last header of interest in a frame.
pub(crate) enum End<'a> {
    Tcp(Ip, Octets<'a>),
    Fragment(Piece<'a>),
}

/// A fragment of an IP packet.
pub(crate) struct Piece<'a> {
    pub(crate) ip: Ip,
    pub(crate) protocol: u8,
    pub(crate) fragment: Fragment,
    pub(crate) octets: Octets<'a>,
}

/// The reason why a frame does not contain a TCP packet that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skipped {
    Other(Other),
    Problem(Problem),
}

impl From<Other> for Skipped {
    fn from(other: Other) -> Self {
        Self::Other(other)
    }
}

impl From<Problem> for Skipped {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// Maximum number of nested headers. Real frames have fewer than half as many. The limit bounds the time
/// spent on crafted frames.
const DEEPEST: u8 = 32;

/// The state while parsing the headers of one frame.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    headers: u8,
    /// Whether a header promises more data than there was on the wire.
    pub(crate) is_beyond: bool,
    /// Whether the checksum of an IP header is wrong.
    pub(crate) is_damaged: bool,
    /// Whether a tunnel was assumed only because of its UDP port.
    is_guess: bool,
}

impl Walk {
    pub(crate) fn follow<'a>(
        &mut self,
        mut layer: Layer,
        mut octets: Octets<'a>,
    ) -> Result<End<'a>, Skipped> {
        while self.headers < DEEPEST {
            self.headers += 1;
            (layer, octets) = match self.step(layer, octets) {
                Ok(Next::Layer(layer, octets)) => (layer, octets),
                Ok(Next::End(end)) => return Ok(end),
                Err(Skipped::Problem(Problem::Malformed)) if self.is_guess => return Err(Other::Udp.into()),
                Err(skipped) => return Err(skipped),
            };
        }
        Err(Other::TooDeep.into())
    }

    /// A fast path for Ethernet frames with IP and TCP, which most frames are. The general path takes twice
    /// as long.
    #[inline]
    pub(crate) fn straight<'a>(&mut self, link: LinkType, octets: Octets<'a>) -> Option<(Ip, Octets<'a>)> {
        if !link.is_ethernet() {
            return None;
        }
        let (kind, inside) = (octets.word(12).ok()?, octets.from(14).ok()?);
        let next = match kind {
            ethernet::IPV4 | ethernet::IPV6 => ip::header(inside, self).ok()?,
            _ => return None,
        };
        match next {
            Next::Layer(Layer::Transport(TCP, ip), octets) => Some((ip, octets)),
            _ => None,
        }
    }

    /// Returns the ICMP message in a frame, its protocol number, and the IP header before it.
    pub(crate) fn icmp<'a>(mut self, link: LinkType, mut octets: Octets<'a>) -> Option<(u8, Ip, Octets<'a>)> {
        let mut layer = Layer::Link(link);
        for _ in 0..DEEPEST {
            if let Layer::Transport(protocol @ (ICMP | ICMP_V6), ip) = layer {
                return Some((protocol, ip, octets));
            }
            let Ok(Next::Layer(next, inside)) = self.step(layer, octets) else { return None };
            (layer, octets) = (next, inside);
        }
        None
    }

    /// Returns the outermost IP packet, including its header.
    pub(crate) fn outermost_ip<'a>(mut self, link: LinkType, mut octets: Octets<'a>) -> Option<Octets<'a>> {
        let mut layer = Layer::Link(link);
        for _ in 0..DEEPEST {
            if let Layer::Ip = layer {
                return Some(octets);
            }
            let Ok(Next::Layer(next, inside)) = self.step(layer, octets) else { return None };
            (layer, octets) = (next, inside);
        }
        None
    }

    fn step<'a>(&mut self, layer: Layer, octets: Octets<'a>) -> Result<Next<'a>, Skipped> {
        match layer {
            Layer::Ethernet => ethernet::frame(octets),
            Layer::EtherType(kind) => ethernet::behind(kind, octets, self),
            Layer::Ip => ip::header(octets, self),
            Layer::Transport(TCP, ip) => Ok(Next::End(End::Tcp(ip, octets))),
            Layer::Transport(protocol, ip) => self.transport(protocol, ip, octets),
            Layer::Link(link) => link.begin(octets),
            Layer::Llc => ethernet::llc(octets),
            Layer::Ppp => ethernet::ppp(octets),
            Layer::Mpls => ethernet::mpls(octets),
            Layer::Wlan => wireless::frame(octets),
        }
    }

    fn transport<'a>(&mut self, protocol: u8, ip: Ip, octets: Octets<'a>) -> Result<Next<'a>, Skipped> {
        match protocol {
            // 4: IP in IP (RFC 2003). 94: its predecessor from amateur radio. 41: IPv6 (RFC 4213, RFC 2473).
            4 | 41 | 94 => Ok(Next::Layer(Layer::Ip, octets)),
            UDP => tunnel::udp(octets, self),
            47 => tunnel::gre(octets, self),
            // 97: RFC 3378. 137: RFC 4023. 143: RFC 8986 §4.9.
            97 => Ok(Next::Layer(Layer::Ethernet, octets.from(2)?)),
            137 => Ok(Next::Layer(Layer::Mpls, octets)),
            143 => Ok(Next::Layer(Layer::Ethernet, octets)),
            51 => ip::extension(protocol, ip, octets),
            0 | 43 | 44 | 60 | 135 | 139 | 140 if ip.src.is_ipv6() => ip::extension(protocol, ip, octets),
            ICMP => Err(Other::Icmp.into()),
            2 => Err(Other::Igmp.into()),
            50 => Err(Other::Esp.into()),
            ICMP_V6 => Err(Other::Icmpv6.into()),
            89 => Err(Other::Ospf.into()),
            115 => Err(Other::L2tp.into()),
            132 => Err(Other::Sctp.into()),
            other => Err(Other::Protocol(other).into()),
        }
    }

    /// Returns the `len` bytes that a header promises, or fewer if fewer were on the wire.
    pub(crate) fn promised<'a>(&mut self, octets: Octets<'a>, len: usize) -> Octets<'a> {
        self.is_beyond |= len > octets.len();
        octets.to(len)
    }
}

/// Returns whether a fragmented packet of this protocol can contain TCP. If not, reassembly is unnecessary.
pub(crate) fn may_have_tcp(protocol: u8) -> bool {
    matches!(protocol, 0 | 4 | 6 | 17 | 41 | 43 | 47 | 51 | 60 | 94 | 97 | 135 | 137 | 139 | 140 | 143)
}

#[cfg(test)]
mod tests;
