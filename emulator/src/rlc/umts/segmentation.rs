//! Segmentation and concatenation of SDUs into AMD PDUs of a fixed size (§9.2.2.8, §9.2.2.9, §11.3.2).
//!
//! Choice: an AMD PDU is filled when it is about to be sent, not when SDUs come from the upper layer. So it carries as
//! much as there is by then, and VT(S) is the only PDU that can still change.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::codec::Format;
use super::pdu::{Amd, Previous, Rest, Sn};

/// §9.2.2.8: with "SDU discard with explicit signalling", at most 15 "Length Indicators" indicate ends of SDUs in one
/// AMD PDU, since NLENGTH has four bits. Choice: so it is in all modes, and padding gets no 16th indicator, which the
/// standard allows but Wireshark calls malformed.
const MOST_INDICATORS: usize = 15;

/// SDUs that wait for AMD PDUs. `Id` is the owner's name for an SDU.
#[derive(Clone, Debug)]
pub(crate) struct Segmenter<Id> {
    format: Format,
    /// The first one may have been sent in part.
    waiting: VecDeque<Sdu<Id>>,
    /// Octets of the first one that PDUs carry already.
    sent: usize,
    /// An SDU whose end the next PDU has to tell, since the one with its last octet had no room to.
    unsaid: Option<(Previous, Id)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sdu<Id> {
    pub(crate) id: Id,
    pub(crate) octets: Vec<u8>,
}

/// An AMD PDU, and what it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut<Id> {
    pub(crate) amd: Amd,
    /// The SDUs that it carries octets of, in order.
    pub(crate) carried: Vec<Carried<Id>>,
    /// The SDUs whose end it tells, in order. The (i + 1)-th "Length Indicator" is that of the SDU at index i; the
    /// first may be of an SDU that it carries nothing of (LI 0). With HE = 10 there is one SDU, and no indicator.
    pub(crate) ended: Vec<Id>,
    /// Octets of padding after its "Length Indicator", which a piggybacked STATUS PDU may use (§9.2.2.8).
    pub(crate) spare: usize,
}

/// An SDU, or a segment of it, in an AMD PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried<Id> {
    pub(crate) id: Id,
    /// Whether its first octet is here.
    pub(crate) first: bool,
    /// Whether its last octet is here.
    pub(crate) last: bool,
}

/// Where an MRW has the Receiver resume (§11.6.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResumeAt {
    /// SN_MRW_LENGTH.
    pub(crate) sn: Sn,
    pub(crate) nlength: u8,
}

/// How the rest of an SDU fits the room in a PDU.
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
    /// `rest` octets of an SDU in `room` octets, which are for data and indicators; a "Length Indicator" takes
    /// `indicator` octets, and the PDU has `indicators` of them. `None`: it does not fit, since it would take the 15th
    /// indicator and what is behind its end would need another.
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
    /// §11.6.2.2, if the SDU at `index` of `ended` is the last one to be discarded: with no new SDU in this AMD PDU,
    /// SN_MRW_LENGTH is the next number and NLENGTH = 0. Otherwise SN_MRW_LENGTH is this PDU, and NLENGTH counts the
    /// indicators up to that SDU's.
    pub(crate) fn resume_after(&self, index: usize) -> ResumeAt {
        // With LI 0 alone it carries nothing.
        let nothing_follows = self.carried.last().is_none_or(|carried| carried.id == self.ended[index]);
        if nothing_follows {
            ResumeAt { sn: self.amd.sn.next(), nlength: 0 }
        } else {
            ResumeAt { sn: self.amd.sn, nlength: index as u8 + 1 }
        }
    }
}

impl<Id: Copy + PartialEq> Segmenter<Id> {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, waiting: VecDeque::new(), sent: 0, unsaid: None }
    }

    /// Takes an SDU from the upper layer.
    ///
    /// # Panics
    ///
    /// If it is empty: no "Length Indicator" could tell where it ends.
    pub(crate) fn push(&mut self, id: Id, octets: Vec<u8>) {
        assert!(!octets.is_empty(), "an SDU of 0 octets");
        self.waiting.push_back(Sdu { id, octets });
    }

    /// Whether [`cut`](Self::cut) would return a PDU.
    pub(crate) fn has_next(&self) -> bool {
        !self.waiting.is_empty() || self.unsaid.is_some()
    }

    /// How many PDUs [`cut`](Self::cut) would return now, counted up to `most`.
    pub(crate) fn ready(&self, most: usize) -> usize {
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

    /// The next AMD PDU, filled as far as there are SDUs. `None`: there is nothing to send.
    pub(crate) fn cut(&mut self, sn: Sn) -> Option<Cut<Id>> {
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

        // `room` is for data and further indicators. §9.2.2.8: a single octet behind an SDU with a 15-bit indicator is
        // not filled.
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
                // §11.3.2: HE = 10 where there is no concatenation inside the PDU. With indicators HE is 01.
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

    /// Takes back an SDU of which nothing was sent. `None`: there is none with that name.
    pub(crate) fn remove_unsent(&mut self, id: Id) -> Option<Sdu<Id>> {
        let index = self.waiting.iter().position(|sdu| sdu.id == id)?;
        if index == 0 && self.sent > 0 {
            return None;
        }
        self.waiting.remove(index)
    }

    /// Discards every SDU up to and including `id`, also one that was sent in part (§11.6.2). Then the next AMD PDU
    /// begins with an SDU: an MRW with its number and NLENGTH = 0 sends the Receiver there. If `id` was sent
    /// completely, its end need not be told any more, and nothing else happens.
    pub(crate) fn discard_through(&mut self, id: Id) -> Vec<Sdu<Id>> {
        let waits = self.waiting.iter().position(|sdu| sdu.id == id);
        if waits.is_some() || self.unsaid.as_ref().is_some_and(|(_, unsaid)| *unsaid == id) {
            self.unsaid = None;
        }
        let Some(index) = waits else { return Vec::new() };
        self.sent = 0;
        self.waiting.drain(..=index).collect()
    }

    /// §11.4.3: discards the SDU that was sent in part. Those of which nothing was sent stay.
    pub(crate) fn reset(&mut self) -> Option<Sdu<Id>> {
        self.unsaid = None;
        if self.sent == 0 {
            return None;
        }
        self.sent = 0;
        self.waiting.pop_front()
    }
}
