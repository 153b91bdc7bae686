//! How blocks are written: as MAC-hs does, or as MAC-ehs where RLC PDUs have a flexible size (TS 25.321 §9.1.4, §9.2.2).
//!
//! MAC-hs puts whole PDUs of one size into a block. MAC-ehs takes PDUs of any size, and a PDU that does not fit goes on in the
//! next block: then Segmentation Indication (SI) says that the first or the last of what a block has ("reordering SDUs") is a
//! part of a PDU.

use super::cqi::Cqi;
use crate::rlc::umts::config::FormatConfig;
use crate::rlc::umts::entity::Room;

/// VF, Queue ID, TSN, SID, N and F of MAC-hs.
const HS_HEADER: usize = 21;
/// "The maximum number of PDUs transmitted in a single TTI" for FDD, by the note on N (TS 25.321 §9.2.2).
const HS_MOST: usize = 70;
/// TSN and SI of MAC-ehs, once in a block: a mobile has one queue here.
const EHS_HEADER: usize = 8;
/// LCH-ID, L and F of MAC-ehs, in octets, for each reordering SDU.
const EHS_EACH: usize = 2;
/// Reordering SDUs in a block of MAC-ehs, at most (TS 25.321 §9.1.4).
const EHS_MOST: usize = 26;

/// What a block takes, and how large it is with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// MAC-hs.
    Hs {
        /// Octets of every PDU.
        pdu: usize,
    },
    /// MAC-ehs.
    Ehs {
        /// Octets of the largest PDU.
        most: usize,
    },
}

impl Framing {
    /// What RLC PDUs of this format need.
    pub fn of(format: &FormatConfig) -> Self {
        match format.flexible {
            None => Self::Hs { pdu: format.most() },
            Some(_) => Self::Ehs { most: format.most() },
        }
    }

    /// Octets of PDUs that a block takes, at most.
    pub fn octets(self, cqi: Cqi) -> usize {
        match self {
            Self::Hs { pdu } => self.pdus(cqi) * pdu,
            Self::Ehs { .. } => ehs_octets(cqi).saturating_sub(EHS_EACH),
        }
    }

    /// How many PDUs of the full size a block takes.
    pub fn pdus(self, cqi: Cqi) -> usize {
        match self {
            Self::Hs { pdu } => (usize::from(cqi.block()).saturating_sub(HS_HEADER) / (8 * pdu)).min(HS_MOST),
            Self::Ehs { most } => ehs_octets(cqi) / (EHS_EACH + most),
        }
    }

    /// The same for RLC. `waiting`: octets of parts that go first.
    pub(super) fn room(self, cqi: Cqi, waiting: impl Iterator<Item = usize>) -> Room {
        match self {
            Self::Hs { .. } => Room::Pdus(self.pdus(cqi)),
            Self::Ehs { .. } => {
                let (mut octets, mut pdus) = (ehs_octets(cqi), EHS_MOST);
                for part in waiting {
                    octets = octets.saturating_sub(EHS_EACH + part);
                    pdus = pdus.saturating_sub(1);
                }
                // A part has an octet at least.
                if octets <= EHS_EACH {
                    octets = 0;
                }
                Room::Octets { octets, header: EHS_EACH, pdus }
            }
        }
    }

    /// How much of the next PDU, of which so many octets are left, goes into a block behind these parts. 0: nothing.
    pub(super) fn takes(self, cqi: Cqi, parts: &[Vec<u8>], left: usize) -> usize {
        match self {
            Self::Hs { .. } if parts.len() < self.pdus(cqi) => left,
            Self::Ehs { .. } if parts.len() < EHS_MOST => {
                let taken: usize = parts.iter().map(|part| EHS_EACH + part.len()).sum();
                ehs_octets(cqi).saturating_sub(taken + EHS_EACH).min(left)
            }
            Self::Hs { .. } | Self::Ehs { .. } => 0,
        }
    }

    /// The smallest block that takes these parts, up to `most`.
    pub(super) fn smallest(self, parts: &[Vec<u8>], most: Cqi) -> Cqi {
        let bits = match self {
            Self::Hs { pdu } => HS_HEADER + parts.len() * 8 * pdu,
            Self::Ehs { .. } => {
                EHS_HEADER + parts.iter().map(|part| 8 * (EHS_EACH + part.len())).sum::<usize>()
            }
        };
        Cqi::for_bits(bits, most)
    }
}

/// Octets of a block of MAC-ehs behind TSN and SI.
fn ehs_octets(cqi: Cqi) -> usize {
    usize::from(cqi.block()).saturating_sub(EHS_HEADER) / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cqi(number: u8) -> Cqi {
        let at_least = |cqi: &Cqi| cqi.get() >= number;
        (-160..400).map(|tenths| Cqi::of(f64::from(tenths) / 10.0)).find(at_least).unwrap()
    }

    #[test]
    fn blocks_of_mac_hs_take_what_fits_behind_their_header() {
        let hs = Framing::Hs { pdu: 42 };
        // 21 · 336 + 21 = 7077, 22 · 336 + 21 = 7413.
        assert_eq!((hs.pdus(cqi(22)), hs.octets(cqi(22))), (21, 21 * 42));
        assert_eq!([1, 4, 5, 7, 8].map(|number| hs.pdus(cqi(number))), [0, 0, 1, 1, 2]);
        assert_eq!(hs.pdus(cqi(30)), 70, "76 would fit");
        assert_eq!(hs.room(cqi(22), std::iter::empty()), Room::Pdus(21));
        let pdus = |count| vec![vec![0; 42]; count];
        assert_eq!([1, 21].map(|count| hs.smallest(&pdus(count), cqi(30)).get()), [5, 22]);
        assert_eq!(hs.takes(cqi(5), &[], 42), 42);
        assert_eq!(hs.takes(cqi(5), &pdus(1), 42), 0);
    }

    #[test]
    fn blocks_of_mac_ehs_take_any_octets_behind_a_header_for_each() {
        let ehs = Framing::Ehs { most: 1505 };
        // CQI 1: 137 bits are 17 octets; one for TSN and SI, two for LCH-ID, L and F.
        assert_eq!((ehs.octets(cqi(1)), ehs.pdus(cqi(1))), (14, 0));
        assert_eq!(ehs.octets(Cqi::of(-40.0)), 0);
        // 7168 bits are 896 octets.
        assert_eq!(ehs.octets(cqi(22)), 893);
        assert_eq!((ehs.octets(cqi(30)), ehs.pdus(cqi(30))), (3191, 2));
        let room = |octets, pdus| Room::Octets { octets, header: 2, pdus };
        assert_eq!(ehs.room(cqi(22), std::iter::empty()), room(895, 26));
        assert_eq!(ehs.room(cqi(22), [500].into_iter()), room(393, 25));
        assert_eq!(ehs.room(cqi(22), [891].into_iter()), room(0, 25), "no octet fits behind another header");
        assert_eq!(ehs.takes(cqi(22), &[vec![0; 500]], 1505), 391);
        assert_eq!(ehs.takes(cqi(22), &[vec![0; 500]], 30), 30);
        assert_eq!(ehs.takes(cqi(22), &[vec![0; 891]], 30), 0);
        assert_eq!(ehs.takes(cqi(22), &vec![vec![0; 1]; 26], 30), 0, "no more than 26");
        // 893 octets need all of 896; 9 more bits need the next block.
        assert_eq!(ehs.smallest(&[vec![0; 893]], cqi(30)).get(), 22);
        assert_eq!(ehs.smallest(&[vec![0; 894]], cqi(30)).get(), 23);
        assert_eq!(ehs.smallest(&[vec![0; 446], vec![0; 445]], cqi(30)).get(), 22);
        assert_eq!(ehs.smallest(&[vec![0; 446], vec![0; 446]], cqi(30)).get(), 23);
    }
}
