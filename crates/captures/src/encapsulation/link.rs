//! The headers of link types.

use super::bytes::{Bytes, Skipped};
use super::layer::{Layer, Step};
use super::wireless::{ppi, radiotap};
use crate::link_layer::{Framing, LinkType};
use crate::other::Other;
use crate::problem::Problem;

/// Removes the link type's own header.
pub(super) fn begin(link: LinkType, bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    let (layer, bytes) = match link.framing().ok_or(Problem::UnknownLink)? {
        Framing::Ethernet => (Layer::Ethernet, bytes),
        Framing::Ip => (Layer::Ip, bytes),
        Framing::Cooked => (cooked(bytes.word(2)?, bytes.word(14)?)?, bytes.from(16)?),
        Framing::Cooked2 => (cooked(bytes.word(8)?, bytes.word(0)?)?, bytes.from(20)?),
        Framing::Family => (family(*bytes.first()?)?, bytes.from(4)?),
        Framing::Enc => (family(*bytes.first()?)?, bytes.from(12)?),
        Framing::Pflog => {
            let [length, family_of] = *bytes.first()?;
            (family([0, 0, 0, family_of])?, bytes.from(usize::from(length).next_multiple_of(4))?)
        }
        Framing::Ppp => return serial(bytes),
        Framing::PppWithDirection => (Layer::Ppp, bytes.from(1)?),
        Framing::PppOverEthernet => (Layer::EtherType(0x8864), bytes),
        Framing::Hdlc => (Layer::EtherType(bytes.word(2)?), bytes.from(4)?),
        Framing::Llc => (Layer::Llc, bytes),
        Framing::Wlan => (Layer::Wlan, bytes),
        Framing::Radiotap => return radiotap(bytes),
        Framing::Ppi => return ppi(bytes),
        Framing::Nflog => return nflog(bytes),
        Framing::Infiniband => return infiniband(bytes),
    };
    Ok(Step::Layer(layer, bytes))
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

fn family(bytes: [u8; 4]) -> Result<Layer, Skipped> {
    let family = u32::from_be_bytes(bytes);
    // Address families are small numbers, so a large value is in the other byte order.
    let family = if family > 0xffff { family.swap_bytes() } else { family };
    match family {
        // AF_INET on all systems, then AF_INET6 of Linux, of NetBSD and OpenBSD, of FreeBSD, and of macOS.
        2 | 10 | 24 | 28 | 30 => Ok(Layer::Ip),
        _ => Err(Other::Family.into()),
    }
}

/// Parses PPP, or Cisco HDLC, whose addresses are 0x0f and 0x8f.
fn serial(bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    match *bytes.first()? {
        [0x0f | 0x8f, 0] => Ok(Step::Layer(Layer::EtherType(bytes.word(2)?), bytes.from(4)?)),
        _ => Ok(Step::Layer(Layer::Ppp, bytes)),
    }
}

/// Parses Linux netfilter logs: an address family, then attributes in the byte order of the machine that
/// wrote them.
fn nflog(bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    const PAYLOAD: u16 = 9;
    let [family_of, _, _, _] = *bytes.first()?;
    let mut rest = bytes.from(4)?;
    while !rest.captured().is_empty() {
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
            let captured = rest.from(4)?.to(len - 4).captured();
            // The kernel may have truncated the packet without recording it, so only the IP header's length
            // counts.
            return Ok(Step::Layer(layer, Bytes::new(captured, captured.len().max(0xffff))));
        }
        rest = rest.from(len.next_multiple_of(4))?;
    }
    Err(Other::Family.into())
}

/// Parses IP over InfiniBand (RFC 4391 §6): an EtherType and two zero bytes. The receiver's address (on
/// Linux) or the global route header may come first.
fn infiniband(bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    const ADDRESS: usize = 20;
    const ROUTE: usize = 40;
    for at in [0, ADDRESS, ROUTE] {
        if bytes.len() < at + 4 {
            break;
        }
        let [kind, reserved] = [bytes.word(at)?, bytes.word(at + 2)?];
        if matches!(kind, 0x0800 | 0x0806 | 0x86dd) && reserved == 0 {
            return Ok(Step::Layer(Layer::EtherType(kind), bytes.from(at + 4)?));
        }
    }
    Err(Other::Family.into())
}
