//! STATUS PDUs (§9.2.1.5): a sequence of super-fields, in units of 4 bits (§9.2.2.11).

use super::{DecodeError, expand_rlist};
use crate::rlc::umts::pdu::{ListItem, Mrw, MrwAck, Sn, Status, Sufi};

/// Values of the type field of a super-field (§9.2.2.11).
mod sufi_type {
    pub(super) const NO_MORE: u8 = 0;
    pub(super) const WINDOW: u8 = 1;
    pub(super) const ACK: u8 = 2;
    pub(super) const LIST: u8 = 3;
    pub(super) const BITMAP: u8 = 4;
    pub(super) const RLIST: u8 = 5;
    pub(super) const MRW: u8 = 6;
    pub(super) const MRW_ACK: u8 = 7;
    pub(super) const POLL: u8 = 8;
}

impl Status {
    /// Size in bytes without padding. It is the same for a STATUS PDU and a piggybacked STATUS PDU.
    pub fn octets(&self) -> usize {
        let nibbles = 1 + self.0.iter().map(Sufi::nibbles).sum::<usize>();
        nibbles.div_ceil(2)
    }
}

impl Sufi {
    /// Size in units of 4 bits. The header of a STATUS PDU takes one unit more.
    pub const fn nibbles(&self) -> usize {
        match self {
            Self::NoMore => 1,
            Self::Window { .. } | Self::Ack { .. } | Self::Poll { .. } => 4,
            Self::List(items) => 2 + 4 * items.len(),
            Self::Bitmap { bits, .. } => 5 + 2 * bits.len(),
            Self::Rlist { codewords, .. } => 5 + codewords.len(),
            Self::Mrw(mrw) => 3 + 3 * mrw.sns.len(),
            Self::MrwAck(_) => 5,
        }
    }

    /// Whether the super-field ends its STATUS PDU. ACK and NO_MORE do (§9.2.2.11.1, §9.2.2.11.2).
    pub const fn ends(&self) -> bool {
        matches!(self, Self::NoMore | Self::Ack { .. })
    }
}

struct Writer {
    octets: Vec<u8>,
    half: bool,
}

impl Writer {
    fn nibble(&mut self, value: u8) {
        assert!(value < 16, "{value} does not fit 4 bits");
        match self.octets.last_mut() {
            Some(last) if self.half => *last |= value,
            _ => self.octets.push(value << 4),
        }
        self.half = !self.half;
    }

    fn octet(&mut self, value: u8) {
        self.nibble(value >> 4);
        self.nibble(value & 15);
    }

    fn twelve(&mut self, value: u16) {
        self.nibble((value >> 8) as u8);
        self.octet(value as u8);
    }

    /// Writes a LENGTH field.
    fn length(&mut self, length: usize, most: usize) {
        assert!(length <= most, "a LENGTH of {length}, but at most {most}");
        self.nibble(length as u8);
    }

    fn sufi(&mut self, sufi: &Sufi) {
        match sufi {
            Sufi::NoMore => self.nibble(sufi_type::NO_MORE),
            Sufi::Window { wsn } => {
                self.nibble(sufi_type::WINDOW);
                self.twelve(*wsn);
            }
            Sufi::Ack { lsn } => {
                self.nibble(sufi_type::ACK);
                self.twelve(lsn.get());
            }
            Sufi::List(items) => {
                assert!(!items.is_empty(), "an empty LIST");
                self.nibble(sufi_type::LIST);
                self.length(items.len(), 15);
                for item in items {
                    self.twelve(item.sn.get());
                    self.nibble(item.further);
                }
            }
            Sufi::Bitmap { fsn, bits } => {
                assert!(!bits.is_empty(), "an empty BITMAP");
                self.nibble(sufi_type::BITMAP);
                self.length(bits.len() - 1, 15);
                self.twelve(fsn.get());
                bits.iter().for_each(|octet| self.octet(*octet));
            }
            Sufi::Rlist { fsn, codewords } => {
                self.nibble(sufi_type::RLIST);
                self.length(codewords.len(), 15);
                self.twelve(fsn.get());
                codewords.iter().for_each(|word| self.nibble(*word));
            }
            Sufi::Mrw(Mrw { sns, long_distance, nlength }) => {
                self.nibble(sufi_type::MRW);
                if *long_distance {
                    assert_eq!(sns.len(), 1, "LENGTH = 0 requires exactly one SN_MRW");
                    self.nibble(0);
                } else {
                    assert!(!sns.is_empty(), "an MRW without SN_MRW");
                    self.length(sns.len(), 15);
                }
                sns.iter().for_each(|sn| self.twelve(sn.get()));
                self.nibble(*nlength);
            }
            Sufi::MrwAck(MrwAck { n, sn_ack }) => {
                self.nibble(sufi_type::MRW_ACK);
                self.nibble(*n);
                self.twelve(sn_ack.get());
            }
            Sufi::Poll { sn } => {
                self.nibble(sufi_type::POLL);
                self.twelve(sn.get());
            }
        }
    }
}

/// Encodes a STATUS PDU without padding. The header is the same with D/C = 0 and, in a piggybacked PDU, with
/// R2 = 0.
pub(super) fn encode(status: &Status) -> Vec<u8> {
    let at_end = status.0.iter().position(Sufi::ends);
    assert_eq!(
        at_end.map(|at| at + 1),
        Some(status.0.len()),
        "ACK or NO_MORE must be the last super-field, and occur once"
    );
    let mut writer = Writer { octets: Vec::with_capacity(status.octets()), half: false };
    writer.nibble(super::control::STATUS);
    status.0.iter().for_each(|sufi| writer.sufi(sufi));
    writer.octets
}

struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn nibble(&mut self) -> Result<u8, DecodeError> {
        let octet = self.octets.get(self.at / 2).ok_or(DecodeError::Truncated)?;
        let nibble = if self.at.is_multiple_of(2) { octet >> 4 } else { octet & 15 };
        self.at += 1;
        Ok(nibble)
    }

    fn octet(&mut self) -> Result<u8, DecodeError> {
        Ok(self.nibble()? << 4 | self.nibble()?)
    }

    fn twelve(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from(self.nibble()?) << 8 | u16::from(self.octet()?))
    }

    fn sn(&mut self) -> Result<Sn, DecodeError> {
        self.twelve().map(Sn::new)
    }

    fn length(&mut self) -> Result<usize, DecodeError> {
        self.nibble().map(usize::from)
    }

    fn sufi(&mut self) -> Result<Sufi, DecodeError> {
        Ok(match self.nibble()? {
            sufi_type::NO_MORE => Sufi::NoMore,
            sufi_type::WINDOW => Sufi::Window { wsn: self.twelve()? },
            sufi_type::ACK => Sufi::Ack { lsn: self.sn()? },
            sufi_type::LIST => {
                let length = self.length()?;
                if length == 0 {
                    return Err(DecodeError::EmptyList);
                }
                let item = |_| Ok(ListItem { sn: self.sn()?, further: self.nibble()? });
                Sufi::List((0..length).map(item).collect::<Result<_, _>>()?)
            }
            sufi_type::BITMAP => {
                let (length, fsn) = (self.length()? + 1, self.sn()?);
                Sufi::Bitmap { fsn, bits: (0..length).map(|_| self.octet()).collect::<Result<_, _>>()? }
            }
            sufi_type::RLIST => {
                let (length, fsn) = (self.length()?, self.sn()?);
                let codewords = (0..length).map(|_| self.nibble()).collect::<Result<Vec<_>, _>>()?;
                for gap in expand_rlist(fsn, &codewords) {
                    gap.map_err(DecodeError::Rlist)?;
                }
                Sufi::Rlist { fsn, codewords }
            }
            sufi_type::MRW => {
                let length = self.length()?;
                let sns = (0..length.max(1)).map(|_| self.sn()).collect::<Result<_, _>>()?;
                Sufi::Mrw(Mrw { sns, long_distance: length == 0, nlength: self.nibble()? })
            }
            sufi_type::MRW_ACK => Sufi::MrwAck(MrwAck { n: self.nibble()?, sn_ack: self.sn()? }),
            sufi_type::POLL => Sufi::Poll { sn: self.sn()? },
            reserved => return Err(DecodeError::SufiType(reserved)),
        })
    }
}

/// Decodes the super-fields. The caller has checked the header in the first four bits.
pub(super) fn decode(octets: &[u8]) -> Result<Status, DecodeError> {
    let mut reader = Reader { octets, at: 1 };
    let mut sufis = Vec::new();
    loop {
        let sufi = reader.sufi()?;
        let ends = sufi.ends();
        sufis.push(sufi);
        if ends {
            return Ok(Status(sufis));
        }
    }
}
