//! Segments of other hosts that come one after another, joined to leave in one write.

use super::Header;
use super::tcp::{CWR, FIN, Headers, PSH, RST, SYN, URG, be16};

/// Packets that leave together: one, or segments that the kernel cuts apart again exactly as they were.
#[derive(Debug, Default)]
pub struct Batch {
    /// The first `count` of them wait; behind them are buffers to be used again. Nothing is copied to join them: of all
    /// but the first only the data are written.
    packets: Vec<Vec<u8>>,
    count: usize,
    contents: Contents,
    /// Octets of the joined packet.
    len: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Contents {
    /// Nothing, or a packet that is no TCP segment.
    #[default]
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
    /// How many packets wait in it.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Takes the packet, whose buffer is left with something to overwrite. `false`: what waits has to leave first.
    /// Where nothing waits, any packet is taken.
    pub fn join(&mut self, packet: &mut Vec<u8>) -> bool {
        if self.count == 0 {
            self.len = packet.len();
            self.contents = Contents::first(packet);
        } else {
            let Contents::Segments { headers, mss, open: open @ true } = &mut self.contents else {
                return false;
            };
            let first = &self.packets[0];
            if self.count == MOST || !continues(first, packet, *headers, self.count, *mss, self.len) {
                return false;
            }
            // Of the first nobody has asked as long as it was alone.
            if !headers.are_right(packet) || (self.count == 1 && !headers.are_right(first)) {
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
            Contents::Segments { headers, mss, .. } if self.count > 1 => {
                let header = headers.prepare(&mut self.packets[0], self.len, mss);
                (header, headers.all())
            }
            // Whoever gets it judges its checksum.
            Contents::Other | Contents::Segments { .. } => (Header::Whole, 0),
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
