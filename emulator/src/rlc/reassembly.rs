//! AMD PDUs put together to SDUs (TS 25.322 §11.3.3), in sequence or as soon as an SDU is complete; and what an MRW
//! throws away (§11.6.3).
//!
//! Whether a PDU is inside the receiving window is the owner's business; here are VR(R) and what waits beyond it.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::pdu::{Amd, Gap, Previous, Rest, Sn};

/// No IP packet is longer. An SDU that is has lost its end.
const LONGEST_SDU: usize = 65_535;

#[derive(Clone, Debug)]
pub struct Reassembler {
    delivery: Delivery,
    vr_r: Sn,
    /// The PDU VR(R) + i at index i; the first one is always absent.
    waiting: VecDeque<Option<Held>>,
    held: usize,
    unfinished: Unfinished,
    /// The PDU VR(R) begins only after so many of its length indicators (NLENGTH).
    skip: u8,
    faults: Faults,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    InSequence,
    AsSoonAsComplete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    New,
    /// Its number was received before; it was thrown away.
    Duplicate,
}

/// What well-formed PDUs said that contradicts the PDUs before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Faults {
    /// An indicator ended an SDU of the PDU before, where none was open.
    pub nothing_to_end: u64,
    /// An SDU grew beyond every IP packet and was thrown away.
    pub too_long: u64,
    /// An MRW skipped more length indicators than the PDU has.
    pub nlength: u64,
}

/// What stands before VR(R).
#[derive(Clone, Debug)]
enum Unfinished {
    /// Nothing that was received: establishment, RESET, MRW.
    Nothing,
    /// An SDU that said that it ended.
    Ended,
    /// An SDU, unless the next PDU says that it ended.
    Sdu(Vec<u8>),
    /// Too much. Thrown away up to the next end.
    TooLong,
}

#[derive(Clone, Debug)]
struct Held {
    amd: Amd,
    /// The SDUs that were delivered before their turn: bit i for the boundary i of `boundaries`.
    delivered: u64,
}

/// Where an SDU ends, as a PDU tells.
#[derive(Clone, Copy)]
struct Boundary {
    /// In `data`.
    offset: usize,
    /// Octets before it that are no data (LI 0x7ffb).
    ignored: usize,
}

impl Held {
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

fn boundaries(amd: &Amd) -> impl DoubleEndedIterator<Item = Boundary> {
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

    /// VR(R): the next PDU in sequence.
    pub const fn vr_r(&self) -> Sn {
        self.vr_r
    }

    /// Whether this PDU, at or after VR(R), was received.
    pub fn holds(&self, sn: Sn) -> bool {
        self.waiting.get(usize::from(sn.since(self.vr_r))).is_some_and(Option::is_some)
    }

    /// PDUs that were received and wait for others.
    pub const fn held(&self) -> usize {
        self.held
    }

    pub const fn faults(&self) -> Faults {
        self.faults
    }

    /// What is missing from VR(R) up to VR(H), in ascending order.
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
        // Beyond the last that waits, up to a VR(H) that a POLL told of.
        let beyond = vr_h.since(self.vr_r) - known as u16;
        match gaps.last_mut() {
            _ if beyond == 0 => {}
            Some(gap) if gap_open => gap.count += beyond,
            _ => gaps.push(Gap { first: self.vr_r.plus(known as u16), count: beyond }),
        }
        gaps
    }

    /// Takes a PDU of the receiving window, and hands out the SDUs that are complete with it.
    pub fn receive(&mut self, amd: Amd, mut deliver: impl FnMut(Vec<u8>)) -> Receipt {
        let distance = usize::from(amd.sn.since(self.vr_r));
        if distance == 0 {
            // The usual case does without the store.
            self.advance(Held { amd, delivered: 0 }, &mut deliver);
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
        self.waiting[distance] = Some(Held { amd, delivered: 0 });
        self.held += 1;
        if self.delivery == Delivery::AsSoonAsComplete {
            self.deliver_around(distance, &mut deliver);
        }
        Receipt::New
    }

    /// An MRW that is not obsolete (§11.6.3): forgets everything before the PDU `sn`, and in it everything through
    /// the indicator number `nlength` (0: nothing). `sn` is taken as VR(R) or ahead of it. The new VR(R) may be
    /// further ahead.
    pub fn move_window(&mut self, sn: Sn, nlength: u8, mut deliver: impl FnMut(Vec<u8>)) {
        let distance = usize::from(sn.since(self.vr_r)).min(self.waiting.len());
        self.held -= self.waiting.drain(..distance).flatten().count();
        self.vr_r = sn;
        self.unfinished = Unfinished::Nothing;
        self.skip = nlength;
        self.catch_up(&mut deliver);
    }

    /// RESET: forgets every PDU and what was open.
    pub fn reset(&mut self) {
        *self = Self { faults: self.faults, ..Self::new(self.delivery) };
    }

    /// Takes what waits and is in sequence now.
    fn catch_up(&mut self, deliver: &mut impl FnMut(Vec<u8>)) {
        while let Some(Some(_)) = self.waiting.front() {
            let held = self.waiting.pop_front().flatten().expect("the loop saw it");
            self.held -= 1;
            self.advance(held, deliver);
        }
    }

    /// The PDU VR(R).
    fn advance(&mut self, held: Held, deliver: &mut impl FnMut(Vec<u8>)) {
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

    fn append(&mut self, octets: &[u8]) {
        match &mut self.unfinished {
            _ if octets.is_empty() => {}
            Unfinished::TooLong => {}
            // One more than the longest is for an octet that LI 0x7ffb takes back.
            Unfinished::Sdu(sdu) if sdu.len() + octets.len() > LONGEST_SDU + 1 => {
                self.faults.too_long += 1;
                self.unfinished = Unfinished::TooLong;
            }
            Unfinished::Sdu(sdu) => sdu.extend(octets),
            Unfinished::Nothing | Unfinished::Ended => {
                let mut sdu = Vec::with_capacity(1536.max(octets.len()));
                sdu.extend(octets);
                self.unfinished = Unfinished::Sdu(sdu);
            }
        }
    }

    fn end(&mut self, ignored: usize) -> Option<Vec<u8>> {
        match std::mem::replace(&mut self.unfinished, Unfinished::Ended) {
            Unfinished::Sdu(sdu) if sdu.len() > LONGEST_SDU + ignored => self.faults.too_long += 1,
            Unfinished::Sdu(mut sdu) if sdu.len() > ignored => {
                sdu.truncate(sdu.len() - ignored);
                return Some(sdu);
            }
            Unfinished::Sdu(_) | Unfinished::Ended => self.faults.nothing_to_end += 1,
            // What it ends was thrown away.
            Unfinished::Nothing | Unfinished::TooLong => {}
        }
        None
    }

    /// Hands out the SDUs that the PDU at `index`, just stored, completes.
    fn deliver_around(&mut self, index: usize, deliver: &mut impl FnMut(Vec<u8>)) {
        let ends = self.slot(index).map_or(0, |held| held.boundaries().count());
        for boundary in 0..ends {
            self.deliver_early(index, boundary, deliver);
        }
        // And the SDU that goes on after it, up to the first PDU that ends something.
        let mut end = index + 1;
        while self.slot(end).is_some_and(Held::ends_nothing) {
            end += 1;
        }
        if self.slot(end).is_some() {
            self.deliver_early(end, 0, deliver);
        }
    }

    fn slot(&self, index: usize) -> Option<&Held> {
        self.waiting.get(index)?.as_ref()
    }

    /// Hands out the SDU that ends at a boundary of the PDU at `index`, if it is complete.
    fn deliver_early(&mut self, index: usize, boundary: usize, deliver: &mut impl FnMut(Vec<u8>)) {
        if let Some(sdu) = self.complete(index, boundary)
            && let Some(held) = &mut self.waiting[index]
        {
            held.delivered |= 1 << boundary;
            deliver(sdu);
        }
    }

    fn complete(&self, index: usize, boundary: usize) -> Option<Vec<u8>> {
        let held = self.slot(index)?;
        // More ends than bits: those are delivered in their turn.
        if boundary >= 64 || held.was_delivered(boundary) {
            return None;
        }
        let mut ends = held.boundaries().skip(boundary.saturating_sub(1));
        let before = if boundary > 0 { ends.next() } else { None };
        let end = ends.next()?;
        let mut sdu = match before {
            Some(before) => held.amd.data[before.offset..end.offset].to_vec(),
            None => {
                // Begins in an earlier PDU, or exactly with this one, which only the earlier one knows.
                let mut start = index.checked_sub(1)?;
                while self.slot(start)?.ends_nothing() {
                    start = start.checked_sub(1)?;
                }
                let first = self.slot(start)?;
                let from = first.boundaries().next_back().map_or(0, |end| end.offset);
                let mut sdu = first.amd.data[from..].to_vec();
                for held in (start + 1..index).filter_map(|index| self.slot(index)) {
                    sdu.extend(&held.amd.data);
                }
                sdu.extend(&held.amd.data[..end.offset]);
                sdu
            }
        };
        sdu.truncate(sdu.len().saturating_sub(end.ignored));
        (!sdu.is_empty() && sdu.len() <= LONGEST_SDU).then_some(sdu)
    }
}
