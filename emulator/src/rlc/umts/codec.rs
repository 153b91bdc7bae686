//! Encoding and decoding of PDUs (§9.2). A PDU with "reserved or invalid values", which §10.3 requires to
//! discard, is a [`DecodeError`].

mod amd;
mod rlist;
mod sufi;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use amd::{encode_amd, encoded_size, write_amd, write_segment};
pub use rlist::RlistError;
pub(crate) use rlist::{expand_rlist, push_burst, push_distance};

use super::pdu::{Pdu, Reset};

/// Format of the PDUs in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// "AMD PDU size" in bytes, or the maximum if the size is flexible. It is also the maximum size of a
    /// control PDU.
    pub pdu_size: usize,
    /// Whether all PDUs have this size.
    pub sizing: Sizing,
    /// Whether "Use of the special value of the HE field" is configured (§9.2.2.7): HE = 10 is sent and
    /// accepted.
    pub he_special: bool,
}

/// Whether all PDUs have the same size (§4.2.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizing {
    /// "Fixed RLC PDU size": unused space in a PDU is padding. The PDU size determines the size of Length
    /// Indicators (§9.2.2.8).
    Fixed,
    /// "Flexible RLC PDU size": a PDU ends with its content, and "Length Indicator size" is configured.
    Flexible(IndicatorSize),
}

/// The configured "Length Indicator size".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum IndicatorSize {
    /// 7 bits.
    #[serde(rename = "7bit")]
    Bits7,
    /// 15 bits.
    #[default]
    #[serde(rename = "15bit")]
    Bits15,
}

impl IndicatorSize {
    /// Size in bits, without the E bit.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Bits7 => 7,
            Self::Bits15 => 15,
        }
    }
}

/// Reason for discarding a PDU (§10.3, §11.3.4.5, §11.3.4.6, §11.3.4.10). Fields hold values from the PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The PDU has no bytes.
    #[error("an empty PDU")]
    Empty,
    /// §11.3.4.10: an AMD PDU does not have the configured "AMD PDU size", or exceeds the maximum size.
    #[error("an AMD PDU of {octets} octets where {pdu_size} are configured")]
    AmdSize {
        /// Size of the PDU.
        octets: usize,
        /// Configured size.
        pdu_size: usize,
    },
    /// §9.2.1.5, §9.2.1.7: a control PDU exceeds the configured size.
    #[error("a control PDU of {octets} octets where at most {pdu_size} are configured")]
    ControlSize {
        /// Size of the PDU.
        octets: usize,
        /// Configured size.
        pdu_size: usize,
    },
    /// §9.2.2.7: HE has the reserved value 11.
    #[error("HE = 11 is reserved")]
    HeReserved,
    /// §9.2.2.7: HE is 10, but [`Format::he_special`] is not set.
    #[error("HE = 10, which is not configured")]
    HeNotConfigured,
    /// §11.3.4.6: a Length Indicator has a value that §9.2.2.8 reserves in AMD PDUs.
    #[error("length indicator {0:#x} is reserved")]
    LiReserved(u16),
    /// §9.2.2.8: a Length Indicator that describes the previous PDU is not "placed as the first".
    #[error("length indicator {0:#x} describes the previous PDU, but is not the first")]
    LiNotFirst(u16),
    /// §9.2.2.8: a Length Indicator for padding or for a piggybacked STATUS PDU is not the last one.
    #[error("length indicator {0:#x} must be the last, but E = 1")]
    LiNotLast(u16),
    /// §9.2.2.8: Length Indicators are not in the order of their SDUs, or an SDU is empty.
    #[error("length indicator {li} does not exceed the one before it, {before}")]
    LiNotAscending {
        /// The indicator.
        li: u16,
        /// The previous indicator, or 0.
        before: u16,
    },
    /// §11.3.4.5: a Length Indicator exceeds PDU size − RLC header size.
    #[error("length indicator {li} where {room} octets follow the header")]
    LiBeyondPdu {
        /// The indicator.
        li: u16,
        /// Bytes after the last indicator.
        room: usize,
    },
    /// §9.2.2.2: the control PDU has a reserved type.
    #[error("control PDU type {0} is reserved")]
    ControlType(u8),
    /// §9.2.2.6: R1 of a RESET or RESET ACK PDU is not 0.
    #[error("R1 of a RESET or RESET ACK is {0}, not 0")]
    R1(u8),
    /// §9.2.2.12: R2 of a piggybacked STATUS PDU is not 0.
    #[error("R2 of a piggybacked STATUS PDU is 1, not 0")]
    R2,
    /// §9.2.1.6: a piggybacked PDU is not a STATUS PDU.
    #[error("a piggybacked PDU of type {0}: only STATUS can be")]
    PiggybackedType(u8),
    /// §9.2.2.11: a super-field has a reserved type.
    #[error("super-field type {0} is reserved")]
    SufiType(u8),
    /// §9.2.2.11.4: a LIST has LENGTH = 0, which is invalid.
    #[error("a LIST of length 0")]
    EmptyList,
    /// §9.2.2.11.6: a relative list is invalid.
    #[error("an invalid relative list: {0}")]
    Rlist(RlistError),
    /// §9.2.2.11: the PDU ends within a field, or its super-fields do not end with ACK or NO_MORE.
    #[error("the PDU ends within its fields")]
    Truncated,
}

/// Values of "PDU Type" (§9.2.2.2), the three bits after D/C = 0.
mod control {
    pub(super) const STATUS: u8 = 0;
    pub(super) const RESET: u8 = 1;
    pub(super) const RESET_ACK: u8 = 2;
}

impl Format {
    /// Supported values of [`pdu_size`](Self::pdu_size). The smallest PDU has room for a status report with
    /// one gap. In the largest one, no offset is equal to a reserved value of a 15-bit indicator.
    pub const SIZES: std::ops::RangeInclusive<usize> = 8..=0x7000;

    /// Returns a format with "Fixed RLC PDU size" and without the special value of HE.
    pub const fn fixed(pdu_size: usize) -> Self {
        Self { pdu_size, sizing: Sizing::Fixed, he_special: false }
    }

    /// Size of Length Indicators (§9.2.2.8). With a fixed PDU size, they have 7 bits up to 126 bytes, and 15
    /// bits above.
    pub const fn indicator_size(self) -> IndicatorSize {
        match self.sizing {
            Sizing::Fixed if self.pdu_size <= 126 => IndicatorSize::Bits7,
            Sizing::Fixed => IndicatorSize::Bits15,
            Sizing::Flexible(size) => size,
        }
    }

    /// Bytes of a Length Indicator with its E bit.
    pub const fn li_octets(self) -> usize {
        (self.indicator_size().bits() as usize + 1) / 8
    }

    /// Whether all PDUs have the same size.
    pub const fn is_fixed(self) -> bool {
        matches!(self.sizing, Sizing::Fixed)
    }

    /// Adds padding if the size is fixed.
    fn pad(self, octets: &mut Vec<u8>) {
        if self.is_fixed() {
            octets.resize(self.pdu_size, 0);
        }
    }

    /// Bytes of the largest AMD PDU after its two-byte header: Length Indicators, data and padding.
    pub const fn body(self) -> usize {
        self.pdu_size - 2
    }
}

/// Encodes a PDU. With a fixed size, the result has exactly `pdu_size` bytes, and control PDUs are padded
/// with zeros (§9.2.1.5, §9.2.1.7). With a flexible size, it has no padding.
///
/// # Panics
///
/// If the PDU cannot be encoded in this format, which is a bug in the caller. A PDU returned by [`decode`]
/// can be encoded in the same format.
pub fn encode(pdu: &Pdu<'_>, format: Format) -> Vec<u8> {
    let mut octets = match pdu {
        Pdu::Amd(amd) => return encode_amd(amd, format),
        Pdu::Status(status) => sufi::encode(status),
        Pdu::Reset(reset) => encode_reset(*reset, control::RESET),
        Pdu::ResetAck(reset) => encode_reset(*reset, control::RESET_ACK),
    };
    assert!(octets.len() <= format.pdu_size, "a control PDU of {} octets", octets.len());
    format.pad(&mut octets);
    octets
}

/// Fields of a RESET or RESET ACK PDU (§9.2.1.7): D/C = 0, PDU Type, RSN, R1 = 000, HFNI, PAD.
fn encode_reset(reset: Reset, pdu_type: u8) -> Vec<u8> {
    assert!(reset.hfni < 1 << 20, "HFNI has 20 bits");
    let word = u32::from(pdu_type) << 28 | u32::from(reset.rsn) << 27 | reset.hfni << 4;
    word.to_be_bytes().to_vec()
}

/// Whether the PDU is an AMD PDU and not a control PDU (D/C, §9.2.2.1).
pub fn is_data(octets: &[u8]) -> bool {
    octets.first().is_some_and(|first| first & 0x80 != 0)
}

/// Decodes a PDU. If the size is fixed, AMD PDUs must have the configured size. Control PDUs may be shorter.
/// The content of padding is ignored (§9.2.2.10).
#[inline]
pub fn decode(octets: &[u8], format: Format) -> Result<Pdu<'_>, DecodeError> {
    let first = *octets.first().ok_or(DecodeError::Empty)?;
    if is_data(octets) {
        return amd::decode(octets, format);
    }
    if octets.len() > format.pdu_size {
        return Err(DecodeError::ControlSize { octets: octets.len(), pdu_size: format.pdu_size });
    }
    match first >> 4 & 7 {
        control::STATUS => sufi::decode(octets).map(Pdu::Status),
        control::RESET => decode_reset(octets).map(Pdu::Reset),
        control::RESET_ACK => decode_reset(octets).map(Pdu::ResetAck),
        reserved => Err(DecodeError::ControlType(reserved)),
    }
}

fn decode_reset(octets: &[u8]) -> Result<Reset, DecodeError> {
    let word = u32::from_be_bytes(*octets.first_chunk().ok_or(DecodeError::Truncated)?);
    match (word >> 24 & 7) as u8 {
        0 => Ok(Reset { rsn: word >> 27 & 1 == 1, hfni: word >> 4 & 0xf_ffff }),
        r1 => Err(DecodeError::R1(r1)),
    }
}
