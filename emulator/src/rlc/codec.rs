//! PDUs as octets, and back (TS 25.322 §9.2). Strict: what clause 10 tells to discard is a `DecodeError`.

mod amd;
mod rlist;
mod sufi;
#[cfg(test)]
mod tests;

pub use amd::encode_amd;
pub use rlist::{RlistError, RlistGaps, expand_rlist, push_burst, push_distance};

use super::config::FormatConfig;
use super::pdu::{Pdu, Reset};

/// How PDUs of one direction are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Octets of every AMD PDU, and the most that a control PDU has.
    pub pdu_size: usize,
    /// "Use special value of the HE field".
    pub he_special: bool,
}

/// Why a PDU is discarded. Numbers are as they stand in the PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("no octets at all")]
    Empty,
    #[error("an AMD PDU of {octets} octets where {pdu_size} are configured")]
    AmdSize { octets: usize, pdu_size: usize },
    #[error("a control PDU of {octets} octets where at most {pdu_size} are configured")]
    ControlSize { octets: usize, pdu_size: usize },
    #[error("HE = 11 is reserved")]
    HeReserved,
    #[error("HE = 10, which is not configured")]
    HeNotConfigured,
    #[error("length indicator {li:#x} is reserved")]
    LiReserved { li: u16 },
    #[error("length indicator {li:#x} speaks of the PDU before, but is not the first")]
    LiNotFirst { li: u16 },
    #[error("length indicator {li:#x} must be the last, but E = 1")]
    LiNotLast { li: u16 },
    #[error("length indicator {li} does not exceed the one before it, {before}")]
    LiNotAscending { li: u16, before: u16 },
    #[error("length indicator {li} where {room} octets follow the header")]
    LiBeyondPdu { li: u16, room: usize },
    #[error("control PDU type {0} is reserved")]
    ControlType(u8),
    #[error("R1 of a RESET or RESET ACK is {0}, not 0")]
    R1(u8),
    #[error("R2 of a piggybacked STATUS PDU is 1, not 0")]
    R2,
    #[error("a piggybacked PDU of type {0}: only STATUS can be")]
    PiggybackedType(u8),
    #[error("super-field type {0} is reserved")]
    SufiType(u8),
    #[error("a LIST of length 0")]
    EmptyList,
    #[error("a relative list: {0}")]
    Rlist(RlistError),
    /// The super-fields go up to the very end of the PDU and none of them is ACK or NO_MORE (§9.2.2.11), or the
    /// PDU ends within one.
    #[error("the PDU ends within its fields")]
    Truncated,
}

/// The three bits that follow D/C = 0.
mod control {
    pub(super) const STATUS: u8 = 0;
    pub(super) const RESET: u8 = 1;
    pub(super) const RESET_ACK: u8 = 2;
}

impl Format {
    /// Sizes that every PDU fits: RESET needs four octets, and 15-bit indicators must stay clear of the reserved
    /// values.
    pub const SIZES: std::ops::RangeInclusive<usize> = 8..=0x7000;

    /// Octets of one length indicator with its E bit (§9.2.2.8: 7 bits for PDUs of up to 126 octets).
    pub const fn li_octets(self) -> usize {
        if self.pdu_size <= 126 { 1 } else { 2 }
    }

    /// Octets of an AMD PDU after its two octets of header.
    pub const fn body(self) -> usize {
        self.pdu_size - 2
    }
}

impl From<&FormatConfig> for Format {
    fn from(config: &FormatConfig) -> Self {
        Self { pdu_size: config.pdu.as_bytes() as usize, he_special: config.he_special }
    }
}

/// An AMD PDU of exactly `pdu_size` octets, or a control PDU padded with zeros to that size.
///
/// # Panics
///
/// If the PDU cannot be written in this format: that is a bug in whoever built it. Nothing that `decode` gave
/// (with the same format) panics.
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

fn encode_reset(reset: Reset, kind: u8, format: Format) -> Vec<u8> {
    assert!(reset.hfni < 1 << 20, "HFNI has 20 bits");
    let word = u32::from(kind) << 28 | u32::from(reset.rsn) << 27 | reset.hfni << 4;
    let mut octets = Vec::with_capacity(format.pdu_size);
    octets.extend(word.to_be_bytes());
    octets.resize(format.pdu_size, 0);
    octets
}

/// What a PDU says. AMD PDUs must have the configured size; control PDUs may be shorter. Whatever stands in
/// padding is ignored.
pub fn decode(octets: &[u8], format: Format) -> Result<Pdu, DecodeError> {
    let first = *octets.first().ok_or(DecodeError::Empty)?;
    if first & 0x80 != 0 {
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
