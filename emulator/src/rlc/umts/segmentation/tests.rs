mod flexible;

use airtcp_testkit::sample::cases;
use proptest::prelude::*;

use super::*;
use crate::rlc::umts::codec::{IndicatorSize, decode, encode_amd, write_segment};
use crate::rlc::umts::pdu::{Pdu, Status, Sufi};
use crate::rlc::umts::reassembly::{Delivery, Reassembler};

const PDU_42: Format = Format::fixed(42);
const HE_SPECIAL: Format = Format { he_special: true, ..PDU_42 };
const PDU_130: Format = Format::fixed(130);

impl<Id: Copy> Segmenter<Id> {
    /// Number of bytes that no PDU carries yet.
    fn octets(&self) -> usize {
        self.waiting.iter().map(|sdu| sdu.octets.len()).sum::<usize>() - self.sent
    }

    /// The SDU that was sent in part.
    fn partial(&self) -> Option<Id> {
        self.waiting.front().filter(|_| self.sent > 0).map(|sdu| sdu.id)
    }
}

/// A segmenter with SDUs of these lengths. The identifier of an SDU is its index.
fn with(format: Format, lengths: &[usize]) -> Segmenter<usize> {
    let mut segmenter = Segmenter::new(format);
    for (id, length) in lengths.iter().enumerate() {
        segmenter.push(id, sdu(id, *length));
    }
    segmenter
}

fn sdu(id: usize, length: usize) -> Vec<u8> {
    (0..length).map(|n| (n * 7 + id * 31 + 1) as u8).collect()
}

fn all(segmenter: &mut Segmenter<usize>) -> Vec<SegmentedPdu<usize>> {
    let mut sn = Sn::ZERO;
    let next = || {
        let pdu = segmenter.next_pdu(sn);
        sn = sn.next();
        pdu
    };
    std::iter::from_fn(next).map(|pdu| *pdu).collect()
}

fn part(id: usize, first: bool, last: bool) -> Carried<usize> {
    Carried { id, first, last }
}

/// The previous end, the ends, the bytes of data, and the room for a piggybacked STATUS PDU.
fn shape(pdu: &SegmentedPdu<usize>) -> (Previous, Vec<u16>, usize, usize) {
    (pdu.amd.previous, pdu.amd.ends.clone(), pdu.amd.data.len(), pdu.piggyback_room)
}

#[test]
fn sdus_are_segmented_and_concatenated() {
    let pdus = all(&mut with(PDU_42, &[28, 1500]));
    assert_eq!(shape(&pdus[0]), (Previous::NotIndicated, vec![28], 39, 0));
    assert_eq!(pdus[0].carried, [part(0, true, true), part(1, true, false)]);
    assert_eq!(pdus[0].ended, [0]);
    let full = pdus.iter().filter(|pdu| pdu.carried == [part(1, false, false)]);
    assert!(full.clone().all(|pdu| shape(pdu) == (Previous::NotIndicated, vec![], 40, 0)));
    // 1500 = 11 + 37 · 40 + 9
    assert_eq!((full.count(), pdus.len()), (37, 39));
    assert_eq!(shape(&pdus[38]), (Previous::NotIndicated, vec![9], 9, 29));
    assert_eq!(pdus[38].amd.rest, Rest::Padding);
    assert_eq!((&pdus[38].carried, &pdus[38].ended), (&vec![part(1, false, true)], &vec![1]));
}

#[test]
fn sdus_ending_in_one_pdu_have_ascending_offsets() {
    let pdus = all(&mut with(PDU_42, &[10, 20]));
    assert_eq!(shape(&pdus[0]), (Previous::NotIndicated, vec![10, 30], 30, 7));
}

#[test]
fn li_0_pdu_follows_exactly_filled_pdu() {
    let mut segmenter = with(PDU_42, &[40]);
    let first = segmenter.next_pdu(Sn::ZERO).unwrap();
    assert_eq!(shape(&first), (Previous::NotIndicated, vec![], 40, 0));
    assert_eq!(first.carried, [part(0, true, true)]);
    assert!(first.ended.is_empty());
    assert!(segmenter.has_next());
    assert_eq!(segmenter.ready(9), 1);
    let second = segmenter.next_pdu(Sn::new(1)).unwrap();
    assert_eq!(shape(&second), (Previous::EndedExactly, vec![], 0, 38));
    assert_eq!((second.amd.rest, second.carried, second.ended), (Rest::Padding, vec![], vec![0]));
    assert!(!segmenter.has_next());
}

#[test]
fn li_0_precedes_next_sdu() {
    let pdus = all(&mut with(PDU_42, &[40, 20]));
    assert_eq!(shape(&pdus[1]), (Previous::EndedExactly, vec![20], 20, 17));
    assert_eq!(pdus[1].ended, [0, 1]);
}

#[test]
fn he_10_avoids_extra_li_0_pdu() {
    let pdus = all(&mut with(HE_SPECIAL, &[40, 80]));
    assert_eq!(pdus.len(), 3);
    assert_eq!(pdus[0].amd.rest, Rest::SduEnd);
    assert_eq!(pdus[0].ended, [0]);
    assert_eq!(pdus[2].amd.rest, Rest::SduEnd);
}

/// HE cannot be 10 if it must be 01 to announce an indicator.
#[test]
fn he_10_excludes_length_indicators() {
    let pdus = all(&mut with(HE_SPECIAL, &[10, 29]));
    assert_eq!(shape(&pdus[0]), (Previous::NotIndicated, vec![10], 39, 0));
    assert_eq!(shape(&pdus[1]), (Previous::EndedExactly, vec![], 0, 38));
}

#[test]
fn sdus_of_boundary_sizes_are_indicated() {
    use Previous::*;
    let single = |length: u16, rest| (vec![(NotIndicated, vec![length], length.into(), 0)], rest);
    let two = |first, previous, ends: &[u16], data, room| {
        (vec![(NotIndicated, vec![], first, 0), (previous, ends.to_vec(), data, room)], Rest::Nothing)
    };
    for (format, length, (shapes, rest)) in [
        (PDU_42, 38, single(38, Rest::Padding)),
        (PDU_42, 39, single(39, Rest::Nothing)),
        (PDU_42, 40, two(40, EndedExactly, &[], 0, 38)),
        (PDU_42, 41, two(40, NotIndicated, &[1], 1, 37)),
        (PDU_130, 124, single(124, Rest::Padding)),
        (PDU_130, 125, single(125, Rest::Nothing)),
        (PDU_130, 126, single(126, Rest::Nothing)),
        (PDU_130, 127, two(128, EndedOneShort, &[], 0, 124)),
        (PDU_130, 128, two(128, EndedExactly, &[], 0, 124)),
    ] {
        let pdus = all(&mut with(format, &[length]));
        assert_eq!(pdus.iter().map(shape).collect::<Vec<_>>(), shapes, "{length} bytes");
        assert_eq!(pdus[0].amd.rest, rest, "{length} bytes");
    }
}

#[test]
fn no_sdu_begins_in_single_spare_byte() {
    let pdus = all(&mut with(PDU_130, &[125, 20]));
    assert_eq!(pdus[0].carried, [part(0, true, true)]);
    assert_eq!(shape(&pdus[1]), (Previous::NotIndicated, vec![20], 20, 104));
}

/// Wireshark reports a 16th indicator as malformed, even if it is for padding.
#[test]
fn no_pdu_has_more_than_15_length_indicators() {
    let pdus = all(&mut with(PDU_130, &[1; 20]));
    assert_eq!(pdus[0].ended.len(), 14);
    assert_eq!(pdus[0].amd.rest, Rest::Padding);
    assert_eq!(pdus[1].ended.len(), 6);
    // 14 packets take 42 bytes each, which leaves 110 bytes.
    let mut lengths = vec![40; 14];
    lengths.extend([108, 40]);
    let pdus = all(&mut with(Format::fixed(700), &lengths));
    assert_eq!((pdus[0].ended.len(), &pdus[0].amd.rest), (15, &Rest::Nothing), "the data fills the PDU");
    assert_eq!(pdus[1].ended, [15]);
    // The 15th SDU continues, and ends in the next PDU.
    lengths[14] = 200;
    let pdus = all(&mut with(Format::fixed(700), &lengths));
    assert_eq!((pdus[0].ended.len(), pdus[0].amd.data.len()), (14, 670));
    assert_eq!(pdus[1].ended, [14, 15]);
}

#[test]
fn mrw_resumes_after_discarded_sdu_end() {
    let resume = |pdu: &SegmentedPdu<usize>, index| {
        let ResumeAt { sn, nlength } = pdu.resume_after(index);
        (sn.get(), nlength)
    };
    let pdus = all(&mut with(PDU_42, &[10, 20, 40]));
    assert_eq!(resume(&pdus[0], 0), (0, 1));
    assert_eq!(resume(&pdus[0], 1), (0, 2), "the third SDU begins here");
    assert_eq!(resume(&pdus[1], 0), (2, 0), "no SDU begins here");

    let pdus = all(&mut with(PDU_42, &[40, 20]));
    assert_eq!(resume(&pdus[1], 0), (1, 1), "LI 0 is the first indicator");
    assert_eq!(resume(&pdus[1], 1), (2, 0));

    let pdus = all(&mut with(PDU_42, &[10, 29]));
    assert_eq!(
        resume(&pdus[0], 0),
        (0, 1),
        "this PDU contains the second SDU, but does not indicate its end"
    );

    let pdus = all(&mut with(HE_SPECIAL, &[40, 10]));
    assert_eq!(resume(&pdus[0], 0), (1, 0));
}

#[test]
fn only_unsent_sdu_can_be_removed() {
    let mut segmenter = with(PDU_42, &[50, 30, 20]);
    segmenter.next_pdu(Sn::ZERO);
    assert_eq!(segmenter.partial(), Some(0));
    assert_eq!(segmenter.remove_unsent(0), None, "its transmission has begun");
    assert_eq!(segmenter.remove_unsent(1).map(|sdu| sdu.octets.len()), Some(30));
    assert_eq!(segmenter.octets(), 10 + 20);
    assert_eq!(segmenter.next_pdu(Sn::new(1)).unwrap().ended, [0, 2]);
}

#[test]
fn pdu_after_discard_begins_with_next_sdu() {
    let mut segmenter = with(PDU_42, &[100, 30, 20]);
    segmenter.next_pdu(Sn::ZERO);
    let discarded: Vec<_> = segmenter.discard_through(1).into_iter().map(|sdu| sdu.id).collect();
    assert_eq!(discarded, [0, 1]);
    assert_eq!((segmenter.octets(), segmenter.partial()), (20, None));
    let pdu = segmenter.next_pdu(Sn::new(1)).unwrap();
    assert_eq!((pdu.carried, pdu.amd.data), (vec![part(2, true, true)], sdu(2, 20).into()));
}

#[test]
fn discard_cancels_pending_li_0() {
    let mut segmenter = with(PDU_42, &[40]);
    segmenter.next_pdu(Sn::ZERO);
    assert_eq!(segmenter.discard_through(0), []);
    assert!(!segmenter.has_next());
}

#[test]
fn reset_drops_started_sdu_and_keeps_rest() {
    let mut segmenter = with(PDU_42, &[100, 30]);
    segmenter.next_pdu(Sn::ZERO);
    assert_eq!(segmenter.reset().map(|sdu| sdu.id), Some(0));
    assert_eq!(segmenter.octets(), 30);
    assert_eq!(segmenter.next_pdu(Sn::ZERO).unwrap().carried, [part(1, true, true)]);

    let mut segmenter = with(PDU_42, &[40, 30]);
    segmenter.next_pdu(Sn::ZERO);
    assert_eq!(segmenter.reset(), None);
    assert_eq!(segmenter.next_pdu(Sn::ZERO).unwrap().amd.previous, Previous::NotIndicated);
}

fn any_lengths(body: usize) -> impl Strategy<Value = Vec<usize>> {
    let around =
        (1..4 * body, 0..4_usize).prop_map(move |(n, off)| (n / body * body + off).saturating_sub(2).max(1));
    let small = 1..10_usize;
    let lengths = prop_oneof![2 => around, 2 => 1..body + 2, 1 => 1..1600_usize, 3 => small.clone()];
    prop_oneof![3 => prop::collection::vec(lengths, 1..30), 1 => prop::collection::vec(small, 30..60)]
}

fn any_fixed() -> impl Strategy<Value = Format> {
    let sizes = prop_oneof![3 => Just(42_usize), 1 => Just(126), 2 => Just(127), 2 => 20..300_usize];
    (sizes, any::<bool>()).prop_map(|(pdu_size, he_special)| Format { he_special, ..Format::fixed(pdu_size) })
}

fn any_flexible() -> impl Strategy<Value = Format> {
    let sizes = prop_oneof![16..300_usize, Just(126), Just(1505)];
    (sizes, any::<(bool, bool)>()).prop_map(|(most, (he_special, short))| {
        let size = if short && most <= 126 { IndicatorSize::Bits7 } else { IndicatorSize::Bits15 };
        Format { sizing: Sizing::Flexible(size), he_special, ..Format::fixed(most) }
    })
}

fn any_flexible_run() -> impl Strategy<Value = (Format, Vec<usize>)> {
    any_flexible().prop_flat_map(|format| (Just(format), any_lengths(format.body())))
}

fn any_run() -> impl Strategy<Value = (Format, Vec<usize>)> {
    let formats = prop_oneof![any_fixed(), any_flexible()];
    formats.prop_flat_map(|format| (Just(format), any_lengths(format.body())))
}

/// Encodes and decodes a PDU.
fn on_air(pdu: &SegmentedPdu<usize>, format: Format) -> Amd<'static> {
    match decode(&encode_amd(&pdu.amd, format), format) {
        Ok(Pdu::Amd(amd)) => amd.into_owned(),
        other => panic!("{pdu:?} became {other:?}"),
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn segmented_sdus_reassemble_unchanged((format, lengths) in any_run()) {
        let pdus = all(&mut with(format, &lengths));
        let mut reassembler = Reassembler::new(Delivery::InSequence);
        let mut out = Vec::new();
        for pdu in &pdus {
            reassembler.receive(&on_air(pdu, format), |sdu| out.push(sdu));
        }
        let sent: Vec<_> = lengths.iter().enumerate().map(|(id, length)| sdu(id, *length)).collect();
        prop_assert_eq!(out, sent);
        prop_assert_eq!(reassembler.faults(), Default::default());
    }

    #[test]
    fn segments_are_pdus_that_an_sdu_fills_and_leaves((format, lengths) in any_run()) {
        let mut segmenter = with(format, &lengths);
        let mut whole = segmenter.clone();
        let sn = Sn::new(9);
        while let Some(pdu) = whole.next_pdu(sn) {
            let fills = pdu.amd == Amd { sn, data: pdu.amd.data.clone(), ..Amd::default() }
                && pdu.amd.data.len() == format.body()
                && pdu.carried.iter().all(|carried| !carried.last);
            let Some((carried, data)) = segmenter.next_segment() else {
                prop_assert!(!fills);
                segmenter.next_pdu(sn);
                continue;
            };
            prop_assert!(fills);
            prop_assert_eq!((&*pdu.amd.data, pdu.carried.as_slice()), (data, &[carried][..]));
            prop_assert_eq!((pdu.ended.len(), pdu.piggyback_room), (0, 0));
            let mut written = vec![0; format.pdu_size];
            write_segment(sn, data, &mut written);
            prop_assert_eq!(written, encode_amd(&pdu.amd, format));
        }
        prop_assert!(!segmenter.has_next());
    }

    #[test]
    fn ready_count_matches_remaining_pdus((format, lengths) in any_run(), begun in 0..20_usize) {
        let mut segmenter = with(format, &lengths);
        for _ in 0..begun {
            segmenter.next_pdu(Sn::ZERO);
        }
        let ready = segmenter.ready(usize::MAX);
        prop_assert_eq!(segmenter.ready(3), ready.min(3));
        prop_assert_eq!(all(&mut segmenter).len(), ready);
        prop_assert_eq!(segmenter.octets(), 0);
    }

    #[test]
    fn every_sdu_begins_and_ends_exactly_once((format, lengths) in any_run()) {
        let pdus = all(&mut with(format, &lengths));
        let ids: Vec<_> = (0..lengths.len()).collect();
        let carried = || pdus.iter().flat_map(|pdu| &pdu.carried);
        let begun: Vec<_> = carried().filter(|part| part.first).map(|part| part.id).collect();
        let ended: Vec<_> = carried().filter(|part| part.last).map(|part| part.id).collect();
        let indicated: Vec<_> = pdus.iter().flat_map(|pdu| &pdu.ended).copied().collect();
        prop_assert_eq!(&begun, &ids);
        prop_assert_eq!(&ended, &ids);
        prop_assert_eq!(&indicated, &ids);
        for pdu in &pdus {
            let indicators = pdu.ended.len() + usize::from(pdu.amd.rest == Rest::Padding);
            prop_assert!(indicators <= 15);
            if pdu.piggyback_room > 0 {
                let mut with_status = pdu.clone();
                with_status.amd.rest = Rest::Piggybacked(Status(vec![Sufi::NoMore]));
                prop_assert_eq!(on_air(&with_status, format), with_status.amd);
            }
        }
    }

    #[test]
    fn mrw_after_any_sdu_delivers_only_later_sdus(
        (format, lengths) in any_run(),
        at in any::<prop::sample::Index>(),
    ) {
        let pdus = all(&mut with(format, &lengths));
        let last = at.index(lengths.len());
        let (pdu, index) = pdus
            .iter()
            .find_map(|pdu| Some((pdu, pdu.ended.iter().position(|id| *id == last)?)))
            .expect("every SDU has an end indication");
        let resume = pdu.resume_after(index);
        let mut reassembler = Reassembler::new(Delivery::InSequence);
        let mut out = Vec::new();
        // No part of a discarded SDU has been delivered.
        reassembler.move_window(resume.sn, resume.nlength, |sdu| out.push(sdu));
        for pdu in pdus.iter().skip(usize::from(resume.sn.get())) {
            reassembler.receive(&on_air(pdu, format), |sdu| out.push(sdu));
        }
        let sent: Vec<_> = lengths.iter().enumerate().map(|(id, length)| sdu(id, *length)).collect();
        prop_assert_eq!(out, &sent[last + 1..]);
        prop_assert_eq!(reassembler.faults(), Default::default());
    }
}
