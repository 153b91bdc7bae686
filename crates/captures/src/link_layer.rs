//! The link types of captures, and where the first header in a frame begins.

use super::encapsulation::{Layer, Next, Octets, Skipped, ppi, radiotap};
use super::other::Other;
use super::problem::Problem;

/// A data link type as libpcap numbers it on this machine (DLT). The numbers in files are those of
/// <https://www.tcpdump.org/linktypes.html>, of which few differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkType(pub i32);

/// What a link type's frames look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Ethernet,
    /// Linux "cooked" captures, as of the device `any`.
    Cooked,
    Cooked2,
    Ip,
    /// BSD loopback: an address family in the capturing machine's byte order or in network order.
    Family,
    /// OpenBSD's decrypted packets of IPsec: a family, and eight octets more.
    Enc,
    /// OpenBSD's packet filter: the header says its length, and the family.
    Pflog,
    Ppp,
    /// One octet for the direction comes first.
    PppWithDirection,
    PppOverEthernet,
    /// Cisco's HDLC: an address, a zero, an EtherType.
    Hdlc,
    Llc,
    Wlan,
    Radiotap,
    Ppi,
    Nflog,
    Infiniband,
}

impl LinkType {
    /// Ethernet II or 802.3.
    pub const ETHERNET: Self = Self(1);
    /// An IPv4 or IPv6 packet without a link header.
    pub const RAW: Self = Self(101);

    fn framing(self) -> Option<Framing> {
        match self.0 {
            0 | 108 => Some(Framing::Family),
            1 => Some(Framing::Ethernet),
            9 | 50 => Some(Framing::Ppp),
            51 => Some(Framing::PppOverEthernet),
            // RFC 1483, and of Linux.
            11 | 100 => Some(Framing::Llc),
            // DLT_RAW is 12, on OpenBSD 14.
            12 | 14 | 101 | 228 | 229 => Some(Framing::Ip),
            104 => Some(Framing::Hdlc),
            105 => Some(Framing::Wlan),
            109 => Some(Framing::Enc),
            113 => Some(Framing::Cooked),
            117 => Some(Framing::Pflog),
            127 => Some(Framing::Radiotap),
            192 => Some(Framing::Ppi),
            204 => Some(Framing::PppWithDirection),
            239 => Some(Framing::Nflog),
            242 => Some(Framing::Infiniband),
            276 => Some(Framing::Cooked2),
            _ => None,
        }
    }

    /// The number that files have for it.
    pub fn in_files(self) -> u16 {
        match self.0 {
            11 => 100,
            12 | 14 => Self::RAW.0 as u16,
            other => other as u16,
        }
    }

    /// Whether frames of this type can be read.
    pub fn is_known(self) -> bool {
        self.framing().is_some()
    }

    pub(crate) fn is_ethernet(self) -> bool {
        matches!(self.framing(), Some(Framing::Ethernet))
    }

    /// Takes the link type's own header off.
    pub(crate) fn begin(self, octets: Octets<'_>) -> Result<Next<'_>, Skipped> {
        let (layer, octets) = match self.framing().ok_or(Problem::UnknownLink)? {
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
}

/// Linux: the kind of device says what the protocol's number means.
fn cooked(device: u16, protocol: u16) -> Result<Layer, Skipped> {
    const NETLINK: u16 = 824;
    match (device, protocol) {
        (NETLINK, _) => Err(Other::Family.into()),
        // As in <linux/if_ether.h>: any frame, 802.2.
        (_, 3) => Ok(Layer::Ethernet),
        (_, 4) => Ok(Layer::Llc),
        (_, 0..=1500) => Err(Other::Family.into()),
        (_, kind) => Ok(Layer::EtherType(kind)),
    }
}

fn family(octets: [u8; 4]) -> Result<Layer, Skipped> {
    let family = u32::from_be_bytes(octets);
    // Families are small numbers, which gives the other byte order away.
    let family = if family > 0xffff { family.swap_bytes() } else { family };
    match family {
        // AF_INET everywhere; AF_INET6 of Linux, NetBSD and OpenBSD, FreeBSD, macOS.
        2 | 10 | 24 | 28 | 30 => Ok(Layer::Ip),
        _ => Err(Other::Family.into()),
    }
}

/// PPP, or Cisco's HDLC, whose addresses are 0x0f and 0x8f.
fn serial(octets: Octets<'_>) -> Result<Next<'_>, Skipped> {
    match *octets.first()? {
        [0x0f | 0x8f, 0] => Ok(Next::Layer(Layer::EtherType(octets.word(2)?), octets.from(4)?)),
        _ => Ok(Next::Layer(Layer::Ppp, octets)),
    }
}

/// Linux's netfilter: a family, then attributes, in the byte order of the machine that wrote them.
fn nflog(octets: Octets<'_>) -> Result<Next<'_>, Skipped> {
    const PAYLOAD: u16 = 9;
    let [family_of, _, _, _] = *octets.first()?;
    let mut rest = octets.from(4)?;
    while !rest.kept().is_empty() {
        let [a, b, c, d] = *rest.first()?;
        let little = [u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])];
        // Types are small numbers.
        let [len, kind] = if little[1] < 0x100 { little } else { little.map(u16::swap_bytes) };
        let len = usize::from(len);
        if len < 4 {
            return Err(Problem::Malformed.into());
        }
        if kind == PAYLOAD {
            // A bridge's packets (7) begin with the IP header as well.
            let layer = if family_of == 7 { Layer::Ip } else { family([0, 0, 0, family_of])? };
            let kept = rest.from(4)?.to(len - 4).kept();
            // The kernel may have cut it, and no field says so: the length that counts is the IP header's.
            return Ok(Next::Layer(layer, Octets::new(kept, kept.len().max(0xffff))));
        }
        rest = rest.from(len.next_multiple_of(4))?;
    }
    Err(Other::Family.into())
}

/// RFC 4391 §6: an EtherType and two octets of zero. Before it may be the receiver's address, as on Linux, or the global
/// route header.
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
