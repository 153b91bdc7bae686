//! The link types of captures.

/// A data link type, with libpcap's number on this machine (DLT). Most of these numbers are the same in
/// files: <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkType(pub i32);

/// The frame format of a link type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Ethernet,
    /// Linux "cooked" captures, such as captures on the device `any`.
    Cooked,
    Cooked2,
    Ip,
    /// BSD loopback: an address family, in the byte order of the capturing machine or in network order.
    Family,
    /// Packets that OpenBSD's IPsec has decrypted: an address family, then eight more bytes.
    Enc,
    /// OpenBSD's packet filter log: the header contains its length and the address family.
    Pflog,
    Ppp,
    /// PPP after one byte for the direction.
    PppWithDirection,
    PppOverEthernet,
    /// Cisco HDLC: an address, a zero byte and an EtherType.
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

    pub(crate) fn framing(self) -> Option<Framing> {
        match self.0 {
            0 | 108 => Some(Framing::Family),
            1 => Some(Framing::Ethernet),
            9 | 50 => Some(Framing::Ppp),
            51 => Some(Framing::PppOverEthernet),
            // RFC 1483, and its equivalent on Linux.
            11 | 100 => Some(Framing::Llc),
            // DLT_RAW is 12, or 14 on OpenBSD.
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

    /// Returns the number of this link type in capture files.
    pub fn in_files(self) -> u16 {
        match self.0 {
            11 => 100,
            12 | 14 => Self::RAW.0 as u16,
            other => other as u16,
        }
    }

    /// Returns whether frames of this type can be read.
    pub fn is_known(self) -> bool {
        self.framing().is_some()
    }

    pub(crate) fn is_ethernet(self) -> bool {
        matches!(self.framing(), Some(Framing::Ethernet))
    }
}
