//! Decodes PDUs (TS 36.322 §6.2.1, TS 38.322 §6.2.2).

use super::Generation;

/// A PDU of RLC AM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu<'a> {
    /// AMD PDU, or AMD PDU segment.
    Data(Data<'a>),
    /// STATUS PDU.
    Status(Status),
}

/// An AMD PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// Sequence number.
    pub sn: u32,
    /// P: whether the PDU polls.
    pub poll: bool,
    /// SO: position of the first octet in its unit.
    pub start: u32,
    /// Whether the last octet is the last one of its unit.
    pub ends: bool,
    /// LTE: boundaries of SDUs, from FI and the Length Indicators. NR: no boundaries.
    pub layout: Layout,
    /// The data.
    pub octets: &'a [u8],
}

/// Boundaries of SDUs in an AMD PDU of LTE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// FI, first bit: the first octet is not the first one of an SDU.
    pub continues: bool,
    /// FI, second bit: the last octet is not the last one of an SDU.
    pub is_continued: bool,
    /// Offsets at which another SDU begins.
    pub boundaries: Vec<u32>,
}

/// A STATUS PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// ACK_SN.
    pub ack: u32,
    /// The NACKs in their order.
    pub nacks: Vec<Nack>,
}

/// A NACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack {
    /// NACK_SN.
    pub sn: u32,
    /// Number of units.
    pub count: u32,
    /// SOstart: first missing octet of the first unit.
    pub start: u32,
    /// SOend: last missing octet of the last unit. `None`: its end.
    pub end: Option<u32>,
}

/// Reads fields of any number of bits.
pub(super) struct Bits<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    pub(super) const fn new(octets: &'a [u8]) -> Self {
        Self { octets, at: 0 }
    }

    pub(super) fn take(&mut self, bits: usize) -> Result<u32, String> {
        let mut value = 0;
        for _ in 0..bits {
            let octet = self.octets.get(self.at / 8).ok_or("the PDU ends within a field")?;
            value = value << 1 | u32::from(octet >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Ok(value)
    }

    fn flag(&mut self) -> Result<bool, String> {
        self.take(1).map(|bit| bit == 1)
    }

    pub(super) fn zero(&mut self, bits: usize) -> Result<(), String> {
        if self.take(bits)? == 0 { Ok(()) } else { Err("a reserved bit is set".to_owned()) }
    }

    /// Skips zero bits up to the next octet, and returns the octets from there on.
    pub(super) fn rest_octets(&mut self) -> Result<&'a [u8], String> {
        Ok(&self.octets[self.rest()?..])
    }

    /// Skips zero bits up to the next octet, and returns its index.
    fn rest(&mut self) -> Result<usize, String> {
        self.zero(self.at.next_multiple_of(8) - self.at)?;
        Ok(self.at / 8)
    }
}

/// Decodes a PDU.
///
/// # Errors
///
/// Returns what is wrong with the PDU.
pub fn decode(generation: Generation, pdu: &[u8]) -> Result<Pdu<'_>, String> {
    let mut bits = Bits::new(pdu);
    match (bits.flag()?, generation) {
        (true, Generation::Nr(sn)) => nr_data(&mut bits, sn.into()).map(Pdu::Data),
        (true, Generation::Lte(sn)) => lte_data(&mut bits, sn.into()).map(Pdu::Data),
        (false, _) => status(&mut bits, generation).map(Pdu::Status),
    }
}

fn nr_data<'a>(bits: &mut Bits<'a>, sn_bits: usize) -> Result<Data<'a>, String> {
    let poll = bits.flag()?;
    let (not_first, not_last) = match bits.take(2)? {
        0 => (false, false),
        1 => (false, true),
        2 => (true, false),
        _ => (true, true),
    };
    if sn_bits == 18 {
        bits.zero(2)?;
    }
    let sn = bits.take(sn_bits)?;
    let start = if not_first { bits.take(16)? } else { 0 };
    if not_first && start == 0 {
        return Err("SO 0 in a segment that is not the first".to_owned());
    }
    let octets = bits.rest_octets()?;
    if octets.is_empty() {
        return Err("no data".to_owned());
    }
    Ok(Data { sn, poll, start, ends: !not_last, layout: Layout::default(), octets })
}

fn lte_data<'a>(bits: &mut Bits<'a>, sn_bits: usize) -> Result<Data<'a>, String> {
    let (is_segment, poll) = (bits.flag()?, bits.flag()?);
    let (continues, is_continued) = (bits.flag()?, bits.flag()?);
    let mut extended = bits.flag()?;
    let mut ends = true;
    if sn_bits == 16 {
        // R1 R1. In a segment, LSF replaces the first R1.
        if is_segment {
            ends = bits.flag()?
        } else {
            bits.zero(1)?
        }
        bits.zero(1)?;
    }
    let sn = bits.take(sn_bits)?;
    let start = match (is_segment, sn_bits) {
        (false, _) => 0,
        (true, 16) => bits.take(16)?,
        (true, _) => {
            ends = bits.flag()?;
            bits.take(15)?
        }
    };
    let (mut boundaries, mut end) = (Vec::new(), 0);
    while extended {
        extended = bits.flag()?;
        let length = bits.take(11)?;
        if length == 0 {
            return Err("a Length Indicator is 0".to_owned());
        }
        end += length;
        boundaries.push(end);
    }
    let octets = bits.rest_octets()?;
    if octets.len() <= end as usize {
        return Err(format!("Length Indicators of {end} octets in {} octets of data", octets.len()));
    }
    let layout = Layout { continues, is_continued, boundaries };
    Ok(Data { sn, poll, start, ends, layout, octets })
}

fn status(bits: &mut Bits<'_>, generation: Generation) -> Result<Status, String> {
    let kind = bits.take(3)?;
    if kind != 0 {
        return Err(format!("control PDU type {kind}"));
    }
    // Whether the PDU is an NR PDU, bits of a sequence number, bits of a segment offset, reserved bits of the
    // header, and reserved bits of a NACK.
    let (is_nr, sn, so, reserved, nack_reserved) = match generation {
        Generation::Nr(12) => (true, 12, 16, 7, 1),
        Generation::Nr(sn) => (true, sn.into(), 16, 1, 3),
        Generation::Lte(10) => (false, 10, 15, 0, 0),
        Generation::Lte(sn) => (false, sn.into(), 16, 0, 0),
    };
    let ack = bits.take(sn)?;
    let mut more = bits.flag()?;
    bits.zero(reserved)?;
    let mut nacks = Vec::new();
    while more {
        let nack_sn = bits.take(sn)?;
        more = bits.flag()?;
        let has_segment = bits.flag()?;
        let has_range = is_nr && bits.flag()?;
        bits.zero(nack_reserved)?;
        let (start, end) = if has_segment { (bits.take(so)?, bits.take(so)?) } else { (0, (1 << so) - 1) };
        let count = if has_range { bits.take(8)? } else { 1 };
        let end = Some(end).filter(|end| *end != (1 << so) - 1);
        if count == 0 || count == 1 && end.is_some_and(|end| end < start) {
            return Err(format!("an empty NACK of SN {nack_sn}"));
        }
        nacks.push(Nack { sn: nack_sn, count, start, end });
    }
    let rest = bits.rest()?;
    if rest != bits.octets.len() {
        return Err(format!("{} octets after a STATUS PDU", bits.octets.len() - rest));
    }
    Ok(Status { ack, nacks })
}

#[cfg(test)]
mod tests;
