//! IP headers and extension headers.

use airwire::view::{self, NoHeader, View};

use super::layer::{End, Ip, Layer, Next, Observed, Piece};
use super::octets::Octets;
use super::skipped::Skipped;
use crate::problem::Problem;

/// Removes an IP header.
#[inline]
pub(super) fn header<'a>(octets: Octets<'a>, observed: &mut Observed) -> Result<Next<'a>, Skipped> {
    let view = View::without_extensions(octets.kept()).map_err(|error| match error {
        NoHeader::Truncated(needed) => octets.missing(needed),
        NoHeader::NotIp => Problem::Malformed.into(),
    })?;
    let header = view.transport;
    // The field is zero in a jumbogram, and in a packet that the device will split and that is longer than
    // the field can express.
    let total = if view.is_length_zero() { octets.len() } else { view.end };
    if header < 20 || total < header {
        return Err(Problem::Malformed.into());
    }
    // If the device computes the checksum, the field is zero. In a packet that the device will split, the
    // checksum is not valid either.
    let is_written = octets.word(10)? != 0 && !view.is_length_zero();
    observed.is_damaged |= is_written && view.is_header_damaged();
    let ip = Ip { src: view.source(), dst: view.destination(), ecn: view.ecn(), ident: view.ident() };
    let octets = observed.promised(octets, total).from(header)?;
    match view.fragment {
        None => Ok(Next::Layer(Layer::Transport(view.protocol, ip), octets)),
        Some(fragment) => piece(Piece { ip, protocol: view.protocol, fragment, octets }),
    }
}

/// Removes an extension header (RFC 8200 §4): hop-by-hop, routing, fragment, destination options, mobility,
/// HIP or shim6. An authentication header may also follow IPv4.
pub(super) fn extension(protocol: u8, ip: Ip, octets: Octets<'_>) -> Result<Next<'_>, Skipped> {
    let (next, len, fragment) = view::extension(protocol, octets.first()?);
    let octets = octets.from(len)?;
    match fragment.filter(|fragment| !fragment.is_atomic()) {
        None => Ok(Next::Layer(Layer::Transport(next, ip), octets)),
        Some(fragment) => piece(Piece { ip, protocol: next, fragment, octets }),
    }
}

/// Returns the fragment if its protocol may contain TCP. Other protocols are classified immediately.
fn piece(piece: Piece<'_>) -> Result<Next<'_>, Skipped> {
    if may_have_tcp(piece.protocol) {
        return Ok(Next::End(End::Fragment(piece)));
    }
    Ok(Next::Layer(Layer::Transport(piece.protocol, piece.ip), piece.octets))
}

/// Returns whether a fragmented packet of this protocol can contain TCP. If not, reassembly is unnecessary.
fn may_have_tcp(protocol: u8) -> bool {
    matches!(protocol, 0 | 4 | 6 | 17 | 41 | 43 | 47 | 51 | 60 | 94 | 97 | 135 | 137 | 139 | 140 | 143)
}
