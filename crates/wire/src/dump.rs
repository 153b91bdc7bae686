//! Packets in the format of `tcpdump -nn`, so that a log can be compared with a capture.
//!
//! As in tcpdump, sequence numbers are relative to the first segment of a connection that has the ACK flag.
//! They are absolute in segments with SYN.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use smoltcp::wire::IpProtocol;

use crate::experiment;
use crate::fast_open;
use crate::segment::{Flags, Ip, parse_ip};
use crate::seq::Seq;
use crate::view::{self, TcpHeader};

/// Maximum number of connections whose base numbers are remembered. Beyond it, the oldest is forgotten.
const MAX_CONNECTIONS: usize = 65_536;

/// The two ends, the lower one first, so that both directions find the same entry.
type Ends = (SocketAddr, SocketAddr);

/// The connections of all packets so far, and the base numbers of their relative sequence numbers.
#[derive(Debug, Default)]
pub struct Conversations {
    first: BTreeMap<Ends, (Seq, Seq)>,
    order: VecDeque<Ends>,
}

/// A packet that `{}` formats.
#[derive(Clone, Debug)]
pub struct Dump<'a> {
    kind: Kind<'a>,
}

#[derive(Clone, Debug)]
enum Kind<'a> {
    Tcp(Tcp<'a>),
    Other { src: IpAddr, dst: IpAddr, protocol: IpProtocol, length: usize },
    Bad { why: crate::segment::BadPacket, length: usize },
}

/// A TCP segment. Its numbers are relative if the connection is known. Its checksum is not verified.
#[derive(Clone, Copy, Debug)]
pub struct Tcp<'a> {
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
    /// All twelve bits that share bytes 12 and 13 with the data offset.
    pub flags: Flags,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// The acknowledgment number. Valid only with the ACK flag.
    pub ack: u32,
    /// The window field of the header, not scaled.
    pub window: u16,
    /// Bytes of payload.
    pub length: usize,
    urgent: u16,
    /// The number that SACK blocks are relative to.
    sacked_from: Seq,
    options: &'a [u8],
}

impl Conversations {
    /// Reads one packet. The caller passes each packet once, in chronological order.
    pub fn read<'a>(&mut self, packet: &'a [u8]) -> Dump<'a> {
        let kind = match parse_ip(packet) {
            Ok(ip) => match self.read_tcp(&ip) {
                Some(tcp) => Kind::Tcp(tcp),
                None => {
                    Kind::Other { src: ip.src, dst: ip.dst, protocol: ip.protocol, length: ip.payload.len() }
                }
            },
            Err(why) => Kind::Bad { why, length: packet.len() },
        };
        Dump { kind }
    }

    fn read_tcp<'a>(&mut self, ip: &Ip<'a>) -> Option<Tcp<'a>> {
        if ip.protocol != IpProtocol::Tcp {
            return None;
        }
        let view::Tcp { header, urgent, options, payload } = view::Tcp::read(ip.payload)?;
        let TcpHeader { src_port, dst_port, seq, ack, flags, window, .. } = header;
        let (src, dst) = (SocketAddr::new(ip.src, src_port), SocketAddr::new(ip.dst, dst_port));
        let Bases { seq: own, ack: peers, sack: sacked_from } = self.bases(src, dst, flags, seq, ack);
        Some(Tcp {
            src,
            dst,
            flags,
            seq: seq.0.wrapping_sub(own.0),
            ack: ack.0.wrapping_sub(peers.0),
            window,
            length: payload.len(),
            urgent,
            sacked_from,
            options,
        })
    }

    fn bases(&mut self, src: SocketAddr, dst: SocketAddr, flags: Flags, seq: Seq, ack: Seq) -> Bases {
        if !flags.contains(Flags::ACK) {
            return Bases::default();
        }
        let is_swapped = src > dst;
        let ends = if is_swapped { (dst, src) } else { (src, dst) };
        let swap = |(a, b)| if is_swapped { (b, a) } else { (a, b) };
        match self.first.get(&ends) {
            Some(first) if !flags.contains(Flags::SYN) => {
                let (seq, ack) = swap(*first);
                Bases { seq, ack, sack: ack }
            }
            known => {
                if known.is_none() {
                    self.order.push_back(ends);
                    if self.order.len() > MAX_CONNECTIONS
                        && let Some(oldest) = self.order.pop_front()
                    {
                        self.first.remove(&oldest);
                    }
                }
                let sack = Seq(ack.0.wrapping_sub(1));
                self.first.insert(ends, swap((seq, sack)));
                // In the first segment, tcpdump makes only the SACK blocks relative.
                Bases { sack, ..Bases::default() }
            }
        }
    }
}

/// The numbers that a segment's fields are relative to.
#[derive(Default)]
struct Bases {
    seq: Seq,
    ack: Seq,
    sack: Seq,
}

impl<'a> Dump<'a> {
    /// Returns the TCP segment, if the packet contains one.
    pub fn tcp(&self) -> Option<Tcp<'a>> {
        match self.kind {
            Kind::Tcp(tcp) => Some(tcp),
            Kind::Other { .. } | Kind::Bad { .. } => None,
        }
    }
}

/// Writes source and destination in tcpdump's format, with a dot before the port.
fn ends(f: &mut fmt::Formatter<'_>, src: SocketAddr, dst: SocketAddr) -> fmt::Result {
    let name = if src.is_ipv4() { "IP" } else { "IP6" };
    write!(f, "{name} {}.{} > {}.{}: ", src.ip(), src.port(), dst.ip(), dst.port())
}

impl fmt::Display for Dump<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Tcp(tcp) => {
                ends(f, tcp.src, tcp.dst)?;
                tcp.fmt(f)
            }
            Kind::Other { src, dst, protocol, length } => {
                let name = if src.is_ipv4() { "IP" } else { "IP6" };
                write!(f, "{name} {src} > {dst}: {protocol}, length {length}")
            }
            Kind::Bad { why, length } => write!(f, "IP {why}, length {length}"),
        }
    }
}

/// Formats the segment without its addresses.
impl fmt::Display for Tcp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flags [{}]", FlagLetters(self.flags))?;
        if self.length > 0 || self.flags.intersects(Flags::SYN.with(Flags::FIN).with(Flags::RST)) {
            write!(f, ", seq {}", self.seq)?;
            if self.length > 0 {
                write!(f, ":{}", self.seq.wrapping_add(self.length as u32))?;
            }
        }
        if self.flags.contains(Flags::ACK) {
            write!(f, ", ack {}", self.ack)?;
        }
        write!(f, ", win {}", self.window)?;
        if self.flags.contains(Flags::URG) {
            write!(f, ", urg {}", self.urgent)?;
        }
        if !self.options.is_empty() {
            write!(f, ", options [{}]", self.options())?;
        }
        write!(f, ", length {}", self.length)
    }
}

impl<'a> Tcp<'a> {
    /// Returns the options, formatted by `{}`.
    pub fn options(&self) -> impl fmt::Display + use<'a> {
        OptionsText { bytes: self.options, sacked_from: self.sacked_from }
    }

    /// Returns the flags as letters, formatted by `{}`.
    pub fn letters(&self) -> impl fmt::Display + use<> {
        FlagLetters(self.flags)
    }
}

struct FlagLetters(Flags);

impl fmt::Display for FlagLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // tcpdump prints only these eight flags.
        let letters = [
            (Flags::FIN, "F"),
            (Flags::SYN, "S"),
            (Flags::RST, "R"),
            (Flags::PSH, "P"),
            (Flags::ACK, "."),
            (Flags::URG, "U"),
            (Flags::ECE, "E"),
            (Flags::CWR, "W"),
        ];
        let mut none = true;
        for (_, letter) in letters.iter().filter(|(flag, _)| self.0.contains(*flag)) {
            none = false;
            f.write_str(letter)?;
        }
        if none { f.write_str("none") } else { Ok(()) }
    }
}

struct OptionsText<'a> {
    bytes: &'a [u8],
    sacked_from: Seq,
}

impl fmt::Display for OptionsText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut rest, mut comma) = (self.bytes, "");
        loop {
            let (kind, body) = match *rest {
                [] => return Ok(()),
                [0, ..] => return write!(f, "{comma}eol"),
                [1, ref behind @ ..] => {
                    write!(f, "{comma}nop")?;
                    (rest, comma) = (behind, ",");
                    continue;
                }
                [kind, len, ref behind @ ..] if (2..=rest.len()).contains(&usize::from(len)) => {
                    let (body, behind) = behind.split_at(usize::from(len) - 2);
                    rest = behind;
                    (kind, body)
                }
                _ => return write!(f, "{comma}[bad opt]"),
            };
            write!(f, "{comma}")?;
            comma = ",";
            self.option(f, kind, body)?;
        }
    }
}

impl OptionsText<'_> {
    fn option(&self, f: &mut fmt::Formatter<'_>, kind: u8, body: &[u8]) -> fmt::Result {
        let word = |at: usize| u32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
        match (kind, body.len()) {
            (2, 2) => write!(f, "mss {}", u16::from_be_bytes([body[0], body[1]])),
            (3, 1) => write!(f, "wscale {}", body[0]),
            (4, 0) => write!(f, "sackOK"),
            (5, len) if len % 8 == 0 => {
                write!(f, "sack {} ", len / 8)?;
                let relative = |at| word(at).wrapping_sub(self.sacked_from.0);
                (0..len).step_by(8).try_for_each(|at| write!(f, "{{{}:{}}}", relative(at), relative(at + 4)))
            }
            (8, 8) => write!(f, "TS val {} ecr {}", word(0), word(4)),
            // Both spaces are tcpdump's.
            (fast_open::KIND, _) => write!(f, "tfo  {}", Cookie(body)),
            (experiment::KIND, 2..) if body[..2] == fast_open::EX_ID.to_be_bytes() => {
                write!(f, "exp-tfo {}", Cookie(&body[2..]))
            }
            // Only the ExID of another experimental option (RFC 6994) is printed.
            (experiment::KIND, 2..) => write!(f, "exp-{:02x}{:02x}", body[0], body[1]),
            _ => {
                write!(f, "unknown-{kind}")?;
                if !body.is_empty() {
                    write!(f, " 0x")?;
                }
                body.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

/// The value of a Fast Open option.
struct Cookie<'a>(&'a [u8]);

impl fmt::Display for Cookie<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, fast_open::Cookie::new(self.0)) {
            ([], _) => f.write_str("cookiereq"),
            (_, Some(cookie)) => write!(f, "cookie {cookie}"),
            (_, None) => f.write_str("(invalid)"),
        }
    }
}

#[cfg(test)]
mod tests;
