//! The decoders of RLC and PDCP of LTE and NR, and the entities behind them. No input from the radio link may
//! cause a panic, and each decoded PDU must be the same after encoding and decoding it again.
//!
//! The first byte selects a format, and whether PDUs go to the decoder only, or to an entity with its own
//! traffic (see `Step`). Each PDU follows a byte with its length.

#![cfg_attr(fuzzing, no_main)]

mod target;

use std::collections::BTreeSet;

use airlink::pdcp::nr_receiver::{NrReceiver, NrReceiverConfig};
use airlink::pdcp::pdu::{self as pdcp, Format};
use airlink::pdcp::transmitter::Transmitter;
use airlink::rlc::am::AmParameters;
use airlink::rlc::service::{Event, MacSubheaders, Pdu, Sdu};
use airlink::rlc::{lte, nr};
use airwire::time::{Duration, Instant};

target::run!(run);

const LTE_AM: [lte::AmFormat; 4] = [
    lte::AmFormat { sn: lte::AmSnLength::Bits10, li: lte::LiLength::Bits11 },
    lte::AmFormat { sn: lte::AmSnLength::Bits10, li: lte::LiLength::Bits15 },
    lte::AmFormat { sn: lte::AmSnLength::Bits16, li: lte::LiLength::Bits11 },
    lte::AmFormat { sn: lte::AmSnLength::Bits16, li: lte::LiLength::Bits15 },
];
const NR_AM: [nr::AmSnLength; 2] = [nr::AmSnLength::Bits12, nr::AmSnLength::Bits18];
const LTE_UM: [lte::UmSnLength; 2] = [lte::UmSnLength::Bits5, lte::UmSnLength::Bits10];
const NR_UM: [nr::UmSnLength; 2] = [nr::UmSnLength::Bits6, nr::UmSnLength::Bits12];

fn run(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let (with_entity, choice) = (choice & 0x80 != 0, usize::from(choice & 0x7f) % 15);
    match (choice, with_entity) {
        (0..4, false) => each_pdu(data, |pdu| check_lte_am(pdu, LTE_AM[choice])),
        (4..6, false) => each_pdu(data, |pdu| check_nr_am(pdu, NR_AM[choice - 4])),
        (6..8, false) => each_pdu(data, |pdu| check_lte_um(pdu, LTE_UM[choice - 6])),
        (8..10, false) => each_pdu(data, |pdu| check_nr_um(pdu, NR_UM[choice - 8])),
        (0..4, true) => run_entity(data, lte_am(LTE_AM[choice])),
        (4..6, true) => run_entity(data, nr_am(NR_AM[choice - 4])),
        (6..8, true) => receive_lte_um(data, LTE_UM[choice - 6]),
        (8..10, true) => receive_nr_um(data, NR_UM[choice - 8]),
        _ => run_pdcp(data, Format::ALL[choice - 10]),
    }
}

/// Calls `check` with each PDU.
fn each_pdu(mut data: &[u8], mut check: impl FnMut(&[u8])) {
    while let Some((length, rest)) = data.split_first() {
        let (pdu, after) = rest.split_at(rest.len().min(usize::from(*length)));
        data = after;
        check(pdu);
    }
}

fn check_lte_am(pdu: &[u8], format: lte::AmFormat) {
    let Ok(decoded) = lte::codec::decode(pdu, format) else { return };
    let encoded = match &decoded {
        lte::codec::Pdu::Data(amd) => amd.encode(format),
        lte::codec::Pdu::Status(status) => lte::codec::encode_status(status, format.sn),
    };
    assert_eq!(lte::codec::decode(&encoded, format), Ok(decoded));
}

fn check_nr_am(pdu: &[u8], length: nr::AmSnLength) {
    let Ok(decoded) = nr::codec::decode(pdu, length) else { return };
    let encoded = match &decoded {
        nr::codec::Pdu::Data(amd) => amd.encode(length),
        nr::codec::Pdu::Status(status) => nr::codec::encode_status(status, length),
    };
    assert_eq!(nr::codec::decode(&encoded, length), Ok(decoded));
}

fn check_lte_um(pdu: &[u8], length: lte::UmSnLength) {
    let Ok(decoded) = lte::codec::Umd::decode(pdu, length) else { return };
    let encoded = decoded.encode(length);
    assert_eq!(lte::codec::Umd::decode(&encoded, length), Ok(decoded));
}

fn check_nr_um(pdu: &[u8], length: nr::UmSnLength) {
    let Ok(decoded) = nr::codec::Umd::decode(pdu, length) else { return };
    let encoded = decoded.encode(length);
    assert_eq!(nr::codec::Umd::decode(&encoded, length), Ok(decoded));
}

/// One step, selected by a byte. Up to 127: a PDU of this many bytes, which follow, arrives. Up to 191: after a
/// delay, a transport block. Otherwise: the entity gets an SDU.
enum Step {
    Receives(usize),
    Transmits { octets: usize, after: Duration },
    Submits(usize),
}

impl From<u8> for Step {
    fn from(byte: u8) -> Self {
        match usize::from(byte) {
            bytes @ 0..128 => Self::Receives(bytes),
            slot @ 128..192 => {
                let after = Duration::from_millis([0, 10, 50, 200][slot % 4]);
                Self::Transmits {
                    octets: [0, 1, 3, 4, 5, 7, 10, 20, 40, 80, 130, 200, 260, 400, 1_000, 9_000]
                        [slot / 4 % 16],
                    after,
                }
            }
            size => Self::Submits(1 + (size - 192) * 40),
        }
    }
}

/// The functions of an AM entity.
trait Entity {
    fn submit(&mut self, sdu: Sdu);
    fn pull(&mut self, now: Instant, octets: usize, pdus: &mut Vec<Pdu>) -> usize;
    fn receive(&mut self, now: Instant, pdu: &[u8], events: &mut Vec<Event>);
    fn next_deadline(&self) -> Option<Instant>;
    fn expire(&mut self, now: Instant, events: &mut Vec<Event>);
    fn reestablish(&mut self, events: &mut Vec<Event>);
}

macro_rules! entity {
    ($type:ty, $entity:ident, $events:ident => $reestablish:expr) => {
        impl Entity for $type {
            fn submit(&mut self, sdu: Sdu) {
                <$type>::submit(self, sdu);
            }
            fn pull(&mut self, now: Instant, octets: usize, pdus: &mut Vec<Pdu>) -> usize {
                <$type>::pull(self, now, octets, pdus)
            }
            fn receive(&mut self, now: Instant, pdu: &[u8], events: &mut Vec<Event>) {
                let _ = <$type>::receive(self, now, pdu, events);
            }
            fn next_deadline(&self) -> Option<Instant> {
                <$type>::next_deadline(self)
            }
            fn expire(&mut self, now: Instant, events: &mut Vec<Event>) {
                <$type>::on_deadline(self, now, events);
            }
            fn reestablish(&mut self, $events: &mut Vec<Event>) {
                let $entity = self;
                $reestablish
            }
        }
    };
}

entity!(lte::AmEntity, entity, events => lte::AmEntity::reestablish(entity, events));
entity!(nr::AmEntity, entity, _events => nr::AmEntity::reestablish(entity));

fn parameters() -> AmParameters {
    AmParameters {
        poll_byte: Some(500),
        max_retx_threshold: 4,
        t_poll_retransmit: Duration::from_millis(45),
        ..AmParameters::default()
    }
}

fn lte_am(format: lte::AmFormat) -> lte::AmEntity {
    let mac_subheaders = MacSubheaders::Counted;
    lte::AmEntity::new(lte::AmConfig {
        format,
        parameters: parameters(),
        mac_subheaders,
        ..Default::default()
    })
}

fn nr_am(sn_length: nr::AmSnLength) -> nr::AmEntity {
    let mac_subheaders = MacSubheaders::Counted;
    nr::AmEntity::new(nr::AmConfig {
        sn_length,
        parameters: parameters(),
        mac_subheaders,
        ..Default::default()
    })
}

/// Runs an entity against an arbitrary peer. It must not exceed transport blocks, set deadlines without end, or
/// confirm an SDU twice.
fn run_entity(mut data: &[u8], mut entity: impl Entity) {
    let mut now = Instant::ZERO;
    let (mut submitted, mut confirmed, mut events) = (0, BTreeSet::new(), Vec::new());
    while let Some((step, rest)) = data.split_first() {
        data = rest;
        match Step::from(*step) {
            Step::Receives(bytes) => {
                let (pdu, after) = data.split_at(data.len().min(bytes));
                data = after;
                entity.receive(now, pdu, &mut events);
            }
            Step::Transmits { octets, after } => {
                let end = now + after;
                expire_until(&mut entity, &mut now, end, &mut events);
                let mut pdus = Vec::new();
                let used = entity.pull(now, octets, &mut pdus);
                let length: usize = pdus.iter().map(|pdu| pdu.octets.len()).sum();
                assert!(length <= used && used <= octets, "{length} bytes of PDUs, {used} used of {octets}");
            }
            Step::Submits(bytes) => {
                entity.submit(Sdu { id: submitted, octets: vec![1; bytes].into() });
                submitted += 1;
            }
        }
        let mut has_failed = false;
        for event in events.drain(..) {
            match event {
                Event::Delivered(sdu) => assert!(!sdu.is_empty(), "an empty SDU"),
                Event::Confirmed(id) => {
                    assert!(id < submitted && confirmed.insert(id), "SDU {id} of {submitted} is confirmed");
                }
                Event::MaxRetx(_) => has_failed = true,
            }
        }
        if has_failed {
            entity.reestablish(&mut events);
        }
    }
}

fn expire_until(entity: &mut impl Entity, now: &mut Instant, end: Instant, events: &mut Vec<Event>) {
    let mut deadlines = 0;
    while let Some(at) = entity.next_deadline().filter(|at| *at <= end) {
        *now = (*now).max(at);
        entity.expire(*now, events);
        deadlines += 1;
        assert!(deadlines < 1_000, "too many deadlines in one step");
    }
    *now = end;
}

fn receive_lte_um(data: &[u8], sn_length: lte::UmSnLength) {
    let mut receiver = lte::UmReceiver::new(lte::UmConfig { sn_length, ..lte::UmConfig::default() });
    let (mut now, mut events) = (Instant::ZERO, Vec::new());
    each_pdu(data, |pdu| {
        now += Duration::from_millis(10);
        if receiver.next_deadline().is_some_and(|at| at <= now) {
            receiver.on_deadline(now, &mut events);
        }
        let _ = receiver.receive(now, pdu, &mut events);
    });
    receiver.reestablish(&mut events);
}

fn receive_nr_um(data: &[u8], sn_length: nr::UmSnLength) {
    let mut receiver = nr::UmReceiver::new(nr::UmConfig { sn_length, ..nr::UmConfig::default() });
    let (mut now, mut events) = (Instant::ZERO, Vec::new());
    each_pdu(data, |pdu| {
        now += Duration::from_millis(10);
        if receiver.next_deadline().is_some_and(|at| at <= now) {
            receiver.on_deadline(now);
        }
        let _ = receiver.receive(now, pdu, &mut events);
    });
    receiver.reestablish();
}

/// Data PDUs go to a receiver, and status reports to a transmitter with unconfirmed SDUs.
fn run_pdcp(data: &[u8], format: Format) {
    let config = NrReceiverConfig { t_reordering: Some(Duration::from_millis(40)), out_of_order: false };
    let mut receiver = NrReceiver::new(format, config);
    let mut transmitter = Transmitter::new(format, None);
    (0..100).for_each(|_| {
        transmitter.submit(Instant::ZERO, b"packet");
    });
    let (mut now, mut next) = (Instant::ZERO, 0);
    each_pdu(data, |pdu| {
        now += Duration::from_millis(10);
        if receiver.next_deadline().is_some_and(|at| at <= now) {
            receiver.handle_deadline(now);
        }
        match pdcp::decode(format, pdu) {
            Ok(pdcp::Pdu::Data { sn }) => {
                let encoded = pdcp::encode_data(format, sn.into(), format.sdu(pdu));
                assert_eq!(pdcp::decode(format, &encoded), Ok(pdcp::Pdu::Data { sn }));
                receiver.receive(now, sn, pdu.to_vec());
            }
            Ok(pdcp::Pdu::Status(report)) => {
                let encoded = report.encode(format);
                assert_eq!(pdcp::decode(format, &encoded), Ok(pdcp::Pdu::Status(report.clone())));
                transmitter.receive_report(&report, |_| {});
            }
            Err(_) => {}
        }
        while let Some((count, _)) = receiver.poll_pdu() {
            assert!(count >= next, "COUNT {count} after {next}");
            next = count + 1;
        }
    });
    assert!(transmitter.first_unconfirmed() <= transmitter.tx_next());
}
