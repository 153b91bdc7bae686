//! What else than TCP is in a capture, by name.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

/// What a frame has instead of TCP. `Display` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Other {
    /// Also RARP.
    Arp,
    /// UDP that is no tunnel which is known here, or a tunnel on its port that makes no sense.
    Udp,
    /// ICMP.
    Icmp,
    /// ICMPv6, which includes neighbor discovery.
    Icmpv6,
    /// IGMP.
    Igmp,
    /// Encrypted IP.
    Esp,
    /// SCTP.
    Sctp,
    /// OSPF.
    Ospf,
    /// An IP protocol, by its number.
    Protocol(u8),
    /// An EtherType, by its number.
    EtherType(u16),
    /// LLDP.
    Lldp,
    /// EAP over LAN.
    Eapol,
    /// Spanning trees.
    Stp,
    /// IPX.
    Ipx,
    /// 802.2 with something else.
    Llc,
    /// PADI, PADO …
    PppoeDiscovery,
    /// LCP, IPCP …
    PppControl,
    /// RFC 1144: the header is a difference to the one before.
    PppCompressed,
    /// PPP with something else.
    Ppp,
    /// A label stack with neither IP nor Ethernet behind it.
    Mpls,
    /// 802.1AE.
    Macsec,
    /// A BSD loopback, cooked or NFLOG frame with something else.
    Family,
    /// Beacons …
    WlanManagement,
    /// Acknowledgments …
    WlanControl,
    /// 802.11 data frames without data.
    WlanNull,
    /// The Protected bit is set.
    WlanEncrypted,
    /// The radiotap header says that the checksum is wrong.
    WlanDamaged,
    /// A part of an 802.11 frame.
    WlanFragment,
    /// Several packets in one 802.11 frame.
    WlanAggregate,
    /// GRE with something else.
    Gre,
    /// L2TP's control messages, or version 3.
    L2tp,
    /// GTP-U messages that carry no packet.
    GtpSignalling,
    /// More headers around each other than anybody needs.
    TooDeep,
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Arp => "ARP",
            Self::Udp => "UDP",
            Self::Icmp => "ICMP",
            Self::Icmpv6 => "ICMPv6",
            Self::Igmp => "IGMP",
            Self::Esp => "ESP (encrypted)",
            Self::Sctp => "SCTP",
            Self::Ospf => "OSPF",
            Self::Protocol(number) => return write!(f, "IP protocol {number}"),
            Self::EtherType(number) => return write!(f, "EtherType 0x{number:04x}"),
            Self::Lldp => "LLDP",
            Self::Eapol => "EAPOL",
            Self::Stp => "STP",
            Self::Ipx => "IPX",
            Self::Llc => "LLC without IP",
            Self::PppoeDiscovery => "PPPoE discovery",
            Self::PppControl => "PPP control",
            Self::PppCompressed => "PPP with compressed headers",
            Self::Ppp => "PPP without IP",
            Self::Mpls => "MPLS without IP",
            Self::Macsec => "MACsec (encrypted)",
            Self::Family => "address family other than IP",
            Self::WlanManagement => "802.11 management",
            Self::WlanControl => "802.11 control",
            Self::WlanNull => "802.11 without data",
            Self::WlanEncrypted => "encrypted 802.11",
            Self::WlanDamaged => "802.11 with a wrong checksum",
            Self::WlanFragment => "802.11 fragment",
            Self::WlanAggregate => "802.11 aggregate (A-MSDU)",
            Self::Gre => "GRE without IP",
            Self::L2tp => "L2TP control or version 3",
            Self::GtpSignalling => "GTP-U signalling",
            Self::TooDeep => "headers nested too deep",
        })
    }
}

/// How many frames have which of them. Their numbers of EtherTypes and protocols bound it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others(BTreeMap<Other, u64>);

impl Others {
    /// Notes one.
    pub fn note(&mut self, other: Other) {
        *self.0.entry(other).or_default() += 1;
    }

    /// How many frames have this one.
    pub fn count(&self, other: Other) -> u64 {
        self.0.get(&other).copied().unwrap_or_default()
    }

    /// The most frequent first.
    pub fn iter(&self) -> impl Iterator<Item = (Other, u64)> {
        let mut rows: Vec<_> = self.0.iter().map(|(other, count)| (*other, *count)).collect();
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        rows.into_iter()
    }
}

impl Serialize for Others {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row {
            what: String,
            count: u64,
        }
        serializer.collect_seq(self.iter().map(|(other, count)| Row { what: other.to_string(), count }))
    }
}
