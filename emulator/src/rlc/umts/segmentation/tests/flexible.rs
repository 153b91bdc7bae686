//! "Flexible RLC PDU size": what each PDU has, to the octet.

use super::*;

const fn flexible(most: usize) -> Format {
    Format { sizing: Sizing::Flexible(IndicatorSize::Bits15), ..Format::fixed(most) }
}

const LARGEST: Format = flexible(1505);
const LARGEST_HE: Format = Format { he_special: true, ..LARGEST };
const WITH_7_BITS: Format = Format { sizing: Sizing::Flexible(IndicatorSize::Bits7), ..Format::fixed(126) };

/// Octets on the air of each PDU.
fn sizes(format: Format, lengths: &[usize]) -> Vec<usize> {
    all(&mut with(format, lengths)).iter().map(|cut| encode_amd(&cut.amd, format).len()).collect()
}

#[test]
fn a_pdu_ends_where_its_sdus_end() {
    assert_eq!(sizes(LARGEST, &[1]), [2 + 2 + 1]);
    assert_eq!(sizes(LARGEST, &[40]), [2 + 2 + 40]);
    assert_eq!(sizes(LARGEST, &[1500]), [2 + 2 + 1500], "the data field has one octet to spare");
    assert_eq!(sizes(LARGEST, &[40, 100, 7]), [2 + 3 * 2 + 147]);
    assert_eq!(sizes(LARGEST, &[1500, 1500, 1500]), [1504, 1504, 1504], "no SDU begins in a single octet");
    assert_eq!(sizes(LARGEST, &[1000, 1000]), [1505, 2 + 2 + 1000 + 1000 + 2 + 2 - 1505]);
    assert_eq!(sizes(WITH_7_BITS, &[40, 40]), [2 + 2 + 80]);
    let cuts = all(&mut with(LARGEST, &[40, 100]));
    assert_eq!((cuts[0].amd.rest.clone(), cuts[0].ended.clone()), (Rest::Nothing, vec![0, 1]));
}

#[test]
fn with_he_10_a_pdu_of_one_sdu_has_no_indicator() {
    assert_eq!(sizes(LARGEST_HE, &[40]), [2 + 40]);
    assert_eq!(sizes(LARGEST_HE, &[1503]), [1505]);
    assert_eq!(sizes(LARGEST_HE, &[1500, 1500]), [1502, 1502]);
    assert_eq!(sizes(LARGEST_HE, &[1504]), [1505, 2 + 1]);
    // Where SDUs are concatenated HE is 01, and each has its indicator.
    assert_eq!(sizes(LARGEST_HE, &[40, 100]), [2 + 2 * 2 + 140]);
    let cuts = all(&mut with(LARGEST_HE, &[40, 100]));
    assert_eq!((cuts[0].amd.rest.clone(), cuts[0].amd.ends.clone()), (Rest::Nothing, vec![40, 140]));
}

/// An SDU of n octets, in PDUs whose bodies have b at most, with indicators of i octets: each PDU has a header of two, and
/// one of them an indicator. So there are ⌈(n + i) / b⌉ PDUs. With HE = 10 there is no indicator.
#[test]
fn an_sdu_alone_costs_a_header_per_pdu_and_one_indicator() {
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
                let what = format!("{octets} octets in {format:?}: {sizes:?}");
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
fn where_an_indicator_does_not_fit_the_last_octet_goes_into_the_next_pdu() {
    // The body has 1503 octets.
    let shapes = |octets| all(&mut with(LARGEST, &[octets])).iter().map(shape).collect::<Vec<_>>();
    use Previous::Unsaid;
    assert_eq!(shapes(1501), [(Unsaid, vec![1501], 1501, 0)]);
    assert_eq!(shapes(1502), [(Unsaid, vec![], 1501, 0), (Unsaid, vec![1], 1, 1498)]);
    assert_eq!(shapes(1503), [(Unsaid, vec![], 1502, 0), (Unsaid, vec![1], 1, 1498)]);
    assert_eq!(shapes(1504), [(Unsaid, vec![], 1503, 0), (Unsaid, vec![1], 1, 1498)]);
}

/// A receiver takes the octet behind a 15-bit indicator for padding, if it is the last one (§9.2.2.8).
#[test]
fn no_sdu_has_a_single_octet_at_the_end_of_a_pdu() {
    for second in 1..6 {
        for first in 1490..=1503 {
            let cuts = all(&mut with(LARGEST, &[first, second, 9]));
            for cut in &cuts {
                let after = cut.amd.data.len() - cut.amd.ends.last().map_or(0, |end| usize::from(*end));
                assert!(cut.amd.ends.is_empty() || after != 1, "{first}, {second}: {cut:?}");
            }
        }
    }
}

#[test]
fn after_15_indicators_a_pdu_ends() {
    assert_eq!(sizes(LARGEST, &[40; 20]), [2 + 15 * 42, 2 + 5 * 42]);
    let cuts = all(&mut with(LARGEST, &[40; 20]));
    assert_eq!(cuts.iter().map(|cut| cut.ended.len()).collect::<Vec<_>>(), [15, 5]);
    assert_eq!(cuts.iter().map(|cut| cut.spare).collect::<Vec<_>>(), [0, 1503 - 5 * 42 - 2]);
}

/// §9.2.1.6: "if the data leaves out enough room". What is piggybacked makes the PDU longer.
#[test]
fn a_report_may_use_what_is_left_up_to_the_largest_size() {
    let cut = with(LARGEST, &[40]).cut(Sn::ZERO).unwrap();
    assert_eq!(cut.spare, 1503 - 42 - 2);
    let status = Status(vec![Sufi::Ack { lsn: Sn::new(9) }]);
    let octets = status.octets();
    let amd = Amd { rest: Rest::Piggybacked(status), ..cut.amd };
    let written = encode_amd(&amd, LARGEST);
    assert_eq!(written.len(), 2 + 2 * 2 + 40 + octets);
    assert_eq!(decode(&written, LARGEST), Ok(Pdu::Amd(amd)));
    // HE = 10 leaves no place for its indicator.
    assert_eq!(with(LARGEST_HE, &[40]).cut(Sn::ZERO).unwrap().spare, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn no_octet_is_padding((format, lengths) in any_flexible_run()) {
        let cuts = all(&mut with(format, &lengths));
        for cut in &cuts {
            let indicators = cut.amd.ends.len() * format.li_octets();
            let written = encode_amd(&cut.amd, format).len();
            prop_assert_eq!(written, 2 + indicators + cut.amd.data.len());
            prop_assert!(written <= format.pdu_size);
            prop_assert!(!cut.amd.data.is_empty());
        }
        let data: usize = cuts.iter().map(|cut| cut.amd.data.len()).sum();
        prop_assert_eq!(data, lengths.iter().sum::<usize>());
    }
}
