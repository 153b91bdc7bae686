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

use super::encapsulation::{Bytes, End, HeaderParser, Ip, IpFragment, Layer, Skipped};
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
    Unreadable(Problem),
    /// A fragment of a packet. It is stored until the other fragments arrive.
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

/// Reads the headers of an IP packet, of which the capture may contain only the beginning.
///
/// A fragment is reported as a problem. [`Fragments`](crate::fragments::Fragments) reassembles fragments.
pub fn parse(context: Context, packet: &[u8]) -> Found {
    without_reassembly(context, Layer::Ip, Bytes::new(packet, context.on_wire))
}

/// Reads a frame without reassembling fragments.
pub(crate) fn without_reassembly(context: Context, layer: Layer, bytes: Bytes<'_>) -> Found {
    let mut parser = HeaderParser::default();
    let end = parser.parse(layer, bytes);
    match found(context, &parser, end) {
        Ok(found) => found,
        Err(_) => Found::Unreadable(Problem::Fragment),
    }
}

/// Converts the last header of a frame to its contents. Returns the fragment as `Err` if it is one.
pub(crate) fn found<'a>(
    context: Context,
    parser: &HeaderParser,
    end: Result<End<'a>, Skipped>,
) -> Result<Found, IpFragment<'a>> {
    match end {
        Ok(End::Tcp(ip, bytes)) => Ok(tcp(context, parser, &ip, bytes)),
        Ok(End::Fragment(fragment)) => Err(fragment),
        Err(skipped) => Ok(skipped.into()),
    }
}

impl From<Skipped> for Found {
    fn from(skipped: Skipped) -> Self {
        match skipped {
            Skipped::Problem(problem) => Self::Unreadable(problem),
            Skipped::Other(other) => Self::Other(other),
        }
    }
}

/// Reads a TCP header.
#[inline]
pub(crate) fn tcp(context: Context, parser: &HeaderParser, ip: &Ip, bytes: Bytes<'_>) -> Found {
    match parse_tcp(context, ip, bytes) {
        Ok((packet, _)) if parser.observations.exceeds_frame => Found::Flawed(packet, Problem::BeyondFrame),
        Ok((packet, _)) if parser.observations.is_damaged || is_damaged(ip, bytes) => {
            Found::Flawed(packet, Problem::Checksum)
        }
        Ok((packet, Some(problem))) => Found::Flawed(packet, problem),
        Ok((packet, None)) => Found::Tcp(packet),
        Err(skipped) => skipped.into(),
    }
}

/// Returns whether the segment was captured completely and has a wrong checksum.
#[inline]
fn is_damaged(ip: &Ip, bytes: Bytes<'_>) -> bool {
    let (segment, len) = (bytes.captured(), bytes.len());
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
fn parse_tcp(context: Context, ip: &Ip, bytes: Bytes<'_>) -> Result<(Packet, Option<Problem>), Skipped> {
    // The fields up to the window are required. Checksum, urgent pointer and options may be cut off.
    let (captured, len) = (bytes.captured(), bytes.len());
    let Some(fixed) = captured.first_chunk() else { return Err(bytes.missing(20)) };
    let TcpHeader { src_port, dst_port, seq, ack, len: header, flags, window } = TcpHeader::read(fixed);
    if header < 20 || header > len {
        return Err(Problem::Malformed.into());
    }
    let (options, flaw) = match captured.get(20.min(header)..header) {
        Some(bytes) => match Options::parse(bytes) {
            Some(options) => (options, None),
            None => (Options::default(), Some(Problem::MalformedOptions)),
        },
        None if header == 20 => (Options::default(), Some(Problem::PayloadCut)),
        None => (complete_options(captured.get(20..).unwrap_or_default()), Some(Problem::OptionsCut)),
    };
    let flaw = flaw.or_else(|| (captured.len() < len).then_some(Problem::PayloadCut));
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
fn complete_options(bytes: &[u8]) -> Options {
    let mut complete = 0;
    while let [kind, rest @ ..] = &bytes[complete..] {
        let len = match (kind, rest) {
            // End of list, and NOP.
            (0 | 1, _) => 1,
            (_, [len, ..]) => usize::from(*len).max(2),
            (_, []) => break,
        };
        if len > 1 + rest.len() {
            break;
        }
        complete += len;
    }
    Options::parse(&bytes[..complete]).unwrap_or_default()
}

#[cfg(test)]
mod tests;
