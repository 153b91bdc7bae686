use airtcp_testkit::sample::cases;
use proptest::prelude::*;

use super::*;
use crate::rlc::umts::codec::{Format, decode, encode};
use crate::rlc::umts::pdu::{ListItem, Pdu};

fn sn(value: u16) -> Sn {
    Sn::new(value)
}

fn gaps(of: &[(u16, u16)]) -> Vec<Gap> {
    of.iter().map(|(first, count)| Gap { first: sn(*first), count: *count }).collect()
}

fn report(vr_r: u16, vr_h: u16, missing: &[(u16, u16)], octets: usize) -> Vec<Status> {
    let missing = gaps(missing);
    acknowledge(Received { vr_r: sn(vr_r), vr_h: sn(vr_h), missing: &missing }, Vec::new(), octets)
}

fn single(mut statuses: Vec<Status>) -> Status {
    assert_eq!(statuses.len(), 1);
    statuses.remove(0)
}

fn list(items: &[(u16, u8)]) -> Sufi {
    Sufi::List(items.iter().map(|(first, further)| ListItem { sn: sn(*first), further: *further }).collect())
}

fn ack(lsn: u16) -> Sufi {
    Sufi::Ack { lsn: sn(lsn) }
}

fn missing(status: &Status) -> Vec<u16> {
    interpret(status).unwrap().missing.into_iter().map(Sn::get).collect()
}

#[test]
fn report_without_gaps_acknowledges_everything() {
    assert_eq!(report(12, 12, &[], 42), [Status(vec![ack(12)])]);
}

#[test]
fn long_gap_is_coded_as_rlist_burst() {
    let codewords = vec![1, 7 << 1, 4 << 1 | 1];
    assert_eq!(
        report(5, 100, &[(5, 40)], 42),
        [Status(vec![Sufi::Rlist { fsn: sn(5), codewords }, ack(100)])]
    );
}

#[test]
fn medium_gaps_are_coded_as_list() {
    let status = single(report(10, 130, &[(10, 5), (60, 5), (120, 5)], 42));
    assert_eq!(status.0, [list(&[(10, 4), (60, 4), (120, 4)]), ack(130)]);
}

#[test]
fn few_close_gaps_are_coded_as_rlist() {
    let status = single(report(1, 40, &[(1, 1), (5, 4), (28, 1)], 42));
    assert_eq!(status.0, [Sufi::Rlist { fsn: sn(1), codewords: vec![9, 1, 7, 8, 5] }, ack(40)]);
}

/// If every other PDU is missing, a byte of a bitmap replaces four code words of 4 bits in a relative list.
#[test]
fn many_close_gaps_are_coded_as_bitmap() {
    let every_other: Vec<_> = (0..20).map(|n| (4090 + 2 * n, 1)).collect();
    let status = single(report(4090, 4090 + 39, &every_other, 42));
    let [Sufi::Bitmap { fsn, bits }, Sufi::Ack { lsn }] = &status.0[..] else { panic!("{status:?}") };
    let end = fsn.plus(8 * bits.len() as u16);
    assert!(end.since(sn(4090)) <= 39, "nothing at or beyond VR(H)");
    assert_eq!((*lsn, bits.len()), (sn(4090 + 39), 5));
    let expected: Vec<_> = every_other.iter().map(|(at, _)| at % 4096).collect();
    assert_eq!(missing(&status), expected);
}

#[test]
fn every_part_in_split_report_acknowledges_vr_r() {
    let far: Vec<_> = (0..60).map(|n| (10 + 60 * n, 1)).collect();
    let statuses = report(10, 3600, &far, 42);
    assert!(statuses.len() > 1);
    let mut named = Vec::new();
    for status in &statuses {
        assert!(status.octets() <= 42, "{}", status.octets());
        assert_eq!(interpret(status).unwrap().lsn, Some(sn(10)));
        named.extend(missing(status));
    }
    let expected: Vec<_> = far.iter().map(|(at, _)| *at).collect();
    assert_eq!(named, expected);
}

#[test]
fn other_sufis_precede_gaps_and_consume_room() {
    let far: Vec<_> = (0..30).map(|n| (10 + 60 * n, 1)).collect();
    let missing = gaps(&far);
    let received = Received { vr_r: sn(10), vr_h: sn(3600), missing: &missing };
    let others = vec![Sufi::MrwAck(MrwAck { n: 1, sn_ack: sn(10) }), Sufi::Window { wsn: 64 }];
    let statuses = acknowledge(received, others.clone(), 42);
    assert_eq!(statuses[0].0[..2], others);
    assert!(statuses.iter().all(|status| status.octets() <= 42));
    assert_eq!(interpret(&statuses[0]).unwrap().mrw_ack, Some(MrwAck { n: 1, sn_ack: sn(10) }));
    assert!(statuses[1..].iter().all(|status| interpret(status).unwrap().mrw_ack.is_none()));
}

#[test]
fn full_first_pdu_moves_gaps_to_second() {
    let missing = gaps(&[(10, 1)]);
    let received = Received { vr_r: sn(10), vr_h: sn(20), missing: &missing };
    // 8 bytes hold 16 units: 1 for the header, 5 and 4 for these super-fields, 4 for ACK. The other 2 are too
    // few for a gap.
    let others = vec![Sufi::MrwAck(MrwAck { n: 0, sn_ack: sn(10) }), Sufi::Window { wsn: 64 }];
    let statuses = acknowledge(received, others.clone(), 8);
    assert_eq!(statuses[0].0, [others, vec![ack(10)]].concat());
    assert_eq!(statuses[1].0[1..], [ack(10)]);
    assert_eq!(statuses.len(), 2);
}

#[test]
fn list_item_covers_length_plus_one_pdus() {
    assert_eq!(missing(&Status(vec![list(&[(4095, 0)]), Sufi::NoMore])), [4095]);
    let sixteen: Vec<_> = (4090..4096).chain(0..10).collect();
    assert_eq!(missing(&Status(vec![list(&[(4090, 15)]), Sufi::NoMore])), sixteen);
}

#[test]
fn rlist_is_decoded_across_sn_wrap() {
    let codewords = vec![9, 1, 7, 8, 5];
    let status = Status(vec![Sufi::Rlist { fsn: sn(4092), codewords }, Sufi::NoMore]);
    assert_eq!(missing(&status), [4092, 0, 1, 2, 3, 23]);
}

#[test]
fn pdu_both_received_and_missing_is_contradiction() {
    let bitmap = |bits: u8| Sufi::Bitmap { fsn: sn(100), bits: vec![bits] };
    let both = |sufis: [Sufi; 2]| interpret(&Status([sufis.to_vec(), vec![ack(120)]].concat()));
    assert_eq!(both([list(&[(99, 2)]), bitmap(0xff)]), Err(Contradiction::BothWays(sn(100))));
    assert_eq!(both([bitmap(0xff), list(&[(107, 0)])]), Err(Contradiction::BothWays(sn(107))));
    assert_eq!(both([bitmap(0x7f), bitmap(0xff)]), Err(Contradiction::BothWays(sn(100))));
    assert_eq!(both([list(&[(100, 0)]), bitmap(0x7f)]).unwrap().missing, [sn(100)], "reported missing twice");
}

#[test]
fn interpretation_contains_all_other_sufis() {
    let content = interpret(&Status(vec![
        Sufi::Window { wsn: 9 },
        Sufi::Mrw(Mrw { sns: vec![sn(7), sn(9)], long_distance: false, nlength: 2 }),
        Sufi::MrwAck(MrwAck { n: 1, sn_ack: sn(3) }),
        Sufi::Poll { sn: sn(77) },
        Sufi::NoMore,
    ]))
    .unwrap();
    let expected = StatusContent {
        lsn: None,
        missing: Vec::new(),
        window: Some(9),
        mrw: Some(Mrw { sns: vec![sn(7), sn(9)], long_distance: false, nlength: 2 }),
        mrw_ack: Some(MrwAck { n: 1, sn_ack: sn(3) }),
        poll: Some(sn(77)),
    };
    assert_eq!(content, expected);
}

/// VR(R), VR(H), and the gaps from VR(R) to VR(H). The first gap begins at VR(R).
fn any_received() -> impl Strategy<Value = (Sn, Sn, Vec<Gap>)> {
    let runs = prop_oneof![
        prop::collection::vec((1..4_u16, 1..4_u16), 0..200),
        prop::collection::vec((1..30_u16, 1..60_u16), 0..80),
        prop::collection::vec((1..2_u16, 1..40_u16), 0..90),
        prop::collection::vec((1..400_u16, 1..400_u16), 0..8),
    ];
    (0..Sn::MODULUS, runs).prop_map(|(vr_r, runs)| {
        let mut gaps = Vec::new();
        let mut ahead = 0;
        for (lost, received) in runs {
            if ahead + lost + received > 4095 {
                break;
            }
            gaps.push(Gap { first: sn(vr_r).plus(ahead), count: lost });
            ahead += lost + received;
        }
        (sn(vr_r), sn(vr_r).plus(ahead), gaps)
    })
}

fn on_air(status: &Status, octets: usize) -> Status {
    let format = Format::fixed(octets);
    match decode(&encode(&Pdu::Status(status.clone()), format), format) {
        Ok(Pdu::Status(status)) => status,
        other => panic!("{status:?} became {other:?}"),
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn reports_list_exactly_missing_pdus(
        (vr_r, vr_h, gaps) in any_received(),
        octets in prop_oneof![3 => Just(42_usize), 1 => 8..200_usize],
    ) {
        let received = Received { vr_r, vr_h, missing: &gaps };
        let statuses = acknowledge(received, Vec::new(), octets);
        let mut named = Vec::new();
        for status in &statuses {
            let content = interpret(&on_air(status, octets)).unwrap();
            let lsn = content.lsn.unwrap();
            prop_assert_eq!(lsn, if statuses.len() == 1 { vr_h } else { vr_r });
            prop_assert!(content.missing.iter().all(|sn| sn.since(vr_r) < vr_h.since(vr_r)));
            named.extend(content.missing.into_iter().map(|sn| sn.since(vr_r)));
        }
        // A bitmap may repeat PDUs that an earlier part of the report contains.
        named.sort_unstable();
        named.dedup();
        let expected: Vec<_> = gaps.iter().copied().flat_map(Gap::sns).map(|sn| sn.since(vr_r)).collect();
        prop_assert_eq!(named, expected);
    }

    #[test]
    fn shortest_coding_is_chosen((vr_r, vr_h, gaps) in any_received()) {
        let received = Received { vr_r, vr_h, missing: &gaps };
        let statuses = acknowledge(received, Vec::new(), 10_000);
        prop_assert_eq!(statuses.len(), 1);
        for coding in Coding::ALL {
            let written = coding::write(coding, received, Cursor::at_start(), 20_000);
            prop_assert_eq!(written.remaining, 0);
            for sufi in &written.sufis {
                if let Sufi::Bitmap { fsn, bits } = sufi {
                    let last = fsn.plus(8 * bits.len() as u16).previous();
                    prop_assert!(last.since(vr_r) < vr_h.since(vr_r), "the bitmap covers VR(H) or beyond");
                }
            }
            prop_assert!(statuses[0].octets() <= (1 + written.nibbles + 4).div_ceil(2));
            let alone = Status([written.sufis, vec![Sufi::Ack { lsn: vr_h }]].concat());
            let named: Vec<_> = interpret(&alone).unwrap().missing;
            let expected: Vec<_> = gaps.iter().copied().flat_map(Gap::sns).collect();
            prop_assert_eq!(named, expected);
        }
    }
}
