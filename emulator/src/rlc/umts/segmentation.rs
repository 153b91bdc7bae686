//! Segmentation and concatenation of SDUs into AMD PDUs (§9.2.2.8, §9.2.2.9, §11.3.2).
//!
//! Choice: an AMD PDU is filled when it is about to be sent, not when SDUs come from the upper layer. So it carries as
//! much as there is by then, and VT(S) is the only PDU that can still change.
//!
//! With a fixed size a PDU has padding where SDUs leave room. With a flexible one it ends there. Choice: then SDUs are
//! concatenated up to the largest size, which §9.2.2.9 leaves open in the downlink: windows count PDUs.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::VecDeque;

use super::codec::{Format, Sizing};
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
    /// What an earlier PDU was cut into.
    worn: Option<Cut<Id>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sdu<Id> {
    pub(crate) id: Id,
    pub(crate) octets: Vec<u8>,
}

/// An AMD PDU, and what it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut<Id> {
    pub(crate) amd: Amd<'static>,
    /// The SDUs that it carries octets of, in order.
    pub(crate) carried: Vec<Carried<Id>>,
    /// The SDUs whose end it tells, in order. The (i + 1)-th "Length Indicator" is that of the SDU at index i; the
    /// first may be of an SDU that it carries nothing of (LI 0). With HE = 10 there is one SDU, and no indicator.
    pub(crate) ended: Vec<Id>,
    /// Octets behind the data and one more "Length Indicator", which a piggybacked STATUS PDU may use (§9.2.2.8): padding,
    /// or where the size is flexible what is left up to the largest (§9.2.1.6).
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
    /// It goes on in the next PDU, after so many octets.
    GoesOn(usize),
    /// It ends, and its indicator says so.
    Ends,
    /// It ends with the PDU, and HE = 10 says so.
    EndsByHe,
    /// It ends with the PDU; the next one has to say so.
    EndsExactly,
    /// It ends one octet before the end of the PDU, which a 15-bit indicator does not fit; the next one says so.
    EndsOneShort,
}

/// Where the rest of an SDU comes to lie.
#[derive(Clone, Copy)]
struct Place {
    /// Octets of the PDU that are left for data and indicators.
    room: usize,
    /// "Length Indicators" that it has already.
    indicators: usize,
    /// Whether another SDU waits behind.
    more: bool,
}

impl Fit {
    /// `rest` octets of an SDU. `None`: they do not fit, and the PDU ends before them.
    const fn of(rest: usize, place: Place, format: Format) -> Option<Self> {
        let Some(left) = place.room.checked_sub(rest) else { return Some(Self::GoesOn(place.room)) };
        match format.sizing {
            Sizing::Fixed => Self::in_fixed(left, place, format),
            Sizing::Flexible(_) => Self::in_flexible(rest, left, place, format),
        }
    }

    /// It leaves `left` octets of a PDU of a fixed size. It does not fit if it would take the 15th indicator and what is
    /// behind its end would need another.
    const fn in_fixed(left: usize, place: Place, format: Format) -> Option<Self> {
        let indicator = format.li_octets();
        match left {
            // §11.3.2: HE = 10 where there is no concatenation inside the PDU. With indicators HE is 01.
            0 if format.he_special && place.indicators == 0 => Some(Self::EndsByHe),
            0 => Some(Self::EndsExactly),
            _ if left < indicator => Some(Self::EndsOneShort),
            _ if left >= 2 * indicator && place.indicators + 1 == MOST_INDICATORS => None,
            _ => Some(Self::Ends),
        }
    }

    /// It leaves `left` octets up to the largest size, and the PDU may end before that.
    ///
    /// Choice: where an SDU fits and its indicator does not, its last octet goes into the next PDU, which can say the end.
    /// "Length Indicator" 0 would do as well; but if nothing else came, it would be alone in a PDU without data.
    const fn in_flexible(rest: usize, left: usize, place: Place, format: Format) -> Option<Self> {
        let indicator = format.li_octets();
        let nothing_follows = !place.more || left < 2 * indicator;
        if place.indicators == MOST_INDICATORS {
            return None;
        }
        if format.he_special && place.indicators == 0 && nothing_follows {
            return Some(Self::EndsByHe);
        }
        match left {
            // A single octet behind a 15-bit indicator would count as padding.
            _ if left < indicator && rest <= indicator => None,
            _ if left < indicator => Some(Self::GoesOn(rest - 1)),
            _ => Some(Self::Ends),
        }
    }
}

impl<Id: Copy + PartialEq> Cut<Id> {
    /// Empty, with space for a PDU with so many octets behind its header.
    fn new(room: usize) -> Self {
        let amd = Amd { data: Cow::Owned(Vec::with_capacity(room)), ..Amd::default() };
        Self { amd, carried: Vec::with_capacity(2), ended: Vec::new(), spare: 0 }
    }

    /// Empty, with the space that it has.
    fn emptied(self) -> Self {
        let Self { amd: Amd { data, mut ends, .. }, mut carried, mut ended, .. } = self;
        let mut data = data.into_owned();
        data.clear();
        ends.clear();
        carried.clear();
        ended.clear();
        Self { amd: Amd { data: Cow::Owned(data), ends, ..Amd::default() }, carried, ended, spare: 0 }
    }

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
        Self { format, waiting: VecDeque::new(), sent: 0, unsaid: None, worn: None }
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
        let mut rests = self.waiting.iter().map(|sdu| sdu.octets.len()).peekable();
        let mut rest = rests.next().map(|octets| octets - self.sent);
        let mut unsaid = self.unsaid.is_some();
        let mut pdus = 0;
        while pdus < most && (rest.is_some() || unsaid) {
            pdus += 1;
            let mut ends = usize::from(unsaid);
            let mut room = self.format.body() - ends * indicator;
            unsaid = false;
            while let Some(octets) = rest.filter(|_| room >= indicator) {
                let place = Place { room, indicators: ends, more: rests.peek().is_some() };
                let Some(fit) = Fit::of(octets, place, self.format) else { break };
                if let Fit::GoesOn(taken) = fit {
                    rest = Some(octets - taken);
                    break;
                }
                rest = rests.next();
                if fit != Fit::Ends {
                    unsaid = fit != Fit::EndsByHe;
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
        let mut cut = self.worn.take().map_or_else(|| Cut::new(room), Cut::emptied);
        cut.amd.sn = sn;
        if let Some((previous, id)) = self.unsaid.take() {
            cut.amd.previous = previous;
            cut.ended.push(id);
            room -= indicator;
        }

        // `room` is for data and further indicators. §9.2.2.8: a single octet behind an SDU with a 15-bit indicator is
        // not filled.
        while room >= indicator {
            let place = Place { room, indicators: cut.ended.len(), more: self.waiting.len() > 1 };
            let fits = self.waiting.front().and_then(|sdu| {
                let rest = &sdu.octets[self.sent..];
                Some((sdu.id, rest, Fit::of(rest.len(), place, self.format)?))
            });
            let Some((id, rest, fit)) = fits else {
                if self.format.is_fixed() {
                    cut.amd.rest = Rest::Padding;
                }
                if cut.ended.len() < MOST_INDICATORS {
                    cut.spare = room - indicator;
                }
                break;
            };
            let (taken, last) = match fit {
                Fit::GoesOn(taken) => (taken, false),
                _ => (rest.len(), true),
            };
            cut.amd.data.to_mut().extend_from_slice(&rest[..taken]);
            cut.carried.push(Carried { id, first: self.sent == 0, last });
            self.sent += taken;
            if last {
                self.waiting.pop_front();
                self.sent = 0;
            }
            match fit {
                Fit::GoesOn(_) => {}
                Fit::Ends => {
                    cut.amd.ends.push(cut.amd.data.len() as u16);
                    cut.ended.push(id);
                    room -= taken + indicator;
                    continue;
                }
                Fit::EndsOneShort => {
                    cut.amd.data.to_mut().push(0);
                    self.unsaid = Some((Previous::EndedOneShort, id));
                }
                Fit::EndsByHe => {
                    cut.amd.rest = Rest::SduEnd;
                    cut.ended.push(id);
                }
                Fit::EndsExactly => self.unsaid = Some((Previous::EndedExactly, id)),
            }
            break;
        }
        Some(cut)
    }

    /// Takes back what nobody looks at any more: the next PDU is cut into the same memory.
    pub(crate) fn reuse(&mut self, cut: Cut<Id>) {
        self.worn = Some(cut);
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
