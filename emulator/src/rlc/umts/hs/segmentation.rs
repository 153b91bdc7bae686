//! RLC PDUs in blocks: MAC-hs, and the segmentation and reassembly units of MAC-ehs (TS 25.321 §11.6). HARQ
//! and reordering, which are between the two ends, may lose whole blocks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::cqi::Cqi;
use super::framing::Framing;
use crate::rlc::umts::capacity::{Room, block_memory};
use crate::rlc::umts::entity::Outgoing;

/// Segmentation Indication of MAC-ehs. With MAC-hs, all PDUs are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Si {
    /// 00: the first and the last reordering SDU are complete PDUs.
    Complete,
    /// 01: the first reordering SDU is the last part of a PDU.
    FirstSegmented,
    /// 10: the last reordering SDU is the first part of a PDU.
    LastSegmented,
    /// 11: both of these, or the only reordering SDU is a middle part of a PDU.
    Both,
}

/// Content of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) si: Si,
    /// Reordering SDUs.
    pub(super) parts: Vec<Vec<u8>>,
    /// Number of the PDU to which each part belongs.
    pdus: Vec<u64>,
}

impl Content {
    /// Memory of the block, in bytes.
    pub(super) fn memory(&self) -> u64 {
        self.parts.iter().map(|part| block_memory(part.len())).sum()
    }
}

/// The end that builds blocks.
pub(super) struct Segmenter {
    framing: Framing,
    /// PDUs that are not completely in blocks yet. Blocks already contain `sent_octets` bytes of the first one.
    waiting: VecDeque<u64>,
    sent_octets: usize,
    /// PDUs that may still arrive or be lost.
    undecided: BTreeMap<u64, Undecided>,
    next: u64,
    /// Number of parts of segmented PDUs in blocks.
    pub(super) segments: u64,
}

struct Undecided {
    pdu: Outgoing,
    /// Number of blocks with a part of the PDU whose outcome is open, plus one while a part is waiting.
    blocks: usize,
    lost: bool,
}

impl Segmenter {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            waiting: VecDeque::new(),
            sent_octets: 0,
            undecided: BTreeMap::new(),
            next: 0,
            segments: 0,
        }
    }

    pub(super) fn framing(&self) -> Framing {
        self.framing
    }

    /// Whether there is data for a block, even if RLC has none.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Room for PDUs from RLC in a block.
    pub(super) fn room(&self, cqi: Cqi) -> Room {
        let mut sent = self.sent_octets;
        let left = self.waiting.iter();
        let left = left.map(|number| self.undecided[number].pdu.octets.len() - std::mem::take(&mut sent));
        self.framing.room(cqi, left)
    }

    /// Builds a block from waiting parts and these PDUs. `None` if there are none.
    pub(super) fn fill(&mut self, cqi: Cqi, pdus: Vec<Outgoing>) -> Option<Content> {
        for pdu in pdus {
            self.waiting.push_back(self.next);
            self.undecided.insert(self.next, Undecided { pdu, blocks: 1, lost: false });
            self.next += 1;
        }
        let mut content = Content { si: Si::Complete, parts: Vec::new(), pdus: Vec::new() };
        let (first_segmented, mut last_segmented) = (self.sent_octets > 0, false);
        while let Some(number) = self.waiting.front()
            && let Some(undecided) = self.undecided.get_mut(number)
        {
            let left = &undecided.pdu.octets[self.sent_octets..];
            let count = self.framing.fitting_octets(cqi, &content.parts, left.len());
            if count == 0 {
                break;
            }
            last_segmented = count < left.len();
            self.segments += u64::from(last_segmented || self.sent_octets > 0);
            content.parts.push(left[..count].to_vec());
            content.pdus.push(*number);
            if last_segmented {
                undecided.blocks += 1;
                self.sent_octets += count;
                break;
            }
            self.waiting.pop_front();
            self.sent_octets = 0;
        }
        content.si = match (first_segmented, last_segmented) {
            (false, false) => Si::Complete,
            (true, false) => Si::FirstSegmented,
            (false, true) => Si::LastSegmented,
            (true, true) => Si::Both,
        };
        (!content.parts.is_empty()).then_some(content)
    }

    /// Handles the arrival or loss of a block. Calls `decided` with each PDU for which this was the last
    /// undecided part.
    pub(super) fn decide(&mut self, content: &Content, lost: bool, mut decided: impl FnMut(&Outgoing, bool)) {
        for number in &content.pdus {
            // A reset of MAC has removed the PDU.
            let Some(undecided) = self.undecided.get_mut(number) else { continue };
            undecided.blocks -= 1;
            undecided.lost |= lost;
            if undecided.blocks == 0
                && let Some(Undecided { pdu, lost, .. }) = self.undecided.remove(number)
            {
                decided(&pdu, lost);
            }
        }
    }

    /// Removes all PDUs.
    pub(super) fn reset(&mut self) {
        self.waiting.clear();
        self.sent_octets = 0;
        self.undecided.clear();
    }
}

/// The end that receives the blocks in order, possibly with gaps.
#[derive(Default)]
pub(super) struct Reassembler {
    stored: Option<Stored>,
    /// Number of times that data was dropped because another part of its PDU was missing.
    pub(super) incomplete: u64,
}

/// The received parts of a PDU that is not complete.
struct Stored {
    octets: Vec<u8>,
    /// Number of the block in which the PDU continues.
    next: u64,
}

impl Reassembler {
    /// Handles a block. Appends complete PDUs to `delivered`.
    ///
    /// Choice: parts belong to one PDU if the numbers of their blocks are consecutive. These numbers do not
    /// have the modulus of the TSN. With the TSN, a mobile would combine parts of two PDUs after the loss of
    /// 64 consecutive blocks.
    pub(super) fn receive(&mut self, number: u64, content: Content, delivered: &mut Vec<Arc<[u8]>>) {
        let mut parts: VecDeque<Vec<u8>> = content.parts.into();
        let mut stored = self.stored.take();
        if let Some(Stored { next, .. }) = stored
            && next != number
        {
            self.incomplete += 1;
            stored = None;
        }
        if matches!(content.si, Si::FirstSegmented | Si::Both)
            && let Some(part) = parts.pop_front()
        {
            let octets = stored.take().map(|stored| [stored.octets, part].concat());
            match octets {
                // This is a middle part, and the PDU continues.
                Some(octets) if parts.is_empty() && content.si == Si::Both => {
                    self.stored = Some(Stored { octets, next: number + 1 });
                    return;
                }
                Some(octets) => delivered.push(octets.into()),
                // The beginning of the PDU was lost.
                None => self.incomplete += 1,
            }
        }
        if matches!(content.si, Si::LastSegmented | Si::Both)
            && let Some(octets) = parts.pop_back()
        {
            self.stored = Some(Stored { octets, next: number + 1 });
        }
        delivered.extend(parts.into_iter().map(Arc::from));
    }

    /// Drops the stored parts.
    pub(super) fn reset(&mut self) {
        self.stored = None;
    }
}

#[cfg(test)]
mod tests;
