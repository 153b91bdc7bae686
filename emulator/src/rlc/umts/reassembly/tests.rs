use airtcp_testkit::sample::cases;
use proptest::prelude::*;

use super::*;
use crate::rlc::umts::codec::Format;
use crate::rlc::umts::segmentation::Segmenter;

const FORMATS: [Format; 4] = [
    Format::fixed(42),
    Format { he_special: true, ..Format::fixed(42) },
    Format::fixed(127),
    Format { he_special: true, ..Format::fixed(127) },
];

fn sn(value: u16) -> Sn {
    Sn::new(value)
}

fn data(at: u16, octets: &[u8]) -> Amd<'static> {
    Amd { sn: sn(at), data: octets.to_vec().into(), ..Amd::default() }
}

fn ending(at: u16, octets: &[u8], ends: &[u16]) -> Amd<'static> {
    Amd { ends: ends.to_vec(), ..data(at, octets) }
}

/// A PDU that only indicates that the previous SDU filled its PDU.
fn li_0(at: u16) -> Amd<'static> {
    Amd { previous: Previous::EndedExactly, rest: Rest::Padding, ..data(at, &[]) }
}

/// A reassembler, and the SDUs that it has delivered.
struct Receiver(Reassembler, Vec<Vec<u8>>);

impl Receiver {
    fn new(delivery: Delivery) -> Self {
        Self(Reassembler::new(delivery), Vec::new())
    }

    fn receive(&mut self, amd: Amd<'_>) -> Receipt {
        self.0.receive(&amd, |sdu| self.1.push(sdu))
    }

    fn move_window(&mut self, to: u16, nlength: u8) {
        self.0.move_window(sn(to), nlength, |sdu| self.1.push(sdu));
    }

    fn missing(&self, vr_h: u16) -> Vec<(u16, u16)> {
        self.0.missing(sn(vr_h)).into_iter().map(|gap| (gap.first.get(), gap.count)).collect()
    }
}

fn in_sequence() -> Receiver {
    Receiver::new(Delivery::InSequence)
}

fn as_soon_as_complete() -> Receiver {
    Receiver::new(Delivery::AsSoonAsComplete)
}

#[test]
fn early_pdu_waits_for_missing_pdu() {
    let mut receiver = in_sequence();
    assert_eq!(receiver.receive(ending(1, b"cd", &[2])), Receipt::New);
    assert_eq!(receiver.receive(ending(1, b"cd", &[2])), Receipt::Duplicate);
    assert_eq!((receiver.0.vr_r(), receiver.0.stored(), receiver.missing(2)), (sn(0), 1, vec![(0, 1)]));
    assert!(receiver.1.is_empty());
    assert_eq!(receiver.receive(data(0, b"ab")), Receipt::New);
    assert_eq!((receiver.0.vr_r(), receiver.0.stored(), receiver.missing(2)), (sn(2), 0, vec![]));
    assert_eq!(receiver.1, [b"abcd"]);
}

#[test]
fn gaps_are_reported_up_to_vr_h() {
    let mut receiver = in_sequence();
    for at in [2, 3, 6] {
        receiver.receive(data(at, b"x"));
    }
    assert_eq!(receiver.missing(7), [(0, 2), (4, 2)]);
    assert_eq!(receiver.missing(10), [(0, 2), (4, 2), (7, 3)]);
    assert_eq!(receiver.missing(5), [(0, 2), (4, 1)], "nothing at or beyond VR(H)");
    assert_eq!(in_sequence().missing(3), [(0, 3)]);
    assert!(receiver.0.holds(sn(3)) && !receiver.0.holds(sn(4)) && !receiver.0.holds(sn(1000)));
}

#[test]
fn sdu_across_sn_wrap_is_reassembled() {
    let mut receiver = in_sequence();
    receiver.move_window(4095, 0);
    receiver.receive(ending(0, b"cd", &[2]));
    receiver.receive(data(4095, b"ab"));
    assert_eq!((receiver.1.as_slice(), receiver.0.vr_r()), ([b"abcd".to_vec()].as_slice(), sn(1)));
}

#[test]
fn byte_marked_by_li_7ffb_is_not_delivered() {
    let mut receiver = in_sequence();
    receiver.receive(data(0, b"ab\0"));
    receiver.receive(Amd { previous: Previous::EndedOneShort, ..ending(1, b"c", &[1]) });
    assert_eq!(receiver.1, [b"ab".as_slice(), b"c"]);
}

#[test]
fn unordered_delivery_forwards_complete_sdus_immediately() {
    let mut receiver = as_soon_as_complete();
    // PDU 1 ends an SDU, and begins another one that ends in PDU 3.
    receiver.receive(ending(1, b"bc", &[1]));
    receiver.receive(ending(3, b"ef", &[1]));
    assert!(receiver.1.is_empty(), "no SDU is complete");
    receiver.receive(data(2, b"d"));
    assert_eq!(receiver.1, [b"cde"]);
    receiver.receive(data(0, b"a"));
    assert_eq!(receiver.1, [b"cde".as_slice(), b"ab"], "the SDU is not delivered a second time");
    receiver.receive(ending(4, b"g", &[1]));
    assert_eq!(receiver.1[2], b"fg");
}

#[test]
fn only_first_sdu_in_pdu_needs_previous_pdu() {
    let mut receiver = as_soon_as_complete();
    receiver.receive(ending(5, b"abcde", &[1, 3, 5]));
    assert_eq!(receiver.1, [b"bc", b"de"]);
    let mut receiver = as_soon_as_complete();
    receiver.receive(Amd { previous: Previous::EndedExactly, ..ending(5, b"abc", &[1, 3]) });
    assert_eq!(receiver.1, [b"a".as_slice(), b"bc"], "LI 0 marks the start of the first SDU");
}

#[test]
fn previous_pdu_end_marks_sdu_start() {
    let mut receiver = as_soon_as_complete();
    receiver.receive(ending(5, b"ab", &[2]));
    receiver.receive(ending(4, b"x", &[1]));
    assert_eq!(receiver.1, [b"ab"]);
    let mut receiver = as_soon_as_complete();
    receiver.receive(Amd { rest: Rest::SduEnd, ..data(4, b"x") });
    receiver.receive(Amd { rest: Rest::SduEnd, ..data(5, b"y") });
    assert_eq!(receiver.1, [b"y"]);
}

#[test]
fn mrw_drops_partial_sdu_and_resumes_at_sn() {
    let mut receiver = in_sequence();
    receiver.receive(data(0, b"ab"));
    receiver.receive(ending(4, b"ef", &[2]));
    receiver.move_window(3, 0);
    assert_eq!((receiver.0.vr_r(), receiver.missing(5)), (sn(3), vec![(3, 1)]));
    receiver.receive(data(3, b"cd"));
    assert_eq!(receiver.1, [b"cdef"]);
}

#[test]
fn mrw_skips_sdus_in_pdu_arriving_later() {
    let mut receiver = in_sequence();
    receiver.move_window(3, 2);
    receiver.receive(ending(3, b"abcde", &[1, 3, 4]));
    assert_eq!(receiver.1, [b"d"]);
    receiver.receive(ending(4, b"f", &[1]));
    assert_eq!(receiver.1, [b"d".as_slice(), b"ef"]);
}

#[test]
fn mrw_delivers_from_pdus_already_received() {
    let mut receiver = in_sequence();
    receiver.receive(ending(3, b"abc", &[1, 3]));
    receiver.receive(ending(4, b"d", &[1]));
    receiver.receive(ending(6, b"f", &[1]));
    receiver.move_window(3, 1);
    assert_eq!(receiver.1, [b"bc".as_slice(), b"d"]);
    assert_eq!((receiver.0.vr_r(), receiver.0.stored()), (sn(5), 1));
}

#[test]
fn mrw_counts_li_0_as_skipped_indicator() {
    let mut receiver = in_sequence();
    receiver.receive(data(0, b"ab"));
    receiver.move_window(1, 1);
    receiver.receive(Amd { previous: Previous::EndedExactly, ..ending(1, b"cd", &[2]) });
    assert_eq!(receiver.1, [b"cd"]);
    assert_eq!(receiver.0.faults(), Faults::default());
}

/// The discarded SDU filled its PDU. The PDU that indicates this may still arrive.
#[test]
fn li_0_after_mrw_is_ignored_without_fault() {
    let mut receiver = in_sequence();
    receiver.move_window(1, 0);
    receiver.receive(li_0(1));
    assert!(receiver.1.is_empty());
    assert_eq!(receiver.0.faults(), Faults::default());
}

#[test]
fn contradictions_between_pdus_are_counted() {
    let mut receiver = in_sequence();
    receiver.receive(ending(0, b"a", &[1]));
    receiver.receive(li_0(1));
    assert_eq!(receiver.0.faults().nothing_to_end, 1);
    receiver.move_window(5, 3);
    receiver.receive(ending(5, b"ab", &[1]));
    assert_eq!(receiver.0.faults().nlength, 1);
    receiver.receive(ending(6, b"c", &[1]));
    assert_eq!(receiver.1, [b"a".as_slice(), b"bc"]);
}

#[test]
fn endless_sdu_is_dropped_and_next_is_delivered() {
    let mut receiver = in_sequence();
    for at in 0..700 {
        receiver.receive(data(at, &[7; 100]));
    }
    assert_eq!(receiver.0.faults().too_long, 1);
    receiver.receive(ending(700, b"ab", &[1]));
    receiver.receive(ending(701, b"c", &[1]));
    assert_eq!(receiver.1, [b"bc"]);
}

#[test]
fn sdus_above_65535_bytes_are_dropped() {
    for (last, lengths, too_long) in [(35, vec![2, 65_535], 0), (36, vec![2], 1)] {
        for mut receiver in [in_sequence(), as_soon_as_complete()] {
            receiver.receive(ending(1, b"a", &[1]));
            for at in 2..657 {
                receiver.receive(data(at, &[7; 100]));
            }
            receiver.receive(ending(657, &[7; 100][..last], &[last as u16]));
            receiver.receive(data(0, b"a"));
            let mut delivered: Vec<_> = receiver.1.iter().map(Vec::len).collect();
            delivered.sort_unstable();
            assert_eq!((delivered, receiver.0.faults().too_long), (lengths.clone(), too_long));
        }
    }
    // The byte that LI 0x7ffb removes does not count.
    let mut receiver = in_sequence();
    for at in 0..656 {
        receiver.receive(data(at, &[7; 100][..if at == 655 { 36 } else { 100 }]));
    }
    receiver.receive(Amd { previous: Previous::EndedOneShort, rest: Rest::Padding, ..data(656, &[]) });
    assert_eq!(receiver.1.iter().map(Vec::len).collect::<Vec<_>>(), [65_535]);
}

#[test]
fn reset_clears_reassembly_state() {
    let mut receiver = in_sequence();
    receiver.receive(ending(0, b"ab", &[1]));
    receiver.receive(data(2, b"x"));
    receiver.0.reset();
    assert_eq!((receiver.0.vr_r(), receiver.0.stored(), receiver.missing(0)), (sn(0), 0, vec![]));
    receiver.receive(ending(0, b"c", &[1]));
    assert_eq!(receiver.1, [b"a", b"c"]);
}

fn sdu(id: usize, length: usize) -> Vec<u8> {
    let mut octets: Vec<_> = (0..length).map(|n| (n * 13 + id * 29) as u8).collect();
    octets[0] = id as u8;
    octets
}

proptest! {
    #![proptest_config(cases(1000))]

    /// PDUs in any order, with duplicates of waiting PDUs, and across the wrap of the sequence number.
    #[test]
    fn every_sdu_is_delivered_once_despite_reordering(
        format in prop::sample::select(FORMATS.to_vec()),
        lengths in prop::collection::vec(prop_oneof![1..60_usize, 35..45_usize, 120..130_usize, 1..400_usize], 1..25),
        order in prop::collection::vec(any::<prop::sample::Index>(), 200),
        base in prop_oneof![Just(0_u16), 4050..4096_u16],
        in_sequence: bool,
    ) {
        let mut segmenter = Segmenter::new(format);
        for (id, length) in lengths.iter().enumerate() {
            segmenter.push(id, sdu(id, *length));
        }
        let mut pdus = Vec::new();
        while let Some(pdu) = segmenter.next_pdu(sn(base).plus(pdus.len() as u16)) {
            pdus.push(pdu.amd);
        }
        let vr_h = sn(base).plus(pdus.len() as u16);
        let delivery = if in_sequence { Delivery::InSequence } else { Delivery::AsSoonAsComplete };
        let mut receiver = Receiver::new(delivery);
        receiver.move_window(base, 0);
        let mut order = order.into_iter();
        while !pdus.is_empty() {
            // The PDUs are close to their order of transmission.
            let index = order.next().map_or(0, |index| index.index(pdus.len().min(12)));
            let amd = pdus.remove(index);
            prop_assert_eq!(receiver.receive(amd.clone()), Receipt::New);
            if receiver.0.holds(amd.sn) {
                prop_assert_eq!(receiver.receive(amd), Receipt::Duplicate);
            }
            let missing: Vec<_> = receiver.0.missing(vr_h).into_iter().flat_map(Gap::sns).collect();
            let absent: Vec<_> = pdus.iter().map(|amd| amd.sn).collect();
            prop_assert_eq!(missing, absent);
        }
        prop_assert_eq!((receiver.0.vr_r(), receiver.0.stored(), receiver.0.faults()), (vr_h, 0, Faults::default()));
        let sent: Vec<_> = lengths.iter().enumerate().map(|(id, length)| sdu(id, *length)).collect();
        let mut delivered = receiver.1;
        if !in_sequence {
            delivered.sort_by_key(|sdu| sdu[0]);
        }
        prop_assert_eq!(delivered, sent);
    }
}
