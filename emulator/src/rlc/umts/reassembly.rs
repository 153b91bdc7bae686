//! Reassembly of AMD PDUs into SDUs (§11.3.3), in sequence or as soon as an SDU is complete, and the effect
//! of an MRW (§11.6.3).
//!
//! The reassembler holds VR(R) and the PDUs received beyond it. Its owner checks whether a PDU is inside the
//! reception window.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::pdu::{Amd, Gap, Previous, Rest, Sn};

/// Maximum size of an SDU in bytes, because SDUs are IP packets. If an SDU exceeds it, its end was lost.
const MAX_SDU: usize = 65_535;
/// Upper bound on the number of SDUs whose memory waits for reuse.
const SPARE_SDUS: usize = 16;

/// Reassembles AMD PDUs into SDUs.
#[derive(Clone, Debug)]
pub struct Reassembler {
    delivery: Delivery,
    vr_r: Sn,
    /// PDU VR(R) + i is at index i. Index 0 is always empty.
    pdus: VecDeque<Option<Box<StoredPdu>>>,
    /// Number of PDUs in `pdus`.
    stored: usize,
    unfinished: Unfinished,
    /// PDUs that are no longer in `pdus`, whose memory can be reused.
    #[expect(clippy::vec_box, reason = "boxes move between the two lists")]
    spare: Vec<Box<StoredPdu>>,
    /// Memory of SDUs that are no longer needed. When a missing PDU arrives, several SDUs can be complete.
    spare_sdus: Vec<Vec<u8>>,
    /// NLENGTH of the last MRW: in the PDU VR(R), the data up to Length Indicator number `skip` is discarded.
    skip: u8,
    faults: Faults,
}

/// Whether "In-Sequence Delivery" is configured (§11.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// SDUs are delivered in the order in which they were sent.
    InSequence,
    /// An SDU is delivered when it is complete, even if earlier SDUs are incomplete.
    AsSoonAsComplete,
}

/// Result of the reception of an AMD PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// The PDU is the first one with its SN.
    New,
    /// §11.3.4.8: a PDU with this SN was received before. The new one was discarded.
    Duplicate,
}

/// Counters of contradictions between well-formed PDUs and earlier ones. Contradictory information is
/// ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Faults {
    /// A Length Indicator marked the end of an SDU in the previous PDU, but no SDU was open.
    pub nothing_to_end: u64,
    /// An SDU exceeded the size of an IP packet, and was discarded.
    pub too_long: u64,
    /// NLENGTH of an MRW exceeded the number of indicators in the PDU.
    pub nlength: u64,
}

impl Faults {
    /// Returns each counter with its name in statistics and events.
    pub const fn each(self) -> [(&'static str, u64); 3] {
        [("nothing-to-end", self.nothing_to_end), ("too-long", self.too_long), ("nlength", self.nlength)]
    }
}

/// State after the PDUs before VR(R).
#[derive(Clone, Debug)]
enum Unfinished {
    /// No SDU is open, after establishment, RESET or MRW.
    Nothing,
    /// No SDU is open, because the last one has ended.
    Ended,
    /// An SDU is open. The next PDU may indicate that it has ended (LI 0, LI 0x7ffb).
    Sdu(Vec<u8>),
    /// The open SDU is too long. It is discarded up to its end.
    TooLong,
}

/// A PDU beyond VR(R).
#[derive(Clone, Debug, Default)]
struct StoredPdu {
    amd: Amd<'static>,
    /// SDUs that were delivered out of sequence. Bit i is set for the SDU that ends at the i-th of
    /// `boundaries`.
    delivered: u64,
}

/// End of an SDU, as indicated by a Length Indicator or the special value of HE.
#[derive(Clone, Copy)]
struct Boundary {
    /// Number of bytes of `data` before the end.
    offset: usize,
    /// Number of bytes before the end that are not data (LI 0x7ffb).
    ignored: usize,
}

impl StoredPdu {
    /// Replaces the PDU by a copy of `amd` in the same memory, without a piggybacked STATUS PDU.
    fn replace(&mut self, amd: &Amd<'_>) {
        let Amd { sn, poll, previous, ends, data, rest } = &mut self.amd;
        (*sn, *poll, *previous) = (amd.sn, amd.poll, amd.previous);
        ends.clone_from(&amd.ends);
        let data = data.to_mut();
        data.clear();
        data.extend_from_slice(&amd.data);
        *rest = if matches!(amd.rest, Rest::SduEnd) { Rest::SduEnd } else { Rest::Nothing };
        self.delivered = 0;
    }

    fn boundaries(&self) -> impl DoubleEndedIterator<Item = Boundary> {
        boundaries(&self.amd)
    }

    fn ends_nothing(&self) -> bool {
        self.boundaries().next().is_none()
    }

    fn was_delivered(&self, boundary: usize) -> bool {
        contains(self.delivered, boundary)
    }
}

/// Whether the bit for this boundary is set in the field `delivered` of a [`StoredPdu`].
fn contains(delivered: u64, boundary: usize) -> bool {
    boundary < 64 && delivered >> boundary & 1 == 1
}

/// All ends of SDUs that a PDU indicates, in order.
fn boundaries(amd: &Amd<'_>) -> impl DoubleEndedIterator<Item = Boundary> {
    let previous = match amd.previous {
        Previous::NotIndicated => None,
        Previous::EndedExactly => Some(Boundary { offset: 0, ignored: 0 }),
        Previous::EndedOneShort => Some(Boundary { offset: 0, ignored: 1 }),
    };
    let ends = amd.ends.iter().map(|end| Boundary { offset: usize::from(*end), ignored: 0 });
    let by_he = matches!(amd.rest, Rest::SduEnd).then_some(Boundary { offset: amd.data.len(), ignored: 0 });
    previous.into_iter().chain(ends).chain(by_he)
}

impl Reassembler {
    /// Creates a reassembler with VR(R) = 0 and without PDUs.
    pub fn new(delivery: Delivery) -> Self {
        Self {
            delivery,
            vr_r: Sn::ZERO,
            pdus: VecDeque::new(),
            stored: 0,
            unfinished: Unfinished::Nothing,
            spare: Vec::new(),
            spare_sdus: Vec::new(),
            skip: 0,
            faults: Faults::default(),
        }
    }

    /// VR(R) (§9.4): the SN after the last one received in sequence.
    pub const fn vr_r(&self) -> Sn {
        self.vr_r
    }

    /// Whether the PDU with this SN, which must be VR(R) or later, has been received.
    pub fn holds(&self, sn: Sn) -> bool {
        self.pdus.get(usize::from(sn.since(self.vr_r))).is_some_and(Option::is_some)
    }

    /// Number of PDUs received out of sequence.
    pub const fn stored(&self) -> usize {
        self.stored
    }

    /// Contradictions since the reassembler was created.
    pub const fn faults(&self) -> Faults {
        self.faults
    }

    /// Missing PDUs with VR(R) ≤ SN < VR(H), in ascending order.
    pub fn missing(&self, vr_h: Sn) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = Vec::new();
        let known = self.pdus.len().min(usize::from(vr_h.since(self.vr_r)));
        let mut gap_open = false;
        for (distance, slot) in self.pdus.iter().take(known).enumerate() {
            match (slot, gaps.last_mut()) {
                (Some(_), _) => gap_open = false,
                (None, Some(gap)) if gap_open => gap.count += 1,
                (None, _) => {
                    gaps.push(Gap { first: self.vr_r.plus(distance as u16), count: 1 });
                    gap_open = true;
                }
            }
        }
        // A POLL super-field can move VR(H) beyond the last PDU received (§11.5.2).
        let beyond = vr_h.since(self.vr_r) - known as u16;
        match gaps.last_mut() {
            _ if beyond == 0 => {}
            Some(gap) if gap_open => gap.count += beyond,
            _ => gaps.push(Gap { first: self.vr_r.plus(known as u16), count: beyond }),
        }
        gaps
    }

    /// Handles a PDU inside the reception window. Passes the SDUs that it completes to `deliver`.
    pub fn receive(&mut self, amd: &Amd<'_>, mut deliver: impl FnMut(Vec<u8>)) -> Receipt {
        let distance = usize::from(amd.sn.since(self.vr_r));
        if distance == 0 {
            // In the usual case, the PDU is not stored in `pdus`.
            self.advance(amd, 0, &mut deliver);
            self.pdus.pop_front();
            self.catch_up(&mut deliver);
            return Receipt::New;
        }
        while self.pdus.len() <= distance {
            self.pdus.push_back(None);
        }
        let slot = &mut self.pdus[distance];
        if slot.is_some() {
            return Receipt::Duplicate;
        }
        let mut stored = self.spare.pop().unwrap_or_default();
        stored.replace(amd);
        *slot = Some(stored);
        self.stored += 1;
        if self.delivery == Delivery::AsSoonAsComplete {
            self.deliver_around(distance, &mut deliver);
        }
        Receipt::New
    }

    /// Handles an MRW that is not obsolete (§11.6.3): discards all PDUs before `sn`, which is SN_MRW_LENGTH,
    /// and in that PDU the data up to Length Indicator number `nlength`. `sn` must be VR(R) or later. If PDUs
    /// from `sn` on have been received, VR(R) moves further.
    ///
    /// Deviation: the clause requires delivery of the SDUs that were received completely before `sn`. Here,
    /// in-sequence delivery discards SDUs after a gap.
    pub fn move_window(&mut self, sn: Sn, nlength: u8, mut deliver: impl FnMut(Vec<u8>)) {
        let distance = usize::from(sn.since(self.vr_r)).min(self.pdus.len());
        self.stored -= self.pdus.drain(..distance).flatten().count();
        self.vr_r = sn;
        self.unfinished = Unfinished::Nothing;
        self.skip = nlength;
        self.catch_up(&mut deliver);
    }

    /// Discards all PDUs and the open SDU (§11.4.3). The counters of contradictions remain.
    pub fn reset(&mut self) {
        *self = Self { faults: self.faults, ..Self::new(self.delivery) };
    }

    /// Handles the PDUs that are in sequence now.
    fn catch_up(&mut self, deliver: &mut impl FnMut(Vec<u8>)) {
        while let Some(stored) = self.pdus.pop_front_if(|slot| slot.is_some()).flatten() {
            self.stored -= 1;
            self.advance(&stored.amd, stored.delivered, deliver);
            self.spare.push(stored);
        }
    }

    /// Takes back the memory of a delivered SDU.
    pub fn recycle(&mut self, sdu: Vec<u8>) {
        if self.spare_sdus.len() < SPARE_SDUS {
            self.spare_sdus.push(sdu);
        }
    }

    /// Handles the PDU VR(R). `delivered` is the field of [`StoredPdu`].
    fn advance(&mut self, amd: &Amd<'_>, delivered: u64, deliver: &mut impl FnMut(Vec<u8>)) {
        self.vr_r = self.vr_r.next();
        let skip = usize::from(std::mem::take(&mut self.skip));
        let mut from = 0;
        let mut ends = 0;
        boundaries(amd).enumerate().for_each(|(index, boundary)| {
            ends = index + 1;
            if ends > skip {
                self.append(&amd.data[from..boundary.offset]);
                let octets = self.end(boundary.ignored);
                octets.filter(|_| !contains(delivered, index)).map(&mut *deliver).unwrap_or_default();
            }
            from = boundary.offset;
        });
        self.faults.nlength += u64::from(ends < skip);
        self.append(&amd.data[from..]);
    }

    /// Continues the open SDU, or begins one.
    fn append(&mut self, octets: &[u8]) {
        match &mut self.unfinished {
            _ if octets.is_empty() => {}
            Unfinished::TooLong => {}
            // LI 0x7ffb may remove one byte later.
            Unfinished::Sdu(sdu) if sdu.len() + octets.len() > MAX_SDU + 1 => {
                self.faults.too_long += 1;
                self.unfinished = Unfinished::TooLong;
            }
            Unfinished::Sdu(sdu) => sdu.extend_from_slice(octets),
            Unfinished::Nothing | Unfinished::Ended => {
                let mut sdu = self.spare_sdus.pop().unwrap_or_default();
                sdu.clear();
                sdu.reserve(1536.max(octets.len()));
                sdu.extend_from_slice(octets);
                self.unfinished = Unfinished::Sdu(sdu);
            }
        }
    }

    /// Ends the open SDU, whose last `ignored` bytes are not data.
    fn end(&mut self, ignored: usize) -> Option<Vec<u8>> {
        match std::mem::replace(&mut self.unfinished, Unfinished::Ended) {
            Unfinished::Sdu(sdu) if sdu.len() > MAX_SDU + ignored => self.faults.too_long += 1,
            Unfinished::Sdu(mut sdu) if sdu.len() > ignored => {
                sdu.truncate(sdu.len() - ignored);
                return Some(sdu);
            }
            Unfinished::Sdu(_) | Unfinished::Ended => self.faults.nothing_to_end += 1,
            // The beginning of the SDU was discarded.
            Unfinished::Nothing | Unfinished::TooLong => {}
        }
        None
    }

    /// Delivers the SDUs that are completed by the PDU at `index`, which was just stored.
    fn deliver_around(&mut self, index: usize, deliver: &mut impl FnMut(Vec<u8>)) {
        let ends = self.slot(index).map_or(0, |stored| stored.boundaries().count());
        for boundary in 0..ends {
            self.deliver_early(index, boundary, deliver);
        }
        // The SDU that continues after this PDU ends in the next PDU that contains an end.
        let mut end = index + 1;
        while self.slot(end).is_some_and(StoredPdu::ends_nothing) {
            end += 1;
        }
        if self.slot(end).is_some() {
            self.deliver_early(end, 0, deliver);
        }
    }

    fn slot(&self, index: usize) -> Option<&StoredPdu> {
        self.pdus.get(index)?.as_deref()
    }

    /// Delivers the SDU that ends at a boundary of the PDU at `index`, if it is complete.
    fn deliver_early(&mut self, index: usize, boundary: usize, deliver: &mut impl FnMut(Vec<u8>)) {
        if let Some(sdu) = self.complete(index, boundary)
            && let Some(stored) = &mut self.pdus[index]
        {
            stored.delivered |= 1 << boundary;
            deliver(sdu);
        }
    }

    /// Returns the SDU that ends at a boundary of the PDU at `index`, if none of its PDUs is missing.
    fn complete(&self, index: usize, boundary: usize) -> Option<Vec<u8>> {
        let stored = self.slot(index)?;
        // `delivered` has 64 bits. Further SDUs are delivered in sequence.
        if boundary >= 64 || stored.was_delivered(boundary) {
            return None;
        }
        let mut ends = stored.boundaries().skip(boundary.saturating_sub(1));
        let before = if boundary > 0 { ends.next() } else { None };
        let end = ends.next()?;
        let mut sdu = match before {
            Some(before) => stored.amd.data[before.offset..end.offset].to_vec(),
            None => {
                // The SDU begins in an earlier PDU or with this one. Only the earlier PDU shows which.
                let mut start = index.checked_sub(1)?;
                while self.slot(start)?.ends_nothing() {
                    start = start.checked_sub(1)?;
                }
                let first = self.slot(start)?;
                let from = first.boundaries().next_back().map_or(0, |end| end.offset);
                let mut sdu = first.amd.data[from..].to_vec();
                for stored in (start + 1..index).filter_map(|index| self.slot(index)) {
                    sdu.extend_from_slice(&stored.amd.data);
                }
                sdu.extend(&stored.amd.data[..end.offset]);
                sdu
            }
        };
        sdu.truncate(sdu.len().saturating_sub(end.ignored));
        (!sdu.is_empty() && sdu.len() <= MAX_SDU).then_some(sdu)
    }
}
