//! MAC PDUs with RLC PDUs and padding, for records of transport blocks. In NR, each subheader precedes its SDU (TS
//! 38.321 §6.1.2). In LTE, all subheaders precede all SDUs (TS 36.321 §6.1.2).

/// LCID of padding.
const NR_PADDING: u8 = 63;
const LTE_PADDING: u8 = 31;
/// F or F2: the L field is longer.
const NR_F: u8 = 0x40;
const LTE_F2: u8 = 0x40;
/// E: another subheader follows.
const LTE_E: u8 = 0x20;

/// An RLC PDU in a MAC PDU.
#[derive(Clone, Copy, Debug)]
pub struct MacSdu<'a> {
    /// Identity of the logical channel.
    pub lcid: u8,
    /// The RLC PDU.
    pub octets: &'a [u8],
}

/// Encodes a MAC PDU of NR with `size` octets. RLC has left room for the subheaders.
pub fn encode_nr(sdus: &[MacSdu<'_>], size: usize) -> Vec<u8> {
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
    if pdu.len() < size {
        pdu.push(NR_PADDING);
        pdu.resize(size, 0);
    }
    pdu
}

/// Encodes a MAC PDU of LTE with `size` octets. RLC has left room for the subheaders.
pub fn encode_lte(sdus: &[MacSdu<'_>], size: usize) -> Vec<u8> {
    let Some((last, others)) = sdus.split_last() else { return vec![0; size] };
    let mut header = Vec::new();
    for sdu in others {
        lte_subheader(sdu, &mut header);
    }
    let payload: usize = sdus.iter().map(|sdu| sdu.octets.len()).sum();
    let used = header.len() + 1 + payload;
    debug_assert!(used <= size, "{used} octets in a transport block of {size}");
    match size.saturating_sub(used) {
        // One or two octets are subheaders of padding at the beginning. The last subheader has no length.
        padding @ 0..=2 => {
            header.splice(0..0, std::iter::repeat_n(LTE_E | LTE_PADDING, padding));
            header.push(last.lcid);
        }
        _ => {
            lte_subheader(last, &mut header);
            header.push(LTE_PADDING);
        }
    }
    let mut pdu = header;
    pdu.reserve_exact(size);
    sdus.iter().for_each(|sdu| pdu.extend_from_slice(sdu.octets));
    pdu.resize(size.max(pdu.len()), 0);
    pdu
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
        let pdu = encode_nr(&[STATUS, data], 266);
        assert_eq!(pdu[..8], [4, 3, 0, 7, 0, 0x45, 1, 0]);
        assert_eq!(pdu[264..], [63, 0]);
        assert_eq!(encode_nr(&[STATUS], 6), [4, 3, 0, 7, 0, 63]);
        assert_eq!(encode_nr(&[STATUS], 5), [4, 3, 0, 7, 0]);
        let longest = MacSdu { lcid: 5, octets: &long[..255] };
        assert_eq!(encode_nr(&[longest], 257)[..3], [5, 255, 0x55]);
    }

    #[test]
    fn short_lte_padding_precedes_other_subheaders() {
        let status = MacSdu { lcid: 3, ..STATUS };
        assert_eq!(encode_lte(&[status], 4), [3, 0, 7, 0]);
        assert_eq!(encode_lte(&[status], 5), [0x3f, 3, 0, 7, 0]);
        assert_eq!(encode_lte(&[status], 6), [0x3f, 0x3f, 3, 0, 7, 0]);
        assert_eq!(encode_lte(&[status], 7), [0x23, 3, 31, 0, 7, 0, 0]);
        assert_eq!(encode_lte(&[status, status], 9), [0x23, 3, 3, 0, 7, 0, 0, 7, 0]);
    }

    #[test]
    fn lte_lengths_have_7_or_15_or_16_bits() {
        let octets = [0x55; 40_000];
        let header = |length: usize| {
            let data = MacSdu { lcid: 3, octets: &octets[..length] };
            encode_lte(&[data], length + 4)[..4].to_vec()
        };
        assert_eq!(header(127), [0x23, 127, 31, 0x55]);
        assert_eq!(header(128), [0x23, 0x80, 128, 31]);
        assert_eq!(header(0x7fff), [0x23, 0xff, 0xff, 31]);
        assert_eq!(header(0x8000), [0x63, 0x80, 0, 31]);
    }
}
