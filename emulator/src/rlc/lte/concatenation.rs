//! Segmentation and concatenation (§5.1.2.1, §5.1.3.1): the data field of a new PDU.

use std::ops::Range;

use smallvec::SmallVec;

use super::codec::{DataField, LiLength, Offsets};
use crate::rlc::sdu_queue::SduQueue;
use crate::rlc::service::Sdu;

/// SDUs that are not transmitted completely.
#[derive(Debug, Default)]
pub(super) struct SduStream {
    queue: SduQueue,
    /// The SDU under segmentation and the number of its octets in earlier PDUs.
    unfinished: Option<(Sdu, u32)>,
}

/// The elements of the data field of a new PDU.
#[derive(Debug)]
pub(super) struct Elements {
    /// SDUs with the octets that belong to the PDU.
    pub(super) pieces: SmallVec<[(Sdu, Range<u32>); 2]>,
    pub(super) octets: usize,
}

/// Bounds of the data field of a new PDU.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldBounds {
    /// Octets of the PDU, without the fixed part of its header.
    pub(super) room: usize,
    /// Largest data field.
    pub(super) max_data: usize,
    pub(super) li: LiLength,
}

impl SduStream {
    pub(super) fn push(&mut self, sdu: Sdu) {
        self.queue.push(sdu);
    }

    pub(super) fn discard(&mut self, id: u64) -> bool {
        self.queue.discard(id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unfinished.is_none() && self.queue.is_empty()
    }

    pub(super) fn octets(&self) -> u64 {
        let unfinished = self.unfinished.as_ref();
        self.queue.octets()
            + unfinished.map_or(0, |(sdu, transmitted)| sdu.octets.len() as u64 - u64::from(*transmitted))
    }

    /// Number of SDUs whose transmission has not begun.
    pub(super) fn waiting_sdus(&self) -> usize {
        self.queue.len()
    }

    /// Takes as many octets as the PDU can carry. `None` if nothing waits or nothing fits.
    pub(super) fn take(&mut self, bounds: FieldBounds) -> Option<Elements> {
        let FieldBounds { room, max_data, li } = bounds;
        let mut elements = Elements { pieces: SmallVec::new(), octets: 0 };
        while let Some(left) = room.checked_sub(li.extension(elements.pieces.len()) + elements.octets) {
            let left = left.min(max_data - elements.octets);
            // The element before needs a Length Indicator.
            let is_describable =
                elements.pieces.last().is_none_or(|(_, range)| range.len() <= li.max_element());
            if left == 0 || !is_describable {
                break;
            }
            let Some((sdu, start)) = self.unfinished.take().or_else(|| self.queue.pop().map(|sdu| (sdu, 0)))
            else {
                break;
            };
            let end = (sdu.octets.len() as u32).min(start + left as u32);
            elements.octets += (end - start) as usize;
            if (end as usize) < sdu.octets.len() {
                self.unfinished = Some((sdu.clone(), end));
            }
            elements.pieces.push((sdu, start..end));
        }
        (elements.octets > 0).then_some(elements)
    }
}

impl Elements {
    /// The octets of all elements.
    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(self.octets);
        for (sdu, range) in &self.pieces {
            octets.extend_from_slice(&sdu.octets[range.start as usize..range.end as usize]);
        }
        octets
    }

    /// The data field with `octets`, the result of [`to_vec`](Self::to_vec).
    pub(super) fn field<'a>(&self, octets: &'a [u8]) -> DataField<'a> {
        let ends = self.pieces.iter().scan(0, |end, (_, range)| {
            *end += range.end - range.start;
            Some(*end)
        });
        let mut ends: Offsets = ends.collect();
        ends.pop();
        DataField {
            starts_sdu: self.pieces.first().is_some_and(|(_, range)| range.start == 0),
            ends_sdu: self.pieces.last().is_some_and(|(sdu, range)| range.end as usize == sdu.octets.len()),
            ends,
            octets,
        }
    }
}
