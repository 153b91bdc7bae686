//! Segmentation and concatenation of SDUs into AMD PDUs (§9.2.2.8, §9.2.2.9, §11.3.2).
//!
//! Choice: an AMD PDU is filled when it is about to be sent, not when SDUs arrive from the upper layer. So it
//! carries all data that is available by then, and VT(S) is the only PDU that can still change.
//!
//! With a fixed size, a PDU has padding after the last SDU. With a flexible size, the PDU ends with the SDU.
//! Choice: PDUs of flexible size concatenate SDUs up to the maximum size, because windows count PDUs.
//! §9.2.2.9 leaves this open in the downlink.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::VecDeque;

use super::codec::{Format, Sizing};
use super::pdu::{Amd, Previous, Rest, Sn};

/// §9.2.2.8: with "SDU discard with explicit signalling", at most 15 Length Indicators indicate ends of SDUs
/// in one AMD PDU, because NLENGTH has four bits. Choice: this limit applies in all modes, and padding does
/// not get a 16th indicator. The standard allows it, but Wireshark reports it as malformed.
const MAX_INDICATORS: usize = 15;

/// SDUs that wait for AMD PDUs. `Id` is the owner's identifier of an SDU.
#[derive(Clone, Debug)]
pub(crate) struct Segmenter<Id> {
    format: Format,
    /// The first SDU may have been sent in part.
    waiting: VecDeque<Sdu<Id>>,
    /// Number of bytes of the first SDU that PDUs already carry.
    sent: usize,
    /// The SDU whose end the next PDU must indicate, because the PDU with its last byte had no room for a
    /// Length Indicator.
    unindicated: Option<(Previous, Id)>,
    /// An earlier PDU whose memory can be reused.
    reusable: Option<Box<SegmentedPdu<Id>>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sdu<Id> {
    pub(crate) id: Id,
    pub(crate) octets: Vec<u8>,
}

/// An AMD PDU and its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentedPdu<Id> {
    pub(crate) amd: Amd<'static>,
    /// SDUs that have data in the PDU, in order.
    pub(crate) carried: Vec<Carried<Id>>,
    /// SDUs whose end the PDU indicates, in order. The (i + 1)-th Length Indicator belongs to the SDU at
    /// index i. The first one may belong to an SDU without data in this PDU (LI 0). With HE = 10 there is one
    /// SDU, and no indicator.
    pub(crate) ended: Vec<Id>,
    /// Number of bytes after the data and one more Length Indicator that a piggybacked STATUS PDU may use
    /// (§9.2.2.8). They are padding or, if the size is flexible, the space up to the maximum size (§9.2.1.6).
    pub(crate) piggyback_room: usize,
}

/// An SDU or a segment of an SDU, in an AMD PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried<Id> {
    pub(crate) id: Id,
    /// Whether the PDU contains the first byte of the SDU.
    pub(crate) first: bool,
    /// Whether the PDU contains the last byte of the SDU.
    pub(crate) last: bool,
}

/// Position at which the Receiver continues after an MRW (§11.6.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResumeAt {
    /// SN_MRW_LENGTH.
    pub(crate) sn: Sn,
    pub(crate) nlength: u8,
}

/// How the rest of an SDU fits in a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// The SDU continues in the next PDU, after this number of bytes.
    Continues(usize),
    /// The SDU ends, and an indicator in this PDU marks its end.
    Ends,
    /// The SDU ends with the PDU, and HE = 10 indicates this.
    EndsByHe,
    /// The SDU ends with the PDU. The next PDU must indicate this.
    EndsExactly,
    /// The SDU ends one byte before the end of the PDU, where a 15-bit indicator does not fit. The next PDU
    /// must indicate this.
    EndsOneShort,
}

/// The space for the rest of an SDU in a PDU.
#[derive(Clone, Copy)]
struct Space {
    /// Number of bytes left in the PDU for data and indicators.
    room: usize,
    /// Number of Length Indicators that the PDU already has.
    indicators: usize,
    /// Whether another SDU waits after this one.
    more: bool,
}

impl Fit {
    /// Returns how `rest` bytes of an SDU fit. `None`: the bytes do not fit, and the PDU ends with the
    /// previous SDU.
    const fn of(rest: usize, space: Space, format: Format) -> Option<Self> {
        let Some(left) = space.room.checked_sub(rest) else { return Some(Self::Continues(space.room)) };
        match format.sizing {
            Sizing::Fixed => Self::in_fixed(left, space, format),
            Sizing::Flexible(_) => Self::in_flexible(rest, left, space, format),
        }
    }

    /// Returns the fit of an SDU that leaves `left` bytes of a PDU of a fixed size. The SDU does not fit if
    /// its end takes the 15th indicator and the padding requires another one.
    const fn in_fixed(left: usize, space: Space, format: Format) -> Option<Self> {
        let indicator = format.li_octets();
        match left {
            // §11.3.2: HE is 10 if the PDU does not concatenate SDUs. With indicators, HE is 01.
            0 if format.he_special && space.indicators == 0 => Some(Self::EndsByHe),
            0 => Some(Self::EndsExactly),
            _ if left < indicator => Some(Self::EndsOneShort),
            _ if left >= 2 * indicator && space.indicators + 1 == MAX_INDICATORS => None,
            _ => Some(Self::Ends),
        }
    }

    /// Returns the fit of an SDU that leaves `left` bytes up to the maximum size. The PDU may end before
    /// that.
    ///
    /// Choice: if an SDU fits but its indicator does not, the next PDU carries its last byte and indicates the
    /// end. A Length Indicator of 0 would also work, but without further SDUs it would be alone in a PDU without
    /// data.
    const fn in_flexible(rest: usize, left: usize, space: Space, format: Format) -> Option<Self> {
        let indicator = format.li_octets();
        let nothing_follows = !space.more || left < 2 * indicator;
        if space.indicators == MAX_INDICATORS {
            return None;
        }
        if format.he_special && space.indicators == 0 && nothing_follows {
            return Some(Self::EndsByHe);
        }
        match left {
            // A single byte after a 15-bit indicator would count as padding.
            _ if left < indicator && rest <= indicator => None,
            _ if left < indicator => Some(Self::Continues(rest - 1)),
            _ => Some(Self::Ends),
        }
    }
}

impl<Id: Copy + PartialEq> SegmentedPdu<Id> {
    /// Creates an empty PDU with memory for `room` bytes after the header.
    fn new(room: usize) -> Self {
        let amd = Amd { data: Cow::Owned(Vec::with_capacity(room)), ..Amd::default() };
        Self { amd, carried: Vec::with_capacity(2), ended: Vec::new(), piggyback_room: 0 }
    }

    /// Empties the PDU, but keeps its memory.
    fn clear(&mut self) {
        let Amd { previous, ends, data, rest, .. } = &mut self.amd;
        *previous = Previous::NotIndicated;
        ends.clear();
        data.to_mut().clear();
        *rest = Rest::Nothing;
        self.carried.clear();
        self.ended.clear();
        self.piggyback_room = 0;
    }

    /// Position at which the Receiver continues if the SDU at `index` of `ended` is the last one to be
    /// discarded (§11.6.2.2). If this AMD PDU does not contain a new SDU, SN_MRW_LENGTH is the next SN and
    /// NLENGTH = 0. Otherwise SN_MRW_LENGTH is this PDU, and NLENGTH counts the indicators up to the one of
    /// that SDU.
    pub(crate) fn resume_after(&self, index: usize) -> ResumeAt {
        // A PDU with only LI 0 carries no data.
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
        Self { format, waiting: VecDeque::new(), sent: 0, unindicated: None, reusable: None }
    }

    /// Takes an SDU from the upper layer.
    ///
    /// # Panics
    ///
    /// If the SDU is empty, because no Length Indicator could indicate its end.
    pub(crate) fn push(&mut self, id: Id, octets: Vec<u8>) {
        assert!(!octets.is_empty(), "an SDU of 0 octets");
        self.waiting.push_back(Sdu { id, octets });
    }

    /// Whether [`next_pdu`](Self::next_pdu) would return a PDU.
    pub(crate) fn has_next(&self) -> bool {
        !self.waiting.is_empty() || self.unindicated.is_some()
    }

    /// Number of PDUs that [`next_pdu`](Self::next_pdu) would return now, but at most `most`.
    pub(crate) fn ready(&self, most: usize) -> usize {
        let (indicator, body) = (self.format.li_octets(), self.format.body());
        let mut rests = self.waiting.iter().map(|sdu| sdu.octets.len()).peekable();
        let mut rest = rests.next().map(|octets| octets - self.sent);
        let mut unindicated = self.unindicated.is_some();
        let mut pdus = 0;
        while pdus < most && (rest.is_some() || unindicated) {
            if let Some(octets) = rest.filter(|octets| *octets > body && !unindicated) {
                let full = ((octets - 1) / body).min(most - pdus);
                pdus += full;
                rest = Some(octets - full * body);
                continue;
            }
            pdus += 1;
            let mut ends = usize::from(unindicated);
            let mut room = body - ends * indicator;
            unindicated = false;
            while let Some(octets) = rest.filter(|_| room >= indicator) {
                let space = Space { room, indicators: ends, more: rests.peek().is_some() };
                let Some(fit) = Fit::of(octets, space, self.format) else { break };
                if let Fit::Continues(taken) = fit {
                    rest = Some(octets - taken);
                    break;
                }
                rest = rests.next();
                if fit != Fit::Ends {
                    unindicated = fit != Fit::EndsByHe;
                    break;
                }
                ends += 1;
                room -= octets + indicator;
            }
        }
        pdus
    }

    /// Returns the data of the next AMD PDU if one SDU fills it and continues in another PDU. Such a PDU has no
    /// Length Indicators. Most PDUs of a packet are like this.
    pub(crate) fn next_segment(&mut self) -> Option<(Carried<Id>, &[u8])> {
        let sdu = self.waiting.front().filter(|_| self.unindicated.is_none())?;
        let from = self.sent;
        let to = from + self.format.body();
        if to >= sdu.octets.len() {
            return None;
        }
        self.sent = to;
        Some((Carried { id: sdu.id, first: from == 0, last: false }, &sdu.octets[from..to]))
    }

    /// Returns the next AMD PDU, filled with the available SDUs. `None` if there is nothing to send.
    pub(crate) fn next_pdu(&mut self, sn: Sn) -> Option<Box<SegmentedPdu<Id>>> {
        if !self.has_next() {
            return None;
        }
        let indicator = self.format.li_octets();
        let mut room = self.format.body();
        let mut pdu = self.reusable.take().unwrap_or_else(|| Box::new(SegmentedPdu::new(room)));
        pdu.clear();
        pdu.amd.sn = sn;
        if let Some((previous, id)) = self.unindicated.take() {
            pdu.amd.previous = previous;
            pdu.ended.push(id);
            room -= indicator;
        }

        // `room` is the space for data and further indicators. §9.2.2.8: a single byte after an SDU with a
        // 15-bit indicator is not filled.
        while room >= indicator {
            let space = Space { room, indicators: pdu.ended.len(), more: self.waiting.len() > 1 };
            let fits = self.waiting.front().and_then(|sdu| {
                let rest = &sdu.octets[self.sent..];
                Some((sdu.id, rest, Fit::of(rest.len(), space, self.format)?))
            });
            let Some((id, rest, fit)) = fits else {
                if self.format.is_fixed() {
                    pdu.amd.rest = Rest::Padding;
                }
                if pdu.ended.len() < MAX_INDICATORS {
                    pdu.piggyback_room = room - indicator;
                }
                break;
            };
            let (taken, last) = match fit {
                Fit::Continues(taken) => (taken, false),
                _ => (rest.len(), true),
            };
            pdu.amd.data.to_mut().extend_from_slice(&rest[..taken]);
            pdu.carried.push(Carried { id, first: self.sent == 0, last });
            self.sent += taken;
            if last {
                self.waiting.pop_front();
                self.sent = 0;
            }
            match fit {
                Fit::Continues(_) => {}
                Fit::Ends => {
                    pdu.amd.ends.push(pdu.amd.data.len() as u16);
                    pdu.ended.push(id);
                    room -= taken + indicator;
                    continue;
                }
                Fit::EndsOneShort => {
                    pdu.amd.data.to_mut().push(0);
                    self.unindicated = Some((Previous::EndedOneShort, id));
                }
                Fit::EndsByHe => {
                    pdu.amd.rest = Rest::SduEnd;
                    pdu.ended.push(id);
                }
                Fit::EndsExactly => self.unindicated = Some((Previous::EndedExactly, id)),
            }
            break;
        }
        Some(pdu)
    }

    /// Takes back a PDU that is no longer needed. The next one reuses its memory.
    pub(crate) fn reuse(&mut self, pdu: Box<SegmentedPdu<Id>>) {
        self.reusable = Some(pdu);
    }

    /// Removes an SDU whose transmission has not begun. `None` if such an SDU does not exist.
    pub(crate) fn remove_unsent(&mut self, id: Id) -> Option<Sdu<Id>> {
        let index = self.waiting.iter().position(|sdu| sdu.id == id)?;
        if index == 0 && self.sent > 0 {
            return None;
        }
        self.waiting.remove(index)
    }

    /// Discards every SDU up to and including `id`, even if it was sent in part (§11.6.2). The next AMD PDU
    /// then begins with an SDU, and an MRW with its SN and NLENGTH = 0 moves the Receiver there. If `id` was
    /// sent completely, its end is no longer indicated, and nothing else changes.
    pub(crate) fn discard_through(&mut self, id: Id) -> Vec<Sdu<Id>> {
        let waits = self.waiting.iter().position(|sdu| sdu.id == id);
        if waits.is_some() || self.unindicated.as_ref().is_some_and(|(_, unindicated)| *unindicated == id) {
            self.unindicated = None;
        }
        let Some(index) = waits else { return Vec::new() };
        self.sent = 0;
        self.waiting.drain(..=index).collect()
    }

    /// Discards the SDU that was sent in part (§11.4.3). SDUs whose transmission has not begun remain.
    pub(crate) fn reset(&mut self) -> Option<Sdu<Id>> {
        self.unindicated = None;
        if self.sent == 0 {
            return None;
        }
        self.sent = 0;
        self.waiting.pop_front()
    }
}
