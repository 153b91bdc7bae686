//! PDUs as octets, and back (§9.2). A PDU with "reserved or invalid values", which §10.3 tells to discard, is a
//! [`DecodeError`].

mod amd;
mod rlist;
mod sufi;
#[cfg(test)]
mod tests;

pub(crate) use amd::{encode_amd, write_amd};
pub use rlist::RlistError;
pub(crate) use rlist::{expand_rlist, push_burst, push_distance};

use super::pdu::{Pdu, Reset};

/// How PDUs of one direction are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// "AMD PDU size" in octets, or the most if it is flexible; the most that a control PDU has.
    pub pdu_size: usize,
    /// Whether that is the size of every PDU.
    pub sizing: Sizing,
    /// "Use of the special value of the HE field" is configured (§9.2.2.7): HE = 10 is sent, and understood.
    pub he_special: bool,
}

/// Whether PDUs have one size (§4.2.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizing {
    /// "Fixed RLC PDU size": PDUs are filled, with padding where there is nothing else. Their size says how long "Length
    /// Indicators" are (§9.2.2.8).
    Fixed,
    /// "Flexible RLC PDU size": a PDU ends where what it carries ends, and "Length Indicator size" is configured.
    Flexible(IndicatorSize),
}

/// "Length Indicator size".
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
    /// Without the E bit.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Bits7 => 7,
            Self::Bits15 => 15,
        }
    }
}

/// Why a PDU is discarded (§10.3, §11.3.4.5, §11.3.4.6, §11.3.4.10). The numbers are those of the PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There is no octet to read.
    #[error("no octets at all")]
    Empty,
    /// §11.3.4.10: an AMD PDU that has not the configured "AMD PDU size", or is larger than the largest.
    #[error("an AMD PDU of {octets} octets where {pdu_size} are configured")]
    AmdSize {
        /// What came.
        octets: usize,
        /// What is configured.
        pdu_size: usize,
    },
    /// §9.2.1.5, §9.2.1.7: the size of a control PDU is bounded by the configured one.
    #[error("a control PDU of {octets} octets where at most {pdu_size} are configured")]
    ControlSize {
        /// What came.
        octets: usize,
        /// What is configured.
        pdu_size: usize,
    },
    /// §9.2.2.7.
    #[error("HE = 11 is reserved")]
    HeReserved,
    /// §9.2.2.7, where [`Format::he_special`] is not set.
    #[error("HE = 10, which is not configured")]
    HeNotConfigured,
    /// §11.3.4.6: a value that §9.2.2.8 reserves in AMD PDUs.
    #[error("length indicator {li:#x} is reserved")]
    LiReserved {
        /// The indicator.
        li: u16,
    },
    /// §9.2.2.8: what tells about the previous PDU is "placed as the first".
    #[error("length indicator {li:#x} speaks of the PDU before, but is not the first")]
    LiNotFirst {
        /// The indicator.
        li: u16,
    },
    /// §9.2.2.8: padding and a piggybacked STATUS PDU are announced after all other indicators.
    #[error("length indicator {li:#x} must be the last, but E = 1")]
    LiNotLast {
        /// The indicator.
        li: u16,
    },
    /// §9.2.2.8: indicators are in the order of their SDUs, and no SDU is empty.
    #[error("length indicator {li} does not exceed the one before it, {before}")]
    LiNotAscending {
        /// The indicator.
        li: u16,
        /// The one before it, or 0.
        before: u16,
    },
    /// §11.3.4.5: larger than PDU size − RLC header size.
    #[error("length indicator {li} where {room} octets follow the header")]
    LiBeyondPdu {
        /// The indicator.
        li: u16,
        /// Octets after the last indicator.
        room: usize,
    },
    /// §9.2.2.2.
    #[error("control PDU type {0} is reserved")]
    ControlType(u8),
    /// §9.2.2.6.
    #[error("R1 of a RESET or RESET ACK is {0}, not 0")]
    R1(u8),
    /// §9.2.2.12.
    #[error("R2 of a piggybacked STATUS PDU is 1, not 0")]
    R2,
    /// §9.2.1.6.
    #[error("a piggybacked PDU of type {0}: only STATUS can be")]
    PiggybackedType(u8),
    /// §9.2.2.11.
    #[error("super-field type {0} is reserved")]
    SufiType(u8),
    /// §9.2.2.11.4: LENGTH = 0 is invalid.
    #[error("a LIST of length 0")]
    EmptyList,
    /// §9.2.2.11.6.
    #[error("a relative list: {0}")]
    Rlist(RlistError),
    /// §9.2.2.11: the PDU ends within a super-field, or after super-fields of which none is ACK or NO_MORE.
    #[error("the PDU ends within its fields")]
    Truncated,
}

/// "PDU Type" (§9.2.2.2): the three bits after D/C = 0.
mod control {
    pub(super) const STATUS: u8 = 0;
    pub(super) const RESET: u8 = 1;
    pub(super) const RESET_ACK: u8 = 2;
}

impl Format {
    /// The values of [`pdu_size`](Self::pdu_size) that work: no PDU is too small for a report with one gap, and no
    /// offset is as large as a reserved value of a 15-bit indicator.
    pub const SIZES: std::ops::RangeInclusive<usize> = 8..=0x7000;

    /// "Fixed RLC PDU size", without the special value of HE.
    pub const fn fixed(pdu_size: usize) -> Self {
        Self { pdu_size, sizing: Sizing::Fixed, he_special: false }
    }

    /// How long "Length Indicators" are (§9.2.2.8): with a fixed size 7 bits if that is ≤ 126 octets, else 15.
    pub const fn indicator_size(self) -> IndicatorSize {
        match self.sizing {
            Sizing::Fixed if self.pdu_size <= 126 => IndicatorSize::Bits7,
            Sizing::Fixed => IndicatorSize::Bits15,
            Sizing::Flexible(size) => size,
        }
    }

    /// Octets of a "Length Indicator" with its E bit.
    pub const fn li_octets(self) -> usize {
        (self.indicator_size().bits() as usize + 1) / 8
    }

    /// Whether PDUs have all the same size.
    pub const fn is_fixed(self) -> bool {
        matches!(self.sizing, Sizing::Fixed)
    }

    /// Adds padding, where the size is fixed.
    fn pad(self, octets: &mut Vec<u8>) {
        if self.is_fixed() {
            octets.resize(self.pdu_size, 0);
        }
    }

    /// Octets of the largest AMD PDU after its header of two octets: "Length Indicators", data and padding.
    pub const fn body(self) -> usize {
        self.pdu_size - 2
    }
}

/// Writes a PDU. With a fixed size it has exactly `pdu_size` octets: control PDUs are padded with zeros (§9.2.1.5,
/// §9.2.1.7). With a flexible one it has no padding.
///
/// # Panics
///
/// If the PDU cannot be written in this format, which is a mistake of whoever built it. A PDU that [`decode`] returned
/// can be written in the same format.
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

/// §9.2.1.7: D/C = 0, PDU Type, RSN, R1 = 000, HFNI, PAD.
fn encode_reset(reset: Reset, pdu_type: u8) -> Vec<u8> {
    assert!(reset.hfni < 1 << 20, "HFNI has 20 bits");
    let word = u32::from(pdu_type) << 28 | u32::from(reset.rsn) << 27 | reset.hfni << 4;
    word.to_be_bytes().to_vec()
}

/// Whether it is an AMD PDU (D/C, §9.2.2.1), and no control PDU.
pub fn is_data(octets: &[u8]) -> bool {
    octets.first().is_some_and(|first| first & 0x80 != 0)
}

/// Reads a PDU. An AMD PDU must have the configured size, if that is fixed; others may be shorter. What stands in padding
/// is disregarded (§9.2.2.10).
pub fn decode(octets: &[u8], format: Format) -> Result<Pdu<'_>, DecodeError> {
    let first = *octets.first().ok_or(DecodeError::Empty)?;
    if is_data(octets) {
        return amd::decode(octets, format).map(Pdu::Amd);
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
