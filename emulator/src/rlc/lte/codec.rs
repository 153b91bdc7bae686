//! Encoding and decoding of PDUs (§6.2).

#[cfg(test)]
mod tests;

use smallvec::SmallVec;

use super::bits::{BitReader, BitWriter};
use crate::rlc::am::ReceiveError;
use crate::rlc::am::report::ReportFormat;
use crate::rlc::am::status::{Nack, NackSegment, Status};
use crate::rlc::sn::SnBits;

/// Length of the sequence numbers of AM (§6.2.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AmSnLength {
    /// 10 bits: a window of 512 PDUs.
    #[default]
    Bits10,
    /// 16 bits: a window of 32768 PDUs.
    Bits16,
}

/// Length of the sequence numbers of UM (§6.2.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UmSnLength {
    /// 5 bits: a window of 16 PDUs.
    Bits5,
    /// 10 bits: a window of 512 PDUs.
    #[default]
    Bits10,
}

/// Length of the LI field (§6.2.2.5). UM always has 11 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LiLength {
    /// 11 bits: an element of more than 2047 octets must be the last one of its PDU.
    #[default]
    Bits11,
    /// 15 bits.
    Bits15,
}

/// Configured lengths of the fields of AM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AmFormat {
    /// Length of the sequence numbers.
    pub sn: AmSnLength,
    /// Length of the LI field.
    pub li: LiLength,
}

impl AmSnLength {
    pub(in crate::rlc) const fn bits(self) -> SnBits {
        SnBits(match self {
            Self::Bits10 => 10,
            Self::Bits16 => 16,
        })
    }

    /// Bits of the SO, SOstart and SOend fields.
    const fn so_bits(self) -> usize {
        match self {
            Self::Bits10 => 15,
            Self::Bits16 => 16,
        }
    }

    /// Special value of SOend: the last octet of the data field (§6.2.2.19).
    const fn so_end(self) -> u32 {
        (1 << self.so_bits()) - 1
    }

    /// Largest data field that the SO field can address.
    pub(in crate::rlc) const fn max_data(self) -> usize {
        self.so_end() as usize
    }

    /// Octets of the fixed part of the header of an AMD PDU (§6.2.1.4).
    pub(in crate::rlc) const fn fixed_header(self) -> usize {
        match self {
            Self::Bits10 => 2,
            Self::Bits16 => 3,
        }
    }

    /// Sizes of the fields of a STATUS PDU (§6.2.1.6).
    pub(in crate::rlc) const fn report_format(self) -> ReportFormat {
        let bits = self.bits().0 as usize;
        ReportFormat { header: 5 + bits, nack: bits + 2, segment: 2 * self.so_bits(), range: 0, max_range: 1 }
    }
}

/// Additional octets of the header of an AMD PDU segment (§6.2.1.5).
pub(in crate::rlc) const SEGMENT_HEADER: usize = 2;

impl UmSnLength {
    pub(in crate::rlc) const fn bits(self) -> SnBits {
        SnBits(match self {
            Self::Bits5 => 5,
            Self::Bits10 => 10,
        })
    }

    /// Octets of the fixed part of the header of a UMD PDU (§6.2.1.3).
    pub(in crate::rlc) const fn fixed_header(self) -> usize {
        match self {
            Self::Bits5 => 1,
            Self::Bits10 => 2,
        }
    }
}

impl LiLength {
    const fn bits(self) -> usize {
        match self {
            Self::Bits11 => 11,
            Self::Bits15 => 15,
        }
    }

    /// Longest element that a Length Indicator can describe.
    pub(in crate::rlc) const fn max_element(self) -> usize {
        (1 << self.bits()) - 1
    }

    /// Octets of the extension part of a header with this number of Length Indicators.
    pub(in crate::rlc) const fn extension(self, indicators: usize) -> usize {
        ((1 + self.bits()) * indicators).div_ceil(8)
    }
}

/// Offsets in a data field.
pub type Offsets = SmallVec<[u32; 4]>;

/// A data field, and how SDUs lie in it: the FI and LI fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataField<'a> {
    /// Whether the first octet is the first octet of an SDU: the first bit of FI is 0.
    pub starts_sdu: bool,
    /// Whether the last octet is the last octet of an SDU: the second bit of FI is 0.
    pub ends_sdu: bool,
    /// Offset of the end of each element except the last one. The LI fields are their differences.
    pub ends: Offsets,
    /// The octets.
    pub octets: &'a [u8],
}

/// A PDU of AM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu<'a> {
    /// An AMD PDU or an AMD PDU segment.
    Data(Amd<'a>),
    /// A STATUS PDU.
    Status(Status),
}

/// An AMD PDU (§6.2.1.4), or an AMD PDU segment (§6.2.1.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amd<'a> {
    /// P: whether the PDU polls.
    pub poll: bool,
    /// SN.
    pub sn: u32,
    /// The fields of a segment. RF is 0 without them.
    pub segment: Option<SegmentFields>,
    /// The data field, with FI and LI.
    pub data: DataField<'a>,
}

/// LSF and SO of an AMD PDU segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFields {
    /// LSF: whether the segment includes the last octet of the AMD PDU.
    pub is_last: bool,
    /// SO: offset of the segment in the data field of the AMD PDU.
    pub so: u32,
}

/// A UMD PDU (§6.2.1.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Umd<'a> {
    /// SN.
    pub sn: u32,
    /// The data field, with FI and LI.
    pub data: DataField<'a>,
}

impl DataField<'_> {
    /// The FI field (§6.2.2.6).
    fn framing_info(&self) -> u8 {
        u8::from(!self.starts_sdu) << 1 | u8::from(!self.ends_sdu)
    }

    fn has_extension(&self) -> u8 {
        u8::from(!self.ends.is_empty())
    }

    /// Appends the extension part of the header, and the octets.
    fn write(&self, li: LiLength, out: &mut Vec<u8>) {
        if !self.ends.is_empty() {
            let mut extension = BitWriter::with_capacity(li.extension(self.ends.len()));
            let mut start = 0;
            for (index, end) in self.ends.iter().enumerate() {
                extension.write(u32::from(index + 1 < self.ends.len()), 1);
                extension.write(end - start, li.bits());
                start = *end;
            }
            out.extend(extension.into_octets());
        }
        out.extend_from_slice(self.octets);
    }
}

/// Reads the extension part of a header and the data field.
fn read_data(rest: &[u8], fi: u8, has_extension: bool, li: LiLength) -> Result<DataField<'_>, ReceiveError> {
    let mut reader = BitReader::new(rest);
    let mut ends = Offsets::new();
    let (mut extension, mut end) = (has_extension, 0);
    while extension {
        extension = reader.read_flag()?;
        match reader.read(li.bits())? {
            0 => return Err(ReceiveError::LengthIndicatorZero),
            length => end += length,
        }
        ends.push(end);
    }
    let octets = reader.rest();
    if octets.is_empty() {
        return Err(ReceiveError::NoData);
    }
    // The last element has no Length Indicator, but at least one octet.
    if octets.len() <= end as usize {
        return Err(ReceiveError::LengthIndicators { claimed: end as usize + 1, octets: octets.len() });
    }
    Ok(DataField { starts_sdu: fi & 0b10 == 0, ends_sdu: fi & 0b01 == 0, ends, octets })
}

/// The bit P in the first octet of an AMD PDU.
pub(in crate::rlc) const POLL: u8 = 0x20;

impl Amd<'_> {
    /// Octets of the header.
    pub(in crate::rlc) fn header(&self, format: AmFormat) -> usize {
        let segment = if self.segment.is_some() { SEGMENT_HEADER } else { 0 };
        format.sn.fixed_header() + segment + format.li.extension(self.data.ends.len())
    }

    /// Encodes the PDU.
    pub fn encode(&self, format: AmFormat) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.header(format) + self.data.octets.len());
        // D/C, RF, P, FI, E.
        let rf = u8::from(self.segment.is_some());
        let poll = if self.poll { POLL } else { 0 };
        let first = 0x80 | rf << 6 | poll | self.data.framing_info() << 3 | self.data.has_extension() << 2;
        let lsf = self.segment.map_or(0, |segment| u8::from(segment.is_last));
        let sn = self.sn;
        match format.sn {
            AmSnLength::Bits10 => out.extend([first | (sn >> 8 & 0b11) as u8, sn as u8]),
            AmSnLength::Bits16 => out.extend([first | lsf << 1, (sn >> 8) as u8, sn as u8]),
        }
        if let Some(SegmentFields { so, .. }) = self.segment {
            let lsf = if format.sn == AmSnLength::Bits10 { u16::from(lsf) << 15 } else { 0 };
            out.extend((lsf | so as u16).to_be_bytes());
        }
        self.data.write(format.li, &mut out);
        out
    }
}

impl Umd<'_> {
    /// Encodes the PDU.
    pub fn encode(&self, length: UmSnLength) -> Vec<u8> {
        let extension = LiLength::Bits11.extension(self.data.ends.len());
        let mut out = Vec::with_capacity(length.fixed_header() + extension + self.data.octets.len());
        let framing = self.data.framing_info() << 1 | self.data.has_extension();
        match length {
            UmSnLength::Bits5 => out.push(framing << 5 | (self.sn & 0x1f) as u8),
            UmSnLength::Bits10 => out.extend([framing << 2 | (self.sn >> 8 & 0b11) as u8, self.sn as u8]),
        }
        self.data.write(LiLength::Bits11, &mut out);
        out
    }

    /// Decodes a UMD PDU.
    pub fn decode(octets: &[u8], length: UmSnLength) -> Result<Umd<'_>, ReceiveError> {
        let (&first, mut rest) = octets.split_first().ok_or(ReceiveError::Empty)?;
        let (framing, sn) = match length {
            UmSnLength::Bits5 => (first >> 5, u32::from(first & 0x1f)),
            UmSnLength::Bits10 => {
                (first >> 2 & 0b111, u32::from(first & 0b11) << 8 | u32::from(take(&mut rest)?))
            }
        };
        let data = read_data(rest, framing >> 1, framing & 1 == 1, LiLength::Bits11)?;
        Ok(Umd { sn, data })
    }
}

/// Decodes a PDU of AM. Reserved bits are ignored.
pub fn decode(octets: &[u8], format: AmFormat) -> Result<Pdu<'_>, ReceiveError> {
    let (&first, mut rest) = octets.split_first().ok_or(ReceiveError::Empty)?;
    if first & 0x80 == 0 {
        return match first >> 4 {
            0 => decode_status(octets, format.sn).map(Pdu::Status),
            cpt => Err(ReceiveError::ControlType(cpt)),
        };
    }
    let sn = match format.sn {
        AmSnLength::Bits10 => u32::from(first & 0b11) << 8 | u32::from(take(&mut rest)?),
        AmSnLength::Bits16 => u32::from(take(&mut rest)?) << 8 | u32::from(take(&mut rest)?),
    };
    let segment = if first & 0x40 != 0 {
        let field = u32::from(take(&mut rest)?) << 8 | u32::from(take(&mut rest)?);
        Some(match format.sn {
            AmSnLength::Bits10 => SegmentFields { is_last: field & 0x8000 != 0, so: field & 0x7fff },
            AmSnLength::Bits16 => SegmentFields { is_last: first & 0b10 != 0, so: field },
        })
    } else {
        None
    };
    let data = read_data(rest, first >> 3 & 0b11, first & 0b100 != 0, format.li)?;
    Ok(Pdu::Data(Amd { poll: first & POLL != 0, sn, segment, data }))
}

fn take(rest: &mut &[u8]) -> Result<u8, ReceiveError> {
    let (first, others) = rest.split_first().ok_or(ReceiveError::HeaderTruncated)?;
    *rest = others;
    Ok(*first)
}

/// Encodes a STATUS PDU. Its sequence numbers may be unwrapped.
pub fn encode_status(status: &Status, length: AmSnLength) -> Vec<u8> {
    let mut out = BitWriter::with_capacity(length.report_format().octets(status));
    let (bits, sn_bits) = (length.bits(), length.bits().0 as usize);
    // D/C = 0, CPT = 000.
    out.write(0, 4);
    out.write(bits.wire(status.ack_sn), sn_bits);
    out.write(u32::from(!status.nacks.is_empty()), 1);
    for (index, nack) in status.nacks.iter().enumerate() {
        out.write(bits.wire(nack.sn), sn_bits);
        out.write(u32::from(index + 1 < status.nacks.len()), 1);
        out.write(u32::from(nack.segment.is_some()), 1);
        if let Some(NackSegment { start, end }) = nack.segment {
            out.write(start, length.so_bits());
            out.write(end.unwrap_or_else(|| length.so_end()), length.so_bits());
        }
    }
    out.into_octets()
}

fn decode_status(octets: &[u8], length: AmSnLength) -> Result<Status, ReceiveError> {
    let mut reader = BitReader::new(octets);
    let sn_bits = length.bits().0 as usize;
    reader.read(4)?;
    let ack_sn = reader.read(sn_bits)?.into();
    let mut e1 = reader.read_flag()?;
    let mut nacks = Vec::new();
    while e1 {
        let sn = reader.read(sn_bits)?.into();
        e1 = reader.read_flag()?;
        let segment = if reader.read_flag()? {
            let (start, end) = (reader.read(length.so_bits())?, reader.read(length.so_bits())?);
            let end = (end != length.so_end()).then_some(end);
            if let Some(end) = end.filter(|end| *end < start) {
                return Err(ReceiveError::NackSegment { start, end });
            }
            Some(NackSegment { start, end })
        } else {
            None
        };
        nacks.push(Nack { segment, ..Nack::of(sn) });
    }
    Ok(Status { ack_sn, nacks })
}
