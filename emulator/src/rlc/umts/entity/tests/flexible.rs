//! "Flexible RLC PDU size" (§4.2.1.3): its effect on reports, polls and windows.

use super::*;

fn flexible(sender: PollConfig) -> EntityConfig {
    let mut config = polling(sender);
    config.receiver.missing_pdu_indicator = true;
    (config.sends, config.receives) = (FLEXIBLE, FLEXIBLE);
    config
}

/// Sizes in bytes of the PDUs that an end has sent, in order.
fn sizes(pair: &Pair, from: usize) -> Vec<usize> {
    pair.from(from).map(|entry| encode(&entry.pdu, FLEXIBLE).len()).collect()
}

#[test]
fn control_pdus_have_minimal_size() {
    let poll = PollConfig { last_pdu: true, ..PollConfig::NONE };
    let mut pair = Pair::new(flexible(poll));
    pair.send(A, 1500);
    pair.run_until(at(500));
    assert_eq!(sizes(&pair, A), [1504]);
    // D/C and type (4 bits), ACK (16 bits), and 4 bits of padding.
    assert_eq!(sizes(&pair, B), [3]);
    assert_eq!(pair.statuses(B)[0].1, [ack(1)]);
    // An erroneous report causes a RESET. RESET and RESET ACK have 4 bytes each.
    pair.inject_status(A, vec![ack(9)]);
    pair.run_until(at(1_000));
    assert_eq!((sizes(&pair, A), sizes(&pair, B)), (vec![1504, 4], vec![3, 4]));
    assert_eq!((pair.resets(A).len(), pair.reset_acks(B).len()), (1, 1));
}

/// The window counts PDUs of any size (§9.4).
#[test]
fn window_counts_pdus_not_bytes() {
    let mut config = flexible(PollConfig { poll_window: Some(100), ..PollConfig::NONE });
    (config.sender.window, config.receiver.window) = (8, 8);
    let mut pair = Pair::new(config);
    for _ in 0..20 {
        pair.send(A, 1500);
    }
    pair.run_until(at(30));
    assert_eq!(pair.data(A).len(), 8);
    assert_eq!(pair.data(A)[7], (10, 7, true), "the PDU that fills the window polls");
    pair.run_until(at(2_000));
    assert_eq!(pair.arrived(B), (0..20).collect::<Vec<_>>());
}

/// SDUs that wait at the same time share a PDU, up to 15 ends per PDU. A retransmission has the same bytes as
/// the first transmission.
#[test]
fn small_sdus_share_pdu_and_retransmission_is_identical() {
    let poll = PollConfig { last_pdu: true, last_retransmission: true, ..PollConfig::NONE };
    let mut pair = Pair::new(flexible(poll)).losing(first_of(A, &[1]));
    for _ in 0..40 {
        pair.send(A, 40);
    }
    pair.run_until(at(1_000));
    assert_eq!(sizes(&pair, A), [2 + 15 * 42, 2 + 15 * 42, 2 + 10 * 42, 2 + 15 * 42]);
    assert_eq!(pair.sns(A), [0, 1, 2, 1]);
    assert_eq!(pair.arrived(B), (0..40).collect::<Vec<_>>());
    assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged).len(), 40);
}

/// §9.2.1.6: a report can be piggybacked in the space that is left up to the maximum size. A retransmission
/// omits the report, and has no padding.
#[test]
fn report_is_piggybacked_but_omitted_from_retransmission() {
    let timer_poll = Some(ms(200));
    let poll = PollConfig { last_pdu: true, timer_poll, ..PollConfig::NONE };
    let mut config = flexible(poll);
    config.receiver.piggyback = true;
    let mut pair = Pair::new(config).losing(first_of(B, &[0]));
    pair.send(A, 100);
    pair.run_until(at(35));
    pair.send(B, 50);
    pair.run_until(at(2_000));
    let rest = |entry: &LogEntry| match &entry.pdu {
        Pdu::Amd(amd) => amd.rest.clone(),
        pdu => panic!("{pdu:?}"),
    };
    let sent: Vec<&LogEntry> = pair.from(B).filter(|entry| matches!(entry.pdu, Pdu::Amd(_))).collect();
    assert_eq!(rest(sent[0]), Rest::Piggybacked(Status(vec![ack(1)])));
    assert_eq!(encode(&sent[0].pdu, FLEXIBLE).len(), 2 + 2 * 2 + 50 + 3);
    assert!(sent.len() > 1, "the lost PDU was retransmitted");
    assert_eq!(rest(sent[1]), Rest::Nothing);
    assert_eq!(encode(&sent[1].pdu, FLEXIBLE).len(), 2 + 2 + 50);
    assert_eq!(pair.arrived(A), [1]);
}

/// §9.2.2.11.9: with a flexible size, a poll can be sent as a POLL super-field, in a STATUS PDU of 3 bytes.
#[test]
fn poll_without_data_uses_poll_sufi() {
    let poll = PollConfig { timer_poll_periodic: Some(ms(100)), poll_sufi: true, ..PollConfig::NONE };
    let mut pair = Pair::new(flexible(poll));
    pair.send(A, 300);
    pair.run_until(at(90));
    assert_eq!(sizes(&pair, A), [304]);
    pair.run_until(at(190));
    // The header (4 bits), POLL (16 bits) and NO_MORE (4 bits).
    assert_eq!(
        (sizes(&pair, A), pair.statuses(A)[0].1.clone()),
        (vec![304, 3], vec![Sufi::Poll { sn: Sn::new(0) }, Sufi::NoMore])
    );
    assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged), [0]);
}

#[test]
fn oversized_pdu_is_ignored() {
    let mut pair = Pair::new(flexible(PollConfig::NONE));
    pair.ends[B].handle_pdu(at(0), &[0x80; 1506]);
    assert_eq!(pair.ends[B].stats().decode_errors, 1);
    pair.ends[B].handle_pdu(at(0), &[&[0x80, 0][..], &[0x45; 1503]].concat());
    assert_eq!((pair.ends[B].stats().decode_errors, pair.ends[B].stats().pdus_received), (1, 1));
}

#[test]
fn pull_returns_pdus_until_room_is_filled() {
    let pulled = |room| {
        let mut pair = Pair::new(flexible(PollConfig::NONE));
        for _ in 0..5 {
            pair.send(A, 400);
        }
        for _ in 0..5 {
            pair.send(A, 1000);
        }
        let pdus = pair.ends[A].pull(at(0), room, OneBlockFewer::HasFormat);
        pdus.iter().map(|pdu| pdu.octets.len()).collect::<Vec<_>>()
    };
    let bytes = |bytes, pdus| Room::Bytes { bytes, header: 2, pdus };
    assert!(pulled(bytes(0, 26)).is_empty());
    assert_eq!(pulled(bytes(1, 26)), [1505]);
    assert_eq!(pulled(bytes(1507, 26)), [1505], "the PDU and its header take 1507 bytes");
    assert_eq!(pulled(bytes(1508, 26)), [1505, 1505]);
    assert_eq!(pulled(bytes(5_000, 2)), [1505, 1505]);
    assert_eq!(pulled(Room::Pdus(3)), [1505, 1505, 1505]);
}
