//! Reads and rewrites a TCP header inside its IP packet. Checksums are updated incrementally (RFC 1624, eqn.
//! 3), so a wrong checksum stays wrong.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::packet::Direction;

/// The parts of a packet that a station can process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Segment(Segment),
    /// The first fragment of a TCP segment. The length of the segment is unknown, and the packet stays
    /// unchanged.
    FirstFragment(Segment),
    /// Not TCP, a later fragment, a truncated packet, or one with an unsupported IPv6 header. It stays
    /// unchanged.
    Other,
}

/// A TCP segment and its position in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    family: Family,
    /// Offset of the TCP header.
    tcp: usize,
    /// Offset of the payload, where the options end.
    payload: usize,
    /// End of the IP packet. Padding may follow.
    end: usize,
    pub(super) source: (Ipv6Addr, u16),
    pub(super) destination: (Ipv6Addr, u16),
    pub(super) seq: u32,
    pub(super) ack: u32,
    /// The 12 bits after the data offset.
    pub(super) flags: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

pub(super) const FIN: u16 = 0x001;
pub(super) const SYN: u16 = 0x002;
pub(super) const RST: u16 = 0x004;
pub(super) const ACK: u16 = 0x010;

/// Length of a TCP header without options, and maximum length of options (RFC 9293 §3.1), in bytes.
const HEADER: usize = 20;
pub(super) const MAX_OPTIONS: usize = 40;

const TCP: u8 = 6;
const HOP_BY_HOP: u8 = 0;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

enum Fragment {
    Whole,
    First,
    Later,
}

pub(super) fn parse(packet: &[u8]) -> Parsed {
    parse_ip(packet).unwrap_or(Parsed::Other)
}

fn parse_ip(packet: &[u8]) -> Option<Parsed> {
    match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet[0] & 0x0f) * 4;
            let end = usize::from(u16_at(packet, 2)?);
            if header < 20 || end < header || end > packet.len() || packet[9] != TCP {
                return Some(Parsed::Other);
            }
            let position = u16_at(packet, 6)?;
            let fragment = match (position & 0x1fff, position & 0x2000) {
                (0, 0) => Fragment::Whole,
                (0, _) => Fragment::First,
                _ => Fragment::Later,
            };
            let address = |at: usize| {
                let octets: [u8; 4] = packet[at..at + 4].try_into().expect("a slice of 4");
                Ipv4Addr::from(octets).to_ipv6_mapped()
            };
            parse_tcp(packet, Family::V4, header, end, fragment, [address(12), address(16)])
        }
        6 => {
            let length = usize::from(u16_at(packet, 4)?);
            let end = 40 + length;
            // A length of 0 denotes a jumbogram (RFC 2675).
            if length == 0 || end > packet.len() {
                return Some(Parsed::Other);
            }
            let (at, fragment) = walk_extensions(&packet[..end])?;
            let address = |at: usize| {
                let octets: [u8; 16] = packet[at..at + 16].try_into().expect("a slice of 16");
                Ipv6Addr::from(octets)
            };
            parse_tcp(packet, Family::V6, at, end, fragment, [address(8), address(24)])
        }
        _ => None,
    }
}

/// Returns the offset of the TCP header after the extension headers. Fails on headers that replace the
/// connection's addresses (routing) or forbid changes (authentication).
fn walk_extensions(packet: &[u8]) -> Option<(usize, Fragment)> {
    let (mut next, mut at) = (*packet.get(6)?, 40);
    let mut fragment = Fragment::Whole;
    loop {
        match next {
            TCP => return Some((at, fragment)),
            HOP_BY_HOP | DESTINATION_OPTIONS => {
                next = *packet.get(at)?;
                at += 8 + 8 * usize::from(*packet.get(at + 1)?);
            }
            FRAGMENT => {
                next = *packet.get(at)?;
                let position = u16_at(packet, at + 2)?;
                fragment = match (position & 0xfff8, position & 1) {
                    (0, 0) => Fragment::Whole,
                    (0, _) => Fragment::First,
                    _ => Fragment::Later,
                };
                at += 8;
            }
            _ => return None,
        }
        if matches!(fragment, Fragment::Later) {
            return None;
        }
    }
}

fn parse_tcp(
    packet: &[u8],
    family: Family,
    at: usize,
    end: usize,
    fragment: Fragment,
    [source, destination]: [Ipv6Addr; 2],
) -> Option<Parsed> {
    if matches!(fragment, Fragment::Later) {
        return None;
    }
    let tcp = packet.get(at..end).filter(|tcp| tcp.len() >= HEADER)?;
    let offset = u16_at(tcp, 12)?;
    let header = usize::from(offset >> 12) * 4;
    if header < HEADER || header > tcp.len() {
        return None;
    }
    let segment = Segment {
        family,
        tcp: at,
        payload: at + header,
        end,
        source: (source, u16_at(tcp, 0)?),
        destination: (destination, u16_at(tcp, 2)?),
        seq: u32_at(tcp, 4)?,
        ack: u32_at(tcp, 8)?,
        flags: offset & 0x0fff,
    };
    Some(match fragment {
        Fragment::First => Parsed::FirstFragment(segment),
        _ => Parsed::Segment(segment),
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl Segment {
    pub(super) fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }

    pub(super) fn has_any(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// Returns the connection's endpoints on the fixed side and on the mobile side.
    pub(super) fn ends(&self, direction: Direction) -> [(Ipv6Addr, u16); 2] {
        match direction {
            Direction::Down => [self.source, self.destination],
            Direction::Up => [self.destination, self.source],
        }
    }

    /// Returns the length of payload and FIN in sequence numbers. A SYN is not counted.
    pub(super) fn sequence_length(&self) -> u32 {
        (self.end - self.payload) as u32 + u32::from(self.has(FIN))
    }

    pub(super) fn options<'p>(&self, packet: &'p [u8]) -> &'p [u8] {
        &packet[self.tcp + HEADER..self.payload]
    }

    /// Returns the length of the IP packet with this many bytes of options.
    pub(super) fn length_with(&self, options: usize) -> usize {
        self.end - self.payload + self.tcp + HEADER + options
    }

    /// Returns the position of the segment in the packet.
    #[cfg(test)]
    pub(super) fn place(&self) -> std::ops::Range<usize> {
        self.tcp..self.end
    }

    pub(super) fn set_flags(&mut self, packet: &mut [u8], flags: u16) {
        let offset = (self.payload - self.tcp) as u16 / 4;
        let mut checksum = Checksum::of(packet, self.tcp + 16);
        checksum.put(packet, self.tcp + 12, offset << 12 | flags & 0x0fff);
        checksum.store(packet, self.tcp + 16);
        self.flags = flags;
    }

    /// Replaces the options.
    ///
    /// # Panics
    /// Panics if `options` is not a multiple of 32 bits or is too long.
    pub(super) fn set_options(&mut self, packet: &mut Vec<u8>, options: &[u8]) {
        assert!(options.len().is_multiple_of(4) && options.len() <= MAX_OPTIONS, "not legal as options");
        let from = self.tcp + HEADER;
        let length = self.end - self.tcp;
        let mut checksum = Checksum::of(packet, self.tcp + 16);
        checksum.without(&packet[from..self.payload]);
        checksum.with(options);

        self.end = self.end - (self.payload - from) + options.len();
        packet.splice(from..self.payload, options.iter().copied());
        self.payload = from + options.len();
        let offset = (self.payload - self.tcp) as u16 / 4;
        checksum.put(packet, self.tcp + 12, offset << 12 | self.flags);
        // The pseudo-header includes the length of the segment (RFC 9293 §3.1, RFC 8200 §8.1).
        checksum.change(length as u16, (self.end - self.tcp) as u16);
        checksum.store(packet, self.tcp + 16);

        match self.family {
            Family::V4 => {
                let mut checksum = Checksum::of(packet, 10);
                checksum.put(packet, 2, self.end as u16);
                checksum.store(packet, 10);
            }
            Family::V6 => packet[4..6].copy_from_slice(&((self.end - 40) as u16).to_be_bytes()),
        }
    }
}

/// An incrementally updated checksum: HC' = ~(~HC + ~m + m') for each 16-bit word m (RFC 1624).
struct Checksum(u32);

impl Checksum {
    fn of(packet: &[u8], at: usize) -> Self {
        let checksum = u16::from_be_bytes([packet[at], packet[at + 1]]);
        Self(u32::from(!checksum))
    }

    fn change(&mut self, from: u16, to: u16) {
        self.0 += u32::from(!from) + u32::from(to);
    }

    /// Subtracts bytes that are removed from the packet. Their number must be even.
    fn without(&mut self, octets: &[u8]) {
        for word in octets.chunks_exact(2) {
            self.change(u16::from_be_bytes([word[0], word[1]]), 0);
        }
    }

    /// Adds bytes that are inserted into the packet. Their number must be even.
    fn with(&mut self, octets: &[u8]) {
        for word in octets.chunks_exact(2) {
            self.change(0, u16::from_be_bytes([word[0], word[1]]));
        }
    }

    /// Writes a word into the packet and updates the checksum.
    fn put(&mut self, packet: &mut [u8], at: usize, value: u16) {
        let old = u16::from_be_bytes([packet[at], packet[at + 1]]);
        self.change(old, value);
        packet[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

    fn store(self, packet: &mut [u8], at: usize) {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        packet[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{Ip, Tcp, read};
    use super::*;
    use crate::path::FIXED;

    fn segment(packet: &[u8]) -> Segment {
        let Parsed::Segment(segment) = parse(packet) else { panic!("not a segment: {packet:02x?}") };
        segment
    }

    /// All possible checksums occur, including 0x0000. The value 0xffff never occurs.
    #[test]
    fn updated_checksum_equals_computed_checksum() {
        let mut seen_zero = false;
        for word in 0..=u16::MAX {
            let mut packet = Tcp::new(Ip::V4, FIXED, ACK, 1, 2).payload(&word.to_be_bytes()).packet();
            let mut segment = segment(&packet);
            segment.set_flags(&mut packet, ACK | 0xc00);
            segment.set_options(&mut packet, &[1, 1, 1, 1]);
            read(&packet);
            seen_zero |= packet[36..38] == [0, 0];
            assert_ne!(packet[36..38], [0xff, 0xff]);
        }
        assert!(seen_zero);
    }

    #[test]
    fn wrong_checksum_stays_wrong() {
        let mut packet = Tcp::new(Ip::V6, FIXED, ACK, 1, 2).payload(b"payload").packet();
        let right = packet.clone();
        packet[40 + 16] ^= 0x5a;
        let mut wrong_segment = segment(&packet);
        wrong_segment.set_flags(&mut packet, ACK | 0x800);
        let mut expected = right;
        let mut right_segment = segment(&expected);
        right_segment.set_flags(&mut expected, ACK | 0x800);
        assert_ne!(packet[56..58], expected[56..58]);
        assert_eq!(packet[..56], expected[..56]);
    }

    proptest! {
        #[test]
        fn rewriting_flags_and_options_updates_checksum_and_lengths(
            v6: bool,
            flags in 0_u16..0x1000,
            new_flags in 0_u16..0x1000,
            before in 0_usize..=10,
            after in prop::collection::vec(any::<[u8; 4]>(), 0..=10),
            payload in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let ip = if v6 { Ip::V6 } else { Ip::V4 };
            let tcp = Tcp::new(ip, FIXED, flags, 1, 2).options(&[1, 2, 3, 4].repeat(before)).payload(&payload);
            let mut packet = tcp.packet();
            let mut segment = segment(&packet);
            segment.set_flags(&mut packet, new_flags);
            segment.set_options(&mut packet, &after.concat());
            // The result equals a packet that was created with these flags and options.
            let sent = Tcp { flags: new_flags, options: after.concat(), ..tcp }.packet();
            prop_assert_eq!(&packet, &sent);
            let (read, options) = read(&packet);
            prop_assert_eq!(read, segment);
            prop_assert_eq!(options, after.concat());
        }

        #[test]
        fn parsing_any_bytes_does_not_panic(packet in prop::collection::vec(any::<u8>(), 0..120), version in 0_usize..3) {
            let mut packet = packet;
            if let (Some(first), Some(version)) = (packet.first_mut(), [0x45, 0x60].get(version)) {
                *first = *version;
            }
            let _ = parse(&packet);
        }
    }
}
