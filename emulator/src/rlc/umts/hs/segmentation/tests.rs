use airtcp_testkit::sample::cases;
use proptest::prelude::*;

use super::*;
use crate::rlc::umts::entity::PduKind;

const EHS: Framing = Framing::Ehs { most: 1505 };

/// A PDU of `octets` bytes, whose content depends on `number`.
fn pdu(number: usize, octets: usize) -> Outgoing {
    let octets = (0..octets).map(|n| (n * 7 + number * 31) as u8).collect();
    Outgoing { octets, kind: PduKind::Status, epoch: 0 }
}

fn cqi(bits: usize) -> Cqi {
    Cqi::for_bits(bits, Cqi::of(40.0))
}

/// The SI of a block, and the sizes of its parts in bytes.
fn shape(content: &Content) -> (Si, Vec<usize>) {
    (content.si, content.parts.iter().map(Vec::len).collect())
}

#[test]
fn pdu_remainder_continues_in_next_block() {
    let mut segmenter = Segmenter::new(EHS);
    // 1483 bits are 185 bytes. TSN and SI take one byte, and each part takes two more.
    let block = cqi(1483);
    let pdus = vec![pdu(0, 20), pdu(1, 500), pdu(2, 30)];
    let mut blocks = vec![segmenter.fill(block, pdus).unwrap()];
    assert!(segmenter.has_waiting());
    while let Some(content) = segmenter.fill(block, Vec::new()) {
        blocks.push(content);
    }
    let expected = [
        (Si::LastSegmented, vec![20, 184 - 22 - 2]),
        (Si::Both, vec![182]),
        (Si::FirstSegmented, vec![500 - 160 - 182, 184 - 2 - 158 - 2]),
        (Si::FirstSegmented, vec![8]),
    ];
    // The third block has the last part of PDU 1 and the first part of PDU 2.
    let shapes: Vec<_> = blocks.iter().map(shape).collect();
    assert_eq!(shapes[..2], expected[..2]);
    assert_eq!(shapes[2], (Si::Both, expected[2].1.clone()));
    assert_eq!(shapes[3..], expected[3..]);
    assert_eq!((segmenter.has_waiting(), segmenter.segments), (false, 5));
    let mut reassembler = Reassembler::default();
    let mut delivered = Vec::new();
    for (number, content) in (0..).zip(blocks) {
        reassembler.receive(number, content, &mut delivered);
    }
    assert_eq!(delivered, [pdu(0, 20).octets, pdu(1, 500).octets, pdu(2, 30).octets]);
    assert_eq!(reassembler.incomplete, 0);
}

#[test]
fn room_for_rlc_excludes_waiting_segment() {
    let mut segmenter = Segmenter::new(EHS);
    let block = cqi(1483);
    let room = |bytes, pdus| Room::Bytes { bytes, header: 2, pdus };
    assert_eq!(segmenter.room(block), room(184, 26));
    segmenter.fill(block, vec![pdu(0, 300)]).unwrap();
    assert_eq!(segmenter.room(block), room(184 - 2 - 118, 25));
}

#[test]
fn pdu_with_missing_segment_is_not_reassembled() {
    let mut segmenter = Segmenter::new(EHS);
    let block = cqi(1483);
    let mut blocks: Vec<_> =
        segmenter.fill(block, vec![pdu(0, 400), pdu(1, 400), pdu(2, 20)]).into_iter().collect();
    while let Some(content) = segmenter.fill(block, Vec::new()) {
        blocks.push(content);
    }
    assert_eq!(blocks.len(), 5);
    let sizes = [400, 400, 20];
    // Parts of PDU 0 are in blocks 0 to 2, parts of PDU 1 in blocks 2 to 4, and PDU 2 is in block 4.
    for (lost, delivered_pdus, incomplete) in
        [(0, vec![1, 2], 2), (1, vec![1, 2], 2), (2, vec![2], 3), (3, vec![0, 2], 2), (4, vec![0], 0)]
    {
        let mut reassembler = Reassembler::default();
        let mut delivered = Vec::new();
        for (number, content) in (0..).zip(&blocks).filter(|(number, _)| *number != lost) {
            reassembler.receive(number, content.clone(), &mut delivered);
        }
        let expected: Vec<_> =
            delivered_pdus.iter().map(|number| pdu(*number, sizes[*number]).octets).collect();
        assert_eq!((delivered, reassembler.incomplete), (expected, incomplete), "without block {lost}");
    }
}

/// The TSN repeats after 64 blocks. If 64 blocks are lost, the last block before and the first block after
/// the loss have consecutive TSNs.
#[test]
fn segments_across_tsn_wrap_are_not_joined() {
    let content = |si, parts: &[&[u8]]| Content {
        si,
        parts: parts.iter().map(|part| part.to_vec()).collect(),
        pdus: vec![0; parts.len()],
    };
    let mut reassembler = Reassembler::default();
    let mut delivered = Vec::new();
    reassembler.receive(5, content(Si::LastSegmented, &[b"half"]), &mut delivered);
    reassembler.receive(70, content(Si::FirstSegmented, &[b"of another", b"whole"]), &mut delivered);
    assert_eq!(delivered, [Arc::from(*b"whole")]);
    assert_eq!(reassembler.incomplete, 2);
}

#[test]
fn pdu_outcome_is_decided_by_all_its_blocks() {
    for lost in [None, Some(0), Some(1), Some(2)] {
        let mut segmenter = Segmenter::new(EHS);
        let block = cqi(1483);
        let mut blocks = vec![segmenter.fill(block, vec![pdu(0, 20), pdu(1, 600)]).unwrap()];
        let mut decided = Vec::new();
        let mut decide = |segmenter: &mut Segmenter, n: usize, content: &Content| {
            segmenter.decide(content, lost == Some(n), |pdu, lost| decided.push((pdu.octets.len(), lost)));
            std::mem::take(&mut decided)
        };
        // Before the other blocks are filled.
        assert_eq!(decide(&mut segmenter, 0, &blocks[0]), [(20, lost == Some(0))]);
        while let Some(content) = segmenter.fill(block, Vec::new()) {
            blocks.push(content);
        }
        assert_eq!(blocks.len(), 4);
        // Not in the order in which the blocks were filled.
        assert_eq!(decide(&mut segmenter, 3, &blocks[3]), []);
        assert_eq!(decide(&mut segmenter, 1, &blocks[1]), []);
        assert_eq!(decide(&mut segmenter, 2, &blocks[2]), [(600, lost.is_some())]);
        assert!(segmenter.undecided.is_empty());
    }
}

#[test]
fn reset_clears_waiting_and_stored_segments() {
    let mut segmenter = Segmenter::new(EHS);
    let block = cqi(1483);
    let first = segmenter.fill(block, vec![pdu(0, 300)]).unwrap();
    let mut reassembler = Reassembler::default();
    let mut delivered = Vec::new();
    reassembler.receive(0, first.clone(), &mut delivered);
    segmenter.reset();
    reassembler.reset();
    assert!(!segmenter.has_waiting());
    segmenter.decide(&first, false, |_, _| panic!("a block from before the reset has an outcome"));
    let second = segmenter.fill(block, vec![pdu(1, 30)]).unwrap();
    assert_eq!(shape(&second), (Si::Complete, vec![30]));
    reassembler.receive(0, second, &mut delivered);
    assert_eq!((delivered, reassembler.incomplete), (vec![pdu(1, 30).octets], 0));
}

proptest! {
    #![proptest_config(cases(500))]

    /// Blocks of any size, some of which are lost. A PDU arrives, and in order, if none of its blocks was
    /// lost, and `decide` reports the same.
    #[test]
    fn only_complete_pdus_are_delivered(
        pdus in prop::collection::vec(1_usize..1506, 1..40),
        blocks in prop::collection::vec((137_usize..25_559, any::<bool>()), 1..40),
        loses in 0_u8..4,
    ) {
        let mut segmenter = Segmenter::new(EHS);
        let mut reassembler = Reassembler::default();
        let mut waiting: VecDeque<_> = pdus.iter().enumerate().map(|(n, octets)| pdu(n, *octets)).collect();
        let (mut delivered, mut arrived, mut all) = (Vec::new(), Vec::new(), 0);
        let mut sizes = blocks.iter().cycle();
        for number in 0.. {
            let (bits, lost) = *sizes.next().unwrap();
            let (block, lost) = (cqi(bits), lost && loses == 0);
            let mut given = Vec::new();
            if let Room::Bytes { bytes, header, pdus } = segmenter.room(block) {
                let mut left = bytes;
                while left > 0 && given.len() < pdus && let Some(pdu) = waiting.pop_front() {
                    left = left.saturating_sub(header + pdu.octets.len());
                    given.push(pdu);
                }
            }
            let Some(content) = segmenter.fill(block, given) else { break };
            let framing = segmenter.framing();
            prop_assert!(framing.smallest(&content.parts, cqi(25_558)) <= block, "it exceeds the block size");
            prop_assert!(content.parts.len() <= 26);
            segmenter.decide(&content, lost, |pdu, lost| {
                all += 1;
                if !lost {
                    arrived.push(pdu.octets.clone());
                }
            });
            if !lost {
                reassembler.receive(number, content, &mut delivered);
            }
        }
        prop_assert_eq!(all, pdus.len());
        prop_assert_eq!(&delivered, &arrived);
        if loses > 0 {
            let sent: Vec<_> = pdus.iter().enumerate().map(|(n, octets)| pdu(n, *octets).octets).collect();
            prop_assert_eq!(delivered, sent);
            prop_assert_eq!(reassembler.incomplete, 0);
        }
    }
}
