//! The layout of a packet: where its parts are, which checksum covers which bit, and which bits cancel out.
//!
//! The Internet checksum (RFC 1071) is the ones' complement sum of 16-bit words. Setting a bit adds its
//! weight to the sum, and clearing it subtracts the weight. Flipping two bits of the same weight in opposite
//! directions leaves the sum unchanged. IPv4's checksum covers its header (RFC 791 §3.1). The checksums of
//! TCP, UDP and ICMPv6 cover header, payload and, through the pseudo-header, the addresses (RFC 9293 §3.1,
//! RFC 768, RFC 8200 §8.1). ICMP's checksum covers header and payload (RFC 792).

use std::ops::Range;

use airwire::rng::Stream;
use airwire::view::{ICMP, ICMP_V6, TCP, UDP, View};

use super::Part;

/// The layout of a complete IP packet, as its headers describe it.
#[derive(Debug)]
pub(super) struct Anatomy {
    is_v4: bool,
    /// Length of the IP header in bytes.
    ip: usize,
    /// Length of the IP header and the transport header in bytes.
    header: usize,
    /// Length of the packet in bytes according to its IP header. Later bytes are not part of the packet.
    end: usize,
    transport: Transport,
    /// Whether a checksum covers the data after the IP header.
    sum: Sum,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Tcp,
    Udp,
    Icmp,
    /// A fragment of a TCP, UDP or ICMP datagram. The datagram's checksum is computed over all fragments.
    Fragment,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sum {
    Covers,
    /// A UDP datagram over IPv4 without a checksum (RFC 768: the field is 0).
    Absent,
    /// Another protocol, a packet with IPv6 extension headers, or an incomplete transport header.
    Unknown,
}

/// Number of random choices to try until one has the desired effect on the checksums.
const ATTEMPTS: usize = 16;

impl Anatomy {
    /// Parses the headers. Returns `None` if the bytes are not a complete IP packet.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let view = View::complete(bytes)?;
        let (is_v4, ip, end) = (view.is_v4, view.transport, view.end);
        let transport = match view.protocol {
            TCP | UDP | ICMP if view.fragment.is_some() => Transport::Fragment,
            TCP => Transport::Tcp,
            UDP => Transport::Udp,
            ICMP if is_v4 => Transport::Icmp,
            ICMP_V6 if !is_v4 => Transport::Icmp,
            _ => Transport::Other,
        };
        let header = match transport {
            Transport::Tcp => view.tcp().map(|tcp| ip + tcp.header.len),
            Transport::Udp | Transport::Icmp => (ip + 8 <= end).then_some(ip + 8),
            Transport::Fragment => Some(ip),
            Transport::Other => None,
        };
        let sum = match header {
            None => Sum::Unknown,
            Some(_) if transport == Transport::Udp && is_v4 && bytes[ip + 6..ip + 8] == [0, 0] => Sum::Absent,
            Some(_) => Sum::Covers,
        };
        Some(Self { is_v4, ip, header: header.unwrap_or(ip), end, transport, sum })
    }

    /// Chooses bits such that a checksum detects the change. Returns `None` if the checksums cover too few
    /// bits or no attempt succeeds.
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
        // A few flipped bits may cancel out by chance.
        (0..ATTEMPTS).map(|_| distinct(&octets, count, stream)).find(|bits| self.are_found(bytes, bits))
    }

    /// Chooses bits such that all checksums still match after the change. Returns `None` if it finds none.
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

    /// Returns the offsets of the bytes that a checksum covers. UDP's checksum field is excluded, because
    /// flipping its bits could make it 0, which means "no checksum".
    fn covered(&self, part: Part) -> Vec<usize> {
        let ip_header = match (self.is_v4, self.sum) {
            (true, _) => 0..self.ip,
            // IPv6 has no header checksum, but the pseudo-header includes the addresses.
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

    /// Returns the offsets of the bytes that the receiver uses and that can change without affecting
    /// delivery. This excludes the IP header, which determines the destination, and all length fields.
    fn deceptive(&self, part: Part) -> Vec<usize> {
        let ip = self.ip;
        let header = match self.transport {
            // The data offset is in byte 12 (RFC 9293 §3.1).
            Transport::Tcp => [ip..ip + 12, ip + 13..self.header],
            // Only the ports: length and checksum follow them (RFC 768).
            Transport::Udp => [ip..ip + 4, 0..0],
            Transport::Icmp | Transport::Fragment | Transport::Other => [ip..self.header, 0..0],
        };
        within(part, &header, self.header..self.end)
    }

    /// Returns whether the flipped bits change the sum of the IPv4 header or of the transport protocol.
    fn are_found(&self, bytes: &[u8], bits: &[u32]) -> bool {
        let addresses = if self.is_v4 { 12..20 } else { 8..40 };
        let changes = |covers: &dyn Fn(usize) -> bool| {
            let change: i64 =
                bits.iter().filter(|bit| covers(octet(**bit))).map(|bit| turned(bytes, *bit)).sum();
            change.rem_euclid(0xffff) != 0
        };
        let by_ip = self.is_v4 && changes(&|octet| octet < self.ip);
        // ICMP has no pseudo-header. A fragment with a changed address is not reassembled with the others.
        let has_pseudo_header = match self.transport {
            Transport::Tcp | Transport::Udp => true,
            Transport::Icmp => !self.is_v4,
            Transport::Fragment | Transport::Other => false,
        };
        let in_sum = |octet: usize| octet >= self.ip || has_pseudo_header && addresses.contains(&octet);
        by_ip || self.sum == Sum::Covers && changes(&in_sum)
    }
}

/// Returns the offsets that belong to `part`.
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

/// Returns how flipping the bit changes the sum of 16-bit words. All headers begin at even offsets.
fn turned(bytes: &[u8], bit: u32) -> i64 {
    let weight = 1 << (15 - bit % 16);
    if is_set(bytes, bit) { -weight } else { weight }
}

fn any(octets: &[usize], stream: &mut Stream) -> u32 {
    let bit = stream.below(octets.len() as u64 * 8);
    octets[(bit / 8) as usize] as u32 * 8 + (bit % 8) as u32
}

/// Draws `count` different bits. `octets` must contain at least that many.
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

/// Draws pairs of bits that cancel out, all of them different. Returns `None` if a bit has no partner.
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
