//! The headers of link types.

use super::layer::{Layer, Next};
use super::octets::Octets;
use super::skipped::Skipped;
use super::wireless::{ppi, radiotap};
use crate::link_layer::{Framing, LinkType};
use crate::other::Other;
use crate::problem::Problem;

/// Removes the link type's own header.
pub(super) fn begin(link: LinkType, octets: Octets<'_>) -> Result<Next<'_>, Skipped> {
    let (layer, octets) = match link.framing().ok_or(Problem::UnknownLink)? {
        Framing::Ethernet => (Layer::Ethernet, octets),
        Framing::Ip => (Layer::Ip, octets),
        Framing::Cooked => (cooked(octets.word(2)?, octets.word(14)?)?, octets.from(16)?),
        Framing::Cooked2 => (cooked(octets.word(8)?, octets.word(0)?)?, octets.from(20)?),
        Framing::Family => (family(*octets.first()?)?, octets.from(4)?),
        Framing::Enc => (family(*octets.first()?)?, octets.from(12)?),
        Framing::Pflog => {
            let [length, family_of] = *octets.first()?;
            (family([0, 0, 0, family_of])?, octets.from(usize::from(length).next_multiple_of(4))?)
        }
        Framing::Ppp => return serial(octets),
        Framing::PppWithDirection => (Layer::Ppp, octets.from(1)?),
        Framing::PppOverEthernet => (Layer::EtherType(0x8864), octets),
        Framing::Hdlc => (Layer::EtherType(octets.word(2)?), octets.from(4)?),
        Framing::Llc => (Layer::Llc, octets),
        Framing::Wlan => (Layer::Wlan, octets),
        Framing::Radiotap => return radiotap(octets),
        Framing::Ppi => return ppi(octets),
        Framing::Nflog => return nflog(octets),
        Framing::Infiniband => return infiniband(octets),
    };
    Ok(Next::Layer(layer, octets))
}

/// On Linux, the device type determines the meaning of the protocol number.
fn cooked(device: u16, protocol: u16) -> Result<Layer, Skipped> {
    const NETLINK: u16 = 824;
    match (device, protocol) {
        (NETLINK, _) => Err(Other::Family.into()),
        // See <linux/if_ether.h>: 3 means any frame, 4 means 802.2.
        (_, 3) => Ok(Layer::Ethernet),
        (_, 4) => Ok(Layer::Llc),
        (_, 0..=1500) => Err(Other::Family.into()),
        (_, kind) => Ok(Layer::EtherType(kind)),
    }
}

fn family(octets: [u8; 4]) -> Result<Layer, Skipped> {
    let family = u32::from_be_bytes(octets);
    // Address families are small numbers, so a large value is in the other byte order.
    let family = if family > 0xffff { family.swap_bytes() } else { family };
    match family {
        // AF_INET on all systems, then AF_INET6 of Linux, of NetBSD and OpenBSD, of FreeBSD, and of macOS.
        2 | 10 | 24 | 28 | 30 => Ok(Layer::Ip),
        _ => Err(Other::Family.into()),
    }
}

/// Parses PPP, or Cisco HDLC, whose addresses are 0x0f and 0x8f.
fn serial(octets: Octets<'_>) -> Result<Next<'_>, Skipped> {
    match *octets.first()? {
        [0x0f | 0x8f, 0] => Ok(Next::Layer(Layer::EtherType(octets.word(2)?), octets.from(4)?)),
        _ => Ok(Next::Layer(Layer::Ppp, octets)),
    }
}

/// Parses Linux netfilter logs: an address family, then attributes in the byte order of the machine that
/// wrote them.
fn nflog(octets: Octets<'_>) -> Result<Next<'_>, Skipped> {
    const PAYLOAD: u16 = 9;
    let [family_of, _, _, _] = *octets.first()?;
    let mut rest = octets.from(4)?;
    while !rest.kept().is_empty() {
        let [a, b, c, d] = *rest.first()?;
        let little = [u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])];
        // Attribute types are small numbers, which reveals the byte order.
        let [len, kind] = if little[1] < 0x100 { little } else { little.map(u16::swap_bytes) };
        let len = usize::from(len);
        if len < 4 {
            return Err(Problem::Malformed.into());
        }
        if kind == PAYLOAD {
            // Packets of a bridge (family 7) also begin with the IP header.
            let layer = if family_of == 7 { Layer::Ip } else { family([0, 0, 0, family_of])? };
            let kept = rest.from(4)?.to(len - 4).kept();
            // The kernel may have truncated the packet without recording it, so only the IP header's length
            // counts.
            return Ok(Next::Layer(layer, Octets::new(kept, kept.len().max(0xffff))));
        }
        rest = rest.from(len.next_multiple_of(4))?;
    }
    Err(Other::Family.into())
}

/// Parses IP over InfiniBand (RFC 4391 §6): an EtherType and two zero bytes. The receiver's address (on
/// Linux) or the global route header may come first.
fn infiniband(octets: Octets<'_>) -> Result<Next<'_>, Skipped> {
    const ADDRESS: usize = 20;
    const ROUTE: usize = 40;
    for at in [0, ADDRESS, ROUTE] {
        if octets.len() < at + 4 {
            break;
        }
        let [kind, reserved] = [octets.word(at)?, octets.word(at + 2)?];
        if matches!(kind, 0x0800 | 0x0806 | 0x86dd) && reserved == 0 {
            return Ok(Next::Layer(Layer::EtherType(kind), octets.from(at + 4)?));
        }
    }
    Err(Other::Family.into())
}
