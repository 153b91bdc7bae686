//! Concatenation, retransmission and polling (§5.1.3.1, §5.2).

use super::*;
use crate::rlc::am::{Nack, NackSegment, Status};
use crate::rlc::lte::LiLength;
use crate::rlc::service::Sdu;

/// Octets 0x10 to 0x19, repeated.
fn numbered(id: u64, first: u8, length: u8) -> Sdu {
    Sdu { id, octets: (first..first + length).map(|n| 0x10 + n % 10).collect() }
}

/// The PDUs and segments that Wireshark decodes, with the same 10 octets of data in each.
#[test]
fn pdus_and_segments_match_wireshark_examples() {
    let mut sender = with(|config| config.parameters.poll_pdu = Some(8));
    (0..6).for_each(|id| sender.submit(sdu(id, 1)));
    let sdus = [numbered(6, 0, 4), numbered(7, 4, 9), numbered(8, 3, 5), numbered(9, 8, 50)];
    sdus.into_iter().for_each(|sdu| sender.submit(sdu));
    for _ in 0..6 {
        pull(&mut sender, at(0), 3);
    }
    assert_eq!(pull(&mut sender, at(0), 14).octets, hex("8c060040 10111213141516171819"));
    // The eighth PDU polls.
    assert_eq!(pull(&mut sender, at(0), 15).octets, hex("bc07803005 10111213141516171819"));
    // The poll is repeated.
    assert_eq!(sender.waited(at(100)), []);
    let segment = Some(NackSegment { start: 4, end: Some(9) });
    let report = Status { ack_sn: 8, nacks: vec![Nack { segment, ..Nack::of(6) }, Nack::of(7)] };
    let report = codec::encode_status(&report, AmSnLength::Bits10);
    assert_eq!(sender.received(at(100), &report).len(), 6);
    assert_eq!(pull(&mut sender, at(100), 50).octets, hex("e8068004 141516171819"));
    assert_eq!(pull(&mut sender, at(100), 7).octets, hex("d0070000 101112"));
    assert_eq!(pull(&mut sender, at(100), 13).octets, hex("cc0780030050 13141516171819"));
    let confirmed = [6, 7, 8].map(Event::Confirmed);
    assert_eq!(sender.received(at(100), &hex("0020")), confirmed);
}

#[test]
fn retransmission_that_fits_changes_only_p() {
    let mut sender = entity();
    for id in 0..4 {
        sender.submit(sdu(id, 10));
    }
    let original = pull(&mut sender, at(0), 30);
    sender.received(at(1), &hex("00060000"));
    let again = pull(&mut sender, at(1), 30);
    assert_eq!(again.octets, original.octets);
    let kind = PduKind::Data { sn: 0, transmission: 2, polls: false, sdus: vec![0, 1, 2].into() };
    assert_eq!(again.kind, kind);
    pull(&mut sender, at(1), 100);
    sender.received(at(2), &hex("000a0000"));
    let polling = pull(&mut sender, at(2), 30);
    assert_eq!(polling.octets[0], original.octets[0] | 0x20);
    assert_eq!(polling.octets[1..], original.octets[1..]);
}

#[test]
fn element_too_long_for_li_ends_its_pdu() {
    for (li, length) in [(LiLength::Bits11, 2048), (LiLength::Bits15, 2048)] {
        let mut sender = with(|config| config.format.li = li);
        sender.submit(sdu(0, length));
        sender.submit(sdu(1, 10));
        let pdu = pull(&mut sender, at(0), 5_000);
        let expected = if li == LiLength::Bits11 { 2 + 2048 } else { 4 + 2058 };
        assert_eq!(pdu.octets.len(), expected);
    }
}

#[test]
fn data_field_never_exceeds_range_of_so() {
    let mut sender = entity();
    sender.submit(sdu(0, 40_000));
    assert_eq!(pull(&mut sender, at(0), 60_000).octets.len(), 2 + 32_767);
    assert_eq!(pull(&mut sender, at(0), 60_000).octets.len(), 2 + 40_000 - 32_767);
}

#[test]
fn segments_of_many_elements_fit_every_grant() {
    for grant in 5..60 {
        let [mut sender, mut receiver] = [entity(), entity()];
        let sent: Vec<_> = (0..20).map(|id| sdu(id, 1 + id as usize % 4)).collect();
        sent.iter().for_each(|sdu| sender.submit(sdu.clone()));
        pull(&mut sender, at(0), 1000);
        sender.received(at(1), &hex("00060000"));
        let mut events = Vec::new();
        while sender.can_send() {
            let segment = pull(&mut sender, at(1), grant);
            assert!(segment.octets.len() <= grant);
            events.extend(receiver.received(at(2), &segment.octets));
        }
        let expected: Vec<_> = sent.iter().map(|sdu| Event::Delivered(sdu.octets.to_vec())).collect();
        assert_eq!(events, expected, "{grant}");
    }
}

#[test]
fn pdu_lost_beyond_threshold_is_indicated_once() {
    for threshold in 1..5 {
        let mut sender = with(|config| config.parameters.max_retx_threshold = threshold);
        sender.submit(sdu(9, 10));
        let mut indicated = Vec::new();
        for loss in 1..threshold + 4 {
            pull(&mut sender, at(0), 100);
            let events = sender.received(at(0), &hex("00060000"));
            indicated.extend(events.into_iter().map(|event| (loss, event)));
        }
        assert_eq!(indicated, [(threshold + 1, Event::MaxRetx(9))]);
    }
}

/// srsRAN_4G: `>` instead of `>=`, and retransmissions counted.
#[test]
fn poll_pdu_counts_only_new_pdus() {
    let mut sender = with(|config| config.parameters.poll_pdu = Some(3));
    for id in 0..7 {
        sender.submit(sdu(id, 10));
    }
    let polls: Vec<_> = (0..7).map(|_| data(&pull(&mut sender, at(0), 12)).1).collect();
    assert_eq!(polls, [false, false, true, false, false, true, true]);
    // NACKs of 0 to 3: the retransmissions do not count.
    for id in 7..11 {
        sender.submit(sdu(id, 10));
    }
    let report = Status { ack_sn: 7, nacks: (0..4).map(Nack::of).collect() };
    sender.received(at(1), &codec::encode_status(&report, AmSnLength::Bits10));
    let polls: Vec<_> = (0..8).map(|_| data(&pull(&mut sender, at(1), 12))).collect();
    assert_eq!(polls[..4], [(0, false), (1, false), (2, false), (3, false)]);
    assert_eq!(polls[4..], [(7, false), (8, false), (9, true), (10, true)]);
}

#[test]
fn poll_byte_counts_octets_of_data() {
    let mut sender = with(|config| config.parameters.poll_byte = Some(25));
    for id in 0..6 {
        sender.submit(sdu(id, 10));
    }
    let polls: Vec<_> = (0..6).map(|_| data(&pull(&mut sender, at(0), 12)).1).collect();
    assert_eq!(polls, [false, false, true, false, false, true]);
}

/// srsRAN_4G: with a full window, every transmission opportunity resent VT(A), and RETX_COUNT ran away.
#[test]
fn full_window_resends_only_after_t_poll_retransmit() {
    let mut sender = entity();
    sender.submit(sdu(0, 600));
    let polls: Vec<_> = (0..512).map(|_| data(&pull(&mut sender, at(0), 3)).1).collect();
    assert!(polls[511] && !polls[..511].contains(&true));
    for now in 1..100 {
        assert!(sender.pulled(at(now), 1000).is_empty());
    }
    assert_eq!(sender.waited(at(100)), []);
    assert_eq!(data(&pull(&mut sender, at(100), 1000)), (511, true));
    // ACK_SN = 512 frees the window.
    assert_eq!(sender.received(at(101), &hex("0800")), []);
    assert_eq!(data(&pull(&mut sender, at(101), 1000)), (512, true));
    assert_eq!(sender.received(at(102), &hex("0804")), [Event::Confirmed(0)]);
}

#[test]
fn sdu_is_confirmed_after_all_its_pdus() {
    let mut sender = entity();
    sender.submit(sdu(0, 15));
    sender.submit(sdu(1, 15));
    for grant in [12, 12, 100] {
        pull(&mut sender, at(0), grant);
    }
    // PDU 1 has octets of both.
    assert_eq!(sender.received(at(1), &hex("000e0080")), []);
    pull(&mut sender, at(1), 14);
    assert_eq!(sender.received(at(2), &hex("000c")), [Event::Confirmed(0), Event::Confirmed(1)]);
}

#[test]
fn expired_t_poll_retransmit_polls_with_new_data() {
    let mut sender = with(|config| config.parameters.poll_pdu = Some(2));
    for id in 0..4 {
        sender.submit(sdu(id, 10));
    }
    assert_eq!([(); 2].map(|()| data(&pull(&mut sender, at(0), 12)).1), [false, true]);
    sender.waited(at(100));
    assert_eq!(sender.buffer_status().retransmission, 0);
    assert_eq!(data(&pull(&mut sender, at(100), 12)), (2, true));
}

#[test]
fn contradictory_reports_are_refused() {
    let mut sender = entity();
    sender.submit(sdu(0, 10));
    pull(&mut sender, at(0), 12);
    let refused = |sender: &mut AmEntity, text: &str| sender.receive(at(0), &hex(text), &mut Vec::new());
    assert_eq!(refused(&mut sender, "0008"), Err(ReceiveError::AckAhead(2)));
    let ahead = Err(ReceiveError::NackAhead { nack_sn: 1, ack_sn: 1 });
    assert_eq!(refused(&mut sender, "00060080"), ahead);
    assert_eq!(sender.received(at(0), &hex("0004")), [Event::Confirmed(0)]);
}
