//! Reads the IP and TCP headers of a captured packet.
//!
//! A receiver's parser requires complete packets with correct checksums, so it cannot be used here. A capture
//! may contain only the beginning of a packet. On the sending host, it contains packets before the device has
//! split them and filled in their checksums.

use std::net::SocketAddr;

use airwire::checksum;
use airwire::options::Options;
use airwire::segment::Flags;
use airwire::view::{TCP, TcpHeader};

use super::encapsulation::{End, Ip, Layer, Octets, Piece, Skipped, Walk};
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
        Ok((packet, _)) if walk.is_beyond() => Found::Flawed(packet, Problem::BeyondFrame),
        Ok((packet, _)) if walk.is_damaged() || is_damaged(ip, octets) => {
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
    let written = u16::from_be_bytes([segment[16], segment[17]]);
    written != 0
        && written != checksum::partial(ip.src, ip.dst, TCP, len)
        && !checksum::verify_transport(ip.src, ip.dst, TCP, segment)
}

#[inline]
fn parse_tcp(context: Context, ip: &Ip, octets: Octets<'_>) -> Result<(Packet, Option<Problem>), Skipped> {
    // The fields up to the window are required. Checksum, urgent pointer and options may be cut off.
    let (kept, len) = (octets.kept(), octets.len());
    let Some(fixed) = kept.first_chunk() else { return Err(octets.missing(20)) };
    let TcpHeader { src_port, dst_port, seq, ack, len: header, flags, window } = TcpHeader::read(fixed);
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
    let packet = Packet {
        number: context.number,
        at: context.at,
        src: SocketAddr::new(ip.src, src_port),
        dst: SocketAddr::new(ip.dst, dst_port),
        seq,
        ack: flags.contains(Flags::ACK).then_some(ack),
        flags,
        window,
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
