//! MAC PDUs with RLC PDUs, a buffer status report and padding, for records of transport blocks. In NR, each
//! subheader precedes its SDU (TS 38.321 §6.1.2). In LTE, all subheaders precede all SDUs (TS 36.321 §6.1.2).
//!
//! Choices: a report replaces padding, so a block that RLC fills has none. All bearers are in logical channel
//! group 0. Therefore each report is a short BSR, also where the padding has room for a long one.

/// LCID of padding.
const NR_PADDING: u8 = 63;
const LTE_PADDING: u8 = 31;
/// LCID of a short BSR.
const NR_SHORT_BSR: u8 = 61;
const LTE_SHORT_BSR: u8 = 29;
/// A short BSR with its subheader. It has a fixed size, so the subheader has no length.
const SHORT_BSR: usize = 2;
/// F or F2: the L field is longer.
const NR_F: u8 = 0x40;
const LTE_F2: u8 = 0x40;
/// E: another subheader follows.
const LTE_E: u8 = 0x20;

/// Buffer size levels of 6 bits (TS 36.321 Table 6.1.3.1-1). The index after the last one means more.
const LTE_BUFFER_SIZES: [u32; 63] = [
    0, 10, 12, 14, 17, 19, 22, 26, 31, 36, 42, 49, 57, 67, 78, 91, 107, 125, 146, 171, 200, 234, 274, 321,
    376, 440, 515, 603, 706, 826, 967, 1132, 1326, 1552, 1817, 2127, 2490, 2915, 3413, 3995, 4677, 5476,
    6411, 7505, 8787, 10287, 12043, 14099, 16507, 19325, 22624, 26487, 31009, 36304, 42502, 49759, 58255,
    68201, 79846, 93479, 109439, 128125, 150000,
];
/// Buffer size levels of 5 bits (TS 38.321 Table 6.1.3.1-1).
const NR_BUFFER_SIZES: [u32; 31] = [
    0, 10, 14, 20, 28, 38, 53, 74, 102, 142, 198, 276, 384, 535, 745, 1038, 1446, 2014, 2806, 3909, 5446,
    7587, 10570, 14726, 20516, 28581, 39818, 55474, 77284, 107669, 150000,
];

/// An RLC PDU in a MAC PDU.
#[derive(Clone, Copy, Debug)]
pub struct MacSdu<'a> {
    /// Identity of the logical channel.
    pub lcid: u8,
    /// The RLC PDU.
    pub octets: &'a [u8],
}

/// Encodes a MAC PDU of NR with `size` octets. RLC has left room for the subheaders. In the uplink, the PDU also
/// reports the octets in the buffer if there is room.
pub fn encode_nr(sdus: &[MacSdu<'_>], buffered: Option<u64>, size: usize) -> Vec<u8> {
    let mut pdu = Vec::with_capacity(size);
    for MacSdu { lcid, octets } in sdus {
        match u8::try_from(octets.len()) {
            Ok(length) => pdu.extend([*lcid, length]),
            Err(_) => {
                pdu.push(NR_F | lcid);
                pdu.extend((octets.len() as u16).to_be_bytes());
            }
        }
        pdu.extend_from_slice(octets);
    }
    debug_assert!(pdu.len() <= size, "{} octets in a transport block of {size}", pdu.len());
    if let Some(buffered) = buffered.filter(|_| pdu.len() + SHORT_BSR <= size) {
        pdu.extend([NR_SHORT_BSR, buffer_size(buffered, &NR_BUFFER_SIZES)]);
    }
    if pdu.len() < size {
        pdu.push(NR_PADDING);
        pdu.resize(size, 0);
    }
    pdu
}

/// Encodes a MAC PDU of LTE with `size` octets. RLC has left room for the subheaders. In the uplink, the PDU also
/// reports the octets in the buffer if there is room.
pub fn encode_lte(sdus: &[MacSdu<'_>], buffered: Option<u64>, size: usize) -> Vec<u8> {
    let Some((last, others)) = sdus.split_last() else { return vec![0; size] };
    let mut sdu_headers = Vec::new();
    for sdu in others {
        lte_subheader(sdu, &mut sdu_headers);
    }
    let payload: usize = sdus.iter().map(|sdu| sdu.octets.len()).sum();
    let used = sdu_headers.len() + 1 + payload;
    debug_assert!(used <= size, "{used} octets in a transport block of {size}");
    let mut room = size.saturating_sub(used);
    let report = buffered.filter(|_| room >= SHORT_BSR);
    if report.is_some() {
        room -= SHORT_BSR;
    }
    let mut pdu = Vec::with_capacity(size);
    // One or two octets are subheaders of padding at the beginning. The last subheader has no length.
    let leading = if room <= 2 { room } else { 0 };
    pdu.extend(std::iter::repeat_n(LTE_E | LTE_PADDING, leading));
    pdu.extend(report.map(|_| LTE_E | LTE_SHORT_BSR));
    pdu.append(&mut sdu_headers);
    if room == leading {
        pdu.push(last.lcid);
    } else {
        lte_subheader(last, &mut pdu);
        pdu.push(LTE_PADDING);
    }
    pdu.extend(report.map(|buffered| buffer_size(buffered, &LTE_BUFFER_SIZES)));
    sdus.iter().for_each(|sdu| pdu.extend_from_slice(sdu.octets));
    pdu.resize(size.max(pdu.len()), 0);
    pdu
}

/// A short BSR for logical channel group 0: the index of the first level that is not smaller.
fn buffer_size(octets: u64, levels: &[u32]) -> u8 {
    levels.partition_point(|level| u64::from(*level) < octets) as u8
}

/// Appends a subheader that is not the last one: R, F2, E and LCID, then F and L.
fn lte_subheader(sdu: &MacSdu<'_>, header: &mut Vec<u8>) {
    let length = sdu.octets.len() as u16;
    match length {
        0..=0x7f => header.extend([LTE_E | sdu.lcid, length as u8]),
        0x80..=0x7fff => {
            header.push(LTE_E | sdu.lcid);
            header.extend((0x8000 | length).to_be_bytes());
        }
        0x8000.. => {
            header.push(LTE_F2 | LTE_E | sdu.lcid);
            header.extend(length.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: MacSdu<'_> = MacSdu { lcid: 4, octets: &[0, 7, 0] };

    #[test]
    fn nr_lengths_have_8_or_16_bits() {
        let long = [0x55; 256];
        let data = MacSdu { lcid: 5, octets: &long };
        let pdu = encode_nr(&[STATUS, data], None, 266);
        assert_eq!(pdu[..8], [4, 3, 0, 7, 0, 0x45, 1, 0]);
        assert_eq!(pdu[264..], [63, 0]);
        assert_eq!(encode_nr(&[STATUS], None, 6), [4, 3, 0, 7, 0, 63]);
        assert_eq!(encode_nr(&[STATUS], None, 5), [4, 3, 0, 7, 0]);
        let longest = MacSdu { lcid: 5, octets: &long[..255] };
        assert_eq!(encode_nr(&[longest], None, 257)[..3], [5, 255, 0x55]);
    }

    #[test]
    fn short_lte_padding_precedes_other_subheaders() {
        let status = MacSdu { lcid: 3, ..STATUS };
        assert_eq!(encode_lte(&[status], None, 4), [3, 0, 7, 0]);
        assert_eq!(encode_lte(&[status], None, 5), [0x3f, 3, 0, 7, 0]);
        assert_eq!(encode_lte(&[status], None, 6), [0x3f, 0x3f, 3, 0, 7, 0]);
        assert_eq!(encode_lte(&[status], None, 7), [0x23, 3, 31, 0, 7, 0, 0]);
        assert_eq!(encode_lte(&[status, status], None, 9), [0x23, 3, 3, 0, 7, 0, 0, 7, 0]);
    }

    #[test]
    fn lte_lengths_have_7_or_15_or_16_bits() {
        let octets = [0x55; 40_000];
        let header = |length: usize| {
            let data = MacSdu { lcid: 3, octets: &octets[..length] };
            encode_lte(&[data], None, length + 4)[..4].to_vec()
        };
        assert_eq!(header(127), [0x23, 127, 31, 0x55]);
        assert_eq!(header(128), [0x23, 0x80, 128, 31]);
        assert_eq!(header(0x7fff), [0x23, 0xff, 0xff, 31]);
        assert_eq!(header(0x8000), [0x63, 0x80, 0, 31]);
    }

    #[test]
    fn nr_report_is_between_sdus_and_padding() {
        let encode = |size| encode_nr(&[STATUS], Some(100_000), size);
        assert_eq!(encode(6), [4, 3, 0, 7, 0, 63], "no room");
        assert_eq!(encode(7), [4, 3, 0, 7, 0, 61, 29]);
        assert_eq!(encode(9), [4, 3, 0, 7, 0, 61, 29, 63, 0]);
    }

    #[test]
    fn lte_report_precedes_sdus() {
        let status = MacSdu { lcid: 3, ..STATUS };
        let encode = |size| encode_lte(&[status], Some(100_000), size);
        assert_eq!(encode(5), [0x3f, 3, 0, 7, 0], "no room");
        assert_eq!(encode(6), [0x3d, 3, 60, 0, 7, 0]);
        assert_eq!(encode(7), [0x3f, 0x3d, 3, 60, 0, 7, 0]);
        assert_eq!(encode(8), [0x3f, 0x3f, 0x3d, 3, 60, 0, 7, 0]);
        assert_eq!(encode(9), [0x3d, 0x23, 3, 31, 60, 0, 7, 0, 0]);
    }

    #[test]
    fn buffer_size_is_index_of_upper_bound() {
        for (octets, lte, nr) in [
            (0, 0, 0),
            (1, 1, 1),
            (10, 1, 1),
            (11, 2, 2),
            (14, 3, 2),
            (15, 4, 3),
            (150_000, 62, 30),
            (150_001, 63, 31),
            (u64::MAX, 63, 31),
        ] {
            let sizes = [&LTE_BUFFER_SIZES[..], &NR_BUFFER_SIZES].map(|levels| buffer_size(octets, levels));
            assert_eq!(sizes, [lte, nr], "{octets} octets");
        }
    }

    /// The levels grow by the same factor from 10 to 150,000 octets.
    #[test]
    fn buffer_size_levels_are_geometric() {
        for levels in [&LTE_BUFFER_SIZES[1..], &NR_BUFFER_SIZES[1..]] {
            let factor = 15_000_f64.powf(1.0 / (levels.len() - 1) as f64);
            for (n, level) in (0..).zip(levels) {
                assert_eq!((10.0 * factor.powi(n) - 1e-6).ceil() as u32, *level);
            }
        }
    }
}
