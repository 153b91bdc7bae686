//! Segments that a host sends one after another, joined to leave in one write.

use super::Header;
use super::tcp::{CWR, FIN, Headers, PSH, RST, SYN, URG, be16};

/// Packets that leave together: one, or segments that the kernel cuts apart again exactly as they were.
#[derive(Debug)]
pub struct Batch {
    joins: Joins,
    /// The first `count` of them wait; behind them are buffers to be used again. Nothing is copied to join them: of all
    /// but the first only the data are written.
    packets: Vec<Vec<u8>>,
    count: usize,
    contents: Contents,
    /// Octets of the joined packet.
    len: usize,
}

/// Which packets are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Joins {
    Nothing,
    /// Segments of a host that leaves checksums to the device: the kernel fills in each, whatever stands there.
    Own,
    /// Segments whose checksums are right: those that the kernel fills in are the same.
    Others,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Contents {
    /// Nothing, or a packet that is no TCP segment.
    Other,
    Segments {
        headers: Headers,
        mss: usize,
        /// Another one may follow.
        open: bool,
    },
}

/// The length fields of IP have sixteen bits.
const LARGEST: usize = 65_535;
/// Of 1500 octets 45 fit. More parts of a write would do no harm (the kernel takes 1024), but be of no use either.
pub(crate) const MOST: usize = 64;

/// What is written for a batch, part behind part.
pub(crate) struct Parts<'a> {
    packets: &'a [Vec<u8>],
    /// Of these all but the first are left out.
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
    /// Of segments, for a device with offload.
    pub(crate) fn joining() -> Self {
        Self::new(Joins::Own)
    }

    /// Of packets that other hosts have sent: none is written otherwise than it is.
    pub(crate) fn faithful() -> Self {
        Self::new(Joins::Others)
    }

    fn new(joins: Joins) -> Self {
        Self { joins, packets: vec![Vec::new()], count: 0, contents: Contents::Other, len: 0 }
    }

    /// Of one packet each time.
    pub fn single() -> Self {
        Self::new(Joins::Nothing)
    }

    /// An empty one of the same kind.
    pub fn another(&self) -> Self {
        Self::new(self.joins)
    }

    /// Whether it may become more than one packet.
    pub fn joins(&self) -> bool {
        self.joins != Joins::Nothing
    }

    /// The packet in it, if it is one.
    pub fn only(&self) -> Option<&[u8]> {
        (self.count == 1).then_some(&self.packets[0])
    }

    /// How many packets wait in it.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Takes the packet, whose buffer is left with something to overwrite. `false`: what waits has to leave first.
    /// Where nothing waits, any packet is taken.
    pub fn join(&mut self, packet: &mut Vec<u8>) -> bool {
        if self.count == 0 {
            self.len = packet.len();
            self.contents = if self.joins() { Contents::first(packet) } else { Contents::Other };
        } else {
            let Contents::Segments { headers, mss, open: open @ true } = &mut self.contents else {
                return false;
            };
            let first = &self.packets[0];
            if self.count == MOST || !continues(first, packet, *headers, self.count, *mss, self.len) {
                return false;
            }
            // Of the first nobody has asked as long as it was alone.
            let right = |packet: &[u8]| self.joins == Joins::Own || headers.are_right(packet);
            if !right(packet) || (self.count == 1 && !right(first)) {
                return false;
            }
            let data = packet.len() - headers.all();
            // The kernel sets these in the last segment only (`tcp_gso_segment`).
            let ends = headers.flags(packet) & (PSH | FIN);
            *open = ends == 0 && data == *mss;
            self.len += data;
            self.packets[0][headers.ip + 13] |= ends;
        }
        if self.count == self.packets.len() {
            self.packets.push(Vec::new());
        }
        std::mem::swap(&mut self.packets[self.count], packet);
        self.count += 1;
        true
    }

    /// What is written for them: the header, and the packet behind it.
    pub(crate) fn written(&mut self) -> (Header, Parts<'_>) {
        let (header, skipped) = match self.contents {
            Contents::Other => (Header::Whole, 0),
            // Whoever gets it judges its checksum.
            Contents::Segments { .. } if self.joins == Joins::Others && self.count == 1 => (Header::Whole, 0),
            Contents::Segments { headers, mss, .. } => {
                let first = &mut self.packets[0];
                headers.set_partial_checksum(first, self.len);
                let start = headers.ip as u16;
                if self.count > 1 {
                    headers.set_length(first, self.len);
                    let (v4, mss) = (headers.is_v4(first), mss as u16);
                    (Header::Segments { v4, mss, headers: headers.all() as u16, start }, headers.all())
                } else {
                    (Header::Unsummed { start, offset: Header::TCP_CHECKSUM }, 0)
                }
            }
        };
        (header, Parts { packets: &self.packets[..self.count], headers: skipped })
    }

    /// They have left, or were refused.
    pub fn clear(&mut self) {
        self.count = 0;
        self.contents = Contents::Other;
    }

    /// The octets of IP packets that the wire carries for them.
    pub fn octets(&self) -> usize {
        self.packets[..self.count].iter().map(Vec::len).sum()
    }
}

impl Contents {
    fn first(packet: &[u8]) -> Self {
        let Some(headers) = Headers::of(packet) else { return Self::Other };
        // CWR would have to be in the first segment only, and the others speak for a moment of their own.
        let ordinary = headers.flags(packet) & (FIN | SYN | RST | PSH | URG | CWR) == 0;
        let mss = packet.len() - headers.all();
        Self::Segments { headers, mss, open: ordinary && mss > 0 }
    }
}

/// Whether the kernel, cutting, would make `packet` of what is joined with it here, octet for octet.
fn continues(first: &[u8], packet: &[u8], headers: Headers, count: usize, mss: usize, len: usize) -> bool {
    let Headers { ip, .. } = headers;
    let all = headers.all();
    let next = || headers.seq(first).wrapping_add((count * mss) as u32);
    let data = packet.len().saturating_sub(all);
    let same = |from: usize, to: usize| first[from..to] == packet[from..to];
    let fits = Headers::of(packet) == Some(headers)
        && first[0] == packet[0]
        && (1..=mss).contains(&data)
        && len + data <= LARGEST;
    let ip_continues = || {
        if headers.is_v4(first) {
            // All but length, identification and checksum.
            same(0, 2)
                && same(6, 10)
                && same(12, ip)
                && be16(packet, 4) == be16(first, 4).wrapping_add(count as u16)
        } else {
            same(0, 4) && same(6, 40)
        }
    };
    // Ports, then all from the ACK to the window but the flags that may end a batch, then urgent pointer and options.
    let flags = |packet| headers.flags(packet) & !(PSH | FIN);
    fits && headers.seq(packet) == next()
        && ip_continues()
        && same(ip, ip + 4)
        && same(ip + 8, ip + 13)
        && flags(first) == flags(packet)
        && same(ip + 14, ip + 16)
        && same(ip + 18, all)
}
