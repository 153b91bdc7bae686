use airtcp_testkit::sample::{cases, size};
use airwire::rng::Stream;
use proptest::prelude::*;

use super::*;
use crate::rlc::am::testing::{at, ms, sdu};
use crate::rlc::lte::codec::DataField;

fn config(sn_length: UmSnLength) -> UmConfig {
    UmConfig { sn_length, t_reordering: ms(20), ..UmConfig::default() }
}

/// A PDU with 5 bits of sequence number.
fn pdu(sn: u32, fi: u8, ends: &[u32], octets: &[u8]) -> Vec<u8> {
    let data = DataField { starts_sdu: fi & 0b10 == 0, ends_sdu: fi & 0b01 == 0, ends: ends.into(), octets };
    Umd { sn, data }.encode(UmSnLength::Bits5)
}

fn whole(sn: u32) -> Vec<u8> {
    pdu(sn, 0b00, &[], &[sn as u8])
}

struct Receiving(UmReceiver);

impl Receiving {
    fn new() -> Self {
        Self(UmReceiver::new(config(UmSnLength::Bits5)))
    }

    fn receive(&mut self, now: u64, pdu: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        self.0.receive(at(now), pdu, &mut events).unwrap();
        events
    }

    fn expire(&mut self, now: u64) -> Vec<Event> {
        let mut events = Vec::new();
        self.0.on_deadline(at(now), &mut events);
        events
    }
}

fn delivered(octets: &[&[u8]]) -> Vec<Event> {
    octets.iter().map(|octets| Event::Delivered(octets.to_vec())).collect()
}

#[test]
fn late_pdu_is_awaited_for_t_reordering() {
    let mut receiving = Receiving::new();
    assert_eq!(receiving.receive(0, &whole(1)), []);
    assert_eq!(receiving.0.next_deadline(), Some(at(20)));
    assert_eq!(receiving.receive(5, &whole(3)), []);
    assert_eq!(receiving.expire(20), delivered(&[&[1]]));
    assert_eq!(receiving.0.next_deadline(), Some(at(40)), "restarted for PDU 2");
    assert_eq!(receiving.receive(21, &whole(0)), [], "too late");
    assert_eq!(receiving.receive(22, &whole(2)), delivered(&[&[2], &[3]]));
    assert_eq!(receiving.0.next_deadline(), None);
}

#[test]
fn sdu_with_a_lost_part_is_discarded() {
    let mut receiving = Receiving::new();
    assert_eq!(receiving.receive(0, &pdu(0, 0b01, &[1], &[1, 2])), delivered(&[&[1]]));
    receiving.receive(1, &pdu(2, 0b10, &[1], &[2, 3]));
    // PDU 1 is lost, and with it the SDU that PDU 0 begins and PDU 2 ends.
    assert_eq!(receiving.expire(21), delivered(&[&[3]]));
}

#[test]
fn pdu_beyond_the_window_moves_it() {
    let mut receiving = Receiving::new();
    assert_eq!(receiving.receive(0, &whole(1)), []);
    assert_eq!(receiving.receive(0, &whole(15)), []);
    // The window of 16 PDUs now begins with 2.
    assert_eq!(receiving.receive(0, &whole(17)), delivered(&[&[1]]));
    assert_eq!(receiving.receive(0, &whole(2)), delivered(&[&[2]]));
    assert_eq!(receiving.receive(0, &whole(2)), [], "received before");
}

#[test]
fn reestablishment_delivers_what_can_be_reassembled() {
    let mut receiving = Receiving::new();
    receiving.receive(0, &pdu(1, 0b11, &[1, 2], &[1, 2, 3]));
    receiving.receive(0, &pdu(2, 0b10, &[], &[3]));
    let mut events = Vec::new();
    receiving.0.reestablish(&mut events);
    assert_eq!(events, delivered(&[&[2], &[3, 3]]));
    assert_eq!(receiving.receive(1, &whole(0)), delivered(&[&[0]]));
}

proptest! {
    #![proptest_config(cases(size(100, 500)))]

    /// Without losses every SDU arrives. With losses, each arrives at most once, unchanged and in order.
    #[test]
    fn sdus_arrive_unchanged_and_at_most_once(
        seed in any::<u64>(),
        loss in prop_oneof![Just(0.0), 0.0..0.4],
        is_short in any::<bool>(),
    ) {
        let config = config(if is_short { UmSnLength::Bits5 } else { UmSnLength::Bits10 });
        let mut draws = Stream::new(seed, "um");
        let (mut sender, mut receiver) = (UmSender::new(config.clone()), UmReceiver::new(config));
        let (mut events, mut now) = (Vec::new(), at(0));
        let sent: Vec<_> = (0..200).map(|id| sdu(id, 8 + draws.below(200) as usize)).collect();
        for (id, sdu) in sent.iter().enumerate() {
            sender.submit(sdu.clone());
            let mut pdus = Vec::new();
            let grant = if id == 199 { 1_000_000 } else { draws.below(250) as usize };
            let used = sender.pull(grant, &mut pdus);
            prop_assert!(used <= grant && pdus.len() <= 1);
            for pdu in pdus {
                if !draws.chance(loss) {
                    receiver.receive(now, &pdu.octets, &mut events).unwrap();
                }
            }
            now += ms(draws.below(4));
            receiver.on_deadline(now, &mut events);
        }
        receiver.reestablish(&mut events);
        let expected: Vec<_> = sent.iter().map(|sdu| Event::Delivered(sdu.octets.to_vec())).collect();
        if loss == 0.0 {
            prop_assert_eq!(&events, &expected);
        }
        let mut next = expected.iter();
        prop_assert!(events.iter().all(|event| next.any(|expected| expected == event)));
    }

    #[test]
    fn arbitrary_octets_do_not_confuse_a_receiver(
        pdus in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 1..200),
        is_short in any::<bool>(),
    ) {
        let mut receiver =
            UmReceiver::new(config(if is_short { UmSnLength::Bits5 } else { UmSnLength::Bits10 }));
        for (now, pdu) in pdus.iter().enumerate() {
            let _ = receiver.receive(at(now as u64), pdu, &mut Vec::new());
            receiver.on_deadline(at(now as u64), &mut Vec::new());
        }
    }
}
