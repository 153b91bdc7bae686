//! Consecutive segments of other hosts, joined into one write.

use super::Header;
use super::tcp::{CWR, FIN, Headers, PSH, RST, SYN, URG, be16};

/// Packets that leave together: a single packet, or segments that the kernel splits again into exactly the
/// same packets.
#[derive(Debug, Default)]
pub struct Batch {
    /// The first `count` packets wait. All further packets are buffers for reuse. The headers of the second
    /// and later packets are not written, so joining does not copy packets.
    packets: Vec<Vec<u8>>,
    count: usize,
    contents: Contents,
    /// Length of the joined packet in bytes.
    len: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Contents {
    /// No packet, or one that is not a TCP segment.
    #[default]
    Other,
    Segments {
        headers: Headers,
        mss: usize,
        /// Whether another segment may follow.
        is_open: bool,
    },
}

/// The length fields of IP have 16 bits.
const MAX_IP_LEN: usize = 65_535;
/// Upper bound on the packets of a batch. 45 packets of 1500 bytes fit into the largest IP packet, so a larger
/// bound would not be useful, although the kernel takes up to 1024 parts per write.
pub(crate) const MAX_PARTS: usize = 64;

/// The parts of a write, in order.
pub(crate) struct Parts<'a> {
    packets: &'a [Vec<u8>],
    /// Bytes to skip at the start of each packet except the first.
    headers: usize,
}

impl<'a> Parts<'a> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        let (headers, packets) = (self.headers, self.packets);
        let skipped = std::iter::once(0).chain(std::iter::repeat(headers));
        packets.iter().zip(skipped).map(|(packet, skip)| &packet[skip..])
    }
}

impl Batch {
    /// Number of waiting packets.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Moves the packet into the batch and replaces it with a reusable buffer. `false`: the packet does not
    /// continue the batch, which must be written first. An empty batch accepts any packet.
    pub fn join(&mut self, packet: &mut Vec<u8>) -> bool {
        if self.count == 0 {
            self.len = packet.len();
            self.contents = Contents::first(packet);
        } else {
            let Contents::Segments { headers, mss, is_open: is_open @ true } = &mut self.contents else {
                return false;
            };
            let first = &self.packets[0];
            if self.count == MAX_PARTS || !continues(first, packet, *headers, self.count, *mss, self.len) {
                return false;
            }
            // The first packet is checked only when a second one joins it.
            if !headers.are_valid(packet) || (self.count == 1 && !headers.are_valid(first)) {
                return false;
            }
            let data = packet.len() - headers.len();
            // The kernel sets these flags only in the last segment (`tcp_gso_segment`).
            let last_flags = headers.flags(packet) & (PSH | FIN);
            *is_open = last_flags == 0 && data == *mss;
            self.len += data;
            self.packets[0][headers.ip + 13] |= last_flags;
        }
        if self.count == self.packets.len() {
            self.packets.push(Vec::new());
        }
        std::mem::swap(&mut self.packets[self.count], packet);
        self.count += 1;
        true
    }

    /// Returns the header and the parts to write.
    pub(crate) fn parts(&mut self) -> (Header, Parts<'_>) {
        let (header, skipped) = match self.contents {
            Contents::Segments { headers, mss, .. } if self.count > 1 => {
                let header = headers.prepare(&mut self.packets[0], self.len, mss);
                (header, headers.len())
            }
            // The checksum is not changed. The receiver verifies it.
            Contents::Other | Contents::Segments { .. } => (Header::Whole, 0),
        };
        (header, Parts { packets: &self.packets[..self.count], headers: skipped })
    }

    /// Empties the batch after its packets were written or refused.
    pub fn clear(&mut self) {
        self.count = 0;
        self.contents = Contents::Other;
    }

    /// Bytes of the IP packets on the wire.
    pub fn octets(&self) -> usize {
        self.packets[..self.count].iter().map(Vec::len).sum()
    }
}

impl Contents {
    fn first(packet: &[u8]) -> Self {
        let Some(headers) = Headers::of(packet) else { return Self::Other };
        // The kernel would set CWR only in the first segment. The other flags refer to one particular
        // segment.
        let is_ordinary = headers.flags(packet) & (FIN | SYN | RST | PSH | URG | CWR) == 0;
        let mss = packet.len() - headers.len();
        Self::Segments { headers, mss, is_open: is_ordinary && mss > 0 }
    }
}

/// Whether the kernel, when it splits the batch, would produce exactly `packet` at this position.
fn continues(first: &[u8], packet: &[u8], headers: Headers, count: usize, mss: usize, len: usize) -> bool {
    let Headers { ip, .. } = headers;
    let len_of_headers = headers.len();
    let next = || headers.seq(first).wrapping_add((count * mss) as u32);
    let data = packet.len().saturating_sub(len_of_headers);
    let same = |from: usize, to: usize| first[from..to] == packet[from..to];
    let fits = Headers::of(packet) == Some(headers)
        && first[0] == packet[0]
        && (1..=mss).contains(&data)
        && len + data <= MAX_IP_LEN;
    let ip_continues = || {
        if headers.is_v4(first) {
            // Compare all fields except length, identification and checksum.
            same(0, 2)
                && same(6, 10)
                && same(12, ip)
                && be16(packet, 4) == be16(first, 4).wrapping_add(count as u16)
        } else {
            same(0, 4) && same(6, 40)
        }
    };
    // Compare ports, then ACK number to window except for flags that may end a batch, then urgent pointer and
    // options.
    let flags = |packet| headers.flags(packet) & !(PSH | FIN);
    fits && headers.seq(packet) == next()
        && ip_continues()
        && same(ip, ip + 4)
        && same(ip + 8, ip + 13)
        && flags(first) == flags(packet)
        && same(ip + 14, ip + 16)
        && same(ip + 18, len_of_headers)
}
