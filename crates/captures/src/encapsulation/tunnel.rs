//! Tunnels: GRE, and tunnels over UDP.

use super::bytes::{Bytes, Skipped};
use super::ethernet;
use super::layer::{Layer, Observations, Step};
use crate::other::Other;

/// Parses GRE (RFC 2784, RFC 2890) and its version 1 for PPTP (RFC 2637 §4.1).
pub(super) fn gre<'a>(bytes: Bytes<'a>, observations: &mut Observations) -> Result<Step<'a>, Skipped> {
    let [flags, version, ..] = *bytes.first::<4>()?;
    let protocol = bytes.word(2)?;
    let fields = |bits: &[u8]| bits.iter().filter(|bit| flags & **bit != 0).count() * 4;
    let (checksum, routing, key, sequence) = (0x80, 0x40, 0x20, 0x10);
    match version & 7 {
        0 if flags & routing != 0 => Err(Other::Gre.into()),
        0 => {
            let rest = bytes.from(4 + fields(&[checksum, key, sequence]))?;
            gre_payload(protocol, rest, flags & sequence != 0)
        }
        1 if protocol == 0x880b => {
            let payload = bytes.word(4)?;
            let acknowledgment = if version & 0x80 == 0 { 0 } else { 4 };
            let rest = bytes.from(4 + fields(&[key, sequence]) + acknowledgment)?;
            // A packet without payload is only an acknowledgment.
            match payload {
                0 => Err(Other::PppControl.into()),
                payload => Ok(Step::Layer(Layer::Ppp, observations.limit(rest, payload.into()))),
            }
        }
        _ => Err(Other::Gre.into()),
    }
}

fn gre_payload(protocol: u16, bytes: Bytes<'_>, is_numbered: bool) -> Result<Step<'_>, Skipped> {
    let (layer, bytes) = match protocol {
        // Mirrored frames: ERSPAN of types I, II and III (draft-foschiano-erspan §4).
        0x88be if is_numbered => (Layer::Ethernet, bytes.from(8)?),
        0x88be => (Layer::Ethernet, bytes),
        0x22eb => {
            let [.., options] = *bytes.first::<12>()?;
            (Layer::Ethernet, bytes.from(if options & 1 == 0 { 12 } else { 20 })?)
        }
        // WCCP. The additional header of version 2 does not begin like an IPv4 header.
        0x883e => {
            let [first] = *bytes.first()?;
            (Layer::Ip, bytes.from(if first >> 4 == 4 { 0 } else { 4 })?)
        }
        // A keep-alive.
        0 => return Err(Other::Gre.into()),
        other => (Layer::EtherType(other), bytes),
    };
    Ok(Step::Layer(layer, bytes))
}

pub(super) fn udp<'a>(bytes: Bytes<'a>, observations: &mut Observations) -> Result<Step<'a>, Skipped> {
    let [a, b, c, d, e, f, ..] = *bytes.first::<8>()?;
    let [from, to, len] = [[a, b], [c, d], [e, f]].map(u16::from_be_bytes);
    let payload = bytes.from(8)?;
    // GTP, Teredo and L2TP use their port at one end or at both ends.
    let is_either = |port| from == port || to == port;
    let tunnel: for<'b> fn(Bytes<'b>, &mut Observations) -> Result<Step<'b>, Skipped> = match to {
        // 4789 is the assigned port. Linux first used 8472.
        4789 | 8472 => vxlan,
        4790 => vxlan_gpe,
        6081 => geneve,
        // RFC 7510, RFC 8086.
        6635 => |bytes, _| Ok(Step::Layer(Layer::Mpls, bytes)),
        4754 => gre,
        _ if is_either(2152) => gtp,
        _ if is_either(3544) => teredo,
        _ if is_either(1701) => l2tp,
        _ => return Err(Other::Udp.into()),
    };
    observations.is_guess = true;
    // Length 0 means that the datagram is longer than the field can express (RFC 2675 §4).
    let payload = match usize::from(len) {
        0 => payload,
        len => observations.limit(payload, len.saturating_sub(8)),
    };
    tunnel(payload, observations)
}

/// Parses VXLAN (RFC 7348 §5).
fn vxlan<'a>(bytes: Bytes<'a>, _: &mut Observations) -> Result<Step<'a>, Skipped> {
    let [flags, ..] = *bytes.first::<8>()?;
    match flags & 8 {
        0 => Err(Other::Udp.into()),
        _ => Ok(Step::Layer(Layer::Ethernet, bytes.from(8)?)),
    }
}

/// Parses VXLAN-GPE, whose header names the inner protocol (draft-ietf-nvo3-vxlan-gpe §3.1).
fn vxlan_gpe<'a>(bytes: Bytes<'a>, _: &mut Observations) -> Result<Step<'a>, Skipped> {
    let [_, _, _, protocol, ..] = *bytes.first::<8>()?;
    let layer = match protocol {
        1 | 2 => Layer::Ip,
        3 => Layer::Ethernet,
        5 => Layer::Mpls,
        _ => return Err(Other::Udp.into()),
    };
    Ok(Step::Layer(layer, bytes.from(8)?))
}

/// Parses Geneve (RFC 8926 §3.4).
fn geneve<'a>(bytes: Bytes<'a>, _: &mut Observations) -> Result<Step<'a>, Skipped> {
    let [first, ..] = *bytes.first::<8>()?;
    if first >> 6 != 0 {
        return Err(Other::Udp.into());
    }
    let rest = bytes.from(8 + 4 * usize::from(first & 0x3f))?;
    Ok(Step::Layer(Layer::EtherType(bytes.word(2)?), rest))
}

/// Parses GTP-U (3GPP TS 29.281 §5).
fn gtp<'a>(bytes: Bytes<'a>, observations: &mut Observations) -> Result<Step<'a>, Skipped> {
    const G_PDU: u8 = 255;
    let [flags, kind, high, low, ..] = *bytes.first::<8>()?;
    // GTP version 1, and not GTP'.
    if flags & 0xf0 != 0x30 {
        return Err(Other::Udp.into());
    }
    if kind != G_PDU {
        return Err(Other::GtpSignalling.into());
    }
    let mut bytes = observations.limit(bytes.from(8)?, u16::from_be_bytes([high, low]).into());
    // If any of the flags E, S and PN is set, all three fields are present.
    if flags & 7 != 0 {
        let [_, _, _, mut next] = *bytes.first()?;
        bytes = bytes.from(4)?;
        while flags & 4 != 0 && next != 0 {
            // The length is in units of four bytes. The last byte is the type of the next extension header.
            // Length 0 is invalid and is treated as 1, so that the loop ends.
            let [units] = *bytes.first()?;
            let len = usize::from(units.max(1)) * 4;
            [next] = *bytes.at(len - 1)?;
            bytes = bytes.from(len)?;
        }
    }
    let [first] = *bytes.first()?;
    match first >> 4 {
        4 | 6 => Ok(Step::Layer(Layer::Ip, bytes)),
        // A 5G PDU session may carry Ethernet.
        _ if ethernet::looks_like_frame(&bytes)? => Ok(Step::Layer(Layer::Ethernet, bytes)),
        _ => Err(Other::Udp.into()),
    }
}

/// Parses Teredo (RFC 4380 §5.1.1): IPv6 after an optional authentication header and an optional origin
/// indication.
fn teredo<'a>(bytes: Bytes<'a>, _: &mut Observations) -> Result<Step<'a>, Skipped> {
    let mut bytes = bytes;
    if *bytes.first()? == [0, 1] {
        let [_, _, identifier, value] = *bytes.first()?;
        bytes = bytes.from(4 + usize::from(identifier) + usize::from(value) + 9)?;
    }
    if *bytes.first()? == [0, 0] {
        bytes = bytes.from(8)?;
    }
    let [first] = *bytes.first()?;
    if first >> 4 == 6 { Ok(Step::Layer(Layer::Ip, bytes)) } else { Err(Other::Udp.into()) }
}

/// Parses L2TP version 2 (RFC 2661 §3.1).
fn l2tp<'a>(bytes: Bytes<'a>, observations: &mut Observations) -> Result<Step<'a>, Skipped> {
    let [flags, version] = *bytes.first()?;
    if flags & 0x80 != 0 || version & 0x0f != 2 {
        return Err(Other::L2tp.into());
    }
    let mut bytes = bytes;
    let mut header = 2;
    if flags & 0x40 != 0 {
        bytes = observations.limit(bytes, bytes.word(2)?.into());
        header += 2;
    }
    // Tunnel ID and session ID. With the S bit, Ns and Nr follow.
    header += if flags & 8 == 0 { 4 } else { 8 };
    if flags & 2 != 0 {
        header += 2 + usize::from(bytes.word(header)?);
    }
    Ok(Step::Layer(Layer::Ppp, bytes.from(header)?))
}
