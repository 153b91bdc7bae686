//! Blocks of RLC PDUs, and PDUs of blocks again: MAC-hs, and the segmentation and the reassembly unit of MAC-ehs (TS 25.321
//! §11.6). What stands between them, HARQ and re-ordering, loses whole blocks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::cqi::Cqi;
use super::framing::Framing;
use crate::rlc::umts::entity::{Outgoing, Room};

/// Segmentation Indication, of MAC-ehs. MAC-hs has PDUs that are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Si {
    /// 00: the first and the last reordering SDU are complete PDUs.
    Complete,
    /// 01: the first is the last part of a PDU.
    FirstContinues,
    /// 10: the last is the first part of a PDU.
    LastGoesOn,
    /// 11: both; or what the block has is a middle part alone.
    Both,
}

/// What is in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) si: Si,
    /// Reordering SDUs.
    pub(super) parts: Vec<Vec<u8>>,
    /// Of which PDU each is.
    pdus: Vec<u64>,
}

/// The end that makes blocks.
pub(super) struct Segmenter {
    framing: Framing,
    /// PDUs of which something has not gone into a block. Of the first one so many octets have.
    waiting: VecDeque<u64>,
    gone: usize,
    /// PDUs of which it is not decided whether they arrive.
    undecided: BTreeMap<u64, Undecided>,
    next: u64,
    /// Parts of PDUs that blocks have taken.
    pub(super) segments: u64,
}

struct Undecided {
    pdu: Outgoing,
    /// Blocks with a part of it that may still arrive; one more while a part waits.
    blocks: usize,
    lost: bool,
}

impl Segmenter {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, waiting: VecDeque::new(), gone: 0, undecided: BTreeMap::new(), next: 0, segments: 0 }
    }

    pub(super) fn framing(&self) -> Framing {
        self.framing
    }

    /// There is something for a block, though RLC may have nothing.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// What RLC may add to a block.
    pub(super) fn room(&self, cqi: Cqi) -> Room {
        let mut gone = self.gone;
        let left = self
            .waiting
            .iter()
            .map(|number| self.undecided[number].pdu.octets.len() - std::mem::take(&mut gone));
        self.framing.room(cqi, left)
    }

    /// A block of what waits and of these PDUs. `None`: there is nothing.
    pub(super) fn fill(&mut self, cqi: Cqi, pdus: Vec<Outgoing>) -> Option<Content> {
        for pdu in pdus {
            self.waiting.push_back(self.next);
            self.undecided.insert(self.next, Undecided { pdu, blocks: 1, lost: false });
            self.next += 1;
        }
        let mut content = Content { si: Si::Complete, parts: Vec::new(), pdus: Vec::new() };
        let (continues, mut goes_on) = (self.gone > 0, false);
        while let Some(number) = self.waiting.front()
            && let Some(undecided) = self.undecided.get_mut(number)
        {
            let left = &undecided.pdu.octets[self.gone..];
            let taken = self.framing.takes(cqi, &content.parts, left.len());
            if taken == 0 {
                break;
            }
            goes_on = taken < left.len();
            self.segments += u64::from(goes_on || self.gone > 0);
            content.parts.push(left[..taken].to_vec());
            content.pdus.push(*number);
            if goes_on {
                undecided.blocks += 1;
                self.gone += taken;
                break;
            }
            self.waiting.pop_front();
            self.gone = 0;
        }
        content.si = match (continues, goes_on) {
            (false, false) => Si::Complete,
            (true, false) => Si::FirstContinues,
            (false, true) => Si::LastGoesOn,
            (true, true) => Si::Both,
        };
        (!content.parts.is_empty()).then_some(content)
    }

    /// A block arrives, or is given up. `decided` is told of each PDU of which that is the last part to be decided.
    pub(super) fn decide(&mut self, content: &Content, lost: bool, mut decided: impl FnMut(&Outgoing, bool)) {
        for number in &content.pdus {
            // After a reset of MAC nobody asks.
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

    /// Nothing waits any more.
    pub(super) fn reset(&mut self) {
        self.waiting.clear();
        self.gone = 0;
        self.undecided.clear();
    }
}

/// The end that has blocks in their order again, though some may be missing.
#[derive(Default)]
pub(super) struct Reassembler {
    stored: Option<Stored>,
    /// How often something was thrown away since another part of its PDU was missing.
    pub(super) incomplete: u64,
}

/// The parts so far of a PDU that goes on.
struct Stored {
    octets: Vec<u8>,
    /// The number of the block in which it goes on.
    next: u64,
}

impl Reassembler {
    /// The block with this number has come. What is complete is added to `delivered`.
    ///
    /// Choice: parts are of one PDU if the numbers of their blocks follow each other, without the modulus of TSN: after 63
    /// blocks that are all lost, a mobile would take halves of two PDUs for one.
    pub(super) fn receive(&mut self, number: u64, content: Content, delivered: &mut Vec<Arc<[u8]>>) {
        let mut parts: VecDeque<Vec<u8>> = content.parts.into();
        let mut stored = self.stored.take();
        if let Some(Stored { next, .. }) = stored
            && next != number
        {
            self.incomplete += 1;
            stored = None;
        }
        if matches!(content.si, Si::FirstContinues | Si::Both)
            && let Some(part) = parts.pop_front()
        {
            let octets = stored.take().map(|stored| [stored.octets, part].concat());
            match octets {
                // It is a middle part, and the PDU goes on.
                Some(octets) if parts.is_empty() && content.si == Si::Both => {
                    self.stored = Some(Stored { octets, next: number + 1 });
                    return;
                }
                Some(octets) => delivered.push(octets.into()),
                // Its beginning was lost.
                None => self.incomplete += 1,
            }
        }
        if matches!(content.si, Si::LastGoesOn | Si::Both)
            && let Some(octets) = parts.pop_back()
        {
            self.stored = Some(Stored { octets, next: number + 1 });
        }
        delivered.extend(parts.into_iter().map(Arc::from));
    }

    /// What is stored goes on no more.
    pub(super) fn reset(&mut self) {
        self.stored = None;
    }
}

#[cfg(test)]
mod tests;
