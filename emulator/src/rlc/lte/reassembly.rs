//! Reassembly of SDUs from the data fields of PDUs in ascending order of their sequence numbers.

use super::codec::{DataField, Offsets};
use crate::rlc::service::Event;

/// Maximum size of an SDU.
const MAX_SDU: usize = 65_535;

/// Where SDUs begin and end in the data field of a PDU, or in its segments that have been received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Boundaries {
    /// Whether the first octet of the PDU is the first octet of an SDU.
    starts_sdu: bool,
    /// Offsets at which an SDU ends, in ascending order.
    ends: Offsets,
}

impl Boundaries {
    /// Adds the boundaries within the segment at the offset `so`.
    pub(super) fn add(&mut self, so: u32, field: &DataField<'_>) {
        if so == 0 {
            self.starts_sdu = field.starts_sdu;
        } else if field.starts_sdu {
            self.insert(so);
        }
        field.ends.iter().for_each(|end| self.insert(so + end));
        if field.ends_sdu {
            self.insert(so + field.octets.len() as u32);
        }
    }

    fn insert(&mut self, end: u32) {
        if let Err(index) = self.ends.binary_search(&end) {
            self.ends.insert(index, end);
        }
    }

    /// Whether the octet at this offset is the first octet of an SDU.
    fn starts_at(&self, offset: u32) -> bool {
        if offset == 0 { self.starts_sdu } else { self.ends.binary_search(&offset).is_ok() }
    }
}

/// Octets of a PDU in the order of transmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// Offset in the data field of the PDU.
    pub(super) offset: u32,
    pub(super) octets: &'a [u8],
    /// Whether the octets directly follow the octets of the previous piece.
    pub(super) is_contiguous: bool,
}

#[derive(Debug, Default)]
pub(super) enum Reassembler {
    /// The last SDU has ended.
    #[default]
    Ended,
    /// These octets of an SDU have been received.
    Open(Vec<u8>),
    /// The current SDU is discarded up to its end: its beginning was lost, or it is too long.
    Discarding,
}

impl Reassembler {
    /// Handles the next octets. Appends the SDUs that end in them to `events`.
    pub(super) fn append(&mut self, piece: Piece<'_>, boundaries: &Boundaries, events: &mut Vec<Event>) {
        let Piece { offset, octets, is_contiguous } = piece;
        if !is_contiguous || offset == 0 {
            // If this piece starts an SDU while another SDU is open, the open one is dropped.
            let is_open = is_contiguous && matches!(self, Self::Open(_));
            match (boundaries.starts_at(offset), is_open) {
                (true, _) => *self = Self::Ended,
                (false, true) => {}
                (false, false) => *self = Self::Discarding,
            }
        }
        let from = boundaries.ends.partition_point(|end| *end <= offset);
        let piece_end = offset + octets.len() as u32;
        let mut start = 0;
        for end in boundaries.ends[from..].iter().take_while(|end| **end <= piece_end) {
            let end = (end - offset) as usize;
            self.extend(&octets[start..end]);
            if let Self::Open(sdu) = std::mem::take(self) {
                events.push(Event::Delivered(sdu));
            }
            start = end;
        }
        self.extend(&octets[start..]);
    }

    fn extend(&mut self, octets: &[u8]) {
        match self {
            _ if octets.is_empty() => {}
            Self::Ended => *self = Self::Open(octets.to_vec()),
            Self::Open(sdu) if sdu.len() + octets.len() <= MAX_SDU => sdu.extend_from_slice(octets),
            Self::Open(_) => *self = Self::Discarding,
            Self::Discarding => {}
        }
    }
}
