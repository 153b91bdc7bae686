//! Reordering, reassembly and STATUS PDUs (§5.1.3.2, §5.2.3).

use super::*;

/// An AMD PDU or segment with the FI field `fi`.
fn pdu(sn: u32, segment: Option<(u32, bool)>, fi: u8, ends: &[u32], octets: &[u8]) -> Vec<u8> {
    let data = DataField { starts_sdu: fi & 0b10 == 0, ends_sdu: fi & 0b01 == 0, ends: ends.into(), octets };
    let segment = segment.map(|(so, is_last)| SegmentFields { is_last, so });
    Amd { poll: false, sn, segment, data }.encode(AmFormat::default())
}

/// PDU 0 arrives at 0 ms, PDU 2 at 1 ms, and PDU 3 with a poll at 2 ms.
#[test]
fn poll_above_gap_is_answered_after_t_reordering() {
    let mut receiver = entity();
    assert_eq!(receiver.received(at(0), &whole(0, false)), delivered(&[&[0]]));
    assert_eq!(receiver.received(at(1), &whole(2, false)), []);
    assert_eq!(receiver.received(at(2), &whole(3, true)), []);
    assert!(!receiver.can_send());
    assert_eq!(receiver.next_deadline(), Some(at(21)));
    receiver.waited(at(21));
    assert_eq!(status(&mut receiver, at(21)), hex("00120080"));
    assert_eq!(receiver.next_deadline(), None, "not restarted");
    assert_eq!(receiver.received(at(22), &whole(1, false)), delivered(&[&[1], &[2], &[3]]));
}

#[test]
fn sdus_are_delivered_in_sequence() {
    let mut receiver = entity();
    assert_eq!(receiver.received(at(0), &whole(2, false)), []);
    assert_eq!(receiver.received(at(0), &whole(1, false)), []);
    assert_eq!(receiver.received(at(0), &whole(1, false)), []);
    assert_eq!(receiver.stats().duplicates, 1);
    assert_eq!(receiver.received(at(0), &whole(0, false)), delivered(&[&[0], &[1], &[2]]));
    assert_eq!(receiver.next_deadline(), None);
}

#[test]
fn complete_sdus_of_incomplete_pdu_are_delivered() {
    let mut receiver = entity();
    // The PDU has SDUs of 2, 3 and 2 octets, and begins a further one.
    assert_eq!(
        receiver.received(at(0), &pdu(0, Some((0, false)), 0b01, &[2], &[1, 1, 2])),
        delivered(&[&[1, 1]])
    );
    assert_eq!(receiver.received(at(1), &pdu(0, Some((5, true)), 0b01, &[2], &[3, 3, 4])), []);
    // Octets 2 to 4. Octet 2 has been received before.
    let rest = delivered(&[&[2, 2, 2], &[3, 3]]);
    assert_eq!(receiver.received(at(2), &pdu(0, Some((2, false)), 0b00, &[], &[2, 2, 2])), rest);
    assert_eq!(receiver.received(at(3), &pdu(1, None, 0b10, &[], &[4])), delivered(&[&[4, 4]]));
}

#[test]
fn whole_pdu_completes_a_partly_received_one() {
    let mut receiver = entity();
    receiver.received(at(0), &pdu(0, Some((0, false)), 0b00, &[], &[1, 1]));
    receiver.received(at(0), &pdu(0, Some((6, true)), 0b10, &[], &[3]));
    let events = receiver.received(at(1), &pdu(0, None, 0b00, &[2, 4], &[1, 1, 2, 2, 3, 3, 3]));
    assert_eq!(events, delivered(&[&[2, 2], &[3, 3, 3]]));
}

#[test]
fn segments_arrive_in_reverse_order() {
    let mut receiver = entity();
    receiver.received(at(0), &pdu(0, Some((4, true)), 0b10, &[1], &[2, 3]));
    receiver.received(at(0), &pdu(0, Some((2, false)), 0b11, &[1], &[1, 2]));
    let events = receiver.received(at(0), &pdu(0, Some((0, false)), 0b01, &[], &[1, 1]));
    assert_eq!(events, delivered(&[&[1, 1, 1], &[2, 2], &[3]]));
}

#[test]
fn continuation_of_an_unknown_sdu_is_discarded() {
    let mut receiver = entity();
    assert_eq!(receiver.received(at(0), &pdu(0, None, 0b10, &[2], &[1, 1, 2])), delivered(&[&[2]]));
    // No PDU has the end of this SDU: the next PDU starts another SDU.
    assert_eq!(receiver.received(at(0), &pdu(1, None, 0b01, &[], &[3])), []);
    assert_eq!(receiver.received(at(0), &whole(2, false)), delivered(&[&[2]]));
}

/// srsRAN_4G 7ac7c8673: a poll outside the window was ignored.
#[test]
fn poll_outside_the_window_is_answered_at_once() {
    let mut receiver = entity();
    receiver.received(at(0), &whole(0, false));
    for sn in [0, 513, 1023] {
        assert_eq!(receiver.received(at(1), &whole(sn, true)), []);
        assert_eq!(status(&mut receiver, at(1)), hex("0004"), "{sn}");
    }
}

#[test]
fn every_hole_of_incomplete_pdu_has_nack() {
    let mut receiver = entity();
    receiver.received(at(0), &pdu(0, Some((2, false)), 0b11, &[], &[1; 4]));
    receiver.received(at(0), &pdu(0, Some((9, false)), 0b11, &[], &[1; 4]));
    receiver.received(at(0), &whole(2, false));
    assert_eq!(receiver.next_deadline(), Some(at(20)), "VR(H) > VR(R)");
    receiver.waited(at(20));
    receiver.waited(at(40));
    let Ok(codec::Pdu::Status(report)) = codec::decode(&status(&mut receiver, at(40)), AmFormat::default())
    else {
        panic!("not a STATUS PDU");
    };
    let segments: Vec<_> = report
        .nacks
        .iter()
        .map(|nack| (nack.sn, nack.segment.map(|segment| (segment.start, segment.end))))
        .collect();
    assert_eq!(
        segments,
        [(0, Some((0, Some(1)))), (0, Some((6, Some(8)))), (0, Some((13, None))), (1, None)]
    );
    assert_eq!(report.ack_sn, 3);
}

#[test]
fn trimmed_report_acknowledges_nothing_that_is_missing() {
    let mut receiver = entity();
    for sn in [1, 3, 5, 7] {
        receiver.received(at(0), &whole(sn, false));
    }
    receiver.waited(at(40));
    // 15 bits, and 12 for each NACK.
    for (room, count) in [(2, 0), (4, 1), (6, 2), (7, 3), (8, 4), (99, 4)] {
        let octets = &receiver.pulled(at(40), room)[0].octets;
        let Ok(codec::Pdu::Status(status)) = codec::decode(octets, AmFormat::default()) else {
            panic!("not a STATUS PDU");
        };
        let nacks: Vec<_> = status.nacks.iter().map(|nack| nack.sn).collect();
        assert_eq!(nacks, [0, 2, 4, 6][..count]);
        assert_eq!(status.ack_sn, 2 * count as u64, "{room} octets");
        receiver.received(at(40), &whole(1, true));
    }
}

#[test]
fn triggers_during_t_status_prohibit_cause_one_report() {
    let mut receiver = with(|config| config.parameters.t_status_prohibit = ms(10));
    receiver.received(at(0), &whole(0, true));
    assert_eq!(status(&mut receiver, at(3)), hex("0004"));
    receiver.received(at(4), &whole(1, true));
    receiver.received(at(5), &whole(2, true));
    assert!(receiver.pulled(at(12), 100).is_empty());
    receiver.waited(at(13));
    assert_eq!(status(&mut receiver, at(13)), hex("000c"));
    assert!(!receiver.can_send());
}
