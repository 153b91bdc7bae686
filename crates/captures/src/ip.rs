//! Reads the IP and TCP headers of a captured packet.
//!
//! A receiver's parser requires complete packets with correct checksums, so it cannot be used here. A capture
//! may contain only the beginning of a packet. On the sending host, it contains packets before the device has
//! split them and filled in their checksums.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use airwire::checksum;
use airwire::options::Options;
use airwire::segment::{Ecn, Flags};
use airwire::seq::Seq;

use super::encapsulation::{End, Layer, Next, Octets, Piece, Skipped, Walk, may_have_tcp};
use super::other::Other;
use super::packet::{Packet, Timestamp};
use super::problem::Problem;

/// The contents of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// A TCP packet without problems.
    Tcp(Packet),
    /// A TCP packet that can be used although it has a problem.
    Flawed(Packet, Problem),
    /// A frame that cannot be used because of this problem.
    Nothing(Problem),
    /// A fragment of a packet. It is kept until the other fragments arrive.
    Fragment,
    /// A packet that is not TCP, such as UDP or ICMP.
    Other(Other),
}

/// Properties of the frame around a packet.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The frame number.
    pub number: u64,
    /// The capture time.
    pub at: Timestamp,
    /// Bytes on the wire from the IP header to the end of the frame, including padding.
    pub on_wire: usize,
}

/// Longest packet whose checksum is verified. A longer packet may be several that a device has merged, with
/// the checksum of the first.
const ONE_PACKET: usize = 1500;

/// The IP protocol number of TCP.
pub(crate) const TCP: u8 = 6;

/// The fields of the IP header around a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ip {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) ecn: Ecn,
    /// The identification field. IPv4 only.
    pub(crate) ident: Option<u16>,
}

/// Reads the headers of an IP packet, of which the capture may have kept only the beginning.
///
/// A fragment is reported as a problem. [`Fragments`](crate::fragments::Fragments) reassembles fragments.
pub fn parse(context: Context, packet: &[u8]) -> Found {
    alone(context, Layer::Ip, Octets::new(packet, context.on_wire))
}

/// Reads a frame without reassembling fragments.
pub(crate) fn alone(context: Context, layer: Layer, octets: Octets<'_>) -> Found {
    let mut walk = Walk::default();
    let end = walk.follow(layer, octets);
    match found(context, &walk, end) {
        Ok(found) => found,
        Err(_) => Found::Nothing(Problem::Fragment),
    }
}

/// Converts the end of a walk to its contents. Returns the fragment as `Err` if the walk ends at one.
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

/// Returns whether the segment was captured completely and has a wrong checksum.
#[inline]
fn is_damaged(ip: &Ip, octets: Octets<'_>) -> bool {
    let (segment, len) = (octets.kept(), octets.len());
    if segment.len() < len || !(20..=ONE_PACKET).contains(&len) {
        return false;
    }
    // The device has yet to compute the checksum. Until then, the field contains the sum of the pseudo-header
    // (on Linux) or zero (on other systems).
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

/// Removes an IP header.
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
        // The device will split this packet, which is longer than the field can express.
        0 => octets.len(),
        total => total,
    };
    if header < 20 || total < header {
        return Err(Problem::Malformed.into());
    }
    // If the device computes the checksum, the field is zero. In a packet that the device will split, the
    // checksum is not valid either.
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

/// Removes an extension header (RFC 8200 §4): hop-by-hop, routing, fragment, destination options, mobility,
/// HIP or shim6. An authentication header may also follow IPv4.
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
        // The length of the authentication header is in 4-byte units, minus 2 (RFC 4302 §2.2).
        51 => 4 * (usize::from(header[1]) + 2),
        _ => 8 * (usize::from(header[1]) + 1),
    };
    Ok(Next::Layer(Layer::Transport(next, ip), octets.from(len)?))
}

/// Returns the fragment if its protocol may contain TCP. Other protocols are classified immediately.
fn piece(piece: Piece<'_>) -> Result<Next<'_>, Skipped> {
    if may_have_tcp(piece.protocol) {
        return Ok(Next::End(End::Fragment(piece)));
    }
    Ok(Next::Layer(Layer::Transport(piece.protocol, piece.ip), piece.octets))
}

#[inline]
fn parse_tcp(context: Context, ip: &Ip, octets: Octets<'_>) -> Result<(Packet, Option<Problem>), Skipped> {
    // The fields up to the window are required. Checksum, urgent pointer and options may be cut off.
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

/// Parses the options that are complete.
fn kept_options(octets: &[u8]) -> Options {
    let mut whole = 0;
    while let [kind, rest @ ..] = &octets[whole..] {
        let len = match (kind, rest) {
            // End of list, and NOP.
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
