//! 802.11, and the headers that capturing machines prepend.

use super::bytes::{Bytes, Skipped};
use super::layer::{Layer, Step};
use crate::link_layer::LinkType;
use crate::other::Other;

/// Parses an 802.11 frame (IEEE 802.11 §9.2).
pub(super) fn frame(bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    const MORE: u8 = 0x04;
    const PROTECTED: u8 = 0x40;
    const ORDER: u8 = 0x80;
    let [control, flags] = *bytes.first()?;
    match (control >> 2) & 3 {
        0 => return Err(Other::WlanManagement.into()),
        2 => {}
        _ => return Err(Other::WlanControl.into()),
    }
    let (is_null, is_qos) = (control & 0x40 != 0, control & 0x80 != 0);
    if is_null {
        return Err(Other::WlanNull.into());
    }
    if flags & PROTECTED != 0 {
        return Err(Other::WlanEncrypted.into());
    }
    let fragment = bytes.at::<1>(22)?[0] & 0x0f;
    if flags & MORE != 0 || fragment != 0 {
        return Err(Other::WlanFragment.into());
    }
    // Frames between two access points have a fourth address.
    let mut header = if flags & 3 == 3 { 30 } else { 24 };
    if is_qos {
        let [qos, _] = *bytes.at(header)?;
        header += if flags & ORDER == 0 { 2 } else { 6 };
        if qos & 0x80 != 0 {
            return aggregate(bytes.from(header)?);
        }
    }
    Ok(Step::Layer(Layer::Llc, bytes.from(header)?))
}

/// Parses an A-MSDU (IEEE 802.11 §9.3.2.2). Only an A-MSDU with a single packet can be read.
fn aggregate(bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    let len = usize::from(bytes.word(12)?);
    let rest = bytes.from(14)?;
    // Padding and a checksum may follow the packet. A second packet would have at least 14 bytes of header.
    if rest.len() < len.next_multiple_of(4) + 14 {
        return Ok(Step::Layer(Layer::Llc, rest.to(len)));
    }
    Err(Other::WlanAggregate.into())
}

/// Parses radiotap (<https://www.radiotap.org>): little-endian fields in the order of their presence bits,
/// each aligned to its size.
pub(super) fn radiotap(bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    const PADDED: u8 = 0x20;
    const DAMAGED: u8 = 0x40;
    let [_, _, low, high, present, ..] = *bytes.first::<8>()?;
    let header = usize::from(u16::from_le_bytes([low, high]));
    let mut fields = 8;
    while bytes.at::<1>(fields - 1)?[0] & 0x80 != 0 {
        fields += 4;
    }
    let has_time = present & 1 != 0;
    let flags = match (present & 2 != 0, has_time) {
        (false, _) => 0,
        (true, false) => bytes.at::<1>(fields)?[0],
        (true, true) => bytes.at::<1>(fields.next_multiple_of(8) + 8)?[0],
    };
    if flags & DAMAGED != 0 {
        return Err(Other::WlanDamaged.into());
    }
    let frame = bytes.from(header)?;
    if flags & PADDED != 0 {
        return padded(frame);
    }
    Ok(Step::Layer(Layer::Wlan, frame))
}

/// Parses a frame whose 802.11 header the device has padded to a multiple of four bytes. This affects headers
/// of 26 bytes (with QoS) and of 30 bytes (with four addresses).
fn padded(bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    let next = frame(bytes)?;
    let Step::Layer(layer, rest) = next else { return Ok(next) };
    let header = bytes.len() - rest.len();
    Ok(Step::Layer(layer, rest.from(header.next_multiple_of(4) - header)?))
}

/// Parses Per-Packet Information, whose header contains the link type of the data that follows.
pub(super) fn ppi(bytes: Bytes<'_>) -> Result<Step<'_>, Skipped> {
    let [_, _, low, high, a, b, c, d] = *bytes.first()?;
    let header = usize::from(u16::from_le_bytes([low, high]));
    let link = i32::from_le_bytes([a, b, c, d]);
    Ok(Step::Layer(Layer::Link(LinkType(link)), bytes.from(header.max(8))?))
}
