//! Ethernet, and the protocols in its frames: tags, LLC, PPPoE and PPP, MPLS, MACsec.

use super::bytes::{Bytes, Skipped};
use super::layer::{Layer, Observations, Step};
use crate::other::Other;

pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
/// Ethernet inside GRE and Geneve (RFC 1701).
pub(super) const BRIDGED: u16 = 0x6558;

pub(super) fn frame(bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    let kind = bytes.word(12)?;
    Ok(Step::Layer(Layer::EtherType(kind), bytes.from(14)?))
}

pub(super) fn payload<'a>(
    kind: u16,
    bytes: Bytes<'a>,
    observations: &mut Observations,
) -> Result<Step<'a>, Skipped> {
    let (layer, bytes) = match kind {
        IPV4 | IPV6 => (Layer::Ip, bytes),
        // Tags of 802.1Q, of 802.1ad and of its predecessors.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => (Layer::EtherType(bytes.word(2)?), bytes.from(4)?),
        // 802.1ah: the customer's complete frame follows the service identifier.
        0x88e7 => (Layer::Ethernet, bytes.from(4)?),
        0x8847 | 0x8848 => (Layer::Mpls, bytes),
        // RFC 2516 §4.
        0x8864 => {
            let payload = bytes.word(4)?;
            (Layer::Ppp, observations.limit(bytes.from(6)?, payload.into()))
        }
        0x880b => (Layer::Ppp, bytes),
        BRIDGED => (Layer::Ethernet, bytes),
        0x88e5 => return macsec(bytes),
        // 802.3: a length instead of an EtherType.
        ..=1500 => (Layer::Llc, observations.limit(bytes, kind.into())),
        0x0806 | 0x8035 => return Err(Other::Arp.into()),
        0x8863 => return Err(Other::PppoeDiscovery.into()),
        0x88cc => return Err(Other::Lldp.into()),
        0x888e => return Err(Other::Eapol.into()),
        0x8137 => return Err(Other::Ipx.into()),
        other => return Err(Other::EtherType(other).into()),
    };
    Ok(Step::Layer(layer, bytes))
}

/// Returns whether this is a common EtherType. It serves to recognize frames that no header announces.
fn is_usual(kind: u16) -> bool {
    matches!(kind, IPV4 | IPV6 | 0x0806 | 0x8100 | 0x88a8 | 0x8847 | 0x8864)
}

pub(super) fn looks_like_frame(bytes: &Bytes<'_>) -> Result<bool, Skipped> {
    Ok(bytes.len() >= 14 && is_usual(bytes.word(12)?))
}

/// Parses 802.2 LLC and SNAP (RFC 1042).
pub(super) fn llc(bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    let [dsap, ssap, control] = *bytes.first()?;
    match (dsap, ssap, control) {
        (0xaa, 0xaa, 3) => match *bytes.at(3)? {
            // RFC 1042, and the bridge tunnel of 802.1H.
            [0, 0, 0 | 0xf8, high, low] => {
                let kind = u16::from_be_bytes([high, low]);
                Ok(Step::Layer(Layer::EtherType(kind), bytes.from(8)?))
            }
            _ => Err(Other::Llc.into()),
        },
        (6, 6, 3) => Ok(Step::Layer(Layer::Ip, bytes.from(3)?)),
        (0x42, 0x42, _) => Err(Other::Stp.into()),
        (0xe0, 0xe0, _) | (0xff, 0xff, _) => Err(Other::Ipx.into()),
        _ => Err(Other::Llc.into()),
    }
}

/// Parses PPP (RFC 1662 §2). The address and control fields are optional, and the protocol field may be
/// compressed to one byte.
pub(super) fn ppp(bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    let bytes = if bytes.captured().starts_with(&[0xff, 3]) { bytes.from(2)? } else { bytes };
    let [first] = *bytes.first()?;
    let (protocol, bytes) = match first & 1 {
        // The last byte of a protocol number is odd.
        1 if first != 0xff => (u16::from(first), bytes.from(1)?),
        _ => (bytes.word(0)?, bytes.from(2)?),
    };
    match protocol {
        0x21 | 0x57 => Ok(Step::Layer(Layer::Ip, bytes)),
        0x281 | 0x283 => Ok(Step::Layer(Layer::Mpls, bytes)),
        0x2d | 0x2f | 0x61 | 0xfb | 0xfd => Err(Other::PppCompressed.into()),
        0x8000.. => Err(Other::PppControl.into()),
        _ => Err(Other::Ppp.into()),
    }
}

/// Parses an MPLS label (RFC 3032 §2). No field states the type of the data after the last label, so it is
/// guessed from the first bytes.
pub(super) fn mpls(bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    let [_, _, end, _] = *bytes.first()?;
    let bytes = bytes.from(4)?;
    if end & 1 == 0 {
        return Ok(Step::Layer(Layer::Mpls, bytes));
    }
    let [first, second] = *bytes.first()?;
    match first >> 4 {
        4 | 6 => Ok(Step::Layer(Layer::Ip, bytes)),
        // Ethernet, with or without a control word (RFC 4448 §4.6).
        _ if first == 0 && second == 0 => Ok(Step::Layer(Layer::Ethernet, bytes.from(4)?)),
        _ if looks_like_frame(&bytes)? => Ok(Step::Layer(Layer::Ethernet, bytes)),
        _ => Err(Other::Mpls.into()),
    }
}

/// Parses MACsec (802.1AE §9.3). The frame is readable if it is not encrypted.
fn macsec(bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    let [control, short] = *bytes.first()?;
    let tag = if control & 0x20 == 0 { 6 } else { 14 };
    if control & 0x0c != 0 {
        return Err(Other::Macsec.into());
    }
    let kind = bytes.word(tag)?;
    let rest = bytes.from(tag + 2)?;
    // The 16-byte checksum follows the data. A frame of less than 48 bytes states its length.
    let len = match usize::from(short & 0x3f) {
        0 => rest.len().saturating_sub(16),
        short => short.saturating_sub(2),
    };
    Ok(Step::Layer(Layer::EtherType(kind), rest.to(len)))
}
