//! The names of packets that are not TCP.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

text_enum! {
    /// The protocol of a frame that does not contain TCP. `Display` names it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Other {
        /// ARP or RARP.
        Arp => "ARP",
        /// UDP that is not a supported tunnel, or invalid data on the port of a tunnel.
        Udp => "UDP",
        /// ICMP.
        Icmp => "ICMP",
        /// ICMPv6, which includes neighbor discovery.
        Icmpv6 => "ICMPv6",
        /// IGMP.
        Igmp => "IGMP",
        /// Encrypted IP (ESP).
        Esp => "ESP (encrypted)",
        /// SCTP.
        Sctp => "SCTP",
        /// OSPF.
        Ospf => "OSPF",
        /// Another IP protocol, with its number.
        Protocol(number: u8) => "IP protocol {number}",
        /// Another EtherType, with its number.
        EtherType(number: u16) => "EtherType 0x{number:04x}",
        /// LLDP.
        Lldp => "LLDP",
        /// EAP over LAN.
        Eapol => "EAPOL",
        /// Spanning tree protocols.
        Stp => "STP",
        /// IPX.
        Ipx => "IPX",
        /// 802.2 with an unsupported protocol.
        Llc => "LLC without IP",
        /// PPPoE discovery: PADI, PADO …
        PppoeDiscovery => "PPPoE discovery",
        /// PPP control protocols: LCP, IPCP …
        PppControl => "PPP control",
        /// PPP with compressed headers, which contain only the differences from the previous header (RFC 1144).
        PppCompressed => "PPP with compressed headers",
        /// PPP with an unsupported protocol.
        Ppp => "PPP without IP",
        /// An MPLS label stack that is followed by neither IP nor Ethernet.
        Mpls => "MPLS without IP",
        /// Encrypted 802.1AE.
        Macsec => "MACsec (encrypted)",
        /// A BSD loopback, cooked or NFLOG frame that does not contain IP.
        Family => "address family other than IP",
        /// 802.11 management frames, such as beacons.
        WlanManagement => "802.11 management",
        /// 802.11 control frames, such as acknowledgments.
        WlanControl => "802.11 control",
        /// 802.11 data frames without data.
        WlanNull => "802.11 without data",
        /// Encrypted 802.11 (the Protected bit is set).
        WlanEncrypted => "encrypted 802.11",
        /// An 802.11 frame that radiotap marks as having a wrong checksum.
        WlanDamaged => "802.11 with a wrong checksum",
        /// A fragment of an 802.11 frame.
        WlanFragment => "802.11 fragment",
        /// Several packets in one 802.11 frame (A-MSDU).
        WlanAggregate => "802.11 aggregate (A-MSDU)",
        /// GRE with an unsupported protocol.
        Gre => "GRE without IP",
        /// L2TP control messages, or L2TP version 3.
        L2tp => "L2TP control or version 3",
        /// GTP-U messages that do not carry a packet.
        GtpSignalling => "GTP-U signalling",
        /// Headers that are nested too deeply.
        TooDeep => "headers nested too deep",
    }
}

/// The number of frames of each protocol. The number ranges of EtherTypes and IP protocols bound its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others(BTreeMap<Other, u64>);

impl Others {
    /// Counts one frame.
    pub fn record(&mut self, other: Other) {
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
