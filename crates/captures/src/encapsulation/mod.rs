//! Removes the headers around a TCP packet one by one: link layers, tags and tunnels in any order.
//!
//! The parsers are hand-written. etherparse is well maintained, but it supports none of the tunnels, and only
//! two of these link layers (Ethernet and Linux cooked). Using it for the rest would need more code than it
//! saves. pnet_packet has been inactive since 2024.

mod ethernet;
mod ip;
mod layer;
mod link;
mod octets;
mod skipped;
mod tunnel;
mod wireless;

use airwire::view::{ICMP, ICMP_V6, TCP, UDP};
use layer::Observed;
pub(crate) use layer::{End, Ip, Layer, Next, Piece};
pub(crate) use octets::Octets;
pub(crate) use skipped::Skipped;

use super::link_layer::LinkType;
use super::other::Other;
use super::problem::Problem;

/// Maximum number of nested headers. Real frames have fewer than half as many. The limit bounds the time
/// spent on crafted frames.
const DEEPEST: u8 = 32;

/// The state while parsing the headers of one frame.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    headers: u8,
    observed: Observed,
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
                Err(Skipped::Problem(Problem::Malformed)) if self.observed.is_guess => {
                    return Err(Other::Udp.into());
                }
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
            ethernet::IPV4 | ethernet::IPV6 => ip::header(inside, &mut self.observed).ok()?,
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
            Layer::EtherType(kind) => ethernet::behind(kind, octets, &mut self.observed),
            Layer::Ip => ip::header(octets, &mut self.observed),
            Layer::Transport(TCP, ip) => Ok(Next::End(End::Tcp(ip, octets))),
            Layer::Transport(protocol, ip) => self.transport(protocol, ip, octets),
            Layer::Link(link) => link::begin(link, octets),
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
            UDP => tunnel::udp(octets, &mut self.observed),
            47 => tunnel::gre(octets, &mut self.observed),
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

    /// Returns whether a header promises more data than there was on the wire.
    pub(crate) fn is_beyond(&self) -> bool {
        self.observed.is_beyond
    }

    /// Returns whether the checksum of an IP header is wrong.
    pub(crate) fn is_damaged(&self) -> bool {
        self.observed.is_damaged
    }
}

#[cfg(test)]
mod tests;
