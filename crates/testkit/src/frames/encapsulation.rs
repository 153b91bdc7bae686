//! Headers that captures have around packets: link layers, tags and tunnels.

use super::ethertype;

/// Headers around a packet.
pub struct Encapsulation {
    /// Name of the headers.
    pub name: &'static str,
    /// Link type in a capture file.
    pub link_type: u32,
    /// Adds the headers to an IPv4 or IPv6 packet.
    pub wrap: fn(&[u8]) -> Vec<u8>,
}

macro_rules! encapsulations {
    ($($link_type:literal $name:literal $wrap:expr;)*) => {
        &[$(Encapsulation { name: $name, link_type: $link_type, wrap: $wrap }),*]
    };
}

/// All combinations of headers.
pub const ALL: &[Encapsulation] = encapsulations! {
    1 "Ethernet" |packet| frame(&ethertype(packet), packet);
    1 "802.1Q" |packet| tagged(&[[0x81, 0, 0, 8]], packet);
    1 "QinQ" |packet| tagged(&[[0x88, 0xa8, 0, 7], [0x81, 0, 0, 8]], packet);
    1 "802.1ah" |packet| {
        frame(&[0x88, 0xa8], &[&[0, 7, 0x88, 0xe7, 0, 0, 1, 2], &*frame(&ethertype(packet), packet)].concat())
    };
    1 "LLC and SNAP" |packet| {
        let llc = snap(packet);
        frame(&(llc.len() as u16).to_be_bytes(), &llc)
    };
    1 "LLC" |packet| frame(&(packet.len() as u16 + 3).to_be_bytes(), &[&[6, 6, 3], packet].concat());
    1 "MACsec without encryption" |packet| {
        frame(&[0x88, 0xe5], &[&[0, 0, 0, 0, 0, 9], &ethertype(packet)[..], packet, &[0xaa; 16]].concat())
    };
    1 "MPLS" |packet| frame(&[0x88, 0x47], &[&[0, 1, 0x00, 9, 0, 2, 0x01, 9], packet].concat());
    1 "Ethernet in MPLS" |packet| {
        let inner = frame(&ethertype(packet), packet);
        frame(&[0x88, 0x47], &[&[0, 1, 0x01, 9, 0, 0, 0, 1], &*inner].concat())
    };
    1 "Ethernet in MPLS without a control word" |packet| {
        frame(&[0x88, 0x47], &[&[0, 1, 0x01, 9], &*frame(&ethertype(packet), packet)].concat())
    };
    1 "PPPoE" |packet| {
        let len = (packet.len() as u16 + 2).to_be_bytes();
        frame(&[0x88, 0x64], &[&[0x11, 0, 0, 7], &len[..], &[0, ppp(packet)], packet].concat())
    };
    9 "PPP" |packet| [&[0xff, 3, 0, ppp(packet)], packet].concat();
    50 "PPP on a serial line" |packet| [&[0xff, 3, 0, ppp(packet)], packet].concat();
    50 "HDLC on a serial line" |packet| [&[0x0f, 0], &ethertype(packet)[..], packet].concat();
    104 "HDLC" |packet| [&[0x0f, 0], &ethertype(packet)[..], packet].concat();
    101 "raw IP" <[u8]>::to_vec;
    0 "BSD loopback" |packet| [&[if is_v6(packet) { 30 } else { 2 }, 0, 0, 0], packet].concat();
    108 "OpenBSD loopback" |packet| [&[0, 0, 0, if is_v6(packet) { 24 } else { 2 }], packet].concat();
    113 "Linux cooked" |packet| {
        [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], &ethertype(packet)[..], packet].concat()
    };
    276 "Linux cooked 2" |packet| {
        let rest = [0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
        [&ethertype(packet)[..], &rest, packet].concat()
    };
    239 "NFLOG" |packet| nflog(packet);
    242 "IP over InfiniBand" |packet| {
        [&[0x60; 40], &ethertype(packet)[..], &[0, 0], packet].concat()
    };
    105 "802.11" |packet| wlan(&[0x08, 1], &[], packet);
    105 "802.11 with QoS" |packet| wlan(&[0x88, 2], &[0, 0], packet);
    105 "802.11 between access points" |packet| wlan(&[0x88, 3], &[2, 0, 0, 0, 0, 9, 0, 0], packet);
    127 "radiotap" |packet| {
        let header = [0, 0, 17, 0, 3, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0];
        [&header[..], &wlan(&[0x88, 1], &[0, 0], packet)].concat()
    };
    127 "radiotap with padding" |packet| {
        let header = [0, 0, 13, 0, 2, 0, 0, 0x80, 0, 0, 0, 0, 0x20];
        [&header[..], &wlan(&[0x88, 1], &[0, 0, 0, 0], packet)].concat()
    };
    192 "PPI" |packet| [&[0, 0, 8, 0, 105, 0, 0, 0], &*wlan(&[0x08, 1], &[], packet)].concat();
    101 "IPv4 in IPv4, 6in4" |packet| v4(if is_v6(packet) { 41 } else { 4 }, packet);
    101 "4in6, IPv6 in IPv6" |packet| v6(if is_v6(packet) { 41 } else { 4 }, packet);
    101 "GRE" |packet| v4(47, &[&[0, 0], &ethertype(packet)[..], packet].concat());
    101 "GRE with all fields" |packet| {
        let fields = [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1];
        v4(47, &[&[0xb0, 0], &ethertype(packet)[..], &fields, packet].concat())
    };
    101 "Ethernet in GRE" |packet| {
        v6(47, &[&[0x20, 0, 0x65, 0x58, 0, 0, 0, 5], &*frame(&ethertype(packet), packet)].concat())
    };
    101 "PPTP" |packet| {
        let len = (packet.len() as u16 + 4).to_be_bytes();
        let header = [0x30, 0x81, 0x88, 0x0b, len[0], len[1], 0, 5, 0, 0, 0, 1, 0, 0, 0, 1];
        v4(47, &[&header[..], &[0xff, 3, 0, ppp(packet)], packet].concat())
    };
    101 "ERSPAN" |packet| {
        let header = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 1, 0, 0, 0, 0];
        v4(47, &[&header[..], &frame(&ethertype(packet), packet)].concat())
    };
    101 "EtherIP" |packet| v4(97, &[&[0x30, 0], &*frame(&ethertype(packet), packet)].concat());
    101 "MPLS in IP" |packet| v4(137, &[&[0, 1, 1, 9], packet].concat());
    101 "VXLAN" |packet| {
        let inner = frame(&ethertype(packet), packet);
        v4(17, &udp([40_000, 4789], &[&[8, 0, 0, 0, 0, 0, 7, 0], &*inner].concat()))
    };
    101 "VXLAN-GPE" |packet| {
        let protocol = if is_v6(packet) { 2 } else { 1 };
        v4(17, &udp([40_000, 4790], &[&[12, 0, 0, protocol, 0, 0, 7, 0], packet].concat()))
    };
    101 "Geneve" |packet| {
        let header = [1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 0];
        v6(17, &udp([40_000, 6081], &[&header[..], &frame(&ethertype(packet), packet)].concat()))
    };
    101 "GTP-U" |packet| {
        let len = (packet.len() as u16).to_be_bytes();
        v4(17, &udp([2152, 2152], &[&[0x30, 255, len[0], len[1], 0, 0, 0, 1], packet].concat()))
    };
    101 "GTP-U with an extension header" |packet| {
        let len = (packet.len() as u16 + 8).to_be_bytes();
        let header = [0x34, 255, len[0], len[1], 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x10, 5, 0];
        v4(17, &udp([2152, 2152], &[&header[..], packet].concat()))
    };
    101 "Teredo" |packet| v4(17, &udp([40_000, 3544], &[&*origin(), &within_v6(packet)].concat()));
    101 "L2TP" |packet| {
        let len = (packet.len() as u16 + 12).to_be_bytes();
        let header = [0x40, 2, len[0], len[1], 0, 1, 0, 2, 0xff, 3, 0, ppp(packet)];
        v4(17, &udp([1701, 1701], &[&header[..], packet].concat()))
    };
    101 "L2TP with all fields" |packet| {
        let len = (packet.len() as u16 + 16).to_be_bytes();
        let header = [0x4a, 2, len[0], len[1], 0, 1, 0, 2, 0, 3, 0, 4, 0, 0, 0, ppp(packet)];
        v4(17, &udp([1701, 1701], &[&header[..], packet].concat()))
    };
};

fn is_v6(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 6)
}

fn ppp(packet: &[u8]) -> u8 {
    if is_v6(packet) { 0x57 } else { 0x21 }
}

fn frame(kind: &[u8], payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], kind, payload].concat()
}

fn tagged(tags: &[[u8; 4]], packet: &[u8]) -> Vec<u8> {
    let [first, rest @ ..] = tags else { return frame(&ethertype(packet), packet) };
    let kind = ethertype(packet);
    frame(&first[..2], &[&first[2..], &rest.concat(), &kind, packet].concat())
}

fn snap(packet: &[u8]) -> Vec<u8> {
    [&[0xaa, 0xaa, 3, 0, 0, 0], &ethertype(packet)[..], packet].concat()
}

fn wlan(control: &[u8; 2], after_addresses: &[u8], packet: &[u8]) -> Vec<u8> {
    let addresses = [0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 3, 0x10, 0];
    [control, &addresses[..], after_addresses, &snap(packet)].concat()
}

fn nflog(packet: &[u8]) -> Vec<u8> {
    let len = (packet.len() as u16 + 4).to_le_bytes();
    let family = if is_v6(packet) { 10 } else { 2 };
    // A prefix attribute of one byte, with padding, and the header of the payload attribute.
    let mut frame = vec![family, 0, 0, 5, 5, 0, 10, 0, 0, 0, 0, 0, len[0], len[1], 9, 0];
    frame.extend(packet);
    frame
}

/// Adds an IPv4 header to a payload.
pub fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16 + 20).to_be_bytes();
    let mut header = [0x45, 0, len[0], len[1], 0, 9, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&header, payload].concat()
}

/// Adds an IPv6 header to a payload.
pub fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16).to_be_bytes();
    let mut header = vec![0x60, 0, 0, 0, len[0], len[1], next, 64, 0x20, 1, 0x0d, 0xb8];
    header.extend([0; 11]);
    header.extend([1, 0x20, 1, 0x0d, 0xb8]);
    header.extend([0; 11]);
    header.push(2);
    [&header, payload].concat()
}

/// Adds a UDP header with these ports and without a checksum.
pub fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let [from, to] = ports.map(u16::to_be_bytes);
    let len = (payload.len() as u16 + 8).to_be_bytes();
    [&from[..], &to, &len, &[0, 0], payload].concat()
}

/// Returns Teredo's origin indication.
fn origin() -> Vec<u8> {
    vec![0, 0, 0x63, 0xbf, 0x3f, 0xff, 0xfd, 0xfe]
}

/// Returns an IPv6 packet, because Teredo carries only IPv6. IPv4 packets are encapsulated.
fn within_v6(packet: &[u8]) -> Vec<u8> {
    if is_v6(packet) { packet.to_vec() } else { v6(4, packet) }
}
