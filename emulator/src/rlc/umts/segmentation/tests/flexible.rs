//! "Flexible RLC PDU size": the exact content and size of each PDU.

use super::*;

const fn flexible(most: usize) -> Format {
    Format { sizing: Sizing::Flexible(IndicatorSize::Bits15), ..Format::fixed(most) }
}

const LARGEST: Format = flexible(1505);
const LARGEST_HE: Format = Format { he_special: true, ..LARGEST };
const WITH_7_BITS: Format = Format { sizing: Sizing::Flexible(IndicatorSize::Bits7), ..Format::fixed(126) };

/// Sizes of the encoded PDUs in bytes.
fn sizes(format: Format, lengths: &[usize]) -> Vec<usize> {
    all(&mut with(format, lengths)).iter().map(|pdu| encode_amd(&pdu.amd, format).len()).collect()
}

#[test]
fn flexible_pdu_ends_at_last_sdu_end() {
    assert_eq!(sizes(LARGEST, &[1]), [2 + 2 + 1]);
    assert_eq!(sizes(LARGEST, &[40]), [2 + 2 + 40]);
    assert_eq!(sizes(LARGEST, &[1500]), [2 + 2 + 1500], "the data field has one piggyback_room byte");
    assert_eq!(sizes(LARGEST, &[40, 100, 7]), [2 + 3 * 2 + 147]);
    assert_eq!(sizes(LARGEST, &[1500, 1500, 1500]), [1504, 1504, 1504], "no SDU begins in a single byte");
    assert_eq!(sizes(LARGEST, &[1000, 1000]), [1505, 2 + 2 + 1000 + 1000 + 2 + 2 - 1505]);
    assert_eq!(sizes(WITH_7_BITS, &[40, 40]), [2 + 2 + 80]);
    let pdus = all(&mut with(LARGEST, &[40, 100]));
    assert_eq!((pdus[0].amd.rest.clone(), pdus[0].ended.clone()), (Rest::Nothing, vec![0, 1]));
}

#[test]
fn he_10_omits_indicator_for_single_sdu() {
    assert_eq!(sizes(LARGEST_HE, &[40]), [2 + 40]);
    assert_eq!(sizes(LARGEST_HE, &[1503]), [1505]);
    assert_eq!(sizes(LARGEST_HE, &[1500, 1500]), [1502, 1502]);
    assert_eq!(sizes(LARGEST_HE, &[1504]), [1505, 2 + 1]);
    // If SDUs are concatenated, HE is 01 and each SDU has an indicator.
    assert_eq!(sizes(LARGEST_HE, &[40, 100]), [2 + 2 * 2 + 140]);
    let pdus = all(&mut with(LARGEST_HE, &[40, 100]));
    assert_eq!((pdus[0].amd.rest.clone(), pdus[0].amd.ends.clone()), (Rest::Nothing, vec![40, 140]));
}

/// An SDU of n bytes in PDUs with bodies of at most b bytes and indicators of i bytes. Each PDU has a header
/// of two bytes, and one PDU has an indicator. So there are ⌈(n + i) / b⌉ PDUs. With HE = 10 there is no
/// indicator.
#[test]
fn single_sdu_costs_headers_and_one_indicator() {
    for (most, size) in [(16, IndicatorSize::Bits7), (16, IndicatorSize::Bits15), (126, IndicatorSize::Bits7)]
        .into_iter()
        .chain([126, 127, 500, 1505].map(|most| (most, IndicatorSize::Bits15)))
    {
        for he_special in [false, true] {
            let sizing = Sizing::Flexible(size);
            let format = Format { sizing, he_special, ..Format::fixed(most) };
            let (body, indicator) = (most - 2, if he_special { 0 } else { format.li_octets() });
            for octets in 1..=3 * most {
                let sizes = sizes(format, &[octets]);
                let pdus = (octets + indicator).div_ceil(body);
                let what = format!("{octets} bytes in {format:?}: {sizes:?}");
                assert_eq!(
                    (sizes.len(), sizes.iter().sum()),
                    (pdus, octets + indicator + 2 * pdus),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn last_byte_moves_when_indicator_does_not_fit() {
    // The body has 1503 bytes.
    let shapes = |octets| all(&mut with(LARGEST, &[octets])).iter().map(shape).collect::<Vec<_>>();
    use Previous::NotIndicated;
    assert_eq!(shapes(1501), [(NotIndicated, vec![1501], 1501, 0)]);
    assert_eq!(shapes(1502), [(NotIndicated, vec![], 1501, 0), (NotIndicated, vec![1], 1, 1498)]);
    assert_eq!(shapes(1503), [(NotIndicated, vec![], 1502, 0), (NotIndicated, vec![1], 1, 1498)]);
    assert_eq!(shapes(1504), [(NotIndicated, vec![], 1503, 0), (NotIndicated, vec![1], 1, 1498)]);
}

/// A receiver treats the byte after a 15-bit indicator as padding if it is the last one (§9.2.2.8).
#[test]
fn no_sdu_begins_in_last_byte() {
    for second in 1..6 {
        for first in 1490..=1503 {
            let pdus = all(&mut with(LARGEST, &[first, second, 9]));
            for pdu in &pdus {
                let after = pdu.amd.data.len() - pdu.amd.ends.last().map_or(0, |end| usize::from(*end));
                assert!(pdu.amd.ends.is_empty() || after != 1, "{first}, {second}: {pdu:?}");
            }
        }
    }
}

#[test]
fn pdu_ends_after_15_indicators() {
    assert_eq!(sizes(LARGEST, &[40; 20]), [2 + 15 * 42, 2 + 5 * 42]);
    let pdus = all(&mut with(LARGEST, &[40; 20]));
    assert_eq!(pdus.iter().map(|pdu| pdu.ended.len()).collect::<Vec<_>>(), [15, 5]);
    assert_eq!(pdus.iter().map(|pdu| pdu.piggyback_room).collect::<Vec<_>>(), [0, 1503 - 5 * 42 - 2]);
}

/// §9.2.1.6: "if the data leaves out enough room". A piggybacked STATUS PDU makes the PDU longer.
#[test]
fn piggybacked_report_uses_room_up_to_maximum_size() {
    let pdu = with(LARGEST, &[40]).next_pdu(Sn::ZERO).unwrap();
    assert_eq!(pdu.piggyback_room, 1503 - 42 - 2);
    let status = Status(vec![Sufi::Ack { lsn: Sn::new(9) }]);
    let octets = status.octets();
    let amd = Amd { rest: Rest::Piggybacked(status), ..pdu.amd };
    let written = encode_amd(&amd, LARGEST);
    assert_eq!(written.len(), 2 + 2 * 2 + 40 + octets);
    assert_eq!(decode(&written, LARGEST), Ok(Pdu::Amd(amd)));
    // HE = 10 excludes indicators, so the PDU has no room for a STATUS PDU.
    assert_eq!(with(LARGEST_HE, &[40]).next_pdu(Sn::ZERO).unwrap().piggyback_room, 0);
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn flexible_pdus_contain_no_padding((format, lengths) in any_flexible_run()) {
        let pdus = all(&mut with(format, &lengths));
        for pdu in &pdus {
            let indicators = pdu.amd.ends.len() * format.li_octets();
            let written = encode_amd(&pdu.amd, format).len();
            prop_assert_eq!(written, 2 + indicators + pdu.amd.data.len());
            prop_assert!(written <= format.pdu_size);
            prop_assert!(!pdu.amd.data.is_empty());
        }
        let data: usize = pdus.iter().map(|pdu| pdu.amd.data.len()).sum();
        prop_assert_eq!(data, lengths.iter().sum::<usize>());
    }
}
