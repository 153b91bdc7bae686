//! Reassembly of AMD PDUs into SDUs (§11.3.3), in sequence or as soon as an SDU is complete, and what an MRW discards
//! of them (§11.6.3).
//!
//! It holds VR(R) and what was received beyond it. Whether a PDU is inside the reception window is the owner's
//! business.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::pdu::{Amd, Gap, Previous, Rest, Sn};

/// SDUs are IP packets, and none is longer. If one grows beyond that, its end was lost.
const LONGEST_SDU: usize = 65_535;

/// AMD PDUs received, on their way to be SDUs.
#[derive(Clone, Debug)]
pub struct Reassembler {
    delivery: Delivery,
    vr_r: Sn,
    /// The PDU VR(R) + i at index i. There is never one at index 0.
    waiting: VecDeque<Option<Held<'static>>>,
    /// How many of `waiting` are there.
    held: usize,
    unfinished: Unfinished,
    /// NLENGTH of the last MRW: of the PDU VR(R), what its first `skip` "Length Indicators" end is discarded.
    skip: u8,
    faults: Faults,
}

/// Whether "In-Sequence Delivery" is configured (§11.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// SDUs are delivered in the order in which they were sent.
    InSequence,
    /// An SDU is delivered when its last missing PDU comes, even if earlier SDUs are incomplete.
    AsSoonAsComplete,
}

/// What became of an AMD PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It is the first with its number.
    New,
    /// §11.3.4.8: one with its number was received before. It was discarded.
    Duplicate,
}

/// Counts what well-formed PDUs said that contradicts the PDUs before them. Each is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Faults {
    /// A "Length Indicator" ended an SDU in the previous PDU, but none was open.
    pub nothing_to_end: u64,
    /// An SDU grew longer than any IP packet, and was discarded.
    pub too_long: u64,
    /// NLENGTH of an MRW was larger than the number of indicators in the PDU.
    pub nlength: u64,
}

impl Faults {
    /// Each with the name that statistics and events have for it.
    pub const fn each(self) -> [(&'static str, u64); 3] {
        [("nothing-to-end", self.nothing_to_end), ("too-long", self.too_long), ("nlength", self.nlength)]
    }
}

/// What the PDUs before VR(R) left unfinished.
#[derive(Clone, Debug)]
enum Unfinished {
    /// Nothing: after establishment, RESET or MRW.
    Nothing,
    /// Nothing: the last SDU has ended.
    Ended,
    /// An SDU. The next PDU may say that it has ended (LI 0, LI 0x7ffb).
    Sdu(Vec<u8>),
    /// An SDU that is too long; discarded up to its end.
    TooLong,
}

/// A PDU beyond VR(R).
#[derive(Clone, Debug)]
struct Held<'a> {
    amd: Amd<'a>,
    /// The SDUs that were delivered out of sequence: bit i for the one that ends at the i-th of `boundaries`.
    delivered: u64,
}

/// The end of an SDU, as its "Length Indicator" or the special value of HE tells it.
#[derive(Clone, Copy)]
struct Boundary {
    /// Octets of `data` before it.
    offset: usize,
    /// Octets before it that are no data (LI 0x7ffb).
    ignored: usize,
}

impl Held<'_> {
    fn boundaries(&self) -> impl DoubleEndedIterator<Item = Boundary> {
        boundaries(&self.amd)
    }

    fn ends_nothing(&self) -> bool {
        self.boundaries().next().is_none()
    }

    fn was_delivered(&self, boundary: usize) -> bool {
        boundary < 64 && self.delivered >> boundary & 1 == 1
    }
}

/// All ends of SDUs that a PDU tells, in order.
fn boundaries(amd: &Amd<'_>) -> impl DoubleEndedIterator<Item = Boundary> {
    let previous = match amd.previous {
        Previous::Unsaid => None,
        Previous::EndedExactly => Some(Boundary { offset: 0, ignored: 0 }),
        Previous::EndedOneShort => Some(Boundary { offset: 0, ignored: 1 }),
    };
    let ends = amd.ends.iter().map(|end| Boundary { offset: usize::from(*end), ignored: 0 });
    let whole = (amd.rest == Rest::SduEnd).then_some(Boundary { offset: amd.data.len(), ignored: 0 });
    previous.into_iter().chain(ends).chain(whole)
}

impl Reassembler {
    /// With VR(R) = 0 and nothing received.
    pub fn new(delivery: Delivery) -> Self {
        Self {
            delivery,
            vr_r: Sn::ZERO,
            waiting: VecDeque::new(),
            held: 0,
            unfinished: Unfinished::Nothing,
            skip: 0,
            faults: Faults::default(),
        }
    }

    /// VR(R), §9.4: the number after the last one received in sequence.
    pub const fn vr_r(&self) -> Sn {
        self.vr_r
    }

    /// Whether the PDU with this number, VR(R) or later, was received.
    pub fn holds(&self, sn: Sn) -> bool {
        self.waiting.get(usize::from(sn.since(self.vr_r))).is_some_and(Option::is_some)
    }

    /// How many PDUs were received out of sequence.
    pub const fn held(&self) -> usize {
        self.held
    }

    /// Everything counted since it was made.
    pub const fn faults(&self) -> Faults {
        self.faults
    }

    /// What is missing with VR(R) ≤ SN < VR(H), in ascending order.
    pub fn missing(&self, vr_h: Sn) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = Vec::new();
        let known = self.waiting.len().min(usize::from(vr_h.since(self.vr_r)));
        let mut gap_open = false;
        for (distance, slot) in self.waiting.iter().take(known).enumerate() {
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

    /// Takes a PDU inside the reception window, and hands the SDUs that it completes to `deliver`.
    pub fn receive(&mut self, amd: Amd<'_>, mut deliver: impl FnMut(Vec<u8>)) -> Receipt {
        let distance = usize::from(amd.sn.since(self.vr_r));
        if distance == 0 {
            // The usual case needs no place in `waiting`.
            self.advance(&Held { amd, delivered: 0 }, &mut deliver);
            self.waiting.pop_front();
            self.catch_up(&mut deliver);
            return Receipt::New;
        }
        if self.waiting.len() <= distance {
            self.waiting.resize(distance + 1, None);
        }
        if self.waiting[distance].is_some() {
            return Receipt::Duplicate;
        }
        self.waiting[distance] = Some(Held { amd: amd.into_owned(), delivered: 0 });
        self.held += 1;
        if self.delivery == Delivery::AsSoonAsComplete {
            self.deliver_around(distance, &mut deliver);
        }
        Receipt::New
    }

    /// §11.6.3, an MRW that is not obsolete: discards all PDUs before `sn`, SN_MRW_LENGTH, and of that PDU what its
    /// first `nlength` "Length Indicators" end. `sn` is taken to be VR(R) or later. If PDUs from `sn` on were
    /// received, VR(R) moves further.
    ///
    /// Deviation: the clause has SDUs delivered that were received completely before `sn`. Here in-sequence delivery
    /// discards those that are behind a gap.
    pub fn move_window(&mut self, sn: Sn, nlength: u8, mut deliver: impl FnMut(Vec<u8>)) {
        let distance = usize::from(sn.since(self.vr_r)).min(self.waiting.len());
        self.held -= self.waiting.drain(..distance).flatten().count();
        self.vr_r = sn;
        self.unfinished = Unfinished::Nothing;
        self.skip = nlength;
        self.catch_up(&mut deliver);
    }

    /// §11.4.3: discards every PDU and the unfinished SDU. Faults are still counted.
    pub fn reset(&mut self) {
        *self = Self { faults: self.faults, ..Self::new(self.delivery) };
    }

    /// Takes the PDUs that are in sequence now.
    fn catch_up(&mut self, deliver: &mut impl FnMut(Vec<u8>)) {
        while let Some(Some(_)) = self.waiting.front() {
            let held = self.waiting.pop_front().flatten().expect("the loop saw it");
            self.held -= 1;
            self.advance(&held, deliver);
        }
    }

    /// Takes the PDU with the number VR(R).
    fn advance(&mut self, held: &Held<'_>, deliver: &mut impl FnMut(Vec<u8>)) {
        self.vr_r = self.vr_r.next();
        let skip = usize::from(std::mem::take(&mut self.skip));
        let mut from = 0;
        let mut ends = 0;
        for (index, boundary) in held.boundaries().enumerate() {
            ends = index + 1;
            if ends > skip {
                self.append(&held.amd.data[from..boundary.offset]);
                let octets = self.end(boundary.ignored);
                octets.filter(|_| !held.was_delivered(index)).map(&mut *deliver).unwrap_or_default();
            }
            from = boundary.offset;
        }
        self.faults.nlength += u64::from(ends < skip);
        self.append(&held.amd.data[from..]);
    }

    /// Continues the unfinished SDU, or begins one.
    fn append(&mut self, octets: &[u8]) {
        match &mut self.unfinished {
            _ if octets.is_empty() => {}
            Unfinished::TooLong => {}
            // LI 0x7ffb may take back one octet.
            Unfinished::Sdu(sdu) if sdu.len() + octets.len() > LONGEST_SDU + 1 => {
                self.faults.too_long += 1;
                self.unfinished = Unfinished::TooLong;
            }
            Unfinished::Sdu(sdu) => sdu.extend_from_slice(octets),
            Unfinished::Nothing | Unfinished::Ended => {
                let mut sdu = Vec::with_capacity(1536.max(octets.len()));
                sdu.extend_from_slice(octets);
                self.unfinished = Unfinished::Sdu(sdu);
            }
        }
    }

    /// Ends the unfinished SDU, whose last `ignored` octets are no data.
    fn end(&mut self, ignored: usize) -> Option<Vec<u8>> {
        match std::mem::replace(&mut self.unfinished, Unfinished::Ended) {
            Unfinished::Sdu(sdu) if sdu.len() > LONGEST_SDU + ignored => self.faults.too_long += 1,
            Unfinished::Sdu(mut sdu) if sdu.len() > ignored => {
                sdu.truncate(sdu.len() - ignored);
                return Some(sdu);
            }
            Unfinished::Sdu(_) | Unfinished::Ended => self.faults.nothing_to_end += 1,
            // Its beginning was discarded.
            Unfinished::Nothing | Unfinished::TooLong => {}
        }
        None
    }

    /// Delivers the SDUs that the PDU at `index`, just stored, completes.
    fn deliver_around(&mut self, index: usize, deliver: &mut impl FnMut(Vec<u8>)) {
        let ends = self.slot(index).map_or(0, |held| held.boundaries().count());
        for boundary in 0..ends {
            self.deliver_early(index, boundary, deliver);
        }
        // The SDU that goes on behind it ends in the first PDU that ends any.
        let mut end = index + 1;
        while self.slot(end).is_some_and(Held::ends_nothing) {
            end += 1;
        }
        if self.slot(end).is_some() {
            self.deliver_early(end, 0, deliver);
        }
    }

    fn slot(&self, index: usize) -> Option<&Held<'static>> {
        self.waiting.get(index)?.as_ref()
    }

    /// Delivers the SDU that ends at a boundary of the PDU at `index`, if it is complete.
    fn deliver_early(&mut self, index: usize, boundary: usize, deliver: &mut impl FnMut(Vec<u8>)) {
        if let Some(sdu) = self.complete(index, boundary)
            && let Some(held) = &mut self.waiting[index]
        {
            held.delivered |= 1 << boundary;
            deliver(sdu);
        }
    }

    /// The SDU that ends at a boundary of the PDU at `index`, if no PDU of it is missing.
    fn complete(&self, index: usize, boundary: usize) -> Option<Vec<u8>> {
        let held = self.slot(index)?;
        // `delivered` has 64 bits. Further SDUs are delivered in sequence.
        if boundary >= 64 || held.was_delivered(boundary) {
            return None;
        }
        let mut ends = held.boundaries().skip(boundary.saturating_sub(1));
        let before = if boundary > 0 { ends.next() } else { None };
        let end = ends.next()?;
        let mut sdu = match before {
            Some(before) => held.amd.data[before.offset..end.offset].to_vec(),
            None => {
                // It begins in an earlier PDU, or with this one; only the earlier one can tell.
                let mut start = index.checked_sub(1)?;
                while self.slot(start)?.ends_nothing() {
                    start = start.checked_sub(1)?;
                }
                let first = self.slot(start)?;
                let from = first.boundaries().next_back().map_or(0, |end| end.offset);
                let mut sdu = first.amd.data[from..].to_vec();
                for held in (start + 1..index).filter_map(|index| self.slot(index)) {
                    sdu.extend_from_slice(&held.amd.data);
                }
                sdu.extend(&held.amd.data[..end.offset]);
                sdu
            }
        };
        sdu.truncate(sdu.len().saturating_sub(end.ignored));
        (!sdu.is_empty() && sdu.len() <= LONGEST_SDU).then_some(sdu)
    }
}
