//! NACKs, RETX_COUNT and maxRetxThreshold (§5.3.2).

use super::*;
use crate::rlc::am::{Nack, Status};

/// Retransmissions of an entity, as pairs of sequence number and octets.
fn retransmissions(entity: &mut AmEntity, now: Instant) -> Vec<(u64, usize)> {
    let pdus = pull_all(entity, now, 1000);
    pdus.iter().map(|pdu| (data(pdu).0, decoded(pdu).data.len())).collect()
}

fn decoded(pdu: &Pdu) -> Amd<'_> {
    match codec::decode(&pdu.octets, AmSnLength::Bits12) {
        Ok(codec::Pdu::Data(amd)) => amd,
        _ => panic!("not an AMD PDU"),
    }
}

/// An entity that has sent SDUs of these lengths.
fn sender_of(lengths: &[usize]) -> AmEntity {
    let mut sender = entity_12();
    for (id, length) in lengths.iter().enumerate() {
        sender.submit(sdu(id as u64, *length));
    }
    pull_all(&mut sender, at(0), 10_000);
    sender
}

#[test]
fn sdu_lost_beyond_threshold_is_indicated_once() {
    for threshold in 1..5 {
        let mut sender = with(|config| config.parameters.max_retx_threshold = threshold);
        sender.submit(sdu(9, 10));
        let mut indicated = Vec::new();
        for loss in 1..threshold + 4 {
            assert_eq!(pull_all(&mut sender, at(0), 100).len(), 1);
            let events = sender.received(at(0), &hex("0001 80 0000"));
            indicated.extend(events.into_iter().map(|event| (loss, event)));
        }
        assert_eq!(indicated, [(threshold + 1, Event::MaxRetx(9))]);
    }
}

#[test]
fn expiries_of_t_poll_retransmit_count_like_nacks() {
    let mut sender = entity_12();
    sender.submit(sdu(9, 10));
    pull_all(&mut sender, at(0), 100);
    for round in 1..=5 {
        let events = sender.waited(at(100 * round));
        assert_eq!(events, if round == 5 { vec![Event::MaxRetx(9)] } else { vec![] }, "{round}");
        let transmission = sender.pulled(at(100 * round), 100).remove(0).kind;
        assert!(matches!(transmission, PduKind::Data { transmission: n, .. } if n == 1 + round as u32));
    }
}

#[test]
fn nack_of_a_pending_sdu_does_not_count() {
    let mut sender = sender_of(&[10]);
    for _ in 0..10 {
        assert_eq!(sender.received(at(0), &hex("0001 80 0000")), []);
    }
    assert_eq!(retransmissions(&mut sender, at(0)), [(0, 10)]);
}

/// OpenAirInterface increments RETX_COUNT for each segment.
#[test]
fn nacks_of_segments_in_one_report_count_once() {
    let mut sender = sender_of(&[30]);
    let report = hex("0001 80 000c 0000 0004 000c 000a 000e 0004 0014 0018");
    for _ in 0..4 {
        assert_eq!(sender.received(at(0), &report), []);
        assert_eq!(retransmissions(&mut sender, at(0)), [(0, 5), (0, 5), (0, 5)]);
    }
    assert_eq!(sender.received(at(0), &report), [Event::MaxRetx(0)]);
}

/// Mistakes that srsRAN_4G corrected in a11291eb0, c386d8957 and e01bbb8f7.
#[test]
fn nack_range_covers_parts_of_edge_sdus() {
    let mut sender = sender_of(&[10, 20, 30, 40]);
    // From octet 4 of SDU 0 to octet 9 of SDU 2.
    let events = sender.received(at(0), &hex("0004 80 0006 0004 0009 03"));
    assert_eq!(events, [Event::Confirmed(3)]);
    assert_eq!(sender.buffer_status().retransmission, 6 + 20 + 10);
    assert_eq!(retransmissions(&mut sender, at(0)), [(0, 6), (1, 20), (2, 10)]);

    // A range of 1, and offsets at the edges of the SDU or beyond it.
    for (report, expected) in [
        ("0002 80 0006 0000 0009 01", vec![(0, 10)]),
        ("0002 80 0014 0013 ffff", vec![(1, 1)]),
        ("0002 80 0014 0012 0100", vec![(1, 2)]),
        ("0002 80 0014 0014 0100", vec![]),
    ] {
        let mut sender = sender_of(&[10, 20]);
        sender.received(at(0), &hex(report));
        assert_eq!(retransmissions(&mut sender, at(0)), expected, "{report}");
    }
}

#[test]
fn nack_range_covers_sdus_across_the_wrap() {
    let mut sender = entity_12();
    let mut confirmed = 0;
    for id in 0..4100 {
        sender.submit(sdu(id, 10));
        sender.pulled(at(0), 100);
        if id < 4094 {
            let report = Status { ack_sn: id + 1, nacks: vec![] };
            confirmed += sender.received(at(0), &codec::encode_status(&report, AmSnLength::Bits12)).len();
        }
    }
    assert_eq!(confirmed, 4094);
    // ACK_SN 3 is 4099: NACKs of 4094 to 4097.
    let events = sender.received(at(0), &hex("0003 80 ffe2 04"));
    assert_eq!(events, [Event::Confirmed(4098)]);
    let sns: Vec<_> = retransmissions(&mut sender, at(0)).into_iter().map(|(sn, _)| sn).collect();
    assert_eq!(sns, [4094, 4095, 4096, 4097]);
}

/// Mistakes that srsRAN_4G corrected in e4207b177, b001d6c10 and ede44369f.
#[test]
fn full_window_across_the_wrap_is_acknowledged() {
    let mut sender = entity_12();
    for id in 0..6000 {
        sender.submit(sdu(id, 1));
    }
    for (window, report) in ["0800 00", "0000 00", "0770 00"].iter().enumerate() {
        let pdus = pull_all(&mut sender, at(0), 100_000);
        let sent = if window < 2 { 2048 } else { 1904 };
        assert_eq!((pdus.len(), data(&pdus[0]).0), (sent, 2048 * window as u64));
        assert_eq!(sender.received(at(0), &hex(report)).len(), sent);
    }
}

/// A mistake that srsRAN_4G corrected in 62558d94d.
#[test]
fn separate_segments_are_retransmitted_separately() {
    let mut sender = sender_of(&[100]);
    sender.received(at(0), &hex("0001 80 000c 000a 0013 0004 0032 003b"));
    let pdus = pull_all(&mut sender, at(0), 9);
    // 4 octets of header and 5 of data in each. None reaches into octets that were received.
    let positions: Vec<_> = pdus.iter().map(|pdu| (decoded(pdu).position, decoded(pdu).data.len())).collect();
    let middle = |so| (Position::Middle { so }, 5);
    assert_eq!(positions, [middle(10), middle(15), middle(50), middle(55)]);
}

#[test]
fn retransmitted_segment_is_segmented_again() {
    let [mut sender, mut receiver] = [entity_12(), entity_12()];
    let original = sdu(0, 500);
    sender.submit(original.clone());
    let segments = pull_all(&mut sender, at(0), 200);
    assert_eq!(segments.len(), 3);
    receiver.received(at(1), &segments[0].octets);
    receiver.received(at(1), &segments[2].octets);
    receiver.waited(at(21));
    let report = status(&mut receiver, at(21));
    assert_eq!(sender.received(at(22), &report), []);
    assert_eq!(sender.buffer_status().retransmission, 196);
    let events: Vec<_> = pull_all(&mut sender, at(22), 50)
        .iter()
        .flat_map(|pdu| receiver.received(at(23), &pdu.octets))
        .collect();
    assert_eq!(events, [Event::Delivered(original.octets.to_vec())]);
}

/// Only octets that have been transmitted are retransmitted. SOend ffff is the last transmitted octet.
#[test]
fn nack_of_unfinished_sdu_concerns_transmitted_octets() {
    for (report, expected) in [
        ("0001 80 0000", Some((0, 8))),
        ("0001 80 0004 0004 ffff", Some((0, 4))),
        ("0001 80 0004 0008 ffff", None),
        ("0001 80 0004 0002 0063", Some((0, 6))),
    ] {
        let mut sender = entity_12();
        sender.submit(sdu(0, 100));
        sender.pulled(at(0), 10);
        assert_eq!(sender.received(at(1), &hex(report)), [], "{report}");
        let sent = retransmissions(&mut sender, at(1));
        let expected: Vec<_> = expected.into_iter().chain([(0, 92)]).collect();
        assert_eq!(sent, expected, "{report}");
    }
}

/// srsRAN issue #891: a STATUS PDU with ACK_SN = TX_Next + 1 was dropped while an SDU was half sent.
#[test]
fn report_about_an_sdu_under_segmentation_is_accepted() {
    let mut sender = entity_12();
    sender.submit(sdu(0, 10));
    sender.submit(sdu(1, 100));
    sender.pulled(at(0), 30);
    // ACK_SN 2 with a NACK of SDU 1 from octet 16 on, whose transmission has not begun.
    assert_eq!(sender.received(at(1), &hex("0002 80 0014 0010 ffff")), [Event::Confirmed(0)]);
    assert_eq!(sender.buffer_status().retransmission, 0);
    // The rest is sent, and acknowledged later.
    assert_eq!(pull_all(&mut sender, at(1), 1000).len(), 1);
    assert_eq!(sender.received(at(2), &hex("0002 00")), [Event::Confirmed(1)]);
}

#[test]
fn unfinished_sdu_is_never_acknowledged() {
    let mut sender = entity_12();
    sender.submit(sdu(0, 100));
    sender.pulled(at(0), 30);
    assert_eq!(sender.received(at(1), &hex("0001 00")), []);
    pull_all(&mut sender, at(1), 1000);
    assert_eq!(sender.received(at(2), &hex("0001 00")), [Event::Confirmed(0)]);
}

/// srsRAN_Project rebuilds its retransmission queue from each report, so a trimmed report removes earlier
/// losses.
#[test]
fn trimmed_report_does_not_forget_earlier_nacks() {
    let mut sender = sender_of(&[10; 8]);
    sender.received(at(0), &hex("0008 80 0008 0028 0050"));
    assert_eq!(sender.received(at(0), &hex("0002 80 0000")), []);
    let sns: Vec<_> = retransmissions(&mut sender, at(0)).into_iter().map(|(sn, _)| sn).collect();
    assert_eq!(sns, [0, 2, 5]);
}

#[test]
fn late_report_neither_acknowledges_nor_requests_anything() {
    let mut sender = sender_of(&[10; 8]);
    assert_eq!(sender.received(at(1), &hex("0008 80 0030")).len(), 7);
    assert_eq!(retransmissions(&mut sender, at(1)), [(3, 10)]);
    // ACK_SN 5 with NACKs of 2 and 4, in a report that was sent before the first one and arrives after it.
    assert_eq!(sender.received(at(1), &hex("0005 80 0028 0040")), [Event::Confirmed(3)]);
    assert_eq!(sender.received(at(1), &hex("0005 80 0028 0040")), []);
    assert_eq!(sender.received(at(1), &hex("0002 00")), []);
    assert_eq!(retransmissions(&mut sender, at(1)), []);
}

#[test]
fn acknowledgement_cancels_a_pending_retransmission() {
    let mut sender = sender_of(&[10; 3]);
    sender.received(at(0), &hex("0003 80 0008 0010"));
    assert_eq!(sender.received(at(0), &hex("0003 00")), [Event::Confirmed(0), Event::Confirmed(1)]);
    assert_eq!((sender.buffer_status().total(), sender.can_send()), (0, false));
}

#[test]
fn contradictory_reports_are_refused() {
    let refused = |sender: &mut AmEntity, text: &str| sender.receive(at(0), &hex(text), &mut Vec::new());
    let mut sender = sender_of(&[10; 3]);
    assert_eq!(refused(&mut sender, "0004 00"), Err(ReceiveError::AckAhead(4)));
    // A report of OpenAirInterface may acknowledge and NACK the same sequence number.
    let ahead = |nack_sn, ack_sn| Err(ReceiveError::NackAhead { nack_sn, ack_sn });
    assert_eq!(refused(&mut sender, "0002 80 0020"), ahead(2, 2));
    assert_eq!(refused(&mut sender, "0003 80 0012 03"), ahead(1, 3));
    assert_eq!(sender.stats().refused, 3);
    // A refused PDU changes nothing.
    assert_eq!(sender.received(at(0), &hex("0003 00")).len(), 3);
}

/// A report with very many NACKs, which srsRAN_4G handles since e6d976d11.
#[test]
fn report_with_thousands_of_nacks_is_handled() {
    let mut sender = sender_of(&[2; 2048]);
    let report = Status { ack_sn: 2048, nacks: (0..2048).step_by(2).map(Nack::of).collect() };
    let events = sender.received(at(0), &codec::encode_status(&report, AmSnLength::Bits12));
    assert_eq!(events.len(), 1024);
    assert_eq!(retransmissions(&mut sender, at(0)).len(), 1024);
}
