//! The receiving side of an AM entity (§5.1.3.2): reordering, and reassembly in sequence.

use std::collections::BTreeMap;

use airwire::time::Instant;

use super::AmConfig;
use crate::rlc::am::receive_window::Placement;
use crate::rlc::am::receiver::Receiver as Window;
use crate::rlc::am::{AmStats, Generation, ReceiveError};
use crate::rlc::lte::codec::{AmSnLength, Amd, encode_status};
use crate::rlc::lte::reassembly::{Boundaries, Piece, Reassembler};
use crate::rlc::segments::Segment;
use crate::rlc::service::Event;

#[derive(Debug)]
pub(super) struct Receiver {
    sn_length: AmSnLength,
    window: Window,
    /// Complete PDUs above VR(R).
    stored: BTreeMap<u64, StoredPdu>,
    /// Boundaries of SDUs in the PDUs that are partly received.
    partial: BTreeMap<u64, Boundaries>,
    reassembler: Reassembler,
    /// All PDUs below this one have been reassembled. It is VR(R) after each call.
    next: u64,
    /// Octets of the PDU `next` that have been reassembled.
    reassembled: u32,
}

#[derive(Debug)]
struct StoredPdu {
    octets: Vec<u8>,
    boundaries: Boundaries,
}

impl Receiver {
    pub(super) fn new(config: &AmConfig) -> Self {
        let sn_length = config.format.sn;
        Self {
            sn_length,
            window: Window::new(
                Generation::Lte,
                sn_length.bits(),
                sn_length.report_format(),
                config.t_reordering,
                config.parameters.t_status_prohibit,
            ),
            stored: BTreeMap::new(),
            partial: BTreeMap::new(),
            reassembler: Reassembler::default(),
            next: 0,
            reassembled: 0,
        }
    }

    pub(super) fn is_status_due(&self) -> bool {
        self.window.is_status_due()
    }

    /// Size of the STATUS PDU that can be sent now, or 0.
    pub(super) fn status_octets(&self) -> u64 {
        self.window.status_octets()
    }

    /// The STATUS PDU that is due, in at most `room` octets.
    pub(super) fn take_status(&mut self, now: Instant, room: usize, stats: &mut AmStats) -> Option<Vec<u8>> {
        let status = self.window.take_status(now, room, stats)?;
        Some(encode_status(&status, self.sn_length))
    }

    pub(super) fn handle_deadline(&mut self, now: Instant, stats: &mut AmStats) {
        self.window.handle_deadline(now, stats);
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.window.next_deadline()
    }

    /// Handles an AMD PDU or an AMD PDU segment.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        amd: &Amd<'_>,
        events: &mut Vec<Event>,
        stats: &mut AmStats,
    ) -> Result<(), ReceiveError> {
        let (offset, is_last) = amd.segment.map_or((0, true), |segment| (segment.so, segment.is_last));
        let segment = Segment { offset, octets: amd.data.octets, is_last };
        let (sn, placement) = self.window.receive(now, amd.sn, amd.poll, segment);
        match placement {
            Placement::Discarded => stats.duplicates += 1,
            Placement::Contradiction => return Err(ReceiveError::Contradiction(amd.sn)),
            Placement::Stored => self.partial.entry(sn).or_default().add(offset, &amd.data),
            Placement::Whole => {
                let mut boundaries = Boundaries::default();
                boundaries.add(0, &amd.data);
                self.partial.remove(&sn);
                if sn == self.next {
                    // The usual case: the PDU is not stored.
                    self.reassemble(amd.data.octets, &boundaries, events);
                } else {
                    self.stored.insert(sn, StoredPdu { octets: amd.data.octets.to_vec(), boundaries });
                }
            }
            Placement::Completed(octets) => {
                let mut boundaries = self.partial.remove(&sn).unwrap_or_default();
                boundaries.add(offset, &amd.data);
                self.stored.insert(sn, StoredPdu { octets, boundaries });
            }
        }
        self.deliver(events);
        Ok(())
    }

    /// Reassembles the octets of the PDU `next` that have not been reassembled before.
    fn reassemble(&mut self, octets: &[u8], boundaries: &Boundaries, events: &mut Vec<Event>) {
        let offset = std::mem::take(&mut self.reassembled);
        if let Some(octets) = octets.get(offset as usize..).filter(|octets| !octets.is_empty()) {
            let piece = Piece { offset, octets, is_contiguous: true };
            self.reassembler.append(piece, boundaries, events);
        }
        self.next += 1;
    }

    /// "Reassemble RLC SDUs from any byte segments of AMD PDUs with SN that falls outside of the receiving
    /// window and in-sequence byte segments of the AMD PDU with SN = VR(R) … and deliver the reassembled RLC
    /// SDUs to upper layer in sequence if not delivered before" (§5.1.3.2.3).
    fn deliver(&mut self, events: &mut Vec<Event>) {
        while self.next < self.window.window.next()
            && let Some(StoredPdu { octets, boundaries }) = self.stored.remove(&self.next)
        {
            self.reassemble(&octets, &boundaries, events);
        }
        if let Some(assembly) = self.window.window.partial(self.next)
            && let Some(boundaries) = self.partial.get(&self.next)
        {
            for octets in assembly.prefix_from(self.reassembled) {
                let piece = Piece { offset: self.reassembled, octets, is_contiguous: true };
                self.reassembler.append(piece, boundaries, events);
                self.reassembled += octets.len() as u32;
            }
        }
    }

    /// "Reassemble RLC SDUs from any byte segments of AMD PDUs with SN < VR(MR) … and deliver all reassembled
    /// RLC SDUs to upper layer in ascending order of the RLC SN, if not delivered before" (§5.4).
    pub(super) fn deliver_rest(&mut self, events: &mut Vec<Event>) {
        let stored = std::mem::take(&mut self.stored).into_iter();
        let mut rest: BTreeMap<u64, Rest> = stored
            .map(|(sn, StoredPdu { octets, boundaries })| (sn, (vec![(0, octets)], true, boundaries)))
            .collect();
        for (sn, assembly) in self.window.window.take_partial() {
            let boundaries = self.partial.remove(&sn).unwrap_or_default();
            let has_end = assembly.has_end();
            rest.insert(sn, (assembly.into_pieces(), has_end, boundaries));
        }
        // The position after the octets that were reassembled last.
        let mut position = (self.next, self.reassembled);
        for (sn, (pieces, has_end, boundaries)) in rest {
            for (offset, octets) in pieces {
                let known = if sn == self.next { self.reassembled.saturating_sub(offset) } else { 0 };
                let Some(octets) = octets.get(known as usize..).filter(|octets| !octets.is_empty()) else {
                    continue;
                };
                let offset = offset + known;
                let is_contiguous = (sn, offset) == position;
                self.reassembler.append(Piece { offset, octets, is_contiguous }, &boundaries, events);
                position = (sn, offset + octets.len() as u32);
            }
            if has_end {
                position = (sn + 1, 0);
            }
        }
    }
}

/// The received pieces of a PDU with their offsets, whether they include its last octet, and the boundaries of
/// SDUs.
type Rest = (Vec<(u32, Vec<u8>)>, bool, Boundaries);
