//! Segments that a host sends one after another, joined to leave in one write.

use super::Header;
use super::tcp::{CWR, FIN, Headers, PSH, RST, SYN, URG, be16};

/// Packets that leave together: one, or segments that the kernel cuts apart again exactly as they were.
#[derive(Debug)]
pub struct Batch {
    joins: bool,
    /// The first one, and behind it the data of the others.
    packet: Vec<u8>,
    contents: Contents,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Contents {
    Nothing,
    /// A packet that nothing can be joined to.
    Alone,
    Segments {
        headers: Headers,
        mss: usize,
        count: u16,
        /// Another one may follow.
        open: bool,
    },
}

/// The length fields of IP have sixteen bits.
const LARGEST: usize = 65_535;

impl Batch {
    /// Of segments, for a device with offload.
    pub(crate) fn joining() -> Self {
        Self { joins: true, packet: Vec::new(), contents: Contents::Nothing }
    }

    /// Of one packet each time.
    pub fn single() -> Self {
        Self { joins: false, ..Self::joining() }
    }

    /// An empty one of the same kind.
    pub fn another(&self) -> Self {
        Self { joins: self.joins, ..Self::joining() }
    }

    /// Whether it may become more than one packet.
    pub fn joins(&self) -> bool {
        self.joins
    }

    /// The packet in it, if it is one.
    pub fn only(&self) -> Option<&[u8]> {
        (self.count() == 1).then_some(&self.packet)
    }

    /// How many packets wait in it.
    pub fn count(&self) -> usize {
        match self.contents {
            Contents::Nothing => 0,
            Contents::Alone => 1,
            Contents::Segments { count, .. } => usize::from(count),
        }
    }

    /// Takes the packet, whose buffer is left with something to overwrite. `false`: what waits has to leave first.
    /// Where nothing waits, any packet is taken.
    pub fn join(&mut self, packet: &mut Vec<u8>) -> bool {
        match &mut self.contents {
            Contents::Nothing => {
                std::mem::swap(&mut self.packet, packet);
                self.contents = if self.joins { Contents::first(&self.packet) } else { Contents::Alone };
                true
            }
            Contents::Alone => false,
            Contents::Segments { headers, mss, count, open } => {
                let (headers, all) = (*headers, headers.all());
                if !*open || !continues(&self.packet, packet, headers, *count, *mss) {
                    return false;
                }
                self.packet.extend_from_slice(&packet[all..]);
                // The kernel sets these in the last segment only (`tcp_gso_segment`).
                let ends = headers.flags(packet) & (PSH | FIN);
                self.packet[headers.ip + 13] |= ends;
                *count += 1;
                *open = ends == 0 && packet.len() - all == *mss;
                true
            }
        }
    }

    /// What is written for them: the header, and the packet behind it.
    pub(crate) fn written(&mut self) -> (Header, &[u8]) {
        let Contents::Segments { headers, mss, count: 2.., .. } = self.contents else {
            return (Header::Whole, &self.packet);
        };
        headers.set_length(&mut self.packet);
        headers.set_partial_checksum(&mut self.packet);
        let header = Header::Segments {
            v4: headers.is_v4(&self.packet),
            mss: mss as u16,
            headers: headers.all() as u16,
            start: headers.ip as u16,
        };
        (header, &self.packet)
    }

    /// They have left, or were refused.
    pub fn clear(&mut self) {
        self.contents = Contents::Nothing;
    }

    /// The octets of IP packets that the wire carries for them.
    pub fn octets(&self) -> usize {
        match self.contents {
            Contents::Nothing => 0,
            Contents::Alone => self.packet.len(),
            Contents::Segments { headers, count, .. } => {
                self.packet.len() + usize::from(count - 1) * headers.all()
            }
        }
    }
}

impl Contents {
    fn first(packet: &[u8]) -> Self {
        let Some(headers) = Headers::of(packet) else { return Self::Alone };
        // CWR would have to be in the first segment only, and the others speak for a moment of their own.
        let ordinary = headers.flags(packet) & (FIN | SYN | RST | PSH | URG | CWR) == 0;
        let mss = packet.len() - headers.all();
        if ordinary && mss > 0 { Self::Segments { headers, mss, count: 1, open: true } } else { Self::Alone }
    }
}

/// Whether the kernel, cutting, would make `packet` of what is joined with it here, octet for octet.
fn continues(first: &[u8], packet: &[u8], headers: Headers, count: u16, mss: usize) -> bool {
    let Headers { ip, .. } = headers;
    let all = headers.all();
    let next = || headers.seq(first).wrapping_add(u32::from(count) * mss as u32);
    let data = packet.len().saturating_sub(all);
    let same = |from: usize, to: usize| first[from..to] == packet[from..to];
    let fits = Headers::of(packet) == Some(headers)
        && first[0] == packet[0]
        && (1..=mss).contains(&data)
        && first.len() + data <= LARGEST;
    let ip_continues = || {
        if headers.is_v4(first) {
            // All but length, identification and checksum.
            same(0, 2) && same(6, 10) && same(12, ip) && be16(packet, 4) == be16(first, 4).wrapping_add(count)
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
