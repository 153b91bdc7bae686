//! Ethernet, and the protocols in its frames: tags, LLC, PPPoE and PPP, MPLS, MACsec.

use super::layer::{Layer, Next, Observed};
use super::octets::Octets;
use super::skipped::Skipped;
use crate::other::Other;

pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
/// Ethernet inside GRE and Geneve (RFC 1701).
pub(super) const BRIDGED: u16 = 0x6558;

pub(super) fn frame(octets: Octets<'_>) -> Result<Next<'_>, Skipped> {
    let kind = octets.word(12)?;
    Ok(Next::Layer(Layer::EtherType(kind), octets.from(14)?))
}

pub(super) fn behind<'a>(
    kind: u16,
    octets: Octets<'a>,
    observed: &mut Observed,
) -> Result<Next<'a>, Skipped> {
    let (layer, octets) = match kind {
        IPV4 | IPV6 => (Layer::Ip, octets),
        // Tags of 802.1Q, of 802.1ad and of its predecessors.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => (Layer::EtherType(octets.word(2)?), octets.from(4)?),
        // 802.1ah: the customer's complete frame follows the service identifier.
        0x88e7 => (Layer::Ethernet, octets.from(4)?),
        0x8847 | 0x8848 => (Layer::Mpls, octets),
        // RFC 2516 §4.
        0x8864 => {
            let payload = octets.word(4)?;
            (Layer::Ppp, observed.promised(octets.from(6)?, payload.into()))
        }
        0x880b => (Layer::Ppp, octets),
        BRIDGED => (Layer::Ethernet, octets),
        0x88e5 => return macsec(octets),
        // 802.3: a length instead of an EtherType.
        ..=1500 => (Layer::Llc, observed.promised(octets, kind.into())),
        0x0806 | 0x8035 => return Err(Other::Arp.into()),
        0x8863 => return Err(Other::PppoeDiscovery.into()),
        0x88cc => return Err(Other::Lldp.into()),
        0x888e => return Err(Other::Eapol.into()),
        0x8137 => return Err(Other::Ipx.into()),
        other => return Err(Other::EtherType(other).into()),
    };
    Ok(Next::Layer(layer, octets))
}

/// Returns whether this is a common EtherType. It serves to recognize frames that no header announces.
fn is_usual(kind: u16) -> bool {
    matches!(kind, IPV4 | IPV6 | 0x0806 | 0x8100 | 0x88a8 | 0x8847 | 0x8864)
}

pub(super) fn looks_like_frame(octets: &Octets<'_>) -> Result<bool, Skipped> {
    Ok(octets.len() >= 14 && is_usual(octets.word(12)?))
}

/// Parses 802.2 LLC and SNAP (RFC 1042).
pub(super) fn llc(octets: Octets<'_>) -> Result<Next<'_>, Skipped> {
    let [dsap, ssap, control] = *octets.first()?;
    match (dsap, ssap, control) {
        (0xaa, 0xaa, 3) => match *octets.at(3)? {
            // RFC 1042, and the bridge tunnel of 802.1H.
            [0, 0, 0 | 0xf8, high, low] => {
                let kind = u16::from_be_bytes([high, low]);
                Ok(Next::Layer(Layer::EtherType(kind), octets.from(8)?))
            }
            _ => Err(Other::Llc.into()),
        },
        (6, 6, 3) => Ok(Next::Layer(Layer::Ip, octets.from(3)?)),
        (0x42, 0x42, _) => Err(Other::Stp.into()),
        (0xe0, 0xe0, _) | (0xff, 0xff, _) => Err(Other::Ipx.into()),
        _ => Err(Other::Llc.into()),
    }
}

/// Parses PPP (RFC 1662 §2). The address and control fields are optional, and the protocol field may be
/// compressed to one byte.
pub(super) fn ppp(octets: Octets<'_>) -> Result<Next<'_>, Skipped> {
    let octets = if octets.kept().starts_with(&[0xff, 3]) { octets.from(2)? } else { octets };
    let [first] = *octets.first()?;
    let (protocol, octets) = match first & 1 {
        // The last byte of a protocol number is odd.
        1 if first != 0xff => (u16::from(first), octets.from(1)?),
        _ => (octets.word(0)?, octets.from(2)?),
    };
    match protocol {
        0x21 | 0x57 => Ok(Next::Layer(Layer::Ip, octets)),
        0x281 | 0x283 => Ok(Next::Layer(Layer::Mpls, octets)),
        0x2d | 0x2f | 0x61 | 0xfb | 0xfd => Err(Other::PppCompressed.into()),
        0x8000.. => Err(Other::PppControl.into()),
        _ => Err(Other::Ppp.into()),
    }
}

/// Parses an MPLS label (RFC 3032 §2). No field states the type of the data after the last label, so it is
/// guessed from the first bytes.
pub(super) fn mpls(octets: Octets<'_>) -> Result<Next<'_>, Skipped> {
    let [_, _, end, _] = *octets.first()?;
    let octets = octets.from(4)?;
    if end & 1 == 0 {
        return Ok(Next::Layer(Layer::Mpls, octets));
    }
    let [first, second] = *octets.first()?;
    match first >> 4 {
        4 | 6 => Ok(Next::Layer(Layer::Ip, octets)),
        // Ethernet, with or without a control word (RFC 4448 §4.6).
        _ if first == 0 && second == 0 => Ok(Next::Layer(Layer::Ethernet, octets.from(4)?)),
        _ if looks_like_frame(&octets)? => Ok(Next::Layer(Layer::Ethernet, octets)),
        _ => Err(Other::Mpls.into()),
    }
}

/// Parses MACsec (802.1AE §9.3). The frame is readable if it is not encrypted.
fn macsec(octets: Octets<'_>) -> Result<Next<'_>, Skipped> {
    let [control, short] = *octets.first()?;
    let tag = if control & 0x20 == 0 { 6 } else { 14 };
    if control & 0x0c != 0 {
        return Err(Other::Macsec.into());
    }
    let kind = octets.word(tag)?;
    let behind = octets.from(tag + 2)?;
    // The 16-byte checksum follows the data. A frame of less than 48 bytes states its length.
    let len = match usize::from(short & 0x3f) {
        0 => behind.len().saturating_sub(16),
        short => short.saturating_sub(2),
    };
    Ok(Next::Layer(Layer::EtherType(kind), behind.to(len)))
}
