//! When data PDUs poll, and what t-PollRetransmit does (§5.3.3).

use super::*;

fn polls(pdus: &[Pdu]) -> Vec<bool> {
    pdus.iter().map(|pdu| data(pdu).1).collect()
}

/// An entity that has sent `pulled` octets of these SDUs.
fn sender_of(sdus: u64, length: usize, pulled: usize) -> AmEntity {
    let mut sender = entity_12();
    for id in 0..sdus {
        sender.submit(sdu(id, length));
    }
    sender.pulled(at(0), pulled);
    sender
}

#[test]
fn poll_pdu_counts_pdus_with_new_octets() {
    let mut sender = with(|config| config.parameters.poll_pdu = Some(3));
    for id in 0..8 {
        sender.submit(sdu(id, 10));
    }
    let pdus = sender.pulled(at(0), 10_000);
    assert_eq!(polls(&pdus), [false, false, true, false, false, true, false, true]);
}

/// srsRAN_4G counted retransmissions as well, and polled only above the limit.
#[test]
fn retransmissions_do_not_count_for_poll_pdu() {
    let mut sender = with(|config| config.parameters.poll_pdu = Some(3));
    for id in 0..2 {
        sender.submit(sdu(id, 10));
    }
    sender.pulled(at(0), 100);
    // NACKs of 0 and 1.
    sender.received(at(1), &hex("0002 80 0008 0010"));
    for id in 2..7 {
        sender.submit(sdu(id, 10));
    }
    assert_eq!(polls(&sender.pulled(at(1), 1000)), [false, false, false, false, true, false, true]);
}

/// srsRAN_Project compared a number of kilobytes with a number of octets.
#[test]
fn poll_byte_counts_octets() {
    let mut sender = with(|config| config.parameters.poll_byte = Some(25));
    for id in 0..6 {
        sender.submit(sdu(id, 10));
    }
    assert_eq!(polls(&sender.pulled(at(0), 1000)), [false, false, true, false, false, true]);
    for id in 6..9 {
        sender.submit(sdu(id, 25));
    }
    assert_eq!(polls(&sender.pulled(at(0), 1000)), [true, true, true], "the limit itself is enough");
}

#[test]
fn poll_restarts_both_counters() {
    let mut sender = with(|config| {
        config.parameters.poll_pdu = Some(3);
        config.parameters.poll_byte = Some(20);
    });
    for id in 0..6 {
        sender.submit(sdu(id, if id == 0 { 20 } else { 5 }));
    }
    assert_eq!(polls(&sender.pulled(at(0), 1000)), [true, false, false, true, false, true]);
}

#[test]
fn last_retransmission_polls_when_nothing_new_waits() {
    let mut sender = sender_of(3, 10, 100);
    sender.received(at(1), &hex("0003 80 0008 0010"));
    assert_eq!(sender.next_deadline(), None, "the report has answered the poll");
    let pdus = sender.pulled(at(2), 100);
    assert_eq!(pdus.iter().map(data).collect::<Vec<_>>(), [(0, false), (1, true)]);
    assert_eq!(sender.next_deadline(), Some(at(102)));
}

#[test]
fn retransmissions_poll_while_the_window_is_full() {
    let mut sender = sender_of(2100, 1, 100_000);
    // NACKs of 0 and 1. The window remains full.
    sender.received(at(1), &hex("0800 80 0008 0010"));
    assert_eq!(polls(&sender.pulled(at(1), 1000)), [true, true]);
}

#[test]
fn report_about_poll_sn_stops_t_poll_retransmit() {
    for (report, stops) in
        [("0001 00", false), ("0002 00", true), ("0002 80 0010", true), ("0001 80 0000", false)]
    {
        let mut sender = sender_of(2, 10, 100);
        assert_eq!(sender.next_deadline(), Some(at(100)));
        sender.received(at(5), &hex(report));
        assert_eq!(sender.next_deadline().is_none(), stops, "{report}");
    }
}

#[test]
fn expired_t_poll_retransmit_resends_highest_sdu() {
    let mut sender = sender_of(3, 10, 100);
    assert_eq!(sender.waited(at(100)), []);
    assert_eq!(sender.next_deadline(), None);
    let pdus = sender.pulled(at(100), 100);
    assert_eq!(pdus.iter().map(data).collect::<Vec<_>>(), [(2, true)]);
    assert_eq!(sender.next_deadline(), Some(at(200)));
    assert_eq!(sender.stats().poll_timeouts, 1);
}

/// srsRAN_Project forced no poll in this case.
#[test]
fn expired_t_poll_retransmit_polls_with_new_data() {
    let mut sender = with(|config| config.parameters.poll_pdu = Some(4));
    for id in 0..6 {
        sender.submit(sdu(id, 10));
    }
    assert_eq!(polls(&sender.pulled(at(0), 12 * 4)), [false, false, false, true]);
    sender.waited(at(100));
    assert_eq!(sender.buffer_status().retransmission, 0, "new data can carry the poll");
    assert_eq!(data(&sender.pulled(at(100), 12)[0]), (4, true));
}

/// srsRAN_4G: with a full window, every transmission opportunity resent the first PDU, and RETX_COUNT ran away.
#[test]
fn full_window_resends_only_after_t_poll_retransmit() {
    let mut sender = sender_of(2100, 1, 100_000);
    for now in 1..100 {
        assert!(sender.pulled(at(now), 1000).is_empty());
    }
    for round in 1..=3 {
        assert_eq!(sender.waited(at(100 * round)), []);
        let pdus = sender.pulled(at(100 * round), 1000);
        assert_eq!(pdus.iter().map(data).collect::<Vec<_>>(), [(2047, true)]);
    }
}

#[test]
fn lowest_open_sdu_replaces_acknowledged_highest_one() {
    let mut sender = sender_of(3, 10, 100);
    sender.received(at(1), &hex("0003 80 0010"));
    assert_eq!(data(&sender.pulled(at(1), 100)[0]), (1, true));
    sender.waited(at(101));
    assert_eq!(data(&sender.pulled(at(101), 100)[0]), (1, true));
}
