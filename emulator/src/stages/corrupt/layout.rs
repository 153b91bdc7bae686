//! The layout of a packet: the position of its parts, the bits that each checksum covers, and pairs of bits
//! that cancel out.
//!
//! The Internet checksum (RFC 1071) is the ones' complement sum of 16-bit words. Setting a bit adds its
//! weight to the sum, and clearing it subtracts the weight. Flipping two bits of the same weight in opposite
//! directions leaves the sum unchanged. IPv4's checksum covers its header (RFC 791 §3.1). The checksums of
//! TCP, UDP and ICMPv6 cover header, payload and, through the pseudo-header, the addresses (RFC 9293 §3.1,
//! RFC 768, RFC 8200 §8.1). ICMP's checksum covers header and payload (RFC 792).

use std::ops::Range;

use airwire::rng::Stream;
use airwire::view::{ICMP, ICMP_V6, TCP, UDP, View};

use super::{Checksum, Part};

/// The layout of a complete IP packet, as its headers describe it.
#[derive(Debug)]
pub(super) struct Layout {
    is_v4: bool,
    /// Offset of the transport header: the length of the IP header in bytes.
    transport_start: usize,
    /// Offset of the data after the transport header.
    payload_start: usize,
    /// Length of the packet in bytes according to its IP header. Later bytes are not part of the packet.
    end: usize,
    transport: Transport,
    coverage: Coverage,
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

/// Whether a checksum covers the data after the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coverage {
    Covered,
    /// A UDP datagram over IPv4 without a checksum (RFC 768: the field is 0).
    NoChecksum,
    /// Another protocol, a packet with IPv6 extension headers, or an incomplete transport header.
    Unknown,
}

/// Number of random choices to try until one has the desired effect on the checksums.
const ATTEMPTS: usize = 16;

impl Layout {
    /// Parses the headers. Returns `None` if the bytes are not a complete IP packet.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let view = View::complete(bytes)?;
        let (is_v4, start, end) = (view.is_v4(), view.transport, view.end);
        let transport = match view.protocol {
            TCP | UDP | ICMP if view.fragment.is_some() => Transport::Fragment,
            TCP => Transport::Tcp,
            UDP => Transport::Udp,
            ICMP if is_v4 => Transport::Icmp,
            ICMP_V6 if !is_v4 => Transport::Icmp,
            _ => Transport::Other,
        };
        let payload_start = match transport {
            Transport::Tcp => view.tcp().map(|tcp| start + tcp.header.len),
            Transport::Udp | Transport::Icmp => (start + 8 <= end).then_some(start + 8),
            Transport::Fragment => Some(start),
            Transport::Other => None,
        };
        let is_udp_v4 = transport == Transport::Udp && is_v4;
        let coverage = match payload_start {
            None => Coverage::Unknown,
            Some(_) if is_udp_v4 && bytes[start + 6..start + 8] == [0, 0] => Coverage::NoChecksum,
            Some(_) => Coverage::Covered,
        };
        let payload_start = payload_start.unwrap_or(start);
        Some(Self { is_v4, transport_start: start, payload_start, end, transport, coverage })
    }

    /// Chooses bits whose flipping has this effect on the checksums. Returns `None` if the part has too few
    /// suitable bits or no attempt succeeds.
    pub(super) fn choose_bits(
        &self,
        bytes: &[u8],
        part: Part,
        checksum: Checksum,
        count: usize,
        stream: &mut Stream,
    ) -> Option<Vec<u32>> {
        let offsets = match checksum {
            Checksum::Fails => self.covered_offsets(part),
            Checksum::Passes => self.changeable_offsets(part),
        };
        if offsets.len() * 8 < count {
            return None;
        }
        match (checksum, self.coverage) {
            // A few flipped bits may cancel out by chance.
            (Checksum::Fails, _) => (0..ATTEMPTS)
                .map(|_| distinct_bits(&offsets, count, stream))
                .find(|bits| self.detects(bytes, bits)),
            (Checksum::Passes, Coverage::Covered) => {
                (0..ATTEMPTS).find_map(|_| cancelling_bits(bytes, &offsets, count, stream))
            }
            (Checksum::Passes, Coverage::NoChecksum) => Some(distinct_bits(&offsets, count, stream)),
            (Checksum::Passes, Coverage::Unknown) => None,
        }
    }

    /// Returns the offsets of the bytes that a checksum covers. UDP's checksum field is excluded, because
    /// flipping its bits could make it 0, which means "no checksum".
    fn covered_offsets(&self, part: Part) -> Vec<usize> {
        let is_covered = self.coverage == Coverage::Covered;
        let ip_header = match self.is_v4 {
            true => 0..self.transport_start,
            // IPv6 has no header checksum, but the pseudo-header includes the addresses.
            false if is_covered => 8..40,
            false => 0..0,
        };
        let (transport_header, payload) = match (is_covered, self.transport) {
            (false, _) => (0..0, 0..0),
            (true, Transport::Udp) => {
                (self.transport_start..self.transport_start + 6, self.payload_start..self.end)
            }
            (true, _) => (self.transport_start..self.payload_start, self.payload_start..self.end),
        };
        offsets_of(part, &[ip_header, transport_header], payload)
    }

    /// Returns the offsets of the bytes that the receiver uses and that can change without affecting
    /// delivery. This excludes the IP header, which determines the destination, and all length fields.
    fn changeable_offsets(&self, part: Part) -> Vec<usize> {
        let start = self.transport_start;
        let header = match self.transport {
            // The data offset is in byte 12 (RFC 9293 §3.1).
            Transport::Tcp => [start..start + 12, start + 13..self.payload_start],
            // Only the ports: length and checksum follow them (RFC 768).
            Transport::Udp => [start..start + 4, 0..0],
            Transport::Icmp | Transport::Fragment | Transport::Other => [start..self.payload_start, 0..0],
        };
        offsets_of(part, &header, self.payload_start..self.end)
    }

    /// Returns whether flipping the bits changes the sum of the IPv4 header or of the transport protocol.
    fn detects(&self, bytes: &[u8], bits: &[u32]) -> bool {
        let addresses = if self.is_v4 { 12..20 } else { 8..40 };
        let sum_changes = |is_covered: &dyn Fn(usize) -> bool| {
            let covered = bits.iter().filter(|bit| is_covered(byte_of(**bit)));
            let change: i64 = covered.map(|bit| sum_change(bytes, *bit)).sum();
            change.rem_euclid(0xffff) != 0
        };
        // ICMP has no pseudo-header. A fragment with a changed address is not reassembled with other
        // fragments.
        let has_pseudo_header = match self.transport {
            Transport::Tcp | Transport::Udp => true,
            Transport::Icmp => !self.is_v4,
            Transport::Fragment | Transport::Other => false,
        };
        let in_transport_sum = |offset: usize| {
            offset >= self.transport_start || has_pseudo_header && addresses.contains(&offset)
        };
        self.is_v4 && sum_changes(&|offset| offset < self.transport_start)
            || self.coverage == Coverage::Covered && sum_changes(&in_transport_sum)
    }
}

/// Returns the offsets in `part`.
fn offsets_of(part: Part, header: &[Range<usize>], payload: Range<usize>) -> Vec<usize> {
    let header = header.iter().cloned().flatten();
    match part {
        Part::Anywhere => header.chain(payload).collect(),
        Part::Header => header.collect(),
        Part::Payload => payload.collect(),
    }
}

const fn byte_of(bit: u32) -> usize {
    bit as usize / 8
}

fn is_set(bytes: &[u8], bit: u32) -> bool {
    bytes[byte_of(bit)] & 0x80 >> (bit % 8) != 0
}

/// Returns how flipping the bit changes the sum of 16-bit words. All headers begin at even offsets.
fn sum_change(bytes: &[u8], bit: u32) -> i64 {
    let weight = 1 << (15 - bit % 16);
    if is_set(bytes, bit) { -weight } else { weight }
}

fn random_bit(offsets: &[usize], stream: &mut Stream) -> u32 {
    let bit = stream.below(offsets.len() as u64 * 8);
    offsets[(bit / 8) as usize] as u32 * 8 + (bit % 8) as u32
}

/// Draws `count` different bits. `offsets` must contain at least this number of bits.
fn distinct_bits(offsets: &[usize], count: usize, stream: &mut Stream) -> Vec<u32> {
    let mut bits = Vec::with_capacity(count);
    while bits.len() < count {
        let bit = random_bit(offsets, stream);
        if !bits.contains(&bit) {
            bits.push(bit);
        }
    }
    bits
}

/// Draws pairs of bits that cancel out. All bits are different. Returns `None` if a bit has no partner.
fn cancelling_bits(bytes: &[u8], offsets: &[usize], count: usize, stream: &mut Stream) -> Option<Vec<u32>> {
    let mut bits: Vec<u32> = Vec::with_capacity(count);
    while bits.len() < count {
        let first = random_bit(offsets, stream);
        let cancels = |other: &u32| {
            let has_same_weight = first % 16 == other % 16;
            has_same_weight && is_set(bytes, first) != is_set(bytes, *other) && !bits.contains(other)
        };
        let partners: Vec<u32> =
            offsets.iter().map(|offset| *offset as u32 * 8 + first % 8).filter(cancels).collect();
        if bits.contains(&first) || partners.is_empty() {
            return None;
        }
        bits.extend([first, partners[stream.below(partners.len() as u64) as usize]]);
    }
    Some(bits)
}
