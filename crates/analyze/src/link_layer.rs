//! Finds the IP packet inside a frame of the link layer.

/// A data link type as libpcap numbers it on this machine (DLT). The numbers in files are those of
/// <https://www.tcpdump.org/linktypes.html>, of which few differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkType(pub i32);

/// What is inside a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside<'a> {
    /// An IP packet up to the end of what was captured: an Ethernet frame's padding is still behind it.
    Ip(&'a [u8]),
    /// ARP, LLC, IPX …; also the frames of an unknown link type.
    Other,
    /// The capture kept less than the link layer's headers.
    Cut,
}

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
    Ppp,
    PppOverEthernet,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const PPPOE_SESSION: u16 = 0x8864;
/// Tags of 802.1Q, of 802.1ad and of what was in use before it.
const TAGS: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];

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
            // DLT_RAW is 12, on OpenBSD 14.
            12 | 14 | 101 | 228 | 229 => Some(Framing::Ip),
            113 => Some(Framing::Cooked),
            276 => Some(Framing::Cooked2),
            _ => None,
        }
    }

    /// The number that files have for it.
    pub fn in_files(self) -> u16 {
        match self.0 {
            12 | 14 => Self::RAW.0 as u16,
            other => other as u16,
        }
    }

    /// Whether frames of this type can be read.
    pub fn is_known(self) -> bool {
        self.framing().is_some()
    }

    /// Takes the link layer's headers off.
    pub fn inside(self, frame: &[u8]) -> Inside<'_> {
        let inside = match self.framing() {
            None => Some(Inside::Other),
            Some(Framing::Ip) => Some(Inside::Ip(frame)),
            Some(Framing::Ethernet) => behind_ethertype(frame, 12, 14),
            Some(Framing::Cooked) => behind_ethertype(frame, 14, 16),
            Some(Framing::Cooked2) => behind_ethertype(frame, 0, 20),
            Some(Framing::Family) => behind_family(frame),
            Some(Framing::Ppp) => behind_ppp(frame),
            Some(Framing::PppOverEthernet) => frame.get(6..).and_then(behind_ppp),
        };
        inside.unwrap_or(Inside::Cut)
    }
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]))
}

fn behind_ethertype(frame: &[u8], at: usize, end: usize) -> Option<Inside<'_>> {
    let mut ethertype = word(frame, at)?;
    let mut payload = frame.get(end..)?;
    while TAGS.contains(&ethertype) {
        ethertype = word(payload, 2)?;
        payload = payload.get(4..)?;
    }
    match ethertype {
        IPV4 | IPV6 => Some(Inside::Ip(payload)),
        PPPOE_SESSION => behind_ppp(payload.get(6..)?),
        _ => Some(Inside::Other),
    }
}

fn behind_family(frame: &[u8]) -> Option<Inside<'_>> {
    let family = u32::from_be_bytes(frame.get(..4)?.try_into().ok()?);
    // Families are small numbers, which gives the other byte order away.
    let family = if family > 0xffff { family.swap_bytes() } else { family };
    match family {
        // AF_INET everywhere; AF_INET6 of Linux, NetBSD and OpenBSD, FreeBSD, macOS.
        2 | 10 | 24 | 28 | 30 => Some(Inside::Ip(&frame[4..])),
        _ => Some(Inside::Other),
    }
}

/// RFC 1662 §2: address and control field may be left out, and the protocol may be compressed to an octet.
fn behind_ppp(frame: &[u8]) -> Option<Inside<'_>> {
    let frame = frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame);
    match frame {
        [0x21 | 0x57, packet @ ..] | [0, 0x21 | 0x57, packet @ ..] => Some(Inside::Ip(packet)),
        [] | [0] | [0xff] => None,
        _ => Some(Inside::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: [u8; 3] = [0x45, 1, 2];

    fn framed(header: &[u8]) -> Vec<u8> {
        [header, &PACKET].concat()
    }

    #[test]
    fn the_packet_is_found_behind_every_header() {
        let mut ethernet = vec![0; 12];
        ethernet.extend([0x08, 0]);
        let mut tagged = vec![0; 12];
        tagged.extend([0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 0x86, 0xdd]);
        let mut pppoe = vec![0; 12];
        pppoe.extend([0x88, 0x64, 0x11, 0, 0, 1, 0, 5, 0, 0x21]);
        let mut cooked = vec![0; 14];
        cooked.extend([0x08, 0]);
        let mut cooked2 = vec![0; 20];
        cooked2[..2].copy_from_slice(&[0x86, 0xdd]);
        for (link, header) in [
            (1, ethernet),
            (1, tagged),
            (1, pppoe),
            (113, cooked),
            (276, cooked2),
            (12, vec![]),
            (14, vec![]),
            (101, vec![]),
            (228, vec![]),
            (229, vec![]),
            (0, vec![2, 0, 0, 0]),
            (0, vec![0, 0, 0, 2]),
            (0, vec![30, 0, 0, 0]),
            (108, vec![0, 0, 0, 24]),
            (9, vec![0xff, 3, 0, 0x21]),
            (9, vec![0x57]),
            (50, vec![0xff, 3, 0, 0x57]),
            (51, vec![0x11, 0, 0, 1, 0, 5, 0, 0x21]),
        ] {
            let link = LinkType(link);
            let frame = framed(&header);
            assert!(link.is_known());
            assert_eq!(link.inside(&frame), Inside::Ip(&PACKET), "{link:?}, {header:?}");
            for kept in 0..header.len() {
                assert_eq!(link.inside(&header[..kept]), Inside::Cut, "{link:?}, {kept} of {header:?}");
            }
        }
    }

    #[test]
    fn what_is_not_ip_is_left_alone() {
        let mut arp = vec![0; 12];
        arp.extend([0x08, 0x06, 0, 0]);
        // A length, as 802.3 has it, before LLC.
        let mut llc = vec![0; 12];
        llc.extend([0, 38, 0x42, 0x42, 3]);
        for (link, frame) in
            [(1, arp), (1, llc), (0, vec![0, 0, 0, 7, 1]), (9, vec![0xc0, 0x21]), (105, vec![0; 60])]
        {
            assert_eq!(LinkType(link).inside(&frame), Inside::Other, "{frame:?}");
        }
        assert!(!LinkType(105).is_known());
    }
}
