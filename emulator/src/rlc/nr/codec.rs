//! Encoding and decoding of PDUs (§6.2).

#[cfg(test)]
mod tests;

use crate::rlc::am::ReceiveError;
use crate::rlc::am::report::ReportFormat;
use crate::rlc::am::status::{Nack, NackSegment, Status};
use crate::rlc::sn::SnBits;

/// Length of the sequence numbers of AM (§6.2.3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AmSnLength {
    /// 12 bits: a window of 2048 SDUs.
    Bits12,
    /// 18 bits: a window of 131072 SDUs.
    #[default]
    Bits18,
}

/// Length of the sequence numbers of UM (§6.2.3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UmSnLength {
    /// 6 bits: a window of 32 SDUs.
    Bits6,
    /// 12 bits: a window of 2048 SDUs.
    #[default]
    Bits12,
}

impl AmSnLength {
    pub(in crate::rlc) const fn bits(self) -> SnBits {
        SnBits(match self {
            Self::Bits12 => 12,
            Self::Bits18 => 18,
        })
    }

    /// Sizes of the fields of a STATUS PDU (§6.2.2.5).
    pub(in crate::rlc) const fn report_format(self) -> ReportFormat {
        let nack = match self {
            Self::Bits12 => 16,
            Self::Bits18 => 24,
        };
        ReportFormat { header: 24, nack, segment: 32, range: 8, max_range: u8::MAX }
    }

    /// Octets of an AMD PDU header (§6.2.2.4).
    pub(in crate::rlc) const fn header(self, position: Position) -> usize {
        (match self {
            Self::Bits12 => 2,
            Self::Bits18 => 3,
        }) + position.so_octets()
    }
}

impl UmSnLength {
    pub(in crate::rlc) const fn bits(self) -> SnBits {
        SnBits(match self {
            Self::Bits6 => 6,
            Self::Bits12 => 12,
        })
    }

    /// Octets of a UMD PDU header (§6.2.2.3).
    pub(in crate::rlc) const fn header(self, position: Position) -> usize {
        match (self, position) {
            (_, Position::Whole) | (Self::Bits6, Position::First) => 1,
            (Self::Bits12, Position::First) => 2,
            (Self::Bits6, _) => 3,
            (Self::Bits12, _) => 4,
        }
    }
}

/// Position of the data field in the SDU: the SI field (§6.2.3.4) and the SO field (§6.2.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// SI 00: all octets of an SDU.
    Whole,
    /// SI 01: the first segment of an SDU.
    First,
    /// SI 11: a segment that is neither the first nor the last one.
    Middle {
        /// SO: offset of the segment in the SDU.
        so: u16,
    },
    /// SI 10: the last segment of an SDU.
    Last {
        /// SO: offset of the segment in the SDU.
        so: u16,
    },
}

impl Position {
    /// The position of the octets from `start` to `end` in an SDU of `length` octets.
    pub(in crate::rlc) const fn of(start: u32, end: u32, length: u32) -> Self {
        match (start == 0, end == length) {
            (true, true) => Self::Whole,
            (true, false) => Self::First,
            (false, true) => Self::Last { so: start as u16 },
            (false, false) => Self::Middle { so: start as u16 },
        }
    }

    pub(in crate::rlc) const fn offset(self) -> u32 {
        match self {
            Self::Whole | Self::First => 0,
            Self::Middle { so } | Self::Last { so } => so as u32,
        }
    }

    pub(in crate::rlc) const fn is_last(self) -> bool {
        matches!(self, Self::Whole | Self::Last { .. })
    }

    const fn si(self) -> u8 {
        match self {
            Self::Whole => 0b00,
            Self::First => 0b01,
            Self::Last { .. } => 0b10,
            Self::Middle { .. } => 0b11,
        }
    }

    const fn so_octets(self) -> usize {
        match self {
            Self::Whole | Self::First => 0,
            Self::Middle { .. } | Self::Last { .. } => 2,
        }
    }

    fn write_so(self, out: &mut Vec<u8>) {
        if let Self::Middle { so } | Self::Last { so } = self {
            out.extend(so.to_be_bytes());
        }
    }

    /// Reads the SO field that `si` implies, from the front of `rest`.
    fn read(si: u8, rest: &mut &[u8]) -> Result<Self, ReceiveError> {
        let position = match si & 0b11 {
            0b00 => return Ok(Self::Whole),
            0b01 => return Ok(Self::First),
            si => {
                let (so, data) = rest.split_first_chunk().ok_or(ReceiveError::HeaderTruncated)?;
                *rest = data;
                let so = u16::from_be_bytes(*so);
                if si == 0b10 { Self::Last { so } } else { Self::Middle { so } }
            }
        };
        if position.offset() == 0 { Err(ReceiveError::SegmentOffset) } else { Ok(position) }
    }
}

/// A PDU of AM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu<'a> {
    /// An AMD PDU.
    Data(Amd<'a>),
    /// A STATUS PDU.
    Status(Status),
}

/// An AMD PDU (§6.2.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amd<'a> {
    /// P: whether the PDU polls.
    pub poll: bool,
    /// SI and SO.
    pub position: Position,
    /// SN.
    pub sn: u32,
    /// The data field.
    pub data: &'a [u8],
}

/// A UMD PDU (§6.2.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Umd<'a> {
    /// SI and SO.
    pub position: Position,
    /// SN. A PDU with a whole SDU has none.
    pub sn: Option<u32>,
    /// The data field.
    pub data: &'a [u8],
}

impl Amd<'_> {
    /// Encodes the PDU.
    pub fn encode(&self, length: AmSnLength) -> Vec<u8> {
        let mut out = Vec::with_capacity(length.header(self.position) + self.data.len());
        let first = 0x80 | u8::from(self.poll) << 6 | self.position.si() << 4;
        match length {
            AmSnLength::Bits12 => out.extend([first | (self.sn >> 8 & 0x0f) as u8, self.sn as u8]),
            AmSnLength::Bits18 => {
                out.extend([first | (self.sn >> 16 & 0x03) as u8, (self.sn >> 8) as u8, self.sn as u8]);
            }
        }
        self.position.write_so(&mut out);
        out.extend_from_slice(self.data);
        out
    }
}

impl Umd<'_> {
    /// Encodes the PDU. The SN of a segment is 0 if the PDU has none.
    pub fn encode(&self, length: UmSnLength) -> Vec<u8> {
        let mut out = Vec::with_capacity(length.header(self.position) + self.data.len());
        let (si, sn) = (self.position.si() << 6, self.sn.unwrap_or(0));
        match (self.position, length) {
            (Position::Whole, _) => out.push(si),
            (_, UmSnLength::Bits6) => out.push(si | (sn & 0x3f) as u8),
            (_, UmSnLength::Bits12) => out.extend([si | (sn >> 8 & 0x0f) as u8, sn as u8]),
        }
        self.position.write_so(&mut out);
        out.extend_from_slice(self.data);
        out
    }

    /// Decodes a UMD PDU.
    pub fn decode(octets: &[u8], length: UmSnLength) -> Result<Umd<'_>, ReceiveError> {
        let (&first, mut rest) = octets.split_first().ok_or(ReceiveError::Empty)?;
        let sn = match length {
            _ if first >> 6 == 0 => None,
            UmSnLength::Bits6 => Some(u32::from(first & 0x3f)),
            UmSnLength::Bits12 => Some(u32::from(first & 0x0f) << 8 | u32::from(take(&mut rest)?)),
        };
        let position = Position::read(first >> 6, &mut rest)?;
        if rest.is_empty() {
            return Err(ReceiveError::NoData);
        }
        Ok(Umd { position, sn, data: rest })
    }
}

/// Decodes a PDU of AM. Reserved bits are ignored (§6.2.3.8).
pub fn decode(octets: &[u8], length: AmSnLength) -> Result<Pdu<'_>, ReceiveError> {
    let (&first, mut rest) = octets.split_first().ok_or(ReceiveError::Empty)?;
    if first & 0x80 == 0 {
        return match first >> 4 {
            0 => decode_status(octets, length).map(Pdu::Status),
            cpt => Err(ReceiveError::ControlType(cpt)),
        };
    }
    let sn = match length {
        AmSnLength::Bits12 => u32::from(first & 0x0f) << 8 | u32::from(take(&mut rest)?),
        AmSnLength::Bits18 => {
            let middle = take(&mut rest)?;
            u32::from(first & 0x03) << 16 | u32::from(middle) << 8 | u32::from(take(&mut rest)?)
        }
    };
    let position = Position::read(first >> 4, &mut rest)?;
    if rest.is_empty() {
        return Err(ReceiveError::NoData);
    }
    Ok(Pdu::Data(Amd { poll: first & 0x40 != 0, position, sn, data: rest }))
}

fn take(rest: &mut &[u8]) -> Result<u8, ReceiveError> {
    let (first, others) = rest.split_first().ok_or(ReceiveError::HeaderTruncated)?;
    *rest = others;
    Ok(*first)
}

/// Special value of SOend: the last octet of the SDU (§6.2.3.15).
const SO_END: u16 = 0xffff;

/// Encodes a STATUS PDU. Its sequence numbers may be unwrapped.
pub fn encode_status(status: &Status, length: AmSnLength) -> Vec<u8> {
    let mut out = Vec::with_capacity(length.report_format().octets(status));
    let bits = length.bits();
    let ack_sn = bits.wire(status.ack_sn);
    let e1 = u32::from(!status.nacks.is_empty());
    // D/C = 0, CPT = 000, ACK_SN, E1, R.
    out.extend_from_slice(&match length {
        AmSnLength::Bits12 => (ack_sn << 8 | e1 << 7).to_be_bytes()[1..].to_owned(),
        AmSnLength::Bits18 => (ack_sn << 2 | e1 << 1).to_be_bytes()[1..].to_owned(),
    });
    for (index, nack) in status.nacks.iter().enumerate() {
        let sn = bits.wire(nack.sn);
        let e1 = u32::from(index + 1 < status.nacks.len());
        let e2 = u32::from(nack.segment.is_some());
        let e3 = u32::from(nack.range > 1);
        let extensions = e1 << 2 | e2 << 1 | e3;
        match length {
            AmSnLength::Bits12 => out.extend_from_slice(&(sn << 4 | extensions << 1).to_be_bytes()[2..]),
            AmSnLength::Bits18 => out.extend_from_slice(&(sn << 6 | extensions << 3).to_be_bytes()[1..]),
        }
        if let Some(NackSegment { start, end }) = nack.segment {
            out.extend((start as u16).to_be_bytes());
            out.extend(end.map_or(SO_END, |end| end as u16).to_be_bytes());
        }
        if nack.range > 1 {
            out.push(nack.range);
        }
    }
    out
}

fn decode_status(octets: &[u8], length: AmSnLength) -> Result<Status, ReceiveError> {
    let (header, mut rest) = octets.split_first_chunk::<3>().ok_or(ReceiveError::HeaderTruncated)?;
    let header = u32::from_be_bytes([0, header[0], header[1], header[2]]);
    let (ack_sn, mut e1) = match length {
        AmSnLength::Bits12 => (header >> 8 & 0xfff, header & 0x80 != 0),
        AmSnLength::Bits18 => (header >> 2 & 0x3_ffff, header & 0x02 != 0),
    };
    let mut nacks = Vec::new();
    while e1 {
        let (sn, extensions) = match length {
            AmSnLength::Bits12 => {
                let field = u16::from_be_bytes([take(&mut rest)?, take(&mut rest)?]);
                (u32::from(field >> 4), field >> 1 & 0b111)
            }
            AmSnLength::Bits18 => {
                let field = [0, take(&mut rest)?, take(&mut rest)?, take(&mut rest)?];
                let field = u32::from_be_bytes(field);
                (field >> 6, (field >> 3 & 0b111) as u16)
            }
        };
        e1 = extensions & 0b100 != 0;
        let segment = if extensions & 0b010 != 0 { Some(decode_segment(&mut rest)?) } else { None };
        let range = if extensions & 0b001 != 0 { take(&mut rest)? } else { 1 };
        if range == 0 {
            return Err(ReceiveError::NackRange);
        }
        if let Some(NackSegment { start, end: Some(end) }) = segment.filter(|_| range == 1)
            && end < start
        {
            return Err(ReceiveError::NackSegment { start, end });
        }
        nacks.push(Nack { sn: sn.into(), range, segment });
    }
    Ok(Status { ack_sn: ack_sn.into(), nacks })
}

fn decode_segment(rest: &mut &[u8]) -> Result<NackSegment, ReceiveError> {
    let mut field = || Ok(u16::from_be_bytes([take(rest)?, take(rest)?]));
    let (start, end) = (field()?, field()?);
    Ok(NackSegment { start: start.into(), end: (end != SO_END).then_some(end.into()) })
}
