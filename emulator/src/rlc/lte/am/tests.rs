//! Tests of AM entities. A comment with the name of an open-source stack describes a bug that the stack had.

mod hostile;
mod random;
mod receiving;
mod sending;

use super::*;
use crate::rlc::am::testing::{Entity as _, at, data, entity, hex, ms, quiet, sdu};
use crate::rlc::lte::codec::{AmSnLength, Amd, DataField, SegmentFields};

entity!(AmEntity);

fn config() -> AmConfig {
    AmConfig { parameters: quiet(), t_reordering: ms(20), ..AmConfig::default() }
}

fn with(change: impl FnOnce(&mut AmConfig)) -> AmEntity {
    let mut config = config();
    change(&mut config);
    AmEntity::new(config)
}

fn entity() -> AmEntity {
    with(|_| {})
}

/// An AMD PDU with one whole SDU of one octet.
fn whole(sn: u32, poll: bool) -> Vec<u8> {
    let data =
        DataField { starts_sdu: true, ends_sdu: true, ends: codec::Offsets::new(), octets: &[sn as u8] };
    Amd { poll, sn, segment: None, data }.encode(AmFormat::default())
}

fn delivered(octets: &[&[u8]]) -> Vec<Event> {
    octets.iter().map(|octets| Event::Delivered(octets.to_vec())).collect()
}

/// The next transport block, which must consist of a STATUS PDU.
fn status(entity: &mut AmEntity, now: Instant) -> Vec<u8> {
    let pdus = entity.pulled(now, 10_000);
    assert_eq!(pdus.len(), 1, "{pdus:?}");
    assert_eq!(pdus[0].kind, PduKind::Status);
    pdus[0].octets.clone()
}

/// The data PDU in a transport block of `octets` octets.
fn pull(entity: &mut AmEntity, now: Instant, octets: usize) -> Pdu {
    let mut pdus = entity.pulled(now, octets);
    assert_eq!(pdus.len(), 1, "{pdus:?}");
    pdus.remove(0)
}

#[test]
fn transport_block_holds_status_and_one_data_pdu() {
    let mut entity = entity();
    for id in 0..3 {
        entity.submit(sdu(id, 10));
    }
    pull(&mut entity, at(0), 12);
    pull(&mut entity, at(0), 100);
    entity.received(at(1), &whole(0, true));
    // NACK of PDU 0.
    assert_eq!(entity.received(at(1), &hex("000a0000")), [Event::Confirmed(1), Event::Confirmed(2)]);
    entity.submit(sdu(3, 10));
    let status = BufferStatus { new: 10, retransmission: 10, status: 2, sdus: 1 };
    assert_eq!(entity.buffer_status(), status);
    let pdus = entity.pulled(at(2), 1000);
    assert_eq!(pdus[0].kind, PduKind::Status);
    assert_eq!(pdus[1..].iter().map(data).collect::<Vec<_>>(), [(0, false)]);
    assert_eq!(data(&pull(&mut entity, at(3), 1000)), (2, true));
}

#[test]
fn mac_subheaders_are_counted() {
    let mut entity = with(|config| config.mac_subheaders = MacSubheaders::Counted);
    entity.submit(sdu(0, 100));
    entity.received(at(0), &whole(0, true));
    let mut pdus = Vec::new();
    // 2 + 2 for the STATUS PDU, and 1 + 25 for the data PDU.
    assert_eq!(entity.pull(at(0), 30, &mut pdus), 30);
    assert_eq!(pdus.iter().map(|pdu| pdu.octets.len()).collect::<Vec<_>>(), [2, 25]);
    assert_eq!(entity.pull(at(0), 3, &mut pdus), 0, "no octet of data fits");
}

#[test]
fn reestablishment_delivers_what_can_be_reassembled() {
    let mut entity = entity();
    entity.submit(sdu(0, 10));
    entity.pulled(at(0), 5);
    let format = AmFormat::default();
    let pdu = |sn, segment, starts_sdu, ends_sdu, ends: &[u32], octets: &'static [u8]| {
        Amd { poll: false, sn, segment, data: DataField { starts_sdu, ends_sdu, ends: ends.into(), octets } }
            .encode(format)
    };
    // PDU 0 is missing. PDU 1 ends an SDU, contains one, and begins one that PDU 2 ends.
    entity.received(at(0), &pdu(1, None, false, false, &[2, 4], &[1, 1, 2, 2, 3]));
    entity.received(at(0), &pdu(2, None, false, true, &[], &[3, 3]));
    // The second segment of PDU 3 has the end of one SDU, and a whole one.
    let segment = Some(SegmentFields { is_last: true, so: 2 });
    entity.received(at(0), &pdu(3, segment, false, true, &[1], &[4, 5]));
    let mut events = Vec::new();
    entity.reestablish(&mut events);
    assert_eq!(events, delivered(&[&[2, 2], &[3, 3, 3], &[5]]));
    assert_eq!((entity.next_deadline(), entity.buffer_status().total()), (None, 0));
    assert_eq!(entity.received(at(1), &whole(0, false)), delivered(&[&[0]]));
}

#[test]
fn discard_succeeds_only_before_the_first_octet() {
    let mut sender = entity();
    let mut events = Vec::new();
    for id in 10..13 {
        sender.submit(sdu(id, 50));
    }
    pull(&mut sender, at(0), 20);
    assert!(!sender.discard(10, &mut events), "the SDU is under segmentation");
    assert!(sender.discard(11, &mut events) && !sender.discard(11, &mut events));
    assert_eq!(sender.buffer_status().new, 50 - 18 + 50);
    assert_eq!(data(&pull(&mut sender, at(0), 1000)), (1, true));
    assert_eq!(sender.received(at(1), &hex("0008")), [Event::Confirmed(10), Event::Confirmed(12)]);
}
