//! The names of packets that are not TCP.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

/// The protocol of a frame that does not contain TCP. `Display` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Other {
    /// ARP or RARP.
    Arp,
    /// UDP that is not a supported tunnel, or invalid data on the port of a tunnel.
    Udp,
    /// ICMP.
    Icmp,
    /// ICMPv6, which includes neighbor discovery.
    Icmpv6,
    /// IGMP.
    Igmp,
    /// Encrypted IP (ESP).
    Esp,
    /// SCTP.
    Sctp,
    /// OSPF.
    Ospf,
    /// Another IP protocol, with its number.
    Protocol(u8),
    /// Another EtherType, with its number.
    EtherType(u16),
    /// LLDP.
    Lldp,
    /// EAP over LAN.
    Eapol,
    /// Spanning tree protocols.
    Stp,
    /// IPX.
    Ipx,
    /// 802.2 with an unsupported protocol.
    Llc,
    /// PPPoE discovery: PADI, PADO …
    PppoeDiscovery,
    /// PPP control protocols: LCP, IPCP …
    PppControl,
    /// PPP with compressed headers, which contain only the differences from the previous header (RFC 1144).
    PppCompressed,
    /// PPP with an unsupported protocol.
    Ppp,
    /// An MPLS label stack that is followed by neither IP nor Ethernet.
    Mpls,
    /// Encrypted 802.1AE.
    Macsec,
    /// A BSD loopback, cooked or NFLOG frame that does not contain IP.
    Family,
    /// 802.11 management frames, such as beacons.
    WlanManagement,
    /// 802.11 control frames, such as acknowledgments.
    WlanControl,
    /// 802.11 data frames without data.
    WlanNull,
    /// Encrypted 802.11 (the Protected bit is set).
    WlanEncrypted,
    /// An 802.11 frame that radiotap marks as having a wrong checksum.
    WlanDamaged,
    /// A fragment of an 802.11 frame.
    WlanFragment,
    /// Several packets in one 802.11 frame (A-MSDU).
    WlanAggregate,
    /// GRE with an unsupported protocol.
    Gre,
    /// L2TP control messages, or L2TP version 3.
    L2tp,
    /// GTP-U messages that do not carry a packet.
    GtpSignalling,
    /// Headers that are nested too deeply.
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

/// The number of frames of each protocol. The number ranges of EtherTypes and IP protocols bound its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others(BTreeMap<Other, u64>);

impl Others {
    /// Counts one frame.
    pub fn note(&mut self, other: Other) {
        *self.0.entry(other).or_default() += 1;
    }

    /// Returns the number of frames of this protocol.
    pub fn count(&self, other: Other) -> u64 {
        self.0.get(&other).copied().unwrap_or_default()
    }

    /// Returns all counts, the largest first.
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
