//! Where the parts of a packet are, which checksum covers which bit, and which bits cancel in it.
//!
//! The Internet checksum (RFC 1071) is the ones' complement sum of 16-bit words: a bit that becomes 1 adds its weight, one
//! that becomes 0 takes it away. Two bits of one weight, turned opposite ways, leave the sum as it was. IPv4's checksum
//! covers its header (RFC 791 §3.1); those of TCP, UDP and ICMPv6 cover header, payload and, by the pseudo-header, the
//! addresses (RFC 9293 §3.1, RFC 768, RFC 8200 §8.1), that of ICMP header and payload (RFC 792).

use std::ops::Range;

use airwire::rng::Stream;

use super::Part;

/// A whole IP packet, as its own headers describe it.
#[derive(Debug)]
pub(super) struct Anatomy {
    is_v4: bool,
    /// Octets of the IP header.
    ip: usize,
    /// Octets of the IP header and the transport header.
    header: usize,
    /// Octets of the packet as IP counts them. What is behind is not part of it.
    end: usize,
    transport: Transport,
    /// Whether a checksum covers what is behind the IP header.
    sum: Sum,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Tcp,
    Udp,
    Icmp,
    /// A fragment of those: its checksum is that of the whole datagram, and the sum of all its words.
    Fragment,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sum {
    Covers,
    /// A UDP datagram over IPv4 without a checksum (RFC 768: 0).
    Absent,
    /// Of another protocol, behind IPv6 extension headers, or shorter than its header.
    Unknown,
}

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP_V6: u8 = 58;

/// How often bits are chosen anew that do not do what they should.
const ATTEMPTS: usize = 16;

impl Anatomy {
    /// `None`: not a whole IP packet.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let be16 = |at: usize| Some(usize::from(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])));
        let (is_v4, ip, end, protocol, is_fragment) = match bytes.first()? >> 4 {
            4 => {
                let is_fragment = be16(6)? & 0x3fff != 0;
                (true, 4 * usize::from(bytes[0] & 0x0f), be16(2)?, *bytes.get(9)?, is_fragment)
            }
            6 => (false, 40, 40 + be16(4)?, *bytes.get(6)?, false),
            _ => return None,
        };
        if ip < 20 || end < ip || end > bytes.len() {
            return None;
        }
        let transport = match protocol {
            TCP | UDP | ICMP if is_fragment => Transport::Fragment,
            TCP => Transport::Tcp,
            UDP => Transport::Udp,
            ICMP if is_v4 => Transport::Icmp,
            ICMP_V6 if !is_v4 => Transport::Icmp,
            _ => Transport::Other,
        };
        let known = |header: usize| (header <= end).then_some(header);
        let header = match transport {
            Transport::Tcp if end >= ip + 20 => Some(4 * usize::from(bytes[ip + 12] >> 4))
                .filter(|tcp| *tcp >= 20)
                .and_then(|tcp| known(ip + tcp)),
            Transport::Udp | Transport::Icmp => known(ip + 8),
            Transport::Fragment => Some(ip),
            Transport::Tcp | Transport::Other => None,
        };
        let sum = match header {
            None => Sum::Unknown,
            Some(_) if transport == Transport::Udp && is_v4 && be16(ip + 6)? == 0 => Sum::Absent,
            Some(_) => Sum::Covers,
        };
        Some(Self { is_v4, ip, header: header.unwrap_or(ip), end, transport, sum })
    }

    /// Bits of which a checksum tells that they are wrong. `None`: there are too few that one covers.
    pub(super) fn bits_that_are_found(
        &self,
        bytes: &[u8],
        part: Part,
        count: usize,
        stream: &mut Stream,
    ) -> Option<Vec<u32>> {
        let octets = self.covered(part);
        if octets.len() * 8 < count {
            return None;
        }
        // A few bits may cancel by accident.
        (0..ATTEMPTS).map(|_| distinct(&octets, count, stream)).find(|bits| self.are_found(bytes, bits))
    }

    /// Bits that are wrong and leave every checksum right. `None`: there are none.
    pub(super) fn bits_that_cancel(
        &self,
        bytes: &[u8],
        part: Part,
        count: usize,
        stream: &mut Stream,
    ) -> Option<Vec<u32>> {
        let octets = self.deceptive(part);
        if octets.len() * 8 < count {
            return None;
        }
        match self.sum {
            Sum::Covers => (0..ATTEMPTS).find_map(|_| pairs(bytes, &octets, count, stream)),
            Sum::Absent => Some(distinct(&octets, count, stream)),
            Sum::Unknown => None,
        }
    }

    /// Octets that a checksum covers. That of UDP is left out: as 0 it would be none.
    fn covered(&self, part: Part) -> Vec<usize> {
        let ip_header = match (self.is_v4, self.sum) {
            (true, _) => 0..self.ip,
            // IPv6 has no checksum of its own, and the pseudo-header has the addresses.
            (false, Sum::Covers) => 8..40,
            (false, _) => 0..0,
        };
        let header = match (self.sum, self.transport) {
            (Sum::Covers, Transport::Udp) => self.ip..self.ip + 6,
            (Sum::Covers, _) => self.ip..self.header,
            (Sum::Absent | Sum::Unknown, _) => 0..0,
        };
        let payload = if self.sum == Sum::Covers { self.header..self.end } else { 0..0 };
        within(part, &[ip_header, header], payload)
    }

    /// Octets of which the receiver makes use, and finds the packet all the same: not those of the IP header, by which
    /// it would go elsewhere, nor those that say how long a part is.
    fn deceptive(&self, part: Part) -> Vec<usize> {
        let ip = self.ip;
        let header = match self.transport {
            // The data offset is in octet 12 (RFC 9293 §3.1).
            Transport::Tcp => [ip..ip + 12, ip + 13..self.header],
            // The ports: behind them are length and checksum (RFC 768).
            Transport::Udp => [ip..ip + 4, 0..0],
            Transport::Icmp | Transport::Fragment | Transport::Other => [ip..self.header, 0..0],
        };
        within(part, &header, self.header..self.end)
    }

    /// Whether the sum of IPv4's header, or that of the transport protocol, has changed.
    fn are_found(&self, bytes: &[u8], bits: &[u32]) -> bool {
        let addresses = if self.is_v4 { 12..20 } else { 8..40 };
        let changes = |covers: &dyn Fn(usize) -> bool| {
            let change: i64 =
                bits.iter().filter(|bit| covers(octet(**bit))).map(|bit| turned(bytes, *bit)).sum();
            change.rem_euclid(0xffff) != 0
        };
        let by_ip = self.is_v4 && changes(&|octet| octet < self.ip);
        // ICMP has no pseudo-header, and fragments of other addresses never meet.
        let has_pseudo_header = match self.transport {
            Transport::Tcp | Transport::Udp => true,
            Transport::Icmp => !self.is_v4,
            Transport::Fragment | Transport::Other => false,
        };
        let in_sum = |octet: usize| octet >= self.ip || has_pseudo_header && addresses.contains(&octet);
        by_ip || self.sum == Sum::Covers && changes(&in_sum)
    }
}

/// Those of the octets that belong to the part.
fn within(part: Part, header: &[Range<usize>], payload: Range<usize>) -> Vec<usize> {
    let header = header.iter().cloned().flatten();
    match part {
        Part::Anywhere => header.chain(payload).collect(),
        Part::Header => header.collect(),
        Part::Payload => payload.collect(),
    }
}

const fn octet(bit: u32) -> usize {
    bit as usize / 8
}

fn is_set(bytes: &[u8], bit: u32) -> bool {
    bytes[octet(bit)] & 0x80 >> (bit % 8) != 0
}

/// What turning the bit over adds to a sum of 16-bit words. All headers begin at even octets.
fn turned(bytes: &[u8], bit: u32) -> i64 {
    let weight = 1 << (15 - bit % 16);
    if is_set(bytes, bit) { -weight } else { weight }
}

fn any(octets: &[usize], stream: &mut Stream) -> u32 {
    let bit = stream.below(octets.len() as u64 * 8);
    octets[(bit / 8) as usize] as u32 * 8 + (bit % 8) as u32
}

/// So many different bits, of at least as many.
fn distinct(octets: &[usize], count: usize, stream: &mut Stream) -> Vec<u32> {
    let mut bits = Vec::with_capacity(count);
    while bits.len() < count {
        let bit = any(octets, stream);
        if !bits.contains(&bit) {
            bits.push(bit);
        }
    }
    bits
}

/// Pairs of bits that cancel, each different from all others. `None`: one has found no other.
fn pairs(bytes: &[u8], octets: &[usize], count: usize, stream: &mut Stream) -> Option<Vec<u32>> {
    let mut bits: Vec<u32> = Vec::with_capacity(count);
    while bits.len() < count {
        let one = any(octets, stream);
        let others: Vec<u32> = octets
            .iter()
            .map(|octet| *octet as u32 * 8 + one % 8)
            .filter(|other| {
                one % 16 == other % 16 && is_set(bytes, one) != is_set(bytes, *other) && !bits.contains(other)
            })
            .collect();
        if bits.contains(&one) || others.is_empty() {
            return None;
        }
        bits.extend([one, others[stream.below(others.len() as u64) as usize]]);
    }
    Some(bits)
}
