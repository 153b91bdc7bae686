//! Construction of a STATUS PDU (§5.3.4).

use crate::rlc::am::receive_window::{Missing, ReceiveWindow};
use crate::rlc::am::status::{Nack, NackSegment, Status};
use crate::rlc::nr::codec::{AmSnLength, STATUS_HEADER, nack_octets};
use crate::rlc::segments::Assembly;

/// The report about everything missing, as far as it fits `room` octets. ACK_SN is "the SN of the next not
/// received RLC SDU which is not indicated as missing". `None` if a STATUS PDU does not fit.
pub(super) fn build(window: &ReceiveWindow, length: AmSnLength, room: usize) -> Option<Status> {
    let mut report = Report { length, left: room.checked_sub(STATUS_HEADER)?, nacks: Vec::new() };
    let unnamed = window.missing().find_map(|missing| match missing {
        Missing::Units(start, end) => report.name_sdus(start, end).err(),
        Missing::Octets(sn, assembly) => report.name_holes(sn, assembly).err(),
    });
    let ack_sn = unnamed.map_or_else(|| window.highest_status(), |Unnamed(sn)| sn);
    Some(Status { ack_sn, nacks: report.nacks })
}

struct Report {
    length: AmSnLength,
    /// Octets left for NACKs.
    left: usize,
    nacks: Vec<Nack>,
}

/// The first SDU that the report has no room for.
struct Unnamed(u64);

impl Report {
    /// Names the SDUs from `start` to below `end` as missing.
    fn name_sdus(&mut self, mut start: u64, end: u64) -> Result<(), Unnamed> {
        while start < end {
            let range = (end - start).min(255) as u8;
            if self.append(Nack { range, ..Nack::of(start) }) {
                start += u64::from(range);
            } else {
                // A NACK without a range is shorter.
                let named = self.append(Nack::of(start));
                return if named && start + 1 == end {
                    Ok(())
                } else {
                    Err(Unnamed(start + u64::from(named)))
                };
            }
        }
        Ok(())
    }

    /// Names all holes of a partly received SDU, or none of them: an ACK_SN above it would acknowledge the
    /// others.
    fn name_holes(&mut self, sn: u64, assembly: &Assembly) -> Result<(), Unnamed> {
        let before = (self.left, self.nacks.len(), self.nacks.last().copied());
        let nack = |start, end| Nack { segment: Some(NackSegment { start, end }), ..Nack::of(sn) };
        // SOend is the last missing octet.
        let holes = || assembly.holes().map(|(start, end)| (start, end.map(|end| end - 1)));
        if holes().all(|(start, end)| self.append(nack(start, end))) {
            return Ok(());
        }
        self.left = before.0;
        self.nacks.truncate(before.1);
        if let (Some(last), Some(nack)) = (self.nacks.last_mut(), before.2) {
            *last = nack;
        }
        // Choice: the first SDU of a report has one NACK from its first to its last missing octet if its holes
        // do not fit. Otherwise small grants would never report it.
        if self.nacks.is_empty()
            && let (Some((start, _)), Some((_, end))) = (holes().next(), holes().last())
            && self.append(nack(start, end))
        {
            return Err(Unnamed(sn + 1));
        }
        Err(Unnamed(sn))
    }

    /// Appends a NACK, as a part of the last one if they name consecutive octets. Returns `false` if there is
    /// no room for it.
    fn append(&mut self, nack: Nack) -> bool {
        let last = self.nacks.last().copied();
        let (merged, octets) = match last.and_then(|last| Some((last, merge(last, nack)?))) {
            Some((last, merged)) => {
                (Some(merged), nack_octets(&merged, self.length) - nack_octets(&last, self.length))
            }
            None => (None, nack_octets(&nack, self.length)),
        };
        if octets > self.left {
            return false;
        }
        self.left -= octets;
        match (merged, self.nacks.last_mut()) {
            (Some(merged), Some(last)) => *last = merged,
            _ => self.nacks.push(nack),
        }
        true
    }
}

/// One NACK for "a continuous sequence of RLC SDUs that have not been received yet", which may begin and end
/// with a part of an SDU. `None` if the octets are not consecutive or too many SDUs are concerned.
fn merge(first: Nack, second: Nack) -> Option<Nack> {
    let (start, first_end) = first.segment.map_or((0, None), |segment| (segment.start, segment.end));
    let (second_start, end) = second.segment.map_or((0, None), |segment| (segment.start, segment.end));
    if first.end() != second.sn || first_end.is_some() || second_start > 0 {
        return None;
    }
    let segment = (start > 0 || end.is_some()).then_some(NackSegment { start, end });
    Some(Nack { sn: first.sn, range: first.range.checked_add(second.range)?, segment })
}
