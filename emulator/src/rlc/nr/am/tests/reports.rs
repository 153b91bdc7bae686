//! Triggers, delays and content of STATUS PDUs (§5.2.3.2, §5.3.4).

use super::*;

/// SDU 0 arrives at 0 ms, SDU 2 at 1 ms, and SDU 3 with a poll at 2 ms.
#[test]
fn poll_above_gap_is_answered_after_t_reassembly() {
    for (sn_length, report) in [(AmSnLength::Bits12, "0004800010"), (AmSnLength::Bits18, "000012000040")] {
        let mut receiver = AmEntity::new(config(sn_length));
        for (now, sn) in [(0, 0), (1, 2), (2, 3)] {
            let amd = Amd { poll: sn == 3, position: Position::Whole, sn, data: &[1] };
            receiver.received(at(now), &amd.encode(sn_length));
        }
        assert!(!receiver.can_send());
        assert_eq!(receiver.next_deadline(), Some(at(21)));
        receiver.waited(at(21));
        assert_eq!(status(&mut receiver, at(21)), hex(report));
        // One report, and the timer is not restarted.
        assert_eq!(receiver.next_deadline(), None);
        assert!(!receiver.can_send());
    }
}

#[test]
fn poll_is_answered_when_earlier_sdus_arrive() {
    let mut receiver = entity_12();
    receiver.received(at(0), &whole(1));
    receiver.received(at(1), &polling_whole(2));
    assert!(!receiver.can_send(), "SDU 0 may be late");
    receiver.received(at(2), &whole(0));
    assert_eq!(status(&mut receiver, at(2)), hex("000300"));
    assert_eq!(receiver.next_deadline(), None, "t-Reassembly has stopped");
}

#[test]
fn poll_in_segment_waits_for_complete_sdu() {
    let mut receiver = entity_12();
    receiver.received(at(0), &amd(0, true, Position::First, &[1, 2]));
    assert!(!receiver.can_send() && receiver.next_deadline().is_none());
    receiver.received(at(1), &amd(0, false, Position::Last { so: 2 }, &[3]));
    assert_eq!(status(&mut receiver, at(1)), hex("000100"));
}

/// srsRAN_4G 7ac7c8673: without an answer, the peer's poll is never resolved.
#[test]
fn poll_outside_the_window_is_answered_at_once() {
    let mut receiver = entity_12();
    receiver.received(at(0), &whole(0));
    for sn in [0, 2049, 4095] {
        assert_eq!(receiver.received(at(1), &polling_whole(sn)), []);
        assert_eq!(status(&mut receiver, at(1)), hex("000100"), "{sn}");
    }
    assert_eq!(
        receiver.received(at(1), &polling_whole(2048)),
        [Event::Delivered(vec![0])],
        "inside the window"
    );
}

#[test]
fn poll_in_known_octets_is_answered_at_once() {
    let mut receiver = entity_12();
    receiver.received(at(0), &amd(0, false, Position::First, &[1, 2]));
    receiver.received(at(0), &amd(0, true, Position::First, &[1]));
    assert_eq!(status(&mut receiver, at(0)), hex("000000"));
}

#[test]
fn triggers_during_t_status_prohibit_cause_one_report() {
    let mut receiver = with(|config| config.parameters.t_status_prohibit = ms(10));
    receiver.received(at(0), &polling_whole(0));
    assert_eq!(status(&mut receiver, at(3)), hex("000100"));
    receiver.received(at(4), &polling_whole(1));
    receiver.received(at(5), &polling_whole(2));
    assert!(receiver.pulled(at(12), 100).is_empty());
    assert_eq!(receiver.buffer_status().status, 0);
    assert_eq!(receiver.next_deadline(), Some(at(13)));
    receiver.waited(at(13));
    assert_eq!(status(&mut receiver, at(13)), hex("000300"));
    receiver.waited(at(23));
    assert!(!receiver.can_send(), "a single report");
}

/// srsRAN_4G 4d864e1e3.
#[test]
fn zero_t_status_prohibit_delays_nothing() {
    let mut receiver = entity_12();
    for sn in 0..3 {
        receiver.received(at(0), &polling_whole(sn));
        status(&mut receiver, at(0));
        assert_eq!(receiver.next_deadline(), None);
    }
}

/// srsRAN_4G 8a27cdf45: t-StatusProhibit continues while t-Reassembly stops or expires.
#[test]
fn t_reassembly_does_not_shorten_t_status_prohibit() {
    let mut receiver = with(|config| config.parameters.t_status_prohibit = ms(50));
    receiver.received(at(0), &polling_whole(0));
    status(&mut receiver, at(0));
    receiver.received(at(1), &whole(2));
    receiver.waited(at(21));
    assert!(!receiver.can_send());
    receiver.received(at(22), &whole(1));
    assert!(!receiver.can_send());
    receiver.waited(at(50));
    assert_eq!(status(&mut receiver, at(50)), hex("000300"));
}

/// OAI's timers expire 1 ms late.
#[test]
fn t_reassembly_expires_at_its_deadline() {
    let mut receiver = entity_12();
    receiver.received(at(0), &whole(1));
    receiver.on_deadline(at(20) - Duration::from_nanos(1), &mut Vec::new());
    assert!(!receiver.can_send());
    receiver.on_deadline(at(20), &mut Vec::new());
    assert_eq!(status(&mut receiver, at(20)), hex("0002 80 0000"));
}

#[test]
fn lost_last_segment_does_not_start_t_reassembly() {
    let mut receiver = entity_12();
    receiver.received(at(0), &amd(0, false, Position::First, &[1]));
    assert_eq!(receiver.next_deadline(), None);
    receiver.received(at(1), &amd(0, false, Position::Middle { so: 2 }, &[3]));
    assert_eq!(receiver.next_deadline(), Some(at(21)), "octet 1 is missing before octet 2");
    receiver.received(at(2), &amd(0, false, Position::Middle { so: 1 }, &[2]));
    assert_eq!(receiver.next_deadline(), None, "no octet is missing before the last received one");
}

/// srsRAN_4G f4ff72bff, 1d4f10fe0, 9a0d7113b: the search for the first incomplete SDU starts at
/// RX_Next_Status_Trigger.
#[test]
fn expiry_reports_only_gaps_from_timer_start() {
    let mut receiver = entity_12();
    receiver.received(at(0), &whole(1));
    // These gaps open while t-Reassembly is running, and may still be filled.
    receiver.received(at(10), &whole(3));
    receiver.received(at(11), &whole(5));
    receiver.waited(at(20));
    // ACK_SN is the first missing SDU >= RX_Next_Status_Trigger, which is 2.
    assert_eq!(status(&mut receiver, at(20)), hex("0002 80 0000"));
    assert_eq!(receiver.next_deadline(), Some(at(40)), "restarted for SDUs 2 and 4");
    receiver.received(at(21), &whole(2));
    receiver.waited(at(40));
    assert_eq!(status(&mut receiver, at(40)), hex("0006 80 0008 0040"));
}

#[test]
fn timer_restarts_for_hole_in_highest_sdu() {
    let mut receiver = entity_12();
    receiver.received(at(0), &whole(1));
    receiver.received(at(5), &amd(2, false, Position::Middle { so: 1 }, &[2]));
    receiver.waited(at(20));
    assert_eq!(status(&mut receiver, at(20)), hex("0002 80 0000"));
    assert_eq!(receiver.next_deadline(), Some(at(40)));
    receiver.waited(at(40));
    // RX_Next_Status_Trigger was 3, so the report contains SDU 2 with its two holes.
    assert_eq!(status(&mut receiver, at(40)), hex("0003 80 0008 002c 0000 0000 0024 0002 ffff"));
}

#[test]
fn consecutive_missing_octets_share_one_nack() {
    let mut receiver = entity_12();
    // SDU 0 lacks its end, 1 to 3 are missing, and 4 lacks its beginning and octet 25.
    receiver.received(at(0), &amd(0, false, Position::First, &[1; 5]));
    receiver.received(at(0), &amd(4, false, Position::Middle { so: 20 }, &[1; 5]));
    receiver.received(at(0), &amd(4, false, Position::Last { so: 26 }, &[1; 5]));
    receiver.received(at(0), &whole(5));
    receiver.waited(at(20));
    assert_eq!(status(&mut receiver, at(20)), hex("0006 80 000e 0005 0013 05 0044 0019 0019"));
}

#[test]
fn hole_after_received_octets_has_separate_nack() {
    let mut receiver = entity_12();
    receiver.received(at(0), &amd(1, false, Position::First, &[1; 2]));
    receiver.received(at(0), &amd(1, false, Position::Last { so: 4 }, &[1]));
    receiver.received(at(0), &whole(2));
    receiver.waited(at(20));
    assert_eq!(status(&mut receiver, at(20)), hex("0003 80 0008 0014 0002 0003"));
}

#[test]
fn gap_of_300_sdus_has_two_nacks() {
    let mut receiver = entity_12();
    receiver.received(at(0), &whole(300));
    receiver.waited(at(20));
    assert_eq!(status(&mut receiver, at(20)), hex("012d 80 000a ff 0ff2 2d"));
}

/// srsRAN_4G ecc995bd4.
#[test]
fn range_of_nacks_continues_across_the_wrap() {
    let mut receiver = entity_12();
    for sn in 0..4094 {
        receiver.received(at(0), &whole(sn));
    }
    receiver.received(at(0), &whole(2));
    receiver.waited(at(20));
    // 4094 to 4097, which is 1 on the air.
    assert_eq!(status(&mut receiver, at(20)), hex("0003 80 ffe2 04"));
}

/// srsRAN_4G a2332d10f: ACK_SN of a report that does not fit is the first SDU that it does not name.
#[test]
fn trimmed_report_acknowledges_nothing_that_is_missing() {
    let mut receiver = entity_12();
    for sn in [1, 3, 5, 7] {
        receiver.received(at(0), &whole(sn));
    }
    receiver.waited(at(20));
    assert_eq!(receiver.buffer_status().status, 3 + 2);
    receiver.waited(at(40));
    assert_eq!(receiver.buffer_status().status, 3 + 4 * 2);
    assert!(receiver.pulled(at(40), 2).is_empty());
    for (room, report) in
        [(3, "0000 00"), (6, "0002 80 0000"), (8, "0004 80 0008 0020"), (99, "0008 80 0008 0028 0048 0060")]
    {
        assert_eq!(receiver.pulled(at(40), room)[0].octets, hex(report), "{room} octets");
        // The retransmission of a known SDU polls again.
        receiver.received(at(40), &polling_whole(1));
    }
}

#[test]
fn trimmed_report_never_splits_nacks_of_sdu() {
    let mut receiver = entity_12();
    receiver.received(at(0), &whole(1));
    for so in [2, 4, 6] {
        receiver.received(at(0), &amd(2, false, Position::Middle { so }, &[1]));
    }
    receiver.received(at(0), &whole(3));
    receiver.waited(at(40));
    let full = 3 + 2 + 4 * 6;
    assert_eq!(receiver.buffer_status().status, full as u64);
    // The last NACK of SDU 2 does not fit, so SDU 2 is not named at all.
    assert_eq!(receiver.pulled(at(40), full - 1)[0].octets, hex("0002 80 0000"));
    receiver.received(at(41), &whole(0));
    receiver.received(at(41), &polling_whole(0));
    // As the first SDU of a report, SDU 2 has one NACK for all its holes.
    assert_eq!(receiver.pulled(at(41), 9)[0].octets, hex("0003 80 0024 0000 ffff"));
}

/// If the receiver answered before t-Reassembly expires, ACK_SN would be at most POLL_SN. Then
/// t-PollRetransmit would repeat the poll.
#[test]
fn answer_to_poll_acknowledges_or_nacks_sdu() {
    let mut sender = entity_12();
    let mut receiver = entity_12();
    for id in 0..4 {
        sender.submit(sdu(id, 10));
    }
    for (sn, pdu) in sender.pulled(at(0), 1000).iter().enumerate() {
        if sn != 1 {
            receiver.received(at(5), &pdu.octets);
        }
    }
    receiver.waited(at(25));
    let report = status(&mut receiver, at(25));
    assert_eq!(sender.next_deadline(), Some(at(100)));
    sender.received(at(30), &report);
    assert_eq!(sender.next_deadline(), None);
}
