//! Reads the IP and TCP headers of a captured packet.
//!
//! A receiver's parser wants whole packets with right checksums. A capture may keep only the beginning of a packet, and
//! on the sending host it sees packets before the device has split them and filled in their checksums.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use airwire::checksum;
use airwire::options::Options;
use airwire::segment::{Ecn, Flags};
use airwire::seq::Seq;

use super::encapsulation::{End, Layer, Next, Octets, Piece, Skipped, Walk, may_have_tcp};
use super::other::Other;
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
    /// A part of a packet that is kept until the others come.
    Fragment,
    /// UDP, ICMP …
    Other(Other),
}

/// What the frame says about the packet inside it.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Frame number.
    pub number: u64,
    /// When the frame was captured.
    pub at: Timestamp,
    /// Octets from the IP header on, on the wire, padding included.
    pub on_wire: usize,
}

/// Longer packets may be several that a device has put together, with the checksum of the first.
const ONE_PACKET: usize = 1500;

/// The number of TCP in an IP header.
pub(crate) const TCP: u8 = 6;

/// What the IP header around a packet says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ip {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) ecn: Ecn,
    /// Of IPv4.
    pub(crate) ident: Option<u16>,
}

/// Reads the headers of the IP packet, of which the capture may have kept only the beginning. A fragment is a problem:
/// [`Fragments`](crate::fragments::Fragments) puts them together.
pub fn parse(context: Context, packet: &[u8]) -> Found {
    alone(context, Layer::Ip, Octets::new(packet, context.on_wire))
}

/// Reads a frame without a memory for fragments.
pub(crate) fn alone(context: Context, layer: Layer, octets: Octets<'_>) -> Found {
    let mut walk = Walk::default();
    let end = walk.follow(layer, octets);
    match found(context, &walk, end) {
        Ok(found) => found,
        Err(_) => Found::Nothing(Problem::Fragment),
    }
}

/// What is at the end of all headers, or the fragment that is there.
pub(crate) fn found<'a>(
    context: Context,
    walk: &Walk,
    end: Result<End<'a>, Skipped>,
) -> Result<Found, Piece<'a>> {
    match end {
        Ok(End::Tcp(ip, octets)) => Ok(tcp(context, walk, &ip, octets)),
        Ok(End::Fragment(piece)) => Err(piece),
        Err(skipped) => Ok(skipped.into()),
    }
}

impl From<Skipped> for Found {
    fn from(skipped: Skipped) -> Self {
        match skipped {
            Skipped::Problem(problem) => Self::Nothing(problem),
            Skipped::Other(other) => Self::Other(other),
        }
    }
}

/// Reads a TCP header.
#[inline]
pub(crate) fn tcp(context: Context, walk: &Walk, ip: &Ip, octets: Octets<'_>) -> Found {
    match parse_tcp(context, ip, octets) {
        Ok((packet, _)) if walk.is_beyond => Found::Flawed(packet, Problem::BeyondFrame),
        Ok((packet, _)) if walk.is_damaged || is_damaged(ip, octets) => {
            Found::Flawed(packet, Problem::Checksum)
        }
        Ok((packet, Some(problem))) => Found::Flawed(packet, problem),
        Ok((packet, None)) => Found::Tcp(packet),
        Err(skipped) => skipped.into(),
    }
}

/// Whether the capture has all of a segment, and its checksum does not fit.
#[inline]
fn is_damaged(ip: &Ip, octets: Octets<'_>) -> bool {
    let (segment, len) = (octets.kept(), octets.len());
    if segment.len() < len || !(20..=ONE_PACKET).contains(&len) {
        return false;
    }
    // A device will add up the rest. Linux has put the pseudo-header's sum there, others nothing.
    let written = word(segment, 16);
    written != 0
        && written != checksum::partial(ip.src, ip.dst, TCP, len)
        && !checksum::verify_transport(ip.src, ip.dst, TCP, segment)
}

fn word(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

fn long(octets: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}

/// Takes an IP header off.
#[inline]
pub(crate) fn header<'a>(octets: Octets<'a>, walk: &mut Walk) -> Result<Next<'a>, Skipped> {
    let [first] = *octets.first()?;
    match first >> 4 {
        4 => header_v4(octets, walk),
        6 => header_v6(octets, walk),
        _ => Err(Problem::Malformed.into()),
    }
}

#[inline]
fn header_v4<'a>(octets: Octets<'a>, walk: &mut Walk) -> Result<Next<'a>, Skipped> {
    let fixed = octets.first::<20>()?;
    let header = usize::from(fixed[0] & 0x0f) * 4;
    let total = match usize::from(word(fixed, 2)) {
        // The device will split the packet, which is longer than the field can say.
        0 => octets.len(),
        total => total,
    };
    if header < 20 || total < header {
        return Err(Problem::Malformed.into());
    }
    // Where a device fills it in, nothing stands there, or that of a packet that it will split.
    let is_written = word(fixed, 10) != 0 && word(fixed, 2) != 0;
    walk.is_damaged |= is_written && octets.kept().get(..header).is_some_and(|all| checksum::plain(all) != 0);
    let addr = |at: usize| IpAddr::V4(Ipv4Addr::from(long(fixed, at)));
    let (ident, protocol, fragment) = (word(fixed, 4), fixed[9], word(fixed, 6));
    let ip = Ip { src: addr(12), dst: addr(16), ecn: Ecn::from_bits(fixed[1]), ident: Some(ident) };
    let octets = walk.promised(octets, total).from(header)?;
    let (offset, is_last) = (usize::from(fragment & 0x1fff) * 8, fragment & 0x2000 == 0);
    if offset == 0 && is_last {
        return Ok(Next::Layer(Layer::Transport(protocol, ip), octets));
    }
    piece(Piece { ip, ident: ident.into(), protocol, offset, is_last, octets })
}

fn header_v6<'a>(octets: Octets<'a>, walk: &mut Walk) -> Result<Next<'a>, Skipped> {
    let fixed = octets.first::<40>()?;
    let total = match usize::from(word(fixed, 4)) {
        // A jumbogram (RFC 2675), or a packet that the device will split.
        0 => octets.len(),
        len => 40 + len,
    };
    let addr = |at: usize| {
        let octets: [u8; 16] = std::array::from_fn(|i| fixed[at + i]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    // The traffic class is shifted by four bits.
    let ip = Ip { src: addr(8), dst: addr(24), ecn: Ecn::from_bits(fixed[1] >> 4), ident: None };
    let octets = walk.promised(octets, total).from(40)?;
    Ok(Next::Layer(Layer::Transport(fixed[6], ip), octets))
}

/// Takes an extension header off (RFC 8200 §4): hop-by-hop, routing, destination options, mobility, HIP, shim6; an
/// authentication header also from IPv4.
pub(crate) fn extension(protocol: u8, ip: Ip, octets: Octets<'_>) -> Result<Next<'_>, Skipped> {
    let header = octets.first::<8>()?;
    let next = header[0];
    let len = match protocol {
        44 => {
            let place = word(header, 2);
            let (offset, is_last) = (usize::from(place >> 3) * 8, place & 1 == 0);
            if offset > 0 || !is_last {
                let octets = octets.from(8)?;
                return piece(Piece { ip, ident: long(header, 4), protocol: next, offset, is_last, octets });
            }
            8
        }
        // Its length is in other units, and two less (RFC 4302 §2.2).
        51 => 4 * (usize::from(header[1]) + 2),
        _ => 8 * (usize::from(header[1]) + 1),
    };
    Ok(Next::Layer(Layer::Transport(next, ip), octets.from(len)?))
}

/// By their number most protocols are told at once.
fn piece(piece: Piece<'_>) -> Result<Next<'_>, Skipped> {
    if may_have_tcp(piece.protocol) {
        return Ok(Next::End(End::Fragment(piece)));
    }
    Ok(Next::Layer(Layer::Transport(piece.protocol, piece.ip), piece.octets))
}

#[inline]
fn parse_tcp(context: Context, ip: &Ip, octets: Octets<'_>) -> Result<(Packet, Option<Problem>), Skipped> {
    // Up to the window: checksum, urgent pointer and options may be cut.
    let (kept, len) = (octets.kept(), octets.len());
    let Some(fixed) = kept.first_chunk::<16>() else { return Err(octets.missing(20)) };
    let header = usize::from(fixed[12] >> 4) * 4;
    if header < 20 || header > len {
        return Err(Problem::Malformed.into());
    }
    let (options, flaw) = match kept.get(20.min(header)..header) {
        Some(octets) => match Options::parse(octets) {
            Some(options) => (options, None),
            None => (Options::default(), Some(Problem::MalformedOptions)),
        },
        None if header == 20 => (Options::default(), Some(Problem::PayloadCut)),
        None => (kept_options(kept.get(20..).unwrap_or_default()), Some(Problem::OptionsCut)),
    };
    let flaw = flaw.or_else(|| (kept.len() < len).then_some(Problem::PayloadCut));
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
        len: (len - header) as u32,
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
