//! Reads the IP and TCP headers of a captured packet.
//!
//! A receiver's parser wants whole packets with right checksums. A capture may keep only the beginning of a packet, and
//! on the sending host it sees packets before the device has split them and filled in their checksums.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use airwire::options::Options;
use airwire::segment::{Ecn, Flags};
use airwire::seq::Seq;

use super::packet::{Packet, Timestamp};
use super::problem::Problem;

/// What a frame has inside.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// A TCP packet without a flaw.
    Tcp(Packet),
    /// A TCP packet that counts although something is wrong with it.
    Flawed(Packet, Problem),
    /// Nothing that can be used, and why.
    Nothing(Problem),
    /// UDP, ICMP …
    Other,
}

/// What the frame says about the packet inside it.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Frame number.
    pub number: u64,
    /// When the frame was captured.
    pub at: Timestamp,
    /// Octets behind the link header on the wire, padding included.
    pub on_wire: usize,
}

const TCP: u8 = 6;

/// What the IP header says, and what is behind it.
struct Ip<'a> {
    src: IpAddr,
    dst: IpAddr,
    ecn: Ecn,
    ident: Option<u16>,
    fragment: bool,
    /// As much of it as was kept.
    payload: &'a [u8],
    /// Its whole length.
    len: usize,
}

/// Why there is no TCP packet.
enum NoTcp {
    Problem(Problem),
    Other,
}

const MALFORMED: NoTcp = NoTcp::Problem(Problem::Malformed);
const CUT: NoTcp = NoTcp::Problem(Problem::HeadersCut);

/// Reads the headers of the IP packet, of which the capture may have kept only the beginning.
pub fn parse(context: Context, packet: &[u8]) -> Found {
    let ip = match packet.first().map(|octet| octet >> 4) {
        Some(4) => parse_v4(context, packet),
        Some(6) => parse_v6(context, packet),
        Some(_) => Err(MALFORMED),
        None => Err(CUT),
    };
    match ip.and_then(|ip| parse_tcp(context, &ip)) {
        Ok((packet, None)) => Found::Tcp(packet),
        Ok((packet, Some(problem))) => Found::Flawed(packet, problem),
        Err(NoTcp::Problem(problem)) => Found::Nothing(problem),
        Err(NoTcp::Other) => Found::Other,
    }
}

/// `packet` from `from` to `len`, or as much of that as was kept.
fn kept(packet: &[u8], from: usize, len: usize) -> &[u8] {
    packet.get(from..packet.len().min(len)).unwrap_or_default()
}

/// Why octets are missing: the capture did not keep them, or there never were any.
fn missing(kept: usize, whole: usize) -> NoTcp {
    if kept < whole { CUT } else { MALFORMED }
}

fn word(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

fn long(octets: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}

fn parse_v4<'a>(context: Context, packet: &'a [u8]) -> Result<Ip<'a>, NoTcp> {
    let Some(fixed) = packet.first_chunk::<20>() else {
        return Err(missing(packet.len(), context.on_wire));
    };
    let header = usize::from(fixed[0] & 0x0f) * 4;
    let total = match usize::from(word(fixed, 2)) {
        // The device will split the packet, which is longer than the field can say.
        0 => context.on_wire,
        total => total,
    };
    if header < 20 || total < header {
        return Err(MALFORMED);
    }
    if fixed[9] != TCP {
        return Err(NoTcp::Other);
    }
    let fragment = word(fixed, 6);
    if fragment & 0x1fff != 0 {
        return Err(NoTcp::Problem(Problem::Fragment));
    }
    let addr = |at: usize| IpAddr::V4(Ipv4Addr::from(long(fixed, at)));
    Ok(Ip {
        src: addr(12),
        dst: addr(16),
        ecn: Ecn::from_bits(fixed[1]),
        ident: Some(word(fixed, 4)),
        // More fragments.
        fragment: fragment & 0x2000 != 0,
        payload: kept(packet, header, total),
        len: total - header,
    })
}

fn parse_v6<'a>(context: Context, packet: &'a [u8]) -> Result<Ip<'a>, NoTcp> {
    let Some(fixed) = packet.first_chunk::<40>() else {
        return Err(missing(packet.len(), context.on_wire));
    };
    let total = match usize::from(word(fixed, 4)) {
        // A jumbogram (RFC 2675), or a packet that the device will split.
        0 => context.on_wire,
        len => 40 + len,
    };
    let headers = extension_headers(kept(packet, 0, total), total, fixed[6])?;
    if headers.end > total {
        return Err(MALFORMED);
    }
    let addr = |at: usize| {
        let octets: [u8; 16] = std::array::from_fn(|i| fixed[at + i]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    Ok(Ip {
        src: addr(8),
        dst: addr(24),
        // The traffic class is shifted by four bits.
        ecn: Ecn::from_bits(fixed[1] >> 4),
        ident: None,
        fragment: headers.fragment,
        payload: kept(packet, headers.end, total),
        len: total - headers.end,
    })
}

struct Headers {
    end: usize,
    fragment: bool,
}

/// RFC 8200 §4, up to the TCP header.
fn extension_headers(packet: &[u8], total: usize, first: u8) -> Result<Headers, NoTcp> {
    let (mut protocol, mut at, mut fragment) = (first, 40, false);
    loop {
        let unit = match protocol {
            TCP => return Ok(Headers { end: at, fragment }),
            // Hop-by-hop, routing, destination options; mobility, HIP, shim6.
            0 | 43 | 60 | 135 | 139 | 140 => 8,
            // The length of an authentication header is in other units, and two less (RFC 4302 §2.2).
            51 => 4,
            44 => 0,
            _ => return Err(NoTcp::Other),
        };
        let Some(header) = packet.get(at..at + 8) else { return Err(missing(packet.len(), total)) };
        at += match unit {
            0 => {
                let offset = word(header, 2);
                if offset >> 3 != 0 {
                    // Only the first fragment shows whether the packet is TCP. By this one's header it is or may be.
                    return Err(match header[0] {
                        TCP | 0 | 43 | 60 => NoTcp::Problem(Problem::Fragment),
                        _ => NoTcp::Other,
                    });
                }
                fragment = offset & 1 != 0;
                8
            }
            4 => 4 * (usize::from(header[1]) + 2),
            unit => unit * (usize::from(header[1]) + 1),
        };
        protocol = header[0];
    }
}

fn parse_tcp(context: Context, ip: &Ip<'_>) -> Result<(Packet, Option<Problem>), NoTcp> {
    // Up to the window: checksum, urgent pointer and options may be cut.
    let Some(fixed) = ip.payload.first_chunk::<16>() else {
        return Err(if ip.len < 20 { MALFORMED } else { CUT });
    };
    let header = usize::from(fixed[12] >> 4) * 4;
    if header < 20 || header > ip.len {
        return Err(MALFORMED);
    }
    let (options, flaw) = match ip.payload.get(20.min(header)..header) {
        Some(octets) => match Options::parse(octets) {
            Some(options) => (options, None),
            None => (Options::default(), Some(Problem::MalformedOptions)),
        },
        None if header == 20 => (Options::default(), Some(Problem::PayloadCut)),
        None => (kept_options(ip.payload.get(20..).unwrap_or_default()), Some(Problem::OptionsCut)),
    };
    let flaw = flaw
        .or_else(|| ip.fragment.then_some(Problem::Fragment))
        .or_else(|| (ip.payload.len() < ip.len).then_some(Problem::PayloadCut));
    let flags = Flags(u16::from(fixed[12] & 0x0f) << 8 | u16::from(fixed[13]));
    let packet = Packet {
        number: context.number,
        at: context.at,
        src: SocketAddr::new(ip.src, word(fixed, 0)),
        dst: SocketAddr::new(ip.dst, word(fixed, 2)),
        seq: Seq(long(fixed, 4)),
        ack: flags.contains(Flags::ACK).then(|| Seq(long(fixed, 8))),
        flags,
        window: word(fixed, 14),
        ecn: ip.ecn,
        len: (ip.len - header) as u32,
        ip_id: ip.ident,
        options,
        options_cut: flaw == Some(Problem::OptionsCut),
    };
    Ok((packet, flaw))
}

/// The options in front of the cut.
fn kept_options(octets: &[u8]) -> Options {
    let mut whole = 0;
    while let [kind, rest @ ..] = &octets[whole..] {
        let len = match (kind, rest) {
            // End of the list, and padding.
            (0 | 1, _) => 1,
            (_, [len, ..]) => usize::from(*len).max(2),
            (_, []) => break,
        };
        if len > 1 + rest.len() {
            break;
        }
        whole += len;
    }
    Options::parse(&octets[..whole]).unwrap_or_default()
}

#[cfg(test)]
mod tests;
