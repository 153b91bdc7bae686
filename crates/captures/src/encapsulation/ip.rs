//! IP headers and extension headers.

use airwire::view::{self, NoHeader, View};

use super::bytes::{Bytes, Skipped};
use super::layer::{End, Ip, IpFragment, Layer, Observations, Step};
use crate::problem::Problem;

/// Removes an IP header.
#[inline]
pub(super) fn header<'a>(bytes: Bytes<'a>, observations: &mut Observations) -> Result<Step<'a>, Skipped> {
    let view = View::without_extensions(bytes.captured()).map_err(|error| match error {
        NoHeader::Truncated(needed) => bytes.missing(needed),
        NoHeader::NotIp => Problem::Malformed.into(),
    })?;
    let header = view.transport;
    // The field is zero in a jumbogram, and in a packet that the device will split and that is longer than
    // the field can express.
    let total = if view.is_length_zero() { bytes.len() } else { view.end };
    if header < 20 || total < header {
        return Err(Problem::Malformed.into());
    }
    // If the device computes the checksum, the field is zero. In a packet that the device will split, the
    // checksum is not valid either.
    let is_written = bytes.word(10)? != 0 && !view.is_length_zero();
    observations.is_damaged |= is_written && view.is_header_damaged();
    let ip = Ip { src: view.source(), dst: view.destination(), ecn: view.ecn(), ident: view.ident() };
    let bytes = observations.limit(bytes, total).from(header)?;
    match view.fragment {
        None => Ok(Step::Layer(Layer::Transport(view.protocol, ip), bytes)),
        Some(header) => fragment(IpFragment { ip, protocol: view.protocol, header, bytes }),
    }
}

/// Removes an extension header (RFC 8200 §4): hop-by-hop, routing, fragment, destination options, mobility,
/// HIP or shim6. An authentication header may also follow IPv4.
pub(super) fn extension(protocol: u8, ip: Ip, bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    let (next, len, header) = view::extension(protocol, bytes.first()?);
    let bytes = bytes.from(len)?;
    match header.filter(|header| !header.is_atomic()) {
        None => Ok(Step::Layer(Layer::Transport(next, ip), bytes)),
        Some(header) => fragment(IpFragment { ip, protocol: next, header, bytes }),
    }
}

/// Returns the fragment if its protocol may contain TCP. Other protocols are classified immediately.
fn fragment(fragment: IpFragment<'_>) -> Result<Step<'_>, Skipped> {
    if may_have_tcp(fragment.protocol) {
        return Ok(Step::End(End::Fragment(fragment)));
    }
    Ok(Step::Layer(Layer::Transport(fragment.protocol, fragment.ip), fragment.bytes))
}

/// Returns whether a fragmented packet of this protocol can contain TCP. If not, reassembly is unnecessary.
fn may_have_tcp(protocol: u8) -> bool {
    matches!(protocol, 0 | 4 | 6 | 17 | 41 | 43 | 47 | 51 | 60 | 94 | 97 | 135 | 137 | 139 | 140 | 143)
}
