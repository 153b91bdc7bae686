//! Content of a STATUS PDU (36.322 §5.2.3, 38.322 §5.3.4).

use super::receive_window::{Missing, ReceiveWindow};
use super::status::{Nack, NackSegment, Status};
use crate::rlc::segments::Assembly;

/// Sizes of the fields of a STATUS PDU in bits.
#[derive(Clone, Copy, Debug)]
pub(in crate::rlc) struct ReportFormat {
    /// D/C, CPT, ACK_SN, E1, and the reserved bits after them.
    pub(in crate::rlc) header: usize,
    /// NACK_SN and its extension bits.
    pub(in crate::rlc) nack: usize,
    /// SOstart and SOend.
    pub(in crate::rlc) segment: usize,
    /// NACK range.
    pub(in crate::rlc) range: usize,
    /// Largest NACK range, or 1 if the field does not exist.
    pub(in crate::rlc) max_range: u8,
}

impl ReportFormat {
    fn nack_bits(&self, nack: &Nack) -> usize {
        let segment = if nack.segment.is_some() { self.segment } else { 0 };
        self.nack + segment + if nack.range > 1 { self.range } else { 0 }
    }

    /// Octets of a STATUS PDU.
    pub(in crate::rlc) fn octets(&self, status: &Status) -> usize {
        let nacks: usize = status.nacks.iter().map(|nack| self.nack_bits(nack)).sum();
        (self.header + nacks).div_ceil(8)
    }
}

/// The report about all missing units and octets, cut to `room` octets. ACK_SN is "the SN of the next not
/// received RLC SDU which is not indicated as missing" (LTE: RLC data PDU). `None` if no STATUS PDU fits.
pub(in crate::rlc) fn build(window: &ReceiveWindow, format: ReportFormat, room: usize) -> Option<Status> {
    let left = room.saturating_mul(8).checked_sub(format.header)?;
    let mut report = Report { format, left, nacks: Vec::new() };
    let unnamed = window.missing().find_map(|missing| match missing {
        Missing::Units(start, end) => report.name_units(start, end).err(),
        Missing::Octets(sn, assembly) => report.name_holes(sn, assembly).err(),
    });
    let ack_sn = unnamed.map_or_else(|| window.highest_status(), |Unnamed(sn)| sn);
    Some(Status { ack_sn, nacks: report.nacks })
}

struct Report {
    format: ReportFormat,
    /// Bits left for NACKs.
    left: usize,
    nacks: Vec<Nack>,
}

/// The first unit that does not fit into the report.
struct Unnamed(u64);

impl Report {
    /// Names the units from `start` to below `end` as missing.
    fn name_units(&mut self, mut start: u64, end: u64) -> Result<(), Unnamed> {
        while start < end {
            let range = (end - start).min(self.format.max_range.into()) as u8;
            // A NACK without a range is shorter.
            let named =
                [range, 1].into_iter().find(|range| self.append(Nack { range: *range, ..Nack::of(start) }));
            start += u64::from(named.ok_or(Unnamed(start))?);
        }
        Ok(())
    }

    /// Names all holes of a partly received unit or no hole at all: an ACK_SN above the unit acknowledges
    /// every hole that is not named.
    fn name_holes(&mut self, sn: u64, assembly: &Assembly) -> Result<(), Unnamed> {
        let (left, count, last) = (self.left, self.nacks.len(), self.nacks.last().copied());
        let nack = |start, end| Nack { segment: Some(NackSegment { start, end }), ..Nack::of(sn) };
        // SOend is the last missing octet.
        let holes = || assembly.holes().map(|(start, end)| (start, end.map(|end| end - 1)));
        if holes().all(|(start, end)| self.append(nack(start, end))) {
            return Ok(());
        }
        self.left = left;
        self.nacks.truncate(count);
        if let (Some(named), Some(last)) = (self.nacks.last_mut(), last) {
            *named = last;
        }
        // Choice: if the holes of the first unit in a report do not fit, it has one NACK from its first to
        // its last missing octet. Otherwise, small grants would never report the unit.
        if self.nacks.is_empty()
            && let (Some((start, _)), Some((_, end))) = (holes().next(), holes().last())
            && self.append(nack(start, end))
        {
            return Err(Unnamed(sn + 1));
        }
        Err(Unnamed(sn))
    }

    /// Appends a NACK, as a part of the last one if they name consecutive octets. Returns `false` if the NACK
    /// does not fit.
    fn append(&mut self, nack: Nack) -> bool {
        let merged = self.nacks.last().and_then(|last| merge(last, &nack, self.format.max_range));
        let bits = match (merged, self.nacks.last()) {
            (Some(merged), Some(last)) => self.format.nack_bits(&merged) - self.format.nack_bits(last),
            _ => self.format.nack_bits(&nack),
        };
        if bits > self.left {
            return false;
        }
        self.left -= bits;
        match (merged, self.nacks.last_mut()) {
            (Some(merged), Some(last)) => *last = merged,
            _ => self.nacks.push(nack),
        }
        true
    }
}

/// One NACK for "a continuous sequence of RLC SDUs that have not been received yet" (NR), which may begin and
/// end with a part of an SDU. `None` if the octets are not consecutive or too many SDUs are concerned.
fn merge(first: &Nack, second: &Nack, max_range: u8) -> Option<Nack> {
    let (start, first_end) = first.segment.map_or((0, None), |segment| (segment.start, segment.end));
    let (second_start, end) = second.segment.map_or((0, None), |segment| (segment.start, segment.end));
    if first.end() != second.sn || first_end.is_some() || second_start > 0 {
        return None;
    }
    let range = first.range.checked_add(second.range).filter(|range| *range <= max_range)?;
    let segment = (start > 0 || end.is_some()).then_some(NackSegment { start, end });
    Some(Nack { sn: first.sn, range, segment })
}
