//! Format of blocks: MAC-hs, or MAC-ehs if RLC PDUs have a flexible size (TS 25.321 §9.1.4, §9.2.2).
//!
//! MAC-hs puts complete PDUs of one size into a block. MAC-ehs accepts PDUs of any size. A PDU that does not
//! fit first_segmented in the next block. In that case, the Segmentation Indication (SI) shows that the first or
//! the last "reordering SDU" of a block is a part of a PDU.

use super::cqi::Cqi;
use crate::rlc::umts::capacity::Room;
use crate::rlc::umts::config::FormatConfig;

/// Bits of VF, Queue ID, TSN, SID, N and F in MAC-hs.
const HS_HEADER: usize = 21;
/// "The maximum number of PDUs transmitted in a single TTI" for FDD, from the note on N (TS 25.321 §9.2.2).
const HS_MAX_PDUS: usize = 70;
/// Bits of TSN and SI in MAC-ehs. They occur once per block, because a mobile has one queue.
const EHS_HEADER: usize = 8;
/// Bytes of LCH-ID, L and F in MAC-ehs, for each reordering SDU.
const EHS_SDU_HEADER: usize = 2;
/// Maximum number of reordering SDUs in a MAC-ehs block (TS 25.321 §9.1.4).
const EHS_MAX_SDUS: usize = 26;

/// Format of a block, which determines its capacity and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// MAC-hs.
    Hs {
        /// Size of every PDU in bytes.
        pdu: usize,
    },
    /// MAC-ehs.
    Ehs {
        /// Maximum size of a PDU in bytes.
        most: usize,
    },
}

impl Framing {
    /// Returns the framing for RLC PDUs of this format.
    pub fn of(format: &FormatConfig) -> Self {
        match format.flexible {
            None => Self::Hs { pdu: format.max_pdu() },
            Some(_) => Self::Ehs { most: format.max_pdu() },
        }
    }

    /// Maximum number of PDU bytes in a block.
    pub fn octets(self, cqi: Cqi) -> usize {
        match self {
            Self::Hs { pdu } => self.pdus(cqi) * pdu,
            Self::Ehs { .. } => ehs_octets(cqi).saturating_sub(EHS_SDU_HEADER),
        }
    }

    /// Number of PDUs of the full size that fit in a block.
    pub fn pdus(self, cqi: Cqi) -> usize {
        match self {
            Self::Hs { pdu } => {
                (usize::from(cqi.block()).saturating_sub(HS_HEADER) / (8 * pdu)).min(HS_MAX_PDUS)
            }
            Self::Ehs { most } => ehs_octets(cqi) / (EHS_SDU_HEADER + most),
        }
    }

    /// Room in a block for PDUs from RLC. `waiting` contains the sizes of parts that come first, in bytes.
    pub(super) fn room(self, cqi: Cqi, waiting: impl Iterator<Item = usize>) -> Room {
        match self {
            Self::Hs { .. } => Room::Pdus(self.pdus(cqi)),
            Self::Ehs { .. } => {
                let (mut octets, mut pdus) = (ehs_octets(cqi), EHS_MAX_SDUS);
                for part in waiting {
                    octets = octets.saturating_sub(EHS_SDU_HEADER + part);
                    pdus = pdus.saturating_sub(1);
                }
                // A part has at least one byte.
                if octets <= EHS_SDU_HEADER {
                    octets = 0;
                }
                Room::Bytes { bytes: octets, header: EHS_SDU_HEADER, pdus }
            }
        }
    }

    /// Number of bytes of the next PDU that fit in a block after `parts`. `left` is the number of bytes that
    /// remain of the PDU.
    pub(super) fn fitting_octets(self, cqi: Cqi, parts: &[Vec<u8>], left: usize) -> usize {
        match self {
            Self::Hs { .. } if parts.len() < self.pdus(cqi) => left,
            Self::Ehs { .. } if parts.len() < EHS_MAX_SDUS => {
                let used: usize = parts.iter().map(|part| EHS_SDU_HEADER + part.len()).sum();
                ehs_octets(cqi).saturating_sub(used + EHS_SDU_HEADER).min(left)
            }
            Self::Hs { .. } | Self::Ehs { .. } => 0,
        }
    }

    /// The smallest block with room for these parts, up to `most`.
    pub(super) fn smallest(self, parts: &[Vec<u8>], most: Cqi) -> Cqi {
        let bits = match self {
            Self::Hs { pdu } => HS_HEADER + parts.len() * 8 * pdu,
            Self::Ehs { .. } => {
                EHS_HEADER + parts.iter().map(|part| 8 * (EHS_SDU_HEADER + part.len())).sum::<usize>()
            }
        };
        Cqi::for_bits(bits, most)
    }
}

/// Bytes of a MAC-ehs block after TSN and SI.
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
    fn mac_hs_block_capacity_excludes_header() {
        let hs = Framing::Hs { pdu: 42 };
        // A block of 7168 bits has room for 21 · 336 + 21 = 7077 bits, but not for 22 · 336 + 21 = 7413 bits.
        assert_eq!((hs.pdus(cqi(22)), hs.octets(cqi(22))), (21, 21 * 42));
        assert_eq!([1, 4, 5, 7, 8].map(|number| hs.pdus(cqi(number))), [0, 0, 1, 1, 2]);
        assert_eq!(hs.pdus(cqi(30)), 70, "at most 70 PDUs, although 76 would fit");
        assert_eq!(hs.room(cqi(22), std::iter::empty()), Room::Pdus(21));
        let pdus = |count| vec![vec![0; 42]; count];
        assert_eq!([1, 21].map(|count| hs.smallest(&pdus(count), cqi(30)).get()), [5, 22]);
        assert_eq!(hs.fitting_octets(cqi(5), &[], 42), 42);
        assert_eq!(hs.fitting_octets(cqi(5), &pdus(1), 42), 0);
    }

    #[test]
    fn mac_ehs_block_capacity_excludes_header_per_pdu() {
        let ehs = Framing::Ehs { most: 1505 };
        // CQI 1: 137 bits are 17 bytes, with one byte for TSN and SI, and two for LCH-ID, L and F.
        assert_eq!((ehs.octets(cqi(1)), ehs.pdus(cqi(1))), (14, 0));
        assert_eq!(ehs.octets(Cqi::of(-40.0)), 0);
        // 7168 bits are 896 bytes.
        assert_eq!(ehs.octets(cqi(22)), 893);
        assert_eq!((ehs.octets(cqi(30)), ehs.pdus(cqi(30))), (3191, 2));
        let room = |bytes, pdus| Room::Bytes { bytes, header: 2, pdus };
        assert_eq!(ehs.room(cqi(22), std::iter::empty()), room(895, 26));
        assert_eq!(ehs.room(cqi(22), [500].into_iter()), room(393, 25));
        assert_eq!(ehs.room(cqi(22), [891].into_iter()), room(0, 25), "no byte fits after another header");
        assert_eq!(ehs.fitting_octets(cqi(22), &[vec![0; 500]], 1505), 391);
        assert_eq!(ehs.fitting_octets(cqi(22), &[vec![0; 500]], 30), 30);
        assert_eq!(ehs.fitting_octets(cqi(22), &[vec![0; 891]], 30), 0);
        assert_eq!(ehs.fitting_octets(cqi(22), &vec![vec![0; 1]; 26], 30), 0, "at most 26 PDUs per block");
        // 893 bytes of data fill all 896 bytes. One byte more requires the next block size.
        assert_eq!(ehs.smallest(&[vec![0; 893]], cqi(30)).get(), 22);
        assert_eq!(ehs.smallest(&[vec![0; 894]], cqi(30)).get(), 23);
        assert_eq!(ehs.smallest(&[vec![0; 446], vec![0; 445]], cqi(30)).get(), 22);
        assert_eq!(ehs.smallest(&[vec![0; 446], vec![0; 446]], cqi(30)).get(), 23);
    }
}
