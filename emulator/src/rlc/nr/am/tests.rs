//! Tests of AM entities. A comment with the name of an open-source stack describes a bug that the stack had.
//! A hexadecimal number after the name is the commit that fixed the bug.

mod hostile;
mod polling;
mod random;
mod reports;
mod retransmission;

use super::*;
use crate::rlc::am::testing::{Entity as _, at, data, entity, hex, ms, quiet, sdu};
use crate::rlc::nr::codec::{Amd, Position};

entity!(AmEntity);

fn config(sn_length: AmSnLength) -> AmConfig {
    AmConfig { sn_length, parameters: quiet(), t_reassembly: ms(20), ..AmConfig::default() }
}

fn with(change: impl FnOnce(&mut AmConfig)) -> AmEntity {
    let mut config = config(AmSnLength::Bits12);
    change(&mut config);
    AmEntity::new(config)
}

fn entity_12() -> AmEntity {
    with(|_| {})
}

/// A 12-bit AMD PDU.
fn amd(sn: u32, poll: bool, position: Position, data: &[u8]) -> Vec<u8> {
    Amd { poll, position, sn, data }.encode(AmSnLength::Bits12)
}

/// A 12-bit AMD PDU with a whole SDU of one octet.
fn whole(sn: u32) -> Vec<u8> {
    amd(sn, false, Position::Whole, &[sn as u8])
}

fn polling_whole(sn: u32) -> Vec<u8> {
    amd(sn, true, Position::Whole, &[sn as u8])
}

/// The next transport block, which must consist of a STATUS PDU.
fn status(entity: &mut AmEntity, now: Instant) -> Vec<u8> {
    let pdus = entity.pulled(now, 10_000);
    assert_eq!(pdus.len(), 1, "{pdus:?}");
    assert_eq!(pdus[0].kind, PduKind::Status);
    pdus[0].octets.clone()
}

/// The PDUs of an entity, each in its own transport block of `octets` octets.
fn pull_all(entity: &mut AmEntity, now: Instant, octets: usize) -> Vec<Pdu> {
    let mut pdus = Vec::new();
    while entity.can_send() {
        pdus.extend(entity.pulled(now, octets));
    }
    pdus
}

#[test]
fn transport_block_orders_status_retransmissions_and_new_sdus() {
    let mut entity = entity_12();
    for id in 0..3 {
        entity.submit(sdu(id, 10));
    }
    assert_eq!(pull_all(&mut entity, at(0), 1000).len(), 3);
    // NACK 1, and a poll.
    assert_eq!(entity.received(at(1), &hex("0003800010")), [Event::Confirmed(0), Event::Confirmed(2)]);
    entity.received(at(1), &polling_whole(0));
    entity.submit(sdu(3, 10));
    let status = BufferStatus { new: 10, retransmission: 10, status: 3, sdus: 1 };
    assert_eq!(entity.buffer_status(), status);
    let pdus = entity.pulled(at(2), 1000);
    assert_eq!(pdus[0].kind, PduKind::Status);
    assert_eq!(pdus[1..].iter().map(data).collect::<Vec<_>>(), [(1, false), (3, true)]);
    assert_eq!(entity.buffer_status().total(), 0);
}

#[test]
fn sdu_is_segmented_and_reassembled_byte_for_byte() {
    for sn_length in [AmSnLength::Bits12, AmSnLength::Bits18] {
        let [mut sender, mut receiver] = [(); 2].map(|()| AmEntity::new(config(sn_length)));
        let original = sdu(0, 1500);
        sender.submit(original.clone());
        let pdus = pull_all(&mut sender, at(0), 100);
        assert!(pdus.len() > 14);
        assert!(pdus[..pdus.len() - 1].iter().all(|pdu| pdu.octets.len() == 100 && data(pdu) == (0, false)));
        assert_eq!(data(&pdus[pdus.len() - 1]), (0, true));
        let events: Vec<_> = pdus.iter().flat_map(|pdu| receiver.received(at(1), &pdu.octets)).collect();
        assert_eq!(events, [Event::Delivered(original.octets.to_vec())]);
    }
}

#[test]
fn sdu_is_delivered_before_an_earlier_one() {
    let mut receiver = entity_12();
    assert_eq!(receiver.received(at(0), &whole(1)), [Event::Delivered(vec![1])]);
    assert_eq!(receiver.received(at(0), &whole(0)), [Event::Delivered(vec![0])]);
    assert_eq!(receiver.received(at(0), &whole(0)), []);
    assert_eq!(receiver.stats().duplicates, 1);
}

#[test]
fn segments_of_an_sdu_arrive_in_reverse_order() {
    let mut receiver = entity_12();
    assert_eq!(receiver.received(at(0), &amd(0, false, Position::Last { so: 4 }, &[5, 6])), []);
    assert_eq!(receiver.received(at(0), &amd(0, false, Position::Middle { so: 2 }, &[3, 4])), []);
    let events = receiver.received(at(0), &amd(0, false, Position::First, &[1, 2]));
    assert_eq!(events, [Event::Delivered(vec![1, 2, 3, 4, 5, 6])]);
}

#[test]
fn partly_overlapping_segments_add_only_their_new_octets() {
    let mut receiver = entity_12();
    assert_eq!(receiver.received(at(0), &amd(0, false, Position::Middle { so: 2 }, &[3, 4, 5])), []);
    assert_eq!(receiver.received(at(0), &amd(0, false, Position::First, &[1, 2, 9, 9])), []);
    assert_eq!(receiver.received(at(0), &amd(0, false, Position::Middle { so: 3 }, &[9, 9, 6])), []);
    assert_eq!(receiver.received(at(0), &amd(0, false, Position::Middle { so: 1 }, &[9, 9, 9])), []);
    assert_eq!(receiver.stats().duplicates, 1);
    let events = receiver.received(at(0), &amd(0, false, Position::Last { so: 4 }, &[9, 9, 7, 8]));
    assert_eq!(events, [Event::Delivered(vec![1, 2, 3, 4, 5, 6, 7, 8])]);
}

#[test]
fn segment_that_contradicts_the_length_is_refused() {
    let mut receiver = entity_12();
    receiver.received(at(0), &amd(0, false, Position::Last { so: 4 }, &[5]));
    for position in [Position::Whole, Position::Last { so: 2 }, Position::Middle { so: 4 }] {
        let refused = receiver.receive(at(0), &amd(0, true, position, &[9; 2]), &mut Vec::new());
        assert_eq!(refused, Err(ReceiveError::Contradiction(0)), "{position:?}");
    }
    assert!(!receiver.can_send());
    let events = receiver.received(at(0), &amd(0, false, Position::First, &[1, 2, 3, 4]));
    assert_eq!(events, [Event::Delivered(vec![1, 2, 3, 4, 5])]);
}

#[test]
fn discard_succeeds_only_before_the_first_octet() {
    let mut sender = entity_12();
    let mut events = Vec::new();
    for id in 10..13 {
        sender.submit(sdu(id, 50));
    }
    sender.pulled(at(0), 20);
    assert!(!sender.discard(10, &mut events), "the SDU is under segmentation");
    assert!(sender.discard(11, &mut events));
    assert!(!sender.discard(11, &mut events) && !sender.discard(99, &mut events));
    assert_eq!(sender.buffer_status().new, 50 - 18 + 50);
    // The discarded SDU leaves no gap in the sequence numbers.
    let pdus = pull_all(&mut sender, at(0), 1000);
    assert_eq!(pdus.iter().map(data).collect::<Vec<_>>(), [(0, false), (1, true)]);
}

#[test]
fn discard_of_last_sdu_causes_retransmission_with_poll() {
    let mut sender = entity_12();
    sender.submit(sdu(0, 10));
    sender.submit(sdu(1, 10));
    assert_eq!(data(&sender.pulled(at(0), 12)[0]), (0, false));
    let mut events = Vec::new();
    assert!(sender.discard(1, &mut events));
    assert_eq!(data(&sender.pulled(at(1), 100)[0]), (0, true));
    assert!(events.is_empty() && sender.next_deadline() == Some(at(101)));
}

#[test]
fn reestablishment_starts_from_zero() {
    let mut entity = entity_12();
    for id in 0..3 {
        entity.submit(sdu(id, 10));
    }
    entity.pulled(at(0), 24);
    entity.received(at(0), &whole(1));
    entity.reestablish();
    assert_eq!((entity.next_deadline(), entity.buffer_status().total()), (None, 0));
    entity.submit(sdu(7, 10));
    assert_eq!(data(&entity.pulled(at(1), 100)[0]), (0, true));
    assert_eq!(entity.received(at(1), &whole(0)), [Event::Delivered(vec![0])]);
}

#[test]
fn mac_subheaders_are_counted() {
    let mut sender = with(|config| config.mac_subheaders = MacSubheaders::Counted);
    for id in 0..4 {
        sender.submit(sdu(id, 300));
    }
    let mut pdus = Vec::new();
    // 3 + 302 for the first SDU; then 2 + 255 for a segment with a short subheader.
    let used = sender.pull(at(0), 3 + 302 + 2 + 255, &mut pdus);
    assert_eq!(pdus.iter().map(|pdu| pdu.octets.len()).collect::<Vec<_>>(), [302, 255]);
    assert_eq!(used, 562);
    assert_eq!(sender.pull(at(0), 6, &mut pdus), 0, "no octet of data fits");
}

#[test]
fn full_window_stalls_new_sdus() {
    let mut sender = entity_12();
    for id in 0..3000 {
        sender.submit(sdu(id, 1));
    }
    let pdus = sender.pulled(at(0), 1_000_000);
    assert_eq!(pdus.len(), 2048);
    // "If no new RLC SDU can be transmitted" (§5.3.3.2): only the last PDU polls.
    assert!(pdus.iter().enumerate().all(|(sn, pdu)| data(pdu) == (sn as u64, sn == 2047)));
    assert!(!sender.can_send());
    // ACK_SN 2047 frees all but one number.
    assert_eq!(sender.received(at(1), &hex("07ff00")).len(), 2047);
    let pdus = sender.pulled(at(1), 1_000_000);
    assert_eq!(pdus.len(), 952);
    assert_eq!(data(&pdus[951]), (2999, true));
}
