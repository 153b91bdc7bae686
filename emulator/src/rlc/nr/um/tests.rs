use airtcp_testkit::sample::{cases, size};
use airwire::rng::Stream;
use proptest::prelude::*;

use super::*;
use crate::rlc::am::testing::{at, ms, sdu};

fn config(sn_length: UmSnLength) -> UmConfig {
    UmConfig { sn_length, t_reassembly: ms(20), ..UmConfig::default() }
}

fn pull(sender: &mut UmSender, octets: usize) -> Vec<Vec<u8>> {
    let mut pdus = Vec::new();
    assert!(sender.pull(octets, &mut pdus) <= octets);
    pdus.into_iter().map(|pdu| pdu.octets).collect()
}

fn segment(sn: u32, position: Position, data: &[u8]) -> Vec<u8> {
    Umd { position, sn: Some(sn), data }.encode(UmSnLength::Bits6)
}

struct Receiving(UmReceiver);

impl Receiving {
    fn new() -> Self {
        Self(UmReceiver::new(config(UmSnLength::Bits6)))
    }

    fn receive(&mut self, now: u64, pdu: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        self.0.receive(at(now), pdu, &mut events).unwrap();
        events
    }
}

#[test]
fn whole_sdus_have_no_sequence_number() {
    let mut sender = UmSender::new(config(UmSnLength::Bits12));
    for id in 0..3 {
        sender.submit(sdu(id, 9));
    }
    assert!(sender.discard(1) && !sender.discard(1));
    let pdus = pull(&mut sender, 25);
    // The last SDU has a segment of 3 octets, which has the first sequence number.
    assert_eq!(pdus[0][0], 0);
    assert_eq!(pdus[1][..2], [0, 0][..]);
    assert_eq!(pdus.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10]);
    sender.submit(sdu(3, 9));
    assert_eq!(pull(&mut sender, 5)[0][..2], [0x40, 0]);
    assert_eq!(sender.buffer_status().new, 6);
    assert_eq!(pull(&mut sender, 100)[0][..4], [0x80, 0, 0, 3]);
    sender.submit(sdu(4, 9));
    assert_eq!(pull(&mut sender, 5)[0][..2], [0x40, 1]);
    assert!(!sender.discard(4));
}

#[test]
fn incomplete_sdu_is_discarded_when_t_reassembly_expires() {
    let mut receiving = Receiving::new();
    receiving.receive(0, &segment(0, Position::First, &[1]));
    assert_eq!(receiving.0.next_deadline(), None, "its other segments are not late yet");
    receiving.receive(1, &segment(1, Position::First, &[1]));
    assert_eq!(receiving.0.next_deadline(), Some(at(21)));
    receiving.0.on_deadline(at(21));
    assert_eq!(receiving.0.discarded(), 2);
    assert_eq!(receiving.receive(22, &segment(0, Position::Last { so: 1 }, &[2])), []);
}

#[test]
fn t_reassembly_stops_when_the_gap_is_filled() {
    let mut receiving = Receiving::new();
    receiving.receive(0, &segment(0, Position::Middle { so: 1 }, &[2]));
    assert_eq!(receiving.0.next_deadline(), Some(at(20)));
    receiving.receive(1, &segment(0, Position::First, &[1]));
    assert_eq!(receiving.0.next_deadline(), None);
    let events = receiving.receive(2, &segment(0, Position::Last { so: 2 }, &[3]));
    assert_eq!(events, [Event::Delivered(vec![1, 2, 3])]);
}

#[test]
fn segment_beyond_the_window_moves_it() {
    let mut receiving = Receiving::new();
    receiving.receive(0, &segment(0, Position::First, &[1]));
    // The window of 32 SDUs now ends with 40, and begins with 9.
    receiving.receive(0, &segment(31, Position::First, &[1]));
    receiving.receive(0, &segment(40, Position::First, &[1]));
    assert_eq!(receiving.0.discarded(), 1);
    assert_eq!(receiving.receive(0, &segment(9, Position::First, &[1])), []);
    let events = receiving.receive(0, &segment(9, Position::Last { so: 1 }, &[2]));
    assert_eq!(events, [Event::Delivered(vec![1, 2])]);
}

#[test]
fn reestablishment_discards_segments() {
    let mut receiving = Receiving::new();
    receiving.receive(0, &segment(0, Position::First, &[1]));
    receiving.0.reestablish();
    assert_eq!(receiving.0.discarded(), 1);
    assert_eq!(receiving.receive(1, &segment(0, Position::Last { so: 1 }, &[2])), []);
    let mut sender = UmSender::new(config(UmSnLength::Bits6));
    sender.submit(sdu(0, 30));
    pull(&mut sender, 10);
    sender.reestablish();
    assert!(pull(&mut sender, 100).is_empty());
}

proptest! {
    #![proptest_config(cases(size(100, 500)))]

    /// Without losses every SDU arrives. With losses, each arrives at most once and unchanged.
    #[test]
    fn sdus_arrive_unchanged_and_at_most_once(
        seed in any::<u64>(),
        loss in prop_oneof![Just(0.0), 0.0..0.4],
        is_short in any::<bool>(),
    ) {
        let config = config(if is_short { UmSnLength::Bits6 } else { UmSnLength::Bits12 });
        let mut draws = Stream::new(seed, "um");
        let (mut sender, mut receiver) = (UmSender::new(config.clone()), UmReceiver::new(config));
        let (mut events, mut now) = (Vec::new(), at(0));
        let sent: Vec<_> = (0..200).map(|id| sdu(id, 8 + draws.below(200) as usize)).collect();
        for sdu in &sent {
            sender.submit(sdu.clone());
            for pdu in pull(&mut sender, draws.below(250) as usize) {
                if !draws.chance(loss) {
                    receiver.receive(now, &pdu, &mut events).unwrap();
                }
            }
            now += ms(draws.below(4));
            receiver.on_deadline(now);
        }
        for pdu in pull(&mut sender, 1_000_000) {
            receiver.receive(now, &pdu, &mut events).unwrap();
        }
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
            UmReceiver::new(config(if is_short { UmSnLength::Bits6 } else { UmSnLength::Bits12 }));
        for (now, pdu) in pdus.iter().enumerate() {
            let _ = receiver.receive(at(now as u64), pdu, &mut Vec::new());
            receiver.on_deadline(at(now as u64));
        }
    }
}
