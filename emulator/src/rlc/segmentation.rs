//! SDUs cut into the bodies of AMD PDUs, and concatenated in them (TS 25.322 §9.2.2.8, §9.2.2.9, §11.3.2).
//!
//! A PDU is filled when it is asked for, and not before. So an SDU that has begun but has not ended reaches up to the
//! last PDU that was asked for.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::codec::Format;
use super::pdu::{Amd, Previous, Rest, Sn};

/// An MRW can name no length indicator beyond the 15th, so no more than 15 SDUs end in one PDU. Choice: nor is there a
/// 16th indicator for padding, which the specification does not forbid but Wireshark calls malformed.
const MOST_INDICATORS: usize = 15;

/// SDUs on their way into PDUs. `Id` is whatever the owner knows an SDU by.
#[derive(Clone, Debug)]
pub struct Segmenter<Id> {
    format: Format,
    /// The first one may have begun.
    waiting: VecDeque<Sdu<Id>>,
    /// Octets of the first one that PDUs carry already.
    sent: usize,
    octets: usize,
    /// An SDU that ended with a PDU that had no room to say so: the next one has to.
    unsaid: Option<(Previous, Id)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sdu<Id> {
    pub id: Id,
    pub octets: Vec<u8>,
}

/// An AMD PDU, and what it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut<Id> {
    pub amd: Amd,
    /// The SDUs that it carries octets of, in order.
    pub carried: Vec<Carried<Id>>,
    /// The SDUs whose end it tells of, in order. The one at index i is told of by the length indicator i + 1; the
    /// first may be an SDU that it carries nothing of (LI 0). With HE = 10 there is one, and no indicator.
    pub ended: Vec<Id>,
    /// Octets of padding, after its length indicator: what a piggybacked STATUS may take.
    pub spare: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried<Id> {
    pub id: Id,
    /// Whether its first octet is here.
    pub first: bool,
    /// Whether its last octet is here.
    pub last: bool,
}

/// What an MRW says about where the receiver goes on (§11.6.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeAt {
    /// SN_MRW_LENGTH.
    pub sn: Sn,
    pub nlength: u8,
}

/// What becomes of the rest of an SDU, if there is room for so many octets of data and indicators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// It goes on in the next PDU.
    GoesOn,
    /// It ends, and its indicator says so.
    Ends,
    /// It ends with the PDU; the next one has to say so.
    EndsExactly,
    /// It ends one octet before the end of the PDU, which a 15-bit indicator does not fit; the next one says so.
    EndsOneShort,
}

impl Fit {
    /// In a PDU that has so many `indicators` already. None: the SDU would have the last indicator, and what is behind
    /// its end would need one more.
    const fn of(rest: usize, room: usize, indicator: usize, indicators: usize) -> Option<Self> {
        match room.checked_sub(rest) {
            None => Some(Self::GoesOn),
            Some(0) => Some(Self::EndsExactly),
            Some(left) if left < indicator => Some(Self::EndsOneShort),
            Some(left) if left >= 2 * indicator && indicators + 1 == MOST_INDICATORS => None,
            Some(_) => Some(Self::Ends),
        }
    }
}

impl<Id: Copy + PartialEq> Cut<Id> {
    /// Where the receiver goes on if the SDU that ends at `index` of `ended` is the last that is discarded.
    pub fn resume_after(&self, index: usize) -> ResumeAt {
        // LI 0 tells of an SDU that this PDU carries nothing of.
        let nothing_follows = self.carried.last().is_none_or(|carried| carried.id == self.ended[index]);
        if nothing_follows {
            ResumeAt { sn: self.amd.sn.next(), nlength: 0 }
        } else {
            ResumeAt { sn: self.amd.sn, nlength: index as u8 + 1 }
        }
    }
}

impl<Id: Copy + PartialEq> Segmenter<Id> {
    pub fn new(format: Format) -> Self {
        Self { format, waiting: VecDeque::new(), sent: 0, octets: 0, unsaid: None }
    }

    /// # Panics
    ///
    /// If the SDU is empty: no length indicator could tell where it ends.
    pub fn push(&mut self, id: Id, octets: Vec<u8>) {
        assert!(!octets.is_empty(), "an SDU of 0 octets");
        self.octets += octets.len();
        self.waiting.push_back(Sdu { id, octets });
    }

    /// Whether `cut` has something to give.
    pub fn has_next(&self) -> bool {
        !self.waiting.is_empty() || self.unsaid.is_some()
    }

    /// Octets of SDUs that no PDU carries yet.
    pub const fn octets(&self) -> usize {
        self.octets
    }

    /// SDUs that have not ended in a PDU.
    pub fn sdus(&self) -> usize {
        self.waiting.len()
    }

    /// How many PDUs `cut` has to give now, counted up to `most`.
    pub fn ready(&self, most: usize) -> usize {
        let indicator = self.format.li_octets();
        let mut rests = self.waiting.iter().map(|sdu| sdu.octets.len());
        let mut rest = rests.next().map(|octets| octets - self.sent);
        let mut unsaid = self.unsaid.is_some();
        let mut pdus = 0;
        while pdus < most && (rest.is_some() || unsaid) {
            pdus += 1;
            let mut ends = usize::from(unsaid);
            let mut room = self.format.body() - ends * indicator;
            unsaid = false;
            while let Some(octets) = rest.filter(|_| room >= indicator) {
                let Some(fit) = Fit::of(octets, room, indicator, ends) else { break };
                if fit == Fit::GoesOn {
                    rest = Some(octets - room);
                    break;
                }
                rest = rests.next();
                if fit != Fit::Ends {
                    unsaid = fit == Fit::EndsOneShort || !(self.format.he_special && ends == 0);
                    break;
                }
                ends += 1;
                room -= octets + indicator;
            }
        }
        pdus
    }

    /// The SDU that has begun and not ended.
    pub fn partial(&self) -> Option<Id> {
        self.waiting.front().filter(|_| self.sent > 0).map(|sdu| sdu.id)
    }

    pub fn ids(&self) -> impl Iterator<Item = Id> {
        self.waiting.iter().map(|sdu| sdu.id)
    }

    /// The next PDU, filled as far as there are SDUs.
    pub fn cut(&mut self, sn: Sn) -> Option<Cut<Id>> {
        if !self.has_next() {
            return None;
        }
        let indicator = self.format.li_octets();
        let mut room = self.format.body();
        let mut cut = Cut {
            amd: Amd { sn, data: Vec::with_capacity(room), ..Amd::default() },
            carried: Vec::with_capacity(2),
            ended: Vec::new(),
            spare: 0,
        };
        if let Some((previous, id)) = self.unsaid.take() {
            cut.amd.previous = previous;
            cut.ended.push(id);
            room -= indicator;
        }

        // `room`: octets for data and for further indicators. With 15-bit indicators, what follows an SDU's end can be
        // a single octet: it stays unused (§9.2.2.8).
        while room >= indicator {
            let fits = self.waiting.front().and_then(|sdu| {
                let rest = &sdu.octets[self.sent..];
                Some((sdu.id, rest, Fit::of(rest.len(), room, indicator, cut.ended.len())?))
            });
            let Some((id, rest, fit)) = fits else {
                cut.amd.rest = Rest::Padding;
                cut.spare = room - indicator;
                break;
            };
            let taken = rest.len().min(room);
            cut.amd.data.extend(&rest[..taken]);
            cut.carried.push(Carried { id, first: self.sent == 0, last: fit != Fit::GoesOn });
            self.octets -= taken;
            if fit == Fit::GoesOn {
                self.sent += taken;
                break;
            }
            self.waiting.pop_front();
            self.sent = 0;
            match fit {
                Fit::Ends => {
                    cut.amd.ends.push(cut.amd.data.len() as u16);
                    cut.ended.push(id);
                    room -= taken + indicator;
                    continue;
                }
                Fit::EndsOneShort => {
                    cut.amd.data.push(0);
                    self.unsaid = Some((Previous::EndedOneShort, id));
                }
                // HE = 10 stands where HE = 01 would announce indicators.
                _ if self.format.he_special && cut.ended.is_empty() => {
                    cut.amd.rest = Rest::SduEnd;
                    cut.ended.push(id);
                }
                _ => self.unsaid = Some((Previous::EndedExactly, id)),
            }
            break;
        }
        Some(cut)
    }

    /// Takes back an SDU of which nothing was sent.
    pub fn remove_unsent(&mut self, id: Id) -> Option<Sdu<Id>> {
        let index = self.waiting.iter().position(|sdu| sdu.id == id)?;
        if index == 0 && self.sent > 0 {
            return None;
        }
        let sdu = self.waiting.remove(index)?;
        self.octets -= sdu.octets.len();
        Some(sdu)
    }

    /// Takes back every SDU up to and including `id`, the one that has begun too. Then the next PDU begins with an
    /// SDU, and an MRW sends the receiver there: SN_MRW_LENGTH = its number, NLENGTH = 0. Nothing happens if `id`
    /// does not wait here, except that its end need not be told any more.
    pub fn discard_through(&mut self, id: Id) -> Vec<Sdu<Id>> {
        let waits = self.waiting.iter().position(|sdu| sdu.id == id);
        if waits.is_some() || self.unsaid.as_ref().is_some_and(|(_, unsaid)| *unsaid == id) {
            self.unsaid = None;
        }
        let Some(index) = waits else { return Vec::new() };
        let discarded: Vec<_> = self.waiting.drain(..=index).collect();
        self.octets -= discarded.iter().map(|sdu| sdu.octets.len()).sum::<usize>() - self.sent;
        self.sent = 0;
        discarded
    }

    /// RESET (§11.4.3): gives up the SDU that has begun; those of which nothing was sent stay.
    pub fn reset(&mut self) -> Option<Sdu<Id>> {
        self.unsaid = None;
        if self.sent == 0 {
            return None;
        }
        let sdu = self.waiting.pop_front()?;
        self.octets -= sdu.octets.len() - self.sent;
        self.sent = 0;
        Some(sdu)
    }
}
