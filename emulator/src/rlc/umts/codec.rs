//! PDUs as octets, and back (§9.2). A PDU with "reserved or invalid values", which §10.3 tells to discard, is a
//! [`DecodeError`].

mod amd;
mod rlist;
mod sufi;
#[cfg(test)]
mod tests;

pub(crate) use amd::encode_amd;
pub use rlist::RlistError;
pub(crate) use rlist::{expand_rlist, push_burst, push_distance};

use super::config::FormatConfig;
use super::pdu::{Pdu, Reset};

/// How PDUs of one direction are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// "AMD PDU size" in octets, which is fixed; the most that a control PDU has.
    pub pdu_size: usize,
    /// "Use of the special value of the HE field" is configured (§9.2.2.7): HE = 10 is sent, and understood.
    pub he_special: bool,
}

/// Why a PDU is discarded (§10.3, §11.3.4.5, §11.3.4.6, §11.3.4.10). The numbers are those of the PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There is no octet to read.
    #[error("no octets at all")]
    Empty,
    /// §11.3.4.10: an AMD PDU that has not the configured "AMD PDU size".
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

    /// Octets of a "Length Indicator" with its E bit (§9.2.2.8): 7 bits if the AMD PDU size is ≤ 126 octets, else 15.
    pub const fn li_octets(self) -> usize {
        if self.pdu_size <= 126 { 1 } else { 2 }
    }

    /// Octets of an AMD PDU after its header of two octets: "Length Indicators", data and padding.
    pub const fn body(self) -> usize {
        self.pdu_size - 2
    }
}

impl From<&FormatConfig> for Format {
    fn from(config: &FormatConfig) -> Self {
        Self { pdu_size: config.pdu.as_bytes() as usize, he_special: config.he_special }
    }
}

/// Writes a PDU of exactly `pdu_size` octets. Control PDUs are padded with zeros (§9.2.1.5, §9.2.1.7).
///
/// # Panics
///
/// If the PDU cannot be written in this format, which is a mistake of whoever built it. A PDU that [`decode`] returned
/// can be written in the same format.
pub fn encode(pdu: &Pdu, format: Format) -> Vec<u8> {
    match pdu {
        Pdu::Amd(amd) => encode_amd(amd, format),
        Pdu::Status(status) => {
            let mut octets = sufi::encode(status);
            assert!(octets.len() <= format.pdu_size, "a STATUS PDU of {} octets", octets.len());
            octets.resize(format.pdu_size, 0);
            octets
        }
        Pdu::Reset(reset) => encode_reset(*reset, control::RESET, format),
        Pdu::ResetAck(reset) => encode_reset(*reset, control::RESET_ACK, format),
    }
}

/// §9.2.1.7: D/C = 0, PDU Type, RSN, R1 = 000, HFNI, PAD.
fn encode_reset(reset: Reset, pdu_type: u8, format: Format) -> Vec<u8> {
    assert!(reset.hfni < 1 << 20, "HFNI has 20 bits");
    let word = u32::from(pdu_type) << 28 | u32::from(reset.rsn) << 27 | reset.hfni << 4;
    let mut octets = Vec::with_capacity(format.pdu_size);
    octets.extend(word.to_be_bytes());
    octets.resize(format.pdu_size, 0);
    octets
}

/// Whether it is an AMD PDU (D/C, §9.2.2.1), and no control PDU.
pub fn is_data(octets: &[u8]) -> bool {
    octets.first().is_some_and(|first| first & 0x80 != 0)
}

/// Reads a PDU. An AMD PDU must have the configured size; a control PDU may be shorter. What stands in padding is
/// disregarded (§9.2.2.10).
pub fn decode(octets: &[u8], format: Format) -> Result<Pdu, DecodeError> {
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
