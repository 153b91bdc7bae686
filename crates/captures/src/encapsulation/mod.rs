//! Removes the headers around a TCP packet one by one: link layers, tags and tunnels in any order.
//!
//! The parsers are hand-written. etherparse is well maintained, but it supports none of the tunnels, and only
//! two of these link layers (Ethernet and Linux cooked). Using it for the rest would need more code than it
//! saves. pnet_packet has been inactive since 2024.

mod bytes;
mod ethernet;
mod ip;
mod layer;
mod link;
mod tunnel;
mod wireless;

use airwire::view::{ICMP, ICMP_V6, TCP, UDP};
pub(crate) use bytes::{Bytes, Skipped};
use layer::Observations;
pub(crate) use layer::{End, Ip, IpFragment, Layer, Step};

use super::link_layer::LinkType;
use super::other::Other;
use super::problem::Problem;

/// Maximum number of nested headers. Real frames have fewer than half as many. The limit bounds the time
/// spent on crafted frames.
const MAX_HEADERS: u8 = 32;

/// The state while parsing the headers of one frame.
#[derive(Debug, Default)]
pub(crate) struct HeaderParser {
    headers: u8,
    pub(crate) observations: Observations,
}

impl HeaderParser {
    pub(crate) fn parse<'a>(&mut self, mut layer: Layer, mut bytes: Bytes<'a>) -> Result<End<'a>, Skipped> {
        while self.headers < MAX_HEADERS {
            self.headers += 1;
            (layer, bytes) = match self.step(layer, bytes) {
                Ok(Step::Layer(layer, bytes)) => (layer, bytes),
                Ok(Step::End(end)) => return Ok(end),
                Err(Skipped::Problem(Problem::Malformed)) if self.observations.is_guess => {
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
    pub(crate) fn parse_common<'a>(&mut self, link: LinkType, bytes: Bytes<'a>) -> Option<(Ip, Bytes<'a>)> {
        if !link.is_ethernet() {
            return None;
        }
        let (kind, inside) = (bytes.word(12).ok()?, bytes.from(14).ok()?);
        let next = match kind {
            ethernet::IPV4 | ethernet::IPV6 => ip::header(inside, &mut self.observations).ok()?,
            _ => return None,
        };
        match next {
            Step::Layer(Layer::Transport(TCP, ip), bytes) => Some((ip, bytes)),
            _ => None,
        }
    }

    /// Parses headers until `select` selects a layer. Returns the selection and the bytes of this layer.
    fn find<'a, T>(
        mut self,
        link: LinkType,
        mut bytes: Bytes<'a>,
        select: impl Fn(Layer) -> Option<T>,
    ) -> Option<(T, Bytes<'a>)> {
        let mut layer = Layer::Link(link);
        for _ in 0..MAX_HEADERS {
            if let Some(selected) = select(layer) {
                return Some((selected, bytes));
            }
            let Ok(Step::Layer(next, inside)) = self.step(layer, bytes) else { return None };
            (layer, bytes) = (next, inside);
        }
        None
    }

    /// Returns the protocol number and the IP header of an ICMP message in a frame, and the message.
    pub(crate) fn icmp(self, link: LinkType, bytes: Bytes<'_>) -> Option<((u8, Ip), Bytes<'_>)> {
        self.find(link, bytes, |layer| match layer {
            Layer::Transport(protocol @ (ICMP | ICMP_V6), ip) => Some((protocol, ip)),
            _ => None,
        })
    }

    /// Returns the outermost IP packet, including its header.
    pub(crate) fn outermost_ip(self, link: LinkType, bytes: Bytes<'_>) -> Option<Bytes<'_>> {
        let found = self.find(link, bytes, |layer| matches!(layer, Layer::Ip).then_some(()));
        found.map(|(_, packet)| packet)
    }

    fn step<'a>(&mut self, layer: Layer, bytes: Bytes<'a>) -> Result<Step<'a>, Skipped> {
        match layer {
            Layer::Ethernet => ethernet::frame(bytes),
            Layer::EtherType(kind) => ethernet::payload(kind, bytes, &mut self.observations),
            Layer::Ip => ip::header(bytes, &mut self.observations),
            Layer::Transport(TCP, ip) => Ok(Step::End(End::Tcp(ip, bytes))),
            Layer::Transport(protocol, ip) => self.transport(protocol, ip, bytes),
            Layer::Link(link) => link::begin(link, bytes),
            Layer::Llc => ethernet::llc(bytes),
            Layer::Ppp => ethernet::ppp(bytes),
            Layer::Mpls => ethernet::mpls(bytes),
            Layer::Wlan => wireless::frame(bytes),
        }
    }

    fn transport<'a>(&mut self, protocol: u8, ip: Ip, bytes: Bytes<'a>) -> Result<Step<'a>, Skipped> {
        match protocol {
            // 4: IP in IP (RFC 2003). 94: its predecessor from amateur radio. 41: IPv6 (RFC 4213, RFC 2473).
            4 | 41 | 94 => Ok(Step::Layer(Layer::Ip, bytes)),
            UDP => tunnel::udp(bytes, &mut self.observations),
            47 => tunnel::gre(bytes, &mut self.observations),
            // 97: RFC 3378. 137: RFC 4023. 143: RFC 8986 §4.9.
            97 => Ok(Step::Layer(Layer::Ethernet, bytes.from(2)?)),
            137 => Ok(Step::Layer(Layer::Mpls, bytes)),
            143 => Ok(Step::Layer(Layer::Ethernet, bytes)),
            51 => ip::extension(protocol, ip, bytes),
            0 | 43 | 44 | 60 | 135 | 139 | 140 if ip.src.is_ipv6() => ip::extension(protocol, ip, bytes),
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
}

#[cfg(test)]
mod tests;
